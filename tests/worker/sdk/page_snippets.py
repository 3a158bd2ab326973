"""Compiles what a page shows. Of a manual page the blocks behind `.\\" C++`, one after the other, are one program; of one in
Markdown the blocks of C++ that begin with an #include are.

page_snippets.py PAGE COMPILER [ARGUMENT ...]
"""

import re
import subprocess
import sys


def program_of(page):
    if page.startswith("# "):
        return "\n".join(re.findall(r"^```cpp\n(#include .*?)^```$", page, re.S | re.M))
    blocks = re.findall(r'^\.\\" C\+\+\n\.nf\n(.*?)^\.fi$', page, re.S | re.M)
    return "\n".join(block.replace("\\\\", "\\").replace("\\-", "-") for block in blocks)


def main(page, *compiler):
    with open(page, encoding="utf-8") as file:
        program = program_of(file.read())
    if not program:
        print(f"{page} shows no C++")
        return 1
    return subprocess.run([*compiler, "-fsyntax-only", "-x", "c++", "-"], input=program, text=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
