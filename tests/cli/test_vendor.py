"""vendor/fetch.sh: what wins, what is refused, and each exit code, with small
pins and package clients that are scripts of this test."""

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tarball(word):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        info = tarfile.TarInfo("thing-1/word")
        info.size = len(word)
        tar.addfile(info, io.BytesIO(word.encode()))
    return out.getvalue()


NEW, OLD = tarball("new"), tarball("old")


def pin(name, version, data, file, client="apt:sid"):
    return f"{name} {version} {hashlib.sha256(data).hexdigest()} {file} {client} {name}={version}\n"


class House:
    """A vendor folder of its own, and a PATH with scripted clients in front."""

    def __init__(self, at):
        self.vendor = at / "vendor"
        (self.vendor / "dist").mkdir(parents=True)
        shutil.copy(ROOT / "vendor/fetch.sh", self.vendor)
        self.bin = at / "bin"
        self.bin.mkdir()
        self.asked = at / "asked"
        self.client("apt-get", "exit 100")
        self.client("python3", "exit 1")
        self.pins(pin("thing", "2", NEW, "thing_2.tar.gz") + pin("thing", "1", OLD, "thing_1.tar.gz", "apt:trixie"))

    def pins(self, text):
        (self.vendor / "pins").write_text("# name version sha256 file client what\n\n" + text)

    def client(self, name, script):
        path = self.bin / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.asked}\n{script}\n')
        path.chmod(0o755)

    def apt(self, versions):
        """An apt-get that has these versions of thing, {version: bytes}."""
        store = self.bin.parent / "store"
        store.mkdir()
        for version, data in versions.items():
            (store / f"thing_{version}.tar.gz").write_bytes(data)
        self.client("apt-get", f"""
            case "$*" in
            indextargets*) echo "mirror://here|Debian|Debian" ;;
            *update) ;;
            *download-only*) for last; do :; done; cp {store}/thing_"${{last#*=}}".tar.gz . ;;
            esac""")

    def drop(self, name, data):
        (self.vendor / "dist" / name).write_bytes(data)

    def fetch(self, *names, **env):
        return subprocess.run(["sh", self.vendor / "fetch.sh", *names], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60,
                              env={"PATH": f"{self.bin}:{os.environ['PATH']}", **env})

    def word(self):
        return (self.vendor / "src/thing/word").read_text()

    def clients_asked(self):
        return self.asked.read_text() if self.asked.exists() else ""


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def test_a_dropped_file_under_any_name_wins_over_the_network(house):
    house.apt({"2": NEW, "1": OLD})
    house.drop("whatever.bin", OLD)
    assert house.fetch().returncode == 0
    assert house.word() == "old"
    assert house.clients_asked() == ""


def test_of_two_dropped_files_the_first_pin_wins(house):
    house.drop("a", OLD)
    house.drop("b", NEW)
    assert house.fetch().returncode == 0
    assert house.word() == "new"


def test_the_first_pin_that_can_be_had_is_fetched(house):
    house.apt({"1": OLD})
    assert house.fetch().returncode == 0
    assert house.word() == "old"
    assert "thing=2" in house.clients_asked()


def test_a_second_run_asks_nobody(house):
    house.apt({"2": NEW})
    assert house.fetch().returncode == 0
    house.client("apt-get", "exit 100")
    house.asked.unlink()
    assert house.fetch().returncode == 0
    assert house.clients_asked() == ""
    assert house.word() == "new"


def test_each_name_by_itself(house):
    house.pins(pin("thing", "2", NEW, "thing_2.tar.gz") + pin("other", "1", OLD, "other_1.tar.gz"))
    house.drop("x", NEW)
    assert house.fetch("thing").returncode == 0
    assert house.fetch("other").returncode == 4
    assert house.fetch().returncode == 4
    assert house.word() == "new"


def test_offline_asks_nobody_and_is_4_naming_files_and_hashes(house):
    house.apt({"2": NEW})
    got = house.fetch(OFFLINE="1")
    assert got.returncode == 4
    assert house.clients_asked() == ""
    for data, name in ((NEW, "thing_2.tar.gz"), (OLD, "thing_1.tar.gz")):
        assert name in got.stderr
        assert hashlib.sha256(data).hexdigest() in got.stderr
    assert str(house.vendor / "dist") in got.stderr


def test_a_client_without_the_version_is_3(house):
    house.apt({})
    got = house.fetch()
    assert got.returncode == 3
    assert "no longer has the pinned version" in got.stderr
    assert hashlib.sha256(OLD).hexdigest() in got.stderr


def test_a_client_that_cannot_ask_is_4(house):
    assert house.fetch().returncode == 4


def test_a_file_that_was_tampered_with_is_refused(house):
    house.drop("thing_2.tar.gz", NEW + b"x")
    assert house.fetch(OFFLINE="1").returncode == 4
    assert not (house.vendor / "src/thing").exists()


def test_a_client_that_hands_out_other_bytes_is_refused(house):
    house.apt({"2": NEW + b"x", "1": OLD + b"x"})
    got = house.fetch()
    assert got.returncode == 3
    assert "not with the pinned SHA-256" in got.stderr
    assert not (house.vendor / "src/thing").exists()


def test_a_half_unpacked_folder_is_unpacked_again(house):
    house.drop("x", NEW)
    assert house.fetch().returncode == 0
    (house.vendor / "src/thing-2/.ok").unlink()
    (house.vendor / "src/thing-2/word").write_text("half")
    assert house.fetch().returncode == 0
    assert house.word() == "new"


@pytest.mark.parametrize("said, code", [
    ("ERROR: Could not find a version that satisfies the requirement thing==2 (from versions: 3, 4)", 3),
    ("ERROR: Could not find a version that satisfies the requirement thing==2 (from versions: none)", 4),
    ("ERROR: something else", 4),
])
def test_what_pip_said_decides(house, said, code):
    house.pins(pin("thing", "2", NEW, "thing-2.whl", "pip"))
    house.client("python3", f'case "$*" in *--version) exit 0 ;; esac; echo "{said}" >&2; exit 1')
    assert house.fetch().returncode == code


def test_our_mistakes_are_1(house):
    assert house.fetch("nothing").returncode == 1
    house.pins(pin("thing", "2", NEW, "thing_2.tar.gz", "carrier-pigeon"))
    assert house.fetch().returncode == 1
