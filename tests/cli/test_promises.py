"""What servers, daemons and local files can do to make abx lie, lose something,
hang or fall over: the promises of the README, seen from behind."""

import json
import os
import signal
import time

import pytest

import scripted
from scripted import CLOSE, HOLD, KEY, answer, chunked, event

QUICK = {"ABX_HTTP_TIMEOUT": "2", "ABX_OPENSANDBOX_READY_TIMEOUT": "2"}


def at(method, path, *pieces):
    """Other bytes where this is asked; a path that ends in * is the beginning of one."""
    def script(request, whole):
        same = request.path.startswith(path[:-1]) if path.endswith("*") else request.path == path
        return list(pieces) if request.method == method and same else [whole]
    return script


# --- nothing of others is touched ---

def test_undoing_a_create_removes_what_carries_its_label_and_nothing_else(osb, server):
    for i in range(3):
        server.box(f"other-{i}")

    def script(request, whole):
        if request.method == "POST":
            return [CLOSE]
        if request.method == "GET":     # a server that does not know the filter
            return [answer(200, {"items": [b.show() for b in server.boxes.values()]})]
        return [whole]

    server.script = script
    ran = osb("sandbox", "create", env=QUICK)
    assert ran.status != 0
    assert sorted(server.boxes) == ["other-0", "other-1", "other-2"], ran
    assert b"removed" in ran.err, ran


@pytest.mark.parametrize("ref", ["", ".", "..", "../sandboxes/box-1", "box-1/pause", "a\\b", "a\nb", "x" * 256, "opensandbox:.."])
def test_no_id_leads_to_another_path(osb, server, ref):
    server.box()
    for verb in ("kill", "info"):
        ran = osb("sandbox", verb, ref)
        assert ran.status == 2 and not server.requests, ran


# --- it always ends ---

@pytest.mark.parametrize("method, path", [("GET", "/x/box-1/files/info"), ("POST", "/x/box-1/command")])
@pytest.mark.parametrize("pieces", [[HOLD], [b"HTTP/1.1 200 OK\r\nx: ", *[0.7, b"y"] * 40, HOLD]])
def test_an_upload_does_not_wait_for_ever_for_a_small_answer(osb, server, tmp_path, method, path, pieces):
    server.box()
    (tmp_path / "local").write_bytes(b"x")
    server.script = at(method, path, *pieces)
    begun = time.monotonic()
    ran = osb("sandbox", "upload", "box-1", "local", "/tmp/f", env=QUICK)
    assert ran.status != 0, ran
    assert server.files.get("/tmp/f", (b"x", 0))[0] == b"x"     # whole, if the answer alone was lost
    assert time.monotonic() - begun < 15


def test_ctrl_c_while_a_pipe_that_is_uploaded_has_nothing_to_give(osb, server, tmp_path):
    server.box()
    os.mkfifo(tmp_path / "pipe")
    for writer in (False, True):
        proc = osb.start("sandbox", "upload", "box-1", "pipe", "/tmp/f")
        end = os.open(tmp_path / "pipe", os.O_RDWR) if writer else None
        time.sleep(0.5)
        proc.send_signal(signal.SIGINT)
        try:
            assert proc.wait(10) == 130
        finally:
            proc.kill()
            if writer:
                os.close(end)
    assert not server.files


def test_a_pipe_is_uploaded_whole(osb, server, tmp_path):
    server.box()
    os.mkfifo(tmp_path / "pipe")
    proc = osb.start("sandbox", "upload", "box-1", "pipe", "/tmp/f")
    time.sleep(0.3)
    with open(tmp_path / "pipe", "wb") as pipe:
        pipe.write(b"first ")
        pipe.flush()
        time.sleep(0.3)
        pipe.write(b"second")
    assert proc.wait(20) == 0
    assert server.files["/tmp/f"][0] == b"first second"


