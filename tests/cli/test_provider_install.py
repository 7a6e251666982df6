"""`abx provider install`, `update`, `rollback`, `uninstall`: what they print, refuse and leave."""

import json
import os
import re

import pytest

import plugins

RECEIPT_KEYS = ["receipt_version", "id", "version", "source", "tree_sha256", "manifest_sha256", "trust", "consented",
                "installed_at", "installed_by"]
CONSENTED_KEYS = ["runtime", "security", "features", "operation_contract_version", "operations", "workflow_inputs",
                  "startup_modes", "inherit", "fields", "commands"]
FORMS = [(), ("--json",)]


@pytest.fixture
def demo(tmp_path):
    return plugins.plugin(tmp_path / "src/demo")


@pytest.fixture
def home(abx):
    return abx.home / ".abx"


def refused(abx, code, status, *args, says=(), **more):
    """The command fails in both forms with that code, and changes nothing in the home."""
    home = abx.home / ".abx"
    before = plugins.snapshot(home)
    for form in FORMS:
        ran = abx(*form, "provider", *args, **more)
        assert ran.status == status, ran
        text = ran.err.decode()
        if form:
            assert ran.out == b"" and ran.error["code"] == code, ran
        else:
            assert f"[{code}] " in text, ran
        for word in says:
            assert word in text, (word, text)
    after = plugins.snapshot(home)
    # The store and its work folders may have come to be; nothing is in them but
    # the list of files of what was taken back, which goes with the next change.
    new = {k for k, v in after.items() if before.get(k) != v}
    assert set(before) <= set(after)
    assert all(re.fullmatch(r"providers(/\.(staging|trash|previous|files(/demo-\w{64})?))?", k) for k in new), new


