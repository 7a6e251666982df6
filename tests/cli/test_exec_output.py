"""What exec prints: byte for byte, in every form, into readers that are slow,
stopped, gone or full."""

import base64
import hashlib
import json
import os
import re
import signal
import subprocess
import time

import pytest

from live import both, daemon      # noqa: F401
from test_exec_input import AUTO, MODES, NEVER

NASTY = bytes(range(256)) + b"\n\n\r\n\0\0 \xff\xfe \xc3( no end"


def quiet(**more):
    return {"stdin": subprocess.DEVNULL, **more}


@AUTO
def test_bytes_are_exact_and_apart(both):
    ran = both.exec("sh", "-c", "cat; exec cat /dev/fd/3 3<&0 >&2", input=NASTY)
    assert (ran.status, ran.out) == (0, NASTY)
    for text in (b"", b"\n", b"\n\n", b"a", b"a\n", b"\r\n", b"\0", NASTY):
        ran = both.exec("sh", "-c", "cat >&2", input=text)
        assert (ran.status, ran.out, ran.err) == (0, b"", text)


@AUTO
def test_a_daemon_of_ours_does_not_stand_between(both):
    """What the agent has to say comes without it, which need not even run."""
    running = both.begin("--", "sh", "-c", "echo ready; read x; head -c 9000000 /dev/zero; cat", stdin=subprocess.PIPE)
    assert running.stdout.readline() == b"ready\n"
    os.kill(both.server.daemon.process.pid, signal.SIGSTOP)
    try:
        out, err = running.communicate(b"go\nmore", timeout=20)
    finally:
        os.kill(both.server.daemon.process.pid, signal.SIGCONT)
    assert (running.returncode, out[-8:], len(out), err) == (0, bytes(4) + b"more", 9000004, b"")


@AUTO
def test_words_are_exact(both):
    words = ["", " ", "a b", "$HOME", "*", "it's", '"', "\\", "-x", "--", "a\nb", "\u00e9", "x" * 100000, ";", "`id`"]
    ran = both.exec("--", "sh", "-c", 'printf "%s\\0" "$@"', "sh", *words, input=None, stdin=subprocess.DEVNULL)
    assert ran.out.split(b"\0")[:-1] == [w.encode() for w in words]
    ran = both.exec("echo $((6*7)) 'one word'", input=None, stdin=subprocess.DEVNULL)
    assert ran.out == b"42 one word\n"


@AUTO
def test_a_long_line_and_a_slow_reader(both):
    """seq into a reader that sleeps now and then: the same hash, five times; and 20 MB in one line."""
    expected = hashlib.sha256(subprocess.run(["seq", "1", "300000"], capture_output=True).stdout).hexdigest()
    for _ in range(5):
        process = both.begin("seq", "1", "300000", **quiet())
        seen, sleeps = hashlib.sha256(), 0
        while piece := process.stdout.read(100000):
            seen.update(piece)
            if sleeps < 4:
                sleeps += 1
                time.sleep(0.2)
        assert process.wait(10) == 0 and seen.hexdigest() == expected
    ran = both.exec("sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x", input=None, stdin=subprocess.DEVNULL)
    assert ran.out == b"x" * 20000000


@pytest.mark.parametrize("both,seconds", [("never", 3), ("auto", 3), ("auto", 25)], indirect=["both"])
def test_a_reader_that_stops(both, seconds):
    """The agent gives up a client that is silent for 20 seconds: a stopped reader is none."""
    process = both.begin("sh", "-c", "head -c 30000000 /dev/zero | tr '\\0' '\\n'; exit 5", **quiet())
    assert process.stdout.read(1) == b"\n"
    time.sleep(seconds)
    assert process.poll() is None
    out, err = process.communicate(timeout=30)
    assert (process.returncode, len(out), err) == (5, 30000000 - 1, b"")


@AUTO
def test_a_blocked_stdout_does_not_grow(both):
    """What waits is a window, not the output."""
    process = both.begin("yes", **quiet())
    process.stdout.read(1)
    time.sleep(2)
    with open(f"/proc/{process.pid}/status") as status:
        peak = int(status.read().split("VmHWM:")[1].split()[0])
    assert peak < 40000, peak
    process.send_signal(signal.SIGINT)
    assert process.wait(8) == 130


@MODES
def test_nonblock_is_not_set_for_others(both):
    """O_NONBLOCK on a shared pipe would break whoever else writes to it."""
    import fcntl
    read, write = os.pipe()
    process = both.begin("sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x", stdout=write, **quiet())
    time.sleep(0.7)
    assert not fcntl.fcntl(write, fcntl.F_GETFL) & os.O_NONBLOCK
    os.close(write)
    got = b""
    while piece := os.read(read, 1 << 20):
        got += piece
    os.close(read)
    assert process.wait(10) == 0 and got.strip() == b"x" * 1000000


