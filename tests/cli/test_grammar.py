"""Words in: where options may stand, what is refused, and how that is said."""

import json
import re

import pytest

# What is wrong, and what the message says of it.
USAGE = [
    ("--yes sandbox kill x", "No such option '--yes'"),
    ("sandbox --yes kill x", "No such option '--yes'"),
    ("--timeout 5 sandbox create", "No such option '--timeout'"),
    ("sandbox info x --yes", "No such option '--yes'"),
    ("sandbox kill --ye x", "No such option '--ye'"),
    ("--jso version", "No such option '--jso'"),
    ("version -x", "No such option '-x'"),
    ("version -qx", "No such option '-x'"),
    ("--json=yes version", "Option '--json' takes no value"),
    ("version --output", "Option '--output' needs a value"),
    ("-o yaml version", "--output: there is no form 'yaml'"),
    ("-o JSON version", "--output: there is no form 'JSON'"),
    ("sandbx list", "No such command 'abx sandbx'"),
    ("sandbox crate", "No such command 'abx sandbox crate'"),
    ("exce x", "No such command 'abx exce'"),
    ("install x", "No such command 'abx install'"),
    ("sandbox info", "Missing argument ID"),
    ("sandbox info a b", "Unexpected argument 'b'"),
    ("sandbox exec x", "Missing argument COMMAND"),
    ("sandbox exec", "Missing argument ID"),
    ("sandbox shell-stream x", "Missing argument COMMAND"),
    ("sandbox shell-stream x --command a b", "The command is given twice"),
    ("sandbox upload x a", "Missing argument REMOTE"),
    ("sandbox upload x - /tmp/", "'-' does not end in the name of a file"),
    ("sandbox upload x .. /tmp/", "no name"),
    ("sandbox download x /a/.. .", "no name"),
    ("sandbox cp x", "Missing argument DEST"),
    ("sandbox create tail", "Unexpected argument 'tail'"),
    ("sandbox create --entrypoint a -- b", "The entrypoint is given twice"),
    ("sandbox create --timeout soon", "--timeout: 'soon' is no length of time"),
    ("sandbox create --timeout 0", "--timeout: it must be more than zero"),
    ("sandbox create --timeout -5", "--timeout: '-5' is no length of time"),
    ("sandbox create -m x", "--metadata: 'x' is not KEY=VALUE"),
    ("sandbox create -m =x", "--metadata: nothing stands before the '='"),
    ("sandbox create -e ABX_UNSET_HERE", "ABX_UNSET_HERE is not set in the environment"),
    ("sandbox list --limit 0", "--limit: '0' is no number from 1 on"),
    ("sandbox timeout x", "Missing argument DURATION"),
    ("sandbox timeout x never", "DURATION: 'never' is no length of time"),
    ("sandbox timeout x none", "cannot be made to stay for ever"),
    ("sandbox url x http", "PORT: 'http' is no number from 1 to 65535"),
    ("sandbox url x 0", "PORT: '0' is no number from 1 to 65535"),
    ("sandbox url x 65536", "PORT: '65536' is no number from 1 to 65535"),
    ("--option novalue provider default", "--option: 'novalue' is not KEY=VALUE"),
    ("--option api_key=abcdefgh provider default", "--option: api_key is a secret"),
    ("--option api_key=@/no/such/file provider default", "--option: cannot open /no/such/file"),
    ("--option a=- --option b=- provider default", "only one setting can be read from standard input"),
    ("--option api_key=- sandbox upload x - /y", "cannot hold both the file and a setting"),
    ("help nothing", "There is no help on 'nothing'"),
    ("help sandbox nothing", "There is no help on 'sandbox nothing'"),
    ("version x", "Unexpected argument 'x'"),
]


@pytest.mark.parametrize("line,message", USAGE, ids=[line for line, _ in USAGE])
def test_usage_is_refused(osb, server, line, message):
    text = osb(*line.split())
    assert text.status == 2 and text.out == b"", text
    text.failed_well(json_form=False)
    first, *more = text.err.decode().splitlines()
    assert message in first and first.startswith("[E8002] ")
    assert len(more) <= 1 and all(m.startswith("  Suggestion: ") for m in more)
    assert "abcdefgh" not in text.err.decode()

    said = osb("--json", *line.split())
    assert said.status == 2, said
    said.failed_well(json_form=True)
    assert said.err.count(b"\n") == 1
    assert said.error["code"] == "E8002" and message in said.error["message"]
    assert said.error["docs_url"] == "" and said.error["retryable"] is False
    assert server.requests == []


