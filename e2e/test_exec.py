"""Commands: what arrives, what comes back, how they end."""

import base64
import json
import signal
import time

import pytest


def run(box, *words):
    return box.abx("--json", "sandbox", "exec", box.id, *words).json()


@pytest.mark.parametrize("words", [
    ["a b", "$HOME", '"q"', "it's", "", "*"],
    ["new\nline", "tab\there", "back\\slash", "\\n"],
    ["\u4f60\u597d", "caf\u00e9 \u2603", "\U0001f600"],
    ["-n", "--", "-c", "$(id)", "`id`", ";", "&", "|", "<", ">", "!", "~", "#"],
    ["x" * 100000],
], ids=["quotes", "controls", "unicode", "shell", "long"])
def test_argv_arrives_exactly(box, words):
    ran = run(box, "printf", "<%s>\\n", *words)
    assert ran["stdout"] == "".join(f"<{w}>\n" for w in words)


def test_one_word_is_a_shell_line(box):
    assert run(box, "echo a; echo b | tr b c; echo $((1+2))")["stdout"] == "a\nc\n3\n"


def test_lines(box):
    """Empty lines stay; one LF for each line."""
    assert run(box, "printf 'a\\n\\n\\nb\\n'")["stdout"] == "a\n\n\nb\n"


def test_much_output(box):
    line = "i=0; while [ $i -lt 20000 ]; do echo line-$i-abcdefghijklmnopqrstuvwxyz; i=$((i+1)); done"
    ran = box.abx("sandbox", "exec", box.id, line)
    assert ran.code == 0
    assert ran.out == b"".join(b"line-%d-abcdefghijklmnopqrstuvwxyz\n" % i for i in range(20000))


def test_one_long_line(box):
    ran = box.abx("sandbox", "exec", box.id, "head -c 3000000 /dev/zero | tr '\\0' x; echo")
    assert (ran.code, len(ran.out), set(ran.out)) == (0, 3000001, {ord("x"), 10})


def test_bytes_that_are_not_text(box):
    """They come as they are. Without the agent the stock daemon damages what is not UTF-8; the document is valid all the same."""
    line = "printf 'caf\\303\\251 \\377\\376 ok\\n'"
    ran = run(box, line)
    assert base64.b64decode(ran["stdout_b64"]) == b"caf\xc3\xa9 \xff\xfe ok\n" and "stdout" not in ran
    assert box.abx("sandbox", "exec", box.id, "printf 'x\\000\\r\\377'").out == b"x\0\r\xff"
    if box.daemon == "stock":
        plain = box.abx("--agent", "never", "--json", "sandbox", "exec", box.id, line).json()
        assert plain["stdout"] == "caf\u00e9 \ufffd\ufffd ok\n"


@pytest.mark.parametrize("line, code", [("exit 0", 0), ("exit 1", 1), ("exit 255", 255), ("nosuchcmd", 127),
                                        ("false", 1), ("/etc/passwd", 126)])
def test_exit_codes(box, line, code):
    assert box.abx("sandbox", "exec", box.id, line).code == code
    assert run(box, line)["exit_code"] == code


@pytest.mark.parametrize("number, name", [(9, "KILL"), (15, "TERM"), (11, "SEGV")])
def test_signal(box, number, name):
    line = f"kill -{name} $$"
    assert box.abx("sandbox", "exec", box.id, line).code == 128 + number
    ran = run(box, line)
    assert "exit_code" not in ran and ran["signal"] in (number, name, "SIG" + name), ran


def test_environment_and_folder(box):
    ran = box.abx("--json", "sandbox", "exec", "--env", "A=two words", "--env", "B=\u4f60=x", "--workdir", "/tmp",
                  box.id, "pwd; echo \"$A/$B\"").json()
    assert ran["stdout"] == "/tmp\ntwo words/\u4f60=x\n"


def test_folder_that_is_not_there(box):
    done = box.abx("--json", "sandbox", "exec", "--workdir", "/no/such", box.id, "pwd")
    assert done.code != 0 and "/no/such" in done.error()["message"], done


def test_stdin_is_empty(box):
    assert run(box, "cat; echo end")["stdout"] == "end\n"


def running(box, mark):
    """How many `sleep MARK` there are in the sandbox. Without a ps that is no answer, and a failure."""
    return int(box.sh(f"all=$(ps -ef) || exit 9; echo \"$all\" | grep -c '[s]leep {mark}' || true"))


def test_timeout(box):
    mark = f"77{int(time.time() * 1000) % 100000}"
    begun = time.monotonic()
    done = box.abx("sandbox", "exec", "--timeout", "1", box.id, f"echo a; sleep {mark}; echo b")
    assert (done.code, done.out) == (124, b"a\n"), done
    assert time.monotonic() - begun < 5
    assert running(box, mark) == 0


def test_interrupt_stops_the_command(box):
    """Ctrl-C on abx ends the remote process group, and abx with 130."""
    mark = f"88{int(time.time() * 1000) % 100000}"
    child = box.abx.start("sandbox", "exec", box.id, f"echo started; sleep {mark}")
    assert child.stdout.readline() == b"started\n"
    assert running(box, mark) >= 1
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=10) == 130
    assert running(box, mark) == 0


def test_reader_that_goes_away(box):
    """A closed stdout is a failure that is said, not success, and does not hang."""
    child = box.abx.start("sandbox", "exec", box.id, "i=0; while [ $i -lt 50000 ]; do echo line $i; i=$((i+1)); done")
    child.stdout.readline()
    child.stdout.close()
    assert child.wait(timeout=20) != 0


def test_is_fast(box):
    """The final event ends it; the daemon's second of silence after it is not waited for."""
    times = []
    for _ in range(5):
        begun = time.monotonic()
        assert box.abx("sandbox", "exec", box.id, "true").code == 0
        times.append(time.monotonic() - begun)
    assert min(times) < 0.9, times


def test_background_child_does_not_hold_it(box):
    begun = time.monotonic()
    assert box.abx("sandbox", "exec", box.id, "sleep 20 & echo started").out == b"started\n"
    assert time.monotonic() - begun < 5


def test_stream_as_json_lines(box):
    done = box.abx("--json", "sandbox", "shell-stream", box.id, "--command", "echo a; sleep 0.3; echo b >&2; exit 4")
    assert done.code == 0, done
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert lines[-1]["exit_code"] == 4
    assert "".join(e.get("data", "") for e in lines if e.get("stream") == "stdout") == "a\n", lines
    assert "".join(e.get("data", "") for e in lines if e.get("stream") == "stderr") == "b\n", lines


def test_commands_side_by_side(box):
    children = [box.abx.start("sandbox", "exec", box.id, f"sleep 0.5; echo {i}; exit {i}") for i in range(6)]
    for i, child in enumerate(children):
        out, _ = child.communicate(timeout=30)
        assert (child.returncode, out) == (i, b"%d\n" % i)
