"""A plugin that speaks EPP/1: each sandbox is a folder on this machine.

It shows every message of the protocol, with nothing but Python's own library.
It is no sandbox for code that you do not trust: commands run as you are.

A host starts one process of this for each session, and several can run at a
time. So everything that is known of a sandbox lies in the data folder:

    sandboxes/ID/state.json     what it is
    sandboxes/ID/root/          its files: "/" of the sandbox
    sandboxes/ID/processes/PID  its commands that run
"""

import base64
import codecs
import datetime
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib

HERE = pathlib.Path(__file__).parent
MANIFEST = tomllib.loads((HERE / "abx-provider.toml").read_text(encoding="utf-8"))
DATA = pathlib.Path(os.environ.get("ABX_PROVIDER_DATA_DIR", "."))
LINE = 8 * 1024 * 1024          # a host ends a plugin that sends a longer line

# ---- messages ----------------------------------------------------------------


class Failure(Exception):
    """An error as it is answered: a code of the protocol, and what else helps."""

    def __init__(self, code, message, **data):
        super().__init__(message)
        self.body = {"code": code, "message": message, "data": data}


def no_sandbox(sandbox_id):
    return Failure(-32002, f"there is no sandbox {sandbox_id}")


def refused(message):
    return Failure(-32006, message)


output = threading.Lock()


def send(message):
    """One message is one line; threads take turns."""
    line = json.dumps(message).encode() + b"\n"
    if len(line) > LINE and "id" in message:
        message = {"id": message["id"], "error": {"code": -32000, "message": "the answer is too large for one line"}}
        line = json.dumps(message).encode() + b"\n"
    with output:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def notify(method, **params):
    send({"jsonrpc": "2.0", "method": method, "params": params})


def note(text):
    """For the person: hosts show it when something fails, never on success."""
    print(text, file=sys.stderr, flush=True)


# ---- sandboxes ---------------------------------------------------------------


def now():
    return datetime.datetime.now(datetime.timezone.utc)


