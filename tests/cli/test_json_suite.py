"""JSONTestSuite: every y_ case is read, every n_ case refused, and of the i_
cases, which the RFC leaves open, those that are named here are read."""

import json
import pathlib
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Numbers of any size are read (JSON_REAL keeps their text). What is not UTF-8,
# half of a surrogate pair, a byte order mark and 500 levels are refused.
READ = {
    "i_number_double_huge_neg_exp", "i_number_huge_exp", "i_number_neg_int_huge_exp",
    "i_number_pos_double_huge_exp", "i_number_real_neg_overflow", "i_number_real_pos_overflow",
    "i_number_real_underflow", "i_number_too_big_neg_int", "i_number_too_big_pos_int",
    "i_number_very_big_negative_int",
}

# The package lost the bytes of these: it holds U+FFFD in their place. Here is
# what their names say.
LOST = {
    "i_string_UTF-16LE_with_BOM": b'\xff\xfe[\x00"\x00\xe9\x00"\x00]\x00',
    "i_string_UTF-8_invalid_sequence": b'["\xe6\x97\xa5\xd1\x88\xfa"]',
    "i_string_UTF8_surrogate_U+D800": b'["\xed\xa0\x80"]',
    "i_string_invalid_utf-8": b'["\xff"]',
    "i_string_iso_latin_1": b'["\xe9"]',
    "i_string_lone_utf8_continuation_byte": b'["\x81"]',
    "i_string_not_in_unicode_range": b'["\xf4\xbf\xbf\xbf"]',
    "i_string_overlong_sequence_2_bytes": b'["\xc0\xaf"]',
    "i_string_overlong_sequence_6_bytes": b'["\xfc\x83\xbf\xbf\xbf\xbf"]',
    "i_string_overlong_sequence_6_bytes_null": b'["\xfc\x80\x80\x80\x80\x80"]',
    "i_string_truncated-utf-8": b'["\xe0\xff"]',
    "i_string_utf16BE_no_BOM": b'\x00[\x00"\x00\xe9\x00"\x00]',
    "i_string_utf16LE_no_BOM": b'[\x00"\x00\xe9\x00"\x00]\x00',
    "n_array_a_invalid_utf8": b'[a\xe5]',
    "n_array_invalid_utf8": b'[\xff]',
    "n_number_invalid-utf-8-in-bigger-int": b'[123\xe5]',
    "n_number_invalid-utf-8-in-exponent": b'[1e1\xe5]',
    "n_number_invalid-utf-8-in-int": b'[0\xe5]\n',
    "n_number_real_with_invalid_utf8_after_e": b'[1e\xe5]',
    "n_object_lone_continuation_byte_in_key_and_trailing_comma": b'{"\xb9":"0",}',
    "n_string_invalid-utf-8-in-escape": b'["\\u\xe5"]',
    "n_string_invalid_utf8_after_escape": b'["\\\xe5"]',
    "n_structure_incomplete_UTF8_BOM": b'\xef\xbb{}',
    "n_structure_lone-invalid-utf-8": b'\xe5',
    "n_structure_single_eacute": b'\xe9',
}


@pytest.fixture(scope="module")
def cases():
    path = subprocess.run([ROOT / "tests/corpora/fetch", "json"], check=True, capture_output=True, text=True).stdout.strip()
    with tarfile.open(path) as archive:
        text = archive.extractfile("package/data/parsing.js").read().decode()
    rows = json.loads(text.split("export default", 1)[1].strip().rstrip(";"))
    return {row["name"].removesuffix(".json"): row["input"] for row in rows}


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    program = tmp_path_factory.mktemp("json") / "json_suite"
    subprocess.run(["gcc", "-std=c11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
                    "-D_GNU_SOURCE", "-Isrc", "-o", program, "tests/unit/json_suite.c"],
                   cwd=ROOT, check=True)
    return program


def test_the_corpus_is_whole(cases):
    assert [sum(name.startswith(kind) for name in cases) for kind in ("y_", "n_", "i_")] == [95, 188, 35]
    assert {name for name, text in cases.items() if "\ufffd" in text} == set(LOST)
    assert READ <= set(cases)


def test_every_case(cases, reader, tmp_path):
    for name, text in cases.items():
        (tmp_path / name).write_bytes(LOST.get(name, text.encode()))
    run = subprocess.run([reader, *cases], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    said = dict(zip(cases, run.stdout.splitlines(), strict=True))

    def right(name, line):
        return line == "read" if name.startswith("y_") or name in READ else line.startswith("JSON: ")

    assert {name: line for name, line in said.items() if not right(name, line)} == {}
