"""Where plugins come from: archives as real programs write them, and hostile
ones; catalogs in files and over https."""

import gzip
import hashlib
import http.server
import io
import json
import os
import socket
import ssl
import subprocess
import tarfile
import threading
import time

import pytest

import plugins
from test_tls import Authority, free_port

TLS = os.environ.get("ABX_TEST_TLS", "mbedtls") != "none"
needs_tls = pytest.mark.skipif(not TLS, reason="this build has no TLS")
NO_VERIFY = ("--yes", "--no-verify")


@pytest.fixture
def demo(tmp_path):
    """A plugin with what archives must carry: modes, long and foreign names, large and empty files."""
    folder = plugins.plugin(tmp_path / "src/demo")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o750)
    (folder / "empty").touch()
    (folder / "read only").write_text("x")
    (folder / "read only").chmod(0o444)
    (folder / "big").write_bytes(os.urandom(700_001))
    deep = folder / ("d" * 90) / ("e" * 90)
    deep.mkdir(parents=True)
    (deep / ("f" * 90)).write_text("deep")
    return folder


def install(abx, source, *more, **kw):
    return abx("--json", "provider", "install", str(source), *NO_VERIFY, *more, **kw)


def same_tree(abx, demo, ran):
    assert ran.status == 0, ran
    assert ran.doc["tree_sha256"] == plugins.tree_digest(demo) == plugins.tree_digest(abx.home / ".abx/providers/demo")
    return ran.doc


def refused(abx, code, source, *more, says="", **kw):
    ran = install(abx, source, *more, **kw)
    assert ran.status in (1, 2, 4) and ran.error["code"] == code, ran
    assert says in ran.error["message"] + ran.error["suggestion"], ran
    store = abx.home / ".abx/providers"
    assert not [p for p in store.rglob("*") if p.is_file()] if store.exists() else True
    return ran.error["message"]


# --- archives of real programs ---

MAKERS = {
    "gnu": ["tar", "--format=gnu", "-cf"], "pax": ["tar", "--format=pax", "-cf"], "posix gz": ["tar", "--format=posix", "-czf"],
    "oldgnu": ["tar", "--format=oldgnu", "-cf"], "gnu gz": ["tar", "-czf"], "blocked": ["tar", "-b", "256", "-czf"],
    "busybox": ["busybox", "tar", "-cf"], "busybox gz": ["busybox", "tar", "-czf"],
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("inside", [False, True])
def test_archives_of_real_programs(abx, tmp_path, demo, maker, inside):
    at = tmp_path / "out/plugin-1.0.tar"
    at.parent.mkdir()
    where = ["-C", demo, "."] if inside else ["-C", demo.parent, "demo"]
    subprocess.run([*MAKERS[maker], at, *where], check=True)
    doc = same_tree(abx, demo, install(abx, at))
    assert doc["source"] == {"type": "local", "path": str(at)} and doc["trust"] == "local"
    assert oct((abx.home / ".abx/providers/demo/run").stat().st_mode) == "0o100700"
    assert oct((abx.home / ".abx/providers/demo/read only").stat().st_mode) == "0o100600"


@pytest.mark.parametrize("maker", ["v7", "ustar"])
def test_archives_without_long_names(abx, tmp_path, maker):
    demo = plugins.plugin(tmp_path / "src/demo", run="x")
    (demo / "sub").mkdir()
    (demo / "sub/x").write_text("y")
    subprocess.run(["tar", f"--format={maker}", "-czf", tmp_path / "p.tgz", "-C", demo.parent, "demo"], check=True)
    same_tree(abx, demo, install(abx, tmp_path / "p.tgz"))


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_archives_of_python(abx, tmp_path, demo, form, mode):
    with tarfile.open(tmp_path / "p.tar", mode, format=form) as tar:
        for path in sorted(demo.rglob("*")):
            if form != tarfile.USTAR_FORMAT or len(str(path.relative_to(demo))) < 200:
                tar.add(path, "/x/./" + str(path.relative_to(demo)), recursive=False)
    if form == tarfile.USTAR_FORMAT:
        (demo / ("d" * 90) / ("e" * 90) / ("f" * 90)).unlink()
    same_tree(abx, demo, install(abx, tmp_path / "p.tar"))


def test_an_archive_of_git(abx, tmp_path, demo):
    """It begins with a global header that has the commit."""
    for args in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
                 ["archive", "-o", tmp_path / "p.tar.gz", "--prefix=demo-abc/", "HEAD"]):
        subprocess.run(["git", *args], cwd=demo, check=True, env={**os.environ, "HOME": str(tmp_path)})
    (demo / "read only").chmod(0o644)
    same_tree(abx, demo, install(abx, tmp_path / "p.tar.gz"))


