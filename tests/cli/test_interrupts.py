"""Ctrl-C at every system call of create, upload and download: strace delivers
SIGINT to the shipped program at each call that a first trace shows. Whatever
the moment: exit as a shell shows it (130), nothing half-written, and a sandbox
that was made is either removed again or named."""

import collections
import os
import re
import signal
import subprocess

import pytest

import scripted

SILENT = ["sandbox", "exec", "box-1", "true"]
CALL = re.compile(r"^(?:\d+ +)?(\w+)\(", re.M)


def traced_calls(osb, words, tmp_path):
    """Every system call of a run as (name, how many of that name came before)."""
    log = tmp_path / "trace"
    ran = osb(*words, wrap=["strace", "-f", "-o", str(log)])
    assert ran.status == 0, ran
    seen = collections.Counter()
    calls = []
    for name in CALL.findall(log.read_text()):
        seen[name] += 1
        if name != "execve":        # the program does not run yet
            calls.append((name, seen[name]))
    log.unlink()
    return calls


def interrupted(osb, words, call, nth):
    return osb(*words, wrap=["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}",
                             "-e", f"inject={call}:signal=INT:when={nth}"])


Where = collections.namedtuple("Where", "call nth behind printing")


def each(osb, words, tmp_path, prepare):
    """Runs it once for each call. Where: the call, how many come behind it, and
    whether the result is being printed by then."""
    prepare()
    calls = traced_calls(osb, words, tmp_path)
    assert len(calls) > 20
    write = max(i for i, (name, _) in enumerate(calls) if name == "write") if words != SILENT else len(calls)
    for i, (name, nth) in enumerate(calls):
        prepare()
        # How often the network is waited for and read differs from run to run by
        # one or two: the last such call of one is the printing's of the next.
        varies = name in ("poll", "recvfrom") and sum(n == name for n, _ in calls) - nth <= 2
        yield Where(name, nth, len(calls) - 1 - i, i >= write - 1 or varies), interrupted(osb, words, name, nth)


def ended_well(ran, where):
    """Interrupted, or already done: the signal came with one of the last calls,
    behind the last look for one."""
    assert ran.status in (130, -signal.SIGINT, 0), (where, ran)
    assert scripted.KEY.encode() not in ran.out + ran.err
    assert ran.status != 0 or where.behind <= 3 or where.printing, (where, ran)
    assert not ran.out or where.printing, (where, ran)


def test_create(osb, server, tmp_path):
    statuses = collections.Counter()
    for where, ran in each(osb, ["--json", "sandbox", "create"], tmp_path, server.clear):
        ended_well(ran, where)
        statuses[ran.status] += 1
        for left in server.boxes:
            assert where.printing and left.encode() in ran.out, (where, ran, "a sandbox runs that nobody knows of")
        if ran.out:
            assert ran.doc["sandbox_id"], (where, ran)
    assert statuses[130] > 10, statuses


def test_upload(osb, server, tmp_path):
    (tmp_path / "local").write_bytes(b"new" * 1000)

    def prepare():
        server.clear()
        server.box()
        server.files["/f"] = (b"old", 600)
    for where, ran in each(osb, ["sandbox", "upload", "box-1", "local", "/f"], tmp_path, prepare):
        ended_well(ran, where)
        assert list(server.files) == ["/f"], (where, ran, list(server.files))
        assert server.files["/f"][0] in (b"old", b"new" * 1000), where
        if ran.status == 0 or ran.out:
            assert server.files["/f"][0] == b"new" * 1000, where


def test_download(osb, server, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    osb.cwd = here

    def prepare():
        server.clear()
        server.box()
        server.files["/f"] = (b"new" * 1000, 600)
        (here / "f").write_bytes(b"old")
    for where, ran in each(osb, ["sandbox", "download", "box-1", "/f", "f"], tmp_path, prepare):
        ended_well(ran, where)
        assert os.listdir(here) == ["f"], (where, ran, os.listdir(here))
        assert (here / "f").read_bytes() in (b"old", b"new" * 1000), where
        if ran.status == 0 or ran.out:
            assert (here / "f").read_bytes() == b"new" * 1000, where


@pytest.mark.parametrize("words", [["sandbox", "list"], SILENT, ["sandbox", "kill", "box-1"],
                                   ["version"]], ids=" ".join)
def test_others_end(osb, server, tmp_path, words):
    def prepare():
        server.clear()
        server.box()
    for where, ran in each(osb, words, tmp_path, prepare):
        ended_well(ran, where)


# --- failing calls ---

@pytest.mark.parametrize("call,errno", [("write", "ENOSPC"), ("write", "EIO"), ("openat", "EMFILE"), ("openat", "EROFS"),
                                        ("rename", "EACCES"), ("renameat2", "EACCES"), ("fsync", "EIO"),
                                        ("socket", "EMFILE"), ("connect", "ENETUNREACH"), ("poll", "ENOMEM"),
                                        ("recvfrom", "EIO"), ("sendto", "EIO"), ("read", "EIO"), ("pipe2", "EMFILE")])
def test_failing_calls_of_a_download(osb, server, tmp_path, call, errno):
    """Each call of that name fails once: no crash, no success without the file, nothing left."""
    here = tmp_path / "here"
    here.mkdir()
    osb.cwd = here
    server.box()
    server.files["/f"] = (b"new" * 1000, 600)
    words = ["sandbox", "download", "box-1", "/f", "f"]
    (here / "f").write_bytes(b"old")
    total = collections.Counter(name for name, _ in traced_calls(osb, words, tmp_path))[call]
    for nth in range(1, total + 1):
        (here / "f").write_bytes(b"old")
        ran = osb(*words, wrap=["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                                f"inject={call}:error={errno}:when={nth}"])
        assert ran.status in (0, 1), (call, nth, ran)
        assert os.listdir(here) == ["f"], (call, nth, os.listdir(here))
        content = (here / "f").read_bytes()
        assert content == b"new" * 1000 or (content == b"old" and ran.status == 1), (call, nth, ran)
