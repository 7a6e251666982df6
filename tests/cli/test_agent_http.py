"""abx agent serve: the HTTP under it, ports behind it, and hostile company."""

import contextlib
import os
import resource
import socket
import socketserver
import threading
import time

import pytest

from agent import agent, Agent, NOBODY, one, read_all, wait_for


def test_calls_there_are_and_are_not(agent):
    assert agent.request("GET", "/ping").body == b""
    for path in ("/nosuch", "/", "/command", "/files/", "/command/status/", "/command/x/y", "/pty", "/pty/", "/pty/x/y", "/proxyx", "//ping"):
        answer = agent.request("GET", path)
        assert (answer.status, answer.body, answer.header("Content-Type")) == (404, b"404 page not found", "text/plain")
    for method, path in (("POST", "/session"), ("POST", "/session/x/run"), ("POST", "/code"),
                         ("GET", "/code/contexts"), ("POST", "/v1/isolated/session")):
        answer = agent.request(method, path, b"{}")
        assert answer.status == 501 and answer.doc["code"] == "NOT_SUPPORTED" and answer.doc["message"]
    metrics = agent.request("GET", "/metrics").doc
    assert list(metrics) == ["cpu_count", "cpu_used_pct", "mem_total_mib", "mem_used_mib", "timestamp"]
    assert 0 < metrics["mem_used_mib"] < metrics["mem_total_mib"] and 0 <= metrics["cpu_used_pct"] <= 100
    with agent.connect() as s:
        s.sendall(b"GET /metrics/watch HTTP/1.1\r\nHost: h\r\n\r\n")
        got = b""
        while got.count(b'"timestamp"') < 2:
            got += s.recv(4096)


def test_own_port_is_itself(one):
    p = one.port
    for prefix in (f"/proxy/{p}", f"/proxy/{p}/proxy/{p}", f"/proxy/{p}" * 50):
        assert one.request("GET", prefix + "/ping").status == 200
        assert one.request("GET", prefix + "/files/info?path=/").doc["/"]["type"] == "directory"
        assert one.request("GET", prefix).status == 404
    assert one.descriptors() < 20


def test_token(tmp_path):
    a = Agent(tmp_path, env={"EXECD_ACCESS_TOKEN": "tok-1"})
    try:
        for headers in ({}, {"X-EXECD-ACCESS-TOKEN": ""}, {"X-EXECD-ACCESS-TOKEN": "tok-"}, {"X-EXECD-ACCESS-TOKEN": "tok-11"},
                        {"X-EXECD-ACCESS-TOKEN": "tok-2"}, {"Authorization": "tok-1"}):
            for path in ("/ping", "/nosuch", f"/proxy/{a.port}/ping", "/proxy/1/"):
                answer = a.request("GET", path, headers=headers)
                assert answer.status == 401
                assert answer.body == b'{"error":"Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN"}'
            answer = a.request("POST", "/command", {"command": "touch ran"}, headers)
            assert answer.status == 401 and not (tmp_path / "ran").exists()
        for path, status in (("/ping", 200), ("/nosuch", 404), (f"/proxy/{a.port}/ping", 200), ("/proxy/1/", 502)):
            assert a.request("GET", path, headers={"x-execd-access-token": "tok-1"}).status == status
    finally:
        a.close()


H = b"Host: h\r\n"


