"""The matrix of signals: which one, with and without a terminal, on which daemon, in an image with bash and in one
without, directly and through the server, compiled in and as the plugin; and what is left in the sandbox.

The command is a shell with a job in the background and a program in the
foreground. Without a terminal, shells start such a job with SIGINT and SIGQUIT
ignored; it has to go all the same. The second command ignores everything.

What was seen is written to e2e/run/signals.md.
"""

import re
import signal
import subprocess
import time

import pytest

import rig as rigs

COMMANDS = {
    "job": "sleep {0} & echo up; sleep {0}",
    "deaf": "trap '' INT TERM HUP QUIT; sleep {0} & echo up; while :; do sleep {0}; done",
}
SEEN = {}


def told(box, number, tty, line):
    mark = f"8{number:02d}{time.monotonic_ns() % 10**7:07d}"
    child = box.abx.start("exec", *(["-t"] if tty else []), box.id, line.format(mark), bufsize=0)
    return box, mark, child


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])
@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT"])
def test_matrix(boxes, name, tty, command):
    number, wrong = signal.Signals["SIG" + name], []
    if command == "deaf":               # two seconds each: the combinations that differ in what ends it
        boxes = [b for b in boxes if b.route == ("direct" if b.image == "debian" else "proxy")]
    running = [told(b, number, tty, COMMANDS[command]) for b in boxes]
    for box, _, child in running:
        if child.stdout.readline().rstrip() != b"up":
            wrong.append((box, "did not start", child.communicate()))
    for box, mark, _ in (running[0], running[-1]):
        assert box.running(mark) in (1, 2, 3), "what is to be looked for is not seen while it is there"
    for _, _, child in running:
        child.send_signal(number)
    for box, mark, child in running:
        try:
            said = child.communicate(timeout=20)[1]
        except subprocess.TimeoutExpired:
            child.kill()
            said = child.communicate()[1]
        left = box.running(mark)
        # Where servers are too slow to bring word of the end, abx does not claim it.
        end = time.monotonic() + 10
        while left and b"may still run" in said and time.monotonic() < end:
            time.sleep(0.2)
            left = box.running(mark)
        SEEN[name, tty, command, box.daemon, box.image, box.route, box.through] = (child.returncode, left)
        if left or child.returncode != 128 + number:
            wrong.append((box, child.returncode, f"{left} left", said))
    assert not wrong


@pytest.fixture(scope="module", autouse=True)
def table():
    yield
    rows = {}
    for (name, tty, command, daemon, image, _, _), seen in SEEN.items():
        rows.setdefault((name, tty, command), {}).setdefault((daemon, image), set()).add(seen)
    columns = [(d, i) for d in rigs.DAEMONS for i in rigs.IMAGES]
    lines = ["| signal | | command | " + " | ".join(f"{d}, {i}" for d, i in columns) + " |", "|---|---|---|" + "---|" * len(columns)]
    for (name, tty, command), cells in sorted(rows.items()):
        said = [" or ".join(f"{c}, {n or 'nothing'} left" for c, n in sorted(cells.get(k, []))) for k in columns]
        lines.append(f"| {name} | {'terminal' if tty else 'pipes'} | {command} | " + " | ".join(said) + " |")
    (rigs.RUN / "signals.md").write_text("\n".join(lines) + "\n")
    print("\n" + "\n".join(lines))


@pytest.mark.paired
def test_second_interrupt_leaves_at_once(box):
    child = box.abx.start("exec", box.id, "trap '' INT; echo up; sleep 600", bufsize=0)
    assert child.stdout.readline() == b"up\n"
    child.send_signal(signal.SIGINT)
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    begun = time.monotonic()
    assert child.wait(10) == 130 and time.monotonic() - begun < 1.5


@pytest.mark.paired
@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])
def test_killed_client(box, tty):
    """abx itself is killed: what it ran goes, too, within the time that a link takes to be missed."""
    box, mark, child = told(box, signal.SIGKILL, tty, COMMANDS["deaf"])
    assert child.stdout.readline().rstrip() == b"up"
    child.kill()
    child.wait()
    end = time.monotonic() + 30
    while box.running(mark):
        assert time.monotonic() < end, "the command outlived its client"
        time.sleep(0.2)


def test_signal_state_of_commands(boxes):
    """Nothing is ignored and nothing blocked, whatever the daemon was started with."""
    wrong = []
    for box in boxes:
        for words in ([], ["-t"]):
            out = box.abx("exec", *words, box.id, "--", "grep", "-E", "Sig(Ign|Blk)", "/proc/self/status").text
            if [int(n, 16) for n in re.findall(r"\t([0-9a-f]+)", out)] != [0, 0]:
                wrong.append((box, words, out))
    assert not wrong
