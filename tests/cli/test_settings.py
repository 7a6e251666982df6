"""abx config: what is changed in ~/.abx, what is shown, and what other hosts
read there afterwards (python-dotenv and tomllib are what they read it with)."""

import io
import json
import os
import stat
import subprocess
import threading
import tomllib

import dotenv
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

SECRET = "providers.opensandbox.api_key"
VARIABLE = "ABX_OPENSANDBOX_API_KEY"


def toml(abx):
    return tomllib.loads((abx.home / ".abx/config.toml").read_text())


def env_file(abx):
    return dotenv.dotenv_values(abx.home / ".abx/.env")


def put(abx, text, name="config.toml"):
    (abx.home / ".abx").mkdir(exist_ok=True)
    (abx.home / ".abx" / name).write_text(text)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


# ---- set and get ----

@pytest.mark.parametrize("key, value, table, want", [
    ("http_timeout", "60", "transport", 60.0),
    ("http_timeout", " 1_0.5 ", "transport", 10.5),
    ("http2", "off", "transport", False),
    ("log_level", "debug", "transport", "DEBUG"),
    ("transport.default_template", "a\"b\\c\n\t\x01é", "transport", "a\"b\\c\n\t\x01é"),
    ("sandbox_base_url", "https://x.test", "transport", "https://x.test"),
    ("region", "cn-beijing", "transport", "cn-beijing"),
    ("providers.alicloud-express.region", "b", "transport", "b"),
])
def test_what_is_set_is_there(abx, key, value, table, want):
    ran = abx("--json", "config", "set", key, value)
    name = f"{table}.{key.rsplit('.', 1)[-1]}"
    assert (ran.status, ran.doc) == (0, {"key": key, "file": f"{abx.home}/.abx/config.toml", "name": name}), ran
    assert toml(abx) == {table: {key.rsplit(".", 1)[-1]: want}}
    assert mode(abx.home / ".abx/config.toml") == 0o600 and mode(abx.home / ".abx") == 0o700
    got = abx("--json", "config", "get", key)
    assert (got.doc["value"], got.doc["source"], got.doc["name"]) == (want, "toml", name)


@pytest.mark.parametrize("args", [("--provider", "opensandbox", "config", "set", "base_url"),
                                  ("config", "set", "providers.opensandbox.base_url")])
def test_a_setting_of_a_provider(abx, args):
    assert abx(*args, "https://x.test").status == 0
    assert toml(abx) == {"providers": {"opensandbox": {"base_url": "https://x.test"}}}
    assert abx("config", "get", "providers.opensandbox.base_url").out == b"https://x.test\n"
    assert abx("config", "unset", "providers.opensandbox.base_url").status == 0
    assert toml(abx) == {"providers": {"opensandbox": {}}}
    assert abx("config", "get", "providers.opensandbox.base_url").out == b"http://127.0.0.1:8080\n"


def test_all_else_stays_as_it_is(abx):
    before = "# mine\r\n[transport]\r\nhttp_timeout = 5 # why\r\n\r\n# about http2\r\nhttp2 = true\r\n# about x\r\n[x]\r\ny = \"\"\"\r\n[transport]\r\n\"\"\"\r\n"
    (abx.home / ".abx").mkdir()
    (abx.home / ".abx/config.toml").write_bytes(before.encode())
    assert abx("config", "set", "http_timeout", "7").status == 0
    assert abx("config", "set", "log_level", "info").status == 0
    after = before.replace("= 5 #", "= 7.0 #").replace("http2 = true\r\n", "http2 = true\r\nlog_level = \"INFO\"\r\n")
    assert (abx.home / ".abx/config.toml").read_bytes().decode() == after
    assert abx("--json", "config", "unset", "log_level").doc["removed"] is True
    assert abx("--json", "config", "unset", "log_level").doc["removed"] is False
    assert (abx.home / ".abx/config.toml").read_bytes().decode() == after.replace("log_level = \"INFO\"\r\n", "")


@pytest.mark.parametrize("text", ["core.provider = 'x'\n", "core = {provider = 'x', y = 1}\n", "['core']\nprovider = 'x'\n",
                                  "core = {}\n", "core.y = 1\n", "[core.sub]\na = 1\n", "", "[x]", None])
