"""The binary itself: what kind of file it is, what it says of itself, and that
two folders give the same bytes."""

import gzip
import json
import os
import re
import shutil
import ssl
import struct
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ABX = Path(os.environ.get("ABX_TEST_BINARY", ROOT / "abx"))
TLS = os.environ.get("ABX_TEST_TLS", "mbedtls") != "none"

ET_DYN, EM_X86_64 = 3, 62
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 1, 2, 3, 0x6474E551, 0x6474E552
PF_X, PF_W = 1, 2
DT_NEEDED, DT_RELASZ, DT_TEXTREL, DT_BIND_NOW, DT_FLAGS, DT_RELR, DT_FLAGS_1 = 1, 8, 22, 24, 30, 36, 0x6FFFFFFB
DF_BIND_NOW, DF_1_NOW, DF_1_PIE = 8, 1, 0x08000000


class Elf:
    """A little-endian ELF64 file (System V ABI, "Object Files")."""

    def __init__(self, path):
        self.data = path.read_bytes()
        assert self.data[:6] == b"\x7fELF\x02\x01"
        (self.type, self.machine, _, _, phoff, _, _, _, phentsize, phnum, _, self.sections, _) = \
            struct.unpack_from("<HHIQQQIHHHHHH", self.data, 16)
        self.segments = [struct.unpack_from("<IIQQQQQQ", self.data, phoff + i * phentsize) for i in range(phnum)]

    def segment_types(self):
        return [s[0] for s in self.segments]

    def dynamic(self):
        tags = {}
        for kind, _, offset, _, _, size, _, _ in self.segments:
            if kind == PT_DYNAMIC:
                for at in range(offset, offset + size, 16):
                    tag, value = struct.unpack_from("<qQ", self.data, at)
                    if tag == 0:
                        break
                    tags.setdefault(tag, []).append(value)
        return tags


@pytest.fixture(scope="module")
def elf():
    return Elf(ABX)


def test_it_is_a_static_pie(elf):
    assert (elf.type, elf.machine) == (ET_DYN, EM_X86_64)
    assert PT_DYNAMIC in elf.segment_types()
    assert PT_INTERP not in elf.segment_types()
    assert DT_NEEDED not in elf.dynamic()
    assert elf.dynamic()[DT_FLAGS_1][0] & DF_1_PIE


def test_full_relro(elf):
    dynamic = elf.dynamic()
    assert PT_GNU_RELRO in elf.segment_types()
    assert dynamic.get(DT_FLAGS, [0])[0] & DF_BIND_NOW or DT_BIND_NOW in dynamic
    assert dynamic[DT_FLAGS_1][0] & DF_1_NOW
    assert DT_TEXTREL not in dynamic


