"""The Install section of the record that abx is held to (the seed), command by
command, with a plugin shaped like the one there: a catalog repository, the plugin
in its folder `opensandbox`, started as `node provider.mjs`, pinned by commit. The
repository is a local clone, by file://, and then one behind real servers: https
(nginx) and ssh (sshd), with protocol 2 and without, with filters and without.

The program that the plugin is written for is not needed: where there is no node,
a one-line `node` that runs the same protocol in Python stands in for it, since
what is tested is the host.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import plugins
from conftest import BINARY, ROOT
from git_servers import Nginx, Sshd, git
from test_tls import Authority, needs_tls

FORMS = [(), ("--json",)]
NODE = """#!{python}
import os, sys
os.execv({python!r}, [{python!r}, {script!r}, *sys.argv[1:]])
"""


@pytest.fixture
def catalog(tmp_path):
    """A clone of a catalog with other folders beside the plugin's, and its commit."""
    folder = tmp_path / "awesome-providers"
    plugins.node_plugin(folder / "opensandbox")
    plugins.plugin(folder / "other")
    (folder / "README.md").write_text("a catalog\n")
    return folder, plugins.repository(folder)


@pytest.fixture
def seed(abx, tmp_path):
    """The program, with a `node` on its path, real or not."""
    if not shutil.which("node"):
        script = tmp_path / "node.py"
        script.write_text(plugins.SCRIPT.format(contract="", before="pass"))
        (tmp_path / "bin").mkdir()
        node = tmp_path / "bin/node"
        node.write_text(NODE.format(python=sys.executable, script=str(script)))
        node.chmod(0o755)
        abx.env["PATH"] = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    return abx


def pinned(catalog, *more):
    folder, commit = catalog
    return ["provider", "install", f"file://{folder}", "--subdir", "opensandbox", "--ref", commit, "--yes",
            "--allow-insecure-transport", *more]


def test_pinned_install_from_a_local_clone(seed, catalog):
    folder, commit = catalog
    ran = seed("--json", *pinned(catalog))
    assert ran.status == 0, ran
    assert (ran.doc["trust"], ran.doc["id"], ran.doc["version"]) == ("pinned", "opensandbox", "0.1.0")
    assert ran.doc["source"] == {"type": "git", "url": f"file://{folder}", "ref": commit, "commit": commit,
                                 "subdir": "opensandbox"}
    assert ran.doc["tree_sha256"] == plugins.tree_digest(folder / "opensandbox")
    # The rows that follow in the seed.
    assert seed("--json", "provider", "default").doc == {"default": "alicloud-express", "source": "builtin"}
    row = next(r for r in seed("--json", "provider", "list").doc if r["id"] == "opensandbox")
    assert (row["kind"], row["trust"], row["default"]) == ("exec", "pinned", False)
    doctor = seed("--json", "provider", "doctor", "opensandbox")
    assert doctor.status == 0 and [(c["name"], c["ok"]) for c in doctor.doc["checks"]] == \
        [("installed", True), ("integrity", True), ("config", True), ("handshake", True)]


def test_local_path(seed, catalog):
    source = str(catalog[0] / "opensandbox")
    ran = seed("--json", "provider", "install", source, "--yes")
    assert (ran.status, ran.doc["trust"]) == (0, "local")
    again = seed("--json", "provider", "install", source, "--yes")
    assert (again.status, again.error["code"]) == (1, "E8003") and again.out == b""
    assert seed("--json", "provider", "install", source, "--force", "--yes").status == 0


def test_unpinned_is_refused(seed, catalog):
    folder, commit = catalog
    before = plugins.snapshot(seed.home / ".abx")
    for form in FORMS:
        ran = seed(*form, "provider", "install", f"file://{folder}", "--subdir", "opensandbox", "--yes",
                   "--allow-insecure-transport")
        assert ran.status == 2 and ran.out == b"", ran
        text = ran.error["message"] if form else ran.err.decode()
        assert "Refusing an unpinned git source in non-interactive mode." in text
        hint = ran.error["suggestion"] if form else text
        # The command that pins it can be copied.
        assert f"--ref {commit}" in hint and "--subdir opensandbox" in hint, hint
    for ref in ("main", commit[:12], commit.upper()):
        ran = seed("--json", "provider", "install", f"file://{folder}", "--subdir", "opensandbox", "--yes", "--ref", ref,
                   "--allow-insecure-transport")
        assert ran.status in (1, 2) and ran.error["code"] in ("E8010", "E8012"), ran
    assert not (seed.home / ".abx/providers/opensandbox").exists() and before == {}
    ran = seed("--json", "provider", "install", f"file://{folder}", "--subdir", "opensandbox", "--yes",
               "--allow-insecure-transport", "--allow-unpinned")
    assert ran.status == 0 and (ran.doc["trust"], ran.doc["source"]["ref"], ran.doc["source"]["commit"]) == \
        ("unpinned", "HEAD", commit)


