"""How the program gets into a sandbox and is reached there, by `abx exec` on daemons of a /tmp of their own."""

import base64
import contextlib
import hashlib
import os
import re
import shutil
import socket
import subprocess
import threading
import time

import pytest

import scripted
from agent import Agent
from conftest import BINARY, Program
from scripted import answer, chunked, event
from stock import Stock
from stock import program as stock_program

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a /tmp of its own")

INNER = "mount -t tmpfs -o mode=1777 none /tmp && mkdir /tmp/home && cd /tmp/home && {setup}; exec /proc/self/fd/9 \"$@\""


class Private:
    """A daemon that sees another /tmp than its neighbours."""

    def __init__(self, folder, kind, setup):
        binary = BINARY if kind is Agent else stock_program()
        wrapper = folder / "daemon"
        wrapper.write_text(f"#!/bin/sh\nexec 9<{binary}\nexec unshare -m sh -c '{INNER.format(setup=setup)}' sh \"$@\"\n")
        wrapper.chmod(0o755)
        env = {"HOME": "/tmp/home", "TMPDIR": "/tmp/home"}
        self.daemon = Agent.__new__(kind)
        words = kind.words
        Agent.__init__(self.daemon, folder, env=env, program=str(wrapper))
        assert self.daemon.words == words
        self.port, self.root = self.daemon.port, f"/proc/{self.daemon.process.pid}/root"

    def sh(self, line):
        """In its place: what it prints."""
        done = subprocess.run(["nsenter", "-t", str(self.daemon.process.pid), "-m", "sh", "-c", line], capture_output=True, check=True)
        return done.stdout.decode()

    def program(self):
        """The program's file there."""
        [name] = self.sh("ls -d /tmp/.abx-0/abx-*").split()
        return name


class Front:
    """In front of a daemon: refuses what it is told to, hands on all else."""

    def __init__(self, port):
        self.target, self.refuse = port, {}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self.listener.accept()[0],), daemon=True).start()

    def _serve(self, client):
        with contextlib.suppress(OSError), client, socket.create_connection(("127.0.0.1", self.target)) as daemon:
            threading.Thread(target=self._back, args=(daemon, client), daemon=True).start()
            while data := client.recv(65536):
                head = data.split(b"\r\n", 1)[0]
                for start, refusal in self.refuse.items():
                    if head.startswith(start.encode()):
                        refusal = refusal(data) if callable(refusal) else refusal
                        if refusal is None:
                            break
                        client.sendall(refusal)
                        return
                daemon.sendall(data)

    def _back(self, daemon, client):
        with contextlib.suppress(OSError):
            while data := daemon.recv(65536):
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def place(tmp_path):
    """place(kind, setup): a daemon, and abx for the sandbox that it is in."""
    with contextlib.ExitStack() as stack:
        def make(kind=Agent, setup="true", front=False):
            server = stack.enter_context(scripted.Server())
            server.box()
            made = Private(tmp_path, kind, setup)
            stack.callback(made.daemon.close)
            made.front = Front(made.port) if front else None
            at = made.front.port if front else made.port
            server.script = lambda request, whole: [answer(200, {"endpoint": f"127.0.0.1:{at}"}) if "/endpoints/" in request.path else whole]
            made.abx = Program(tmp_path, server)
            return made
        yield make


def requests(ran):
    """What was asked, of --debug: the method and the beginning of the path."""
    return [" ".join(m) for m in re.findall(r"> (GET|POST|DELETE|PUT) (/(?:v1/sandboxes/box-1/endpoints|v1|proxy|pty|[a-z]+))", ran.err.decode())]


STATE = ["GET /v1", "GET /v1/sandboxes/box-1/endpoints"]
KINDS = pytest.mark.parametrize("kind", [Agent, Stock])


@KINDS
def test_requests(place, kind):
    p = place(kind)
    cold = p.abx("--debug", "exec", "box-1", "--", "echo", "hi")
    assert (cold.status, cold.out) == (0, b"hi\n"), cold
    assert requests(cold) == STATE + ["POST /command", "POST /files", "POST /command", "GET /proxy"], cold
    warm = p.abx("--debug", "exec", "box-1", "--", "echo", "hi")
    assert (warm.status, warm.out) == (0, b"hi\n") and requests(warm) == STATE + ["POST /command", "GET /proxy"], warm
    fed = p.abx("--debug", "exec", "-i", "box-1", "--", "cat", input=bytes(range(256)) * 1000)
    assert fed.out == bytes(range(256)) * 1000 and requests(fed) == STATE + ["POST /command", "GET /proxy"], fed
    assert p.sh("ls -A /tmp/.abx-0").split() == [os.path.basename(p.program())]
    with open(BINARY, "rb") as ours, open(p.root + p.program(), "rb") as there:
        assert ours.read() == there.read()


