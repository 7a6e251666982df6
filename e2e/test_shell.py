"""abx shell at a real terminal, on every combination."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from program import binary


class Screen:
    """abx at the slave of a pseudo-terminal, as its controlling terminal."""

    def __init__(self, abx, *words, cols=93, rows=31, env=None):
        self.master, slave = pty.openpty()
        self.size(cols, rows)
        self.before = termios.tcgetattr(slave)
        self.got = b""
        self.slave = slave

        def lead():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.child = subprocess.Popen([binary(), *words], env=dict(abx.env, TERM="xterm-256color", **(env or {})), cwd=abx.home,
                                      stdin=slave, stdout=slave, stderr=slave, preexec_fn=lead)

    def size(self, cols, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text):
        os.write(self.master, text)

    def sees(self, pattern, seconds=15):
        """Waits for it, and forgets what came up to its end."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.got)):
            assert time.monotonic() < end, (pattern, self.got)
            if select.select([self.master], [], [], 0.2)[0]:
                self.got += os.read(self.master, 65536)
        self.got = self.got[found.end():]
        return found

    def ends(self, seconds=15):
        end = time.monotonic() + seconds
        while self.child.poll() is None:
            assert time.monotonic() < end, self.got
            if select.select([self.master], [], [], 0.1)[0]:
                self.got += os.read(self.master, 65536)
        return self.child.returncode

    def restored(self):
        return termios.tcgetattr(self.slave) == self.before

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def at(request):
    made = []

    def make(*words, **kw):
        made.append(Screen(*words, **kw))
        return made[-1]

    yield make
    for s in made:
        s.close()


@pytest.fixture(autouse=True)
def form(request, monkeypatch):
    from program import Abx
    if "through" in request.fixturenames:
        plugin = request.getfixturevalue("through") == "plugin"
        monkeypatch.setattr(Abx, "store", request.getfixturevalue("exported") if plugin else None)


@pytest.mark.halved
def test_session(through, box, at):
    """Size at the start and later, TERM, Ctrl-C, exit code; raw mode meanwhile, and what was before in the end."""
    s = at(box.abx, "shell", box.id)
    s.type(b"stty size; echo TERM=$TERM\n")
    s.sees(rb"31 93\r\n")
    s.sees(rb"TERM=xterm-256color\r\n")
    assert not s.restored()
    s.size(120, 40)
    s.child.send_signal(signal.SIGWINCH)
    for _ in range(20):
        s.type(b"stty size\n")
        if s.sees(rb"(\d+ \d+)\r\n")[1] == b"40 120":
            break
        time.sleep(0.1)
    else:
        pytest.fail("the size did not arrive")
    s.type(b"sleep 300; echo after=$?\n")
    s.sees(rb"\$\?\r\n")
    time.sleep(0.3)
    s.type(b"\x03")
    s.type(b"echo alive=$((6*7))\n")
    s.sees(rb"alive=42\r\n")
    s.type(b"exit 7\n")
    assert s.ends() == 7 and s.restored()


@pytest.mark.halved
def test_command_in_a_terminal(through, box, at):
    s = at(box.abx, "exec", "-t", "-i", box.id, "test -t 0 && test -t 1 && test -t 2 && read x && echo got=$x; exit 4")
    s.type(b"word\n")
    s.sees(rb"got=word\r\n")
    assert s.ends() == 4 and s.restored()


@pytest.mark.paired
def test_detach_and_come_back(box, at):
    s = at(box.abx, "shell", box.id)
    s.type(b"echo before=$((40+2))\n")
    s.sees(rb"before=42\r\n")
    s.type(b"\x10\x11")
    assert s.ends() == 0 and s.restored()
    job = re.search(rb"job attach \S+ (\S+)", s.got)
    jobs = box.abx("--json", "job", "list", box.id).json()
    name = job[1].decode().strip("'`\".") if job else (jobs["jobs"] if isinstance(jobs, dict) else jobs)[-1]["job"]
    t = at(box.abx, "job", "attach", box.id, name)
    t.type(b"echo again=$((50+2))\n")
    t.sees(rb"again=52\r\n")
    t.type(b"exit 9\n")
    assert t.ends() == 9 and t.restored()


@pytest.mark.paired
def test_signal_to_abx(box, at):
    """Ended from outside: the terminal gets its mode back, and nothing is left there."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        mark = f"7{time.monotonic_ns() % 10**9:09d}"
        s = at(box.abx, "shell", box.id)
        s.type(f"sleep {mark}\n".encode())
        s.sees(rb"sleep \d+\r\n")
        end = time.monotonic() + 5
        while not box.running(mark):
            assert time.monotonic() < end
        s.child.send_signal(number)
        assert s.ends() == 128 + number and s.restored()
        assert box.running(mark) == 0


def test_sandbox_that_dies(daemon, own, servers, tmp_path, at):
    """The terminal is given back, and the end is not taken for a success. (abx tries for a minute to connect again,
    but a sandbox that is not there is told at once.)"""
    from program import Abx
    sandbox = own(daemon, "busybox")
    s = at(Abx(tmp_path, servers[daemon]), "shell", sandbox)
    s.type(b"echo up=$((1+1))\n")
    s.sees(rb"up=2\r\n")
    servers[daemon].kill(sandbox)
    assert s.ends(80) not in (0, None) and s.restored()
