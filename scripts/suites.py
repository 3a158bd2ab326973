"""The suites of scripts/test: builds the trees they need, runs them through `meson test`, counts single cases.

A suite is a list of runs; a run is one build tree and the meson suites to run in it. The last line of stdout is
`N passed, N failed` (and `, N skipped`); progress and failures go to stdout before it. Standard library only.
"""

import fcntl
import json
import os
import subprocess
import sys
import time

import results

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The folder of each build tree, and how it is configured. The sanitizer trees are compiled by clang, unoptimised and with
# line numbers alone: that takes a third of the time of -O1 -g, and every run has a second compiler's view of the code.
QUICK = ["-Db_lundef=false", "-Doptimization=0", "-Ddebug=true", "-Dcpp_args=-g1", "-Djoin_tests=true"]
TREES = {
    "build": [],
    "build-asan": ["-Db_sanitize=address,undefined", *QUICK],
    "build-tsan": ["-Db_sanitize=thread", *QUICK],
    "build-clang": ["-Doptimization=1"],
}
CLANG = {"CC": "clang-14", "CXX": "clang++-14"}
COMPILERS = {"build-asan": CLANG, "build-tsan": CLANG, "build-clang": CLANG}
ENVIRONMENT = {
    "build-asan": {
        "ASAN_OPTIONS": "halt_on_error=1:abort_on_error=0:detect_leaks=1:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    },
    "build-tsan": {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:suppressions=" +
                                   os.path.join(ROOT, "tests/thread_sanitizer.supp")},
}
SHORT_SIMULATION = {"MONARCH_SIM_SEEDS": "300"}
LONGER_SIMULATION = {"MONARCH_SIM_SEEDS": "1000"}  # a seed takes some fifty times as long as without a sanitizer
MINUTE = 60

# name: (what --list says, [(tree, meson suites, extra environment)])
SUITES = {
    "unit": ("one executable per folder", [("build", ["unit"], {})]),
    "sim": ("the simulator: seeds, replay, mutants", [("build", ["sim"], {})]),
    "sim-long": ("10000 seeds of it, its mutants, the digest of 100 seeds twice", [("build", ["sim-long"], {})]),
    "process": ("real processes, faults among them", [("build", ["process"], {})]),
    "process-long": ("those of them that need their minute", [("build", ["process-long"], {})]),
    "faults": ("those of process and process-long that hold the faults of ARCHITECTURE.md", [("build", ["faults"], {})]),
    "cluster": ("hosts in namespaces, each with its sshd, and what befalls them; as root", [("build", ["cluster"], {})]),
    "host-faults": ("the faults of ARCHITECTURE.md that strike hosts and networks, on such hosts; as root",
                    [("build", ["host-faults"], {})]),
    "slurm-long": ("what Slurm itself does, and waits as long as its own; as root", [("build", ["slurm-long"], {})]),
    "torchft": ("configs/torchft.yaml with the real torchft, from PyPI", [("build", ["torchft"], {})]),
    "cli": ("commands: stdout, stderr and status", [("build", ["cli"], {})]),
    "package": ("the tarball in a minimal Debian root, and uninstalling", [("build", ["package"], {})]),
    "lint": ("house rules", [("build", ["lint"], {})]),
    "fuzz": ("every parser over its corpus", [("build", ["fuzz"], {})]),
    "sanitize": ("unit and 300 seeds under address+undefined and thread sanitizers, corpora under the first",
                 [("build-asan", ["unit", "sim-seeds", "fuzz"], SHORT_SIMULATION),
                  ("build-tsan", ["unit", "sim-seeds"], SHORT_SIMULATION)]),
    "sanitize-full": ("all of unit, sim (1000 seeds), process and fuzz under the sanitizers",
                      [("build-asan", ["unit", "sim", "process", "fuzz"], LONGER_SIMULATION),
                       ("build-tsan", ["unit", "sim", "process"], LONGER_SIMULATION)]),
    "clang": ("everything compiled by clang-14, and the unit tests of that", [("build-clang", ["unit"], {})]),
    "tidy": ("clang-tidy over every source", [("build-clang", ["tidy"], {})]),
}
DEFAULT = ["unit", "sim", "process", "cluster", "cli", "lint", "fuzz", "sanitize"]
ALL = ["unit", "sim", "sim-long", "process", "process-long", "cluster", "host-faults", "slurm-long", "torchft", "cli", "package",
       "lint", "fuzz", "sanitize-full", "clang", "tidy"]
# Real processes on a machine that may be busy with others: of these, so many tests of a suite may have a second try in the
# default run. Suites that are named, `all` and `repeat` know none.
TIMED = ("process", "cluster", "cli")
SECOND_TRIES = 2

USAGE = f"""usage: scripts/test [SUITE…]              no suite: {' '.join(DEFAULT)}
       scripts/test all                   {' '.join(ALL)}
       scripts/test repeat SUITE N        stops at the first failure
       scripts/test --list"""


def say(text):
    print(text, flush=True)


def call(command, limit_s, environment=None):
    """Runs a command of the build. Returns its output where it failed or took too long, else None."""
    try:
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **(environment or {})}, timeout=limit_s,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired as error:
        return f"{' '.join(command)}: not done after {limit_s} s\n{(error.output or b'').decode(errors='replace')}"
    return None if done.returncode == 0 else done.stdout.decode(errors="replace")