@KINDS
def test_many_at_once(place, kind):
    """Cold and together: each brings it, all are right, one file is left."""
    p = place(kind)
    running = [p.abx.start("exec", "box-1", "--", "sh", "-c", f"cat; exit {i}", stdin=subprocess.DEVNULL) for i in range(20)]
    for i, r in enumerate(running):
        out, err = r.communicate(timeout=40)
        assert (r.returncode, out, err) == (i, b"", b"")
    assert p.sh("ls -A /tmp/.abx-0").split() == [os.path.basename(p.program())]


PLANTED = {
    "a file": "echo mine > /tmp/.abx-0",
    "a link": "mkdir -m 700 /tmp/theirs; ln -s /tmp/theirs /tmp/.abx-0",
    "a dangling link": "ln -s /tmp/nowhere /tmp/.abx-0",
    "a fifo": "mkfifo /tmp/.abx-0",
    "another's folder": "mkdir -m 700 /tmp/.abx-0; chown 99 /tmp/.abx-0",
    "an open folder": "mkdir /tmp/.abx-0; chmod 755 /tmp/.abx-0",
    "a folder for all": "mkdir /tmp/.abx-0; chmod 1777 /tmp/.abx-0",
}


@pytest.mark.parametrize("planted", PLANTED)
def test_planted_folders(place, planted):
    """It is left as it was, and another one used, in which nothing stays."""
    p = place(setup=PLANTED[planted])
    before = p.sh("ls -lARn --time-style=+ /tmp")
    ran = p.abx("--debug", "exec", "box-1", "--", "echo", "hi")
    assert (ran.status, ran.out) == (0, b"hi\n"), ran
    assert requests(ran) == STATE + ["POST /command"] * 2 + ["POST /files", "POST /command", "GET /proxy"]
    [own] = p.sh("ls -d /tmp/.abx-????????????????").split()
    end = time.monotonic() + 10     # the file goes once the helper has left it
    while p.sh(f"ls -A {own}") and time.monotonic() < end:
        time.sleep(0.05)
    assert p.sh(f"ls -A {own}; stat -c %a {own}") == "700\n"
    p.sh(f"rmdir {own}")
    assert re.sub(r"total \d+", "", p.sh("ls -lARn --time-style=+ /tmp")).replace("drwxrwxrwt", "") == \
        re.sub(r"total \d+", "", before).replace("drwxrwxrwt", "")


BROKEN = {
    "cut short": "head -c 100000 {it} > /tmp/x",
    "no program": "printf garbage > /tmp/x",
    "empty": ": > /tmp/x",
    "ends by a signal": "printf '#!/bin/sh\\nkill -9 $$\\n' > /tmp/x",
    "ends": "printf '#!/bin/sh\\nexit 5\\n' > /tmp/x",
    "another machine's": "cp {it} /tmp/x; printf '\\002\\000' | dd of=/tmp/x bs=1 seek=18 conv=notrunc",      # e_machine
    "a link": "cp {it} /tmp/y; ln -s /tmp/y /tmp/x",
    "gone": "rm {it}",
    "not executable": "cp {it} /tmp/x; chmod 644 /tmp/x",
}


@KINDS
@pytest.mark.parametrize("broken", BROKEN)
def test_broken_programs(place, kind, broken):
    """What does not start is brought once more."""
    p = place(kind)
    assert p.abx("exec", "box-1", "--", "true").status == 0
    mode = "" if broken == "not executable" else "chmod 755 /tmp/x; "
    p.sh(BROKEN[broken].format(it=p.program()) + f"; [ ! -e /tmp/x ] || {{ {mode}mv /tmp/x {p.program()}; }}")
    ran = p.abx("--debug", "exec", "box-1", "--", "echo", "hi")
    assert (ran.status, ran.out) == (0, b"hi\n") and requests(ran).count("POST /files") == 1, ran
    assert requests(ran)[-2:] == ["POST /command", "GET /proxy"], ran
    warm = p.abx("--debug", "exec", "box-1", "--", "echo", "hi")
    assert warm.out == b"hi\n" and requests(warm) == STATE + ["POST /command", "GET /proxy"], warm


