"""The carried helper: what happens to files, told as it happens."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from agent import wait_for
from conftest import BINARY
from frames import BY_SIGNAL, CHANGES, CODE, SIGNAL, Helper, environment, frame, keepers, marked

ROOT = os.geteuid() == 0


def changes(out):
    """(word, path) of each line."""
    lines = bytes(out).split(b"\0")
    assert lines.pop() == b"", lines
    found = []
    for line in lines:
        word, number, size, sha, path = line.split(b" ", 4)
        assert (size, sha) == (b"0", b"-") and (number == b"0" or word == b"ready"), line
        found.append((word.decode(), path))
    return found


class Watched:
    """`path` is watched; what is told has the folder's own name cut off."""

    def __init__(self, own, path, options="-d", mode="pipe", program=BINARY, **more):
        self.path = os.fsencode(path).rstrip(b"/")
        self.helper = Helper(mode, own, program=program)
        self.talk = self.helper.talk().greet(options, path, kind=CHANGES, **more)
        self.seen = 0
        self.talk.until_out(b"\0")
        assert self.next(0)[0][0] == "ready"

    def next(self, seconds=0.3):
        """What is told until nothing more comes for so long."""
        with contextlib.suppress(TimeoutError):
            while self.talk.exit is None and self.talk.next(seconds):
                continue
        new, self.seen = self.talk.out[self.seen:], len(self.talk.out)
        return [(word, path[len(self.path):]) for word, path in changes(new) if path.startswith(self.path)]

    def until(self, *last, seconds=10):
        """To this one, and all that was told on the way there."""
        got, end = [], time.monotonic() + seconds
        while last not in got:
            assert time.monotonic() < end, got
            got += self.next(0.05)
        return got

    def close(self):
        self.talk.close()
        self.helper.close()


