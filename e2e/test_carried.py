"""Commands by the carried agent: byte for byte, to their end, on every combination, compiled in and as the plugin.

What only takes long (a reader that rests, a pause) is begun on all combinations
at once. ABX_NIGHTLY makes it longer and the runs more.
"""

import base64
import contextlib
import hashlib
import os
import pty
import re
import signal
import subprocess
import threading
import time

import pytest

import rig as rigs
from conftest import NIGHTLY
from program import Abx, binary

NASTY = bytes(range(256)) + b"\r\n\n\n\r\r\n\0\0caf\xc3\xa9 \xff\xfe\n\n no line feed at the end"
NOISE = 100_000_000


@pytest.fixture(autouse=True)
def form(request, monkeypatch):
    if "through" in request.fixturenames:
        plugin = request.getfixturevalue("through") == "plugin"
        monkeypatch.setattr(Abx, "store", request.getfixturevalue("exported") if plugin else None)


def exec_(box, *words, **kw):
    return box.abx("exec", box.id, *words, **kw)


def digest_of(child):
    """(sha256, bytes, exit code) of all that it prints."""
    h, n = hashlib.sha256(), 0
    while piece := child.stdout.read(1 << 20):
        h.update(piece)
        n += len(piece)
    return h.hexdigest(), n, child.wait(timeout=60)


def gone(box, mark, seconds=5):
    end = time.monotonic() + seconds
    while n := box.running(mark):
        assert time.monotonic() < end, f"{n} processes of `sleep {mark}` are left"
        time.sleep(0.1)


def new_mark():
    return f"9{time.monotonic_ns() % 10**9:09d}"


# ---- output ----

@pytest.mark.parametrize("turn", range(5 if NIGHTLY else 1))
@pytest.mark.halved
def test_seq(through, box, turn):
    want = hashlib.sha256(b"".join(b"%d\n" % i for i in range(1, 2000001))).hexdigest()
    assert digest_of(box.abx.start("exec", box.id, "seq", "1", "2000000", stderr=None))[::2] == (want, 0)


@pytest.mark.parametrize("turn", range(5 if NIGHTLY else 1))
@pytest.mark.halved
def test_noise(through, box, turn):
    n = NOISE if NIGHTLY or (box.image == "debian" and through == "compiled") else NOISE // 5
    box.sh(f"[ -e /tmp/noise-{n} ] || head -c {n} /dev/urandom > /tmp/noise-{n}")
    want = box.sh(f"sha256sum /tmp/noise-{n}").split()[0]
    assert digest_of(box.abx.start("exec", box.id, "cat", f"/tmp/noise-{n}", stderr=None)) == (want, n, 0)


@pytest.mark.halved
def test_nasty_bytes(through, box):
    done = exec_(box, "cat > /tmp/nasty-$$; cat /tmp/nasty-$$; cat /tmp/nasty-$$ /tmp/nasty-$$ >&2; rm /tmp/nasty-$$", input=NASTY)
    assert (done.code, done.out, done.err) == (0, NASTY, NASTY + NASTY)
    doc = box.abx("--json", "exec", box.id, "cat", input=NASTY).json()
    assert "stdout" not in doc and base64.b64decode(doc["stdout_b64"]) == NASTY
    for text in (b"", b"\n", b"a", b"\n\n\n", b"a\r", b"\r\n", b"\0"):
        assert exec_(box, "cat", input=text).out == text


@pytest.mark.halved
def test_long_line(through, box):
    done = exec_(box, "head -c 20000000 /dev/zero | tr '\\0' x")
    assert (done.code, len(done.out), set(done.out)) == (0, 20_000_000, {ord("x")})


# ---- words ----

WORDS = [
    ["a b", "$HOME", '"q"', "it's", "", "*", "  ", ""], ["new\nline", "\n", "tab\t", "cr\r", "back\\slash", "\\n", "\x01\x1b[31m\x7f"],
    ["\u4f60\u597d \u2603", "\U0001f600"], ["-n", "--", "-c", "--help", "-"], ["$(id)", "`id`", ";", "&", "|", "<", ">", "!", "~", "#"],
    ["x" * 100_000], [str(i) for i in range(2000)], ["y" * 3000] * 300,
]


@pytest.mark.halved
def test_argv(through, box):
    for words in WORDS:
        done = exec_(box, "printf", "<%s>\\n", *words)
        assert (done.code, done.text) == (0, "".join(f"<{w}>\n" for w in words))
    assert exec_(box, "--", "printf", "%s", "-w").out == b"-w"


# ---- input ----