@pytest.mark.parametrize("where", ["--json sandbox kill", "sandbox kill --json", "sandbox --json kill", "sandbox kill -ojson",
                                   "sandbox -o json kill", "sandbox kill --output=json", "sandbox kill --output json"])
def test_json_is_heard_wherever_it_stands(abx, where):
    ran = abx(*where.split())
    assert ran.status == 2 and ran.error["message"] == "Missing argument ID"


@pytest.mark.parametrize("line", ["--bogus sandbox info x --json", "sandbx --json", "--yes --json sandbox kill x",
                                  "sandbox info x y -o json"])
def test_json_is_heard_behind_the_mistake(abx, line):
    ran = abx(*line.split())
    assert ran.status == 2 and ran.error["code"] == "E8002"


def test_two_forms_contradict(abx):
    for line in (["--json", "-o", "text", "version"], ["version", "--output=text", "--json"]):
        ran = abx(*line)
        assert ran.status == 2 and "contradict" in ran.error["message"]
    assert abx("--json", "-o", "json", "version").status == 0


def test_error_separators(abx):
    ran = abx("--json", "version", "x")
    assert ran.err.decode() == json.dumps(json.loads(ran.err), ensure_ascii=False) + "\n"


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_nothing_named_is_a_mistake(abx, form):
    for line in ([], ["sandbox"], ["-q"]):
        ran = abx(*form, *line)
        assert ran.status == 2 and ran.out == b"", ran
        if form:
            assert ran.error["code"] == "E8002"
        else:
            assert b"Usage: abx" in ran.err


# The longest is nearly as long as the kernel lets an argument be.
HOSTILE = ["\x1b[2Jx", "a\nb", "a\r", "\x7f", "\u202eabc", "\x9b31m", "x" * ((1 << 17) - 16), "'", '"', "\\", "%s%n", "{}"]


@pytest.mark.parametrize("word", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_words_are_refused_or_passed(osb, server, word):
    """As an id, an option, a verb: one line in an error, and it ends."""
    for line in (["sandbox", "info", word], ["--" + word], ["sandbox", word], [word], ["help", word],
                 ["sandbox", "create", "--timeout", word], ["-o", word, "version"], ["sandbox", "kill", word]):
        ran = osb(*line)
        if ran.status == 0:
            assert line[:2] == ["sandbox", "kill"]
            continue
        ran.failed_well(json_form=False)
        said = osb("--json", *line)
        said.failed_well(json_form=True)
        assert said.err.count(b"\n") == 1


@pytest.mark.parametrize("line", [["sandbox", "info"], ["sandbox", "create", "--template"], ["sandbox", "exec", "x", "echo"],
                                  ["sandbox", "create", "-m"], ["sandbox", "upload", "x", "y"], ["help"], ["--provider"]])
def test_what_is_not_utf8_is_refused(osb, server, line):
    for bad in (b"\xff", b"caf\xc3", b"\xed\xa0\x80", b"k=\xff"):
        ran = osb("--json", *line, bad)
        assert ran.status == 2 and "not UTF-8" in ran.error["message"], ran
    assert server.requests == []


def test_on_a_terminal_nothing_steers_it(abx, tmp_path):
    """The same words, read back from a pseudo terminal."""
    import os
    import pty
    for word in ("\x1b]0;owned\x07", "\u202eabc", "\x9b31m", "a\nb"):
        for form in ((), ("--json",)):
            leader, follower = pty.openpty()
            process = abx.start(*form, "sandbox", word, stdout=follower, stderr=follower)
            os.close(follower)
            got = b""
            while True:
                try:
                    piece = os.read(leader, 4096)
                except OSError:
                    break
                if not piece:
                    break
                got += piece
            assert process.wait(10) == 2
            os.close(leader)
            text = got.decode()
            assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\u202e]", text), text
            assert re.search(r"\\u00|\\u202e|\\n", text)


