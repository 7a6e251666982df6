"""Plugins from real git servers: https (nginx, fcgiwrap, git-http-backend), ssh
(sshd) and a local clone, with and without what servers may lack."""

import json
import os
import shutil
import signal
import stat
import sys
import time
from pathlib import Path

import pytest

import git_servers
from conftest import DEADLINE, Program
from git_servers import Nginx, Repo, Scripted, Sshd
from test_tls import Authority, needs_tls

MANIFEST = b"""manifest_version = 1
operation_contract_version = 1
[provider]
id = "demo"
version = "1.2.3"
[runtime]
kind = "exec"
command = ["./run"]
[features]
supported = ["exec.run"]
[operations]
cli = ["exec.run"]
python = []
[workflow]
inputs = []
startups = ["exec"]
"""
TEXT = b"".join(b"line %d of a text that deltas like\n" % i for i in range(300))
PLUGIN = {"abx-provider.toml": MANIFEST, "run": ("100755", b"#!/bin/sh\n"), "a.txt": TEXT, "lib/b.txt": TEXT + b"more\n",
          "lib/deep/c": bytes(range(256)) * 20, "empty": b""}


class Got:
    """What an install left, or said."""

    def __init__(self, ran, home):
        self.ran, self.error, self.doc, self.files = ran, None, None, {}
        folder = home / ".abx" / "providers" / "demo"
        if ran.status == 0:
            self.doc = ran.doc
            for path in folder.rglob("*"):
                if path.is_file() and path.name != ".abx-install.json":
                    mode = "100755" if path.stat().st_mode & stat.S_IXUSR else "100644"
                    self.files[str(path.relative_to(folder))] = (mode, path.read_bytes())
        else:
            ran.failed_well(True)
            self.error = ran.error
            assert not folder.exists(), "a failed install left something"

    @property
    def commit(self):
        assert self.doc, self.ran
        return self.doc["source"]["commit"]

    @property
    def trust(self):
        assert self.doc, self.ran
        return self.doc["trust"]

    def is_plugin(self, files=None):
        want = {k: v if isinstance(v, tuple) else ("100644", v) for k, v in (files or PLUGIN).items()}
        assert self.files == want, (self.ran, sorted(self.files))
        return self

    def refused(self, *words, code="E8010"):
        assert self.error, self.ran
        assert self.error["code"] == code, self.ran
        assert self.ran.status == (2 if code == "E8012" else 1), self.ran
        for word in words:
            assert word in self.error["message"] + self.error["suggestion"], self.ran
        return self


class Installer:
    def __init__(self, tmp_path):
        self.tmp, self.n = tmp_path, 0

    def command(self, url, ref, subdir, more):
        ref = [f"--ref={ref}"] if ref is not None else []
        return ["--json", "provider", "install", *ref, *(["--subdir", subdir] if subdir else []), "--yes",
                "--allow-unpinned", "--no-verify", "--allow-insecure-transport", *more, "--", url]

    def home(self):
        self.n += 1
        home = self.tmp / f"home{self.n}"
        home.mkdir()
        return home

    def __call__(self, url, ref=None, subdir=None, *more, env=None):
        home = self.home()
        return Got(Program(home)(*self.command(url, ref, subdir, more), env=env), home)

    def start(self, url, ref=None, env=None):
        home = self.home()
        return Program(home).start(*self.command(url, ref, None, ()), env=env)


@pytest.fixture
def install(tmp_path):
    return Installer(tmp_path)


class Shop:
    """A repository with what a plugin's has: two commits, tags, another branch,
    a commit that is on none, and the plugin once more in a folder."""

    def __init__(self, path, form="sha1"):
        self.repo = r = Repo(path, form)
        self.path = path
        self.one = r.commit({**PLUGIN, "README": b"one"})
        self.two = r.commit({**PLUGIN, "README": b"two"}, parents=[self.one])
        self.side = r.commit({f"plugins/demo/{k}": v for k, v in PLUGIN.items()}
                             | {f"other/{i}/x": b"%d" % i for i in range(30)}, branch="side")
        self.off = r.commit({**PLUGIN, "README": b"off"}, branch=None)
        r.git("tag", "-a", "v1", "-m", "m", self.one)
        r.git("tag", "light", self.one)
        r.git("tag", "-a", "v1-again", "-m", "m", "v1")
        self.tag = r.git("rev-parse", "v1")
        r.git("update-ref", "refs/tags/both", self.one)
        r.git("update-ref", "refs/heads/both", self.two)
        r.git("update-ref", "refs/remotes/origin/HEAD", self.one)

    def plugin(self, readme):
        return {**PLUGIN, "README": readme}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("git")


