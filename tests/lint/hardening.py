"""What the linker made: position independent, read-only after relocation, no executable stack, guarded, fortified.

The worker is one static file besides: no interpreter, no library needed at run time.
"""

import os
import re
import shutil
import subprocess

from run_lint import Skip

GOOD = "-O2 -pie -fPIE -fstack-protector-all -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -Wl,-z,relro,-z,now,-z,noexecstack"
# Fortify counts only if a call needs its check at run time.
MAIN = "#include <cstring>\n#include <cstdio>\nint main(int n, char** v) { char b[64]; strncpy(b, v[0], n); puts(b); }\n"


def plant(flags, name):
    """A source whose first line says how check() compiles it; planted trees hold these instead of binaries."""
    return (f"bin/{name}.cc", f"// {flags}\n{MAIN}")


CLEAN = dict([plant(GOOD, "monarch"), plant(GOOD.replace("-pie ", "-static-pie "), "monarch-worker")])
PLANTS = [
    (*plant(GOOD.replace("-pie -fPIE", "-no-pie"), "no-pie"), "not position independent"),
    (*plant(GOOD.replace("-z,relro", "-z,norelro"), "no-relro"), "no RELRO"),
    (*plant(GOOD.replace("-z,now", "-z,lazy"), "lazy"), "bound lazily"),
    (*plant(GOOD.replace("noexecstack", "execstack"), "stack"), "executable stack"),
    (*plant(GOOD.replace("-fstack-protector-all", "-fno-stack-protector"), "canary"), "no stack protector"),
    (*plant(GOOD.replace("-D_FORTIFY_SOURCE=2", ""), "fortify"), "not fortified"),
    (*plant(GOOD + " -Wl,-rpath,/opt/lib", "rpath"), "a run path"),
    (*plant(GOOD, "monarch-worker"), "not static"),
]


def readelf(path):
    done = subprocess.run(["readelf", "-hldsW", path], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=60)
    return done.stdout.decode(errors="replace")


def check_elf(name, text, static):
    facts = [
        (re.search(r"^\s*Type:\s+DYN", text, re.M), "not position independent"),
        (re.search(r"^\s*GNU_RELRO\s", text, re.M), "no RELRO segment"),
        (re.search(r"BIND_NOW|Flags: .*\bNOW\b", text), "symbols are bound lazily"),
        (re.search(r"^\s*GNU_STACK\s.* RW\s", text, re.M), "an executable stack"),
        (not re.search(r"^\s*LOAD\s.* RWE\s", text, re.M), "a segment that is writable and executable"),
        (not re.search(r"\((RPATH|RUNPATH)\)", text), "a run path"),
        (not re.search(r"\(TEXTREL\)", text), "text relocations"),
    ]
    if static:
        facts.append((not re.search(r"^\s*INTERP\s|\(NEEDED\)", text, re.M), "not static: it needs an interpreter or a library"))
    # A stripped static file has no names to go by; the dynamic one still names what it imports.
    if " .symtab" in text or not static or "Symbol table '.symtab'" in text:
        facts.append((re.search(r"\b__stack_chk_fail\b", text), "no stack protector"))
        facts.append((re.search(r"\b__(?!stack)\w+_chk\b", text), "not fortified"))
    return [f"{name}: {complaint}" for holds, complaint in facts if not holds]


def compiled(tree):
    """(name as planted, path of the binary): the sources of a planted tree, each compiled as its first line says."""
    for path in tree.files(".cc"):
        source = os.path.join(tree.root, path)
        flags = tree.read(path).splitlines()[0].removeprefix("// ").split()
        subprocess.run(["g++", *flags, "-w", source, "-o", source.removesuffix(".cc")], check=True, timeout=120,
                       stdin=subprocess.DEVNULL)
        yield path, source.removesuffix(".cc")


def check(tree, build):
    if not shutil.which("readelf") or not shutil.which("g++"):
        raise Skip("readelf or g++ is not installed")
    if build is None:
        binaries = list(compiled(tree))
    else:
        binaries = [(p, os.path.join(build, p)) for p in ("cli/monarch", "worker/monarch-worker")]
        binaries = [(name, path) for name, path in binaries if os.path.exists(path)]
        if not binaries:
            raise Skip("no binary is built here")
    return [c for name, path in binaries
            for c in check_elf(name, readelf(path), "monarch-worker" in os.path.basename(path))]
