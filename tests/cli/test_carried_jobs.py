"""The carried helper: commands that go on without a client, and are come back to."""

import contextlib
import json
import os
import re
import signal
import socket
import stat
import struct
import subprocess
import time

import pytest

from agent import wait_for
from frames import (AT_ATTACH, AT_START, ATTACH, BY_SIGNAL, CODE, CONTROL, CREDIT, DATA, DETACH, EOF, EXEC, INPUT, INPUT_WINDOW, JOB,
                    JOBS, KILL, NO_ACK, PTY, REPLAY, RESIZE, SIGNAL, STARTED, TAKE, TIMEOUT, WATCH, Helper, frame, hello, keepers, mark,
                    marked, preamble, start)

MODES = ["pipe", "lines", "listen"]
ENOENT, ESRCH, EBUSY, EINVAL = 2, 3, 16, 22


class Box:
    """A folder with helpers in it, as a sandbox has one."""

    def __init__(self, folder):
        self.folder, self.made = folder, []
        folder.chmod(0o700)

    def talk(self, *argv, mode="listen", talk=None, **more):
        h = Helper(mode, self.folder)
        self.made.append(h)
        return h.talk(**(talk or {})).greet(*argv, **more)

    def attach(self, job, flags=0, **more):
        t = self.talk(kind=ATTACH, job=job, flags=flags, **more)
        while not (t.fail or t.replay is not None):
            t.next()
        return t

    def control(self, job, *words):
        t = self.talk(*words, kind=CONTROL, job=job)
        return t.finish()

    def jobs(self, code=0, **more):
        t = self.talk(kind=JOBS, **more)
        assert t.finish() == (CODE, code) and t.started.pid == 0
        return [json.loads(line) for line in bytes(t.out).splitlines()]

    def job(self, *argv, **more):
        more.setdefault("flags", JOB)
        t = self.talk(*argv, **more)
        t.until(STARTED)
        return t, t.started.job

    def sockets(self):
        return sorted(p.name for p in self.folder.iterdir() if "-" in p.name)


@pytest.fixture
def box(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    b = Box(folder)
    yield b
    for h in b.made:
        h.close()
    for pid in keepers(folder):
        with contextlib.suppress(ProcessLookupError):       # a relay is about to end by itself
            os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not keepers(folder), 8)
    assert not b.sockets()


@pytest.mark.parametrize("how", ["detach", "cut"])
@pytest.mark.parametrize("mode", MODES)
def test_a_job_from_start_to_forget(box, mode, how):
    t, job = box.job("echo first; while ! [ -e go ]; do sleep 0.05; done; echo second; exit 7", mode=mode, cwd=str(box.folder))
    assert re.fullmatch(rb"[0-9a-f]{16}", job)
    t.until_out(b"first\n")
    if how == "detach":
        t.send(frame(DETACH))
        t.cut(5)
        assert not t.exit and not t.fail
    t.close()
    mode_of = os.lstat(box.folder / f"j-{job.decode()}").st_mode
    assert stat.S_ISSOCK(mode_of) and stat.S_IMODE(mode_of) == 0o600
    wait_for(lambda: box.jobs()[0]["attached"] is False)
    now = box.jobs()[0]
    assert now == {"id": job.decode(), "pid": t.started.pid, "command": now["command"], "tty": False, "state": "running",
                   "attached": False, "started": now["started"], "printed": 6, "from": 0}
    assert now["command"].startswith("echo first; while") and abs(now["started"] - time.time()) < 30
    fail = box.control(job, "forget")
    assert (fail.stage, fail.sys) == (AT_ATTACH, EBUSY)
    (box.folder / "go").touch()
    wait_for(lambda: box.jobs()[0]["state"] == "ended")
    now = box.jobs()[0]
    assert now["exit_code"] == 7 and now["ended"] >= now["started"] and now["printed"] == 13 and "signal" not in now
    for _ in range(2):                  # it stays
        t = box.attach(job)
        assert t.replay == 0 and t.finish() == (CODE, 7) and t.out == b"first\nsecond\n" and t.exit.out == 13
    assert box.control(job, "signal", "9").sys == ESRCH
    assert box.control(job, "forget") == (CODE, 0)
    wait_for(lambda: not keepers(box.folder))
    assert box.jobs() == [] and box.attach(job).fail.sys == ENOENT and box.control(job, "forget").sys == ENOENT


