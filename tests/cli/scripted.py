"""A scripted OpenSandbox server: raw sockets, so that it can answer anything.

Without a script it answers the live path of every verb well, from a small
state of its own: sandboxes, files, commands. A script is a function

    def script(request, answer): ...

that is asked before each answer is sent, and returns what is sent instead: a
list of bytes (sent one by one), numbers (seconds to wait) and CLOSE, HOLD or
RESET at its end. `cut(nth, k)` and `instead(nth, *pieces)` make the usual ones.

    with Server() as server:
        server.script = cut(2, 17)      # the third answer ends after 17 bytes
        ...
        server.requests                 # what was asked, in order
"""

import json
import shlex
import socket
import struct
import threading
import time
from urllib.parse import parse_qs, unquote, urlsplit

KEY = "super-secret-key-xyzzy"
CLOSE, HOLD, RESET = object(), object(), object()
REASONS = {200: "OK", 202: "Accepted", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found",
           409: "Conflict", 422: "Unprocessable Entity", 429: "Too Many Requests", 500: "Internal Server Error",
           502: "Bad Gateway", 503: "Service Unavailable"}


def answer(status, body=None, kind="application/json", headers=()):
    """One whole answer as bytes; a body that is no bytes becomes JSON."""
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Whatever')}"]
    if body:
        lines.append(f"content-type: {kind}")
    if status != 204:
        lines.append(f"content-length: {len(body or b'')}")
    lines += headers
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def chunked(pieces, kind="text/event-stream", end=True):
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    return head + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces if p) + (b"0\r\n\r\n" if end else b"")


def event(**fields):
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def cut(nth, k, end=CLOSE):
    """The nth answer (from 0) ends after k bytes; all others are whole."""
    return lambda request, whole: [whole[:k], end] if request.index == nth else [whole]


def instead(nth, *pieces):
    """Other bytes in place of the nth answer."""
    return lambda request, whole: list(pieces) if request.index == nth else [whole]


def always(*pieces):
    return lambda request, whole: list(pieces)


def meant(line):
    """What was to be run, of the line that the daemon's shell gets: the line
    behind `exec sh -c`, else the words of a program."""
    words = shlex.split(line)
    if words[:3] == ["echo", "$$", ">&2;"]:     # the plugin server asks for the process
        words = words[3:]
    if words[:1] == ["exec"]:
        return words[3] if words[1:3] == ["sh", "-c"] else " ".join(words[1:])
    return line


class Request:
    def __init__(self, index, head, body):
        first, *rest = head.decode("latin-1").split("\r\n")
        self.index, self.body = index, body
        self.method, self.target, _ = first.split(" ", 2)
        self.headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in rest)}
        parts = urlsplit(self.target)
        self.path, self.query = unquote(parts.path), parse_qs(parts.query, keep_blank_values=True)

    def __repr__(self):
        return f"{self.method} {self.target}"

    def json(self):
        return json.loads(self.body)


class Box:
    def __init__(self, name, request):
        self.id, self.state = name, "Running"
        self.image = request.get("image", {}).get("uri")
        self.metadata = request.get("metadata") or {}

    def show(self, image=True):
        shown = {"id": self.id, "status": {"state": self.state}, "metadata": self.metadata,
                 "entrypoint": ["tail", "-f", "/dev/null"], "expiresAt": "2036-11-30T03:05:54Z",
                 "createdAt": "2036-11-30T02:55:54Z"}
        if image:
            shown["image"] = {"uri": self.image}
        return shown


