"""Every C++ source is as clang-format 14 would write it."""

import os
import shutil
import subprocess

from run_lint import Skip

CLEAN = {".clang-format": "BasedOnStyle: Google\nColumnLimit: 120\n", "cli/a.cc": "int f() { return 1; }\n"}
PLANTS = [("cli/b.cc", "int  f( ) {return 1;}\n", "not formatted")]


def check(tree, _build):
    tool = shutil.which("clang-format-14")
    if not tool:
        raise Skip("clang-format-14 is not installed")
    paths = [p for p in tree.cxx() if "/corpus/" not in p]
    done = subprocess.run([tool, "--dry-run", "-Werror", "--ferror-limit=1", *paths], cwd=tree.root, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    lines = [row for row in done.stdout.decode(errors="replace").splitlines() if "error:" in row]
    found = [f"{os.path.relpath(os.path.join(tree.root, row.split(':')[0]), tree.root)}: not formatted; "
             f"clang-format-14 -i it ({row})" for row in lines]
    return found or (["clang-format failed: " + done.stdout.decode(errors="replace")] if done.returncode else [])
