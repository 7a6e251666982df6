"""Each verb against a server that answers well: documents, text, exit codes,
and what happens when the result cannot be written."""

import json
import os
import subprocess
import threading
import time

import pytest

import scripted
from conftest import BINARY
from scripted import KEY, answer, chunked, event


def stdout_line(text):
    return event(type="stdout", text=text)


def exited(code, trace=()):
    if code == 0:
        return event(type="execution_complete", execution_time=5)
    return event(type="error", error={"ename": "CommandExecError", "evalue": str(code), "traceback": list(trace)})


INFO = ["sandbox_id", "provider", "template", "status", "metadata", "started_at", "end_at"]


# --- lifecycle ---

def test_create(osb, server):
    doc = osb("--json", "sandbox", "create", "--template", "base", "--timeout", "120", "--yes", "-m", "project=demo",
              "-e", "A=1=2", "-e", "FROM_OUTSIDE", env={"FROM_OUTSIDE": "世界"}).doc
    assert list(doc) == [*INFO, "timeout"] and doc["timeout"] == 120
    assert (doc["sandbox_id"], doc["provider"], doc["status"]) == ("new-1", "opensandbox", "running")
    assert doc["metadata"]["project"] == "demo"
    asked = server.requests[0].json()
    assert asked["timeout"] == 120 and asked["env"] == {"A": "1=2", "FROM_OUTSIDE": "世界"}
    assert asked["entrypoint"] == ["tail", "-f", "/dev/null"] and asked["image"] == {"uri": "python:3.12-slim"}
    assert [r.method for r in server.requests].count("POST") == 1


def test_create_text_and_quiet(osb):
    assert osb("-q", "sandbox", "create").out == b"new-1\n"
    lines = osb("sandbox", "create").out.decode().splitlines()
    assert lines[:2] == ["sandbox_id: new-2", "provider: opensandbox"] and "status: running" in lines


def test_create_without_end(osb, server):
    osb("sandbox", "create", "--timeout", "none")
    assert "timeout" not in server.requests[0].json()


@pytest.mark.parametrize("words", [["--", "sleep", "-x"], ["--entrypoint", "sleep", "--entrypoint", "-x"]])
def test_create_entrypoint(osb, server, words):
    assert osb("sandbox", "create", *words).status == 0
    assert server.requests[0].json()["entrypoint"] == ["sleep", "-x"]


def test_a_short_life_is_raised_and_said(osb, server):
    ran = osb("sandbox", "create", "--timeout", "30")
    assert ran.status == 0 and server.requests[0].json()["timeout"] == 60
    assert b"timeout 30s is below OpenSandbox's 60 s minimum; using 60 s" in ran.err
    assert osb("-q", "sandbox", "create", "--timeout", "30").err == b""


def test_info(osb, server):
    server.box("box-1", metadata={"note": "café ☃"})
    ran = osb("--json", "sandbox", "info", "box-1")
    assert list(ran.doc)[:7] == INFO and ran.doc["metadata"] == {"note": "café ☃"}
    assert ran.out.decode() == json.dumps(ran.doc, indent=2, ensure_ascii=False) + "\n"
    assert osb("sandbox", "info", "opensandbox:box-1").status == 0
    text = osb("sandbox", "info", "box-1").out.decode()
    assert "sandbox_id: box-1\n" in text and "metadata: note=café ☃\n" in text and "region" not in text


def test_unknown_id(osb):
    ran = osb("--json", "sandbox", "info", "does-not-exist-xyz")
    assert ran.status == 4 and ran.error["code"] == "E2009"
    ran = osb("--json", "--provider", "opensandbox", "sandbox", "info", "alicloud-express:x")
    assert ran.status == 2 and ran.error["code"] == "E8030"
    assert osb("sandbox", "info", "nosuch:x").status == 4


