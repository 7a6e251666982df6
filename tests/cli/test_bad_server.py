"""Servers that break off, lie, flood and babble: abx never says that it is done
when it does not know, and says what is wrong in one line."""

import os
import re
import sys

import pytest

import scripted
from scripted import CLOSE, HOLD, RESET, KEY, answer, chunked, cut, event, instead

LINE = b"hello\n"


def final(whole):
    """Where the last byte that matters stands: the end of the final event, for
    abx stops there, else the end of the answer."""
    at = max(whole.rfind(b'"type":"execution_complete"'), whole.rfind(b'"type":"error"'))
    return whole.index(b"}\n", at) + 2 if at >= 0 else len(whole)


class Verb:
    def __init__(self, *words, check=None):
        self.words, self.check = words, check


def with_box(server, tmp):
    server.box()
    server.commands["echo"] = [event(type="stdout", text="hello"), event(type="execution_complete", execution_time=5)]
    server.files["/tmp/f"] = (b"old in the sandbox", 600)
    (tmp / "local").write_bytes(b"data" * 10)
    (tmp / "target").write_bytes(b"old here")


def whole_upload(server, tmp, ran):
    """The target is the old file or the new one, whole."""
    assert server.files["/tmp/f"][0] in (b"old in the sandbox", b"data" * 10)
    if ran.status == 0:
        assert server.files["/tmp/f"][0] == b"data" * 10


def whole_download(server, tmp, ran):
    assert sorted(set(os.listdir(tmp)) - {"peak"}) == ["local", "target"], "a temporary file stayed"
    if ran.status:
        assert (tmp / "target").read_bytes() == b"old here"


VERBS = {
    "create": Verb("sandbox", "create"),
    "info": Verb("sandbox", "info", "box-1"),
    "list": Verb("sandbox", "list"),
    # The scripted server takes no program: what is tried here is the backend's own call (the agent's: test_carry).
    "exec": Verb("--agent", "never", "sandbox", "exec", "box-1", "echo"),
    "upload": Verb("sandbox", "upload", "box-1", "local", "/tmp/f", check=whole_upload),
    "download": Verb("sandbox", "download", "box-1", "/tmp/f", "target", check=whole_download),
    "kill": Verb("sandbox", "kill", "box-1"),
    "pause": Verb("sandbox", "pause", "box-1"),
    "url": Verb("sandbox", "url", "box-1", "80"),
}


def run(osb, server, tmp, verb, script, json_form=True, env=None):
    server.clear()
    with_box(server, tmp)
    server.script = script
    ran = osb(*(["--json"] if json_form else []), *verb.words,
              env={"ABX_HTTP_TIMEOUT": "2", "ABX_OPENSANDBOX_READY_TIMEOUT": "2", **(env or {})})
    assert KEY.encode() not in ran.out + ran.err, ran
    if ran.status:
        ran.failed_well(json_form)
    if verb.check:
        verb.check(server, tmp, ran)
    return ran


def answers_of(osb, server, tmp, verb):
    ran = run(osb, server, tmp, verb, None)
    assert ran.status == 0, ran
    return list(zip(map(repr, server.requests), server.answers))


@pytest.mark.parametrize("name", VERBS)
def test_every_answer_cut_after_every_byte(osb, server, tmp_path, name):
    verb = VERBS[name]
    usual = answers_of(osb, server, tmp_path, verb)
    assert usual
    for nth, (asked, whole) in enumerate(usual):
        for k in range(final(whole)):
            ran = run(osb, server, tmp_path, verb, cut(nth, k))
            again = [str(r) for r in server.requests[nth + 1:]].count(str(server.requests[nth]))
            where = f"{asked}: {whole[:k]!r}: {ran}"
            if ran.status == 0:
                assert again, f"success on an answer that was cut: {where}"
                assert asked.startswith("GET"), f"asked again: {where}"
            if asked.startswith("POST /v1/sandboxes"):
                assert [r.method for r in server.requests].count("POST") == 1, f"created twice: {where}"
                assert ran.status != 0


@pytest.mark.parametrize("name", ["create", "info", "exec", "upload", "download", "kill"])
@pytest.mark.parametrize("json_form", [True, False])
def test_reset_in_the_middle(osb, server, tmp_path, name, json_form):
    verb = VERBS[name]
    for nth, (asked, whole) in enumerate(answers_of(osb, server, tmp_path, verb)):
        for k in (0, 1, 20, final(whole) - 1):
            ran = run(osb, server, tmp_path, verb, cut(nth, k, RESET), json_form)
            assert ran.status != 0 or asked.startswith("GET"), (asked, ran)


def head(*lines):
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