def test_outputs_stay_apart(box):
    _, job = box.job("for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done")
    wait_for(lambda: box.jobs()[0]["state"] == "ended")
    t = box.attach(job)
    assert t.finish() == (CODE, 0) and t.out == b"o1\no2\no3\no4\no5\n" and t.err == b"e1\ne2\ne3\ne4\ne5\n"
    t = box.attach(job, offset=7)
    assert t.replay == 7 and t.finish() == (CODE, 0) and len(t.out) + len(t.err) == 30 - 7
    assert (t.exit.out, t.exit.err) == (15, 15)


@pytest.mark.parametrize("offset", [0, 1, 999, 65528, 65529, 100000, 228893, 228894])
def test_attach_at_many_places(box, offset):
    """As after a cut: nothing lost, nothing twice."""
    whole = b"".join(b"%d\n" % i for i in range(1, 40001))
    assert len(whole) == 228894
    t, job = box.job("seq 1 40000; sleep 0.4; echo and more")
    t.until_out(b"\n40000\n")
    t.close()
    wait_for(lambda: not box.jobs()[0]["attached"])
    t = box.attach(job, offset=offset)
    assert t.replay == offset
    assert t.finish() == (CODE, 0) and t.out == (whole + b"and more\n")[t.replay:]


def test_the_ring_goes_back_a_mebibyte(box):
    t, job = box.job("head -c 3000000 /dev/zero | tr '\\0' a; head -c 1000 /dev/zero | tr '\\0' b")
    t.send(frame(DETACH))
    wait_for(lambda: box.jobs()[0]["state"] == "ended")
    t = box.attach(job)
    assert t.replay == 3001000 - (1 << 20) and t.finish() == (CODE, 0)
    assert t.out == b"a" * ((1 << 20) - 1000) + b"b" * 1000 and t.exit.out == 3001000
    fail = box.attach(job, offset=3001001).fail
    assert (fail.stage, fail.sys) == (AT_ATTACH, EINVAL)
    t = box.attach(job, offset=3001000)
    assert t.replay == 3001000 and t.finish() == (CODE, 0) and not t.out


def test_without_a_client_it_is_not_held_up(box):
    t, job = box.job("head -c 20000000 /dev/zero; echo x > done", cwd=str(box.folder), talk={"credit": False})
    while t.next(1):
        pass
    assert t.taken == 1 << 20 and not (box.folder / "done").exists()
    t.close()
    wait_for(lambda: (box.folder / "done").exists())


def test_input_of_a_job(box):
    """It is the first client's and then the next one's; counted for each anew."""
    t, job = box.job("while ! [ -e go ]; do sleep 0.05; done; wc -c", flags=JOB | INPUT, cwd=str(box.folder))
    t.write(b"x" * INPUT_WINDOW)
    t.send(frame(DETACH))
    t.cut()
    t = box.attach(job)
    t.write(b"y" * INPUT_WINDOW)        # both windows are full
    assert not t.fail and t.next(0.3) is None
    (box.folder / "go").touch()
    t.write(b"y" * (9000000 - 2 * INPUT_WINDOW))
    t.send(frame(EOF))
    assert t.finish() == (CODE, 0) and t.out == b"9000000\n"


def test_one_client_and_who_looks_on(box):
    first, job = box.job("read a; echo $a; read b; echo $b", flags=JOB | INPUT)
    fail = box.attach(job).fail
    assert (fail.stage, fail.sys) == (AT_ATTACH, EBUSY)
    watchers = [box.attach(job, WATCH) for _ in range(8)]
    assert all(w.fail is None for w in watchers)
    assert box.attach(job, WATCH).fail.sys == EBUSY
    watchers.pop().close()
    assert box.jobs()[0]["attached"] is True
    first.send(frame(DATA, b"one\n"))
    first.until_out(b"one\n")
    second = box.attach(job, TAKE, offset=4)
    assert first.finish().sys == EBUSY and second.replay == 4
    second.send(frame(DATA, b"two\n"))
    assert second.finish() == (CODE, 0) and second.out == b"two\n"
    for w in watchers:
        assert w.finish() == (CODE, 0) and w.out == b"one\ntwo\n"


@pytest.mark.parametrize("what", [frame(DATA, b"x"), frame(EOF), frame(SIGNAL, b"\x0f\0"), frame(RESIZE, b"\0\1\0\1"), frame(KILL)])
def test_who_looks_on_may_not_act(box, what):
    first, job = box.job("sleep 60")
    w = box.attach(job, WATCH)
    w.send(what)
    w.cut(5)
    assert box.jobs()[0]["state"] == "running" and box.jobs()[0]["attached"] is True
    first.send(frame(KILL))
    assert first.finish() == (BY_SIGNAL, 1)


