"""The carried helper: how a command ends, and what is left of it."""

import os
import re
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

from agent import wait_for
from conftest import BINARY
from frames import (BY_SIGNAL, CODE, DATA, EOF, EXEC, GROUP, INPUT, KILL, LEADER, NO_ACK, PTY, SIGNAL, STARTED, TIMEOUT, Helper,
                    frame, hello, helper, keepers, mark, marked, preamble, run, start)
from live import ROOT

MODES = ["pipe", "lines", "listen"]


def send_signal(t, number, to=GROUP):
    time.sleep(0.15)            # a shell that is about to start something loses an INT
    t.send(frame(SIGNAL, bytes([number, to])))


def ready(h, line, **more):
    t = h.talk().greet(line, **more)
    t.until_out(b"ready\n")
    return t


# --- signals ---

@pytest.mark.parametrize("number", [1, 2, 3, 6, 9, 10, 13, 15, 24, 34, 64])
def test_death_by_signal_is_told(helper, number):
    t = ready(helper(), "echo ready; exec sleep 60")
    send_signal(t, number)
    assert t.finish() == (BY_SIGNAL, number)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("number", [1, 2, 3, 15])
def test_nothing_of_the_group_outlives_a_signal(helper, tmp_path, mode, number):
    """Shells start `&` jobs with INT and QUIT ignored."""
    m = mark(tmp_path)
    t = ready(helper(mode), f"sleep {m} & echo ready; sleep {m}")
    began = time.monotonic()
    send_signal(t, number)
    assert t.finish() == (BY_SIGNAL, number) and time.monotonic() - began < 2
    assert not marked(m)


@pytest.mark.parametrize("kind", [EXEC, PTY])
def test_nothing_of_the_group_outlives_a_signal_without_proc(helper, tmp_path, kind):
    """Nobody can look at who belongs to it."""
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f"#!/bin/sh\nexec {' '.join(ROOT)} sh -c 'mount -t tmpfs tmpfs /proc && exec \"$@\"' sh {BINARY} \"$@\"\n")
    wrapper.chmod(0o755)
    m = mark(tmp_path)
    t = helper(program=str(wrapper)).talk().greet(f"sleep {m} & echo ready; sleep {m}", kind=kind)
    t.until_out(b"ready")
    send_signal(t, 2)
    assert t.finish() == (BY_SIGNAL, 2)
    wait_for(lambda: not marked(m), 6)


def test_one_that_ignores_all_gets_kill(helper, tmp_path):
    m = mark(tmp_path)
    t = ready(helper(), f"(trap '' TERM INT; echo ready; sleep {m} & sleep {m}; sleep {m}) & sleep {m}")
    began = time.monotonic()
    send_signal(t, 2)
    assert t.finish() == (BY_SIGNAL, 2) and 1.5 < time.monotonic() - began < 3.5
    assert not marked(m)


def test_a_signal_that_was_handled_ends_nothing(helper, tmp_path):
    m = mark(tmp_path)
    t = ready(helper(), f"trap 'echo caught' USR1; sleep {m} & echo ready; while ! [ -e go ]; do sleep 0.1; done")
    send_signal(t, 10, LEADER)
    t.until_out(b"caught\n")
    (tmp_path / "go").touch()
    assert t.finish() == (CODE, 0)
    assert len(marked(m)) == 1
    os.kill(marked(m)[0], 9)


def test_to_whom(helper, tmp_path):
    m = mark(tmp_path)
    line = f"trap 'echo leader' USR1; (trap 'echo other' USR1; echo ready; while :; do sleep 0.1; done) & while :; do sleep 0.1; done"
    t = ready(helper(), line)
    send_signal(t, 10, LEADER)
    t.until_out(b"leader\n")
    assert t.next(0.5) is None and b"other" not in t.out
    send_signal(t, 10, GROUP)
    t.until_out(b"other\n")
    t.send(frame(KILL))
    assert t.finish()[0] == BY_SIGNAL


@pytest.mark.parametrize("mode", MODES)
def test_kill(helper, tmp_path, mode):
    m = mark(tmp_path)
    t = ready(helper(mode), f"trap '' HUP; echo ready; sleep {m} & sleep {m}; sleep {m}")
    began = time.monotonic()
    t.send(frame(KILL))
    assert t.finish() == (BY_SIGNAL, 9) and 1.5 < time.monotonic() - began < 3.5
    assert not marked(m)


