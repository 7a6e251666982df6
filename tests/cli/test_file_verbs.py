"""ls, find, stat, cat, write, mkdir, mv, rm, chmod and watch, in a sandbox with a
daemon of ours and against a server that answers what no daemon does."""

import json
import os

import pytest

from live import both, daemon  # noqa: F401 (fixtures)

NAMES = ["plain", "with space", "quote'\"", "$HOME", "back\\slash", "line\nfeed", "世界 ☃", "-r", "*", "tab\there", "~", "a;b"]


@pytest.fixture
def box(both):
    """A sandbox with an empty /tmp/t, and nothing carried there."""
    both.mode = "never"
    both.inside("rm -rf /tmp/t; mkdir /tmp/t")
    return both


def file(box, verb, *words, form=(), **more):
    return box("--agent", box.mode, *form, "file", verb, *words, **more)


def good(ran):
    assert ran.status == 0 and ran.err == b"", ran
    return ran.out


# --- looking ---

def test_ls(box):
    box.inside("cd /tmp/t; printf abc > b; mkdir a; ln -s b c; mkfifo .d; chmod 4751 b; touch -d 2021-02-03T04:05:06Z b")
    assert good(file(box, "ls", "box", "/tmp/t")) == b".d\na\nb\nc\n"
    assert good(file(box, "ls", "-0", "box", "/tmp/t/")) == b".d\0a\0b\0c\0"
    assert good(file(box, "ls", "box", "/tmp/t/b")) == b"/tmp/t/b\n"
    assert good(file(box, "ls", "box", "/tmp/t/a", "/tmp/t")) == b"".join(b"/tmp/t/%s\n" % n for n in (b".d", b"a", b"b", b"c"))
    rows = good(file(box, "ls", "-l", "box", "/tmp/t")).decode().splitlines()
    assert [r.split()[0][0] for r in rows] == ["?", "d", "-", "l"] and len({r.rindex("  ") for r in rows}) == 1
    assert rows[2].split() == ["-rwxr-x--x", "3", "2021-02-03T04:05:06Z", "b"]
    doc = json.loads(good(file(box, "ls", "box", "/tmp/t", form=["--json"])))
    assert [(e["path"], e["type"]) for e in doc] == [("/tmp/t/.d", "other"), ("/tmp/t/a", "folder"), ("/tmp/t/b", "file"), ("/tmp/t/c", "link")]
    assert doc[2] == {"path": "/tmp/t/b", "type": "file", "size": 3, "mode": "0751", "modified": "2021-02-03T04:05:06Z"}
    assert json.loads(good(file(box, "ls", "box", "/tmp/t/a", form=["--json"]))) == []
    assert good(file(box, "ls", "box", "/tmp/t/a")) == b""


def test_ls_needs_no_noun_where_it_names_a_sandbox(box):
    box.inside("echo > /tmp/t/x")
    assert good(box("ls", "box", "/tmp/t")) == good(box("ls", "-a", "box", "/tmp/t")) == b"x\n"
    assert b"box" in good(box("ls")) and good(box("ls", "-q")) == b"box\n"
    assert b"/tmp\n" in good(box("find", "box", "--max-depth", "1")) and b"tmp\n" in good(box("ls", "box"))
    ran = box("ls", "-m", "a=b", "box")
    assert ran.status == 2 and b"No such option '-m'" in ran.err
    ran = box("ls", "--limi", "1")
    assert ran.status == 2 and b"--limit" in ran.err


def test_links_are_followed_by_the_path_alone(box):
    box.inside("cd /tmp/t; mkdir -p in/deep; echo > in/deep/f; ln -s in door; ln -s /tmp/t in/loop; ln -s nowhere none")
    assert good(file(box, "ls", "box", "/tmp/t/door")) == b"deep\nloop\n"
    assert good(file(box, "ls", "box", "/tmp/t/none")) == b"/tmp/t/none\n"
    assert good(file(box, "ls", "-R", "box", "/tmp/t")) == b"door\nin\nnone\nin/deep\nin/loop\nin/deep/f\n"
    assert good(file(box, "find", "box", "/tmp/t/door")) == b"/tmp/t/door\n"
    assert good(file(box, "find", "box", "/tmp/t/door/")) == b"/tmp/t/door/\n/tmp/t/door/deep\n/tmp/t/door/loop\n/tmp/t/door/deep/f\n"