@pytest.fixture(scope="module")
def shops(work):
    (work / "repos").mkdir()
    return {"sha1": Shop(work / "repos" / "p.git"), "sha256": Shop(work / "repos" / "two.git", "sha256")}


@pytest.fixture(scope="module")
def shop(shops):
    return shops["sha1"]


@pytest.fixture(scope="module")
def nginx(work, shops):
    (work / "nginx").mkdir()
    authority = Authority(work / "ca")
    server = Nginx(work / "nginx", work / "repos", authority.leaf("git"))
    server.env = {"ABX_CA_FILE": str(authority.root)}
    yield server
    server.close()


@pytest.fixture(scope="module", params=["AcceptEnv", "stock"])
def sshd(request, work):
    folder = work / f"sshd-{request.param}"
    folder.mkdir()
    server = Sshd(folder, request.param == "AcceptEnv")
    server.env = {"PATH": server.path}
    server.two = request.param == "AcceptEnv"
    yield server
    server.close()


# --- https ---------------------------------------------------------------------------

@needs_tls
@pytest.mark.parametrize("place", ["", "/v0"])
@pytest.mark.parametrize("form", ["sha1", "sha256"])
@pytest.mark.parametrize("filters", [True, False])
def test_https(install, nginx, shops, place, form, filters):
    shop = shops[form]
    shop.repo.config("uploadpack.allowFilter", str(filters).lower())
    url = f"{nginx.url}{place}/{shop.path.name}"
    assert install(url, env=nginx.env).is_plugin(shop.plugin(b"two")).commit == shop.two
    got = install(url, shop.one, env=nginx.env).is_plugin(shop.plugin(b"one"))
    assert (got.commit, got.trust) == (shop.one, "pinned")
    got = install(url + "/", "side", "plugins/demo", env=nginx.env).is_plugin()
    assert (got.commit, got.trust) == (shop.side, "unpinned")


@needs_tls
def test_requests(install, nginx, shop):
    """What is asked for: capabilities, names where there is one, commit and
    trees, then the files; everything at once where there is no filter."""
    shop.repo.config("uploadpack.allowFilter", "true")
    get, post = "GET /p.git/info/refs?service=git-upload-pack", "POST /p.git/git-upload-pack"
    nginx.requests()
    install(f"{nginx.url}/p.git", shop.one, env=nginx.env).is_plugin(shop.plugin(b"one"))
    assert nginx.requests() == [get, post, post]
    install(f"{nginx.url}/p.git", "v1", env=nginx.env).is_plugin(shop.plugin(b"one"))
    assert nginx.requests() == [get, post, post, post]
    shop.repo.config("uploadpack.allowFilter", "false")
    install(f"{nginx.url}/p.git", shop.one, env=nginx.env).is_plugin(shop.plugin(b"one"))
    assert nginx.requests() == [get, post]
    install(f"{nginx.url}/v0/p.git", "v1", env=nginx.env).is_plugin(shop.plugin(b"one"))
    assert nginx.requests() == ["GET /v0/p.git/info/refs?service=git-upload-pack", "POST /v0/p.git/git-upload-pack"]
    shop.repo.config("uploadpack.allowFilter", "true")


@needs_tls
@pytest.mark.parametrize("place", ["", "/v0"])
def test_names(install, nginx, shop, place):
    url = f"{nginx.url}{place}/p.git"
    for name, commit in {"v1": shop.one, "v1-again": shop.one, "light": shop.one, "tags/v1": shop.one, "main": shop.two,
                         "refs/heads/main": shop.two, "heads/side": None, "both": shop.one, "heads/both": shop.two,
                         "origin": shop.one, "HEAD": shop.two, shop.one.upper(): shop.one}.items():
        got = install(url, name, "plugins/demo" if commit is None else None, env=nginx.env)
        assert (got.commit, got.trust) == (commit or shop.side, "unpinned"), name
    for name in ("nothing", shop.one[:7], "mai", "main/x", "1" * 39):
        install(url, name, env=nginx.env).refused("no branch, tag or commit", name)
    install(url, shop.tag, env=nginx.env).refused("is no commit, but a tag")
    install(url, shop.repo.git("rev-parse", f"{shop.one}^{{tree}}"), env=nginx.env).refused()
    install(url, "1" * 40, env=nginx.env).refused("not our ref")
    # Protocol 2 gives any object; before it only what a ref leads to.
    if place == "":
        assert install(url, shop.off, env=nginx.env).trust == "pinned"
    else:
        install(url, shop.off, env=nginx.env).refused("not our ref")


