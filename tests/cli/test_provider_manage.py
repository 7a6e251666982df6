"""`abx provider list`, `info`, `default`, `doctor`, `verify`: what they print, and that they change nothing."""

import json
import os

import pytest

import plugins

FORMS = [(), ("--json",)]
LIST_KEYS = ["id", "name", "name_zh", "version", "kind", "trust", "features", "default"]
INFO_KEYS = ["id", "name", "name_zh", "version", "kind", "features", "operation_contract_version", "operations",
             "workflow_inputs", "startup_modes", "extensions", "config_fields", "inherit", "receipt"]
FIELD_KEYS = ["key", "type", "secret", "credential", "required", "default", "env", "aliases", "description",
              "description_zh"]


@pytest.fixture
def demo(abx):
    folder = plugins.plugin(abx.home / "src/demo")
    ran = abx("provider", "install", str(folder), "--yes")
    assert ran.status == 0, ran
    return folder


@pytest.fixture
def store(abx, demo):
    return abx.home / ".abx/providers"


# --- list ---

def test_list(abx, demo):
    rows = abx("--json", "provider", "list").doc
    assert [r["id"] for r in rows] == ["alicloud-express", "demo", "opensandbox"]
    assert all(list(r) == LIST_KEYS or "error" in r for r in rows)
    assert rows[1] == {"id": "demo", "name": "Demo", "name_zh": "\u6f14\u793a", "version": "0.1.0", "kind": "exec",
                       "trust": "local", "features": ["sandbox.lifecycle", "exec.run"], "default": False}
    assert (rows[2]["kind"], rows[2]["trust"]) == ("builtin", "builtin")
    lines = abx("provider", "list").out.decode().splitlines()
    assert lines[1] == "  demo                     0.1.0      exec     local     sandbox(lifecycle) exec(run)"
    assert abx("-q", "provider", "list").out == b"alicloud-express\ndemo\nopensandbox\n"


def test_one_row_per_id(abx):
    folder = plugins.plugin(abx.home / "src/osb", id="opensandbox", version="9.0")
    assert abx("provider", "install", str(folder), "--yes").status == 0
    rows = {r["id"]: r for r in abx("--json", "provider", "list").doc}
    assert list(rows) == ["alicloud-express", "opensandbox"]
    assert (rows["opensandbox"]["kind"], rows["opensandbox"]["version"]) == ("exec", "9.0")
    assert abx("--json", "provider", "info", "opensandbox").doc["kind"] == "exec"


def test_an_unusable_one_is_a_row(abx, store):
    (store / "demo/abx-provider.toml").write_text("manifest_version = 2\n")
    rows = {r["id"]: r for r in abx("--json", "provider", "list").doc}
    row = rows["demo"]
    assert list(row) == LIST_KEYS[:-1] + ["error", "default"]
    assert row["error"].startswith("[E8014] ")
    assert (row["kind"], row["features"], row["version"], row["name"]) == ("exec", [], "0.1.0", "demo")
    text = abx("provider", "list").out.decode()
    assert "(unusable: [E8014]" in text and len(text.splitlines()) == 3
    for form in FORMS:
        ran = abx(*form, "provider", "info", "demo")
        assert ran.status == 1 and b"E8014" in ran.err
        ran.failed_well(bool(form))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", None])
def test_without_a_receipt_it_is_not_installed(abx, store, content):
    receipt = store / "demo/.abx-install.json"
    receipt.unlink()
    if content is not None:
        receipt.write_bytes(content)
    rows = {r["id"]: r for r in abx("--json", "provider", "list").doc}
    # A receipt that cannot be read is said; where there is none, there is no plugin.
    assert ("demo" in rows) == (content is not None)
    assert content is None or rows["demo"]["error"].startswith("[E8001] ")
    for verb in ("info", "verify", "update", "default"):
        ran = abx("--json", "provider", verb, "demo")
        assert (ran.status, ran.error["code"]) == (4, "E8001"), (verb, ran)


def test_a_hostile_receipt_cannot_steer_the_terminal(abx, store):
    import pty
    import subprocess
    from conftest import BINARY
    receipt = store / "demo/.abx-install.json"
    doc = json.loads(receipt.read_text())
    doc["version"] = "1\x1b[2J\n\u202e"
    receipt.write_text(json.dumps(doc))
    (store / "demo/abx-provider.toml").write_text('manifest_version = 1\n"\\u001b[2J" = 1\nx')
    leader, follower = pty.openpty()
    subprocess.run([BINARY, "provider", "list"], stdout=follower, stderr=follower, env=abx.environment(), cwd=abx.cwd)
    os.close(follower)
    got = b""
    while chunk := read(leader):
        got += chunk
    os.close(leader)
    assert b"\x1b" not in got and "\u202e".encode() not in got and len(got.splitlines()) == 3, got


def read(fd):
    try:
        return os.read(fd, 65536)
    except OSError:
        return b""


# --- info ---

