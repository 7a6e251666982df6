"""File verbs against a daemon and a plugin that list what no folder can hold, and
files too large for a plugin's line."""

import json
import os
import time

import pytest

import plugins
from scripted import HOLD, answer, chunked
from terminal import Terminal

LINE = 6_290_000


def entry(path, kind="file", **more):
    return {"path": path, "type": kind, "size": 1, "mode": 644, "modified_at": "2021-02-03T04:05:06Z", **more}


def listing(server, *entries, raw=None):
    """Every folder holds just these; what is said of one path is always a folder."""
    def script(request, whole):
        if request.path.endswith("/directories/list"):
            return [answer(200, list(entries)) if raw is None else raw]
        return [whole]
    server.box("box")
    server.script = script


@pytest.mark.parametrize("path", ["/t/a\0b", "/t/" + "x" * 1025, "", "/", "/t/", 7])
def test_what_can_be_no_name(osb, server, path):
    listing(server, entry("/t/good"), entry(path))
    for words in (["ls"], ["ls", "-R"], ["find", "--type", "f"]):
        ran = osb("--json", "file", *words, "box", "/t")
        assert ran.status in (1, 4), ran
        if words[0] == "ls":
            ran.failed_well(json_form=True)
            assert ran.error["code"] == "E8020", ran


@pytest.mark.parametrize("path, name", [("/t/../../etc/passwd", b"passwd"), ("/else/where", b"where"), ("/t/\n", b"\n"),
                                        ("/t/-rf", b"-rf"), ("/t/\x1b[2J", b"\x1b[2J")])
def test_names_are_names_in_the_folder_that_was_asked_for(osb, server, path, name):
    listing(server, entry(path), entry("/t/."), entry("/t/.."))
    assert osb("file", "ls", "-0", "box", "/t").out == name + b"\0"
    assert [e["path"].encode() for e in osb("--json", "file", "ls", "box", "/t").doc] == [b"/t/" + name]
    server.requests.clear()
    listing(server, entry(path, "directory"))
    osb("file", "find", "box", "/t", "--max-depth", "0")
    ran = osb("file", "ls", "-R", "box", "/t")
    asked = [r.query["path"][0] for r in server.requests if r.path.endswith("/directories/list")]
    assert all(p == "/t" or p.startswith("/t/") for p in asked) and ran.status in (0, 1)


def test_a_terminal_is_not_steered(osb, server):
    listing(server, entry("/t/a\x1b[2J\x07b"), entry("/t/c\nd"))
    term = Terminal(osb, "file", "ls", "-l", "box", "/t")
    term.expect(rb"  a\\u001b\[2J\\u0007b\r\n[^\x1b]*  c\\u000ad\r\n")
    term.ended(0)


def test_a_folder_that_lists_itself(osb, server):
    listing(server, entry("/t/d", "directory"), entry("/t/f"))
    ran = osb("file", "ls", "-R", "box", "/t")
    assert ran.status == 1 and b"[E4000] /t: folders go too deep below d/d/d/" in ran.err
    assert ran.out.count(b"\n") == 400
    assert len([r for r in server.requests if r.path.endswith("/directories/list")]) == 200


