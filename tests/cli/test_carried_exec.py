"""The carried helper: what goes in arrives, what comes out is exact."""

import base64
import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from agent import NOBODY
from conftest import BINARY
from frames import (AT_CWD, AT_EXEC, AT_START, AT_USER, CODE, EOF, INPUT, NO_ACK, Helper, frame, hello, preamble,
                    run, start)

ROOT = os.geteuid() == 0
MODES = ["pipe", "lines", "listen"]

NASTY = {
    "nothing": b"", "no newline": b"a", "blank lines": b"\n\n\na\n\n", "crlf": b"a\r\nb\r\n\r\n", "cr": b"1%\r2%\r100%\n",
    "all bytes": bytes(range(256)), "invalid": b"caf\xc3\n\xff\xfe\n", "nul": b"a\0b\n\0", "preamble": b"ABX1\1\0\0\0" * 9,
    "one line of 20 MB": b"x" * (20 << 20),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NASTY)
def test_bytes_are_exact_both_ways(tmp_path, mode, name):
    t = run(tmp_path, "cat; printf end >&2", mode=mode, data=NASTY[name])
    assert t.result == (CODE, 0) and bytes(t.out) == NASTY[name] and bytes(t.err) == b"end"


@pytest.mark.parametrize("mode", MODES)
def test_outputs_are_apart(tmp_path, mode):
    t = run(tmp_path, "for i in 1 2 3 4 5 6 7 8 9; do echo out $i; echo err $i >&2; done; exit 7", mode=mode)
    assert t.result == (CODE, 7)
    assert bytes(t.out) == b"".join(b"out %d\n" % i for i in range(1, 10))
    assert bytes(t.err) == b"".join(b"err %d\n" % i for i in range(1, 10))


@pytest.mark.parametrize("mode", MODES)
def test_a_hundred_megabytes_of_noise(tmp_path, mode):
    (tmp_path / "noise").write_bytes(os.urandom(1 << 20) * 95)
    want = hashlib.sha256((tmp_path / "noise").read_bytes()).hexdigest()
    h = Helper(mode, tmp_path)
    t = h.talk().greet("cat", "noise")
    t.keep = False
    assert t.finish(60) == (CODE, 0) and t.digest.hexdigest() == want and t.exit.out == 95 << 20
    t.close()
    h.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_hundred_megabytes_in(tmp_path, mode):
    data = os.urandom(1 << 20) * (95 if mode != "lines" else 20)
    t = run(tmp_path, "sha256sum", mode=mode, data=data, seconds=60)
    assert bytes(t.out).split()[0].decode() == hashlib.sha256(data).hexdigest()


ARGS = ["", " ", "a b", "'", '"', "$HOME", "*", "a\nb", "\\", "-x", "--", "caf\u00e9", b"\xff\xfe", "x" * 100000, "~", "=", "`id`"]


def test_words_arrive_as_they_are(tmp_path):
    t = run(tmp_path, "printf", r"<%s>\n", *ARGS)
    assert bytes(t.out) == b"".join(b"<%s>\n" % (a if isinstance(a, bytes) else a.encode()) for a in ARGS)


@pytest.mark.parametrize("line, code, out", [
    ("echo $((6 * 7)) \"$0\"", 0, b"42 sh\n"), ("-x", 127, b""), ("+x; echo more", 0, b"more\n"), ("--", 127, b""),
    ("-c 'echo no'", 127, b""), (" ", 0, b""), ("exit 255", 255, b""), ("nosuchcommand", 127, b""), ("echo one\necho two", 0, b"one\ntwo\n"),
    ("./plain", 126, b""),
])
def test_one_word_is_a_line(tmp_path, line, code, out):
    (tmp_path / "plain").write_text("no program")
    t = run(tmp_path, line)
    assert t.result == (CODE, code) and bytes(t.out) == out


