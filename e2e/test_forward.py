"""Ports of a sandbox on the real server, by `abx port-forward`: many connections, ends that go through by themselves, a client that is killed."""

import hashlib
import json
import os
import re
import signal
import socket

from program import Abx

# Answers with the digest of all it was sent, when that has ended.
SERVICE = """
import hashlib, socket, threading
def one(s):
    h = hashlib.sha256()
    while d := s.recv(65536): h.update(d)
    s.sendall(h.hexdigest().encode()); s.close()
l = socket.create_server(("127.0.0.1", 0), backlog=5)
print(l.getsockname()[1], flush=True)
while True: threading.Thread(target=one, args=(l.accept()[0],), daemon=True).start()
"""


def opened(abx, sandbox, port):
    """port-forward, and the port here."""
    child = abx.start("--json", "port-forward", sandbox, f"0:{port}")
    return child, int(re.fullmatch(r"127\.0\.0\.1:(\d+)", json.loads(child.stdout.readline())["local"])[1])


def answers(port, questions):
    socks = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in questions]
    for sock, question in zip(socks, questions):
        sock.sendall(question)
        sock.shutdown(socket.SHUT_WR)
    for sock, question in zip(socks, questions):
        got = b""
        while more := sock.recv(100):
            got += more
        sock.close()
        assert got.decode() == hashlib.sha256(question).hexdigest()


def test_forward(daemon, route, servers, shared, tmp_path):
    abx, sandbox = Abx(tmp_path, servers[daemon], route), shared(daemon, "debian")
    servers[daemon].wait(sandbox)
    service = abx.start("exec", sandbox, "--", "python3", "-u", "-c", SERVICE)
    port = int(service.stdout.readline())
    killed, local = opened(abx, sandbox, port)
    answers(local, [b"first"])
    held = socket.create_connection(("127.0.0.1", local))
    killed.kill()
    killed.communicate(timeout=10)
    held.close()
    child, local = opened(abx, sandbox, port)
    answers(local, [os.urandom(10_000) for _ in range(100)])
    answers(local, [os.urandom(5_000_000), b"", b"x"])
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=10)
    assert child.returncode == 130
    service.send_signal(signal.SIGTERM)
    assert service.wait(10) == 143
    service.communicate()