def test_kill_of_what_is_stopped(helper):
    t = ready(helper(), "echo ready; kill -STOP $$; sleep 50")
    time.sleep(0.2)
    t.send(frame(KILL))
    assert t.finish() == (BY_SIGNAL, 1)


@pytest.mark.parametrize("number", [15, 1, 2])
@pytest.mark.parametrize("mode", ["pipe", "lines"])
def test_sigterm_to_the_front_is_a_kill(helper, tmp_path, mode, number):
    m = mark(tmp_path)
    h = helper(mode)
    t = ready(h, f"echo ready; sleep {m} & sleep {m}")
    h.process.send_signal(number)
    assert t.finish() == (BY_SIGNAL, 1) and not marked(m)
    assert h.ended() == 0


# --- the ordinary end ---

@pytest.mark.parametrize("mode", MODES)
def test_background_children_stay(helper, tmp_path, mode):
    """They hold the pipes, and go on printing to nobody."""
    m = mark(tmp_path)
    h = helper(mode)
    began = time.monotonic()
    t = h.talk().greet(f"(sleep 0.5; echo late; sleep 0.3; echo late >&2; echo alive > alive; exec sleep {m}) & echo now")
    assert t.finish() == (CODE, 0) and bytes(t.out) == b"now\n" and time.monotonic() - began < 0.4
    wait_for(lambda: (tmp_path / "alive").exists())
    if mode != "listen":
        assert h.ended() == 0
    assert len(marked(m)) == 1
    os.kill(marked(m)[0], 9)


def test_a_chatty_child_does_not_hold_the_end_up(helper, tmp_path):
    m = mark(tmp_path)
    t = helper().talk().greet(f"(while :; do echo {m}; done) & sleep 0.3")
    t.keep = False
    began = time.monotonic()
    assert t.finish() == (CODE, 0) and time.monotonic() - began < 3
    subprocess.run(["pkill", "-s", str(t.started.pid)], check=True)


def test_the_tail_is_never_lost(tmp_path):
    for _ in range(60):
        t = run(tmp_path, "seq 1 20000; echo end >&2", mode="listen")
        assert t.result == (CODE, 0) and t.out.endswith(b"\n20000\n") and t.err == b"end\n"


def test_a_closed_output_is_not_the_end(helper):
    began = time.monotonic()
    t = helper().talk().greet("exec >&- 2>&-; sleep 0.6; exit 9")
    assert t.finish() == (CODE, 9) and time.monotonic() - began > 0.5


# --- timeouts ---

@pytest.mark.parametrize("kind", [1, 2])
def test_timeout(helper, tmp_path, kind):
    m = mark(tmp_path)
    began = time.monotonic()
    t = helper().talk().greet(f"trap '' HUP TERM; echo hi; sleep {m} & sleep {m}; sleep {m}", timeout_ms=700, kind=kind)
    assert t.finish() == (TIMEOUT, 9) and 0.6 < time.monotonic() - began < 1.5
    assert t.out.startswith(b"hi") and not marked(m)


def test_timeout_that_is_not_reached(helper):
    assert helper().talk().greet("exit 3", timeout_ms=30000).finish() == (CODE, 3)
    assert helper().talk().greet("exit 3", timeout_ms=2**64 - 1).finish() == (CODE, 3)


# --- a client that is gone ---

@pytest.mark.parametrize("mode", MODES)
def test_link_cut_ends_the_group(helper, tmp_path, mode):
    m = mark(tmp_path)
    t = ready(helper(mode), f"trap 'echo hup > hup; exit' HUP; echo ready; sleep {m} & wait", flags=INPUT)
    t.close()
    wait_for(lambda: not marked(m), 4)
    assert (tmp_path / "hup").read_text() == "hup\n"


@pytest.mark.parametrize("mode", MODES)
def test_link_cut_ends_one_that_ignores_hup(helper, tmp_path, mode):
    m = mark(tmp_path)
    t = ready(helper(mode), f"trap '' HUP; echo ready; sleep {m} & sleep {m}")
    t.close()
    wait_for(lambda: not marked(m), 5)


@pytest.mark.parametrize("mode", ["pipe", "lines"])
def test_front_killed(helper, tmp_path, mode):
    m = mark(tmp_path)
    h = helper(mode)
    t = ready(h, f"echo ready; sleep {m} & sleep {m}")
    h.process.kill()
    wait_for(lambda: not marked(m), 4)


