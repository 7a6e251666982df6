"""abx and the Python host on one home: what one installs the other lists, checks,
updates and removes, and both write the same bytes. Needs no server."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rig as rigs

TOP = rigs.TOP
sys.path.insert(0, str(TOP / "tests/cli"))

import plugins  # noqa: E402

PYTHON = rigs.CACHE / "venv-host/bin/python"
SETTINGS = "# kept\n[core] # mine\nlog = 1\n\n[transport]\nhttp_timeout = 9\n"


@pytest.fixture(scope="module", autouse=True)
def prepared():
    subprocess.run([rigs.HERE / "prepare"], check=True)


class Ran:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def json(self):
        assert self.code == 0, self
        return json.loads(self.out)

    def __repr__(self):
        return f"exit {self.code}\n{self.out}\n{self.err}"


class Host:
    """One of the two hosts on a home."""

    def __init__(self, name, home):
        self.name, self.home = name, Path(home)
        self.words = [str(TOP / "abx"), "provider", "--json"] if name == "abx" else \
            [str(PYTHON), "-m", "agent_sandbox.providers", "--json"]
        # The Python host's `list` looks for updates in a thread: that would leave this machine, and a
        # process that ends while it runs can die of it (seen: SIGABRT behind the whole answer).
        self.env = {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "ABX_PROVIDER_UPDATE_CHECK": "0"}

    def __call__(self, *args):
        return Ran(subprocess.run([*self.words, *map(str, args)], env=self.env, cwd=self.home, capture_output=True,
                                  text=True, timeout=120))

    @property
    def store(self):
        return self.home / ".abx/providers"


@pytest.fixture
def hosts(tmp_path):
    """hosts(NAME): that host on the home that all share."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".abx").mkdir()
    (home / ".abx/config.toml").write_text(SETTINGS)
    return lambda name, where=home: Host(name, where)


@pytest.fixture
def sources(tmp_path):
    """The same plugin from everywhere: the words of `install` for each kind of source."""
    root = tmp_path / "src"
    folder = root / "catalog/demo"
    plugins.plugin(folder, network='["api.example.com"]', inherit='["sandbox_domain", "sandbox_api_key"]',
                   **{"README.md": "caf\u00e9 \u2603\n"})
    (folder / "bin").mkdir()
    (folder / "bin/run").write_text("#!/bin/sh\n")
    (folder / "bin/run").chmod(0o755)
    (folder / "bin/\u4f60\u597d.txt").write_text("x")
    (folder / ".hidden").write_bytes(bytes(range(256)))
    manifest = folder / "abx-provider.toml"
    manifest.write_text(manifest.read_text() + COMMANDS)
    commit = plugins.repository(root / "catalog")
    (root / "index.json").write_text(json.dumps({"providers": [
        {"id": "demo", "version": "0.1.0", "url": "catalog/demo", "sha256": ""}]}))
    url = f"file://{root}/catalog"
    git = [url, "--subdir", "demo", "--allow-insecure-transport"]
    return {
        "local": [folder],
        "local-subdir": [root / "catalog", "--subdir", "demo"],
        "local-sha256": [folder, "--sha256", plugins.tree_digest(folder)],
        "git": [*git, "--ref", commit],
        "git-branch": [*git, "--ref", "main", "--allow-unpinned"],
        "git-head": [*git, "--allow-unpinned"],
        "git-sha256": [*git, "--ref", "main", "--sha256", plugins.tree_digest(folder)],
        "link": [folder, "--link"],
        "catalog": ["registry:demo"],
    }, folder, commit, root / "index.json"


# Numbers and schemas whose printing differs from one JSON writer to the next.
COMMANDS = """
[commands]
protocol = "provider-commands/1"

[[commands.entries]]
id = "volumes.list"
description = "List \\"volumes\\"\\t\\u007f"
description_zh = "\u5217\u51fa"
effect = "read"
idempotent = true
input_schema = { type = "object", additionalProperties = false, properties = { b = { type = "number", minimum = 1e-5, maximum = 1e16, default = 0.1 }, a = { type = "integer", maximum = 9007199254740993 } } }
output_schema = { type = "object", multipleOf = 100.0, title = "\U0001F600" }
"""

