"""upload, download and cp against our own daemons: where things go, what comes
with them, what is said of what cannot be copied, and how it is told meanwhile.
Both sandboxes see this machine's files, but each has a /tmp of its own."""

import fcntl
import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time

import pytest

import live
import scripted
from live import daemon  # noqa: F401
from scripted import HOLD
from terminal import Terminal, Wire

ROOT = os.geteuid() == 0

# What is below a path: {name: [mode, content]}; a folder's content is null, a link's is its target.
TREE = """
import json, os, stat, sys
found = {}
def look(path, name):
    st = os.lstat(path)
    if stat.S_ISLNK(st.st_mode):
        found[name] = ["link", os.readlink(path).decode("latin-1")]
    elif stat.S_ISDIR(st.st_mode):
        found[name] = [st.st_mode & 0o7777, None]
        for entry in os.listdir(path):
            look(path + b"/" + entry, (name + "/" if name else "") + entry.decode("latin-1"))
    elif stat.S_ISREG(st.st_mode):
        with open(path, "rb") as file:
            found[name] = [st.st_mode & 0o7777, file.read().decode("latin-1")]
    else:
        found[name] = ["other", None]
for root in sys.argv[1:]:
    if os.path.lexists(root):
        look(os.fsencode(root), "")
print(json.dumps(found))
"""

# A tree of all that may lie in one.
MAKE = """
import os, sys
os.umask(0o022)
os.makedirs(sys.argv[1] + "/deep/er/est")
os.chdir(os.fsencode(sys.argv[1]))
for i, name in enumerate([b"plain", b"sp ace", b"quo'te\\"", b"$HOME `id`", b"back\\\\slash", b"new\\nline", "\\u4f60\\u597d".encode(),
                          b"caf\\xe9", b"-rf", b"*", b"a:b", b"~", b"x" * 255, b"\\x1b[31m", b".dot"]):
    with open(b"deep/er/" + name, "wb") as file:
        file.write(name * i)
    os.chmod(b"deep/er/" + name, [0o644, 0o600, 0o755, 0o444, 0o666][i % 5])
open("empty", "w").close()
with open("holes", "wb") as file:
    file.truncate(3 << 20)
    file.seek(1 << 20)
    file.write(b"data")
os.symlink("plain", "deep/link")
os.symlink("/nowhere/at all", b"deep/caf\\xe9 link")
os.symlink(".", "deep/er/self")
os.chmod("deep/er/est", 0o750)
os.mkdir("hollow", 0o700)
"""


class Server(live.Server):
    """Two sandboxes, of a daemon each; `ports` may put something in between."""

    def __init__(self, first, second):
        self.ports = {"box": first.port, "other": second.port}
        super().__init__(first)

    def _sandbox(self, request, box, rest):
        if rest and rest[0] == "endpoints":
            return scripted.answer(200, {"endpoint": f"127.0.0.1:{self.ports[box.id]}"})
        return super()._sandbox(request, box, rest)


class Boxes(live.Live):
    def python(self, script, *words, box="box"):
        line = shlex.join(["python3", "-SEc", script, *words])
        ran = self("--agent", "never", "exec", box, line, stdin=subprocess.DEVNULL, input=None)
        assert ran.status == 0, ran
        return ran.out

    def tree(self, *paths, box="box"):
        return json.loads(self.python(TREE, *paths, box=box))

    def copy(self, *words, form=(), **more):
        return self(*form, "--agent", self.mode, *words, **more)

    def folder(self, path="/tmp/t"):
        """An empty one in both sandboxes."""
        for box in ("box", "other"):
            ran = self("--agent", "never", "exec", box, f"chmod -R u+rwX {path} 2>/dev/null; rm -rf {path}; mkdir {path}")
            assert ran.status == 0, ran
        return path


