"""A sandbox that runs commands: the scripted server for its lifecycle, and
`abx agent serve` as its daemon, in mount and pid namespaces of its own, so that
what is carried into it lies in a /tmp that goes with it."""

import os
import re
import subprocess
import threading
import time
from pathlib import Path

import pytest

import scripted
from conftest import BINARY, Program

ROOT = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
# The program is opened before its folder is hidden.
START = 'exec 9<"$1"; mount -t tmpfs tmpfs /tmp; cd /; exec /proc/self/fd/9 agent serve --host 127.0.0.1 --port 0'


class Daemon:
    def __init__(self, env=None):
        self.process = subprocess.Popen([*ROOT, "sh", "-c", START, "sh", BINARY], env={"PATH": os.environ["PATH"], "HOME": "/tmp",
                                        **(env or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, start_new_session=True)
        self.port = int(re.search(rb"port (\d+)$", self.process.stderr.readline())[1])

    def close(self):
        self.process.terminate()
        assert self.process.wait(10) == 0
        self.process.stderr.close()


class Server(scripted.Server):
    """Every sandbox there is has the one daemon. `made` counts those that came and went."""

    def __init__(self, daemon):
        self.daemon, self.removed = daemon, []
        super().__init__()

    def _sandbox(self, request, box, rest):
        if rest and rest[0] == "endpoints":
            return scripted.answer(200, {"endpoint": f"127.0.0.1:{self.daemon.port}"})
        if not rest and request.method == "DELETE":
            self.removed.append(box.id)
        return super()._sandbox(request, box, rest)


class Live(Program):
    """The program, and a sandbox "box" to run commands in. `mode`: --agent."""

    def __init__(self, home, server, mode):
        super().__init__(home, server)
        self.server, self.mode, self.begun = server, mode, []

    def start(self, *args, **more):
        more.setdefault("bufsize", 0)
        self.begun.append(super().start(*args, **more))
        return self.begun[-1]

    def end(self):
        """Whatever a test waits for ends with the programs that it started."""
        for process in self.begun:
            if process.poll() is None:
                process.kill()

    def exec(self, *words, form=(), **more):
        return self(*form, "--agent", self.mode, "exec", "box", *words, **more)

    def begin(self, *words, form=(), **more):
        return self.start(*form, "--agent", self.mode, "exec", "box", *words, **more)

    def inside(self, line):
        """What a line of shell prints in the sandbox."""
        ran = self("--agent", "never", "exec", "box", line, stdin=subprocess.DEVNULL, input=None)
        assert ran.status == 0, ran
        return ran.out.decode()

    def runs(self, mark):
        """How many processes have the mark among their arguments, in the sandbox and here."""
        count = 0
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    words = (folder / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                count += mark.encode() in words
        return count

    def gone(self, mark, seconds=5):
        end = time.monotonic() + seconds
        while self.runs(mark):
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True


@pytest.fixture(scope="module")
def daemon():
    running = Daemon()
    yield running
    running.close()


@pytest.fixture
def both(tmp_path, daemon, request):
    """Parametrize indirectly with the modes."""
    with Server(daemon) as server:
        server.box("box")
        program = Live(tmp_path, server, getattr(request, "param", "auto"))
        limit = threading.Timer(60, program.end)
        limit.start()
        yield program
        limit.cancel()
        program.end()
