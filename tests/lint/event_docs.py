"""Each kind of event is in monarch-events(7) as transport/messages/event_kinds.h has it, and no source of the program writes one as a string.

The list in the page stands between two comments:

    python3 tests/lint/event_docs.py --update    writes it anew
"""

import os
import re
import sys

import key_docs
import source_tree

SOURCE, PAGE = "transport/messages/event_kinds.h", "man/monarch-events.7"
BEGIN = '.\\" kinds: written by tests/lint/event_docs.py --update\n'
END = '.\\" end of the kinds\n'
GRAVE = {"kInfo": "", "kWarning": "Mostly a warning. ", "kError": "Mostly an error. "}
PROGRAM = ("cli/", "supervisor/", "worker/", "transport/")
ROW = re.compile(r'KIND\([\s\\]*(k\w+),[\s\\]*"([^"]+)",[\s\\]*(k\w+),[\s\\]*((?:"[^"]*"[\s\\]*)+)\)')

ROWS = '#define MONARCH_EVENT_KINDS(KIND) \\\n  KIND(kHostLost, "host.lost", kError, \\\n       "It is gone.")\n'
ENTRY = ".TP\n.B host.lost\nMostly an error. It is gone.\n"
CLEAN = {SOURCE: ROWS, PAGE: ".TH X 7\n" + BEGIN + ENTRY + END, "cli/a.cc": "emit(EventKind::kHostLost);\n"}
PLANTS = [
    (PAGE, ".TH X 7\n" + BEGIN + ENTRY.replace("gone", "there") + END, "is not what"),
    (PAGE, ".TH X 7\n" + ENTRY, "lacks the comments around the list of kinds"),
    ("cli/late.cc", 'emit("host.lost");\n', 'writes "host.lost" as a string'),
]


def kinds_of(tree):
    """[(name, severity, meaning)] in the order of the source."""
    rows = ROW.findall(tree.read(SOURCE))
    return [(name, severity, "".join(re.findall(r'"([^"]*)"', meaning))) for _, name, severity, meaning in rows]


def list_of(kinds):
    return "".join(f".TP\n.B {name}\n{GRAVE[severity]}{key_docs.roff(meaning)}\n" for name, severity, meaning in kinds)


def split_page(text):
    begin, end = text.find(BEGIN), text.find(END)
    return None if begin < 0 or end < begin else (text[:begin + len(BEGIN)], text[begin + len(BEGIN):end], text[end:])


def check(tree, _build):
    kinds = kinds_of(tree)
    found = [] if kinds else [f"{SOURCE}: has no kinds"]
    page = split_page(tree.read(PAGE)) if tree.exists(PAGE) else None
    if page is None:
        found.append(f"{PAGE}: lacks the comments around the list of kinds")
    elif page[1] != list_of(kinds):
        found.append(f"{PAGE}: the list of kinds is not what {SOURCE} says; event_docs.py --update writes it")
    names = "|".join(re.escape(name) for name, _, _ in kinds)
    for path in tree.cxx():
        if not path.startswith(PROGRAM) or path == SOURCE:
            continue
        code = re.sub(r"//.*", "", tree.read(path))
        found += [f'{path}: writes "{name}" as a string' for name in re.findall(rf'(?<!\\)"({names})"', code)]
    return found


def main(arguments):
    if arguments != ["--update"]:
        print(__doc__)
        return 2
    tree = source_tree.SourceTree(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    head, _, tail = split_page(tree.read(PAGE))
    with open(os.path.join(tree.root, PAGE), "w", encoding="utf-8") as file:
        file.write(head + list_of(kinds_of(tree)) + tail)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
