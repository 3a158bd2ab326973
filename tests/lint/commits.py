"""Commit messages: `folder: verb object`, a blank line, then `Problem:`; the history is checked as far as it is here."""

import re

from run_lint import Skip

SUBJECT = re.compile(r"^[a-z0-9_.,{}/+ -]+: [a-z][^\n]*[^.\n]$", re.IGNORECASE)
LONGEST_SUBJECT = 100

GOOD = "cli: add ps\n\nProblem: nobody sees jobs.\n\nps lists them.\n"
CLEAN = {"messages/good": GOOD, "messages/two": "tests/lint, scripts: check X\n\nProblem: none does.\n"}
PLANTS = [
    ("messages/no-folder", "Add ps\n\nProblem: nobody sees jobs.\n", "no `folder: verb object`"),
    ("messages/no-problem", "cli: add ps\n\nIt lists jobs.\n", "no `Problem:`"),
    ("messages/no-blank", "cli: add ps\nProblem: nobody sees jobs.\n", "no blank line"),
    ("messages/long", f"cli: {'a' * 100}\n\nProblem: x\n", "longer than"),
]


def check_message(name, message):
    lines = message.splitlines()
    subject = lines[0] if lines else ""
    found = []
    if not SUBJECT.match(subject):
        found.append(f"{name}: no `folder: verb object`: {subject}")
    if len(subject) > LONGEST_SUBJECT:
        found.append(f"{name}: the subject is longer than {LONGEST_SUBJECT} characters: {subject}")
    if len(lines) > 1 and lines[1]:
        found.append(f"{name}: no blank line after the subject: {subject}")
    if not any(line.startswith("Problem: ") for line in lines[1:]):
        found.append(f"{name}: no `Problem:` in its body: {subject}")
    return found


def messages_of(tree):
    """(name, message) pairs. A tree without history has them as files: that is how the self-test plants them."""
    if tree.exists("messages"):
        return [(p, tree.read(p)) for p in tree.files()]
    if (tree.git("rev-parse", "--is-shallow-repository") or "true").strip() == "true":
        raise Skip("no history here, or only its end (a shallow clone)")
    log = tree.git("log", "--no-merges", "-z", "--format=%h%n%B") or ""
    return [tuple(entry.split("\n", 1)) for entry in log.split("\0") if entry.strip()]


def check(tree, _build):
    return [c for name, message in messages_of(tree) for c in check_message(name, message)]
