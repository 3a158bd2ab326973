"""Each fault of the table under `## Faults` in ARCHITECTURE.md names tests that exist, and the suite `faults` is just their programs.

A row is `| id | fault | tests |`, the last cell as that of a security control (controls.py). The suite is the list `fault_tests` of
tests/process/meson.build.
"""

import re

import controls
from run_lint import Skip

PAGE, HEADING, SUITE = "ARCHITECTURE.md", "## Faults", "tests/process/meson.build"


def table(*cells):
    rows = "".join(f"| P0{i} | a rank is killed | {cell} |\n" for i, cell in enumerate(cells, start=1))
    return f"# a\n\n{HEADING}\n\n| id | fault | tests |\n|---|---|---|\n{rows}\n## Next\n"


def suite(*names):
    return "fault_tests = [\n" + "".join(f"  '{name}',\n" for name in names) + "]\n"


CLEAN = {
    PAGE: table("tests/process/a_test.py: Case.test_it; tests/x_test.cc: Suite.Name", "tests/process/b_test.py: Case.test_it"),
    SUITE: suite("a_test.py", "b_test.py"),
    "tests/process/a_test.py": "class Case(harness.MonarchTest):\n    def test_it(self):  # P01\n        pass\n",
    "tests/process/b_test.py": "class Case(harness.MonarchTest):\n    def test_it(self):  # P02\n        pass\n",
    "tests/x_test.cc": "TEST(Suite, Name) {}\n",
}
PLANTS = [
    (PAGE, table("tests/process/a_test.py: Case.test_other"), "no test Case.test_other"),
    (PAGE, table("tests/process/a_test.py: Case.test_it", ""), "names no test"),
    (PAGE, table("tests/process/a_test.py: Case.test_it").replace("P01", "killed"), "no id"),
    (PAGE, "# a\n", "has no table"),
    (PAGE, table("tests/x_test.cc: Suite.Name", "tests/process/a_test.py: Case.test_it"), "P01: no test of real processes"),
    (SUITE, suite("a_test.py"), "lacks b_test.py"),
    (SUITE, suite("a_test.py", "b_test.py", "c_test.py"), "c_test.py holds no fault"),
]


def check(tree, _build):
    if not tree.exists(PAGE) or not tree.exists(SUITE):
        raise Skip(f"this tree has no {PAGE} or no {SUITE}")
    rows = controls.rows_of(tree.read(PAGE), HEADING)
    if len(rows) < 2:
        return [f"{PAGE}: has no table under {HEADING}"]
    found, programs = [], set()
    for row in rows[1:]:
        cell = row[-1] if len(row) == 3 else ""
        if not re.fullmatch(r"[A-Z]\d\d", row[0].strip()):
            found.append(f"{PAGE}: `{row[0]}` is no id of a fault")
        found += controls.check_tests(tree, row[0], cell)
        own = set(re.findall(r"tests/process/(\w+_test\.py)", cell))
        programs |= own
        if cell.strip() and not own:
            found.append(f"{PAGE}: {row[0]}: no test of real processes")
    listed = re.search(r"^fault_tests = \[(.*?)^\]", tree.read(SUITE), re.M | re.S)
    suite_has = set(re.findall(r"'([^']+)'", listed.group(1))) if listed else set()
    found += [f"{SUITE}: fault_tests lacks {name}" for name in sorted(programs - suite_has)]
    found += [f"{SUITE}: fault_tests: {name} holds no fault of {PAGE}" for name in sorted(suite_has - programs)]
    return found
