"""Actors in Python: one program (tests/bench/peer_actors.py) by our package, by PyTorch Monarch's and over Ray, in turns of one run, and
beside it Python that calls actors in C++. What comes is compared with what was sent.
"""

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
import typing

import peers
from actor_benchmarks import BUILD, ROOT, echoes, ms, run_job, us
from measuring import busy, head, ratio_row, row

MONARCH = os.path.join(BUILD, "cli/monarch")
PROGRAM = os.path.join(ROOT, "tests/bench/peer_actors.py")
OVER_RAY = os.path.join(ROOT, "tests/bench/over_ray")
RANKS = 8


def s(value):
    return f"{value:.2f} s"


def mib(kib):
    return f"{kib / 1024:.1f} MiB"


def rate(value):
    return f"{value:,.0f} /s"


@dataclasses.dataclass(frozen=True)
class Row:
    what: str
    key: str
    show: typing.Callable
    ratio: float = 0  # the goal of ours to PyTorch Monarch's; 0: there is none
    value: float = 0  # the goal of ours alone, in its own unit
    is_rate: bool = False  # then a goal is the least, else the most

    def goal(self, ours, theirs):
        """What a row says of its goals, and of those that are not reached."""
        sign, said = ">=" if self.is_rate else "<=", []
        for goal, text, values in ((self.ratio, f"{self.ratio:g}", [a / b for a, b in zip(ours, theirs)]), (self.value, self.show(self.value), ours)):
            if goal:
                is_missed = values and (statistics.median(values) < goal if self.is_rate else statistics.median(values) > goal)
                said.append(f"{sign} {text}{': not reached' if is_missed else ''}")
        return ", ".join(said)


ROWS = (
    Row(f"{RANKS} ranks spawned and called, whole program", "whole_s", s, 0.35),
    Row(f"from its exec to the answers of {RANKS}", "answers_s", s, value=0.5),
    Row("one call, p50", "one_us", us, 0.3),
    Row("one call, awaited, p50", "awaited_us", us, 0.35),
    Row(f"a call of {RANKS} ranks, p50", "all_us", us, 0.3),
    Row("1,000 calls in flight", "in_flight_per_s", rate, 5, 20000, is_rate=True),
    Row("a dataclass of __main__ there and back", "dataclass_us", us, 0.15),
    Row("1 MiB of bytes there", "bytes_us", us, 0.5),
    Row("1 MiB of bytes back", "back_us", us, 0.4),
    Row("a numpy array of 1 MiB there", "array_us", us, 0.25),
    Row("a numpy array of 64 MiB there", "big_us", ms, 0.3),
    Row("an idle rank, resident", "rss_kib", mib, 0.2),
    Row("an idle rank, with its part of what is shared", "pss_kib", mib),
    Row("an exception after a kill -9, p50", "death_us", ms, value=20000),
)
# Python that calls actors in C++: nobody else has that.
CPP_ROWS = (
    Row("Python to C++: one call, p50", "one_us", us),
    Row(f"Python to C++: a call of {RANKS} ranks, p50", "all_us", us),
    Row("Python to C++: 1,000 calls in flight", "in_flight_per_s", rate),
    Row("Python to C++: 1 MiB of bytes there", "bytes_us", us),
)


@dataclasses.dataclass(frozen=True)
class Side:
    name: str
    python: str
    version: str
    package: str  # for PYTHONPATH; "": it is installed
    deaths: int  # a turn; who hears of them by polling takes seconds for each


def sides():
    """Ours first, by the interpreter of PyTorch Monarch where there is one, so that both have the same numpy and cloudpickle."""
    theirs, ray = peers.python_of_torchmonarch(), peers.python_of_ray()
    package = subprocess.run([MONARCH, "python"], check=True, capture_output=True, text=True).stdout.strip()
    version = subprocess.run([MONARCH, "--version"], check=True, capture_output=True, text=True).stdout.split()
    found = [Side("monarch", theirs[0] if theirs else "/usr/bin/python3", version[1] if len(version) > 1 else "", package, 3)]
    for name, one, folder in (("torchmonarch", theirs, ""), ("Ray", ray, OVER_RAY)):
        if one is None:
            print(f"skipped: {name}, which is not here and could not be installed")
        else:
            found.append(Side(name, *one, folder, 1))
    return found


def run(world, side, *words):
    """What the program says, and how long it took as a whole."""
    environment = {**world.environment, "PYTHONPATH": side.package, "RAY_TMPDIR": world.folder, "RAY_USAGE_STATS_ENABLED": "0"}
    begun = time.monotonic()
    done = subprocess.run([side.python, PROGRAM, str(RANKS), *map(str, words)], check=False, capture_output=True, text=True, timeout=300,
                          env=environment, cwd=world.folder)
    whole = time.monotonic() - begun
    if done.returncode != 0:
        sys.exit(f"bench: the program ended with {done.returncode} under {side.name}\n{done.stdout}{done.stderr}")
    # Around it Ray says that ranks have died, and begins no line for that.
    found, _ = json.JSONDecoder().raw_decode(done.stdout[done.stdout.rindex('{"ranks"'):])
    return {**found, "whole_s": whole, "answers_s": found["answered_at"] - begun}


def measure(world, side):
    """By the keys of ROWS. The start is one of a program that does nothing else."""
    start = run(world, side, "start")
    return {**run(world, side, "same", side.deaths), "whole_s": start["whole_s"], "answers_s": start["answers_s"]}


def in_turns(all_sides, turns, of):
    """[of(side) of each turn] by the name of each side; who begins changes."""
    found = {side.name: [] for side in all_sides}
    for turn in range(turns):
        first = turn % len(all_sides)
        for side in (*all_sides[first:], *all_sides[:first]):
            found[side.name].append(of(side))
    return found


def calls_of_cpp(world, side):
    return run_job(world, echoes(1, RANKS, {
        "program": [side.python, PROGRAM, str(RANKS), "cpp"], "env": {"PYTHONPATH": side.package}
    }), "Python that calls C++")


def show_table(found, names):
    for one in ROWS:
        values = {name: [turn[one.key] for turn in turns] for name, turns in found.items()}
        ours, theirs = values["monarch"], values.get("torchmonarch", [])
        ratio_row(one.what, ours, "torchmonarch", theirs, one.show, one.goal(ours, theirs))
        for name in names:
            ratio_row("", ours, name, values[name], one.show)


def show_cpp(turns):
    for one in CPP_ROWS:
        ours = [turn[one.key] for turn in turns]
        row(one.what, one.show(statistics.median(ours)), "", "", f"({one.show(min(ours))} to {one.show(max(ours))})")


def bench_peers(world, runs):
    """Medians of `runs` turns, after a start of each that does not count."""
    all_sides = sides()
    numpy = subprocess.run([all_sides[0].python, "-c", "import numpy, platform; print(platform.python_version(), 'and numpy', numpy.__version__)"],
                           check=True, capture_output=True, text=True).stdout.strip()
    print("; ".join(f"{side.name} {side.version}" for side in all_sides) + f"; Python {numpy}")
    head()
    for side in all_sides:
        run(world, side, "start")
    found = in_turns(all_sides, runs, lambda side: measure(world, side))
    show_table(found, [side.name for side in all_sides if side.name not in ("monarch", "torchmonarch")])
    show_cpp([calls_of_cpp(world, all_sides[0]) for _ in range(runs)])
    print(f"{runs} turns; at the end {busy()}")
