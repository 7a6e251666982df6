"""`abx provider export` and `abx provider test`."""

import json
import os
import subprocess
import tomllib

import pytest

import scripted
from conftest import BINARY
from scripted import answer

NAMES = ["declared_features_are_known", "describe_never_exposes_secret_defaults", "lifecycle", "kill_is_idempotent",
         "set_timeout", "pause_resume", "exec_run", "exec_exit_code_stderr_and_env", "exec_stream_order_and_single_exit",
         "exec_timeout_is_enforced", "process_list", "files_roundtrip", "files_binary_and_unicode",
         "files_directory_operations", "missing_file_is_a_typed_not_found", "ports_url",
         "undeclared_feature_fails_with_e8004", "secret_options_are_redacted_from_errors"]


# --- export ---

def test_an_export(abx, tmp_path):
    ran = abx("--json", "provider", "export", "opensandbox", str(tmp_path / "out"))
    assert ran.doc == {"id": "opensandbox", "version": "0.1.0", "path": str(tmp_path / "out")}
    assert sorted(os.listdir(tmp_path / "out")) == ["abx", "abx-provider.toml"]
    program = tmp_path / "out/abx"
    assert program.read_bytes() == open(BINARY, "rb").read() and os.access(program, os.X_OK)
    assert program.stat().st_size < 10 << 20
    doc = tomllib.loads((tmp_path / "out/abx-provider.toml").read_text())
    assert doc["manifest_version"] == 1 and doc["operation_contract_version"] == 1
    assert doc["provider"]["id"] == "opensandbox" and doc["provider"]["version"] == "0.1.0"
    assert doc["runtime"]["command"] == ["./abx", "provider", "serve", "opensandbox"] and doc["compat"]["protocol"] == "epp/1"
    assert doc["operations"]["cli"] == doc["operations"]["python"] and "files.move" in doc["operations"]["cli"]
    info = abx("--json", "provider", "info", "opensandbox").doc
    assert sorted(doc["features"]["supported"]) == info["features"]
    fields = doc["config"]["fields"]
    assert list(fields) == [field["key"] for field in info["config_fields"]]
    for field in info["config_fields"]:
        one = fields[field["key"]]
        assert one["type"] == {"str": "string"}.get(field["type"], field["type"]) and one["description"]
        assert one.get("secret", False) == field["secret"] and one.get("default") == field["default"]
    assert fields["api_key"]["credential"] is True and "default" not in fields["api_key"]


def test_an_export_into_an_empty_folder(abx, tmp_path):
    (tmp_path / "out").mkdir()
    assert abx("provider", "export", "opensandbox", str(tmp_path / "out") + "/").status == 0
    assert sorted(os.listdir(tmp_path / "out")) == ["abx", "abx-provider.toml"]
    assert [p.name for p in tmp_path.iterdir() if ".abx-" in p.name] == []


@pytest.mark.parametrize("prepare, code", [
    (lambda p: (p / "out").mkdir() or (p / "out/x").write_text("mine"), "E8010"),
    (lambda p: (p / "out").write_text("mine"), "E8010"),
    (lambda p: (p / "out").symlink_to("nowhere"), "E8010"),
])
def test_what_is_there_stays(abx, tmp_path, prepare, code):
    prepare(tmp_path)
    before = sorted(str(p) for p in tmp_path.rglob("*"))
    ran = abx("--json", "provider", "export", "opensandbox", str(tmp_path / "out"))
    assert ran.status == 1 and ran.error["code"] == code
    assert sorted(str(p) for p in tmp_path.rglob("*")) == before


def test_exports_that_cannot_be(abx, tmp_path):
    for words, status, code in ((["alicloud-express", "x"], 1, "E8004"), (["nope", "x"], 4, "E8001"),
                                (["opensandbox", "no/such/x"], 1, "E8010"), (["opensandbox", ""], 2, "E8002")):
        ran = abx("--json", "provider", "export", *words)
        assert ran.status == status and ran.error["code"] == code
    assert not [p for p in tmp_path.iterdir() if p.name != ".abx"]


@pytest.mark.parametrize("call", ["write", "fsync", "fchmod", "rename", "mkdir", "openat"])
def test_a_full_disk_leaves_nothing(tmp_path, call):
    """Whichever call fails: the folder is whole, or not there, and nothing lies beside it."""
    for when in range(1, 15):
        inject = f"{call}:error=ENOSPC:when={when}"
        ran = subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={inject}", BINARY,
                              "provider", "export", "opensandbox", "out"], cwd=tmp_path, capture_output=True, timeout=30)
        left = sorted(p.name for p in tmp_path.iterdir())
        assert left in ([], ["out"]), (when, left, ran)
        if left:
            assert sorted(os.listdir(tmp_path / "out")) == ["abx", "abx-provider.toml"]
            assert (tmp_path / "out/abx").read_bytes() == open(BINARY, "rb").read()
            for p in (tmp_path / "out").iterdir():
                p.unlink()
            (tmp_path / "out").rmdir()
        assert (ran.returncode == 0) == bool(left) or call == "write", (when, ran)


