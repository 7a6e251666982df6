"""Files and trees, both ways and between sandboxes: what was sent is there, whole, and nothing else is.

On every combination compiled in, and as the plugin on each route with one
image. ABX_NIGHTLY makes the random trees more and the files larger.
"""

import contextlib
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import stat
import subprocess
import time

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from conftest import NIGHTLY
from program import Abx

MIB = 1 << 20
SIZES = [0, 1, 65535, 65536, 65537, MIB - 1, MIB, MIB + 1, 8 * MIB - 1, 8 * MIB, 8 * MIB + 1]
LEFT = "find / -xdev -name '.abx-*' ! -path '/tmp/.abx-*' | sort"


@pytest.fixture(autouse=True)
def form(request, monkeypatch):
    if "through" in request.fixturenames:
        plugin = request.getfixturevalue("through") == "plugin"
        monkeypatch.setattr(Abx, "store", request.getfixturevalue("exported") if plugin else None)


@pytest.fixture
def there(box):
    """A new folder in the sandbox, which is removed again."""
    path = f"/var/c-{time.monotonic_ns()}"
    box.sh(f"mkdir {path}")
    yield path
    box.sh(f"rm -rf {path}")


def seen(top):
    """What a tree holds: for each name below it kind, mode and content."""
    found = {}
    top = os.fsencode(top)
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            st_ = os.lstat(path)
            if stat.S_ISLNK(st_.st_mode):
                what = ("link", os.readlink(path))
            elif stat.S_ISDIR(st_.st_mode):
                what = ("folder", stat.S_IMODE(st_.st_mode))
            else:
                with open(path, "rb") as f:
                    what = ("file", stat.S_IMODE(st_.st_mode), hashlib.sha256(f.read()).hexdigest())
            found[os.path.relpath(path, top)] = what
    return found


def noise(path, size, seed=7):
    """A file of bytes that no two blocks share."""
    r = random.Random(seed)
    with open(path, "wb") as f:
        while size > 0:
            f.write(r.randbytes(min(size, 4 * MIB)))
            size -= 4 * MIB
    return path


# ---- random trees ----

NAMES = st.binary(min_size=1, max_size=24).map(lambda b: b.replace(b"/", b"%").replace(b"\0", b"$")).filter(
    lambda b: b not in (b".", b".."))
PLAIN = st.sampled_from([b"a b", b"$HOME", b"it's", b'"q"', b"\\n", b"new\nline", b"-rf", b"*", b"~", "\u4f60\u597d".encode(),
                         b"n" * 255, b".hidden", b"\xff\xfe"])
LEAF = st.one_of(
    st.tuples(st.just("file"), st.integers(0, 0o777), st.binary(max_size=200)),
    st.tuples(st.just("file"), st.integers(0, 0o777), st.sampled_from([65535, 65536, 65537, 200000])),
    st.tuples(st.just("link"), st.sampled_from([b"/etc/passwd", b"..", b"nothing", b"a b", b"l" * 200])))
TREES = st.recursive(
    st.dictionaries(st.one_of(NAMES, PLAIN), LEAF, max_size=4),
    lambda inner: st.dictionaries(st.one_of(NAMES, PLAIN),
                                  st.one_of(LEAF, st.tuples(st.just("folder"), st.integers(0, 0o777), inner)), max_size=4),
    max_leaves=12)


def plant(top, tree):
    for name, what in tree.items():
        path = os.path.join(top, name)
        if what[0] == "file":
            with open(path, "wb") as f:
                f.write(what[2] if isinstance(what[2], bytes) else random.Random(what[2]).randbytes(what[2]))
            os.chmod(path, what[1])
        elif what[0] == "link":
            os.symlink(what[1], path)
        else:
            os.mkdir(path)
            plant(path, what[2])
            os.chmod(path, what[1])


@pytest.mark.halved
def test_random_trees(through, box, there, tmp_path):
    turn = iter(range(10**6))

    @settings(max_examples=200 if NIGHTLY else 12, deadline=None, database=None, print_blob=False,
              suppress_health_check=list(HealthCheck))
    @given(TREES)
    def both_ways(tree):
        here = tmp_path / f"t{next(turn)}"
        source = os.fsencode(here / "source")
        os.makedirs(source)
        plant(source, tree)
        up = box.abx("--json", "cp", str(here / "source"), f"{box.id}:{there}/{here.name}")
        assert up.code == 0, up
        down = box.abx("--json", "cp", f"{box.id}:{there}/{here.name}", str(here / "back"))
        assert down.code == 0, down
        assert seen(here / "back") == seen(here / "source")
        shutil.rmtree(here)

    both_ways()
    assert box.sh(LEFT) == ""