@needs_tls
def test_https_refusals(install, nginx, shop):
    for path, words in {"/private/p.git": "private or does not exist", "/off/p.git": "does not allow",
                        "/none.git": "no such repository", "/p.git?x=1": "query"}.items():
        install(nginx.url + path, env=nginx.env).refused(words)
    got = install(f"{nginx.url}/moved/p.git", env=nginx.env).refused("redirects elsewhere")
    assert f"{nginx.url}/p.git;" in got.error["suggestion"]
    for subdir in ("nothing", "lib/nothing", "README", "LIB"):
        install(f"{nginx.url}/p.git", shop.one, subdir, env=nginx.env).refused("no folder", subdir)
    for subdir in ("../x", "a/../b", "a//b", "-x", "a\\b", "."):
        install(f"{nginx.url}/p.git", shop.one, subdir, env=nginx.env).refused()
    error = install(f"{nginx.url}/p.git", env={"ABX_CA_FILE": "/dev/null"}).error
    assert error["code"] in ("E8010", "E5001")


# --- ssh -----------------------------------------------------------------------------

def test_ssh(install, sshd, shop):
    path = shop.path
    for url in (f"ssh://git.example{path}", f"git@git.example:{path}"):
        # The wrapper's configuration names the user; git@ would be another.
        url = url.replace("git@", f"{os.environ.get('USER') or 'root'}@")
        got = install(url, env=sshd.env).is_plugin(shop.plugin(b"two"))
        assert (got.commit, got.trust) == (shop.two, "unpinned")
        got = install(url, shop.one, env=sshd.env).is_plugin(shop.plugin(b"one"))
        assert (got.commit, got.trust) == (shop.one, "pinned")
        install(url, "side", "plugins/demo", env=sshd.env).is_plugin()
    install(f"ssh://git.example{path}", "v1", env=sshd.env).is_plugin(shop.plugin(b"one"))
    off = install(f"ssh://git.example{path}", shop.off, env=sshd.env)
    off.is_plugin(shop.plugin(b"off")) if sshd.two else off.refused("not our ref")


def test_ssh_command(install, sshd, shop, work):
    """Its words and its environment, to the letter."""
    odd = work / "a b" / "re'po!.git"
    if not odd.exists():
        shutil.copytree(shop.path, odd)
    install(f"ssh://git.example/{odd}".replace(" ", "%20").replace("//", "/").replace("ssh:/", "ssh://"), shop.one,
            env={**sshd.env, "SSH_AUTH_SOCK": "/nowhere", "SECRET": "s", "GIT_SSH_COMMAND": "false"}
            ).is_plugin(shop.plugin(b"one"))
    quoted = str(odd).replace("'", "'\\''").replace("!", "'\\!'")
    assert sshd.said.read_text() == ("-o\nBatchMode=yes\n-o\nSendEnv=GIT_PROTOCOL\n--\ngit.example\n"
                                     f"git-upload-pack '{quoted}'\n")
    env = dict(line.split("=", 1) for line in (sshd.work / "env").read_text().splitlines())
    assert env["GIT_PROTOCOL"] == "version=2" and env["SSH_AUTH_SOCK"] == "/nowhere"
    assert not set(env) & {"SECRET", "GIT_SSH_COMMAND", "ABX_HOME"}
    install("ssh://me@git.example:1/x", env=sshd.env).refused("ssh ended with status 255")
    assert sshd.said.read_text().splitlines()[4:] == ["-p", "1", "--", "me@git.example", "git-upload-pack '/x'"]
    install("ssh://git.example/~you/x.git", env=sshd.env).refused()
    assert sshd.said.read_text().splitlines()[-1] == "git-upload-pack '~you/x.git'"