def test_find(box):
    box.inside("cd /tmp/t; mkdir -p a/b/c; touch x.py a/y.py a/b/.z.py a/b/c/w.txt; ln -s x.py a/l.py")
    every = ["", "/a", "/x.py", "/a/b", "/a/l.py", "/a/y.py", "/a/b/.z.py", "/a/b/c", "/a/b/c/w.txt"]

    def found(*words):
        return [p.removeprefix("/tmp/t") for p in good(file(box, "find", "-0", "box", "/tmp/t", *words)).decode().split("\0")[:-1]]
    asked = len(box.server.requests)
    assert found() == every
    assert len(box.server.requests) == asked + 2, "the state and the address, not for each folder"
    assert found("--name", "*.py") == [p for p in every if p.endswith(".py")]
    assert found("--type", "d") == ["", "/a", "/a/b", "/a/b/c"] and found("--type", "l") == ["/a/l.py"]
    assert found("--name", "?", "--type", "d") == ["", "/a", "/a/b", "/a/b/c"]
    assert found("--max-depth", "0") == [""] and found("--max-depth", "1") == ["", "/a", "/x.py"]
    assert good(file(box, "find", "box", "/tmp/t/x.py")) == b"/tmp/t/x.py\n"
    assert [e["path"] for e in json.loads(good(file(box, "find", "box", "/tmp/t/a", "--type", "f", form=["--json"])))] == [
        "/tmp/t/a/y.py", "/tmp/t/a/b/.z.py", "/tmp/t/a/b/c/w.txt"]
    ran = file(box, "find", "box", "/tmp/t/none", "/tmp/t/a/b/c")
    assert ran.status == 4 and ran.out == b"/tmp/t/a/b/c\n/tmp/t/a/b/c/w.txt\n" and ran.err.count(b"E4001") == 1
    for words in (["--type", "x"], ["--type", "fd"], ["--max-depth", "-1"], ["--max-depth", "200"]):
        assert file(box, "find", "box", "/tmp/t", *words).status == 2


def test_a_tree_deeper_than_any(box):
    box.inside("cd /tmp/t; for i in $(seq 205); do mkdir d; cd d; done; touch f")
    ran = file(box, "find", "box", "/tmp/t", "--name", "d")
    assert ran.status == 1 and ran.out.count(b"\n") == 200 and b"folders go too deep" in ran.err
    assert good(file(box, "rm", "-r", "box", "/tmp/t")) == b""


def test_stat(box):
    box.inside("cd /tmp/t; printf abcd > f; chmod 640 f; touch -d 2021-02-03T04:05:06Z f; ln -s f l")
    assert good(file(box, "stat", "box", "/tmp/t/f")) == b"path: /tmp/t/f\ntype: file\nsize: 4\nmode: 0640\nmodified: 2021-02-03T04:05:06Z\n"
    one = json.loads(good(file(box, "stat", "box", "/tmp/t/f", form=["--json"])))
    assert one == {"path": "/tmp/t/f", "type": "file", "size": 4, "mode": "0640", "modified": "2021-02-03T04:05:06Z"}
    ran = file(box, "stat", "box", "/tmp/t/l", "/tmp/t/none", "/tmp/t", form=["--json"])
    assert ran.status == 4 and [e["type"] for e in ran.doc] == ["link", "folder"] and ran.error["code"] == "E4001"
    assert ran.doc[0]["target"] == "f" and "target" not in ran.doc[1]
    box.inside("cd /tmp/t; ln -s '../t/\\$ ü' '$l'; ln -s 'a\nb' odd; ln -s $(printf 'a\\377') bytes")
    assert b"\ntype: link\n" in (said := good(file(box, "stat", "box", "/tmp/t/$l"))) and said.endswith("\ntarget: ../t/\\$ ü\n".encode())
    for odd in ("odd", "bytes"):
        assert b"target" not in good(file(box, "stat", "box", f"/tmp/t/{odd}")), "what cannot be told as it is is not told"
    assert b"\n\npath: " in good(file(box, "stat", "box", "/tmp", "/tmp/t"))
    ran = file(box, "stat", "box", "/none", form=["--json"])
    assert ran.status == 4
    ran.failed_well(json_form=True)


# --- names ---

