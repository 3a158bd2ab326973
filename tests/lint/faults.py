"""Each fault of the table under `## Faults` in tests/FAULTS.md names tests that exist, and the suites `faults` and `host-faults` are just
their programs.

A row is `| id | fault | tests |`, the last cell as that of a security control (controls.py). The suites are the lists `fault_tests` of the
meson.build of tests/process and tests/cluster. Each test of real processes or hosts calls one of each row of ASSERTIONS, itself or in a
method that it calls.
"""

import ast
import re

import controls
from run_lint import Skip

PAGE, HEADING = "tests/FAULTS.md", "## Faults"
FOLDERS = ("tests/process", "tests/cluster")  # modules of the first are found from the second, too
# As tests/process/recovery.py and tests/cluster/host_faults.py say.
ASSERTIONS = {
    "that it is seen in time": {"assert_seen", "assert_unseen"},
    "which stage answers": {"assert_answer", "assert_stage", "assert_nothing_done"},
    "that others go on": {"assert_go_on"},
    "that nothing is left": {"assert_nothing_left"},
}


def table(*cells):
    rows = "".join(f"| P0{i} | a rank is killed | {cell} |\n" for i, cell in enumerate(cells, start=1))
    return f"# a\n\n{HEADING}\n\n| id | fault | tests |\n|---|---|---|\n{rows}\n## Next\n"


def suite(*names):
    return "fault_tests = [\n" + "".join(f"  '{name}',\n" for name in names) + "]\n"


def program(*calls):
    return ("class Case(base.Base):\n    def test_it(self):\n" + "".join(f"        self.{call}()\n" for call in calls) + "        pass\n")


ALL = ("assert_seen", "assert_stage", "assert_go_on", "end")
CLEAN = {
    PAGE: table("tests/process/a_test.py: Case.test_it; tests/x_test.cc: Suite.Name", "tests/process/b_test.py: Other.test_that",
                "tests/cluster/c_test.py: Case.test_it"),
    "tests/process/meson.build": suite("a_test.py", "b_test.py"),
    "tests/cluster/meson.build": suite("c_test.py"),
    "tests/cluster/c_test.py": "import base\n\n\n" + program(*ALL).replace("assert_seen", "assert_unseen"),
    "tests/process/base.py": "class Base(unittest.TestCase):\n    def end(self):\n        self.assert_nothing_left()\n",
    "tests/process/a_test.py": program(*ALL),
    "tests/process/b_test.py": "import a_test\n\n\nclass Mine(a_test.Case):\n    pass\n\n\nclass Other(Mine):\n    that = a_test.Case.test_it\n\n"
                               "    def test_that(self):\n        (lambda: self.that())()\n",
    "tests/x_test.cc": "TEST(Suite, Name) {}\n",
    "tests/meson.build": "executable('x', 'x_test.cc')\n",
}
PLANTS = [
    (PAGE, table("tests/process/a_test.py: Case.test_other"), "no test Case.test_other"),
    (PAGE, table("tests/process/a_test.py: Case.test_it", ""), "names no test"),
    (PAGE, table("tests/process/a_test.py: Case.test_it").replace("P01", "killed"), "no id"),
    (PAGE, "# a\n", "has no table"),
    (PAGE, table("tests/x_test.cc: Suite.Name", "tests/process/a_test.py: Case.test_it"), "P01: no test of real processes"),
    ("tests/process/meson.build", suite("a_test.py"), "lacks b_test.py"),
    ("tests/process/meson.build", suite("a_test.py", "b_test.py", "d_test.py"), "d_test.py holds no fault"),
    ("tests/cluster/meson.build", suite(), "tests/cluster/meson.build: fault_tests lacks c_test.py"),
    ("tests/cluster/c_test.py", "import base\n\n\n" + program(*ALL[:3]), "c_test.py: Case.test_it does not assert that nothing is left"),
    ("tests/process/a_test.py", program(*ALL[1:]), "Case.test_it does not assert that it is seen in time"),
    ("tests/process/a_test.py", program(*ALL[:3]), "Case.test_it does not assert that nothing is left"),
    ("tests/process/b_test.py", program(*ALL).replace("Case", "Other").replace("test_it", "test_that").replace("assert_go_on", "go_on"),
     "Other.test_that does not assert that others go on"),
]


