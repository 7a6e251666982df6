"""abx agent serve: commands, their output, their end."""

import http.client
import json
import os
import signal
import time

import pytest

from agent import agent, Agent, alive, events, NOBODY, one, printed, result, texts, wait_for

ROOT = os.geteuid() == 0


def test_stream_looks_like_stock(agent):
    answer = agent.request("POST", "/command", {"command": "echo hi; echo; echo err >&2; exit 3"})
    assert answer.header("content-type") == "text/event-stream"
    assert answer.header("transfer-encoding") == "chunked"
    stream = events(answer)
    assert [list(e) for e in stream[:2]] == [["type", "text", "timestamp"]] * 2
    assert stream[0]["type"] == "init" and len(stream[0]["text"]) == 32 and stream[1]["text"] == "pong"
    assert texts(stream) == ["hi", "\n"] and texts(stream, "stderr") == ["err"]
    assert stream[-1]["error"] == {"ename": "CommandExecError", "evalue": "3", "traceback": ["exit status 3"]}
    assert all("b64" not in e for e in stream)


@pytest.mark.parametrize("line, value, trace", [
    ("true", "0", None), ("exit 255", "255", "exit status 255"), ("nosuchcommand", "127", "exit status 127"),
    ("kill -9 $$", "-1", "signal: killed"), ("kill -TERM $$", "-1", "signal: terminated"),
    ("kill -40 $$", "-1", "signal: signal 40"),
])
def test_results(one, line, value, trace):
    stream = one.command(line)
    assert result(stream) == value
    if trace:
        assert stream[-1]["error"]["traceback"] == [trace]
    status = one.get("/command/status/" + stream[0]["text"]).doc
    assert status["exit_code"] == int(value) and status["running"] is False and status["content"] == line
    assert status.get("error") == trace
    assert list(status) == ["id", "content", "running", "exit_code"] + ["error"] * bool(trace) + ["started_at", "finished_at"]


NASTY = {
    "nothing": b"", "no newline": b"a", "blank lines": b"\n\n\na\n\n", "crlf": b"a\r\nb\r\n\r\n", "cr": b"1%\r2%\r100%\n", "cr at the end": b"a\r",
    "all bytes": bytes(range(256)), "invalid": b"caf\xc3\n\xff\xfe\n", "valid": "café 你好 \U0001f600\n".encode(),
    "nul": b"a\0b\n\0", "json": b'<&>"\\\x1b[0m\x7f\n', "long": b"x" * 700000 + b"\n", "long, unended": b"y" * 600001,
    "many": b"".join(b"%d\n" % i for i in range(100000)), "noise": os.urandom(300000),
}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", NASTY)
def test_output_is_exact(one, tmp_path, name, exact):
    (tmp_path / "out").write_bytes(NASTY[name])
    stream = one.command("cat out; cat out >&2", exact=exact)
    assert printed(stream) == NASTY[name]
    assert printed(stream, "stderr") == NASTY[name]
    assert result(stream) == "0"


def test_old_clients_see_lines(one):
    stream = one.command(r"printf 'no newline'; sleep 0.2; printf '\n\nblank above\r\ncrlf\rcr\n\xff\xfe<&>\nend'")
    assert texts(stream) == ["no newline", "\n", "blank above", "crlf", "cr", "\ufffd\ufffd<&>", "end"]