@pytest.mark.parametrize("both", ["never", "auto"], indirect=True)
def test_names_are_just_their_bytes(both):
    both.inside("rm -rf /tmp/t; mkdir /tmp/t")
    for name in NAMES:
        path = f"/tmp/t/{name}"
        assert good(file(both, "write", "--", "box", path, input=name.encode())) == b""
        assert good(file(both, "cat", "--", "box", path)) == name.encode()
        assert json.loads(good(file(both, "stat", "--", "box", path, form=["--json"])))["size"] == len(name.encode())
    listed = good(file(both, "ls", "-0", "box", "/tmp/t")).decode().split("\0")[:-1]
    assert listed == sorted(NAMES, key=str.encode)
    assert json.loads(good(file(both, "ls", "box", "/tmp/t", form=["--json"])))[0]["path"] == "/tmp/t/" + listed[0]
    for name in NAMES:
        folder = f"/tmp/t/in {name}"
        assert good(file(both, "mkdir", "box", folder)) == b""
        assert good(file(both, "mv", "box", f"/tmp/t/{name}", folder)) == b""
        assert good(file(both, "cat", "box", f"{folder}/{name}")) == name.encode()
        assert good(file(both, "find", "-0", "box", folder, "--type", "f")) == f"{folder}/{name}\0".encode()
        assert good(file(both, "rm", "-r", "box", folder)) == b""
    assert both.inside("ls -A /tmp/t") == ""


def test_what_no_daemon_can_name(box):
    ran = box("file", "cat", "box", b"/tmp/t/\xff")
    assert ran.status == 2 and b"[E8002]" in ran.err
    box.inside("cd /tmp/t; : > $(printf 'a\\377b')")
    assert good(file(box, "ls", "box", "/tmp/t")) == "a�b\n".encode()
    for verb in (["cat"], ["rm"], ["stat"], ["mkdir"], ["write"]):
        ran = box("file", *verb, "box", "/" + "x" * 4095)
        assert ran.status != 0 and b"longer than 4095 bytes" in ran.err
        ran = box("file", *verb, "box", "")
        assert ran.status != 0 and ran.out == b""


# --- bytes ---

def test_cat(box):
    box.inside("cd /tmp/t; printf 'a\\0\\377' > a; : > empty; printf b > b")
    assert good(file(box, "cat", "box", "/tmp/t/a", "/tmp/t/empty", "/tmp/t/b")) == b"a\0\xffb"
    ran = file(box, "cat", "box", "/tmp/t/a", "/tmp/t/none", "/tmp/t", "/tmp/t/b")
    assert ran.status == 4 and ran.out == b"a\0\xffb" and ran.err.count(b"[E4") == 2
    assert file(box, "cat", "box", "/tmp/t/b", form=["--json"]).status == 2
    with open("/dev/full", "wb") as full:
        ran = file(box, "cat", "box", "/tmp/t/a", "/tmp/t/b", stdout=full)
    assert ran.status == 1 and ran.err.count(b"[E") == 1


def test_write(box):
    assert good(file(box, "write", "box", "/tmp/t/new/f", input=b"one")) == b""
    assert box.inside("stat -c %a /tmp/t/new/f; cat /tmp/t/new/f") == "644\none"
    box.inside("chmod 600 /tmp/t/new/f")
    done = json.loads(good(file(box, "write", "box", "/tmp/t/new/f", input=b"", form=["--json"])))
    assert done == {"path": "/tmp/t/new/f", "size": 0} and box.inside("stat -c %a:%s /tmp/t/new/f") == "600:0\n"
    good(file(box, "write", "--mode", "4750", "box", "/tmp/t/new/g", input=b"x"))
    assert box.inside("stat -c %a /tmp/t/new/g; rm /tmp/t/new/g") == "4750\n"
    for mode in ("", "8", "u+x", "07777", "-1"):
        assert file(box, "write", f"--mode={mode}", "box", "/tmp/t/new/f").status == 2
    for path in ("/tmp/t/new", "/tmp/t/new/", "/tmp/t/new/f/below"):
        ran = file(box, "write", "box", path, input=b"y")
        assert ran.status in (1, 2) and ran.out == b""
    assert box.inside("ls -A /tmp/t/new; cat /tmp/t/new/f") == "f\n"


# --- names of files ---

def test_mkdir(box):
    assert good(file(box, "mkdir", "box", "/tmp/t/a", "/tmp/t/a/b/")) == b""
    ran = file(box, "mkdir", "box", "/tmp/t/a", "/tmp/t/x/y", "/tmp/t/c", form=["--json"])
    assert ran.status == 1 and ran.doc == ["/tmp/t/c"] and b"is there already" in ran.err and b"nothing at /tmp/t/x in" in ran.err
    assert good(file(box, "mkdir", "-p", "box", "/tmp/t/a", "/tmp/t/x/y")) == b""
    box.inside("echo > /tmp/t/f")
    for words in (["/tmp/t/f"], ["-p", "/tmp/t/f"], ["/tmp/t/f/g"], ["-p", "/tmp/t/f/g"]):
        assert file(box, "mkdir", "box", *words).status == 1
    assert box.inside("cd /tmp/t; find . -type d | sort") == ".\n./a\n./a/b\n./c\n./x\n./x/y\n"


