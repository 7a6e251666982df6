"""abx agent serve: files and folders."""

import hashlib
import os
import resource
import socket
import stat
import subprocess
import threading
import time
import urllib.parse

import pytest

from agent import agent, Agent, form, FORM, NOBODY, one, part, wait_for

ROOT = os.geteuid() == 0
NAMES = ["plain.txt", "with space", "Grüße 世界.txt", "a$b ${HOME}", "quote\"'`", "-rf", "~", "back\\slash", "new\nline", "tab\t", "%41", "a+b&c=d#e?f"]


def leftovers(folder):
    return [os.path.join(at, f) for at, _, files in os.walk(folder) for f in files if f.startswith(".abx-")]


@pytest.mark.parametrize("name", NAMES)
def test_names(agent, name):
    data = os.urandom(1000)
    path = str(agent.folder / "new" / "deep" / name)
    assert agent.upload(({"path": path, "mode": 640}, data)).status == 200
    assert agent.get("/files/download", path=path).body == data
    info = agent.get("/files/info", path=path).doc
    assert list(info) == [path]
    entry = info[path]
    assert list(entry) == ["path", "type", "size", "modified_at", "created_at", "owner", "group", "mode"]
    assert (entry["path"], entry["type"], entry["size"], entry["mode"]) == (path, "file", 1000, 640)
    listed = agent.get("/directories/list", path=os.path.dirname(path)).doc
    assert [e["path"] for e in listed] == [path]
    assert agent.get("/files/search", path=str(agent.folder), pattern=name.replace("\\", "\\\\")).doc == listed
    assert agent.request("POST", "/files/mv", [{"src": path, "dest": path + ".2"}]).status == 200
    assert agent.request("POST", "/files/replace?verbose=true", {path + ".2": {"old": "\0\0\0\0\0", "new": ""}}).status == 200
    assert agent.request("DELETE", "/files?path=" + urllib.parse.quote(path + ".2")).status == 200
    assert os.listdir(os.path.dirname(path)) == []


@pytest.mark.parametrize("cut", [0, 1, 60, 100, 137, 138, 200, 250, 300, 400])
def test_a_cut_upload_leaves_what_was(one, tmp_path, cut):
    target = tmp_path / "f"
    target.write_bytes(b"old")
    whole = form(part("metadata", b'{"path":"%s"}' % str(target).encode()), part("file", b"new" * 100))
    head = b"POST /files/upload HTTP/1.1\r\nHost: h\r\nContent-Type: multipart/form-data; boundary=B\r\nContent-Length: %d\r\n\r\n"
    with one.connect() as s:
        s.sendall(head % len(whole) + whole[:cut])
        time.sleep(0.05)
    wait_for(lambda: not leftovers(tmp_path))
    assert target.read_bytes() == b"old" and os.listdir(tmp_path) == ["f"]
    # a body that is whole for HTTP and cut for multipart
    got = one.raw(head % cut + whole[:cut], shut=True)
    assert got.startswith(b"HTTP/1.1 400 "), got
    assert target.read_bytes() == b"old" and os.listdir(tmp_path) == ["f"]


def test_a_reader_sees_old_or_new(one, tmp_path):
    target, seen, stop = tmp_path / "f", set(), threading.Event()
    old, new = b"o" * 200000, b"n" * 300000
    target.write_bytes(old)

    def look():
        while not stop.is_set():
            seen.add(target.read_bytes())
    t = threading.Thread(target=look)
    t.start()
    for _ in range(20):
        assert one.upload(({"path": str(target)}, new)).status == 200
        assert one.upload(({"path": str(target)}, old)).status == 200
    stop.set()
    t.join()
    assert seen <= {old, new}