def test_wrong_key(osb):
    for verb in (["sandbox", "info", "x"], ["sandbox", "create"], ["sandbox", "list"], ["sandbox", "kill", "x"]):
        ran = osb("--json", *verb, env={"ABX_OPENSANDBOX_API_KEY": "wrong-key-xyzzy"})
        assert ran.status == 3 and ran.error["code"] == "E1001", ran
        assert b"wrong-key" not in ran.err + ran.out


def test_list(osb, server):
    assert osb("sandbox", "list", "--json").out == b"[]\n"
    for i in range(3):
        server.box(f"box-{i}", metadata={"n": str(i)})
    doc = osb("sandbox", "ls", "--json").doc
    assert [d["sandbox_id"] for d in doc] == ["box-0", "box-1", "box-2"] and all(list(d)[:7] == INFO for d in doc)
    assert osb("-q", "sandbox", "list").out == b"box-0\nbox-1\nbox-2\n"
    assert osb("sandbox", "list", "-m", "n=1", "-q").out == b"box-1\n"
    limited = osb("sandbox", "list", "-q", "--limit", "2")
    assert limited.out == b"box-0\nbox-1\n"
    limited = osb("sandbox", "list", "--limit", "2")
    assert b"there are more than these 2" in limited.err
    assert osb("sandbox", "list", "--limit", "3").err == b""
    head, *rows = osb("sandbox", "list").out.decode().splitlines()
    assert head.split()[:3] == ["SANDBOX", "ID", "STATUS"] and len(rows) == 3
    assert all(row.index("running") == head.index("STATUS") for row in rows)


def test_list_of_many_pages(osb, server):
    for i in range(501):
        server.box(f"box-{i:03}")
    assert osb("-q", "sandbox", "list").out.split() == [b"box-%03d" % i for i in range(501)]


def test_pause_and_resume(osb, server):
    server.box()
    assert osb("sandbox", "pause", "box-1", "--json").doc["status"] == "paused"
    for verb in (["exec", "box-1", "true"], ["upload", "box-1", "-", "/x"], ["download", "box-1", "/x", "-"]):
        server.requests.clear()
        ran = osb("sandbox", *verb)
        assert ran.status not in (0, 2) and b"resume" in ran.err, ran
        assert not [r for r in server.requests if r.path.startswith("/x/")], "nothing may reach a paused sandbox"
    assert osb("sandbox", "resume", "box-1", "--json").doc["status"] == "running"


def test_timeout_and_url(osb, server):
    server.box()
    assert osb("sandbox", "timeout", "box-1", "10m", "--json").doc["sandbox_id"] == "box-1"
    assert osb("sandbox", "url", "box-1", "8000").out.startswith(b"http://127.0.0.1:")
    assert list(osb("sandbox", "url", "box-1", "8000", "--json").doc) == ["url"]


def test_kill_twice(osb, server):
    server.box()
    first = osb("sandbox", "kill", "box-1", "--yes", "--json")
    second = osb("sandbox", "kill", "box-1", "--yes", "--json")
    assert first.doc == {"sandbox_id": "box-1", "killed": True} and first.status == 0
    assert second.doc == {"sandbox_id": "box-1", "killed": False} and second.status == 0
    assert [r.method for r in server.requests] == ["DELETE", "DELETE"]


def test_kill_several(osb, server):
    server.box("a"), server.box("b")
    ran = osb("sandbox", "rm", "a", "gone", "b", "--json")
    assert ran.status == 0 and [(d["sandbox_id"], d["killed"]) for d in ran.doc] == [("a", True), ("gone", False), ("b", True)]
    assert osb("sandbox", "kill", "a", "b").out == b"a was gone\nb was gone\n"
    ran = osb("sandbox", "kill", "nosuch:a", "nosuch:b", "--json")
    assert ran.status == 4 and ran.out == b"" and ran.err.count(b"E8001") == 2
    server.box("a")
    ran = osb("--provider", "opensandbox", "sandbox", "kill", "alicloud-express:x", "a", "--json")
    assert ran.status == 2 and ran.error["code"] == "E8030" and ran.doc == [{"sandbox_id": "a", "killed": True}]


