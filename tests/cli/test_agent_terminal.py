"""/pty, /session and upgrades through /proxy, of the daemons there are, by the same tests, and where they differ."""

import contextlib
import hashlib
import json
import os
import random
import signal
import socket
import threading
import time

import pytest

from agent import Agent, alive, events, result, texts, wait_for
from stock import Stock
from websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, Ended, Refused, Terminal, WebSocket

KINDS = ["ours", "stock"]
QUICK = {"STOCK_EXECD_OVERTAKE_EVERY": "0"}


def daemon(kind, folder, **env):
    return (Stock if kind == "stock" else Agent)(folder, env={**QUICK, **env})


@pytest.fixture(params=KINDS)
def d(tmp_path, request):
    made = daemon(request.param, tmp_path)
    made.kind = request.param
    yield made
    if made.process.poll() is None:
        made.close()


def make(d, command=None, **more):
    answer = d.request("POST", "/pty", {**({"command": command} if command else {}), **more})
    assert answer.status == 201, answer
    assert list(answer.doc) == ["session_id"]
    return answer.doc["session_id"]


def attach(d, id, query="", through="", **more):
    return Terminal(f"http://127.0.0.1:{d.port}{through}/pty/{id}/ws{'?' + query if query else ''}", **more)


def status(d, id):
    answer = d.request("GET", f"/pty/{id}")
    assert answer.status == 200 and list(answer.doc) == ["session_id", "running", "output_offset"], answer
    return answer.doc["running"], answer.doc["output_offset"]


def pipes(d, command, **more):
    return attach(d, make(d, command), "pty=0", **more)


# ---- calls ----

def test_life(d):
    id = make(d, "echo hi; exit 3")
    assert status(d, id) == (False, 0)          # it begins with the first client
    with attach(d, id, "pty=0") as t:
        assert t.hears("connected") == {"type": "connected", "session_id": id, "mode": "pipe"}
        assert t.finish() == 3
        assert (t.out, t.err, t.end) == (b"hi\n", b"", (1000, "process exited"))
    assert status(d, id) == (False, 3)
    assert d.request("DELETE", f"/pty/{id}").status == 200
    for method in ("GET", "DELETE"):
        answer = d.request(method, f"/pty/{id}")
        assert (answer.status, answer.doc) == (404, {"code": "CONTEXT_NOT_FOUND", "message": f"pty session {id} not found"})


def test_refused_upgrades(d):
    id = make(d)
    with pytest.raises(Refused) as e:
        attach(d, "nope")
    assert e.value.status == 404 and json.loads(e.value.body)["code"] == "CONTEXT_NOT_FOUND"
    answer = d.request("GET", f"/pty/{id}/ws")
    assert (answer.status, answer.header("Sec-WebSocket-Version"), answer.body) == (400, "13", b"Bad Request\n"), answer
    with attach(d, id) as t:
        t.sees(b"$ " if os.geteuid() else b"# ")
        with pytest.raises(Refused) as e:
            attach(d, id)
        assert e.value.status == 409
        assert json.loads(e.value.body) == {"code": "ALREADY_CONNECTED",
                                            "message": f"another client is already connected to pty session {id}"}
    answer = d.request("POST", "/pty", "{nonsense")
    assert answer.status == 400 and answer.doc["code"] == "INVALID_REQUEST_BODY"
    assert d.request("POST", "/pty").status == 201      # the body is optional


def test_without_bash(tmp_path, d):
    d.close()
    tools = tmp_path / "bin"
    tools.mkdir()
    other = (Stock if d.kind == "stock" else Agent)(tmp_path, env={"PATH": str(tools)})
    try:
        with attach(other, make(other, "echo hi"), "pty=0") as t:
            assert t.finish() is None
            assert [(m["type"], m["code"]) for m in t.said] == [("error", "START_FAILED")], t.said
            assert "sh" in t.said[0]["error"] and t.end == (None, "")
        (tools / "sh").symlink_to("/bin/sh")
        if d.kind == "ours":                        # which does with what there is
            with attach(other, make(other, "echo hi; exit 3"), "pty=0") as t:
                assert t.finish() == 3 and t.out == b"hi\n"
            with attach(other, make(other)) as t:
                t.type(b"echo $((40+2))\nexit 7\n")
                assert t.finish() == 7 and b"42\r\n" in t.out
    finally:
        other.close()