# ---- sizes ----

@pytest.mark.halved
def test_sizes_one_by_one(through, box, there, tmp_path):
    for size in SIZES:
        source = noise(tmp_path / "f", size, size)
        done = box.abx("--json", "upload", box.id, str(source), f"{there}/f-{size}")
        assert done.json()["size"] == size, done
        assert box.sh(f"sha256sum < {there}/f-{size}").split()[0] == hashlib.sha256(source.read_bytes()).hexdigest()
        done = box.abx("--json", "download", box.id, f"{there}/f-{size}", str(tmp_path / "back"))
        assert done.json()["size"] == size and (tmp_path / "back").read_bytes() == source.read_bytes()


@pytest.mark.halved
def test_sizes_as_a_tree(through, box, there, tmp_path):
    source = tmp_path / "tree"
    source.mkdir()
    for size in SIZES:
        noise(source / f"f-{size}", size, size)
    done = box.abx("--json", "upload", box.id, str(source), there)
    assert done.code == 0 and done.json()["files"] == len(SIZES), done
    done = box.abx("--json", "download", box.id, f"{there}/tree", str(tmp_path / "back"))
    assert done.code == 0, done
    assert seen(tmp_path / "back") == seen(source)


def peak(abx, *words):
    """How it ended, and the most memory it had, in MiB: of its own, for a parent's counts as a child's until then."""
    child, most = abx.start(*words, stdout=subprocess.DEVNULL, stderr=None), 0
    while child.poll() is None:
        with contextlib.suppress(OSError, TypeError):
            with open(f"/proc/{child.pid}/status") as status:
                most = max(most, int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1024)
        time.sleep(0.005)
    assert most > 0
    return child.returncode, most


@pytest.mark.paired
def test_a_large_file_in_little_memory(box, there, tmp_path):
    size = 10 << 30 if NIGHTLY else 100 * MIB
    source = tmp_path / "tree"
    source.mkdir()
    big = noise(source / "big", min(size, 512 * MIB))
    if size > 512 * MIB:
        with open(big, "ab") as out:
            for i in range(1, size // (512 * MIB)):
                with open(big, "rb") as again:
                    for _ in range(512):
                        out.write(again.read(MIB))
    want = subprocess.run(["sha256sum", big], capture_output=True, check=True).stdout.split()[0]
    for local, name, inside in ((big, "one", ""), (source, "two", "/big")):
        far, near = f"{there}/{name}", tmp_path / name
        for words in (["upload", box.id, str(local), far], ["download", box.id, far, str(near)]):
            code, used = peak(box.abx, *words)
            assert code == 0 and used < 16, (words, code, used)
        assert box.sh(f"sha256sum < {far}{inside}").split()[0].encode() == want
        assert subprocess.run(["sha256sum", f"{near}{inside}"], capture_output=True, check=True).stdout.split()[0] == want
        box.sh(f"rm -r {far}")      # of the long form there is not room for all at once
        subprocess.run(["rm", "-r", near], check=True)
    shutil.rmtree(source)


@pytest.mark.halved
def test_many_small_files(through, box, there, tmp_path):
    source = tmp_path / "many"
    for i in range(1000):
        path = source / f"d{i % 7}" / f"f{i}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d\n" % i * (i % 50))
    assert box.abx("upload", box.id, str(source), f"{there}/many").code == 0
    assert box.abx("download", box.id, f"{there}/many", str(tmp_path / "back")).code == 0
    assert seen(tmp_path / "back") == seen(source)


@pytest.mark.halved
def test_holes(through, box, there, tmp_path):
    """The zeros travel, through a plugin in lines of text; they take no room behind."""
    source, far = tmp_path / "holes", (300 if through == "compiled" else 20) * MIB
    source.mkdir()
    with open(source / "sparse", "wb") as f:
        f.write(b"head")
        f.seek(far)
        f.write(b"tail")
    assert box.abx("upload", box.id, str(source), f"{there}/holes").code == 0
    blocks, size = box.sh(f"stat -c '%b %s' {there}/holes/sparse").split()
    assert int(size) == far + 4 and int(blocks) * 512 < MIB, (blocks, size)
    assert box.abx("download", box.id, f"{there}/holes", str(tmp_path / "back")).code == 0
    back = os.stat(tmp_path / "back/sparse")
    assert back.st_size == far + 4 and back.st_blocks * 512 < MIB
    with open(tmp_path / "back/sparse", "rb") as f:
        assert f.read(5) == b"head\0"
        f.seek(-4, 2)
        assert f.read() == b"tail"


