"""What an installed plugin is given: its settings, with their types, from every
layer; and what it is never given."""

import hashlib
import json
import os

import pytest

PLUGIN = '''#!/usr/bin/env python3
import json, os, sys
def answer(rq, result):
    print(json.dumps({"jsonrpc": "2.0", "id": rq["id"], "result": result}), flush=True)
for line in sys.stdin:
    rq = json.loads(line)
    if rq["method"] == "initialize":
        with open("init.json", "w") as f:
            json.dump(rq["params"], f)
        answer(rq, {"protocol": "epp/1", "operation_contract_version": 1,
                    "operations": {"cli": ["sandbox.list"], "python": []}, "workflow_inputs": [], "startup_modes": ["exec"]})
    elif rq["method"] == "sandbox.list":
        answer(rq, {"sandboxes": []})
    elif rq["method"] == "shutdown":
        answer(rq, {})
'''
MANIFEST = '''manifest_version = 1
operation_contract_version = 1
[provider]
id = "demo-box"
version = "1.2.3"
name = "Demo"
[runtime]
kind = "KIND"
RUN
[features]
supported = ["sandbox.lifecycle"]
[operations]
cli = ["sandbox.list"]
python = []
[workflow]
inputs = []
startups = ["exec"]
[core]
inherit = ["sandbox_api_key", "sandbox_base_url"]
'''
FIELDS = '''
[config.fields.zone]
default = "north"
[config.fields.size]
type = "int"
[config.fields.ratio]
type = "float"
[config.fields.fast]
type = "bool"
[config.fields.tags]
type = "csv"
[config.fields.mode]
type = "enum"
choices = ["Low", "High"]
[config.fields.own]
default = [1, 2.5, { a = true, b = "x" }]
[config.fields.number]
default = 5
[config.fields.cert]
type = "path"
[config.fields.base_url]
type = "url"
[config.fields.token]
secret = true
credential = true
env = ["BOX_TOKEN"]
'''


def digest(folder):
    outer = hashlib.sha256()
    names = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]
    for name in sorted(names, key=str.encode):
        if name == ".abx-install.json" or name.startswith("data/"):
            continue
        flag = b"x" if os.access(folder / name, os.X_OK) else b"-"
        outer.update(name.encode() + b"\0" + flag + b"\0" + hashlib.sha256((folder / name).read_bytes()).hexdigest().encode() + b"\n")
    return outer.hexdigest()


def install(abx, more="", kind="exec", run='command = ["./plugin"]', inherit=("sandbox_base_url",)):
    folder = abx.home / ".abx/providers/demo-box"
    folder.mkdir(parents=True)
    (folder / "plugin").write_text(PLUGIN)
    (folder / "plugin").chmod(0o700)
    (folder / "abx-provider.toml").write_text(MANIFEST.replace("KIND", kind).replace("RUN", run) + more)
    receipt = {"receipt_version": 1, "id": "demo-box", "version": "1.2.3", "trust": "pinned", "tree_sha256": digest(folder),
               "consented": {"inherit": list(inherit)}}
    (folder / ".abx-install.json").write_text(json.dumps(receipt))
    return folder


def given(abx, *args, env=None):
    ran = abx("--json", "--provider", "demo-box", *args, "sandbox", "list", env=env)
    assert (ran.status, ran.doc) == (0, []), ran
    return json.loads((abx.home / ".abx/providers/demo-box/data/init.json").read_text())


def test_settings_have_their_types(abx):
    install(abx, FIELDS)
    (abx.home / ".abx/config.toml").write_text(
        '[providers.demo-box]\nsize = 7\nratio = 2\nfast = "on"\ntags = ["a", 1, true]\ntoken = "never"\n'
        '[transport]\nzone = "never"\nhttp_timeout = 12\n')
    rq = given(abx, "--option", "mode=HIGH", env={"BOX_TOKEN": "secret-1", "ABX_DEMO_BOX_CERT": "~/x"})
    assert rq["config"] == {"zone": "north", "size": 7, "ratio": 2.0, "fast": True, "tags": "a,1,true", "mode": "High",
                            "own": [1, 2.5, {"a": True, "b": "x"}], "number": 5, "cert": "~/x", "token": "secret-1"}
    assert list(rq["config"]) == ["zone", "size", "ratio", "fast", "tags", "mode", "own", "number", "cert", "token"]
    assert isinstance(rq["config"]["ratio"], float) and rq["provider_id"] == "demo-box"
    assert rq["core"]["http_timeout"] == 12.0


def test_a_given_value_has_the_type_of_its_field(abx):
    install(abx, FIELDS)
    assert given(abx, env={"ABX_DEMO_BOX_NUMBER": "5"})["config"]["number"] == "5"


def test_core_keys_come_by_consent_alone(abx):
    install(abx, FIELDS)
    rq = given(abx, env={"ABX_SANDBOX_API_KEY": "k-general", "ABX_SANDBOX_BASE_URL": "https://general"})
    assert rq["core"] == {"sandbox_base_url": "https://general", "http_timeout": 30.0}
    assert "k-general" not in json.dumps(rq)