@pytest.mark.halved
def test_input(through, box):
    much = 20_000_000 if through == "compiled" else 2_000_000
    data = os.urandom(much // 4)
    done = exec_(box, "sha256sum", input=data)
    assert done.text.split()[0] == hashlib.sha256(data).hexdigest()
    assert exec_(box, "cat; echo end", input=b"").out == b"end\n"
    with open("/etc/passwd", "rb") as file:
        assert exec_(box, "wc", "-c", stdin=file).text.strip() == str(os.stat("/etc/passwd").st_size)
    # A command that takes little of much, or nothing at all, ends when it ends.
    begun = time.monotonic()
    assert exec_(box, "head -c 3; exit 4", input=b"abc" + bytes(much)).code == 4
    assert exec_(box, "exit 5", input=bytes(much)).code == 5
    assert time.monotonic() - begun < 10


@pytest.mark.halved
def test_input_that_is_none(through, box):
    """A terminal, /dev/null, a closed descriptor and an idle pipe: the command sees nothing, and nothing hangs."""
    a, b = os.pipe()
    master, slave = pty.openpty()
    begun = time.monotonic()
    try:
        for stdin in (a, slave, subprocess.DEVNULL):
            assert exec_(box, "sleep 0.2; echo hi; exit 3", stdin=stdin).out == b"hi\n"
        assert exec_(box, "cat; exit 3", stdin=slave).code == 3
        assert exec_(box, "cat; exit 3").code == 3
    finally:
        for fd in (a, b, master, slave):
            os.close(fd)
    done = subprocess.run(["sh", "-c", 'exec "$0" exec "$1" "cat; exit 3" <&-', binary(), box.id], env=box.abx.env, timeout=30)
    assert done.returncode == 3 and time.monotonic() - begun < 10


# ---- what it runs as, where, with what ----

@pytest.mark.halved
def test_user(through, box):
    ask = "id -u; id -g; echo $HOME $USER; pwd"
    assert exec_(box, "-u", "nobody", "-w", "/tmp", ask).text.split("\n")[:2] == ["65534", "65534"]
    assert exec_(box, "-u", "65534", "id -u").text == "65534\n"
    assert exec_(box, "-u", "12345", "id -u; id -g").text == "12345\n12345\n"       # never 0
    assert exec_(box, "-u", "root", ask).text.split("\n")[:3] == ["0", "0", "/root root"]
    done = box.abx("--json", "exec", "-u", "no-such-user", box.id, "touch /tmp/ran-as-nobody-known")
    assert done.code not in (0, 1) and "no-such-user" in done.error()["message"], done
    assert box.sh("ls /tmp/ran-as-nobody-known 2>/dev/null || echo none") == "none\n"


@pytest.mark.halved
def test_environment_and_folder(through, box, tmp_path):
    (tmp_path / "env").write_text("A=from file\n# no\n\nB='kept as it is'\nFROM_HERE\n")
    done = box.abx("exec", box.id, "--env-file", str(tmp_path / "env"), "-e", "A=x\ny", "-e", "OUTER", "-w", "/tmp",
                   'echo "$A|$B|$OUTER|$FROM_HERE|$FOO"; pwd; env | grep -ci abx_', env={"OUTER": "o", "FROM_HERE": "f"})
    assert done.text == "x\ny|'kept as it is'|o|f|bar\n/tmp\n0\n", done
    assert exec_(box, "pwd").text.strip() == box.sh("pwd").strip()
    done = box.abx("--json", "exec", "-w", "/no/such", box.id, "pwd")
    assert done.code not in (0, 1) and "/no/such" in done.error()["message"], done


# ---- ends ----

ENDS = [
    (["exit 0"], 0), (["exit 1"], 1), (["exit 255"], 255), (["nosuchcmd"], 127), (["nosuchcmd", "x"], 127), (["/etc/passwd", "x"], 126),
    (["kill -9 $$"], 137), (["kill -15 $$"], 143), (["kill -11 $$"], 139), (["sh", "-c", "exit 124"], 124)]


@pytest.mark.halved
def test_exit_codes(through, box):
    assert [(words, exec_(box, *words).code) for words, _ in ENDS] == ENDS


@pytest.mark.halved
def test_timeout(through, box):
    mark, begun = new_mark(), time.monotonic()
    done = box.abx("exec", "--timeout", "1s", box.id, f"echo a; sleep {mark} & trap '' TERM HUP INT; sleep {mark}; echo b")
    assert (done.code, done.out) == (124, b"a\n") and 0.9 < time.monotonic() - begun < 5
    gone(box, mark)


@pytest.mark.halved
def test_background_children_stay(through, box):
    mark, begun = new_mark(), time.monotonic()
    pid = int(exec_(box, f"sleep {mark} & echo $!").out)
    assert time.monotonic() - begun < 4 and box.running(mark) == 1
    box.sh(f"kill {pid}")


@pytest.mark.halved
def test_closed_output(through, box):
    child = box.abx.start("exec", box.id, "seq 1 10000000")
    child.stdout.readline()
    child.stdout.close()
    assert child.wait(timeout=20) != 0


# ---- how much is asked ----

def requests(done):
    return re.findall(r"^abx: > (?:GET|POST|PUT|DELETE) (\S+)", done.errors, re.M)


def test_requests(box):
    """State, endpoint, command, upgrade; two more where the agent is not there yet."""
    assert exec_(box, "true").code == 0
    for more in ({}, {"input": b"x" * 100_000}):
        done = box.abx("--debug", "exec", box.id, "cat", **more)
        assert done.out == more.get("input", b"")
        asked = requests(done)
        assert len(asked) == 4 and [asked[i].split("/")[-1].split("?")[0] for i in (1, 2)] == ["44772", "command"], asked
    box.sh("rm -rf /tmp/.abx-0")
    done = box.abx("--debug", "exec", box.id, "true")
    assert len(requests(done)) == 6, requests(done)
    assert len(requests(box.abx("--debug", "exec", box.id, "true"))) == 4


def test_agent_is_removed(box):
    assert exec_(box, "true").code == 0
    assert box.sh("ls /tmp/.abx-0 | grep -c abx-").strip() != "0"
    done = box.abx("agent", "remove", box.id)
    assert done.code == 0, done
    assert box.sh("ls /tmp/.abx-0 2>/dev/null | grep -c abx- || true").strip() == "0"
    assert exec_(box, "echo back").out == b"back\n"


# ---- many ----

@pytest.mark.paired
def test_fifty_at_once(box):
    data = os.urandom(100_000).hex().encode()
    children = [box.abx.start("exec", box.id, f"cat; exit {i}", stdin=subprocess.PIPE) for i in range(50)]
    results = [None] * 50

    def talk(i):
        with contextlib.suppress(subprocess.TimeoutExpired):
            results[i] = children[i].communicate(data, timeout=60)

    threads = [threading.Thread(target=talk, args=(i,)) for i in range(50)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i, child in enumerate(children):
        assert results[i] and (child.returncode, results[i][0] == data) == (i, True), (i, child.returncode, results[i] and results[i][1])


@pytest.mark.paired
def test_one_after_the_other(box):
    before = box.sh("ls /proc | grep -c '^[0-9]'; ls -a /tmp/.abx-0 2>/dev/null | wc -l").split()
    for i in range(1000 if NIGHTLY else 50):
        done = exec_(box, f"echo {i}; echo e{i} >&2; exit {i % 100}")
        assert (done.code, done.out, done.err) == (i % 100, b"%d\n" % i, b"e%d\n" % i)
    time.sleep(0.5)
    after = box.sh("ls /proc | grep -c '^[0-9]'; ls -a /tmp/.abx-0 2>/dev/null | wc -l").split()
    assert int(after[0]) <= int(before[0]) + 1, "processes were left behind"
    assert int(after[1]) <= max(int(before[1]), 3) + 1, "files were left behind"


# ---- what takes long, on all combinations at once ----

def test_those_that_rest(boxes):
    """A reader that takes nothing for 15 s, and a program that reads nothing for 15 s (60 and 90 s at night)."""
    rest, unread = (60, 90) if NIGHTLY else (15, 15)
    data = bytes(2_000_000)
    readers = [b.abx.start("exec", b.id, "head -c 20000000 /dev/zero; echo end >&2; exit 6") for b in boxes]
    writers = [b.abx.start("exec", b.id, f"sleep {unread}; wc -c; exit 7", stdin=subprocess.PIPE) for b in boxes]
    answers = {}
    threads = [threading.Thread(target=lambda b=b, w=w: answers.__setitem__(b, w.communicate(data))) for b, w in zip(boxes, writers)]
    for t in threads:
        t.start()
    time.sleep(rest)
    wrong = []
    for b, child in zip(boxes, readers):
        n = 0
        while piece := child.stdout.read(1 << 20):
            n += len(piece)
        err = child.stderr.read()
        if (n, err, child.wait(timeout=20)) != (20_000_000, b"end\n", 6):
            wrong.append((b, "reader", n, child.returncode, err))
    for b, child, t in zip(boxes, writers, threads):
        t.join(unread + 30)
        if (child.returncode, answers[b][0].strip()) != (7, b"2000000"):
            wrong.append((b, "writer", child.returncode, answers[b]))
    assert not wrong


@pytest.fixture
def both_forms(exported, tmp_path, servers, monkeypatch):
    """both_forms(daemon): an abx for each route, compiled in and as the plugin."""
    def make(daemon):
        made = {}
        for through in ("compiled", "plugin"):
            monkeypatch.setattr(Abx, "store", exported if through == "plugin" else None)
            for route in ("direct", "proxy"):
                made[daemon, through, route] = Abx(tmp_path / "-".join((daemon, through, route)), servers[daemon], route)
        return made
    return make


def started(request, own, both_forms, image, line):
    """{(daemon, through, route): a running command that has printed its first line}, and {daemon: its sandbox}."""
    children, boxes = {}, {}
    for daemon in request.config.getoption("--daemon") or ("agent", "stock"):
        boxes[daemon] = own(daemon, image)
        for key, abx in both_forms(daemon).items():
            assert abx("exec", boxes[daemon], "true").code == 0
            children[key] = abx.start("exec", boxes[daemon], line, bufsize=0)
    for key, child in children.items():
        assert child.stdout.readline() == b"0\n", (key, child.communicate())
    return children, boxes


def test_paused_in_the_middle(request, own, both_forms, servers):
    """Time in which the sandbox was paused does not count: all of it arrives, and the code."""
    pause = 90 if NIGHTLY else 8
    children, made = started(request, own, both_forms, "debian",
                             "i=0; while [ $i -lt 40 ]; do echo $i; i=$((i+1)); sleep 0.1; done; exit 9")
    for verb, wait in (("pause", pause), ("resume", 0)):
        for daemon, sandbox in made.items():
            assert servers[daemon].call("POST", f"/sandboxes/{sandbox}/{verb}").status < 300
        time.sleep(wait)
    wrong = []
    for key, child in children.items():
        out, err = child.communicate(timeout=40)
        known = (child.returncode, out) == (9, b"".join(b"%d\n" % i for i in range(1, 40)))
        # The server cuts its own connections into a sandbox that rests: then it is not known, and that is said.
        unknown = pause > 20 and key[2] == "proxy" and child.returncode == 125 and err
        if not known and not unknown:
            wrong.append((key, child.returncode, out[-50:], err))
    assert not wrong


def test_sandbox_that_dies(request, own, both_forms, servers):
    """Removed in mid-command: an unknown result, said soon, never 0."""
    children, made = started(request, own, both_forms, "busybox", "echo 0; sleep 600")
    for daemon, sandbox in made.items():
        servers[daemon].kill(sandbox)
    wrong = []
    for key, child in children.items():
        _, err = child.communicate(timeout=30)
        if child.returncode not in (125, 137) or not err:
            wrong.append((key, child.returncode, err))
    assert not wrong


@pytest.mark.paired
def test_plugin_that_is_killed(box, exported, servers, monkeypatch):
    """SIGKILL to the plugin in mid-command: an unknown result, and nothing is left in the sandbox."""
    monkeypatch.setattr(Abx, "store", exported)
    abx, mark = Abx(box.abx.home / "plugin", servers[box.daemon], box.route), new_mark()
    child = abx.start("exec", box.id, f"echo 0; sleep {mark} & sleep {mark}")
    assert child.stdout.readline() == b"0\n"
    with open(f"/proc/{child.pid}/task/{child.pid}/children") as children:
        plugins = [int(pid) for pid in children.read().split()]
    assert plugins
    for pid in plugins:
        os.kill(pid, signal.SIGKILL)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 125 and b"unknown" in err, (child.returncode, err)
    gone(box, mark, 30)


@pytest.mark.parametrize("mount", ["-o noexec -t tmpfs none /tmp", "-o ro -t tmpfs none /tmp"])
def test_where_nothing_can_be_put_in_tmp(mount, own, servers, tmp_path):
    """The next folder is taken."""
    sandbox = own("agent", "busybox")
    abx = Abx(tmp_path, servers["agent"])
    inside = rigs.docker("ps", "-q", "--filter", f"label={rigs.SANDBOX}={sandbox}")
    pid = rigs.docker("inspect", "--format", "{{.State.Pid}}", inside)
    subprocess.run(["nsenter", "-t", pid, "-m", "--", "/bin/busybox", "mount", *mount.split()], check=True)
    done = abx("--debug", "exec", sandbox, "cat; exit 7", input=NASTY)
    assert (done.code, done.out) == (7, NASTY) and "the agent says hello" in done.errors, done
    assert abx("exec", sandbox, "ls /tmp/.abx-0 2>/dev/null | wc -l").text == "0\n"


def test_sandbox_that_expires(servers, mark, tmp_path):
    """The same when its time is over. It lives a minute at least, so the whole is for the night; by day it is only begun."""
    for daemon, server in servers.items():
        sandbox = server.create("abx-e2e/busybox:1", mark, timeout=60)
        try:
            server.wait(sandbox)
            child = Abx(tmp_path / daemon, server).start("exec", sandbox, "echo started; sleep 600")
            assert child.stdout.readline() == b"started\n"
            if NIGHTLY:
                _, err = child.communicate(timeout=120)
                assert child.returncode in (125, 137) and err
            else:
                child.terminate()
                assert child.wait(10) == 143
        finally:
            server.kill(sandbox)