# ---- where things go ----

@pytest.mark.halved
def test_the_table(through, box, there, tmp_path):
    """One file, one folder and what is in it, onto each kind of target, both ways."""
    (tmp_path / "s/d/in").mkdir(parents=True)
    (tmp_path / "s/d/in/x").write_bytes(b"x")
    (tmp_path / "s/d/y").write_bytes(b"y")
    (tmp_path / "s/f").write_bytes(b"f")
    (tmp_path / "s/g").write_bytes(b"g")
    box.sh(f"cd {there} && mkdir -p s/d/in && printf x > s/d/in/x && printf y > s/d/y && printf f > s/f && printf g > s/g")
    rows = [   # sources, what is there before, target, what is there behind it (None: refused)
        (["f"], "", "t/new", "new=f"),
        (["f"], "", "t/new/", "new/f=f"),
        (["f"], "", "t/a/b/new", "a/b/new=f"),
        (["f"], "mkdir t/old", "t/old", "old/f=f"),
        (["f"], "printf old > t/old", "t/old", "old=f"),
        (["f"], "printf old > t/old", "t/old/", None),
        (["d"], "", "t/new", "new/in/x=x new/y=y"),
        (["d"], "", "t/new/", "new/d/in/x=x new/d/y=y"),
        (["d"], "mkdir t/old", "t/old", "old/d/in/x=x old/d/y=y"),
        (["d/"], "mkdir t/old", "t/old", "old/d/in/x=x old/d/y=y"),
        (["d"], "printf old > t/old", "t/old", None),
        (["d/."], "", "t/new", "new/in/x=x new/y=y"),
        (["d/."], "mkdir t/old; printf z > t/old/z; printf n > t/old/y", "t/old", "old/in/x=x old/y=y old/z=z"),
        (["f", "g"], "mkdir t/old", "t/old", "old/f=f old/g=g"),
        (["f", "g"], "", "t/new/", "new/f=f new/g=g"),
        (["f", "g"], "", "t/new", None),
        (["f", "d"], "mkdir t/old", "t/old", "old/d/in/x=x old/d/y=y old/f=f"),
        (["d"], "mkdir t/old; printf file > t/old/d", "t/old", "old/d=file"),
        (["f"], "mkdir -p t/old/f", "t/old", ""),
    ]
    show = "find . -type f | sort | while read f; do printf '%s=%s ' \"${f#./}\" \"$(cat $f)\"; done"
    for sources, before, target, want in rows:
        local = tmp_path / "l"
        shutil.rmtree(local, ignore_errors=True)
        local.mkdir()
        (local / "t").mkdir()
        subprocess.run(["sh", "-c", before or ":"], cwd=local, check=True)
        box.sh(f"cd {there} && rm -rf t && mkdir t && {{ {before or ':'}; }}")
        up = box.abx("cp", *[str(tmp_path / "s" / s) if not s.endswith("/.") else f"{tmp_path}/s/{s}" for s in sources],
                     f"{box.id}:{there}/{target}")
        down = box.abx("cp", *[f"{box.id}:{there}/s/{s}" for s in sources], f"{local}/{target}")
        up_has = box.sh(f"cd {there}/t && {show}").strip()
        down_has = subprocess.run(["sh", "-c", show], cwd=local / "t", capture_output=True, text=True).stdout.strip()
        for how, done, has in (("up", up, up_has), ("down", down, down_has)):
            row = (how, sources, before, target, done)
            if want is None or want == "" or want.endswith("=file"):
                assert done.code != 0, row
            else:
                assert (done.code, has) == (0, want), (*row, has)
            if want is None:
                assert has in ("", "old=old"), (*row, has)
        assert up_has == down_has, (sources, before, target)