def here(*paths):
    done = subprocess.run([sys.executable, "-SEc", TREE, *paths], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def make(path):
    subprocess.run([sys.executable, "-SEc", MAKE, path], check=True)


@pytest.fixture(scope="module")
def second():
    running = live.Daemon()
    yield running
    running.close()


@pytest.fixture
def boxes(tmp_path, daemon, second):
    home = tmp_path / "home"
    home.mkdir()
    with Server(daemon, second) as server:
        server.box("box")
        server.box("other")
        program = Boxes(home, server, "auto")
        program.cwd = tmp_path
        limit = threading.Timer(60, program.end)
        limit.start()
        yield program
        limit.cancel()
        program.end()


@pytest.fixture
def slow(boxes, daemon):
    """A way to the sandbox that takes its time, and counts."""
    class Slow(Wire):
        carried, pause = 0, 0

        def _carry(self, a, b):
            def recv(size):
                data = a.recv(size)
                type(self).carried += len(data)
                time.sleep(self.pause if len(data) > 10000 else 0)
                return data
            Wire._carry(type("A", (), {"recv": staticmethod(recv), "shutdown": a.shutdown}), b)

    wire = Slow(daemon.port)
    boxes.server.ports["box"] = wire.port
    yield wire
    wire.close()


# --- where things go ---

FILE, FOLDER = {"": "new"}, {"": None, "x": "new", "e": None, "e/y": "new"}


def below(folder, things):
    return {"": None, folder: things[""], **{f"{folder}/{name}": what for name, what in things.items() if name}}


# Sources, and what T is afterwards where it was a folder, a file, nothing, nothing with a / behind. None: it is refused.
BOTH = {**below("f", FILE), **below("d", FOLDER)}
RULES = {
    "file": (["f"], below("f", FILE), FILE, FILE, below("f", FILE)),
    "folder": (["d"], below("d", FOLDER), None, FOLDER, below("d", FOLDER)),
    "slash": (["d/"], below("d", FOLDER), None, FOLDER, below("d", FOLDER)),
    "dot": (["d/."], FOLDER, None, FOLDER, FOLDER),
    "several": (["f", "d"], BOTH, None, None, BOTH),
}
TARGETS = ["folder", "file", "none", "soon/"]
SOURCE = "mkdir -p {0}/d/e; for f in f d/x d/e/y; do printf new >{0}/$f; done"
TARGET = "mkdir -p {0}/folder; printf old >{0}/file"


@pytest.mark.parametrize("way", ["upload", "download", "cp up", "cp down", "between"])
def test_where_things_go(boxes, tmp_path, way):
    source, target = {"upload": ("here", "box"), "download": ("box", "here"), "cp up": ("here", "box"),
                      "cp down": ("box", "here"), "between": ("box", "other")}[way]
    base, local, ran = boxes.folder(), str(tmp_path / "t"), {}
    where = {"here": local, "box": base, "other": base}

    def shell(side, line):
        if side == "here":
            subprocess.run(["sh", "-c", line], check=True)
        else:
            assert boxes("--agent", "never", "exec", side, line).status == 0
    shell(source, SOURCE.format(where[source] + "/from"))
    rules = {name: rule for name, rule in RULES.items() if not way.startswith("cp") or name in ("file", "dot")}
    shell(target, ";".join(TARGET.format(f"{where[target]}/{name}") for name in rules))
    for name, (sources, *_) in rules.items():
        paths = [f"{where[source]}/from/{path}" for path in sources]
        for kind in TARGETS:
            to = f"{where[target]}/{name}/{kind}"
            ran[name, kind] = boxes.copy(*{
                "upload": ["upload", "box", *paths, to], "download": ["download", "box", *paths, to],
                "cp up": ["cp", *paths, "box:" + to], "cp down": ["cp", "-r", *("box:" + p for p in paths), to],
                "between": ["cp", "-R", *("box:" + p for p in paths), "other:" + to]}[way])
    after = here(local) if target == "here" else boxes.tree(base, box=target)
    for name, (_, *wanted) in rules.items():
        for kind, want in zip(TARGETS, wanted):
            at, done = f"{name}/{kind.rstrip('/')}", ran[name, kind]
            got = {path[len(at) + 1:]: what[1] for path, what in after.items() if path == at or path.startswith(at + "/")}
            if want is None:
                assert done.status == (4 if kind == "none" else 1) and re.match(rb"\[E400[01]\] ", done.err), (at, done)
                assert got == ({"": "old"} if kind == "file" else {}), (at, got, done)
            else:
                assert done.status == 0 and got == want, (at, got, done)


def test_one_word_is_copied_to_the_working_directory(boxes, tmp_path):
    t = boxes.folder()
    boxes.inside(SOURCE.format(t))
    ran = boxes.copy("download", "box", t + "/f")
    assert ran.status == 0 and ran.out == b"f: 3 bytes\n" and (tmp_path / "f").read_text() == "new"
    ran = boxes.copy("download", "box", t + "/d")
    assert ran.status == 0 and (tmp_path / "d/e/y").read_text() == "new", ran
    assert ran.out == b".: 2 files, 6 bytes\n", ran


def test_patterns(boxes, tmp_path):
    t = boxes.folder()
    boxes.inside(f"cd {t}; mkdir d .d; touch a.log b.log .c.log '*.txt' x.txt '[q]' d/n.log")
    for pattern, names in [("*.log", ["a.log", "b.log"]), ("?.log", ["a.log", "b.log"]), ("[b-z].log", ["b.log"]), ("*.txt", ["*.txt"]),
                           ("\\*.txt", ["*.txt"]), ("[q]", ["[q]"]), ("*/n.log", ["n.log"]), (".*.log", [".c.log"])]:
        into = tmp_path / "into"
        into.mkdir()
        ran = boxes.copy("download", "box", f"{t}/{pattern}", "into")
        assert ran.status == 0 and sorted(os.listdir(into)) == names, (pattern, os.listdir(into), ran)
        subprocess.run(["rm", "-r", str(into)], check=True)
    # What is there by that very name is itself, wherever it goes.
    for words in (["cp", f"box:{t}/[q]", f"other:{t}/new"], ["download", "--resume", "box", t + "/[q]", "new"]):
        ran = boxes.copy(*words)
        assert ran.status == 0 and ran.out == words[-1].removeprefix("other:").encode() + b": 0 bytes\n", ran
    ran = boxes.copy("download", "box", f"{t}/*.none", ".")
    assert ran.status == 4 and b"[E4001]" in ran.err, ran
    # The shell here has its own; what it leaves is a name.
    ran = boxes.copy("upload", "box", "*.none", t + "/x")
    assert ran.status == 4 and b"*.none" in ran.err, ran


def test_nothing_is_there_on_either_side(boxes, tmp_path):
    """E4001, and so status 4, here as there."""
    t = boxes.folder()
    for name in "fg":
        (tmp_path / name).write_text("x")
    (tmp_path / "to-nothing").symlink_to("nothing/below")
    boxes.inside(f"echo > {t}/f; ln -s nothing/below {t}/to-nothing")
    for words in (["upload", "box", "none", t], ["upload", "--resume", "box", "none", t], ["upload", "box", "f", "g", f"{t}/none"],
                  ["download", "box", f"{t}/none", "x"], ["download", "--resume", "box", f"{t}/none", "x"], ["download", "box", f"{t}/*", "none"],
                  ["download", "box", f"{t}/f", "to-nothing"], ["cp", f"box:{t}/none", f"box:{t}/x"]):
        ran = boxes.copy(*words)
        assert ran.status == 4 and b"[E4001]" in ran.err, (words, ran)


def test_to_where_it_is(boxes):
    t = boxes.folder()
    boxes.inside(SOURCE.format(t))
    before = boxes.tree(t)
    for path, to in [("d", "d/e"), ("d", "d"), ("d/", "d/e/"), ("d/.", "d/new"), ("f", "f"), ("", "new"), ("./d", "/d/e/."),
                     ("x/../d", "d/./e"), ("d//", "../../../../../..{t}/./d/e"), ("d", ""), ("d/", "."), ("*", "")]:
        to = to.replace("{t}", t)
        ran = boxes.copy("cp", f"box:{t}/{path}", f"opensandbox:box:{t}/{to}")
        assert ran.status == 1 and b"cannot be copied to where it is" in ran.err, (path, to, ran)
    assert boxes.tree(t) == before
    for path, to in [("d", "d2"), ("d/.", ""), ("d/..d", "d2/..d")]:
        boxes.inside(f"mkdir -p {t}/d/..d")
        assert boxes.copy("cp", f"box:{t}/{path}", f"box:{t}/{to}").status == 0, (path, to)


# --- what comes with them ---

def test_there_and_back(boxes, tmp_path):
    t = boxes.folder()
    make(str(tmp_path / "from"))
    want = here(str(tmp_path / "from"))
    assert boxes.copy("upload", "box", "from", t + "/up").status == 0
    assert boxes.tree(t + "/up") == want
    assert boxes.copy("cp", f"box:{t}/up", f"opensandbox:other:{t}/over").status == 0      # by two sessions
    assert boxes.tree(t + "/over", box="other") == want
    assert boxes.copy("download", "other", t + "/over", "back").status == 0
    assert here(str(tmp_path / "back")) == want
    assert os.stat(tmp_path / "back/holes").st_blocks * 512 < 2 << 20
    assert not [name for name in boxes.tree(t) if ".abx" in name]


def test_the_mode_of_a_single_file(boxes, tmp_path):
    t = boxes.folder()
    (tmp_path / "f").write_text("x")
    (tmp_path / "f").chmod(0o4750)
    ran = boxes.copy("upload", "box", "f", t + "/f")
    assert ran.status == 0 and ran.out.decode() == f"{t}/f: 1 byte\n", ran
    assert boxes.tree(t)["f"] == [0o750, "x"]
    boxes.inside(f"chmod 4751 {t}/f")
    for before, after in ((None, 0o751), (0o640, 0o640)):
        if before:
            (tmp_path / "back").chmod(before)
        assert boxes.copy("download", "box", t + "/f", "back").status == 0
        assert here(str(tmp_path / "back")) == {"": [after, "x"]}


def test_a_link_that_is_named_is_followed(boxes, tmp_path):
    t = boxes.folder()
    (tmp_path / "d").mkdir()
    (tmp_path / "d/f").write_text("new")
    (tmp_path / "d/l").symlink_to("f")
    (tmp_path / "link").symlink_to("d")
    assert boxes.copy("upload", "box", "link", t + "/x").status == 0
    assert boxes.tree(t + "/x") == here(str(tmp_path / "d"))
    boxes.inside(f"mkdir {t}/real; ln -s real {t}/to")
    assert boxes.copy("upload", "box", "d", t + "/to").status == 0
    assert boxes.tree(t + "/real")["d/f"][1] == "new"


@pytest.mark.skipif(not ROOT, reason="only root has other users")
def test_as_another_user(boxes, tmp_path):
    t = boxes.folder()
    boxes.inside(f"mkdir -m 777 {t}/d; mkdir -m 700 {t}/own; touch {t}/own/f; chmod 755 {t}")
    (tmp_path / "d").mkdir()
    (tmp_path / "d/f").write_text("x")
    assert boxes.copy("upload", "-u", "nobody", "box", "d", t + "/d").status == 0
    assert boxes.inside(f"stat -c %U {t}/d/d/f").strip() == "nobody"
    assert boxes.copy("upload", "-u", "nobody", "box", "d/f", t + "/d/one").status == 0
    assert boxes.inside(f"stat -c %U {t}/d/one").strip() == "nobody"
    ran = boxes.copy("download", "--user", "nobody", "box", t + "/own", "own")
    assert ran.status == 1 and not (tmp_path / "own/f").exists(), ran


# --- what cannot be copied ---

def hard_tree(path):
    """Two files that can be copied, and three things that cannot."""
    return (f"mkdir -p {path}/d; echo one >{path}/a; echo two >{path}/z; mkfifo {path}/d/fifo; cd {path}; "
            "python3 -SEc 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'; mkdir private; touch private/x; chmod 0 private")


@pytest.mark.parametrize("way", ["upload", "download"])
def test_what_cannot_be_read_is_named_and_the_rest_is_copied(boxes, tmp_path, way):
    t = boxes.folder()
    if way == "upload":
        subprocess.run(["sh", "-c", hard_tree(str(tmp_path / "from"))], check=True)
        words, place = ["upload", "box", "from", t + "/to"], lambda: boxes.tree(t + "/to")
    else:
        boxes.inside(hard_tree(t + "/from"))
        words, place = ["download", "box", t + "/from", "to"], lambda: here(str(tmp_path / "to"))
    ran = boxes.copy(*words)
    lines = sorted(line for line in ran.err.decode().splitlines() if line.startswith("abx: "))
    assert ran.status == 1 and len(lines) == len(ran.err.splitlines()) == (2 if ROOT else 3), ran
    for line, name in zip(lines, ["d/fifo", "private", "sock"] if not ROOT else ["d/fifo", "sock"]):
        assert re.fullmatch(rf"abx: \S*{name}: \S.*", line), ran
    assert re.search(rb": \d files, \d+ bytes; [23] failed\n$", ran.out), ran
    after = place()
    assert after["a"][1] == "one\n" and after["z"][1] == "two\n" and "d/fifo" not in after and "sock" not in after
    ran = boxes.copy("--json", *words)
    assert ran.status == 1 and ran.doc["failed_count"] == len(ran.doc["failed"]) == len(lines), ran
    assert list(ran.doc) == ["path", "size", "files", "failed_count", "failed"], ran
    assert any(f["path"].endswith("d/fifo") and f["reason"] for f in ran.doc["failed"]), ran
    if way == "upload":
        subprocess.run(["chmod", "-R", "u+rwx", str(tmp_path / "from")], check=True)


@pytest.mark.parametrize("way", ["upload", "download"])
def test_targets_of_another_kind(boxes, tmp_path, way):
    """A folder stands where a file is to go, a file and a link where a folder is to go."""
    t = boxes.folder()
    source = "mkdir -p {0}/b {0}/l; for f in a b/x l/x z; do printf new >{0}/$f; done"
    target = "mkdir -p {0}/from/a {0}/away; printf old >{0}/from/b; ln -s ../away {0}/from/l"
    away = str(tmp_path) if way == "upload" else t
    to = t if way == "upload" else str(tmp_path)
    both = [source.format(away + "/from"), target.format(to + "/to")]
    for line, side in zip(both, ["here", "box"] if way == "upload" else ["box", "here"]):
        subprocess.run(["sh", "-c", line], check=True) if side == "here" else boxes.inside(line)
    ran = boxes.copy("--json", way, "box", away + "/from", to + "/to")
    after = {k: v[1] for k, v in (boxes.tree(t + "/to") if way == "upload" else here(to + "/to")).items()}
    assert ran.status == 1 and ran.out and ran.doc["failed_count"] >= 3, ran
    assert "a link is in its place" in next(f["reason"] for f in ran.doc["failed"] if f["path"] == "from/l"), ran
    assert after == {"": None, "away": None, "from": None, "from/a": None, "from/b": "old", "from/l": "../away", "from/z": "new"}, ran


def test_the_document_of_many_failures_is_bounded(boxes, tmp_path):
    t = boxes.folder()
    (tmp_path / "from").mkdir()
    for i in range(1100):
        os.mkfifo(tmp_path / f"from/{i}")
    ran = boxes.copy("--json", "upload", "box", "from", t + "/to")
    assert ran.status == 1 and ran.doc["failed_count"] == 1100 and len(ran.doc["failed"]) == 1000, ran.err
    assert len(ran.err.splitlines()) == 1100


def test_names_are_cleaned_for_the_line(boxes, tmp_path):
    t = boxes.folder()
    (tmp_path / "from").mkdir()
    os.mkfifo(tmp_path / "from/new\nline")
    ran = boxes.copy("upload", "box", "from", t + "/to")
    assert ran.status == 1 and len(ran.err.splitlines()) == 1 and rb"new\u000aline: " in ran.err, ran


def test_a_full_standard_output(boxes, tmp_path):
    t = boxes.folder()
    (tmp_path / "f").write_text("x")
    with open("/dev/full", "wb") as full:
        ran = boxes.copy("upload", "box", "f", t + "/f", stdout=full)
    assert ran.status == 1 and b"standard output" in ran.err and boxes.tree(t)["f"][1] == "x", ran
    ran = boxes.copy("upload", "box", "f", t + "/g", wrap=["sh", "-c", 'exec "$@" >&-', "sh"])
    assert ran.status == 1 and "g" not in boxes.tree(t), ran
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "d").mkdir()
    os.mkfifo(tmp_path / "d/fifo")
    ran = boxes.copy("upload", "box", "d", t + "/d", wrap=["sh", "-c", 'exec "$@" 2>&-', "sh"])
    assert ran.status == 1 and ran.out, ran


