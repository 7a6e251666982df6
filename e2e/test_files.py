"""Files there and back: names, modes, sizes, what is replaced and what is left behind."""

import os
import shlex
import stat
import time

import pytest

NAMES = {
    "plain": "plain.txt",
    "unicode": "\u4f60\u597d \u4e16\u754c/q\".txt",
    "dollar": "a$HOME $b ${c} $.txt",
    "spaces": " lead and trail ",
    "newline": "new\nline",
    "quotes": "it's \"q\" `x` \\ \\n",
    "dashes": "-rf",
    "glob": "*?[a]{b}",
    "controls": "\x01\x1b[31m\x7f",
    "tilde": "~",
    "percent": "%2e%00;filename=x; &=+#?",
    "long": "n" * 240,
    "emoji": "\U0001f600\u202e",
}


def folder(box):
    """A new folder in the sandbox for one test."""
    path = f"/tmp/f-{time.monotonic_ns()}"
    box.sh(f"mkdir {path}")
    return path


def put(box, tmp_path, data, target, mode=None):
    local = tmp_path / "local"
    local.write_bytes(data)
    if mode is not None:
        local.chmod(mode)
    return box.abx("--json", "sandbox", "upload", box.id, str(local), target)


def get(box, tmp_path, source):
    back = tmp_path / "back"
    done = box.abx("--json", "sandbox", "download", box.id, source, str(back))
    return done, back.read_bytes() if back.exists() else None


def files_in(box, path):
    return box.sh(f"find {shlex.quote(path)} -mindepth 1 -print0 | tr -cd '\\0' | wc -c").strip()


@pytest.mark.parametrize("name", NAMES)
def test_name(box, tmp_path, name):
    where = folder(box)
    target = f"{where}/{NAMES[name]}"
    data = os.urandom(1000) + b"\0\r\n\xff"
    done = put(box, tmp_path, data, target)
    assert done.json() == {"path": target, "size": len(data)}
    assert int(box.sh(f"wc -c < {shlex.quote(target)}")) == len(data)
    assert files_in(box, where) == ("2" if "/" in NAMES[name] else "1")
    done, back = get(box, tmp_path, target)
    assert done.json()["size"] == len(data)
    assert back == data


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 5_000_000])
def test_size(box, tmp_path, size):
    where, data = folder(box), os.urandom(size)
    assert put(box, tmp_path, data, f"{where}/f").json()["size"] == size
    done, back = get(box, tmp_path, f"{where}/f")
    assert done.code == 0 and back == data


def test_forty_megabytes(box, tmp_path):
    """More than the daemon keeps in memory, and more than abx may."""
    where, data = folder(box), os.urandom(40_000_000)
    assert put(box, tmp_path, data, f"{where}/f").code == 0
    done, back = get(box, tmp_path, f"{where}/f")
    assert done.code == 0 and back == data
    box.sh(f"rm -rf {where}")


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o640])
def test_new_file_has_the_local_mode(box, tmp_path, mode):
    where = folder(box)
    assert put(box, tmp_path, b"x", f"{where}/f", mode).code == 0
    assert box.sh(f"stat -c %a {where}/f").strip() == f"{mode:o}"


@pytest.mark.parametrize("mode", ["600", "751", "444"])
def test_existing_file_keeps_its_mode(box, tmp_path, mode):
    where = folder(box)
    box.sh(f"echo old > {where}/f && chmod {mode} {where}/f")
    assert put(box, tmp_path, b"new", f"{where}/f", 0o644).code == 0
    assert box.sh(f"stat -c %a {where}/f").strip() == mode
    assert box.sh(f"cat {where}/f").strip() == "new"


def test_existing_file_is_replaced_whole(box, tmp_path):
    """Whoever holds the old file open goes on seeing the old bytes: it was renamed over, not rewritten."""
    where = folder(box)
    box.sh(f"echo old-content > {where}/f; ln {where}/f {where}/held")
    assert put(box, tmp_path, b"new\n", f"{where}/f").code == 0
    assert box.sh(f"cat {where}/held {where}/f") == "old-content\nnew\n"
    assert files_in(box, where) == "2"


def test_folders_are_made(box, tmp_path):
    where = folder(box)
    assert put(box, tmp_path, b"x", f"{where}/a/b c/d/f").code == 0
    assert get(box, tmp_path, f"{where}/a/b c/d/f")[1] == b"x"


def test_onto_a_folder(box, tmp_path):
    where = folder(box)
    box.sh(f"mkdir {where}/d")
    done = put(box, tmp_path, b"x", f"{where}/d")
    assert done.json() == {"path": f"{where}/d/local", "size": 1}
    assert files_in(box, where) == "2"


def test_where_nothing_can_be_written(box, tmp_path):
    done = put(box, tmp_path, b"x", "/proc/nothing/f")
    assert done.code != 0 and done.error()["message"], done


def test_below_a_file(box, tmp_path):
    where = folder(box)
    box.sh(f"echo x > {where}/f")
    done = put(box, tmp_path, b"x", f"{where}/f/g")
    assert done.code != 0
    assert files_in(box, where) == "1"


def test_local_file_that_is_not_there(box, tmp_path):
    done = box.abx("--json", "sandbox", "upload", box.id, str(tmp_path / "none"), "/tmp/none")
    assert done.code != 0 and "none" in done.error()["message"], done


def test_download_of_nothing(box, tmp_path):
    done, back = get(box, tmp_path, "/no/such/file")
    assert done.code != 0 and back is None, done
    assert "/no/such/file" in done.error()["message"]


def test_download_of_a_folder(box, tmp_path):
    where = folder(box)
    box.sh(f"mkdir {where}/d; printf new > {where}/d/f")
    done = box.abx("--json", "sandbox", "download", box.id, where, str(tmp_path / "back"))
    assert done.json()["files"] == 1 and (tmp_path / "back/d/f").read_bytes() == b"new", done


def test_failed_download_leaves_the_old_file(box, tmp_path):
    (tmp_path / "back").write_bytes(b"old")
    done, back = get(box, tmp_path, "/no/such/file")
    assert done.code != 0 and back == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["back", "home"]


def test_download_replaces_by_rename(box, tmp_path):
    (tmp_path / "back").write_bytes(b"old")
    os.link(tmp_path / "back", tmp_path / "held")
    where = folder(box)
    box.sh(f"printf new > {where}/f")
    done, back = get(box, tmp_path, f"{where}/f")
    assert done.code == 0 and back == b"new"
    assert (tmp_path / "held").read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["back", "held", "home"]


def test_download_to_stdout(box):
    where = folder(box)
    box.sh(f"printf 'a\\nb' > {where}/f")
    done = box.abx("sandbox", "download", box.id, f"{where}/f", "-")
    assert (done.code, done.out) == (0, b"a\nb"), done


def test_downloaded_file_has_its_mode(box, tmp_path):
    where = folder(box)
    box.sh(f"echo >{where}/f; chmod 4751 {where}/f")
    done, _ = get(box, tmp_path, f"{where}/f")
    assert done.code == 0
    assert stat.S_IMODE((tmp_path / "back").stat().st_mode) == 0o751


def test_nothing_is_left_after_failures(box, tmp_path):
    before = box.sh("find / -xdev -name '*.abx*' -o -xdev -name '.abx*' | sort")
    put(box, tmp_path, b"x", "/proc/nothing/f")
    put(box, tmp_path, b"x", "/tmp")
    assert box.sh("find / -xdev -name '*.abx*' -o -xdev -name '.abx*' | sort") == before
