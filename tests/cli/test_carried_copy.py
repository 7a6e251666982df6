"""The carried helper: both ends of a copy that are in the sandbox, against a
client that writes and reads the stream by the format alone (src/sync/item.h)."""

import contextlib
import errno
import hashlib
import io
import os
import signal
import stat
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent import wait_for
from conftest import BINARY
from frames import (BY_SIGNAL, CODE, CREDIT, DATA, EOF, HASHES, INPUT, KILL, SIGNAL, TAR_IN, TAR_OUT, TIMEOUT, Cut,
                    Helper, frame, keepers, marked, run)

ROOT = os.geteuid() == 0
MODES = ["pipe", "lines", "listen"]


# --- items and streams ---

def items(out):
    """The lines that came."""
    lines = bytes(out).split(b"\0")
    assert lines.pop() == b"", lines
    return [item(line) for line in lines]


def item(line):
    word, number, size, sha, path = line.split(b" ", 4)
    return SimpleNamespace(word=word.decode(), number=int(number), size=int(size), sha=None if sha == b"-" else sha.decode(),
                           path=os.fsdecode(path))


def line(word, path="", number=0, size=0, sha=None):
    return b"%s %d %d %s %s\0" % (word.encode(), number, size, (sha or "-").encode(), os.fsencode(path))


def sha(data):
    return hashlib.sha256(data).hexdigest()


def entry(name, type, mode=0o644, link="", content=b""):
    one = tarfile.TarInfo(name)
    one.mode, one.linkname, one.size = mode, link, len(content)
    head = bytearray(one.tobuf(tarfile.PAX_FORMAT))
    head[-356:-355] = type              # tarfile puts a slash behind names of folders
    head[-364:-356] = b" " * 8
    head[-364:-356] = b"%06o\0 " % sum(head[-512:])
    return bytes(head) + content + b"\0" * (-len(content) % 512)


def record(word, path="", number=0, size=0, sha=None):
    return entry(path, b"R", link=line(word, "", number, size, sha)[:-2].decode())


def folder(name, mode=0o755):
    return entry(name, tarfile.DIRTYPE, mode)


def link(name, to):
    return entry(name, tarfile.SYMTYPE, link=to)


def file(name, content, mode=0o644, sum=None, size=None):
    return entry(name, tarfile.REGTYPE, mode, content=content) + record("hash", name, size=len(content) if size is None else size,
                                                                        sha=sum or sha(content))


def end(number=0, size=0):
    return record("end", number=number, size=size) + b"\0" * 1024


def unpacked(stream):
    """What a stream says: entries as (type, name, mode, content or target), records as items."""
    found = []
    with tarfile.open(fileobj=io.BytesIO(bytes(stream)), mode="r:", encoding="utf-8", errors="surrogateescape") as tar:
        for one in tar:
            if one.type == b"R":
                found.append(item(b"%s %s" % (one.linkname.encode(), os.fsencode(one.name))))
            elif one.isreg():
                found.append(("file", one.name, one.mode, tar.extractfile(one).read()))
            else:
                found.append(("folder" if one.isdir() else "link", one.name, one.mode, one.linkname))
    return found


def words(found):
    return [(one.word, one.path) for one in found if isinstance(one, SimpleNamespace)]


def listed(root):
    """All that is below: name, type and mode, content or target."""
    found = {}
    for at, folders, files in os.walk(os.fsencode(root)):
        for name in folders + files:
            path = os.path.join(at, name)
            st = os.lstat(path)
            key = path[len(os.fsencode(root)):]
            if stat.S_ISLNK(st.st_mode):
                found[key] = os.readlink(path)
            elif stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    found[key] = oct(st.st_mode), f.read()
            else:
                found[key] = oct(st.st_mode)
    return found


def only(found):
    """The names."""
    return sorted(os.fsdecode(name) for name in found)


# --- going through it ---

