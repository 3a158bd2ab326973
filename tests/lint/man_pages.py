"""Each binary has a man page that names every long flag of its `--help`, and of the help of each of its commands."""

import os
import re
import subprocess

from run_lint import Skip

# A stand-in for a binary: a script that answers --help.
HELP = """#!/bin/sh
[ "$1" = run ] && { echo '  --timeout D   stop after D'; exit 0; }
printf 'usage: monarch COMMAND\\n  run     run a spec\\nflags:\\n  -h, --help  this\\n      --color WHEN\\n'
"""
PAGE = ".TH MONARCH 1\n.B \\-\\-help\n.B \\-\\-color\n.B run\n.B \\-\\-timeout\n"
CLEAN = {"bin/monarch": HELP, "man/monarch.1": PAGE}
PLANTS = [
    ("man/monarch.1", PAGE.replace(".B \\-\\-timeout\n", ""), "does not name --timeout of `monarch run`"),
    ("man/monarch.1", PAGE.replace(".B run\n", ""), "does not name the command run"),
    ("bin/monarch-other", HELP, "has no page man/monarch-other.1"),
]


def help_of(binary, *command):
    argv = [binary, *command, "--help"] if not binary.endswith(".sh") else ["sh", binary, *command, "--help"]
    with open(binary, "rb") as file:
        if file.read(2) == b"#!":
            argv = ["/bin/sh", *argv]
    done = subprocess.run(argv, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=20)
    return done.stdout.decode(errors="replace")


def flags_of(text):
    return sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text)))


def commands_of(text):
    """The names at the beginning of lines that are a table of commands: two spaces, the name, spaces, what it does."""
    return re.findall(r"^ {2}([a-z][a-z-]*) {2,}\S", text, re.MULTILINE)


def check_binary(tree, binary, page):
    if not tree.exists(page):
        return [f"{os.path.relpath(binary, tree.root)}: has no page {page}"]
    # roff writes a dash that is a dash as \-, and may put a font around a word.
    text = re.sub(r"\\f[BIRP]", "", tree.read(page).replace("\\-", "-"))
    found = []
    top = help_of(binary)
    named = set(flags_of(text))
    for command in [None, *commands_of(top)]:
        label = "monarch " + command if command else os.path.basename(binary)
        if command and not re.search(rf"(?<![\w-]){command}(?![\w-])", text):
            found.append(f"{page}: does not name the command {command}")
        for flag in flags_of(help_of(binary, command) if command else top):
            if flag not in named:
                found.append(f"{page}: does not name {flag} of `{label}`")
    return found


def binaries_of(tree, build):
    """The binaries of a build, or the stand-ins of a planted tree."""
    if build is None:
        return [os.path.join(tree.root, p) for p in tree.files() if p.startswith("bin/")]
    return [p for p in (os.path.join(build, "cli/monarch"), os.path.join(build, "worker/monarch-worker"))
            if os.path.exists(p)]


def check(tree, build):
    binaries = binaries_of(tree, build)
    if not binaries:
        raise Skip("no binary is built here")
    if not any(p.startswith("man/") for p in tree.files()):
        raise Skip("this tree has no man page yet")
    return [c for b in binaries for c in check_binary(tree, b, f"man/{os.path.basename(b)}.1")]