def test_who_looks_on_and_stops_reading(box):
    """He misses something, and is told so; the client does not wait for him."""
    first, job = box.job("head -c 10000000 /dev/zero; read x", flags=JOB | INPUT)
    first.keep = False
    w = box.talk(kind=ATTACH, job=job, flags=WATCH, talk={"credit": False})
    w.until(REPLAY)
    while first.taken < 10000000:
        first.next()
    while w.next(0.5):
        pass
    assert w.taken == 1 << 20
    w.credit = True
    w.told = w.taken
    w.send(frame(CREDIT, struct.pack(">Q", w.taken)))
    first.send(frame(DATA, b"\n"))
    assert first.finish() == (CODE, 0) and w.finish() == (CODE, 0)
    replays = [struct.unpack(">Q", p)[0] for k, p in w.frames if k == REPLAY]
    assert replays == sorted(set(replays)) and replays[-1] == 10000000 - (1 << 20) and len(w.out) == 2 << 20


def test_signal_and_kill(box):
    m = mark(box.folder)
    _, job = box.job(f"sleep {m} & sleep {m}; exit 1")
    time.sleep(0.2)
    assert box.control(job, "signal", "15") == (CODE, 0)
    wait_for(lambda: box.jobs()[0]["state"] == "ended")
    assert box.jobs()[0]["signal"] == 15 and not marked(m)
    for words in (["signal"], ["signal", "0"], ["signal", "65"], ["signal", "x"], ["nonsense"], [], ["forget", "x"]):
        assert box.control(job, *words).sys == EINVAL
    assert box.control(job, "forget") == (CODE, 0)


def test_timeout_of_a_job(box):
    t, job = box.job("sleep 50", timeout_ms=1200)
    t.close()
    wait_for(lambda: box.jobs()[0]["state"] == "ended")
    assert box.jobs()[0]["timed_out"] is True and box.jobs()[0]["signal"] == 9
    assert box.attach(job).finish() == (TIMEOUT, 9)


def test_jobs_that_are_not_there(box):
    box.job("sleep 60")
    for job in (b"0" * 16, b"", b"x", b"../../etc/passwd", b"0" * 15, b"0" * 17, b"A" * 16, b"0" * 9000):
        fail = box.attach(job).fail
        assert (fail.stage, fail.sys) == (AT_ATTACH, ENOENT), job


def test_a_killed_keeper_is_not_listed(box):
    t, job = box.job("sleep 2")
    (box.folder / "j-nonsense").write_text("")
    (box.folder / "j-0123456789abcdef").write_text("")
    for pid in keepers(box.folder):
        os.kill(pid, 9)
    wait_for(lambda: not keepers(box.folder))
    assert f"j-{job.decode()}" in box.sockets()
    assert box.attach(job).fail.sys == ENOENT
    (box.folder / "j-nonsense").unlink()
    assert box.jobs() == [] and box.sockets() == []


def test_a_stopped_keeper_holds_the_list_up_for_a_moment(box):
    _, one = box.job("sleep 60")
    stopped = keepers(box.folder)[0]
    _, two = box.job("sleep 61")
    os.kill(stopped, signal.SIGSTOP)
    began = time.monotonic()
    assert [j["id"] for j in box.jobs(code=1)] == [two.decode()] and time.monotonic() - began < 4
    os.kill(stopped, signal.SIGCONT)
    assert len(box.jobs()) == 2


def test_many_jobs(box):
    ids = {box.job(f"echo {i}; sleep 60")[1].decode() for i in range(40)}
    assert {j["id"] for j in box.jobs()} == ids
    assert {j["id"] for j in box.jobs(mode="lines")} == ids


def test_how_a_command_is_shown(box):
    box.job("printf", "a\x1b[31mb\n\t\xff" + "\u00e9" * 300, "x")
    shown = box.jobs()[0]["command"]
    assert shown.startswith("printf ab") and "\x1b" not in shown and "\n" not in shown and len(shown.encode()) <= 200


def test_deaf_logs(box):
    """Lines, without a way to say anything but the first words."""
    _, job = box.job("echo some; exit 3")
    wait_for(lambda: box.jobs()[0]["state"] == "ended")
    first = preamble() + hello() + start(kind=ATTACH, job=job, flags=NO_ACK | WATCH)
    h = Helper("lines", box.folder, first, stdin=subprocess.DEVNULL)
    box.made.append(h)
    t = h.talk(credit=False, ack=False)
    assert t.finish() == (CODE, 3) and t.out == b"some\n" and h.ended() == 0


