"""Run the program under test: $ABX or ./abx, with an environment of its own."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent


def binary():
    path = Path(os.environ.get("ABX") or TOP / "abx").resolve()
    assert path.is_file(), f"{path} is not there: make it, or name it by ABX"
    return str(path)


class Done:
    def __init__(self, words, code, out, err):
        self.words, self.code, self.out, self.err = words, code, out, err

    @property
    def text(self):
        return self.out.decode()

    @property
    def errors(self):
        return self.err.decode()

    def json(self):
        assert self.code == 0, self
        assert self.out.endswith(b"\n"), self
        return json.loads(self.out)

    def error(self):
        """The one error document on stderr; stdout must be empty."""
        assert self.out == b"", self
        lines = [line for line in self.errors.splitlines() if line.startswith("{")]
        assert len(lines) == 1, self
        error = json.loads(lines[0])["error"]
        assert list(error)[:4] == ["code", "message", "suggestion", "docs_url"], self
        assert all(isinstance(error[k], str) for k in list(error)[:4]), self
        return error

    def __repr__(self):
        return f"abx {' '.join(map(str, self.words))}: exit {self.code}\nstdout {self.out[:2000]!r}\nstderr {self.err[:2000]!r}"


class Abx:
    """One user: a home, a server, a key, and a way to the sandboxes (direct or through the server's proxy)."""

    store = None        # plugins that every home begins with

    def __init__(self, home, server, route="direct", **env):
        self.home = Path(home)
        self.home.mkdir(parents=True, exist_ok=True)
        if self.store and not (self.home / "abx/providers").exists():
            shutil.copytree(self.store, self.home / "abx/providers")
        self.env = {
            "PATH": "/usr/bin:/bin", "HOME": str(self.home), "ABX_HOME": str(self.home / "abx"),
            "ABX_PROVIDER": "opensandbox", "ABX_OPENSANDBOX_BASE_URL": server.url,
            "ABX_OPENSANDBOX_API_KEY": server.key,
            "ABX_OPENSANDBOX_USE_SERVER_PROXY": "true" if route == "proxy" else "false", **env}

    def start(self, *words, env=None, **kw):
        kw = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kw}
        return subprocess.Popen([binary(), *words], env=dict(self.env, **(env or {})), cwd=self.home, **kw)

    def __call__(self, *words, env=None, timeout=60, input=None, **kw):
        child = self.start(*words, env=env, **({} if input is None else {"stdin": subprocess.PIPE}), **kw)
        try:
            out, err = child.communicate(input, timeout=timeout)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            out, err = child.communicate()
            raise AssertionError(f"abx {words} did not end in {timeout} s\n{out!r}\n{err!r}")
        return Done(words, child.returncode, out, err)
