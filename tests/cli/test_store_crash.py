"""The store of plugins, with the shipped program killed at every system call
that changes it, and with a full or broken disk at each: the plugin is the old
one or the new one, whole, with its receipt and its data, for whoever looks at
that instant; and the next change works at once and leaves nothing behind."""

import collections
import os
import re
import shutil

import pytest

from plugin_store import WORKS, Store, write_plugin

# What changes the store. Of openat that is what creates; of write, what does
# not go to the standard streams.
CHANGES = re.compile(
    r"^(mkdir|mkdirat|chmod|fchmod|fchmodat|symlinkat|linkat|rename|renameat|renameat2|unlink|unlinkat|rmdir|syncfs|fsync|"
    r"utimensat|flock|openat(?=.*O_CREAT)|write(?=\((?:[3-9]|\d\d)))\(")
CALL = re.compile(r"^(\w+)\(")
FULL = {"mkdir", "mkdirat", "openat", "write", "symlinkat", "linkat", "rename", "renameat2", "syncfs", "fsync"}
BROKEN = {"mkdirat", "openat", "write", "fchmod", "linkat", "renameat2", "unlinkat", "syncfs", "fsync"}

Case = collections.namedtuple("Case", "before words old new")
CASES = {
    "fresh": Case("none", ["install", "v2", "--yes", "--no-verify"], "absent", "2"),
    "replace": Case("data", ["install", "v2", "--yes", "--force", "--no-verify"], "1 data", "2 data"),
    "replace-without-data": Case("one", ["install", "v2", "--yes", "--force", "--no-verify"], "1", "2"),
    "verified": Case("data", ["install", "v2", "--yes", "--force"], "1 data", "2 data"),
    "over-kept-data": Case("kept", ["install", "v2", "--yes", "--no-verify"], "data", "2 data"),
    "third": Case("twice", ["install", "v3", "--yes", "--force", "--no-verify"], "2 data", "3 data"),
    "link": Case("data", ["install", "v2", "--link", "--yes", "--force", "--no-verify"], "1 data", "2 link data"),
    "rollback": Case("twice", ["rollback", "demo", "--no-verify"], "2 data", "1 data"),
    "uninstall": Case("twice", ["uninstall", "demo"], "2 data", "data"),
    "purge": Case("twice", ["uninstall", "demo", "--purge"], "2 data", "absent"),
    # What does not pass its verification: the new one is there for a while.
    "undone": Case("data", ["install", "broken", "--yes", "--force"], "1 data", "9 data"),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Plugins in several versions, and stores that have seen some of them."""
    root = tmp_path_factory.mktemp("crash")
    for version, name, program in [("1", "v1", WORKS), ("2", "v2", WORKS), ("3", "v3", WORKS), ("9", "broken", "exit 7")]:
        write_plugin(root / name, version, program, extra=version != "1")
    none = Store(root / "none")
    none.home.mkdir()
    one = none.copy(root / "one")
    assert one.run("provider", "install", str(root / "v1"), "--yes").status == 0
    data = one.copy(root / "data")
    data.put_data()
    twice = data.copy(root / "twice")
    assert twice.run("provider", "install", str(root / "v2"), "--yes", "--force").status == 0
    kept = twice.copy(root / "kept")
    assert kept.run("provider", "uninstall", "demo").status == 0
    return root


class Runner:
    def __init__(self, world, case, work):
        self.world, self.case, self.work = world, case, work
        self.words = ["provider", *(str(world / w) if (world / w / "abx-provider.toml").exists() else w
                                    for w in case.words)]

    def fresh(self):
        shutil.rmtree(self.work, ignore_errors=True)
        return Store(self.world / self.case.before).copy(self.work)

    def calls(self):
        """(name, its how manieth) of each call that changes something."""
        log = self.work.parent / "trace"
        ran = self.fresh().run(*self.words, wrap=["strace", "-o", str(log)])
        assert ran.status == (1 if "broken" in self.case.words else 0), ran
        seen, calls = collections.Counter(), []
        for line in log.read_text().splitlines():
            name = CALL.match(line)
            if not name:
                continue
            seen[name[1]] += 1
            if CHANGES.match(line):
                calls.append((name[1], seen[name[1]]))
        assert len(calls) > 20
        return calls

    def injected(self, call, nth, what):
        store = self.fresh()
        ran = store.run(*self.words, wrap=["strace", "-o", "/dev/null", "-e", f"trace={call}",
                                           "-e", f"inject={call}:{what}:when={nth}"])
        return store, ran

    def afterwards(self, store, state):
        """abx finds nothing wrong; and whatever happened, the next change is made at once and cleans up."""
        if state[0].isdigit():
            assert store.run("provider", "verify", "demo").status == 0
        again = ["provider", "install", str(self.world / "v1"), "--yes", "--force", "--no-verify"]
        ran = store.run(*again)
        assert ran.status == 0, ran
        assert store.state() == ("1 data" if "data" in state else "1")
        for left in store.leftovers():
            os.utime(left, (1, 1), follow_symlinks=False)
        assert not store.leftovers() or store.run(*again).status == 0
        assert store.leftovers() == [] and not list(store.root.glob(".lock*"))


@pytest.mark.parametrize("name", CASES)
def test_killed_anywhere(world, tmp_path, name):
    case = CASES[name]
    runner = Runner(world, case, tmp_path / "home")
    states = collections.Counter()
    for call, nth in runner.calls():
        store, ran = runner.injected(call, nth, "signal=KILL")
        assert ran.status in (-9, 137), (call, nth, ran)
        state = store.state()
        assert state in (case.old, case.new), (call, nth, state)
        states[state] += 1
        runner.afterwards(store, state)
    assert states[case.old] and states[case.new], states       # both sides of the change were seen


@pytest.mark.parametrize("error, which", [("ENOSPC", FULL), ("EIO", BROKEN)])
@pytest.mark.parametrize("name", ["fresh", "replace", "rollback", "uninstall"])
def test_the_disk_fails(world, tmp_path, name, error, which):
    case = CASES[name]
    runner = Runner(world, case, tmp_path / "home")
    failed = 0
    for call, nth in runner.calls():
        if call not in which:
            continue
        store, ran = runner.injected(call, nth, f"error={error}")
        state = store.state()
        assert state == (case.old if ran.status else case.new), (call, nth, state, ran)
        if ran.status:
            failed += 1
            assert ran.status == 1 and b"[E8010]" in ran.err, (call, nth, ran)
        runner.afterwards(store, state)
    assert failed > 3


def test_without_exchange(world, tmp_path):
    """A file system that cannot exchange two folders: for an instant there is no
    plugin, and whoever looks next puts the old one back."""
    runner = Runner(world, CASES["replace"], tmp_path / "home")
    none = ["-e", "inject=renameat2:error=EINVAL"]
    log = tmp_path / "trace"
    ran = runner.fresh().run(*runner.words, wrap=["strace", "-o", str(log), *none])
    assert ran.status == 0, ran
    names = [CALL.match(line)[1] for line in log.read_text().splitlines() if re.match(r"rename(at)?\(|unlinkat\(|symlinkat\(", line)]
    absent = 0
    for call in set(names):
        for nth in range(1, names.count(call) + 1):
            store = runner.fresh()
            store.run(*runner.words, wrap=["strace", "-o", "/dev/null", *none, "-e", f"inject={call}:signal=KILL:when={nth}"])
            absent += store.state() == "absent"
            ran = store.run("provider", "list")
            assert ran.status == 0 and b"demo" in ran.out, (call, nth, ran)
            # The link `data` and the folder cannot change places here: any abx puts that right, too.
            assert store.state() in ("1 data", "2 data", "2"), (call, nth, store.state())
            runner.afterwards(store, "1 data")
    assert absent == 1