NONE = {
    "an object": (answer(200, {"a": 1}), "E8020"), "a number": (answer(200, [7]), "E8020"), "no JSON": (answer(200, b"nonsense"), "E8020"),
    "nothing": (answer(200), "E8020"), "too deep": (answer(200, b"[" * 1000), "E4000"),
    "a refusal": (answer(500, {"code": "RUNTIME_ERROR", "message": "permission denied"}), "E4000"),
    "too long": (b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n[", "E4000"),
    "without end": (chunked([b"[" + b" " * (1 << 20)] * 33, "application/json", end=False), "E4000"),
    "too many": (chunked([b"[" + b"0," * 1000001 + b"0]"], "application/json"), "E4000"),
}


@pytest.mark.parametrize("raw, code", NONE.values(), ids=NONE)
def test_listings_that_are_none(osb, server, raw, code):
    listing(server, raw=raw)
    ran = osb("--json", "file", "ls", "box", "/t")
    assert ran.status == 1
    ran.failed_well(json_form=True)
    assert ran.error["code"] == code


def test_one_bad_folder_does_not_end_the_others(osb, server):
    def script(request, whole):
        if not request.path.endswith("/directories/list"):
            return [whole]
        inside = {"/t": [entry("/t/a", "directory"), entry("/t/b", "directory")], "/t/b": [entry("/t/b/f")]}
        path = request.query["path"][0]
        return [answer(200, inside[path]) if path in inside else answer(500, {"code": "RUNTIME_ERROR", "message": "permission denied"})]
    server.box("box")
    server.script = script
    ran = osb("file", "ls", "-R", "box", "/t")
    assert ran.status == 1 and ran.out == b"a\nb\nb/f\n" and ran.err.count(b"[E4000]") == 1
    server.script = lambda request, whole: [HOLD] if "/t/a" in request.query.get("path", []) else script(request, whole)
    server.requests.clear()
    process = osb.start("file", "ls", "-R", "box", "/t")
    while not any("/t/a" in r.query.get("path", []) for r in server.requests):
        time.sleep(0.01)
    process.send_signal(2)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130 and err.count(b"\n") == 1 and out == b"a\nb\n"


@pytest.mark.parametrize("mode", [None, "644", -5, 888, 12345, 1.5])
def test_a_mode_that_is_none_is_not_known(osb, server, tmp_path, mode):
    """Nobody gets a file without any permission for it."""
    what = {"path": "/f", "type": "file", "size": 2, **({} if mode is None else {"mode": mode})}
    box = server.box("box")
    server.files["/f"] = (b"hi", 644)
    server.script = lambda request, whole: [answer(200, {"/f": what}) if request.path.endswith("/files/info") else whole]
    assert osb("--json", "file", "stat", "box", "/f").doc == {"path": "/f", "type": "file", "size": 2}, box
    ran = osb("--agent", "never", "download", "box", "/f", "new", wrap=["sh", "-c", 'umask 27; exec "$@"', "sh"])
    assert ran.status == 0 and (tmp_path / "new").stat().st_mode & 0o777 == 0o640, ran


# --- through a plugin ---

OPS = ["sandbox.create", "sandbox.get", "sandbox.list", "sandbox.delete", "exec.run", "files.read", "files.write", "files.list",
       "files.stat", "files.remove", "files.move"]
FEATURES = ["sandbox.lifecycle", "exec.run", "files.rw"]
PLUGIN = r"""
import base64, json, os, subprocess, sys
def answer(what, p):
    if what == "initialize":
        return {"protocol": "epp/1", "features": FEATURES, "operation_contract_version": 1,
                "operations": {"cli": OPS, "python": OPS}, "workflow_inputs": ["image"], "startup_modes": ["exec", "none"]}
    if what.startswith("sandbox."):
        return {"sandbox_id": "sb", "sandboxes": []}
    if what in ("files.read", "files.write", "exec.run"):
        with open("asked", "a") as f:
            f.write(what + "\n")
    if what == "files.read":
        return {"content_b64": base64.b64encode(open(p["path"], "rb").read()).decode()}
    if what == "files.write":
        open(p["path"], "wb").write(base64.b64decode(p["content_b64"]))
    if what == "files.list":
        return {"entries": json.load(open("entries"))}
    if what == "files.stat":
        return {"name": "x", "size": os.stat(p["path"]).st_size, "type": "dir" if os.path.isdir(p["path"]) else "file"}
    if what == "files.move":
        if os.path.isdir(p["destination"]):
            raise OSError("a folder is there")
        os.rename(p["source"], p["destination"])
    if what == "files.remove":
        os.remove(p["path"])
    if what == "exec.run":
        ran = subprocess.run([p["cmd"]] + p["args"], capture_output=True, text=True)
        return {"exit_code": ran.returncode, "stdout": ran.stdout, "stderr": ran.stderr}
    return {}
for line in sys.stdin:
    m = json.loads(line)
    try:
        reply = {"id": m.get("id"), "result": answer(m["method"], m.get("params", {}))}
    except OSError as e:
        missing = isinstance(e, FileNotFoundError)
        reply = {"id": m["id"], "error": {"code": -32002 if missing else -32000, "message": str(e)}}
    if "id" in m:
        print(json.dumps(reply), flush=True)
    if m["method"] == "shutdown":
        break
"""


@pytest.fixture
def foreign(abx):
    text = PLUGIN.replace("FEATURES", json.dumps(FEATURES)).replace("OPS", json.dumps(OPS))
    folder = plugins.plugin(abx.home / "src/demo", **{"plugin.py": text})
    manifest = folder / "abx-provider.toml"
    text = manifest.read_text().replace('["sandbox.lifecycle", "exec.run"]', json.dumps(FEATURES))
    manifest.write_text(text.replace('["sandbox.create", "sandbox.get", "sandbox.list", "sandbox.delete", "exec.run"]', json.dumps(OPS)))
    abx.data = abx.home / ".abx/providers/demo/data"
    abx.data.mkdir(parents=True)
    abx.env = {"ABX_PROVIDER": "demo", "ABX_DEMO_API_KEY": "k-123456"}
    assert abx("provider", "install", str(folder), "--yes").status == 0
    abx.asked = lambda: (abx.data / "asked").read_text().split() if (abx.data / "asked").exists() else []
    return abx


def test_names_of_a_plugin(foreign, tmp_path):
    for name in ("../x", "a/b", "/", "a\0b", "x" * 1025):
        (foreign.data / "entries").write_text(json.dumps([{"name": "ok"}, {"name": name}]))
        ran = foreign("--json", "file", "ls", "sb", str(tmp_path))
        ran.failed_well(json_form=True)
        assert ran.error["code"] == "E8020"
    (foreign.data / "entries").write_text(json.dumps([{"path": "/etc/passwd"}, {"name": "..", "type": "dir"}, {"name": "$x", "path": "/../y"}]))
    assert [e["path"] for e in foreign("--json", "file", "ls", "-R", "sb", "/t").doc] == ["/t/$x", "/t/passwd"]
    rows = foreign("file", "ls", "-l", "sb", "/t").out.splitlines()
    assert rows[0].split() == [b"-?????????", b"0", b"-", b"$x"]


def test_files_too_large_for_a_line(foreign, tmp_path):
    small, large, there = tmp_path / "small", tmp_path / "large", str(tmp_path / "there")
    small.write_bytes(os.urandom(LINE))
    large.write_bytes(small.read_bytes() + b"x")

    def never(*words, **more):
        return foreign("--agent", "never", "--json", *words, **more)
    for how in (["file", "write", "sb", there], ["upload", "sb", str(large), there]):
        ran = never(*how, input=large.read_bytes())
        ran.failed_well(json_form=True)
        assert ran.error["code"] == "E4003" and str(LINE) in ran.error["message"]
    for how in (["file", "cat", "sb", str(large)], ["download", "sb", str(large), str(tmp_path / "here")]):
        ran = foreign("--agent", "never", *how)
        assert ran.status == 1 and b"[E4003]" in ran.err and ran.out == b""
    assert foreign.asked() == [] and not os.path.exists(there) and not (tmp_path / "here").exists()
    assert foreign("--agent", "never", "file", "write", "sb", there, input=small.read_bytes()).status == 0
    ran = foreign("--agent", "never", "file", "cat", "sb", there)
    assert ran.status == 0 and ran.out == small.read_bytes()
    assert foreign.asked() == ["files.write", "files.read"]


def test_a_size_that_the_list_does_not_keep(foreign, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/f").write_text("abc")
    for size in (2, 4):
        (foreign.data / "entries").write_text(json.dumps([{"name": "f", "size": size}]))
        ran = foreign("--agent", "never", "download", "sb", str(tmp_path / "d"), "to")
        assert ran.status == 1 and b"/f: it has another size than the list says\n" in ran.err, ran
        assert not any("f" in files for _, _, files in os.walk(tmp_path / "to"))


def test_a_file_that_a_plugin_cannot_read_does_not_end_the_others(foreign, tmp_path):
    (tmp_path / "d/broken").mkdir(parents=True)
    for name in ("a", "z"):
        (tmp_path / "d" / name).write_text(name)
    (foreign.data / "entries").write_text(json.dumps([{"name": name} for name in ("a", "broken", "gone", "z")]))
    ran = foreign("--json", "--agent", "never", "download", "sb", str(tmp_path / "d"), "to")
    assert ran.status == 1 and [f["path"] for f in ran.doc["failed"]] == ["d/broken", "d/gone"], ran
    assert [(tmp_path / "to" / name).read_text() for name in ("a", "z")] == ["a", "z"]


def test_failures_without_a_code_of_their_own(foreign, tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    (tmp_path / "d").mkdir()
    ran = foreign("--json", "mv", "sb", str(tmp_path / "a"), str(tmp_path / "d"))
    assert ran.status == 0 and ran.doc == [str(tmp_path / "d/a")] and (tmp_path / "d/a").read_text() == "a"
    ran = foreign("--json", "file", "rm", "-r", "sb", str(tmp_path / "b"), str(tmp_path / "d"), str(tmp_path / "none"), str(tmp_path / "c"))
    assert ran.status == 1 and ran.doc == [str(tmp_path / "b"), str(tmp_path / "c")] and ran.err.count(b'"error"') == 2
    assert foreign("mv", "sb", str(tmp_path / "none"), str(tmp_path / "d")).status == 4


def test_a_mode_by_a_command(foreign, tmp_path):
    path = tmp_path / "it's $x"
    assert foreign("--agent", "never", "file", "write", "--mode", "751", "sb", str(path), input=b"x").status == 0
    assert os.stat(path).st_mode & 0o7777 == 0o751
    assert foreign("chmod", "sb", "go=,u+s", str(path)).status == 0 and os.stat(path).st_mode & 0o7777 == 0o4700
    ran = foreign("chmod", "sb", "600", str(tmp_path / "none"), str(path))
    assert ran.status == 4 and b"[E4001]" in ran.err and os.stat(path).st_mode & 0o7777 == 0o600
    assert "files.write" in foreign.asked() and "exec.run" in foreign.asked()
