"""abx agent init: the first process of a sandbox. Each case runs in a process
id namespace where that is possible, so that it is process 1 there."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from agent import PATH, wait_for
from conftest import BINARY

ROOT = os.geteuid() == 0


@pytest.fixture(params=["process 1", "subreaper"] if ROOT else ["subreaper"])
def front(request):
    return ["unshare", "--pid", "--fork", "--kill-child"] if request.param == "process 1" else []


class Init:
    def __init__(self, folder, *words, front=(), env=None, daemon="/bin/true", **more):
        # The daemon's place is taken by something that shows how it was called.
        self.env = {"PATH": PATH, "HOME": str(folder), "EXECD": daemon, "EXECD_ENVS": str(folder / "etc/.env"), **(env or {})}
        self.process = subprocess.Popen([*front, BINARY, "agent", "init", *words], cwd=folder, env={k: v for k, v in self.env.items() if v is not None},
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def finish(self, seconds=20):
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("words, code, out", [
    (["sh", "-c", "exit 7"], 7, ""), (["true"], 0, ""), (["sh", "-c", "kill -9 $$"], 137, ""), (["sh", "-c", "kill -TERM $$"], 143, ""),
    (["printf", "[%s]", "a b", "", "$X"], 0, "[a b][][$X]"), (["-c", "echo $0 $1; exit 3", "zero", "one"], 3, "zero one\n"), ([], 0, ""),
    (["nosuchprogram"], 127, ""), (["/etc/passwd"], 126, ""),
])
def test_main_program(tmp_path, front, words, code, out):
    got = Init(tmp_path, *words, front=front).finish()
    assert got[:2] == (code, out), got


def test_bootstrap_cmd_and_names(tmp_path):
    assert Init(tmp_path, "exit", "9", env={"BOOTSTRAP_CMD": "echo $BASH_VERSION | wc -l; exit 5"}).finish()[:2] == (5, "1\n")
    (tmp_path / "bootstrap.sh").symlink_to(Path(BINARY).resolve())
    done = subprocess.run([tmp_path / "bootstrap.sh", "sh", "-c", "echo $EXECD_ENVS"], cwd=tmp_path, capture_output=True, timeout=20,
                          env={"PATH": PATH, "EXECD": "/bin/true", "EXECD_ENVS": str(tmp_path / "e")})
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/e\n".encode())


def test_environment_file(tmp_path, front):
    code, out, err = Init(tmp_path, "sh", "-c", "ls -l $EXECD_ENVS | cut -c1-10", front=front).finish()
    assert (code, out) == (0, "-rw-r--r--\n")
    (tmp_path / "etc/.env").write_text("KEPT=1\n")
    assert Init(tmp_path, "cat", str(tmp_path / "etc/.env"), front=front).finish()[1] == "KEPT=1\n"
    code, out, err = Init(tmp_path, "echo", "runs", front=front, env={"EXECD_ENVS": "/proc/nope/x"}).finish()
    assert (code, out) == (0, "runs\n") and "/proc/nope" in err


@pytest.mark.parametrize("number", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "WINCH", "CONT", "37"])
def test_signals_reach_the_main_program(tmp_path, front, number):
    # The namespace's own init is the child of unshare: signalled from inside.
    init = Init(tmp_path, "sh", "-c", f"trap 'echo got; exit 4' {number}; echo ready; while :; do sleep 0.05; done", front=front)
    assert init.process.stdout.readline() == b"ready\n"
    os.kill(main_init(init), int(number) if number.isdigit() else getattr(signal, "SIG" + number))
    assert init.finish()[:2] == (4, "got\n")


def main_init(init):
    """The pid, out here, of `abx agent init`."""
    if "unshare" not in init.process.args[0]:
        return init.process.pid
    with open(f"/proc/{init.process.pid}/task/{init.process.pid}/children") as f:
        return int(f.read().split()[0])


def test_default_actions_reach_too(tmp_path, front):
    """SIGTERM to a main program that does nothing about it ends the sandbox, also as process 1."""
    init = Init(tmp_path, "sleep", "50", front=front)
    wait_for(lambda: children(main_init_or_none(init)))
    time.sleep(0.1)
    os.kill(main_init(init), signal.SIGTERM)
    assert init.finish()[0] == 143


def main_init_or_none(init):
    try:
        return main_init(init)
    except (IndexError, FileNotFoundError):
        return None


def children(pid):
    if pid is None:
        return []
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return f.read().split()


def test_orphans_are_reaped(tmp_path, front):
    init = Init(tmp_path, "sh", "-c", "for i in 1 2 3 4 5; do (sleep 0.1 & ) ; done; (sleep 2 &); sleep 1.5; echo done", front=front)
    time.sleep(1)
    left = children(main_init(init))
    zombies = [p for p in left if open(f"/proc/{p}/stat").read().rpartition(")")[2].split()[0] == "Z"]
    assert zombies == [] and len(left) == 2     # the main program, and the orphan that still runs
    assert init.process.stdout.readline() == b"done\n"
    assert init.process.wait(10) == 0


def test_signals_are_not_left_ignored(tmp_path, front):
    def ignore():
        for s in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(s, signal.SIG_IGN)
    out = Init(tmp_path, "grep", "-E", "Sig(Ign|Blk)", "/proc/self/status", front=front, preexec_fn=ignore).finish()[1]
    assert out == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"


def test_the_daemon_runs_and_its_death_is_no_end(tmp_path, front):
    """With no stock daemon in its place, the program itself is the daemon."""
    line = """
        for i in $(seq 100); do exec 3<>/dev/tcp/127.0.0.1/44772 && break; sleep 0.05; done
        printf 'GET /ping HTTP/1.0\\r\\n\\r\\n' >&3; head -c 15 <&3; echo
        for p in /proc/[0-9]*; do       # the init's own daemon, and nobody else's
            [ "$(tr '\\0' ' ' < $p/cmdline) $(sed -n 's/^PPid:[^0-9]*//p' $p/status)" = "execd  $PPID" ] && kill -9 ${p#/proc/}
        done 2>/dev/null
        sleep 0.3; echo still here; exit 6"""
    if not ROOT:
        pytest.skip("takes port 44772: wants a network namespace of its own")
    front = ["unshare", "--net", "--mount-proc", "--pid", "--fork", "--kill-child"] if front else ["unshare", "--net"]
    script = f"ip link set lo up 2>/dev/null || ifconfig lo up; exec {BINARY} agent init bash -c \"$1\""
    env = {"PATH": PATH, "EXECD_ENVS": str(tmp_path / "e")}
    done = subprocess.run([*front, "sh", "-c", script, "sh", line], cwd=tmp_path, env=env, capture_output=True, timeout=30)
    assert done.stdout.decode() == "HTTP/1.1 200 OK\nstill here\n" and done.returncode == 6, done
    assert b"the daemon ended with 137" in done.stderr


def test_usage():
    for words in ([], ["nosuch"], ["serve", "--port"], ["serve", "--port", "x"], ["serve", "--port", "70000"], ["serve", "--nosuch", "1"]):
        done = subprocess.run([BINARY, "agent", *words], capture_output=True, timeout=20)
        assert done.returncode == 2 and done.stdout == b"" and b"usage: abx agent" in done.stderr
    for word in ("--help", "-h"):
        done = subprocess.run([BINARY, "agent", word], capture_output=True, timeout=20)
        assert done.returncode == 0 and done.stderr == b"" and b"usage: abx agent" in done.stdout
    done = subprocess.run([BINARY, "agent", "serve", "--host", "nosuchhost", "--port", "0"], capture_output=True, timeout=20)
    assert done.returncode == 1 and b"nosuchhost" in done.stderr