def test_a_program_is_looked_for_in_the_new_path(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "tool").write_text("#!/bin/sh\necho mine $1\n")
    (folder / "tool").chmod(0o755)
    (folder / "plain").write_text("x")
    t = run(tmp_path, "tool", "x", env=[f"PATH={folder}"])
    assert bytes(t.out) == b"mine x\n"
    assert run(tmp_path, "./bin/tool", "y").out == b"mine y\n"
    for argv, sys in [(("nosuch", "x"), 2), (("plain", "x"), 13), (("./bin/plain", "x"), 13), (("/etc", "x"), 13),
                      (("./nosuch", "x"), 2), (("/etc/passwd/x", "x"), 20), (("tool", "x" * 200000), 7), (("", "x"), 2), ((), 2)]:
        fail = run(tmp_path, *argv, env=[f"PATH={folder}"]).result
        assert (fail.stage, fail.sys) == (AT_EXEC, sys), argv


def test_the_environment(tmp_path):
    want = ["A=1", "EMPTY=", "B=x=y", "PATH=/bin:/usr/bin", "C=\n'\"", "D=caf\xe9", "A=2", "nonsense", "=x"]
    h = {"env": {"KEPT": "yes", "A": "0", "ABX_AGENT_TAG": "1" * 32, "ABX_AGENT_TOKEN": "2" * 32}}
    t = run(tmp_path, "env", "-0", env=want, helper=h)
    got = dict(e.split(b"=", 1) for e in bytes(t.out).split(b"\0") if e)
    assert got[b"A"] == b"2" and got[b"EMPTY"] == b"" and got[b"B"] == b"x=y" and got[b"C"] == b"\n'\"" and got[b"KEPT"] == b"yes"
    assert got[b"PATH"] == b"/bin:/usr/bin" and b"" not in got
    assert not [k for k in got if k.startswith(b"ABX_") or k in (b"OLDPWD", b"PWD", b"_")]
    fail = run(tmp_path, "true", "x", env=[f"V{i}=" for i in range(5000)]).result
    assert (fail.stage, fail.sys) == (AT_START, 7)


def test_what_is_ours_is_gone_from_proc(tmp_path):
    first = preamble() + hello() + start("SECRET_WORD=x; tr '\\0' '\\n' < /proc/$PPID/environ", flags=NO_ACK)
    h = Helper("lines", tmp_path, first, stdin=subprocess.DEVNULL)
    t = h.talk(credit=False, ack=False)
    assert t.finish() == (CODE, 0)
    assert b"HOME=" in t.out and h.token.encode() not in t.out and b"ABX1" not in t.out and b"QUJYM" not in t.out
    h.close()


def test_where_it_starts(tmp_path):
    (tmp_path / "sub").mkdir()
    own = tmp_path / "own"
    own.mkdir(0o700)
    at = {"cwd": tmp_path}
    assert run(own, "pwd", helper=at).out == b"%s\n" % bytes(tmp_path)
    assert run(own, "pwd", cwd="/usr", helper=at).out == b"/usr\n"
    assert run(own, "pwd", cwd="sub", helper=at).out == b"%s/sub\n" % bytes(tmp_path)
    assert run(own, "pwd", helper={"cwd": "/nosuch"}).out == b"/\n"
    assert run(own, "pwd", helper={"cwd": "gone"}).out == b"/\n"
    for cwd, sys in [("/nosuch", 2), ("/etc/passwd", 20), ("sub/x", 2)]:
        fail = run(own, "pwd", cwd=cwd, helper=at).result
        assert (fail.stage, fail.sys) == (AT_CWD, sys) and cwd in fail.text


def test_nothing_is_inherited(tmp_path):
    """No descriptors, no signals, no mask, no terminal, an empty input."""
    def ignore():
        for number in (1, 2, 3, 13, 15):
            signal.signal(number, signal.SIG_IGN)

    t = run(tmp_path, "ls /proc/self/fd | wc -l; grep -E 'Sig(Blk|Ign)' /proc/self/status; cat; ps -o sid= -p $$; echo $$; "
            "readlink /proc/self/fd/0", mode="listen", helper={"preexec_fn": ignore})
    lines = bytes(t.out).decode().split("\n")
    assert lines[0] == "4"              # 0, 1, 2 and that of ls
    assert lines[1].split() == ["SigBlk:", "0" * 16] and lines[2].split() == ["SigIgn:", "0" * 16]
    assert lines[3].strip() == lines[4] == str(t.started.pid)
    assert lines[5] == "/dev/null"


