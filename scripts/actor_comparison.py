"""Calls between ranks by two builds of monarch, in turns: `scripts/bench actors --against BUILD`.

Each has its own programs, and its own plugin of tests/bench/actors.cc. An older one may know no Buffer: then its Bytes are what a Buffer is
compared with.
"""

import dataclasses
import os
import statistics
import sys
import time

from actor_benchmarks import told
from measuring import busy, spread

FILES = ("cli/monarch", "worker/monarch-worker", "tests/bench/libactors.so")
LIMIT_S = 300
DEATHS = 20  # in each turn


@dataclasses.dataclass(frozen=True)
class Row:
    what: str
    key: str
    gate: float = 0  # the most that the ratio of ours to the other may be; 0: there is none
    other_key: str = ""  # what it is compared with where the other build has no such key
    unit: str = "us"


ROWS = (
    Row("one call, one host, p50", "calls.near_p50_us", 0.7),
    Row("one call, two hosts, p50", "calls.far_p50_us"),
    Row("a call of 64 ranks on 4 hosts, p50", "wide.p50_us", 0.7),
    Row("1 MiB there, Bytes, one host", "calls.near_1024KiB_us", 0.25),
    Row("1 MiB there, Buffer, one host", "calls.near_buffer_1024KiB_us", 0.15, "calls.near_1024KiB_us"),
    Row("64 MiB there, Bytes, one host", "calls.near_65536KiB_us"),
    Row("64 MiB there, Buffer, one host", "calls.near_buffer_65536KiB_us", 0.15, "calls.near_65536KiB_us"),
    Row("64 MiB there, Bytes, two hosts", "calls.far_65536KiB_us"),
    Row("64 MiB there, Buffer, two hosts", "calls.far_buffer_65536KiB_us", 0.5, "calls.far_65536KiB_us"),
    Row("a pipelined call, one host", "calls.near_call_us"),
    Row("a pipelined call, two hosts", "calls.far_call_us"),
    Row("64 waiting calls end after a kill -9, p50", "deaths.ended_p50_ms", 1.1, unit="ms"),
    Row("64 waiting calls end after a kill -9, p99", "deaths.ended_p99_ms", unit="ms"),
    Row("the same handle answers again, p50", "deaths.back_p50_ms", 1.1, unit="ms"),
)


# What is asked of each build: hosts, ranks of each, and arguments.
ENTRIES = {"calls": (2, 4, {}), "wide": (4, 16, {}), "deaths": (2, 2, {"times": DEATHS})}


def measure(world, build, entry):
    """What one build takes, once, by the keys of ROWS."""
    hosts, gpus, args = ENTRIES[entry]
    found = {f"{entry}.{name}": value for name, value in told(world, entry, hosts, gpus, build, **args).items()}
    for where in ("near", "far"):
        if f"calls.{where}_calls_per_s" in found:
            found[f"calls.{where}_call_us"] = 1e6 / found[f"calls.{where}_calls_per_s"]
    return found


def in_turns(ours, theirs, turns, limit_s=LIMIT_S, clock=time.monotonic):
    """[(ours, theirs)] of each turn, in which each entry is asked of both before the next is; who begins changes. No turn begins that would
    not end within the limit, by what the longest took."""
    done, longest, begun = [], 0, clock()
    while len(done) < turns and (not done or clock() + longest - begun <= limit_s):
        since, turn = clock(), ({}, {})
        sides = [(turn[0], ours), (turn[1], theirs)]
        for entry in ENTRIES:
            for found, of in sides if len(done) % 2 == 0 else reversed(sides):
                found.update(of(entry))
        done.append(turn)
        longest = max(longest, clock() - since)
    return done


def lines(turns):
    """(text, whether a gate is missed) for each of ROWS."""
    for row in ROWS:
        mine, other = turns[0]
        key = row.key if row.key in other else row.other_key
        if row.key not in mine or key not in other:
            yield f"{row.what:<46}  not measured: {'this build' if row.key not in mine else 'the other build'} has none", bool(row.gate)
            continue
        ours, theirs = [turn[0][row.key] for turn in turns], [turn[1][key] for turn in turns]
        ratios = [a / b for a, b in zip(ours, theirs)]
        ratio = statistics.median(ratios)
        missed = bool(row.gate) and ratio > row.gate
        gate = f"<= {row.gate:g}{': missed' if missed else ''}" if row.gate else ""
        what = row.what + ("" if key == row.key else " (Bytes before)")
        yield (f"{what:<46}{statistics.median(ours):>10.1f}{statistics.median(theirs):>11.1f} {row.unit}{ratio:>8.2f} "
               f"{spread(ratios):<16} {gate}".rstrip(), missed)


def missing(build):
    """What a build lacks of what is run of it, with what would make it."""
    lacking = [name for name in FILES if not os.path.exists(os.path.join(build, name))]
    return f"{build} has no {', '.join(lacking)}: ninja -C {build} {' '.join(lacking)}" if lacking else ""


def bench_against(world, build, other_world, other_build, turns):
    for one in (build, other_build):
        if missing(one):
            sys.exit(f"bench: {missing(one)}")
    print(f"{build}\nagainst {other_build}\n{busy()}", flush=True)
    begun = time.monotonic()
    done = in_turns(lambda entry: measure(world, build, entry), lambda entry: measure(other_world, other_build, entry), turns)
    print(f"{'what':<46}{'this':>10}{'the other':>11}{'ratio':>11} {'(turns)':<16} gate")
    told_lines = list(lines(done))
    for text, _ in told_lines:
        print(text)
    print(f"{len(done)} turns in {time.monotonic() - begun:.0f} s; at the end {busy()}")
    if any(missed for _, missed in told_lines):
        sys.exit(1)