# --- one file ---

def test_documents(boxes, tmp_path):
    t = boxes.folder()
    make(str(tmp_path / "from"))
    (tmp_path / "f").write_bytes(b"12345")
    for words in (["f"], ["f", "--verify"], ["--no-verify", "f"]):
        ran = boxes.copy("--json", "upload", "box", *words, t + "/f")
        want = {"sha256": hashlib.sha256(b"12345").hexdigest()} if "--verify" in words else {}
        assert ran.status == 0 and ran.doc == {"path": t + "/f", "size": 5, **want}, ran
    ran = boxes.copy("--json", "cp", "f", "box:" + t)
    assert ran.doc == {"path": t + "/f", "size": 5}, ran
    ran = boxes.copy("--json", "download", "box", t + "/f", "g")
    assert ran.doc == {"path": "g", "size": 5}, ran
    size = sum(len(what[1]) for what in here(str(tmp_path / "from")).values() if what[0] != "link" and what[1])
    ran = boxes.copy("--json", "upload", "box", "from", t)
    assert ran.status == 0 and ran.doc == {"path": t, "size": size, "files": 17, "failed_count": 0, "failed": []}, ran
    assert ran.err == b"", ran
    assert boxes.copy("-q", "upload", "box", "from", "f", t).out == b""


def test_standard_input_and_output(boxes, tmp_path):
    t = boxes.folder()
    data = os.urandom(300000)
    for words in (["upload", "box", "-", t + "/in"], ["cp", "-", f"box:{t}/in"]):
        ran = boxes.copy(*words, input=data)
        assert ran.status == 0 and ran.out == f"{t}/in: 300000 bytes\n".encode(), ran
        for back in (["download", "box", t + "/in", "-"], ["cp", f"box:{t}/in", "-"]):
            ran = boxes.copy(*back)
            assert ran.status == 0 and ran.out == data and ran.err == b""
        boxes.inside(f"rm {t}/in")
    (tmp_path / "-").write_text("file")
    assert boxes.copy("cp", "./-", f"box:{t}/dash").status == 0
    assert boxes.copy("cp", f"box:{t}/dash", "./-x").status == 0 and (tmp_path / "-x").read_text() == "file"
    ran = boxes.copy("cp", "--progress", "json", "-", f"box:{t}/in", input=data)
    last = [json.loads(line) for line in ran.err.splitlines()][-1]
    assert last == {"event": "done", "bytes": 300000, "files": 1, "failed": 0}, ran


