"""The rows of the seed's "After the fix" table that are typed as `abx ...`, on every combination: by the provider that
is compiled in, and by the same provider as an installed plugin.

Seed: the record of an end-to-end run that abx is built from. Where its last
paragraph supersedes a row (E2009 for an unknown sandbox), the paragraph holds.
"""

import json
import time
import urllib.request
from datetime import datetime, timezone

import pytest

import rig as rigs
from program import Abx

UNICODE = "caf\u00e9 \u2603\n".encode()


@pytest.fixture(autouse=True)
def form(through, request, monkeypatch):
    monkeypatch.setattr(Abx, "store", request.getfixturevalue("exported") if through == "plugin" else None)


def options(mark):
    return [w for k, v in mark.items() for w in ("--metadata", f"{k}={v}")]


def instant(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_create_exec_kill_twice(through, daemon, route, image, servers, mark, tmp_path):
    abx = Abx(tmp_path, servers[daemon], route)
    template = "base" if image == "debian" else rigs.IMAGES[image]
    made = abx("--json", "--provider", "opensandbox", "sandbox", "create", "--template", template, "--timeout", "120",
               *options(mark), "--yes").json()
    try:
        assert (made["status"], made["template"], made["provider"]) == ("running", rigs.IMAGES[image], "opensandbox")
        assert made["metadata"] == mark
        life = instant(made["end_at"]) - datetime.now(timezone.utc)
        assert 100 < life.total_seconds() <= 121
        ran = abx("--json", "--provider", "opensandbox", "sandbox", "exec", made["sandbox_id"],
                  "printf 'cli-exec ok\\n'").json()
        assert (ran["stdout"], ran["stderr"], ran["exit_code"]) == ("cli-exec ok\n", "", 0)
    finally:
        killed = [abx("--json", "sandbox", "kill", made["sandbox_id"], "--yes") for _ in range(2)]
    # A plugin does not say whether it was there: the protocol has no word for it.
    assert [k.json() for k in killed] == [{"sandbox_id": made["sandbox_id"], "killed": True},
                                          {"sandbox_id": made["sandbox_id"], "killed": through == "plugin"}]
    assert servers[daemon].get(made["sandbox_id"]).status == 404


def test_kill_of_what_never_was(box):
    assert box.abx("sandbox", "kill", "00000000-0000-0000-0000-000000000000", "--yes").code == 0


def test_stream(box):
    ran = box.abx("--provider", "opensandbox", "sandbox", "shell-stream", box.id, "--command",
                  "printf 'cli-stream ok\\n'")
    assert (ran.code, ran.out) == (0, b"cli-stream ok\n")


def test_stream_keeps_apart_and_passes_the_code(box):
    ran = box.abx("sandbox", "shell-stream", box.id, "--command", "sh -c 'echo a; sleep 0.2; echo b >&2; exit 2'")
    assert (ran.code, ran.out) == (2, b"a\n")
    assert ran.err.startswith(b"b\n")


def test_stream_arrives_while_it_runs(box):
    """The second line comes once the first has been read, and was not waited for in vain."""
    gate = f"/tmp/gate-{time.monotonic_ns()}"
    child = box.abx.start("sandbox", "shell-stream", box.id, "--command",
                          f"echo first; i=0; until [ -e {gate} ] || [ $i = 200 ]; do sleep 0.1; i=$((i+1)); done; echo $i; rm {gate}")
    assert child.stdout.readline() == b"first\n"
    box.sh(f"touch {gate}")
    assert int(child.stdout.read()) < 200
    assert child.wait() == 0


def test_unicode_file_there_and_back(box, tmp_path):
    (tmp_path / "unicode.txt").write_bytes(UNICODE)
    target = "/tmp/\u4f60\u597d \u4e16\u754c.txt"
    put = box.abx("sandbox", "upload", box.id, str(tmp_path / "unicode.txt"), target)
    assert put.code == 0, put
    assert box.sh(f"wc -c < '{target}'").strip() == str(len(UNICODE))
    got = box.abx("sandbox", "download", box.id, target, str(tmp_path / "back.txt"))
    assert got.code == 0, got
    assert (tmp_path / "back.txt").read_bytes() == UNICODE


@pytest.mark.parametrize("verb", [["info"], ["exec", "true"], ["pause"], ["resume"], ["url", "80"]], ids=lambda v: v[0])
def test_unknown_id(daemon, route, servers, tmp_path, verb):
    abx = Abx(tmp_path, servers[daemon], route)
    done = abx("--json", "sandbox", verb[0], "does-not-exist-xyz", *verb[1:])
    assert done.error()["code"] == "E2009", done
    assert done.code == 4, done


def test_unknown_id_in_text(daemon, servers, tmp_path):
    abx = Abx(tmp_path, servers[daemon])
    done = abx("sandbox", "info", "does-not-exist-xyz")
    assert (done.code, done.out) == (4, b"")
    assert "E2009" in done.errors and "does-not-exist-xyz" in done.errors
    done = abx("sandbox", "exec", "does-not-exist-xyz", "true")     # no code of the remote's: 125
    assert (done.code, done.out) == (125, b"")
    assert "E2009" in done.errors


@pytest.mark.parametrize("form", [["--json"], [], ["--debug"]], ids=["json", "text", "debug"])
@pytest.mark.parametrize("words", [["create", "--yes"], ["list"], ["info", "some-id"], ["kill", "some-id", "--yes"]],
                         ids=lambda w: w[0])
def test_wrong_key(daemon, servers, tmp_path, form, words):
    key = "super-secret-key-xyzzy"
    abx = Abx(tmp_path, servers[daemon], ABX_OPENSANDBOX_API_KEY=key)
    done = abx(*form, "sandbox", *words)
    assert done.code == 3, done
    assert key.encode() not in done.out + done.err, done
    assert b"E1001" in done.err, done
    if form == ["--json"]:
        assert done.error()["code"] == "E1001"


def test_short_life_is_raised(through, daemon, servers, mark, tmp_path):
    abx = Abx(tmp_path, servers[daemon])
    done = abx("--json", "sandbox", "create", "--timeout", "30", *options(mark))
    made = done.json()
    try:
        # What a plugin says on its stderr is shown when a call fails, and this one does not.
        assert through == "plugin" or "timeout 30s is below OpenSandbox's 60 s minimum; using 60 s" in done.errors
        life = (instant(made["end_at"]) - datetime.now(timezone.utc)).total_seconds()
        assert 50 < life <= 61
    finally:
        servers[daemon].kill(made["sandbox_id"])


def test_exit_code_and_both_streams(box):
    line = "echo out; echo err >&2; echo $LIVE_VAR; exit 3"
    ran = box.abx("--json", "sandbox", "exec", "--env", "LIVE_VAR=bar", box.id, "sh", "-c", line).json()
    assert (ran["exit_code"], ran["stdout"], ran["stderr"]) == (3, "out\nbar\n", "err\n")
    assert isinstance(ran["duration_ms"], int)
    plain = box.abx("sandbox", "exec", "--env", "LIVE_VAR=bar", box.id, "sh", "-c", line)
    assert (plain.code, plain.out, plain.err) == (3, b"out\nbar\n", b"err\n")


def test_quoted_unicode_path(box, tmp_path):
    body, path = "caf\u00e9\n\u2603\n".encode(), "/tmp/\u4f60\u597d \u4e16\u754c/'q\\\".txt"
    (tmp_path / "f").write_bytes(body)
    assert box.abx("sandbox", "upload", box.id, str(tmp_path / "f"), path).code == 0
    got = box.abx("sandbox", "download", box.id, path, str(tmp_path / "back"))
    assert got.code == 0, got
    assert (tmp_path / "back").read_bytes() == body


@pytest.mark.parametrize("port", [8000, 8080])
def test_port(box, port):
    """8080 is published by the server itself, any other port is reached through the daemon's forwarder."""
    box.sh("mkdir -p /tmp/web && echo served > /tmp/web/hostname")
    server = {"debian": f"python3 -m http.server -d /tmp/web {port}", "busybox": f"httpd -f -h /tmp/web -p {port}"}
    box.sh(f"[ -e /tmp/web/{port} ] || {{ touch /tmp/web/{port}; {server[box.image]} >/dev/null 2>&1 & }}")
    url = box.abx("--json", "sandbox", "url", box.id, str(port)).json()["url"]
    if box.route == "proxy":
        assert url.startswith(box.abx.env["ABX_OPENSANDBOX_BASE_URL"]), url
    elif port == 8000:
        assert url.rstrip("/").endswith("/proxy/8000"), url
    end = time.monotonic() + 10
    while True:
        try:
            with urllib.request.urlopen(url.rstrip("/") + "/hostname", timeout=5) as answer:
                assert (answer.status, answer.read()) == (200, b"served\n")
            break
        except OSError:
            assert time.monotonic() < end, url
            time.sleep(0.1)
    text = box.abx("sandbox", "url", box.id, str(port))
    assert (text.code, text.text.strip()) == (0, url)


def test_pause_and_resume(daemon, route, image, servers, own, tmp_path):
    abx, sandbox = Abx(tmp_path, servers[daemon], route), own(daemon, image)
    assert abx("--json", "sandbox", "pause", sandbox).json()["status"] == "paused"
    assert abx("--json", "sandbox", "info", sandbox).json()["status"] == "paused"
    (tmp_path / "f").write_bytes(b"x")
    for words in (["exec", sandbox, "touch /tmp/ran"], ["upload", sandbox, str(tmp_path / "f"), "/tmp/sent"],
                  ["download", sandbox, "/etc/passwd", str(tmp_path / "got")],
                  ["shell-stream", sandbox, "--command", "touch /tmp/ran"]):
        begun = time.monotonic()
        done = abx("--json", "sandbox", *words)
        assert done.code not in (0, 124) and time.monotonic() - begun < 5, done
        assert f"resume {sandbox}" in done.error()["suggestion"], done
    assert not (tmp_path / "got").exists()
    again = abx("--json", "sandbox", "pause", sandbox)
    assert again.code in (0, 1), again
    assert abx("--json", "sandbox", "resume", sandbox).json()["status"] == "running"
    alive = abx("sandbox", "exec", sandbox, "echo alive; ls /tmp/ran /tmp/sent 2>/dev/null; true")
    assert (alive.code, alive.out) == (0, b"alive\n")


def test_yes_before_the_verb(daemon, servers, tmp_path):
    abx = Abx(tmp_path, servers[daemon])
    done = abx("sandbox", "--yes", "kill", "some-id")
    assert done.code == 2 and done.out == b""
    assert "No such option '--yes'" in done.errors
    done = abx("--yes", "sandbox", "kill", "some-id")
    assert done.code == 2
    assert "No such option '--yes'" in done.errors


@pytest.mark.parametrize("entrypoint, word", [(["sh", "-c", "exit 3"], "3"), (["/no/such/prog"], "127"),
                                              (["true"], "")], ids=["exit3", "missing", "true"])
def test_entrypoint_that_ends_at_once(through, daemon, route, servers, mark, tmp_path, entrypoint, word):
    abx = Abx(tmp_path, servers[daemon], route)
    if through == "plugin" and any(" " in word for word in entrypoint):
        done = abx("--json", "sandbox", "create", *options(mark), "--", *entrypoint)
        assert (done.code, done.error()["code"]) == (2, "E8002")      # it travels as words with blanks between
        return
    only = dict(mark, ends=tmp_path.name.replace("_", "-").strip("-.")[:60])
    done = abx("--json", "sandbox", "create", *options(only), "--", *entrypoint)
    error = done.error()
    # E2000 is none of the codes that a plugin can answer with.
    assert (done.code, error["code"]) == (1, "E8000" if through == "plugin" else "E2000"), done
    assert "exited" in error["message"] and word in error["message"], done
    assert servers[daemon].list(only) == []


def test_list_and_info(box, servers, mark):
    everything = box.abx("--json", "sandbox", "list", *options(mark)).json()
    assert box.id in [s["sandbox_id"] for s in everything]
    assert all(s["metadata"][rigs.MARK] == mark[rigs.MARK] for s in everything)
    assert len(everything) == len(servers[box.daemon].list(mark))
    one = box.abx("--json", "sandbox", "list", "--limit", "1", *options(mark)).json()
    assert [s["sandbox_id"] for s in one] == [everything[0]["sandbox_id"]]
    quiet = box.abx("-q", "sandbox", "list", *options(mark))
    assert quiet.text.split() == [s["sandbox_id"] for s in everything]
    info = box.abx("--json", "sandbox", "info", box.id).json()
    listed = next(s for s in everything if s["sandbox_id"] == box.id)
    assert info == listed
    assert info["template"] == rigs.IMAGES[box.image] and info["status"] == "running"


def test_info_says_only_what_is_known(box):
    text = box.abx("sandbox", "info", box.id)
    assert text.code == 0 and box.id in text.text
    assert "hangzhou" not in text.text and "300" not in text.text.replace(box.id, "")
    info = box.abx("--json", "sandbox", "info", box.id).json()
    assert "region" not in info
    assert abs(info["timeout"] - 3600) <= 1


def test_named_with_its_provider(box):
    assert box.abx("--json", "sandbox", "info", f"opensandbox:{box.id}").json()["sandbox_id"] == box.id
    done = box.abx("--json", "sandbox", "info", f"alicloud-express:{box.id}", env={"ABX_PROVIDER": ""})
    assert done.code != 0
    done = box.abx("--json", "--provider", "opensandbox", "sandbox", "info", f"alicloud-express:{box.id}")
    assert done.error()["code"] == "E8030", done


def test_timeout(daemon, servers, own, tmp_path):
    abx, sandbox = Abx(tmp_path, servers[daemon]), own(daemon, "busybox")
    info = abx("--json", "sandbox", "timeout", sandbox, "600").json()
    left = (instant(info["end_at"]) - datetime.now(timezone.utc)).total_seconds()
    assert 590 < left < 602
    there = servers[daemon].get(sandbox).json()["expiresAt"]
    assert abs((instant(there) - instant(info["end_at"])).total_seconds()) < 1


def test_unreachable_server(through, daemon, tmp_path):
    class Nowhere:
        url, key = "http://127.0.0.1:1", "k"
    done = Abx(tmp_path, Nowhere)("--json", "sandbox", "list")
    error = done.error()
    assert (done.code, error["code"]) == ((5, "E8022") if through == "plugin" else (1, "E5001"))
    assert "127.0.0.1:1" in error["message"], done


def test_json_error_is_one_line(daemon, servers, tmp_path):
    done = Abx(tmp_path, servers[daemon])("--json", "sandbox", "info", "nope")
    assert json.loads(done.errors.strip().splitlines()[-1])["error"]["code"] == "E2009"
