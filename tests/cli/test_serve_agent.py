"""What `abx provider serve` does by the agent that it carries: input and its end, users, terminals, and what ends with
whom. The sandboxes are a real daemon of this program on this machine."""

import base64
import contextlib
import hashlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import BINARY, Program
from plugin import Host
from test_serve import daemon, group, host, server


def alive(pid):
    try:
        return Path("/proc", str(pid), "stat").read_text().rsplit(") ", 1)[1][0] not in "ZX"
    except OSError:
        return False


def gone(pid, seconds=4):
    end = time.monotonic() + seconds
    while alive(pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.03)
    return True


def feed(host, name, data, **more):
    return host.call("process.stdin", sandbox_id="box-1", pid=name, data=data, **more)


# --- commands ---

def test_words_and_text(host):
    code, out, err = host.sh("box-1", "printf '\\n\\r\\n a\\r\\0x'; printf '\\303\\251\\377' >&2; exit 3")
    assert (code, out, err) == (3, "\n\r\n a\r\0x", "é\ufffd")
    assert host.finish(host.start("box-1", "printf", "%s|", "a b", "", "$HOME", "it's\n"))[1] == "a b||$HOME|it's\n|"


def test_users(host):
    run = lambda user, line: host.finish(host.call("exec.start", sandbox_id="box-1", cmd="sh", args=["-c", line],  # noqa: E731
                                                   user=user)["process_id"])
    assert run("nobody", "id -un; echo $USER") == (0, "nobody\nnobody\n", "")
    assert run("61234", "id -u; id -g") == (0, "61234\n61234\n", "")
    error = host.fail("exec.start", sandbox_id="box-1", cmd="true", args=[], user="no such user")
    assert error["code"] == -32006 and "no such user" in error["message"]


def test_a_program_that_is_not_there(host):
    code, out, err = host.finish(host.start("box-1", "/no/such", "x"))
    assert (code, out) == (127, "") and "/no/such" in err
    code, out, err = host.finish(host.start("box-1", "/etc/passwd", "x"))
    assert (code, out) == (126, "") and "/etc/passwd" in err
    assert host.call("exec.run", sandbox_id="box-1", cmd="/no/such", args=["x"])["exit_code"] == 127
    assert host.fail("exec.start", sandbox_id="box-1", cmd="true", args=["x"], cwd="/no/such")["data"]["sdk_code"] == "E4001"


def test_much_output(host):
    code, out, err = host.sh("box-1", "head -c 20000000 /dev/zero | tr '\\0' '\\n'; printf end")
    assert (code, len(out), out[-4:], err) == (0, 20000003, "\nend", "")


# --- input ---

@pytest.mark.parametrize("by", ["name", "number"])
def test_five_megabytes_and_the_end(host, by):
    answer = host.call("exec.start", sandbox_id="box-1", cmd="sh", args=["-c", "echo $$; exec sha256sum"], stdin=True)
    assert answer["stdin"] is True
    name = answer["process_id"]
    number = int(host.until(lambda line: line.get("method") == "exec.output")["params"]["data"])
    data = "".join(chr(32 + i % 95) for i in range(1 << 20))
    for _ in range(5):
        assert feed(host, name if by == "name" else number, data) == {}
    assert host.call("process.stdin", sandbox_id="box-1", pid=name if by == "name" else number, eof=True) == {}
    assert host.finish(name) == (0, hashlib.sha256(data.encode() * 5).hexdigest() + "  -\n", "")


def test_the_end_with_the_last_bytes(host):
    name = host.start("box-1", "cat", stdin=True)
    feed(host, name, "one\0\n")
    feed(host, name, "two", eof=True)
    assert host.finish(name) == (0, "one\0\ntwo", "")


