"""clang-tidy over every source but the tests, as the compile commands of the build say, one file per core at a time."""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess

from run_lint import Skip

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with open(os.path.join(ROOT, ".clang-tidy"), encoding="utf-8") as config:
    CLEAN = {".clang-tidy": config.read(), "cli/a.cc": "int f(int a) { return a + 1; }\n"}
PLANTS = [
    ("cli/override.cc", "struct A { virtual ~A() = default; virtual int f(); };\nstruct B : A { int f(); };\n", "use-override"),
    ("cli/moved.cc", "#include <string>\n#include <utility>\nvoid g(std::string);\n"
                     "auto f(std::string s) { g(std::move(s)); return s.size(); }\n", "use-after-move"),
    ("cli/long.cc", "int f(int a) {\n" + "  a += 2;\n" * 71 + "  return a;\n}\n", "function-size"),
]


def check_file(tool, tree, path, before, after=()):
    done = subprocess.run([tool, "--quiet", *before, os.path.join(tree.root, path), *after], cwd=tree.root, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    text = done.stdout.decode(errors="replace")
    found = [row for row in text.splitlines() if re.search(r": (warning|error): ", row)]
    if done.returncode and not found:
        found = [text]
    return [f"{path}: {row.replace(tree.root + '/', '')}" for row in found]


def check(tree, build):
    tool = shutil.which("clang-tidy-14")
    if not tool:
        raise Skip("clang-tidy-14 is not installed")
    if build is None:
        return [c for p in tree.files(".cc") for c in check_file(tool, tree, p, (), ("--", "-std=c++20"))]
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as commands:
        files = {os.path.realpath(os.path.join(c["directory"], c["file"])) for c in json.load(commands)}
    paths = sorted(p for p in (os.path.relpath(f, tree.root) for f in files) if p.endswith(".cc") and not p.startswith(("tests/", "..")))
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        parts = pool.map(lambda path: check_file(tool, tree, path, ["-p", build]), paths)
        return sorted({c for part in parts for c in part})