def test_a_terminal_that_is_left_and_come_back_to(box):
    t = box.talk("cat; stty size; cat", kind=PTY, cols=80, rows=24)
    t.send(frame(DATA, b"one\r"))
    t.until_out(b"one\r\none\r\n")
    job, had = t.started.job, len(t.out)
    t.send(frame(DETACH))
    t.cut()
    assert box.jobs()[0]["tty"] is True
    t = box.attach(job, offset=had - 5, cols=99, rows=33)
    assert t.replay == had - 5
    t.send(frame(EOF))
    t.until_out(b"33 99\r\n")
    assert t.out.startswith(b"one\r\n")
    t.send(frame(EOF))
    assert t.finish() == (CODE, 0)
    wait_for(lambda: box.jobs() == [])      # somebody saw its end


@pytest.mark.parametrize("comes_back", [True, False])
def test_hold(box, comes_back):
    """A lost connection is waited for."""
    m = mark(box.folder)
    t = box.talk(f"echo up; cat; sleep {m}", kind=PTY, hold_s=2)
    t.until_out(b"up\r\n")
    job = t.started.job
    t.close()
    if comes_back:
        time.sleep(1)
        t = box.attach(job, offset=4)
        time.sleep(2.5)
        t.send(frame(DATA, b"here\r"))
        t.until_out(b"here\r\nhere\r\n")
        t.send(frame(KILL))
        assert t.finish() == (BY_SIGNAL, 1)
    wait_for(lambda: not keepers(box.folder), 7)
    assert not marked(m)


def test_the_end_is_held_too(box):
    t = box.talk("echo up; read x; exit 6", kind=PTY, hold_s=3)
    t.until_out(b"up\r\n")
    t.send(frame(DATA, b"\r"))
    t.close()
    time.sleep(1)
    t = box.attach(t.started.job, offset=4)
    assert t.finish() == (CODE, 6)
    wait_for(lambda: not keepers(box.folder), 7)


def test_the_end_of_a_plain_command_is_held_for_seconds(box):
    """Nobody comes back for it: the keeper does not stay for as long as the command might have run."""
    t = box.talk(f"sleep 1; echo over > {box.folder}/over", hold_s=600)
    t.close()
    wait_for(lambda: (box.folder / "over").exists(), 5)
    wait_for(lambda: not keepers(box.folder), 9)


def test_a_plain_command_can_be_left(box):
    """It becomes a job that only the list knows."""
    t = box.talk("echo up; sleep 0.5; echo down; exit 2", mode="pipe")
    t.until_out(b"up\n")
    assert t.started.job == b""
    t.send(frame(DETACH))
    t.cut()
    job, = box.jobs()
    wait_for(lambda: box.jobs()[0]["state"] == "ended")
    t = box.attach(job["id"].encode(), offset=3)
    assert t.finish() == (CODE, 2) and t.out == b"down\n"


def test_cut_of_the_relay(box):
    """Whoever carries the bytes of a later client dies: the job has nobody then."""
    first, job = box.job("sleep 60")
    first.send(frame(DETACH))
    first.cut()
    mine = set(keepers(box.folder))
    t = box.attach(job)
    relay, = set(keepers(box.folder)) - mine
    assert box.jobs()[0]["attached"] is True
    os.kill(relay, 9)
    t.cut()
    wait_for(lambda: box.jobs()[0]["attached"] is False)


def test_no_place_for_a_socket(box):
    h = Helper("listen", box.folder)
    sub = box.folder / "gone"
    sub.mkdir()
    box.made.append(h)
    h2 = Helper("listen", sub)
    box.made.append(h2)
    sub.rmdir()
    t = h2.talk().greet("echo no", flags=JOB)
    fail = t.finish()
    assert (fail.stage, fail.sys) == (AT_START, ENOENT)
    assert h.talk().greet("true").finish() == (CODE, 0)


def test_strangers_at_the_socket(box):
    """The owner alone can connect, and nonsense ends nothing."""
    t, job = box.job("sleep 60")
    path = str(box.folder / f"j-{job.decode()}")
    for text in (b"", b"x" * 100, preamble() + b"\xff" * 100, preamble(), preamble() + hello(),
                 preamble() + hello() + start("id", kind=EXEC), preamble() + hello() + start(kind=3, port=1)):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            s.sendall(text)
    held = []
    for _ in range(40):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(5)
        s.connect(path)
        held.append(s)
    t.send(frame(9, b"\0" * 8))
    t.until(0x89, 5)
    for s in held:
        s.close()
    assert box.jobs()[0]["state"] == "running"
