"""tests/vectors/run: the files of any folder, each row that is not the other
host's named, and the sum in the last line."""

import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = ROOT / "tests" / "vectors" / "run"


def run(*args, cwd=ROOT):
    done = subprocess.run([RUN, *args], cwd=cwd, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_all_that_are_here():
    status, lines, err = run()
    assert (status, lines[-1]) == (0, "1212 passed, 0 failed"), err + "\n".join(lines)
    assert lines[-2] == "13 files, 0 rows skipped"
    table = (ROOT / "docs" / "differences.md").read_text()
    named = {int(n) for line in lines for n in re.findall(r"row (\d+) of docs/differences\.md", line)}
    assert named and all(f"\n| {n} |" in table for n in named)


def test_another_folder(tmp_path):
    (tmp_path / "paths.json").write_text(json.dumps([
        {"path": "a/b", "ok": True}, {"path": "../a", "ok": False}, {"path": "a//b", "ok": True}]))
    (tmp_path / "versions.json").write_text(json.dumps([
        {"version": "1.0", "spec": ">=1", "result": True}, {"version": "1.0", "spec": ">1, x", "result": False}]))
    status, lines, err = run(tmp_path.name, cwd=tmp_path.parent)
    assert (status, lines[-1]) == (1, "4 passed, 1 failed"), err
    assert lines[0].startswith('paths: row 3, "a//b": FAILED: a//b: ')
    assert lines[2] == 'versions: row 2, "1.0": abx answers otherwise, row 4 of docs/differences.md'


def test_what_cannot_be_run(tmp_path):
    assert run(str(tmp_path / "nowhere"))[0] == 2
    (tmp_path / "unheard.json").write_text("[]")
    (tmp_path / "refs.json").write_text("[{]")
    status, lines, _ = run(str(tmp_path))
    assert (status, lines[-1]) == (1, "0 passed, 2 failed")
    assert "refs.json: FAILED: " in lines[0] and "unheard.json: FAILED: nothing is known of such vectors" in lines[1]