def test_nothing_configured(abx):
    ran = abx("--json", "sandbox", "create")
    assert ran.status == 3 and ran.error["code"] == "E1001" and "--provider opensandbox" in ran.error["suggestion"]
    ran = abx("--json", "sandbox", "create", env={"ABX_SANDBOX_API_KEY": KEY})
    assert ran.error["code"] == "E8004" and ran.status == 1
    assert abx("--json", "provider", "default").doc == {"default": "alicloud-express", "source": "builtin"}
    assert abx("provider", "default").out == b"alicloud-express (source: builtin)\n"
    assert abx("--json", "provider", "default", env={"ABX_PROVIDER": "opensandbox"}).doc["source"] == "environ"
    assert abx("--json", "--provider", "opensandbox", "provider", "default").doc["source"] == "override"
    listed = abx("--json", "provider", "list").doc
    assert [p["id"] for p in listed] == ["alicloud-express", "opensandbox"]
    assert list(listed[1]) == ["id", "name", "name_zh", "version", "kind", "trust", "features", "default"]
    assert [p["default"] for p in listed] == [True, False]
    rows = abx("provider", "list").out.decode().splitlines()
    assert rows[0].startswith("* alicloud-express         ") and rows[1].startswith("  opensandbox  ")
    assert abx("-q", "provider", "ls").out == b"alicloud-express\nopensandbox\n"
    ran = abx("--json", "--provider", "nosuch", "sandbox", "list")
    assert ran.status == 4 and ran.error["code"] == "E8001"


# --- settings ---

def test_settings_by_option(osb, server, tmp_path):
    (tmp_path / "key").write_text(KEY + "\n")
    url = f"base_url={server.url}"
    bare = {"ABX_OPENSANDBOX_BASE_URL": None, "ABX_OPENSANDBOX_API_KEY": None}
    assert osb("--option", url, "--option", "api_key=@key", "sandbox", "list", env=bare).status == 0
    assert osb("--option", url, "--option", "api_key=-", "sandbox", "list", env=bare, input=KEY.encode()).status == 0
    ran = osb("--json", "--option", "nonsense=1", "sandbox", "list")
    assert ran.status == 2 and ran.error["code"] == "E8002" and "nonsense" in ran.error["message"]


@pytest.mark.parametrize("value", ["-", "@pipe"])
def test_waiting_for_a_setting_can_be_interrupted(osb, tmp_path, value):
    import signal
    os.mkfifo(tmp_path / "pipe")
    process = osb.start("--option", f"api_key={value}", "sandbox", "list")
    time.sleep(0.2)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(5) in (130, -signal.SIGINT)


def test_debug_shows_requests_but_no_key(osb):
    ran = osb("--debug", "sandbox", "list", "--json")
    assert ran.status == 0 and b"/v1/sandboxes" in ran.err and KEY.encode() not in ran.err


# --- exec ---

@pytest.fixture
def box(osb, server):
    server.box()

    def run(*words, form=(), **more):
        return osb(*form, "--agent", "never", "sandbox", "exec", *words, **more)
    return run


def test_exec_passes_output_and_code(box, server):
    server.commands["two"] = [stdout_line("out"), event(type="stderr", text="err"), stdout_line("\n"), exited(3)]
    ran = box("box-1", "two")
    assert (ran.status, ran.out, ran.err) == (3, b"out\n\n", b"err\n")
    ran = box("box-1", "two", form=("--json",))
    assert ran.status == 0 and list(ran.doc) == ["exit_code", "stdout", "stderr", "duration_ms"]
    assert (ran.doc["exit_code"], ran.doc["stdout"], ran.doc["stderr"]) == (3, "out\n\n", "err\n")
    assert isinstance(ran.doc["duration_ms"], int)


def test_exec_keeps_the_order_of_both_outputs(box, server):
    events = [event(type="stdout" if i % 3 else "stderr", text=f"{i}") for i in range(50)]
    server.commands["mixed"] = [*events, exited(0)]
    ran = box("box-1", "mixed", stderr=subprocess.STDOUT)
    assert ran.out.split() == [b"%d" % i for i in range(50)]