# --- the kit ---

def test_a_provider_that_fails(osb, server):
    """The scripted daemon knows no folders and runs nothing: that is told, test by test, and all is removed."""
    ran = osb("provider", "test", "opensandbox")
    lines = ran.out.decode().splitlines()
    assert ran.status == 1 and [line.split()[1].rstrip(":") for line in lines[:-1]] == NAMES
    count = {word: sum(line.split()[0] == word for line in lines[:-1]) for word in ("passed", "failed", "skipped")}
    assert lines[-1] == f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped"
    assert count["skipped"] == 0 and count["passed"] + count["failed"] == 18 and 0 < count["failed"] < 12
    outcome = {line.split()[1].rstrip(":"): line for line in lines[:-1]}
    for name in ("lifecycle", "kill_is_idempotent", "set_timeout", "files_roundtrip", "files_binary_and_unicode", "ports_url",
                 "undeclared_feature_fails_with_e8004", "secret_options_are_redacted_from_errors"):
        assert outcome[name].startswith("passed"), outcome[name]
    for name in ("exec_run", "exec_exit_code_stderr_and_env", "exec_stream_order_and_single_exit", "exec_timeout_is_enforced",
                 "files_directory_operations"):
        assert outcome[name].startswith("failed ") and ": " in outcome[name], outcome[name]
    assert server.boxes == {}


def test_the_document(osb, server):
    ran = osb("--json", "provider", "test", "opensandbox")
    assert ran.status == 1 and list(ran.doc) == ["id", "tests", "passed", "failed", "skipped"]
    assert [test["name"] for test in ran.doc["tests"]] == NAMES
    for word in ("passed", "failed", "skipped"):
        assert ran.doc[word] == sum(test["outcome"] == word for test in ran.doc["tests"])
    assert all(bool(test["detail"]) == (test["outcome"] != "passed") for test in ran.doc["tests"])


def test_options_reach_every_call(abx, tmp_path):
    with scripted.Server() as server:
        (tmp_path / "key").write_text(scripted.KEY)
        ran = abx("-q", "provider", "test", "opensandbox", "-o", f"base_url={server.url}", "--option", "api_key=@key",
                  "-oimage=other:1")
        assert ran.status == 1 and len(server.requests) > 60
        creates = [r for r in server.requests if r.method == "POST" and r.path.endswith("/sandboxes")]
        assert len(creates) == 16 and {r.json()["image"]["uri"] for r in creates} == {"other:1"}
        assert {r.json()["timeout"] for r in creates} == {300}
        # The last one's key is none of ours: it may not even look as if.
        assert [r.headers["open-sandbox-api-key"] == scripted.KEY for r in creates] == [True] * 15 + [False]


def test_usage(abx):
    for words, status, code in ((["nope"], 4, "E8001"), (["opensandbox", "-o", "x"], 2, "E8002"), ([], 2, "E8002"),
                                (["opensandbox", "-o", "api_key=abc"], 2, "E8002"), (["opensandbox", "-o", "=x"], 2, "E8002")):
        ran = abx("--json", "provider", "test", *words)
        assert ran.status == status and ran.error["code"] == code, ran


def test_a_key_that_leaks_is_found(osb, server):
    """A server that repeats the key in its refusal: what abx shows of it has no key, so the test passes."""
    def script(request, whole):
        key = request.headers.get("open-sandbox-api-key", "")
        if key.startswith("abx-canary-"):
            return [answer(401, {"code": "INVALID_API_KEY", "message": f"the key {key} is wrong"})]
        return [whole]

    server.script = script
    doc = osb("--json", "provider", "test", "opensandbox").doc
    assert doc["tests"][-1]["outcome"] == "passed"
    assert any(r.headers.get("open-sandbox-api-key", "").startswith("abx-canary-") for r in server.requests)


def test_what_a_bad_lifecycle_looks_like(osb, server):
    """A server that removes nothing: the tests of it fail, and so does the clearing up of all others."""
    server.script = lambda request, whole: [answer(500, {"code": "X", "message": "no"})] \
        if request.method == "DELETE" and "/files" not in request.path else [whole]
    doc = osb("--json", "provider", "test", "opensandbox").doc
    failed = {test["name"]: test["detail"] for test in doc["tests"] if test["outcome"] == "failed"}
    assert "kill" in failed["kill_is_idempotent"] and "removing the sandbox" in failed["set_timeout"]
    assert "removing the sandbox" in failed["files_roundtrip"] and doc["failed"] == 15


def test_an_interrupted_run_leaves_nothing(osb, server):
    process = osb.start("provider", "test", "opensandbox")
    while not server.boxes:
        assert process.poll() is None
    process.send_signal(2)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130 and b"interrupted" in err
    assert server.boxes == {} and b"passed," not in out


def test_json_stays_json_when_nothing_can_be_printed(osb):
    process = osb.start("--json", "provider", "test", "opensandbox", stdout=open("/dev/full", "wb"))
    _, err = process.communicate(timeout=40)
    assert process.returncode == 1 and json.loads(err.splitlines()[-1])["error"]["message"]
