"""The real-server rig: one Docker engine, two opensandbox-servers, and what they need.

e2e/up and e2e/down are thin commands over bring_up() and tear_down(); the
tests read the result with load(). Everything that runs is written down in
e2e/run/rig.json with its pid and start time *before* it is waited for, so a
crash anywhere leaves a record that the next up or down can act on, and a pid
that was given to somebody else since is never signalled.

Two daemons are under test, and execd_image is one per server and read once,
so there are two servers:

    agent   /execd and /bootstrap.sh are our own program, built without TLS
    stock   /execd is e2e/stock_execd, /bootstrap.sh a shell script
"""

import hashlib
import io
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent
RUN = HERE / "run"
CACHE = Path(os.environ.get("ABX_CACHE") or Path(os.environ.get("HOME", "/root")) / ".cache/abx-dev") / "e2e"

DAEMONS = ("agent", "stock")
PORTS = {"agent": (20000, 24999), "stock": (25000, 29999)}   # below the kernel's ephemeral ports
IMAGES = {"debian": "python:3.12-slim", "busybox": "abx-e2e/busybox:1"}
SANDBOX = "opensandbox.io/id"       # label of every container a server made
MARK = "abx-e2e"                    # metadata key that the tests give their sandboxes

ENV = dict(os.environ, PATH=os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin:/usr/local/go/bin")


class RigError(Exception):
    pass


def say(text):
    if not os.environ.get("ABX_E2E_QUIET"):
        print(f"e2e: {text}", file=sys.stderr, flush=True)


def run(*argv, check=True, **kw):
    done = subprocess.run(argv, env=ENV, capture_output=True, **kw)
    if check and done.returncode:
        tail = (done.stderr or done.stdout).decode(errors="replace").strip()[-2000:]
        raise RigError(f"{' '.join(map(str, argv[:4]))} failed with {done.returncode}: {tail}")
    return done


def docker(*argv, **kw):
    return run("docker", *argv, **kw).stdout.decode().strip()


def wait_for(what, ready, seconds, alive=lambda: True):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if ready():
            return
        if not alive():
            raise RigError(f"{what} ended while it was starting")
        time.sleep(0.05)
    raise RigError(f"{what} was not ready after {seconds} s")


# ---- processes ------------------------------------------------------------

def started_at(pid):
    """The start time of a process in clock ticks, or None: with the pid it names one process for good."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2:].split()
    return None if fields[0] == b"Z" else int(fields[19])


def alive(proc):
    return bool(proc) and started_at(proc["pid"]) == proc["start"]


def spawn(argv, log, **kw):
    """Start a program in a session of its own, its output in a log, so that it outlives this one."""
    with open(log, "ab") as out:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, **kw)
    return {"pid": child.pid, "start": started_at(child.pid), "log": str(log)}


def stop(proc, seconds=15):
    if not alive(proc):
        return
    for sig, wait in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5)):
        try:
            os.kill(proc["pid"], sig)
        except ProcessLookupError:
            return
        end = time.monotonic() + wait
        while time.monotonic() < end:
            try:                            # our own child stays a zombie until it is waited for
                os.waitpid(proc["pid"], os.WNOHANG)
            except ChildProcessError:
                pass
            if not alive(proc):
                return
            time.sleep(0.02)


# ---- the record -----------------------------------------------------------

def load():
    try:
        return json.loads((RUN / "rig.json").read_text())
    except (OSError, ValueError):
        return None


def save(rig):
    RUN.mkdir(exist_ok=True)
    new = RUN / "rig.json.new"
    new.write_text(json.dumps(rig, indent=1) + "\n")
    new.rename(RUN / "rig.json")


def write_env(rig):
    lines = [f"ABX_E2E_RUN={rig['run']}"]
    for image, name in IMAGES.items():
        lines.append(f"ABX_E2E_IMAGE_{image.upper()}={name}")
    for name, server in rig["servers"].items():
        lines += [f"ABX_E2E_{name.upper()}_URL={server['url']}", f"ABX_E2E_{name.upper()}_KEY={server['key']}"]
    lines.append(f"ABX_E2E_OSB={CACHE}/venv-client/bin/osb")
    (RUN / "env").write_text("".join(line + "\n" for line in lines))


# ---- engine and images ----------------------------------------------------

def engine_answers():
    return run("docker", "info", check=False).returncode == 0


def start_engine(rig):
    if engine_answers():
        return
    say("starting dockerd")
    # A pid file of our own: a killed dockerd that is not yet reaped would keep the usual one "in use".
    pidfile = RUN / "dockerd.pid"
    pidfile.unlink(missing_ok=True)
    rig["engine"] = spawn(["dockerd", "--pidfile", str(pidfile)], RUN / "dockerd.log", env=ENV)
    save(rig)
    wait_for("dockerd (its log is e2e/run/dockerd.log)", engine_answers, 60, lambda: alive(rig["engine"]))


def image_id(name):
    done = run("docker", "image", "inspect", "--format", "{{.Id}}", name, check=False)
    return done.stdout.decode().strip() if done.returncode == 0 else None


def import_tar(name, source, *changes):
    words = [w for c in changes for w in ("-c", c)]
    how = {"stdin": source} if hasattr(source, "fileno") else {"input": source}
    return run("docker", "import", *words, "-", name, **how).stdout.decode().strip()


def sandbox_image(image):
    """Import a cached root under its name, unless it is there. A foreign image of that name is left alone.

    What was imported is noted beside the tar and not in a label: the server
    shows the labels of an image as metadata of its sandboxes.
    """
    name, tar, note = IMAGES[image], CACHE / f"{image}.tar", CACHE / f"{image}.imported"
    try:
        digest = Path(f"{tar}.sha256").read_text().split()[0]
    except OSError:
        raise RigError(f"{tar} is not there: run e2e/prepare")
    have = image_id(name)
    known = note.read_text().split() if note.exists() else ["", ""]
    if have and (known == [digest, have] or have != known[1]):
        return
    say(f"importing {name}")
    run("sha256sum", "--check", "--status", f"{tar}.sha256", cwd=CACHE)
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    command = 'CMD ["python3"]' if image == "debian" else 'CMD ["sh"]'
    with open(tar, "rb") as source:
        made = import_tar(name, source, f"ENV PATH={path}", command)
    note.write_text(f"{digest} {made}\n")


def agent_files():
    """Our own program twice: $ABX_AGENT, else what `make TLS=none` makes."""
    place = os.environ.get("ABX_AGENT")
    if not place:
        run("make", "-s", "-C", str(TOP), "TLS=none")
        place = TOP / "abx-notls"
    data = Path(place).read_bytes()
    return {"execd": data, "bootstrap.sh": data}


def stock_files():
    source = HERE / "stock_execd"
    out = RUN / "stock_execd"
    RUN.mkdir(exist_ok=True)
    run("env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", str(out), ".", cwd=source)
    return {"execd": out.read_bytes(), "bootstrap.sh": (source / "bootstrap.sh").read_bytes()}


def execd_image(name, files):
    """The image a server copies the daemon out of; its tag is a hash of what is in it."""
    files = dict(files, **{"bin/busybox": Path("/bin/busybox").read_bytes()})
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.encode() + b"\0" + hashlib.sha256(files[path]).digest())
    digest = digest.hexdigest()
    image = f"abx-e2e/execd-{name}:{digest[:16]}"
    if image_id(image):
        return image
    say(f"importing {image}")
    buf = io.BytesIO()
    with tarfile.open(fileobj=buf, mode="w") as tar:
        for folder in ("bin", "tmp"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
        for applet in ("sh", "tail", "cat", "ls"):
            entry = tarfile.TarInfo(f"bin/{applet}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(entry)
    import_tar(image, buf.getvalue(), "ENV PATH=/bin", "ENTRYPOINT []")
    return image


# ---- servers --------------------------------------------------------------

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


CONFIG = """\
[server]
host = "127.0.0.1"
port = {port}
api_key = "{key}"
max_sandbox_timeout_seconds = 86400
[proxy]
resolve_internal = true
[runtime]
type = "docker"
execd_image = "{execd_image}"
[storage]
allowed_host_paths = ["{scratch}"]
[store]
type = "sqlite"
path = "{home}/store.sqlite"
[docker]
network_mode = "bridge"
port_range_min = {low}
port_range_max = {high}
publish_host = "127.0.0.1"
no_new_privileges = true
apparmor_profile = ""
pids_limit = 4096
seccomp_profile = ""
[ingress]
mode = "direct"
"""


def healthy(server):
    try:
        with urllib.request.urlopen(server["url"] + "/health", timeout=5) as answer:
            return answer.status == 200
    except (OSError, urllib.error.URLError):
        return False


def start_server(rig, name, image):
    home = RUN / name
    shutil.rmtree(home, ignore_errors=True)
    (home / "volumes").mkdir(parents=True)
    port, key = free_port(), f"e2e-{name}-{secrets.token_hex(12)}"
    low, high = PORTS[name]
    (home / "server.toml").write_text(CONFIG.format(
        port=port, key=key, execd_image=image, scratch=home / "volumes", home=home, low=low, high=high))
    server = spawn([str(CACHE / "venv-server/bin/opensandbox-server"), "--config", str(home / "server.toml")],
                   home / "server.log", env=dict(ENV, HOME=str(home)), cwd=home)
    server.update(url=f"http://127.0.0.1:{port}", key=key, execd_image=image)
    rig["servers"][name] = server
    save(rig)


def sandboxes(rig):
    """The containers that belong to this rig: all of them on an engine of ours, else those the tests marked."""
    labels = [SANDBOX] if alive(rig.get("engine")) else [f"{MARK}={rig['run']}"]
    found = []
    for label in labels:
        found += docker("ps", "-aq", "--filter", f"label={label}").split()
    return found


def remove_sandboxes(rig):
    if not rig.get("run") or not engine_answers():
        return
    found = sandboxes(rig)
    if found:
        docker("rm", "-f", "-v", *found)


def bring_up(names=DAEMONS):
    if not (CACHE / "venv-client.stamp").exists() or not (CACHE / "venv-server.stamp").exists():
        raise RigError("the cache is not ready: run e2e/prepare")
    rig = load() or {}
    rig.setdefault("servers", {})
    rig.setdefault("run", secrets.token_hex(6))
    save(rig)
    start_engine(rig)
    for image in IMAGES:
        sandbox_image(image)
    files = {"agent": agent_files, "stock": stock_files}
    images = {name: execd_image(name, files[name]()) for name in names}

    # A server that is up and has the right daemon stays; both start before
    # the first sandbox, so one that has to be replaced takes the other along.
    fresh = [n for n in names if not (alive(rig["servers"].get(n)) and healthy(rig["servers"][n])
                                      and rig["servers"][n]["execd_image"] == images[n])]
    if fresh:
        for server in rig["servers"].values():
            stop(server)
        remove_sandboxes(rig)
        rig["servers"] = {}
        rig["run"] = secrets.token_hex(6)
        for name in names:
            start_server(rig, name, images[name])
        for name in names:
            server = rig["servers"][name]
            wait_for(f"server {name} (its log is {server['log']})", lambda: healthy(server), 60, lambda: alive(server))
    rig["images"] = IMAGES
    save(rig)
    write_env(rig)
    for name in names:
        say(f"{name}: {rig['servers'][name]['url']}")
    return rig


def tear_down():
    rig = load()
    if rig is None:
        return
    for server in rig.get("servers", {}).values():
        stop(server)
    remove_sandboxes(rig)
    stop(rig.get("engine"), 30)
    shutil.rmtree(RUN, ignore_errors=True)