def test_modes_and_owners(one, tmp_path):
    f = tmp_path / "f"
    assert one.upload(({"path": str(f)}, b"x")).status == 200
    assert stat.S_IMODE(f.stat().st_mode) == 0o755
    f.chmod(0o6640)
    assert one.upload(({"path": str(f)}, b"y")).status == 200
    assert stat.S_IMODE(f.stat().st_mode) == 0o6640 and f.read_bytes() == b"y"
    assert one.upload(({"path": str(f), "mode": 600}, b"z")).status == 200
    assert stat.S_IMODE(f.stat().st_mode) == 0o600
    for bad in ({"mode": 999}, {"mode": 77777}, {"mode": -1}, {"mode": "644"}, {"owner": "nobodyhere"}, {"group": "nobodyhere"}):
        refused = one.upload(({"path": str(f), **bad}, b"bad"))
        assert refused.status == 500 and refused.doc["code"] == "RUNTIME_ERROR", refused
        assert f.read_bytes() == b"z"
        refused = one.request("POST", "/files/permissions", {str(f): bad})
        assert refused.status == 500 and refused.doc["code"] == "RUNTIME_ERROR", refused
    if ROOT:
        assert one.upload(({"path": str(f), "owner": "nobody", "group": "nogroup"}, b"w")).status == 200
        assert (f.stat().st_uid, f.stat().st_gid) == (NOBODY, NOBODY)
        assert one.upload(({"path": str(f)}, b"v")).status == 200
        assert (f.stat().st_uid, f.stat().st_gid) == (NOBODY, NOBODY)
        assert one.request("POST", "/files/permissions", {str(f): {"mode": 4711, "owner": "0", "group": "root"}}).status == 200
        assert (f.stat().st_uid, stat.S_IMODE(f.stat().st_mode)) == (0, 0o4711)
    missing = one.request("POST", "/files/permissions", {str(tmp_path / "none"): {"mode": 600}})
    assert missing.status == 500


def test_links_are_followed_by_upload(one, tmp_path):
    real = tmp_path / "d" / "real"
    (tmp_path / "link").symlink_to("d/real")
    assert one.upload(({"path": str(tmp_path / "link")}, b"1")).status == 200
    assert real.read_bytes() == b"1" and (tmp_path / "link").is_symlink()
    assert one.upload(({"path": str(tmp_path / "link")}, b"2")).status == 200
    assert real.read_bytes() == b"2" and (tmp_path / "link").is_symlink()
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert one.upload(({"path": str(tmp_path / "a")}, b"2")).status == 500
    os.link(real, tmp_path / "hard")
    one.upload(({"path": str(real)}, b"3"))
    assert (tmp_path / "hard").read_bytes() == b"2"


def test_what_is_no_file_is_not_uploaded_to(one, tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "fifo")
    sock = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(tmp_path)
    sock.bind("sock")
    for path in (tmp_path, tmp_path / "fifo", tmp_path / "sock", "/dev/null", str(tmp_path) + "/new/", "/proc/nope/x", tmp_path / ("n" * 300)):
        answer = one.upload(({"path": str(path)}, b"x" * 1000))
        assert answer.status == 500 and answer.doc["code"] == "RUNTIME_ERROR", (path, answer)
    (tmp_path / "f").write_bytes(b"")
    assert one.upload(({"path": str(tmp_path / "f/g")}, b"x")).status == 500
    assert not leftovers(tmp_path)
    sock.close()


@pytest.mark.parametrize("body, kind, code", [
    (form(part("metadata", b'{"path":"/x"}', None), part("file", b"x")), FORM, "INVALID_FILE_METADATA"),
    (form(part("metadata", b"{bad"), part("file", b"x")), FORM, "INVALID_FILE_METADATA"),
    (form(part("metadata", b"[]"), part("file", b"x")), FORM, "INVALID_FILE_METADATA"),
    (form(part("metadata", b"{}"), part("file", b"x")), FORM, "INVALID_FILE_METADATA"),
    (form(part("metadata", b'{"path":""}'), part("file", b"x")), FORM, "INVALID_FILE_METADATA"),
    (form(part("metadata", b'{"path":"a\\u0000b"}'), part("file", b"x")), FORM, "INVALID_FILE_METADATA"),
    (form(part("metadata", b'{"path":"' + b"x" * 2000000 + b'"}'), part("file", b"x")), FORM, "INVALID_FILE_METADATA"),
    (form(part("file", b"x"), part("metadata", b'{"path":"/x"}')), FORM, "INVALID_FILE_METADATA"),
    (form(part("metadata", b'{"path":"x1"}')), FORM, "INVALID_FILE_CONTENT"),
    (form(part("metadata", b'{"path":"x1"}'), part("file", b"x"), part("file", b"y")), FORM, "INVALID_FILE"),
    (form(part("metadata", b'{"path":"x1"}'), part("metadata", b'{"path":"x2"}'), part("file", b"x")), FORM, "INVALID_FILE"),
    (form(), FORM, "INVALID_FILE_METADATA"), (b"", FORM, "INVALID_FILE"), (b"garbage", FORM, "INVALID_FILE"),
    (b"--B\r\nX: " + b"y" * 20000, FORM, "INVALID_FILE"), (b"{}", [("Content-Type", "application/json")], "INVALID_FILE"),
    (b"{}", [("Content-Type", "multipart/form-data")], "INVALID_FILE"), (b"{}", [], "INVALID_FILE"),
    (form(*[part("metadata", b'{"path":"x1"}'), part("file", b"")] * 501), FORM, "INVALID_FILE"),
])
def test_bad_uploads_change_nothing(one, tmp_path, body, kind, code):
    answer = one.request("POST", "/files/upload", body, kind)
    assert answer.status == 400 and answer.doc["code"] == code, answer
    assert os.listdir(tmp_path) == []


