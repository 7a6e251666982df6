"""Standard input of exec: every kind of thing that descriptor 0 can be, with and
without -i, by the agent and by the daemon's own calls. What must be sent is sent
to its end, what cannot be sent is never lost in silence, and nothing makes the
command wait."""

import os
import pty
import signal
import socket
import subprocess
import time

import pytest

from live import both, daemon      # noqa: F401

AUTO = pytest.mark.parametrize("both", ["auto"], indirect=True)
MODES = pytest.mark.parametrize("both", ["auto", "never"], indirect=True)
COUNT = ["sh", "-c", "cat | wc -c"]


def run(program, *words, stdin, timeout=15):
    process = program.begin(*words, stdin=stdin, stdout=subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    return process.returncode, out, err


class Pipe:
    """A pipe as standard input; `late` is written and it is closed a moment after the start."""

    def __init__(self, data=b"", keep=False):
        self.read, self.write = os.pipe()
        if data:
            os.write(self.write, data)
        if not keep:
            os.close(self.write)
            self.write = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.read)
        if self.write is not None:
            os.close(self.write)


@MODES
@pytest.mark.parametrize("asked", [(), ("-i",)])
def test_nothing_to_send_costs_nothing(both, asked, tmp_path):
    """/dev/null, an empty file, a file that was read to its end, an empty closed pipe."""
    (tmp_path / "empty").touch()
    (tmp_path / "read").write_bytes(b"x")
    read = open(tmp_path / "read", "rb", buffering=0)
    read.read()
    with Pipe() as pipe, open("/dev/null", "rb") as null, open(tmp_path / "empty", "rb") as empty:
        for stdin in (null, empty, read, pipe.read):
            assert run(both, *asked, *COUNT, stdin=stdin) == (0, b"0\n", b"")


@MODES
@pytest.mark.parametrize("asked", [(), ("-i",)])
def test_closed(both, asked):
    ran = both.exec(*asked, *COUNT, wrap=["sh", "-c", 'exec "$0" "$@" <&-'])
    assert (ran.status, ran.out, ran.err) == (0, b"0\n", b"")


@MODES
def test_a_terminal_is_not_read(both):
    leader, follower = pty.openpty()
    os.write(leader, b"typed\n")
    assert run(both, *COUNT, stdin=follower) == (0, b"0\n", b"")
    os.close(follower)
    assert os.read(leader, 100) == b"typed\r\n"     # its echo, and nobody took it
    os.close(leader)


@AUTO
def test_a_terminal_is_read_with_i(both):
    leader, follower = pty.openpty()
    os.write(leader, b"typed\n\x04")
    assert run(both, "-i", "cat", stdin=follower) == (0, b"typed\n", b"")
    # Typed after the command has gone: nobody waits for it.
    assert run(both, "-i", "true", stdin=follower) == (0, b"", b"")
    os.close(follower)
    os.close(leader)


@AUTO
@pytest.mark.parametrize("asked", [(), ("-i",)])
def test_file_pipe_socket(both, asked, tmp_path):
    data = bytes(range(256)) * 40000        # 10 MB, more than every window
    (tmp_path / "file").write_bytes(data)
    with open(tmp_path / "file", "rb") as file:
        file.seek(0)
        status, out, err = run(both, *asked, "cat", stdin=file)
        assert (status, out == data, err) == (0, True, b"")
        file.seek(len(data) - 3)
        assert run(both, *asked, "cat", stdin=file) == (0, data[-3:], b"")
    status, out, err = run(both, *asked, "cat", stdin=subprocess.Popen(["cat", tmp_path / "file"], stdout=subprocess.PIPE).stdout)
    assert (status, out == data, err) == (0, True, b"")
    here, there = socket.socketpair()
    here.sendall(b"by socket")
    here.shutdown(socket.SHUT_WR)
    assert run(both, *asked, "cat", stdin=there) == (0, b"by socket", b"")


@AUTO
def test_a_file_of_size_0_that_has_something(both):
    with open("/proc/version", "rb") as file:
        expected = open("/proc/version", "rb").read()
        assert run(both, "cat", stdin=file) == (0, expected, b"")


@AUTO
def test_the_end_arrives_every_time(both):
    for _ in range(50):
        ran = both.exec("cat", input=b"foo")
        assert (ran.status, ran.out, ran.err) == (0, b"foo", b"")


@MODES
def test_an_idle_pipe_never_hangs(both):
    with Pipe(keep=True) as pipe:
        started = time.monotonic()
        assert run(both, "true", stdin=pipe.read) == (0, b"", b"")
        assert run(both, "sh", "-c", "exit 3", stdin=pipe.read) == (3, b"", b"")
        assert time.monotonic() - started < 5