@pytest.mark.parametrize("code", [0, 1, 2, 124, 125, 126, 127, 255])
def test_exec_codes(box, server, code):
    server.commands["x"] = [exited(code)]
    assert box("box-1", "x").status == code
    assert box("box-1", "x", form=("--json",)).doc["exit_code"] == code


@pytest.mark.parametrize("trace,number", [("signal: killed", 9), ("signal: terminated", 15), ("signal: segmentation fault", 11)])
def test_exec_signals(box, server, trace, number):
    server.commands["x"] = [exited(-1, [trace])]
    assert box("box-1", "x").status == 128 + number
    ran = box("box-1", "x", form=("--json",))
    assert ran.status == 0 and ran.doc["signal"] == number and "exit_code" not in ran.doc


def test_exec_by_an_unnamed_signal(box, server):
    server.commands["x"] = [stdout_line("some"), exited(-1, ["signal: real-time 7"])]
    ran = box("box-1", "x")
    assert ran.status == 125 and ran.out == b"some\n" and b"[E3000]" in ran.err
    ran = box("box-1", "x", form=("--json",))
    assert ran.status == 0 and ran.doc["signal"] is None and ran.doc["stdout"] == "some\n"


def test_exec_failures_of_its_own(box, osb):
    assert box("nosuch", "true").status == 125
    ran = box("nosuch", "true", form=("--json",))
    assert ran.status == 4 and ran.error["code"] == "E2009"
    assert box("box-1", "true", env={"ABX_OPENSANDBOX_API_KEY": "wrong"}).status == 125
    assert box("box-1", "true", env={"ABX_OPENSANDBOX_BASE_URL": "http://127.0.0.1:1"}).status == 125
    assert osb("--provider", "opensandbox", "sandbox", "exec", "alicloud-express:x", "true").status == 2


def test_exec_sends_what_was_given(box, server):
    box("box-1", "-e", "A=b", "-w", "/srv", "--timeout", "1500ms", "echo $A | wc")
    asked = next(r for r in server.requests if r.method == "POST").json()
    assert scripted.meant(asked["command"]) == "echo $A | wc"
    assert (asked["envs"], asked["cwd"], asked["timeout"]) == ({"A": "b"}, "/srv", 1500)
    server.requests.clear()
    box("box-1", "printf", "%s", "a b", "$HOME", "it's", "--json", "-q")
    line = next(r for r in server.requests if r.method == "POST").json()["command"]
    words = subprocess.run(["sh", "-c", f"set -- {line.removeprefix('exec ')}; printf '%s\\0' \"$@\""], capture_output=True).stdout
    assert words.split(b"\0")[:-1] == [b"printf", b"%s", b"a b", b"$HOME", b"it's", b"--json", b"-q"]


def test_exec_timed_out(box, server):
    server.commands["sleep 9"] = [stdout_line("a")]

    def slow(request, whole):
        return [whole[:-5], 0.4, chunked([exited(-1, ["signal: killed"])]).partition(b"\r\n\r\n")[2]] \
            if request.path.endswith("/command") else [whole]
    server.script = slow
    assert box("box-1", "--timeout", "300ms", "sleep 9").status == 124
    ran = box("box-1", "--timeout", "300ms", "sleep 9", form=("--json",))
    assert ran.status == 0 and ran.doc["timed_out"] is True and ran.doc["stdout"] == "a\n" and ran.doc["signal"] == 9


def test_exec_streams_at_once(osb, server):
    server.box()
    server.commands["x"] = [stdout_line("first")]
    gate = threading.Event()

    def slow(request, whole):
        if not request.path.endswith("/command"):
            return [whole]
        return [whole[:-5], iter(lambda: gate.wait(10) and b"", b""), b"%x\r\n%s\r\n0\r\n\r\n" % (len(exited(0)), exited(0))]
    server.script = slow
    process = osb.start("sandbox", "exec", "box-1", "x")
    assert process.stdout.read(6) == b"first\n"
    gate.set()
    assert process.wait(10) == 0


