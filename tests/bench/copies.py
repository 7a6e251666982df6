"""Copies into a sandbox and out of it, against curl at the same daemon, `osb` and `docker exec tar`.

A single file, the same bytes as a tree of eight files (which goes through the
agent, hashed at both ends), and a thousand files of 2,000 bytes.
"""
import shlex
import shutil
import subprocess

SMALL = 1000


def noise(path, mib):
    with open("/dev/urandom", "rb") as src, open(path, "wb") as dst:
        for _ in range(mib):
            dst.write(src.read(1 << 20))
    return path


def same(a, b):
    subprocess.run(["diff", "-r", str(a), str(b)], check=True)


def rows(b, race, row):
    """b: what the bench knows of one sandbox (work, mib, abx, curl, docker, osb, osb_words, env, id, execd,
    inside, daemon, ask)."""
    one, tree, small = b.work / "noise", b.work / "tree", b.work / "thousand"
    if not one.exists():
        noise(one, b.mib)
        tree.mkdir()
        subprocess.run(["split", "-n", "8", str(one), str(tree / "part-")], check=True)
        small.mkdir()
        for i in range(SMALL):
            (small / f"f{i:04}").write_bytes(bytes([i % 251]) * 2000)
    back, other = b.work / "back", b.work / "other"
    meta = '{"path":"/tmp/curl.bin","mode":644}'
    send = [b.curl, "-sf", "-F", f"metadata={meta};filename=metadata", "-F", f"file=@{one}", f"{b.execd}/files/upload"]
    fetch = [b.curl, "-sf", "-o", str(other), f"{b.execd}/files/download?path=/tmp/abx.bin"]

    def against_curl(what, want, curl, **ours):
        t = race(1, b.env, **ours, curl=curl)
        rate = {name: b.mib / took.ms * 1000 for name, took in t.items()}
        for name in ours:
            row(f"{what} {b.mib} MiB{', ' + name if name != 'abx' else ''}, {b.daemon}", f"{rate[name]:.0f} MiB/s",
                f"curl {rate['curl']:.0f} MiB/s", rate[name] / rate["curl"], want[name], f"peak {max(t[name].rss):.1f} MiB")

    want = {"abx": "at least 0.95", "tree": "at least 0.6"}
    against_curl("upload", want, send, abx=[b.abx, "upload", b.id, str(one), "/tmp/abx.bin"],
                 tree=[b.abx, "upload", b.id, f"{tree}/.", "/tmp/tree"])
    against_curl("download", want, fetch, abx=[b.abx, "download", b.id, "/tmp/abx.bin", str(back)],
                 tree=[b.abx, "download", b.id, "/tmp/tree/.", str(b.work / "back-tree")])
    same(one, back)
    same(tree, b.work / "back-tree")

    tar = f"tar -C {shlex.quote(str(b.work))} -c thousand | {b.docker} exec -i {b.inside} tar -x -C /tmp/t"
    b.ask("exec", b.id, "mkdir -p /tmp/t /tmp/a")
    t = race(1, b.env, abx=[b.abx, "upload", b.id, str(small), "/tmp/a"], docker=["/bin/sh", "-c", tar])
    row(f"{SMALL} small files up, {b.daemon}", f"{t['abx'].ms:.0f} ms", f"tar|docker exec {t['docker'].ms:.0f} ms",
        t["abx"].ms / t["docker"].ms, "at most 3", f"peak {max(t['abx'].rss):.1f} MiB")
    ours = t["abx"].ms
    tar = f"{b.docker} exec {b.inside} tar -C /tmp/t -c thousand | tar -x -C {shlex.quote(str(other))}"
    other.unlink()
    other.mkdir()
    t = race(1, b.env, abx=[b.abx, "download", b.id, "/tmp/a/thousand/.", str(b.work / "back-small")], docker=["/bin/sh", "-c", tar])
    row(f"{SMALL} small files down, {b.daemon}", f"{t['abx'].ms:.0f} ms", f"docker exec|tar {t['docker'].ms:.0f} ms",
        t["abx"].ms / t["docker"].ms, "at most 3", f"peak {max(t['abx'].rss):.1f} MiB")
    same(small, b.work / "back-small")
    shutil.rmtree(other)
    if b.osb.exists():
        # One `osb file upload` for each; three are measured.
        t = race(1, b.env, osb=[str(b.osb), *b.osb_words, "file", "upload", b.id, str(small / "f0000"), "/tmp/osb.bin"])
        row(f"{SMALL} small files up, {b.daemon}", f"{ours:.0f} ms", f"osb one by one {t['osb'].ms * SMALL / 1000:.0f} s",
            ours / (t["osb"].ms * SMALL), "at most 0.05", "one measured")
