"""tools/check-*: each plants one violation in a copy of a small tree and sees
it named; the copy without one passes in silence."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CLEAN = {
    "abx.c": '#define ABX_UNITY 1\n#include "base/word.c"\n#include "net/talk.c"\n',
    "src/base/word.h": "#ifndef ABX_WORD_H\n#define ABX_WORD_H\n#include <stdlib.h>\nint word_count(void);\n"
                       "static inline int word_two(void) { return 2; }\n#endif\n",
    "src/base/word.c": '#include "base/word.h"\n#define WORD_MAX 3\nstatic int word__n = 0;\n'
                       "int word_count(void) { free(NULL); return word__n + WORD_MAX; }\n",
    "src/net/talk.h": '#ifndef ABX_TALK_H\n#define ABX_TALK_H\n#include "base/word.h"\nint talk(void);\n'
                      "int talk_more(void);\n#endif\n",
    "src/net/talk.c": '#include "net/talk.h"\n#include <stdio.h>\n'
                      "/* free(strcpy) and system() in a comment */\n"
                      'static const char talk__said[] = "system(\\"gets(\\") /*";\n'
                      "int talk_more(void) { return word_count() + talk__said[0]; }\n",
}


class Tree:
    def __init__(self, at):
        self.at = at
        (at / "tools").mkdir()
        for name in ("check-layers", "check-calls", "check-names"):
            shutil.copy(ROOT / "tools" / name, at / "tools")
        (at / "src").mkdir()
        shutil.copy(ROOT / "src/LAYERS", at / "src")
        for name, text in CLEAN.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def add(self, name, text):
        self.write(name, (self.at / name).read_text() + text)

    def run(self, tool, *args):
        got = subprocess.run([self.at / "tools" / tool, *args], capture_output=True, text=True, timeout=60)
        return got.returncode, got.stdout + got.stderr

    def names(self):
        (self.at / "o").mkdir(exist_ok=True)
        for c in sorted((self.at / "src").glob("*/*.c")):
            out = "_".join(c.relative_to(self.at).with_suffix(".o").parts)
            subprocess.run(["gcc", "-w", "-I", self.at / "src", "-c", "-o", self.at / "o" / out, c], check=True)
        return self.run("check-names", "o")


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_a_clean_tree_passes_in_silence(tree):
    assert tree.run("check-layers") == (0, "")
    assert tree.run("check-calls") == (0, "")
    assert tree.names() == (0, "")


@pytest.mark.parametrize("file, text, said", [
    ("src/base/word.c", '#include "net/talk.h"\n', "src/base/word.c:5: base/ may not use net/talk.h"),
    ("src/base/word.h", '#include "abx.h"\n', "src/base/word.h:7: base/ may not use abx.h"),
    ("src/net/talk.c", "#include <mbedtls/ssl.h>\n", "only src/net/tls.c may see <mbedtls/ssl.h>"),
    ("src/net/talk.c", "#include <psa/crypto.h>\n", "only src/net/tls.c may see <psa/crypto.h>"),
    ("src/net/talk.c", "#include <zlib.h>\n", "only src/data/inflate.c may see <zlib.h>"),
    ("src/net/talk.c", '#include "zlib.h"\n', "name the layer"),
    ("src/net/talk.c", '#include "talk.h"\n', "name the layer"),
    ("src/net/talk.c", '  #  include "../base/word.h"\n', "name the layer"),
    ("src/net/talk.c", "#include <build_info.h>\n", "may see <build_info.h>"),
    ("src/net/talk.c", "#include <roots_data.h>\n", "may see <roots_data.h>"),
    ("src/net/talk.c", '#include "base/word.c"\n', "only abx.c and test.c include .c files"),
    ("src/net/talk.c", "extern int word__n;\n", "declare it in a header"),
    ("src/net/quiet.c", "int quiet;\n", "abx.c must include this file once"),
    ("src/net/word.c", "int word_b;\n", "same file name as src/base/word.c"),
    ("abx.c", '#include "base/word.c"\n', "abx.c must include this file once"),
    ("abx.c", '#include "base/late.c"\n', "abx.c:4: base/ comes before net/ (src/LAYERS)"),
    ("src/LAYERS", "top: higher\nhigher:\n", "top uses higher, which comes after it"),
])
def test_check_layers_names(tree, file, text, said):
    if not (tree.at / file).exists():
        tree.write(file, "")
    tree.add(file, text)
    code, out = tree.run("check-layers")
    assert code == 1
    assert said in out


@pytest.mark.parametrize("call", [
    "strcpy(a, b)", "strcat(a, b)", "sprintf(a, b)", "vsprintf(a, b)", "gets(a)", "atoi(a)", "strtok(a, b)",
    "system(a)", "popen(a, b)", "alloca(3)", "mktemp(a)", "tmpnam(a)", "free(a)", "free (a)", 'x("/*"); free(a)',
    "/* a */ free(a)", "'\"'; free(a)",
])
def test_check_calls_names(tree, call):
    tree.add("src/net/talk.c", f"\nint talk(void) {{ {call}; }}\n")
    name = call.split("(")[0].split()[-1] if "free" not in call else "free"
    code, out = tree.run("check-calls")
    assert code == 1
    assert out.startswith(f"src/net/talk.c:7: {name}() ")


@pytest.mark.parametrize("text, said", [
    ('printf("%#x", 1)', "%#x"), ('printf("%d %-5.*E", 1)', "%-5.*E"), ('printf("a%Lf")', "%L"), ('printf("%%%n")', "%n"),
    ('printf("%ls")', "%ls"), ('printf("%5lc")', "%5lc"), ('printf("%\'d")', "%'"), ('printf("%m")', "%m"), ('printf("%a")', "%a"),
    ("sysconf(_SC_NPROCESSORS_CONF)", "sysconf()"), ("sysconf(a)", "sysconf()"),
])
def test_check_calls_names_what_is_not_in_the_libc_of_ours(tree, text, said):
    tree.add("src/net/talk.c", f"\nint talk(void) {{ {text}; }}\n")
    code, out = tree.run("check-calls")
    assert code == 1 and out.startswith(f"src/net/talk.c:7: {said.rstrip('x') if said == '%#x' else said} ") and "vendor/" in out


@pytest.mark.parametrize("text", [
    "sysconf(_SC_PAGESIZE)", 'printf("%d%%n %5.*e %-*s|%+d|% ld %hhx %zu %p")', 'x("%25")', 'x("%+,=")', 'printf("100%%m")',
    "h->free(a)", "h.free(a)", "talk_free(a)", "mbedtls_free(a)", "freeaddrinfo(a)", "snprintf(a)", "gets_more(a)",
    "/* free(a) */", "// free(a)", '"free(a)"', '"\\"free(a)"', "/* \n free(a) */",
])
def test_check_calls_lets_pass(tree, text):
    tree.add("src/net/talk.c", f"\nint talk(void) {{ {text}; }}\n")
    assert tree.run("check-calls") == (0, "")


@pytest.mark.parametrize("text, said", [
    ("int speak(void) { return 1; }\n", "src/net/talk.c: speak wants the prefix talk_"),
    ("static int quiet(void) { return 1; }\nint talk_it(void) { return quiet(); }\n", "quiet wants the prefix talk_"),
    ("int verbose;\n", "verbose wants the prefix talk_"),
    ("int abx_talk(void) { return 1; }\n", "abx_talk wants the prefix talk_"),
    ("#define LOUD 1\n", "src/net/talk.c:6: macro LOUD leaks into every later file"),
    ("  # define LOUD(x) 1\n", "macro LOUD leaks"),
])
def test_check_names_names(tree, text, said):
    tree.add("src/net/talk.c", text)
    code, out = tree.names()
    assert code == 1
    assert said in out


@pytest.mark.parametrize("text", [
    "#define LOUD 1\n#undef LOUD\n", "#define TALK_LOUD 1\n", "int talk_a;\nstatic int talk__b = 2;\n",
    "int talk_it(void) { static int calls = 0; return calls++; }\n",
])
def test_check_names_lets_pass(tree, text):
    tree.add("src/net/talk.c", text)
    assert tree.names() == (0, "")


def test_check_names_wants_every_object(tree):
    tree.names()
    (tree.at / "o/src_net_talk.o").unlink()
    assert tree.run("check-names", "o") == (1, "src/net/talk.c: no o/src_net_talk.o; run make split\n")