def test_ssh_refusals(install, sshd, shop, work):
    install("ssh://git.example/nothing.git", env=sshd.env).refused("ssh ended with status 128", "does not appear to be a git")
    # A server whose key is not known asks a question; nobody answers it.
    install(f"ssh://[::1]:{sshd.port}{shop.path}", env=sshd.env).refused("ssh ended with status 255")
    install(f"ssh://git.example{shop.path}", env={"PATH": str(work)}).refused("`ssh` is needed")
    marker = work / "ran"
    for source in ("-oProxyCommand=touch@git.example:x", "ssh://-oProxyCommand=x/y", "ssh://-x@git.example/y",
                   "a@-oProxyCommand:y", "git@git.example:-x", "file://-x"):
        install(source, env=sshd.env).refused(code="E8012")
    for ref in (f"--upload-pack=touch {marker}", "-x", "a b", "a..b", "a\nb", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "@{u}", "a\x7fb"):
        install(f"file://{shop.path}", ref).refused()
        install(f"ssh://git.example{shop.path}", ref, env=sshd.env).refused()
    assert not marker.exists()


# --- a local clone -------------------------------------------------------------------

def test_local(install, shop, work):
    got = install(f"file://{shop.path}", shop.one).is_plugin(shop.plugin(b"one"))
    assert (got.commit, got.trust) == (shop.one, "pinned")
    install(f"file://{shop.path}", "side", "plugins/demo").is_plugin()
    clone = work / "clone"
    if not clone.exists():
        git_servers.git(work, "clone", "-q", str(shop.path), str(clone))
    (clone / "README").write_bytes(b"not committed")
    install(f"file://{clone}", shop.two).is_plugin(shop.plugin(b"two"))
    install(f"file://{work}/nothing").refused("git-upload-pack ended with status 128")
    install(f"file://{clone}", env={"PATH": "/nonexistent"}).refused("`git-upload-pack` is needed")
    empty = work / "none.git"
    if not empty.exists():
        Repo(empty)
    install(f"file://{empty}").refused("empty")
    install(f"file://{empty}", "1" * 40).refused("not our ref")


def left_of(group):
    """The processes of a group that have not ended."""
    left = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = path.parent.name, path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(rest[2]) == group and rest[0] not in "ZX":
            left.append(pid)
    return left


def test_a_program_that_hangs(install, work, tmp_path):
    """It is ended with everything that it started, and what it said is told."""
    bin = tmp_path / "bin"
    bin.mkdir()
    program = bin / "git-upload-pack"
    program.write_text(f"#!/bin/sh\necho 'cannot \033[31mdo it' >&2\necho $$ > {tmp_path}/pid\nsleep 1000 &\nwait\n")
    program.chmod(0o755)
    running = install.start("file:///x", env={"PATH": f"{bin}:{os.environ['PATH']}"})
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=DEADLINE)
    assert running.returncode == 130
    assert left_of(int((tmp_path / "pid").read_text())) == []
    program.write_text("#!/bin/sh\necho 'cannot \033[31mdo it' >&2\nsleep 1000 &\nexit 3\n")
    got = install("file:///x", env={"PATH": f"{bin}:{os.environ['PATH']}"})
    got.refused("git-upload-pack ended with status 3: cannot do it")
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    install("file:///x", env={"PATH": f"{bin}:{os.environ['PATH']}"}).refused("git-upload-pack was ended by signal 9")


# --- what may be in a commit ----------------------------------------------------------

def test_unsafe_trees(install, work, shop):
    repo = Repo(work / "unsafe.git") if not (work / "unsafe.git").exists() else None
    assert repo
    url = f"file://{repo.path}"
    for name, what, words in (("l", ("120000", b"run"), "unsafe entry x/l: a symbolic link"),
                              ("m", ("160000", shop.one), "unsafe entry x/m: a submodule"),
                              ("g", ("100664", b"x"), "unsafe entry x/g"),
                              ("con.txt", b"x", "unsafe entry x/con.txt"),
                              ("a\\b", b"x", "unsafe entry"),
                              ("a\x1b[31m", b"x", None)):
        commit = repo.commit({**PLUGIN, f"x/{name}": what})
        got = install(url, commit)
        got.refused(words) if words else got.is_plugin({**PLUGIN, f"x/{name}": what})
        # Outside the folder that is wanted it does not matter.
        install(url, repo.commit({"x/" + name: what, **{f"p/{k}": v for k, v in PLUGIN.items()}}), "p").is_plugin()
    for path in ("data/x", "data", ".abx-install.json"):
        install(url, repo.commit({**PLUGIN, path: b"{}"})).refused("unsafe entry", path)
    install(url, repo.commit({**PLUGIN, "A": b"", "b": b"", "B": b""})).refused("case")
    install(url, repo.commit({**PLUGIN, **{f"f/{i}": b"" for i in range(2001)}})).refused("more than 2000 files")
    files = {**PLUGIN, **{f"f/{i}": b"" for i in range(2000 - len(PLUGIN))}}
    install(url, repo.commit(files)).is_plugin(files)
    large = {**PLUGIN, "large": bytes(10 << 20)}
    install(url, repo.commit(large)).is_plugin(large)
    install(url, repo.commit({**PLUGIN, "large": bytes((10 << 20) + 1)})).refused("larger than 10 MiB")
    for i in range(6):
        large[f"large{i}"] = bytes(9 << 20)
    install(url, repo.commit(large)).refused("more than 50 MiB")


