"""Drives `abx provider serve` as a host does: lines in, lines out."""

import json
import os
import queue
import subprocess
import threading
import time


class Host:
    """`program` is abx; `server` something with a url and a key to introduce it to."""

    def __init__(self, program, server=None, home="/nonexistent", provider="opensandbox", env=None, config=None, **more):
        self.process = subprocess.Popen(
            [program, "provider", "serve", provider], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
            env={"PATH": os.environ["PATH"], "HOME": str(home), **(env or {})}, **more)
        self.lines, self.last, self.said = queue.Queue(), 0, b""
        self.kept = []
        self.threads = [threading.Thread(target=self._read, daemon=True), threading.Thread(target=self._hear, daemon=True)]
        for thread in self.threads:
            thread.start()
        if server is not None:
            self.config = {"base_url": server.url, "api_key": server.key, **(config or {})}
            self.hello = self.call("initialize", **self.introduction())

    def introduction(self, **changes):
        return {"protocol": "epp/1", "host": {"name": "test", "version": "1"}, "provider_id": "opensandbox",
                "config": self.config, "core": {"http_timeout": 30.0}, "locale": "en", "data_dir": "/tmp", **changes}

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _hear(self):
        for line in self.process.stderr:
            self.said += line

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def notify(self, method, **params):
        self.raw(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")

    def send(self, method, **params):
        self.last += 1
        self.raw(json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}).encode() + b"\n")
        return self.last

    def line(self, seconds=20):
        """The next line; None at the end."""
        line = self.lines.get(timeout=seconds)
        if line is not None:
            assert line.endswith(b"\n") and len(line) <= 8 << 20, line[:100]
            line = json.loads(line)
            assert line["jsonrpc"] == "2.0"
        return line

    def until(self, match, seconds=20):
        """The first line that matches; what came before stays for later."""
        for i, line in enumerate(self.kept):
            if match(line):
                return self.kept.pop(i)
        end = time.monotonic() + seconds
        while True:
            line = self.line(max(0.01, end - time.monotonic()))
            assert line is not None, ("it ended", self.said)
            if match(line):
                return line
            self.kept.append(line)

    def answer(self, number, seconds=20):
        return self.until(lambda line: line.get("id") == number and "method" not in line, seconds)

    def ask(self, method, **params):
        return self.answer(self.send(method, **params))

    def call(self, method, **params):
        answer = self.ask(method, **params)
        assert "error" not in answer, str(answer)[:1000]
        return answer["result"]

    def fail(self, method, **params):
        answer = self.ask(method, **params)
        assert "result" not in answer, str(answer)[:1000]
        return answer["error"]

    def start(self, sandbox, *argv, **more):
        return self.call("exec.start", sandbox_id=sandbox, cmd=argv[0], args=list(argv[1:]), env={}, cwd="", user="",
                         **{"timeout": 30, **more})["process_id"]

    def finish(self, name, seconds=20):
        """Exit code, stdout, stderr of a command."""
        out = {"stdout": "", "stderr": ""}
        while True:
            line = self.until(lambda line: line.get("params", {}).get("process_id") == name and "method" in line, seconds)
            if line["method"] == "exec.exit":
                return line["params"]["exit_code"], out["stdout"], out["stderr"]
            out[line["params"]["stream"]] += line["params"]["data"]

    def sh(self, sandbox, line, **more):
        return self.finish(self.start(sandbox, "sh", "-c", line, **more))

    def end(self, seconds=5):
        """Close the input; the exit status."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        return self.wait(seconds)

    def wait(self, seconds=5):
        try:
            status = self.process.wait(seconds)
        finally:
            self.process.kill()
        for thread in self.threads:
            thread.join(5)
        return status
