"""`abx provider serve`: EPP/1 as a host sees it, with what the contract kit never
calls. The server is scripted; its sandboxes are a real daemon of this program
on this machine, so that commands and files are real too."""

import base64
import json
import os
import signal
import subprocess
import threading
import time
import tomllib
from pathlib import Path

import pytest

import scripted
from agent import Agent
from conftest import BINARY
from plugin import Host
from scripted import HOLD, KEY, answer, meant

LINE = 8 << 20


class Real(scripted.Server):
    """Its sandboxes' daemon is a real one."""
    daemon = None

    def _sandbox(self, request, box, rest):
        if rest[:1] == ["endpoints"]:
            return answer(200, {"endpoint": f"127.0.0.1:{self.daemon.port}"})
        return super()._sandbox(request, box, rest)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    agent = Agent(tmp_path_factory.mktemp("daemon"))
    yield agent
    agent.close()


@pytest.fixture
def server(daemon):
    with Real() as made:
        made.daemon = daemon
        made.box("box-1")
        yield made


@pytest.fixture
def folder(tmp_path):
    """In the sandbox, which is this machine."""
    made = tmp_path / "box"
    made.mkdir()
    return made


@pytest.fixture
def host(server):
    made = Host(BINARY, server)
    yield made
    if made.process.poll() is None:
        made.process.kill()
    made.wait()


@pytest.fixture
def scripted_host():
    with scripted.Server() as server:
        server.box("box-1")
        host = Host(BINARY, server)
        yield host, server
        host.process.kill()
        host.wait()


