"""Where settings come from, and what a working directory may not decide: the
program itself, with real files."""

import os

import pytest

import scripted


def write(abx, cwd=None, home=None):
    if cwd is not None:
        (abx.home / ".env").write_text(cwd)
    if home is not None:
        (abx.home / ".abx").mkdir(exist_ok=True)
        (abx.home / ".abx/.env").write_text(home)


@pytest.mark.parametrize("env, cwd, home, want, source", [
    ({}, None, None, "alicloud-express", "builtin"),
    ({}, None, "ABX_PROVIDER=opensandbox", "opensandbox", "dotenv"),
    ({}, "ABX_PROVIDER=opensandbox", "ABX_PROVIDER=other", "opensandbox", "dotenv"),
    ({"ABX_PROVIDER": "opensandbox"}, "ABX_PROVIDER=other", None, "opensandbox", "environ"),
    ({"ABX_PROVIDER": " "}, "ABX_PROVIDER=", "export ABX_PROVIDER='opensandbox' # c", "opensandbox", "dotenv"),
])
def test_layers(abx, env, cwd, home, want, source):
    write(abx, cwd, home)
    assert abx("--json", "provider", "default", env=env).doc == {"default": want, "source": source}


def test_home_is_not_a_setting(abx):
    """A ./.env that names another ABX_HOME changes nothing."""
    (abx.home / "evil").mkdir()
    (abx.home / "evil/.env").write_text("ABX_PROVIDER=opensandbox")
    write(abx, cwd=f"ABX_HOME={abx.home}/evil\n")
    assert abx("--json", "provider", "default").doc["source"] == "builtin"
    assert abx("--json", "provider", "default", env={"ABX_HOME": str(abx.home / "evil")}).doc["source"] == "dotenv"
    assert abx("--json", "provider", "default", env={"ABX_HOME": None, "HOME": "/nonexistent"}).doc["source"] == "builtin"


@pytest.mark.parametrize("make", [
    lambda path: path.mkdir(),
    lambda path: os.mkfifo(path),
    lambda path: path.symlink_to("/dev/zero"),
    lambda path: path.symlink_to("nowhere"),
])
def test_what_is_no_file_is_no_layer(abx, make):
    make(abx.home / ".env")
    ran = abx("--json", "provider", "default")
    assert (ran.status, ran.doc["source"], ran.err) == (0, "builtin", b"")


@pytest.mark.parametrize("content, why", [
    (b"A=\xff\n", b"not UTF-8 at byte 2"),
    (b"#" * (1 << 20) + b"\n", b"more than 1048576 bytes"),
])
def test_a_file_that_cannot_be_understood(abx, content, why):
    (abx.home / ".env").write_bytes(content + b"ABX_PROVIDER=opensandbox\n")
    ran = abx("--json", "provider", "default")
    assert ran.status == 0 and ran.doc["source"] == "builtin"
    assert ran.err == b"abx: warning: ./.env: " + why + b"; the file is left out\n"


def evil(server):
    return f"ABX_PROVIDER=opensandbox\nABX_OPENSANDBOX_BASE_URL={server.url}\n"


KEY = {"ABX_OPENSANDBOX_API_KEY": scripted.KEY}


def test_a_key_does_not_go_where_a_folder_says(abx, server):
    write(abx, cwd=evil(server))
    for form in ((), ("--json",)):
        ran = abx(*form, "sandbox", "info", "sb-1", env=KEY)
        ran.failed_well(bool(form))
        assert ran.status == 2 and b"E8012" in ran.err
        assert b"base_url comes from ABX_OPENSANDBOX_BASE_URL in ./.env" in ran.err
        assert b"api_key from ABX_OPENSANDBOX_API_KEY in the environment" in ran.err
    write(abx, home=f"ABX_OPENSANDBOX_API_KEY={scripted.KEY}\n")
    ran = abx("sandbox", "info", "sb-1")
    assert ran.status == 2 and f"in {abx.home}/.abx/.env".encode() in ran.err
    assert server.requests == []


def test_nor_does_anything_else_of_the_environment(abx, server):
    write(abx, cwd=evil(server).replace(server.url, server.url + "/${CLOUD_SECRET}"))
    ran = abx("sandbox", "info", "sb-1", env={"CLOUD_SECRET": "TOPSECRET"})
    assert ran.status == 2 and b"E8012" in ran.err and b"TOPSECRET" not in ran.err
    assert server.requests == []


@pytest.mark.parametrize("args, env", [
    (("--allow-cwd-env",), {}),
    ((), {"ABX_ALLOW_CWD_ENV": "1"}),
])
def test_unless_it_is_allowed(abx, server, args, env):
    server.box("box-1")
    write(abx, cwd=evil(server))
    ran = abx(*args, "--json", "sandbox", "info", "box-1", env={**KEY, **env})
    assert ran.status == 0 and ran.doc["sandbox_id"] == "box-1"


def test_a_number_that_nothing_works_with(abx):
    ran = abx("--json", "--provider", "opensandbox", "sandbox", "info", "x", env={"ABX_HTTP_TIMEOUT": "0.5"})
    ran.failed_well(True)
    assert (ran.status, ran.error["code"]) == (2, "E8002")
    assert "ABX_HTTP_TIMEOUT in the environment is 0.5" in ran.error["message"]
