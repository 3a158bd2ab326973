"""The suites of scripts/test: builds the trees they need, runs their tests side by side, counts single cases.

A suite is a list of runs; a run is one build tree and the meson suites to run in it. The last line of stdout is
`N passed, N failed` (and `, N skipped`); progress and failures go to stdout before it. Standard library only.
"""

import signal
import sys
import time

import passed
import results
import runner
import trees

# A seed takes some fifty times as long there as without a sanitizer. What uses a stack after its function returned is
# found by the unit tests, and by `asan-sim`.
SHORT_SIMULATION = {"MONARCH_SIM_SEEDS": "100",
                    "ASAN_OPTIONS": trees.ENVIRONMENT["build-asan"]["ASAN_OPTIONS"] + ":detect_stack_use_after_return=0:quarantine_size_mb=16"}
QUICK_SIMULATION = {"MONARCH_SIM_SEEDS": "300"}
LONGER_SIMULATION = {"MONARCH_SIM_SEEDS": "1000"}

# What the default run has of the sanitizers.
SANITIZED = [("build-asan", ["unit", "fuzz"], {}), ("build-asan", ["sim-seeds"], SHORT_SIMULATION), ("build-tsan", ["threads"], {})]

# name: (what --list says, [(tree, meson suites, extra environment)])
SUITES = {
    "unit": ("one executable per folder", [("build", ["unit"], {})]),
    "plain": ("the unit tests that a sanitizer would get in the way of", [("build", ["plain"], {})]),
    "sim": ("the simulator: seeds, replay, mutants", [("build", ["sim"], {})]),
    "sim-quick": ("300 seeds of it", [("build", ["sim-seeds"], QUICK_SIMULATION)]),
    "sim-long": ("10000 seeds of it, its mutants, the digest of 100 seeds twice", [("build", ["sim-long"], {})]),
    "process": ("real processes, faults among them", [("build", ["process"], {})]),
    "process-long": ("those of them that need their minute", [("build", ["process-long"], {})]),
    "faults": ("those of process and process-long that hold the faults of tests/FAULTS.md", [("build", ["faults"], {})]),
    "actors": ("those of process and cluster that have actors; as root", [("build", ["actors"], {})]),
    "cluster": ("hosts in namespaces, each with its sshd, and what befalls them; as root", [("build", ["cluster"], {})]),
    "host-faults": ("the faults of tests/FAULTS.md that strike hosts and networks, on such hosts; as root",
                    [("build", ["host-faults"], {})]),
    "slurm-long": ("what Slurm itself does, and waits as long as its own; as root", [("build", ["slurm-long"], {})]),
    "torchft": ("configs/torchft.yaml with the real torchft, and tensors of FSDP2, from PyPI", [("build", ["torchft"], {})]),
    "cli": ("commands: stdout, stderr and status", [("build", ["cli"], {})]),
    "package": ("the tarball in a minimal Debian root, the wheel in a fresh virtual environment, and uninstalling", [("build", ["package"], {})]),
    "rxe": ("the verbs lane on real libibverbs, in a QEMU guest with soft-RoCE", [("build", ["rxe"], {})]),
    "gpu": ("what only a GPU can show, skipped where there is none; and that it runs, on the driver without a GPU", [("build", ["gpu"], {})]),
    "lint": ("house rules", [("build", ["lint"], {})]),
    "fuzz": ("every parser over its corpus", [("build", ["fuzz"], {})]),
    "sanitize": ("unit, corpora and 100 seeds under address+undefined; the libraries that have threads under thread", SANITIZED),
    "asan-unit": ("all of unit and fuzz under address+undefined", [("build-asan", ["unit", "fuzz"], {})]),
    "asan-sim": ("1000 seeds of the simulator under address+undefined", [("build-asan", ["sim-seeds"], LONGER_SIMULATION)]),
    "asan-process": ("all of process under address+undefined", [("build-asan", ["process"], {})]),
    "tsan-unit": ("all of unit under thread", [("build-tsan", ["unit"], {})]),
    "tsan-sim": ("1000 seeds of the simulator under thread", [("build-tsan", ["sim-seeds"], LONGER_SIMULATION)]),
    "tsan-process": ("all of process under thread", [("build-tsan", ["process"], {})]),
    "clang": ("everything compiled by clang-14, file by file, and the unit tests of that", [("build-clang", ["unit"], {})]),
    "tidy": ("clang-tidy over every source", [("build-clang", ["tidy"], {})]),
}
# Unit tests and corpora are in it under a sanitizer, as `sanitize` has them; as the program is compiled they are in `quick` and `all`.
DEFAULT = ["process", "cluster", "cli", "lint", "plain", "rxe", "gpu", "sim", "sanitize"]
# What needs the program alone: it is built before all else.
OF_THE_PROGRAM = ("process", "cluster", "cli", "lint", "host-faults", "slurm-long", "process-long", "faults", "actors", "torchft", "gpu")
QUICK = ["unit", "lint", "cli", "sim-quick"]
# In parts, of which none takes more than 20 minutes on two cores.
ALL = ["unit", "sim", "sim-long", "process", "process-long", "cluster", "host-faults", "slurm-long", "torchft", "cli", "package",
       "rxe", "gpu", "lint", "fuzz", "asan-unit", "asan-sim", "asan-process", "tsan-unit", "tsan-sim", "tsan-process", "clang", "tidy"]