def test_deaf_reader_gone(helper, tmp_path):
    """Nobody reads: seen when something is printed, at the latest."""
    m = mark(tmp_path)
    first = preamble() + hello() + start(f"echo ready; sleep {m} & sleep {m}", flags=NO_ACK)
    h = helper("lines", first=first, stdin=subprocess.DEVNULL)
    t = h.talk(credit=False, ack=False)
    t.until_out(b"ready\n")
    t.close()
    wait_for(lambda: not marked(m), 4)


# Where the link is cut: after these bytes of what an honest client says.
def honest(line):
    return preamble() + hello() + start(line, flags=INPUT) + frame(DATA, b"some input") + frame(EOF)


@pytest.mark.parametrize("mode", ["pipe", "listen"])
def test_cut_at_every_byte(tmp_path, mode):
    """Nothing is left, and nothing runs but what was asked for whole."""
    m = mark(tmp_path)
    text = honest(f"sleep {m}")
    for n in range(0, len(text), 1 if mode == "pipe" else 7):
        h = Helper(mode, tmp_path)
        t = h.talk()
        if n:
            t.send(text[:n])
        t.close()
        if mode == "pipe":
            assert h.ended() == 0
        h.close()
    wait_for(lambda: not marked(m) and not keepers(tmp_path), 6)


@pytest.mark.parametrize("mode", MODES)
def test_bytes_one_by_one(helper, mode):
    h = helper(mode)
    t = h.talk()
    for b in honest("cat"):
        t.send(bytes([b]))
    assert t.finish() == (CODE, 0) and t.out == b"some input"


def test_cut_after_exit(helper, tmp_path):
    """The end was told, and nobody says that it came."""
    h = helper("listen")
    t = h.talk(ack=False).greet("true")
    assert t.finish() == (CODE, 0)
    assert len(keepers(tmp_path)) == 1
    t.close()
    wait_for(lambda: not keepers(tmp_path), 2)


@pytest.mark.parametrize("user", [b"", b"nobody"] if os.geteuid() == 0 else [b""])
@pytest.mark.parametrize("kind", [EXEC, PTY])
def test_a_keeper_that_is_killed_takes_its_command_along(helper, tmp_path, kind, user):
    m = mark(tmp_path)
    t = helper().talk().greet("sh", "-c", f"echo ready; exec sleep {m}", kind=kind, user=user)
    while b"ready" not in t.out:
        t.next()
    keeper = int(Path(f"/proc/{t.started.pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: not marked(m), 2)
    t.close()


def test_pings_are_answered(helper):
    t = ready(helper(), "echo ready; sleep 20")
    for n in (0, 1, 2**64 - 1):
        t.send(frame(9, struct.pack(">Q", n)))
        assert t.until(0x89, 2) == struct.pack(">Q", n)
    t.close()


# --- windows ---

@pytest.mark.parametrize("window", [1, 1000, 65536, 300000])
def test_window(helper, window):
    """No more is sent than there is room for."""
    size = 3000 * window if window < 300 else 2000000
    if window == 1:
        size = 200
    t = helper().talk(window=window).greet(f"head -c {size} /dev/zero; echo x >&2")
    assert t.finish() == (CODE, 0) and len(t.out) == size


def test_no_window_no_output(helper):
    t = helper().talk(window=0, credit=False).greet("echo hi; exit 3")
    assert t.next(0.5) and t.until(STARTED)
    assert t.next(1) is None and not t.exit
    t.close()


def test_a_reader_that_stops(helper, tmp_path):
    """The program waits at its pipe; the end comes when the reader goes on."""
    t = helper().talk(window=100000, credit=False).greet("head -c 30000000 /dev/zero; echo wrote > wrote")
    while t.next(1.5):
        pass
    assert t.taken == 100000 and not (tmp_path / "wrote").exists()
    t.credit = True
    t.told = t.taken
    t.send(frame(7, struct.pack(">Q", t.taken)))
    assert t.finish() == (CODE, 0) and len(t.out) == 30000000


@pytest.mark.parametrize("mode", MODES)
def test_a_link_that_is_not_read(helper, tmp_path, mode):
    """Beyond the window there is the link's own back-pressure."""
    h = helper(mode)
    t = h.talk(window=64 << 20, credit=False).greet("head -c 60000000 /dev/zero")
    time.sleep(1)
    for pid in keepers(tmp_path):
        with open(f"/proc/{pid}/status") as f:
            assert int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) < 8000
    t.keep, slowest = False, 0
    while not t.exit:
        began = time.monotonic()
        t.next()
        slowest = max(slowest, time.monotonic() - began)
    assert t.exit.out == 60000000 and slowest < 0.8, "it waited for a tick"
