"""Rows of the benchmark about plugins: hashing one when it starts, and
installing a large one over https, against the tools that do the same."""

import hashlib
import http.server
import json
import random
import shutil
import ssl
import subprocess
import tarfile
import threading
from pathlib import Path

MANIFEST = """manifest_version = 1
operation_contract_version = 1
[provider]
id = "{id}"
version = "1"
[runtime]
kind = "exec"
command = ["./f0"]
[features]
supported = ["exec.run"]
[operations]
cli = ["exec.run"]
python = []
[workflow]
inputs = []
startups = ["exec"]
"""


def make_plugin(folder, id, files, size):
    """`files` files in folders of 50, together `size` bytes, of which half cannot be compressed."""
    manifest = MANIFEST.format(id=id).encode()
    each = (size - len(manifest)) // (files - 1)
    text = b"what a program says, line by line\n" * (each // 34 + 1)
    for i in range(files - 1):
        path = folder / f"d{i // 50}" / f"f{i}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(random.randbytes(each // 2) + text[:each - each // 2])
    (folder / "abx-provider.toml").write_bytes(manifest)
    return folder


def serve(work, body):
    """The body at https://localhost:PORT/plugin.tgz, whatever is asked for."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", work / "key.pem",
                    "-out", work / "cert.pem"], check=True, capture_output=True)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(work / "cert.pem", work / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"https://localhost:{server.server_port}/plugin.tgz", server


def hashing(work, abx, env, race, row):
    folder = make_plugin(work / "small", "small", 200, 1 << 20)
    home = {**env, "ABX_HOME": str(work / "hashing")}
    subprocess.run([abx, "provider", "install", str(folder), "--yes", "--no-verify"], env=home, check=True, capture_output=True)
    files = sorted(str(p) for p in (Path(home["ABX_HOME"]) / "providers/small").rglob("*") if p.is_file())
    t = race(20, home, abx=[abx, "provider", "verify", "small"], sha256sum=[shutil.which("sha256sum"), *files])
    row("hash a plugin, 200 files, 1 MiB", f"{t['abx'].ms:.2f} ms", f"sha256sum {t['sha256sum'].ms:.2f} ms",
        t["abx"].ms / t["sha256sum"].ms, "at most 1.2")


def installing(work, abx, env, race, row):
    folder = make_plugin(work / "large", "large", 2000, 50 << 20)
    with tarfile.open(work / "plugin.tgz", "w:gz", compresslevel=6) as tar:
        tar.add(folder, "large")
    body = (work / "plugin.tgz").read_bytes()
    url, server = serve(work, body)
    (work / "index.json").write_text(json.dumps({"providers": [
        {"id": "large", "version": "1", "url": url, "sha256": hashlib.sha256(body).hexdigest()}]}))
    env = {**env, "ABX_CA_FILE": str(work / "cert.pem"), "ABX_PROVIDER_REGISTRY": f"file:{work}/index.json"}
    # A fresh folder for each run, which is not emptied before the end.
    fresh = f'd=$(mktemp -d {work}/into-XXXXXX); '
    t = race(1, env,
             abx=["/bin/sh", "-c", fresh + f'ABX_HOME=$d exec {abx} provider install registry:large --yes --no-verify'],
             tools=["/bin/sh", "-c", fresh + f'curl -sf --cacert {work}/cert.pem {url} | tar xz -C "$d" && '
                                        'find "$d" -type f -print0 | xargs -0 sha256sum > "$d/sums"'])
    server.shutdown()
    row("install 2000 files, 50 MiB", f"{t['abx'].ms:.0f} ms", f"curl|tar+sha256 {t['tools'].ms:.0f} ms",
        t["abx"].ms / t["tools"].ms, "at most 1.5", f"peak {max(t['abx'].rss):.1f} MiB")


def rows(work, abx, env, race, row):
    hashing(work, abx, env, race, row)
    installing(work, abx, env, race, row)