def test_exec_json_limit(box, server):
    """Both outputs together are held up to 64 MiB; a byte more stops the command."""
    line = "x" * (1 << 20)
    for lines, last, fits in ((63, 1048575, True), (63, 1048576, False)):
        server.commands["big"] = [stdout_line(line[1:])] * lines + [event(type="stderr", text="y" * last), exited(0)]
        server.requests.clear()
        ran = box("box-1", "big", form=("--json",))
        if fits:
            assert ran.status == 0 and len(ran.doc["stdout"]) + len(ran.doc["stderr"]) == 64 << 20
        else:
            assert ran.status == 1 and ran.error["code"] == "E3000" and ran.out == b""
            assert [r for r in server.requests if r.method == "DELETE" and r.path.endswith("/command")]


# --- shell-stream ---

def test_shell_stream(osb, server):
    server.box()
    server.commands["printf x"] = [stdout_line("cli-stream ok"), event(type="stderr", text="café"), exited(2)]
    ran = osb("--agent", "never", "sandbox", "shell-stream", "box-1", "--command", "printf x")
    assert (ran.status, ran.out, ran.err) == (2, b"cli-stream ok\n", "café\n".encode())
    ran = osb("--agent", "never", "--json", "sandbox", "shell-stream", "box-1", "--command", "printf x")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.status == 0 and lines[:2] == [{"stream": "stdout", "data": "cli-stream ok\n"},
                                            {"stream": "stderr", "data": "café\n"}]
    assert list(lines[2]) == ["exit_code", "duration_ms"] and lines[2]["exit_code"] == 2
    assert osb("sandbox", "shell-stream", "box-1", "printf x").status == 2


# --- files ---

NAME = "/tmp/你好 世界.txt"


def test_upload_and_download(osb, server, tmp_path):
    server.box()
    data = "café ☃\n".encode() + bytes(range(256))
    (tmp_path / "unicode.txt").write_bytes(data)
    ran = osb("--json", "sandbox", "upload", "box-1", "unicode.txt", NAME)
    assert ran.status == 0 and ran.doc == {"path": NAME, "size": len(data)}
    assert list(server.files) == [NAME] and server.files[NAME][0] == data
    ran = osb("--json", "sandbox", "download", "box-1", NAME, "back.txt")
    assert ran.doc == {"path": "back.txt", "size": len(data)} and (tmp_path / "back.txt").read_bytes() == data
    ran = osb("sandbox", "download", "box-1", NAME, "-")
    assert ran.status == 0 and ran.out == data
    (tmp_path / "folder").mkdir()
    assert osb("sandbox", "download", "box-1", NAME, "folder").status == 0
    assert (tmp_path / "folder" / "你好 世界.txt").read_bytes() == data
    assert osb("sandbox", "download", "box-1", NAME).status == 0
    assert (tmp_path / "你好 世界.txt").read_bytes() == data
    assert osb("sandbox", "upload", "box-1", "unicode.txt", "/srv/").status == 0
    assert server.files["/srv/unicode.txt"][0] == data
    assert osb("sandbox", "upload", "box-1", "-", "/srv/in", input=data).status == 0
    assert server.files["/srv/in"][0] == data


def test_file_names_of_any_bytes(osb, server, tmp_path):
    server.box()
    odd = os.fsencode(tmp_path) + b"/caf\xe9\n\x1b"
    with open(odd, "wb") as file:
        file.write(b"data")
    assert osb("sandbox", "upload", "box-1", odd, "/up").status == 0 and server.files["/up"][0] == b"data"
    os.unlink(odd)
    assert osb("sandbox", "download", "box-1", "/up", odd).status == 0
    with open(odd, "rb") as file:
        assert file.read() == b"data"