@pytest.mark.halved
def test_patterns(through, box, there, tmp_path):
    box.sh(f"cd {there} && mkdir d && printf 1 > d/a.log && printf 2 > d/b.log && printf 3 > d/c.txt && printf 4 > 'd/*.log'")
    (tmp_path / "all").mkdir()
    assert box.abx("download", box.id, f"{there}/d/*.log", str(tmp_path / "all")).code == 0
    assert sorted(os.listdir(tmp_path / "all")) == ["*.log"], "one that is there by that name is itself"
    box.sh(f"rm '{there}/d/*.log'")
    assert box.abx("download", box.id, f"{there}/d/[ab].l?g", str(tmp_path / "all")).code == 0
    assert sorted(os.listdir(tmp_path / "all")) == ["*.log", "a.log", "b.log"]
    none = box.abx("--json", "download", box.id, f"{there}/d/*.none", str(tmp_path / "all"))
    assert none.code == 4 and none.error()["code"] == "E4001", none


@pytest.mark.parametrize("name", ["a b", "$HOME `x` ${y}", "it's \"q\"", "new\nline", "\\n\\", "-rf", "~", "\u4f60\u597d"])
@pytest.mark.halved
def test_names(through, box, there, tmp_path, name):
    (tmp_path / "s" / name).mkdir(parents=True)
    (tmp_path / "s" / name / name).write_bytes(name.encode())
    assert box.abx("cp", str(tmp_path / "s" / name), f"{box.id}:{there}").code == 0
    assert box.sh(f"cat {shlex.quote(f'{there}/{name}/{name}')}; echo .").strip() == name + "."
    assert box.abx("cp", f"{box.id}:{there}/{name}", str(tmp_path / "back")).code == 0
    assert seen(tmp_path / "back") == seen(tmp_path / "s" / name)


@pytest.mark.halved
def test_stdin_and_stdout(through, box, there, tmp_path):
    data = random.Random(1).randbytes(3 * MIB + 1)
    assert box.abx("cp", "-", f"{box.id}:{there}/in", input=data).code == 0
    done = box.abx("cp", f"{box.id}:{there}/in", "-")
    assert (done.code, done.out) == (0, data), done.err


@pytest.mark.paired
def test_between_sandboxes(box, own, there, tmp_path):
    other = own(box.daemon, "busybox" if box.image == "debian" else "debian")
    (tmp_path / "s/d").mkdir(parents=True)
    noise(tmp_path / "s/d/big", 9 * MIB)
    os.symlink("big", tmp_path / "s/d/link")
    (tmp_path / "s/empty").mkdir(mode=0o711)
    assert box.abx("cp", str(tmp_path / "s"), f"{box.id}:{there}").code == 0
    assert box.abx("cp", f"{box.id}:{there}/s", f"{other}:/var/").code == 0
    assert box.abx("cp", f"{other}:/var/s", str(tmp_path / "back")).code == 0
    assert seen(tmp_path / "back") == seen(tmp_path / "s")
    assert box.abx("cp", f"{other}:/var/s/d/big", f"{box.id}:{there}/one").code == 0
    assert box.sh(f"cmp {there}/one {there}/s/d/big && echo same").strip() == "same"
    gone = box.abx("--json", "cp", f"{other}:/none", f"{box.id}:{there}/none")
    assert gone.code == 4 and gone.error()["code"] == "E4001", gone


# ---- what a sandbox may hold ----

@pytest.mark.halved
def test_odd_things_in_a_sandbox(through, box, there, tmp_path):
    """A FIFO, a device, a socket's kin, links out of the tree: named, or kept as links, and nothing is followed."""
    box.sh(f"cd {there} && mkdir d && mkfifo d/fifo && mknod d/null c 1 3 2>/dev/null; printf a > {there}/d/a; "
           f"ln -s /etc d/out; ln -s ../../../../etc/passwd d/up; ln -s loop d/loop; mkdir d/zz; printf z > d/zz/z")
    done = box.abx("--json", "download", box.id, f"{there}/d", str(tmp_path / "back"))
    assert done.code == 1, done
    assert {os.fsdecode(k): v[0] for k, v in seen(tmp_path / "back").items()} == {
        "a": "file", "out": "link", "up": "link", "loop": "link", "zz": "folder", "zz/z": "file"}
    assert "fifo" in done.errors + done.text


