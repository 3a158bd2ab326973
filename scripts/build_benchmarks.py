"""What a clean build costs, in seconds of processors: of the program alone, of the tests beside it, of each sanitizer tree as the default run
has it; and which units were the dearest. No compiler cache is asked.

Machines differ, and one machine at two hours: each figure stands beside a unit of somebody else's, GoogleTest as Debian has it in source,
compiled by the same compiler in the same run. The goals are multiples of that.
"""

import os
import re
import resource
import subprocess
import tempfile

import suites
import trees
from measuring import quietly, row, seconds

YARDSTICK = "/usr/src/googletest/googletest"
PRODUCT = ["cli/monarch", "worker/monarch-worker"]
DEAREST = 20


def _processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _yardstick(place):
    """Processor seconds of one of them, of as many at once as there are processors."""
    command = ["g++", "-std=c++20", "-O2", f"-I{YARDSTICK}", f"-I{YARDSTICK}/include", "-c", f"{YARDSTICK}/src/gtest-all.cc", "-o"]
    before = _processor_seconds()
    compilers = [subprocess.Popen([*command, os.path.join(place, f"{number}.o")]) for number in range(os.cpu_count())]
    if any(compiler.wait() for compiler in compilers):
        raise SystemExit("bench: GoogleTest's own source does not compile")
    return (_processor_seconds() - before) / len(compilers)


def _row(what, used, yardstick, took="", goal=""):
    row(what, f"{used:.0f} s", took, f"{used / yardstick:.0f}", goal)


def _build(what, folder, targets, yardstick, goal=""):
    before = _processor_seconds()
    took = seconds(lambda: quietly(["ninja", "-j", str(os.cpu_count()), "-C", folder, *targets], timeout=3600))
    used = _processor_seconds() - before
    _row(what, used, yardstick, f"{took:.0f} s on {os.cpu_count()} processors", goal)
    return used


def _units(folder):
    """(seconds, output) of each step of a build, by ninja's log: start and end in milliseconds, mtime, output, hash."""
    with open(os.path.join(folder, ".ninja_log"), encoding="utf-8") as lines:
        steps = [line.rstrip("\n").split("\t") for line in lines if re.match(r"\d+\t", line)]
    return sorted({(int(end) - int(start), output) for start, end, _, output, _ in steps}, reverse=True)


def bench_build():
    os.environ["CCACHE_DISABLE"] = "1"
    print(f"{'a clean build':<50}{'processors':>14}{'wall':>29}{'ratio':>8}  goal", flush=True)
    dearest = []
    with tempfile.TemporaryDirectory(prefix="mb") as place:
        yardstick = _yardstick(place)
        _row("gtest-all.cc, the yardstick", yardstick, yardstick)
        folders = {tree: os.path.join(place, tree) for tree in ("build", *(tree for tree, _, _ in suites.SANITIZED))}
        for tree, folder in folders.items():
            failure = trees.configure(tree, folder)
            if failure:
                raise SystemExit(f"bench: {failure}")
        product = _build("the program", folders["build"], PRODUCT, yardstick, "<= 40")
        tests = _build("its tests", folders["build"], [], yardstick)
        _row("the program and its tests", product + tests, yardstick, goal="<= 91")
        for tree, wanted, _ in suites.SANITIZED:
            _build(f"{tree}, as the default run needs it", folders[tree], trees.targets_of(folders[tree], wanted), yardstick)
        for tree, folder in folders.items():
            dearest += [(milliseconds, f"{tree}/{output}") for milliseconds, output in _units(folder)]
    print(f"\nthe {DEAREST} dearest units, seconds of wall:")
    for milliseconds, output in sorted(dearest, reverse=True)[:DEAREST]:
        print(f"{milliseconds / 1000:8.1f}  {output}")
