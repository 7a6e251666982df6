"""The carried agent through plugins of others: lines of text both ways, however they are cut, and what is not theirs
between them. The sandboxes are this machine."""

import hashlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import plugins
from conftest import BINARY

OPS = '["sandbox.create", "sandbox.get", "sandbox.list", "sandbox.delete", "exec.run", "exec.stream", "files.read", "files.write"]'
FEATURES = '["sandbox.lifecycle", "exec.run", "exec.stream", "process.manage", "files.rw"]'

# What a foreign plugin is: commands by a shell, files as they are. `mode` says
# what it does with the lines that pass, `features` what it declares.
PLUGIN = r"""
import base64, codecs, json, os, random, signal, subprocess, sys, threading, time
mode = open("mode").read() if os.path.exists("mode") else "plain"
ops, features = OPS, json.load(open("features"))
lock, running, later = threading.Lock(), {}, []
def say(m):
    with lock:
        data = json.dumps(m).encode() + b"\n"
        while data:
            data = data[os.write(1, data):]
def log(text):
    with open("asked", "a") as f:
        f.write(text + "\n")
def note(number, data, stream="stdout"):
    say({"method": "exec.output", "params": {"process_id": number, "stream": stream, "data": data}})
def pieces(text):
    if mode == "bytewise" and len(text) < 20000:
        return list(text)
    if mode == "cut":
        cuts = sorted(random.randrange(len(text) + 1) for _ in range(5))
        return [text[a:b] for a, b in zip([0] + cuts, cuts + [len(text)])]
    return [text]
def lines(number, out):
    kept, n = "", 0
    for line in out:
        line = line.decode()
        n += 1
        if mode == "noise" and n % 20 < 5:
            note(number, "".join(random.choices("abc \xe9", k=random.randrange(80))) + "\n")
            note(number, "0" * 32 + line[32:])
            note(number, "a warning\n" * 3, "stderr")
        if mode == "joined":
            kept += line
            if n % 3 and not (kept.count("\n") < 3 and out.peek()[:1] == b""):
                continue
            line, kept = kept, ""
        if mode == "gap" and n == 3:
            continue
        for part in pieces(line):
            note(number, part)
        if mode == "twice" and n == 3:
            note(number, line)
    if kept:
        note(number, kept)
def run(number, child):
    lines(number, child.stdout)
    code = child.wait()
    say({"method": "exec.exit", "params": {"process_id": number, "exit_code": code}})
def start(m, p):
    number = len(running) + 100000
    stdin = subprocess.DEVNULL if mode == "no stdin" else subprocess.PIPE
    child = subprocess.Popen([p["cmd"]] + p["args"], env={**os.environ, **p["env"]}, stdin=stdin, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, start_new_session=True, cwd=p["cwd"] or None)
    running[number] = child
    log("start stdin=%s timeout=%s" % (p.get("stdin"), p["timeout"]))
    say({"id": m["id"], "result": {"process_id": number}})
    threading.Thread(target=run, args=(number, child), daemon=True).start()
def find(pid):
    for number, child in running.items():
        if pid in (child.pid, str(child.pid)) and mode != "nameless":
            return child
        if mode in ("by process_id", "nameless") and pid == number:
            return child
def answer(m):
    what, p = m.get("method"), m.get("params", {})
    if what == "initialize":
        return {"protocol": "epp/1", "features": features, "operation_contract_version": 1,
                "operations": {"cli": ops, "python": ops}, "workflow_inputs": ["image"], "startup_modes": ["exec", "none"]}
    if what.startswith("sandbox."):
        return {"sandbox_id": "sb-1", "sandboxes": []}
    if what == "files.write":
        if mode == "no files":
            raise ValueError("read-only")
        log("write")
        with open(p["path"], "wb") as f:
            f.write(base64.b64decode(p["content_b64"]))
        return {}
    if what == "process.list":
        log("list")
        known = [] if mode in ("by process_id", "unknown") else [c.pid for c in running.values()]
        return {"processes": [{"pid": 1, "command": "init"}] + [{"pid": pid, "command": "x"} for pid in known]}
    if what in ("process.stdin", "process.signal"):
        child = find(p["pid"])
        if mode == "unknown" or not child:
            raise ValueError("no such process")
        if what == "process.signal":
            log("signal %d" % p["signal"])
            os.killpg(child.pid, p["signal"])
            return {}
        if mode == "refuses":
            raise ValueError("standard input is closed")
        log("stdin %d" % len(p["data"]))
        if mode == "slow stdin":
            time.sleep(0.2)
        child.stdin.write(p["data"].encode())
        child.stdin.flush()
        if mode == "never":
            return None
        return {}
    return {}
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "exec.start":
        start(m, m["params"])
        continue
    try:
        result = answer(m)
        if result is None or "id" not in m:
            continue
        reply = {"id": m["id"], "result": result}
    except (ValueError, OSError) as e:
        reply = {"id": m["id"], "error": {"code": -32000, "message": str(e)}}
    say(reply)
    if m.get("method") == "shutdown":
        break
os._exit(0)
"""