def tar_in(own, target, stream, options="-", **more):
    """A whole stream: the Talk, with `items`."""
    t = run(own, options, target, kind=TAR_IN, data=stream, **more)
    t.items = items(t.out)
    return t


def tar_out(own, *patterns, options="-", have=None, **more):
    t = run(own, options, *patterns, kind=TAR_OUT, data=have, **more)
    t.found = unpacked(t.out) if t.out else []
    return t


def hashes(own, name, path, options="-", **more):
    t = run(own, options, name, path, kind=HASHES, **more)
    assert t.result == (CODE, 0) and not t.err
    t.items = items(t.out)
    assert t.items.pop().word == "end"
    return t


@pytest.fixture
def own(tmp_path):
    """The helper's folder; none of them is left behind."""
    folder = tmp_path / "own"
    folder.mkdir()
    yield folder
    wait_for(lambda: not keepers(folder), 20)


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    (root / "a/empty").mkdir(parents=True)
    names = [b"plain", b"a b", b"new\nline", b"\xff\xfe", "ä".encode(), b"$x", b"\\", b"-", b"*", b"n" * 255]
    for i, name in enumerate(names):
        with open(os.fsencode(root / "a") + b"/" + name, "wb") as f:
            f.write(b"%d\n" % i * i * 3000)
    for i in range(200):
        (root / f"a/{i:03}").write_bytes(b"small %d" % i)
    os.chmod(root / "a/plain", 0o750)
    os.chmod(root / "a/empty", 0o500)
    (root / "a/link").symlink_to("plain")
    (root / "a/away").symlink_to("/etc/passwd")
    (root / "a/dead").symlink_to("x" * 300)
    with open(root / "a/sparse", "wb") as f:
        f.truncate(3 << 20)
        f.seek(1 << 20)
        f.write(b"middle")
    return root


@pytest.mark.parametrize("mode", MODES)
def test_a_tree_goes_out_and_comes_in(own, tree, tmp_path, mode):
    out = tar_out(own, str(tree), options="-t", mode=mode)
    assert out.result == (CODE, 0) and not out.err
    files = [f for f in out.found if isinstance(f, tuple) and f[0] == "file"]
    total = sum(len(f[3]) for f in files)
    assert (out.found[0].word, out.found[0].number, out.found[0].size) == ("total", len(files), total)
    assert (out.found[-1].word, out.found[-1].number, out.found[-1].size) == ("end", len(files), total)
    assert [f.sha for f in out.found if isinstance(f, SimpleNamespace) and f.word == "hash"] == [sha(f[3]) for f in files]
    back = tar_in(own, str(tmp_path / "back"), bytes(out.out), mode=mode)
    assert back.result == (CODE, 0) and not back.err
    assert listed(tmp_path / "back") == listed(tree)
    assert (back.items[-1].word, back.items[-1].number, back.items[-1].size) == ("end", len(files), total)
    done = {i.path: i for i in back.items if i.word == "done"}
    assert [done[f[1]].sha for f in files] == [sha(f[3]) for f in files]
    assert len(done) == len([f for f in out.found if isinstance(f, tuple)])
    assert (tmp_path / "back/a/sparse").stat().st_blocks < 3 << 10
    got = hashes(own, "tree", str(tmp_path / "back"), mode=mode)
    assert {i.path: i.sha for i in got.items} == {f[1].replace("tree/", "tree/tree/", 0): sha(f[3]) for f in files} or got.items == []


def test_patterns(own, tree):
    def roots(*patterns):
        return [f[1] for f in tar_out(own, *patterns, cwd=str(tree)).found if isinstance(f, tuple) and "/" not in f[1]]

    assert roots("a/00?", "a/[1-9]98") == [*(f"00{i}" for i in range(10)), "198"]
    assert roots("a/\\$x", "a/plain") == ["$x", "plain"]
    assert roots("a/*") == ["*"]                    # there is one
    assert roots("a/**") == sorted((n for n in os.listdir(tree / "a") if n != "dead"), key=os.fsencode)   # roots are followed
    assert roots("a/.") == ["."] and roots("a/./", ".") == [".", "."]