def test_a_folder(abx, home, demo):
    ran = abx("--json", "provider", "install", str(demo), "--yes")
    assert ran.status == 0 and ran.err == b"", ran
    assert list(ran.doc) == RECEIPT_KEYS and list(ran.doc["consented"]) == CONSENTED_KEYS
    assert ran.doc["source"] == {"type": "local", "path": str(demo)}
    assert (ran.doc["id"], ran.doc["version"], ran.doc["trust"]) == ("demo", "0.1.0", "local")
    assert ran.doc["tree_sha256"] == plugins.tree_digest(home / "providers/demo") == plugins.tree_digest(demo)
    assert ran.doc["installed_by"] == {"name": "abx", "version": abx("version", "--json").doc["version"]}
    receipt = home / "providers/demo/.abx-install.json"
    assert json.loads(receipt.read_text()) == ran.doc
    assert receipt.read_text() == json.dumps(ran.doc, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    assert oct(receipt.stat().st_mode) == "0o100600"
    assert oct((home / "providers/demo").stat().st_mode) == "0o40700"
    assert not (home / "providers/.lock").exists()
    assert list((home / "providers/.staging").iterdir()) == []


def test_text(abx, demo):
    ran = abx("provider", "install", str(demo), "--yes")
    assert (ran.status, ran.out, ran.err) == (0, b"Installed demo 0.1.0\n", b"")


def test_a_second_time(abx, demo):
    assert abx("provider", "install", str(demo), "--yes").status == 0
    refused(abx, "E8003", 1, "install", str(demo), "--yes", says=["demo", "--force"])
    (demo / "more.txt").write_text("more")
    assert abx("provider", "install", str(demo), "--force", "--yes").status == 0
    assert (abx.home / ".abx/providers/demo/more.txt").read_text() == "more"


@pytest.mark.parametrize("code, status, args, says", [
    ("E8010", 1, ["/no/such/folder"], ["/no/such/folder"]),
    ("E8010", 1, ["../nowhere"], ["../nowhere"]),
    ("E8010", 1, ["word"], ["word"]),
    ("E8012", 2, ["ext::sh -c touch% /tmp/x"], ["ext"]),
    ("E8012", 2, ["ftp://example.com/x.git"], ["ftp"]),
    ("E8012", 2, ["http://127.0.0.1:9/x.git"], ["--allow-insecure-transport"]),
    ("E8012", 2, ["file:///no/such.git"], ["--allow-insecure-transport"]),
    ("E8012", 2, ["--", "-x@host:y"], []),
    ("E8010", 1, ["{demo}", "--ref", "0123456789012345678901234567890123456789"],
     ["file://", "--allow-insecure-transport"]),
    ("E8010", 1, ["{demo}", "--subdir", "../x"], ["../x"]),
    ("E8010", 1, ["{demo}", "--subdir", "nowhere"], ["nowhere"]),
    ("E8011", 1, ["{demo}", "--sha256", "0" * 64], ["0" * 64]),
    ("E8014", 1, ["{src}"], ["abx-provider.toml", "--subdir"]),
    ("E8010", 1, ["https://example.com/x.git", "--ref=--upload-pack=touch /tmp/x"], []),
    ("E8010", 1, ["https://example.com/x.git", "--ref", "a..b"], []),
])
def test_refused(abx, demo, code, status, args, says):
    args = [a.format(demo=demo, src=demo.parent) for a in args]
    refused(abx, code, status, "install", "--yes", *args, says=says)


def test_credentials_are_not_echoed(abx):
    for form in FORMS:
        ran = abx(*form, "provider", "install", "https://user:hunter2secret@example.com/x.git", "--yes")
        assert ran.status == 2 and b"E8012" in ran.err and b"hunter2secret" not in ran.err, ran


@pytest.mark.parametrize("change, code, says", [
    (("manifest_version = 1", "manifest_version = 2"), "E8014", ["manifest_version"]),
    (('protocol = "epp/1"', 'protocol = "epp/2"'), "E8013", ["epp/2"]),
    (('id = "demo"', 'id = "alicloud-express"'), "E8014", ["alicloud-express"]),
    (('id = "demo"', 'id = "../evil"'), "E8014", []),
    (('[compat]', '[compat]\nrequires = {sdk = ">=99"}'), "E8013", ["sdk"]),
    (('kind = "exec"', 'kind = "python"'), "E8014", ["python"]),
])
def test_refused_manifests(abx, demo, change, code, says):
    manifest = demo / "abx-provider.toml"
    text = manifest.read_text()
    assert change[0] in text
    manifest.write_text(text.replace(*change))
    refused(abx, code, 1, "install", str(demo), "--yes", says=says)


@pytest.mark.parametrize("spoil", [
    lambda d: (d / "link").symlink_to("/etc/passwd"),
    lambda d: os.link(d / "plugin.py", d / "hard"),
    lambda d: os.mkfifo(d / "fifo"),
    lambda d: (d / "CON.txt").write_text(""),
    lambda d: (d / "data").mkdir() or (d / "data/x").write_text(""),
    lambda d: (d / "a").write_text("") and None or (d / "A").write_text(""),
    lambda d: [(d / f"f{i}").write_text("") for i in range(2000)],
    lambda d: (d / "big").write_bytes(b"x" * (10485760 + 1)),
], ids=["symlink", "hard link", "fifo", "device", "data", "case", "2000 more", "big"])
def test_refused_trees(abx, demo, spoil):
    spoil(demo)
    refused(abx, "E8010", 1, "install", str(demo), "--yes")


def test_sha256(abx, demo):
    digest = plugins.tree_digest(demo)
    ran = abx("--json", "provider", "install", str(demo), "--yes", "--sha256", digest.upper())
    assert ran.status == 0 and ran.doc["trust"] == "pinned" and ran.doc["source"]["type"] == "local"


# --- verification: the plugin is started once ---

@pytest.mark.parametrize("before, says", [
    ("sys.stderr.write('no such backend\\n'); sys.exit(7)", ["handshake", "no such backend"]),
    ("print('garbage', flush=True)", ["handshake"]),
])
def test_what_does_not_start_is_not_installed(abx, tmp_path, before, says):
    bad = plugins.plugin(tmp_path / "src/bad", before=before)
    refused(abx, "E8010", 1, "install", str(bad), "--yes", says=says)
    assert abx("provider", "install", str(bad), "--yes", "--no-verify").status == 0


def test_a_failed_replacement_leaves_the_old_one(abx, home, demo, tmp_path):
    assert abx("provider", "install", str(demo), "--yes").status == 0
    before = plugins.snapshot(home / "providers/demo")
    bad = plugins.plugin(tmp_path / "src/bad", version="0.2.0", before="sys.exit(7)")
    assert abx("provider", "install", str(bad), "--yes", "--force").status == 1
    assert plugins.snapshot(home / "providers/demo") == before
    assert abx("provider", "verify", "demo").status == 0


def test_command_that_is_not_there(abx, tmp_path):
    bad = plugins.plugin(tmp_path / "src/bad", command='["./nowhere"]')
    refused(abx, "E8010", 1, "install", str(bad), "--yes", says=["nowhere"])


# --- links ---

def test_link(abx, home, demo):
    refused(abx, "E8012", 2, "install", str(demo), "--link", says=["--yes"])
    ran = abx("--json", "provider", "install", str(demo), "--link", "--yes")
    assert ran.status == 0 and ran.doc["trust"] == "link" and ran.doc["tree_sha256"] == ""
    assert ran.doc["source"] == {"type": "link", "path": str(demo)}
    assert sorted(p.name for p in (home / "providers/demo").iterdir()) in ([".abx-install.json"],
                                                                          [".abx-install.json", "data"])
    (demo / "plugin.py").write_text("import sys; sys.exit(3)")
    doctor = abx("--json", "provider", "doctor", "demo")
    assert doctor.status == 2 and [c["name"] for c in doctor.doc["checks"]] == ["installed", "config", "handshake"]
    refused(abx, "E8010", 1, "update", "demo", "--yes")
    refused(abx, "E8010", 1, "install", "https://example.com/x.git", "--link", "--yes")


# --- data ---

def test_data_stays(abx, home, demo):
    assert abx("provider", "install", str(demo), "--yes").status == 0
    data = home / "providers/demo/data"
    data.mkdir(exist_ok=True)
    (data / "state").write_text("kept")
    assert abx("provider", "install", str(demo), "--yes", "--force").status == 0
    assert (data / "state").read_text() == "kept"
    ran = abx("--json", "provider", "uninstall", "demo", "--yes")
    assert ran.doc == {"id": "demo", "removed": True, "purged": False, "default_reset": False}
    assert [p.name for p in (home / "providers/demo").iterdir()] == ["data"]
    assert "demo" not in abx("-q", "provider", "list").out.decode().split()
    assert abx("provider", "install", str(demo), "--yes").status == 0
    assert (data / "state").read_text() == "kept"
    ran = abx("--json", "provider", "uninstall", "demo", "--purge")
    assert ran.status == 0 and ran.doc["purged"] is True
    assert not (home / "providers/demo").exists()


# --- uninstall ---

@pytest.mark.parametrize("id, code, status", [
    ("alicloud-express", "E8003", 1), ("opensandbox", "E8001", 4), ("nope", "E8001", 4), ("..", "E8001", 4),
    ("../..", "E8001", 4), (".staging", "E8001", 4), ("", "E8001", 4), ("a\nb", "E8001", 4),
])
def test_uninstall_refused(abx, demo, id, code, status):
    assert abx("provider", "install", str(demo), "--yes").status == 0
    refused(abx, code, status, "uninstall", id, "--yes")
    refused(abx, code, status, "uninstall", id, "--yes", "--purge")


def test_uninstall_text(abx, demo):
    abx("provider", "install", str(demo), "--yes")
    ran = abx("provider", "uninstall", "demo")
    assert (ran.status, ran.out, ran.err) == (0, b"Removed demo\n", b"")
    # Its data is still there, and can be removed, too; then there is nothing.
    assert abx("provider", "uninstall", "demo", "--purge").out == b"Removed demo\n"
    refused(abx, "E8001", 4, "uninstall", "demo")


def test_purge_takes_the_settings_of_this_provider_alone(abx, home, demo, tmp_path):
    plugins.plugin(tmp_path / "src/demo-2", id="demo-2")
    for name in ("demo", "demo-2"):
        assert abx("provider", "install", str(tmp_path / "src" / name), "--yes").status == 0
    (home / "config.toml").write_text('# mine\n[providers.demo]\nretries = 5\n\n[providers.demo-2]\nretries = 6\n')
    (home / ".env").write_text("ABX_DEMO_API_KEY=a\nABX_DEMO_2_API_KEY=b\nOTHER=c\n")
    assert abx("provider", "uninstall", "demo", "--purge").status == 0
    toml, env = (home / "config.toml").read_text(), (home / ".env").read_text()
    assert "# mine" in toml and "retries = 6" in toml and "retries = 5" not in toml
    assert "ABX_DEMO_2_API_KEY=b" in env and "OTHER=c" in env and "ABX_DEMO_API_KEY" not in env


# --- update ---

def test_purge_that_cannot_be_whole(abx, home, demo):
    """The plugin goes and the default with it, and it is said what stays."""
    assert abx("provider", "install", demo, "--yes").status == 0
    assert abx("provider", "default", "demo").status == 0
    (home / ".env").mkdir()
    ran = abx("--json", "provider", "uninstall", "demo", "--purge")
    assert ran.status == 1 and "`demo` is removed, but not all of its settings" in ran.error["message"], ran
    assert str(home / ".env") in ran.error["suggestion"]
    assert not (home / "providers/demo").exists()
    assert json.loads(abx("--json", "provider", "default").out)["default"] == "alicloud-express"


def test_update_of_what_cannot(abx, demo):
    assert abx("provider", "install", str(demo), "--yes").status == 0
    refused(abx, "E8010", 1, "update", "demo", says=["demo"])
    refused(abx, "E8001", 4, "update", "nope")
    refused(abx, "E8001", 4, "update", "opensandbox")
    refused(abx, "E8010", 1, "update", "alicloud-express", "--ref", "main")


def test_update_of_the_builtin(abx):
    ran = abx("--json", "provider", "update", "alicloud-express")
    assert ran.status == 0
    [row] = ran.doc
    assert list(row) == ["id", "status", "installed", "available", "changes", "message"]
    assert (row["status"], row["available"], row["changes"]) == ("bundled", None, [])
    text = abx("provider", "update", "alicloud-express").out.decode()
    assert text == f"alicloud-express: bundled \u2014 {row['message']}\n"


def test_update_of_nothing(abx):
    assert abx("--json", "provider", "update").doc == []
    assert abx("provider", "update").out == b""


# --- rollback ---

def test_rollback(abx, home, demo):
    refused(abx, "E8001", 4, "rollback", "demo")
    abx("provider", "install", str(demo), "--yes")
    refused(abx, "E8001", 4, "rollback", "demo")
    first = plugins.snapshot(home / "providers/demo")
    plugins.plugin(demo, version="0.2.0", more="x")
    assert abx("provider", "install", str(demo), "--yes", "--force").status == 0
    second = plugins.snapshot(home / "providers/demo")
    ran = abx("--json", "provider", "rollback", "demo")
    assert ran.status == 0 and list(ran.doc) == sorted(RECEIPT_KEYS) or list(ran.doc) == RECEIPT_KEYS, ran
    assert plugins.snapshot(home / "providers/demo") == first
    assert abx("provider", "verify", "demo").status == 0
    assert abx("provider", "rollback", "demo").out == b"Rolled back to demo 0.2.0\n"
    assert plugins.snapshot(home / "providers/demo") == second


def test_rollback_hashes_first(abx, home, demo):
    abx("provider", "install", str(demo), "--yes")
    plugins.plugin(demo, version="0.2.0")
    abx("provider", "install", str(demo), "--yes", "--force")
    (home / "providers/.previous/demo/plugin.py").write_text("evil")
    refused(abx, "E8011", 1, "rollback", "demo")


def test_uninstall_takes_the_previous_tree_too(abx, home, demo):
    abx("provider", "install", str(demo), "--yes")
    abx("provider", "install", str(demo), "--yes", "--force")
    assert (home / "providers/.previous/demo").exists()
    abx("provider", "uninstall", "demo")
    assert not (home / "providers/.previous/demo").exists()


# --- usage ---

@pytest.mark.parametrize("line, says", [
    ("install", "SOURCE"), ("install a b", "b"), ("update a b", "b"), ("uninstall", "ID"), ("rollback", "ID"),
    ("install a --nope", "--nope"), ("update --sha256 x", "--sha256"), ("--yes install x", "No such option '--yes'"),
    ("install x --ref", "--ref"), ("instal x", "install"),
])
def test_usage(abx, line, says):
    for form in FORMS:
        ran = abx(*form, "provider", *line.split())
        assert ran.status == 2 and says in ran.err.decode(), ran
        ran.failed_well(bool(form))


def test_no_home(abx, demo):
    ran = abx("--json", "provider", "install", str(demo), "--yes", env={"ABX_HOME": "/proc/nowhere"})
    assert ran.status == 1 and ran.error["code"] == "E8010", ran


def test_a_closed_stdout_changes_nothing(abx, home, demo):
    import subprocess
    from conftest import BINARY
    done = subprocess.run(["sh", "-c", '"$0" provider install "$1" --yes >&-', BINARY, str(demo)], capture_output=True,
                          env=abx.environment())
    assert done.returncode == 1 and not (home / "providers/demo").exists()