def test_mv(box):
    box.inside("cd /tmp/t; echo 1 > f; echo 2 > g; mkdir d d/sub e; ln -s d door; echo 3 > e/h")
    assert json.loads(good(file(box, "mv", "box", "/tmp/t/f", "/tmp/t/f2", form=["--json"]))) == ["/tmp/t/f2"]
    assert json.loads(good(file(box, "mv", "box", "/tmp/t/f2", "/tmp/t/d", form=["--json"]))) == ["/tmp/t/d/f2"]
    good(file(box, "mv", "box", "/tmp/t/g", "/tmp/t/door"))
    good(file(box, "mv", "box", "/tmp/t/e/", "/tmp/t/d/"))
    good(file(box, "mv", "box", "/tmp/t/d/g", "/tmp/t/d/f2"))
    assert box.inside("cd /tmp/t; find . | sort; cat d/f2") == ".\n./d\n./d/e\n./d/e/h\n./d/f2\n./d/sub\n./door\n2\n"
    box.inside("cd /tmp/t; mkdir -p sub x/sub; echo > sub/k")
    assert file(box, "mv", "box", "/tmp/t/sub", "/tmp/t/x").status == 1, "a folder is never put onto one"
    assert file(box, "mv", "box", "/tmp/t/none", "/tmp/t/x").status == 4
    assert file(box, "mv", "box", "/tmp/t/d", "/tmp/t/d/e").status == 1
    for path in ("/", "/tmp/t/.", "/tmp/t/..", "..", "//"):
        assert file(box, "mv", "box", path, "/tmp/t/x").status == 2
    assert box.inside("cd /tmp/t; ls sub x/sub d") == "d:\ne\nf2\nsub\n\nsub:\nk\n\nx/sub:\n"


def test_rm(box):
    box.inside("cd /tmp/t; touch a b c; mkdir d; touch d/in; ln -s d door; ln -s /tmp/t/d/in l")
    ran = file(box, "rm", "box", "/tmp/t/a", "/tmp/t/d", "/tmp/t/none", "/tmp/t/b", "/tmp/t/door", "/tmp/t/l", form=["--json"])
    assert ran.status == 1 and ran.doc == ["/tmp/t/a", "/tmp/t/b", "/tmp/t/door", "/tmp/t/l"]
    assert b"/tmp/t/d is a folder" in ran.err and ran.err.count(b"E4001") == 1
    assert box.inside("ls /tmp/t /tmp/t/d") == "/tmp/t:\nc\nd\n\n/tmp/t/d:\nin\n"
    assert good(file(box, "rm", "-f", "box", "/tmp/t/none", form=["--json"])) == b"[]\n"
    assert good(file(box, "rm", "-rf", "box", "/tmp/t/d", "/tmp/t/none")) == b""
    assert file(box, "rm", "-r", "box", "/tmp/t/none").status == 4
    for path in ("/", "//", "/tmp/t/..", "/tmp/t/.", ".", "..", "/tmp/t/../", "/./"):
        ran = file(box, "rm", "-rf", "box", "/tmp/t/c", path)
        assert ran.status == 2 and b"[E8002]" in ran.err
    assert box.inside("ls /tmp/t") == "c\n"


def test_rm_of_a_sandbox_takes_no_path(box):
    ran = box("rm", "box", "/tmp/t")
    assert ran.status == 2 and b"abx file rm" in ran.err and box.server.removed == []


def test_looking_and_changing_carry_nothing(both):
    both.inside("rm -rf /tmp/t /tmp/.abx*; mkdir /tmp/t; echo > /tmp/t/f")
    for words in (["ls", "-lR"], ["find"], ["stat"], ["mkdir", "-p"], ["rm", "-r"]):
        good(file(both, words[0], *words[1:], "box", "/tmp/t"))
    good(file(both, "write", "box", "/tmp/t/f", input=b"x"))
    assert good(file(both, "cat", "box", "/tmp/t/f")) == b"x"
    assert both.inside("ls -A /tmp") == "t\n"


# --- modes ---

