"""docs/examples/local-folder, the plugin of docs/plugin-authors.md: line by line,
for what the contract kit never asks, and installed and tested with abx."""

import base64
import json
import os
import pathlib
import queue
import subprocess
import threading
import time
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "examples" / "local-folder"
MANIFEST = tomllib.loads((FOLDER / "abx-provider.toml").read_text())


class Failed(Exception):
    pass


class Session:
    """The host's side of one session. Answers by id; notifications in order."""

    def __init__(self, data, config=None):
        env = {"PATH": os.environ["PATH"], "ABX_PROVIDER_DATA_DIR": str(data), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [w if not w.startswith("./") else str(FOLDER / w) for w in MANIFEST["runtime"]["command"]]
        self.process = subprocess.Popen(command, cwd=data, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, start_new_session=True)
        self.notes, self.answers, self.last = queue.Queue(), queue.Queue(), 0
        threading.Thread(target=self.read, daemon=True).start()
        self.hello = self.call("initialize", protocol="epp/1", config={"shell": "/bin/sh"} | (config or {}), core={})

    def read(self):
        for line in self.process.stdout:
            assert len(line) <= 8 * 1024 * 1024
            message = json.loads(line)
            (self.answers if "id" in message else self.notes).put(message)

    def ask(self, method, **params):
        self.last += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return self.last

    def call(self, method, **params):
        number = self.ask(method, **params)
        answer = self.answers.get(timeout=20)
        assert answer["id"] == number
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["result"]

    def fails(self, method, **params):
        with pytest.raises(Failed) as caught:
            self.call(method, **params)
        error = caught.value.args[0]
        return error["code"], error.get("data", {}).get("sdk_code")

    def run(self, line, box, **params):
        """A command from its start to its end: what it said, and how it ended."""
        pid = self.call("exec.start", sandbox_id=box, cmd="sh", args=["-c", line], timeout=20, **params)["process_id"]
        return self.rest(pid)

    def rest(self, pid):
        said = {"stdout": "", "stderr": ""}
        while True:
            note = self.notes.get(timeout=20)
            assert note["params"]["process_id"] == pid
            if note["method"] == "exec.exit":
                assert self.notes.empty()
                return said["stdout"], said["stderr"], note["params"]["exit_code"]
            said[note["params"]["stream"]] += note["params"]["data"]

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(20) == 0
        return self.process.stderr.read().decode()


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def session(data):
    opened = Session(data)
    yield opened
    opened.process.kill()
    opened.process.wait()


@pytest.fixture
def box(session):
    made = session.call("sandbox.create", template="base", timeout=300, metadata={"a": "é"}, envs={"FROM": "create"}, cpu=2)
    yield made["sandbox_id"]
    try:
        session.call("sandbox.kill", sandbox_id=made["sandbox_id"])
    except (Failed, OSError):
        pass


def test_the_handshake_is_the_manifest(session):
    assert session.hello["operations"] == MANIFEST["operations"]
    assert session.hello["features"] == MANIFEST["features"]["supported"]
    assert session.hello["workflow_inputs"] == MANIFEST["workflow"]["inputs"]
    assert session.hello["startup_modes"] == MANIFEST["workflow"]["startups"]
    assert session.hello["operation_contract_version"] == 1


def test_records(session, box):
    record = session.call("sandbox.get", sandbox_id=box)
    assert record["metadata"] == {"a": "é"} and record["status"] == "running" and record["template"] == "base"
    assert session.call("sandbox.connect", sandbox_id=box) == record
    for unknown in ("dir-0123456789abcdef", "does-not-exist-0000", "..", ""):
        assert session.fails("sandbox.get", sandbox_id=unknown)[0] == -32002
        assert session.fails("sandbox.kill", sandbox_id=unknown)[0] == -32002
    session.call("sandbox.set_timeout", sandbox_id=box, timeout=1)
    deadline = time.monotonic() + 20
    while session.call("sandbox.list", limit=10)["sandboxes"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert session.fails("sandbox.get", sandbox_id=box)[0] == -32002


def test_pages(session):
    made = [session.call("sandbox.create", template="base", timeout=300)["sandbox_id"] for _ in range(5)]
    session.call("sandbox.pause", sandbox_id=made[2])
    seen, cursor = [], {}
    while True:
        page = session.call("sandbox.list", limit=2, **cursor)
        assert len(page["sandboxes"]) <= 2
        seen += [r["sandbox_id"] for r in page["sandboxes"]]
        if "next" not in page:
            break
        cursor = {"cursor": page["next"]}
    assert seen == made
    assert [r["sandbox_id"] for r in session.call("sandbox.list", limit=9, status="paused")["sandboxes"]] == [made[2]]
    for sandbox_id in made:
        session.call("sandbox.kill", sandbox_id=sandbox_id)
    assert session.call("sandbox.list", limit=2) == {"sandboxes": []}


def test_commands(session, box):
    assert session.run("echo one; echo two >&2; exit 3", box) == ("one\n", "two\n", 3)
    assert session.run("echo $FROM $HOW; pwd", box, env={"HOW": "call"}, cwd="/")[0].startswith("create call\n/")
    assert session.run("printf é; printf '\\303'; sleep 0.2; printf '\\251\\377'", box)[0] == "éé\ufffd"
    assert session.run("kill -9 $$", box) == ("", "", -9)
    out = session.run("yes 0123456789012345678901234567890123456789 | head -c 20000000", box)
    assert len(out[0]) == 20000000 and out[2] == 0
    assert session.call("exec.run", sandbox_id=box, cmd="cat", args=[], timeout=20) == {"stdout": "", "stderr": "", "exit_code": 0}
    assert session.fails("exec.start", sandbox_id=box, cmd="no-such-program", timeout=5) == (-32000, "E4001")
    assert session.fails("exec.start", sandbox_id=box, cmd="true", cwd="/nowhere", timeout=5) == (-32000, "E4001")


def test_a_command_and_its_children_end_at_its_timeout(session, box):
    start = time.monotonic()
    pid = session.call("exec.start", sandbox_id=box, cmd="sh", args=["-c", "sleep 300 & sleep 300; echo"], timeout=1)["process_id"]
    assert session.rest(pid) == ("", "", -9)
    assert 0.9 < time.monotonic() - start < 15
    with pytest.raises(ProcessLookupError):
        for _ in range(200):        # until the kernel has them gone
            os.killpg(pid, 0)
            time.sleep(0.05)


def test_processes(session, box):
    pid = session.call("exec.start", sandbox_id=box, cmd="cat", args=[], timeout=60)["process_id"]
    assert session.call("process.list", sandbox_id=box)["processes"] == [{"pid": pid, "command": "cat", "status": "running"}]
    session.call("process.stdin", sandbox_id=box, pid=str(pid), data="héllo\n")
    assert session.notes.get(timeout=20)["params"] == {"process_id": pid, "stream": "stdout", "data": "héllo\n"}
    session.call("process.signal", sandbox_id=box, pid=str(pid), signal=15)
    assert session.rest(pid) == ("", "", -15)
    assert session.call("process.list", sandbox_id=box)["processes"] == []
    for other in (pid, 1, "x", os.getpid()):
        assert session.fails("process.signal", sandbox_id=box, pid=other, signal=9)[0] == -32002


def test_another_session_sees_the_same(session, box, data):
    pid = session.call("exec.start", sandbox_id=box, cmd="sleep", args=["300"], timeout=60)["process_id"]
    other = Session(data)
    assert [r["sandbox_id"] for r in other.call("sandbox.list", limit=10)["sandboxes"]] == [box]
    assert [p["pid"] for p in other.call("process.list", sandbox_id=box)["processes"]] == [pid]
    assert other.fails("process.stdin", sandbox_id=box, pid=pid, data="x")[0] == -32000
    other.call("sandbox.kill", sandbox_id=box)
    other.close()
    assert session.rest(pid) == ("", "", -9)
    assert session.fails("sandbox.get", sandbox_id=box)[0] == -32002


def test_pause(session, box):
    pid = session.call("exec.start", sandbox_id=box, cmd="sleep", args=["300"], timeout=60)["process_id"]
    session.call("sandbox.pause", sandbox_id=box)
    state = pathlib.Path(f"/proc/{pid}/stat")
    for _ in range(200):
        if state.read_text().rpartition(")")[2].split()[0] == "T":
            break
        time.sleep(0.05)
    assert session.call("sandbox.get", sandbox_id=box)["status"] == "paused"
    assert session.fails("exec.start", sandbox_id=box, cmd="true", timeout=5)[0] == -32000
    session.call("sandbox.resume", sandbox_id=box)
    assert session.call("exec.run", sandbox_id=box, cmd="true", timeout=5)["exit_code"] == 0
    session.call("process.signal", sandbox_id=box, pid=pid, signal=9)
    assert session.rest(pid)[2] == -9


def test_files(session, box):
    def write(path, content):
        session.call("files.write", sandbox_id=box, path=path, content_b64=base64.b64encode(content).decode())

    def read(path):
        return base64.b64decode(session.call("files.read", sandbox_id=box, path=path)["content_b64"])

    write("/x/y/blob", bytes(range(256)) * 4)
    assert read("/x/y/blob") == bytes(range(256)) * 4 and read("x/./y/../y/blob") == bytes(range(256)) * 4
    write("/x/y/blob", b"short")
    assert read("/x/y/blob") == b"short" and read("/../../../x/y/blob") == b"short"
    write("/你好 世界", b"")
    assert [e["name"] for e in session.call("files.list", sandbox_id=box, path="/")["entries"]] == ["x", "你好 世界"]
    assert session.call("files.stat", sandbox_id=box, path="/x/y/blob") | {"mtime": 0} == {
        "name": "blob", "path": "/x/y/blob", "type": "file", "size": 5, "mtime": 0}
    assert session.call("files.stat", sandbox_id=box, path="/x")["type"] == "dir"
    session.call("files.move", sandbox_id=box, source="/x/y/blob", destination="/new/place")
    assert read("/new/place") == b"short"
    session.call("files.mkdir", sandbox_id=box, path="/a/b/c")
    session.call("files.remove", sandbox_id=box, path="/a")
    for method in ("files.stat", "files.list", "files.read", "files.remove"):
        assert session.fails(method, sandbox_id=box, path="/a/b") == (-32000, "E4001")
    assert session.fails("files.remove", sandbox_id=box, path="/") == (-32006, None)
    assert session.fails("files.write", sandbox_id=box, path="/bad", content_b64="-_-_")[0] == -32602
    assert session.run("cat /dev/zero | head -c 7000000 > big; ls", box)[0] == "big\nnew\nx\n你好 世界\n"
    assert session.fails("files.read", sandbox_id=box, path="/big")[0] == -32000
    write("/large", b"x" * 15_000_000)         # one line of 20 MB
    assert session.call("files.stat", sandbox_id=box, path="/large")["size"] == 15_000_000


def test_the_secret_goes_to_commands_alone(data):
    session = Session(data, {"token": "abx-canary-1"})
    box = session.call("sandbox.create", template="base", timeout=300)["sandbox_id"]
    assert session.run("echo $SANDBOX_TOKEN", box)[0] == "abx-canary-1\n"
    assert not [p for p in data.rglob("*") if p.is_file() and b"abx-canary-1" in p.read_bytes()]
    session.call("sandbox.kill", sandbox_id=box)
    assert "canary" not in session.close()


def test_odd_lines(session, box, data):
    session.process.stdin.write(b'\n  \r\n{"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": 1}}\n')
    assert session.fails("files.watch", sandbox_id=box, path="/") == (-32601, None)
    assert session.fails("sandbox.get") == (-32602, None)
    assert session.call("ports.url", sandbox_id=box, port=8080) == {"url": "http://127.0.0.1:8080", "headers": {}}
    numbers = {session.ask("exec.run", sandbox_id=box, cmd="sleep", args=[s], timeout=20) for s in ("0.4", "0.2", "0")}
    assert {session.answers.get(timeout=20)["id"] for _ in numbers} == numbers      # in whatever order
    pid = session.call("exec.start", sandbox_id=box, cmd="sleep", args=["300"], timeout=60)["process_id"]
    assert session.call("shutdown") == {}
    assert session.process.wait(20) == 0
    for _ in range(200):
        if not pathlib.Path(f"/proc/{pid}").exists() or pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            break
        time.sleep(0.05)
    else:
        pytest.fail("the command outlived its session")
    left = Session(data)
    assert left.call("process.list", sandbox_id=box)["processes"] == []
    left.call("sandbox.kill", sandbox_id=box)
    assert "cpu is not limited here: 2 was asked for" in session.process.stderr.read().decode()
    left.close()


@pytest.fixture
def installed(abx):
    """The program, with the plugin installed as the manual says."""
    ran = abx("provider", "install", str(FOLDER), "--yes")
    assert ran.status == 0, ran
    abx.env = {"ABX_PROVIDER": "local-folder"}
    return abx


def test_the_contract_kit(installed):
    running = installed.start("--json", "provider", "test", "local-folder")
    out, err = running.communicate(timeout=180)
    done = json.loads(out)
    assert (running.returncode, done["passed"], done["failed"], done["skipped"]) == (0, 18, 0, 0), err


def test_with_abx(installed, tmp_path):
    ran = installed("provider", "doctor")
    assert ran.status == 0 and ran.out.count(b"ok   ") == 4, ran
    made = installed("-q", "sandbox", "create", "--timeout", "5m")
    box = made.out.decode().strip()
    assert made.status == 0 and box.startswith("dir-"), made

    # Its commands see this machine's /tmp, and its files a folder of its own: no program can be carried there.
    ran = installed("--agent", "never", "sandbox", "exec", box, "echo hello; echo oops >&2; exit 3")
    assert (ran.status, ran.out, ran.err) == (3, b"hello\n", b"oops\n")
    (tmp_path / "report.csv").write_bytes(bytes(range(256)))
    assert installed("sandbox", "upload", box, "report.csv", "/tmp/你好 世界.csv").status == 0
    assert installed("sandbox", "download", box, "/tmp/你好 世界.csv", "back.csv").status == 0
    assert (tmp_path / "back.csv").read_bytes() == bytes(range(256))
    assert installed("sandbox", "download", box, "/no", "no").failed_well(False) is None

    ran = installed("sandbox", "kill", "local-folder:" + box)
    assert ran.status == 0, ran
    ran = installed("--json", "sandbox", "info", box)
    assert ran.status == 4 and ran.error["code"] == "E2009", ran
    ran = installed("provider", "uninstall", "local-folder", "--purge")
    assert ran.status == 0, ran
    assert not (tmp_path / ".abx" / "providers" / "local-folder").exists()


def test_a_changed_plugin_is_not_run(installed, tmp_path):
    with open(tmp_path / ".abx/providers/local-folder/provider.py", "a") as f:
        f.write("\n")
    ran = installed("--json", "sandbox", "list")
    assert ran.error["code"] == "E8011", ran
    assert not (tmp_path / ".abx/providers/local-folder/data/sandboxes").exists()


def test_linked_while_one_works_on_it(abx):
    ran = abx("provider", "install", str(FOLDER), "--link", "--yes")
    assert ran.status == 0, ran
    assert abx("--json", "provider", "info", "local-folder").doc["receipt"]["trust"] == "link"
    assert abx("--provider", "local-folder", "sandbox", "list").status == 0