# --- servers that are not honest -------------------------------------------------------

@pytest.fixture(scope="module")
def honest(work):
    return Shop(work / "honest.git")


def changed(kind, body):
    """Another answer to the nth exchange of one kind; all others are honest."""
    seen = []

    def change(_, what, answer):
        if what == kind:
            seen.append(what)
            return body(len(seen) - 1, answer)
        return answer
    return change


def test_an_honest_script(install, honest):
    with Scripted(honest.repo) as server:
        install(server.url, honest.one).is_plugin(honest.plugin(b"one"))
        assert [kind for kind, _ in server.requests] == ["advertisement", "fetch", "fetch"]
        assert b"filter blob:none" in server.requests[1][1] and b"deepen 1" in server.requests[1][1]
        # Files by their ids: each once, nothing else.
        wants = server.requests[2][1].count(b"want ")
        assert wants == len(honest.plugin(b"one")) and b"deepen" not in server.requests[2][1]


def test_wrong_content(install, honest):
    """Good objects with other ids, and a damaged pack."""
    other = git_servers.make_pack([("blob", b"not this")])
    with Scripted(honest.repo, changed("fetch", lambda n, a: git_servers.answer_with(other) if n == 1 else a)) as server:
        install(server.url, honest.one).refused("did not send the file")

    def flip(n, a):
        at = len(a) - 50
        return a[:at] + bytes([a[at] ^ 1]) + a[at + 1:] if n == 1 else a
    with Scripted(honest.repo, changed("fetch", flip)) as server:
        install(server.url, honest.one).refused("damaged git pack")


def test_wrong_commit(install, honest):
    """Another commit, with all that belongs to it; a commit with another tree."""
    tree = honest.repo.git("rev-parse", f"{honest.two}^{{tree}}")
    pack = honest.repo.git("pack-objects", "--stdout", "--revs", text=False, input=f"{honest.two}\n^{honest.one}\n".encode())
    with Scripted(honest.repo, changed("fetch", lambda n, a: git_servers.answer_with(pack))) as server:
        install(server.url, honest.one).refused("sent another commit than", honest.one)
        install(server.url, "light").refused("sent another commit than", honest.one)
    text = honest.repo.git("cat-file", "commit", honest.one, text=False)
    alone = git_servers.make_pack([("commit", text)])
    with Scripted(honest.repo, changed("fetch", lambda n, a: git_servers.answer_with(alone))) as server:
        install(server.url, honest.one).refused("did not send tree")
    forged = git_servers.make_pack([("commit", text.replace(text[5:45], tree.encode()))])
    with Scripted(honest.repo, changed("fetch", lambda n, a: git_servers.answer_with(forged))) as server:
        install(server.url, honest.one).refused("sent another commit than")


def test_a_moved_tag(install, work):
    """A tag leads elsewhere than before; a pin does not, and what was listed is
    what is fetched."""
    shop = Shop(work / "moving.git")
    before = install(f"file://{shop.path}", "v1")
    shop.repo.git("tag", "-f", "-a", "v1", "-m", "m", shop.two)
    after = install(f"file://{shop.path}", "v1")
    assert (before.commit, after.commit) == (shop.one, shop.two)
    assert install(f"file://{shop.path}", shop.one).is_plugin(shop.plugin(b"one")).trust == "pinned"

    def moves(n, kind, answer):
        if kind == "ls-refs":
            shop.repo.git("tag", "-f", "v1", shop.off)
        return answer
    with Scripted(shop.repo, moves) as server:
        assert install(server.url, "v1").is_plugin(shop.plugin(b"two")).commit == shop.two