def test_exact_output_comes_at_once(one):
    with one.connect() as s:
        body = json.dumps({"command": "printf 'name? '; sleep 9", "exact": True}).encode()
        began = time.monotonic()
        s.sendall(b"POST /command HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        got = b""
        while b"bmFtZT8g" not in got:
            got += s.recv(4096)
        assert time.monotonic() - began < 6


def test_stdin_is_empty_and_nothing_is_inherited(one):
    out = printed(one.command("cat; ls -l /proc/self/fd | wc -l; grep -E 'Sig(Blk|Ign)' /proc/self/status; "
                              "ps -o pgid= -p $$ | grep -q $$ && echo leads")).decode()
    assert out == "5\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nleads\n"


def test_environment(tmp_path):
    envs = tmp_path / "envs"
    a = Agent(tmp_path, env={"EXECD_ENVS": str(envs), "A": "daemon", "B": "daemon"})
    try:
        a.command('echo "B=file" >> $EXECD_ENVS; echo "C=two words" >> "$EXECD_ENVS"')
        stream = a.command('echo "$A|$B|$C|$D"', envs={"D": "$x 'y'", "C": "asked"})
        assert printed(stream) == b"daemon|file|asked|$x 'y'\n"
        assert printed(a.command('echo "$C"')) == b"two words\n"
        for bad in ({"": "x"}, {"A=B": "x"}, {"A": 1}, [], {"A": "x\0y"}, {f"V{i}": "" for i in range(5000)}):
            refused = a.request("POST", "/command", {"command": "true", "envs": bad})
            assert refused.status == 400 and refused.doc["code"] == "INVALID_REQUEST_BODY", refused
    finally:
        a.close()


def test_cwd_and_argv(one, tmp_path):
    (tmp_path / "a $b").mkdir()
    assert printed(one.command("pwd", cwd=str(tmp_path / "a $b"))) == f"{tmp_path}/a $b\n".encode()
    assert printed(one.command("pwd", cwd="~/a $b")) == f"{tmp_path}/a $b\n".encode()
    argv = ["printf", "[%s]", "", "a b", "$HOME", "*", "-n", "x\ny", "'\""]
    stream = events(one.request("POST", "/command", {"argv": argv}))
    assert printed(stream) == b"".join(b"[%s]" % w.encode() for w in argv[2:])
    stream = events(one.request("POST", "/command", {"argv": ["nosuchprogram"]}))
    assert not result(stream).lstrip("-").isdigit() and "not found" in result(stream)


@pytest.mark.parametrize("body", [
    "{bad", "", "[]", "3", '{"command":""}', "{}", '{"command":"id","gid":5}', '{"command":"id","timeout":-1}', '{"command":"id","timeout":"x"}',
    '{"command":"pwd","cwd":"/nope"}', '{"command":"pwd","cwd":"/etc/passwd"}', '{"command":"a\\u0000b"}', '{"command":["a"]}',
    '{"command":"id","uid":-1}', '{"command":"id","uid":4294967295}', '{"argv":[]}', '{"argv":[""]}', '{"argv":["a",1]}',
    '{"command":"id","argv":["id"]}', '{"command":"' + "[" * 300 + '"', "[" * 5000,
])
def test_refusals(one, body):
    answer = one.request("POST", "/command", body)
    assert answer.status == 400 and answer.doc["code"] == "INVALID_REQUEST_BODY", answer


def test_a_line_too_long_for_the_kernel(one):
    stream = one.command("echo " + "x" * 200000)
    assert "argument list too long" in result(stream).lower()
    assert one.request("POST", "/command", '{"command":"' + "x" * (2 << 20) + '"}').status == 413


@pytest.mark.skipif(not ROOT, reason="only root changes users")
def test_users(one):
    assert printed(one.command("id -u; id -g; id -G; echo ~", uid=4321, gid=77)).decode().split()[:3] == ["4321", "77", "77"]
    assert printed(one.command("id -g", uid=4321)) == b"4321\n"         # never 0
    assert printed(one.command("id -g", uid=NOBODY)) == b"65534\n"      # as passwd says


@pytest.mark.skipif(not ROOT, reason="needs another user")
def test_users_without_the_right(tmp_path):
    a = Agent(tmp_path, NOBODY)
    try:
        stream = a.command("id", uid=1)
        assert "not permitted" in result(stream) and not printed(stream)
        assert printed(a.command("id -u", uid=NOBODY, gid=NOBODY)) == b"65534\n"
    finally:
        a.close()


def test_timeout_kills_the_group(one):
    began = time.monotonic()
    stream = one.command("sleep 50 & echo $!; sleep 50", timeout=300)
    assert time.monotonic() - began < 3
    assert result(stream) == "-1" and stream[-1]["signal"] == 9 and stream[-1]["timed_out"] is True
    wait_for(lambda: not alive(int(texts(stream)[0])))
    assert "timed_out" not in one.command("kill -9 $$")[-1]


def start(agent, line, until=b'"init"', **more):
    """A foreground command that is left alone: its socket and id. `until` is
    seen in its stream first, for commands that have to get ready."""
    s = agent.connect()
    body = json.dumps({"command": line, **more}).encode()
    s.sendall(b"POST /command HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    got = b""
    while until not in got or not got.rstrip().endswith(b"}"):
        got += s.recv(4096)
    return s, got.partition(b'"text":"')[2][:32].decode()


def test_interrupt(one):
    s, ident = start(one, "sleep 50 & sleep 50")
    assert one.request("DELETE", f"/command?id={ident}").status == 200
    rest = b""
    while not rest.endswith(b"0\r\n\r\n"):
        rest += s.recv(4096)
    s.close()
    status = one.get(f"/command/status/{ident}").doc
    assert status["exit_code"] == -1 and status["error"] == "signal: terminated" and b"signal: terminated" in rest
    again = one.request("DELETE", f"/command?id={ident}")
    assert again.status == 500 and again.doc["code"] == "RUNTIME_ERROR"


def test_interrupt_of_the_stubborn(one):
    s, ident = start(one, "trap '' TERM; echo ready; while :; do sleep 0.1; done", until=b'"ready"')
    began = time.monotonic()
    assert one.request("DELETE", f"/command?id={ident}").status == 200
    assert 2.5 < time.monotonic() - began < 5
    assert one.get(f"/command/status/{ident}").doc["error"] == "signal: killed"
    s.close()
    s, ident = start(one, "trap 'exit 9' TERM; echo ready; while :; do sleep 0.1; done", until=b'"ready"')
    assert one.request("DELETE", f"/command?id={ident}").status == 200
    assert one.get(f"/command/status/{ident}").doc["exit_code"] == 9
    s.close()


def test_sigint_is_not_ignored(one):
    stream = one.command("sh -c 'kill -INT $$; echo survived'")
    assert printed(stream) == b"" and stream[-1]["signal"] == signal.SIGINT


def test_a_child_that_stays_does_not_hold_the_answer(one):
    began = time.monotonic()
    stream = one.command("(sleep 5; echo late) & echo now")
    assert time.monotonic() - began < 3
    assert printed(stream) == b"now\n" and result(stream) == "0"
    stream = one.command("yes & echo $!")       # one that prints for ever
    assert result(stream) == "0"
    os.kill(next(int(w) for w in printed(stream).split() if w != b"y"), signal.SIGKILL)


def test_disconnecting_does_not_stop(one, tmp_path):
    s, ident = start(one, "sleep 0.5; seq 1 300000; echo done > survived")
    s.close()
    wait_for(lambda: (tmp_path / "survived").exists())
    wait_for(lambda: one.get(f"/command/status/{ident}").doc.get("exit_code") == 0)


@pytest.mark.parametrize("exact", [False, True])
def test_a_client_that_never_reads(one, exact):
    """200 MB wait in the pipe of the command, not here."""
    s, ident = start(one, "head -c 200000000 /dev/zero | tr '\\0' '\\n'", exact=exact)

    def rests():
        before = one.cpu()
        time.sleep(0.4)
        return one.cpu() - before < 0.05
    wait_for(rests, 20)         # all there is room for was sent, and nothing spins
    assert one.get(f"/command/status/{ident}").doc["running"]
    assert one.memory() < 16384, one.memory()
    assert one.request("GET", "/ping").status == 200
    s.close()
    wait_for(lambda: not one.get(f"/command/status/{ident}").doc["running"], 30)


def test_large_output_in_flat_memory(one):
    sha = "head -c 50000000 /dev/zero | tr '\\0' a"
    assert printed(one.command(sha, exact=True, wait=60)) == b"a" * 50000000
    assert len(printed(one.command(sha, wait=60))) == 50000000
    assert one.memory() < 16384, one.memory()


def test_background(one):
    stream = one.command("for i in 1 2 3; do echo out$i; echo err$i >&2; sleep 0.6; done; exit 4", background=True)
    assert [e["type"] for e in stream] == ["init", "ping", "execution_complete"]
    ident = stream[0]["text"]
    assert one.get(f"/command/status/{ident}").doc["running"] is True
    wait_for(lambda: not one.get(f"/command/status/{ident}").doc["running"])
    assert one.get(f"/command/status/{ident}").doc["exit_code"] == 4
    logs = one.get(f"/command/{ident}/logs")
    assert logs.body == b"out1\nerr1\nout2\nerr2\nout3\nerr3\n" and logs.header("EXECD-COMMANDS-TAIL-CURSOR") == "30"
    assert one.get(f"/command/{ident}/logs", cursor=20).body == b"out3\nerr3\n"
    assert one.get(f"/command/{ident}/logs", cursor=99).body == b""
    assert one.get(f"/command/{ident}/logs", cursor="x").status == 400


def test_background_leaves_nothing(one, tmp_path):
    before = sorted(os.listdir(tmp_path))
    ident = one.command("echo x; rm -rf $TMPDIR/.abx*; echo y", background=True)[0]["text"]
    wait_for(lambda: not one.get(f"/command/status/{ident}").doc["running"])
    assert one.get(f"/command/{ident}/logs").body == b"x\ny\n"
    assert sorted(os.listdir(tmp_path)) == before


def test_background_timeout_and_interrupt(one):
    ident = one.command("sleep 50", background=True, timeout=200)[0]["text"]
    wait_for(lambda: one.get(f"/command/status/{ident}").doc.get("exit_code") == -1)
    ident = one.command("sleep 50", background=True)[0]["text"]
    assert one.request("DELETE", f"/command?id={ident}").status == 200


def test_unknown_commands(one):
    for method, path, status in (("GET", "/command/status/nope", 404), ("GET", "/command/nope/logs", 400),
                                 ("DELETE", "/command?id=nope", 500), ("DELETE", "/command", 400)):
        answer = one.request(method, path)
        assert answer.status == status and "code" in answer.doc, answer
    ident = one.command("true")[0]["text"]
    assert one.get(f"/command/{ident}/logs").status == 400      # a foreground command has none


def test_pings(one):
    stream = one.command("sleep 3.5")
    assert [e["type"] for e in stream] == ["init", "ping", "ping", "execution_complete"]
    assert 3400 < stream[-1]["execution_time"] < 6000


def test_many_commands(one):
    """A thousand remembered and no more, 100 at once, nothing leaks."""
    before = one.descriptors()
    socks = [start(one, "sleep 1; echo out") for _ in range(100)]
    for s, _ in socks:
        got = b""
        while not got.endswith(b"0\r\n\r\n"):
            got += s.recv(65536)
        assert b'"text":"out"' in got and b"execution_complete" in got
        s.close()
    first = socks[0][1]
    assert one.get(f"/command/status/{first}").status == 200
    conn = http.client.HTTPConnection("127.0.0.1", one.port)
    for _ in range(1000):
        conn.request("POST", "/command", '{"argv":["true"]}')
        assert b"execution_complete" in conn.getresponse().read()
    conn.close()
    assert one.get(f"/command/status/{first}").status == 404
    wait_for(lambda: one.descriptors() <= before + 1)


def test_no_shell(tmp_path):
    """An image with no shell at all still runs an argv."""
    (tmp_path / "bin").mkdir()
    os.symlink("/bin/echo", tmp_path / "bin/echo")
    a = Agent(tmp_path, env={"PATH": str(tmp_path / "bin")})
    try:
        assert printed(events(a.request("POST", "/command", {"argv": ["echo", "hi"]}))) == b"hi\n"
        assert printed(a.command("echo by /bin/sh")) == b"by /bin/sh\n"
    finally:
        a.close()


def test_half_closed_client_gets_its_stream(one):
    body = b'{"command":"sleep 0.3; echo hi"}'
    got = one.raw(b"POST /command HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body), shut=True)
    assert b'"text":"hi"' in got and got.endswith(b"0\r\n\r\n")