def test_a_program_that_says_nothing(place):
    """One that sleeps where ours should be: it is ended and brought once more."""
    p = place()
    assert p.abx("exec", "box-1", "--", "true").status == 0
    p.sh(f"printf '#!/bin/sh\\nexec sleep 371.5\\n' > /tmp/x; chmod 755 /tmp/x; mv /tmp/x {p.program()}")
    begun = time.monotonic()
    ran = p.abx("--debug", "exec", "box-1", "--", "echo", "hi")
    assert (ran.status, ran.out) == (0, b"hi\n") and requests(ran).count("POST /files") == 1, ran
    assert time.monotonic() - begun < 25
    assert p.sh("ps ax -o args").count("\nsleep 371.5") == 0


def test_another_architecture(place):
    """What was put there is for another machine: the backend's own call runs the command, and that is said."""
    p = place(front=True)
    def other(data):
        p.sh("for f in /tmp/.abx-0/????????????????; do [ ! -f $f ] || printf '\\267' | dd of=$f bs=1 seek=18 conv=notrunc 2>/dev/null; done")
    p.front.refuse["POST /command"] = other
    ran = p.abx("exec", "box-1", "--", "sh", "-c", "echo hi; exit 7")
    assert (ran.status, ran.out) == (7, b"hi\n") and b"another architecture" in ran.err, ran


def test_a_folder_that_an_upload_made(place):
    """It goes away between the line and the upload, which makes it with a mode of its own."""
    p = place(front=True)
    p.front.refuse["POST /files/upload"] = lambda data: p.sh("rm -r /tmp/.abx-0") or None
    assert p.abx("exec", "box-1", "--", "echo", "hi").out == b"hi\n"
    assert p.sh("stat -c %a /tmp/.abx-0") == "700\n"


@KINDS
def test_noexec(place, kind):
    """The next folder; and that costs one request when it is there."""
    p = place(kind, setup="mount -o remount,noexec /tmp; mount -t tmpfs none /var/tmp")
    cold = p.abx("--debug", "exec", "box-1", "--", "echo", "hi")
    assert (cold.status, cold.out) == (0, b"hi\n") and requests(cold).count("POST /files") == 1, cold
    warm = p.abx("--debug", "exec", "box-1", "--", "echo", "hi")
    assert warm.out == b"hi\n" and requests(warm) == STATE + ["POST /command"] * 2 + ["GET /proxy"], warm
    assert p.sh("ls -A /tmp/.abx-0") == "" and len(p.sh("ls -A /var/tmp/.abx-0").split()) == 1


NOWHERE = "; ".join(f"mount -t tmpfs -o {{option}} none {at}" for at in ("/var/tmp", "/tmp/home", "/run"))


@pytest.mark.parametrize("setup, text", [
    ("mount -o remount,noexec /tmp; " + NOWHERE.format(option="noexec"), "/tmp: nothing can be started there (mounted noexec)"),
    ("mkdir /tmp/spool; " + NOWHERE.format(option="ro") + "; mount -t tmpfs none /tmp/spool; mount --bind /tmp/spool /tmp/home; "
     "mount -o remount,ro /tmp; mount -o remount,noexec /tmp/home", "/tmp: no folder can be made there"),
])
def test_nowhere_to_go(place, setup, text):
    """Then it is the backend's own call, and that is said."""
    p = place(setup=setup)
    ran = p.abx("exec", "box-1", "--", "sh", "-c", "echo hi; exit 7")
    assert (ran.status, ran.out) == (7, b"hi\n"), ran
    assert text in ran.err.decode() and ran.err.count(b"\n") == 1, ran
    user = p.abx("exec", "--user", "nobody", "box-1", "--", "id")
    assert user.status == 125 and b"[E8004]" in user.err and user.out == b"", user


# --- the ways ---

NO_INPUT = {"input": None, "stdin": subprocess.DEVNULL}

def accept(data):
    key = re.search(rb"Sec-WebSocket-Key: (\S+)", data)[1]
    return base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())


def upgraded(*frames):
    """101, and what follows."""
    return lambda data: (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                         b"Sec-WebSocket-Accept: " + accept(data) + b"\r\n\r\n" + b"".join(frames))


def refused(status, text):
    return answer(status, text, kind="text/plain", headers=["connection: close"])