def test_several_files_in_any_order(one, tmp_path):
    metas = [part("metadata", b'{"path":"%s/%d"}' % (str(tmp_path).encode(), i)) for i in range(3)]
    files = [part("file", b"%d" % i * 70000) for i in range(3)]
    assert one.request("POST", "/files/upload", form(*metas, *files), FORM).status == 200
    assert [(tmp_path / str(i)).read_bytes() for i in range(3)] == [b"%d" % i * 70000 for i in range(3)]
    assert one.request("POST", "/files/upload", form(metas[0], files[1], part("other", b"x", None), metas[1], files[0]), FORM).status == 200
    assert (tmp_path / "0").read_bytes()[:1] == b"1" and (tmp_path / "1").read_bytes()[:1] == b"0"


def test_chunked_upload_and_expect(one, tmp_path):
    body = form(part("metadata", b'{"path":"%s/f"}' % str(tmp_path).encode()), part("file", b"x" * 1000))
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 7]), body[i:i + 7]) for i in range(0, len(body), 7)) + b"0\r\n\r\n"
    head = b"POST /files/upload HTTP/1.1\r\nHost: h\r\nContent-Type: multipart/form-data; boundary=B\r\nConnection: close\r\n"
    assert one.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks).startswith(b"HTTP/1.1 200 OK\r\n")
    assert (tmp_path / "f").read_bytes() == b"x" * 1000
    with one.connect() as s:
        s.sendall(head + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert s.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        s.sendall(body)
        assert s.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_limit_on_file_size(tmp_path):
    """Writing fails in the middle, and says so while the client still sends."""
    a = Agent(tmp_path, limits=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000000, 1000000)))
    (tmp_path / "f").write_bytes(b"old")
    answer = a.upload(({"path": str(tmp_path / "f")}, b"x" * 30000000))
    assert answer.status == 500 and "too large" in answer.doc["message"].lower(), answer
    assert (tmp_path / "f").read_bytes() == b"old" and os.listdir(tmp_path) == ["f"]
    assert a.upload(({"path": str(tmp_path / "f")}, b"x" * 1000000)).status == 200
    assert "1000000" in a.request("POST", "/command", {"command": "ulimit -f -H | grep -q unlimited || stat -c %s f"}).body.decode()
    a.close()


@pytest.mark.skipif(not ROOT, reason="only root mounts")
def test_a_full_disk_and_a_mounted_file(tmp_path):
    small, f = tmp_path / "small", tmp_path / "file"
    small.mkdir()
    f.write_bytes(b"below")
    (tmp_path / "over").write_bytes(b"over")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], check=True)
    subprocess.run(["mount", "--bind", tmp_path / "over", f], check=True)
    a = Agent(tmp_path)
    try:
        (small / "f").write_bytes(b"old")
        answer = a.upload(({"path": str(small / "f")}, b"x" * 3000000))
        assert answer.status == 500 and "No space left" in answer.doc["message"], answer
        assert (small / "f").read_bytes() == b"old" and os.listdir(small) == ["f"]
        # a file that something is mounted on cannot be renamed over
        assert a.upload(({"path": str(f)}, b"through the mount")).status == 200
        assert f.read_bytes() == b"through the mount" == (tmp_path / "over").read_bytes()
        assert not leftovers(tmp_path)
        subprocess.run(["mount", "-o", "remount,ro", small], check=True)
        assert a.upload(({"path": str(small / "g")}, b"x")).status == 500
        assert a.upload(({"path": str(small / "f")}, b"x")).status == 500
    finally:
        a.close()
        subprocess.run(["umount", f], check=True)
        subprocess.run(["umount", small], check=True)