class Server:
    """The lifecycle API and, under /x/ID, the daemon of each sandbox."""
    key = KEY

    def __init__(self):
        self.script = None
        self.requests, self.answers = [], []
        self.boxes, self.files = {}, {}
        self.commands = {}          # command line -> list of event bytes
        self.lock = threading.Lock()
        self.held = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.open = set()
        self.accepts = threading.Thread(target=self._accept, daemon=True)
        self.accepts.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.held.set()
        # A thread that still accepts would serve the next server, whose listener
        # gets the same descriptor.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.accepts.join()
        self.listener.close()
        with self.lock:
            for sock in self.open:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def clear(self):
        """As new, but for the port."""
        with self.lock:
            self.script = None
            self.requests, self.answers = [], []
            self.boxes, self.files, self.commands = {}, {}, {}

    def box(self, name="box-1", **fields):
        self.boxes[name] = Box(name, {"image": {"uri": "python:3.12-slim"}, **fields})
        return self.boxes[name]

    # --- the wire ---

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.open.add(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            stream = sock.makefile("rb")
            while self._exchange(sock, stream):
                pass
        except (OSError, ValueError):
            pass
        finally:
            with self.lock:
                self.open.discard(sock)
            try:
                sock.close()
            except OSError:
                pass

    def _exchange(self, sock, stream):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline(1 << 20)
            if not line:
                return False
            head += line
        body = self._body(head, stream)
        with self.lock:
            request = Request(len(self.requests), head[:-4], body)
            self.requests.append(request)
            whole = self._answer(request)
            self.answers.append(whole)
            script = self.script
        pieces = script(request, whole) if script else [whole]
        for piece in pieces:
            if piece is HOLD:
                self.held.wait(60)
                return False
            if piece is RESET:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
            if piece is CLOSE:
                return False
            if isinstance(piece, (int, float)):
                time.sleep(piece)
            elif isinstance(piece, bytes):
                sock.sendall(piece)
            else:
                for part in piece:
                    sock.sendall(part)
        return b"\r\nconnection: close\r\n" not in whole.lower()

    @staticmethod
    def _body(head, stream):
        lower = head.lower()
        if b"\r\ntransfer-encoding: chunked" in lower:
            body = b""
            while True:
                size = int(stream.readline().split(b";")[0], 16)
                piece = stream.read(size + 2)[:-2]
                if size == 0:
                    return body
                body += piece
        at = lower.find(b"\r\ncontent-length:")
        if at < 0:
            return b""
        length = int(lower[at + 17:lower.index(b"\r\n", at + 2)])
        body = stream.read(length)
        if len(body) < length:
            raise ValueError("the request was cut")
        return body

    # --- good answers ---

    def _answer(self, request):
        parts = request.path.strip("/").split("/")
        if parts and parts[0] == "x":
            return self._execd(request, parts[1], "/".join(parts[2:]))
        if parts and parts[0] == "v1":
            parts = parts[1:]
        if request.headers.get("open-sandbox-api-key") != KEY:
            return answer(401, {"code": "INVALID_API_KEY", "message": "Authentication credentials are invalid."})
        if parts == ["sandboxes"] and request.method == "POST":
            name = f"new-{len(self.boxes) + 1}"
            self.boxes[name] = Box(name, request.json())
            return answer(202, self.boxes[name].show(image=False))
        if parts == ["sandboxes"]:
            return self._list(request)
        box = self.boxes.get(parts[1]) if len(parts) > 1 and parts[0] == "sandboxes" else None
        if not box:
            return answer(404, {"code": "DOCKER::SANDBOX_NOT_FOUND", "message": f"Sandbox {parts[-1]} not found."})
        return self._sandbox(request, box, parts[2:])

    def _list(self, request):
        size, page = int(request.query.get("pageSize", ["20"])[0]), int(request.query.get("page", ["1"])[0])
        wanted = parse_qs(request.query.get("metadata", [""])[0])
        found = [b for b in self.boxes.values() if all(b.metadata.get(k) == v[0] for k, v in wanted.items())]
        pages = -(-len(found) // size)
        return answer(200, {"items": [b.show() for b in found[(page - 1) * size:page * size]],
                            "pagination": {"page": page, "pageSize": size, "totalItems": len(found),
                                           "totalPages": pages, "hasNextPage": page < pages}})

    def _sandbox(self, request, box, rest):
        if not rest and request.method == "DELETE":
            del self.boxes[box.id]
            return answer(204)
        if not rest:
            return answer(200, box.show())
        if rest[0] == "endpoints":
            return answer(200, {"endpoint": f"127.0.0.1:{self.port}/x/{box.id}"})
        if rest[0] in ("pause", "resume"):
            now, then = ("Running", "Paused") if rest[0] == "pause" else ("Paused", "Running")
            if box.state != now:
                return answer(409, {"code": "DOCKER::WRONG_STATE", "message": f"Sandbox is not {now.lower()}."})
            box.state = then
            return answer(202)
        if rest[0] == "renew-expiration":
            return answer(200, {"expiresAt": request.json()["expiresAt"]})
        return answer(404, {"detail": "Not Found"})

    def _execd(self, request, name, call):
        if name not in self.boxes:
            return answer(502, {"code": "BACKEND_CONNECTION_FAILED", "message": "no such backend"})
        path = request.query.get("path", [""])[0]
        if call == "ping":
            return answer(200)
        if call == "command" and request.method == "POST":
            return chunked(self._command(request.json()))
        if call == "command":
            return answer(200)
        if call.startswith("command/status/"):
            return answer(200, {"id": call[15:], "running": False, "exit_code": 0})
        if call == "files/upload":
            return self._upload(request)
        if path not in self.files and call in ("files/info", "files/download"):
            return answer(404, {"code": "FILE_NOT_FOUND", "message": f"file not found: {path}"})
        if call == "files/info":
            data, mode = self.files[path]
            return answer(200, {path: {"path": path, "type": "file", "size": len(data), "mode": mode}})
        if call == "files/download":
            return answer(200, self.files[path][0], kind="application/octet-stream")
        if call == "files" and request.method == "DELETE":
            self.files.pop(path, None)
            return answer(200)
        return answer(404, b"404 page not found", kind="text/plain")

    def _command(self, asked):
        line = meant(asked["command"])
        events = [event(type="init", text="c0ffee", timestamp=1), event(type="ping", text="pong", timestamp=1)]
        if line in self.commands:
            return events + self.commands[line]
        if "agent listen" in line:      # what carries the agent: no program goes in here
            return events + [event(type="stdout", text="ABX1 nodir /tmp"), event(type="execution_complete", execution_time=1)]
        return events + self._shell(line)

    def _shell(self, line):
        """mv and rm on the files, as an upload asks for them; all else does nothing."""
        words = shlex.split(line)
        if "mv" in words:
            source, target = words[words.index("mv") + 1:][-2:]
            if source not in self.files:
                return [event(type="stderr", text=f"mv: {source}"),
                        event(type="error", error={"ename": "CommandExecError", "evalue": "1", "traceback": []})]
            self.files[target] = self.files.pop(source)
        elif "rm" in words:
            for word in words[words.index("rm") + 1:]:
                self.files.pop(word, None)
        return [event(type="execution_complete", execution_time=5)]

    def _upload(self, request):
        boundary = request.headers["content-type"].split("boundary=")[1].strip('"').encode()
        parts = request.body.split(b"--" + boundary)
        meta = data = None
        for part in parts[1:-1]:
            head, _, content = part.partition(b"\r\n\r\n")
            if b'name="metadata"' in head:
                meta = json.loads(content[:-2])
            else:
                data = content[:-2]
        self.files[meta["path"]] = (data, meta.get("mode", 644))
        return answer(200)
