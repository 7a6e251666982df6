"""Jobs and lost connections, through the carried agent: what goes on without a
client, what becomes of a command whose link is cut, and what stays behind."""

import json
import re
import socket
import subprocess
import threading
import time

import pytest

import scripted
from live import both, daemon      # noqa: F401

QUIET = {"input": None, "stdin": subprocess.DEVNULL}


@pytest.fixture
def box(both):
    """The sandbox, empty of jobs and of what was carried, before and after."""
    assert both("agent", "remove", "--force", "box").status == 0
    yield both
    assert both("agent", "remove", "--force", "box").status == 0
    assert both.inside("ls -A /tmp") == ""


def detach(box, *words):
    ran = box.exec("-d", *words, **QUIET)
    assert ran.status == 0 and re.fullmatch(rb"[0-9a-f]{16}\n", ran.out), ran
    return ran.out.decode().strip()


def jobs(box):
    ran = box("--json", "job", "list", "box")
    assert ran.status == 0, ran
    return {j["job"]: j for j in json.loads(ran.out)}


def test_a_job_from_its_start_to_its_end(box):
    began = time.monotonic()
    job = detach(box, "sh", "-c", "printf out; printf err >&2; sleep 1.5; printf '\\0\\377'; exit 4")
    assert time.monotonic() - began < 1.4
    listed = jobs(box)[job]
    assert listed["state"] == "running" and listed["tty"] is False and int(listed["pid"]) > 1
    assert listed["command"].startswith("sh -c printf out;")
    assert box("job", "wait", "box", job).status == 4
    for _ in range(2):
        ran = box("job", "logs", "box", job)
        assert (ran.status, ran.out, ran.err) == (0, b"out\0\xff", b"err")
    listed = jobs(box)[job]
    assert (listed["state"], listed["exit_code"], listed["printed"]) == ("ended", 4, 8)
    assert "pid" not in listed and listed["ended_at"] >= listed["started_at"]
    assert box("job", "rm", "box", job).status == 0
    assert jobs(box) == {}
    for verb in ("logs", "wait", "rm", "kill"):
        ran = box("job", verb, "box", job)
        assert ran.status != 0 and b"there is no job " + job.encode() in ran.err


def test_how_jobs_end(box):
    made = {detach(box, "sh", "-c", line): want for line, want in (
        ("exit 0", {"exit_code": 0}), ("exit 255", {"exit_code": 255}), ("kill -9 $$", {"signal": 9}))}
    slow = detach(box, "--timeout", "1s", "--", "sleep", "60")
    made[slow] = {"timed_out": True}
    end = time.monotonic() + 10
    while any(j["state"] == "running" for j in jobs(box).values()) and time.monotonic() < end:
        time.sleep(0.1)
    for job, want in made.items():
        assert want.items() <= jobs(box)[job].items()
    assert box("job", "wait", "box", slow).status == 124


def test_signals_to_a_job(box):
    job = detach(box, "sh", "-c", "trap 'echo usr; exit 7' USR1; echo ready; while :; do sleep 0.1; done")
    end = time.monotonic() + 5
    while box("job", "logs", "box", job).out != b"ready\n" and time.monotonic() < end:
        time.sleep(0.05)
    assert box("job", "kill", "-s", "USR1", "box", job).status == 0
    assert box("job", "wait", "box", job).status == 7
    assert box("job", "logs", "box", job).out == b"ready\nusr\n"
    ran = box("job", "kill", "box", job)
    assert ran.status == 4 and b"has ended" in ran.err


def test_too_many_look_on(box):
    job = detach(box, "sh", "-c", "echo up; exec sleep 60")
    lookers = [box.start("job", "logs", "-f", "box", job, stdin=subprocess.DEVNULL) for _ in range(8)]
    assert [p.stdout.read(3) for p in lookers] == [b"up\n"] * 8
    ran = box("job", "logs", "box", job)
    assert ran.status == 1 and b"[E8003] too many look on at job" in ran.err, ran
    assert box("job", "kill", "box", job).status == 0
    assert [p.wait(10) for p in lookers] == [0] * 8


def test_what_is_gone_of_a_long_output(box):
    """The agent keeps the last MiB, and says where that begins."""
    job = detach(box, "sh", "-c", "seq 1 400000")
    assert box("job", "wait", "box", job).status == 0
    whole = b"".join(b"%d\n" % i for i in range(1, 400001))
    listed = jobs(box)[job]
    assert listed["printed"] == len(whole)
    assert listed["kept_from"] >= len(whole) - (1 << 20)
    ran = box("job", "logs", "box", job)
    assert ran.out == whole[listed["kept_from"]:]