@pytest.mark.skipif(not ROOT, reason="needs another user")
def test_a_folder_that_may_not_be_written(tmp_path):
    a = Agent(tmp_path, NOBODY)
    d = a.folder / "d"
    d.mkdir()
    (d / "mine").write_bytes(b"old and longer")
    os.chown(d / "mine", NOBODY, NOBODY)
    (d / "foreign").write_bytes(b"old")
    assert a.upload(({"path": str(d / "mine")}, b"new")).status == 200      # in place, then
    assert (d / "mine").read_bytes() == b"new" and sorted(os.listdir(d)) == ["foreign", "mine"]
    for name in ("foreign", "other"):
        assert a.upload(({"path": str(d / name)}, b"new")).status == 500
    assert (d / "foreign").read_bytes() == b"old"
    a.close()


def test_large_files_in_flat_memory(one, tmp_path):
    block = os.urandom(1 << 20)
    big = tmp_path / "big"
    body_head = b"--B\r\n" + part("metadata", b'{"path":"%s"}' % str(big).encode()) + b"\r\n--B\r\n" + part("file", b"")
    tail = b"\r\n--B--\r\n"
    with one.connect(60) as s:
        s.sendall(b"POST /files/upload HTTP/1.1\r\nHost: h\r\nContent-Type: multipart/form-data; boundary=B\r\nContent-Length: %d\r\n\r\n"
                  % (len(body_head) + len(tail) + 200 * len(block)) + body_head)
        for _ in range(200):
            s.sendall(block)
        s.sendall(tail)
        assert s.recv(1000).startswith(b"HTTP/1.1 200 ")
    assert big.stat().st_size == 200 << 20
    with one.connect(60) as s:
        s.sendall(b"GET /files/download?path=%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" % str(big).encode())
        time.sleep(0.3)             # nobody reads
        got, n = hashlib.sha256(), 0
        rest = s.recv(1 << 20)
        rest = rest[rest.index(b"\r\n\r\n") + 4:]
        while rest:
            got.update(rest)
            n += len(rest)
            rest = s.recv(1 << 20)
    want = hashlib.sha256()
    for _ in range(200):
        want.update(block)
    assert n == 200 << 20 and got.digest() == want.digest()
    assert one.memory() < 8192, one.memory()


def test_download(one, tmp_path):
    f = tmp_path / "a.txt"
    f.write_bytes(b"line1\nline2\nline3\nline4\n")

    def down(headers=(), **query):
        return one.get("/files/download", headers, path=str(f), **query)
    whole = down()
    assert whole.body == f.read_bytes() and whole.header("Accept-Ranges") == "bytes"
    for asked, want, at in (("bytes=0-4", b"line1", "0-4"), ("bytes=6-", b"line2\nline3\nline4\n", "6-23"), ("bytes=-6", b"line4\n", "18-23"),
                            ("bytes=0-1,4-5", b"li", "0-1"), ("bytes=20-99", b"ne4\n", "20-23")):
        answer = down({"Range": asked})
        assert (answer.status, answer.body, answer.header("Content-Range")) == (206, want, f"bytes {at}/24"), answer
    for asked in ("bytes=24-", "bytes=100-200", "lines=1-2", "bytes=5-4", "bytes=x"):
        answer = down({"Range": asked})
        assert answer.status == 416 and answer.header("Content-Range") == "bytes */24", answer
        assert int(answer.header("Content-Length")) == len(answer.body)
    assert down({"If-Modified-Since": whole.header("Last-Modified")}).status == 304
    assert down({"If-Modified-Since": "Mon, 30 Nov 1998 02:58:47 GMT"}).status == 200
    assert down({"If-Modified-Since": "yesterday"}).status == 200
    assert down(offset=2, limit=2).body == b"line2\nline3"
    assert down(offset=9).body == b"" and down(limit=1).body == b"line1"
    for bad in ({"offset": 0}, {"offset": "x"}, {"limit": -1}, {"limit": 0}):
        assert down(**bad).status == 400
    assert down({"Range": "bytes=0-1"}, offset=1).status == 400
    assert one.get("/files/download", path="/proc/self/comm").body in (b"execd\n", b"abx\n", os.path.basename(one.process.args[0]).encode()[:15] + b"\n")
    assert one.get("/files/download", path=str(tmp_path / "none")).doc["code"] == "FILE_NOT_FOUND"
    assert one.request("GET", "/files/download").doc["code"] == "MISSING_QUERY"
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, tmp_path / "fifo", "/dev/zero"):
        answer = one.get("/files/download", path=str(path))
        assert answer.status == 500 and answer.doc["code"] == "RUNTIME_ERROR"


