"""The pages that explain the tree name what is there: each path in backticks exists, from the root or from the page's
folder, and each link leads to a file. ARCHITECTURE.md and README.md stay short, and text
keeps to 120 columns, that of comments too.

A word in backticks is a path if it begins with a folder of the top level, or ends as a source does. A word with a `<`,
`*`, `{` or `…` in it stands for several, and is not looked for.
"""

import os
import re

from run_lint import Skip

MOST_BYTES = {"ARCHITECTURE.md": 25_088, "README.md": 14_336}
COLUMNS = 120
# Whose paths are looked for. README.md and CONTRIBUTING.md name files of a build and of the user's, too.
PAGES = re.compile(r"ARCHITECTURE\.md|SECURITY\.md|tests/FAULTS\.md|.+/README\.md")
SOURCE = re.compile(r"[\w./-]+\.(cc|h|hpp|py|md)")
SEVERAL = re.compile(r"[<*{…]")

SMALL = "# a\n\n`cli/main.cc` and `cli` and `tests/lint/x.py --update BUILD`; [there](cli/README.md).\n"
CLEAN = {
    "ARCHITECTURE.md": SMALL,
    "README.md": "a\n",
    "cli/main.cc": "\n",
    "cli/README.md": "`main.cc`, `cli/cmd_<name>.cc`, `verdict.json`, `/tmp/x.h`; [up](../ARCHITECTURE.md#a)\n\n"
                     "| " + "x" * COLUMNS + " |\n",
    "tests/lint/x.py": "\n",
}
PLANTS = [
    ("ARCHITECTURE.md", "`cli/gone.cc`\n", "there is no cli/gone.cc"),
    ("ARCHITECTURE.md", "`gone.h`\n", "there is no gone.h"),
    ("ARCHITECTURE.md", "see `tests/lint/gone.py --update BUILD`\n", "there is no tests/lint/gone.py"),
    ("ARCHITECTURE.md", "`cli/gone`\n", "there is no cli/gone"),
    ("cli/README.md", "`other.cc`\n", "there is no other.cc"),
    ("cli/README.md", "[there](gone.md)\n", "leads to no file: gone.md"),
    ("ARCHITECTURE.md", "word\n" * 5_018, "25090 bytes, more than 25088"),
    ("README.md", "word\n" * 2_868, "14340 bytes, more than 14336"),
    ("cli/README.md", "word " * 24 + "w\n", "121 columns"),
    ("cli/late.cc", "int a;  // " + "word " * 22 + "\n", "121 columns"),
]


def looks_like_path(tree, word):
    if SEVERAL.search(word) or word.startswith(("/", "$", "~", "-", ".")):
        return False
    first, slash, _ = word.partition("/")
    return bool(SOURCE.fullmatch(word)) or bool(slash) and re.fullmatch(r"[\w./-]+", word) and tree.exists(first)


def text_of(page):
    """(number, line) of all lines but those of fenced blocks."""
    fenced = False
    for number, line in enumerate(page.splitlines(), start=1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def check_comments(tree, path):
    """clang-format leaves comments as they are (.clang-format)."""
    for number, line in enumerate(tree.read(path).splitlines(), start=1):
        if len(line) > COLUMNS and re.search(r"(?:^|\s)//(?:\s|$)", line):
            yield f"{path}:{number}: {len(line)} columns, more than {COLUMNS}"


def check_page(tree, path):
    folder, found = os.path.dirname(path), []
    for number, line in text_of(tree.read(path)):
        if len(line) > COLUMNS and not line.startswith("|"):
            found.append(f"{path}:{number}: {len(line)} columns, more than {COLUMNS}")
        for quoted in re.findall(r"`([^`]+)`", line):
            for word in filter(lambda w: looks_like_path(tree, w), quoted.split()):
                if not any(tree.exists(os.path.join(place, word)) for place in ("", folder)):
                    found.append(f"{path}:{number}: there is no {word}")
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", line):
            if not tree.exists(os.path.normpath(os.path.join(folder, link))):
                found.append(f"{path}:{number}: leads to no file: {link}")
    return found


def check(tree, _build):
    if not tree.exists("ARCHITECTURE.md"):
        raise Skip("this tree has no ARCHITECTURE.md")
    found = []
    for path, most in MOST_BYTES.items():
        size = len(tree.read(path).encode())
        if size > most:
            found.append(f"{path}: {size} bytes, more than {most}")
    for path in tree.files(".md"):
        if PAGES.fullmatch(path):
            found += check_page(tree, path)
    for path in tree.cxx():
        found += check_comments(tree, path)
    return found
