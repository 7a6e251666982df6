"""toml-test: each document of the list for TOML 1.0 is read to the tree that its
tagged JSON has, or refused with its place. And Python's tomllib as a second
opinion on documents made up here."""

import datetime
import json
import math
import pathlib
import random
import subprocess
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def corpus():
    return pathlib.Path(subprocess.run([ROOT / "tests/corpora/fetch", "toml"], check=True, capture_output=True,
                                       text=True).stdout.strip())


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    program = tmp_path_factory.mktemp("toml") / "toml_suite"
    subprocess.run(["gcc", "-std=c11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
                    "-D_GNU_SOURCE", "-Isrc", "-o", program, "tests/unit/toml_suite.c"],
                   cwd=ROOT, check=True)

    def run(folder, names):
        done = subprocess.run([program, *names], cwd=folder, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return dict(zip(names, done.stdout.splitlines(), strict=True))
    return run


TIMES = {"datetime": datetime.datetime, "datetime-local": datetime.datetime, "date-local": datetime.date,
         "time-local": datetime.time}


def value(tagged):
    """What a tagged value stands for; (type, value), because 1 == 1.0 == True."""
    if isinstance(tagged, list):
        return [value(v) for v in tagged]
    if set(tagged) != {"type", "value"} or not isinstance(tagged["value"], str):
        return {k: value(v) for k, v in tagged.items()}
    kind, text = tagged["type"], tagged["value"]
    if kind in TIMES:
        return kind, TIMES[kind].fromisoformat(text.upper().replace(" ", "T").replace("Z", "+00:00"))
    if kind == "float":
        return kind, "nan" if math.isnan(float(text)) else float(text)
    return kind, int(text) if kind == "integer" else text


def test_every_case(corpus, read):
    names = [n for n in (corpus / "files-toml-1.0.0").read_text().split() if n.endswith(".toml")]
    assert [sum(n.startswith(k) for n in names) for k in ("valid/", "invalid/")] == [185, 371]
    said = read(corpus, names)

    def right(name, line):
        if name.startswith("invalid/"):
            return line.startswith("line ")
        want = json.loads((corpus / name).with_suffix(".json").read_text())
        return line.startswith("{") and value(json.loads(line)) == value(want)

    assert {name: line for name, line in said.items() if not right(name, line)} == {}


def tagged(v):
    """What tomllib read, in the shape that value() makes."""
    if isinstance(v, dict):
        return {k: tagged(x) for k, x in v.items()}
    if isinstance(v, list):
        return [tagged(x) for x in v]
    if isinstance(v, bool):
        return "bool", str(v).lower()
    if isinstance(v, datetime.datetime):
        return "datetime" if v.tzinfo else "datetime-local", v
    kinds = {str: "string", int: "integer", float: "float", datetime.date: "date-local", datetime.time: "time-local"}
    return kinds[type(v)], "nan" if v != v else v


# Pieces from which lines are put together; wrong ones are among them, and many
# a right one is wrong where it lands.
KEYS = ["a", "b", "a.b", "a.c", "b.c.d", '"a"', "'b'.c", '"x y"', "1.2", "-", '""', "a . b", "c", "é", '"\\u00e9"', '"""k"""']
VALUES = ["1", "-0", "+7", "0x1F", "0b2", "1_000", "1__0", "01", "9223372036854775808", "0xffffffffffffffffffff", "1.5", "1.", ".5",
          "1e5", "1e+05", "6.02_2E-3", "inf", "-nan", "1e400", "true", "True", '"s"', "'l\\'", '"\\t\\x"', '"\\U0001F600"',
          '"\\ud800"', '"""\nm\\\n   x"y""""', "'''\r\nl''l'''''", "[]", "[1, [2, 'x',],]", "[1,,2]", "[ # c\n 1\n, 2 ]", "{}", "{a=1,b.c=2}",
          "{a=1,a.b=2}", "{a={b=1},a.c=2}", "{a=1,}", "{a=1\n}", "2024-02-29", "2023-02-29", "07:32:00", "07:32", "24:00:00",
          "1979-05-27T07:32:00Z", "1979-05-27 07:32:00.123456-07:00", "1979-05-27t07:32:00", "1979-05-27 ", "", "nope"]


def document(rng):
    lines = []
    for _ in range(rng.randrange(1, 7)):
        kind, key = rng.random(), rng.choice(KEYS)
        if kind < 0.25:
            line = f"[{key}]"
        elif kind < 0.35:
            line = f"[[{key}]]"
        elif kind < 0.4:
            line = rng.choice(["# comment", "", "\t", "#\x01", "x", "[", "[a", "[[a]", "= 1", "a", "\ufeff", "# \x7f"])
        else:
            line = f"{key}{rng.choice(['=', ' = '])}{rng.choice(VALUES)}{rng.choice(['', '', ' # c', '  '])}"
        lines.append(line)
    return rng.choice(["\n", "\n", "\r\n"]).join(lines) + rng.choice(["", "\n", "\r"] if rng.random() < 0.1 else ["", "\n"])


def test_like_tomllib(read, tmp_path):
    rng = random.Random(1)
    texts = {f"{i}.toml": document(rng) for i in range(6000)}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode())
    said, wrong, good = read(tmp_path, list(texts)), {}, 0
    for name, text in texts.items():
        try:
            want = tagged(tomllib.loads((tmp_path / name).read_bytes().decode()))
            good += 1
        except ValueError:
            want = None
        got = value(json.loads(said[name])) if said[name].startswith("{") else None
        if got != want:
            wrong[text] = said[name], want
    assert wrong == {}
    assert 1000 < good < 5000       # both kinds are there
