"""The carried helper and time: what takes many seconds, all at once."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from agent import wait_for
from frames import CODE, DATA, INPUT, Helper, frame, keepers, mark, marked


def ready(h, line, **more):
    t = h.talk().greet(line, **more)
    t.until_out(b"ready\n")
    return t


def no_ack(folder):
    """The end was told, and nobody says that it came: 10 seconds."""
    h = Helper("listen", folder)
    t = h.talk(ack=False).greet("true")
    assert t.finish() == (CODE, 0)
    began = time.monotonic()
    t.cut(15)
    assert 9 < time.monotonic() - began < 13


def mute(folder):
    """20 seconds without a frame. Meanwhile the helper shows life."""
    m = mark(folder)
    h = Helper("listen", folder)
    t = ready(h, f"echo ready; sleep {m}")
    t.last_ping = time.monotonic() + 1000
    began = time.monotonic()
    t.cut(30)
    assert 19 < time.monotonic() - began < 24
    assert t.pongs >= 3 and not t.exit
    wait_for(lambda: not marked(m), 4)


def pause(folder, mode):
    """A stopped tree goes on where it was: what was slept through does not count."""
    m = mark(folder)
    h = Helper(mode, folder)
    t = ready(h, f"echo ready; read x; echo got $x; sleep {m} & read y; echo $y", flags=INPUT, timeout_ms=15000)
    tree = {*keepers(folder), t.started.pid}
    for pid in tree:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(16)
    t.send(frame(DATA, b"one\n"))
    for pid in tree:
        os.kill(pid, signal.SIGCONT)
    t.until_out(b"got one\n")
    time.sleep(1.5)
    t.send(frame(DATA, b"two\n"))
    t.until_out(b"two\n")
    assert t.finish() == (CODE, 0)
    os.kill(marked(m)[0], 9)


def nobody_comes(folder):
    Helper("listen", folder)
    assert keepers(folder)
    time.sleep(8.5)
    assert keepers(folder)


def half_a_hello(folder):
    h = Helper("listen", folder)
    t = h.talk()
    t.send(b"ABX1")
    time.sleep(8.5)
    assert keepers(folder)
    t.cut(6)


def unread_input(folder):
    """A program that does not read for 25 seconds, and its client pushes."""
    h = Helper("listen", folder)
    t = ready(h, "echo ready; sleep 25; wc -c", flags=INPUT)
    t.write(b"x" * (1 << 20))
    began = time.monotonic()
    while time.monotonic() - began < 24:
        assert not t.exit and not t.input_taken
        t.next(2)
    t.write(b"x" * (1 << 20))
    t.send(frame(4))
    assert t.finish() == (CODE, 0) and t.out.endswith(b"\n2097152\n")


CASES = {"no ack": no_ack, "mute": mute, "nobody comes": nobody_comes, "half a hello": half_a_hello, "unread input": unread_input,
         **{f"pause {mode}": lambda f, mode=mode: pause(f, mode) for mode in ("pipe", "lines", "listen")}}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with ThreadPoolExecutor(len(CASES)) as pool:
        yield {name: (f := tmp_path_factory.mktemp("wait"), pool.submit(case, f)) for name, case in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_waits(running, name):
    folder, future = running[name]
    future.result(60)
    wait_for(lambda: not keepers(folder), 6)