def test_input_that_nobody_takes_holds_up_nothing_else(host):
    """Several wait, in their order; a signal, $/cancel and other calls do not wait behind them."""
    name = host.start("box-1", "sh", "-c", "sleep 60; cat", stdin=True)
    numbers = [host.send("process.stdin", sandbox_id="box-1", pid=name, data=c * (8 << 20)) for c in "abc"]
    time.sleep(0.5)
    assert host.call("sandbox.get", sandbox_id="box-1")["status"] == "running"
    host.notify("$/cancel", id=numbers[2])
    error = host.answer(numbers[2])["error"]
    assert error["code"] == -32000 and error["message"].startswith("cancelled: 0 of 8388608 bytes")
    assert host.call("process.signal", sandbox_id="box-1", pid=name, signal=15) == {}
    assert host.finish(name)[0] == 143
    for number in numbers[:2]:
        assert host.answer(number)["error"]["code"] == -32002


def test_input_goes_on_when_it_is_read_again(host):
    name = host.start("box-1", "sh", "-c", "sleep 1; wc -c", stdin=True)
    numbers = [host.send("process.stdin", sandbox_id="box-1", pid=name, data="x" * (6 << 20), eof=i == 2) for i in range(3)]
    for number in numbers:
        assert host.answer(number)["result"] == {}
    assert host.finish(name) == (0, f"{18 << 20}\n", "")


@pytest.mark.parametrize("params, code", [({"data": 5}, -32602), ({}, -32602), ({"data": None}, -32602), ({"eof": "x"}, -32602)])
def test_input_of_the_wrong_form(host, params, code):
    name = host.start("box-1", "cat", stdin=True)
    assert host.fail("process.stdin", sandbox_id="box-1", pid=name, **params)["code"] == code
    feed(host, name, "ok", eof=True)
    assert host.finish(name) == (0, "ok", "")


def test_nothing_behind_the_end(host):
    name = host.start("box-1", "sh", "-c", "cat; sleep 60", stdin=True)
    feed(host, name, "a", eof=True)
    assert "error" in host.ask("process.stdin", sandbox_id="box-1", pid=name, data="b")
    assert host.until(lambda line: line.get("method") == "exec.output")["params"]["data"] == "a"
    host.call("process.signal", sandbox_id="box-1", pid=name, signal=9)
    assert host.finish(name) == (137, "", "")


def test_a_host_that_reads_nothing_for_longer_than_the_agent_waits(server):
    """The conversation with the agent goes on; nothing is lost."""
    host = Host(BINARY, server)
    name = host.start("box-1", "sh", "-c", "head -c 30000000 /dev/zero | tr '\\0' x; echo end")
    os.kill(host.process.pid, signal.SIGSTOP)
    time.sleep(1)
    os.kill(host.process.pid, signal.SIGCONT)
    code, out, err = host.finish(name, 60)
    assert (code, len(out), out[-4:]) == (0, 30000004, "end\n"), (code, len(out), err)
    host.end()


# --- what ends with whom ---

def end(host, how):
    if how == "close":
        host.end()
    elif how == "shutdown":
        assert host.call("shutdown") == {}
        host.wait()
    else:
        host.process.send_signal(signal.SIGTERM if how == "term" else signal.SIGKILL)
        host.wait()


@pytest.mark.parametrize("how", ["close", "shutdown", "term", "kill"])
def test_what_is_fed_and_terminals_end_with_the_host(server, tmp_path, how):
    host = Host(BINARY, server)
    fed = host.start("box-1", "sh", "-c", f"sleep 300 & echo $! > {tmp_path}/fed; echo go; wait", stdin=True)
    host.until(lambda line: line.get("params", {}).get("process_id") == fed and "method" in line)
    term = host.call("pty.open", sandbox_id="box-1", cmd="sh", args=["-c", f"echo $$ > {tmp_path}/term; echo go; sleep 300"])["process_id"]
    host.until(lambda line: line.get("params", {}).get("process_id") == term and "method" in line)
    other = host.start("box-1", "sh", "-c", f"sleep 4; echo done > {tmp_path}/other")
    end(host, how)
    assert gone((tmp_path / "fed").read_text().strip()) and gone((tmp_path / "term").read_text().strip()), other
    until = time.monotonic() + 10
    while not (tmp_path / "other").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    assert group(host) == []