def test_taking_the_agent_away(box):
    job = detach(box, "sleep", "60")
    ran = box("agent", "remove", "box")
    assert ran.status == 1 and b"[E8003]" in ran.err
    assert box.inside("ls /tmp/.abx-*").count("abx-") >= 1
    assert jobs(box)[job]["state"] == "running"
    assert box("agent", "remove", "--force", "box").out == b"removed\n"
    assert box("agent", "remove", "box").out == b"nothing was there\n"
    # An upload made it, that came when the folder had just gone.
    box.inside("mkdir -m 755 /tmp/.abx-$(id -u) && touch /tmp/.abx-$(id -u)/0123456789abcdef")
    assert box("agent", "remove", "box").out == b"removed\n"
    # What is not as it should be is not touched.
    box.inside("mkdir -m 755 /tmp/.abx-0123456789abcdef && touch /tmp/.abx-0123456789abcdef/mine")
    box("agent", "remove", "box")
    assert "mine" in box.inside("ls /tmp/.abx-0123456789abcdef; rm -r /tmp/.abx-0123456789abcdef")


def test_a_list_that_is_not_whole_says_so(box):
    job = detach(box, "sleep", "60")
    box.inside("cd /tmp/.abx-*; for i in $(seq 1100); do echo > j-$i; done")
    ran = box("job", "list", "box")
    assert ran.status == 0 and b"there may be more jobs" in ran.err, ran
    box.inside("cd /tmp/.abx-*; rm -f j-?? j-??? j-???? j-?")
    ran = box("job", "list", "box")
    assert job.encode() in ran.out and ran.err == b"", ran


def test_attaching_without_a_terminal(box):
    ran = box("job", "attach", "box", "0" * 16, **QUIET)
    assert ran.status == 2 and b"[E8002]" in ran.err and b"`abx job logs` shows" in ran.err and b"abx exec" not in ran.err, ran


# --- a connection that is lost ---


class Relay:
    """Between the program and the daemon: can be cut, and can fall silent."""

    def __init__(self, port):
        self.port, self.pairs = port, []
        self.flows = threading.Event()
        self.flows.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.port))
            self.pairs.append((near, far))
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(a, b), daemon=True).start()

    def _pump(self, a, b):
        try:
            while data := a.recv(65536):
                self.flows.wait()
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        for near, far in self.pairs:
            for s in (near, far):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


@pytest.fixture
def relay(box):
    made = Relay(box.server.daemon.port)
    there = {"endpoint": f"127.0.0.1:{made.listener.getsockname()[1]}"}
    box.server.script = lambda request, answer: [scripted.answer(200, there) if "/endpoints/" in request.path else answer]
    yield made
    box.server.script = None
    made.listener.shutdown(socket.SHUT_RDWR)        # or the thread waits on
    made.listener.close()


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_cut_link_is_an_unknown_result(box, relay, form):
    process = box.begin("sh", "-c", "echo ready; exec sleep 61.25", form=form, stdin=subprocess.DEVNULL)
    if not form:
        assert process.stdout.readline() == b"ready\n"
    else:
        end = time.monotonic() + 5
        while not box.runs("61.25") and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.3)
    relay.cut()
    out, err = process.communicate(timeout=10)
    assert process.returncode == (1 if form else 125)
    assert b"E5000" in err and b"the command's result is unknown" in err
    assert box.gone("61.25", 6)


def test_silence_is_an_unknown_result(box, relay):
    process = box.begin("sh", "-c", "echo ready; exec sleep 62.25", stdin=subprocess.DEVNULL)
    assert process.stdout.readline() == b"ready\n"
    relay.flows.clear()
    began = time.monotonic()
    out, err = process.communicate(timeout=40)
    assert process.returncode == 125 and b"has fallen silent" in err
    assert 17 < time.monotonic() - began < 30
    relay.flows.set()
    assert box.gone("62.25", 30)


def test_a_job_survives_its_link(box, relay):
    job = detach(box, "sh", "-c", "echo a; sleep 1; echo b; exit 5")
    relay.cut()
    assert box("job", "wait", "box", job).status == 5
    assert box("job", "logs", "box", job).out == b"a\nb\n"


def test_without_the_agent_it_is_said(both):
    """--agent never is quiet; what cannot be carried is said once, and why."""
    ran = both("--agent", "never", "exec", "box", "--", "echo", "x", **QUIET)
    assert (ran.status, ran.out, ran.err) == (0, b"x\n", b"")
    ran = both("--agent", "never", "job", "list", "box")
    assert ran.status == 1 and b"[E8004] jobs are the agent's" in ran.err