def test_upload_keeps_the_old_on_failure(osb, server, tmp_path):
    server.box()
    server.files["/f"] = (b"old", 600)
    (tmp_path / "f").write_bytes(b"new")
    good = server._shell
    server._shell = lambda line: [exited(1)] if "mv" in line else good(line)
    ran = osb("--json", "sandbox", "upload", "box-1", "f", "/f")
    assert ran.status == 1 and server.files == {"/f": (b"old", 600)}, (ran, server.files)


def test_upload_that_arrives_short(osb, server, tmp_path):
    server.box()
    (tmp_path / "f").write_bytes(b"x" * 1000)
    good = server._upload

    def short(request):
        result = good(request)
        path = next(iter(server.files))
        server.files[path] = (b"x" * 999, 644)
        return result
    server._upload = short
    ran = osb("--json", "sandbox", "upload", "box-1", "f", "/f")
    assert ran.status == 1 and server.files == {}, (ran, server.files)


def test_local_files_that_cannot_be_used(osb, server, tmp_path):
    server.box()
    server.files["/f"] = (b"data", 644)
    for local in ("nosuch", "nosuch/"):
        ran = osb("--json", "sandbox", "upload", "box-1", local, "/g")
        assert ran.status == 4 and local in ran.error["message"], ran
    (tmp_path / "plain").touch()
    ran = osb("--json", "sandbox", "download", "box-1", "/f", "plain/f")
    assert ran.status == 1 and "plain" in ran.error["message"]
    ran = osb("--json", "sandbox", "download", "box-1", "/missing", "f")
    assert ran.status == 4 and ran.error["code"] == "E4001" and not (tmp_path / "f").exists()
    assert list(server.files) == ["/f"] and os.listdir(tmp_path) == ["plain"]


# --- when the result cannot be written ---

RESULTS = [["version"], ["help"], ["sandbox", "list"], ["sandbox", "info", "box-1"], ["provider", "list"], ["provider", "default"],
           ["sandbox", "url", "box-1", "80"], ["--agent", "never", "sandbox", "exec", "box-1", "echo x"],
           ["--agent", "never", "--json", "sandbox", "exec", "box-1", "echo x"],
           ["--agent", "never", "--json", "sandbox", "shell-stream", "box-1", "echo x"], ["sandbox", "download", "box-1", "/f", "-"]]


@pytest.fixture
def full(osb, server):
    server.box()
    server.commands["echo x"] = [stdout_line("x"), exited(0)]
    server.files["/f"] = (b"data", 644)
    return osb


@pytest.mark.parametrize("words", RESULTS, ids=" ".join)
def test_full_disk(full, words):
    with open("/dev/full", "wb") as nowhere:
        ran = full(*words, stdout=nowhere)
    assert ran.status == (125 if "exec" in words and "--json" not in words else 1), ran
    assert b"standard output" in ran.err and b"No space left" in ran.err


@pytest.mark.parametrize("words", RESULTS, ids=" ".join)
def test_closed_stdout(full, words):
    ran = full(*words, wrap=["sh", "-c", 'exec "$0" "$@" >&-'])
    assert ran.status == (125 if "exec" in words and "--json" not in words else 1), ran
    assert b"standard output" in ran.err and b"Bad file descriptor" in ran.err


@pytest.mark.parametrize("words", RESULTS, ids=" ".join)
def test_reader_gone(full, words):
    read, write = os.pipe()
    os.close(read)
    ran = full(*words, stdout=write)
    os.close(write)
    assert (ran.status, ran.err) == (141, b""), ran


def test_closed_stdout_creates_nothing(full, server):
    server.boxes.clear()
    ran = full("sandbox", "create", wrap=["sh", "-c", 'exec "$0" "$@" >&-'])
    assert ran.status == 1 and server.requests == []


def test_full_disk_names_what_was_created(full, server):
    server.boxes.clear()
    with open("/dev/full", "wb") as nowhere:
        ran = full("--json", "sandbox", "create", stdout=nowhere)
    assert ran.status == 1 and "new-1" in ran.error["message"] and "new-1" in ran.error["suggestion"]


