"""Reads what tests said and counts single cases: GoogleTest's XML, TAP lines, or the exit status.

Exit status 77 is a skip whose reason is the last line of output. A test that failed though none of its cases did
(a sanitizer's report at exit, a crash, a time-out) counts as one failure more. Standard library only.
"""

import os
import re
import xml.etree.ElementTree as ElementTree


def ends(text, lines):
    """So many lines of a text: a third from its beginning, where a log has the first cause, and the others from its end."""
    rows = text.rstrip().splitlines()
    if len(rows) <= lines:
        return "\n".join(rows)
    first = lines // 3
    return "\n".join([*rows[:first], f"… {len(rows) - lines} lines between", *rows[first - lines:]])


# How these begin: a sanitizer's report; a failed assertion of GoogleTest, a seed that fails, Python's last words.
REPORT = re.compile(r"^(==\d+==)?\s*(ERROR|WARNING): \w+Sanitizer|runtime error: ")
CAUSE = re.compile(REPORT.pattern + r"|^\S+:\d+: (Failure|.*error)|^seed \d+: |^(# )?\w*(Error|Exception)\b")


def excerpt(text, lines):
    """What of a failed test's output tells most: a sanitizer's report from its beginning, or the output's both ends."""
    rows = text.rstrip().splitlines()
    first = next((i for i, row in enumerate(rows) if REPORT.search(row)), None)
    if first is None or len(rows) - first <= lines:
        return ends(text, lines)
    return "\n".join([f"… {first} lines before these", *rows[first:first + lines], f"… {len(rows) - first - lines} lines after these"])


def cause(text):
    """One line that says why a test failed: the first that reads like a reason, a failed TAP line with the next, or the last of all."""
    rows = [row.strip() for row in text.splitlines() if row.strip()]
    bad = next((i for i, row in enumerate(rows) if row.startswith("not ok ")), len(rows) - 1)
    said = next((row for row in rows if CAUSE.search(row)), " ".join(rows[bad:bad + 2]) or "no output")
    # What a command said stands behind its words.
    return said if len(said) <= 600 else f"{said[:200]} … {said[-400:]}"


class Tally:
    """Counts, with the failures and skips by name."""

    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.failures = []
        self.skips = []
        self.notes = []  # warnings that fail nothing
        self.second_tries = []  # what failed, and passed when it ran once more, with what it said at first
        self.times = []  # (case, seconds, seconds of the processor)

    def fail(self, label, text):
        self.failed += 1
        self.failures.append((label, text))

    def skip(self, label, reason):
        self.skips.append((label, reason))

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.failures += other.failures
        self.skips += other.skips
        self.notes += other.notes
        self.second_tries += other.second_tries
        self.times += other.times

    def line(self):
        counts = f"{self.passed} passed, {self.failed} failed"
        return counts + (f", {len(self.skips)} skipped" if self.skips else "")


def xml_of(tree, name):
    """Where GoogleTest writes its report."""
    return os.path.join(tree, name + ".xml")


def forget(tree, tests):
    """Removes reports of earlier runs: a test that crashes writes none, and an old one must not speak for it."""
    for test in tests:
        if test.get("protocol") == "gtest" and os.path.exists(xml_of(tree, test["name"])):
            os.remove(xml_of(tree, test["name"]))


def read_gtest(path, label, part):
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{label}: {case.get('classname')}.{case.get('name')}"
        failures = [f.get("message", "") for f in case.findall("failure")]
        skipped = case.find("skipped")
        if failures:
            part.fail(name, "\n".join(failures))
        elif skipped is not None:
            part.skip(name, (skipped.get("message") or "no reason given").strip().splitlines()[-1])
        elif case.get("status") == "notrun":
            part.skip(name, "disabled in the source")
        else:
            part.passed += 1


TAP_LINE = re.compile(r"^(not )?ok\b\s*\d*\s*-?\s*(.*?)(?:\s*#\s*skip\S*\s*(.*))?$", re.IGNORECASE)


def read_tap(text, label, part):
    said, failed = [], False  # since the last case's line, and whether that one failed: then it is the reason
    for line in text.splitlines():
        plan = re.match(r"^1\.\.0\s*#\s*skip\S*\s*(.*)$", line, re.IGNORECASE)
        if plan:
            part.skip(label, plan.group(1) or "no reason given")
            continue
        if line.startswith("# warning: "):
            part.notes.append(line.removeprefix("# "))
        match = TAP_LINE.match(line)
        if not match:
            said.append(line)
            continue
        before, failed = [] if failed else said, bool(match.group(1) and match.group(3) is None)
        said = [*before, line] if failed else []
        name = f"{label}: {match.group(2)}"
        if match.group(3) is not None:
            part.skip(name, match.group(3) or "no reason given")
        elif failed:
            part.fail(name, said)
        else:
            part.passed += 1
    part.failures = [(name, "\n".join(said)) for name, said in part.failures]


def read(ended, test, tree):
    """The tally of one test that has run (runner.Ended)."""
    part, label, output = Tally(), test["name"], ended.output.strip("\n")
    protocol = test.get("protocol", "exitcode")
    good = ended.status == 0 and not ended.late
    if protocol == "gtest" and os.path.exists(xml_of(tree, test["name"])):
        read_gtest(xml_of(tree, test["name"]), label, part)
    elif protocol == "tap":
        read_tap(ended.output, label, part)
    elif ended.status == 77:
        lines = output.strip().splitlines()
        part.skip(label, lines[-1] if lines else "no reason given")
        good = True
    elif good:
        part.passed += 1
    if not good and not part.failed:
        part.fail(label, f"{output}\n{'out of time' if ended.late else 'ended'}, exit status {ended.status}")
    elif part.failed and protocol == "gtest":
        # The cases say what failed, the output says what the test said around it.
        part.failures[-1] = (part.failures[-1][0], f"{output}\n{part.failures[-1][1]}")
    return part