# ---- pipes ----

def test_bytes(d):
    """All bytes, both ways, in any cut; stderr apart."""
    data = bytes(range(256)) * 3000 + b"\r\n\n\0last line has no end"
    with pipes(d, f"head -c {len(data)}; echo oops >&2") as t:
        t.hears("connected")
        rest = data
        while rest:
            n = random.Random(len(rest)).choice([1, 3, 1000, 65536, 70000])
            t.type(rest[:n])
            rest = rest[n:]
        assert t.finish() == 0
        assert hashlib.sha256(t.out).hexdigest() == hashlib.sha256(data).hexdigest() and t.err == b"oops\n"


def test_fragments_and_control_frames(d):
    with pipes(d, "head -c 12") as t:
        t.hears("connected")
        s = t.socket
        s.send(BINARY, b"\0ab", fin=False)
        s.send(PING, b"p")
        s.send(CONTINUATION, b"", fin=False)
        s.send(CONTINUATION, b"cdef")
        s.send(BINARY, b"\x07other kinds are passed over")
        s.send(BINARY, b"")
        t.say(type="stdin", data="gh\u00e9\n")
        assert s.frame() == (PONG, True, b"p")
        t.type(b"i")
        assert t.finish() == 0 and t.out == "abcdefgh\u00e9\ni".encode()


def test_text_frames(d):
    with pipes(d, "cat") as t:
        t.hears("connected")
        t.say(type="ping")
        assert t.hears("pong") == {"type": "pong"}
        t.say(type="bogus")
        assert t.hears("error") == {"type": "error", "error": 'unknown frame type "bogus"', "code": "INVALID_FRAME"}
        for bad in (b"{", b"[]", b"nonsense", b'{"type":"signal","signal":"SIGWHAT"}', b'{"type":7}'):
            t.said.clear()
            t.socket.send(TEXT, bad)
            assert t.hears("error")["code"] == "INVALID_FRAME", bad
        t.say(type="resize", cols=10, rows=10)      # without a terminal it is nothing
        t.say(type="signal", signal="SIGTERM")
        assert t.finish() not in (0, None)


@pytest.mark.parametrize("bad", [
    b"\x82\x01x", b"\xf2\x80abcd", b"\x83\x80abcd", b"\x89\xfe\x00\x80abcd" + bytes(128), b"\x09\x80abcd",
    b"\x80\x80abcd", b"\x02\x80abcd\x82\x80abcd",
], ids=["unmasked", "reserved bit", "reserved opcode", "long ping", "fragmented ping", "continues nothing", "message in message"])
def test_broken_frames(d, bad):
    """The connection is ended, the daemon is well, and the program goes on."""
    id = make(d, "cat")
    with attach(d, id, "pty=0") as t:
        t.hears("connected")
        t.socket.socket.sendall(bad)
        t.finish()
        assert t.end[0] in (None, 1002)
    wait_for(lambda: status(d, id) == (True, 0))
    with attach(d, id, "pty=0") as t:
        t.type(b"x")
        t.sees(b"x")


def test_leaving(d):
    """Whoever leaves, in whatever way, leaves the program running; what it prints is kept."""
    id = make(d, "while read x; do echo got $x; done")
    with attach(d, id, "pty=0") as t:
        t.hears("connected")
        t.type(b"1\n")
        t.sees(b"got 1\n")
        t.socket.send(CLOSE, b"\x03\xe8bye")
        t.finish()
        assert t.end[0] == 1000
    wait_for(lambda: d.request("GET", "/pty/" + id).doc["running"])
    with attach(d, id, "pty=0&since=6") as t:
        t.hears("connected")
        assert t.replay == []                       # nothing was missed
        t.type(b"2\n")
        t.sees(b"got 2\n")
    for since, want in ((0, (0, b"got 1\ngot 2\n")), (7, (7, b"ot 2\n"))):
        def again():
            with contextlib.suppress(Refused):      # until it has seen that the last one left
                with attach(d, id, f"pty=0&since={since}") as t:
                    t.hears("connected")
                    return t.replay == [want]
        wait_for(again)
    assert d.request("DELETE", f"/pty/{id}").status == 200


