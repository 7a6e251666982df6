"""Files from a forge's archive: taken where they have the commit's ids, and
asked for by their ids where they have not. The forge is nginx on an address of
loopback that /etc/hosts, as the program sees it, gives for github.com."""

import gzip
import io
import os
import tarfile

import pytest

from conftest import Program
from git_servers import Nginx, Repo, git
from test_git import PLUGIN, TEXT, Got, Installer
from test_tls import Authority, needs_tls

pytestmark = needs_tls
FORGE = "127.0.44.1"
FILES = {**PLUGIN, ".gitattributes": b"secret export-ignore\nstamp export-subst\n", "secret": b"not in the archive\n",
         "stamp": b"$Format:%H$\n", "big": os.urandom(300000)}


class Forge:
    def __init__(self, work):
        (work / "repos").mkdir()
        (work / "nginx" / "archives").mkdir(parents=True)
        self.repo = Repo(work / "repos" / "p.git")
        self.commit = self.repo.commit(FILES)
        self.deep = self.repo.commit({f"plugins/demo/{k}": v for k, v in FILES.items()}
                                     | {f"other/{i}/x": b"%d" % i for i in range(30)})
        authority = Authority(work / "ca")
        self.server = Nginx(work / "nginx", work / "repos", authority.leaf("hub", "DNS:github.com,DNS:codeload.github.com"),
                            FORGE)
        self.archives = work / "nginx" / "archives"
        self.hosts = work / "hosts"
        self.hosts.write_text(f"127.0.0.1 localhost\n{FORGE} github.com codeload.github.com\n")
        self.env = {"ABX_CA_FILE": str(authority.root)}

    def archive(self, commit, text=None):
        """Put one there: as git makes it, or other bytes."""
        path = self.archives / f"{commit}.tar.gz"
        if text is None:
            text = self.made(commit)
        path.write_bytes(text)

    def made(self, commit):
        return git(self.repo.path, "archive", "--format=tar.gz", f"--prefix=p-{commit}/", commit, text=False)


@pytest.fixture(scope="module")
def forge(tmp_path_factory):
    f = Forge(tmp_path_factory.mktemp("forge"))
    yield f
    f.server.close()


@pytest.fixture
def hub(tmp_path, forge):
    """Installs o/p; what was asked for is in `asked` then, and `wants` says how
    many objects were asked for by their ids in the end."""
    for path in forge.archives.iterdir():
        path.unlink()
    installer = Installer(tmp_path)

    def run(ref, subdir=None, *more):
        home = installer.home()
        forge.server.requests()
        wrap = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(forge.hosts))
        got = Got(Program(home)(*installer.command("https://github.com/o/p", ref, subdir, more), wrap=wrap, env=forge.env), home)
        run.asked = [line.split(" ")[1] for line in forge.server.requests()]
        return got
    return run


def test_archive(hub, forge):
    """The pin is proved, not believed: what export-ignore left out and what
    export-subst changed comes by its id."""
    forge.archive(forge.commit)
    assert hub(forge.commit).is_plugin(FILES).trust == "pinned"
    assert hub.asked == ["/o/p/info/refs?service=git-upload-pack", "/o/p/git-upload-pack",
                         f"/o/p/archive/{forge.commit}.tar.gz", f"/archives/{forge.commit}.tar.gz", "/o/p/git-upload-pack"]


def test_a_whole_archive(hub, forge):
    """Nothing further is asked for when all of it is right."""
    commit = forge.repo.commit(PLUGIN)
    forge.archive(commit)
    assert hub(commit).is_plugin().trust == "pinned"
    assert len(hub.asked) == 4 and hub.asked[-1].startswith("/archives/")


def tar_of(files, prefix="p-x/"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name, data in files:
            info = tarfile.TarInfo(prefix + name)
            info.size, info.mode = len(data), 0o755
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def test_an_archive_that_lies(hub, forge):
    """Whatever it holds, what is installed is what the commit has."""
    plain = [(k, v[1] if isinstance(v, tuple) else v) for k, v in FILES.items()]
    good = forge.made(forge.commit)
    for name, archive in {
        "nothing there": None, "no archive": b"<html>", "empty": b"", "cut": good[:len(good) // 2],
        "other contents": tar_of([(k, v + b"x") for k, v in plain]),
        "modes": tar_of(plain), "files twice": tar_of([(k, b"x") for k, v in plain] + plain),
        "more files": tar_of(plain + [("more", b"x"), ("../up", b"x"), ("data/x", b"x"), ("/abs", b"x")]),
        "a large file": tar_of([("big", bytes(11 << 20))] + plain),
        "a bomb": gzip.compress(bytes(200 << 20)),
    }.items():
        forge.archive(forge.commit, archive) if archive is not None else None
        got = hub(forge.commit)
        assert got.trust == "pinned", (name, got.ran)
        got.is_plugin(FILES)


def test_a_small_folder(hub, forge):
    """Of a large repository: its files alone are asked for."""
    forge.archive(forge.deep)
    assert hub(forge.deep, "plugins/demo").is_plugin(FILES).trust == "pinned"
    assert hub.asked == ["/o/p/info/refs?service=git-upload-pack", "/o/p/git-upload-pack", "/o/p/git-upload-pack"]


def test_no_filter(hub, forge):
    """Then everything comes at once, and no archive is asked for."""
    forge.archive(forge.commit)
    forge.repo.config("uploadpack.allowFilter", "false")
    assert hub(forge.commit).is_plugin(FILES).trust == "pinned"
    assert hub.asked == ["/o/p/info/refs?service=git-upload-pack", "/o/p/git-upload-pack"]
    forge.repo.config("uploadpack.allowFilter", "true")


def test_what_cannot_be_proved(hub, forge):
    """The archive has a file otherwise, and the server has lost it: E8012, unless
    that is allowed, and then it is no pin."""
    commit = forge.repo.commit({**FILES, "lost": TEXT + b"lost"})
    forge.archive(commit)
    lost = forge.repo.git("rev-parse", f"{commit}:stamp")
    path = forge.repo.path / "objects" / lost[:2] / lost[2:]
    kept = path.read_bytes()
    path.chmod(0o644)
    path.unlink()
    try:
        hub(commit).refused("1 of the files in the archive", "--allow-unverified", code="E8012")
        got = hub(commit, None, "--allow-unverified")
        assert got.trust == "unpinned"
        assert got.files["stamp"] == ("100644", commit.encode() + b"\n")
        assert "secret" not in got.files        # as the archive has it
    finally:
        path.write_bytes(kept)