def test_chmod(box):
    box.inside("cd /tmp/t; touch f g; mkdir -p d/e; touch d/f; chmod 2775 d; ln -s f l; ln -s none no; chmod 600 f g d/f; touch '$HOME'")
    assert json.loads(good(file(box, "chmod", "box", "644", "/tmp/t/f", "tmp/t/g", form=["--json"]))) == ["/tmp/t/f", "tmp/t/g"]

    def modes(*names):
        return box.inside("cd /tmp/t; stat -c %a -- " + " ".join(names)).split()
    assert modes("f", "g") == ["644", "644"]
    for mode, shown in (("4750", "4750"), ("u-s,g+w", "770"), ("a=r", "444"), ("+x", "555"), ("0", "0"), ("1", "1")):
        assert good(file(box, "chmod", "box", mode, "/tmp/t/l")) == b"" and modes("f") == [shown]
    assert good(file(box, "chmod", "box", "755", "/tmp/t/d")) == b"" and modes("d") == ["755"]
    assert good(file(box, "chmod", "-R", "box", "u+rwX,go=", "/tmp/t/d")) == b"" and modes("d", "d/e", "d/f") == ["700", "700", "600"]
    assert good(file(box, "chmod", "box", "--", "-x", "/tmp/t/d")) == b"" and modes("d") == ["600"]
    assert good(file(box, "chmod", "box", "751", "/tmp/t/$HOME")) == b"" and modes("'$HOME'") == ["751"]
    ran = file(box, "chmod", "box", "640", "/tmp/t/none", "/tmp/t/no", "/tmp/t/g", form=["--json"])
    assert ran.status == 4 and ran.doc == ["/tmp/t/g"] and ran.err.count(b"E4001") == 2
    ran = file(box, "chmod", "box", "640", "/proc/1/status")
    assert ran.status == 1 and b"cannot change the mode of /proc/1/status: chmod: " in ran.err
    for mode in ("", "8", "00644", "rwx", "u+q", "u x", "$(id)", "+"):
        ran = file(box, "chmod", "box", mode, "/tmp/t/g", "/tmp/t/f")
        assert (ran.status == 2 and ran.err.count(b"[E8002]") == 1) or (mode == "+" and ran.status in (0, 1)), ran
    assert modes("g") == ["640"]


def test_write_sets_a_mode_that_was_asked_for(box):
    box.inside("echo > /tmp/t/f; chmod 600 /tmp/t/f")
    good(file(box, "write", "--mode", "0751", "box", "/tmp/t/f", input=b"x"))
    assert box.inside("stat -c %a:%s /tmp/t/f") == "751:1\n"


# --- what happens ---

def lines(process, n):
    return [process.stdout.readline() for _ in range(n)]


def test_watch(both):
    both.inside("rm -rf /tmp/t; mkdir -p /tmp/t/d")
    watch = both.start("--json", "file", "watch", "box", "/tmp/t")
    assert json.loads(watch.stdout.readline()) == {"change": "watching", "path": "/tmp/t"}
    both.inside("cd /tmp/t; echo > '$a\nb'; mv '$a\nb' c; echo > d/deep; rm c")
    seen = [json.loads(line) for line in lines(watch, 4)]
    assert [(e["change"], e["path"]) for e in seen] == [
        ("created", "/tmp/t/$a\nb"), ("removed", "/tmp/t/$a\nb"), ("created", "/tmp/t/c"), ("removed", "/tmp/t/c")]
    watch.send_signal(2)
    assert watch.wait(10) == 130
    assert json.loads(watch.stderr.read())["error"]["code"] == "E0000"


def test_watch_as_text(both):
    both.inside("rm -rf /tmp/t; mkdir -p /tmp/t/d")
    watch = both.start("watch", "-R", "-0", "box", "/tmp/t")
    assert watch.stderr.readline() == b"abx: watching /tmp/t\n"
    both.inside("cd /tmp/t; : > d/f")
    assert os.read(watch.stdout.fileno(), 100) == b"created /tmp/t/d/f\0"
    watch.stdout.close()
    both.inside("cd /tmp/t; rm d/f")
    assert watch.wait(10) == 141
    watch = both.start("watch", "box", "/tmp/t")
    assert watch.stderr.readline()
    watch.send_signal(2)
    assert watch.wait(10) == 130 and watch.stderr.read() == b"", "that is how it ends"


def test_watch_needs_the_agent(box):
    ran = file(box, "watch", "box", "/tmp/t")
    assert ran.status != 0 and b"[E8004]" in ran.err
    ran = box("watch", "box", "/tmp/none")
    assert ran.status == 4 and b"[E4001]" in ran.err
