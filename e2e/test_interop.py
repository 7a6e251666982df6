"""The official `osb` and Python SDK 1.1.1 on the same sandboxes: what one writes, the other reads."""

import json
import os
import subprocess
import urllib.parse
from pathlib import Path

import pytest

import rig as rigs
from program import Abx

pytestmark = pytest.mark.paired
CLIENT = rigs.CACHE / "venv-client/bin"
PATHS = ["/tmp/interop/plain.bin", "/tmp/interop/\u4f60\u597d \u4e16\u754c/'q\".txt"]


class Osb:
    def __init__(self, server, route, home):
        self.words = ["--use-server-proxy"] if route == "proxy" else []
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "OPEN_SANDBOX_DOMAIN": server.url,
                    "OPEN_SANDBOX_API_KEY": server.key}

    def __call__(self, *words, check=True):
        done = subprocess.run([CLIENT / "osb", *self.words, *words], env=self.env, capture_output=True, timeout=90)
        assert not check or done.returncode == 0, (words, done)
        return done


@pytest.fixture
def osb(daemon, route, servers, tmp_path):
    return Osb(servers[daemon], route, tmp_path)


@pytest.fixture
def sdk(daemon, route, servers):
    server = servers[daemon]

    def run(*words):
        done = subprocess.run(
            [CLIENT / "python", Path(__file__).with_name("sdk_client.py"),
             urllib.parse.urlsplit(server.url).netloc, server.key, route, *words],
            capture_output=True, timeout=90, env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"})
        assert done.returncode == 0, (words, done.stderr.decode()[-3000:])
        return done.stdout.decode().strip()
    return run


def test_osb_reads_what_abx_writes(box, osb, tmp_path):
    (tmp_path / "f").write_bytes(data := os.urandom(100_000))
    for path in PATHS:
        assert box.abx("sandbox", "upload", box.id, str(tmp_path / "f"), path).code == 0
        osb("file", "download", box.id, path, str(tmp_path / "back"))
        assert (tmp_path / "back").read_bytes() == data


def test_abx_reads_what_osb_writes(box, osb, tmp_path):
    (tmp_path / "f").write_bytes(data := os.urandom(100_000))
    for path in PATHS:
        osb("file", "upload", box.id, str(tmp_path / "f"), path)
        done = box.abx("sandbox", "download", box.id, path, str(tmp_path / "back"))
        assert done.code == 0 and (tmp_path / "back").read_bytes() == data


def test_sdk_and_abx(box, sdk, tmp_path):
    path, data = "/tmp/interop/sdk \u4f60.bin", os.urandom(5000)
    sdk(box.id, "write", path, data.hex())
    done = box.abx("sandbox", "download", box.id, path, str(tmp_path / "back"))
    assert done.code == 0 and (tmp_path / "back").read_bytes() == data
    (tmp_path / "f").write_bytes(other := os.urandom(5000))
    assert box.abx("sandbox", "upload", box.id, str(tmp_path / "f"), path).code == 0
    assert bytes.fromhex(sdk(box.id, "read", path)) == other
    ran = json.loads(sdk(box.id, "run", "echo out; echo err >&2; exit 3"))
    assert ran == {"stdout": ["out"], "stderr": ["err"], "error": "3"}


def test_osb_runs_in_a_sandbox_of_abx_and_ends_it(daemon, route, image, servers, osb, mark, tmp_path):
    abx = Abx(tmp_path, servers[daemon], route)
    words = [w for k, v in mark.items() for w in ("--metadata", f"{k}={v}")]
    sandbox = abx("--json", "sandbox", "create", "--template", rigs.IMAGES[image], *words).json()["sandbox_id"]
    try:
        ran = osb("command", "run", sandbox, "--", "sh", "-c", "echo hello; exit 7", check=False)
        assert ran.returncode == 1 and b"hello" in ran.stdout and b"7" in ran.stdout + ran.stderr
        assert sandbox in osb("sandbox", "list", "-o", "json").stdout.decode()
        osb("sandbox", "kill", sandbox)
    finally:
        servers[daemon].kill(sandbox)
    assert abx("--json", "sandbox", "info", sandbox).error()["code"] == "E2009"
    assert abx("--json", "sandbox", "kill", sandbox, "--yes").json()["killed"] is False


def test_abx_uses_and_ends_a_sandbox_of_osb(daemon, route, image, servers, osb, mark, tmp_path):
    abx = Abx(tmp_path, servers[daemon], route)
    words = [w for k, v in mark.items() for w in ("-m", f"{k}={v}")]
    made = osb("sandbox", "create", "--image", rigs.IMAGES[image], "--timeout", "10m", *words, "-o", "json")
    sandbox = json.loads(made.stdout)["id"]
    try:
        assert abx("sandbox", "exec", sandbox, "echo hello; exit 7").code == 7
        assert abx("sandbox", "pause", sandbox).code == 0
        assert b"aused" in osb("sandbox", "get", sandbox, "-o", "json").stdout
        osb("sandbox", "resume", sandbox)
        assert abx("--json", "sandbox", "info", sandbox).json()["status"] == "running"
        assert abx("--json", "sandbox", "kill", sandbox, "--yes").json()["killed"] is True
    finally:
        servers[daemon].kill(sandbox)
