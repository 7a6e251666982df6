"""abx as a plugin: files, processes and commands through EPP/1 on both daemons,
and the contract kits of two hosts on what `abx provider export` writes."""

import base64
import hashlib
import os
import subprocess
import sys
import time

import pytest

import rig as rigs
from program import TOP, Abx, binary

sys.path.append(str(TOP / "tests/cli"))

from plugin import Host  # noqa: E402

PYTHON = rigs.CACHE / "venv-host/bin/python"
NAMES = {
    "plain": "plain.txt", "unicode": "\u4f60\u597d \u4e16\u754c '\"", "dollar": "$HOME ${x} $", "newline": "a\nb", "cr": "cr\rx",
    "quotes": "it's \\ `x`", "dash": "-rf", "glob": "*?[a]", "controls": "\x01\x1b[31m\x7f", "tilde": "~", "percent": "%2e&=+#?",
}


@pytest.fixture
def host(box, servers):
    made = Host(binary(), servers[box.daemon], config={"use_server_proxy": box.route == "proxy"})
    made.box = box.id
    made.on = lambda method, **params: made.call(method, sandbox_id=box.id, **params)
    yield made
    assert made.end() == 0 and made.said == b""


@pytest.fixture
def where(box):
    path = f"/tmp/s-{time.monotonic_ns()}"
    box.sh(f"mkdir {path}")
    yield path
    box.sh(f"rm -rf {path}")


def b64(data):
    return base64.b64encode(data).decode()


@pytest.mark.parametrize("name", NAMES)
def test_entries(host, box, where, name):
    path, deep, data = f"{where}/{NAMES[name]}", f"{where}/d{NAMES[name]}/{NAMES[name]}", os.urandom(700)
    host.on("files.write", path=path, content_b64=b64(data))
    entry = host.on("files.stat", path=path)
    assert (entry["name"], entry["path"], entry["type"], entry["size"], entry["mode"]) == (NAMES[name], path, "file", 700, 0o644)
    assert abs(time.time() - time.mktime(time.strptime(entry["mtime"][:19], "%Y-%m-%dT%H:%M:%S")) + time.timezone) < 120
    assert [e["path"] for e in host.on("files.list", path=where)["entries"]] == [path]
    host.on("files.mkdir", path=deep)
    host.on("files.mkdir", path=deep)
    host.on("files.move", source=path, destination=f"{deep}/{NAMES[name]}")
    host.on("files.write", path=path, content_b64="")
    host.on("files.move", source=f"{deep}/{NAMES[name]}", destination=path)       # onto a file
    assert base64.b64decode(host.on("files.read", path=path)["content_b64"]) == data
    entries = host.on("files.list", path=where)["entries"]
    assert [(e["name"], e["type"]) for e in entries] == sorted([(NAMES[name], "file"), ("d" + NAMES[name], "directory")],
                                                             key=lambda e: e[0].encode())
    assert host.on("files.list", path=deep)["entries"] == []
    host.on("files.remove", path=f"{where}/d{NAMES[name]}")
    host.on("files.remove", path=path)
    assert host.on("files.list", path=where)["entries"] == []
    assert host.fail("files.stat", sandbox_id=box.id, path=path)["data"]["sdk_code"] == "E4001"


def test_links_and_others(host, box, where):
    box.sh(f"cd {where}; mkdir real; echo x > real/x; ln -s real to; ln -s nowhere broken; mkfifo pipe; ln -s real 'l$'; "
           "chmod 4751 real/x; touch \"$(printf 'bad\\377')\"")
    entries = {e["name"]: e["type"] for e in host.on("files.list", path=where)["entries"]}
    assert entries == {"real": "directory", "to": "symlink", "broken": "symlink", "pipe": "other", "l$": "symlink",
                       "bad\ufffd": "file"}
    for link in ("to", "l$"):
        assert [e["path"] for e in host.on("files.list", path=f"{where}/{link}")["entries"]] == [f"{where}/{link}/x"]
    assert host.on("files.stat", path=f"{where}/real/x")["mode"] & 0o777 == 0o751
    host.on("files.move", source=f"{where}/broken", destination=f"{where}/new/moved")
    host.on("files.remove", path=f"{where}/to")
    assert box.sh(f"cd {where}; readlink new/moved; cat real/x; ls -d to 2>/dev/null || echo gone") == "nowhere\nx\ngone\n"
    fails = lambda method, **params: host.fail(method, sandbox_id=box.id, **params)["code"]  # noqa: E731
    assert fails("files.list", path=f"{where}/real/x") == -32000 and fails("files.list", path=f"{where}/none") == -32002
    assert fails("files.list", path=f"{where}/$none") == -32002 and fails("files.mkdir", path=f"{where}/real/x") == -32000
    assert fails("files.move", source=f"{where}/real/x", destination=f"{where}/new") == -32000
    assert fails("files.move", source=f"{where}/none", destination=f"{where}/made/x") == -32002
    assert fails("files.remove", path=f"{where}/none") == -32002 and fails("files.remove", path="/") == -32006
    assert box.sh(f"ls -d {where}/made 2>/dev/null || echo none") == "none\n"


