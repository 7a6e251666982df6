"""Plugins for the tests: folders that can be installed, and what a home holds."""

import hashlib
import os
import stat
import subprocess

MANIFEST = """manifest_version = 1
operation_contract_version = 1

[provider]
id = "{id}"
name = "Demo"
name_zh = "演示"
version = "{version}"
license = "MIT"

[runtime]
kind = "exec"
command = {command}
startup_timeout_ms = 10000

[compat]
protocol = "epp/1"

[features]
supported = ["sandbox.lifecycle", "exec.run"]

[operations]
cli = ["sandbox.create", "sandbox.get", "sandbox.list", "sandbox.delete", "exec.run"]
python = ["sandbox.create", "sandbox.get", "sandbox.list", "sandbox.delete", "exec.run"]

[workflow]
inputs = ["image"]
startups = ["exec", "none"]

[security]
network = {network}
filesystem = ["data_dir"]
env_passthrough = ["HTTP_PROXY"]

[core]
inherit = {inherit}

[config.fields.base_url]
type = "url"
default = "http://127.0.0.1:9"
description = "where it is"
description_zh = "地址"

[config.fields.api_key]
type = "string"
secret = true
credential = true
env = ["DEMO_KEY"]

[config.fields.retries]
type = "int"
default = 3
"""

# Answers the handshake and nothing else.
SCRIPT = """import json, sys
contract = json.load(open({contract!r})) if {contract!r} else None
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        {before}
        result = {{
            "protocol": "epp/1", "plugin": {{}}, "features": ["sandbox.lifecycle", "exec.run"],
            "operation_contract_version": 1,
            "operations": {{k: ["sandbox.create", "sandbox.get", "sandbox.list", "sandbox.delete", "exec.run"]
                           for k in ("cli", "python")}},
            "workflow_inputs": ["image"], "startup_modes": ["exec", "none"]}}
    elif m.get("method") == "shutdown":
        print(json.dumps({{"jsonrpc": "2.0", "id": m["id"], "result": {{}}}}), flush=True)
        break
    else:
        result = {{}}
    if "id" in m:
        print(json.dumps({{"jsonrpc": "2.0", "id": m["id"], "result": result}}), flush=True)
"""

# The same for node, as the seed's plugin has it.
NODE_SCRIPT = """import { createInterface } from 'node:readline';
const ops = ['sandbox.create', 'sandbox.get', 'sandbox.list', 'sandbox.delete', 'exec.run'];
for await (const line of createInterface({ input: process.stdin })) {
  const m = JSON.parse(line);
  const result = m.method !== 'initialize' ? {} : {
    protocol: 'epp/1', plugin: {}, features: ['sandbox.lifecycle', 'exec.run'], operation_contract_version: 1,
    operations: { cli: ops, python: ops }, workflow_inputs: ['image'], startup_modes: ['exec', 'none'] };
  if ('id' in m) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id: m.id, result }) + '\\n');
  if (m.method === 'shutdown') break;
}
"""


def plugin(folder, id="demo", version="0.1.0", command='["python3", "./plugin.py"]', network="[]", inherit="[]",
           before="pass", **files):
    """A plugin in that folder; `before` is what it does before it answers."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "abx-provider.toml").write_text(
        MANIFEST.format(id=id, version=version, command=command, network=network, inherit=inherit))
    (folder / "plugin.py").write_text(SCRIPT.format(contract="", before=before))
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def node_plugin(folder, id="opensandbox", version="0.1.0"):
    """Shaped like the seed's: command `node provider.mjs`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "abx-provider.toml").write_text(
        MANIFEST.format(id=id, version=version, command='["node", "./provider.mjs"]', network='["127.0.0.1"]',
                        inherit="[]"))
    (folder / "provider.mjs").write_text(NODE_SCRIPT)
    return folder


def git(folder, *args):
    done = subprocess.run(["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@example.com", *args],
                          check=True, capture_output=True, text=True,
                          env={**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"})
    return done.stdout.strip()


def repository(folder):
    """A repository with a commit of all that lies in the folder; its id."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    return git(folder, "rev-parse", "HEAD")


def tree_digest(folder, skip=(".git", ".abx-install.json", "data")):
    """As the specification has it (1.2), by other code than the program's."""
    outer = hashlib.sha256()
    paths = []
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.relpath(os.path.join(root, name), folder)
            if path.split("/")[0] not in skip:
                paths.append(path)
    for path in sorted(paths, key=os.fsencode):
        full = os.path.join(folder, path)
        mark = b"x" if os.stat(full).st_mode & stat.S_IXUSR else b"-"
        outer.update(os.fsencode(path) + b"\0" + mark + b"\0" +
                     hashlib.sha256(open(full, "rb").read()).hexdigest().encode() + b"\n")
    return outer.hexdigest()


def snapshot(folder):
    """Everything under the folder: names, modes, contents, targets of links."""
    seen = {}
    for root, folders, names in os.walk(folder):
        for name in folders + names:
            path = os.path.join(root, name)
            st = os.lstat(path)
            what = os.readlink(path) if stat.S_ISLNK(st.st_mode) else \
                open(path, "rb").read() if stat.S_ISREG(st.st_mode) else None
            seen[os.path.relpath(path, folder)] = (oct(st.st_mode), what)
    return seen
