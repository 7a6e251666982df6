"""Makes docs/cli.md from the program's own help, which is made of its command
table:

    python tests/cli/cli_page.py ./abx > docs/cli.md
"""

import re
import subprocess
import sys

HEAD = """# The command line

This page is what `abx help` says, command by command (made by
`tests/cli/cli_page.py`; a test compares the two). In short:

    abx [global options] NOUN VERB [options] [--] [arguments]

Global options stand in front of the verb or behind it, a verb's own only behind
it. `--name VALUE`, `--name=VALUE`, `-nVALUE`; flags of one letter can be bunched
(`-qv`); names are never abbreviated. Behind `--` everything is an argument. For
`exec`, `run`, `shell` and `shell-stream` options end at the first word of the
remote command, whose own options stay its own.
"""
TOPICS = {"exit-codes": "Exit status", "output": "Output", "environment": "Environment", "providers": "Providers"}


def block(text):
    return "```\n" + text.strip("\n") + "\n```\n"


def command(help_text, name):
    """The sections of one command's help, in the order of the page."""
    summary, *sections = help_text.split("\n\n")[:-1]
    yield f"## abx {name}\n\n{summary[0].upper()}{summary[1:]}.\n"
    usage = next(s for s in sections if s.startswith("Usage: "))
    yield block(usage.removeprefix("Usage: "))
    for section in sections:
        title, _, rest = section.partition("\n")
        if title == "Options:":
            yield block(rest)
        elif title != "Examples:" and section != usage:
            yield section.strip("\n") + "\n"
    for section in sections:
        title, _, rest = section.partition("\n")
        if title == "Examples:":
            yield block(re.sub("^  ", "", rest, flags=re.M))


def page(abx):
    def ask(*words):
        return subprocess.run([abx, "help", *words], capture_output=True, text=True, check=True).stdout

    top = ask()
    names = re.findall(r"^  abx (\S+(?: [a-z-]+)?)(?:,.*?)?  ", top.split("Commands:\n")[1].split("\n\n")[0], re.M)
    parts = [HEAD, "## Global options\n", block(top.split("behind it:\n")[1].split("\n\n")[0])]
    for name in names:
        parts += command(ask(*name.split()), name)
    for topic, title in TOPICS.items():
        parts += [f"## {title}\n", block(ask(topic))]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1]))