@AUTO
def test_a_pipe_that_is_written_and_closed_late(both):
    with Pipe(keep=True) as pipe:
        process = both.begin("cat", stdin=pipe.read, stdout=subprocess.PIPE)
        for piece in (b"one ", b"two ", b"three"):
            time.sleep(0.3)
            os.write(pipe.write, piece)
            assert os.read(process.stdout.fileno(), 100) == piece
        os.close(pipe.write)
        pipe.write = None
        assert process.wait(10) == 0


@AUTO
def test_a_command_that_reads_nothing(both):
    """The writer is not waited for, neither one that never stops nor one that is slow."""
    yes = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
    assert run(both, "sh", "-c", "sleep 0.5; exit 4", stdin=yes.stdout)[0] == 4
    yes.stdout.close()
    assert yes.wait(10) != 0
    assert run(both, "head", "-c", "3", stdin=subprocess.Popen(["yes"], stdout=subprocess.PIPE).stdout) == (0, b"y\ny", b"")


@AUTO
def test_others_take_from_the_same_pipe(both):
    """All of them are woken by one byte, and one gets it: the others do not wait in the read."""
    with Pipe(keep=True) as pipe:
        running = [both.begin("sh", "-c", "cat; exit 0", stdin=pipe.read, stdout=subprocess.PIPE) for _ in range(8)]
        time.sleep(1.5)
        for _ in range(20):
            os.write(pipe.write, b"x")
            time.sleep(0.02)
        os.close(pipe.write)
        pipe.write = None
        got = b"".join(p.communicate(timeout=15)[0] for p in running)
        assert got == b"x" * 20 and all(p.returncode == 0 for p in running)


@MODES
def test_input_that_cannot_be_read(both, tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    status, out, err = run(both, "cat", stdin=fd)
    os.close(fd)
    assert status == 125 and out == b"" and b"cannot read standard input: Is a directory" in err


# --- where it cannot be sent ---

NEVER = pytest.mark.parametrize("both", ["never"], indirect=True)


@NEVER
@pytest.mark.parametrize("asked", [(), ("-i",)])
def test_what_would_be_lost_is_refused(both, asked, tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    with open(tmp_path / "file", "rb") as file, Pipe(b"x", keep=True) as full, Pipe(b"x") as closed:
        for stdin in (file, full.read, closed.read):
            both.server.requests.clear()
            status, out, err = run(both, *asked, "touch", "/tmp/ran", stdin=stdin)
            assert (status, out) == (125, b"") and b"[E8004]" in err and b"standard input" in err
    assert both.inside("ls /tmp").split() == []


@NEVER
def test_what_was_asked_for_is_refused(both):
    leader, follower = pty.openpty()
    with Pipe(keep=True) as idle:
        for stdin in (follower, idle.read):
            status, out, err = run(both, "-i", "touch", "/tmp/ran", stdin=stdin)
            assert (status, out) == (125, b"") and b"[E8004]" in err
    os.close(leader)
    os.close(follower)


@NEVER
def test_what_comes_later_is_no_success(both):
    with Pipe(keep=True) as pipe:
        process = both.begin("sleep", "1", stdin=pipe.read)
        time.sleep(0.4)
        os.write(pipe.write, b"too late")
        assert process.wait(10) == 125
        assert b"[E8004]" in process.stderr.read()
    # The same with the end alone: nothing was lost.
    with Pipe(keep=True) as pipe:
        process = both.begin("sleep", "1", stdin=pipe.read)
        time.sleep(0.4)
        os.close(pipe.write)
        pipe.write = None
        assert process.wait(10) == 0 and process.stderr.read() == b""


@NEVER
def test_it_makes_no_difference_when_it_comes(both):
    """Written before or behind the first look at it."""
    for _ in range(20):
        ran = both.exec("cat", input=b"x", form=("--json",))
        ran.failed_well(json_form=True)
        assert ran.status == 1 and ran.error["code"] == "E8004"
        ran = both.exec("cat", input=b"x")
        ran.failed_well(json_form=False)
        assert ran.status == 125 and b"[E8004]" in ran.err


# --- settings that are read from it ---

def test_a_setting_from_standard_input_leaves_none_for_the_command(both):
    both.env["ABX_OPENSANDBOX_API_KEY"] = None
    from scripted import KEY
    ran = both("--option", "api_key=-", "exec", "box", "cat", input=KEY.encode())
    assert (ran.status, ran.out) == (0, b"")
    ran = both("--option", "api_key=-", "exec", "-i", "box", "cat", input=KEY.encode())
    assert ran.status == 2 and b"cannot hold both" in ran.err


@AUTO
def test_stopped_and_continued(both):
    """SIGTSTP stops abx as any program; it goes on where it was."""
    process = both.begin("sh", "-c", "echo a; sleep 2; echo b", stdin=subprocess.DEVNULL)
    assert process.stdout.read(2) == b"a\n"
    process.send_signal(signal.SIGSTOP)
    time.sleep(1)
    process.send_signal(signal.SIGCONT)
    assert process.communicate(timeout=10)[0] == b"b\n" and process.returncode == 0
