"""How requests travel: which addresses are tried, that connections are kept and
repeated only where that is safe, and what it costs in system calls."""

import json
import re
import socket
import threading

import pytest

import scripted

EMPTY = {"items": [], "pagination": {"page": 1, "pageSize": 100, "totalItems": 0, "totalPages": 0, "hasNextPage": False}}


def serve(family, address):
    """One answer after the other on a socket of that family; its port."""
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind((address, 0))
    listener.listen()

    def loop():
        while True:
            try:
                c, _ = listener.accept()
            except OSError:
                return
            seen.append(c.recv(65536).decode())
            c.sendall(scripted.answer(200, EMPTY, headers=["connection: close"]))
            c.close()

    seen = []
    threading.Thread(target=loop, daemon=True).start()
    return listener, listener.getsockname()[1], seen


@pytest.mark.parametrize("family, address, host", [
    (socket.AF_INET, "127.0.0.1", "127.0.0.1"), (socket.AF_INET, "127.0.0.1", "localhost"),
    (socket.AF_INET6, "::1", "[::1]"), (socket.AF_INET6, "::1", "localhost"), (socket.AF_INET6, "::1", "box.localhost"),
])
def test_addresses(abx, family, address, host):
    listener, port, seen = serve(family, address)
    abx.env = {"ABX_PROVIDER": "opensandbox", "ABX_OPENSANDBOX_BASE_URL": f"http://{host}:{port}"}
    ran = abx("--json", "sandbox", "list")
    listener.shutdown(socket.SHUT_RDWR)     # or the thread waits on
    listener.close()
    assert ran.status == 0 and ran.doc == [], ran
    assert f"\r\nHost: {host}:{port}\r\n" in seen[0]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_nobody_listens(abx, host):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        abx.env = {"ABX_PROVIDER": "opensandbox", "ABX_OPENSANDBOX_BASE_URL": f"http://{host}:{port}"}
        ran = abx("--json", "sandbox", "list")
    ran.failed_well(True)
    assert ran.error["code"] == "E5001"
    assert f"cannot connect to {host}:{port}: connection refused" in ran.error["message"]


@pytest.mark.parametrize("url, words", [
    ("http://u:geheim@h/", "a user name or a password"), ("ftp://h/", "does not begin with http://"), ("http://h:0/", "port"),
    ("http://[::1/", "bracket"), ("http://127.1/", "looks like an IPv4 address"), ("http://h /", "blank"),
    ("http://h/#x", "fragment"),
])
def test_addresses_that_are_none(abx, url, words):
    abx.env = {"ABX_PROVIDER": "opensandbox", "ABX_OPENSANDBOX_BASE_URL": url}
    ran = abx("--json", "sandbox", "list")
    assert ran.status == 2 and ran.error["code"] == "E8002" and words in ran.error["message"], ran
    assert b"geheim" not in ran.err


def test_a_request_is_cheap(osb, server, tmp_path):
    """Without a name to look up there is no child, and one request is one
    connect, one send and, for a small answer, one receive."""
    trace = tmp_path / "trace"
    ran = osb("--json", "sandbox", "list", wrap=["strace", "-f", "-o", trace, "-e", "trace=process,network"])
    assert ran.status == 0, ran
    calls = re.findall(r"^\d+ +(\w+)\(", trace.read_text(), re.M)
    assert not [c for c in calls if c in ("fork", "vfork", "clone", "clone3")], calls
    count = {c: calls.count(c) for c in ("socket", "connect", "sendto", "recvfrom")}
    assert count["socket"] == count["connect"] == count["sendto"] == 1 and count["recvfrom"] <= 2, count


def test_a_kept_connection_that_is_gone(osb, server):
    """Info, state and the endpoint of a sandbox go over one connection. When the
    server drops it, reading is repeated on a new one."""
    server.box("box-1")
    dropped = []

    def script(request, whole):
        if request.index == 1 and not dropped:
            dropped.append(str(request))
            return [scripted.CLOSE]
        return [whole]

    server.script = script
    ran = osb("--agent", "never", "--json", "sandbox", "exec", "box-1", "true")
    assert dropped, server.requests
    if dropped[0].startswith("GET"):
        assert ran.status == 0, (ran, server.requests)
        assert sum(str(r) == dropped[0] for r in server.requests) == 2
    else:
        ran.failed_well(True)


def test_a_command_is_never_sent_twice(osb, server):
    """POST: when the connection is lost it is unknown whether the command ran."""
    server.box("box-1")
    server.script = lambda request, whole: [scripted.CLOSE] if request.method == "POST" else [whole]
    ran = osb("--json", "sandbox", "exec", "box-1", "touch /tmp/x")
    ran.failed_well(True)
    assert sum(r.method == "POST" for r in server.requests) == 1, server.requests


def test_interim_answers_and_framing(osb, server):
    body = json.dumps(EMPTY).encode()
    interim = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    server.script = scripted.instead(0, interim, interim, scripted.chunked([body[:9], body[9:]], "application/json"))
    assert osb("--json", "sandbox", "list").doc == []
    server.clear()
    server.script = scripted.instead(0, b"HTTP/1.0 200 OK\r\n\r\n" + body, scripted.CLOSE)
    assert osb("--json", "sandbox", "list").doc == []


@pytest.mark.parametrize("head, words", [
    (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n", "two different Content-Length"),
    (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n", "Content-Length beside Transfer-Encoding"),
    (b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n", "a Transfer-Encoding other than chunked"),
    (b"HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n", "a folded header field"),
    (b"HTTP/1.1 200 OK\r\na: b\rc\r\n\r\n", "a control character in a header field"),
    (b"HTTP/1.1 200 OK\ncontent-length: 0\n\n", "a line of the head does not end in CR LF"),
    (b"HTTP/1.1 200 OK\r\na : b\r\n\r\n", "a header field's name is not a token"),
    (b"HTTP/1.1 101 Switching\r\n\r\n", "a protocol that was not asked for"),
    (b"HTTP/2 200\r\n\r\n", "does not begin with HTTP/1.1"),
    (b"\x15\x03\x01\x00\x02\x02\x46", "does not begin with HTTP/1.1"),
    (17 * b"HTTP/1.1 102 Processing\r\n\r\n", "more than 16 interim answers"),
    (b"HTTP/1.1 200 OK\r\n" + 257 * b"a: b\r\n" + b"\r\n", "an HTTP head of more than"),
])
def test_ambiguous_answers_are_refused(osb, server, head, words):
    server.script = scripted.instead(0, head, scripted.HOLD)
    ran = osb("--json", "sandbox", "list")
    ran.failed_well(True)
    assert words in ran.error["message"], ran