def test_hello(tmp_path):
    for mode in MODES:
        h = Helper(mode, tmp_path)
        t = h.talk().greet("true")
        assert t.finish() == (CODE, 0)
        assert t.hello.uid == os.getuid() and t.hello.text.startswith(b"linux ") and b" abx " in t.hello.text
        assert mode == "listen" or t.hello.pid == h.process.pid
        assert [k for k, _ in t.frames if k != 0x89] == [0x81, 0x82, 0x86] and t.started.job == b""
        t.close()
        h.close()


# --- input ---

def test_an_idle_input_holds_nothing_up(tmp_path):
    h = Helper("pipe", tmp_path)
    t = h.talk().greet("echo hi", flags=INPUT)
    assert t.finish() == (CODE, 0) and bytes(t.out) == b"hi\n"
    h.close()


def test_input_that_nobody_reads(tmp_path):
    """It waits, as much as the window holds, and does not disturb the rest."""
    h = Helper("listen", tmp_path)
    t = h.talk().greet("sleep 1; echo go; head -c 3000000 | wc -c", flags=INPUT)
    data = b"y" * (1 << 20)
    t.write(data)
    assert not t.input_taken
    t.until_out(b"go\n")
    t.write(data * 2)
    t.send(frame(EOF))
    assert t.finish() == (CODE, 0) and bytes(t.out) == b"go\n3000000\n"
    h.close()


def test_input_after_its_reader_closed(tmp_path):
    h = Helper("pipe", tmp_path)
    t = h.talk().greet("exec <&-; echo closed; sleep 0.7", flags=INPUT)
    t.until_out(b"closed\n")
    t.write(b"z" * (5 << 20))
    assert t.finish() == (CODE, 0)
    h.close()


# --- users ---

def shared_folder():
    folder = Path(tempfile.mkdtemp(prefix="abx-carried-"))
    folder.chmod(0o755)
    return folder


WHO = "id -u; id -g; id -G; echo $HOME $USER $LOGNAME $SHELL; grep -E '^[UG]id' /proc/self/status"


@pytest.mark.skipif(not ROOT, reason="root alone becomes somebody else")
@pytest.mark.parametrize("user", ["nobody", "65534", "daemon", "54321", "root", "0"])
def test_users(tmp_path, user):
    t = run(tmp_path, WHO, user=user, env=["SHELL=/my/shell"])
    lines = bytes(t.out).decode().split("\n")
    try:
        pw = pwd.getpwuid(int(user)) if user.isdigit() else pwd.getpwnam(user)
    except KeyError:
        pw = None
    uid, gid = (pw.pw_uid, pw.pw_gid) if pw else (int(user), int(user))
    assert lines[:2] == [str(uid), str(gid)]
    if not uid:
        return
    assert sorted(map(int, lines[2].split())) == sorted(os.getgrouplist(pw.pw_name, gid) if pw else [gid])
    name = pw.pw_name if pw else user
    assert lines[3] == f"{pw.pw_dir if pw else '/'} {name} {name} /my/shell"
    assert lines[4].split() == ["Uid:"] + [str(uid)] * 4 and lines[5].split() == ["Gid:"] + [str(gid)] * 4


@pytest.mark.skipif(not ROOT, reason="root alone becomes somebody else")
def test_a_user_without_a_way_into_the_folder(tmp_path):
    tmp_path.chmod(0o700)
    assert run(tmp_path, "pwd", user="nobody").out == b"/\n"
    fail = run(tmp_path, "pwd", user="nobody", cwd=str(tmp_path)).result
    assert (fail.stage, fail.sys) == (AT_CWD, 13)
    assert run(tmp_path, "touch /root/x", user="nobody").result == (CODE, 1)