def test_the_default_in_every_form(abx, text):
    if text is not None:
        put(abx, text)
    assert abx("config", "set", "provider", "opensandbox").status == 0
    assert toml(abx)["core"]["provider"] == "opensandbox"
    assert abx("--json", "provider", "default").doc == {"default": "opensandbox", "source": "toml"}
    assert abx("config", "unset", "provider").status == 0
    assert "provider" not in toml(abx).get("core", {})


@pytest.mark.parametrize("args, code, says", [
    (("http_timeout", "0.5"), "E8002", "at least 1"),
    (("http_timeout", "soon"), "E8002", "must be a number"),
    (("log_level", "loud"), "E8002", "one of its choices"),
    (("http2", " "), "E8002", "there is no value"),
    (("max_connections", "5"), "E8002", "not kept in a file"),
    (("nope", "5"), "E8002", "no setting \"nope\""),
    (("providers.opensandbox.nope", "5"), "E8002", "no setting \"nope\""),
    (("providers.nobody.key", "5"), "E8001", "no provider \"nobody\""),
    (("providers.", "5"), "E8001", "no provider \"\""),
    (("provider", "nobody"), "E8001", "no provider \"nobody\""),
    (("core.http2", "1"), "E8002", "no setting \"core.http2\""),
    (("http2", "@nowhere"), "E8002", "cannot open nowhere"),
    ((SECRET, "visible"), "E8002", "a command line can be read by others"),
    (("github_token", "visible"), "E8002", "a command line can be read by others"),
])
def test_refusals_change_nothing(abx, args, code, says):
    put(abx, "# mine\n")
    ran = abx("--json", "config", "set", *args)
    ran.failed_well(True)
    assert ran.error["code"] == code and says in ran.error["message"], ran
    assert b"visible" not in ran.err
    assert (abx.home / ".abx/config.toml").read_text() == "# mine\n" and not (abx.home / ".abx/.env").exists()


def test_a_broken_file_is_left_alone(abx):
    put(abx, "[core]\nprovider = \"opensandbox\"\n[x\n")
    ran = abx("--json", "provider", "default")
    assert ran.doc["source"] == "builtin"
    assert ran.err == f"abx: warning: {abx.home}/.abx/config.toml:3:3: expected ']'; the file is left out\n".encode()
    ran = abx("--json", "config", "set", "http2", "on")
    assert ran.error["code"] == "E8002" and "line 3, column 3" in ran.error["message"]
    assert (abx.home / ".abx/config.toml").read_text() == "[core]\nprovider = \"opensandbox\"\n[x\n"


def test_a_default_that_cannot_be_used_can_be_changed(abx):
    put(abx, "[core]\nprovider = \"gone\"\n")
    assert abx("config", "get", "base_url").status == 4
    assert abx("config", "get", "http2").out == b"true\n"
    listed = abx("config", "list")
    assert listed.status == 0 and b"there is no provider \"gone\"" in listed.err
    assert abx("config", "set", "provider", "opensandbox").status == 0


def test_what_comes_first_is_said(abx):
    ran = abx("config", "set", "http_timeout", "60", env={"ABX_HTTP_TIMEOUT": "5"})
    assert ran.status == 0 and ran.err == b"abx: http_timeout: ABX_HTTP_TIMEOUT in the environment comes first\n"
    (abx.home / ".env").write_text("ABX_HTTP_TIMEOUT=9\n")
    assert b"ABX_HTTP_TIMEOUT in ./.env comes first" in abx("config", "set", "http_timeout", "61").err


# ---- secrets ----

def test_a_secret_from_standard_input_and_from_a_file(abx, tmp_path):
    assert abx("config", "set", SECRET, "-", input=b"k-1234567890\n").status == 0
    assert env_file(abx) == {VARIABLE: "k-1234567890"} and mode(abx.home / ".abx/.env") == 0o600
    (tmp_path / "key").write_text("k-abcdefghij\n")
    assert abx("config", "set", SECRET, f"@{tmp_path}/key").status == 0
    assert env_file(abx) == {VARIABLE: "k-abcdefghij"}
    assert abx("config", "get", SECRET).out == b"****ghij\n"
    assert abx("config", "get", SECRET, "--show-secrets").out == b"k-abcdefghij\n"
    for args in (("config", "list"), ("config", "explain"), ("--json", "config", "explain"), ("--json", "config", "list")):
        assert b"k-abc" not in abx("--provider", "opensandbox", *args).out
    assert not (abx.home / ".abx/config.toml").exists()
    assert abx("config", "unset", SECRET).status == 0 and env_file(abx) == {}


