"""Signals: the first goes to the remote process group, what is not gone after
2 seconds is killed, a second leaves at once; the status is the signal's."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from live import both, daemon      # noqa: F401
from test_exec_input import AUTO, MODES

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)]


def _words(pid):
    try:
        return Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def begin(program, line, mark, *options, form=()):
    """Runs until it has said that it is ready."""
    process = program.begin(*options, "sh", "-c", line, mark, form=form, stdin=subprocess.DEVNULL)
    if not form:
        assert process.stdout.read(6) == b"ready\n"
    return process


@MODES
@pytest.mark.parametrize("number,status", SIGNALS)
def test_each_reaches_the_group(both, number, status):
    mark = f"each-{both.mode}-{number}"
    process = begin(both, f'echo ready; sh -c "sleep 300" {mark} & sleep 300', mark)
    process.send_signal(number)
    assert process.wait(10) == status and process.stderr.read() == b""
    assert both.gone(mark)


@AUTO
@pytest.mark.parametrize("number,status", SIGNALS)
def test_what_is_printed_meanwhile_comes_out(both, number, status):
    name = signal.Signals(number).name[3:]
    process = begin(both, f"trap 'echo caught {name}; exit 0' {name}; echo ready; sleep 30 & wait", f"meanwhile-{name}")
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (status, f"caught {name}\n".encode(), b"")


@AUTO
def test_what_does_not_go_is_killed(both):
    mark = "stubborn"
    process = begin(both, "trap '' INT TERM HUP; echo ready; while :; do sleep 0.1; done", mark)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130 and 1.5 < time.monotonic() - started < 7
    assert both.gone(mark)


@AUTO
def test_an_end_of_which_nothing_is_heard(both):
    """The keeper of the command says nothing any more."""
    process = begin(both, "trap '' INT HUP; echo ready; while :; do sleep 0.1; done", "unheard")
    shell = next(p for p in os.listdir("/proc") if p.isdigit() and _words(p)[:2] == [b"sh", b"-c"] and b"unheard" in _words(p))
    keeper = int(Path(f"/proc/{shell}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(keeper, signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    try:
        err = process.communicate(timeout=15)[1]
        assert process.returncode == 130 and b"the command may still run: nothing was heard of its end\n" in err
    finally:
        os.kill(keeper, signal.SIGCONT)
    assert both.gone("unheard", 10)


@MODES
def test_a_second_leaves_at_once(both):
    mark = f"second-{both.mode}"
    process = begin(both, "trap '' INT TERM HUP; echo ready; while :; do sleep 0.1; done", mark)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(3) in (130, -signal.SIGINT) and time.monotonic() - started < 1
    assert both.gone(mark, 8)


@MODES
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_what_was_ignored_stays_so(both, number):
    """nohup, and what a shell starts with &."""
    name = number.name[3:]
    words = ["--agent", both.mode, "exec", "box", "sh", "-c", "echo ready; sleep 1; echo end"]
    from conftest import BINARY
    process = subprocess.Popen(["sh", "-c", f'trap "" {name}; exec "$0" "$@"', BINARY, *words], env=both.environment(),
                               stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert process.communicate(timeout=10)[0] == b"end\n" and process.returncode == 0


@AUTO
def test_killed_outright(both):
    """The agent sees that nobody is there any more."""
    process = begin(both, "echo ready; sleep 300", "killed-outright")
    process.kill()
    process.wait()
    assert both.gone("killed-outright", 8)


@AUTO
def test_json(both):
    process = begin(both, "sleep 300", "signal-json", form=("--json",))
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=10)
    assert process.returncode == 143 and b'"signal": 15' in out
    assert both.gone("signal-json")


@MODES
def test_with_a_stopped_reader(both):
    mark = f"stopped-{both.mode}"
    process = both.begin("sh", "-c", "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", mark, stdin=subprocess.DEVNULL)
    process.stdout.read(1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    assert both.gone(mark)


@AUTO
def test_background_children(both):
    """They stay after an ordinary end, and go with a command that was stopped."""
    ran = both.exec("sh", "-c", 'sh -c "sleep 30" stays >/dev/null 2>&1 & exit 3', input=None, stdin=subprocess.DEVNULL)
    end = time.monotonic() + 5          # it may not have become itself yet
    while both.runs("stays") != 1 and time.monotonic() < end:
        time.sleep(0.05)
    assert ran.status == 3 and both.runs("stays") == 1
    both.inside("kill $(ps ax | grep '[s]tays' | awk '{print $1}') 2>/dev/null; pkill -f 'sleep 30$'; true")
    process = begin(both, 'sh -c "sleep 300" goes & echo ready; wait', "leader")
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130 and both.gone("goes", 4)


@AUTO
def test_a_timeout_ends_the_group(both):
    started = time.monotonic()
    ran = both.exec("--timeout", "700ms", "sh", "-c", 'sh -c "sleep 300" timed & sleep 300', input=None, stdin=subprocess.DEVNULL)
    assert ran.status == 124 and time.monotonic() - started < 6
    assert both.gone("timed")