def test_unknown_users(tmp_path):
    for user in ("nosuchuser", "4294967295", "99999999999999999999", "-1", "1 2", "0x0", " root"):
        fail = run(tmp_path, "touch ran", user=user).result
        assert fail.stage == AT_USER and not fail.sys and user.strip() in fail.text
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(not ROOT, reason="starts the helper as somebody else")
def test_not_root(tmp_path):
    folder = shared_folder()
    try:
        program = folder / "abx"
        shutil.copy(BINARY, program)
        own = folder / "own"
        own.mkdir(0o700)
        os.chown(own, NOBODY, NOBODY)
        h = {"program": str(program), "user": NOBODY, "group": NOBODY, "extra_groups": []}
        for user in ("root", "0", "daemon", "54321"):
            fail = run(own, "touch ran", user=user, helper=h).result
            assert (fail.stage, fail.sys) == (AT_USER, 1)
        assert not (own / "ran").exists()
        t = run(own, "id -u; echo $USER", user="nobody", helper=h)
        assert bytes(t.out) == b"%d\nnobody\n" % NOBODY and t.hello.uid == NOBODY
        assert run(own, "id -u", user=str(NOBODY), helper=h).out == b"%d\n" % NOBODY
    finally:
        shutil.rmtree(folder)


# --- the client's first bytes another way ---

def test_first_bytes_in_a_file(tmp_path):
    line = "#" * 120000 + "\necho done"       # with its base64 more than a variable holds
    (tmp_path / "f1").write_bytes(preamble() + hello() + start(line))
    h = Helper("lines", tmp_path, "@f1")
    t = h.talk()
    assert t.finish() == (CODE, 0) and bytes(t.out) == b"done\n"
    assert not (tmp_path / "f1").exists()
    h.close()


@pytest.mark.parametrize("given", ["@nosuch", "@../x", "@", "@link", "@folder", "no base64!"])
def test_first_bytes_that_are_none(tmp_path, given):
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").mkdir()
    h = Helper("pipe", tmp_path, given)
    assert h.ended() == 2 and b"abx agent" in h.process.stderr.read()
    h.close()


def test_words_that_are_not_there(tmp_path):
    for argv in (["listen"], ["lines"], ["pipe", "x"]):
        done = subprocess.run([BINARY, "agent", *argv], capture_output=True, stdin=subprocess.DEVNULL, timeout=10)
        assert done.returncode == 2 and done.stdout == b"" and done.stderr.startswith(b"abx agent: ")


def test_deaf_client(tmp_path):
    """Lines without an input: no credit, no ack, no ping is waited for."""
    first = preamble() + hello(1000) + start("head -c 3000000 /dev/zero; sleep 1; exit 4", flags=NO_ACK)
    h = Helper("lines", tmp_path, first, stdin=subprocess.DEVNULL)
    t = h.talk(window=4 << 20, credit=False, ack=False)
    assert t.finish() == (CODE, 4) and len(t.out) == 3000000
    assert h.ended() == 0
    h.close()


def test_output_to_a_file(tmp_path):
    """As the stock daemon runs commands: standard output is a file."""
    first = preamble() + hello() + start("printf 'a\\0b'; exit 5", flags=NO_ACK)
    with open(tmp_path / "out", "ab") as out:
        env = {"ABX_AGENT_TAG": "a" * 32, "ABX_AGENT_INPUT": base64.b64encode(first).decode(), "PATH": os.environ["PATH"]}
        done = subprocess.run([BINARY, "agent", "lines"], stdin=subprocess.DEVNULL, stdout=out, env=env, cwd=tmp_path, timeout=20)
    assert done.returncode == 0
    lines = (tmp_path / "out").read_bytes().split(b"\n")
    assert lines.pop() == b"" and all(line.startswith(b"a" * 32 + b" %d " % i) for i, line in enumerate(lines))
