"""The build trees that scripts/test runs its suites in: how each is configured, built, and run. Standard library only."""

import fcntl
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MINUTE = 60
BUILD_S = 40 * MINUTE

# The sanitizer trees are compiled by clang, unoptimised, which is a third of what -O1 -g takes, and every run has a second compiler's view of
# the code. Thread has line numbers, for what it finds may not come again; address names functions alone. Each library is one unit there, which
# holds that names in unnamed namespaces are unique within it; meson.build joins fewer. One of them is built as where there is no
# libibverbs and no OpenSSL.
#
# What undefined checks of every access to memory (no null pointer, none that is not aligned) is a fourth of its tree's time to compile and half
# of that to run. The tree of clang has it instead, optimised, and traps.
SANITIZER = ["-Dunity_size=1000", "-Db_lundef=false", "-Doptimization=0", "-Ddebug=true"]
OPTIONS = {
    "build": [],
    "build-asan": ["-Db_sanitize=address,undefined", "-Dcpp_args=-g0 -fno-sanitize=null -fno-sanitize=alignment", *SANITIZER],
    "build-tsan": ["-Db_sanitize=thread", "-Dverbs=disabled", "-Dopenssl=disabled", "-Dcpp_args=-g1", *SANITIZER],
    "build-clang": ["-Dunity=off", "-Djoin_tests=false", "-Doptimization=1",
                    "-Dcpp_args=-fsanitize=null -fsanitize=alignment -fsanitize-undefined-trap-on-error"],
}
# lld links a test with the runtime of a sanitizer in a fourth of the time that ld takes.
CLANG = {"CC": "clang-14", "CXX": "clang++-14", "CC_LD": "lld", "CXX_LD": "lld"}
COMPILERS = {"build-asan": CLANG, "build-tsan": CLANG, "build-clang": CLANG}
ENVIRONMENT = {
    "build-asan": {
        "ASAN_OPTIONS": "halt_on_error=1:abort_on_error=0:detect_leaks=1:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    },
    "build-tsan": {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:suppressions=" +
                                   os.path.join(ROOT, "tests/thread_sanitizer.supp")},
}


def path_of(tree):
    return os.path.join(ROOT, tree)


def call(command, limit_s, environment=None):
    """Runs a command of the build. Returns its output where it failed or took too long, else None."""
    try:
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **(environment or {})}, timeout=limit_s,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired as error:
        return f"{' '.join(command)}: not done after {limit_s} s\n{(error.output or b'').decode(errors='replace')}"
    return None if done.returncode == 0 else done.stdout.decode(errors="replace")


def introspect(path, what):
    command = ["meson", "introspect", path, "--" + what]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=MINUTE).stdout)


def tests_of(path, suites):
    """The tests of a configured folder that are in any of the suites (meson writes `project:suite`)."""
    return [test for test in introspect(path, "tests") if set(suites) & {suite.split(":")[-1] for suite in test["suite"]}]


def targets_of(path, suites):
    """What these suites need, relative to the folder."""
    needed = {d for t in tests_of(path, suites) for d in t["depends"]}
    files = [name for t in introspect(path, "targets") if t["id"] in needed for name in t["filename"]]
    return sorted(os.path.relpath(name, path) for name in files)


def configure(tree, path):
    """Configures `path` as this tree, where it is not. Returns the output of what failed, or None."""
    if os.path.exists(os.path.join(path, "build.ninja")):
        return None
    werror = ["--werror"] if os.environ.get("CI") else []
    return call(["meson", "setup", *werror, *OPTIONS[tree], path, ROOT], 5 * MINUTE, COMPILERS.get(tree))


def build(tree, suites):
    """Configures and builds what the suites need: all of it in the clang tree, and where it is to be packed. Returns the output of what
    failed, or None.

    One build at a time per checkout."""
    lock = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path, environment = path_of(tree), COMPILERS.get(tree)
        failure = configure(tree, path) or call(["ninja", "-C", path, "build.ninja"], 5 * MINUTE, environment)
        if failure:
            return failure
        targets = [] if tree == "build-clang" or "package" in suites else targets_of(path, suites)
        # Ninja's own choice is two more than there are processors, which then push each other out of their caches.
        return call(["ninja", "-j", str(len(os.sched_getaffinity(0))), "-C", path, *targets], BUILD_S, environment)
    finally:
        os.close(lock)


def runs_at(tree, test):
    """A test as it is run in this tree: meson names programs that are arguments by their place in it.

    WARNING: clang 14's thread sanitizer refuses to run where the kernel randomises more than 28 bits of mmap."""
    command, workdir = test["cmd"], test["workdir"] or path_of(tree)
    if tree == "build-tsan":
        with open("/proc/sys/vm/mmap_rnd_bits", encoding="ascii") as bits:
            if int(bits.read()) > 28:
                command = ["setarch", "--addr-no-randomize", *command]
    return {**test, "cmd": command, "workdir": workdir}


def main(tree, *suites):
    """Builds a tree; its words are what failed."""
    failure = build(tree, suites)
    if failure:
        print(failure)
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