def test_a_cancelled_start_leaves_nothing(host, tmp_path):
    """Whether the command had begun or not."""
    for wait in (0, 0.01, 0.02, 0.04, 0.3):
        number = host.send("exec.run", sandbox_id="box-1", cmd="sh", args=["-c", f"echo $$ > {tmp_path}/pid; exec sleep 300"])
        time.sleep(wait)
        host.notify("$/cancel", id=number)
        assert host.answer(number)["error"]["code"] == -32000
        time.sleep(0.3)
        if (tmp_path / "pid").exists():
            assert gone((tmp_path / "pid").read_text().strip())
            (tmp_path / "pid").unlink()


# --- terminals ---

def screen(host, name, text, seconds=20):
    seen, until = b"", time.monotonic() + seconds
    while text.encode() not in seen:
        line = host.until(lambda line: line.get("params", {}).get("process_id") == name and "method" in line,
                          max(0.1, until - time.monotonic()))
        assert line["method"] == "pty.output", (line, seen)
        seen += base64.b64decode(line["params"]["data_b64"])
    return seen


def pty_exit(host, name):
    return host.until(lambda line: line.get("method") == "pty.exit" and line["params"]["process_id"] == name)["params"]


def type_in(host, name, text):
    return host.call("pty.write", sandbox_id="box-1", process_id=name, data_b64=base64.b64encode(text.encode()).decode())


def test_a_terminal(host):
    name = host.call("pty.open", sandbox_id="box-1", cols=91, rows=33, cwd="/tmp", env={"A": "世"}, user="nobody")["process_id"]
    type_in(host, name, "stty size; pwd; echo $A $TERM $(id -un) $((40 + 2))0\n")
    assert "世 xterm-256color nobody 420".encode() in screen(host, name, "nobody 420")
    assert host.call("pty.resize", sandbox_id="box-1", process_id=name, cols=70, rows=20) == {}
    type_in(host, name, "stty size\n")
    screen(host, name, "20 70")
    type_in(host, name, "echo rea''dy; sleep 60\n")
    screen(host, name, "ready")
    time.sleep(0.3)
    type_in(host, name, "\x03")
    type_in(host, name, "echo st''ill; exit 9\n")
    screen(host, name, "still")
    assert pty_exit(host, name) == {"process_id": name, "exit_code": 9}
    assert host.fail("pty.write", sandbox_id="box-1", process_id=name, data_b64="")["code"] == -32002


def test_a_terminal_is_closed(host, tmp_path):
    name = host.call("pty.open", sandbox_id="box-1", cols=80, rows=24)["process_id"]
    type_in(host, name, f"echo $$ > {tmp_path}/pid; trap '' HUP; echo rea''dy\n")
    screen(host, name, "ready")
    assert host.call("pty.close", sandbox_id="box-1", process_id=name) == {}
    assert pty_exit(host, name)["exit_code"] in (129, 137)
    assert gone((tmp_path / "pid").read_text().strip())


@pytest.mark.parametrize("method, params, code", [
    ("pty.open", {"cols": 0}, -32006), ("pty.open", {"rows": 70000}, -32006), ("pty.open", {"cols": "80"}, -32602),
    ("pty.open", {"cmd": ""}, -32006), ("pty.open", {"user": "no such user"}, -32006), ("pty.open", {"env": {"A": 1}}, -32602),
])
def test_a_terminal_that_cannot_be(host, method, params, code):
    assert host.fail(method, sandbox_id="box-1", **params)["code"] == code