@AUTO
def test_order_where_both_are_one(both):
    ran = both.exec("sh", "-c", "for i in 1 2 3 4 5; do echo $i; sleep 0.02; echo $i >&2; sleep 0.02; done",
                    stderr=subprocess.STDOUT, input=None, stdin=subprocess.DEVNULL)
    assert ran.out == b"".join(b"%d\n%d\n" % (i, i) for i in range(1, 6))


@MODES
def test_reader_gone(both):
    """As SIGPIPE ends a program: 141, in silence, and nothing is left running."""
    mark = f"gone-{both.mode}"
    process = both.begin("sh", "-c", "while :; do echo x; sleep 0.01; done", mark, **quiet())
    process.stdout.read(2)
    process.stdout.close()
    assert process.wait(10) == 141 and process.stderr.read() == b""
    assert both.gone(mark)


@MODES
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_full_disk(both, form):
    mark = f"full-{both.mode}"
    with open("/dev/full", "wb") as full:
        ran = both.exec("sh", "-c", "echo x; sleep 2 # " + mark, form=form, stdout=full, input=None, stdin=subprocess.DEVNULL)
    assert ran.status == (1 if form else 125) and b"cannot write to standard output: No space left" in ran.err
    assert both.gone(mark)


@MODES
def test_closed_stdout_and_stderr(both):
    ran = both.exec("echo", "x", wrap=["sh", "-c", 'exec "$0" "$@" >&- </dev/null'])
    assert ran.status == 125 and b"cannot write to standard output: Bad file" in ran.err
    ran = both.exec("sh", "-c", "echo x >&2", wrap=["sh", "-c", 'exec "$0" "$@" 2>&- </dev/null'])
    assert ran.status == 125
    ran = both.exec("sh", "-c", "exit 6", wrap=["sh", "-c", 'exec "$0" "$@" >&- 2>&- <&-'])
    assert ran.status == 6