@pytest.mark.parametrize("nth", range(4))
def test_cut_answers(install, honest, nth):
    """Each answer, ended at many places: with its connection, as a whole of
    less, and shorter than it was said to be."""
    places = (lambda n: 0, lambda n: 1, lambda n: 20, lambda n: n // 2, lambda n: n - 5, lambda n: n - 4, lambda n: n - 1)
    for place in places:
        for ends in (lambda a, n: iter([a[:n]]), lambda a, n: a[:n],
                     lambda a, n: (200, {"Content-Length": str(len(a))}, iter([a[:n]]))):
            with Scripted(honest.repo, lambda i, k, a: ends(a, place(len(a))) if i == nth else a) as server:
                install(server.url, "v1").refused()
                assert len(server.requests) == nth + 1


@pytest.mark.parametrize("answer, words", [
    ((200, {"Content-Type": "text/html"}, b"<html>Please log in</html>"), "not a git server: it answers with text/html"),
    ((200, {"Content-Type": "text/plain"}, b"x"), "not a git server"),
    ((200, {"Content-Encoding": "gzip"}, b"x"), "compresses"),
    ((401, {"WWW-Authenticate": "Basic"}, b""), "wants credentials"),
    ((403, {}, b""), "does not allow"),
    ((404, {}, b""), "no such repository"),
    ((500, {}, b"boom"), "the server failed (HTTP 500)"),
    ((302, {"Location": "https://user:pw@elsewhere.example/x"}, b""), "redirects elsewhere"),
    ((204, {}, b""), "HTTP 204"),
    (b"", "empty answer"),
    (b"0000", "empty"),
    (b"<html>", "not git's protocol"),
    (b"0019ERR access \x1b[1mdenied\n", "the git server says: access denied"),
], ids=lambda x: None if isinstance(x, str) else str(x)[:30])
def test_other_answers(install, honest, answer, words):
    with Scripted(honest.repo, lambda n, k, a: answer) as server:
        got = install(server.url).refused(words)
        assert "pw" not in got.ran.err.decode() and len(server.requests) == 1
    if answer != b"0000":
        for kind in ("ls-refs", "fetch"):
            with Scripted(honest.repo, changed(kind, lambda n, a: answer)) as server:
                got = install(server.url).refused()
                assert "pw" not in got.ran.err.decode()


def test_a_band_that_fails(install, honest):
    def lost(n, a):
        return git_servers.pkt("packfile\n") + git_servers.band(b"fatal: unable to read 67506bcb\n", 2) + \
            git_servers.band(b"aborting due to possible repository corruption on the remote side.\n", 3)
    with Scripted(honest.repo, changed("fetch", lost)) as server:
        install(server.url).refused("the git server says: aborting due to possible repository corruption")
    with Scripted(honest.repo, changed("fetch", lambda n, a: a[:-4] + git_servers.band(b"no after all", 3) + b"0000")) as server:
        install(server.url).refused("the git server says: no after all")


MEASURE = """import os, resource, sys
status = os.spawnv(os.P_WAIT, sys.argv[2], sys.argv[2:])
open(sys.argv[1], "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(status)"""


def measured(install, url, ref, tmp_path):
    """An install, and the most memory that it took, in MiB. A process of its own
    measures: a child begins with the figure of whoever forked it."""
    home = install.home()
    note = tmp_path / "most"
    ran = Program(home)(*install.command(url, ref, None, ()), wrap=(sys.executable, "-S", "-c", MEASURE, str(note)))
    return Got(ran, home), int(note.read_text()) / 1024


def endless(head, block):
    """10 GB on the side band."""
    yield git_servers.pkt("packfile\n") + git_servers.band(head)
    piece = git_servers.band(block, size=65515)
    for _ in range((10 << 30) // len(block)):
        yield piece


def stored(n):
    return b"\0" + struct_le(n) + struct_le(n ^ 0xffff) + bytes(n)


def struct_le(n):
    return n.to_bytes(2, "little")


def bomb():
    import zlib
    z = zlib.compressobj(9)
    head = z.compress(b"") + z.flush(zlib.Z_FULL_FLUSH)
    z.compress(bytes(1 << 20))
    z = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = z.compress(bytes(1 << 20)) + z.flush(zlib.Z_FULL_FLUSH)
    return head, block


def wide_tree():
    entry = b"".join(b"100644 %07d\0" % i + b"i" * 20 for i in range(2000000))
    text = git_servers.commit_text(git_servers.object_id("tree", entry))
    return git_servers.object_id("commit", text), git_servers.make_pack([("commit", text), ("tree", entry)])


def test_too_much(install, honest, tmp_path):
    """10 GB, zip bombs, a tree of 2,000,000 entries, deltas in a circle: E8010,
    and little memory."""
    import struct
    head = b"PACK" + struct.pack(">II", 2, 9)
    big = head + git_servers.packed_head("blob", 10 << 30)
    many = head + git_servers.packed_head("blob", 900 << 20) + b"\x78\x01"
    block = stored(65535) * 16
    z_head, z_block = bomb()
    zip_bomb = head + b"".join(git_servers.packed_head("blob", 100 << 20) + z_head for _ in range(1))
    x, y = bytes.fromhex("11" * 20), bytes.fromhex("22" * 20)
    loop = git_servers.make_pack([("commit", b"tree x\n"), ("ref", x, b"\1\1\x90\1"), ("ref", y, b"\1\1\x90\1")])
    wide, wide_pack = wide_tree()
    refs = git_servers.pkt("1" * 40 + " refs/heads/" + "x" * 60000 + "\n")
    cases = {
        "a huge blob": (lambda: endless(big, block), "becomes more than", None),
        "10 GB": (lambda: endless(many, block), "a git pack of more than", None),
        "a zip bomb": (lambda: endless(zip_bomb, z_block * 60), "does not inflate to its size", None),
        "keep-alives": (lambda: iter([git_servers.pkt("packfile\n"), git_servers.band(b"\1" * 65000, 2) * 1000, b"0000"]), "too early", None),
        "a circle": (lambda: git_servers.answer_with(loop), "a delta without its base", None),
        "a wide tree": (lambda: git_servers.answer_with(wide_pack), "has more than", wide),
    }
    for name, (body, words, ref) in cases.items():
        with Scripted(honest.repo, changed("fetch", lambda n, a: body())) as server:
            got, memory = measured(install, server.url, ref or honest.one, tmp_path)
            got.refused(words)
            assert memory < 32, (name, memory)
    with Scripted(honest.repo, changed("ls-refs", lambda n, a: iter([refs] * 100000))) as server:
        got, memory = measured(install, server.url, "main", tmp_path)
        got.refused("lists more than")
        assert memory < 32, memory


def test_memory_of_a_full_pack(install, work, tmp_path):
    """A plugin of nearly 50 MiB that does not compress, all in one pack."""
    repo = Repo(work / "large.git")
    repo.config("uploadpack.allowFilter", "false")
    repo.config("core.compression", "0")
    files = {**PLUGIN, **{f"f{i}": os.urandom(1 << 20) for i in range(48)}}
    commit = repo.commit(files)
    repo.config("pack.window", "0")         # the server would look for deltas for a minute
    got, memory = measured(install, f"file://{repo.path}", commit, tmp_path)
    assert got.is_plugin(files).trust == "pinned"
    assert memory < 64, memory


def test_silence(install, honest, tmp_path):
    """Nothing comes for 30 s, in every place where something should; and Ctrl-C
    does not wait for that."""
    def hold(n, a):
        def body():
            yield a[:len(a) // 2]
            time.sleep(60)
        return body()
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "git-upload-pack").write_text("#!/bin/sh\nexec sleep 1000\n")
    (bin / "git-upload-pack").chmod(0o755)
    path = {"PATH": f"{bin}:{os.environ['PATH']}"}
    servers = [Scripted(honest.repo, changed(kind, hold)) for kind in ("advertisement", "ls-refs", "fetch")]
    begin = time.monotonic()
    runs = [install.start(s.url, "v1") for s in servers] + [install.start("file:///x", env=path)]
    stopped = [install.start(s.url, "v1") for s in servers] + [install.start("file:///x", env=path)]
    time.sleep(1)
    for process in stopped:
        process.send_signal(signal.SIGINT)
    for process in stopped:
        process.communicate(timeout=10)
        assert process.returncode == 130
    assert time.monotonic() - begin < 12
    for process in runs:
        _, err = process.communicate(timeout=DEADLINE)
        assert process.returncode == 1
        error = json.loads(err.splitlines()[-1])["error"]
        assert error["code"] == "E8010" and "30 s" in error["message"], error
    assert 29 < time.monotonic() - begin < 38
    for server in servers:
        server.__exit__()
