"""Runs `abx agent serve` and talks to it: by http.client where the exchange is
plain, by a raw socket where it is not."""

import base64
import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
from pathlib import Path

import pytest

from conftest import BINARY

NOBODY = 65534
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.body[:500]!r}>"

    def header(self, name):
        return next((v for k, v in self.headers if k.lower() == name.lower()), None)

    @property
    def doc(self):
        return json.loads(self.body)


class Agent:
    """A daemon of its own in a folder of its own."""

    words = ("agent", "serve")

    def __init__(self, folder, user=None, env=None, limits=None, program=BINARY):
        if user is not None:        # pytest's folders, and perhaps the program's, are closed to others
            folder = Path(tempfile.mkdtemp(prefix="abx-agent-"))
            program = str(folder / "abx")
            shutil.copy(BINARY, program)
            os.chown(folder, user, user)
        self.folder, self.own = folder, user is not None
        self.env = {"PATH": PATH, "HOME": str(folder), "TMPDIR": str(folder), **(env or {})}
        more = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        self.process = subprocess.Popen([program, *self.words, "--host", "127.0.0.1", "--port", "0"], cwd=folder,
                                        env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, preexec_fn=limits, start_new_session=True, **more)
        line = self.process.stderr.readline().decode()
        self.port = int(re.search(r"port (\d+)$", line)[1])

    def close(self):
        """It ends when it is told to, and was well until then."""
        assert self.process.poll() is None, (self.process.returncode, self.process.stderr.read())
        self.process.terminate()
        assert self.process.wait(10) == 0
        self.process.stderr.close()
        if self.own:
            shutil.rmtree(self.folder)

    def connect(self, timeout=20):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def request(self, method, target, body=None, headers=(), timeout=30):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            if isinstance(body, (dict, list, int)):
                body = json.dumps(body)
            conn.request(method, target, body, dict(headers))
            got = conn.getresponse()
            return Answer(got.status, got.getheaders(), got.read())
        finally:
            conn.close()

    def get(self, call, headers=(), **query):
        return self.request("GET", call + "?" + urllib.parse.urlencode(query), headers=headers)

    def command(self, line, wait=30, **more):
        return events(self.request("POST", "/command", {"command": line, **more}, timeout=wait))

    def upload(self, *files):
        """Each is (metadata, bytes)."""
        parts = [p for meta, data in files for p in (part("metadata", json.dumps(meta).encode()), part("file", data))]
        return self.request("POST", "/files/upload", form(*parts), FORM)

    def raw(self, text, shut=False, timeout=20):
        """All that comes back for these bytes, until the other side closes."""
        with self.connect(timeout) as s:
            s.sendall(text)
            if shut:
                s.shutdown(socket.SHUT_WR)
            return read_all(s)

    def memory(self, field="VmHWM"):
        """In KiB."""
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(re.search(rf"{field}:\s+(\d+) kB", f.read())[1])

    def cpu(self):
        """Seconds."""
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


FORM = {"Content-Type": "multipart/form-data; boundary=B"}.items()


def part(name, data, filename="x"):
    named = f'; filename="{filename}"' if filename is not None else ""
    return f'Content-Disposition: form-data; name="{name}"{named}\r\n\r\n'.encode() + data


def form(*parts):
    return b"".join(b"--B\r\n" + p + b"\r\n" for p in parts) + b"--B--\r\n"


def read_all(s):
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while more := s.recv(65536):
            got += more
    return got


def events(answer):
    assert answer.status == 200, answer
    lines = answer.body.decode().split("\n\n")
    assert lines.pop() == ""
    return [json.loads(line) for line in lines]


def printed(stream, kind="stdout"):
    """The exact bytes, by the rule of docs/agent.md."""
    def piece(e):
        if "b64" in e:
            return base64.b64decode(e["b64"], validate=True)
        return b"\n" if e["text"] == "\n" else e["text"].encode() + b"\n"

    return b"".join(piece(e) for e in stream if e["type"] == kind)


def texts(stream, kind="stdout"):
    """What a client sees that knows of lines only."""
    return [e["text"] for e in stream if e["type"] == kind]


def result(stream):
    """0 or the error's value; the final event is the last but pings."""
    last = [e for e in stream if e["type"] != "ping"][-1]
    if last["type"] == "execution_complete":
        return "0"
    assert last["type"] == "error" and last["error"]["ename"] == "CommandExecError", last
    return last["error"]["evalue"]


def wait_for(true, seconds=10):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture(params=["root", "nobody"] if os.geteuid() == 0 else ["self"])
def agent(tmp_path, request):
    """A daemon, once for each kind of user there is."""
    a = Agent(tmp_path, NOBODY if request.param == "nobody" else None)
    yield a
    if a.process.poll() is None:
        a.close()


@pytest.fixture
def one(tmp_path):
    """A daemon, once."""
    a = Agent(tmp_path)
    yield a
    a.close()
