"""Terminals of a plugin that takes no agent: pty.open and what belongs to it, through `abx shell`."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

import pytest

import plugins
from conftest import BINARY

OPS = '["sandbox.create", "sandbox.get", "sandbox.list", "sandbox.delete", "exec.run", "exec.stream"]'

# Its terminals are real ones of this machine. `mode` says what is wrong with it.
PLUGIN = r"""
import base64, fcntl, json, os, pty, select, signal, struct, sys, termios
mode = open("mode").read() if os.path.exists("mode") else "good"
ops = OPS
def say(m):
    os.write(1, json.dumps(m).encode() + b"\n")
def note(method, **params):
    say({"method": method, "params": {"process_id": 17, **params}})
def log(text):
    with open("asked", "a") as f:
        f.write(text + "\n")
buf, term, child, late = b"", None, 0, []
while True:
    ready = select.select([0] + ([term] if term is not None else []), [], [])[0]
    if term in ready:
        try:
            data = os.read(term, 65536)
        except OSError:
            data = b""
        if data:
            cut = len(data) // 2
            for part in (data[:cut], data[cut:]):
                note("pty.output", data_b64="?" if mode == "garbage" else base64.b64encode(part).decode())
        else:
            status = os.waitpid(child, 0)[1]
            os.close(term)
            term = None
            code = {"exit_code": os.waitstatus_to_exitcode(status)} if mode == "tells" else {}
            note("pty.exit", **code)
    if 0 not in ready:
        continue
    data = os.read(0, 65536)
    if not data:
        break
    buf += data
    while b"\n" in buf:
        line, buf = buf.split(b"\n", 1)
        m = json.loads(line)
        what, p, result = m.get("method"), m.get("params", {}), {}
        if what == "initialize":
            result = {"protocol": "epp/1", "features": ["sandbox.lifecycle", "exec.run", "exec.stream", "pty"],
                      "operation_contract_version": 1, "operations": {"cli": ops, "python": ops},
                      "workflow_inputs": ["image"], "startup_modes": ["exec", "none"]}
        elif what.startswith("sandbox."):
            result = {"sandbox_id": "sb-1", "sandboxes": []}
        elif what == "pty.open":
            log("open %d %d" % (p["cols"], p["rows"]))
            child, term = pty.fork()
            if child == 0:
                os.execv("/bin/sh", ["sh"])
            fcntl.ioctl(term, termios.TIOCSWINSZ, struct.pack("HHHH", p["rows"], p["cols"], 0, 0))
            result = {"process_id": 17}
        elif what == "pty.write":
            assert p["process_id"] == 17
            if mode == "refuses":
                say({"id": m["id"], "error": {"code": -32000, "message": "not today"}})
                continue
            os.write(term, base64.b64decode(p["data_b64"]))
        elif what == "pty.resize":
            log("resize %d %d" % (p["cols"], p["rows"]))
            fcntl.ioctl(term, termios.TIOCSWINSZ, struct.pack("HHHH", p["rows"], p["cols"], 0, 0))
        elif what == "pty.close":
            log("close")
            if term is not None:
                os.kill(child, signal.SIGKILL)
        if "id" in m:
            say({"id": m["id"], "result": result})
        if mode == "dies" and what == "pty.open":
            os._exit(3)
        if what == "shutdown":
            sys.exit()