def test_ctrl_c_while_nobody_takes_a_download(osb, server, tmp_path):
    server.box()
    server.files["/tmp/f"] = (b"x" * 1000000, 644)
    os.mkfifo(tmp_path / "pipe")
    proc = osb.start("sandbox", "download", "box-1", "/tmp/f", "pipe")
    try:
        end = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        time.sleep(0.7)
        if proc.poll() is None:         # with nobody at the other end it may be refused at once
            proc.send_signal(signal.SIGINT)
        assert proc.wait(10) != 0
        os.close(end)
    finally:
        proc.kill()


@pytest.mark.parametrize("verb", ["exec", "download"])
def test_ctrl_c_while_bytes_never_stop(osb, server, tmp_path, verb):
    """Into a file, which never makes abx wait, and faster than it can read."""
    server.box()
    block = event(type="stdout", text="x" * 100) * 20000
    block = b"%x\r\n%s\r\n" % (len(block), block)
    head = answer(200)[:-4].replace(b"content-length: 0", b"transfer-encoding: chunked") + b"\r\n\r\n"
    path = "/x/box-1/command" if verb == "exec" else "/x/box-1/files/download"
    server.script = lambda request, whole: [head, (block for _ in range(4000))] if request.path == path and \
        request.method != "DELETE" else [whole]
    words = ["exec", "--agent", "never", "box-1", "yes"] if verb == "exec" else ["download", "box-1", "/f", "target"]
    with open(tmp_path / "out", "wb") as out:
        proc = osb.start("sandbox", *words, stdout=out)
        time.sleep(0.4)
        proc.send_signal(signal.SIGINT)
        try:
            assert proc.wait(5) == 130
        finally:
            proc.kill()
    assert sorted(os.listdir(tmp_path)) == ["out"]


def test_a_sandbox_that_never_stops_before_the_agent(osb, server):
    """Where the agent is to be carried, noise has an end."""
    server.box()
    block = event(type="stdout", text="x" * 100) * 20000
    head = answer(200)[:-4].replace(b"content-length: 0", b"transfer-encoding: chunked") + b"\r\n\r\n"
    server.script = lambda request, whole: [head, (b"%x\r\n%s\r\n" % (len(block), block) for _ in range(4000))] \
        if request.path == "/x/box-1/command" and request.method != "DELETE" else [whole]
    ran = osb("exec", "box-1", "yes")
    assert ran.status == 125 and b"[E8020]" in ran.err and b"before the agent" in ran.err, ran


def test_the_longest_timeout_does_not_end_at_once(osb, server):
    server.box()
    head = answer(200)[:-4].replace(b"content-length: 0", b"transfer-encoding: chunked") + b"\r\n\r\n"
    start, end = (chunked([event(**e)], end=False).split(b"\r\n\r\n", 1)[1]
                  for e in ({"type": "init", "text": "c0ffee"}, {"type": "execution_complete"}))
    server.script = lambda r, w: [head, start, 0.5, end] if r.path == "/x/box-1/command" else [w]
    ran = osb("--agent", "never", "sandbox", "exec", "box-1", "--timeout", "9223372036854775", "x")
    assert ran.status == 0 and server.requests[-1].method == "POST", ran


# --- nothing is made up ---

def test_an_upload_that_was_answered_early_is_not_taken_for_whole(osb, server, tmp_path):
    """The daemon says yes after a part, and what it kept is as large as what was sent."""
    server.box()
    (tmp_path / "local").write_bytes(b"a" * 3000000)
    part = {}
    real = server._body

    def body(head, stream):
        if not head.startswith(b"POST /x/box-1/files/upload"):
            return real(head, stream)
        got = stream.read(300000)
        sent.sendall(answer(200))
        while piece := stream.read1(1 << 16):
            got += piece
        part["data"] = got.split(b"\r\n\r\n", 2)[2]
        raise ValueError("enough")

    exchange = server._exchange

    def remember(sock, stream):
        nonlocal sent
        sent = sock
        return exchange(sock, stream)

    sent = None
    server._body, server._exchange = body, remember

    def script(request, whole):
        if request.path.endswith("/files/info") and ".abx-" in request.query["path"][0]:
            for _ in range(100):
                if "data" in part:
                    break
                time.sleep(0.05)
            path = request.query["path"][0]
            server.files[path] = (part["data"], 644)
            return [answer(200, {path: {"path": path, "type": "file", "size": len(part["data"]), "mode": 644}})]
        return [whole]

    server.script = script
    ran = osb("sandbox", "upload", "box-1", "local", "/tmp/f")
    assert ran.status != 0, ran
    assert "/tmp/f" not in server.files