def test_a_short_secret_is_all_stars(abx):
    for value, shown in (("12345678", "****"), ("123456789", "****6789"), ("äöü123456", "****3456")):
        assert abx("config", "set", "github_token", "-", input=value.encode()).status == 0
        assert abx("config", "get", "github_token").out == f"{shown}\n".encode()
    assert env_file(abx) == {"GITHUB_TOKEN": "äöü123456"}


def test_secrets_are_not_read_from_config_toml(abx):
    put(abx, f"[providers.opensandbox]\napi_key = \"toml\"\n[transport]\ngithub_token = \"toml\"\n")
    assert abx("config", "get", SECRET).out == b"" and abx("config", "get", "github_token").out == b""


def test_a_file_that_others_can_read_is_warned_about(abx):
    put(abx, "A=1\n", ".env")
    os.chmod(abx.home / ".abx/.env", 0o640)
    assert b"others can read" in abx("config", "list").err
    assert abx("config", "set", "github_token", "-", input=b"x").status == 0
    assert mode(abx.home / ".abx/.env") == 0o600 and abx("config", "list").err == b""


def test_the_rest_of_dotenv_stays(abx):
    put(abx, f"# a\nexport A='x\ny' # b\r\n{VARIABLE}=old # gone\n\nB=\"${{A}}\"\n", ".env")
    assert abx("config", "set", SECRET, "-", input=b"new").status == 0
    text = (abx.home / ".abx/.env").read_bytes().decode()
    assert text == f"# a\nexport A='x\ny' # b\r\n{VARIABLE}=new\n\nB=\"${{A}}\"\n"


def test_an_open_quote_is_not_closed_by_ours(abx):
    text = "A=\"open\nB=2\n"
    put(abx, text, ".env")
    ran = abx("--json", "config", "set", SECRET, "-", input=b"it's")
    assert ran.error["code"] == "E8002" and "quote is left open" in ran.error["message"]
    assert (abx.home / ".abx/.env").read_text() == text


# ---- the files ----

def test_a_link_stays_a_link(abx, tmp_path):
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles/config.toml").write_text("# mine\n")
    (abx.home / ".abx").mkdir()
    (abx.home / ".abx/config.toml").symlink_to(tmp_path / "dotfiles/config.toml")
    assert abx("config", "set", "http2", "off").status == 0
    assert (abx.home / ".abx/config.toml").is_symlink() and toml(abx) == {"transport": {"http2": False}}
    assert (tmp_path / "dotfiles/config.toml").read_text().startswith("# mine\n")


def test_many_at_once(abx):
    """Nothing of what several programs set at the same time is lost."""
    keys = ["http_timeout", "http2", "log_level", "default_template", "sandbox_base_url", "sandbox_domain"]
    values = ["7", "off", "INFO", "t", "https://x", "d"]
    runs = [abx.start("config", "set", k, v) for k, v in zip(keys, values)]
    assert [r.wait(40) for r in runs] == [0] * len(runs)
    assert set(toml(abx)["transport"]) == set(keys)
    for r in runs:
        r.communicate()


@pytest.mark.parametrize("call", ["write", "fsync", "rename", "openat:O_CREAT"])
def test_a_disk_that_is_full(abx, call):
    put(abx, "[transport]\nhttp2 = false\n")
    name = call.split(":")[0]
    only = ("-P", f"{abx.home}/.abx") if name == "openat" else ()
    for when in range(1, 30):
        ran = abx("config", "set", "log_level", "INFO",
                  wrap=("strace", "-f", "-o", "/dev/null", "-e", f"inject={name}:error=ENOSPC:when={when}", *only))
        assert toml(abx)["transport"]["http2"] is False
        left = sorted(p.name for p in (abx.home / ".abx").iterdir())
        assert left == ["config.toml"], left
        if ran.status == 0 and b"INFO" in (abx.home / ".abx/config.toml").read_bytes():
            break
    else:
        pytest.fail("it never works")


# ---- list, explain, path ----