KINDS = ["local", "local-subdir", "local-sha256", "git", "git-branch", "git-head", "git-sha256", "link", "catalog"]
PAIRS = [("abx", "python"), ("python", "abx")]


def receipt(host):
    """The bytes of the receipt without when and by whom."""
    text = (host.store / "demo/.abx-install.json").read_text()
    text, n = re.subn(r'\n  "installed_at": "[0-9T:-]+Z",', "", text)
    text, m = re.subn(r'\n  "installed_by": \{\n(?:    .*\n)+?  \},', "", text)
    assert (n, m) == (1, 1), text
    return text


def by(host):
    return json.loads((host.store / "demo/.abx-install.json").read_text())["installed_by"]


def install(host, words, index):
    host.env["ABX_PROVIDER_REGISTRY"] = str(index)
    ran = host("install", *words, "--yes")
    assert ran.code == 0, ran
    return ran


@pytest.mark.parametrize("kind", KINDS)
def test_both_write_the_same(hosts, sources, tmp_path, kind):
    words, _, _, index = sources
    pair = []
    for name in ("abx", "python"):
        home = tmp_path / f"home-{name}"
        home.mkdir()
        pair.append((hosts(name, home), install(hosts(name, home), words[kind], index)))
    (one, ran_one), (other, ran_other) = pair
    assert receipt(one) == receipt(other)
    # What `install --json` prints has another order than the file, and both print the same.
    strip = lambda ran: [(k, v) for k, v in json.loads(ran.out, object_pairs_hook=lambda p: p)  # noqa: E731
                         if k not in ("installed_at", "installed_by")]
    assert strip(ran_one) == strip(ran_other)
    assert by(one)["name"] == "abx" and by(other) == {"tool": "python-sdk"}
    # Files, modes and contents; what abx keeps besides lies in folders with a dot.
    seen = [{k: v for k, v in plugins.snapshot(h.store).items()
             if not k.startswith((".files", ".previous", ".staging", ".trash")) and not k.endswith(".abx-install.json")}
            for h in (one, other)]
    assert seen[0] == seen[1]