class Programs:
    """The classes of the folders, and which methods one of a test reaches through `self`. A module is named by its path without `.py`."""

    def __init__(self, tree):
        self._tree, self._modules = tree, {}

    def _classes(self, module):
        if module not in self._modules:
            path = f"{module}.py"
            parsed = ast.parse(self._tree.read(path)).body if self._tree.exists(path) else []
            self._modules[module] = {node.name: node for node in parsed if isinstance(node, ast.ClassDef)}
        return self._modules[module]

    def _find(self, module, node):
        """(module, class) of an expression that names a class: `Name` or `module.Name`."""
        if isinstance(node, ast.Name):
            return module, node.id
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            own = module.rpartition("/")[0]
            places = [f"{folder}/{node.value.id}" for folder in (own, *FOLDERS)]
            return next((place for place in places if self._tree.exists(f"{place}.py")), places[0]), node.attr
        return module, ""

    def _method(self, module, name, method):
        """(module, its tree), of the class or the first base that has it."""
        node = self._classes(module).get(name)
        if node is None:
            return None
        for part in node.body:
            if isinstance(part, ast.FunctionDef) and part.name == method:
                return module, part
            renamed = isinstance(part, ast.Assign) and isinstance(part.value, ast.Attribute)
            if renamed and any(isinstance(target, ast.Name) and target.id == method for target in part.targets):
                return self._method(*self._find(module, part.value.value), part.value.attr)
        return next(filter(None, (self._method(*self._find(module, base), method) for base in node.bases)), None)

    def reached(self, module, name, test):
        """Names of the methods that a test calls, and those that they call."""
        names, open_ = set(), [test]
        while open_:
            found = self._method(module, name, open_.pop())
            for node in ast.walk(found[1]) if found else []:
                mine = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
                if mine and node.attr not in names:
                    names.add(node.attr)
                    open_.append(node.attr)
        return names


def check_assertions(programs, cell):
    found = []
    for module, tests in re.findall(rf"((?:{'|'.join(FOLDERS)})/\w+)\.py:([^;]*)", cell):
        for test in filter(None, (part.strip() for part in tests.split(","))):
            reached = programs.reached(module, *test.split("."))
            found += [f"{module}.py: {test} does not assert {what}, by {' or '.join(sorted(words))}"
                      for what, words in ASSERTIONS.items() if not words & reached]
    return found


def check_suite(tree, folder, cells):
    """That the list of the folder's meson.build is the programs that the cells name there."""
    suite = f"{folder}/meson.build"
    named = {name for cell in cells for name in re.findall(rf"{folder}/(\w+_test\.py)", cell)}
    listed = re.search(r"^fault_tests = \[(.*?)^\]", tree.read(suite), re.M | re.S) if tree.exists(suite) else None
    suite_has = set(re.findall(r"'([^']+)'", listed.group(1))) if listed else set()
    return ([f"{suite}: fault_tests lacks {name}" for name in sorted(named - suite_has)] +
            [f"{suite}: fault_tests: {name} holds no fault of {PAGE}" for name in sorted(suite_has - named)])


def check(tree, _build):
    if not tree.exists(PAGE) or not tree.exists(f"{FOLDERS[0]}/meson.build"):
        raise Skip(f"this tree has no {PAGE} or no {FOLDERS[0]}/meson.build")
    rows = controls.rows_of(tree.read(PAGE), HEADING)
    if len(rows) < 2:
        return [f"{PAGE}: has no table under {HEADING}"]
    found, cells, programs = [], [], Programs(tree)
    for row in rows[1:]:
        cell = row[-1] if len(row) == 3 else ""
        cells.append(cell)
        if not re.fullmatch(r"[A-Z]\d\d", row[0].strip()):
            found.append(f"{PAGE}: `{row[0]}` is no id of a fault")
        missing = controls.check_tests(tree, PAGE, row[0], cell)
        found += missing or check_assertions(programs, cell)
        if cell.strip() and not re.search(rf"({'|'.join(FOLDERS)})/\w+_test\.py", cell):
            found.append(f"{PAGE}: {row[0]}: no test of real processes")
    for folder in FOLDERS:
        found += check_suite(tree, folder, cells)
    return found