# --- help ---

COMMANDS = ["sandbox create", "sandbox list", "sandbox info", "sandbox exec", "sandbox shell-stream", "sandbox shell", "sandbox port-forward",
            "sandbox upload", "sandbox download", "sandbox cp", "sandbox pause", "sandbox resume", "sandbox timeout",
            "sandbox url", "sandbox kill", "run", "job list", "job logs", "job wait", "job attach", "job kill", "job rm",
            "provider list", "provider info", "provider export", "provider test",
            "provider serve", "provider install", "provider update", "provider rollback", "provider uninstall",
            "provider default", "provider doctor", "provider verify", "config list", "config get", "config set",
            "config unset", "config explain", "config path", "agent", "agent remove", "version", "help"]
TOPICS = ["exit-codes", "environment", "output", "copying", "providers"]


def listed(text):
    return re.findall(r"^  abx ((?:sandbox|provider|config|job) \S+?|agent remove|\S+?)(?:,.*| {2,}.*)$",
                      text.split("Commands:")[1].split("\n\n")[0], re.M)


def test_help_lists_every_command(abx):
    ran = abx("help")
    assert ran.status == 0 and ran.err == b""
    assert listed(ran.out.decode()) == COMMANDS
    assert re.findall(r"abx help (\S+)  ", ran.out.decode().split("Topics:")[1]) == TOPICS
    assert max(map(len, ran.out.decode().splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(abx, command):
    words = command.split()
    ran = abx("help", *words)
    assert ran.status == 0 and ran.err == b"" and f"Usage: abx {command}" in ran.out.decode()
    assert max(map(len, ran.out.decode().splitlines())) <= 80, ran.out.decode()
    if command != "agent":
        for line in ([*words, "--help"], [*words, "-h"], ["--help", *words]):
            assert abx(*line).out == ran.out
    for option in re.findall(r"^ +(?:-\w, )?--(\S+)", ran.out.decode().partition("Options:")[2], re.M):
        # An option that help names is one that parsing knows.
        name = option.rstrip(",")
        said = abx("--json", *words, f"--{name}=x", "--help")
        assert said.status == 0 or "takes no value" in said.error["message"], said


@pytest.mark.parametrize("topic", TOPICS)
def test_each_topic(abx, topic):
    ran = abx("help", topic)
    assert ran.status == 0 and ran.err == b"" and len(ran.out) > 300
    assert max(map(len, ran.out.decode().splitlines())) <= 80


def test_help_names_every_setting(abx):
    from conftest import ROOT
    source = (ROOT / "src/provider/opensandbox.c").read_text()
    settings = re.findall(r'^    \{"(\w+)", FIELD_', source, re.M)
    text = abx("help", "providers").out.decode()
    assert len(settings) >= 8 and all(re.search(rf"^  .*\b{s}\b", text, re.M) for s in settings), settings


def test_help_as_json(abx):
    for line in (["help"], ["help", "exit-codes"], ["sandbox", "exec", "--help"]):
        assert abx("--json", *line).doc == {"help": abx(*line).out.decode()}


def test_help_on_a_noun(abx):
    ran = abx("help", "sandbox")
    assert ran.status == 0 and listed(ran.out.decode()) == [c for c in COMMANDS if c.startswith("sandbox")]
    assert abx("sandbox", "--help").out == ran.out


def test_exec_help_says_what_is_lost(abx):
    text = " ".join(abx("help", "sandbox", "exec").out.decode().split())
    assert "do not say whether the last line ended in a line feed" in text


def test_the_page_of_commands_is_what_help_says():
    """docs/cli.md is made of the help: python tests/cli/cli_page.py ./abx > docs/cli.md"""
    import cli_page
    from conftest import BINARY, ROOT
    assert (ROOT / "docs/cli.md").read_text() == cli_page.page(BINARY)


# --- version ---

def test_version(abx):
    doc = abx("version", "--json").doc
    assert list(doc) == ["version", "output_version", "commit", "tls", "zlib", "libc", "target", "ca_date"]
    assert doc["output_version"] == 1
    assert abx("--version").out == abx("version").out
    assert abx("version").out.decode().splitlines()[0] == f"abx {doc['version']}"