@pytest.mark.paired
def test_what_the_user_may_not_read(box, there, tmp_path):
    box.sh(f"cd {there} && chmod 755 . && mkdir d && printf a > d/a && printf s > d/secret && chmod 600 d/secret && "
           "mkdir -m 700 d/closed && printf c > d/closed/c && printf z > d/z")
    done = box.abx("cp", "-u", "nobody", f"{box.id}:{there}/d", str(tmp_path / "back"))
    assert done.code == 1, done
    assert "secret" in done.errors and "closed" in done.errors
    files = {os.fsdecode(k) for k, v in seen(tmp_path / "back").items() if v[0] == "file"}
    assert files == {"a", "z"}


@pytest.mark.paired
def test_a_file_that_changes_while_it_is_read(box, there, tmp_path):
    """Never a mixture under the final name without a word: it is whole, or it is named."""
    box.sh(f"mkdir {there}/d && (i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo $i >> {there}/d/grows; done) > /dev/null 2>&1 & "
           f"sleep 0.1")
    for turn in range(3):
        done = box.abx("download", box.id, f"{there}/d", str(tmp_path / f"back{turn}"))
        got = tmp_path / f"back{turn}/grows"
        if done.code == 0:
            lines = got.read_text().splitlines()
            assert lines == [str(i + 1) for i in range(len(lines))]
        else:
            assert done.code == 1 and "grows" in done.errors and not got.exists(), done


# ---- what may go wrong ----

@pytest.mark.paired
def test_a_full_disk_there(box, tmp_path):
    """/dev/shm of a container has 64 MiB."""
    source = tmp_path / "tree"
    source.mkdir()
    noise(source / "a", MIB)
    noise(source / "b", 90 * MIB)
    done = box.abx("--json", "upload", box.id, str(source), "/dev/shm/tree")
    try:
        assert done.code == 1 and done.error()["code"] == "E4000", done
        assert box.sh("cd /dev/shm/tree && ls -A").split() == ["a"]
        assert box.sh("wc -c < /dev/shm/tree/a").split() == [str(MIB)]
    finally:
        box.sh("rm -rf /dev/shm/tree")


@pytest.mark.paired
def test_a_full_disk_here(box, there, tmp_path):
    box.sh(f"mkdir {there}/d && head -c {MIB // 2} /dev/zero > {there}/d/a && head -c {4 * MIB} /dev/zero > {there}/d/b")
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", small], check=True)
    try:
        done = box.abx("--json", "download", box.id, f"{there}/d", str(small / "d"))
        assert done.code == 1 and done.error()["code"] == "E4000", done
        assert os.listdir(small / "d") == ["a"]
        one = box.abx("--json", "download", box.id, f"{there}/d/b", str(small / "b"))
        assert one.code == 1 and one.error()["code"] == "E4000", one
        assert os.listdir(small) == ["d"]
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("after", [0.02, 0.15, 0.4])
@pytest.mark.paired
def test_ctrl_c(box, there, tmp_path, way, after):
    source = tmp_path / "tree"
    source.mkdir()
    for i in range(20):
        noise(source / f"f{i:02}", 8 * MIB, i)
    if way == "down":
        assert box.abx("upload", box.id, str(source), f"{there}/tree").code == 0
    words = ["upload", box.id, str(source), f"{there}/got"] if way == "up" else \
            ["download", box.id, f"{there}/tree", str(tmp_path / "got")]
    child = box.abx.start(*words)
    time.sleep(after)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=20)
    assert child.returncode in (130, 0), err
    time.sleep(0.3)
    if way == "up":
        sizes = box.sh(f"cd {there}/got 2>/dev/null && for f in $(ls -A); do wc -c < $f; done; true").split()
        assert box.sh(LEFT) == ""
    else:
        got = tmp_path / "got"
        sizes = [str(p.stat().st_size) for p in got.iterdir()] if got.exists() else []
        assert not [p for p in tmp_path.rglob(".abx-*")]
    assert set(sizes) <= {str(8 * MIB)}


@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.paired
def test_resume(box, there, tmp_path, way):
    """What a killed copy left is checked and gone on with."""
    source = tmp_path / "tree"
    source.mkdir()
    for i in range(4):
        noise(source / f"f{i}", 48 * MIB, i)
    if way == "down":
        assert box.abx("upload", box.id, str(source), f"{there}/tree").code == 0
    words = ["cp", "--resume"] + ([str(source), f"{box.id}:{there}/got"] if way == "up" else
                                  [f"{box.id}:{there}/tree", str(tmp_path / "got")])
    child = box.abx.start(*words)
    time.sleep(0.25)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=20)
    done = box.abx("--json", *words)
    assert done.code == 0, done
    if way == "up":
        assert box.abx("cp", f"{box.id}:{there}/got", str(tmp_path / "got")).code == 0
    assert seen(tmp_path / "got") == seen(source)
    # A part that was changed meanwhile is not gone on with.
    again = box.abx("--json", *words)
    assert again.code == 0, again
    assert box.sh(LEFT) == ""


