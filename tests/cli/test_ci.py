""".ci/run and tools/setup, in a small tree whose make, clients and packages are
scripts of this test."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CMOCKA = "[==========] 3 test(s) run.\n[  PASSED  ] 3 test(s).\n"
CMOCKA_BAD = "[  PASSED  ] 2 test(s).\n[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] json_test\n\n 1 FAILED TEST(S)\n"


class Tree:
    def __init__(self, at):
        self.at = at / "clone"
        self.bin = at / "bin"
        self.bin.mkdir()
        for name in (".ci/run", "tools/setup", "tools/requirements-tests.txt"):
            (self.at / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.at / name)

    def script(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)

    def run(self, *command, **env):
        return subprocess.run(command, cwd=self.at, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60, env={"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.at), **env})


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


# ---- .ci/run ----


def ci(tree, check=(CMOCKA, 0), notls=("", 0), e2e=("", 0)):
    tree.script(tree.at / "tools/setup", "exit 0\n")
    for name, (said, code) in (("check", check), ("notls", notls), ("e2e", e2e)):
        (tree.bin.parent / name).write_text(said)
        tree.script(tree.bin.parent / f"{name}.sh", f"cat {tree.bin.parent / name}; exit {code}\n")
    tree.script(tree.bin / "make", f"""case "$*" in
        check) exec {tree.bin.parent}/check.sh ;;
        "TLS=none check-notls") exec {tree.bin.parent}/notls.sh ;;
        e2e) exec {tree.bin.parent}/e2e.sh ;;
        esac; exit 9\n""")
    got = tree.run(".ci/run")
    return got.returncode, got.stdout.splitlines()


@pytest.mark.parametrize("check, notls, e2e, closing, code", [
    ((CMOCKA, 0), (CMOCKA + "58 passed in 2.26s\n", 0), ("1 passed in 75.00s (0:01:15)\n", 0), "65 passed, 0 failed", 0),
    ((CMOCKA_BAD, 2), (CMOCKA, 0), (CMOCKA, 0), "8 passed, 1 failed", 1),
    ((CMOCKA, 0), ("2 failed, 5 passed, 1 warning in 0.10s\n", 2), ("", 0), "8 passed, 2 failed", 1),
    ((CMOCKA, 0), ("1 passed, 3 errors in 0.10s\n", 2), ("", 0), "4 passed, 3 failed", 1),
    # A failure that was told but not by the exit status counts.
    ((CMOCKA_BAD, 0), ("", 0), ("", 0), "2 passed, 1 failed", 1),
    # A stage that breaks without a test to blame is a failure.
    ((CMOCKA, 0), ("cc: error\n", 2), ("", 0), "3 passed, 1 failed", 1),
    (("", 0), ("no tests ran in 0.01s\n", 5), ("", 0), "0 passed, 1 failed", 1),
    # So is a run in which nothing ran.
    (("", 0), ("", 0), ("", 0), "0 passed, 0 failed", 1),
])
def test_ci_adds_up(tree, check, notls, e2e, closing, code):
    got, lines = ci(tree, check, notls, e2e)
    assert (lines[-1], got) == (closing, code)


def test_ci_shows_the_end_of_a_failed_log_and_goes_on(tree):
    _, lines = ci(tree, check=("a\nthe reason\n", 1), notls=(CMOCKA, 0))
    assert "    | the reason" in lines
    assert [line.split()[:2] for line in lines if not line.startswith(" ")][:-1] == [
        ["ok", "setup"], ["FAILED", "check"], ["ok", "check-notls"], ["ok", "e2e"]]
    assert (tree.at / "build/ci/check.log").read_text() == "a\nthe reason\n"


def test_ci_takes_the_sources_that_lie_beside_the_clone(tree):
    dist = tree.at.parent / "shared/dist"
    dist.mkdir(parents=True)
    (dist / "zlib").write_text("new")
    (dist / "mbedtls").write_text("new")
    (tree.at / "vendor/dist").mkdir(parents=True)
    (tree.at / "vendor/dist/zlib").write_text("old")
    ci(tree)
    assert (tree.at / "vendor/dist/zlib").read_text() == "old"
    assert (tree.at / "vendor/dist/mbedtls").read_text() == "new"


# ---- tools/setup ----


def setup(tree, *args, installed="", user=0, apt="exit 0", **env):
    asked = tree.bin.parent / "asked"
    asked.touch()
    tree.script(tree.bin / "dpkg-query", f"for p in {installed or '-'}; do echo installed $p; done\n")
    tree.script(tree.bin / "id", f"echo {user}\n")
    tree.script(tree.bin / "apt-get", f'echo "$*" >> {asked}\n{apt}\n')
    return tree.run("sh", "tools/setup", *args, **env), asked.read_text()


def every_package(tree):
    got, _ = setup(tree, user=1000)
    return got.stderr.split("install: ", 1)[1].strip()


def test_setup_does_nothing_when_all_is_there(tree):
    got, asked = setup(tree, installed=every_package(tree))
    assert (got.returncode, got.stdout, got.stderr, asked) == (0, "", "", "")


def test_setup_says_and_installs_what_is_missing_alone(tree):
    there = every_package(tree).split()
    there.remove("musl-tools")
    got, asked = setup(tree, installed=" ".join(there))
    assert (got.returncode, got.stdout) == (0, "setup: installing: musl-tools\n")
    assert asked.splitlines()[-1].endswith("install --no-install-recommends musl-tools")


def test_setup_needs_root_only_to_install(tree):
    got, asked = setup(tree, user=1000)
    assert got.returncode == 1
    assert "must be root to install: " in got.stderr and "musl-tools" in got.stderr
    assert asked == ""


def test_setup_says_when_installing_fails(tree):
    got, asked = setup(tree, apt="exit 100")
    assert got.returncode == 1
    assert "setup: apt-get update failed" in got.stderr


def test_setup_leaves_no_policy_file(tree):
    policy = Path("/usr/sbin/policy-rc.d")
    before = policy.exists() and policy.read_bytes()
    setup(tree)
    assert (policy.exists() and policy.read_bytes()) == before


def test_setup_refuses_other_words(tree):
    got, asked = setup(tree, "--test")
    assert (got.returncode, asked) == (2, "")
    assert got.stderr.startswith("usage: ")
