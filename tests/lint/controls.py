"""Each security control of SECURITY.md names a test, and each test that is named there exists and is run: its folder's meson.build, or
that of the folder above, has its program.

A row of the table under `## Security controls` ends in a cell of tests: `path: Suite.Name, Suite.Name; path`. A path alone is
enough where the file is the test: a lint, or a folder of corpora.
"""

import os
import re

from run_lint import Skip

PAGE, HEADING = "SECURITY.md", "## Security controls"


def table(*cells):
    rows = "".join(f"| X0{i} | junk | closed | {cell} |\n" for i, cell in enumerate(cells, start=1))
    return f"# a\n\n{HEADING}\n\n| id | against | control | tests |\n|---|---|---|---|\n{rows}\n## Next\n\n| a | b |\n"


CLEAN = {
    PAGE: table("tests/a_test.cc: Hostile.Junk, Hostile.Silence; tests/b_test.py: Case.test_it", "tests/lint/c.py"),
    "tests/a_test.cc": "TEST(Hostile, Junk) {}\nTEST_F(Hostile, Silence) {}\n",
    "tests/b_test.py": "class Case(harness.MonarchTest):\n    def test_it(self):\n        pass\n",
    "tests/lint/c.py": "",
    "tests/meson.build": "test('a', executable('a', 'a_test.cc'))\ntest('b', python, args: files('b_test.py'))\n",
}
PLANTS = [
    ("tests/meson.build", "test('a', executable('a', 'a_test.cc'))\n", "does not run tests/b_test.py"),
    (PAGE, table("tests/a_test.cc: Hostile.Gone"), "no test Hostile.Gone"),
    (PAGE, table("tests/b_test.py: Case.test_other"), "no test Case.test_other"),
    (PAGE, table("tests/b_test.py: Other.test_it"), "no test Other.test_it"),
    (PAGE, table("tests/d_test.cc: Hostile.Junk"), "there is no tests/d_test.cc"),
    (PAGE, table("tests/a_test.cc"), "names no test of"),
    (PAGE, table(""), "names no test"),
    (PAGE, table("tests/lint/c.py").replace("X01", "nothing"), "no id"),
    (PAGE, "# a\n", "has no table"),
]


def holds(text, path, name):
    suite, _, case = name.partition(".")
    if path.endswith(".py"):
        return re.search(rf"^class {re.escape(suite)}\b", text, re.M) and re.search(rf"^    def {re.escape(case)}\(", text, re.M)
    return re.search(rf"^(TYPED_)?TEST(_F|_P)?\({re.escape(suite)}, {re.escape(case)}\)", text, re.M)


def is_run(tree, path):
    folder = os.path.dirname(path)
    places = [p for p in (folder, os.path.dirname(folder)) if tree.exists(f"{p}/meson.build")]
    return any(re.search(f"'({re.escape(os.path.basename(path))}|{re.escape(os.path.relpath(path, place))})'",
                         tree.read(f"{place}/meson.build")) for place in places)


def check_tests(tree, page, row, cell):
    found = []
    for entry in filter(None, (part.strip() for part in cell.split(";"))):
        path, _, names = entry.partition(":")
        if not os.path.exists(os.path.join(tree.root, path)):
            found.append(f"{page}: {row}: there is no {path}")
            continue
        wanted = [name.strip() for name in names.split(",") if name.strip()]
        if re.search(r"_test\.(cc|py)$", path):
            if not wanted:
                found.append(f"{page}: {row}: names no test of {path}")
            if not is_run(tree, path):
                found.append(f"{os.path.dirname(path)}/meson.build: does not run {path}, which {row} of {page} names")
        found += [f"{page}: {row}: no test {name} in {path}" for name in wanted if not holds(tree.read(path), path, name)]
    return found or ([] if cell.strip() else [f"{page}: {row}: names no test"])


def rows_of(page, heading):
    """The cells of each row of the table under a heading, its head first."""
    section = page.partition(heading + "\n")[2].partition("\n## ")[0]
    return [line.strip("| ").split(" | ") if not line.endswith("|  |") else [*line.strip("| ").split(" | "), ""]
            for line in section.splitlines() if line.startswith("| ")]


def check(tree, _build):
    if not tree.exists(PAGE):
        raise Skip(f"this tree has no {PAGE}")
    rows = rows_of(tree.read(PAGE), HEADING)
    if len(rows) < 2:
        return [f"{PAGE}: has no table under {HEADING}"]
    found = []
    for row in rows[1:]:
        if not re.fullmatch(r"[A-Z]\d\d", row[0].strip()):
            found.append(f"{PAGE}: `{row[0]}` is no id of a control")
        found += check_tests(tree, PAGE, row[0], row[-1] if len(row) == 4 else "")
    return found
