"""`abx shell` and `abx job attach`, at a real pseudo-terminal, against a real
daemon of this program whose sandbox is this machine."""

import collections
import contextlib
import hashlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

import scripted
from agent import Agent, alive, wait_for
from conftest import Program
from scripted import answer
from terminal import Terminal, Wire

SHELL = ["shell", "box-1"]


class Real(scripted.Server):
    """Its sandbox's daemon is a real one, at the end of a wire."""
    wire = None

    def _sandbox(self, request, box, rest):
        if rest[:1] == ["endpoints"]:
            return answer(200, {"endpoint": f"127.0.0.1:{self.wire.port}"})
        return super()._sandbox(request, box, rest)


def end_all(folder):
    """What is held there by now, as tests kill the abx that had it."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if f"HOME={folder}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                os.kill(int(pid), signal.SIGTERM)


@pytest.fixture
def daemon(tmp_path_factory):
    agent = Agent(tmp_path_factory.mktemp("daemon"))
    yield agent
    if agent.process.poll() is None:
        agent.close()
    end_all(agent.folder)


@pytest.fixture
def wire(daemon):
    made = Wire(daemon.port)
    yield made
    made.close()


@pytest.fixture
def server(wire):
    with Real() as made:
        made.wire = wire
        made.box("box-1")
        yield made


@pytest.fixture
def at(osb):
    """Makes terminals with abx in them."""
    made = []

    def make(*words, **more):
        made.append(Terminal(osb, *(words or (*SHELL, "sh")), **more))
        return made[-1]
    yield make
    for t in made:
        t.hang_up()


def shell_pid(t):
    return int(t.ask("echo pid=$$.", rb"pid=(\d+)\.")[1])


def run(t, line, name):
    """A line for the shell there, whose program then has the terminal."""
    pid = shell_pid(t)
    t.type(line + "\r")

    def runs():
        t.read(0)
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            children = f.read().split()
        with open(f"/proc/{pid}/stat") as f:
            front = f.read().rpartition(")")[2].split()[5]
        for child in children:
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{child}/stat") as f:
                stat = f.read()
            if f"({name})" in stat and stat.rpartition(")")[2].split()[2] == front:
                return True
        return False
    wait_for(runs)
    return pid


# --- what is there ---

def test_the_shell_is_interactive_and_knows_its_terminal(at, osb):
    t = at(*SHELL)
    t.prompt()
    assert t.ask("stty size; tty", r"(\d+ \d+)\r\n(/dev/pts/\d+)\r\n")[1] == b"40 120"
    assert t.raw()
    assert t.ask("case $- in *i*) echo inter''active;; esac", "interactive\r\n")
    assert t.ask("echo t=$TERM.", r"t=(\w+)\.")[1] == b"vt220"
    t.type("exit 3\r")
    t.ended(3)


def test_the_size_follows(at):
    t = at(*SHELL, "sh", rows=50, cols=200)
    t.prompt()
    assert t.ask("stty size", r"(\d+ \d+)\r\n")[1] == b"50 200"
    for rows, cols in (24, 80), (1, 1), (40, 120), (999, 999):
        t.resize(rows, cols)
        end = time.monotonic() + 10
        while t.ask("echo s=$(stty size).", r"s=(\d+ \d+)\.")[1] != b"%d %d" % (rows, cols):
            assert time.monotonic() < end
            time.sleep(0.05)
    t.type("exit\r")
    t.ended(0)


def test_a_terminal_that_knows_no_size(at):
    t = at(rows=0, cols=0)
    t.prompt()
    assert t.ask("stty size", r"(\d+ \d+)\r\n")[1] == b"24 80"


@pytest.mark.parametrize("local, words, seen", [({"TERM": "xterm-256color"}, [], "xterm-256color"), ({"TERM": ""}, [], "xterm"),
                                                ({"TERM": None}, [], "xterm"), ({}, ["-e", "TERM=dumb"], "dumb"),
                                                ({"LC_ALL": "C.UTF-8", "LANG": "x"}, ["-e", "LC_ALL"], "vt220")])
def test_term(at, local, words, seen):
    t = at(*SHELL, *words, "sh", env=local)
    t.prompt()
    got = t.ask("echo t=$TERM,$LC_ALL,$LANG.", r"t=([\w-]*),([\w.-]*),([\w.-]*)\.")
    assert got[1].decode() == seen and got[2].decode() == ("C.UTF-8" if "LC_ALL" in words else "") and got[3] == b""


@pytest.mark.parametrize("given, used", [("SHELL=/bin/dash", "dash"), ("SHELL=/usr/sbin/nologin", "bash"), ("SHELL=", "bash"),
                                         ("SHELL=/no/such", "bash"), ("SHELL=/bin/false", "bash")])
def test_which_shell(at, given, used):
    t = at(*SHELL, "-e", given)
    t.prompt()
    assert t.ask("echo c=$(cat /proc/$$/comm).", r"c=(\w+)\.")[1].decode() == used


def test_a_command_instead(at, tmp_path):
    t = at(*SHELL, "-w", str(tmp_path), "--", "sh", "-c", 'echo "$PWD:$1"; exit 7', "x", "a  $b*")
    t.expect(re.escape(f"{tmp_path}:a  $b*\r\n"))
    t.ended(7)


@pytest.mark.parametrize("letters", ["-it", "-ti"])
def test_exec_with_a_terminal(at, letters):
    t = at("exec", letters, "box-1", "--", "sh", "-c", 'stty size; tty >&2; read x; echo "got $x"; exit 9')
    t.expect(r"40 120\r\n/dev/pts/\d+\r\n")
    assert t.raw()
    t.type("abc\r")
    t.expect("got abc\r\n")
    t.ended(9)


def test_exec_with_a_terminal_and_no_input(at, osb, tmp_path):
    """The terminal here stays as it is: Ctrl-C is its own, and reaches the command as a signal."""
    t = at("exec", "-t", "box-1", "stty size; exec sleep 100")
    t.expect("40 120\r+\n")
    assert t.restored()
    t.type("\x03")
    t.ended(130)
    ran = osb("exec", "-t", "box-1", "stty size; tty >/dev/null && echo yes; echo $TERM", env={"TERM": "vt52"},
              stdin=subprocess.DEVNULL, input=None)
    assert (ran.status, ran.out, ran.err) == (0, b"24 80\r\nyes\r\nvt52\r\n", b""), ran


@pytest.mark.parametrize("name", ["TERM", "HUP", "INT"])
def test_exec_is_told_which_signal(at, name):
    t = at("exec", "-it", "box-1", "--", "bash", "-c", f"trap 'echo got {name}; exit 3' {name}; echo on; while :; do sleep 0.1; done")
    t.expect("on\r\n")
    t.kill(getattr(signal, "SIG" + name))
    t.ended(128 + getattr(signal, "SIG" + name))


def test_run_with_a_terminal(at, server):
    t = at("run", "-it", "--", "sh")
    t.prompt()
    assert list(server.boxes) == ["box-1", "new-2"]
    t.type("\x10\x11exit 4\r")             # nothing can be left running there
    t.type("exit 4\r")
    t.ended(4)
    assert list(server.boxes) == ["box-1"]


def test_a_job_with_a_terminal(at, osb):
    ran = osb("exec", "-d", "-t", "box-1", "read x; echo got $x; exit 6", stdin=subprocess.DEVNULL, input=None)
    assert ran.status == 0, ran
    t = at("job", "attach", "box-1", ran.out.decode().strip())
    t.type("abc\r")
    t.expect("got abc\r\n")
    t.ended(6)
    assert osb("job", "wait", "box-1", ran.out.decode().strip()).status == 6
    assert osb("job", "rm", "box-1", ran.out.decode().strip()).status == 0


def test_a_shell_that_was_left_is_called_one(at, osb):
    t = at(*SHELL)
    t.expect(rb"[#$] ")
    job = detached(t)[2].decode()       # among those of other tests at this machine
    assert re.search(rf"^{job} .* shell$", osb("job", "list", "box-1").out.decode(), re.M)
    assert osb("job", "kill", "-s", "KILL", "box-1", job).status == 0


def test_a_job_without_a_terminal(at, osb):
    job = osb("exec", "-d", "box-1", "sleep 100").out.decode().strip()
    t = at("job", "attach", "box-1", job)
    t.ended(2)
    assert b"has no terminal" in t.seen
    assert osb("job", "kill", "-s", "KILL", "box-1", job).status == 0
    osb("job", "wait", "box-1", job)
    assert osb("job", "rm", "box-1", job).status == 0


# --- keys ---

def test_keys_are_the_commands_own(at, daemon):
    t = at()
    t.prompt()
    run(t, "sleep 100", "sleep")
    t.type("\x03")
    t.expect(r"\^C\r\n[#$] ")
    assert t.ask("echo st=$?.", r"st=(\d+)\.")[1] == b"130"
    run(t, "cat", "cat")
    t.type("one\r\x04")
    t.expect("one\r\none\r\n")
    t.prompt()


def test_stop_key_of_the_shell_there(at):
    t = at(*SHELL, "bash", "--norc")
    t.prompt()
    run(t, "sleep 100", "sleep")
    t.type("\x1a")
    t.expect("Stopped")
    t.ask("jobs -p; kill %1; echo ki''lled", "killed")


def test_interrupt_key_where_the_daemon_ignores_it(tmp_path_factory, tmp_path):
    """As bootstrap scripts start it, with `&`."""
    def ignore():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    agent = Agent(tmp_path_factory.mktemp("deaf"), limits=ignore)
    with Real() as server:
        server.wire = agent
        server.box("box-1")
        t = Terminal(Program(tmp_path, server), *SHELL, "sh")
        try:
            t.prompt()
            run(t, "sleep 100", "sleep")
            began = time.monotonic()
            t.type("\x03")
            t.expect(r"\^C\r\n[#$] ")
            assert time.monotonic() - began < 5
            assert t.ask("grep SigIgn /proc/self/status", r"SigIgn:\s(\w+)\r")[1] == b"0" * 16
        finally:
            t.hang_up()
            agent.close()
            end_all(agent.folder)


def test_a_large_paste_arrives_in_order(at, tmp_path):
    data = b"".join(b"%07d\n" % i for i in range(131072))
    t = at()
    t.prompt()
    t.ask("stty raw -echo; echo go''on; head -c 1048576 | sha256sum; stty sane", "goon\r?\n")
    t.type(data)
    assert t.expect(rb"([0-9a-f]{64})  -", 60)[1].decode() == hashlib.sha256(data).hexdigest()


def test_output_passes_as_it_is(at, tmp_path):
    """Every byte, escape sequences, what is not UTF-8, characters that are cut."""
    data = bytes(range(256)) * 40 + "\u00e9\u4f60\U0001f600\u202e".encode() * 3000 + os.urandom(3_000_000)
    (tmp_path / "data").write_bytes(data)
    t = at()
    t.prompt()
    t.ask(f"stty raw -echo; printf 'BEG''IN'; cat {tmp_path}/data; printf 'E''ND'; stty sane", "BEGIN")
    end = time.monotonic() + 60
    while b"END" not in t.seen[len(data):]:
        assert time.monotonic() < end, len(t.seen)
        t.read(0.1)
    assert t.seen[:len(data)] == data


def test_size_and_keys_while_output_floods(at):
    t = at()
    t.prompt()
    t.type("yes floodfloodflood\r")
    t.expect("floodfloodflood\r\nfloodfloodflood")
    for i in range(20):
        t.resize(20 + i, 100 + i)
        t.read(0.05)
    began = time.monotonic()
    t.type("\x03")
    t.seen = b""
    assert t.ask("echo s=$(stty size).", r"s=(\d+ \d+)\.")[1] == b"39 119"
    assert time.monotonic() - began < 10


def test_a_terminal_that_takes_nothing_for_a_while(at):
    """Longer than a silence would be taken for the end of the connection."""
    t = at()
    t.prompt()
    t.type("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); echo line$i; done; echo al''l\r")
    t.expect("line100\r\n")
    time.sleep(22)
    with open(f"/proc/{t.pid}/status") as f:
        assert int(re.search(r"VmHWM:\s+(\d+) kB", f.read())[1]) < 20_000
    got = t.expect(rb"(line101\r\n.*)all\r\n", 60)[1]
    assert got == b"".join(b"line%d\r\n" % i for i in range(101, 300001))


# --- the terminal gets its mode back ---

def test_after_the_end(at):
    t = at()
    t.prompt()
    t.wait_raw()
    t.type("kill -9 $$\r")
    t.ended(137)


def test_after_a_refusal(at, server):
    server.boxes["box-1"].state = "Paused"
    t = at()
    t.ended(125)


@pytest.mark.parametrize("name", ["SEGV", "ABRT", "BUS", "ILL", "FPE", "USR1", "USR2", "ALRM", "XCPU", "VTALRM", "SYS", "TRAP"])
def test_after_a_signal_that_ends_it(at, name):
    signo = getattr(signal, "SIG" + name)
    t = at()
    t.prompt()
    assert t.raw()
    t.kill(signo)
    t.ended(128 + signo)


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP"])
@pytest.mark.parametrize("line", [None, "trap '' INT TERM HUP; sleep 100; sleep 100"])
def test_a_signal_is_handed_on_and_ends_it(at, name, line):
    signo = getattr(signal, "SIG" + name)
    t = at()
    t.prompt()
    pid = run(t, line, "sleep") if line else shell_pid(t)
    began = time.monotonic()
    t.kill(signo)
    t.ended(128 + signo)
    assert time.monotonic() - began < 8
    wait_for(lambda: not alive(pid))


def test_a_second_signal_leaves_at_once(at):
    t = at()
    t.prompt()
    pid = run(t, "trap '' INT TERM HUP; sleep 100", "sleep")
    began = time.monotonic()
    t.kill(signal.SIGTERM)
    t.wait_raw(False)
    t.kill(signal.SIGTERM)
    t.ended(143)
    assert time.monotonic() - began < 1.5
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("name", ["TERM", "SEGV"])
def test_a_signal_at_every_call(at, tmp_path, name):
    """From the first change of the mode on: whatever is interrupted, the mode comes back."""
    words = ["exec", "-it", "box-1", "stty size"]
    signo = getattr(signal, "SIG" + name)
    t = at(*words, wrap=["strace", "-o", str(tmp_path / "trace")])
    t.ended(0)
    seen, calls = collections.Counter(), []
    for line in (tmp_path / "trace").read_text().splitlines():
        if found := re.match(r"(\w+)\((.*)", line):
            seen[found[1]] += 1
            if calls or "TCSETS" in found[2]:
                calls.append((found[1], seen[found[1]]))
    assert len(calls) > 40
    statuses = collections.Counter()
    for call, nth in calls:
        t = at(*words, wrap=["strace", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                             f"inject={call}:signal={name}:when={nth}"])
        status = t.wait()
        assert t.restored(), (call, nth, t.seen)
        # A call may come less often than in the trace, and the last ones come behind the last look for a signal.
        assert status in (128 + signo, 0), (call, nth, status, t.seen)
        statuses[status] += 1
        t.close()
    assert statuses[128 + signo] > len(calls) * 0.6, statuses


def test_the_terminal_goes_away(at):
    t = at()
    t.prompt()
    pid = shell_pid(t)
    os.close(t.leader)
    os.close(t.follower)
    t.leader = t.follower = os.open("/dev/null", os.O_RDWR)
    end = time.monotonic() + 10
    while alive(pid) or alive(t.pid):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_nobody_reads_what_is_printed(at):
    read, write = os.pipe()
    t = at(stdout=write)
    os.close(write)
    t.type("echo rea''dy $$\r")
    got = b""
    while not (found := re.search(rb"ready (\d+)\r\n", got)):
        got += os.read(read, 1000)
    assert t.raw()
    os.close(read)
    t.type("echo x\r")
    t.ended(141)
    wait_for(lambda: not alive(int(found[1])))


def test_stopped_from_outside_and_continued(at):
    t = at()
    t.prompt()
    t.kill(signal.SIGTSTP)
    assert t.stopped() == signal.SIGTSTP
    assert t.restored()
    t.resize(33, 99, tell=False)
    t.kill(signal.SIGCONT)
    t.wait_raw()
    wait_for(lambda: t.ask("echo s=$(stty size).", r"s=(\d+ \d+)\.")[1] == b"33 99")
    # One that nobody can catch: the shell here sets the mode, and abx sets it back.
    t.kill(signal.SIGSTOP)
    assert t.stopped() == signal.SIGSTOP
    import termios
    termios.tcsetattr(t.follower, termios.TCSANOW, t.before)
    t.kill(signal.SIGCONT)
    t.wait_raw()
    t.prompt()
    t.type("exit\r")
    t.ended(0)


# --- detached, and back ---

def detached(t):
    t.type("\x10\x11")
    t.ended(0)
    return t.expect(rb"`abx job attach (\S+) (\S+)`")


def test_nothing_is_left(at):
    """Of one that ended while somebody was there to see it."""
    t = at()
    t.prompt()
    pid = shell_pid(t)
    keeper = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    t.type("exit\r")
    t.ended(0)
    wait_for(lambda: not alive(keeper))


def test_detach_and_attach(at):
    t = at()
    t.prompt()
    pid = shell_pid(t)
    t.type("i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo line$i; sleep 0.01; done; echo al''l\r")
    t.expect("line20\r\n")
    ref, job = detached(t).groups()
    assert ref == b"opensandbox:box-1"
    assert alive(pid)
    again = at("job", "attach", ref.decode(), job.decode(), rows=30, cols=90)
    again.expect("line1\r\n")
    again.expect("all\r\n", 30)
    assert shell_pid(again) == pid
    assert again.ask("stty size", r"(\d+ \d+)\r\n")[1] == b"30 90"
    # Whoever comes takes it.
    third = at("job", "attach", "box-1", job.decode())
    third.prompt()
    again.ended(125)
    assert b"E8003" in again.seen
    keeper = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    third.type("exit 5\r")
    third.ended(5)
    assert not alive(pid)
    wait_for(lambda: not alive(keeper))


def test_a_lone_detach_key_is_passed_on(at):
    t = at()
    t.prompt()
    t.ask("stty raw -echo; echo go''on; head -c 6 | od -An -tx1; stty sane", "goon\r?\n")
    t.type("\x10\x10a\x10b\x11")
    t.expect(" 10 10 61 10 62 11")


def test_other_detach_keys(at):
    t = at(*SHELL, "--detach-keys", "ctrl-a,d", "sh")
    t.prompt()
    t.type("\x10\x11\x01")
    t.read(0.2)
    t.type("d")
    t.ended(0)
    t = at(*SHELL, "--detach-keys", "none", "sh")
    t.ask("stty raw -echo; echo go''on; head -c 2 | od -An -tx1; stty sane", "goon\r?\n")
    t.type("\x10\x11")
    t.expect(" 10 11")


def test_attach_to_what_is_not_there(at, osb):
    t = at("job", "attach", "box-1", "nosuchjob")
    t.ended(125)
    t.expect("E8005")


# --- the connection is cut ---

def test_a_cut_loses_and_doubles_nothing(at, wire):
    t = at()
    t.prompt()
    t.type("i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo line$i; sleep 0.001; done; echo al''l\r")
    for n in range(5):
        t.read(0.3)
        wire.cut()
        time.sleep(0.3)
    got = t.expect(rb"(line1\r\n.*)all\r\n", 60)[1]
    lines = [line for line in got.split(b"\r\n") if line.startswith(b"line")]
    assert lines == [b"line%d" % i for i in range(1, 2001)]
    assert b"connected again" in got
    t.wait_raw()
    t.type("exit 4\r")
    t.ended(4)


def test_a_cut_that_lasts(at, wire):
    """The terminal is the person's while abx tries; Ctrl-C ends that."""
    t = at()
    t.prompt()
    pid = shell_pid(t)
    wire.cut(stay=True)
    t.expect("trying for 60 s")
    assert t.restored()
    t.read(1)
    t.type("\x03")
    t.ended(130)
    job = t.expect(rb"`abx job attach \S+ (\S+)`")[1].decode()
    assert alive(pid)
    wire.mend()
    again = at("job", "attach", "box-1", job)
    assert shell_pid(again) == pid
    again.type("exit\r")
    again.ended(0)