def introspect(tree, what):
    command = ["meson", "introspect", os.path.join(ROOT, tree), "--" + what]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=MINUTE).stdout)


def tests_of(tree, suites):
    """The tests of a tree that are in any of the suites (meson writes `project:suite`)."""
    wanted = set(suites)
    return [t for t in introspect(tree, "tests") if wanted & {s.split(":")[-1] for s in t["suite"]}]


def targets_of(tree, suites):
    """What must be built for these suites in a tree: all of it in the plain and clang trees, else just their tests."""
    if tree in ("build", "build-clang"):
        return []
    needed = {d for t in tests_of(tree, suites) for d in t["depends"]}
    files = [name for t in introspect(tree, "targets") if t["id"] in needed for name in t["filename"]]
    return sorted(os.path.relpath(name, os.path.join(ROOT, tree)) for name in files)


def build(tree, suites):
    """Configures and builds. Returns the output of what failed, or None. One build at a time per checkout."""
    lock = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = os.path.join(ROOT, tree)
        environment = COMPILERS.get(tree, {})
        if not os.path.exists(os.path.join(path, "build.ninja")):
            werror = ["--werror"] if os.environ.get("CI") else []
            failure = call(["meson", "setup", *werror, *TREES[tree], path, ROOT], 5 * MINUTE, environment)
            if failure:
                return failure
        failure = call(["ninja", "-C", path, "build.ninja"], 5 * MINUTE, environment)
        if failure:
            return failure
        targets = targets_of(tree, suites)
        if tree in ("build", "build-clang") or targets:
            return call(["ninja", "-C", path, *targets], 30 * MINUTE, environment)
        return None
    finally:
        os.close(lock)


def built(tree, suites, tally):
    """build() with its progress and its failure reported."""
    started = time.monotonic()
    failure = build(tree, suites)
    say(f"{tree}: {'failed' if failure else 'built'} in {time.monotonic() - started:.0f} s")
    if failure:
        tally.fail(f"the build of {tree}", failure)
        say(results.tail(failure, 80))
    return not failure


def fixed_addresses(tree):
    """WARNING: clang 14's thread sanitizer refuses to run where the kernel randomises more than 28 bits of mmap."""
    if tree == "build-tsan":
        with open("/proc/sys/vm/mmap_rnd_bits", encoding="ascii") as bits:
            if int(bits.read()) > 28:
                return ["setarch", "--addr-no-randomize"]
    return []


def meson_test(tree, tests, log, choice, extra):
    """One `meson test` of what `choice` names in a built tree. Returns ({test: its tally}, output where meson failed)."""
    path = os.path.join(ROOT, tree)
    results.forget(path, tests)
    command = [*fixed_addresses(tree), "meson", "test", "-C", path, "--no-rebuild", "--logbase", log, *choice]
    if tree in ENVIRONMENT:
        command += ["--timeout-multiplier", "4"]
    # The tests' own limits end them; this one ends a hung meson.
    output = call(command, 60 * MINUTE, {**ENVIRONMENT.get(tree, {}), **extra})
    return results.read(os.path.join(path, "meson-logs", log + ".json"), path, tests), output