def test_a_working_tree_with_its_repository(abx, tmp_path, demo):
    """What .git holds is no part of the plugin, however much it is."""
    (demo / ".git").mkdir()
    for i in range(2100):
        (demo / f".git/{i}").write_text("x")
    (demo / ".git/pack").write_bytes(bytes(11 << 20))
    (demo / ".git/link").symlink_to("/etc/passwd")
    subprocess.run(["tar", "-czf", tmp_path / "p.tgz", "-C", demo.parent, "demo"], check=True)
    same_tree(abx, demo, install(abx, tmp_path / "p.tgz"))


def test_a_folder_of_an_archive(abx, tmp_path, demo):
    (demo.parent / "other").write_text("x")
    subprocess.run(["tar", "-czf", tmp_path / "p.tgz", "-C", tmp_path, "src"], check=True)
    refused(abx, "E8014", tmp_path / "p.tgz")
    refused(abx, "E8010", tmp_path / "p.tgz", "--subdir", "nowhere", says="no such folder")
    refused(abx, "E8010", tmp_path / "p.tgz", "--subdir", "../demo", says="no path of a folder")
    same_tree(abx, demo, install(abx, tmp_path / "p.tgz", "--subdir", "/demo/"))


def test_relative_paths_and_links_become_absolute(abx, tmp_path, demo):
    subprocess.run(["tar", "-czf", tmp_path / "src/p.tgz", "-C", demo.parent, "demo"], check=True)
    (tmp_path / "link").symlink_to("src")
    assert same_tree(abx, demo, install(abx, "link/p.tgz"))["source"]["path"] == str(tmp_path / "src/p.tgz")
    assert same_tree(abx, demo, install(abx, "~/link/demo", "--force"))["source"]["path"] == str(demo)


def test_digests_of_an_archive(abx, tmp_path, demo):
    at = tmp_path / "p.tgz"
    subprocess.run(["tar", "-czf", at, "-C", demo.parent, "demo"], check=True)
    right = hashlib.sha256(at.read_bytes()).hexdigest()
    wrong = right[:-1] + ("0" if right[-1] != "0" else "1")
    assert right in refused(abx, "E8011", at, "--archive-sha256", wrong)
    refused(abx, "E8002", at, "--archive-sha256", "abc")
    refused(abx, "E8010", demo, "--archive-sha256", right, says="no archive")
    refused(abx, "E8010", at, "--ref", "v1", says="--allow-insecure-transport")
    refused(abx, "E8010", demo, "--ref", "v1", says=f"file://{demo}")
    assert same_tree(abx, demo, install(abx, at, "--archive-sha256", right.upper()))["trust"] == "local"
    assert same_tree(abx, demo, install(abx, at, "--force", "--sha256", plugins.tree_digest(demo)))["trust"] == "pinned"
    # A damaged file that is not the right one is called that.
    at.write_bytes(at.read_bytes()[:-9])
    abx("provider", "uninstall", "demo", "--yes")
    refused(abx, "E8011", at, "--archive-sha256", right)
    refused(abx, "E8010", at, says="cut short")


@pytest.mark.parametrize("flag, word", [("-j", "bzip2"), ("-J", "xz")])
def test_other_compressions_are_named(abx, tmp_path, demo, flag, word):
    subprocess.run(["tar", flag, "-cf", tmp_path / "p.tgz", "-C", demo.parent, "demo"], check=True)
    refused(abx, "E8010", tmp_path / "p.tgz", says=word)


def test_what_is_no_archive(abx, tmp_path, demo):
    (tmp_path / "p.tar").write_bytes(b"<html>" * 1000)
    refused(abx, "E8010", tmp_path / "p.tar", says="no tar archive")
    (tmp_path / "empty.tar").touch()
    refused(abx, "E8010", tmp_path / "empty.tar", says="cut short")
    os.mkfifo(tmp_path / "fifo.tar")
    refused(abx, "E8010", tmp_path / "fifo.tar")
    subprocess.run(["python3", "-m", "zipfile", "-c", tmp_path / "p.zip", demo], check=True)
    refused(abx, "E8010", tmp_path / "p.zip", says="zip")
    refused(abx, "E8010", "/dev/null")