def test_explain_says_which_layer_won(abx):
    put(abx, "[transport]\nhttp_timeout = 9\n[providers.opensandbox]\nimage = \"a:1\"\n")
    put(abx, "ABX_OPENSANDBOX_API_KEY=k-0123456789\n", ".env")
    os.chmod(abx.home / ".abx/.env", 0o600)
    ran = abx("--json", "--provider", "opensandbox", "config", "explain", env={"ABX_OPENSANDBOX_BASE_URL": "http://e"})
    doc = ran.doc
    assert list(doc)[0] == "provider"
    assert doc["provider"] == {"value": "opensandbox", "source": "n/a", "name": "", "secret": False}
    assert doc["http_timeout"] == {"value": 9.0, "source": "toml", "name": "transport.http_timeout", "secret": False}
    assert doc["http2"] == {"value": True, "source": "default", "name": "", "secret": False}
    assert doc["base_url"] == {"value": "http://e", "source": "environ", "name": "ABX_OPENSANDBOX_BASE_URL", "secret": False}
    assert doc["image"] == {"value": "a:1", "source": "toml", "name": "providers.opensandbox.image", "secret": False}
    assert doc["api_key"] == {"value": "****6789", "source": "dotenv", "name": "ABX_OPENSANDBOX_API_KEY", "secret": True}
    assert "sandbox_base_url" not in doc
    one = abx("--json", "--provider", "opensandbox", "config", "explain", "image")
    assert one.doc == {"image": doc["image"]}
    text = abx("--provider", "opensandbox", "config", "explain").out.decode()
    assert f"providers.opensandbox.image in {abx.home}/.abx/config.toml" in text


def test_a_derived_address(abx):
    put(abx, "[transport]\nregion = \"cn-beijing\"\n")
    doc = abx("--json", "config", "explain").doc
    assert doc["sandbox_domain"] == {"value": "cn-beijing.e2b.fc.aliyuncs.com", "source": "derived", "name": "", "secret": False}
    # where the address is given, nothing is derived
    doc = abx("--json", "config", "explain", env={"ABX_SANDBOX_BASE_URL": "https://x"}).doc
    assert doc["sandbox_domain"]["source"] == "default"


def test_paths(abx):
    assert abx("config", "path").out == f"{abx.home}/.abx/config.toml\n".encode()
    assert abx("--json", "config", "path").doc["secrets"] == f"{abx.home}/.abx/.env"


def test_names_of_all(abx):
    names = abx("-q", "config", "list").out.decode().split()
    assert names[0] == "provider" and "max_connections" in names and names[-1] == "providers.alicloud-express.access_key_secret"


# ---- what the other hosts read ----

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=40) | \
    st.text(st.sampled_from("'\"\\$#{}= \n\r\tabA:-é\x85\u2028"), min_size=1, max_size=20)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=TEXT)
def test_every_secret_is_read_back(abx, value):
    # Values arrive trimmed, as every host trims what it reads.
    ran = abx("config", "set", SECRET, "-", input=value.encode())
    if not value.strip():
        assert ran.status == 2
        return
    assert ran.status == 0, ran
    path = abx.home / ".abx/.env"
    want = value.strip()
    assert dotenv.dotenv_values(path) == {VARIABLE: want}
    assert abx("config", "get", SECRET, "--show-secrets").out == want.encode() + b"\n"
    assert path.read_bytes().count(b"\n") == 1, "one line, whatever is in it"


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=TEXT)
def test_every_text_is_read_back(abx, value):
    ran = abx("config", "set", "default_template", "-", input=value.encode())
    if not value.strip():
        assert ran.status == 2
        return
    assert ran.status == 0 and toml(abx)["transport"]["default_template"] == value.strip()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.sampled_from(["A=1", "B='x", "C=\"y\\\"z\"", "# c", "", "export D = 4 # d", "E", "ABX_OPENSANDBOX_API_KEY=old",
                                       "F=\"a", "b\"", "G='h'", "=", "H=${A}", "'I'=1", "J=x'y"]), max_size=8),
       ends=st.sampled_from(["\n", "\r\n"]), value=st.sampled_from(["v", "it's", "a b", "x\ny", "${A}"]))
def test_other_variables_keep_their_values(abx, lines, ends, value):
    (abx.home / ".abx").mkdir(exist_ok=True)
    path = abx.home / ".abx/.env"
    path.write_bytes(ends.join(lines).encode())
    before = dotenv.dotenv_values(path)
    ran = abx("config", "set", SECRET, "-", input=value.encode())
    if ran.status != 0:
        assert b"quote is left open" in ran.err
        assert path.read_bytes() == ends.join(lines).encode()
        return
    assert dotenv.dotenv_values(path) == {**before, VARIABLE: value}
