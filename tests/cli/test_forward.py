"""abx port-forward: bytes, ends and failures, through our own daemon; the
sandbox is this machine."""

import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import struct
import threading
import time

import pytest

from conftest import Program
from frames import (AGENT_EOF, AT_CONNECT, CREDIT, DATA, EOF, FAIL, FORWARD, KILL, OUT, STARTED, AGENT_CREDIT, Cut,
                    Helper, frame, hello, preamble, start)
from test_serve import daemon, server

WINDOW = 256 << 10


class Service:
    """A port in the sandbox; `each` is given every connection, in a thread of its own."""

    def __init__(self, each, family=socket.AF_INET, backlog=5):
        self.each = each
        self.listener = socket.socket(family)
        self.listener.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
        self.listener.listen(backlog)
        self.port = self.listener.getsockname()[1]
        self.open = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                self.open.append(sock)
                threading.Thread(target=self._one, args=(sock,), daemon=True).start()

    def _one(self, sock):
        with contextlib.suppress(OSError):
            self.each(sock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)        # or the thread waits on
        self.listener.close()
        for sock in self.open:
            sock.close()


def echo(sock):
    while got := sock.recv(65536):
        sock.sendall(got)
    sock.close()


def after_the_end(sock):
    """Answers when all of the question is there."""
    digest = hashlib.sha256()
    while got := sock.recv(65536):
        digest.update(got)
    sock.sendall(digest.hexdigest().encode())
    sock.close()


class Forward:
    def __init__(self, osb, *words, options=()):
        self.process = osb.start("--json", *options, "port-forward", "box-1", *words)
        lines = [json.loads(self.process.stdout.readline() or "{}") for _ in words]
        self.ports = [int(re.fullmatch(r"127\.0\.0\.1:(\d+)", line["local"])[1]) for line in lines]
        self.remotes = [line["remote"] for line in lines]

    def connect(self, i=0, host="127.0.0.1"):
        return socket.create_connection((host, self.ports[i]), timeout=20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.out, self.err = self.process.communicate(timeout=10)
        assert self.process.returncode == 130, (self.process.returncode, self.err)


def rest(sock):
    data = b""
    while got := sock.recv(65536):
        data += got
    return data


def test_both_ways_at_once_byte_for_byte(osb):
    data = os.urandom(50 << 20)
    with Service(echo) as service, Forward(osb, f"0:{service.port}") as f, f.connect() as sock:
        def send():
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        threading.Thread(target=send, daemon=True).start()
        got = hashlib.sha256()
        while piece := sock.recv(1 << 20):
            got.update(piece)
        assert got.digest() == hashlib.sha256(data).digest()
    assert f.remotes == [service.port] and f.out == b""


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, WINDOW, WINDOW + 1, 3 << 20])
def test_an_end_goes_through_by_itself(osb, size):
    data = os.urandom(size)
    with Service(after_the_end) as service, Forward(osb, f"0:{service.port}") as f, f.connect() as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        assert rest(sock) == hashlib.sha256(data).hexdigest().encode()


def test_the_service_ends_first_and_still_hears(osb):
    heard, done = [], threading.Event()

    def each(sock):
        sock.sendall(b"bye")
        sock.shutdown(socket.SHUT_WR)
        heard.append(rest(sock))
        done.set()

    with Service(each) as service, Forward(osb, f"0:{service.port}") as f, f.connect() as sock:
        assert rest(sock) == b"bye"
        sock.sendall(b"late words")
        sock.shutdown(socket.SHUT_WR)
        assert done.wait(10)
    assert heard == [b"late words"]


def test_a_hundred_at_once_to_a_backlog_of_five(osb):
    with Service(after_the_end) as service, Forward(osb, f"0:{service.port}") as f:
        socks = [f.connect() for _ in range(100)]
        for i, sock in enumerate(socks):
            sock.sendall(b"%d" % i * 1000)
            sock.shutdown(socket.SHUT_WR)
        for i, sock in enumerate(socks):
            assert rest(sock) == hashlib.sha256(b"%d" % i * 1000).hexdigest().encode()
            sock.close()