def io_error(both, call, number, *words):
    return both.exec(*words, wrap=["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                                   f"inject={call}:error=EIO:when={number}"], input=None, stdin=subprocess.DEVNULL)


@AUTO
def test_io_error_of_stdout(both):
    ran = io_error(both, "pwritev2", 1, "echo", "x")
    assert ran.status == 125 and b"cannot write to standard output: I/O error" in ran.err


# --- JSON ---

@AUTO
def test_document(both):
    ran = both.exec("sh", "-c", "printf 'caf\\303\\251\\n'; printf '\\377\\0' >&2; exit 3", form=("--json",))
    assert ran.status == 0 and list(ran.doc) == ["exit_code", "stdout", "stderr_b64", "duration_ms"]
    assert (ran.doc["exit_code"], ran.doc["stdout"], base64.b64decode(ran.doc["stderr_b64"])) == (3, "caf\u00e9\n", b"\xff\0")
    ran = both.exec("sh", "-c", "kill -9 $$", form=("--json",))
    assert ran.status == 0 and ran.doc["signal"] == 9 and "exit_code" not in ran.doc
    ran = both.exec("--timeout", "300ms", "sleep", "9", form=("--json",))
    assert ran.status == 0 and ran.doc["timed_out"] is True and ran.doc["duration_ms"] >= 250


@AUTO
def test_lines(both):
    ran = both("--json", "--agent", both.mode, "shell-stream", "box", "--command",
               "printf 'caf\\303'; sleep 0.2; printf '\\251'; printf '\\377' >&2; exit 4", input=b"")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.status == 0 and rows[-1]["exit_code"] == 4
    assert "".join(r["data"] for r in rows[:-1] if r["stream"] == "stdout") == "caf\u00e9"
    assert [r["data_b64"] for r in rows[:-1] if r["stream"] == "stderr"] == [base64.b64encode(b"\xff").decode()]


@AUTO
def test_lines_to_a_stopped_reader(both):
    process = both.start("--json", "--agent", both.mode, "shell-stream", "box", "--command",
                         "head -c 5000000 /dev/zero | tr '\\0' x", **quiet())
    time.sleep(1.5)
    rows = [json.loads(line) for line in process.communicate(timeout=20)[0].splitlines()]
    assert process.returncode == 0 and rows[-1]["exit_code"] == 0
    assert sum(len(r["data"]) for r in rows[:-1]) == 5000000


# --- exit codes ---

@AUTO
@pytest.mark.parametrize("line,status", [("exit 0", 0), ("exit 1", 1), ("exit 124", 124), ("exit 125", 125), ("exit 126", 126),
                                         ("exit 127", 127), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137),
                                         ("kill -SEGV $$", 139)])
def test_codes(both, line, status):
    ran = both.exec("sh", "-c", line, input=b"")
    assert (ran.status, ran.out, ran.err) == (status, b"", b"")


@AUTO
def test_codes_of_its_own(both):
    ran = both.exec("nosuchprogram", "x", input=b"")
    assert ran.status == 127 and b"[E3005]" in ran.err and b"nosuchprogram" in ran.err
    ran = both.exec("/tmp", "x", input=b"")
    assert ran.status == 126 and b"[E3005]" in ran.err
    ran = both.exec("nosuchprogram", "x", input=b"", form=("--json",))
    assert ran.status == 1 and ran.error["code"] == "E3005"
    ran = both.exec("--timeout", "300ms", "sleep", "9", input=b"")
    assert ran.status == 124
    ran = both("exec", "nosuchbox", "true", input=b"")
    assert ran.status == 125 and b"[E2009]" in ran.err
    ran = both.exec("-w", "/nosuch", "true", "x", input=b"")
    assert ran.status == 125 and b"/nosuch" in ran.err
    ran = both.exec("-u", "nosuchuser", "true", "x", input=b"")
    assert ran.status == 2 and b"nosuchuser" in ran.err


@NEVER
def test_what_needs_the_agent_is_refused(both):
    for words in (["-u", "nobody", "true"], ["-d", "true"]):
        ran = both.exec(*words, input=None, stdin=subprocess.DEVNULL)
        assert ran.status == 125 and b"[E8004]" in ran.err, ran


# --- variables ---

@MODES
def test_variables(both, tmp_path):
    (tmp_path / "vars").write_bytes(b"\xef\xbb\xbf# a comment\nA=from file\r\n\n  B='quoted' \nC=$HOME\nHERE\nD=\nE=a=b\nA2=\xc3\xa9")
    ran = both.exec("-e", "A=from option", "--env-file", "vars", "sh", "-c", 'printf "%s|" "$A" "$B" "$C" "$HERE" "$D" "$E" "$A2"; echo',
                    env={"HERE": "of here"}, input=None, stdin=subprocess.DEVNULL)
    assert ran.out.decode() == "from option|'quoted' |$HOME|of here||a=b|\u00e9|\n", ran


@pytest.mark.parametrize("text,message", [
    (b"A=1\n=x\n", "vars:2: nothing stands before the '='"),
    (b"A=1\nNOT_SET_HERE", "vars:2: NOT_SET_HERE is not set in the environment"),
    (b"export A=1\n", "vars:1: there is a blank in the name"),
    (b"A=\xff\n", "vars:1: it is no text"),
    (b"\n\nA=a\0b\n", "vars:3: it is no text"),
    (b"A=" + b"x" * (1 << 20), "holds more than 1048576 bytes"),
    (b"".join(b"V%d=\n" % i for i in range(4097)), "more than 4096 variables"),
])
def test_files_with_mistakes(osb, tmp_path, server, text, message):
    (tmp_path / "vars").write_bytes(text)
    ran = osb("exec", "box-1", "--env-file", "vars", "true")
    assert ran.status == 2 and message in ran.err.decode() and server.requests == [], ran
    for verb in (["run", "--env-file", "vars", "true"], ["create", "--env-file", "vars"]):
        assert osb(*verb).status == 2


def test_a_file_that_is_not_there(osb):
    ran = osb("exec", "x", "--env-file", "nosuch", "true")
    assert ran.status == 2 and b"nosuch" in ran.err


@pytest.mark.parametrize("both", ["auto", "never"], indirect=True)
def test_no_memory_is_no_result_of_the_command(both):
    ran = both.exec("true", wrap=["sh", "-c", 'ulimit -v 500000; exec "$0" "$@"'], stdin=subprocess.DEVNULL, input=None)
    assert (ran.status, ran.out, ran.err) == (125, b"", b"abx: out of memory\n")
    ran = both("--json", "--agent", both.mode, "exec", "box", "true", wrap=["sh", "-c", 'ulimit -v 500000; exec "$0" "$@"'])
    assert (ran.status, ran.out) == (1, b"")


@pytest.mark.parametrize("both", ["auto"], indirect=True)
def test_the_trace_tells_no_token(both):
    ran = both("--debug", "exec", "box", "true", stdin=subprocess.DEVNULL, input=None)
    assert ran.status == 0 and re.search(rb"\nabx: > GET /proxy/\d+/\*\*\*\n", ran.err), ran