@pytest.mark.parametrize("first, second", PAIRS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_one_installs_the_other_has(hosts, sources, first, second, kind):
    words, folder, commit, index = sources
    a, b = hosts(first), hosts(second)
    installed = install(a, words[kind], index).json()
    b.env["ABX_PROVIDER_REGISTRY"] = str(index)

    row = {r["id"]: r for r in b("list").json()}["demo"]
    assert (row["kind"], row["version"], row["trust"], row["default"]) == ("exec", "0.1.0", installed["trust"], False)
    assert row == {r["id"]: r for r in a("list").json()}["demo"]
    info = b("info", "demo").json()
    assert info == a("info", "demo").json() and info["receipt"] == installed
    assert info["inherit"] == ["sandbox_api_key", "sandbox_domain"]
    doctor = b("doctor", "demo").json()
    assert doctor == a("doctor", "demo").json() and doctor["ok"] is True

    # Update: what the other says of the same state.
    said = [h("update", "demo", "--yes", "--allow-insecure-transport", "--allow-unpinned") for h in (b, a)]
    assert said[0].code == said[1].code and said[0].out == said[1].out, said
    if kind.startswith("git"):
        status = json.loads(said[0].out)[0]["status"]
        assert status == ("pinned" if installed["trust"] == "pinned" else "up-to-date")

    data = a.store / "demo/data"
    data.mkdir(exist_ok=True)
    (data / "state").write_text("kept")
    removed = b("uninstall", "demo").json()
    assert removed == {"id": "demo", "removed": True, "purged": False, "default_reset": False}
    assert [p.name for p in (a.store / "demo").iterdir()] == ["data"]
    assert (data / "state").read_text() == "kept"
    assert "demo" not in [r["id"] for r in a("list").json()]
    assert a("uninstall", "demo", "--purge").json()["purged"] is True
    assert not (a.store / "demo").exists() and not (b.store / ".lock").exists()


@pytest.mark.parametrize("first, second", PAIRS)
@pytest.mark.parametrize("kind", ["git-branch", "git-head"])
def test_one_updates_what_the_other_installed(hosts, sources, first, second, kind):
    words, folder, commit, index = sources
    a, b = hosts(first), hosts(second)
    install(a, words[kind], index)
    (a.store / "demo/data").mkdir(exist_ok=True)
    (a.store / "demo/data/state").write_text("kept")
    who = by(a)
    (folder / "plugin.py").write_text((folder / "plugin.py").read_text() + "# two\n")
    manifest = folder / "abx-provider.toml"
    manifest.write_text(manifest.read_text().replace("0.1.0", "0.2.0").replace("api.example.com", "b.example.com"))
    plugins.git(folder, "commit", "-q", "-a", "-m", "two")
    new = plugins.git(folder, "rev-parse", "HEAD")
    flags = ["--allow-insecure-transport", "--allow-unpinned", "--yes"]

    check = b("update", "demo", "--check", *flags)
    assert check.out == a("update", "demo", "--check", *flags).out
    assert check.json() == [{"id": "demo", "installed": commit, "available": new, "changes": ["security"],
                             "status": "available"}]
    [done] = b("update", "demo", *flags).json()
    assert done["status"] == "updated" and by(b) == who     # who installed it is kept
    assert a("info", "demo").json()["version"] == "0.2.0" and a("doctor", "demo").json()["ok"]
    assert (a.store / "demo/data/state").read_text() == "kept"
    assert a("update", "demo", *flags).json()[0]["status"] == "up-to-date"


@pytest.mark.parametrize("first, second", PAIRS)
def test_both_update_alike(hosts, sources, tmp_path, first, second):
    """The same update by either host leaves the same receipt."""
    words, folder, commit, index = sources
    pair = [hosts(name, tmp_path / f"home-{i}") for i, name in enumerate((first, second))]
    for host in pair:
        host.home.mkdir()
        install(hosts(first, host.home), words["git-branch"], index)
    (folder / "more").write_text("two")
    plugins.git(folder, "add", "-A")
    plugins.git(folder, "commit", "-q", "-m", "two")
    for host in pair:
        assert host("update", "demo", "--allow-insecure-transport", "--allow-unpinned", "--yes").code == 0
    assert receipt(pair[0]) == receipt(pair[1]) and by(pair[0]) == by(pair[1])


@pytest.mark.parametrize("first, second", PAIRS)
def test_default(hosts, sources, first, second):
    words, _, _, index = sources
    a, b = hosts(first), hosts(second)
    install(a, words["local"], index)
    config = a.home / ".abx/config.toml"
    assert a("default", "demo").json()["default"] == "demo"
    assert config.read_text() == SETTINGS.replace("log = 1\n\n", 'log = 1\n\nprovider = "demo"\n')
    assert b("default").json()["default"] == "demo"
    assert [r["id"] for r in b("list").json() if r["default"]] == ["demo"]
    assert b("doctor").json()["id"] == "demo"
    assert b("uninstall", "demo").json()["default_reset"] is True
    assert a("default").json()["default"] == "alicloud-express"
    assert config.read_text() == SETTINGS


@pytest.mark.parametrize("edit", ["set", "again", "reset"])
def test_both_edit_settings_alike(hosts, sources, tmp_path, edit):
    words, _, _, index = sources
    texts = []
    for name in ("abx", "python"):
        home = tmp_path / f"home-{name}"
        (home / ".abx").mkdir(parents=True)
        (home / ".abx/config.toml").write_text(SETTINGS)
        host = hosts(name, home)
        install(host, words["local"], index)
        host("default", "demo")
        if edit == "again":
            host("default", "demo")
        if edit == "reset":
            host("default", "alicloud-express")
        texts.append(((home / ".abx/config.toml").read_bytes(), (home / ".abx/config.toml").stat().st_mode))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("first, second", PAIRS)
def test_purge(hosts, sources, first, second):
    words, _, _, index = sources
    a, b = hosts(first), hosts(second)
    install(a, words["local"], index)
    home = a.home / ".abx"
    (home / "config.toml").write_text(SETTINGS + "\n[providers.demo]\nretries = 5\n\n[providers.other]\nx = 1\n")
    (home / ".env").write_text("ABX_DEMO_API_KEY=secret\nABX_OTHER_KEY=b\n")
    assert b("uninstall", "demo", "--purge").json()["purged"] is True
    assert "retries" not in (home / "config.toml").read_text() and "x = 1" in (home / "config.toml").read_text()
    assert (home / ".env").read_text() == "ABX_OTHER_KEY=b\n"


@pytest.mark.parametrize("first, second", PAIRS)
@pytest.mark.parametrize("spoil", ["change", "add", "remove", "mode"])
def test_both_see_a_changed_file(hosts, sources, first, second, spoil):
    words, _, _, index = sources
    a, b = hosts(first), hosts(second)
    install(a, words["git"], index)
    files = a.store / "demo"
    {"change": lambda: (files / "plugin.py").write_text("evil"), "add": lambda: (files / "new").write_text(""),
     "remove": lambda: (files / "README.md").unlink(), "mode": lambda: (files / "plugin.py").chmod(0o700)}[spoil]()
    for host in (a, b):
        ran = host("doctor", "demo")
        assert ran.code == 2
        assert [(c["name"], c["ok"]) for c in json.loads(ran.out)["checks"]] == [("installed", True), ("integrity", False)]


@pytest.mark.parametrize("first, second", PAIRS)
def test_refusals_agree(hosts, sources, first, second):
    words, folder, commit, index = sources
    a, b = hosts(first), hosts(second)
    install(a, words["local"], index)
    cases = [
        ["install", *words["local"], "--yes"],                                  # a second time
        ["install", words["git"][0], "--subdir", "demo", "--yes"],              # file: without the flag
        ["install", *words["git"][:4], "--yes"],                                # unpinned
        ["install", *words["local"], "--yes", "--force", "--sha256", "0" * 64],
        ["install", words["local"][0].parent, "--yes"],                         # no manifest there
        ["install", "/no/such/folder", "--yes"], ["install", "word", "--yes"],
        ["install", "https://u:p@example.com/x.git", "--yes"],
        ["install", "registry:nope", "--yes"],
        ["uninstall", "nope"], ["uninstall", "alicloud-express"], ["info", "nope"], ["default", "nope"],
        ["update", "demo"], ["update", "nope"], ["update", "alicloud-express", "--ref", "x"],
    ]
    for case in cases:
        ends = []
        for host in (a, b):
            host.env["ABX_PROVIDER_REGISTRY"] = str(index)
            ran = host(*case)
            assert ran.out == "", (host.name, case, ran)
            ends.append((ran.code, json.loads(ran.err.splitlines()[-1])["error"]["code"]))
        assert ends[0] == ends[1] and ends[0][0] != 0, (case, ends)
    assert json.loads((a.store / "demo/.abx-install.json").read_text())["source"]["type"] == "local"


def test_they_wait_for_one_another(hosts, sources):
    """One lock: while a host holds it, the other waits and then says that somebody works."""
    words, _, _, index = sources
    a = hosts("abx")
    install(a, words["local"], index)
    holder = subprocess.Popen([str(PYTHON), "-c", """
import time
from agent_sandbox.providers import store
with store.store_lock():
    print('held', flush=True)
    time.sleep(3)
"""], env=a.env, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    assert a("uninstall", "demo").code == 0     # after the three seconds
    assert holder.wait() == 0