REFUSALS = {
    "404": (refused(404, b"404 page not found"), "404 page not found"),
    "502": (refused(502, b"Bad Gateway"), "Bad Gateway"),
    "200": (refused(200, b"hello"), "hello"),
    "by the server's proxy": (upgraded(b"\x88\x02\x03\xf0"), "(1008)"),
    "by the server's proxy, with a reason": (upgraded(b"\x88\x06\x03\xf3gone"), "(1011): gone"),
    "cut": (upgraded(), "the connection "),
    "no head": (b"", "cannot reach the agent"),
    "another proof": (lambda data: upgraded()(data).replace(b"Accept: ", b"Accept: x"), "without the proof"),
    "another server": (upgraded(b"\x82\x1e" + b"what is this, and who are you?", b"\x88\x00"), "it cannot be reached where it listens"),
    "not WebSocket": (upgraded(b"\xff\xff\xff\xff"), "bad WebSocket"),
}


@KINDS
@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_pipe_where_the_listener_is_refused(place, kind, refusal):
    p = place(kind, front=True)
    p.front.refuse["GET /proxy/"], text = REFUSALS[refusal]
    assert p.abx("exec", "box-1", "--", "true").status == 0
    ran = p.abx("--debug", "exec", "-i", "box-1", "--", "sh", "-c", "cat; exit 3", input=b"a\r\n\0\xffb")
    assert (ran.status, ran.out) == (3, b"a\r\n\0\xffb"), ran
    made = requests(ran)
    if refusal == "no head" and made.count("GET /proxy") == 2:      # a kept connection that was closed is not believed
        made.remove("GET /proxy")
    assert made == STATE + ["POST /command", "GET /proxy", "POST /pty", "GET /pty", "DELETE /pty"], ran
    notices = [line for line in ran.err.decode(errors="replace").splitlines() if "reached by a pipe" in line]
    assert len(notices) == 1 and text in notices[0], ran


@KINDS
def test_lines_where_nothing_else_is_left(place, kind):
    p = place(kind, front=True)
    p.front.refuse["GET /proxy/"] = p.front.refuse["POST /pty"] = refused(404, b"no")
    assert p.abx("exec", "box-1", "--", "true").status == 0
    ran = p.abx("--debug", "exec", "box-1", "--", "sh", "-c", "printf 'a\\r\\n\\n\\000'; printf err >&2; exit 3", **NO_INPUT)
    assert (ran.status, ran.out) == (3, b"a\r\n\n\0"), ran
    assert requests(ran) == STATE + ["POST /command", "GET /proxy", "POST /pty", "POST /command"], ran
    assert b"err" in ran.err and ran.err.count(b"by lines of a command's output") == 1, ran
    # What no variable holds goes as a file, in which nothing stays.
    long = p.abx("exec", "box-1", "--", "printf", "%s", *(f"{i:099}-" for i in range(1000)), **NO_INPUT)
    assert long.out == b"".join(b"%099d-" % i for i in range(1000)), long.err
    assert p.sh("ls -A /tmp/.abx-0").split() == [os.path.basename(p.program())]
    fed = p.abx("exec", "-i", "box-1", "--", "cat", input=b"x")
    assert fed.status == 125 and b"[E8004]" in fed.err and fed.out == b"", fed


# --- a sandbox that lies ---

def said(*lines, code=0):
    end = event(type="execution_complete", execution_time=1) if code == 0 else \
        event(type="error", error={"ename": "CommandExecError", "evalue": str(code), "traceback": []})
    return [event(type="init", text="c0ffee"), *(event(type="stdout", text=t) for t in lines), end]