class Sandbox:
    def __init__(self, sandbox_id):
        # An id comes from outside, and becomes a path here.
        if not re.fullmatch(r"dir-[0-9a-f]{16}", sandbox_id):
            raise no_sandbox(sandbox_id)
        self.id = sandbox_id
        self.folder = DATA / "sandboxes" / sandbox_id
        self.root = self.folder / "root"

    @staticmethod
    def all():
        folder = DATA / "sandboxes"
        found = [Sandbox(p.name) for p in folder.iterdir() if p.name.startswith("dir-")] if folder.is_dir() else []
        return sorted((s for s in found if s.alive()), key=lambda s: (s.state()["created_at"], s.id))

    def state(self):
        try:
            return json.loads((self.folder / "state.json").read_text())
        except (FileNotFoundError, NotADirectoryError):
            raise no_sandbox(self.id) from None

    def store(self, **changes):
        """Whole or not at all: another process may be reading it."""
        state = self.state() | changes if (self.folder / "state.json").exists() else changes
        part = self.folder / f"state.{secrets.token_hex(4)}"
        part.write_text(json.dumps(state))
        part.replace(self.folder / "state.json")
        return state

    def alive(self):
        try:
            end = datetime.datetime.fromisoformat(self.state()["expires_at"])
        except Failure:
            return False
        if end <= now():
            self.remove()
        return end > now()

    def remove(self):
        self.signal_all(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def record(self):
        state = self.state()
        return {"sandbox_id": self.id, "template": state["template"], "metadata": state["metadata"], "status": state["status"],
                "created_at": state["created_at"], "expires_at": state["expires_at"], "region": ""}

    def path(self, text):
        """A path of the sandbox: "/" is its root, and ".." does not lead out."""
        return self.root / os.path.normpath("/" + text).lstrip("/")

    def processes(self):
        """{pid: command} of those that run. A number that was given to another
        program in the meantime is told by when that one started."""
        found = {}
        for entry in (self.folder / "processes").glob("*"):
            try:
                born, command = json.loads(entry.read_text())
            except (OSError, ValueError):
                continue
            if birth(int(entry.name)) == born:
                found[int(entry.name)] = command
            else:
                entry.unlink(missing_ok=True)
        return found

    def signal_all(self, number):
        for pid in self.processes():
            signal_group(pid, number)


def open_sandbox(params):
    sandbox = Sandbox(params["sandbox_id"])
    if not sandbox.alive():
        raise no_sandbox(sandbox.id)
    return sandbox


def birth(pid):
    """When a process started, in ticks of the machine; None: there is none."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]


def signal_group(pid, number):
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return False
    return True


def create(params):
    sandbox = Sandbox("dir-" + secrets.token_hex(8))
    sandbox.root.mkdir(parents=True)
    (sandbox.folder / "processes").mkdir()
    start = now()
    sandbox.store(template=params["template"], metadata=params.get("metadata") or {}, envs=params.get("envs") or {}, status="running",
                  created_at=start.isoformat(), expires_at=(start + datetime.timedelta(seconds=params["timeout"])).isoformat())
    for word in ("cpu", "memory", "disk", "gpu"):
        if params.get(word) is not None:
            note(f"{word} is not limited here: {params[word]} was asked for")
    return sandbox.record()


def get(params):
    return open_sandbox(params).record()


def list_sandboxes(params):
    """At most `limit` at a time; `next` is where the next call goes on."""
    found = [s.record() for s in Sandbox.all()]
    found = [r for r in found if params.get("status") in (None, r["status"])]
    keys = [r["created_at"] + r["sandbox_id"] for r in found]
    start = sum(key <= params["cursor"] for key in keys) if params.get("cursor") else 0
    end = start + params["limit"]
    page = {"sandboxes": found[start:end]}
    if end < len(found):
        page["next"] = keys[end - 1]
    return page


def kill(params):
    open_sandbox(params).remove()
    return {}


def set_timeout(params):
    open_sandbox(params).store(expires_at=(now() + datetime.timedelta(seconds=params["timeout"])).isoformat())
    return {}


def pause(params):
    sandbox = open_sandbox(params)
    sandbox.signal_all(signal.SIGSTOP)
    sandbox.store(status="paused")
    return {}


def resume(params):
    sandbox = open_sandbox(params)
    sandbox.store(status="running")
    sandbox.signal_all(signal.SIGCONT)
    return {}


def port_url(params):
    open_sandbox(params)
    return {"url": f"http://127.0.0.1:{params['port']}", "headers": {}}


# ---- commands ----------------------------------------------------------------

config = {}
running = {}                    # pid: the Popen of a command of this session


def start_command(params):
    sandbox = open_sandbox(params)
    state = sandbox.state()
    if state["status"] != "running":
        raise Failure(-32000, f"the sandbox is {state['status']}", suggestion=f"Resume it first: {sandbox.id}")
    env = {k: os.environ[k] for k in ("PATH", "LANG", "TMPDIR") if k in os.environ}
    env |= {"HOME": str(sandbox.root), "SHELL": config["shell"]} | state["envs"] | (params.get("env") or {})
    if config.get("token"):
        env["SANDBOX_TOKEN"] = config["token"]
    try:
        # A session of its own: a signal then reaches all that the command
        # starts, and the host, which ends this plugin's group, ends no command.
        command = subprocess.Popen([params["cmd"], *params.get("args", [])], cwd=sandbox.path(params.get("cwd") or "/"), env=env,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    except FileNotFoundError:
        raise Failure(-32000, f"{params['cmd']} or its folder is not there", sdk_code="E4001") from None
    except OSError as e:
        raise Failure(-32000, f"{params['cmd']}: {e.strerror}", sdk_code="E4002") from None
    running[command.pid] = command
    words = " ".join([params["cmd"], *params.get("args", [])])
    (sandbox.folder / "processes" / str(command.pid)).write_text(json.dumps([birth(command.pid), words]))
    timer = threading.Timer(params.get("timeout") or 86400, signal_group, (command.pid, signal.SIGKILL))
    timer.daemon = True
    timer.start()
    return sandbox, command, timer


def pump(pipe, sink):
    """Text to sink(text), as it comes; a character that is cut waits for its rest."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while data := os.read(pipe.fileno(), 65536):
        if text := decoder.decode(data):
            sink(text)
    if text := decoder.decode(b"", True):
        sink(text)


def finish_command(sandbox, command, timer, out, err):
    """All output, then how it ended: 0 to 255, or minus the signal's number."""
    pumps = [threading.Thread(target=pump, args=a, daemon=True) for a in ((command.stdout, out), (command.stderr, err))]
    for p in pumps:
        p.start()
    code = command.wait()
    for p in pumps:
        p.join(5)               # something that it left behind may hold its output open
    timer.cancel()
    running.pop(command.pid, None)
    (sandbox.folder / "processes" / str(command.pid)).unlink(missing_ok=True)
    return code


def exec_start(params):
    sandbox, command, timer = start_command(params)

    def run():
        def chunk(stream):
            return lambda text: notify("exec.output", process_id=command.pid, stream=stream, data=text)
        code = finish_command(sandbox, command, timer, chunk("stdout"), chunk("stderr"))
        notify("exec.exit", process_id=command.pid, exit_code=code)

    threading.Thread(target=run, daemon=True).start()
    # The id of the stream is the process's own number, so that a host can hand
    # it to process.signal on Ctrl-C.
    return {"process_id": command.pid}


def exec_run(params):
    out, err = [], []
    sandbox, command, timer = start_command(params)
    command.stdin.close()
    code = finish_command(sandbox, command, timer, out.append, err.append)
    return {"stdout": "".join(out), "stderr": "".join(err), "exit_code": code}


def process_list(params):
    return {"processes": [{"pid": pid, "command": command, "status": "running"}
                          for pid, command in open_sandbox(params).processes().items()]}


def process_of(params):
    pid = int(params["pid"]) if str(params["pid"]).isdigit() else -1
    if pid not in open_sandbox(params).processes():
        raise Failure(-32002, f"there is no process {params['pid']}")
    return pid


def process_stdin(params):
    command = running.get(process_of(params))
    if not command:
        raise Failure(-32000, "the input of a command can be written in the session that started it")
    try:
        command.stdin.write(params["data"].encode())
        command.stdin.flush()
    except OSError:
        raise Failure(-32000, "the command reads no more input") from None
    return {}


def process_signal(params):
    signal_group(process_of(params), int(params.get("signal", signal.SIGTERM)))
    return {}


# ---- files -------------------------------------------------------------------


def file_error(e, path):
    if isinstance(e, (FileNotFoundError, NotADirectoryError)):
        return Failure(-32000, f"{path}: there is no such file", sdk_code="E4001")
    return Failure(-32000, f"{path}: {e.strerror}", sdk_code="E4002" if isinstance(e, PermissionError) else "")


def entry(sandbox, path):
    stat = path.lstat()
    return {"name": path.name, "path": "/" + str(path.relative_to(sandbox.root)).removeprefix("."), "size": stat.st_size,
            "type": "dir" if path.is_dir() else "file",
            "mtime": datetime.datetime.fromtimestamp(stat.st_mtime, datetime.timezone.utc).isoformat()}


def files_stat(sandbox, path, params):
    return entry(sandbox, path)


def files_list(sandbox, path, params):
    return {"entries": [entry(sandbox, p) for p in sorted(path.iterdir())]}


def files_read(sandbox, path, params):
    # In base64, with what stands around it, this is the most that fits in a line.
    if path.stat().st_size > LINE // 4 * 3 - 1024:
        raise Failure(-32000, f"{params['path']} is larger than one message can be")
    return {"content_b64": base64.b64encode(path.read_bytes()).decode()}


def files_write(sandbox, path, params):
    """Whole or not at all, and an old file keeps its mode."""
    content = base64.b64decode(params["content_b64"], validate=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        part.write_bytes(content)
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return {}


def files_mkdir(sandbox, path, params):
    path.mkdir(parents=True, exist_ok=True)
    return {}


def files_remove(sandbox, path, params):
    if path == sandbox.root:
        raise refused("the root of a sandbox stays")
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    return {}


def files_move(sandbox, path, params):
    target = sandbox.path(params["destination"])
    target.parent.mkdir(parents=True, exist_ok=True)
    path.rename(target)
    return {}


def of_file(function):
    def call(params):
        sandbox = open_sandbox(params)
        text = params.get("path", params.get("source"))
        try:
            return function(sandbox, sandbox.path(text), params)
        except OSError as e:
            raise file_error(e, text) from None
    return call


# ---- the conversation --------------------------------------------------------


def initialize(params):
    if params.get("protocol") != MANIFEST["compat"]["protocol"]:
        raise refused(f"this plugin speaks {MANIFEST['compat']['protocol']}")
    config.update(params.get("config") or {})
    # What is said here must equal the manifest, in the same order.
    return {"protocol": MANIFEST["compat"]["protocol"],
            "plugin": {"name": MANIFEST["provider"]["id"], "version": MANIFEST["provider"]["version"]},
            "features": MANIFEST["features"]["supported"],
            "operation_contract_version": MANIFEST["operation_contract_version"],
            "operations": {"cli": MANIFEST["operations"]["cli"], "python": MANIFEST["operations"]["python"]},
            "workflow_inputs": MANIFEST["workflow"]["inputs"],
            "startup_modes": MANIFEST["workflow"]["startups"]}


METHODS = {
    "initialize": initialize, "shutdown": lambda params: {},
    "sandbox.create": create, "sandbox.connect": get, "sandbox.get": get, "sandbox.list": list_sandboxes, "sandbox.kill": kill,
    "sandbox.set_timeout": set_timeout, "sandbox.pause": pause, "sandbox.resume": resume, "ports.url": port_url,
    "exec.run": exec_run, "exec.start": exec_start,
    "process.list": process_list, "process.stdin": process_stdin, "process.signal": process_signal,
    "files.stat": of_file(files_stat), "files.list": of_file(files_list), "files.read": of_file(files_read),
    "files.write": of_file(files_write), "files.mkdir": of_file(files_mkdir), "files.remove": of_file(files_remove),
    "files.move": of_file(files_move),
}


def answer(request):
    try:
        method = METHODS.get(request["method"])
        if not method:
            raise Failure(-32601, f"no method {request['method']}")
        send({"jsonrpc": "2.0", "id": request["id"], "result": method(request.get("params") or {})})
    except Failure as e:
        send({"jsonrpc": "2.0", "id": request["id"], "error": e.body})
    except (KeyError, TypeError, ValueError) as e:
        note(f"{request['method']}: {e!r}")
        send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32602, "message": f"{request['method']}: {e!r}"}})


def main():
    # Lines of any length, to the end of the input: a host that writes must
    # never wait for a plugin that does not read. Each request has a thread.
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        request = json.loads(line)
        if "id" not in request:
            continue            # $/cancel: what was asked for ends in a while by itself
        worker = threading.Thread(target=answer, args=(request,), daemon=True)
        worker.start()
        if request["method"] in ("initialize", "shutdown"):
            worker.join()
        if request["method"] == "shutdown":
            break
    for pid in list(running):   # the session is over, and nobody would hear of these
        signal_group(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