def test_long_replay(d):
    """The last MiB is kept, and its offset says what is lost."""
    id = make(d, "seq 1 300000; read x")
    with attach(d, id, "pty=0") as t:
        t.sees(b"\n300000\n")
        whole = t.out
        with attach(d, id, "pty=0&takeover=1&since=1000") as u:
            u.hears("connected")
            (offset, data), = u.replay
            assert len(data) == 1 << 20 and offset == len(whole) - (1 << 20) and whole[offset:] == data
            assert t.finish() is None and t.end == (4001, "TAKEN_OVER")
            u.type(b"\n")
            assert u.finish() == 0 and u.out == b""


def test_takeover_loses_nothing(d):
    """Six times thrown out in the middle of output: joined by offsets it is whole. (What is printed while nobody
    is there, or is on its way, must be less than the ring.)"""
    id = make(d, "for i in 0 1 2 3 4 5 6 7 8 9; do seq $((i*100000)) $((i*100000+39999)); sleep 0.2; done")
    got = b""
    for turn in range(7):
        t = attach(d, id, f"pty=0&takeover=1&since={len(got)}")
        try:
            want = len(got) + 250000
            t.hears("connected")
            for offset, data in t.replay:
                assert offset == len(got)
                got += data
            if turn < 6:
                t.until(lambda t: len(got) + len(t.out) >= want or t.end)
            else:
                assert t.finish() == 0
            got += t.out
        finally:
            t.socket.close()
    assert got == b"".join(b"%d\n" % n for i in range(10) for n in range(i * 100000, i * 100000 + 40000))


def test_again_after_its_end(d):
    """A client that comes after the end starts the command once more, behind the replay."""
    id = make(d, "echo hi")
    with attach(d, id, "pty=0") as t:
        assert t.finish() == 0
    with attach(d, id, "pty=0") as t:
        assert t.finish() == 0
        assert t.replay == [(0, b"hi\n")] and t.out == b"hi\n"
    assert status(d, id) == (False, 6)


def test_many(d):
    """Twenty at once, 200 KB each way."""
    data = os.urandom(150_000).hex().encode()
    failed = []

    def one():
        try:
            with pipes(d, f"head -c {len(data)}; exit 9") as t:
                t.hears("connected")
                t.type(data)
                assert t.finish() == 9 and t.out == data
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=one) for _ in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed, failed[0]


def test_slow_reader_stops_the_program(d):
    """Nothing piles up: the program waits at its pipe."""
    id = make(d, "head -c 60000000 /dev/zero; echo done >&2")
    with attach(d, id, "pty=0") as t:
        t.hears("connected")
        time.sleep(1.5)
        _, sent = status(d, id)
        assert sent < 30_000_000
        assert d.memory("VmRSS") < (60_000 if d.kind == "stock" else 12_000)
        assert t.finish() == 0 and len(t.out) == 60_000_000 and t.err == b"done\n"


def test_program_that_does_not_read(d):
    """What it does not take waits in the connection, and the daemon answers others."""
    with pipes(d, "read x; sleep 1.5; wc -c") as t:
        t.hears("connected")
        t.socket.socket.settimeout(40)

        def push():
            t.type(b"x\n")
            for _ in range(200):
                t.type(bytes(100_000))

        pusher = threading.Thread(target=push)
        pusher.start()
        time.sleep(0.5)
        assert d.request("GET", "/ping").status == 200
        pusher.join()
        t.type(b"")
        if d.kind == "ours":
            assert d.memory("VmHWM") < 16_000
        t.say(type="signal", signal="SIGKILL")
        assert t.finish() not in (0, None)


# ---- terminals ----