@pytest.mark.parametrize("words, message", [
    ("cp a b", "Nothing of this is in a sandbox"),
    ("cp ./x:a /y:b", "Nothing of this is in a sandbox"),
    ("cp box: x", "'box:' names no path in the sandbox"),
    ("cp x :/a", "':/a' names no sandbox"),
    ("cp box:/a other:/b x", "The sources are not all in one place"),
    ("cp box:/a b x", "The sources are not all in one place"),
    ("cp a", "Missing argument DEST"),
    ("cp a - box:/x", "`-` is one file, and goes alone"),
    ("upload box a - /x", "`-` is one file, and goes alone"),
    ("download box /a /b -", "`-` is one file, and goes alone"),
    ("cp --resume - box:/x", "checked by its size alone"),
    ("cp --verify box:/x -", "checked by its size alone"),
    ("upload -u nobody box - /x", "checked by its size alone"),
    ("upload box - /x/", "'-' does not end in the name of a file"),
    ("cp a box:/x --progress loud", "there is no form 'loud'"),
    ("cp --verify --no-verify a box:/x", "contradict each other"),
    ("upload box ../.. /x", "no name"),
    ("--json cp box:/x -", "cannot both go to standard output"),
])
def test_what_is_refused_before_anybody_is_asked(boxes, words, message):
    ran = boxes(*words.split())
    assert ran.status == 2 and message in ran.err.decode() and not boxes.server.requests, ran


