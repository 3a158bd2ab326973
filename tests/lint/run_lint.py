"""Runs one house lint as a TAP test: `run_lint.py LINT SOURCE_ROOT BUILD_ROOT`.

A lint is a module beside this file with

    CLEAN   {path: text}, a small tree that it accepts
    PLANTS  [(path, text, complaint)]: the file added to CLEAN must draw a complaint that contains this text
    check(tree, build) -> [complaint, ...]; "warning: …" is shown and does not fail; it may raise Skip(reason)

First the lint must accept CLEAN and refuse every plant, each in a tree of its own; then the real tree is checked.
"""

import importlib
import os
import sys
import tempfile

import source_tree


class Skip(Exception):
    """The lint cannot be run here, and why."""


def write_tree(folder, files):
    for path, text in files.items():
        full = os.path.join(folder, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)


def complaints(lint, files):
    with tempfile.TemporaryDirectory(prefix="monarch-lint-") as folder:
        write_tree(folder, files)
        found = lint.check(source_tree.SourceTree(folder), None)
    return found


def cases(lint, source, build):
    """(name, problems) of every case."""
    found = complaints(lint, lint.CLEAN)
    yield "accepts a clean tree", [c for c in found if not c.startswith("warning: ")]
    for path, text, expected in lint.PLANTS:
        found = complaints(lint, {**lint.CLEAN, path: text})
        caught = any(expected in c and path in c for c in found)
        yield f"refuses {path}: {expected}", [] if caught else [f"planted in {path} and not caught; said: {found}"]
    yield "this tree", lint.check(source_tree.SourceTree(source), build)


def main(name, source, build):
    lint = importlib.import_module(name)
    print(f"1..{len(lint.PLANTS) + 2}", flush=True)
    failed = False
    number = 0
    try:
        for number, (label, problems) in enumerate(cases(lint, source, build), start=1):
            errors = [p for p in problems if not p.startswith("warning: ")]
            failed = failed or bool(errors)
            print(f"{'not ok' if errors else 'ok'} {number} - {label}".replace("#", "\\#"))
            for problem in problems:
                print("# " + problem.replace("\n", "\n# "))
    except Skip as reason:
        for rest in range(number + 1, len(lint.PLANTS) + 3):
            print(f"ok {rest} - {name} # SKIP {reason}")
    return 1 if failed else 0


if __name__ == "__main__":
    # The module that lints import Skip from is this one, not a second copy of it.
    sys.modules["run_lint"] = sys.modules["__main__"]
    sys.exit(main(*sys.argv[1:4]))