@pytest.fixture
def foreign(abx):
    """Runs abx with the plugin in a mode."""
    folder = plugins.plugin(abx.home / "src/demo", **{"plugin.py": PLUGIN.replace("OPS", OPS)})
    manifest = folder / "abx-provider.toml"
    text = manifest.read_text().replace('["sandbox.lifecycle", "exec.run"]', FEATURES)
    manifest.write_text(text.replace('["sandbox.create", "sandbox.get", "sandbox.list", "sandbox.delete", "exec.run"]', OPS))
    data = abx.home / ".abx/providers/demo/data"
    data.mkdir(parents=True)
    (data / "features").write_text(FEATURES)
    abx.env = {"ABX_PROVIDER": "demo", "ABX_DEMO_API_KEY": "k-123456"}
    ran = abx("provider", "install", str(folder), "--yes")
    assert ran.status == 0, ran

    def run(mode, *words, **more):
        (data / "mode").write_text(mode)
        (data / "asked").write_text("")
        if "input" not in more:
            more.update(input=None, stdin=subprocess.DEVNULL)
        return abx("sandbox", "exec", *words, **more)

    run.data, run.abx = data, abx
    run.asked = lambda: (data / "asked").read_text().splitlines()
    return run


HARD = "printf '\\n\\n a\\r\\0\\377\\303'; printf 'err\\n\\n' >&2; exit 7"


@pytest.mark.parametrize("mode", ["plain", "bytewise", "cut", "joined", "noise", "no stdin"])
def test_output_is_exact_however_it_is_carried(foreign, mode):
    ran = foreign(mode, "sb-1", HARD)
    assert (ran.status, ran.out, ran.err) == (7, b"\n\n a\r\0\xff\xc3", b"err\n\n"), ran
    assert [line for line in foreign.asked() if line.split()[0] != "write"] == ["start stdin=True timeout=86400"] * len(
        [line for line in foreign.asked() if line.startswith("start")])


@pytest.mark.parametrize("mode", ["plain", "cut", "noise"])
def test_much_output(foreign, mode):
    ran = foreign(mode, "sb-1", "head -c 20000000 /dev/zero | tr '\\0' '\\n'; exec head -c 300 /dev/zero")
    assert ran.status == 0 and ran.out == b"\n" * 20000000 + b"\0" * 300, (ran.status, len(ran.out), ran.err)


@pytest.mark.parametrize("mode", ["gap", "twice"])
def test_a_lost_line_is_an_unknown_result(foreign, mode):
    ran = foreign(mode, "sb-1", "head -c 500000 /dev/urandom | od -An -tx1")
    assert ran.status == 125 and b"E8020" in ran.err, ran


@pytest.mark.parametrize("mode, names", [("plain", 1), ("by process_id", 1), ("slow stdin", 1)])
def test_input_and_its_end(foreign, mode, names):
    data = os.urandom(5 << 20)
    ran = foreign(mode, "-i", "sb-1", "sha256sum; echo end", input=data)
    assert ran.status == 0 and ran.out.split() == [hashlib.sha256(data).hexdigest().encode(), b"-", b"end"], ran
    asked = foreign.asked()
    assert asked.count("list") == names
    assert max(int(line.split()[1]) for line in asked if line.startswith("stdin ")) <= 1 << 20


def test_no_name_for_the_process_is_no_input(foreign):
    ran = foreign("unknown", "-i", "sb-1", "cat", input=b"x")
    assert ran.status == 125 and b"E8004" in ran.err, ran


def test_input_without_process_manage(foreign):
    (foreign.data / "features").write_text(FEATURES.replace('"process.manage", ', ""))
    ran = foreign("plain", "-i", "sb-1", "cat", input=b"x")
    assert ran.status == 125 and b"E8004" in ran.err, ran
    ran = foreign("plain", "sb-1", HARD)
    assert (ran.status, ran.out) == (7, b"\n\n a\r\0\xff\xc3"), ran


@pytest.mark.parametrize("mode", ["unknown", "refuses", "never"])
def test_an_idle_pipe_that_nobody_asked_for(foreign, mode):
    """As with the backend's own calls: the command runs, without input. It runs once."""
    read, write = os.pipe()
    seconds = 24 if mode == "never" else 6
    ran = foreign(mode, "sb-1", f"echo run >>{foreign.data}/runs; sleep {seconds}; {HARD}", stdin=read, input=None)
    assert (ran.status, ran.out) == (7, b"\n\n a\r\0\xff\xc3"), ran
    assert (foreign.data / "runs").read_text() == "run\n"
    os.close(write)
    os.close(read)


def test_a_plugin_that_never_answers_what_is_fed(foreign):
    """The first bytes arrive, and nothing else may be sent: the command is not left waiting for ever."""
    begun = time.monotonic()
    ran = foreign("never", "-i", "sb-1", "cat >/dev/null; echo end", input=b"x" * 100)
    assert ran.status == 125 and time.monotonic() - begun < 35, ran


def test_no_files_is_a_fall_back_that_is_said(foreign):
    """In a folder of its own, so that nothing lies there already."""
    ran = foreign("no files", "sb-1", "echo hi; exit 4", env={"TMPDIR": str(foreign.data)})
    assert (ran.status, ran.out) == (4, b"hi\n"), ran


def test_never(foreign):
    ran = foreign("plain", "--agent", "never", "sb-1", "echo hi; exit 4")
    assert (ran.status, ran.out) == (4, b"hi\n") and foreign.asked() == ["start stdin=None timeout=86400"], ran


def gone(pid, seconds):
    end = time.monotonic() + seconds
    while Path("/proc", pid).exists() and Path("/proc", pid, "stat").read_text().rsplit(") ", 1)[1][0] != "Z":
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)])
def test_signals_end_the_remote_group(foreign, tmp_path, number, status):
    (foreign.data / "mode").write_text("plain")
    process = foreign.abx.start("sandbox", "exec", "sb-1", f"sleep 300 & echo $! > {tmp_path}/pid; echo go; wait", stdin=subprocess.DEVNULL)
    assert process.stdout.readline() == b"go\n"
    process.send_signal(number)
    assert process.wait(15) == status
    assert gone((tmp_path / "pid").read_text().strip(), 5)
