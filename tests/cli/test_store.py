"""Several programs on one store, and stores that cannot be written."""

import os
import signal
import subprocess
import time

import pytest

from conftest import BINARY
from plugin_store import WORKS, Store, write_plugin

SLOW = "sleep 2\n" + WORKS


@pytest.fixture
def store(tmp_path):
    for version in ("1", "2"):
        write_plugin(tmp_path / f"v{version}", version, extra=version == "2")
    (tmp_path / "home").mkdir()
    return Store(tmp_path / "home")


def install(store, version, *more):
    return ["provider", "install", str(store.home.parent / f"v{version}"), "--yes", *more]


def found(path):
    """A lookup goes through a path name by name, and an exchange may come in
    between: one that misses is repeated, and three misses are a hole."""
    return any(path.exists() for _ in range(3))


def test_many_at_once(store):
    assert store.run(*install(store, 1)).status == 0
    store.put_data()
    running = [store.run.start(*install(store, 1 + i % 2, "--force", "--no-verify")) for i in range(8)]
    looks = 0
    while any(p.poll() is None for p in running):
        # at each instant there is one of the two, with its data
        for name in (".abx-install.json", "abx-provider.toml", "data/state"):
            assert found(store.root / "demo" / name), name
        looks += 1
    for p in running:
        out, err = p.communicate()
        assert p.returncode == 0, err
    assert looks > 3 and store.state() in ("1 data", "2 data")
    assert (store.root / "demo/data/state").read_text() == "kept"
    assert store.leftovers() == [] and not list(store.root.glob(".lock*"))


def test_one_of_two_fresh_ones_is_told(store):
    running = [store.run.start(*install(store, v, "--no-verify")) for v in (1, 2)]
    results = sorted((p.wait(), b"[E8003]" in p.communicate()[1]) for p in running)
    assert results == [(0, False), (1, True)]
    assert store.state() in ("1", "2")


def test_a_holder_is_waited_for(store):
    """Also one whose process has no number here: it is in a pid namespace of its own."""
    write_plugin(store.home.parent / "v9", "9", SLOW)
    apart = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    slow = subprocess.Popen([*apart, BINARY, *install(store, 9)], env=store.run.environment(),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not (store.root / ".lock").exists():
        assert slow.poll() is None, slow.communicate()
        time.sleep(0.01)
    assert (store.root / ".lock").read_text().isdigit()
    waiting = store.run.start(*install(store, 2, "--force", "--no-verify"))
    second = store.run.start(*install(store, 2, "--force", "--no-verify"))
    time.sleep(0.3)
    assert waiting.poll() is None and second.poll() is None
    start = time.monotonic()
    second.send_signal(signal.SIGINT)
    assert second.wait(10) == 130 and time.monotonic() - start < 5
    assert waiting.wait(20) == 0 and slow.wait() == 0, waiting.communicate()
    assert store.state() == "2" and not list(store.root.glob(".lock*"))


def in_mounts(store, script):
    """A script in a mount namespace, with $abx, $store, $plugins; its output."""
    env = {**store.run.environment(), "abx": BINARY, "store": str(store.root), "plugins": str(store.home.parent)}
    return subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", script], env=env,
                          capture_output=True, text=True)


def test_a_full_disk(store):
    write_plugin(store.home.parent / "v2", "2")
    (store.home.parent / "v2/big").write_bytes(os.urandom(900_000))
    (store.root).mkdir(parents=True)
    ran = in_mounts(store, """
        mount -t tmpfs -o size=400k none "$store"
        "$abx" provider install "$plugins/v1" --yes > /dev/null
        mkdir -p "$store/demo/data"; echo kept > "$store/demo/data/state"
        code=0; "$abx" provider install "$plugins/v2" --yes --force || code=$?
        [ $code = 1 ]
        "$abx" provider verify demo > /dev/null
        [ "$(cat "$store/demo/data/state")" = kept ]
        [ -z "$(ls -A "$store/.staging" "$store/.trash" | grep -v :)" ]
        ls -A "$store" | grep lock && exit 9
        i=0; while [ $i -lt 400 ]; do echo > "$store/fill$i" 2> /dev/null || break; i=$((i + 1)); done
        head -c 1000000 /dev/zero > "$store/fill" 2> /dev/null || true
        code=0; "$abx" provider uninstall demo --purge > /dev/null || code=$?       # makes room
        [ $code = 0 ] && ! [ -e "$store/demo" ]
    """)
    assert ran.returncode == 0 and "[E8010]" in ran.stderr and "No space left" in ran.stderr, ran


def test_a_store_that_cannot_be_written(store):
    assert store.run(*install(store, 1)).status == 0
    before = sorted(str(p) for p in store.root.rglob("*"))
    ran = in_mounts(store, """
        mount --bind "$store" "$store"; mount -o remount,ro,bind "$store"
        "$abx" provider verify demo > /dev/null
        "$abx" provider list | grep -q demo
        for words in "install $plugins/v2 --yes --force" "uninstall demo" "rollback demo"; do
            code=0; "$abx" provider $words > /dev/null || code=$?
            [ $code = 1 ]
        done
    """)
    assert ran.returncode == 0 and ran.stderr.count("[E8010]") == 3 and "Read-only" in ran.stderr, ran
    assert sorted(str(p) for p in store.root.rglob("*")) == before


@pytest.mark.parametrize("to", ["../../../shared/data", "../.staging/../../../shared/data", "../demo/../../../shared/data"])
def test_a_link_in_the_place_of_data_is_not_moved(store, to):
    """However it reads, what it leads to is somebody's own."""
    assert store.run(*install(store, 1, "--no-verify")).status == 0
    shared = store.home / "shared/data"
    shared.mkdir(parents=True)
    (shared / "state").write_text("kept")
    (store.root / "demo/data").symlink_to(to)
    assert store.run("provider", "verify", "demo").status == 1      # it is no folder
    assert store.run(*install(store, 2, "--force", "--no-verify")).status == 0
    assert store.run("provider", "rollback", "demo").status == 1
    for purge in ([], ["--purge"]):
        assert store.run("provider", "uninstall", "demo", *purge).status == 0
        assert (shared / "state").read_text() == "kept"


def test_what_does_not_start_leaves_nothing(store):
    def files():
        return sorted(p.name for p in (store.root / ".files").iterdir())

    write_plugin(store.home.parent / "v9", "9", "exit 1\n")
    assert store.run(*install(store, 9)).status == 1
    assert files() == [] and store.state() == "absent"
    assert store.run(*install(store, 1)).status == 0
    before = files()
    assert store.run(*install(store, 9, "--force")).status == 1
    assert files() == before and store.state() == "1"


def test_the_mode_of_what_a_link_leads_to_is_left_alone(store, tmp_path):
    """A link in the place of the store or of `data` may lead to /tmp."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    assert store.run(*install(store, 1)).status == 0
    data = store.root / "demo/data"
    if data.exists():
        data.rmdir()
    data.symlink_to(shared)
    store.run("provider", "doctor", "demo")
    assert shared.stat().st_mode & 0o7777 == 0o1777
    store.root.rename(tmp_path / "aside")
    store.root.symlink_to(shared)
    store.run(*install(store, 1))
    assert shared.stat().st_mode & 0o7777 == 0o1777