@pytest.mark.parametrize("patterns, text", [
    (["/no/such"], "E4001 there is no /no/such"), (["/no/such*"], "E4001 "), (["a", "/x*/y"], "E4001 "),
    (["a/plain", "./a/plain"], "E8002 two of what is to be copied are called plain"), ([".."], "E8002 "), ([""], "E8002 "), ([], "E8002 "),
    (["new\nline"], "E4001 there is no new line"),
])
def test_what_cannot_go_out_is_said_before_a_byte(own, tree, patterns, text):
    t = run(own, "-", *patterns, kind=TAR_OUT, cwd=str(tree))
    assert t.result == (CODE, 1) and not t.out
    assert t.err.decode().startswith(text) and t.err.count(b"\n") == 1


@pytest.mark.parametrize("kind, words", [(TAR_IN, ["-x", "t"]), (TAR_IN, ["-"]), (TAR_IN, ["", "t"]), (TAR_IN, ["-", "t", "u"]),
                                         (TAR_OUT, ["-s", "t"]), (HASHES, ["-", "t"]), (HASHES, ["-p", "n", "t", "x"])])
def test_words_that_are_none(own, kind, words):
    t = run(own, *words, kind=kind, data=b"")
    fail = t.result
    assert not t.out and (fail == (CODE, 1) and t.err.startswith(b"E8002 ") or fail.sys)
    assert only(listed(own)) == []


def test_of_several_one_that_is_missing_fails_alone(own, tree):
    t = tar_out(own, "a/plain", "missing", "a/$x", cwd=str(tree))
    assert t.result == (CODE, 0)
    failed = [f for f in t.found if isinstance(f, SimpleNamespace) and f.word == "failed"]
    assert [(f.path, f.number) for f in failed] == [("missing", errno.ENOENT)]
    assert [f[1] for f in t.found if isinstance(f, tuple)] == ["plain", "$x"]


# --- what there is already ---

def test_a_copy_goes_on_where_it_was(own, tree, tmp_path):
    """The way back of `hash -p` into `tar-out -h`, and its stream into `tar-in -r`."""
    big = os.urandom(700000)
    (tree / "a/plain").write_bytes(big)
    whole = bytes(tar_out(own, str(tree)).out)
    at = whole.index(big[:512]) + 300000
    first = tar_in(own, str(tmp_path / "back"), whole[:at], options="-r")
    assert first.result == (CODE, 1) and first.err.startswith(b"E8020 ")
    there = run(own, "-p", ".", str(tmp_path / "back"), kind=HASHES)
    part = [i for i in items(there.out) if i.word == "part"]
    assert len(part) == 1 and 0 < part[0].size <= 300000 and part[0].sha == sha(big[:part[0].size])
    rest = tar_out(own, str(tree) + "/.", options="-h", have=bytes(there.out))
    kept = [p for w, p in words(rest.found) if w == "kept"]
    assert len(kept) >= 200 and len(rest.out) < len(whole) - 300000 - 200 * 512
    assert ("from", "./a/plain") in words(rest.found)
    again = tar_in(own, str(tmp_path / "back"), bytes(rest.out), options="-r")
    assert again.result == (CODE, 0) and listed(tmp_path / "back") == listed(tree)
    assert [i.path for i in again.items if i.word == "kept"] == kept


def test_hashes_of_one_file_and_of_nothing(own, tree):
    one = hashes(own, ".", str(tree / "a/plain")).items
    assert [(i.word, i.path, i.sha) for i in one] == [("have", ".", sha((tree / "a/plain").read_bytes()))]
    assert hashes(own, "x", str(tree / "no/such")).items == []
    assert hashes(own, "plain", str(tree / "a")).items[0].path == "plain"
    assert len(hashes(own, ".", str(tree)).items) == 211


