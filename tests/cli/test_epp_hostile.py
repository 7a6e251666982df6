"""Plugins that break the protocol, through the whole program: each is ended, named and explained, with no process left."""

import json
import os
import signal
import time

import pytest

import plugins

# What it does with the first request behind the handshake is read from its data
# folder, which is no part of what was hashed.
PLUGIN = r"""
import json, os, signal, subprocess, sys, time
mode = open("mode").read() if os.path.exists("mode") else "good"
def pid(n):
    with open("pids", "a") as f:
        f.write("%d\n" % n)
def say(m):
    sys.stdout.write(json.dumps(m) + "\n")
    sys.stdout.flush()
pid(os.getpid())
ops = ["sandbox.create", "sandbox.get", "sandbox.list", "sandbox.delete", "exec.run"]
boxes = json.load(open("boxes")) if os.path.exists("boxes") else []
sys.stderr.write("told the key %s\n\x1b[31m" % "no")
for line in sys.stdin:
    m = json.loads(line)
    what, params = m.get("method"), m.get("params", {})
    if what == "initialize":
        secret = params["config"].get("api_key", "")
        sys.stderr.write("key is %s\n" % secret)
        sys.stderr.flush()
        say({"id": m["id"], "result": {"protocol": "epp/1", "plugin": {}, "features": ["sandbox.lifecycle", "exec.run"],
             "operation_contract_version": 1, "operations": {"cli": ops, "python": ops}, "workflow_inputs": ["image"],
             "startup_modes": ["exec", "none"]}})
        continue
    if what == "shutdown":
        if mode == "deaf":
            continue
        say({"id": m["id"], "result": {}})
        break
    if what == "sandbox.kill":
        with open("killed", "a") as f:
            f.write(params["sandbox_id"] + "\n")
        say({"id": m["id"], "result": None})
        continue
    if mode == "garbage":
        sys.stdout.write("Traceback: oops\n")
        sys.stdout.flush()
        time.sleep(60)
    elif mode == "dies":
        sys.stderr.write("out of luck with %s\n" % secret)
        sys.exit(7)
    elif mode == "dies in mid-frame":
        sys.stdout.write('{"id": %d, "resu' % m["id"])
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    elif mode == "child holds stdout":
        pid(subprocess.Popen(["sleep", "60"]).pid)
        os._exit(3)
    elif mode == "long line":
        sys.stdout.write("x" * 9000000)
        time.sleep(60)
    elif mode == "wrong shape":
        say({"id": m["id"], "result": {"sandboxes": {}, "sandbox_id": "sb-1", "envd_access_token": 5}})
    elif mode == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        pid(subprocess.Popen(["sleep", "60"]).pid)
        say({"id": m["id"], "result": {"sandboxes": []}})
    elif mode.startswith("endless"):
        page = {"endless same": ("x", 1), "endless empty": (str(time.time()), 0), "endless full": (str(time.time()), 30000),
                "endless one": (str(time.time()), 1)}[mode]
        say({"id": m["id"], "result": {"sandboxes": [{"sandbox_id": "sb-1", "template": "t" * 99}] * page[1], "next": page[0]}})
    elif mode == "twice":
        say({"id": m["id"], "result": {"sandboxes": [{"sandbox_id": "sb-1"}]}})
        say({"id": m["id"], "result": {"sandboxes": [{"sandbox_id": "sb-2"}]}})
    elif what == "exec.run" and mode == "good":
        say({"id": m["id"], "result": {"stdout": " ".join([params["cmd"]] + params["args"]), "exit_code": 4}})
    else:
        say({"id": m["id"], "result": {"sandbox_id": "sb-1", "sandboxes": [{"sandbox_id": "sb/1"}]}})
"""

KEY = "canary-" + "0123456789abcdef" * 2


@pytest.fixture
def hostile(abx):
    """Installs the plugin; call it with a mode and a command."""
    folder = plugins.plugin(abx.home / "src/demo", **{"plugin.py": PLUGIN})
    abx.env = {"ABX_PROVIDER": "demo", "ABX_DEMO_API_KEY": KEY}
    ran = abx("provider", "install", str(folder), "--yes")
    assert ran.status == 0, ran
    data = abx.home / ".abx/providers/demo/data"

    def run(mode, *words):
        (data / "mode").write_text(mode)
        ran = abx(*words)
        assert KEY.encode() not in ran.out + ran.err, ran
        pids = set((data / "pids").read_text().split())
        until = time.monotonic() + 10       # one that was killed needs a moment to be gone
        while (left := [p for p in pids if alive(int(p))]) and time.monotonic() < until:
            time.sleep(0.05)
        for p in left:
            os.kill(int(p), signal.SIGKILL)
        assert not left, (left, ran)
        return ran

    run.data = data
    return run


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("mode, code, text", [
    ("garbage", "E8020", "sent a line that is no message"),
    ("dies", "E8021", "exited unexpectedly (code 7)"),
    ("dies in mid-frame", "E8020", "sent a line that is no message"),
    ("child holds stdout", "E8021", "exited unexpectedly (code 3)"),
    ("long line", "E8020", "sent a line of more than 8388608 bytes"),
    ("endless same", "E8020", "answers sandbox.list wrongly: next is where it began"),
    ("endless empty", "E8020", "answers sandbox.list wrongly: there is no end to it"),
    ("endless one", "E8020", "answers sandbox.list wrongly: there is no end to it"),
    ("endless full", "E8020", "answers sandbox.list wrongly: there is no end to it"),
    ("wrong shape", "E8020", "answers sandbox.list wrongly: sandboxes is no array"),
])
def test_it_is_ended_named_and_explained(hostile, mode, code, text):
    start = time.monotonic()
    ran = hostile(mode, "--json", "sandbox", "list")
    ran.failed_well(True)
    assert (ran.status, ran.error["code"]) == (1, code), ran
    assert "demo" in ran.error["message"] and text in ran.error["message"], ran
    assert ran.error["suggestion"].startswith("The plugin printed: told the key no key is ***"), ran
    assert time.monotonic() - start < 30


def test_one_that_will_not_end(hostile):
    ran = hostile("deaf", "--json", "sandbox", "list")
    assert ran.status == 0 and ran.doc["sandboxes"] == [] if isinstance(ran.doc, dict) else ran.doc == [], ran


def test_two_answers(hostile):
    ran = hostile("twice", "-q", "sandbox", "list")
    assert ran.out == b"sb-1\n" or ran.out == b"demo:sb-1\n", ran


def test_a_sandbox_that_cannot_be_used_is_removed(hostile):
    ran = hostile("wrong shape", "--json", "sandbox", "create")
    assert ran.status == 1 and "(removed again)" in ran.error["message"], ran
    assert (hostile.data / "killed").read_text() == "sb-1\n"


def test_good(hostile):
    ran = hostile("good", "sandbox", "exec", "demo:sb/1", "echo $HOME | cat")
    assert (ran.status, ran.out) == (4, b"sh -c echo $HOME | cat"), ran
    ran = hostile("good", "sandbox", "kill", "sb/1", "--yes")
    assert ran.status == 0 and (hostile.data / "killed").read_text() == "sb/1\n", ran
    ran = hostile("good", "--json", "sandbox", "pause", "sb/1")
    assert ran.status == 1 and ran.error["code"] == "E8004" and "sandbox.pause" in ran.error["message"], ran
