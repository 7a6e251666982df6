"""The carried helper: terminals."""

import hashlib
import os
import re
import signal
import struct
import time

import pytest

from agent import NOBODY, wait_for
from frames import BY_SIGNAL, CODE, DATA, EOF, KILL, PTY, RESIZE, SESSION, SIGNAL, frame, helper, mark, marked, run

MODES = ["pipe", "lines", "listen"]


def typed(t, text):
    t.send(frame(DATA, text))


@pytest.mark.parametrize("mode", MODES)
def test_it_is_a_terminal(tmp_path, mode):
    t = run(tmp_path, "tty; stty size; echo $TERM; ps -o tty= -p $$; ps -o sid=,tpgid= -p $$; echo $$; echo err >&2; exit 5", mode=mode, kind=PTY,
            cols=101, rows=37, env=["TERM=xterm-mine"])
    lines = bytes(t.out).decode().split("\r\n")
    assert t.result == (CODE, 5) and not t.err
    assert lines[0].startswith("/dev/pts/") and lines[1:3] == ["37 101", "xterm-mine"] and lines[0] == "/dev/" + lines[3].strip()
    assert lines[4].split() == [lines[5], lines[5]] == [str(t.started.pid)] * 2 and lines[6] == "err"
    assert re.fullmatch(rb"[0-9a-f]{16}", t.started.job)


def test_without_a_size(tmp_path):
    assert run(tmp_path, "stty size", kind=PTY).out == b"0 0\r\n"


def test_words(tmp_path):
    assert run(tmp_path, "printf", "<%s>", "a b", "", kind=PTY).out == b"<a b><>"
    assert run(tmp_path, "nosuch", "x", kind=PTY).result.sys == 2


def test_resize(helper):
    t = helper().talk().greet("trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done", kind=PTY, cols=80, rows=24)
    t.until_out(b"24 80\r\n")
    for cols, rows in [(200, 50), (1, 1), (65535, 65535)]:
        t.send(frame(RESIZE, struct.pack(">HH", cols, rows)))
        t.until_out(b"%d %d\r\n" % (rows, cols))
    t.send(frame(KILL))
    assert t.finish()[0] in (BY_SIGNAL, CODE)


@pytest.mark.parametrize("mode", MODES)
def test_typing(helper, mode):
    t = helper(mode).talk().greet("read x; echo got:$x; cat; echo done", kind=PTY)
    typed(t, "h\u00e9llo\r".encode())
    t.until_out("h\u00e9llo\r\ngot:h\u00e9llo\r\n".encode())
    typed(t, b"line\n")
    t.until_out(b"line\r\nline\r\n")
    t.send(frame(EOF))                  # the end of a terminal's input is a character
    assert t.finish() == (CODE, 0) and t.out.endswith(b"done\r\n")


def test_several_ends(helper):
    t = helper().talk().greet("cat; echo one; cat; echo two", kind=PTY)
    for word in (b"one\r\n", b"two\r\n"):
        t.send(frame(EOF))
        t.until_out(word)
    assert t.finish() == (CODE, 0)


@pytest.mark.parametrize("mode", MODES)
def test_ctrl_c(helper, mode):
    """Also where who started the helper ignores SIGINT."""
    def ignore():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)

    t = helper(mode, preexec_fn=ignore).talk().greet("bash", "--norc", "-i", kind=PTY, env=["PS1=> "])
    t.until_out(b"> ")
    typed(t, b"sleep 60; echo not this\r")
    time.sleep(0.5)
    typed(t, b"\x03")
    t.until_out(b"^C")
    typed(t, b"echo $((6*7))\r")
    t.until_out(b"\r\n42\r\n")
    typed(t, b"exit 3\r")
    assert t.finish() == (CODE, 3) and b"\nnot this" not in t.out


def test_all_that_was_printed_comes(tmp_path):
    for _ in range(20):
        t = run(tmp_path, "seq 1 3000", mode="listen", kind=PTY)
        assert bytes(t.out) == b"".join(b"%d\r\n" % i for i in range(1, 3001))


def test_much_output(tmp_path):
    t = run(tmp_path, "stty -opost; head -c 5000000 /dev/zero | tr '\\0' x", mode="listen", kind=PTY)
    assert len(t.out) == 5000000


def test_much_input(helper):
    t = helper().talk().greet("stty raw -echo; echo ready; head -c 500000 | md5sum", kind=PTY)
    t.until_out(b"ready\n")
    data = os.urandom(500000)
    t.write(data)
    assert t.finish() == (CODE, 0)
    assert hashlib.md5(data).hexdigest().encode() in t.out


def test_a_background_job_does_not_hold_it(helper, tmp_path):
    m = mark(tmp_path)
    began = time.monotonic()
    t = helper().talk().greet(f"trap '' HUP; setsid sleep {m} & sleep 0.3; echo bye", kind=PTY)
    assert t.finish() == (CODE, 0) and t.out == b"bye\r\n" and time.monotonic() - began < 3
    for pid in marked(m):
        os.kill(pid, 9)


@pytest.mark.parametrize("how", ["kill", "cut", "signal"])
def test_the_whole_session_ends(helper, tmp_path, how):
    """Jobs of an interactive shell are groups of their own."""
    m = mark(tmp_path)
    t = helper().talk().greet("bash", "--norc", "-i", kind=PTY, env=["PS1=> "])
    t.until_out(b"> ")
    typed(t, f"trap '' HUP; (trap '' HUP TERM; exec sleep {m}) & sleep {m} | sleep {m} &\r".encode())
    wait_for(lambda: len(marked(m)) == 3)
    assert len({os.getpgid(p) for p in marked(m)} | {t.started.pid}) == 3
    if how == "kill":
        t.send(frame(KILL))
        assert t.finish() == (BY_SIGNAL, 9)
    elif how == "signal":
        t.send(frame(SIGNAL, bytes([9, SESSION])))
        assert t.finish() == (BY_SIGNAL, 9)
    else:
        t.close()
    wait_for(lambda: not marked(m), 5)


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone becomes somebody else")
def test_another_user(tmp_path):
    t = run(tmp_path, "id -u; : < $(tty) && echo opens; echo $HOME", kind=PTY, user="nobody")
    assert bytes(t.out).split(b"\r\n")[:2] == [b"%d" % NOBODY, b"opens"]