GOOD = b'{"id":"new-1"}'
GARBAGE = {
    "random bytes": [bytes(range(256)) * 4],
    "no answer": [CLOSE],
    "a banner": [b"SSH-2.0-OpenSSH_9.2\r\n", CLOSE],
    "HTTP/0.9": [b"<html>hello</html>", CLOSE],
    "HTTP/2": [b"HTTP/2 200\r\ncontent-length: 0\r\n\r\n", CLOSE],
    "status of letters": [b"HTTP/1.1 abc OK\r\ncontent-length: 0\r\n\r\n", CLOSE],
    "status 99": [b"HTTP/1.1 99 No\r\ncontent-length: 0\r\n\r\n", CLOSE],
    "html 200": [answer(200, b"<!doctype html><title>Welcome</title><p>router login", kind="text/html")],
    "html 502": [answer(502, b"<html><body><h1>502 Bad Gateway</h1></body></html>", kind="text/html")],
    "html 404 of a proxy": [answer(407, b"<html>Proxy</html>", kind="text/html")],
    "redirect": [answer(302, headers=["location: http://127.0.0.1:1/"])],
    "redirect loop": [answer(307, headers=["location: /v1/sandboxes"])],
    "not json": [answer(200, b"{not json}")],
    "half json": [answer(200, b'{"id":"new-1"')],
    "json array": [answer(200, b"[]")],
    "json null": [answer(200, b"null")],
    "json of other types": [answer(200, b'{"id":5,"status":[],"endpoint":{},"items":7}')],
    "json without keys": [answer(200, b"{}")],
    "json deep": [answer(200, b"[" * 100000)],
    "json not utf-8": [answer(200, b'{"id":"\xff\xfe"}')],
    "two lengths": [head("HTTP/1.1 200 OK", "content-length: 14", "content-length: 5") + GOOD, CLOSE],
    "length of letters": [head("HTTP/1.1 200 OK", "content-length: abc") + GOOD, CLOSE],
    "length below zero": [head("HTTP/1.1 200 OK", "content-length: -1") + GOOD, CLOSE],
    "length of 2^64": [head("HTTP/1.1 200 OK", "content-length: 18446744073709551616") + GOOD, CLOSE],
    "length of 2^63": [head("HTTP/1.1 200 OK", "content-length: 9223372036854775807") + GOOD, CLOSE],
    "length too long": [head("HTTP/1.1 200 OK", "content-length: 15") + GOOD, CLOSE],
    "length and chunks": [head("HTTP/1.1 200 OK", "content-length: 14", "transfer-encoding: chunked") + GOOD, CLOSE],
    "chunk of letters": [head("HTTP/1.1 200 OK", "transfer-encoding: chunked") + b"xyz\r\n", CLOSE],
    "chunk of 2^64": [head("HTTP/1.1 200 OK", "transfer-encoding: chunked") + b"10000000000000000\r\n", CLOSE],
    "chunk without its end": [head("HTTP/1.1 200 OK", "transfer-encoding: chunked") + b"5\r\nhelloXX0\r\n\r\n", CLOSE],
    "unknown encoding": [head("HTTP/1.1 200 OK", "transfer-encoding: gzip, x") + GOOD, CLOSE],
    "folded header": [head("HTTP/1.1 200 OK", "x: a", " b", "content-length: 14") + GOOD, CLOSE],
    "header without colon": [head("HTTP/1.1 200 OK", "nonsense", "content-length: 14") + GOOD, CLOSE],
    "NUL in a header": [head("HTTP/1.1 200 OK", "x: \0", "content-length: 14") + GOOD, CLOSE],
    "bare CR": [b"HTTP/1.1 200 OK\r\nx: a\rb\r\ncontent-length: 14\r\n\r\n" + GOOD, CLOSE],
    "100 for ever": [head("HTTP/1.1 100 Continue")] * 100 + [CLOSE],
    "switching protocols": [head("HTTP/1.1 101 Switching Protocols", "upgrade: x"), CLOSE],
    "hostile words": [answer(400, {"code": "X\x1b[31m", "message": "a\nb\r\x1b]0;owned\x07\u202e" + "z" * 5000})],
    "the key said back": [answer(400, {"code": "X", "message": f"bad key {KEY}!"})],
    "the key in html": [answer(500, f"<html>{KEY}</html>".encode(), kind="text/html")],
    "401": [answer(401, {"code": "INVALID_API_KEY", "message": "no"})],
    "403": [answer(403, {"code": "FORBIDDEN", "message": "no"})],
    "409": [answer(409, {"code": "DOCKER::SANDBOX_NOT_RUNNING", "message": "Sandbox is not in a running state."})],
    "422": [answer(422, {"detail": [{"type": "missing", "loc": ["body", "image"], "msg": "Field required"}]})],
    "429": [answer(429, {"code": "KUBERNETES::POOL_CAPACITY_EXHAUSTED", "message": "empty"}, headers=["retry-after: 1"])],
    "500": [answer(500, {"code": "SANDBOX::INTERNAL_ERROR", "message": "oops"})],
    "501": [answer(501, {"code": "FSB::API_NOT_SUPPORTED", "message": "no"})],
    "503": [answer(503, b"Service Unavailable", kind="text/plain", headers=["connection: close"]), CLOSE],
}


