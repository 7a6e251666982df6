"""What a person is shown before a plugin is put in, and how an answer is taken."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

import plugins
from conftest import BINARY

PLAN_KEYS = ["id", "name", "name_zh", "version", "source", "tree_sha256", "trust", "runtime", "kind", "features",
             "operation_contract_version", "operations", "workflow_inputs", "startup_modes", "commands", "security",
             "fields", "inherit", "changes"]


@pytest.fixture
def demo(tmp_path):
    return plugins.plugin(tmp_path / "src/demo", network='["api.example.com"]', inherit='["sandbox_api_key"]')


def test_off_a_terminal_it_is_a_no(abx, demo):
    ran = abx("provider", "install", str(demo))
    assert ran.status == 2 and ran.out == b"" and not (abx.home / ".abx/providers/demo").exists()
    text = ran.err.decode()
    assert "[E8012]" in text and "--yes" in text and "[y/N]" not in text
    for part in ("Install demo 0.1.0: Demo", str(demo), plugins.tree_digest(demo), "python3 ./plugin.py (kind exec)",
                 "api.example.com", "data_dir", "HTTP_PROXY", "base_url (ABX_DEMO_BASE_URL)",
                 "api_key (ABX_DEMO_API_KEY, DEMO_KEY)", "sandbox_api_key", "sandbox.lifecycle, exec.run"):
        assert part in text, part
    secrets = next(line for line in text.splitlines() if line.lstrip().startswith("secrets"))
    assert "api_key" in secrets and "base_url" not in secrets


def test_as_json(abx, demo):
    ran = abx("--json", "provider", "install", str(demo))
    assert ran.status == 2 and ran.out == b""
    lines = ran.err.decode().splitlines()
    plan = json.loads("\n".join(lines[:-1]))
    assert list(plan) == PLAN_KEYS
    assert lines[:-1] == json.dumps(plan, indent=2, ensure_ascii=False).splitlines()
    assert plan["fields"] == [{"key": "base_url", "secret": False}, {"key": "api_key", "secret": True},
                              {"key": "retries", "secret": False}]
    assert plan["runtime"] == ["python3", "./plugin.py"] and plan["changes"] == []
    assert ran.error["code"] == "E8012"


@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_what_a_pin_proves_is_said(abx, demo, form):
    def git(*words):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", str(demo), *words],
                              check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q", f"--object-format={form}")
    git("add", "-A")
    git("commit", "-qm", "one")
    words = ["provider", "install", f"file://{demo}", "--ref", git("rev-parse", "HEAD"), "--allow-insecure-transport"]

    def trust(*more):
        ran = abx(*words, *more)
        assert ran.status == 2, ran
        return next(line for line in ran.err.decode().splitlines() if line.lstrip().startswith("trust "))

    said = trust()
    assert "not proved that the commit belongs to a branch" in said and "--sha256 is the strong pin" in said
    assert ("as strong as SHA-1;" in said) == (form == "sha1") and ("as strong as SHA-256;" in said) == (form == "sha256")
    said = trust("--sha256", plugins.tree_digest(demo))
    assert "every byte is what --sha256 says" in said and "as strong as" not in said


def terminal(abx, args, typed, wait=b"[y/N] "):
    """Runs it on a terminal; types when the question came. Status and all that was shown."""
    leader, follower = pty.openpty()
    child = subprocess.Popen([BINARY, *args], stdin=follower, stdout=subprocess.PIPE, stderr=follower, cwd=abx.cwd,
                             env=abx.environment(), start_new_session=True,
                             preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0))
    os.close(follower)
    got, sent, end = b"", False, time.monotonic() + 20
    while time.monotonic() < end:
        if select.select([leader], [], [], 0.1)[0]:
            try:
                chunk = os.read(leader, 65536)
            except OSError:
                break
            if not chunk:
                break
            got += chunk
        if not sent and got.endswith(wait):
            os.write(leader, typed)
            sent = True
        if child.poll() is not None and not select.select([leader], [], [], 0.1)[0]:
            break
    status = child.wait(20)
    os.close(leader)
    return status, got, child.stdout.read()


@pytest.mark.parametrize("typed, installed", [
    (b"y\n", True), (b"YES\n", True), (b"  yes \n", True), (b"n\n", False), (b"\n", False), (b"yess\n", False),
    (b"\x04", False),
])
def test_on_a_terminal(abx, demo, typed, installed):
    status, shown, out = terminal(abx, ["provider", "install", str(demo)], typed)
    assert b"Install this provider? [y/N] " in shown
    assert status == (0 if installed else 2), shown
    assert (abx.home / ".abx/providers/demo").exists() == installed
    assert out == (b"Installed demo 0.1.0\n" if installed else b"")


def test_ctrl_c_at_the_question(abx, demo):
    status, shown, _ = terminal(abx, ["provider", "install", str(demo)], b"\x03")
    assert status in (130, -signal.SIGINT), shown
    assert not (abx.home / ".abx/providers/demo").exists()


def test_no_input(abx, demo):
    status, shown, _ = terminal(abx, ["--no-input", "provider", "install", str(demo)], b"y\n")
    assert status == 2 and b"[y/N]" not in shown and b"E8012" in shown


def test_foreign_text_is_harmless(abx, demo):
    manifest = demo / "abx-provider.toml"
    manifest.write_text(manifest.read_text().replace('name = "Demo"', 'name = "De\\u001b[2Jmo\\nInstall it\\u202e"')
                        .replace("api.example.com", "api\\u001b]0;x\\u0007"))
    for ran in (abx("provider", "install", str(demo)), abx("--json", "provider", "install", str(demo))):
        assert b"\x1b" not in ran.err, ran
    assert not re.search(rb"^Install it", abx("provider", "install", str(demo)).err, re.M)
    _, shown, _ = terminal(abx, ["provider", "install", str(demo)], b"n\n")
    assert b"\x1b" not in shown and "\u202e".encode() not in shown
    _, shown, _ = terminal(abx, ["--json", "provider", "install", str(demo)], b"n\n")
    assert b"\x1b" not in shown and "\u202e".encode() not in shown


def test_what_changed(abx, demo):
    assert abx("provider", "install", str(demo), "--yes").status == 0
    plugins.plugin(demo, version="0.2.0", command='["python3", "./plugin.py", "--new flag"]',
                   network='["api.example.com", "evil.example.com"]', inherit='["sandbox_api_key", "sandbox_domain"]')
    manifest = demo / "abx-provider.toml"
    manifest.write_text(manifest.read_text().replace("config.fields.retries", "config.fields.again") +
                        '\n[config.fields.more]\ntype = "string"\nsecret = true\n')
    ran = abx("provider", "install", str(demo), "--force")
    text = ran.err.decode()
    assert "Replace demo 0.1.0 (local) by 0.2.0" in text
    for part in ("changes      runtime, security, inherit, fields", "+evil.example.com", "+sandbox_domain", "+more", "-retries",
                 '["python3","./plugin.py"] -> ["python3","./plugin.py","--new flag"]', 'python3 ./plugin.py "--new flag"'):
        assert part in text, (part, text)
    plan = json.loads("\n".join(abx("--json", "provider", "install", str(demo), "--force").err.decode().splitlines()[:-1]))
    assert plan["changes"] == ["runtime", "security", "inherit", "fields"]


def test_nothing_but_files_changed(abx, demo):
    assert abx("provider", "install", str(demo), "--yes").status == 0
    (demo / "more").write_text("")
    assert "its files only" in abx("provider", "install", str(demo), "--force").err.decode()


def test_nothing_ran_before_the_answer(abx, tmp_path):
    spy = plugins.plugin(tmp_path / "src/spy", before=f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert abx("provider", "install", str(spy)).status == 2
    assert not (tmp_path / "ran").exists() and not (abx.home / ".abx/providers/demo").exists()
    assert abx("provider", "install", str(spy), "--yes").status == 0 and (tmp_path / "ran").exists()


def test_nothing_is_hidden_by_length(abx, demo):
    """What stands behind a long blank is shown, of the command, of a list and of what changes."""
    folder = plugins.plugin(abx.home / "long", command='["python3", "./plugin.py", "%sLAST-WORD"]' % (" " * 5000),
                            network='["%sLAST-HOST"]' % (" " * 5000))
    for force in ([], ["--force"]):
        if force:
            assert abx("provider", "install", demo, "--yes").status == 0
        ran = abx("provider", "install", str(folder), *force)
        assert ran.status == 2
        for word in (b"LAST-WORD", b"LAST-HOST"):
            assert ran.err.count(word) == 1 + len(force), ran.err[-500:]