def test_silent_command_needs_no_stdout(full):
    assert full("sandbox", "exec", "box-1", "true", wrap=["sh", "-c", 'exec "$0" "$@" >&- 2>&- <&-']).status == 0


def test_reader_gone_stops_the_command(full, server):
    """docker exec … | head -1 gives 141, too."""
    server.commands["seq"] = [stdout_line("x" * 1000)] * 2000 + [exited(0)]
    process = full.start("sandbox", "exec", "box-1", "seq")
    process.stdout.read(1)
    process.stdout.close()
    assert process.wait(10) == 141
    assert [r for r in server.requests if r.method == "DELETE" and r.path.endswith("/command")]


@pytest.mark.parametrize("options,message", [("size=256k", "No space left"), ("size=2m,ro", "Read-only")])
def test_download_into_a_full_or_read_only_folder(osb, server, tmp_path, options, message):
    """In a mount namespace, where the folder is a file system of its own."""
    server.box()
    server.files["/big"] = (b"x" * (1 << 20), 644)
    (tmp_path / "small").mkdir()
    script = 'mount -t tmpfs -o "$1" tmpfs small || exit 99; shift; "$@"; status=$?; ls -A small; exit $status'
    ran = osb("--json", "sandbox", "download", "box-1", "/big", "small/big",
              wrap=["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", script, "sh", options])
    ran.failed_well(json_form=True)
    assert ran.status == 1 and message in ran.error["message"], ran


# --- signals, from outside ---

@pytest.mark.parametrize("name,status", [("INT", 130), ("TERM", 143), ("HUP", 129)])
def test_signals_stop_the_command(full, server, name, status):
    import signal
    server.commands["sleep"] = [stdout_line("ready")]
    server.script = lambda request, whole: [whole[:-5], scripted.HOLD] if request.path.endswith("/command") \
        and request.method == "POST" else [whole]
    process = full.start("sandbox", "exec", "box-1", "sleep")
    assert process.stdout.read(6) == b"ready\n"
    process.send_signal(getattr(signal, "SIG" + name))
    assert process.wait(10) == status
    assert process.stdout.read() == b""
    assert [r for r in server.requests if r.method == "DELETE" and r.path.endswith("/command")]


def test_a_second_signal_leaves_at_once(full, server):
    import signal
    server.commands["sleep"] = [stdout_line("ready")]
    server.script = lambda request, whole: [whole[:-5], scripted.HOLD] if request.method == "POST" \
        else [scripted.HOLD] if request.method == "DELETE" else [whole]
    process = full.start("sandbox", "exec", "box-1", "sleep")
    assert process.stdout.read(6) == b"ready\n"
    process.send_signal(signal.SIGINT)
    while not any(r.method == "DELETE" for r in server.requests):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(2) in (130, -signal.SIGINT)


def test_ignored_signals_stay_ignored(full, server):
    """nohup: a hang-up does not end it."""
    import signal
    server.commands["sleep"] = [stdout_line("ready"), exited(0)]
    server.script = lambda request, whole: [whole[:-70], 0.5, whole[-70:]] if request.path.endswith("/command") else [whole]
    process = subprocess.Popen(["sh", "-c", 'trap "" HUP; exec "$0" "$@"', BINARY, "sandbox", "exec", "box-1", "sleep"],
                               env=full.environment(), stdout=subprocess.PIPE)
    assert process.stdout.read(6) == b"ready\n"
    process.send_signal(signal.SIGHUP)
    assert process.wait(10) == 0


def test_a_blocked_reader_does_not_keep_it_from_ending(full, server):
    import signal
    server.commands["yes"] = [stdout_line("x" * 1000)] * 1000 + [exited(0)]
    process = full.start("sandbox", "exec", "box-1", "yes")
    process.stdout.read(1)
    time.sleep(0.3)             # the pipe is full now
    process.send_signal(signal.SIGINT)
    assert process.wait(5) == 130