@pytest.mark.parametrize("method, params, code", [
    ("pty.write", {"data_b64": "?"}, -32602), ("pty.write", {}, -32602), ("pty.resize", {"cols": 5}, -32006),
    ("pty.resize", {"cols": 0, "rows": 5}, -32006), ("pty.resize", {"cols": 5, "rows": 1.5}, -32602),
])
def test_what_a_terminal_is_not_told(host, method, params, code):
    name = host.call("pty.open", sandbox_id="box-1", cmd="cat", args=[])["process_id"]
    assert host.fail(method, sandbox_id="box-1", process_id=name, **params)["code"] == code
    type_in(host, name, "ok\n\x04")
    screen(host, name, "ok\r\nok\r\n")
    assert pty_exit(host, name)["exit_code"] == 0


def test_names_are_of_one_kind(host):
    """A command is no terminal, and a terminal no process."""
    command = host.start("box-1", "sleep", "60")
    term = host.call("pty.open", sandbox_id="box-1", cmd="cat", args=[])["process_id"]
    for method in ("pty.write", "pty.resize", "pty.close"):
        for name in (command, "abx-99", "x", 7, None):
            assert host.fail(method, sandbox_id="box-1", process_id=name, data_b64="")["code"] == -32002
    assert host.fail("process.signal", sandbox_id="box-1", pid=term)["code"] == -32002
    host.call("process.signal", sandbox_id="box-1", pid=command)
    assert host.finish(command)[0] == 143
    type_in(host, term, "\x04")
    assert pty_exit(host, term)["exit_code"] == 0


# --- the whole way: abx, the exported plugin, the agent twice ---

@pytest.fixture
def through(server, tmp_path):
    abx = Program(tmp_path, server)
    for words in (("-q", "provider", "export", "opensandbox", str(tmp_path / "plugin")),
                  ("provider", "install", str(tmp_path / "plugin"), "--yes")):
        ran = abx(*words)
        assert ran.status == 0, ran
    return abx


def test_exec_through_the_exported_plugin(through):
    ran = through("sandbox", "exec", "box-1", "printf '\\n\\n a\\r\\0\\377\\303'; printf 'err\\n\\n' >&2; exit 7")
    assert (ran.status, ran.out, ran.err) == (7, b"\n\n a\r\0\xff\xc3", b"err\n\n"), ran
    ran = through("sandbox", "exec", "-u", "nobody", "box-1", "id", "-un")
    assert (ran.status, ran.out, ran.err) == (0, b"nobody\n", b""), ran
    data = os.urandom(5 << 20)
    ran = through("sandbox", "exec", "-i", "box-1", "cat", input=data)
    assert (ran.status, ran.err) == (0, b"") and ran.out == data
    start = time.monotonic()
    ran = through("sandbox", "exec", "--timeout", "2s", "box-1", "echo a; sleep 60")
    assert (ran.status, ran.out) == (124, b"a\n") and 1.9 < time.monotonic() - start < 6, ran


def test_a_child_in_the_background_stays(through):
    ran = through("sandbox", "exec", "box-1", "sleep 77.7 >/dev/null 2>&1 & echo $!")
    pid = int(ran.out)
    time.sleep(2.5)
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("who", ["host", "plugin", "both"])
def test_the_group_ends_with_whoever_is_killed(through, who):
    process = through.start("sandbox", "exec", "box-1", "trap '' HUP; sleep 300 & echo $!; wait", stdin=subprocess.DEVNULL)
    pid = int(process.stdout.readline())
    plugin = int(subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()[0])
    for each in {"host": [process.pid], "plugin": [plugin], "both": [process.pid, plugin]}[who]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    assert gone(pid, 5)
    assert process.wait(10) == (125 if who == "plugin" else -9)
    assert gone(plugin)


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_through_the_exported_plugin(through, number, status):
    process = through.start("sandbox", "exec", "box-1", "sleep 300 & echo $!; wait", stdin=subprocess.DEVNULL)
    pid = int(process.stdout.readline())
    process.send_signal(number)
    assert process.wait(10) == status
    assert gone(pid)
