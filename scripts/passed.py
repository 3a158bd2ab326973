"""Which suites have passed on this very tree: `scripts/test all` is longer than one may want to wait. Standard library only.

A tree is what its tracked files hold, committed or not. One is remembered, in build/: an edit forgets all.
"""

import hashlib
import json
import os
import re
import subprocess

import results
import trees

_FILE = os.path.join(trees.ROOT, "build", "passed.json")


def tree_now():
    """A hash of names, modes and bytes of the tracked files; None where this is no git checkout."""
    listed = subprocess.run(["git", "-C", trees.ROOT, "ls-files", "-z"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if listed.returncode != 0 or not listed.stdout:
        return None
    whole = hashlib.sha256()
    for name in sorted(filter(None, listed.stdout.split(b"\0"))):
        path = os.path.join(os.fsencode(trees.ROOT), name)
        try:
            with open(path, "rb") as file:
                content = hashlib.sha256(file.read()).digest()
                mode = os.fstat(file.fileno()).st_mode & 0o111
        except FileNotFoundError:
            continue
        whole.update(b"%d %s\0" % (mode, name) + content)
    return whole.hexdigest()


def _read(tree):
    try:
        with open(_FILE, encoding="utf-8") as file:
            known = json.load(file)
    except (FileNotFoundError, ValueError):
        return {}
    return known["suites"] if known["tree"] == tree else {}


def line_of(tree, suite):
    """The closing line of a suite that has passed on this tree, or None."""
    return _read(tree).get(suite)


def remember(tree, suite, line):
    text = json.dumps({"tree": tree, "suites": {**_read(tree), suite: line}}, indent=1)
    with open(_FILE + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(_FILE + ".new", _FILE)


def tally_of(tree, suites):
    """All of them together."""
    tally = results.Tally()
    for suite in suites:
        counts = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", line_of(tree, suite))}
        tally.passed += counts["passed"]
        tally.skips += [(suite, "skipped there")] * counts.get("skipped", 0)
    return tally