def test_a_large_folder(host, box, where):
    box.sh(f"mkdir '{where}/$d'; cd '{where}/$d'; i=0; while [ $i -lt 3000 ]; do : > name-$i; i=$((i+1)); done")
    box.sh(f"ln -s '$d' {where}/plain")
    for path in (f"{where}/$d", f"{where}/plain"):
        names = [e["name"] for e in host.on("files.list", path=path)["entries"]]
        assert names == sorted(f"name-{i}" for i in range(3000))


def test_processes(host, box):
    name = host.start(host.box, "sleep", "61.5")
    found, end = [], time.monotonic() + 10
    while not found and time.monotonic() < end:
        found = [p for p in host.on("process.list")["processes"] if p["command"].endswith("sleep 61.5")]
    assert len(found) == 1 and found[0]["status"] == "running"
    host.on("process.signal", pid=found[0]["pid"], signal=19)
    assert [p["status"] for p in host.on("process.list")["processes"] if p["pid"] == found[0]["pid"]] == ["stopped"]
    host.on("process.signal", pid=found[0]["pid"], signal=9)
    assert host.finish(name) == (137, "", "")
    assert host.fail("process.signal", sandbox_id=box.id, pid=found[0]["pid"], signal=9)["code"] == -32002


@pytest.mark.parametrize("number, code", [(2, 130), (15, 143), (9, 137), (10, 138)])
def test_a_command_is_ended_by_its_process_id(host, box, where, number, code):
    name = host.start(host.box, "sh", "-c", f"sh -c 'echo $$ > {where}/pid; exec sleep 62' & echo go; wait; sleep 63")
    host.until(lambda line: line.get("params", {}).get("data") == "go\n")
    while not (pid := box.sh(f"cat {where}/pid 2>/dev/null || true").strip()):
        time.sleep(0.05)
    host.on("process.signal", pid=name, signal=number)
    assert host.finish(name)[0] == code
    # What ignores SIGINT in the background gets TERM then.
    assert box.sh(f"sleep 2.5; kill -0 {pid} 2>/dev/null || echo gone") == "gone\n"
    assert host.fail("process.signal", sandbox_id=box.id, pid=name)["code"] == -32002


def test_stdin(host, box, where):
    name = host.start(host.box, "sh", "-c", f"read -r a; printf 'got %s\\n' \"$a\"; head -c 100000 > {where}/in; echo done", stdin=True)
    host.on("process.stdin", pid=name, data="h\u00e9 'w' %s \\n\n")
    data = "".join(chr(i) for i in range(128)) * 800
    host.on("process.stdin", pid=name, data=data[:100000])
    assert host.finish(name) == (0, "got h\u00e9 'w' %s \\n\ndone\n", "")
    assert base64.b64decode(host.on("files.read", path=f"{where}/in")["content_b64"]).decode() == data[:100000]
    name = host.start(host.box, "sha256sum", stdin=True)
    for i in range(5):
        host.on("process.stdin", pid=name, data="x" * (1 << 20), eof=i == 4)
    assert host.finish(name) == (0, hashlib.sha256(b"x" * (5 << 20)).hexdigest() + "  -\n", "")
    assert host.sh(host.box, "cat; echo end") == (0, "end\n", "")
    name = host.start(host.box, "sleep", "60")
    assert "no pipe" in host.fail("process.stdin", sandbox_id=box.id, pid=name, data="x")["message"]
    host.on("process.signal", pid=name)
    assert host.finish(name)[0] == 143


def test_commands(host, box):
    assert host.sh(host.box, "echo out; echo err >&2; exit 3") == (3, "out\n", "err\n")
    assert host.sh(host.box, "echo one; sleep 60", timeout=1) == (124, "one\n", "")
    assert host.on("exec.run", cmd="printf", args=["%s\\n", "a b", "$HOME"], env={}, cwd="", user="", timeout=9) == \
        {"stdout": "a b\n$HOME\n", "stderr": "", "exit_code": 0}
    assert host.on("exec.run", cmd="sh", args=["-c", "echo $A; pwd"], env={"A": "\u4e16"}, cwd="/tmp")["stdout"] == "\u4e16\n/tmp\n"
    assert host.on("exec.run", cmd="no such", args=[])["exit_code"] == 127
    code, out, _ = host.sh(host.box, "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done", timeout=60)
    assert code == 0 and out == "".join(f"line {i}\n" for i in range(20000))


def test_users(host):
    assert host.on("exec.run", cmd="id", args=["-g"], user="61234")["stdout"] == "61234\n"
    assert host.fail("exec.run", sandbox_id=host.box, cmd="true", args=[], user="no such user")["code"] == -32006