# Real processes on a machine that may be busy with others: of these, so many tests of a suite may have a second try in the
# default run. Suites that are named, `all` and `repeat` know none.
TIMED = ("process", "cluster", "cli")
SECOND_TRIES = 2
DEAREST = 30

USAGE = f"""usage: scripts/test [SUITE…]              no suite: {' '.join(DEFAULT)}
       scripts/test quick                 {' '.join(QUICK)}: while one works
       scripts/test all [--continue]      {' '.join(ALL)};
                                          --continue: those that have not passed on this very tree
       scripts/test repeat SUITE N        stops at the first failure
       scripts/test --list
   with --times                           the dearest tests, by wall time and by processor time"""


def say(text):
    print(text, flush=True)


def tell_progress(waiting, running):
    cases = sum(program.under_way for program in running)
    say(f"… {cases} under way, in {', '.join(sorted(program.name for program in running)[:5])}; {len(waiting)} programs have not begun")


class Part:
    """The tests of one suite in one tree, and what became of them."""

    def __init__(self, name, tree, suites, extra):
        self.name, self.tree, self.suites = name, tree, suites
        self._environment = {**trees.ENVIRONMENT.get(tree, {}), **extra}
        # A sanitizer makes of a test that mostly waits one that computes, too.
        self._patience, self._weight = (4, 2) if tree in trees.ENVIRONMENT else (1, 1)
        self.tests, self.tallies, self.times = [], {}, []
        self._began = self._over = None

    def add_to(self, pool, taken):
        """All of it but what the pool has for another suite."""
        path = trees.path_of(self.tree)
        key = (self.tree, tuple(sorted(self._environment.items())))
        found = trees.tests_of(path, self.suites)
        if not found:
            tally = self.tallies[self.name] = results.Tally()
            tally.skip(self.name, f"no test in {self.tree} belongs to {' '.join(self.suites)}")
        self.tests = [test for test in found if (key, test["name"]) not in taken]
        taken.update((key, test["name"]) for test in self.tests)
        results.forget(path, self.tests)
        self._began = time.monotonic()
        for test in sorted(self.tests, key=lambda test: -test["priority"]):
            pool.add(self._program(test, lambda ended, test=test: self._note(test, ended)))

    def _program(self, test, done, cases=()):
        arguments = ["--gtest_output=xml:" + results.xml_of(trees.path_of(self.tree), test["name"])] if test["protocol"] == "gtest" else cases
        return runner.Program(trees.runs_at(self.tree, test), done, self._environment, arguments, test["timeout"] * self._patience,
                              self._weight)

    def _note(self, test, ended):
        label = test["name"]
        tally = self.tallies[label] = results.read(ended, test, trees.path_of(self.tree))
        self.times += [(f"{label}: {case}", seconds, processor) for case, seconds, processor in
                       ended.cases or [("all", ended.seconds, ended.processor_seconds)]]
        self._over = time.monotonic()
        for case, text in tally.failures:
            say(f"failed in {self.tree}: {case}: {results.cause(text)}")

    def try_again(self):
        """Runs what failed once more, with nothing beside it, where that is little: the machine may have been at fault.

        A test that passes then counts as passed, and is told of with what it said at first."""
        failed = [test for test in self.tests if self.tallies[test["name"]].failed]
        if not 0 < len(failed) <= SECOND_TRIES:
            return
        for test in failed:
            label = test["name"]
            first = self.tallies[label]
            cases = [case.removeprefix(f"{label}: ") for case, _ in first.failures if case != label]
            pool, path, again = runner.Pool(tell_progress), trees.path_of(self.tree), []
            results.forget(path, [test])
            pool.add(self._program(test, lambda ended, test=test: again.append(results.read(ended, test, path)),
                                   cases if test["protocol"] == "tap" else ()))
            pool.run()
            if again[0].failed or not again[0].passed:
                continue
            for case, text in first.failures:
                say(f"\n--- FAILED AT FIRST {case}\n{results.excerpt(text, 90)}\n---")
                first.second_tries.append((case, text))
            first.passed += first.failed
            first.failed, first.failures = 0, []

    def report(self, tally):
        part = results.Tally()
        for one in self.tallies.values():
            part.add(one)
        part.times = self.times
        took = (self._over or self._began) - self._began
        say(f"{self.name} in {self.tree}: {part.line()} in {took:.1f} s, {sum(row[2] for row in self.times):.0f} s of processors")
        for label, text in part.failures:
            say(f"\n--- FAILED {label}\n{results.excerpt(text, 60)}\n---")
        for note in part.notes:
            say(note)
        for label, reason in part.skips:
            say(f"SKIPPED {label}: {reason}")
        tally.add(part)