@pytest.mark.halved
def test_two_writers(through, box, there, tmp_path):
    """Both end well, and what lies there is one of the two, whole."""
    for name in "ab":
        (tmp_path / name / "t").mkdir(parents=True)
        noise(tmp_path / name / "t/f", 6 * MIB, ord(name))
    both = [box.abx.start("upload", box.id, f"{tmp_path}/{name}/t/.", f"{there}/t") for name in "ab"]
    assert [c.wait(timeout=60) for c in both] == [0, 0]
    got = box.sh(f"sha256sum < {there}/t/f").split()[0]
    assert got in [hashlib.sha256((tmp_path / name / "t/f").read_bytes()).hexdigest() for name in "ab"]


@pytest.mark.paired
def test_verify(box, there, tmp_path):
    source = noise(tmp_path / "f", 3 * MIB)
    assert box.abx("upload", "--verify", box.id, str(source), f"{there}/f").code == 0
    assert box.abx("download", "--verify", box.id, f"{there}/f", str(tmp_path / "back")).code == 0
    assert (tmp_path / "back").read_bytes() == source.read_bytes()


# ---- without the agent ----

@pytest.mark.halved
def test_without_the_agent(through, box, there, tmp_path):
    source = tmp_path / "tree"
    (source / "d").mkdir(parents=True)
    (source / "d/$x y").write_bytes(b"1")
    (source / "e").write_bytes(b"")
    never = lambda *words: box.abx("--json", "--agent", "never", *words)
    assert never("cp", str(source), f"{box.id}:{there}/got").code == 0
    assert never("cp", f"{box.id}:{there}/got", str(tmp_path / "back")).code == 0
    files = lambda top: {k: v[2] for k, v in seen(top).items() if v[0] == "file"}
    assert files(tmp_path / "back") == files(source)
    os.symlink("e", source / "link")
    named = never("cp", str(source), f"{box.id}:{there}/got")
    assert named.code == 1 and "link" in named.errors + named.text, named
    refused = never("cp", "--resume", str(source), f"{box.id}:{there}/got")
    assert refused.code == 1 and refused.error()["code"] == "E8004", refused


@pytest.mark.paired
def test_more_than_a_line_of_the_protocol_holds(daemon, route, image, servers, shared, exported, tmp_path, monkeypatch):
    """Through the plugin, without the agent: refused before anything is sent. With it, it goes."""
    monkeypatch.setattr(Abx, "store", exported)
    abx, sandbox = Abx(tmp_path / "home", servers[daemon], route), shared(daemon, image)
    source = noise(tmp_path / "f", 6_290_001)
    target = f"/var/l-{time.monotonic_ns()}"
    done = abx("--json", "--agent", "never", "upload", sandbox, str(source), target)
    assert done.code == 1 and done.error()["code"] == "E4003", done
    assert abx("--json", "upload", sandbox, str(source), target).json()["size"] == 6_290_001
    assert abx("--json", "download", sandbox, target, str(tmp_path / "back")).json()["size"] == 6_290_001
    assert (tmp_path / "back").read_bytes() == source.read_bytes()
    done = abx("--json", "--agent", "never", "download", sandbox, target, str(tmp_path / "none"))
    assert done.code == 1 and done.error()["code"] == "E4003", done
    assert abx("file", "rm", sandbox, target).code == 0


# ---- how it is told ----

@pytest.mark.paired
def test_progress_as_json(box, there, tmp_path):
    source = tmp_path / "tree"
    source.mkdir()
    noise(source / "f", 20 * MIB)
    done = box.abx("upload", "--progress", "json", box.id, str(source), there)
    events = [json.loads(line) for line in done.errors.splitlines()]
    assert done.code == 0 and events and events[-1]["bytes"] == 20 * MIB, done
    assert all(a.get("bytes", 0) <= b.get("bytes", 0) for a, b in zip(events, events[1:]))