LIES = {
    "another folder": said("ABX1 need /etc/.abx-0"),
    "a folder above": said("ABX1 need /tmp/.abx-0/../../etc"),
    "two markers": said("ABX1 need /tmp/.abx-0", "ABX1 need /tmp/.abx-1"),
    "port 0": said("ABX1 port 0"),
    "port 70000": said("ABX1 port 70000"),
    "no port": said("ABX1 port"),
    "control characters": said("ABX1 need /tmp/.abx-0\x1b[2J"),
    "never there": said("ABX1 need /tmp/.abx-0"),
    "never safe": said("ABX1 unsafe /tmp/.abx-0"),
    "not started": said(code=126),
    "not found": said(code=127),
    "a signal": said(code=-1),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies(osb, server, lie):
    """Nothing is uploaded but to the folder that was asked for, at most twice; the command runs as the backend can."""
    server.box()
    def script(request, whole):
        if request.method == "POST" and request.path.endswith("/command") and "agent listen" in request.json()["command"]:
            return [chunked(LIES[lie])]
        return [whole]
    server.script = script
    ran = osb("exec", "box-1", "--", "true", **NO_INPUT)
    assert ran.status == 0 and ran.out == b"" and b"\x1b" not in ran.err and len(ran.err) < 2000, ran
    assert b"abx cannot be carried into the sandbox: " in ran.err, ran
    uploads = [path for path in server.files if path.rsplit("/", 1)[0] != "/tmp/.abx-0" and "abx" in path]
    assert uploads == [] and sum(r.path.endswith("/files/upload") for r in server.requests) <= 2


@pytest.mark.parametrize("lines", [("x" * (1 << 20),), ("x" * 1000,) * 1000, ("",) * 200000])
def test_noise_without_end(osb, server, lines):
    server.box()
    def script(request, whole):
        if request.method == "POST" and request.path.endswith("/command"):
            return [chunked(said(*lines)[:-1], end=False), scripted.HOLD]
        return [whole]
    server.script = script
    ran = osb("exec", "box-1", "--", "true")
    assert ran.status == 125 and b"[E8020]" in ran.err and b"before the agent" in ran.err, ran


def test_answers_cut_everywhere(osb, server):
    """An answer of the first line that ends anywhere is never taken for a start."""
    server.box()
    whole_answer = chunked(said("ABX1 port 4711"))
    for cut in range(0, whole_answer.index(b"4711") + 5, 7):
        def script(request, whole, cut=cut):
            if request.method == "POST" and request.path.endswith("/command"):
                return [whole_answer[:cut], scripted.CLOSE]
            return [whole]
        server.script = script
        ran = osb("exec", "box-1", "--", "true")
        assert ran.status == 125 and ran.out == b"" and b"started" not in ran.err, (cut, ran)


# --- the line, in the shells that there are ---

SHELLS = [s for s in ("bash", "dash", "busybox") if shutil.which(s)]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_line_in_every_shell(osb, server, tmp_path, shell):
    """Taken from a request, and run in places that are made for it."""
    server.box()
    osb("exec", "box-1", "--", "true")
    [line] = {r.json()["command"] for r in server.requests if r.path.endswith("/command") and "agent listen" in r.json()["command"]}
    name = re.search(r"exec \./(\S+) agent listen", line)[1]
    (tmp_path / "line").write_text(line)
    it = f"/tmp/.abx-0/{name}"
    good = f"mkdir -m 700 /tmp/.abx-0; printf '#!/bin/sh\\necho RAN $* in $PWD from $OLDPWD\\n' > {it}; chmod 755 {it}"
    rows = [
        ("true", "ABX1 need /tmp/.abx-0"), (good, "RAN agent listen in /tmp/.abx-0 from /usr"),
        (good + f"; chmod 644 {it}", "ABX1 need /tmp/.abx-0"), (good + f"; mv {it} /tmp/y; ln -s /tmp/y {it}", "ABX1 need /tmp/.abx-0"),
        (good + "; chmod 750 /tmp/.abx-0", "ABX1 unsafe /tmp/.abx-0"), (good + "; chown 99 /tmp/.abx-0", "ABX1 unsafe /tmp/.abx-0"),
        (good + "; mv /tmp/.abx-0 /tmp/x; ln -s /tmp/x /tmp/.abx-0", "ABX1 unsafe /tmp/.abx-0"), *(
            (planted, "ABX1 unsafe /tmp/.abx-0") for planted in PLANTED.values()),
        ("mount -o remount,noexec /tmp", "ABX1 noexec /tmp/.abx-0"), ("mount -o remount,ro /tmp", "ABX1 nodir /tmp/.abx-0"),
        ("mkdir -m 700 /tmp/.abx-0; mount -o remount,ro /tmp", "ABX1 nowrite /tmp/.abx-0"),
    ]
    words = "busybox sh" if shell == "busybox" else shell
    for setup, want in rows:
        inner = f"exec 9<line; mount -t tmpfs -o mode=1777 none /tmp; cd /usr; {setup}; exec {words} -c \"$(cat <&9)\""
        done = subprocess.run(["unshare", "-m", "sh", "-c", inner], cwd=tmp_path, capture_output=True, env={"PATH": os.environ["PATH"]})
        assert done.stdout.decode() == want + "\n", (setup, done)