def test_the_daemon_dies(at, daemon, server, wire):
    t = at()
    t.prompt()
    pid = shell_pid(t)
    daemon.process.kill()
    daemon.process.wait()
    t.type("echo still he''re\r")          # it has handed the connection on
    t.expect("still here")
    wire.cut()
    t.expect("trying for 60 s")
    del server.boxes["box-1"]               # and the sandbox is gone: nothing to wait for
    t.ended(125)
    assert b"E2009" in t.seen
    os.kill(pid, signal.SIGKILL)


# --- what is refused ---

def test_without_a_terminal(osb, server):
    ran = osb(*SHELL, input=b"echo no\n")
    assert ran.status == 2 and b"E8002" in ran.err and ran.out == b""
    assert server.requests == []


@pytest.mark.parametrize("words", [["-it"], ["-t", "--json"], ["-t", "-T"], ["-it", "-d"]])
def test_exec_without_a_terminal(osb, server, words):
    ran = osb("exec", *words, "box-1", "true", input=b"echo no\n")
    assert ran.status == 2 and b"E8002" in ran.err and ran.out == b""
    assert server.requests == []


@pytest.mark.parametrize("words, says", [(["--detach-keys", "x,"], "--detach-keys"), (["--json"], "JSON")])
def test_wrong_words(at, words, says):
    t = at("sandbox", "shell", *words, "box-1")
    t.ended(2)
    assert says.encode() in t.seen