BODY = b"half of the fi"
NOT_WHOLE = {
    "no length": b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + BODY,
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\n" + BODY,
    "a part": b"HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 0-13/99\r\ncontent-length: 14\r\n\r\n" + BODY,
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "accepted": b"HTTP/1.1 202 Accepted\r\ncontent-length: 14\r\n\r\n" + BODY,
    "compressed": b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 14\r\n\r\n" + BODY,
}


@pytest.mark.parametrize("what", NOT_WHOLE)
@pytest.mark.parametrize("target", ["target", "-"])
def test_a_download_of_which_nobody_knows_whether_it_is_whole(osb, server, tmp_path, what, target):
    server.box()
    server.files["/tmp/f"] = (b"x", 644)
    (tmp_path / "target").write_bytes(b"old")
    server.script = at("GET", "/x/box-1/files/download", NOT_WHOLE[what], CLOSE)
    ran = osb("sandbox", "download", "box-1", "/tmp/f", target)
    assert ran.status == 1 and ran.out == b"", ran
    assert (tmp_path / "target").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["target"]


def test_a_failure_with_status_0_is_no_success(osb, server):
    server.box()
    server.commands["x"] = [event(type="error", error={"ename": "CommandExecError", "evalue": "0", "traceback": []})]
    ran = osb("sandbox", "exec", "box-1", "x")
    assert ran.status == 125, ran


def test_timeout_answers_with_the_new_timeout(osb, server):
    """`timeout` is how long it lives altogether, from started_at to end_at."""
    server.box()
    server.script = lambda request, whole: [whole.replace(b"content-length", b"date: Mon, 01 Dec 2036 02:55:54 GMT\r\n"
                                                          b"content-length", 1)]
    ran = osb("--json", "sandbox", "timeout", "box-1", "20m")
    assert ran.status == 0 and ran.doc["end_at"] == "2036-12-01T03:15:54Z", ran
    assert ran.doc["timeout"] == 86400 + 1200, ran


def test_a_link_whose_target_cannot_be_said_is_not_followed_elsewhere(osb, server, tmp_path):
    server.box()
    (tmp_path / "local").write_bytes(b"new")
    path = "/tmp/link"
    server.files[path] = (b"", 777)
    server.commands["readlink -f -- /tmp/link"] = [event(type="stdout", text="/tmp/\ufffd.txt"),
                                                   event(type="execution_complete")]

    def script(request, whole):
        if request.path.endswith("/files/info") and request.query["path"] == [path]:
            return [answer(200, {path: {"path": path, "type": "symlink", "size": 5, "mode": 777}})]
        return [whole]

    def command(asked):
        if asked["command"].startswith("readlink"):
            return [event(type="init", text="c0ffee")] + server.commands["readlink -f -- /tmp/link"]
        return original(asked)

    original, server._command = server._command, command
    server.script = script
    ran = osb("sandbox", "upload", "box-1", "local", path)
    assert ran.status != 0, ran
    assert "/tmp/\ufffd.txt" not in server.files


def test_a_dangling_local_link_stays(osb, server, tmp_path):
    server.box()
    server.files["/tmp/f"] = (b"data", 644)
    os.symlink("nowhere/at all", tmp_path / "link")
    ran = osb("sandbox", "download", "box-1", "/tmp/f", "link")
    assert ran.status != 0, ran
    assert os.listdir(tmp_path) == ["link"] and os.readlink(tmp_path / "link") == "nowhere/at all"
    os.unlink(tmp_path / "link")
    os.symlink("elsewhere", tmp_path / "link")
    ran = osb("sandbox", "download", "box-1", "/tmp/f", "link")
    assert os.readlink(tmp_path / "link") == "elsewhere", ran