def test_lists(one, tmp_path):
    (tmp_path / "d/e/f").mkdir(parents=True)
    for name in ("b", "a", "d/x", "d/e/y"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "link").symlink_to("d")
    (tmp_path / "dangling").symlink_to("nowhere")

    def names(**query):
        return [os.path.relpath(e["path"], tmp_path) for e in one.get("/directories/list", path=str(tmp_path), **query).doc]
    assert names() == ["a", "b", "d", "dangling", "link"]
    assert names(depth=2) == ["a", "b", "d", "d/e", "d/x", "dangling", "link"]
    assert names(depth=99) == ["a", "b", "d", "d/e", "d/e/f", "d/e/y", "d/x", "dangling", "link"]
    assert names(depth=0) == []
    kinds = {os.path.basename(e["path"]): e["type"] for e in one.get("/directories/list", path=str(tmp_path)).doc}
    assert kinds == {"a": "file", "b": "file", "d": "directory", "dangling": "symlink", "link": "symlink"}
    found = [os.path.relpath(e["path"], tmp_path) for e in one.get("/files/search", path=str(tmp_path), pattern="[a-y]").doc]
    assert found == ["a", "b", "d/e/y", "d/x"]
    assert len(one.get("/files/search", path=str(tmp_path)).doc) == 6
    for path, status in ((tmp_path / "link", 400), (tmp_path / "a", 400), (tmp_path / "none", 404)):
        assert one.get("/directories/list", path=str(path)).status == status
    assert one.get("/directories/list", path=str(tmp_path), depth="x").status == 400
    assert one.get("/files/search", path=str(tmp_path / "none")).status == 404
    assert one.get("/directories/list", path=str(tmp_path) + "/d/").doc[0]["path"] == f"{tmp_path}/d/e"


def test_large_lists_in_flat_memory(one, tmp_path):
    for i in range(30000):
        open(tmp_path / f"file-with-a-long-name-{i:06}", "w").close()
    listed = one.get("/directories/list", path=str(tmp_path))
    assert listed.header("Transfer-Encoding") == "chunked"
    assert [e["path"] for e in listed.doc] == [f"{tmp_path}/file-with-a-long-name-{i:06}" for i in range(30000)]
    assert one.get("/files/search", path=str(tmp_path), pattern="nope").doc == []
    assert one.memory() < 8192, one.memory()
    with one.connect() as s:        # one that goes away in the middle
        s.sendall(b"GET /directories/list?path=%s HTTP/1.1\r\nHost: h\r\n\r\n" % str(tmp_path).encode())
        s.recv(1000)
    assert one.request("GET", "/ping").status == 200
    assert one.request("DELETE", f"/directories?path={tmp_path}/file-with-a-long-name-000000&path={tmp_path}/").status == 200
    assert not tmp_path.exists()
    tmp_path.mkdir()


def test_folders_made_and_removed(one, tmp_path):
    d = tmp_path / "d"
    assert one.request("POST", "/directories", {f"{d}/e": {"mode": 750}, f"{tmp_path}/z/": {"mode": 0}}).status == 200
    assert stat.S_IMODE((d / "e").stat().st_mode) == 0o750 and stat.S_IMODE(d.stat().st_mode) == 0o755
    assert one.request("POST", "/directories", {f"{d}/e": {"mode": 700}}).status == 200
    assert stat.S_IMODE((d / "e").stat().st_mode) == 0o750      # it was there
    (tmp_path / "f").write_bytes(b"")
    for bad in (f"{tmp_path}/f", f"{tmp_path}/f/g", "/proc/x/y"):
        assert one.request("POST", "/directories", {bad: {}}).status == 500
    for bad in ([], 1, {"": {}}, {str(tmp_path / "new"): {"mode": 8}}):
        assert one.request("POST", "/directories", bad).status in (400, 500)
    assert not (tmp_path / "new").exists()
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "x").write_bytes(b"")
    (d / "link").symlink_to(kept)
    (tmp_path / "toplink").symlink_to(kept)
    assert one.request("DELETE", f"/directories?path={d}&path={tmp_path}/toplink&path={tmp_path}/none&path={tmp_path}/f").status == 200
    assert sorted(os.listdir(tmp_path)) == ["kept", "z"] and os.listdir(kept) == ["x"]
    for bad in ("/", "/.", f"{kept}/.", f"{kept}/..", "//"):
        assert one.request("DELETE", "/directories?path=" + bad).status == 400
    assert os.listdir(kept) == ["x"]
    assert one.request("DELETE", f"/files?path={kept}").status == 500
    assert one.request("DELETE", f"/files?path={kept}/x&path={kept}/y").status == 200 and os.listdir(kept) == []