def test_terminal(d):
    id = make(d)
    with attach(d, id) as t:
        assert t.hears("connected")["mode"] == "pty"
        t.type(b"stty size; echo TERM=$TERM; tty\n")
        t.sees(b"24 80\r\nTERM=dumb\r\n/dev/pts/")
        t.say(type="resize", cols=100, rows=30)
        t.type(b"stty size\n")
        t.sees(b"30 100\r\n")
        t.type(b"exit 5\n")
        assert t.finish() == 5 and t.end == (1000, "process exited")


def test_interrupt_key(d):
    """Ctrl-C ends what is in the foreground, and the shell lives."""
    with attach(d, make(d)) as t:
        t.type(b"sleep 77; echo code $((1+$?))\n")
        t.sees(b"$?))\r\n")
        time.sleep(0.3)
        t.type(b"\x03")
        t.type(b"echo still $((40+2))\n")
        t.sees(b"still 42", 10)
        t.type(b"exit\n")
        assert t.finish() is not None


def test_hang_up_of_a_terminal(d):
    """DELETE ends the shell, and what is in its terminal's foreground."""
    id = make(d)
    with attach(d, id) as t:
        t.type(b"sleep 78 & echo job $!.; sleep 79\n")
        job = int(t.until(lambda t: b"\njob " in t.out and b".\r" in t.out.split(b"\njob ")[1]).out.split(b"\njob ")[1].split(b".")[0])
        assert alive(job)
        assert d.request("DELETE", f"/pty/{id}").status == 200
        t.finish()
    if d.kind == "ours":
        wait_for(lambda: not alive(job))
    elif alive(job):
        os.kill(job, signal.SIGKILL)
    assert d.request("GET", f"/pty/{id}").status == 404


def test_signals_of_a_command(d):
    """A signal's frame goes to the group that the command leads."""
    with pipes(d, "trap 'echo usr; exit 6' HUP; echo ready; while :; do sleep 0.05; done") as t:
        t.sees(b"ready\n")
        t.say(type="signal", signal="SIGHUP")
        assert t.finish() == 6 and t.out == b"ready\nusr\n"


def ignoring():
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def test_ignored_interrupt(tmp_path):
    """A daemon that was started as a background job of a shell: the stock one hands that on, ours does not."""
    for kind in KINDS:
        d, want = (Stock if kind == "stock" else Agent)(tmp_path, limits=ignoring), kind == "stock"
        try:
            for query in ("pty=0", ""):
                with attach(d, make(d, "grep SigIgn /proc/self/status"), query) as t:
                    assert t.finish() == 0
                    assert bool(int(t.out.split()[1], 16) & 2) == want, (kind, query, t.out)
        finally:
            d.close()


# ---- what the stock daemon does badly, and ours does not ----

@pytest.fixture
def hasty(tmp_path, request):
    made = daemon(request.param, tmp_path, STOCK_EXECD_WRITE_MS="700", STOCK_EXECD_READ_MS="900", STOCK_EXECD_PING_MS="300",
                  STOCK_EXECD_LINGER_MS="2500", STOCK_EXECD_OVERTAKE_EVERY="1")
    made.kind = request.param
    yield made
    made.close()


both = pytest.mark.parametrize("hasty", KINDS, indirect=True)


@both
def test_exit_and_output(hasty):
    """The stock daemon's exit overtakes the last output, now and then; here each time. Ours never does."""
    for _ in range(10 if hasty.kind == "ours" else 1):
        with pipes(hasty, "seq 1 30000; sleep 0.1; echo last; exit 4") as t:
            assert t.finish() == 4
            assert t.out.endswith(b"\n30000\nlast\n" if hasty.kind == "ours" else b"\n30000\n")


@both
def test_reader_that_rests(hasty):
    """The stock daemon cuts it off, without a close frame, and the output is lost. Ours waits for it."""
    id = make(hasty, "head -c 50000000 /dev/zero")
    with attach(hasty, id, "pty=0") as t:
        t.hears("connected")
        time.sleep(2)
        if hasty.kind == "ours":
            assert t.finish() == 0 and len(t.out) == 50_000_000
        else:
            assert t.finish() is None and t.end == (None, "") and len(t.out) < 40_000_000