@pytest.mark.parametrize("request_bytes, status", [
    (b"GET /ping HTTP/1.1\r\n\r\n", 400), (b"GET /ping HTTP/1.1\r\n" + H + H + b"\r\n", 400), (b"GET /ping HTTP/1.1\nHost: h\n\n", 400),
    (b"GET /ping HTTP/2.0\r\n" + H + b"\r\n", 505), (b"GET ping HTTP/1.1\r\n" + H + b"\r\n", 400), (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
    (b"GET http://h/ping HTTP/1.1\r\n" + H + b"\r\n", 400), (b"CONNECT h:1 HTTP/1.1\r\n" + H + b"\r\n", 400),
    (b"GET /ping HTTP/1.1\r\n" + H + b"X: a\r\n b\r\n\r\n", 400), (b"GET /ping HTTP/1.1\r\n" + H + b"X: a\rb\r\n\r\n", 400),
    (b"GET /ping HTTP/1.1\r\n" + H + b"X\x00: a\r\n\r\n", 400), (b"GET /pi\xffng HTTP/1.1\r\n" + H + b"\r\n", 400),
    (b"POST /command HTTP/1.1\r\n" + H + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
    (b"POST /command HTTP/1.1\r\n" + H + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400),
    (b"POST /command HTTP/1.1\r\n" + H + b"Content-Length: 0x2\r\n\r\n{}", 400), (b"POST /command HTTP/1.1\r\n" + H + b"Content-Length: 9999999999999999999\r\n\r\n{}", 400),
    (b"POST /command HTTP/1.1\r\n" + H + b"Content-Length: 999999999999\r\n\r\n{}", 413),
    (b"POST /command HTTP/1.1\r\n" + H + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
    (b"POST /command HTTP/1.1\r\n" + H + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    (b"POST /command HTTP/1.1\r\n" + H + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}x\r\n", 400),
    (b"POST /command HTTP/1.1\r\n" + H + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 400),
    (b"POST /command HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400),
    (b"GET /ping HTTP/1.1\r\n" + H + b"X: " + b"y" * 300000 + b"\r\n\r\n", 431), (b"GET /" + b"y" * 300000 + b" HTTP/1.1\r\n" + H + b"\r\n", 431),
    (b"GET /ping HTTP/1.1\r\n" + H + b"X: y\r\n" * 300 + b"\r\n", 431), (b"GET /ping HTTP/1.1\r\n" + H + b"Expect: magic\r\n\r\n", 417),
])
def test_refused_and_closed(one, request_bytes, status):
    """One answer, then the end: what follows is never taken for a request."""
    got = one.raw(request_bytes + b"GET /ping HTTP/1.1\r\n" + H + b"\r\n")
    assert got.startswith(b"HTTP/1.1 %d " % status), got
    assert got.count(b"HTTP/1.1 ") == 1 and b"Connection: close" in got


def test_pipelining(one):
    got = one.raw(b"GET /ping HTTP/1.1\r\n" + H + b"\r\n" + b"GET /nosuch HTTP/1.1\r\n" + H + b"\r\n" + b'POST /command HTTP/1.1\r\nContent-Length: 21\r\n'
                  + H + b'\r\n{"command":"sleep 1"}' + b"GET /ping HTTP/1.1\r\nConnection: close\r\n" + H + b"\r\n")
    assert [int(part[:3]) for part in got.split(b"HTTP/1.1 ")[1:]] == [200, 404, 200, 200]
    many = 20000
    with one.connect() as s:
        sender = threading.Thread(target=s.sendall, args=((b"GET /ping HTTP/1.1\r\n" + H + b"\r\n") * (many - 1) + b"GET /ping HTTP/1.0\r\n\r\n",))
        sender.start()
        time.sleep(0.5)         # answers wait, requests too
        assert one.memory() < 8192
        assert read_all(s).count(b"HTTP/1.1 200 OK\r\n") == many
        sender.join()


def test_one_byte_at_a_time(one):
    with one.connect() as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b'POST /command HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n15;x=y\r\n{"command":"echo hi"}\r\n0\r\nT: x\r\n\r\n':
            s.sendall(bytes([byte]))
        assert b'"text":"hi"' in read_all(s)


@pytest.mark.parametrize("sent", [b"", b"GET", b"GET /ping HTTP/1.1\r\nHost: h\r\n", b"POST /command HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{"])
def test_those_who_stop_in_the_middle_hold_nobody_up(one, sent):
    with contextlib.ExitStack() as all_of_them:
        for _ in range(50):
            all_of_them.enter_context(one.connect()).sendall(sent)
        assert one.request("GET", "/ping").status == 200
    wait_for(lambda: one.descriptors() < 20)


def test_many_connections(one):
    with contextlib.ExitStack() as all_of_them:
        socks = [all_of_them.enter_context(one.connect()) for _ in range(600)]
        for _ in range(3):
            for s in socks:
                s.sendall(b"GET /ping HTTP/1.1\r\nHost: h\r\n\r\n")
            for s in socks:
                got = b""
                while not got.endswith(b"\r\n\r\n"):
                    got += s.recv(4096)
                assert got.startswith(b"HTTP/1.1 200 OK\r\n")
        assert one.memory("VmRSS") < 16384
    wait_for(lambda: one.descriptors() < 20)


def test_without_descriptors(tmp_path):
    """Connections at rest make room; when none is, new ones wait."""
    a = Agent(tmp_path, limits=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
    try:
        resting = [a.connect() for _ in range(60)]
        time.sleep(1.2)
        for _ in range(5):
            assert a.request("GET", "/ping").status == 200
        for s in resting:
            s.close()
        busy = [a.connect() for _ in range(60)]
        for s in busy:
            s.sendall(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n")
        time.sleep(0.3)
        assert a.process.poll() is None
        for s in busy:
            s.close()
        assert a.request("GET", "/ping").status == 200
        assert b"40" in a.request("POST", "/command", {"command": "ulimit -n"}).body
    finally:
        a.close()


def test_children_get_the_limits_that_were_there(tmp_path):
    a = Agent(tmp_path, limits=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (300, 4000)))
    try:
        assert b'"text":"300"' in a.request("POST", "/command", {"command": "ulimit -Sn"}).body
        assert b'"text":"4000"' in a.request("POST", "/command", {"command": "ulimit -Hn"}).body
    finally:
        a.close()


# --- ports behind it ---

class Upstream:
    """A TCP service in the sandbox; `serve` is given each connection."""

    def __init__(self, serve):
        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                with contextlib.suppress(OSError):
                    serve(self.request)
        socketserver.ThreadingTCPServer.allow_reuse_address = True
        socketserver.ThreadingTCPServer.daemon_threads = True
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def read_head(s):
    got = b""
    while b"\r\n\r\n" not in got:
        more = s.recv(1)
        if not more:
            break
        got += more
    return got


def test_any_method_and_what_arrives(one):
    seen = []

    def serve(s):
        head = read_head(s)
        n = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
        body = b""
        while len(body) < n:
            body += s.recv(65536)
        seen.append((head, body))
        s.sendall(b"HTTP/1.1 207 Odd Reason\r\nContent-Length: 2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n"
                  b"Keep-Alive: 5\r\nX-End: yes\r\n\r\nok"[:None if not head.startswith(b"HEAD") else -2])
    with Upstream(serve) as up:
        for method, body in (("GET", None), ("POST", b"data"), ("PUT", b""), ("DELETE", None), ("PATCH", b"x" * 100000), ("OPTIONS", None),
                             ("HEAD", None), ("PROPFIND", b"y")):
            answer = one.request(method, f"/proxy/{up.port}/deep/%2F..?q=%20a&b", body,
                                 {"X-Keep": "v", "Connection": "x-drop", "X-Drop": "1", "X-EXECD-ACCESS-TOKEN": "secret", "TE": "trailers"})
            assert answer.status == 207 and answer.body == (b"" if method == "HEAD" else b"ok")
            assert [v for k, v in answer.headers if k == "Set-Cookie"] == ["a=1", "b=2"]
            assert answer.header("X-End") == "yes" and answer.header("X-Hop") is None and answer.header("Keep-Alive") is None
            assert answer.header("Content-Length") == "2"
            head, arrived = seen.pop()
            assert head.startswith(f"{method} /deep/%2F..?q=%20a&b HTTP/1.1\r\n".encode()) and arrived == (body or b"")
            lower = head.lower()
            assert b"x-keep: v\r\n" in lower and b"host: 127.0.0.1:" in lower and lower.count(b"content-length") == (body is not None)
            for gone in (b"x-drop", b"secret", b"x-execd", b"\r\nte:"):
                assert gone not in lower
        for target, want in (("", b"GET / "), ("/", b"GET / "), ("?x=1", b"GET /?x=1 ")):
            assert one.request("GET", f"/proxy/{up.port}{target}").status == 207
            assert seen.pop()[0].startswith(want)
        # through itself, and back out
        assert one.request("GET", f"/proxy/{one.port}/proxy/{up.port}/y").status == 207
        assert seen.pop()[0].startswith(b"GET /y ")


def test_nothing_listens(one):
    free = socket.socket()
    free.bind(("127.0.0.1", 0))
    answer = one.request("POST", f"/proxy/{free.getsockname()[1]}/", b"x" * 1000000)
    assert answer.status == 502 and answer.body == b"Bad Gateway\n"
    free.close()
    for path in ("/proxy/", "/proxy/x/", "/proxy/0/", "/proxy/65536/", "/proxy/-1/", "/proxy/99999999999999999999/", "/proxy/1x/"):
        assert one.request("GET", path).status == 400


@pytest.mark.parametrize("answer, status", [
    (b"", 502), (b"garbage\r\n\r\n", 502), (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 502), (b"HTTP/1.1 200 OK\r\n", 502),
    (b"HTTP/1.1 200 OK\r\nX: a\nb\r\n\r\n", 502), (b"HTTP/1.1 101 Switching\r\n\r\n", 502), (b"HTTP/1.1 100 Continue\r\n\r\n" * 20, 502),
    (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300000 + b"\r\n\r\n", 502), (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 200),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nuntil the end", 200),
    (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", 200), (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd;x\r\nuntil the end\r\n0\r\nT: x\r\n\r\n", 200),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nuntil the endGARBAGE", 200), (b"HTTP/1.1 204 No\r\n\r\n", 204), (b"HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\n", 304),
])
def test_answers_of_services(one, answer, status):
    def serve(s):
        read_head(s)
        for at in range(0, len(answer), 7000):
            s.sendall(answer[at:at + 7000])
    with Upstream(serve) as up:
        got = one.request("GET", f"/proxy/{up.port}/")
        assert got.status == status, got
        assert got.body == {200: b"until the end", 502: b"Bad Gateway\n"}.get(status, b"")


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
                                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcXX\r\n"])
def test_a_cut_answer_stays_cut(one, answer):
    def serve(s):
        read_head(s)
        s.sendall(answer)
    with Upstream(serve) as up:
        got = one.raw(b"GET /proxy/%d/ HTTP/1.1\r\nHost: h\r\n\r\n" % up.port)
        assert got.startswith(b"HTTP/1.1 200 OK\r\n") and b"abc" in got and not got.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("smuggled", [
    b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: h\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: h\r\n\r\n",
    b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: h\r\n\r\n",
    b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: h\r\n\r\n",
    b"Content-Length: 3, 4\r\n\r\nGET /evil HTTP/1.1\r\nHost: h\r\n\r\n",
    b"Content-Length: +3\r\n\r\nGET /evil HTTP/1.1\r\nHost: h\r\n\r\n",
    b"X: a\nContent-Length: 3\r\n\r\nGET /evil HTTP/1.1\r\nHost: h\r\n\r\n",
    b"Connection: Content-Length\r\nContent-Length: 0\r\n\r\nGET /evil HTTP/1.1\r\nHost: h\r\n\r\n",
    b"Connection: Host\r\n\r\nGET /evil HTTP/1.1\r\nHost: h\r\n\r\n",
])
def test_smuggling(one, smuggled):
    """What a service reads on one connection is one request, framed without doubt."""
    arrived = []

    def serve(s):
        s.settimeout(0.3)
        got = read_head(s)
        with contextlib.suppress(TimeoutError):
            while more := s.recv(4096):
                got += more
        arrived.append(got)
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    with Upstream(serve) as up:
        one.raw(b"POST /proxy/%d/ok HTTP/1.1\r\nHost: h\r\n" % up.port + smuggled, shut=True)
        assert all(b"/evil" not in got and got.count(b"HTTP/1.1") == 1 and got.lower().count(b"host:") == 1 for got in arrived), arrived


def test_streams_both_ways(one):
    """The other side sees each piece while the next is not sent yet."""
    def serve(s):
        head = read_head(s)
        assert b"transfer-encoding: chunked" in head.lower()
        s.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while b"0\r\n\r\n" not in (got := s.recv(4096)):
            s.sendall(b"<" + got.split(b"\r\n")[1] + b">")
        s.sendall(b".")
    with Upstream(serve) as up, one.connect() as s:
        s.sendall(b"POST /proxy/%d/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" % up.port)
        for word in (b"one", b"two", b"three"):
            s.sendall(b"%x\r\n%s\r\n" % (len(word), word))
            got = b""
            while b"<" + word + b">" not in got:
                got += s.recv(4096)
        s.sendall(b"0\r\n\r\n")
        got = b""
        while not got.endswith(b"0\r\n\r\n"):
            got += s.recv(4096)


def test_slow_sides_in_flat_memory(one):
    size = 100 << 20

    def serve(s):
        read_head(s)
        time.sleep(0.5)         # nobody reads the request
        n = 0
        while n < size:
            n += len(s.recv(1 << 20))
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        block = bytes(1 << 20)
        for _ in range(100):
            s.sendall(block)
    with Upstream(serve) as up, one.connect(60) as s:
        s.sendall(b"POST /proxy/%d/ HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (up.port, size))
        block = bytes(1 << 20)
        for _ in range(100):
            s.sendall(block)
        time.sleep(0.5)         # nobody reads the answer
        n = 0
        while more := s.recv(1 << 20):
            n += len(more)
        assert n > size
    assert one.memory() < 8192, one.memory()


def test_upgrade_becomes_a_tunnel(one):
    def serve(s):
        head = read_head(s).lower()
        assert b"upgrade: websocket\r\n" in head and b"connection: upgrade\r\n" in head and b"sec-websocket-key: k\r\n" in head
        s.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: a\r\n\r\nfirst")
        total = 0
        while got := s.recv(65536):
            total += len(got)
            if total < 100:
                s.sendall(got[::-1])
        s.sendall(b"<%d>" % total)
    with Upstream(serve) as up, one.connect() as s:
        s.sendall(b"GET /proxy/%d/t HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\nearly" % up.port)
        got = b""
        while not got.endswith(b"ylrae"):
            got += s.recv(4096)
        assert got.startswith(b"HTTP/1.1 101 ") and b"\r\nSec-WebSocket-Accept: a\r\n" in got and got.endswith(b"\r\n\r\nfirstylrae")
        s.sendall(b"GET /evil HTTP/1.1\r\n\r\n\x00\xff")
        assert s.recv(100) == b"GET /evil HTTP/1.1\r\n\r\n\x00\xff"[::-1]
        blocks = bytes(5 << 20)
        s.sendall(blocks)
        s.shutdown(socket.SHUT_WR)      # one direction ends by itself
        assert read_all(s) == b"<%d>" % (5 + 24 + len(blocks))
    wait_for(lambda: one.descriptors() < 20)
    # a service that refuses: an ordinary answer
    with Upstream(lambda s: (read_head(s), s.sendall(b"HTTP/1.1 426 No\r\nContent-Length: 2\r\n\r\nno"))) as up:
        got = one.raw(b"GET /proxy/%d/ HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, close\r\nUpgrade: x\r\n\r\n" % up.port)
        assert got.startswith(b"HTTP/1.1 426 ") and got.endswith(b"\r\n\r\nno")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_another_user_is_given_no_connection(tmp_path):
    """A name that anybody may take, and a port that is somebody's."""
    a = Agent(tmp_path, NOBODY)
    with Upstream(lambda s: (read_head(s), s.sendall(b"HTTP/1.1 426 No\r\nContent-Length: 0\r\n\r\n"))) as up, \
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(f"\0abx-door-{up.port}")
        door.listen()
        got = a.raw(b"GET /proxy/%d/ HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, close\r\nUpgrade: x\r\n\r\n" % up.port)
        assert got.startswith(b"HTTP/1.1 426 ")
        assert door.accept()[0].recv(100) == b""        # it came, looked, and left
    a.close()


def test_a_client_that_leaves_closes_the_service(one):
    closed = threading.Event()

    def serve(s):
        read_head(s)
        s.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            try:
                s.sendall(b"tick\n")
            except OSError:
                closed.set()
                return
            time.sleep(0.02)
    with Upstream(serve) as up:
        with one.connect() as s:
            s.sendall(b"GET /proxy/%d/ HTTP/1.1\r\nHost: h\r\n\r\n" % up.port)
            s.recv(100)
        assert closed.wait(5)