@pytest.fixture
def watch(tmp_path):
    made = []
    own = tmp_path / "own"
    own.mkdir()

    def make(path, *args, **more):
        made.append(Watched(own, path, *args, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()
    wait_for(lambda: not keepers(own), 20)


NAMES = [b"plain", b"a b", b"new\nline", b"\xff\xfe", "ä".encode(), b"$x", b"\\", b"-", b"x" * 255]


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    (root / "a/b").mkdir(parents=True)
    (root / "old").write_text("old")
    return root


@pytest.mark.parametrize("mode", ["pipe", "lines", "listen"])
def test_names_are_told_byte_for_byte(watch, tree, mode):
    w = watch(tree, mode=mode)
    assert changes(w.talk.out) == [("ready", os.fsencode(tree))]
    assert bytes(w.talk.out).startswith(b"ready 3 ")
    for name in NAMES:
        with open(os.fsencode(tree / "a/b") + b"/" + name, "w") as f:
            f.write("x")
    assert w.next() == [("created", b"/a/b/" + name) for name in NAMES]


def test_a_burst_is_told_once(watch, tree):
    w = watch(tree)
    with open(tree / "old", "ab", buffering=0) as f:
        for _ in range(500):
            f.write(b"more")
    os.utime(tree / "old", (1, 1))
    os.chmod(tree / "old", 0o600)
    got = w.next()
    assert 1 <= len(got) <= 2 and set(got) == {("changed", b"/old")}
    (tree / "old").read_bytes()
    assert w.next() == []
    os.chmod(tree, 0o700)
    os.chmod(tree / "a", 0o700)
    assert w.next() == [("changed", b""), ("changed", b"/a")]
    (tree / "old").unlink()
    (tree / "old").write_text("again")
    assert w.next() == [("removed", b"/old"), ("created", b"/old")]


def test_a_move_is_two_changes(watch, tree, tmp_path):
    w = watch(tree)
    os.rename(tree / "old", tree / "a/new")
    assert w.next() == [("removed", b"/old"), ("created", b"/a/new")]
    os.rename(tree / "a", tree / "c")
    assert w.next() == [("removed", b"/a"), ("created", b"/c"), *sorted([("created", b"/c/b"), ("created", b"/c/new")])]
    (tree / "c/b/x").write_text("")
    assert w.next() == [("created", b"/c/b/x")]
    os.rename(tree / "c", tmp_path / "away")
    assert w.next() == [("removed", b"/c")]
    (tmp_path / "away/b/y").write_text("")
    assert w.next() == []
    os.rename(tmp_path / "away", tree / "back")
    assert sorted(w.next()) == sorted(("created", b"/back" + n) for n in (b"", b"/b", b"/b/x", b"/b/y", b"/new"))
    os.symlink("/etc", tree / "link")
    os.symlink(".", tree / "round")
    assert w.next() == [("created", b"/link"), ("created", b"/round")]


def test_what_comes_while_a_folder_is_new_is_not_missed(watch, tree):
    w = watch(tree)
    want = set()
    for i in range(150):
        at = tree / f"n{i}/m/{i}"
        at.mkdir(parents=True)
        (at / "f").write_text("x")
        want |= {("created", b"/n%d%s" % (i, part)) for part in (b"", b"/m", b"/m/%d" % i, b"/m/%d/f" % i)}
    got = w.until("created", b"/n149/m/149/f") + w.next()
    assert want == {g for g in got if g[0] == "created"} and all(g[0] in ("created", "changed") for g in got)
    shutil.rmtree(tree / "n0")
    assert w.next() == [("removed", b"/n0" + part) for part in (b"/m/0/f", b"/m/0", b"/m", b"")]
    (tree / "n1/m/1/f").write_text("y")
    assert w.next() == [("changed", b"/n1/m/1/f")]


def test_without_d_it_is_the_folder_alone(watch, tree):
    w = watch(str(tree) + "/", options="-")
    (tree / "a/x").write_text("")
    (tree / "y").write_text("")
    (tree / "z").mkdir()
    (tree / "z/x").write_text("")
    assert w.next() == [("created", b"/y"), ("created", b"/z")]


def test_a_file_is_watched_through_its_replacements(watch, tree):
    w = watch(tree / "old", options="-d")
    (tree / "other").write_text("")
    (tree / "old").write_text("new")
    assert w.next() == [("changed", b"")]
    (tree / "temp").write_text("newer")
    os.rename(tree / "temp", tree / "old")
    assert w.next() == [("created", b"")]
    (tree / "old").write_text("newest")
    assert w.next() == [("changed", b"")]
    (tree / "old").unlink()
    assert w.next() == [("removed", b"")]
    (tree / "old").write_text("")
    assert w.next() == [("created", b"")]
    shutil.rmtree(tree)
    assert w.talk.finish() == (CODE, 0) and w.next() == [("removed", b"")]


def test_a_link_to_what_is_watched_is_followed(watch, tree, tmp_path):
    (tmp_path / "link").symlink_to(tree)
    (tmp_path / "file").symlink_to(tree / "old")
    deep, one = watch(tmp_path / "link"), watch(tmp_path / "file")
    (tree / "old").write_text("x")
    (tree / "a/b/c").write_text("x")
    assert deep.next() == [("changed", b"/old"), ("created", b"/a/b/c")] and one.next() == [("changed", b"")]


@pytest.mark.parametrize("options", ["-", "-d"])
@pytest.mark.parametrize("how", [shutil.rmtree, lambda path: os.rename(path, str(path) + "2")])
def test_the_folder_itself_goes(watch, tree, options, how):
    w = watch(tree, options=options)
    how(tree)
    assert w.talk.finish() == (CODE, 0)
    assert w.next()[-1] == ("removed", b"")


def test_relative_to_where_it_is_started(watch, tree):
    w = watch("a", cwd=str(tree))
    (tree / "a/x").write_text("")
    assert w.next() == [("created", b"/x")]


@pytest.mark.parametrize("words, text", [
    (["-d", "/no/such"], b"E4001 cannot find /no/such: No such file or directory\n"),
    (["-d", ""], b"E4001 "), (["-d", "/etc/passwd/x"], b"E4001 "), (["-d", "x" * 5000], b"E4001 "),
    (["-x", "/"], b"E8002 "), (["d", "/"], b"E8002 "), (["-d"], b"E8002 "), (["-d", "/", "/"], b"E8002 "),
])
def test_what_cannot_be_watched_is_said(tmp_path, words, text):
    h = Helper("pipe", tmp_path)
    t = h.talk().greet(*words, kind=CHANGES)
    assert t.finish() == (CODE, 1) and t.out == b"" and bytes(t.err).startswith(text) and t.err.count(b"\n") == 1
    t.close()
    h.close()


def test_no_words_at_all(tmp_path):
    h = Helper("pipe", tmp_path)
    assert h.talk().greet(kind=CHANGES).finish().sys
    h.close()


@pytest.mark.skipif(not ROOT, reason="only root becomes somebody else")
def test_as_another_user(watch):
    with tempfile.TemporaryDirectory(prefix="abx-watch-") as own:       # pytest's folders are closed to others
        shared(watch, Path(own))


def shared(watch, tree):
    (tree / "a/b").mkdir(parents=True)
    os.chmod(tree, 0o755)
    (tree / "closed").mkdir(0o700)
    program = tree / "closed/abx"       # which nobody could start by its name
    shutil.copy(BINARY, program)
    w = watch(tree, user="nobody", program=str(program))
    assert bytes(w.talk.out).startswith(b"ready 3 ")
    (tree / "closed/x").write_text("")
    (tree / "a/x").write_text("")
    assert w.next() == [("created", b"/a/x")]
    h = Helper("pipe", w.helper.folder)
    t = h.talk().greet("-d", str(tree / "closed"), kind=CHANGES, user="nobody")
    assert t.finish() == (CODE, 1) and bytes(t.err).startswith(b"E4002 ")
    t.close()
    h.close()


NO_PROC = """#!/bin/sh
exec unshare -m sh -c 'umount -l /proc && exec "$0" "$@"' %s "$@"
"""


@pytest.mark.skipif(not ROOT, reason="only root may unmount")
@pytest.mark.parametrize("user", ["", "nobody"])
def test_without_proc(watch, tree, user):
    os.chmod(tree, 0o755)
    program = tree / "a/program"
    program.write_text(NO_PROC % BINARY)
    program.chmod(0o755)
    w = watch("/tmp", options="-", program=str(program), user=user)
    assert w.talk.started.pid


def test_when_something_was_lost_it_is_said_and_all_is_watched_again(watch, tree):
    w = watch(tree)
    os.kill(w.talk.started.pid, signal.SIGSTOP)
    for _ in range(int(Path("/proc/sys/fs/inotify/max_queued_events").read_text()) // 2 + 10):
        os.chmod(tree / "old", 0o600)
        os.chmod(tree / "a", 0o700)
    (tree / "late").mkdir()
    shutil.rmtree(tree / "a/b")
    os.kill(w.talk.started.pid, signal.SIGCONT)
    assert w.until("lost", b"")[-1] == ("lost", b"")
    (tree / "late/x").write_text("")
    (tree / "old").write_text("")
    assert w.next() == [("created", b"/late/x"), ("changed", b"/old")]


def test_the_end_may_be_among_what_was_lost(watch, tree):
    w = watch(tree)
    os.kill(w.talk.started.pid, signal.SIGSTOP)
    for _ in range(int(Path("/proc/sys/fs/inotify/max_queued_events").read_text()) // 2 + 10):
        os.chmod(tree / "old", 0o600)
        os.chmod(tree / "a", 0o700)
    shutil.rmtree(tree)
    tree.mkdir()
    os.kill(w.talk.started.pid, signal.SIGCONT)
    assert w.talk.finish() == (CODE, 0) and w.next()[-1] == ("removed", b"")


LIMITED = 'echo %d > /proc/sys/user/max_inotify_watches && exec "$@"'


@pytest.mark.parametrize("most, told", [(2, []), (3, ["ready", "created"])])
def test_no_more_watches_is_said(tree, most, told):
    """In a user namespace, which has a limit of its own."""
    p = subprocess.Popen(["unshare", "-rm", "sh", "-c", LIMITED % most, "sh", BINARY, "agent", "watch", "-d", str(tree)],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(tree), bufsize=0)
    if told:
        assert p.stdout.read(1) == b"r"
        (tree / "more").mkdir()
    out, err = p.communicate(timeout=20)
    assert p.returncode == 1 and err.startswith(b"E4003 ") and err.count(b"\n") == 1
    assert out == (b"eady 3 0 - %s\0created 0 0 - %s/more\0" % (2 * (os.fsencode(tree),)) if told else b"")


@pytest.mark.parametrize("mode", ["pipe", "listen"])
def test_it_ends_with_its_client(watch, tree, mode):
    w = watch(tree, mode=mode)
    pid = w.talk.started.pid
    assert str(pid) in map(str, marked("agent\0watch"))
    w.close()
    wait_for(lambda: pid not in marked("agent\0watch"), 10)


def test_it_ends_by_a_signal(watch, tree):
    w = watch(tree)
    w.talk.send(frame(SIGNAL, bytes([15, 0])))
    assert w.talk.finish() == (BY_SIGNAL, 15)


def test_it_ends_when_its_keeper_is_killed(watch, tree):
    w = watch(tree)
    pid = w.talk.started.pid
    keeper = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(keeper, 9)
    wait_for(lambda: pid not in marked("agent\0watch"), 10)