def test_several_ports_ipv6_and_a_service_on_ipv6_alone(osb):
    with Service(echo) as one, Service(echo, socket.AF_INET6) as two, Forward(osb, f"0:{one.port}", f":{two.port}") as f:
        for i, host in ((0, "127.0.0.1"), (0, "::1"), (1, "127.0.0.1"), (1, "::1")):
            with f.connect(i, host) as sock:
                sock.sendall(b"hello")
                assert sock.recv(10) == b"hello"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


def test_nobody_listens_there(osb):
    port = free_port()
    with Forward(osb, f"0:{port}") as f:
        for _ in range(2):
            with contextlib.suppress(ConnectionResetError), f.connect() as sock:
                assert sock.recv(1) == b""
    assert f.err.count(f"abx: port {port} in the sandbox: Connection refused".encode()) == 2


def test_a_taken_port_fails_at_once_and_nothing_listens(osb, server):
    other = free_port()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = osb("--json", "port-forward", "box-1", f"{other}:80", f"{port}:80")
    ran.failed_well(True)
    assert ran.error["code"] == "E5000" and f"port {port}" in ran.error["message"]
    assert not any("command" in r.target for r in server.requests)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", other))


@pytest.mark.parametrize("word", ["x", "0", "1:0", "65536", "1:65536", "1:2:3:x", ":", "80:", "-1:80", "[]:1:2", "::80:80:"])
def test_words_that_make_no_sense(osb, server, word):
    ran = osb("port-forward", "box-1", "--", word)
    assert ran.status == 2 and b"[E8002]" in ran.err, ran
    assert not server.requests


def test_a_sandbox_that_is_not_there(osb):
    ran = osb("--json", "port-forward", "box-2", f"{free_port()}:80")
    ran.failed_well(True)
    assert ran.error["code"] == "E2009"


def test_without_the_agent_it_is_refused(osb):
    ran = osb("--json", "--agent", "never", "port-forward", "box-1", f"{free_port()}:80")
    ran.failed_well(True)
    assert ran.error["code"] == "E8004"


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


@pytest.mark.parametrize("side", ["client", "service"])
def test_a_reset_goes_through_and_the_others_go_on(osb, side):
    seen, done = [], threading.Event()

    def each(sock):
        if sock.recv(5) == b"reset":
            if side == "service":
                reset(sock)
                return
            try:
                seen.append(sock.recv(1))
            except ConnectionResetError:
                seen.append("reset")
            done.set()
        else:
            echo(sock)

    with Service(each) as service, Forward(osb, f"0:{service.port}") as f, f.connect() as good, f.connect() as bad:
        good.sendall(b"12345")
        bad.sendall(b"reset")
        if side == "client":
            time.sleep(0.2)
            reset(bad)
            assert done.wait(10) and seen == ["reset"]
        else:
            with pytest.raises(ConnectionResetError):
                bad.recv(1)
        good.sendall(b"678")
        assert good.recv(3) == b"678"


def test_a_reader_that_stops_holds_up_nobody_and_fills_nothing(osb):
    sent = [0]

    def each(sock):
        if sock.recv(4) == b"pour":
            while True:
                sent[0] += sock.send(bytes(65536))
        echo(sock)

    with Service(each) as service, Forward(osb, f"0:{service.port}") as f, f.connect() as stopped, f.connect() as good:
        stopped.sendall(b"pour")
        time.sleep(1)
        good.sendall(b"good")
        for _ in range(100):
            good.sendall(bytes(5000))
            left = 5000
            while left:
                left -= len(good.recv(left))
        with open(f"/proc/{f.process.pid}/status") as status:
            peak = int(re.search(r"VmHWM:\s+(\d+)", status.read())[1])
    assert 0 < sent[0] < 32 << 20       # sockets' buffers, and a window
    assert peak < 8 << 10