@pytest.mark.parametrize("words, line", [
    (["-x"], "exec sh -c ' -x'"), (["+x y"], "exec sh -c ' +x y'"), (["echo"], "exec sh -c 'echo'"),
])
def test_a_line_is_never_an_option_of_the_shell(osb, server, words, line):
    server.box()
    osb("sandbox", "exec", "box-1", "--", *words)
    assert server.requests[-1].json()["command"] == line


def test_a_program_whose_name_is_an_option_is_refused(osb, server):
    """The shell's exec would take it for its own."""
    server.box()
    ran = osb("--agent", "never", "sandbox", "exec", "box-1", "--", "-a", "ls")
    assert ran.status == 2 and not any(r.path.endswith("/command") for r in server.requests), ran


# --- hostile servers and daemons do not make it fall over ---

MUCH = b"[" + b",".join([b"0"] * 32000) + b"]"


def falls(ran):
    return b"memory" in ran.err or ran.status < 0 or ran.status == 134


def test_a_refusal_that_is_large_as_json(osb, server):
    server.box()
    server.script = at("POST", "/x/box-1/command", answer(500, MUCH))
    ran = osb("sandbox", "exec", "box-1", "x")
    assert ran.status == 125 and not falls(ran), ran


def test_a_command_status_that_is_large(osb, server):
    server.box()
    server.script = lambda r, w: ([chunked([event(type="init", text="c0ffee")])] if r.path == "/x/box-1/command" else
                                  [answer(200, b"[" + b",".join([b"0"] * 500000) + b"]")] if "status" in r.path else [w])
    ran = osb("sandbox", "exec", "box-1", "x")
    assert ran.status == 125 and not falls(ran) and b"unknown" in ran.err, ran


HEADERS = {
    "many": {f"x-{i}": "y" for i in range(60000)},
    "long": {"x": "y" * 3000000},
    "a line end": {"x": "y\r\nz: w"},
    "a name": {"x\ny": "z"},
    "no name": {"": "z"},
}


@pytest.mark.parametrize("verb", [["exec", "box-1", "x"], ["url", "box-1", "80"], ["download", "box-1", "/f", "here"]])
@pytest.mark.parametrize("what", HEADERS)
def test_headers_of_an_endpoint_that_nobody_could_send(osb, server, verb, what):
    server.box()
    server.script = at("GET", "/v1/sandboxes/box-1/endpoints/*",
                       answer(200, {"endpoint": f"127.0.0.1:{server.port}/x/box-1", "headers": HEADERS[what]}))
    ran = osb("--json", "sandbox", *verb)
    assert ran.status == 1 and ran.error["code"] == "E8020" and not falls(ran), ran
    assert len(server.requests) <= 3


def test_an_ipv6_endpoint_with_a_zone(osb, server):
    server.box()
    server.script = at("GET", "/v1/sandboxes/box-1/endpoints/*", answer(200, {"endpoint": "[fe80::1%25lo]:1/x"}))
    ran = osb("sandbox", "exec", "box-1", "x")
    assert ran.status == 125 and not falls(ran) and b"fe80::1%lo" in ran.err, ran


def box_with(metadata):
    box = scripted.Box("box-1", {"image": {"uri": "i"}, "metadata": metadata}).show()
    return answer(200, {"items": [box], "pagination": {"hasNextPage": False}})


def test_a_sandbox_with_very_much_metadata_is_listed(osb, server):
    server.script = scripted.always(box_with({f"key-{i}": "value" for i in range(100000)}))
    for form in ([], ["--json"], ["-q"]):
        ran = osb(*form, "sandbox", "list")
        assert ran.status == 0 and not falls(ran), (form, ran.status, ran.err)


def test_metadata_in_a_table_is_whole(osb, server):
    server.box(metadata={f"key-{i}": "v" * 60 for i in range(100)})
    ran = osb("sandbox", "list")
    assert ran.status == 0 and ran.out.count(b"=" + b"v" * 60) == 100, ran


def test_a_list_that_never_ends_is_given_up(osb, server):
    one = answer(200, {"items": [{"id": "b", "status": {"state": "Running"}}], "pagination": {"hasNextPage": True}})
    server.script = scripted.always(one)
    ran = osb("--json", "sandbox", "list")
    assert ran.status == 1 and ran.error["code"] == "E8020" and ran.out == b"", (ran.status, ran.err[-300:])