def group(host):
    """What runs in the plugin's process group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(") ", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(fields[2]) == host.process.pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def create(**more):
    """As the Python host asks for it."""
    return {"template": "base", "timeout": 300, "metadata": {}, "envs": {}, "cpu": None, "memory": None, "disk": None,
            "gpu": None, "request_timeout": None, **more}


# --- initialize ---

def test_the_answer_to_initialize_is_the_manifest(host, tmp_path):
    assert subprocess.run([BINARY, "-q", "provider", "export", "opensandbox", tmp_path / "x"]).returncode == 0
    manifest = tomllib.loads((tmp_path / "x/abx-provider.toml").read_text())
    hello = host.hello
    assert hello["protocol"] == "epp/1" and hello["operation_contract_version"] == 1
    assert hello["features"] == manifest["features"]["supported"]
    assert hello["operations"] == manifest["operations"]
    assert hello["workflow_inputs"] == manifest["workflow"]["inputs"]
    assert hello["startup_modes"] == manifest["workflow"]["startups"]
    assert "process.manage" in hello["features"] and "files.stat" in hello["operations"]["cli"]


def test_configuration_comes_from_initialize_alone(server, tmp_path):
    with Real() as other:
        other.box("box-1")
        home = tmp_path / "home"
        (home / ".abx").mkdir(parents=True)
        for place in (tmp_path / ".env", home / ".abx/.env"):
            place.write_text(f"ABX_OPENSANDBOX_BASE_URL={other.url}\nABX_OPENSANDBOX_API_KEY=other\nABX_PROVIDER=x\n")
        (home / ".abx/config.toml").write_text(f'[providers.opensandbox]\nbase_url = "{other.url}"\nimage = "other"\n')
        host = Host(BINARY, server, home=home, cwd=tmp_path, env={
            "ABX_OPENSANDBOX_BASE_URL": other.url, "ABX_OPENSANDBOX_API_KEY": "other", "ABX_OPENSANDBOX_IMAGE": "other",
            "ABX_DEFAULT_TEMPLATE": "other", "ABX_CA_FILE": "/nowhere", "ABX_HOME": str(home / ".abx")})
        assert host.call("sandbox.create", **create())["template"] == "python:3.12-slim"
        assert host.call("sandbox.get", sandbox_id="box-1")["status"] == "running"
        host.end()
        assert other.requests == [] and host.said == b""
        assert not [p for p in home.rglob("*") if p.name not in (".abx", ".env", "config.toml")]


@pytest.mark.parametrize("config, image, sent", [
    ({"entrypoint": "tail -f /dev/null"}, "base", ["tail", "-f", "/dev/null"]),
    ({"entrypoint": "python3 commands.py"}, "base", ["tail", "-f", "/dev/null"]),
    ({"entrypoint": "sleep  100"}, "base", ["sleep", "100"]),
    ({"entrypoint": "tail -f /dev/null"}, "opensandbox/code-interpreter:1", ["/opt/code-interpreter/code-interpreter.sh"]),
    ({"entrypoint": "python3 commands.py"}, "opensandbox/code-interpreter:1", ["/opt/code-interpreter/code-interpreter.sh"]),
])
def test_a_default_that_a_host_delivers_is_no_choice(server, config, image, sent):
    host = Host(BINARY, server, config=config)
    host.call("sandbox.create", **create(template=image))
    assert server.requests[0].json()["entrypoint"] == sent
    host.end()


def test_settings_of_every_type(server):
    host = Host(BINARY, server, config={"use_server_proxy": True, "ready_timeout": 5.5, "cpu": None, "unheard_of": [1], "memory": "1Gi"})
    host.call("sandbox.create", **create())
    assert any("use_server_proxy=true" in r.target for r in server.requests)
    assert server.requests[0].json()["resourceLimits"]["memory"] == "1Gi"
    host.end()


@pytest.mark.parametrize("changes, code", [
    ({"protocol": "epp/2"}, -32006), ({"protocol": None}, -32006), ({"provider_id": "e2b"}, -32006),
    ({"config": {"base_url": "ftp://x"}}, -32006), ({"config": {"ready_timeout": "x"}}, -32006),
])
def test_initialize_refuses(server, changes, code):
    host = Host(BINARY)
    host.config = {"base_url": server.url}
    assert host.fail("initialize", **host.introduction(**changes))["code"] == code
    assert host.fail("sandbox.list", limit=1)["code"] == -32600
    assert host.call("initialize", **host.introduction())["protocol"] == "epp/1"
    assert host.fail("initialize", **host.introduction())["code"] == -32600
    assert host.end() == 0


def test_serves_only_what_is_compiled_in(tmp_path):
    for name, status, code in (("alicloud-express", 1, b"E8004"), ("nope", 4, b"E8001")):
        ran = subprocess.run([BINARY, "provider", "serve", name], stdin=subprocess.DEVNULL, capture_output=True, timeout=10,
                             env={"HOME": str(tmp_path)})
        assert ran.returncode == status and code in ran.stderr and ran.stdout == b""


# --- sandboxes ---

def test_create_get_list_kill(host, server):
    made = host.call("sandbox.create", **create(timeout=120, metadata={"note": "café ☃"}, envs={"A": "世界"}, cpu=2, memory=512))
    assert made["status"] == "running" and made["metadata"]["note"] == "café ☃" and made["template"] == "python:3.12-slim"
    assert made["created_at"] and made["expires_at"] and "region" not in made and "envd_url" not in made
    asked = server.requests[0].json()
    assert asked["env"] == {"A": "世界"} and asked["resourceLimits"] == {"cpu": "2", "memory": "512Mi"}
    for method in ("sandbox.get", "sandbox.connect"):
        again = host.call(method, sandbox_id=made["sandbox_id"])
        assert again["sandbox_id"] == made["sandbox_id"] and again["status"] == "running"
    assert host.call("sandbox.set_timeout", sandbox_id="box-1", timeout=600) == {}
    for _ in range(3):
        assert host.call("sandbox.kill", sandbox_id=made["sandbox_id"]) == {}
    error = host.fail("sandbox.get", sandbox_id=made["sandbox_id"])
    assert error["code"] == -32002 and error["data"]["sdk_code"] == "E2009"


@pytest.mark.parametrize("text, sent", [
    ("sh  -x", ["sh", "-x"]), ("python3 commands.py", ["tail", "-f", "/dev/null"]), ("", ["tail", "-f", "/dev/null"]),
    (" ", ["tail", "-f", "/dev/null"]),
])
def test_an_entrypoint_for_one_sandbox(host, server, text, sent):
    host.call("sandbox.create", **create(options={"entrypoint": text}))
    assert server.requests[0].json()["entrypoint"] == sent


def test_pages(host, server):
    for i in range(130):
        server.box(f"more-{i:03}", metadata={"n": str(i)})
    names, cursor, pages = [], {}, 0
    while True:
        page = host.call("sandbox.list", limit=50, **cursor)
        names += [record["sandbox_id"] for record in page["sandboxes"]]
        pages += 1
        if "next" not in page:
            break
        cursor = {"cursor": page["next"]}
    assert pages == 3 and len(names) == len(set(names)) == 131
    server.boxes["more-007"].state = "Paused"
    paused = host.call("sandbox.list", limit=50, status="paused")
    assert [r["sandbox_id"] for r in paused["sandboxes"]] == ["more-007"] and "next" not in paused
    assert host.fail("sandbox.list", limit=50, cursor="x")["code"] == -32602
    assert host.call("sandbox.list", limit=50, cursor="131") == {"sandboxes": []}


def test_pause_and_resume(host):
    assert host.call("sandbox.pause", sandbox_id="box-1") == {}
    assert host.call("sandbox.get", sandbox_id="box-1")["status"] == "paused"
    assert "paused" in host.fail("exec.run", sandbox_id="box-1", cmd="true", args=[])["message"]
    assert host.call("sandbox.resume", sandbox_id="box-1") == {}


def test_a_raised_lifetime_is_said(host, server):
    host.call("sandbox.create", **create(timeout=30))
    host.end()
    assert server.requests[0].json()["timeout"] == 60
    assert host.said == b"abx: timeout 30s is below OpenSandbox's 60 s minimum; using 60 s\n"


def test_url(host, daemon):
    assert host.call("ports.url", sandbox_id="box-1", port=8080)["url"].startswith("http://")
    assert host.fail("ports.url", sandbox_id="box-1", port=0)["code"] == -32006


@pytest.mark.parametrize("more, feature", [({"disk": 5}, "sandbox.disk"), ({"gpu": "a"}, "sandbox.gpu"), ({"secure": True}, "sandbox.secure")])
def test_what_cannot_be_chosen_is_refused(host, server, more, feature):
    error = host.fail("sandbox.create", **create(**more))
    assert error["code"] == -32003 and error["data"]["details"]["feature"] == feature and server.requests == []


# --- errors ---

def test_a_wrong_key(server):
    host = Host(BINARY, server, config={"api_key": "canary-" + "x" * 20})
    error = host.fail("sandbox.create", **create())
    assert error["code"] == -32001 and error["data"]["sdk_code"] == "E1001" and "canary" not in json.dumps(error)
    host.end()
    assert b"canary" not in host.said


def test_a_server_that_is_not_there(server):
    host = Host(BINARY, server, config={"base_url": "http://127.0.0.1:9"})
    assert host.fail("sandbox.list", limit=1)["code"] == -32005
    host.end()


# --- commands ---

def test_exec_run(host):
    run = lambda *argv, **more: host.call("exec.run", sandbox_id="box-1", cmd=argv[0], args=list(argv[1:]),  # noqa: E731
                                          **{"env": {}, "cwd": "", "user": "", "timeout": 30, **more})
    assert run("sh", "-c", "echo out; echo err >&2; exit 3") == {"stdout": "out\n", "stderr": "err\n", "exit_code": 3}
    assert run("printf", "%s|", "a b", "$HOME", "")["stdout"] == "a b|$HOME||"
    assert run("sh", "-c", "echo $A; pwd", env={"A": "世界"}, cwd="/tmp")["stdout"] == "世界\n/tmp\n"
    assert run("sh", "-c", "kill -9 $$")["exit_code"] == 137
    assert run("sleep", "30", timeout=1)["exit_code"] == 124
    assert run("printf", "a\\377\\303")["stdout"] == "a\ufffd\ufffd"
    assert run("true")["exit_code"] == 0 and run("no such program; true")["exit_code"] == 127
    error = host.fail("exec.run", sandbox_id="box-1", cmd="sh", args=["-c", "yes | head -c 9000000"])
    assert error["code"] == -32000 and "exec.start" in error["message"]
    assert run("id", "-un", user="nobody")["stdout"] == "nobody\n"
    error = host.fail("exec.run", sandbox_id="box-1", cmd="true", args=[], user="no such user")
    assert error["code"] == -32006 and "no such user" in error["message"]


def test_a_stream(host):
    name = host.start("box-1", "sh", "-c", "echo one; sleep 0.5; echo two >&2; exit 4")
    assert host.until(lambda line: line.get("method"))["params"] == {"process_id": name, "stream": "stdout", "data": "one\n"}
    assert host.finish(name) == (4, "", "two\n")
    host.end()
    assert not [line for line in host.kept if line.get("params", {}).get("process_id") == name]


def test_long_output_comes_in_pieces_cut_at_characters(host):
    name = host.start("box-1", "sh", "-c", "yes 'h\u00e9\u4e16' | head -c 3000001; printf '\\377\\344\\270'")
    pieces = []
    while True:
        line = host.until(lambda line: line.get("params", {}).get("process_id") == name)
        if line["method"] == "exec.exit":
            break
        pieces.append(line["params"]["data"])
    whole = (("h\u00e9\u4e16\n" * 430000).encode()[:3000001] + b"\xff\xe4\xb8").decode(errors="replace")
    assert len(pieces) > 20 and "".join(pieces) == whole


def test_commands_and_calls_overlap(host):
    names = [host.start("box-1", "sh", "-c", f"sleep 0.4; echo {i}") for i in range(12)]
    start = time.monotonic()
    assert host.call("sandbox.get", sandbox_id="box-1")["status"] == "running"
    assert host.call("exec.run", sandbox_id="box-1", cmd="echo", args=["hi"])["stdout"] == "hi\n"
    assert time.monotonic() - start < 5
    for i, name in reversed(list(enumerate(names))):
        assert host.finish(name) == (0, f"{i}\n", "")


def test_stdin_by_process_id(host):
    name = host.start("box-1", "sh", "-c", "read a; echo got $a; od -An -c | head -n 1; exec sleep 60", stdin=True)
    # At once: whoever asks waits until the command's process is known.
    assert host.call("process.stdin", sandbox_id="box-1", pid=name, data="wörld\n") == {}
    assert host.until(lambda line: line.get("method") == "exec.output")["params"]["data"] == "got wörld\n"
    assert host.call("process.stdin", sandbox_id="box-1", pid=name, data="'%\\\0-\n") == {}
    assert host.call("process.stdin", sandbox_id="box-1", pid=name, data="") == {}
    assert host.call("process.signal", sandbox_id="box-1", pid=name, signal=9) == {}
    code, out, _ = host.finish(name)
    assert code == 137
    error = host.fail("process.stdin", sandbox_id="box-1", pid=name, data="x")
    assert error["code"] == -32002


def test_stdin_that_nobody_asked_for(host):
    """A command without stdin finds its end at once, and cannot be fed: never a success that was none."""
    assert host.sh("box-1", "cat; echo end") == (0, "end\n", "")
    name = host.start("box-1", "sleep", "60")
    error = host.fail("process.stdin", sandbox_id="box-1", pid=name, data="x")
    assert error["code"] == -32000 and "no pipe" in error["message"]
    host.call("process.signal", sandbox_id="box-1", pid=name)
    assert host.finish(name)[0] == 143


@pytest.mark.parametrize("number, code", [(2, 130), (9, 137), (15, 143), (10, 138), (None, 143)])
def test_signals_reach_the_whole_group(host, folder, number, code):
    name = host.start("box-1", "sh", "-c", f"sleep 61 & echo $! > {folder}/pid; wait; sleep 61")
    asked = {} if number is None else {"signal": number}
    while not (folder / "pid").exists() or not (folder / "pid").read_text():
        time.sleep(0.01)
    assert host.call("process.signal", sandbox_id="box-1", pid=name, **asked) == {}
    assert host.finish(name)[0] == code
    end = time.monotonic() + 5
    # What is in the background ignores SIGINT, as POSIX shells have it: it gets TERM then.
    while Path("/proc", (folder / "pid").read_text().strip(), "stat").exists():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_processes(host):
    name = host.start("box-1", "sleep", "61.25")
    end = time.monotonic() + 10
    while True:
        found = [p for p in host.call("process.list", sandbox_id="box-1")["processes"] if p["command"] == "sleep 61.25"]
        if found or time.monotonic() > end:
            break
    assert len(found) == 1 and isinstance(found[0]["pid"], int) and found[0]["status"] == "running"
    pid = found[0]["pid"]
    assert host.call("process.signal", sandbox_id="box-1", pid=pid, signal=19) == {}
    stopped = [p for p in host.call("process.list", sandbox_id="box-1")["processes"] if p["pid"] == pid]
    assert stopped[0]["status"] == "stopped"
    assert host.call("process.signal", sandbox_id="box-1", pid=str(pid), signal=9) == {}
    assert host.finish(name)[0] == 137
    assert host.fail("process.signal", sandbox_id="box-1", pid=pid, signal=9)["code"] == -32002


@pytest.mark.parametrize("pid", [0, -1, -5, "", "x", "1;true", "0x1", "99999999999", 1.5, None, [1]])
def test_what_is_no_process(host, pid):
    error = host.fail("process.signal", sandbox_id="box-1", pid=pid, signal=0)
    assert error["code"] in (-32006, -32602), error


def test_a_process_id_of_another_sandbox_or_none(host, server):
    server.box("box-2")
    name = host.start("box-1", "sleep", "60")
    assert host.fail("process.signal", sandbox_id="box-2", pid=name)["code"] == -32002
    assert host.fail("process.signal", sandbox_id="box-1", pid="abx-99")["code"] == -32002
    assert host.call("process.signal", sandbox_id="box-1", pid=name) == {}
    assert host.finish(name)[0] == 143


# --- files ---

def b64(data):
    return base64.b64encode(data).decode()


HARD = ["plain", "a b'c\"d", "$HOME", "${x}", "line\nfeed", "cr\rx", "tab\t", "esc\x1b[31m", "世界", "-rf", "a\\b", "*", "?", "\x7f"]


@pytest.mark.parametrize("name", HARD)
def test_files_by_any_name(host, folder, name):
    path, data = f"{folder}/{name}", bytes(range(256)) * 3
    assert host.call("files.write", sandbox_id="box-1", path=path, content_b64=b64(data)) == {}
    assert base64.b64decode(host.call("files.read", sandbox_id="box-1", path=path)["content_b64"]) == data
    entry = host.call("files.stat", sandbox_id="box-1", path=path)
    assert (entry["name"], entry["path"], entry["type"], entry["size"]) == (name, path, "file", 768) and entry["mtime"].endswith("Z")
    listed = host.call("files.list", sandbox_id="box-1", path=str(folder))["entries"]
    assert [e["path"] for e in listed] == [path] and listed[0]["size"] == 768
    deep = f"{folder}/d{name}/{name}"
    assert host.call("files.mkdir", sandbox_id="box-1", path=deep) == {}
    assert host.call("files.move", sandbox_id="box-1", source=path, destination=f"{deep}/{name}") == {}
    listed = host.call("files.list", sandbox_id="box-1", path=deep)["entries"]
    assert [(e["name"], e["path"], e["type"]) for e in listed] == [(name, f"{deep}/{name}", "file")]
    assert host.call("files.remove", sandbox_id="box-1", path=f"{folder}/d{name}") == {}
    assert host.fail("files.stat", sandbox_id="box-1", path=deep)["data"]["sdk_code"] == "E4001"
    assert list(folder.iterdir()) == []


def test_links_are_not_followed(host, folder):
    (folder / "real").mkdir()
    (folder / "real/x").write_text("x")
    (folder / "to").symlink_to("real")
    (folder / "broken").symlink_to("nowhere")
    for name in ("to", "broken"):
        assert host.call("files.stat", sandbox_id="box-1", path=f"{folder}/{name}")["type"] == "symlink"
    listed = host.call("files.list", sandbox_id="box-1", path=f"{folder}/to")["entries"]
    assert [e["path"] for e in listed] == [f"{folder}/to/x"]
    assert host.call("files.move", sandbox_id="box-1", source=f"{folder}/broken", destination=f"{folder}/moved") == {}
    for name in ("to", "moved"):
        assert host.call("files.remove", sandbox_id="box-1", path=f"{folder}/{name}") == {}
    assert [p.name for p in folder.iterdir()] == ["real"] and (folder / "real/x").exists()


def test_moves_and_removals_that_must_not_be(host, folder):
    (folder / "d").mkdir()
    (folder / "f").write_text("f")
    (folder / "g").write_text("g")
    fail = lambda method, **params: host.fail(method, sandbox_id="box-1", **params)["code"]  # noqa: E731
    assert fail("files.move", source=f"{folder}/f", destination=f"{folder}/d") == -32000
    assert fail("files.move", source=f"{folder}/none", destination=f"{folder}/new/x") == -32002
    assert not (folder / "new").exists()
    assert host.call("files.move", sandbox_id="box-1", source=f"{folder}/f", destination=f"{folder}/g") == {}
    assert (folder / "g").read_text() == "f"
    for path in ("/", "//", "", f"{folder}/..", f"{folder}/d/.", "/.."):
        assert fail("files.remove", path=path) == -32006, path
    assert fail("files.remove", path=f"{folder}/none") == -32002
    assert fail("files.list", path=f"{folder}/g") == -32000 and fail("files.list", path=f"{folder}/none") == -32002
    assert fail("files.mkdir", path=f"{folder}/g") == -32000 and fail("files.read", path=f"{folder}/d") == -32000
    assert host.call("files.mkdir", sandbox_id="box-1", path=f"{folder}/d") == {}
    assert fail("files.write", path=f"{folder}/h", content_b64="-_-_") == -32602
    assert fail("files.write", path=f"{folder}/h") == -32602 and not (folder / "h").exists()
    assert fail("files.stat", path="a\0b") == -32602 and fail("files.stat") == -32602


def test_files_at_the_limit_of_a_line(host, folder):
    data = os.urandom(6_291_400)
    host.call("files.write", sandbox_id="box-1", path=f"{folder}/x", content_b64=b64(data))
    assert base64.b64decode(host.call("files.read", sandbox_id="box-1", path=f"{folder}/x")["content_b64"]) == data
    big = os.urandom(20_000_000)
    host.call("files.write", sandbox_id="box-1", path=f"{folder}/x", content_b64=b64(big))
    assert (folder / "x").read_bytes() == big
    error = host.fail("files.read", sandbox_id="box-1", path=f"{folder}/x")
    assert error["code"] == -32000 and str(LINE) in error["message"]
    assert host.call("files.stat", sandbox_id="box-1", path=f"{folder}/x")["size"] == len(big)


# --- the protocol ---

@pytest.mark.parametrize("line, code, number", [
    (b"garbage", -32700, None), (b"{", -32700, None), (b'{"id": 5, "method": "x", \xff}', -32700, 5),
    (b'{"jsonrpc": "2.0", "id": 6, "method": "files.stat", "params": {"path": "\\ud800"}}', -32700, 6),
    (b"[]", -32600, None), (b"7", -32600, None), (b'{"id": 8}', -32600, 8), (b'{"id": 9, "method": 7}', -32600, 9),
    (b'{"id": 10, "method": "pty.attach"}', -32601, 10), (b'{"id": "a\\nb", "method": "x"}', -32601, "a\nb"),
    (b'{"id": 1.5, "method": "x"}', -32601, 1.5), (b'{"id": 11, "method": "sandbox.get", "params": 5}', -32602, 11),
    (b'{"id": 12, "method": "sandbox.get", "params": {"sandbox_id": 7}}', -32602, 12),
    (b'{"id": 13, "method": "sandbox.get", "params": {"sandbox_id": "a/b"}}', -32006, 13),
    (b'{"id": 14, "method": "sandbox.create", "params": {"envs": {"A": 1}}}', -32602, 14),
    (b'{"id": 15, "method": "exec.start", "params": {"sandbox_id": "box-1", "cmd": "a", "args": "b"}}', -32602, 15),
    (b'{"id": 16, "method": "exec.start", "params": {"sandbox_id": "box-1", "cmd": ""}}', -32006, 16),
    (b'{"id": 17, "method": "sandbox.create", "params": {"timeout": 0}}', -32006, 17),
    (b'{"id": 18, "method": ' + b"[" * 200 + b"]" * 200 + b"}", -32700, 18),
])
def test_lines_that_are_no_good(host, line, code, number):
    host.raw(line + b"\n")
    answer = host.line()
    assert answer["error"]["code"] == code and answer["id"] == number
    assert host.call("sandbox.get", sandbox_id="box-1")["sandbox_id"] == "box-1"


def test_lines_that_need_no_answer(host):
    host.raw(b"\n  \t\r\n" + b'{"jsonrpc": "2.0", "id": 99, "result": {}}\n{"id": 98, "error": {"code": 1}}\n'
             b'{"method": "unheard.of"}\n{"method": "$/cancel", "params": {"id": 12345}}\n{"method": "$/cancel"}\n')
    host.raw(b'{"id": 97, "method": "sandbox.get", "params": {"sandbox_id": "box-1"}}\r\n')
    assert host.line()["id"] == 97


def test_lines_without_end(host):
    """One over the limit is read to its end, answered under its id, and the next line is the next line."""
    for head in (b'{"jsonrpc": "2.0", "id": 41, "method": "files.write", "params": {"content_b64": "',
                 b'{"params": {"id": 1, "x": ["}", "\\""]}, "id": 41, "method": "files.write", "more": "'):
        host.raw(head)
        for _ in range(70):
            host.raw(b"A" * (1 << 20))
        host.raw(b'"}}\n')
        assert host.answer(41, 60)["error"]["code"] == -32000
        assert host.call("sandbox.get", sandbox_id="box-1")["status"] == "running"
    status = Path(f"/proc/{host.process.pid}/status").read_text()
    assert int(status.split("VmRSS:")[1].split()[0]) < 90_000


def test_a_host_that_does_not_read(server):
    """Its requests are taken all the same, and memory does not grow with the output."""
    process = subprocess.Popen([BINARY, "provider", "serve", "opensandbox"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    request = lambda number, method, **params: json.dumps(  # noqa: E731
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
    process.stdin.write(request(1, "initialize", protocol="epp/1", provider_id="opensandbox",
                                config={"base_url": server.url, "api_key": KEY}))
    process.stdin.write(request(2, "exec.start", sandbox_id="box-1", cmd="sh", args=["-c", "yes | head -c 100000000"]))
    process.stdin.flush()
    ended = threading.Event()

    def flood():
        for _ in range(40):
            process.stdin.write(b"x" * (1 << 20) + b"\n" + b"garbage\n" * 1000)
        process.stdin.flush()
        ended.set()

    threading.Thread(target=flood, daemon=True).start()
    assert ended.wait(30)
    time.sleep(0.5)
    for pid in [process.pid, *map(int, subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True).stdout.split())]:
        assert int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) < 40_000
    size = 0
    for line in process.stdout:
        line = json.loads(line)
        size += len(line.get("params", {}).get("data", ""))
        if line.get("method") == "exec.exit":
            break
    assert size == 100_000_000
    process.stdin.close()
    assert process.wait(10) == 0


# --- giving up ---

def test_cancelling_a_create_removes_what_was_made(scripted_host):
    host, server = scripted_host
    ready = threading.Event()

    def script(request, whole):
        if request.path.endswith("/ping"):
            ready.set()
            return [HOLD]
        return [whole]

    server.script = script
    number = host.send("sandbox.create", **create())
    assert ready.wait(10) and "new-2" in server.boxes
    host.notify("$/cancel", id=number)
    assert host.answer(number)["error"]["code"] == -32000
    assert "new-2" not in server.boxes and "box-1" in server.boxes


def test_cancelling_an_exec_run_ends_the_command(host, folder):
    number = host.send("exec.run", sandbox_id="box-1", cmd="sh", args=["-c", f"echo $$ > {folder}/pid; exec sleep 62"])
    while not (folder / "pid").exists() or not (folder / "pid").read_text():
        time.sleep(0.01)
    host.notify("$/cancel", id=number)
    assert host.answer(number)["error"]["code"] == -32000
    pid, end = (folder / "pid").read_text().strip(), time.monotonic() + 5
    while Path("/proc", pid).exists():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_cancelling_what_was_answered_touches_nothing(host, server):
    number = host.send("sandbox.create", **create())
    made = host.answer(number)["result"]["sandbox_id"]
    name = host.start("box-1", "sleep", "0.5")
    for done in (number, host.last, 1):
        host.notify("$/cancel", id=done)
    assert host.finish(name)[0] == 0
    assert host.call("sandbox.get", sandbox_id=made)["status"] == "running"


@pytest.mark.parametrize("how", ["close", "term", "kill", "shutdown"])
def test_the_end_in_the_middle_of_a_create(scripted_host, how):
    """Nobody knows of that sandbox: it goes. The others stay."""
    host, server = scripted_host
    ready = threading.Event()

    def script(request, whole):
        if request.path.endswith("/ping"):
            ready.set()
            return [HOLD]
        return [whole]

    server.script = script
    host.send("sandbox.create", **create())
    assert ready.wait(10)
    start = time.monotonic()
    if how == "close":
        assert host.end() == 0
    elif how == "shutdown":
        assert host.call("shutdown") == {} and host.wait() == 0
    else:
        host.process.send_signal(signal.SIGTERM if how == "term" else signal.SIGKILL)
        assert host.wait() == (143 if how == "term" else -9)
    while group(host):
        assert time.monotonic() - start < 5
        time.sleep(0.02)
    assert time.monotonic() - start < 4 and list(server.boxes) == ["box-1"]


def test_a_create_whose_answer_nobody_took(server):
    """The host goes away without reading: the sandbox goes, too."""
    # Unbuffered: a reader that takes more than the first line has taken the answer.
    process = subprocess.Popen([BINARY, "provider", "serve", "opensandbox"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               start_new_session=True, bufsize=0)
    for number, method, params in ((1, "initialize", {"protocol": "epp/1", "config": {"base_url": server.url, "api_key": KEY}}),
                                   (2, "sandbox.create", create())):
        process.stdin.write(json.dumps({"id": number, "method": method, "params": params}).encode() + b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 1
    process.stdout.close()
    assert process.wait(10) == 1
    end = time.monotonic() + 5
    while list(server.boxes) != ["box-1"]:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert [r.method for r in server.requests].count("POST") == 1


@pytest.mark.parametrize("how", ["close", "term", "shutdown"])
def test_the_end_leaves_commands_running(server, folder, how):
    host = Host(BINARY, server)
    host.start("box-1", "sh", "-c", f"sleep 1; echo done > {folder}/done")
    start = time.monotonic()
    if how == "close":
        assert host.end() == 0
    elif how == "shutdown":
        assert host.call("shutdown") == {} and host.wait() == 0
    else:
        host.process.terminate()
        assert host.wait() == 143
    assert time.monotonic() - start < 3 and group(host) == []
    while not (folder / "done").exists():
        assert time.monotonic() - start < 5
        time.sleep(0.05)
    assert list(server.boxes) == ["box-1"]


def test_a_call_that_breaks_is_that_call(host):
    name = host.start("box-1", "sleep", "60")
    number = host.send("exec.run", sandbox_id="box-1", cmd="sleep", args=["60"])
    time.sleep(0.3)
    for pid in group(host):
        if pid != host.process.pid:
            os.kill(pid, signal.SIGKILL)
    assert host.answer(number)["error"]["code"] == -32000
    assert host.finish(name)[0] == 125
    assert host.call("sandbox.get", sandbox_id="box-1")["status"] == "running"


def test_a_stream_that_breaks_says_so(scripted_host):
    host, server = scripted_host
    server.commands["x"] = [scripted.event(type="stdout", text="half")]     # and no end
    name = host.start("box-1", "sh", "-c", "x")
    code, out, err = host.finish(name)
    assert code == 125 and out == "half\n" and err.startswith("abx: ") and "unknown" in err


def test_more_calls_than_places(host):
    """They wait their turn; none is lost."""
    numbers = [host.send("exec.run", sandbox_id="box-1", cmd="sh", args=["-c", f"sleep 0.5; echo {i}"]) for i in range(150)]
    for i, number in enumerate(numbers):
        assert host.answer(number, 60)["result"]["stdout"] == f"{i}\n"


def test_nothing_is_left(host):
    for _ in range(3):
        host.sh("box-1", "true")
    host.start("box-1", "sleep", "0.2")
    assert host.call("shutdown") == {}
    assert host.wait() == 0 and group(host) == [] and host.said == b""