def try_again(name, tree, tests, extra, found):
    """Runs what failed of `found` once more, with nothing beside it, where that is little: the machine may have been at fault.

    A test that passes then counts as passed, and is told of with what it said at first."""
    failed = [t for t in tests if t["name"] in found and found[t["name"]].failed]
    if not 0 < len(failed) <= SECOND_TRIES:
        return
    names = [t["name"] for t in failed]
    again, _ = meson_test(tree, failed, f"suite-{name}-again", names, extra)
    for test in names:
        if test in again and not again[test].failed:
            first, found[test] = found[test], again[test]
            for label, text in first.failures:
                say(f"\n--- FAILED AT FIRST {label}\n{results.excerpt(text, 60)}\n---")
                found[test].notes.append(f"WARNING: {label} failed, and passed when it ran once more, alone")


def run_tests(name, tree, suites, extra, tally, second_try):
    """One `meson test` over the suites of a built tree; every single case goes to the tally."""
    tests = tests_of(tree, suites)
    if not tests:
        reason = f"no test in {tree} belongs to {' '.join(suites)}"
        say(f"SKIPPED {name}: {reason}")
        tally.skip(name, reason)
        return
    started = time.monotonic()
    found, output = meson_test(tree, tests, f"suite-{name}", [word for suite in suites for word in ("--suite", suite)], extra)
    failed_at_first = any(test.failed for test in found.values())
    if second_try and name in TIMED:
        try_again(name, tree, tests, extra, found)
    part = results.Tally()
    for test in found.values():
        part.add(test)
    if output and not failed_at_first:
        part.fail(f"{name} in {tree}", output)
    say(f"{name} in {tree}: {part.line()} in {time.monotonic() - started:.1f} s")
    for label, text in part.failures:
        say(f"\n--- FAILED {label}\n{results.excerpt(text, 60)}\n---")
    for note in part.notes:
        say(note)
    for label, reason in part.skips:
        say(f"SKIPPED {label}: {reason}")
    tally.add(part)


def run_suites(names, tally, second_try=False):
    ready = {}
    for name in names:
        for tree, suites, extra in SUITES[name][1]:
            wanted = [s for n in names for t, ss, _ in SUITES[n][1] if t == tree for s in ss]
            if tree not in ready:
                ready[tree] = built(tree, wanted, tally)
                if ready[tree] and tree == "build-clang":
                    tally.passed += 1  # compiling is a test of its own there
            if ready[tree]:
                run_tests(name, tree, suites, extra, tally, second_try)


def finish(tally):
    if not tally.passed and not tally.failed:
        say("nothing ran")
    for label, text in tally.failures:
        say(f"FAILED {label}: {results.cause(text)}")
    say(tally.line())
    return 1 if tally.failed or not tally.passed else 0


def repeat(name, count):
    tally = results.Tally()
    for iteration in range(1, count + 1):
        say(f"iteration {iteration} of {count}")
        run_suites([name], tally)
        if tally.failed:
            say(f"failed in iteration {iteration} of {count}")
            break
    return finish(tally)


def refuse(message):
    print(f"scripts/test: {message}\n{USAGE}", file=sys.stderr)
    return 2


def main(arguments):
    if arguments in (["--help"], ["-h"]):
        say(USAGE)
        return 0
    if arguments == ["--list"]:
        for name, (text, _) in SUITES.items():
            say(f"{name:14} {text}{'' if name in DEFAULT else '   (not in the default run)'}")
        return 0
    if arguments[:1] == ["repeat"]:
        if len(arguments) != 3 or arguments[1] not in SUITES or not arguments[2].isdigit() or int(arguments[2]) == 0:
            return refuse("repeat needs one suite and a number of times")
        return repeat(arguments[1], int(arguments[2]))
    names = ALL if arguments == ["all"] else arguments or DEFAULT
    for name in names:
        if name not in SUITES:
            return refuse(f"there is no suite `{name}`")
    started = time.monotonic()
    tally = results.Tally()
    run_suites(list(dict.fromkeys(names)), tally, second_try=not arguments)
    say(f"took {time.monotonic() - started:.0f} s")
    return finish(tally)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
