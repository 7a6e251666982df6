"""A terminal with abx in it, and a way to the sandbox that can be cut.

`Terminal` is what a person sits at: a pseudo-terminal whose session leader, as
a shell does, starts abx in a process group of its own and waits for it. What
is printed is read all the time, so nothing here blocks.

`Wire` carries TCP connections to a port, until it is told not to."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

from conftest import BINARY

# The session leader: prints the number of its child, and each change of it.
SHELL = """
import os, signal, sys
terminal, told = int(sys.argv[1]), int(sys.argv[2])
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(terminal, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.close(terminal), os.close(told)
    os.execvp(sys.argv[3], sys.argv[3:])
os.write(told, b"%d\\n" % child)
while True:
    _, status = os.waitpid(child, os.WUNTRACED)
    os.write(told, b"%d\\n" % status)
    if not os.WIFSTOPPED(status):
        break
"""


class Terminal:
    def __init__(self, program, *words, rows=40, cols=120, env=None, stdin=None, stdout=None, stderr=None, wrap=()):
        """`wrap`: a program in front, such as strace."""
        self.leader, self.follower = pty.openpty()
        self.resize(rows, cols, tell=False)
        self.before = termios.tcgetattr(self.follower)
        self.told, told = os.pipe()
        self.seen, self.notes = b"", b""
        fds = [self.follower if fd is None else fd for fd in (stdin, stdout, stderr)]
        follower = self.follower

        def child():
            fcntl.ioctl(follower, termios.TIOCSCTTY, 0)
            os.set_inheritable(follower, True), os.set_inheritable(told, True)

        self.shell = subprocess.Popen([sys.executable, "-SE", "-c", SHELL, str(follower), str(told), *wrap, BINARY, *words], stdin=fds[0], stdout=fds[1],
                                      stderr=fds[2], env=program.environment({"TERM": "vt220", **(env or {})}),
                                      cwd=program.cwd, start_new_session=True, preexec_fn=child, close_fds=False)
        os.close(told)
        self.pid = int(self._line())
        self.status = None

    def _line(self, seconds=30):
        line, end = b"", time.monotonic() + seconds
        while not line.endswith(b"\n"):
            self.read(0)
            if select.select([self.told], [], [], 0.01)[0]:
                more = os.read(self.told, 1)
                assert more, "the terminal's shell ended"
                line += more
            assert time.monotonic() < end, (line, self.seen[-2000:])
        return line

    def resize(self, rows, cols, tell=True):
        fcntl.ioctl(self.leader, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def read(self, seconds):
        """What is printed within that time, onto `seen`."""
        while select.select([self.leader], [], [], seconds)[0]:
            try:
                more = os.read(self.leader, 65536)
            except OSError:
                return
            if not more:
                return
            self.seen += more
            seconds = 0

    def type(self, text):
        text = text if isinstance(text, bytes) else text.encode()
        while text:
            self.read(0)
            if select.select([], [self.leader], [], 0.05)[1]:
                text = text[os.write(self.leader, text[:512]):]

    def expect(self, what, seconds=20):
        """Waits for it; what came before is forgotten. The match."""
        pattern = re.compile(what if isinstance(what, bytes) else what.encode(), re.S)
        end = time.monotonic() + seconds
        while not (found := pattern.search(self.seen)):
            assert time.monotonic() < end, (what, self.seen[-3000:])
            self.read(0.05)
        self.seen = self.seen[found.end():]
        return found

    def ask(self, line, what, seconds=20):
        """A line for the shell there. Its echo is not to be taken for the answer,
        so the pattern should not match the line."""
        self.type(line + "\r")
        return self.expect(what, seconds)

    def prompt(self):
        """The shell there listens."""
        self.ask("echo rea''dy", "ready\r?\n")

    def mode(self):
        return termios.tcgetattr(self.leader)

    def raw(self):
        return not self.mode()[3] & (termios.ICANON | termios.ECHO | termios.ISIG)

    def wait_raw(self, raw=True, seconds=10):
        end = time.monotonic() + seconds
        while self.raw() != raw:
            assert time.monotonic() < end, (self.mode(), self.seen)
            self.read(0.02)

    def restored(self):
        return self.mode()[:6] == self.before[:6] and self.mode()[6] == self.before[6]

    def kill(self, signo):
        os.kill(self.pid, signo)

    def stopped(self):
        """It was stopped by this signal."""
        status = int(self._line())
        assert os.WIFSTOPPED(status), status
        return os.WSTOPSIG(status)

    def wait(self, seconds=30):
        """The exit status, as a shell shows it."""
        if self.status is None:
            status = int(self._line(seconds))
            assert not os.WIFSTOPPED(status), status
            self.status = os.waitstatus_to_exitcode(status)
            self.read(0)
        return 128 - self.status if self.status < 0 else self.status

    def ended(self, status, seconds=30):
        """It ended so, and the terminal is as it was."""
        assert self.wait(seconds) == status, (self.status, self.seen[-3000:])
        assert self.restored(), (self.mode(), self.before)

    def hang_up(self):
        """As a window that is closed: what runs there ends, too."""
        if self.status is None:
            with contextlib.suppress(ProcessLookupError, AssertionError):
                self.kill(signal.SIGHUP)
                self.wait(10)
        self.close()

    def close(self):
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            self.shell.kill()
        self.shell.wait()
        # Once: a number that was closed is soon another's, a server's or a pipe's.
        fds, self.leader, self.follower, self.told = {self.leader, self.follower, self.told} - {-1}, -1, -1, -1
        for fd in fds:
            os.close(fd)


class Wire:
    def __init__(self, port):
        self.to, self.up = port, True
        self.lock = threading.Lock()
        self.pairs = set()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                assert self.up
                far = socket.create_connection(("127.0.0.1", self.to))
            except (OSError, AssertionError):
                near.close()
                continue
            for s in (near, far):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.pairs.add((near, far))
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()
            threading.Thread(target=self._carry, args=(far, near), daemon=True).start()

    @staticmethod
    def _carry(a, b):
        with contextlib.suppress(OSError):
            while data := a.recv(65536):
                b.sendall(data)
        for s in (a, b):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def cut(self, stay=False):
        """All connections end; with `stay` no new one is let through, either."""
        self.up = not stay
        with self.lock:
            pairs, self.pairs = self.pairs, set()
        for pair in pairs:
            for s in pair:
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)

    def mend(self):
        self.up = True

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()
        self.cut()