# --- hostile ones ---

def member(name, data=b"x", **more):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o644
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def archive(at, demo, *members, close=True):
    with tarfile.open(at, "w:gz", format=tarfile.GNU_FORMAT, compresslevel=1) as tar:
        tar.add(demo / "abx-provider.toml", "p/abx-provider.toml")
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return at


@pytest.mark.parametrize("what, says", [
    (member("p/../../etc/x"), ".."), (member("../x"), ".."), (member("p/.."), ".."),
    (member("p/l", b"", type=tarfile.SYMTYPE, linkname="abx-provider.toml"), "a link"),
    (member("p/l", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"), "a link"),
    (member("p/h", b"", type=tarfile.LNKTYPE, linkname="p/abx-provider.toml"), "a link"),
    (member("p/c", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=3), "a device"),
    (member("p/b", b"", type=tarfile.BLKTYPE), "a device"), (member("p/f", b"", type=tarfile.FIFOTYPE), "a FIFO"),
    (member("q/f", b"", type=tarfile.FIFOTYPE), "a FIFO"), (member("p/con"), "device"), (member("p/a\\b"), "backslash"),
    (member("p/data/x"), "data"), (member("p/ABX-PROVIDER.toml"), "case"), (member("p/abx-provider.toml"), "twice"),
    (member("p/x\x1b[31my\n."), "xy ."), (member("p/" + "n/" * 2200 + "x"), "too long"),
    (member("p/s", type=b"S"), "sparse"), (member("p/?", type=b"?"), "unknown type"),
])
def test_hostile_members(abx, tmp_path, demo, what, says):
    said = refused(abx, "E8010", archive(tmp_path / "p.tgz", demo, what), says=says)
    assert "\x1b" not in said and str(tmp_path / "p.tgz") in said


def memory(ran_env, *args):
    """Peak memory in KiB and the seconds of a run that is refused."""
    start = time.monotonic()
    out = subprocess.run(["/usr/bin/env", "python3", "-c",
                          "import os, sys\npid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)\n"
                          "_, status, usage = os.wait4(pid, 0)\nprint(usage.ru_maxrss, os.waitstatus_to_exitcode(status))",
                          *args], env=ran_env, capture_output=True, text=True, timeout=60)
    peak, status = map(int, out.stdout.split()[-2:])
    return peak, status, time.monotonic() - start, out.stderr


def bomb(at, demo, sizes):
    """Members of zeros, of which none is ever in memory here."""
    zeros = bytes(1 << 20)
    with gzip.open(at, "wb", compresslevel=1) as out:
        with tarfile.open(fileobj=out, mode="w|", format=tarfile.GNU_FORMAT) as tar:
            tar.add(demo / "abx-provider.toml", "p/abx-provider.toml")
            for name, size in sizes:
                info = tarfile.TarInfo(name)
                info.size = size
                out.write(info.tobuf(tarfile.GNU_FORMAT))
                for _ in range(size >> 20):
                    out.write(zeros)
    return at


@pytest.mark.parametrize("sizes, says, most", [
    ([("p/a", 10 << 30)], "larger than 10 MiB", 20), ([(f"p/{i}", 10 << 20) for i in range(7)], "more than 50 MiB", 80),
    ([("p/.git/a", 700 << 20)], "more than 512 MiB", 20),
])
def test_bombs(abx, tmp_path, demo, sizes, says, most):
    if sizes[0][1] > 1 << 30:
        at = tmp_path / "p.tgz"
        info = tarfile.TarInfo("p/a")
        info.size = sizes[0][1]
        at.write_bytes(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20)))
    else:
        at = bomb(tmp_path / "p.tgz", demo, sizes)
    peak, status, seconds, err = memory(abx.environment(), os.environ.get("ABX_TEST_BINARY", "./abx"), "provider", "install", str(at),
                                        *NO_VERIFY)
    assert status == 1 and "[E8010]" in err and says in err
    assert peak < most << 10 and seconds < 20


def test_too_many_files(abx, tmp_path, demo):
    many = [member(f"p/{i}", b"") for i in range(2000)]
    refused(abx, "E8010", archive(tmp_path / "p.tgz", demo, *many), says="more than 2000 files")
    assert install(abx, archive(tmp_path / "p.tgz", demo, *many[:1999])).status == 0


