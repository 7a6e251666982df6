"""Plugins to install, and a store that is looked at as any host looks at it."""

import hashlib
import json
import shutil

from conftest import Program

MANIFEST = """manifest_version = 1
operation_contract_version = 1
[provider]
id = "{id}"
version = "{version}"
[runtime]
kind = "exec"
command = ["sh", "./run"]
[features]
supported = ["sandbox.lifecycle", "exec.run"]
[operations]
cli = ["exec.run"]
python = []
[workflow]
inputs = []
startups = ["exec"]
{more}"""

# Answers the handshake, and ends when its input does.
WORKS = """while read -r line; do
  case $line in
    *'"initialize"'*) id=${line#*'"id":'}; id=${id%%[,\\}]*}
      printf '%s\\n' '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocol":"epp/1","provider_id":"ID","version":"VERSION","features":["sandbox.lifecycle","exec.run"],"operation_contract_version":1,"operations":{"cli":["exec.run"],"python":[]},"workflow_inputs":[],"startup_modes":["exec"]}}' ;;
    *) exit 0 ;;
  esac
done
"""


def write_plugin(folder, version, program=WORKS, id="demo", more="", extra=False):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "abx-provider.toml").write_text(MANIFEST.format(id=id, version=version, more=more))
    (folder / "run").write_text(program.replace("VERSION", version).replace("ID", id))
    (folder / "run").chmod(0o755)
    (folder / "lib").mkdir(exist_ok=True)
    (folder / "lib/all").write_text("the same in each\n")
    if extra:
        (folder / "lib/more").write_text(version)
    return folder


def tree_digest(folder):
    """The digest of an installed tree (specification, 1.2)."""
    outer = hashlib.sha256()
    for path in sorted((p for p in folder.rglob("*") if p.is_file()), key=lambda p: str(p.relative_to(folder)).encode()):
        name = str(path.relative_to(folder))
        if name == ".abx-install.json" or name.split("/")[0] == "data":
            continue
        mode = b"x" if path.stat().st_mode & 0o100 else b"-"
        outer.update(name.encode() + b"\0" + mode + b"\0" + hashlib.sha256(path.read_bytes()).hexdigest().encode() + b"\n")
    return outer.hexdigest()


class Store:
    def __init__(self, home):
        self.home = home
        self.root = home / ".abx/providers"
        self.run = Program(home)

    def copy(self, to):
        shutil.copytree(self.home, to, symlinks=True)
        return Store(to)

    def put_data(self):
        (self.root / "demo/data").mkdir(mode=0o700, exist_ok=True)
        (self.root / "demo/data/state").write_text("kept")

    def state(self, id="demo"):
        """In words: the version, if the whole of it is there, and whether its data is."""
        folder = self.root / id
        if not folder.exists():
            return "absent"
        data = (folder / "data/state").exists() and (folder / "data/state").read_text() == "kept"
        if not (folder / ".abx-install.json").exists():
            return "data" if data and [p.name for p in folder.iterdir()] == ["data"] else "a ruin"
        receipt = json.loads((folder / ".abx-install.json").read_text())
        words = [receipt["version"]]
        if receipt["trust"] == "link":
            words.append("link")
        elif receipt["tree_sha256"] != tree_digest(folder):
            return "a mixture"
        return " ".join(words + ["data"] * data)

    def leftovers(self):
        return [path for name in (".staging", ".trash") if (self.root / name).exists()
                for path in (self.root / name).iterdir()]
