"""The table of src/data/casefold_table.h is what Python's str.casefold() has."""
import hashlib
import pathlib
import re
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parents[2]


def table():
    text = (ROOT / "src/data/casefold_table.h").read_text()
    folded = {}
    for first, last, step, delta in re.findall(r"\{(0x\w+), (0x\w+), (\d+), (-?\d+)\}", text):
        for c in range(int(first, 16), int(last, 16) + 1, int(step)):
            folded[c] = [c + int(delta)]
    for c, to in re.findall(r"\{(0x\w+), \{([^}]*)\}\}", text):
        folded[int(c, 16)] = [int(x, 16) for x in to.split(",") if int(x, 16)]
    return re.search(r"Unicode ([\d.]+)", text).group(1), folded


def test_it_is_pythons():
    version, folded = table()
    assert len(folded) > 1400
    for c, to in folded.items():
        assert chr(c).casefold() == "".join(map(chr, to)), hex(c)
    # A newer Unicode than the table's may know more letters, and none otherwise.
    if unicodedata.unidata_version == version:
        assert {c for c in range(0x110000) if chr(c).casefold() != chr(c)} == set(folded)


def test_the_code_reads_it_so():
    lines = "".join("%x %s\n" % (c, " ".join("%x" % x for x in to)) for c, to in sorted(table()[1].items()))
    digest = hashlib.sha256(lines.encode()).hexdigest()
    assert digest in (ROOT / "tests/unit/casefold_test.c").read_text(), digest
