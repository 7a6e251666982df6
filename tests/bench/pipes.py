"""Rows of the benchmark about the two ends of a copy alone, without a sandbox
between them: abx sends into a pipe what abx receives from it, with a hash of
each file computed at both, against tar and tar."""

import os
import shutil

ABX = '"$1" agent tar-out - tree | "$1" agent tar-in - '
TAR = 'tar cf - tree | tar xf - -C '


def rows(work, abx, plain, race, row):
    top = work / "pipes"
    for what, files, size, want in (("ends of a copy: 1000 files", 1000, 4 << 10, "at most 3"), ("ends of a copy: 256 MiB", 1, 256 << 20, "")):
        for i in range(files):
            path = top / "tree" / f"d{i // 50}" / f"f{i}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(os.urandom(size))
        where = "$(mktemp -d out/XXXXXX)" if files > 1 else "out"
        (top / "out").mkdir()
        ours, theirs = (["/bin/sh", "-c", f'cd "$0" && {words}{where}', str(top), abx] for words in (ABX, TAR))
        t = race(1, plain, abx=ours, tar=theirs)
        row(what, f"{t['abx'].ms:.0f} ms", f"tar | tar {t['tar'].ms:.0f} ms", t["abx"].ms / t["tar"].ms, want,
            f"{sum(t['abx'].cpu) / sum(t['tar'].cpu):.1f} of its CPU; peak {max(t['abx'].rss):.1f} MiB")
        shutil.rmtree(top)