def test_a_tree_deeper_than_a_path(one, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("top")
    os.chdir("top")
    for _ in range(450):
        os.mkdir("0123456789")
        os.chdir("0123456789")
    open("leaf", "w").close()
    os.chdir(tmp_path)
    assert len(one.get("/directories/list", path=str(tmp_path), depth=9999).doc) > 300
    assert one.request("DELETE", f"/directories?path={tmp_path}/top", timeout=60).status == 200
    assert os.listdir(tmp_path) == []


def test_move(one, tmp_path):
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    (tmp_path / "d").mkdir()

    def move(src, dest):
        return one.request("POST", "/files/mv", [{"src": str(tmp_path / src), "dest": str(tmp_path / dest)}])
    assert move("a", "new/dir/a").status == 200 and (tmp_path / "new/dir/a").read_bytes() == b"a"
    for dest in ("b", "d", "new/dir/a"):
        answer = move("new/dir/a", dest)
        assert answer.status == 500 and answer.doc["code"] == "RUNTIME_ERROR", answer
    assert (tmp_path / "b").read_bytes() == b"b"
    assert move("none", "x").status == 404
    assert move("new", "d/new").status == 200 and (tmp_path / "d/new/dir/a").exists()
    assert move("d", "d/inside").status == 500
    for bad in ({}, [{}], [{"src": "a"}], [1], 3, "x"):
        assert one.request("POST", "/files/mv", bad).status == 400


def test_replace_over_every_edge(one, tmp_path):
    """The window is 64 KiB: matches lie across its ends."""
    f = tmp_path / "f"
    for shift in range(-12, 3):
        data = b"x" * (65536 + shift) + b"needle" + b"y" * 65530 + b"needleneedl" + b"needle"
        f.write_bytes(data)
        answer = one.request("POST", "/files/replace?verbose=true", {str(f): {"old": "needle", "new": "pin"}})
        assert answer.doc == {str(f): {"replacedCount": 3}}
        assert f.read_bytes() == data.replace(b"needle", b"pin")
    f.write_bytes(b"aaaa")
    f.chmod(0o640)
    inode = f.stat().st_ino
    assert one.request("POST", "/files/replace", {str(f): {"old": "b", "new": "c"}}).body == b""
    assert f.stat().st_ino == inode                         # nothing to do, nothing done
    assert one.request("POST", "/files/replace", {str(f): {"old": "aa", "new": "世"}}).status == 200
    assert f.read_text() == "世世" and stat.S_IMODE(f.stat().st_mode) == 0o640
    assert one.request("POST", "/files/replace", {str(f): {"old": "", "new": "c"}}).status == 400
    assert one.request("POST", "/files/replace", {str(tmp_path / "none"): {"old": "a", "new": "c"}}).status == 404
    assert one.request("POST", "/files/replace", {str(tmp_path): {"old": "a", "new": "c"}}).status == 500
    assert os.listdir(tmp_path) == ["f"]


def test_info_of_many(one, tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "l").symlink_to("a")
    info = one.request("GET", f"/files/info?path={tmp_path}/a&path={tmp_path}/l&path={tmp_path}").doc
    assert [v["type"] for v in info.values()] == ["file", "symlink", "directory"]
    assert one.request("GET", f"/files/info?path={tmp_path}/a&path={tmp_path}/none").doc["code"] == "FILE_NOT_FOUND"
    assert one.request("GET", "/files/info").doc == {}
    assert one.request("GET", "/files/info?path=%00").status == 404 and one.request("GET", "/files/info?path=").status == 404