def test_info(abx, store):
    ran = abx("--json", "provider", "info", "demo")
    doc = ran.doc
    assert list(doc) == INFO_KEYS and abx("provider", "info", "demo").out == ran.out
    assert doc["features"] == ["exec.run", "sandbox.lifecycle"]
    assert doc["operations"]["cli"] == ["sandbox.create", "sandbox.get", "sandbox.list", "sandbox.delete", "exec.run"]
    assert doc["operations"]["python"] == sorted(doc["operations"]["cli"])
    assert (doc["workflow_inputs"], doc["startup_modes"], doc["inherit"]) == (["image"], ["exec", "none"], [])
    assert [list(f) for f in doc["config_fields"]] == [FIELD_KEYS] * 3
    url, key, retries = doc["config_fields"]
    assert (url["type"], url["default"], url["env"], url["description_zh"]) == \
        ("url", "http://127.0.0.1:9", "ABX_DEMO_BASE_URL", "\u5730\u5740")
    assert (key["type"], key["secret"], key["credential"], key["default"], key["aliases"]) == \
        ("str", True, True, None, ["DEMO_KEY"])
    assert retries["default"] == 3
    assert doc["receipt"] == json.loads((store / "demo/.abx-install.json").read_text())
    assert list(doc["receipt"]) == sorted(doc["receipt"])


@pytest.mark.parametrize("id", ["opensandbox", "alicloud-express"])
def test_info_of_what_is_compiled_in(abx, id):
    doc = abx("provider", "info", id).doc
    assert list(doc) == INFO_KEYS and doc["receipt"] is None and doc["kind"] == "builtin"
    assert doc["features"] == sorted(doc["features"])
    assert [list(f) for f in doc["config_fields"]] == [FIELD_KEYS] * len(doc["config_fields"])
    assert all(f["default"] in (None, "") for f in doc["config_fields"] if f["secret"])


@pytest.mark.parametrize("asked, meant", [("opensandbx", "opensandbox"), ("demoo", "demo"), ("alicloud-expres", "alicloud-express")])
def test_did_you_mean(abx, demo, asked, meant):
    for verb in ("info", "default", "doctor"):
        ran = abx("--json", "provider", verb, asked)
        if verb == "doctor":
            assert ran.status == 2 and meant in ran.out.decode(), ran
        else:
            assert (ran.status, ran.error["code"]) == (4, "E8001") and f'"{meant}"' in ran.error["suggestion"], ran


# --- default ---

def test_default(abx, demo):
    home = abx.home / ".abx"
    assert abx("--json", "provider", "default").doc == {"default": "alicloud-express", "source": "builtin"}
    ran = abx("--json", "provider", "default", "demo")
    assert (ran.status, ran.err, ran.doc) == (0, b"", {"default": "demo", "source": "toml"}), ran
    assert abx("--json", "provider", "default").doc == {"default": "demo", "source": "toml"}
    assert (home / "config.toml").read_text() == '[core]\nprovider = "demo"\n'
    assert oct((home / "config.toml").stat().st_mode) == "0o100600"
    assert [r["default"] for r in abx("--json", "provider", "list").doc] == [False, True, False]
    assert abx("provider", "list").out.decode().splitlines()[1].startswith("* demo ")
    assert abx("provider", "default", "alicloud-express").out == b"Default provider: alicloud-express\n"
    assert abx("--json", "provider", "default").doc["source"] == "builtin"


def test_default_that_the_environment_overrides(abx, demo):
    ran = abx("provider", "default", "demo", env={"ABX_PROVIDER": "opensandbox"})
    assert ran.status == 0 and b"opensandbox is used all the same (source: environ)" in ran.err


def test_a_compiled_in_default_warns(abx, demo):
    """The other hosts read the same config.toml, and do not have what is compiled in here."""
    ran = abx("--json", "provider", "default", "opensandbox")
    assert ran.status == 0 and ran.doc["default"] == "opensandbox"
    for word in (b"other hosts", b"abx provider export opensandbox", b"abx provider install"):
        assert word in ran.err, ran
    assert len(ran.err.splitlines()) == 1
    assert abx("-q", "provider", "default", "opensandbox").err == b""


@pytest.mark.parametrize("id, code, status", [("nope", "E8001", 4), ("..", "E8001", 4), ("a\nb", "E8001", 4)])
def test_default_refused(abx, demo, id, code, status):
    before = plugins.snapshot(abx.home / ".abx")
    for form in FORMS:
        ran = abx(*form, "provider", "default", id)
        assert ran.status == status and code.encode() in ran.err, ran
        ran.failed_well(bool(form))
    assert plugins.snapshot(abx.home / ".abx") == before


def test_default_must_load(abx, store):
    (store / "demo/abx-provider.toml").write_text("manifest_version = 2\n")
    ran = abx("--json", "provider", "default", "demo")
    assert (ran.status, ran.error["code"]) == (1, "E8014")
    assert not (abx.home / ".abx/config.toml").exists()


def test_uninstalling_the_default(abx, demo):
    abx("provider", "default", "demo")
    ran = abx("--json", "provider", "uninstall", "demo", "--yes")
    assert ran.doc == {"id": "demo", "removed": True, "purged": False, "default_reset": True}
    assert ran.err == b"Default provider reset to 'alicloud-express'\n"
    assert abx("--json", "provider", "default").doc == {"default": "alicloud-express", "source": "builtin"}


