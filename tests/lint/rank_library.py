"""libmonarch-rank.so goes into users' containers: it shows its C functions alone, needs of a system the C library and that
of the compiler, and no version of these that is newer than Ubuntu 22.04's.
"""

import os
import re
import shutil
import subprocess

from run_lint import Skip

LIBRARY = "worker/library/libmonarch-rank.so"
NEEDED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
GLIBC = (2, 34)

GOOD = "extern \"C\" int monarch_tensors_abi() { return 1; }\n"
CLEAN = {"lib/one.cc": "// -nostdlib\n" + GOOD}
PLANTS = [
    ("lib/one.cc", "// -nostdlib\n" + GOOD + "extern \"C\" int other() { return 2; }\n", "shows other"),
    ("lib/one.cc", "// -nostdlib\nextern \"C\" int monarch_tensors_abi() { return 1; }\ntemplate <class T> T& one() { static T is; return is; }\n"
                   "int& monarch_tensors_one() { return one<int>(); }\n", "shows"),
    ("lib/one.cc", "//\n#include <string>\n" + GOOD + "std::string monarch_tensors_words(std::string x) { return x + x; }\n",
     "needs libstdc++.so.6"),
]


def names(path, *options):
    done = subprocess.run(["nm", "-D", *options, path], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=60)
    return [line.split() for line in done.stdout.decode().splitlines()]


def complaints(name, path):
    for line in names(path, "--defined-only"):
        symbol = line[-1].split("@")[0]
        if not re.fullmatch(r"monarch_tensors_[a-z0-9_]+", symbol):
            yield f"{name}: shows {symbol}"
        elif line[-2] != "T":
            yield f"{name}: shows {symbol}, which is no function of its own ({line[-2]})"
    header = subprocess.run(["readelf", "-d", path], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=60)
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", header.stdout.decode()):
        if needed not in NEEDED:
            yield f"{name}: needs {needed}"
    for line in names(path, "--undefined-only"):
        version = re.search(r"@GLIBC_(\d+)\.(\d+)", line[-1])
        if version and (int(version[1]), int(version[2])) > GLIBC:
            yield f"{name}: needs {line[-1]}, which is newer than GLIBC_{GLIBC[0]}.{GLIBC[1]}"


def compiled(tree):
    for path in tree.files(".cc"):
        source = os.path.join(tree.root, path)
        flags = tree.read(path).splitlines()[0].removeprefix("//").split()
        subprocess.run(["g++", "-shared", "-fPIC", *flags, "-w", source, "-o", source + ".so"], check=True, timeout=120,
                       stdin=subprocess.DEVNULL)
        yield path, source + ".so"


def check(tree, build):
    if not shutil.which("nm") or not shutil.which("readelf") or not shutil.which("g++"):
        raise Skip("nm, readelf or g++ is not installed")
    if build is None:
        libraries = list(compiled(tree))
    else:
        path = os.path.join(build, LIBRARY)
        if not os.path.exists(path):
            raise Skip("no library is built here")
        with open(os.path.join(build, "meson-info", "intro-buildoptions.json"), encoding="utf-8") as file:
            if not re.search(r'"name": "b_sanitize", "value": "none"', file.read()):
                raise Skip("a sanitizer's library needs its runtime")
        libraries = [(LIBRARY, path)]
    return [complaint for name, path in libraries for complaint in complaints(name, path)]