def test_colons(boxes, tmp_path):
    t = boxes.folder()
    (tmp_path / "a:b").write_text("colon")
    for name in ("./a:b", str(tmp_path / "a:b")):
        assert boxes.copy("cp", name, f"opensandbox:box:{t}/x:y").status == 0
        assert boxes.tree(t)["x:y"][1] == "colon"
        boxes.inside(f"rm {t}/x:y")
    ran = boxes.copy("cp", "a:b", "z")
    assert ran.status == 4 and not (tmp_path / "z").exists(), ran       # b in a sandbox a, which there is not


def test_a_single_file_that_changes_while_it_is_read(boxes, slow, tmp_path):
    t, file = boxes.folder(), tmp_path / "f"
    for mode, place, status in (("r+b", 0, 1), ("ab", 20000000, 0)):
        file.write_bytes(b"a" * 20000000)
        process = begin_slowly(boxes, slow, ["upload", "box", "f", t + "/f"])
        with open(file, mode) as changed:
            changed.write(b"b")
        slow.pause = 0
        out, err = process.communicate(timeout=20)
        assert process.returncode == status and (b"f was changed while it was read" in err) == (status == 1), err
        assert len(boxes.tree(t).get("f", [0, ""])[1]) == place, "what it has grown by is not part of the copy"