# --- doctor ---

def test_doctor(abx, demo):
    ran = abx("--json", "provider", "doctor", "demo")
    assert ran.status == 0 and list(ran.doc) == ["id", "ok", "checks"], ran
    assert [(c["name"], c["ok"]) for c in ran.doc["checks"]] == \
        [("installed", True), ("integrity", True), ("config", True), ("handshake", True)]
    assert all(list(c) == ["name", "ok", "detail"] for c in ran.doc["checks"])
    digest = plugins.tree_digest(demo)
    assert abx("provider", "doctor", "demo").out.decode() == \
        f"ok   installed: Demo 0.1.0\nok   integrity: {digest[:16]}\nok   config\nok   handshake\n"
    assert [c["name"] for c in abx("--json", "provider", "doctor", "demo", "--no-handshake").doc["checks"]] == \
        ["installed", "integrity", "config"]


def test_doctor_of_the_default(abx, demo):
    abx("provider", "default", "demo")
    assert abx("--json", "provider", "doctor").doc["id"] == "demo"
    assert abx("--json", "provider", "doctor", env={"ABX_PROVIDER": "opensandbox"}).doc["id"] == "opensandbox"


def test_doctor_says_what_is_wrong(abx, store):
    (store / "demo/plugin.py").write_text("import sys; sys.stderr.write('no backend\\n'); sys.exit(7)")
    ran = abx("--json", "provider", "doctor", "demo")
    assert ran.status == 2 and [(c["name"], c["ok"]) for c in ran.doc["checks"]] == \
        [("installed", True), ("integrity", False)]
    assert abx("provider", "doctor", "demo").out.decode().splitlines()[1].startswith("FAIL integrity: ")
    ran = abx("--json", "provider", "doctor", "nope")
    assert ran.status == 2 and ran.doc["ok"] is False and ran.doc["checks"][0]["name"] == "installed"


def test_doctor_shows_the_plugins_own_words(abx):
    folder = plugins.plugin(abx.home / "src/bad", before="sys.stderr.write('no backend\\n'); sys.exit(7)")
    assert abx("provider", "install", str(folder), "--yes", "--no-verify").status == 0
    ran = abx("--json", "provider", "doctor", "demo")
    assert ran.status == 2 and ran.doc["checks"][-1]["name"] == "handshake"
    assert "no backend" in ran.doc["checks"][-1]["suggestion"]
    assert "no backend" in abx("provider", "doctor", "demo").out.decode()


# --- verify ---

def test_verify(abx, store):
    ran = abx("--json", "provider", "verify", "demo")
    digest = plugins.tree_digest(store / "demo")
    assert ran.status == 0 and ran.doc == {
        "id": "demo", "ok": True, "trust": "local", "tree_sha256": digest, "detail": "",
        "changed": [], "added": [], "missing": []}
    assert abx("provider", "verify").out.decode() == f"ok   demo: {digest}\n"


def test_verify_names_what_changed(abx, store):
    (store / "demo/abx-provider.toml").unlink()
    (store / "demo/plugin.py").chmod(0o700)
    (store / "demo/new\x1b.txt").write_text("")
    (store / "demo/data").mkdir(exist_ok=True)
    (store / "demo/data/free").write_text("mine")
    ran = abx("--json", "provider", "verify")
    assert ran.status == 1 and len(ran.doc) == 1
    row = ran.doc[0]
    assert (row["ok"], row["changed"], row["added"], row["missing"]) == \
        (False, ["plugin.py"], ["new\x1b.txt"], ["abx-provider.toml"])
    lines = abx("provider", "verify", "demo").out.decode().splitlines()
    assert lines[0].startswith("FAIL demo: ") and [line.split()[0] for line in lines[1:]] == ["changed", "added", "missing"]


def test_verify_of_a_link_in_it(abx, store):
    (store / "demo/evil").symlink_to("/etc/passwd")
    ran = abx("--json", "provider", "verify", "demo")
    assert ran.status == 1 and ran.doc["ok"] is False and "evil" in ran.doc["detail"]


def test_verify_without_the_list(abx, store):
    for path in (store / ".files").iterdir():
        path.write_text("something else")
    (store / "demo/plugin.py").write_text("")
    ran = abx("--json", "provider", "verify", "demo")
    assert ran.status == 1 and ran.doc["detail"] and "changed" not in ran.doc


@pytest.mark.parametrize("id", ["opensandbox", "alicloud-express", "nope", ".."])
def test_verify_of_what_is_not_installed(abx, demo, id):
    ran = abx("--json", "provider", "verify", id)
    assert (ran.status, ran.error["code"]) == (4, "E8001")


def test_looking_changes_nothing(abx, demo):
    before = plugins.snapshot(abx.home / ".abx")
    for words in (["list"], ["info", "demo"], ["default"], ["verify"], ["doctor", "demo", "--no-handshake"]):
        assert abx("provider", *words).status == 0
    assert plugins.snapshot(abx.home / ".abx") == before