@pytest.mark.parametrize("have", [
    b"", b"nonsense\0", line("done", "x") + line("end"), line("have", "x", sha="0" * 64), line("have", "x", sha="0" * 64)[:-1],
    b"have 0 1 - " + b"x" * 20000 + b"\0", b"\0" * 100,
])
def test_a_list_that_is_none(own, tree, have):
    t = run(own, "-h", str(tree), kind=TAR_OUT, data=have)
    assert t.result == (CODE, 1) and not t.out and t.err.startswith(b"E8020 ")


def test_input_behind_the_list_does_not_matter(own, tree):
    assert tar_out(own, str(tree / "a/plain"), options="-h", have=line("end") + b"x" * 50000).result == (CODE, 0)


# --- what cannot be read, written, or changes ---

@pytest.mark.skipif(not ROOT, reason="only root becomes somebody else")
def test_as_another_user(own):
    with tempfile.TemporaryDirectory(prefix="abx-copy-") as top:        # pytest's folders are closed to others
        as_nobody(own, Path(top))


def as_nobody(own, top):
    import shutil
    os.chmod(top, 0o755)
    program = shutil.copy(BINARY, top / "abx")
    os.chmod(top / "abx", 0o755)
    (top / "tree/closed").mkdir(parents=True)
    (top / "tree/closed").chmod(0o700)
    (top / "tree/b").write_text("b")
    (top / "tree/a").write_text("a")
    (top / "tree/a").chmod(0o600)
    more = {"user": "nobody", "helper": {"program": str(program)}}
    t = tar_out(own, str(top / "tree"), **more)
    assert t.result == (CODE, 0)
    assert [(w, p) for w, p in words(t.found) if w == "failed"] == [("failed", "tree/a"), ("failed", "tree/closed")]
    assert [f[1] for f in t.found if isinstance(f, tuple)] == ["tree", "tree/b"]
    back = tar_in(own, str(top / "back"), file("x", b"x") + end(1, 1), **more)
    assert back.result == (CODE, 0) and [(i.word, i.number) for i in back.items] == [("failed", errno.EACCES), ("end", 0)]
    back = tar_in(own, str(top / "new/back"), file("x", b"x") + end(1, 1), **more)
    assert back.result == (CODE, 1) and back.err.startswith(b"E4002 ")
    assert only(listed(top)) == ["/abx", "/tree", "/tree/a", "/tree/b", "/tree/closed"]
    (top / "open").mkdir()
    (top / "open").chmod(0o777)
    (top / "open/theirs").mkdir()
    back = tar_in(own, str(top / "open"), folder("new") + file("new/x", b"x") + folder("theirs") + file("theirs/y", b"y") +
                  file("z", b"z", 0o4755) + end(3, 3), options="-s", **more)
    assert back.result == (CODE, 0)
    assert [(i.path, i.number) for i in back.items if i.word == "failed"] == [("theirs", errno.EACCES)]
    assert only(listed(top / "open")) == ["/new", "/new/x", "/theirs", "/z"]
    st = (top / "open/z").stat()
    assert (st.st_uid, st.st_gid, oct(st.st_mode)) == (65534, 65534, "0o100755")