def test_the_suggested_command_pins(seed, catalog):
    """What the refusal suggests is typed as it stands."""
    import shlex
    folder, commit = catalog
    ran = seed("--json", "provider", "install", f"file://{folder}", "--subdir", "opensandbox", "--yes",
               "--allow-insecure-transport")
    command = ran.error["suggestion"].split("`")[1]
    words = shlex.split(command)
    assert words[0] == "abx"
    done = seed("--json", *words[1:])
    assert done.status == 0 and done.doc["trust"] == "pinned", done


def test_uninstall_of_the_default(seed, catalog):
    seed(*pinned(catalog))
    assert seed("provider", "default", "opensandbox").status == 0
    ran = seed("--json", "provider", "uninstall", "opensandbox", "--yes")
    assert ran.status == 0 and ran.doc["default_reset"] is True
    assert ran.err == b"Default provider reset to 'alicloud-express'\n"
    assert seed("--json", "provider", "default").doc["default"] == "alicloud-express"


def test_a_dirty_tree_is_no_pin(seed, catalog):
    source = catalog[0] / "opensandbox"
    with (source / "provider.mjs").open("a") as f:
        f.write("// dirty marker\n")
    ran = seed("--json", "provider", "install", str(source), "--yes")
    assert ran.status == 0 and ran.doc["trust"] == "local"
    assert ran.doc["source"] == {"type": "local", "path": str(source)} and "commit" not in json.dumps(ran.doc["source"])
    assert "// dirty marker" in (seed.home / ".abx/providers/opensandbox/provider.mjs").read_text()
    # The clone's commit is what it was: the marker is not in it.
    ran = seed("--json", *pinned(catalog, "--force"))
    assert ran.status == 0 and ran.doc["trust"] == "pinned"
    assert "// dirty marker" not in (seed.home / ".abx/providers/opensandbox/provider.mjs").read_text()


