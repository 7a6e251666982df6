"""The carried helper: clients that are no good, and strangers at its port."""

import array
import contextlib
import os
import random
import re
import socket
import struct

import pytest

from agent import read_all, wait_for
from frames import (ACK, AGENT_HELLO, AT_START, CODE, CREDIT, DATA, DETACH, EOF, FORWARD, HELLO, INPUT, INPUT_WINDOW, KILL,
                    MORE, OUT, PING, PONG, PTY, RESIZE, SIGNAL, SKIP, START, STARTED, Cut, Helper, Talk, WebSocket, frame,
                    hello, helper, keepers, mark, marked, preamble, start, start_payload)


def running(h, line="echo ready; cat", **more):
    t = h.talk().greet(line, flags=INPUT, **more)
    t.until_out(b"ready\n")
    return t


def as_it_is(t, data):
    os.write(t.carrier.write_fd, data)


# --- before anything runs ---

BEGIN = preamble() + hello()
BAD_BEGINNINGS = {
    "noise": b"x" * 5000, "a web page": b"GET / HTTP/1.1\r\n\r\n" * 9, "another version": preamble(2) + hello(), "zeros": bytes(300),
    "no hello": preamble() + start("id"), "the other side's hello": preamble() + frame(AGENT_HELLO, bytes(16)),
    "short hello": preamble() + frame(HELLO, b"1234567"), "long hello": preamble() + frame(HELLO, b"123456789"),
    "two": BEGIN + hello(), "too long": BEGIN + struct.pack(">BBHI", START, 0, 0, 65537), "huge": BEGIN + struct.pack(">BBHI", START, 0, 0, 2**32 - 1),
    "data": BEGIN + frame(DATA, b"x"), "ack": BEGIN + frame(ACK), "kill": BEGIN + frame(KILL), "detach": BEGIN + frame(DETACH),
    "unknown": BEGIN + frame(0x40), "never": BEGIN + frame(0), "out": BEGIN + frame(OUT, b"x"), "credit": BEGIN + frame(CREDIT, bytes(8)),
    "short ping": BEGIN + frame(PING, b"1"),
}


@pytest.mark.parametrize("mode", ["pipe", "lines", "listen"])
@pytest.mark.parametrize("name", BAD_BEGINNINGS)
def test_beginnings_that_are_none(helper, mode, name):
    t = helper(mode).talk()
    t.send(BAD_BEGINNINGS[name])
    t.cut(8)
    assert not t.started and not t.fail


BAD_STARTS = {
    "nothing": b"", "no kind": b"\3\0\0\0\1a", "kind 0": b"\1\0\0\0\1\0", "kind 11": b"\1\0\0\0\1\x0b", "cut part": start_payload("id")[:-1],
    "unknown part": start_payload("id") + b"\x0d\0\0\0\0", "twice": start_payload("id") + b"\1\0\0\0\1\1",
    "a NUL": start_payload(b"i\0d"), "a length that lies": b"\3\xff\xff\xff\xffid", "a short number": b"\2\0\0\0\1\1",
    "a forward": start_payload(kind=FORWARD, port=80),
}


@pytest.mark.parametrize("name", BAD_STARTS)
def test_starts_that_are_none(helper, name):
    t = helper().talk()
    t.send(BEGIN + frame(START, BAD_STARTS[name]))
    fail = t.finish()
    assert fail.stage == AT_START and fail.text


def test_a_start_in_many_pieces(helper):
    argv = ["printf", "%s", *["x" * 100000] * 12]
    payload = start_payload(*argv)
    t = helper().talk()
    pieces = [payload[i:i + 999] for i in range(0, len(payload), 999)]
    t.send(BEGIN + frame(0x77, b"later", flags=SKIP))
    t.send(b"".join(frame(START, p, flags=MORE) for p in pieces) + frame(START))
    assert t.finish() == (CODE, 0) and t.out == b"x" * 1200000


def test_a_start_without_an_end(helper, tmp_path):
    t = helper().talk()
    t.send(BEGIN)
    with pytest.raises(Cut):
        for _ in range(200):
            t.send(frame(START, b"\3\0\0\xff\xf0" + bytes(65520), flags=MORE))
            while t.next(0):
                pass
    t.close()


