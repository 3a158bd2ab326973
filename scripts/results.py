"""Reads what `meson test` left behind and counts single cases: GoogleTest's XML, TAP lines, or the exit status.

Exit status 77 is a skip whose reason is the last line of output. A test that failed though none of its cases did
(a sanitizer's report at exit, a crash, a time-out) counts as one failure more. Standard library only.
"""

import json
import os
import re
import xml.etree.ElementTree as ElementTree


def tail(text, lines):
    rows = text.rstrip().splitlines()
    head = [f"… {len(rows) - lines} lines before these"] if len(rows) > lines else []
    return "\n".join(head + rows[-lines:])


# How these begin: a sanitizer's report; a failed assertion of GoogleTest, a seed that fails, Python's last words.
REPORT = re.compile(r"^(==\d+==)?\s*(ERROR|WARNING): \w+Sanitizer|runtime error: ")
CAUSE = re.compile(REPORT.pattern + r"|^\S+:\d+: (Failure|.*error)|^seed \d+: |^(# )?\w*(Error|Exception)\b")


def excerpt(text, lines):
    """What of a failed test's output tells most: a sanitizer's report from its beginning, or the output's end."""
    rows = text.rstrip().splitlines()
    first = next((i for i, row in enumerate(rows) if REPORT.search(row)), None)
    if first is None or len(rows) - first <= lines:
        return tail(text, lines)
    return "\n".join([f"… {first} lines before these", *rows[first:first + lines], f"… {len(rows) - first - lines} lines after these"])


def cause(text):
    """One line that says why a test failed: the first that reads like a reason, a failed TAP line with the next, or the last of all."""
    rows = [row.strip() for row in text.splitlines() if row.strip()]
    bad = next((i for i, row in enumerate(rows) if row.startswith("not ok ")), len(rows) - 1)
    return next((row for row in rows if CAUSE.search(row)), " ".join(rows[bad:bad + 2]) or "no output")[:300]


class Tally:
    """Counts, with the failures and skips by name."""

    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.failures = []
        self.skips = []
        self.notes = []  # warnings that fail nothing

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

    def line(self):
        counts = f"{self.passed} passed, {self.failed} failed"
        return counts + (f", {len(self.skips)} skipped" if self.skips else "")


def xml_of(tree, name):
    """Where GoogleTest writes its report: meson passes it the test's name, relative to the build folder."""
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
    for line in text.splitlines():
        plan = re.match(r"^1\.\.0\s*#\s*skip\S*\s*(.*)$", line, re.IGNORECASE)
        if plan:
            part.skip(label, plan.group(1) or "no reason given")
            continue
        if line.startswith("# warning: "):
            part.notes.append(line.removeprefix("# "))
        match = TAP_LINE.match(line)
        if not match:
            continue
        name = f"{label}: {match.group(2)}"
        if match.group(3) is not None:
            part.skip(name, match.group(3) or "no reason given")
        elif match.group(1):
            part.fail(name, text)
        else:
            part.passed += 1


def read_one(entry, test, tree, label, output):
    part = Tally()
    protocol = test.get("protocol", "exitcode")
    if protocol == "gtest" and os.path.exists(xml_of(tree, test["name"])):
        read_gtest(xml_of(tree, test["name"]), label, part)
    elif protocol == "tap":
        read_tap(entry.get("stdout", ""), label, part)
    elif entry["result"] == "SKIP":
        lines = output.strip().splitlines()
        part.skip(label, lines[-1] if lines else "no reason given")
    elif entry["result"] in ("OK", "EXPECTEDFAIL"):
        part.passed += 1
    if entry["result"] not in ("OK", "EXPECTEDFAIL", "SKIP") and not part.failed:
        part.fail(label, f"{output}\n{entry['result']}, exit status {entry.get('returncode')}")
    elif part.failed:
        # The cases say what failed, the output says what the test said around it.
        part.failures[-1] = (part.failures[-1][0], f"{output}\n{part.failures[-1][1]}")
    return part


def read(log, tree, tests):
    """{test: its tally} of one `meson test` run from its log (one JSON object per line)."""
    by_name = {t["name"]: t for t in tests}
    found = {}
    if not os.path.exists(log):
        return found
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            entry = json.loads(line)
            name = entry["name"].split(" / ")[-1]
            output = "\n".join(entry.get(stream, "").rstrip() for stream in ("stdout", "stderr"))
            found[name] = read_one(entry, by_name.get(name, {"name": name}), tree, name, output.strip("\n"))
    return found
