"""abx run: a sandbox is made, the command runs in it, and the sandbox is removed,
whatever happens in between."""

import os
import re
import signal
import subprocess
import time

import pytest

import scripted
from live import both, daemon      # noqa: F401
from test_exec_input import MODES
from test_interrupts import traced_calls


def run(both, *words, form=(), **more):
    if "input" not in more:
        more.update(input=None, stdin=subprocess.DEVNULL)
    return both(*form, "--agent", both.mode, "run", *words, **more)


def left(both):
    return [name for name in both.server.boxes if name != "box"]


@MODES
def test_status_and_output(both):
    ran = run(both, "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (ran.status, ran.out, ran.err) == (7, b"out\n", b"err\n")
    ran = run(both, "echo $((6*7))")
    assert (ran.status, ran.out) == (0, b"42\n")
    ran = run(both, "exit 3", form=("--json",))
    assert ran.status == 0 and ran.doc["exit_code"] == 3
    assert run(both, "--timeout", "300ms", "sleep 9").status == 124
    assert left(both) == [] and len(both.server.removed) == 4


def test_options_of_both(both):
    ran = run(both, "--template", "node:22", "-m", "a=b", "-e", "X=1", "--cpu", "2", "--timeout", "10m", "--", "sh", "-c", "echo $X; cat",
              input=b"in")
    asked = next(r for r in both.server.requests if r.method == "POST" and r.path == "/v1/sandboxes").json()
    assert ran.out == b"1\nin" and asked["image"]["uri"] == "node:22" and asked["metadata"]["a"] == "b"
    assert asked["timeout"] == 900 and asked["resourceLimits"]["cpu"] == "2"
    for words, seconds in (([], 3600), (["--lifetime", "2h"], 7200)):
        both.server.requests.clear()
        assert run(both, *words, "true").status == 0
        asked = next(r for r in both.server.requests if r.method == "POST" and r.path == "/v1/sandboxes").json()
        assert asked["timeout"] == seconds


def test_keep(both):
    ran = run(both, "--keep", "-q", "exit 2")
    assert ran.status == 2 and len(left(both)) == 1 and ran.err.decode() == f"abx: sandbox {left(both)[0]} is kept\n"


@pytest.mark.parametrize("words,status", [(["nosuchprogram", "x"], 127), (["-w", "/nosuch", "true", "x"], 125),
                                          (["-u", "nosuchuser", "true", "x"], 2)])
def test_a_command_that_cannot_start(both, words, status):
    ran = run(both, *words)
    assert ran.status == status and left(both) == [], ran


def test_nothing_is_made_for_wrong_usage(both):
    for words in ([], [""], ["--timeout", "soon", "x"], ["--lifetime", "0", "x"], ["-m", "x", "y"], ["-e", "NOT_SET_HERE", "x"]):
        assert run(both, *words).status == 2
    assert both.server.requests == []


def test_a_sandbox_that_cannot_be_made(both):
    both.server.script = lambda r, whole: [scripted.answer(500, {"message": "no"})] if r.method == "POST" else [whole]
    ran = run(both, "true")
    assert ran.status == 125 and not any(r.path.endswith("/command") for r in both.server.requests)
    ran = run(both, "true", form=("--json",))
    ran.failed_well(json_form=True)
    assert ran.status == 1


@pytest.mark.parametrize("words,status", [("true", 125), ("exit 4", 4)])
def test_a_sandbox_that_cannot_be_removed(both, words, status):
    both.server.script = lambda r, whole: [scripted.answer(500, {"message": "no"})] if r.method == "DELETE" else [whole]
    ran = run(both, words)
    named = re.search(r"sandbox (\S+) still runs", ran.err.decode())
    assert ran.status == status and named and f"`abx kill {named[1]}`" in ran.err.decode(), ran


def test_stdout_gone_or_full(both):
    process = both.start("run", "yes", stdin=subprocess.DEVNULL)
    process.stdout.read(1)
    process.stdout.close()
    assert process.wait(10) == 141 and left(both) == []
    with open("/dev/full", "wb") as full:
        assert run(both, "yes", stdout=full).status == 125
    assert left(both) == []


@pytest.mark.parametrize("number,status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals(both, number, status):
    process = both.start("run", "echo ready; sleep 300", stdin=subprocess.DEVNULL)
    assert process.stdout.read(6) == b"ready\n"
    process.send_signal(number)
    assert process.wait(10) == status and left(both) == []


def test_a_second_ctrl_c_waits_no_longer_and_removes(both):
    process = both.start("run", "trap '' INT; echo ready; while :; do sleep 0.1; done", stdin=subprocess.DEVNULL)
    assert process.stdout.read(6) == b"ready\n"
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.wait(2) == 130 and left(both) == []


def test_ctrl_c_during_the_removal_names_what_is_left(both):
    both.server.script = lambda r, whole: [scripted.HOLD] if r.method == "DELETE" else [whole]
    process = both.start("run", "exit 3", stdin=subprocess.DEVNULL)
    end = time.monotonic() + 10
    while not any(r.method == "DELETE" for r in both.server.requests):
        assert time.monotonic() < end
        time.sleep(0.02)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert process.wait(3) == 130 and b"still runs" in process.stderr.read()


def test_ctrl_c_at_every_call(both, tmp_path):
    """Whatever the moment: no sandbox is left that nobody knows of."""
    both.mode = "never"
    words = ["--agent", "never", "run", "true"]
    quiet = lambda *w, **more: both(*w, input=None, stdin=subprocess.DEVNULL, **more)      # noqa: E731
    calls = traced_calls(quiet, words, tmp_path)
    assert len(calls) > 40
    for name, nth in calls[::2] if len(calls) > 160 else calls:
        for box in left(both):
            del both.server.boxes[box]
        ran = quiet(*words, wrap=["strace", "-f", "-o", "/dev/null", "-e", f"trace={name}", "-e",
                                  f"inject={name}:signal=INT:when={nth}"])
        assert ran.status in (130, -signal.SIGINT, 0), (name, nth, ran)
        assert all(box.encode() in ran.err for box in left(both)), (name, nth, ran, left(both))


def test_killed_outright_leaves_a_sandbox_that_expires(both):
    process = both.start("run", "echo ready; sleep 300", stdin=subprocess.DEVNULL)
    assert process.stdout.read(6) == b"ready\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    asked = next(r for r in both.server.requests if r.method == "POST" and r.path == "/v1/sandboxes").json()
    assert 0 < asked["timeout"] <= 3600
