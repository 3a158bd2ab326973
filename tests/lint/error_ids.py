"""Every error id that the spec or the command line emits is in the register, with a title and an explanation, and is shown by a
golden of the corpora, or by a test with a job that lives; nothing in the register is emitted by nobody."""

import re

REGISTER = "supervisor/spec/yaml/error_register.cc"
SOURCES = ("supervisor/spec/", "supervisor/drill/", "supervisor/launch/", "cli/")
GOLDENS = ("tests/supervisor/spec/broken/", "tests/supervisor/drill/scenario/broken/", "tests/cli/golden/")
ID = re.compile(r'"(E[0-9]{4})"')
LITERAL = r'(?:\s*"(?:\\.|[^"\\])*")+'
ENTRY = re.compile(r'\{\s*"(E[0-9]{4})"\s*,(' + LITERAL + r')\s*,(' + LITERAL + r')\s*\}')
# What needs a live job has no golden: the test that provokes it names it.
LIVE = re.compile(r"tests/(cli|process)/\w+_test\.py")
SHOWN = re.compile(r"\b(?:error|warning)\[(E[0-9]{4})\]")

GOOD = 'E doc[] = {{"E0001", "a title", "An explanation\\n" "of it."}};\n'
CLEAN = {
    REGISTER: GOOD,
    "supervisor/spec/yaml/yaml.cc": 'report.error("E0001", place);\n',
    "tests/supervisor/spec/broken/a.txt": "error[E0001]: wrong\n",
}
PLANTS = [
    ("supervisor/spec/check/check.cc", 'report.error("E0002", place);\n', "emits E0002, which is not in the register"),
    ("cli/main.cc", 'say({.id = "E0901"});\n', "emits E0901, which is not in the register"),
    ("tests/supervisor/spec/broken/a.txt", "fine\n", "E0001 is shown by no golden"),
    (REGISTER, GOOD.replace("};", '{"E0003", "a", "b."}};'), "E0003 is emitted by nobody"),
    (REGISTER, 'E doc[] = {{"E0001", "a title", ""}};\n', "E0001 has no explanation"),
    (REGISTER, GOOD + GOOD, "E0001 is registered twice"),
]


def literal(text):
    return "".join(re.findall(r'"((?:\\.|[^"\\])*)"', text))


def check(tree, _build):
    if not tree.exists(REGISTER):
        return [f"{REGISTER}: is missing"]
    found = []
    register = {}
    for match in ENTRY.finditer(tree.read(REGISTER)):
        name = match.group(1)
        if name in register:
            found.append(f"{REGISTER}: {name} is registered twice")
        register[name] = (literal(match.group(2)), literal(match.group(3)))
        for part, words in zip(("title", "explanation"), register[name]):
            if not words.strip():
                found.append(f"{REGISTER}: {name} has no {part}")
    emitted = set()
    for path in tree.cxx():
        if not path.startswith(SOURCES) or path == REGISTER:
            continue
        for name in sorted(set(ID.findall(tree.read(path)))):
            emitted.add(name)
            if name not in register:
                found.append(f"{path}: emits {name}, which is not in the register")
    goldens = [p for p in tree.files(".txt") if p.startswith(GOLDENS)]
    shown = {name for path in goldens for name in SHOWN.findall(tree.read(path))}
    for path in tree.files("_test.py"):
        if LIVE.fullmatch(path):
            shown |= set(re.findall(r"\bE[0-9]{4}\b", tree.read(path)))
    for name in sorted(register):
        if name not in shown:
            found.append(f"{REGISTER}: {name} is shown by no golden of {', '.join(goldens[:1])}")
        if name not in emitted:
            found.append(f"{REGISTER}: {name} is emitted by nobody")
    return found