def test_words_without_number(helper):
    """840,000 empty ones fit into a START."""
    t = helper().talk()
    t.send(BEGIN)
    data = start_payload("true") + b"\3\0\0\0\0" * 830000
    t.send(b"".join(frame(START, data[i:i + 65000], flags=MORE) for i in range(0, len(data), 65000)) + frame(START))
    fail = t.finish()
    assert fail.sys == 7


# --- while something runs ---

BAD_FRAMES = {
    "hello": hello(), "start": start("id"), "ack": frame(ACK), "unknown": frame(0x50), "too long": struct.pack(">BBHI", DATA, 0, 0, 65537),
    "signal 0": frame(SIGNAL, b"\0\0"), "signal 65": frame(SIGNAL, b"\x41\0"), "target 3": frame(SIGNAL, b"\1\3"), "short": frame(SIGNAL, b"\1"),
    "size": frame(RESIZE, b"123"), "credit": frame(CREDIT, struct.pack(">Q", 7)), "short credit": frame(CREDIT, b"1234"),
    "eof": frame(EOF, b"x"), "channel": frame(DATA, b"x", 1), "of the agent": frame(STARTED, bytes(4)), "pong": frame(PONG, bytes(8)),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_frames_out_of_place(helper, tmp_path, name):
    """The link is cut, and the command goes with it."""
    m = mark(tmp_path)
    t = helper().talk().greet(f"echo ready; exec sleep {m}", flags=INPUT)
    t.until_out(b"ready\n")
    t.credit = False
    t.send(BAD_FRAMES[name])
    t.cut(5)
    wait_for(lambda: not marked(m), 4)


def test_credit_that_goes_down(helper):
    t = running(helper())
    t.send(frame(CREDIT, struct.pack(">Q", 6)))
    t.send(frame(CREDIT, struct.pack(">Q", 5)))
    t.cut(5)


def test_more_than_the_window(helper, tmp_path):
    """Nothing grows for one who does not keep to it."""
    h = helper()
    t = h.talk().greet("echo ready; sleep 60", flags=INPUT)
    t.until_out(b"ready\n")
    with pytest.raises(Cut):
        for _ in range(INPUT_WINDOW // 65536 + 400):
            t.send(frame(DATA, bytes(65536)))
            if t.next(0):
                pass
    wait_for(lambda: not keepers(tmp_path), 6)


def test_what_crosses_the_end(helper):
    """Sent before the end was known: no fault."""
    t = helper().talk(ack=False).greet("true", flags=INPUT)
    assert t.finish() == (CODE, 0)
    for f in (frame(DATA, b"x" * 9999), frame(EOF), frame(SIGNAL, b"\2\0"), frame(RESIZE, b"\0\1\0\1"), frame(KILL), frame(DETACH),
              frame(PING, bytes(8))):
        t.send(f)
    t.until(PONG, 5)
    t.send(frame(ACK))
    t.cut(5)


def test_frames_that_may_be_skipped(helper):
    t = running(helper())
    t.send(frame(0x66, b"what?" * 100, 9, SKIP) + frame(DATA, b"in\n") + frame(EOF))
    assert t.finish() == (CODE, 0) and t.out == b"ready\nin\n"


def test_floods(helper, tmp_path):
    """Signals, sizes and pings by the thousand, with nobody reading the answers."""
    h = helper()
    t = h.talk().greet("trap : USR1; echo ready; while :; do sleep 0.1; done", kind=PTY)
    t.until_out(b"ready\r\n")
    sock = t.carrier.owned[0]
    sock.settimeout(3)
    flood = (frame(PING, bytes(8)) * 20 + frame(SIGNAL, bytes([10, 0])) + frame(RESIZE, b"\0\7\0\7")) * 300
    try:
        for _ in range(60):
            t.send(flood)
    except (TimeoutError, BlockingIOError, Cut):
        pass
    for pid in keepers(tmp_path):
        with open(f"/proc/{pid}/status") as f:
            peak = re.search(r"VmHWM:\s+(\d+)", f.read())
        assert not peak or int(peak[1]) < 8000      # one that has just ended has no memory to tell of
    t.close()


def test_random_frames(helper, tmp_path):
    """From a fixed seed: whatever comes, the helper ends by itself, and its command with it."""
    m = mark(tmp_path)
    rng = random.Random(5)
    for _ in range(60):
        h = Helper("pipe", tmp_path)
        t = h.talk()
        text = BEGIN + start(f"sleep {m}", flags=INPUT)
        for _ in range(rng.randrange(12)):
            text += frame(rng.choice([*range(1, 12), 0x81, 0x90]), rng.randbytes(rng.choice([0, 1, 2, 4, 8, 100])), rng.choice([0, 0, 0, 1]),
                          rng.choice([0, 0, 1, SKIP]))
        if rng.random() < 0.3:
            i = rng.randrange(len(text))
            text = text[:i] + rng.randbytes(3) + text[i + 3:]
        try:
            t.send(text)
        except Cut:
            pass
        t.close()
        assert h.ended(10) == 0
        h.close()
    # DETACH was among them: those are jobs now, and were meant to be.
    for pid in keepers(tmp_path):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 15)
    wait_for(lambda: not marked(m) and not keepers(tmp_path), 8)


# --- lines ---

def test_lines_of_others_are_passed_over(helper):
    h = helper("lines")
    t = h.talk()
    t.carrier.write(BEGIN)
    os.write(t.carrier.write_fd, b"bash: no job control\n" + b"0" * 32 + b" 1 AAAA\n" + b"z" * 100000 + b"\n")
    t.carrier.write(start("echo hi"))
    assert t.finish() == (CODE, 0) and t.out == b"hi\n"


@pytest.mark.parametrize("line", [b"%s 7 AAAA\n", b"%s 0 AAAA\n", b"%s 1 A\n", b"%s 1 \n", b"%s x AAAA\n"])
def test_lines_that_are_missing_or_bent(helper, line):
    t = helper("lines").talk()
    t.carrier.write(BEGIN)
    os.write(t.carrier.write_fd, line % t.carrier.tag)
    t.cut(5)


# --- the port ---

def test_the_first_good_one_closes_the_port(helper):
    h = helper()
    t = running(h)
    with pytest.raises(ConnectionRefusedError):
        h.connect()
    t.send(frame(EOF))
    assert t.finish() == (CODE, 0)


UPGRADE = ("GET /{token} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
WRONG = {
    "another token": lambda h: UPGRADE.format(token="0" * 32), "no token": lambda h: UPGRADE.format(token=""),
    "half": lambda h: UPGRADE.format(token=h.token[:31]), "more": lambda h: UPGRADE.format(token=h.token + "0"),
    "a query": lambda h: UPGRADE.format(token=h.token + "?"), "upper": lambda h: UPGRADE.format(token=h.token.upper() + "A"[:0] or "A"),
    "POST": lambda h: UPGRADE.format(token=h.token).replace("GET", "POST"),
    "HTTP/1.0": lambda h: UPGRADE.format(token=h.token).replace("HTTP/1.1", "HTTP/1.0"),
    "no upgrade": lambda h: UPGRADE.format(token=h.token).replace("Upgrade: websocket\r\n", ""),
    "another upgrade": lambda h: UPGRADE.format(token=h.token).replace("websocket", "h2c"),
    "no connection": lambda h: UPGRADE.format(token=h.token).replace("Connection: Upgrade", "Connection: close"),
    "version 12": lambda h: UPGRADE.format(token=h.token).replace("13", "12"),
    "no key": lambda h: UPGRADE.format(token=h.token).replace("AAAAAAAAAAAAAAAAAAAAAA==", ""),
    "frames": lambda h: BEGIN.decode("latin-1"), "a long head": lambda h: "GET / HTTP/1.1\r\nX: " + "x" * 20000,
    "bare LF": lambda h: UPGRADE.format(token=h.token).replace("\r\n", "\n"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_knocks_do_not_use_it_up(helper, name):
    h = helper()
    text = WRONG[name](h)
    with h.connect() as s:
        s.sendall(text.encode("latin-1"))
        answer = read_all(s)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 404 Not Found\r\n"), answer
    assert h.talk().greet("echo in").finish() == (CODE, 0)


def test_a_crowd_at_the_door(helper):
    """Those who say nothing make room for the next one."""
    h = helper()
    crowd = [h.connect() for _ in range(40)]
    for s in crowd[:20]:
        s.sendall(b"GET /")
    assert h.talk().greet("echo in").finish() == (CODE, 0)
    for s in crowd:
        s.close()


def test_head_in_pieces_with_frames_behind(helper):
    h = helper()
    s = h.connect()
    text = UPGRADE.format(token=h.token).encode()
    for b in text[:-1]:
        s.sendall(bytes([b]))
    body = BEGIN + start("echo hi")
    assert len(body) < 126
    s.sendall(text[-1:] + b"\x82" + bytes([0x80 | len(body)]) + bytes(4) + body)
    got = b""
    while b"\r\n\r\n" not in got:
        got += s.recv(4096)
    assert got.startswith(b"HTTP/1.1 101 ")
    t = Talk(WebSocket(s, got.partition(b"\r\n\r\n")[2]))
    assert t.finish() == (CODE, 0) and t.out == b"hi\n"


# --- a connection that a daemon of ours hands over ---

def hand(h, text, *fds):
    """What is given to the door beside the port; a socket that waits for its answer."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(f"\0abx-door-{h.port}")
    s.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
    return s


def test_a_connection_is_handed_over(helper):
    h = helper()
    text, (ours, theirs) = UPGRADE.format(token=h.token).encode(), socket.socketpair()
    with theirs:
        hand(h, text[:-2], theirs.fileno()).close()
    got = b""
    ours.sendall(text[-2:])         # a head may go on there
    while b"\r\n\r\n" not in got:
        got += ours.recv(4096)
    assert got.startswith(b"HTTP/1.1 101 ")
    t = Talk(WebSocket(ours, got.partition(b"\r\n\r\n")[2])).greet("head -c 3000000 /dev/zero")
    assert t.finish() == (CODE, 0) and t.out == bytes(3000000)
    t.close()
    with pytest.raises(ConnectionRefusedError):
        hand(h, text)


def test_what_is_handed_over_wrong_does_not_use_it_up(helper):
    h = helper()
    good, bad = (UPGRADE.format(token=token).encode() for token in (h.token, "0" * 32))
    with hand(h, good) as s:                                            # nothing came with it
        assert s.recv(4096).startswith(b"HTTP/1.1 404 ")
    with hand(h, b"x" * 60000) as s:
        assert s.recv(4096).startswith(b"HTTP/1.1 404 ")
    for text in (bad, bad + b"x" * 60000, b"\r\n"):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            hand(h, text, theirs.fileno(), theirs.fileno()).close()     # two: only one is taken
            theirs.close()
            ours.shutdown(socket.SHUT_WR)
            assert read_all(ours).startswith(b"HTTP/1.1 404 ")
    for path in ("/dev/null", "/dev/tty"):
        with contextlib.suppress(OSError), open(path, "rb", buffering=0) as f, hand(h, good, f.fileno()):
            pass
    assert h.talk().greet("echo in").finish() == (CODE, 0)


def test_the_port_is_on_loopback(helper, tmp_path):
    h = helper()
    with open("/proc/net/tcp") as f:
        mine = [line.split()[1] for line in f if line.split()[1].endswith(f":{h.port:04X}") and line.split()[3] == "0A"]
    assert mine == [f"0100007F:{h.port:04X}"]
    assert h.talk().greet("true").finish() == (CODE, 0)


# --- the WebSocket ---

@pytest.mark.parametrize("data, code", [
    (b"\x82\x05hello", 1002),                       # not masked
    (b"\xc2\x80" + bytes(4), 1002), (b"\x83\x80" + bytes(4), 1002), (b"\x80\x80" + bytes(4), 1002),
    (b"\x81\x82" + bytes(4) + b"hi", 1003), (b"\x88\x80" + bytes(4), 1000), (b"\x88\x82" + bytes(4) + b"\x03\xe8", 1000),
])
def test_a_websocket_that_is_wrong(helper, tmp_path, data, code):
    m = mark(tmp_path)
    t = helper().talk().greet(f"echo ready; exec sleep {m}")
    t.until_out(b"ready\n")
    as_it_is(t, data)
    t.cut(5)
    assert t.carrier.closed == code
    wait_for(lambda: not marked(m), 4)


def test_pings_and_fragments(helper):
    t = running(helper())
    f = frame(DATA, b"abc\n")
    as_it_is(t, b"\x02\x83" + bytes(4) + f[:3] + b"\x89\x82" + bytes(4) + b"hi" + b"\x80" + bytes([0x80 | len(f) - 3]) + bytes(4) + f[3:])
    t.until_out(b"abc\n")
    t.carrier.write(b"late", 0x89)
    t.send(frame(EOF))
    assert t.finish() == (CODE, 0)
