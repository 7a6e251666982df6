"""How host names are found: in a network of its own, with a name server that
answers, refuses, is silent or talks nonsense."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ABX = os.environ.get("ABX_TEST_BINARY", str(HERE.parents[1] / "abx"))


def ask(mode, host, *, interrupt=None, timeout="20"):
    env = {"HOME": "/nonexistent", "ABX_HOME": "/nonexistent/abx", "PATH": os.environ["PATH"], "LC_ALL": "C",
           "ABX_OPENSANDBOX_BASE_URL": f"http://{host}:8080", "ABX_OPENSANDBOX_API_KEY": "k", "ABX_HTTP_TIMEOUT": timeout}
    command = [ABX, "--json", "--provider", "opensandbox", "sandbox", "list"]
    if interrupt:
        command = ["--interrupt", str(interrupt), *command]
    r = subprocess.run(["unshare", "-rnm", sys.executable, str(HERE / "name_server.py"), mode, *command], env=env, cwd="/",
                       capture_output=True, timeout=90)
    assert r.returncode == 0, r.stderr
    seen = json.loads(r.stdout)
    assert not seen["left"], "a child of the lookup outlived the program"
    return seen


def refused(mode, host, **more):
    seen = ask(mode, host, **more)
    assert seen["status"] == 1 and seen["out"] == "", seen
    error = json.loads(seen["err"].splitlines()[-1])["error"]
    assert error["code"] == "E5001", error
    return error["message"]


@pytest.mark.parametrize("mode, host", [
    ("known", "sandboxes.example"), ("known", "a.b-c.example."), ("unknown", "in-hosts"),
    # these are never asked for
    ("unknown", "localhost"), ("unknown", "box.localhost"), ("silent", "127.0.0.1"), ("broken", "LOCALHOST."),
])
def test_found(mode, host):
    seen = ask(mode, host)
    assert seen["status"] == 0 and json.loads(seen["out"]) == [], seen


@pytest.mark.parametrize("mode, words", [
    ("unknown", "cannot connect to sandboxes.example:8080: there is no host named sandboxes.example"),
    ("broken", "cannot connect to sandboxes.example:8080: the name sandboxes.example could not be looked up: "
               "no answer from a name server"),
    ("empty", "cannot connect to sandboxes.example:8080: there is no host named sandboxes.example"),
])
def test_not_found(mode, words):
    assert words in refused(mode, "sandboxes.example")


@pytest.mark.parametrize("mode", ["silent", "junk"])
def test_a_deadline_holds_while_a_name_is_looked_up(mode):
    seen = ask(mode, "sandboxes.example", timeout="1")
    assert seen["status"] in (1, 5) and seen["took"] < 3, seen
    words = ["the name sandboxes.example was not found in time"]
    if mode == "junk":      # a C library may see at once that this is no answer
        words.append("the name sandboxes.example could not be looked up")
    assert any(w in seen["err"] for w in words), seen


def test_ctrl_c_ends_a_lookup():
    seen = ask("silent", "sandboxes.example", interrupt=0.3)
    assert seen["status"] == 130 and seen["took"] < 2, seen
