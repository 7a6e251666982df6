"""What the tests of the program share: running it in an environment that holds
nothing of this machine, and a scripted server to run it against."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import scripted

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("ABX_TEST_BINARY", str(ROOT / "abx"))
DEADLINE = 40       # seconds that no run of the program may take


class Ran:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __repr__(self):
        return f"status {self.status}\nstdout {self.out!r}\nstderr {self.err!r}"

    @property
    def doc(self):
        return json.loads(self.out)

    @property
    def error(self):
        """The error object on standard error, which must be its last line."""
        return json.loads(self.err.decode().splitlines()[-1])["error"]

    def failed_well(self, json_form):
        """What holds of every failure: a code, one line, no secret, nothing on stdout."""
        assert self.status not in (0, None) and self.status > 0, self
        assert scripted.KEY.encode() not in self.out + self.err, self
        if json_form:
            assert self.out == b"", self
            assert re.fullmatch(r"E\d{4}", self.error["code"]), self
            assert self.error["message"], self
            assert list(self.error)[:5] == ["code", "message", "suggestion", "docs_url", "retryable"], self
        else:
            lines = [line for line in self.err.decode(errors="replace").splitlines() if not line.startswith("abx: ")]
            assert re.match(r"\[E\d{4}\] .", lines[0]), self
            assert all(line.startswith("  ") for line in lines[1:]), self


class Program:
    """Runs abx with an environment of its own; `env` is what it sees besides."""

    def __init__(self, home, server=None):
        self.home, self.env, self.cwd = home, {}, home
        if server:
            self.env = {"ABX_PROVIDER": "opensandbox", "ABX_OPENSANDBOX_BASE_URL": server.url,
                        "ABX_OPENSANDBOX_API_KEY": scripted.KEY}

    def environment(self, extra=None):
        merged = {"HOME": str(self.home), "ABX_HOME": str(self.home / ".abx"), "PATH": os.environ["PATH"], "LC_ALL": "C",
                  **self.env, **(extra or {})}
        return {k: v for k, v in merged.items() if v is not None}

    def __call__(self, *args, input=b"", env=None, wrap=(), **more):
        """`wrap`: a program in front, such as strace."""
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        # Nothing to close: descriptors of this process are not inherited, and
        # without the loop the start is a vfork.
        done = subprocess.run([*wrap, BINARY, *args], input=input, env=self.environment(env), cwd=self.cwd,
                              timeout=DEADLINE, close_fds=False, **more)
        return Ran(done.returncode, done.stdout, done.stderr)

    def start(self, *args, env=None, **more):
        for name in ("stdin", "stdout", "stderr"):
            more.setdefault(name, subprocess.PIPE)
        return subprocess.Popen([BINARY, *args], env=self.environment(env), cwd=self.cwd, **more)


@pytest.fixture
def abx(tmp_path):
    """The program, with nothing configured."""
    return Program(tmp_path)


@pytest.fixture
def server():
    with scripted.Server() as running:
        yield running


@pytest.fixture
def osb(tmp_path, server):
    """The program, configured for the scripted server."""
    return Program(tmp_path, server)