def test_a_single_name_that_is_not_utf8(boxes, tmp_path):
    t = boxes.folder()
    with open(bytes(tmp_path) + b"/caf\xe9", "w") as file:
        file.write("x")
    for to in (t, t + "/"):
        assert boxes.copy("upload", "box", b"caf\xe9", to).status == 0
        assert boxes.tree(t)["caf\xe9"][1] == "x"
        boxes.inside(f"rm {t}/*")


# --- without the agent ---

def test_file_by_file(boxes, tmp_path):
    t = boxes.folder()
    make(str(tmp_path / "from"))
    want = {name: what for name, what in here(str(tmp_path / "from")).items() if what[0] != "link" and "\xe9" not in name}
    boxes.mode = "never"
    ran = boxes.copy("upload", "box", "from", t + "/to")
    assert ran.status == 1, ran
    assert {name: what[1] for name, what in boxes.tree(t + "/to").items()} == {name: what[1] for name, what in want.items()}
    ran = boxes.copy("download", "box", t + "/to", "back")
    assert ran.status == 0, ran
    assert {name: what[1] for name, what in here(str(tmp_path / "back")).items()} == {name: what[1] for name, what in want.items()}
    for option in (["--resume"], ["-u", "nobody"]):
        ran = boxes.copy("upload", *option, "box", "from/empty", t + "/e")
        assert ran.status == 1 and b"[E8004]" in ran.err, ran


def test_one_file_between_sandboxes_is_named_by_where_it_lies(boxes):
    t = boxes.folder()
    boxes.inside(f"echo x > {t}/f")
    for to, lies in ((t, t + "/f"), (t + "/new", t + "/new")):
        ran = boxes("--agent", "never", "cp", f"box:{t}/f", f"other:{to}")
        assert ran.status == 0 and ran.out == f"{lies}: 2 bytes\n".encode(), ran


def test_a_temporary_folder_whose_files_need_names(boxes, tmp_path):
    t = boxes.folder()
    boxes.inside(f"mkdir {t}/d; echo x > {t}/d/f")
    ran = boxes("--agent", "never", "cp", "-r", f"box:{t}/d", f"other:{t}/d", env={"TMPDIR": str(tmp_path)},
                wrap=["strace", "-f", "-o", "/dev/null", "-P", str(tmp_path), "-e", "trace=open,openat", "-e",
                      "inject=open,openat:error=EOPNOTSUPP"])
    assert ran.status == 0 and boxes.tree(t + "/d", box="other")["f"][1] == "x\n", ran
    assert os.listdir(tmp_path) == ["home"]


# --- how it goes ---