CHANGES = {
    "longer": lambda f: f.write_bytes(f.read_bytes() + b"x"),
    "shorter": lambda f: os.truncate(f, 1 << 20),
    "other": lambda f: (f.open("r+b").write(b"other"), None)[1],
    "gone": lambda f: f.unlink(),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_file_that_changes_while_it_is_read(own, tree, tmp_path, how):
    big = tree / "a/big"
    big.write_bytes(os.urandom(1 << 20) * 5)
    was = big.read_bytes()
    h = Helper("pipe", own)
    t = h.talk(window=65536, credit=False).greet("-", str(tree / "a/big"), str(tree / "a/plain"), kind=TAR_OUT)
    while t.taken < 65536:
        t.next()
    time.sleep(0.1)                     # it is at its pipe, with the rest of 5 MB to come
    CHANGES[how](big)
    t.credit = True
    t.told = t.taken
    t.send(frame(CREDIT, t.taken.to_bytes(8, "big")))
    assert t.finish() == (CODE, 0)
    found = unpacked(t.out)
    assert found[0][:2] == ("file", "big") and len(found[0][3]) == len(was)
    assert (found[1].word, found[1].path) == (("failed", "big") if how != "gone" else found[1] and (found[1].word, "big"))
    assert found[2][:2] == ("file", "plain") and found[3].word == "hash"
    back = tar_in(own, str(tmp_path), bytes(t.out), options="-s")
    assert (tmp_path / "big").exists() == (how == "gone" and found[1].word == "hash") and (tmp_path / "plain").exists()
    assert back.result == (CODE, 0)
    t.close()
    h.close()


SMALL = 'mkdir small && mount -t tmpfs -o size=1m tmpfs small && "$0" agent tar-in - small/t; echo "$?"; find small | sort'


def test_a_full_disk_ends_it(own):
    stream = folder("t") + file("t/a", b"a" * 1000) + file("t/b", os.urandom(3 << 20)) + file("t/c", b"c") + end(3, 0)
    p = subprocess.run(["unshare", "-rm", "sh", "-c", SMALL, BINARY], cwd=own, input=stream, capture_output=True, timeout=30)
    lines, _, rest = p.stdout.rpartition(b"\0")
    assert [(i.word, i.path) for i in items(lines + b"\0")] == [("done", "t"), ("done", "t/a")]
    assert rest == b"1\nsmall\nsmall/t\nsmall/t/a\n"
    assert p.stderr.startswith(b"E4000 ") and b"No space left on device" in p.stderr and p.stderr.count(b"\n") == 1


# --- a hostile client ---

HOSTILE = {
    "garbage": b"x" * 2000, "nothing": b"", "zeros alone": b"\0" * 1024, "no end": folder("t"), "a tar of others": folder("t") + b"\0" * 1024,
    "outside": folder("t") + file("t/../x", b"x") + end(), "absolute": file("/tmp/x", b"x") + end(),
    "up": file("../x", b"x") + end(), "twice": folder("t") + file("t/a", b"1") + file("t/a", b"2") + end(),
    "order": folder("t") + file("t/b", b"1") + file("t/a", b"2") + end(), "below a link": link("t", "/tmp") + file("t/x", b"x") + end(),
    "below a file": file("t", b"") + file("t/x", b"x") + end(), "two": file("a", b"a") + file("b", b"b") + end(),
    "device": entry("t", tarfile.CHRTYPE) + end(), "hard link": entry("t", tarfile.LNKTYPE, link="/etc/passwd") + end(),
    "no hash": entry("t", tarfile.REGTYPE, content=b"x") + end(), "another's hash": file("t", b"x") + record("hash", "u", 0, 1, sha(b"x")) + end(),
    "more behind the end": file("t", b"x") + record("end") + file("u", b"x") + end(), "a line's word": record("ready") + end(),
    "from alone": record("from", "t", size=3) + end(),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_stream_that_no_sender_gives(own, tmp_path, name):
    t = tar_in(own, str(tmp_path / "in"), HOSTILE[name] + b"\0" * 4000)
    assert t.result == (CODE, 1) and t.err.startswith(b"E8020 ") and t.err.count(b"\n") == 1
    left = only(listed(tmp_path))
    assert [n for n in left if n not in ("/own", "/in", "/in/a", "/in/b")] == [], left
    assert all(i.word in ("done",) for i in t.items)


def test_a_wrong_hash_fails_alone(own, tmp_path):
    t = tar_in(own, str(tmp_path / "in"), folder("t") + file("t/a", b"a", sum=sha(b"b")) + file("t/b", b"b", size=5) + file("t/c", b"c") + end())
    assert t.result == (CODE, 0)
    assert [(i.path, i.number) for i in t.items if i.word == "failed"] == [("t/a", errno.EIO), ("t/b", errno.EIO)]
    assert only(listed(tmp_path / "in")) == ["/c"]


# --- the end, at any time ---

def half(own, target, mode="pipe", options="-", **more):
    """A tar-in in the middle of its second file."""
    h = Helper(mode, own)
    t = h.talk(**more).greet(options, target, kind=TAR_IN, flags=INPUT)
    stream = folder("t") + file("t/a", b"whole") + file("t/b", os.urandom(1 << 20))
    t.write(stream[:600000])
    t.until_out(b" t/a\0")
    wait_for(lambda: any(n.startswith(".abx-") for n in os.listdir(target)), 10)
    return h, t


def no_rest(target):
    wait_for(lambda: os.listdir(target) == ["a"] and oct(os.stat(target).st_mode) == "0o40755", 5)


def by_eof(h, t):
    t.send(frame(EOF))
    assert t.finish() == (CODE, 1) and t.err.startswith(b"E8020 ")


def by_kill(h, t):
    t.send(frame(KILL))
    assert t.finish() == (BY_SIGNAL, signal.SIGHUP) and not t.err


def by_signal(number):
    def send(h, t):
        t.send(frame(SIGNAL, bytes([number, 0])))
        assert t.finish() == (BY_SIGNAL, number) and not t.err
    return send


def by_cut(h, t):
    t.close()
    h.process.stdout.close()


def by_front(h, t):
    h.process.kill()


def by_keeper(h, t):
    os.kill(int(Path(f"/proc/{t.started.pid}/stat").read_text().rsplit(")", 1)[1].split()[1]), 9)


ENDS = {"keeper": by_keeper, "eof": by_eof, "kill": by_kill, "term": by_signal(15), "int": by_signal(2), "hup": by_signal(1), "cut": by_cut, "front": by_front}


@pytest.mark.parametrize("how", ENDS)
def test_what_is_not_whole_goes(own, tmp_path, how):
    h, t = half(own, str(tmp_path / "in"))
    ENDS[how](h, t)
    no_rest(tmp_path / "in")
    t.close()
    h.close()


@pytest.mark.parametrize("mode", ["lines", "listen"])
def test_what_is_not_whole_goes_with_the_link(own, tmp_path, mode):
    h, t = half(own, str(tmp_path / "in"), mode)
    t.close()
    h.close()
    no_rest(tmp_path / "in")


@pytest.mark.parametrize("number", [1, 2, 15, 9])
def test_a_signal_at_any_moment(own, tmp_path, number):
    """What is there under its name is whole; only SIGKILL leaves a hidden file."""
    content = {f"{i:03}": bytes([i % 256]) * 20000 for i in range(150)}
    stream = folder("t") + b"".join(file(f"t/{name}", one) for name, one in content.items()) + end(150, 0)
    ended = 0
    for i in range(10):
        target = tmp_path / str(i)
        h = Helper("pipe", own)
        t = h.talk().greet("-", str(target), kind=TAR_IN, flags=INPUT)
        with contextlib.suppress(Cut):
            t.write(stream[:len(stream) * (i + 1) // 10])
            t.send(frame(SIGNAL, bytes([number, 0])) + frame(EOF))
            ended += t.finish() == (BY_SIGNAL, number)
        there = listed(target) if target.exists() else {}
        hidden = [name for name in there if name.startswith(b"/.abx-")]
        assert len(hidden) <= (number == 9)
        for name in set(there) - set(hidden):
            assert there[name] == ("0o100644", content[os.fsdecode(name)[1:]])
        t.close()
        h.close()
    assert ended >= 5


def test_a_partial_file_stays_where_it_is_wanted(own, tmp_path):
    h, t = half(own, str(tmp_path / "in"), options="-r")
    t.send(frame(SIGNAL, bytes([15, 0])))
    assert t.finish() == (BY_SIGNAL, 15)
    part = [n for n in only(listed(tmp_path / "in")) if n != "/a"]
    assert len(part) == 1 and part[0].startswith("/.abx-") and part[0].endswith(".part")
    t.close()
    h.close()


@pytest.mark.parametrize("how", ["kill", "cut"])
def test_a_client_that_does_not_hear_what_was_done(own, tmp_path, how):
    """Its lines fill all there is on the way, it waits, and is ended there."""
    h = Helper("pipe", own)
    t = h.talk(window=1000, credit=False).greet("-", str(tmp_path / "in"), kind=TAR_IN, flags=INPUT)
    deep = ["t"]
    for _ in range(6):
        deep.append(f"{deep[-1]}/{'n' * 240}")
    stream = b"".join(map(folder, deep)) + b"".join(link(f"{deep[-1]}/{i:05}", "x") for i in range(1500))
    sent = 0
    with contextlib.suppress(AssertionError):
        while sent < len(stream):
            n = min(65536, (1 << 20) - (t.input_sent - t.input_taken), len(stream) - sent)
            if n <= 0:
                assert t.next(1)
                continue
            t.send(frame(DATA, stream[sent:sent + n]))
            t.input_sent += n
            sent += n
    assert sent < len(stream)
    if how == "cut":
        t.close()
    else:
        t.send(frame(KILL))
    wait_for(lambda: t.started.pid not in marked("agent\0tar-in"), 10)
    if how == "kill":
        t.credit, t.told = True, t.taken
        t.send(frame(CREDIT, t.taken.to_bytes(8, "big")))
        assert t.finish() == (BY_SIGNAL, signal.SIGHUP)
    h.close()
    links = listed(tmp_path / deep[-1].replace("t/", "in/", 1))
    assert links and set(links.values()) == {b"x"}


def test_a_client_that_does_not_read_costs_little(own, tree):
    with open(tree / "a/huge", "wb") as f:
        f.truncate(200 << 20)
    h = Helper("pipe", own)
    t = h.talk(window=4096, credit=False).greet("-", str(tree), kind=TAR_OUT)
    while t.taken < 4096:
        t.next()
    time.sleep(0.3)
    for pid in keepers(own):
        for text in Path(f"/proc/{pid}/status").read_text().splitlines():
            if text.startswith("RssAnon"):
                assert int(text.split()[1]) < 4096, (pid, text)
    t.send(frame(SIGNAL, bytes([15, 0])))
    t.credit, t.told = True, t.taken
    t.send(frame(CREDIT, t.taken.to_bytes(8, "big")))
    assert t.finish() == (BY_SIGNAL, 15)
    t.close()
    h.close()


def test_a_timeout_ends_it_as_any_command(own, tmp_path):
    h = Helper("pipe", own)
    t = h.talk().greet("-", str(tmp_path / "in"), kind=TAR_IN, flags=INPUT, timeout_ms=300)
    assert t.finish() == (TIMEOUT, 9)
    assert not (tmp_path / "in").exists()
    t.close()
    h.close()


def test_variables_of_the_conversation_are_gone(own, tmp_path):
    h = Helper("lines", own)
    t = h.talk().greet("-", str(tmp_path / "in"), kind=TAR_IN, flags=INPUT, env=["MINE=1"])
    t.until(0x82)
    environ = Path(f"/proc/{t.started.pid}/environ").read_bytes()
    assert b"MINE=1\0" in environ and b"ABX_" not in environ and h.token.encode() not in environ
    assert Path(f"/proc/{t.started.pid}/cmdline").read_bytes() == b"abx\0agent\0tar-in\0-\0%s\0" % os.fsencode(tmp_path / "in")
    t.close()
    h.close()