def test_a_filter_that_is_too_long_is_refused(osb, server):
    pairs = [w for i in range(12000) for w in ("-m", f"key-{i}=value")]
    ran = osb("sandbox", "list", *pairs)
    assert ran.status == 2 and not falls(ran) and not server.requests, (ran.status, ran.err[-300:])


def test_large_settings(osb, server):
    server.box()
    long = "x" * 120000
    ran = osb("sandbox", "info", "box-1", env={"ABX_OPENSANDBOX_ENTRYPOINT": long, "ABX_OPENSANDBOX_IMAGE": long,
                                               "ABX_OPENSANDBOX_CPU": long, "ABX_OPENSANDBOX_MEMORY": long})
    assert ran.status == 0 and not falls(ran), ran


def test_a_wait_with_large_answers(osb, server):
    """Each look at a sandbox that is not ready yet brings megabytes."""
    fat = answer(200, {"id": "new-1", "status": {"state": "Pending"},
                       "metadata": {f"k{i}": "v" * 50 for i in range(100000)}})
    count = {"n": 0}

    def script(request, whole):
        if request.method == "GET" and request.path == "/v1/sandboxes/new-1":
            count["n"] += 1
            return [fat] if count["n"] < 18 else [whole]
        return [whole]

    server.script = script
    ran = osb("sandbox", "create", env={"ABX_OPENSANDBOX_READY_TIMEOUT": "60"})
    assert ran.status == 0 and not falls(ran), (ran.status, ran.err, count)


def test_what_a_server_says_of_a_failed_switch_is_cleaned(osb, server):
    box = server.box()
    told = {**box.show(), "status": {"state": "Failed", "message": f"\x1b[31mred\x07 {KEY}\nline"}}
    server.script = at("GET", "/v1/sandboxes/box-1", answer(200, told))
    ran = osb("--json", "sandbox", "pause", "box-1")
    assert ran.status == 1 and KEY not in json.dumps(ran.error), ran
    assert "\x1b" not in ran.error["message"] and "\n" not in ran.error["message"], ran


@pytest.mark.parametrize("path", ["/" + "d/" * 2047 + "ff", "f" * 4096, "/" + "x" * 5000])
def test_paths_that_no_kernel_takes_are_refused_here(osb, server, tmp_path, path):
    server.box()
    (tmp_path / "local").write_bytes(b"x")
    for verb in (["upload", "box-1", "local", path], ["download", "box-1", path, "-"]):
        ran = osb("sandbox", *verb)
        assert ran.status == 2 and not server.requests, ran


def test_a_default_that_no_provider_can_be_called(abx):
    ran = abx("provider", "default", env={"ABX_PROVIDER": "x" * 70})
    assert ran.status == 4 and ran.out == b"" and b"E8001" in ran.err, ran


def test_a_file_that_says_it_is_empty_is_read(osb, server, tmp_path):
    server.box()
    (tmp_path / "empty").write_bytes(b"")
    assert osb("sandbox", "upload", "box-1", "/proc/version", "/tmp/v").status == 0
    assert server.files["/tmp/v"][0] == open("/proc/version", "rb").read() != b""
    assert osb("sandbox", "upload", "box-1", "empty", "/tmp/e").status == 0
    assert server.files["/tmp/e"][0] == b""


def test_the_label_of_abx_is_not_the_users(osb, server):
    ran = osb("sandbox", "create", "-m", "abx-create=mine")
    assert ran.status == 2 and not server.requests, ran


@pytest.mark.parametrize("words, path", [(["exec", "--agent", "never", "box-1", "x"], "/x/box-1/command"),
                                         (["upload", "box-1", "local", "/tmp/f"], "/x/box-1/command")])
def test_what_may_have_happened_is_said(osb, server, tmp_path, words, path):
    server.box()
    (tmp_path / "local").write_bytes(b"x")
    server.script = at("POST", path, CLOSE)
    ran = osb("sandbox", *words)
    assert ran.status in (1, 125) and b"may have been" in ran.err, ran