def test_progress_as_lines(boxes, slow, tmp_path):
    t = boxes.folder()
    (tmp_path / "from").mkdir()
    for name in "abcd":
        (tmp_path / "from" / name).write_bytes(os.urandom(500000))
    os.mkfifo(tmp_path / "from/fifo")
    ran = boxes.copy("--progress", "json", "upload", "box", "from", t + "/to")
    assert ran.status == 2, "an option of the verb stands behind it"
    slow.pause = 0.04
    ran = boxes.copy("upload", "--progress", "json", "box", "from", t + "/to")
    events = [json.loads(line) for line in ran.err.splitlines()]
    assert ran.status == 1 and ran.out, ran
    assert [e["event"] for e in events if e["event"] != "progress"] == ["failed", "done"], ran
    assert events[-1] == {"event": "done", "bytes": 2000000, "files": 4, "failed": 1}
    moved = [e["bytes"] for e in events if e["event"] == "progress"]
    assert len(moved) > 3 and moved == sorted(moved), ran
    assert all(e["total"] == 2000000 and e["total_files"] == 4 for e in events if e["event"] == "progress" and "total" in e), ran
    assert any("total" in e for e in events), ran


@pytest.mark.parametrize("mode", ["auto", "never"])
def test_the_hash_is_told(boxes, tmp_path, mode):
    t = boxes.folder()
    (tmp_path / "d").mkdir()
    (tmp_path / "d/f").write_text("abc")
    sha256, boxes.mode = hashlib.sha256(b"abc").hexdigest(), mode
    for words in (["upload", "box", "d/f", t], ["download", "box", t + "/f", "x"], ["cp", f"box:{t}/f", f"other:{t}/f"],
                  ["upload", "box", "d/f", t + "/f", "--no-verify"], ["download", "box", t + "/f", "x", "--no-verify"]):
        if "--no-verify" not in words and words[0] != "cp":
            assert "sha256" not in boxes.copy("--json", *words).doc
            words.append("--verify")
        assert boxes.copy("--json", *words).doc.get("sha256") == (None if "--no-verify" in words else sha256), words
    ran = boxes.copy("-v", "--json", "upload", "--progress", "json", "box", "d", t + "/to")
    events = [json.loads(line) for line in ran.err.splitlines() if line[:1] == b"{"]
    assert len(ran.err.splitlines()) == len(events) + 1         # which provider it is
    assert {"event": "copied", "path": "d/f", "sha256": sha256} in events and {"event": "copied", "path": "d"} in events, ran
    assert ran.status == 0 and "sha256" not in ran.doc, ran


def bars(seen):
    return re.findall(rb"\r([^\r\n\x1b]*)\x1b\[K", seen)


@pytest.mark.parametrize("cols", [100, 20])
def test_a_bar_on_a_terminal(boxes, slow, tmp_path, cols):
    t = boxes.folder()
    (tmp_path / "from").mkdir()
    for name in "abcd":
        (tmp_path / "from" / name).write_bytes(os.urandom(500000))
    os.mkfifo(tmp_path / "from/b.fifo")
    slow.pause = 0.04
    terminal = Terminal(boxes, "upload", "box", "from", t + "/to", cols=cols)
    try:
        terminal.ended(1)
    finally:
        terminal.close()
    drawn = [bar for bar in bars(terminal.seen) if bar]
    assert len(drawn) > 3 and all(len(bar) < cols for bar in drawn), terminal.seen
    assert cols < 100 or any(re.match(rb"\[=+> *\] \d+%  \S+ KiB of 1.9 MiB  ", bar) for bar in drawn), drawn
    # The line of the failure and the result begin on a line of their own.
    for line in (rb"abx: \S*b\.fifo: [^\r]*\r\n", rb"[^\r\n]*/to: 4 files, 2000000 bytes; 1 failed\r\n"):
        assert re.search(rb"(?:\n|^|\r\x1b\[K)" + line, terminal.seen), terminal.seen


@pytest.mark.parametrize("words", [["-q", "upload"], ["--json", "upload"], ["upload", "--progress", "none"]])
def test_no_bar(boxes, tmp_path, words):
    t = boxes.folder()
    (tmp_path / "f").write_bytes(b"x" * 200000)
    terminal = Terminal(boxes, *words, "box", "f", t + "/f")
    try:
        terminal.ended(0)
    finally:
        terminal.close()
    assert b"\x1b" not in terminal.seen and b"%" not in terminal.seen, terminal.seen


def test_what_is_copied_is_named_with_v(boxes, tmp_path):
    t = boxes.folder()
    make(str(tmp_path / "from"))
    ran = boxes.copy("-v", "upload", "box", "from", t + "/to")
    assert ran.status == 0 and re.search(rb"^abx: \S*deep/er/plain$", ran.err, re.M), ran


# --- when it is interrupted ---