# Well-formed answers of status 200.
BODIES = ["html 200", "not json", "half json", "json array", "json null", "json of other types", "json without keys",
          "json deep", "json not utf-8"]

# Wrong only in a body, which an answer to a ping has none of.
UNREAD = ["length of 2^63", "length too long", "chunk of letters", "chunk of 2^64", "chunk without its end"]


def test_unhelpful_answers(osb, server, tmp_path):
    """Every such answer in place of every answer of every verb."""
    statuses = {}
    for name, verb in VERBS.items():
        for nth, (asked, whole) in enumerate(answers_of(osb, server, tmp_path, verb)):
            for what, pieces in GARBAGE.items():
                ran = run(osb, server, tmp_path, verb, instead(nth, *pieces))
                where = f"{what}, for {asked}: {ran}"
                if ran.status == 0:
                    # A body that nobody needs, and a file's, may be anything; and a read may be asked again.
                    free = whole.endswith(b"\r\n\r\n") or "/files/download" in asked
                    unread = UNREAD if "/ping" in asked else []
                    again = [str(r) for r in server.requests[nth + 1:]].count(str(server.requests[nth]))
                    assert (free and what in BODIES + unread) or (asked.startswith("GET") and again), where
                else:
                    statuses.setdefault(what, set()).add(ran.error["code"])
                assert "\n" not in (ran.error["message"] if ran.status else ""), where
    assert statuses["401"] <= {"E1001", "E9001"}, statuses["401"]


def test_hostile_words_in_text(osb, server, tmp_path):
    for json_form in (True, False):
        ran = run(osb, server, tmp_path, VERBS["info"], instead(0, *GARBAGE["hostile words"]), json_form)
        assert ran.status in (1, 2) and len(ran.err) < 8000
        if json_form:
            assert ran.err.count(b"\n") == 1 and b"\x1b" not in ran.err


@pytest.mark.parametrize("name", ["info", "list", "exec", "download"])
def test_surplus_is_not_the_next_answer(osb, server, tmp_path, name):
    """Two answers to one question, and bytes behind the length: what is left
    over must never be taken for the answer to the next request."""
    forged = answer(200, {"id": "forged", "status": {"state": "Running"}, "endpoint": "127.0.0.1:1/forged", "items": []})
    for nth, (asked, whole) in enumerate(answers_of(osb, server, tmp_path, VERBS[name])):
        for extra in (forged, b"x", b"\r\n" * 10):
            ran = run(osb, server, tmp_path, VERBS[name], instead(nth, whole + extra))
            assert b"forged" not in ran.out, (asked, ran)
            ran = run(osb, server, tmp_path, VERBS[name], instead(nth, whole, 0.01, extra))
            assert b"forged" not in ran.out, (asked, ran)


def flood(first, piece, times):
    yield first
    for _ in range(times):
        yield piece


def flooded(nth, what):
    """In place of the nth answer, and then the connection is closed."""
    return lambda request, whole: [FLOODS[what](), CLOSE] if request.index == nth else [whole]


