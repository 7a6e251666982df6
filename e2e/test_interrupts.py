"""Signals at any moment of create, upload and download on the real server: nothing half-written, nothing lost sight of."""

import os
import shlex
import signal
import subprocess
import time

import pytest

from program import Abx, binary
from test_record import options

pytestmark = pytest.mark.paired


def interrupted(child, after, number=signal.SIGINT):
    """Send the signal after so many seconds; (exit code, stdout, stderr)."""
    time.sleep(after)
    child.send_signal(number)
    out, err = child.communicate(timeout=30)
    return child.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("after", [0.005, 0.03, 0.1, 0.3, 0.6, 0.9, 1.2])
def test_create(daemon, servers, mark, tmp_path, after):
    abx, only = Abx(tmp_path, servers[daemon]), dict(mark, at=f"t{after}")
    child = abx.start("--json", "sandbox", "create", *options(only))
    code, out, err = interrupted(child, after)
    left = servers[daemon].list(only)
    if code == 0:           # it was faster than the signal
        assert [s["id"] for s in left] and left[0]["id"] in out
    else:
        assert code in (130, -signal.SIGINT), (code, out, err)      # killed by it before it could look: nothing is made yet
        assert all(s["id"] in err for s in left), f"{left} is not named: {err}"
        assert left == [], "the sandbox was to be removed"
    for s in left:
        servers[daemon].kill(s["id"])


@pytest.mark.parametrize("number, status", [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_exec_ends_with_its_signal(box, number, status):
    child = box.abx.start("sandbox", "exec", box.id, "echo started; sleep 31")
    assert child.stdout.readline() == b"started\n"
    child.send_signal(number)
    assert child.wait(timeout=15) == status


@pytest.mark.parametrize("after", [0.02, 0.08, 0.15, 0.25, 0.4])
def test_upload(box, tmp_path, after):
    where = f"/tmp/i-{time.monotonic_ns()}"
    box.sh(f"mkdir {where}; echo old > {where}/f")
    (tmp_path / "big").write_bytes(data := os.urandom(30_000_000))
    before = set(box.sh("ls -a /tmp").split())
    code, _, err = interrupted(box.abx.start("sandbox", "upload", box.id, str(tmp_path / "big"), f"{where}/f"), after)
    assert code in (0, 130, -signal.SIGINT), err
    end = time.monotonic() + 5      # the daemon may still be reading what the kernels hold
    while box.sh(f"ls -a {shlex.quote(where)}").split() != [".", "..", "f"] and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(0.5)
    assert box.sh(f"ls -a {shlex.quote(where)}").split() == [".", "..", "f"], "something was left behind"
    assert int(box.sh(f"wc -c < {where}/f")) in ([len(data)] if code == 0 else [4, len(data)])
    left = {n for n in set(box.sh("ls -a /tmp").split()) - before if "abx" in n}
    assert not left, left
    box.sh(f"rm -rf {where}")


@pytest.mark.parametrize("after", [0.02, 0.06, 0.1, 0.2])
def test_download(box, tmp_path, after):
    box.sh("[ -e /tmp/thirty ] || head -c 30000000 /dev/urandom > /tmp/thirty")
    here = tmp_path / "here"
    here.mkdir()
    (here / "back").write_bytes(b"old")
    code, _, err = interrupted(box.abx.start("sandbox", "download", box.id, "/tmp/thirty", str(here / "back")), after)
    assert code in (0, 130, -signal.SIGINT), err
    assert [p.name for p in here.iterdir()] == ["back"]
    assert (here / "back").stat().st_size in ([30_000_000] if code == 0 else [3, 30_000_000])


def test_full_local_disk(box, tmp_path):
    """stdout that takes nothing: an error, never success."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run([binary(), "sandbox", "exec", box.id, "echo lost"], env=box.abx.env, cwd=tmp_path,
                              stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=30)
    assert done.returncode not in (0, -11, -6) and done.stderr, done


def test_no_stdout_at_all(box, tmp_path):
    for words in (["exec", box.id, "echo lost"], ["info", box.id], ["list"]):
        line = " ".join(map(shlex.quote, [binary(), "sandbox", *words])) + " >&-"
        done = subprocess.run(["sh", "-c", line], env=box.abx.env, cwd=tmp_path, stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=30)
        assert done.returncode != 0 and done.stderr, (words, done)
