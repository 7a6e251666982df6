"""A client of the carried helper (src/data/frame.h), written from the format
alone: over a pipe, over lines, over a WebSocket on a loopback port. It is as
honest or as hostile as a test wants it to be."""

import base64
import contextlib
import hashlib
import os
import re
import select
import socket
import struct
import subprocess
import time
from types import SimpleNamespace

import pytest

from agent import PATH, alive, wait_for
from conftest import BINARY

HELLO, START, DATA, EOF, SIGNAL, RESIZE, CREDIT, ACK, PING, DETACH, KILL = range(1, 12)
AGENT_HELLO, STARTED, OUT, ERR, AGENT_EOF, EXIT, FAIL, AGENT_CREDIT, PONG, REPLAY, NOTE = range(0x81, 0x8C)
MORE, SKIP = 1, 0x80
EXEC, PTY, FORWARD, ATTACH, JOBS, CONTROL, TAR_IN, TAR_OUT, HASHES, CHANGES = range(1, 11)
INPUT, JOB, NO_ACK, TAKE, WATCH = 1, 2, 4, 8, 16
AT_START, AT_USER, AT_CWD, AT_TTY, AT_EXEC, AT_CONNECT, AT_ATTACH = range(7)
CODE, BY_SIGNAL, TIMEOUT = range(3)
GROUP, LEADER, SESSION = range(3)
RUN = bytes(range(16))
WINDOW = 1 << 20
INPUT_WINDOW = 2 << 20      # what the helper announces


def preamble(version=1, run=RUN):
    return b"ABX1" + bytes([version, 0, 0, 0]) + run


def frame(kind, payload=b"", channel=0, flags=0):
    return struct.pack(">BBHI", kind, flags, channel, len(payload)) + payload


def hello(window=WINDOW):
    return frame(HELLO, struct.pack(">II", 0, window))


def start_payload(*argv, kind=EXEC, flags=0, env=(), cwd=b"", user=b"", cols=0, rows=0, timeout_ms=0, hold_s=0, port=0,
                  job=b"", offset=0):
    def part(tag, value):
        value = value if isinstance(value, bytes) else os.fsencode(value)
        return struct.pack(">BI", tag, len(value)) + value

    got = part(1, bytes([kind]))
    got += part(2, struct.pack(">I", flags)) if flags else b""
    got += b"".join(part(3, a) for a in argv)
    got += b"".join(part(4, e) for e in env)
    got += part(5, cwd) if cwd else b""
    got += part(6, user) if user else b""
    got += part(7, struct.pack(">HH", cols, rows)) if cols or rows else b""
    got += part(8, struct.pack(">Q", timeout_ms)) if timeout_ms else b""
    got += part(9, struct.pack(">I", hold_s)) if hold_s else b""
    got += part(10, struct.pack(">H", port)) if port else b""
    got += part(11, job) if job else b""
    got += part(12, struct.pack(">Q", offset)) if offset else b""
    return got


def start(*argv, channel=0, **more):
    payload = start_payload(*argv, **more)
    pieces = [payload[i:i + 65536] for i in range(0, len(payload), 65536)]
    return b"".join(frame(START, p, channel, MORE if i + 1 < len(pieces) else 0) for i, p in enumerate(pieces))


class Cut(Exception):
    """The other side is gone."""


class Socket:
    """Bytes as they are, to a connected socket or a pair of descriptors."""

    def __init__(self, read_fd, write_fd, close=()):
        self.read_fd, self.write_fd, self.owned = read_fd, write_fd, close

    def read(self, seconds):
        if not select.select([self.read_fd], [], [], seconds)[0]:
            return None
        with contextlib.suppress(ConnectionResetError):
            return os.read(self.read_fd, 65536)
        return b""

    def write(self, data):
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.write_fd, view):]
            except (BrokenPipeError, ConnectionResetError):
                raise Cut from None

    def close(self):
        for one in self.owned:
            one.close()
        self.owned = ()


