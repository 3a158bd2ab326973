"""Calls between ranks: against bare ZeroMQ over as many processes, in one run, turn by turn."""

import json
import os
import statistics
import subprocess
import sys

from measuring import row
from tensor_benchmarks import iperf

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("MONARCH_BUILD_DIR") or os.path.join(ROOT, "build")
MONARCH = os.path.join(BUILD, "cli/monarch")
PLUGIN = os.path.join(BUILD, "tests/bench/libactors.so")
CHAIN = os.path.join(BUILD, "tests/bench/call-chain")
STREAM = os.path.join(BUILD, "tests/bench/curve-stream")
BYTES = 64


def told(world, entry, hosts, gpus, **args):
    """What a controller of tests/bench/actors.cc says."""
    path = os.path.join(world.folder, "actors.yaml")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"version": 1, "job": "bench", "launch": {"local": {"hosts": hosts}},
                   "supervision": {"restart": {"max": "unlimited", "backoff": "10ms", "backoff_max": "10ms"}},
                   "meshes": {"e": {"dims": {"host": hosts, "gpu": gpus}, "stop": {"grace": "1s"},
                                    "actors": {"echo": {"plugin": PLUGIN, "class": "Echo"}}}},
                   "controller": {"plugin": PLUGIN, "entry": entry, "args": args, "supervision": {"restart": {"max": 0}}}}, file)
    done = subprocess.run([MONARCH, "run", "--quiet", "--no-prefix", path], env=world.environment, check=False,
                          capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"bench: {entry} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def spread(values, form):
    return f"({form.format(min(values))} to {form.format(max(values))})"


def bench_actors(world, runs):
    """Medians of `runs` turns; each turn measures ours and the others."""
    ours, chains, directs, streams, plain = [], [], [], [], []
    for _ in range(runs):
        ours.append(told(world, "calls", 2, 4))
        chain, direct = subprocess.run([CHAIN, "3000", str(BYTES)], check=True, capture_output=True, text=True).stdout.split()
        chains.append(float(chain))
        directs.append(float(direct))
        carried, took = subprocess.run([STREAM, "256", "1024"], check=True, capture_output=True, text=True).stdout.split()[:2]
        streams.append(int(carried) / float(took) / (1 << 20))
        plain.append(iperf(1) / (1 << 20))

    def median(name):
        return statistics.median(one[name] for one in ours)

    chain, direct, stream, wire = map(statistics.median, (chains, directs, streams, plain))
    ratios = [one["far_p50_us"] / other for one, other in zip(ours, chains)]
    row("one call, two hosts, p50", f"{median('far_p50_us'):.0f} us", f"ZeroMQ ipc-CURVE-ipc {chain:.0f} us",
        f"{statistics.median(ratios):.2f}", f"<= 1.0 {spread(ratios, '{:.2f}')}; bare CURVE, no relays: {direct:.0f} us")
    row("one call, two hosts, p99", f"{median('far_p99_us'):.0f} us", "", "", "")
    row("one call, one host, p50 / p99", f"{median('near_p50_us'):.0f} / {median('near_p99_us'):.0f} us", "", "", "<= 45 us")
    for where, name in (("one host", "near"), ("two hosts", "far")):
        row(f"pipelined calls, {where}", f"{median(name + '_calls_per_s'):,.0f} /s", "", "", ">= 50,000 /s")
    for hosts, gpus in ((2, 4), (4, 16), (4, 64)):
        turns = [told(world, "wide", hosts, gpus)["p50_us"] for _ in range(min(3, runs))]
        row(f"a call of {hosts * gpus} ranks on {hosts} hosts", f"{statistics.median(turns) / 1000:.2f} ms", "", "",
            "<= 1 ms" if hosts * gpus == 64 else "")
    goals = {("near", 1 << 10): "<= 0.35 ms", ("near", 1 << 16): "<= 8 ms"}
    for name, where in (("near", "one host"), ("far", "two hosts")):
        for kibibytes in (1, 64, 1 << 10, 1 << 14, 1 << 16):
            took = median(f"{name}_{kibibytes}KiB_us") / 1e6
            against, ratio, goal = "", "", goals.get((name, kibibytes), "")
            if name == "far" and kibibytes >= 1 << 10:
                of_wire = [kibibytes / 1024 / (one[f"far_{kibibytes}KiB_us"] / 1e6) / other for one, other in zip(ours, plain)]
                against, ratio = f"iperf3 {wire:.0f} MiB/s; a stream of CURVE {stream:.0f}", f"{statistics.median(of_wire):.2f}"
                goal = {1 << 10: ">= 0.6 ", 1 << 16: ">= 0.8 "}.get(kibibytes, "") + spread(of_wire, "{:.2f}")
            row(f"{kibibytes:,} KiB there, a number back, {where}", f"{took * 1000:.2f} ms", against, ratio, goal)
    deaths = told(world, "deaths", 2, 2, times=100)
    row("64 waiting calls end after a kill -9, p50 / p99", f"{deaths['ended_p50_ms']:.1f} / {deaths['ended_p99_ms']:.1f} ms", "", "",
        "<= 20 ms")
    row("the same handle answers again, p50", f"{deaths['back_p50_ms']:.0f} ms", "", "", "<= 100 ms")
