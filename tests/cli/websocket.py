"""A WebSocket client (RFC 6455) for tests: frames as they are, nothing done behind the test's back but joining and pongs."""

import base64
import hashlib
import json
import os
import socket
import struct
import time
import urllib.parse

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Refused(Exception):
    def __init__(self, status, headers, body):
        super().__init__(f"{status} {body[:300]!r}")
        self.status, self.headers, self.body = status, headers, body


class Ended(Exception):
    """code: of the close frame; None: the connection ended without one."""

    def __init__(self, code, reason=""):
        super().__init__(f"closed: {code} {reason!r}")
        self.code, self.reason = code, reason


def frame(op, data, fin=True, mask=b"\x12\x34\x56\x78"):
    n = len(data)
    head = bytes([(0x80 if fin else 0) | op])
    size = bytes([0x80 | n]) if n < 126 else b"\xfe" + struct.pack(">H", n) if n < 65536 else b"\xff" + struct.pack(">Q", n)
    if n:
        key = (mask * (n // 4 + 1))[:n]
        data = (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(n, "big")
    return head + size + mask + data


class WebSocket:
    def __init__(self, url, headers=(), timeout=20, pongs=True):
        u = urllib.parse.urlsplit(url)
        self.pongs, self.have = pongs, bytearray()
        self.socket = socket.socket()
        self.socket.settimeout(timeout)
        self.socket.connect((u.hostname, u.port))
        key = base64.b64encode(os.urandom(16))
        lines = [f"GET {u.path}{'?' + u.query if u.query else ''} HTTP/1.1", f"Host: {u.netloc}", "Connection: Upgrade",
                 "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key.decode()}",
                 *(f"{k}: {v}" for k, v in headers)]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = self.until(b"\r\n\r\n").decode().split("\r\n")
        status = int(head[0].split()[1])
        fields = {k.lower(): v for k, v in (line.split(": ", 1) for line in head[1:] if line)}
        if status != 101:
            body = self.exactly(int(fields.get("content-length", 0)))
            self.close()
            raise Refused(status, fields, body)
        assert fields["sec-websocket-accept"] == base64.b64encode(hashlib.sha1(key + GUID).digest()).decode(), fields

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def more(self):
        got = self.socket.recv(1 << 17)
        if not got:
            raise Ended(None)
        self.have += got

    def until(self, mark):
        while mark not in self.have:
            self.more()
        return self.exactly(self.have.index(mark) + len(mark))[:-len(mark)]

    def exactly(self, n):
        while len(self.have) < n:
            self.more()
        got = bytes(self.have[:n])
        del self.have[:n]
        return got

    def send(self, op, data, fin=True):
        self.socket.sendall(frame(op, data, fin))

    def frame(self):
        a, b = self.exactly(2)
        n = b & 127
        assert not a & 0x70 and not b & 0x80, "a server's frame is not masked and has no reserved bits"
        if n > 125:
            n = int.from_bytes(self.exactly(2 if n == 126 else 8), "big")
        return a & 15, bool(a & 0x80), self.exactly(n)

    def next(self):
        """The next message, (TEXT or BINARY, bytes). Ended when there is none."""
        kind, whole = None, b""
        while True:
            try:
                op, fin, data = self.frame()
            except ConnectionResetError:
                raise Ended(None) from None
            if op == CLOSE:
                code = int.from_bytes(data[:2], "big") if data else 1005
                raise Ended(code, data[2:].decode())
            if op == PING and self.pongs:
                self.send(PONG, data)
            if op >= CLOSE:
                continue
            kind, whole = kind if kind is not None else op, whole + data
            if fin:
                return kind, whole


class Terminal:
    """One connection to /pty/ID/ws: what came of each kind."""

    def __init__(self, url, **more):
        self.socket = WebSocket(url, **more)
        self.out, self.err, self.replay, self.said, self.end = bytearray(), bytearray(), [], [], None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def step(self):
        """One message more; False at the end, which is kept."""
        try:
            op, data = self.socket.next()
        except Ended as e:
            self.end = (e.code, e.reason)
            return False
        if op == TEXT:
            assert data.endswith(b"\n"), data
            self.said.append(json.loads(data))
        elif data[:1] == b"\x01":
            self.out += data[1:]
        elif data[:1] == b"\x02":
            self.err += data[1:]
        else:
            assert data[:1] == b"\x03", data
            self.replay.append((int.from_bytes(data[1:9], "big"), data[9:]))
        return True

    def until(self, true, seconds=20):
        end = time.monotonic() + seconds
        while not true(self):
            assert time.monotonic() < end and self.step(), (self.said, self.out[-2000:], self.err[-500:], self.end)
        return self

    def sees(self, text, seconds=20):
        return self.until(lambda t: text in t.out, seconds)

    def hears(self, kind, seconds=20):
        """The first text message of this type."""
        return next(m for m in self.until(lambda t: any(m["type"] == kind for m in t.said), seconds).said if m["type"] == kind)

    def finish(self, seconds=40):
        """All to the end; the exit code."""
        end = time.monotonic() + seconds
        while self.step():
            assert time.monotonic() < end, (self.said, len(self.out))
        return next((m["exit_code"] for m in self.said if m["type"] == "exit"), None)

    def type(self, data):
        self.socket.send(BINARY, b"\0" + data)

    def say(self, **message):
        self.socket.send(TEXT, json.dumps(message).encode())