"""


class Terminal:
    """abx in a terminal of its own."""

    def __init__(self, abx, *words, size=(100, 30)):
        self.master, slave = pty.openpty()
        self.resize(*size)
        self.process = subprocess.Popen([BINARY, "sandbox", *words], stdin=slave, stdout=slave, stderr=slave, env=abx.environment(),
                                        cwd=abx.cwd, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.seen = b""

    def resize(self, cols, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def until(self, text, seconds=15):
        end = time.monotonic() + seconds
        while text.encode() not in self.seen:
            assert select.select([self.master], [], [], max(0, end - time.monotonic()))[0], self.seen
            try:
                self.seen += os.read(self.master, 65536)
            except OSError:
                break
        assert text.encode() in self.seen, self.seen

    def end(self, seconds=15):
        try:
            while select.select([self.master], [], [], seconds)[0] and (data := os.read(self.master, 65536)):
                self.seen += data
        except OSError:
            pass
        os.close(self.master)
        return self.process.wait(seconds)


@pytest.fixture
def box(abx):
    folder = plugins.plugin(abx.home / "src/demo", **{"plugin.py": PLUGIN.replace("OPS", OPS)})
    manifest = folder / "abx-provider.toml"
    text = manifest.read_text().replace('["sandbox.lifecycle", "exec.run"]', '["sandbox.lifecycle", "exec.run", "exec.stream", "pty"]')
    manifest.write_text(text.replace('["sandbox.create", "sandbox.get", "sandbox.list", "sandbox.delete", "exec.run"]', OPS))
    abx.env = {"ABX_PROVIDER": "demo", "ABX_DEMO_API_KEY": "k-123456"}
    ran = abx("provider", "install", str(folder), "--yes")
    assert ran.status == 0, ran
    data = abx.home / ".abx/providers/demo/data"

    def start(mode, *words, **more):
        (data / "mode").write_text(mode)
        return Terminal(abx, *words, **more)

    start.data, start.abx = data, abx
    return start


def asked(box):
    return (box.data / "asked").read_text().split("\n")


def test_a_shell(box):
    term = box("tells", "shell", "sb-1")
    term.type("stty size; echo $((6 * 7))0\n")
    term.until("30 100")
    term.until("420")
    term.resize(77, 22)
    term.type("sleep 0.3; stty size\n")
    term.until("22 77")
    term.type("exit 5\n")
    assert term.end() == 5, term.seen
    assert asked(box)[:2] == ["open 100 30", "resize 77 22"]


def test_a_command_and_its_words(box):
    term = box("tells", "shell", "sb-1", "--", "printf", "%s|", "a b", "$HOME", "it's", "", "*")
    term.until("a b|$HOME|it's||*|")
    assert term.end() == 0, term.seen


def test_ctrl_c_and_ctrl_d(box):
    term = box("tells", "shell", "sb-1")
    term.type("echo rea''dy; sleep 60\n")
    term.until("ready")
    time.sleep(0.3)
    term.type("\x03")
    term.type("echo st''ill\n")
    term.until("still")
    time.sleep(0.3)             # a key that comes while the shell sets the terminal's mode is lost there
    term.type("\x04")
    assert term.end() == 0, term.seen


def test_an_end_that_the_plugin_does_not_tell(box):
    """Unknown is not 0."""
    term = box("good", "shell", "sb-1")
    term.type("exit\n")
    assert term.end() == 125, term.seen
    assert b"unknown" in term.seen and b"demo" in term.seen


@pytest.mark.parametrize("mode, text", [("garbage", b"data_b64 is no base64"), ("refuses", b"not today"), ("dies", b"E8021")])
def test_a_plugin_that_breaks(box, mode, text):
    term = box(mode, "shell", "sb-1")
    term.type("echo hi\n")
    assert term.end() == 125, term.seen
    assert text in term.seen


def test_a_killed_one_closes_the_terminal(box):
    term = box("good", "shell", "sb-1")
    term.type("echo rea''dy\n")
    term.until("ready")
    term.process.terminate()
    assert term.end() == 143, term.seen
    assert "close" in asked(box)


@pytest.mark.parametrize("words, what", [(["-u", "nobody"], "user"), (["-e", "A=b"], "environment")])
def test_what_it_cannot_be_given(box, words, what):
    term = box("good", "shell", *words, "sb-1")
    assert term.end() != 0 and b"E8004" in term.seen and what.encode() in term.seen, term.seen


def test_lines_that_a_terminal_would_not_take(box):
    for word in ("x" * 3000, "a\nb"):
        term = box("good", "shell", "sb-1", "--", "echo", word)
        assert term.end() != 0 and b"E8004" in term.seen, term.seen