class Lines(Socket):
    """data/armor.h, both ways."""

    def __init__(self, tag, *more):
        super().__init__(*more)
        self.tag, self.sent, self.got, self.held = tag, 0, 0, b""

    def read(self, seconds):
        more = super().read(seconds)
        if not more:
            return more
        self.held += more
        *lines, self.held = self.held.split(b"\n")
        data = b""
        for line in lines:
            if line.startswith(self.tag + b" "):
                _, seq, text = line.split(b" ")
                assert int(seq) == self.got, line[:80]
                self.got += 1
                data += base64.b64decode(text, validate=True)
        return data or None

    def write(self, data):
        for i in range(0, len(data), 48 << 10):
            super().write(b"%s %d %s\n" % (self.tag, self.sent, base64.b64encode(data[i:i + (48 << 10)])))
            self.sent += 1


class WebSocket(Socket):
    """RFC 6455, the client's side: one binary message for each write."""

    def __init__(self, sock, held=b""):
        super().__init__(sock.fileno(), sock.fileno(), [sock])
        self.held, self.closed, self.pings = held, None, []

    def read(self, seconds):
        while True:
            got = self._message()
            if got is not None:
                return got
            more = super().read(seconds)
            if not more:
                return more
            self.held += more

    def _message(self):
        data, held = b"", self.held
        while len(held) >= 2:
            n, at = held[1], 2
            assert not n & 0x80, "a server's frame is masked"
            if n >= 126:
                at = 4 if n == 126 else 10
                if len(held) < at:
                    break
                n = int.from_bytes(held[2:at], "big")
            if len(held) < at + n:
                break
            op, body, held = held[0], held[at:at + n], held[at + n:]
            assert op & 0x80 and op & 0x70 == 0, hex(op)
            if op == 0x82:
                data += body
            elif op == 0x88:
                self.closed = int.from_bytes(body[:2], "big")
            elif op == 0x89:
                self.pings.append(body)
            else:
                assert op == 0x8A, hex(op)
        self.held = held
        return data or None

    def write(self, data, op=0x82):
        n = len(data)
        mask = os.urandom(4)
        head = bytes([op, 0x80 | (n if n < 126 else 126 if n < 65536 else 127)])
        head += b"" if n < 126 else struct.pack(">H" if n < 65536 else ">Q", n)
        key = int.from_bytes((mask * (n // 4 + 1))[:n], "big")
        super().write(head + mask + (int.from_bytes(data, "big") ^ key).to_bytes(n, "big"))


class Talk:
    """An honest client, as far as nobody tells it otherwise."""

    def __init__(self, carrier, window=WINDOW, credit=True, ack=True):
        self.carrier, self.window, self.credit, self.ack = carrier, window, credit, ack
        self.out, self.err, self.frames = bytearray(), bytearray(), []
        self.held, self.began, self.taken, self.told = b"", False, 0, 0
        self.hello = self.started = self.exit = self.fail = self.replay = None
        self.input_taken, self.input_sent, self.pongs = 0, 0, 0
        self.keep = True            # what comes is kept, or only counted in `digest`
        self.digest, self.err_digest = hashlib.sha256(), hashlib.sha256()
        self.last_ping = time.monotonic()

    def send(self, data):
        self.carrier.write(data)

    def greet(self, *argv, **more):
        self.send(preamble() + hello(self.window) + start(*argv, **more))
        return self

    def write(self, data):
        """All of it, as the window allows."""
        view = memoryview(data)
        while view:
            n = min(len(view), INPUT_WINDOW - (self.input_sent - self.input_taken), 65536)
            if n <= 0:
                self.next(20)
                continue
            self.send(frame(DATA, bytes(view[:n])))
            self.input_sent += n
            view = view[n:]
            if self.input_sent % (1 << 19) < 65536:
                self.next(0)

    def _frame(self):
        if not self.began:
            if len(self.held) < 24:
                return None
            assert self.held[:24] == preamble(), self.held[:24]
            self.held, self.began = self.held[24:], True
        if len(self.held) < 8:
            return None
        kind, flags, channel, n = struct.unpack(">BBHI", self.held[:8])
        assert n <= 65536 and flags == 0, self.held[:8]
        if len(self.held) < 8 + n:
            return None
        payload, self.held = self.held[8:8 + n], self.held[8 + n:]
        return kind, channel, payload

    def next(self, seconds=20):
        """The next frame, looked at; None: nothing came in that time."""
        end = time.monotonic() + seconds
        while not (got := self._frame()):
            if time.monotonic() - self.last_ping > 5:
                self.last_ping = time.monotonic()
                self.send(frame(PING, struct.pack(">Q", 7)))
            more = self.carrier.read(min(1, max(0, end - time.monotonic())))
            if more == b"":
                raise Cut
            if more:
                self.held += more
            elif time.monotonic() >= end:
                return None
        self._look(*got)
        return got

    def _look(self, kind, channel, payload):
        assert self.exit is None and self.fail is None or kind == PONG, "something follows the end"
        if kind in (OUT, ERR):
            assert payload
            digest, kept = (self.digest, self.out) if kind == OUT else (self.err_digest, self.err)
            digest.update(payload)
            if self.keep:
                kept += payload
            self.taken += len(payload)
            assert self.taken - self.told <= self.window, "the window was passed"
            if self.credit and self.taken - self.told >= self.window // 4:
                self.told = self.taken
                self.send(frame(CREDIT, struct.pack(">Q", self.taken)))
            return
        self.frames.append((kind, payload))
        if kind == AGENT_HELLO:
            v = struct.unpack(">IIII", payload[:16])
            self.hello = SimpleNamespace(features=v[0], window=v[1], pid=v[2], uid=v[3], text=payload[16:])
        elif kind == STARTED:
            self.started = SimpleNamespace(pid=struct.unpack(">I", payload[:4])[0], job=payload[4:])
        elif kind == EXIT:
            self.exit = SimpleNamespace(**dict(zip(("how", "number", "out", "err"), struct.unpack(">BIQQ", payload))))
        elif kind == FAIL:
            stage, sys = struct.unpack(">BI", payload[:5])
            self.fail = SimpleNamespace(stage=stage, sys=sys, text=payload[5:].decode())
        elif kind == AGENT_CREDIT:
            self.input_taken, = struct.unpack(">Q", payload)
        elif kind == REPLAY:
            self.replay, = struct.unpack(">Q", payload)
        elif kind == PONG:
            self.pongs += 1
        if kind in (EXIT, FAIL) and self.ack:
            with contextlib.suppress(Cut):
                self.send(frame(ACK))

    def until(self, kind, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            got = self.next(end - time.monotonic())
            if got and got[0] == kind:
                return got[2]
        raise AssertionError(f"no frame {kind:#x} in {seconds} s")

    def until_out(self, text, seconds=20):
        end = time.monotonic() + seconds
        while text not in self.out:
            assert time.monotonic() < end, bytes(self.out[-500:])
            self.next(end - time.monotonic())

    def finish(self, seconds=30):
        """To the end: (how, number), or the FAIL."""
        end = time.monotonic() + seconds
        while self.exit is None and self.fail is None:
            assert time.monotonic() < end, "no end came"
            self.next(end - time.monotonic())
        if self.fail:
            return self.fail
        if self.keep and self.replay is None:
            assert (self.exit.out, self.exit.err) == (len(self.out), len(self.err))
        return self.exit.how, self.exit.number

    def cut(self, seconds=20):
        """The other side ends it; what came before is looked at."""
        end = time.monotonic() + seconds
        with contextlib.suppress(Cut):
            while time.monotonic() < end:
                self.next(end - time.monotonic())
            raise AssertionError("the link was not cut")
        return self

    def close(self):
        self.carrier.close()


def environment(folder, extra=None):
    return {"PATH": PATH, "HOME": str(folder), "OLDPWD": str(folder), "PWD": "/", **(extra or {})}


class Helper:
    """One `abx agent MODE`, started as the shell line in a sandbox starts it:
    `folder` is its own, and where commands begin unless `cwd` says otherwise."""

    def __init__(self, mode, folder, first=b"", env=None, cwd=None, stdin=None, program=BINARY, **more):
        self.mode, self.folder, self.token = mode, folder, os.urandom(16).hex()
        full = environment(folder, {"OLDPWD": str(cwd or folder), **(env or {})})
        if mode == "listen":
            full["ABX_AGENT_TOKEN"] = self.token
        if mode == "lines":
            full["ABX_AGENT_TAG"] = self.token
        if first:
            full["ABX_AGENT_INPUT"] = first if isinstance(first, str) else base64.b64encode(first).decode()
        piped = mode != "listen" and stdin is None
        self.process = subprocess.Popen([program, "agent", mode], cwd=folder, env=full,
                                        stdin=subprocess.PIPE if piped else stdin or subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, **more)
        if mode == "listen":
            line = self.process.stdout.read()           # to its end: nobody holds it any more
            assert self.process.wait(10) == 0 and self.process.stderr.read() == b""
            self.port = int(re.fullmatch(rb"ABX1 port (\d+)\n", line)[1])

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def upgrade(self, sock, token=None, more=b"", behind=b""):
        key = base64.b64encode(os.urandom(16))
        sock.sendall(b"GET /%s HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n%s\r\n%s"
                     % ((token or self.token).encode(), key, more, behind))
        head = b""
        while b"\r\n\r\n" not in head:
            got = sock.recv(4096)
            if not got:
                return head, None
            head += got
        head, _, held = head.partition(b"\r\n\r\n")
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        assert b"Sec-WebSocket-Accept: " + accept in head or b" 101 " not in head, head
        return head, held

    def talk(self, **more):
        if self.mode == "listen":
            sock = self.connect()
            head, held = self.upgrade(sock)
            assert head.startswith(b"HTTP/1.1 101 "), head
            sock.setblocking(True)
            return Talk(WebSocket(sock, held), **more)
        p = self.process
        own = [one for one in (p.stdin, p.stdout) if one]
        fds = p.stdout.fileno(), p.stdin.fileno() if p.stdin else -1, own
        return Talk(Lines(self.token.encode(), *fds) if self.mode == "lines" else Socket(*fds), **more)

    def ended(self, seconds=10):
        """The front is gone."""
        return self.process.wait(seconds)

    def close(self):
        """Whatever is left of it."""
        for one in (self.process.stdin, self.process.stdout, self.process.stderr):
            if one:
                one.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)


def run(folder, *argv, mode="pipe", data=None, seconds=30, helper=None, **more):
    """One command from its start to its end: the Talk."""
    h = Helper(mode, folder, **(helper or {}))
    try:
        t = h.talk()
        flags = more.pop("flags", 0) | (INPUT if data is not None else 0)
        t.greet(*argv, flags=flags, **more)
        if data is not None:
            t.write(data)
            t.send(frame(EOF))
        t.result = t.finish(seconds)
        if mode != "listen":
            assert h.ended() == 0
        t.close()
        return t
    finally:
        h.close()


# --- what runs on this machine ---

def keepers(folder):
    """The processes of helpers in this folder."""
    return [pid for pid in processes() if cwd_of(pid) == str(folder) and b"\0agent\0" in command_of(pid)]


def processes():
    return [int(p) for p in os.listdir("/proc") if p.isdigit()]


def cwd_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return None


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read()
    except OSError:
        return b""


def marked(mark):
    """Live processes with this word in their command line."""
    found = []
    for pid in processes():
        with contextlib.suppress(OSError):      # it may end meanwhile
            if mark.encode() in command_of(pid) and alive(pid) and pid != os.getpid():
                found.append(pid)
    return found


def mark(tmp_path):
    """A number of seconds that is nobody else's."""
    return f"3{os.getpid() % 10000:04}.{abs(hash(str(tmp_path))) % 100000:05}"


# --- for the tests ---

@pytest.fixture
def helper(tmp_path):
    """Makes helpers, and looks that none is left."""
    made = []

    def make(mode="listen", **more):
        made.append(Helper(mode, tmp_path, **more))
        return made[-1]

    yield make
    for h in made:
        h.close()
    wait_for(lambda: not keepers(tmp_path), 20)