@both
def test_client_that_is_not_heard(hasty):
    """The stock daemon lets go of it and leaves the connection open for long. Ours keeps it as long as TCP does."""
    id = make(hasty, "sleep 1.6; echo late; sleep 30")
    with attach(hasty, id, "pty=0", pongs=False) as t:
        t.hears("connected")
        if hasty.kind == "ours":
            t.sees(b"late\n")
        else:
            t.socket.socket.settimeout(2)
            begun = time.monotonic()
            op = PING
            with pytest.raises(TimeoutError):
                while op == PING:
                    op, _, _ = t.socket.frame()
            assert 2 < time.monotonic() - begun < 3.5
            with attach(hasty, id, "pty=0") as other:       # it is nobody's
                other.hears("connected")
            t.socket.socket.settimeout(5)
            assert t.socket.socket.recv(10) == b""
    hasty.request("DELETE", f"/pty/{id}")


@both
def test_blocked_stdin_is_deaf(hasty):
    """While the stock daemon writes to a program that does not read, it hears nothing, and its time runs out."""
    with pipes(hasty, "sleep 1.6; cat >/dev/null & sleep 2; echo end") as t:
        t.hears("connected")
        with contextlib.suppress(OSError):
            t.type(bytes(300_000))
        if hasty.kind == "ours":
            t.say(type="ping")
            t.hears("pong", 1.5)
            t.sees(b"end\n")
        else:
            t.socket.socket.settimeout(1.2)
            with contextlib.suppress(TimeoutError):
                t.finish()
            assert b"end" not in t.out


@both
def test_delete_and_other_sessions(hasty):
    """What has a session of its own outlives the DELETE of both: they know no more than a group."""
    with pipes(hasty, "setsid sleep 55 >/dev/null 2>&1 & echo $!; sleep 56") as t:
        child = int(t.until(lambda t: t.out.endswith(b"\n")).out)
        id = t.hears("connected")["session_id"]
        wait_for(lambda: os.getsid(child) == child)
        assert hasty.request("DELETE", f"/pty/{id}").status == 200
        t.finish()
        time.sleep(0.1)
        assert alive(child)
        os.kill(child, signal.SIGKILL)


# ---- /proxy with an upgrade ----

def some(s):
    """The next bytes; there must be some."""
    got = s.recv(1 << 18)
    assert got, "the connection ended"
    return got


class Echo(threading.Thread):
    """A service on a loopback port: takes one upgrade of any kind, then does what it is told."""

    def __init__(self, does):
        super().__init__(daemon=True)
        self.does, self.listener = does, socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.head = b""
        self.start()

    def run(self):
        peer, _ = self.listener.accept()
        self.listener.close()
        with peer:
            while b"\r\n\r\n" not in self.head:
                self.head += some(peer)
            self.head, rest = self.head.split(b"\r\n\r\n", 1)
            peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: made-up\r\n\r\n")
            self.does(peer, rest)