def test_what_a_folder_says_is_not_used_with_a_key_from_elsewhere(abx):
    install(abx, FIELDS)
    (abx.home / ".env").write_text("ABX_DEMO_BOX_BASE_URL=https://evil\n")
    ran = abx("--json", "--provider", "demo-box", "sandbox", "list", env={"BOX_TOKEN": "secret-1"})
    assert ran.error["code"] == "E8012" and "secret-1" not in ran.err.decode()
    assert "base_url comes from ABX_DEMO_BOX_BASE_URL in ./.env, but token from BOX_TOKEN in the environment" in ran.error["message"]
    assert not (abx.home / ".abx/providers/demo-box/data/init.json").exists()
    (abx.home / ".env").write_text("ABX_SANDBOX_BASE_URL=https://evil\n")
    assert abx("--json", "--provider", "demo-box", "sandbox", "list", env={"BOX_TOKEN": "secret-1"}).error["code"] == "E8012"
    assert given(abx, "--allow-cwd-env", env={"BOX_TOKEN": "secret-1"})["core"]["sandbox_base_url"] == "https://evil"


@pytest.mark.parametrize("more, code, status, says", [
    ("[config.fields.zone]\nrequired = true\n", "E8002", 2, "zone"),
    ("[config.fields.zone]\nrequired = true\ncredential = true\n", "E1003", 3, "zone"),
    ("[config.fields.zone]\n[auth]\nany_of = [[\"zone\"], [\"sandbox_base_url\"]]\n", "E1003", 3, "ABX_DEMO_BOX_ZONE; or ABX_DEMO_BOX_SANDBOX_BASE_URL"),
])
def test_what_must_be_there(abx, more, code, status, says):
    install(abx, more)
    ran = abx("--json", "--provider", "demo-box", "sandbox", "list")
    assert (ran.status, ran.error["code"]) == (status, code) and says in ran.error["message"], ran


@pytest.mark.parametrize("kind, run", [("rest", "[endpoint]\nbase_url = \"https://api.test\"\n"), ("node", "entry = \"plugin.mjs\"")])
def test_kinds_that_are_not_run(abx, kind, run):
    folder = install(abx, kind=kind, run=run)
    ran = abx("--json", "--provider", "demo-box", "sandbox", "list")
    assert ran.error["code"] == "E8021" and f"of kind {kind}" in ran.error["message"], ran
    assert [(p["id"], p["kind"], p["trust"]) for p in abx("--json", "provider", "list").doc][1] == ("demo-box", kind, "pinned")
    (folder / "plugin").write_text("changed")
    row = abx("--json", "provider", "list").doc[1]
    assert row["kind"] == "exec" and row["features"] == [] and row["error"].startswith("[E8011] ")


def test_one_that_is_broken_is_a_row(abx):
    folder = install(abx)
    (folder / "abx-provider.toml").write_text("x")
    row = abx("--json", "provider", "list").doc[1]
    assert (row["id"], row["name"], row["version"], row["trust"], row["features"]) == ("demo-box", "demo-box", "1.2.3", "pinned", [])
    assert row["error"].startswith("[E8014] ")
    assert abx("provider", "list").status == 0


def test_a_changed_plugin_is_not_started(abx):
    folder = install(abx)
    (folder / "plugin").write_text(PLUGIN + "#")
    ran = abx("--json", "--provider", "demo-box", "sandbox", "list")
    assert ran.error["code"] == "E8011" and not (folder / "data/init.json").exists()


def test_references_and_the_default(abx):
    install(abx)
    (abx.home / ".abx/config.toml").write_text('[core]\nprovider = "demo-box"\n')
    assert abx("--json", "sandbox", "list").doc == []
    assert abx("--json", "sandbox", "info", "opensandbox:x", "--provider", "demo-box").error["code"] == "E8030"
    assert abx("--json", "sandbox", "info", "demo-bax:x").error["suggestion"].startswith("Is \"demo-box\" meant?")
    ran = abx("--json", "sandbox", "info", "demo-box:x")
    assert ran.error["code"] == "E8004", ran       # it does not declare sandbox.get


def test_settings_of_a_plugin(abx):
    install(abx, FIELDS)
    assert abx("config", "set", "providers.demo-box.size", "x").status == 2
    assert abx("config", "set", "providers.demo-box.size", "9").status == 0
    assert abx("config", "set", "providers.demo-box.token", "-", input=b"secret-2").status == 0
    assert abx("config", "set", "providers.demo-box.sandbox_base_url", "https://mine").status == 0
    assert abx("config", "set", "providers.demo-box.sandbox_api_key", "-", input=b"x").status == 2     # not agreed to
    assert "ABX_DEMO_BOX_TOKEN=secret-2\n" == (abx.home / ".abx/.env").read_text()
    rq = given(abx)
    assert (rq["config"]["size"], rq["config"]["token"], rq["core"]["sandbox_base_url"]) == (9, "secret-2", "https://mine")
    doc = abx("--json", "--provider", "demo-box", "config", "explain").doc
    assert doc["number"] == {"value": 5, "source": "default", "name": "", "secret": False}
    assert doc["own"]["value"] == [1, 2.5, {"a": True, "b": "x"}]
    assert doc["token"] == {"value": "****", "source": "dotenv", "name": "ABX_DEMO_BOX_TOKEN", "secret": True}


def test_a_secret_of_whatever_name_is_refused_on_the_command_line(abx):
    install(abx, FIELDS + "[config.fields.pin]\nsecret = true\n")
    ran = abx("--json", "--provider", "demo-box", "--option", "pin=visible", "sandbox", "list")
    assert ran.error["code"] == "E8002" and "pin is a secret" in ran.error["message"] and b"visible" not in ran.err
    (abx.home / "pin").write_text("1234\n")
    assert given(abx, "--option", f"pin=@{abx.home}/pin")["config"]["pin"] == "1234"
    ran = abx("--json", "config", "set", "providers.demo-box.pin", "visible")
    assert ran.error["code"] == "E8002" and b"visible" not in ran.err
