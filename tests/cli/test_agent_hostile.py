"""abx agent serve in hostile company: what would end it, hold it up, or make it say what is not so."""

import contextlib
import json
import os
import socket
import struct
import subprocess
import threading
import time

import pytest

from agent import Agent, form, FORM, NOBODY, one, part, printed, read_all, result, texts, wait_for


@pytest.mark.parametrize("method, call", [("GET", "/files/info"), ("DELETE", "/command"), ("DELETE", "/files"),
                                          ("DELETE", "/directories"), ("GET", "/files/download")])
@pytest.mark.parametrize("pair", ["a", "a=b", "path=", "path=%61", "path=/"])
def test_queries_of_very_many_names(one, method, call, pair):
    if (method, pair) == ("DELETE", "path=/"):
        pair = "path=/nosuch"
    answer = one.request(method, call + "?" + "&".join([pair] * (250000 // (len(pair) + 1))))
    assert answer.status in (200, 400, 404, 500)
    assert one.request("GET", "/ping").status == 200


def test_a_search_for_a_program_in_very_many_folders(one):
    stream = one.command("", argv=["x" * 2000], envs={"PATH": "a:" * 200000})
    assert "not found" in result(stream)


def test_children_left_behind_may_go_on_writing(one, tmp_path):
    stream = one.command("(sleep 0.3; echo late; echo later >&2; seq 100000; echo done > survived) & echo now")
    assert printed(stream) == b"now\n" and result(stream) == "0"
    wait_for(lambda: (tmp_path / "survived").exists())
    before = one.descriptors()
    wait_for(lambda: one.descriptors() <= before - 2 or one.descriptors() < 10)


class Service:
    """A port in the sandbox: `talk` is called with each connection."""

    def __init__(self, talk, receive=None):
        self.listener = socket.socket()
        if receive:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self.port = self.listener.getsockname()[1]
        self.talk = talk
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(s,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)        # or the thread waits on
        self.listener.close()


def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def test_an_answer_ended_by_a_reset_is_not_whole(one):
    def talk(s):
        s.recv(65536)
        s.sendall(b"HTTP/1.0 200 OK\r\n\r\nhalf of it")
        time.sleep(0.3)
        reset(s)

    with Service(talk) as service:
        got = one.raw(f"GET /proxy/{service.port}/ HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    assert b"half of it" in got and not got.endswith(b"0\r\n\r\n")


def test_an_answer_before_the_body_was_read(one):
    held = []

    def talk(s):
        held.append(s)
        s.recv(10)
        s.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")

    with Service(talk, receive=2304) as service, one.connect(5) as s:
        s.sendall(f"POST /proxy/{service.port}/ HTTP/1.1\r\nHost: h\r\nContent-Length: 262144\r\n\r\n".encode())
        s.sendall(b"x" * 262144)
        s.sendall(b"GET /ping HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        got = read_all(s)
    assert got.startswith(b"HTTP/1.1 413") and b"HTTP/1.1 200 OK" in got


def processor_time(pid):
    with open(f"/proc/{pid}/stat") as f:
        words = f.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def test_a_reset_behind_a_client_that_does_not_read_costs_nothing(one):
    def talk(s):
        s.recv(65536)
        s.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
        s.settimeout(1)
        try:
            while True:
                s.sendall(b"x" * 65536)
        except TimeoutError:
            reset(s)

    with Service(talk) as service, one.connect() as s:
        s.sendall(f"GET /proxy/{service.port}/ HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        time.sleep(2)
        before = processor_time(one.process.pid)
        time.sleep(1)
        assert processor_time(one.process.pid) - before < 0.2


def test_lines_that_end_in_cr_alone(one):
    """Progress of a program: as fast as other lines."""
    began = time.monotonic()
    stream = one.command("yes '' | tr '\\n' '\\r' | head -c 500000", wait=60)
    assert len(texts(stream)) == 500000
    assert time.monotonic() - began < 10


def test_what_is_uploaded_for_few_is_never_open_to_all(one, tmp_path):
    body = b"--B\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"m\"\r\n\r\n{\"path\":\"%s\",\"mode\":600}\r\n" % str(tmp_path / "key").encode()
    body += b"--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nsecret"
    with one.connect() as s:
        s.sendall(b"POST /files/upload HTTP/1.1\r\nHost: h\r\nContent-Type: multipart/form-data; boundary=B\r\n"
                  b"Content-Length: 100000\r\n\r\n" + body)
        wait_for(lambda: any(n.startswith(".abx-") for n in os.listdir(tmp_path)))
        for name in os.listdir(tmp_path):
            if name.startswith(".abx-"):
                assert os.stat(tmp_path / name).st_mode & 0o077 == 0


def test_a_download_goes_on_only_with_the_same_file(one, tmp_path):
    (tmp_path / "f").write_bytes(b"0123456789")
    path = str(tmp_path / "f")
    date = one.get("/files/download", path=path).header("Last-Modified")
    part = {"Range": "bytes=4-"}
    assert one.get("/files/download", path=path, headers={**part, "If-Range": date}.items()).status == 206
    for other in ("Mon, 30 Nov 2020 02:58:47 GMT", '"etag"', "nonsense"):
        answer = one.get("/files/download", path=path, headers={**part, "If-Range": other}.items())
        assert (answer.status, answer.body) == (200, b"0123456789")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_mode_reaches_a_mounted_file(one, tmp_path):
    over, f = tmp_path / "over", tmp_path / "f"
    for x in (over, f):
        x.write_bytes(b"old")
    subprocess.run(["mount", "--bind", over, f], check=True)
    try:
        assert one.upload(({"path": str(f), "mode": 640, "group": "daemon"}, b"new")).status == 200
        assert f.read_bytes() == b"new" and f.stat().st_mode & 0o7777 == 0o640 and f.stat().st_gid != 0
    finally:
        subprocess.run(["umount", f], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_a_file_of_another_that_may_be_written(tmp_path):
    a = Agent(tmp_path, NOBODY)
    d = a.folder / "d"
    d.mkdir()
    (d / "f").write_bytes(b"old and longer")
    (d / "f").chmod(0o666)
    assert a.upload(({"path": str(d / "f")}, b"new")).status == 200
    assert (d / "f").read_bytes() == b"new" and os.listdir(d) == ["f"]
    assert a.upload(({"path": str(d / "f"), "mode": 600}, b"newer")).status == 500
    d.chmod(0o1777)                 # a name of another's cannot be taken there, its content can
    assert a.upload(({"path": str(d / "f")}, b"newest")).status == 200
    assert (d / "f").read_bytes() == b"newest" and os.listdir(d) == ["f"]
    a.close()


def test_long_heads_do_not_stay_in_memory(one):
    with contextlib.ExitStack() as all:
        for _ in range(100):
            s = all.enter_context(one.connect())
            s.sendall(b"GET /ping HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 250000 + b"\r\n\r\n")
            assert s.recv(4096).startswith(b"HTTP/1.1 200")
        assert one.memory("VmRSS") < 8192, one.memory("VmRSS")


def test_results_are_kept_longer_than_output(one):
    stream = one.command("echo first; exit 3", background=True)
    for _ in range(201):
        assert one.request("POST", "/command", {"command": "exit 0", "background": True}).status == 200
    first = stream[0]["text"]
    # what has ended by then is looked at when another one is over
    wait_for(lambda: one.command("true") and one.get(f"/command/{first}/logs").status == 400)
    assert "no longer kept" in one.get(f"/command/{first}/logs").doc["message"]
    assert one.get(f"/command/status/{first}").doc["exit_code"] == 3


def test_a_file_of_variables_that_is_too_long(tmp_path):
    a = Agent(tmp_path, env={"EXECD_ENVS": str(tmp_path / "env")})
    (tmp_path / "env").write_text("A=1\n")
    assert printed(a.command("echo $A")) == b"1\n"
    (tmp_path / "env").write_text("A=" + "1" * (1 << 20) + "\n")
    answer = a.request("POST", "/command", {"command": "echo $A"})
    assert answer.status == 400 and "too long" in answer.doc["message"]
    a.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_replace_loses_nothing_where_it_cannot_rename(tmp_path):
    a = Agent(tmp_path, NOBODY)
    d = a.folder / "d"
    d.mkdir()
    (d / "f").write_bytes(b"old text")
    os.chown(d / "f", NOBODY, NOBODY)
    for old in ("text", "other"):
        answer = a.request("POST", "/files/replace", {str(d / "f"): {"old": old, "new": "new"}})
        assert answer.status == 500 and "folder" in answer.doc["message"], answer
        assert (d / "f").read_bytes() == b"old text"
    # a request that is refused before its first byte changes nothing there, either
    assert a.request("POST", "/files/upload", form(part("metadata", json.dumps({"path": str(d / "f")}).encode())), FORM).status == 400
    assert (d / "f").read_bytes() == b"old text"
    assert a.upload(({"path": str(d / "f")}, b"")).status == 200
    assert (d / "f").read_bytes() == b""
    a.close()


def test_files_whose_size_says_nothing(one, tmp_path):
    for path in ("/proc/version", "/sys/class/net/lo/mtu"):
        with open(path, "rb") as f:
            assert one.get("/files/download", path=path).body == f.read()
    (tmp_path / "link").symlink_to("/usr")
    for call in ("/files/search", "/directories/list"):
        answer = one.get(call, path=str(tmp_path / "link"))
        assert answer.status == 400 and "symbolic link" in answer.doc["message"]