def tunnel(d, port, token="made-up"):
    s = d.connect()
    s.sendall(f"GET /proxy/{port}/x?y=1 HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: {token}\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += some(s)
    head, rest = head.split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 101 "), head
    return s, rest


def test_proxied_upgrade_of_any_kind(d):
    def echo(peer, rest):
        while rest := rest or peer.recv(65536):
            peer.sendall(rest)
            rest = b""

    service = Echo(echo)
    s, rest = tunnel(d, service.port)
    with s:
        data = os.urandom(3_000_000)
        threading.Thread(target=s.sendall, args=(data,), daemon=True).start()
        while len(rest) < len(data):
            rest += some(s)
        assert rest == data and b"GET /x?y=1 HTTP/1.1" in service.head


def test_proxied_back_pressure(d):
    """A reader that rests, on either side, makes the other one wait; then all of it arrives."""
    def source(peer, _):
        peer.sendall(data)
        peer.sendall(b"!")
        took.wait(30)
        n = 0
        while n < 30_000_000:
            n += len(some(peer))
        peer.sendall(b"%d\n" % n)

    took, data = threading.Event(), os.urandom(40_000_000)
    s, rest = tunnel(d, Echo(source).port)
    with s:
        before = d.memory("VmRSS")
        time.sleep(1)
        assert d.memory("VmRSS") - before < 20_000
        got = bytearray(rest)
        while len(got) < 40_000_001:
            got += some(s)
        assert got == data + b"!"
        pusher = threading.Thread(target=s.sendall, args=(bytes(30_000_000),), daemon=True)
        pusher.start()
        time.sleep(1)
        assert pusher.is_alive() and d.memory("VmRSS") - before < 20_000
        took.set()
        assert s.recv(100) == b"30000000\n"


def test_proxied_half_close(d):
    """Ours hands a half-close on and loses nothing; through the stock daemon it ends both directions."""
    def answer_at_the_end(peer, rest):
        n = len(rest)
        while more := peer.recv(1 << 20):
            n += len(more)
        with contextlib.suppress(OSError):
            time.sleep(0.2)
            peer.sendall(b"%d\n" % n + bytes(5_000_000))

    s, rest = tunnel(d, Echo(answer_at_the_end).port)
    with s:
        s.sendall(bytes(2_000_000))
        s.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while more := s.recv(1 << 20):
                rest += more
        if d.kind == "ours":
            assert rest == b"2000000\n" + bytes(5_000_000)
        else:
            assert len(rest) < 5_000_000


def test_terminal_through_its_own_proxy(d):
    for through in (f"/proxy/{d.port}", f"/proxy/{d.port}" * 3):
        with attach(d, make(d, "seq 1 50000; cat"), "pty=0", through) as t:
            t.sees(b"\n50000\n")
            t.type(b"x")
            t.sees(b"\nx")


# ---- /session ----

def session(d, **body):
    answer = d.request("POST", "/session", body)
    assert answer.status == 200 and list(answer.doc) == ["session_id"], answer
    return answer.doc["session_id"]


def run(d, id, command, **more):
    answer = d.request("POST", f"/session/{id}/run", {"command": command, **more})
    return events(answer)


@pytest.fixture
def stock(tmp_path):
    made = daemon("stock", tmp_path)
    yield made
    made.close()


def test_session(stock, tmp_path):
    id = session(stock, cwd=str(tmp_path / "new/folder"))
    first = run(stock, id, "pwd; export X='4 2'; cd /usr; y=1; echo one; echo two >&2")
    assert texts(first) == [str(tmp_path / "new/folder"), "one", "two"] and not texts(first, "stderr")
    assert result(first) == "0" and first[0]["text"] == id
    assert texts(run(stock, id, "echo \"$X,$y\"; pwd; false")) == ["4 2,", "/usr"]
    assert texts(run(stock, id, "echo a; echo; echo b; printf c")) == ["a", "b", "c"]
    assert result(run(stock, id, "exit 7")) == "7"
    assert texts(run(stock, id, "echo __PWD__:/x; echo __EXIT_CODE__:9; echo z; pwd")) == ["z", "/usr"]
    assert stock.request("DELETE", f"/session/{id}").status == 200
    answer = stock.request("DELETE", f"/session/{id}")
    assert (answer.status, answer.doc) == (404, {"code": "CONTEXT_NOT_FOUND", "message": f"session {id} not found"})
    answer = stock.request("POST", f"/session/{id}/run", {"command": "x"})
    assert (answer.status, answer.doc) == (500, {"code": "RUNTIME_ERROR", "message": "error running in session. context not found"})


def test_session_timeout(stock):
    """It is noticed when the pipe is closed, and said by an object that is no event."""
    begun = time.monotonic()
    answer = stock.request("POST", f"/session/{session(stock)}/run", {"command": "echo a; sleep 2; echo b", "timeout": 500})
    assert answer.status == 200 and time.monotonic() - begun > 1.9
    assert answer.body.endswith(b'\n\n{"code":"RUNTIME_ERROR","message":"error running in session. timeout after 500ms"}')
    assert b'"text":"a"' in answer.body and b'"text":"b"' not in answer.body