def type_the_record(seed, catalog, url, **more):
    """Types the table of docs/e2e-record.md, row by row."""
    folder, commit = catalog
    table = (ROOT / "docs/e2e-record.md").read_text().split("## Installing a plugin")[1].split("\n## ")[0]
    rows = [[c.strip() for c in line.strip("|").split(" | ")] for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    bin = seed.home / "names"
    bin.mkdir()
    (bin / "abx").symlink_to(BINARY)
    env = seed.environment({"ABX_HOME": None})
    env.update(more)
    env["PATH"] = f"{bin}:{env['PATH']}"
    fill = {"URL": url, "DIR": str(folder / "opensandbox"), "SHA": commit}
    for name, command, status, *has in rows:
        for word, value in fill.items():
            command = re.sub(rf"\b{word}\b", value, command)
        ran = subprocess.run(["sh", "-c", command.strip("`")], cwd=seed.home, env=env, capture_output=True, text=True)
        assert ran.returncode == int(status), (name, ran)
        for part in re.findall("`([^`]+)`", " ".join(has)):
            assert part.replace("SHA", commit) in ran.stdout + ran.stderr, (name, part, ran)


def test_the_record_is_true(seed, catalog):
    type_the_record(seed, catalog, f"file://{catalog[0]}")


def bare(catalog, tmp_path, filters):
    """A repository to be served, with the catalog's commit."""
    (tmp_path / "repos").mkdir()
    git("/", "clone", "-q", "--bare", str(catalog[0]), str(tmp_path / "repos/catalog.git"))
    git(tmp_path / "repos/catalog.git", "config", "uploadpack.allowFilter", str(filters).lower())
    return tmp_path / "repos"


@needs_tls
@pytest.mark.parametrize("filters", [True, False])
@pytest.mark.parametrize("place", ["", "/v0"])
def test_the_record_over_https(seed, catalog, tmp_path, place, filters):
    (tmp_path / "nginx").mkdir()
    authority = Authority(tmp_path / "ca")
    server = Nginx(tmp_path / "nginx", bare(catalog, tmp_path, filters), authority.leaf("git"))
    try:
        type_the_record(seed, catalog, f"{server.url}{place}/catalog.git", ABX_CA_FILE=str(authority.root))
    finally:
        server.close()


@pytest.mark.parametrize("accept_env", [True, False])
def test_the_record_over_ssh(seed, catalog, tmp_path, accept_env):
    (tmp_path / "sshd").mkdir()
    server = Sshd(tmp_path / "sshd", accept_env)
    try:
        path = f"{server.bin}:{seed.env.get('PATH', os.environ['PATH'])}"
        type_the_record(seed, catalog, f"ssh://git.example{bare(catalog, tmp_path, True)}/catalog.git", PATH=path)
    finally:
        server.close()



def test_ref_wins_with_force(seed, catalog):
    """Installed at A, the branch is at C: `--ref B --force --yes` is exactly B."""
    folder, a = catalog
    commits = [a]
    for mark in "BC":
        (folder / "opensandbox/mark").write_text(mark)
        plugins.git(folder, "add", "-A")
        plugins.git(folder, "commit", "-q", "-m", mark)
        commits.append(plugins.git(folder, "rev-parse", "HEAD"))
    assert seed(*pinned((folder, a))).status == 0
    ran = seed("--json", *pinned((folder, commits[1]), "--force"))
    assert ran.status == 0 and (ran.doc["source"]["ref"], ran.doc["source"]["commit"]) == (commits[1], commits[1])
    installed = seed.home / ".abx/providers/opensandbox"
    assert (installed / "mark").read_text() == "B"
    assert json.loads((installed / ".abx-install.json").read_text())["source"]["commit"] == commits[1]


def test_a_pinned_one_is_not_updated(seed, catalog):
    folder, commit = catalog
    seed(*pinned(catalog))
    shutil.rmtree(folder)           # nobody looks
    ran = seed("--json", "provider", "update", "opensandbox")
    assert ran.status == 0 and ran.doc == [
        {"id": "opensandbox", "status": "pinned", "installed": commit, "available": None, "changes": []}]
    assert seed("provider", "update").out == b"opensandbox: pinned\n"


def test_update_of_a_branch(seed, catalog):
    folder, commit = catalog
    install = ["provider", "install", f"file://{folder}", "--subdir", "opensandbox", "--ref", "main", "--yes",
               "--allow-insecure-transport", "--allow-unpinned"]
    assert seed(*install).status == 0
    flags = ["--allow-insecure-transport", "--json"]
    assert seed("provider", "update", "--json").error["code"] == "E8012"        # the flag is not remembered
    assert seed("provider", "update", *flags).doc[0]["status"] == "up-to-date"
    (folder / "opensandbox/new").write_text("new")
    plugins.git(folder, "add", "-A")
    plugins.git(folder, "commit", "-q", "-m", "two")
    second = plugins.git(folder, "rev-parse", "HEAD")
    before = plugins.snapshot(seed.home / ".abx/providers/opensandbox")
    ran = seed("provider", "update", "--check", *flags)
    assert ran.doc == [{"id": "opensandbox", "installed": commit, "available": second, "changes": [],
                        "status": "available"}]
    assert plugins.snapshot(seed.home / ".abx/providers/opensandbox") == before
    assert seed("provider", "update", "--yes", *flags).error["code"] == "E8012"     # a moving ref
    ran = seed("provider", "update", "--yes", "--allow-unpinned", *flags)
    assert ran.doc[0]["status"] == "updated"
    assert (seed.home / ".abx/providers/opensandbox/new").read_text() == "new"
    assert seed("provider", "rollback", "opensandbox").status == 0
    assert not (seed.home / ".abx/providers/opensandbox/new").exists()
    ran = seed("provider", "update", "opensandbox", "--ref", second, "--yes", *flags)
    assert ran.status == 0 and ran.doc[0]["status"] == "updated"
    doc = seed("provider", "info", "opensandbox").doc
    assert doc["receipt"]["trust"] == "pinned" and doc["receipt"]["source"]["ref"] == second