def test_a_terminal(host):
    name = host.on("pty.open", cols=91, rows=33, env={"A": "w\u00f6rld"})["process_id"]
    said = lambda text: host.on("pty.write", process_id=name, data_b64=b64(text.encode()))  # noqa: E731
    seen = b""

    def until(text):
        nonlocal seen
        while text.encode() not in seen:
            line = host.until(lambda line: line.get("params", {}).get("process_id") == name and "method" in line)
            assert line["method"] == "pty.output", (line, seen)
            seen += base64.b64decode(line["params"]["data_b64"])

    said("stty size; echo $A $((40 + 2))0\n")
    until("w\u00f6rld 420")
    assert b"33 91" in seen
    host.on("pty.resize", process_id=name, cols=70, rows=20)
    said("stty size; echo rea''dy; sleep 60\n")
    until("20 70")
    until("ready")
    time.sleep(0.5)
    said("\x03")
    said("echo st''ill; exit 9\n")
    until("still")
    gone = host.until(lambda line: line.get("method") == "pty.exit")
    assert gone["params"] == {"process_id": name, "exit_code": 9}


@pytest.mark.paired
def test_a_whole_life(host, servers, mark, daemon, route, image):
    made = host.call("sandbox.create", template=rigs.IMAGES[image], timeout=120, metadata=dict(mark), envs={"FOO": "b\u00e4r"})
    try:
        assert made["status"] == "running" and made["created_at"] < made["expires_at"]
        box = made["sandbox_id"]
        assert host.sh(box, "echo $FOO") == (0, "b\u00e4r\n", "")
        host.call("sandbox.pause", sandbox_id=box)
        assert host.call("sandbox.get", sandbox_id=box)["status"] == "paused"
        host.call("sandbox.resume", sandbox_id=box)
        host.call("sandbox.set_timeout", sandbox_id=box, timeout=600)
        seen, cursor = [], {}
        while True:
            page = host.call("sandbox.list", limit=1, **cursor)
            seen += [record["sandbox_id"] for record in page["sandboxes"]]
            if "next" not in page:
                break
            cursor = {"cursor": page["next"]}
        assert box in seen
        assert host.call("ports.url", sandbox_id=box, port=8080)["url"].startswith("http")
    finally:
        for _ in range(2):
            assert host.call("sandbox.kill", sandbox_id=made["sandbox_id"]) == {}
    assert host.fail("sandbox.get", sandbox_id=made["sandbox_id"])["data"]["sdk_code"] == "E2009"


# --- the contract kits ---

@pytest.fixture
def installed(servers, daemon, tmp_path):
    """The exported plugin, installed by the Python host into a home that both hosts use."""
    abx = Abx(tmp_path / "home", servers[daemon])
    del abx.env["ABX_HOME"]
    assert abx("-q", "provider", "export", "opensandbox", str(tmp_path / "plugin")).code == 0
    abx.python = lambda *words: subprocess.run([PYTHON, "-m", "agent_sandbox.providers", *words], env=abx.env, cwd=abx.home,
                                               capture_output=True, text=True, timeout=300)
    done = abx.python("install", str(tmp_path / "plugin"), "--yes")
    assert done.returncode == 0, done
    return abx


def test_the_python_hosts_kit_on_the_exported_plugin(installed):
    done = installed.python("test", "opensandbox")
    assert done.returncode == 0 and "18 passed" in done.stdout and "failed" not in done.stdout, done.stdout[-4000:]


# As somebody writes it who has the Python host.
TERMINAL = """
import asyncio, sys
from agent_sandbox.api.sandbox import Sandbox
async def main():
    box = await Sandbox.create(template=sys.argv[1], timeout=120, provider="opensandbox")
    try:
        term = await box.get_terminal(cols=91, rows=33)
        await term.send("stty size; echo $((6 * 7))0; exit\\n")
        seen = b""
        async for piece in term.output_stream():
            seen += piece
        assert b"33 91" in seen and b"420" in seen, seen
        await term.close()
    finally:
        await box.kill()
asyncio.run(main())
"""


def test_a_terminal_of_the_python_host(installed):
    done = subprocess.run([PYTHON, "-c", TERMINAL, rigs.IMAGES["debian"]], env=installed.env, cwd=installed.home, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done


def test_our_kit_on_the_exported_plugin(installed):
    listed = installed("--json", "provider", "list").json()
    assert [(p["kind"], p["trust"]) for p in listed if p["id"] == "opensandbox"] == [("exec", "local")]
    done = installed("provider", "test", "opensandbox", timeout=300)
    assert done.code == 0 and done.text.endswith("\n18 passed, 0 failed, 0 skipped\n"), done


def test_our_kit_on_what_is_compiled_in(servers, daemon, tmp_path):
    done = Abx(tmp_path / "home", servers[daemon])("provider", "test", "opensandbox", timeout=300)
    assert done.code == 0 and done.text.splitlines()[-1] == "18 passed, 0 failed, 0 skipped", done
