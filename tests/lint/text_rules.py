"""Sizes, how a header begins, and words that must not land: unfinished work, and places that only a build machine has."""

import re

from source_tree import CXX

WARN_LINES = 400
MOST_LINES = 800

# Written apart, or this file would be its own first finding.
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX")) + r")\b")
ELSEWHERE = re.compile(r"(?<![\w.$}/-])/(" + "|".join(("wo" + "rk", "tmp/" + "m", "ro" + "ot")) + r")/"
                       r"|\b(DES" + r"IGN|STY" + r"LE)\.md\b")
BINARY = re.compile(r"^tests/(.*/)?(corpus|golden)/")

GOOD_HEADER = "#pragma once\n\n// A value.\n\nint f();\n"
CLEAN = {
    "transport/base/a.h": GOOD_HEADER,
    "transport/codec/monarch/a.hpp": GOOD_HEADER,
    "cli/long_enough.cc": "int a;\n" * WARN_LINES,
    "tests/fuzz/corpus/long": "a\n" * (MOST_LINES + 1),
    "README.md": "mkstemp(/tmp/monarch-XX" + "XXXX)\n",
}
PLANTS = [
    ("cli/long.cc", "int a;\n" * (WARN_LINES + 1), "401 lines, more than 400"),
    ("cli/too_long.cc", "int a;\n" * (MOST_LINES + 1), "801 lines, more than 800"),
    ("tests/too_long.py", "a\n" * (MOST_LINES + 1), "801 lines, more than 800"),
    ("transport/base/b.h", "// A value.\n\n#pragma once\n", "does not begin with #pragma once"),
    ("transport/base/c.h", "#pragma once\n\n#include <vector>\n", "no opening paragraph"),
    ("transport/base/d.hpp", "#pragma once\n\nint f();  // late\n", "no opening paragraph"),
    ("cli/a.cc", "int a;  // TO" + "DO: later\n", "unfinished"),
    ("scripts/a", "# FIX" + "ME\n", "unfinished"),
    ("cli/b.cc", 'const char* p = "/wo' + 'rk/main/x";\n', "only somebody's machine"),
    ("README.md", "see DES" + "IGN.md\n", "only somebody's machine"),
]


def check_size(path, text):
    if not path.endswith((*CXX, ".py")) or BINARY.match(path):
        return []
    lines = text.count("\n")
    if lines > MOST_LINES:
        return [f"{path}: {lines} lines, more than {MOST_LINES}"]
    if lines > WARN_LINES:
        return [f"warning: {path}: {lines} lines, more than {WARN_LINES}"]
    return []


def check_header(path, text):
    if not path.endswith((".h", ".hpp")):
        return []
    if not text.startswith("#pragma once\n"):
        return [f"{path}: does not begin with #pragma once"]
    if not text.removeprefix("#pragma once\n").lstrip("\n").startswith(("//", "/*")):
        return [f"{path}: no opening paragraph that says what it is for"]
    return []


def check(tree, _build):
    found = []
    for path in tree.files():
        text = tree.read(path)
        found += check_size(path, text) + check_header(path, text)
        if BINARY.match(path):
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if UNFINISHED.search(line):
                found.append(f"{path}:{number}: unfinished work: {line.strip()[:80]}")
            if ELSEWHERE.search(line):
                found.append(f"{path}:{number}: names what only somebody's machine has: {line.strip()[:80]}")
    return found