def steps_of(parts):
    """[(tree, parts)], each a build and the tests behind it: of the first tree what needs the program alone comes first."""
    first = parts[0].tree
    early = [part for part in parts if part.tree == first and part.name in OF_THE_PROGRAM]
    late = [part for part in parts if part not in early]
    return [(first, early)] * bool(early) + [(tree, [part for part in late if part.tree == tree])
                                             for tree in dict.fromkeys(part.tree for part in late)]


def run_suites(names, tally, second_try=False):
    """The first step is built alone. Then its tests run, and while they wait the others are built, and their tests follow."""
    parts = [Part(name, *run) for name in names for run in SUITES[name][1]]
    taken, pool = set(), runner.Pool(tell_progress)
    started = time.monotonic()

    def built(tree, of_step, failure):
        what = f"{tree} for {' '.join(dict.fromkeys(part.name for part in of_step))}"
        say(f"{what}: {'failed' if failure else 'built'} at {time.monotonic() - started:.0f} s")
        if failure:
            tally.fail(f"the build of {what}", failure)
            say(results.ends(failure, 80))
            return
        if tree == "build-clang":
            tally.passed += 1  # compiling is a test of its own there
        for part in of_step:
            part.add_to(pool, taken)

    for number, (tree, of_step) in enumerate(steps_of(parts)):
        suites = sorted({suite for part in of_step for suite in part.suites})
        if number == 0:
            built(tree, of_step, trees.build(tree, suites))
            continue
        build = {"name": f"the build of {tree}", "cmd": [sys.executable, trees.__file__, tree, *suites], "is_parallel": False,
                 "env": {"MONARCH_TEST_SHARE": str(runner.processors())}, "timeout": trees.BUILD_S, "priority": 0}
        pool.add(runner.Program(build, lambda ended, tree=tree, of_step=of_step: built(tree, of_step, ended.output if ended.status else None)))
    pool.run()
    for part in parts:
        if part.tests or part.tallies:
            if second_try and part.name in TIMED:
                part.try_again()
            part.report(tally)


def say_times(tally):
    for title, column in (("seconds", 1), ("seconds of processors", 2)):
        say(f"\nthe dearest tests by {title}:")
        for row in sorted(tally.times, key=lambda row: -row[column])[:DEAREST]:
            say(f"{row[column]:8.1f}  {row[0]}")


def finish(tally):
    if not tally.passed and not tally.failed:
        say("nothing ran")
    for label, text in tally.second_tries:
        say(f"SECOND TRY {label} passed when it ran once more, alone; at first: {results.cause(text)}")
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


def go_on():
    """Of `all`, what has not passed on this very tree; each part that passes is remembered at once."""
    tree = passed.tree_now()
    if tree is None:
        return refuse("--continue needs the tracked files of a git checkout")
    tally = results.Tally()
    for name in ALL:
        line = passed.line_of(tree, name)
        if line is not None:
            say(f"{name}: passed on this tree before, {line}")
            continue
        part = results.Tally()
        run_suites([name], part)
        tally.add(part)
        if part.failed or not part.passed and not part.skips:
            continue
        if passed.tree_now() != tree:
            return refuse("the tree changed while it was tested")
        passed.remember(tree, name, part.line())
    missing = [name for name in ALL if passed.line_of(tree, name) is None]
    if not missing:
        say(f"all {len(ALL)} suites have passed on this tree, {tree[:12]}")
        return finish(passed.tally_of(tree, ALL))
    say(f"not yet passed on this tree, {tree[:12]}: {' '.join(missing)}")
    return finish(tally)


def refuse(message):
    print(f"scripts/test: {message}\n{USAGE}", file=sys.stderr)
    return 2


def main(arguments):
    # What runs is in sessions of its own, and ends with us: by way of Pool.run().
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
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
    if arguments == ["all", "--continue"]:
        return go_on()
    times = "--times" in arguments
    words = [word for word in arguments if word != "--times"]
    names = {(): DEFAULT, ("all",): ALL, ("quick",): QUICK}.get(tuple(words), words)
    for name in names:
        if name not in SUITES:
            return refuse(f"there is no suite `{name}`")
    started = time.monotonic()
    tally = results.Tally()
    say(f"limits are {runner.machine_factor():.1f} times as long on this machine, of {runner.processors():g} processors")
    run_suites(list(dict.fromkeys(names)), tally, second_try=not words)
    if times:
        say_times(tally)
    say(f"took {time.monotonic() - started:.0f} s")
    return finish(tally)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
