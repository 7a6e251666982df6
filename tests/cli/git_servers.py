"""Real git servers on loopback, each started for a test and ended with it:
nginx with fcgiwrap and git-http-backend, sshd, and repositories to serve; and
one whose answers a test may change."""

import hashlib
import http.server
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
import zlib
from pathlib import Path

BACKEND = "/usr/lib/git-core/git-http-backend"
COMMIT = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@x", "GIT_AUTHOR_DATE": "1700000000 +0000",
          "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@x", "GIT_COMMITTER_DATE": "1700000000 +0000"}
# Nothing of this machine's git configuration, and nobody's ownership of a repository.
CLEAN = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def git(folder, *args, text=True, **more):
    r = subprocess.run(["git", *args], cwd=folder, env={**os.environ, **COMMIT, **CLEAN}, capture_output=True, text=text,
                       stdin=None if "input" in more else subprocess.DEVNULL, timeout=60, **more)
    assert r.returncode == 0, (args, r.stderr)
    return r.stdout.strip() if text else r.stdout


class Repo:
    """A bare repository; `commit` adds a commit made of files."""

    def __init__(self, path, form="sha1"):
        self.path, self.blobs = Path(path), {}
        git("/", "init", "-q", "--bare", f"--object-format={form}", "-b", "main", str(self.path))
        self.config("uploadpack.allowFilter", "true")

    def git(self, *args, **more):
        return git(self.path, *args, **more)

    def config(self, key, value):
        self.git("config", key, value)

    def blob(self, data):
        if data not in self.blobs:
            self.blobs[data] = self.git("hash-object", "-w", "--stdin", text=False, input=data).decode().strip()
        return self.blobs[data]

    def tree(self, files):
        """files: path -> bytes, (mode, bytes), or (mode, id as text)."""
        entries, folders = [], {}
        for path, what in files.items():
            head, _, rest = path.partition("/")
            if rest:
                folders.setdefault(head, {})[rest] = what
                continue
            mode, data = what if isinstance(what, tuple) else ("100644", what)
            kind = "commit" if mode == "160000" else "tree" if mode == "40000" else "blob"
            entries.append(f"{mode} {kind} {data if isinstance(data, str) else self.blob(data)}\t{head}\0")
        entries += [f"40000 tree {self.tree(inside)}\t{name}\0" for name, inside in folders.items()]
        return self.git("mktree", "-z", "--missing", input="".join(entries))

    def commit(self, files, branch="main", parents=(), tree=None):
        tree = tree or self.tree(files)
        new = self.git("commit-tree", tree, "-m", "m", *(x for p in parents for x in ("-p", p)))
        if branch:
            self.git("update-ref", f"refs/heads/{branch}", new)
        return new


def wait_for(port, process):
    for _ in range(300):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    raise AssertionError("the server does not listen")