def keepers(daemon):
    """The helpers that this daemon started, by their pids."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as line, \
                open(f"/proc/{pid}/environ", "rb") as env:
            if b"\0agent\0listen\0" in line.read() and str(daemon.folder).encode() in env.read():
                found.add(int(pid))
    return found


def test_a_lost_link_is_made_anew(osb, daemon):
    before = keepers(daemon)
    with Service(echo) as service, Forward(osb, f"0:{service.port}") as f, f.connect() as sock:
        sock.sendall(b"x")
        assert sock.recv(1) == b"x"
        mine, = keepers(daemon) - before
        os.kill(mine, signal.SIGKILL)
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
        with f.connect() as again:      # waits for the new one
            again.sendall(b"y")
            assert again.recv(1) == b"y"
    assert b"connecting again" in f.err


def test_a_port_that_is_forwarded_to_itself_has_an_end(osb):
    port = free_port()
    with Forward(osb, f"{port}:{port}") as f, f.connect():
        assert b"more wait for one to end" in f.process.stderr.readline()
        time.sleep(0.5)
        assert len(os.listdir(f"/proc/{f.process.pid}/fd")) < 1024


# --- the agent's side alone ---


@pytest.fixture
def talk(tmp_path):
    helper = Helper("pipe", tmp_path)
    made = helper.talk()
    made.send(preamble() + hello())
    yield made
    helper.close()


def opened(t, port, channel=1):
    t.send(start(channel=channel, kind=FORWARD, port=port))
    return about(t, channel)


def about(t, channel, seconds=10):
    """The next frame on this channel: type and payload."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = t.next(end - time.monotonic())
        if got and got[1] == channel:
            t.fail = None
            return got[0], got[2]
    raise AssertionError("nothing came")


def test_agent_channels_are_used_again(talk):
    talk.ack = False
    with Service(echo) as service:
        for i in range(3):
            assert opened(talk, service.port)[0] == STARTED
            talk.send(frame(DATA, b"abc", 1))
            talk.credit = False
            assert about(talk, 1) == (OUT, b"abc")
            talk.send(frame(EOF, b"", 1))
            assert about(talk, 1)[0] == AGENT_EOF


def test_agent_refuses(talk):
    talk.ack = False
    kind, payload = opened(talk, free_port(), 65535)
    assert kind == FAIL and payload[0] == AT_CONNECT and struct.unpack(">I", payload[1:5]) == (111,)
    talk.send(frame(DATA, b"late", 65535) + frame(KILL, b"", 65535))
    with Service(echo) as service:
        assert opened(talk, service.port, 65535)[0] == STARTED


@pytest.mark.parametrize("bad", [
    frame(DATA, bytes(65536), 1) * 5, frame(CREDIT, struct.pack(">Q", 1), 1), frame(CREDIT, b"1", 1),
    frame(EOF, b"", 1) * 2, frame(EOF, b"x", 1), frame(EOF, b"", 1) + frame(DATA, b"x", 1), frame(OUT, b"x", 1),
    start(channel=1, kind=FORWARD, port=1), frame(5, b"\2\0", 1), start("true"),
], ids=["window", "credit", "short", "ends", "end", "behind", "agent's", "twice", "signal", "exec"])
def test_agent_cuts_a_client_that_is_none(talk, bad):
    with Service(lambda sock: time.sleep(20)) as service:
        # Nothing is read there, and what the kernel takes is not the point.
        for sock in service.open:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        assert opened(talk, service.port)[0] == STARTED
        with contextlib.suppress(Cut):
            talk.send(bad * (40 if len(bad) > 65536 else 1))
        talk.cut(10)


def test_agent_keeps_to_the_window(talk):
    talk.credit = False
    with Service(lambda sock: sock.sendall(bytes(1 << 20))) as service:
        assert opened(talk, service.port)[0] == STARTED
        got = 0
        while got < WINDOW:
            kind, payload = about(talk, 1)
            assert kind == OUT
            got += len(payload)
        assert got == WINDOW
        with pytest.raises(AssertionError):
            about(talk, 1, 0.5)
        talk.send(frame(CREDIT, struct.pack(">Q", 1000), 1))
        assert about(talk, 1) == (OUT, bytes(1000))


def test_agent_says_what_was_taken(talk):
    with Service(after_the_end) as service:
        assert opened(talk, service.port)[0] == STARTED
        talk.send(frame(DATA, bytes(65536), 1))
        kind, payload = about(talk, 1)
        assert kind == AGENT_CREDIT and struct.unpack(">Q", payload) == (65536,)