def test_every_truncation_is_refused(abx, tmp_path):
    demo = plugins.plugin(tmp_path / "src/demo")
    for suffix in ("tar", "tgz"):
        at = tmp_path / f"p.{suffix}"
        subprocess.run(["tar", "-czf" if suffix == "tgz" else "-cf", at, "-C", demo.parent, "demo"], check=True)
        whole = at.read_bytes()
        end = len(whole) if suffix == "tgz" else len(whole.rstrip(b"\0")) + 512
        for n in sorted({*range(0, end, max(1, end // 25)), *range(end - 9, end)}):
            at.write_bytes(whole[:n])
            assert install(abx, at).status == 1, n
    assert not (abx.home / ".abx/providers/demo").exists()


# --- catalogs ---

def index(at, *rows):
    at.write_text(json.dumps({"providers": list(rows)}))
    return at


def registry(at):
    return {"ABX_PROVIDER_REGISTRY": str(at)}


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", " {} "])
def test_a_catalog_in_a_file(abx, tmp_path, demo, form):
    at = form.format(index(tmp_path / "index.json", {"id": "demo", "version": "9", "url": "src/demo"}))
    doc = same_tree(abx, demo, install(abx, "registry:demo", env=registry(at)))
    assert doc["source"] == {"type": "catalog", "id": "demo", "registry": at.strip()} and doc["trust"] == "local"
    got = abx("--json", "provider", "update", "demo", "--check", env=registry("/nowhere"))
    assert got.status == 0 and got.doc[0]["status"] == "up-to-date", got
    (demo / "run").write_text("other")
    got = abx("--json", "provider", "update", "demo", "--check")
    assert got.doc == [{"id": "demo", "installed": "0.1.0", "available": "0.1.0", "changes": [], "status": "available"}], got


def test_the_registry_is_no_setting(abx, tmp_path, demo):
    """A working directory that names a catalog is not asked."""
    at = index(tmp_path / "index.json", {"id": "demo", "url": "src/demo"})
    (tmp_path / ".env").write_text(f"ABX_PROVIDER_REGISTRY={at}\n")
    ran = install(abx, "registry:demo", env={"ABX_PROVIDER_REGISTRY": str(tmp_path / "nowhere.json"), "ABX_ALLOW_CWD_ENV": "1"})
    assert ran.error["code"] == "E8010" and "nowhere.json" in ran.error["message"], ran


def test_refused_rows(abx, tmp_path, demo):
    at = registry(index(tmp_path / "index.json", {"id": "other", "url": "src/demo"}, {"id": "none"}, {"id": "tar", "url": "p.tar"},
                        {"id": "http", "url": "http://127.0.0.1:1/p.tgz", "sha256": "0" * 64},
                        {"id": "nosum", "url": "https://127.0.0.1:1/p.tgz"}))
    (tmp_path / "p.tar").touch()
    for id, code in (("nobody", "E8001"), ("", "E8001"), ("none", "E8002"), ("tar", "E8002"), ("http", "E8002"), ("nosum", "E8002"),
                     ("other", "E8010")):
        refused(abx, code, f"registry:{id}", env=at)
    refused(abx, "E8010", "registry:other", "--ref", "v1", env=at, says="no ref")
    for text in ("", "[]", "<html>", '{"providers": [}'):
        (tmp_path / "index.json").write_text(text)
        refused(abx, "E8010", "registry:other", env=at, says="index.json")


class Site:
    """A real https server for a folder, with answers of its own for some paths."""

    def __init__(self, folder, authority):
        self.seen, self.answers = [], {}
        site = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def __init__(self, *args):
                super().__init__(*args, directory=str(folder))

            def do_GET(self):
                site.seen.append((self.path, dict(self.headers)))
                answer = site.answers.get(self.path)
                if answer:
                    self.close_connection = True
                    return answer(self)
                super().do_GET()

            def log_message(self, *args):
                pass

        pem, key = authority
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem, key)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.handle_error = lambda *args: None
        self.url = f"https://localhost:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()


def redirect(to, status=302):
    def answer(handler):
        handler.wfile.write(f"HTTP/1.1 {status} Moved\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n".encode())
    return answer


def raw(*pieces):
    """Bytes, and seconds to wait between them."""
    def answer(handler):
        for piece in pieces:
            if isinstance(piece, bytes):
                handler.wfile.write(piece)
                handler.wfile.flush()
            else:
                time.sleep(piece)
    return answer


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls") / "ca")


@pytest.fixture
def site(tmp_path, authority, abx):
    (tmp_path / "www/sub").mkdir(parents=True)
    abx.env["ABX_CA_FILE"] = str(authority.root)
    running = Site(tmp_path / "www", authority.leaf(f"site-{time.monotonic_ns()}"))
    yield running
    running.server.shutdown()
    running.server.server_close()


@pytest.fixture
def served(tmp_path, site, demo):
    """A catalog on it with the demo in an archive."""
    at = tmp_path / "www/sub/demo.tgz"
    subprocess.run(["tar", "-czf", at, "-C", demo.parent, "demo"], check=True)
    sha256 = hashlib.sha256(at.read_bytes()).hexdigest()
    index(tmp_path / "www/sub/index.json", {"id": "demo", "version": "2", "url": "demo.tgz", "sha256": sha256})
    return sha256


@needs_tls
def test_a_catalog_over_https(abx, tmp_path, site, served, demo):
    at = f"{site.url}/sub/index.json"
    doc = same_tree(abx, demo, install(abx, "registry:demo", env=registry(at)))
    assert doc["source"] == {"type": "catalog", "id": "demo", "registry": at, "archive_sha256": served}
    assert [path for path, _ in site.seen] == ["/sub/index.json", "/sub/demo.tgz"]
    assert site.seen[0][1]["Accept"] == "application/json"
    assert not any(name in headers for _, headers in site.seen for name in ("Authorization", "Cookie"))


@needs_tls
def test_rows_of_a_catalog_over_https(abx, tmp_path, site, served, demo):
    row = {"id": "demo", "sha256": served}
    at = registry(f"{site.url}/sub/index.json")
    for url in ("/sub/demo.tgz", "../sub/./demo.tgz", f"{site.url}/sub/demo.tgz?x=1"):
        index(tmp_path / "www/sub/index.json", {**row, "url": url})
        same_tree(abx, demo, install(abx, "registry:demo", "--force", env=at))
    abx("provider", "uninstall", "demo", "--yes")
    for url, more, code in ((f"file:{demo}", {}, "E8002"), ("http://127.0.0.1:1/x", {}, "E8002"), ("demo.tgz", {"sha256": ""}, "E8002"),
                            ("demo.tgz", {"sha256": served.upper()}, "E8002"), ("demo.tgz", {"sha256": served[:-1]}, "E8002"),
                            ("nowhere.tgz", {}, "E8010"), ("index.json", {}, "E8002"), (f"{site.url}:x/", {}, "E8010"),
                            ("https://127.0.0.1:1/x", {}, "E8010"), ("https://[/", {}, "E8010")):
        index(tmp_path / "www/sub/index.json", {**row, "url": url, **more})
        refused(abx, code, "registry:demo", env=at)
    index(tmp_path / "www/sub/index.json", {**row, "url": "demo.tgz"})
    refused(abx, "E8011", "registry:demo", "--archive-sha256", "0" * 64, env=at)
    same_tree(abx, demo, install(abx, "registry:demo", "--archive-sha256", served, env=at))


@needs_tls
def test_redirects(abx, tmp_path, site, served, demo):
    at = f"{site.url}/sub/index.json"
    index(tmp_path / "www/sub/index.json", {"id": "demo", "url": "/sub/demo.tgz", "sha256": served})
    for i in range(5):
        site.answers[f"/r{i}"] = redirect(f"{site.url}/r{i + 1}" if i < 4 else "sub/index.json", (301, 302, 303, 307, 308)[i])
    same_tree(abx, demo, install(abx, "registry:demo", env=registry(f"{site.url}/r0")))
    abx("provider", "uninstall", "demo", "--yes")
    site.answers["/r"] = redirect("/r0")
    refused(abx, "E8010", "registry:demo", env=registry(f"{site.url}/r"), says="more than 5 times")
    for to in ("http://127.0.0.1:1/x", "file:///etc/passwd", "ftp://x/", "", "https://u:p@localhost/x"):
        site.answers["/r"] = redirect(to)
        refused(abx, "E8010", "registry:demo", env=registry(f"{site.url}/r"), says="redirects")
    # The archive is redirected, too, and not to http either.
    index(tmp_path / "www/sub/index.json", {"id": "demo", "url": "/r", "sha256": served})
    refused(abx, "E8010", "registry:demo", env=registry(at), says="redirects")
    site.answers["/r"] = redirect("/sub/demo.tgz")
    same_tree(abx, demo, install(abx, "registry:demo", env=registry(at)))


HEAD = b"HTTP/1.1 200 OK\r\n"


@needs_tls
@pytest.mark.parametrize("name, answer, code, says", [
    ("not found", raw(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), "E8010", "404"),
    ("broken", raw(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"), "E8010", "500"),
    ("html", raw(HEAD + b"Content-Length: 6\r\n\r\n<html>"), None, ""),
    ("short", raw(HEAD + b"Content-Length: 100\r\n\r\n{"), "E8010", ""),
    ("nothing", raw(), "E8010", ""), ("no http", raw(b"hello\r\n\r\n"), "E8010", ""),
    ("huge", raw(HEAD + b"Content-Length: 99999999999\r\n\r\n", *[b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + b"x" * (1 << 20)] * 70), None, ""),
])
def test_bad_answers(abx, tmp_path, site, served, name, answer, code, says):
    site.answers["/bad"] = answer
    refused(abx, code or "E8010", "registry:demo", env=registry(f"{site.url}/bad"), says=says)
    index(tmp_path / "www/sub/index.json", {"id": "demo", "url": "/bad", "sha256": served})
    refused(abx, code or "E8002", "registry:demo", env=registry(f"{site.url}/sub/index.json"), says=says)


@needs_tls
def test_a_slow_catalog(abx, site):
    site.answers["/slow"] = raw(7)
    start = time.monotonic()
    refused(abx, "E8010", "registry:demo", env=registry(f"{site.url}/slow"))
    assert 4 < time.monotonic() - start < 7
    site.answers["/slow"] = raw(HEAD + b"Content-Length: 99\r\n\r\n{", 7)
    start = time.monotonic()
    refused(abx, "E8010", "registry:demo", env=registry(f"{site.url}/slow"))
    assert 4 < time.monotonic() - start < 7


def test_a_catalog_over_http(abx, tmp_path, demo):
    """As the other hosts do; its archives come over https all the same."""
    body = json.dumps({"providers": [{"id": "demo", "url": "demo.tgz", "sha256": "0" * 64}]}).encode()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        def serve():
            for _ in range(2):
                conn, _ = listening.accept()
                with conn:
                    conn.recv(65536)
                    conn.sendall(HEAD + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
        threading.Thread(target=serve, daemon=True).start()
        at = registry(f"http://127.0.0.1:{listening.getsockname()[1]}/index.json")
        refused(abx, "E8001", "registry:other", env=at)
        refused(abx, "E8002", "registry:demo", env=at, says="https")


@needs_tls
def test_a_certificate_that_nobody_signed(abx, site, served):
    abx.env.pop("ABX_CA_FILE")
    refused(abx, "E8010", "registry:demo", env=registry(f"{site.url}/sub/index.json"), says="certificate")


@pytest.mark.skipif(TLS, reason="this build has TLS")
def test_without_tls(abx):
    refused(abx, "E5001", "registry:demo", env=registry("https://127.0.0.1:1/x"), says="without TLS")
    refused(abx, "E5001", "https://127.0.0.1:1/p.git", says="without TLS")


# --- sources that are refused ---

@pytest.mark.parametrize("source, code", [
    ("https://user:geheim@localhost/x", "E8012"), ("ssh://git:geheim@localhost/x", "E8012"), ("u:geheim@localhost:x", "E8012"),
    ("http://localhost/x", "E8012"), ("git://localhost/x", "E8012"), ("file:///x", "E8012"), ("ext::sh -c x", "E8012"),
    ("ssh://-oProxyCommand=touch/x", "E8012"), ("x@-oProxy:y", "E8012"), ("x@host:-y", "E8012"),
    ("./nowhere", "E8010"), ("../nowhere/x", "E8010"), ("owner/..", "E8010"), ("o/r@--upload-pack=touch", "E8010"),
    ("o/r@a b", "E8010"), ("nowhere", "E8010"), ("", "E8010"),
])
def test_refused_sources(abx, source, code):
    assert "geheim" not in refused(abx, code, source, env={"PATH": "/nowhere"})
    assert refused(abx, "E8010", "o/r@a", "--ref", "b") and refused(abx, "E8010", "o/r//a", "--subdir", "b")