def end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Nginx:
    """https://localhost:PORT/REPO, and the same at /v0/REPO without the header
    that asks for protocol 2. Repositories are the folders under `root`. `forge`:
    an address on whose port 443 it is github.com too, /OWNER/REPO, with the
    files of `work`/archives for archives, by way of another host."""

    def __init__(self, work, root, pair, forge=None):
        self.work, self.port, self.plain = Path(work), free_port(), free_port()
        self.url, self.http = f"https://localhost:{self.port}", f"http://127.0.0.1:{self.plain}"
        env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **CLEAN}
        self.cgi = subprocess.Popen(["fcgiwrap", "-c", "2", "-s", f"unix:{self.work}/cgi"], env=env,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                    start_new_session=True)
        user = pwd.getpwuid(os.getuid()).pw_name
        cgi = (f"include /etc/nginx/fastcgi_params; fastcgi_pass unix:{self.work}/cgi; fastcgi_param SCRIPT_FILENAME {BACKEND}; "
               f"fastcgi_param GIT_PROJECT_ROOT {root}; fastcgi_param GIT_HTTP_EXPORT_ALL 1; fastcgi_param PATH_INFO $1; "
               "client_max_body_size 1m; ")
        header = "fastcgi_param HTTP_GIT_PROTOCOL $http_git_protocol; "
        # nginx hands on every header of the request, and this parameter wins over it.
        dropped = "fastcgi_param HTTP_GIT_PROTOCOL ''; "
        places = (f"location ~ ^/v0(/.*)$ {{ {cgi}{dropped} }} "
                  f"location ~ ^/private(/.*)$ {{ return 401; }} location ~ ^/off(/.*)$ {{ return 403; }} "
                  f"location ~ ^/moved(/.*)$ {{ return 301 https://localhost:{self.port}$1; }} "
                  f"location ~ ^(/.*)$ {{ {cgi}{header} }} ")
        forge_places = (f"location ~ ^/o/[^/]+/archive/(.*)$ {{ return 302 https://codeload.github.com/archives/$1; }} "
                        f"location ~ ^/archives/(.*)$ {{ alias {self.work}/archives/$1; }} "
                        f"location ~ ^/o(/.*)$ {{ {cgi}{header} }} ")
        forge_server = (f"server {{ listen {forge}:443 ssl; ssl_certificate {pair[0]}; ssl_certificate_key {pair[1]}; "
                        f"{forge_places} }}\n" if forge else "")
        temp = " ".join(f"{k}_temp_path {self.work}/{k};" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        conf = self.work / "nginx.conf"
        conf.write_text(
            f"daemon off; master_process off; user {user}; pid {self.work}/pid; error_log {self.work}/error.log;\n"
            f"events {{ }}\nhttp {{ access_log {self.work}/access.log; {temp}\n"
            f"server {{ listen 127.0.0.1:{self.port} ssl; ssl_certificate {pair[0]}; ssl_certificate_key {pair[1]}; {places} }}\n"
            f"server {{ listen 127.0.0.1:{self.plain}; {places} }}\n{forge_server}}}\n")
        self.process = subprocess.Popen(["nginx", "-e", f"{self.work}/error.log", "-c", conf], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wait_for(self.port, self.process)

    def requests(self):
        """Method and path of all requests since the last call."""
        log = self.work / "access.log"
        lines = [line.split('"')[1].rsplit(" ", 1)[0] for line in log.read_text().splitlines()]
        log.write_text("")
        return lines

    def close(self):
        end(self.process)
        os.killpg(self.cgi.pid, signal.SIGTERM)
        self.cgi.wait()


class Sshd:
    """A real sshd with its own keys; `home` is a HOME whose ssh configuration
    leads the host name `git.example` to it."""

    def __init__(self, work, accept_env):
        self.work, self.port = Path(work), free_port()
        home, keys = self.work / "home", self.work / "keys"
        (home / ".ssh").mkdir(parents=True, mode=0o700)
        keys.mkdir(mode=0o700)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / name], check=True)
        shutil.copy(keys / "user.pub", keys / "authorized")
        user = pwd.getpwuid(os.getuid()).pw_name
        (keys / "sshd.conf").write_text(
            f"ListenAddress 127.0.0.1:{self.port}\nHostKey {keys}/host\nAuthorizedKeysFile {keys}/authorized\n"
            f"PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\n"
            f"KbdInteractiveAuthentication no\n" + ("AcceptEnv GIT_PROTOCOL\n" if accept_env else ""))
        host_key = (keys / "host.pub").read_text()
        (home / ".ssh" / "known_hosts").write_text(f"git.example {host_key}")
        (home / ".ssh" / "config").write_text(
            f"Host git.example\n  HostName 127.0.0.1\n  Port {self.port}\n  HostKeyAlias git.example\n  User {user}\n"
            f"  IdentityFile {keys}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {home}/.ssh/known_hosts\n"
            "  StrictHostKeyChecking yes\n")
        # ssh reads the home of the passwd file, not HOME: a wrapper in PATH says which one is meant.
        self.bin = self.work / "bin"
        self.bin.mkdir()
        self.said = self.work / "argv"
        wrapper = self.bin / "ssh"
        wrapper.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {self.said}\nenv > {self.work}/env\n'
                           f'exec {shutil.which("ssh")} -F {home}/.ssh/config "$@"\n')
        wrapper.chmod(0o755)
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self.process = subprocess.Popen([shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-e", "-f", keys / "sshd.conf"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=open(self.work / "log", "wb"), start_new_session=True)
        self.process.stderr = open(self.work / "log", "rb")
        wait_for(self.port, self.process)

    @property
    def path(self):
        return f"{self.bin}:{os.environ['PATH']}"

    def close(self):
        end(self.process)


# --- a server that need not be honest ------------------------------------------------

def pkt(data):
    data = data.encode() if isinstance(data, str) else data
    return b"%04x" % (len(data) + 4) + data


def band(data, number=1, size=60000):
    return b"".join(pkt(bytes([number]) + data[i:i + size]) for i in range(0, len(data), size))


KINDS = {"commit": 1, "tree": 2, "blob": 3, "tag": 4, "ofs": 6, "ref": 7}


def packed_head(kind, size, base=b""):
    head = bytes([KINDS[kind] << 4 | (size & 15) | (128 if size > 15 else 0)])
    size >>= 4
    while size:
        head += bytes([(size & 127) | (128 if size > 127 else 0)])
        size >>= 7
    return head + base


def make_pack(objects):
    """objects: (kind, bytes) or ("ref", base id, delta)."""
    pack = b"PACK" + struct.pack(">II", 2, len(objects))
    for kind, *rest in objects:
        base, data = (rest if len(rest) == 2 else (b"", rest[0]))
        pack += packed_head(kind, len(data), base) + zlib.compress(data, 1)
    return pack + hashlib.sha1(pack).digest()


def object_id(kind, data):
    return hashlib.sha1(f"{kind} {len(data)}\0".encode() + data).hexdigest()


def commit_text(tree):
    return f"tree {tree}\nauthor A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n\nm\n".encode()


def answer_with(pack, shallow=None):
    """A fetch's answer in protocol 2."""
    head = pkt("shallow-info\n") + pkt(f"shallow {shallow}") + b"0001" if shallow else b""
    return head + pkt("packfile\n") + band(pack) + b"0000"


class Scripted:
    """http://127.0.0.1:PORT/p.git: what `git upload-pack` says of a repository,
    or what `change(nth, kind, body)` makes of it. kind: advertisement, ls-refs,
    fetch. `body` is the honest answer; what comes back is bytes, an iterator of
    bytes, or (status, headers, bytes)."""

    def __init__(self, repo, change=None):
        outer = self
        self.repo, self.change, self.requests, self.nth = repo, change, [], 0

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.reply("advertisement", b"")

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.reply("ls-refs" if b"command=ls-refs" in body else "fetch", body)

            def reply(self, kind, request):
                outer.requests.append((kind, request))
                outer.nth += 1
                answer = outer.honest(kind, request, self.headers.get("Git-Protocol", ""))
                if outer.change:
                    answer = outer.change(outer.nth - 1, kind, answer)
                status, headers, body = answer if isinstance(answer, tuple) else (200, {}, answer)
                ends = "advertisement" if kind == "advertisement" else "result"
                self.send_response(status)
                for k, v in {"Content-Type": f"application/x-git-upload-pack-{ends}", **headers}.items():
                    self.send_header(k, v)
                if isinstance(body, bytes):
                    self.send_header("Content-Length", str(len(body)))
                else:
                    self.send_header("Connection", "close")
                    self.close_connection = True
                self.end_headers()
                try:
                    for piece in [body] if isinstance(body, bytes) else body:
                        self.wfile.write(piece)
                except OSError:
                    self.close_connection = True

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/p.git"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def honest(self, kind, request, protocol):
        args = ["--stateless-rpc"] + (["--advertise-refs"] if kind == "advertisement" else [])
        r = subprocess.run(["git", "upload-pack", *args, str(self.repo.path)], input=request, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, env={**os.environ, **CLEAN, "GIT_PROTOCOL": protocol}, timeout=60)
        service = pkt("# service=git-upload-pack\n") + b"0000" if kind == "advertisement" else b""
        return service + r.stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