def begin_slowly(boxes, slow, words, least=1000000):
    """A copy that has come to the middle."""
    slow.pause = 0.005
    process = boxes.start("--agent", "auto", *words, "--progress", "json")
    while (event := json.loads(process.stderr.readline()))["event"] != "progress" or event["bytes"] < least:
        pass
    return process


def big(path, size=5000000):
    path.mkdir()
    for name in ("a", "big", "z"):
        (path / name).write_bytes(os.urandom(size if name == "big" else 1000))


@pytest.mark.parametrize("way, kill", [("upload", signal.SIGKILL), ("download", signal.SIGKILL), ("upload", signal.SIGINT)])
def test_resume(boxes, slow, tmp_path, way, kill):
    t = boxes.folder()
    big(tmp_path / "from")
    want = here(str(tmp_path / "from"))
    if way == "upload":
        words, look = ["upload", "--resume", "box", "from", t + "/to"], lambda: boxes.tree(t + "/to")
    else:
        assert boxes.copy("upload", "box", "from", t).status == 0
        words, look = ["download", "--resume", "box", t + "/from", "to"], lambda: here(str(tmp_path / "to"))
    process = begin_slowly(boxes, slow, words, least=3000000)
    process.send_signal(kill)
    assert process.wait(10) == (-9 if kill == signal.SIGKILL else 130)
    time.sleep(0.3)
    left = look()
    assert "big" not in left and left["a"] == want["a"] and len(left) == 3, left.keys()
    before, slow.pause = type(slow).carried, 0
    ran = boxes.copy("--json", *words)
    assert type(slow).carried - before < 4500000
    assert ran.status == 0 and ran.doc["files"] == 3 and look() == want, ran


def test_resume_of_a_pattern(boxes, slow, tmp_path):
    t = boxes.folder()
    big(tmp_path / "from")
    assert boxes.copy("upload", "box", "from", t).status == 0
    (tmp_path / "to").mkdir()
    process = begin_slowly(boxes, slow, ["download", "--resume", "box", t + "/f*/*", "to"], least=3000000)
    process.kill()
    process.wait(10)
    assert (tmp_path / "to/a").exists() and not (tmp_path / "to/big").exists()
    before, slow.pause = type(slow).carried, 0
    ran = boxes.copy("--json", "download", "--resume", "box", t + "/f*/*", "to")
    assert type(slow).carried - before < 4500000
    assert ran.status == 0 and ran.doc["files"] == 3, ran
    for name in ("a", "big", "z"):
        assert (tmp_path / "to" / name).read_bytes() == (tmp_path / "from" / name).read_bytes()
    assert len(os.listdir(tmp_path / "to")) == 3


def test_two_that_go_on_with_one_file(boxes, tmp_path):
    t = boxes.folder()
    boxes.inside(f"echo new > {t}/f")
    with open(tmp_path / f".abx-{hashlib.sha256(b'f').hexdigest()[:16]}.part", "ab") as part:
        fcntl.flock(part, fcntl.LOCK_EX)
        ran = boxes.copy("download", "--resume", "box", t + "/f")
    assert ran.status == 1 and b"abx: f: another copy is writing it\n" in ran.err and not (tmp_path / "f").exists(), ran


@pytest.mark.parametrize("way", ["upload", "download"])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_ctrl_c(boxes, slow, tmp_path, way, what):
    t = boxes.folder()
    # On the way of a single file the kernel holds some megabytes.
    big(tmp_path / "from", 20000000 if what == "file" else 5000000)
    tail = "/big" if what == "file" else ""
    if way == "upload":
        words, look = ["upload", "box", "from" + tail, t + "/to"], lambda: boxes.tree(t + "/to")
    else:
        assert boxes.copy("upload", "box", "from", t).status == 0
        words, look = ["download", "box", t + "/from" + tail, "to"], lambda: here(str(tmp_path / "to"))
    process = begin_slowly(boxes, slow, words)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130 and time.monotonic() - begun < 5
    slow.pause = 0
    time.sleep(0.3)
    left = look()
    assert set(left) <= ({"", "a"} if what == "folder" else set()), left.keys()
    assert not [name for name in os.listdir(tmp_path) if "abx" in name], os.listdir(tmp_path)
    assert "abx" not in boxes.inside(f"ls -aR {t}")


def test_a_second_ctrl_c_leaves_at_once(osb, server, tmp_path):
    """The first one is heard while the server is asked to clean up, which it never answers."""
    server.box()
    (tmp_path / "f").write_bytes(b"x" * 100000)
    asked = threading.Event()

    def script(request, whole):
        if request.path.endswith("/files/upload"):
            asked.set()
            return [HOLD]
        return [HOLD] if asked.is_set() else [whole]
    server.script = script
    process = osb.start("--agent", "never", "upload", "box-1", "f", "/f")
    assert asked.wait(10)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(10) in (130, -2) and time.monotonic() - begun < 1