FLOODS = {
    "100 MB of headers": lambda: flood(b"HTTP/1.1 200 OK\r\n", b"x-header: " + b"y" * 1000 + b"\r\n", 100_000),
    "one header of 100 MB": lambda: flood(b"HTTP/1.1 200 OK\r\nx: ", b"y" * 1000, 100_000),
    "a status line of 100 MB": lambda: flood(b"HTTP/1.1 200 ", b"y" * 1000, 100_000),
    "bytes without a line": lambda: flood(b"", b"\0" * 1000, 100_000),
    "endless chunks": lambda: flood(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1000\r\n" + b" " * 4096 + b"\r\n", 25_000),
    "endless small chunks": lambda: flood(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n" * 1000, 3_000),
    "an endless chunk line": lambda: flood(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;", b"x" * 1000, 100_000),
    "endless trailers": lambda: flood(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"t: x\r\n" * 100, 100_000),
    "a body without end": lambda: flood(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 4096, 25_000),
    "endless interim answers": lambda: flood(b"", b"HTTP/1.1 102 Processing\r\n\r\n", 1_000_000),
    "an error without end": lambda: flood(b"HTTP/1.1 500 Oops\r\n\r\n", b"x" * 4096, 25_000),
}


# A process counts the memory of the one that it was forked from, before exec,
# as its own; so a small one stands between this one and the program.
MEASURE = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[2:])
open(sys.argv[1], "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(status)
"""


def peak(osb, server, tmp, verb, script):
    """A run, and the most memory it ever had, in KiB."""
    server.clear()
    with_box(server, tmp)
    server.script = script
    ran = osb("--json", *verb.words, env={"ABX_HTTP_TIMEOUT": "20"},
              wrap=[sys.executable, "-I", "-S", "-c", MEASURE, str(tmp / "peak")])
    return ran, int((tmp / "peak").read_text())


@pytest.mark.parametrize("what", FLOODS)
@pytest.mark.parametrize("name", ["info", "exec", "create"])
def test_floods_are_refused_in_little_memory(osb, server, tmp_path, name, what):
    verb = VERBS[name]
    usual = answers_of(osb, server, tmp_path, verb)
    for nth in {0, len(usual) - 1} if name == "exec" else {0}:
        ran, kib = peak(osb, server, tmp_path, verb, flooded(nth, what))
        ran.failed_well(json_form=True)
        assert kib < 24 * 1024, f"{kib} KiB"


@pytest.mark.parametrize("name", ["info", "list", "kill", "url"])
def test_a_silent_server_is_given_up(osb, server, tmp_path, name):
    verb = VERBS[name]
    for pieces in ((HOLD,), (b"HTTP/1.1 200 OK\r\ncontent-le", HOLD), (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{", HOLD)):
        ran = run(osb, server, tmp_path, verb, instead(0, *pieces), env={"ABX_HTTP_TIMEOUT": "1"})
        assert ran.status in (1, 5) and ran.error["code"] in ("E5000", "E5001"), ran


def test_nobody_there(osb, tmp_path):
    ran = osb("--json", "sandbox", "info", "x", env={"ABX_OPENSANDBOX_BASE_URL": "http://127.0.0.1:1"})
    assert ran.status == 1 and ran.error["code"] == "E5001" and "127.0.0.1" in ran.error["message"]


# --- what the daemon streams ---

STREAMS = {
    "nothing": [],
    "no final event": [event(type="init", text="c0ffee"), event(type="stdout", text="hello")],
    "garbage": [b"garbage\n\n"],
    "not an object": [b"[1]\n\n", b"5\n\n"],
    "half an event": [event(type="init", text="c0ffee"), b'{"type":"stdout"'],
    "text of a wrong type": [event(type="init", text="c0ffee"), event(type="stdout", text=5)],
    "an exit code of words": [event(type="init", text="c0ffee"),
                              event(type="error", error={"ename": "CommandExecError", "evalue": "fork/exec: no such file"})],
    "an exit code too large": [event(type="init", text="c0ffee"),
                               event(type="error", error={"ename": "CommandExecError", "evalue": "99999999999999999999"})],
    "an error without a code": [event(type="init", text="c0ffee"), event(type="error")],
    "a deep event": [b"[" * 100000 + b"\n\n"],
}


@pytest.mark.parametrize("what", STREAMS)
def test_streams_that_make_no_sense(osb, server, tmp_path, what):
    for json_form in (True, False):
        script = lambda request, whole: [chunked(STREAMS[what])] if request.path.endswith("/command") else [whole]
        ran = run(osb, server, tmp_path, VERBS["exec"], script) if json_form else None
        if not json_form:
            server.clear()
            with_box(server, tmp_path)
            server.script = script
            ran = osb("sandbox", "exec", "box-1", "echo")
            assert ran.status in (125, 126, 127), ran
            assert re.search(rb"\[E\d{4}\] ", ran.err), ran
        assert ran.status != 0


def test_standard_framing_is_read_too(osb, server, tmp_path):
    events = [b"data: " + e for e in (event(type="init", text="c0ffee"), event(type="stdout", text="hello"),
                                      event(type="execution_complete"))]
    script = lambda request, whole: [chunked(events)] if request.path.endswith("/command") else [whole]
    assert run(osb, server, tmp_path, VERBS["exec"], script).doc["stdout"] == "hello\n"


def test_cut_downloads_of_any_length(osb, server, tmp_path):
    """A body that ends early, by length, by chunks and by closing."""
    data = os.urandom(100_000)
    for start in (head("HTTP/1.1 200 OK", "content-length: 100000"),
                  head("HTTP/1.1 200 OK", "transfer-encoding: chunked") + b"186a0\r\n"):
        script = lambda request, whole: [start + data[:60_000], CLOSE] if "download" in request.path else [whole]
        ran = run(osb, server, tmp_path, VERBS["download"], script)
        assert ran.status == 1, ran
        server.script = script
        ran = osb("sandbox", "download", "box-1", "/tmp/f", "-")
        assert ran.status == 1 and data.startswith(ran.out) and ran.err, ran.status
