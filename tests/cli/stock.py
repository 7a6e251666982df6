"""The stand-in for the stock daemon, built once from e2e/stock_execd, and run as an Agent is."""

import fcntl
import hashlib
import os
import subprocess

from agent import Agent
from conftest import ROOT

SOURCE = ROOT / "e2e/stock_execd"


def program():
    """The path of the program. Test programs that run side by side wait for one of them to build it."""
    digest = hashlib.sha256()
    for path in sorted([*SOURCE.rglob("*.go"), SOURCE / "go.mod"]):
        digest.update(path.read_bytes())
    place = ROOT / "build/stock"
    place.mkdir(parents=True, exist_ok=True)
    built = place / digest.hexdigest()[:16]
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            new = place / "new"
            path = os.environ.get("PATH", "") + ":/usr/local/go/bin"
            subprocess.run(["go", "build", "-trimpath", "-buildvcs=false", "-o", new, "."], cwd=SOURCE, check=True,
                           env=dict(os.environ, PATH=path, CGO_ENABLED="0"))
            new.rename(built)
    return str(built)


class Stock(Agent):
    words = ()

    def __init__(self, folder, env=None, limits=None):
        super().__init__(folder, env=env, limits=limits, program=program())

    def close(self):
        """It knows no other end than being killed."""
        assert self.process.poll() is None, self.process.stderr.read()
        self.process.kill()
        self.process.wait(10)
        self.process.stderr.close()