def test_what_is_never_written_again_is_read_only_while_it_runs(elf):
    with subprocess.Popen([ABX, "provider", "serve", "opensandbox"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        child.stdin.flush()
        assert child.stdout.readline()
        lines = [line.split() for line in Path(f"/proc/{child.pid}/maps").read_text().splitlines()]
        child.stdin.close()
    ranges = [([int(x, 16) for x in line[0].split("-")], line[1]) for line in lines if line[-1] == str(ABX)]
    base = min(start for (start, _), _ in ranges)
    (_, _, _, at, _, _, size, _), = [s for s in elf.segments if s[0] == PT_GNU_RELRO]
    for page in range(base + at, base + at + size, 4096):
        assert [rights for (start, end), rights in ranges if start <= page < end] == ["r--p"]
    assert [rights for _, rights in ranges].count("rw-p") == 1


def test_nothing_is_writable_and_executable(elf):
    stacks = [s for s in elf.segments if s[0] == PT_GNU_STACK]
    assert len(stacks) == 1
    assert not stacks[0][1] & PF_X
    for kind, flags, *_ in elf.segments:
        assert kind != PT_LOAD or flags & (PF_W | PF_X) != (PF_W | PF_X)


def test_pointers_in_data_are_relocated_from_the_packed_table(elf):
    assert DT_RELR in elf.dynamic()
    assert elf.dynamic().get(DT_RELASZ, [0]) == [0]


def test_it_is_stripped_and_names_no_folder_of_this_machine(elf):
    # No table of sections, and no symbols or anything else behind what is loaded.
    assert elf.sections == 0
    assert len(elf.data) == max(offset + size for kind, _, offset, _, _, size, _, _ in elf.segments if kind == PT_LOAD)
    assert str(ROOT).encode() not in elf.data
    assert (os.environ.get("HOME", "/root") + "/").encode() not in elf.data


def test_it_is_small(elf):
    # TLS and the roots are 185 KB of the whole.
    assert len(elf.data) <= (1_000_000 if TLS else 810_000)


def abx(*args, **more):
    return subprocess.run([ABX, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=20, **more)


def commit():
    """What git says of this folder, or "unknown" where it is no checkout."""
    def git(*args):
        return subprocess.run(["git", "-C", ROOT, *args], capture_output=True, text=True)
    if git("rev-parse", "--show-prefix").stdout != "\n":
        return "unknown"
    return git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*").stdout.strip()


def test_version_json():
    got = abx("version", "--json")
    assert (got.returncode, got.stderr) == (0, b"")
    doc = json.loads(got.stdout)
    assert re.fullmatch(r"\d+\.\d+\.\d+", doc["version"])
    assert doc["output_version"] == 1
    assert doc["commit"] == commit()
    assert re.fullmatch(r"musl 1\.\d+\.\d+", doc["libc"])
    assert doc["target"] == "x86_64-linux-musl"
    assert re.fullmatch(r"1\.\d+(\.\d+)?", doc["zlib"])
    if TLS:
        assert re.fullmatch(r"Mbed TLS 3\.\d+\.\d+", doc["tls"])
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", doc["ca_date"])
    else:
        assert (doc["tls"], doc["ca_date"]) == ("none", "none")


def test_it_runs_where_there_is_nothing(tmp_path):
    shutil.copy(ABX, tmp_path / "abx")
    got = subprocess.run(["unshare", "--map-root-user", f"--root={tmp_path}", "/abx", "version"],
                         env={"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    assert got.returncode == 0, got.stderr
    assert b"0.1.0" in got.stdout
    assert os.listdir(tmp_path) == ["abx"]


def elements(data):
    """Those of DER that stand one behind the other: tag, all of it, its contents."""
    found, at = [], 0
    while at < len(data):
        size, head = data[at + 1], 2
        if size & 0x80:
            head += size & 0x7f
            size = int.from_bytes(data[at + 2:at + head], "big")
        found.append((data[at], data[at:at + head + size], data[at + head:at + head + size]))
        at += head + size
    return found


def element(tag, body):
    size = len(body)
    return bytes([tag]) + (bytes([size]) if size < 0x80 else b"\x81" + bytes([size]) if size < 0x100
                           else struct.pack(">BH", 0x82, size)) + body


def reduced(der):
    """A certificate without what vendor/README.md leaves out."""
    tbs, algorithm, _ = elements(elements(der)[0][2])
    body = b""
    for tag, whole, inside in elements(tbs[2]):
        if tag == 0x02:
            whole = b"\x02\x01\x01"
        if tag == 0xa3:
            all_of = [(whole, elements(inside)) for _, whole, inside in elements(elements(inside)[0][2])]
            keep = b"".join(whole for whole, parts in all_of
                            if parts[0][2] in (b"\x55\x1d\x0f", b"\x55\x1d\x13", b"\x55\x1d\x1e", b"\x55\x1d\x25")
                            or parts[1][0] == 0x01)
            whole = element(0xa3, element(0x30, keep)) if keep else b""
        body += whole
    return element(0x30, element(0x30, body) + algorithm[1] + b"\x03\x02\x00\x00")


def test_the_roots_are_those_of_the_bundle():
    if not TLS:
        assert not (ROOT / "build-notls/gen/roots_data.h").exists()
        return
    text = (ROOT / "build/gen/roots_data.h").read_text()
    facts = dict(re.findall(r"#define ROOTS_(\w+) (.+)", text))
    raw = gzip.decompress(bytes(map(int, re.findall(r"(\d+),", text))))
    pem = (ROOT / "vendor/src/certifi/certifi/cacert.pem").read_text()
    want = [ssl.PEM_cert_to_DER_cert(c) for c in
            re.findall(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", pem, re.S)]
    want = [reduced(der) for der in want]
    assert raw == b"".join(struct.pack(">I", len(der)) + der for der in want)
    assert facts == {"DATE": facts["DATE"], "COUNT": str(len(want)), "RAW_SIZE": str(len(raw))}
    assert re.fullmatch(r'"20\d\d-\d\d-\d\d"', facts["DATE"])
    assert len(want) > 100


# ---- the Makefile, on copies of the tree ----


def pins():
    """Name, version, SHA-256 and file of each."""
    lines = (ROOT / "vendor/pins").read_text().splitlines()
    return [line.split()[:4] for line in lines if line and not line.startswith("#")]


def tree(at):
    """A copy without git and without anything fetched or built."""
    at.mkdir(parents=True)
    for name in ("Makefile", "abx.c", "abx.h"):
        shutil.copy(ROOT / name, at)
    for name in ("src", "tools"):
        shutil.copytree(ROOT / name, at / name)
    (at / "vendor").mkdir()
    for path in (ROOT / "vendor").iterdir():
        if path.is_file():
            shutil.copy(path, at / "vendor")
    return at


def make(at, *args):
    # Not what the make that runs these tests was told.
    ours = ("TLS", "CA", "KIND", "MFLAGS")
    env = {k: v for k, v in os.environ.items() if k not in ours and not k.startswith(("MAKE", "ABX_TEST"))}
    return subprocess.run(["make", "-C", at, *args], env={**env, "OFFLINE": "1"}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300)


def test_without_sources_make_says_what_builds_without_them(tmp_path):
    got = make(tree(tmp_path / "a"))
    assert got.returncode != 0
    assert "make TLS=none" in got.stderr
    for name, _, sha256, file in pins():
        assert name != "mbedtls" or (file in got.stderr and sha256 in got.stderr)


def test_without_tls_zlib_alone_is_wanted(tmp_path):
    got = make(tree(tmp_path / "a"), "TLS=none")
    assert got.returncode != 0
    for name, _, sha256, file in pins():
        assert (file in got.stderr and sha256 in got.stderr) == (name == "zlib")


def test_two_folders_give_the_same_bytes_and_a_second_make_does_nothing(tmp_path):
    here, there = tree(tmp_path / "a"), tree(tmp_path / "some/where/deeper/b")
    for at in (here, there):
        (at / "vendor/dist").mkdir()
        for name, _, _, file in pins():
            if name == "zlib" and (ROOT / "vendor/dist" / file).exists():
                shutil.copy(ROOT / "vendor/dist" / file, at / "vendor/dist")
        got = make(at, "TLS=none")
        assert got.returncode == 0, got.stderr
        got = [p.name.split("-")[0] for p in (at / "vendor/src").iterdir() if p.name != ".fetched-zlib"]
        assert got == ["zlib", "zlib"]
    assert (here / "abx-notls").read_bytes() == (there / "abx-notls").read_bytes()

    before = {p: p.stat().st_mtime_ns for p in here.rglob("*") if p.is_file()}
    assert make(here, "TLS=none").stdout.count("\n  ") == 0
    assert {p: p.stat().st_mtime_ns for p in here.rglob("*") if p.is_file()} == before
