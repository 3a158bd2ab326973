"""Calls between ranks: against bare ZeroMQ over as many processes, a sealed stream, a copy in memory, and PyTorch Monarch, in one run,
turn by turn; what comes is compared with what was sent.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import peers
from measuring import busy, ratio_row, row
from recovery_benchmarks import FAST
from tensor_benchmarks import iperf

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("MONARCH_BUILD_DIR") or os.path.join(ROOT, "build")
BENCH = os.path.join(BUILD, "tests/bench")
BYTES = 64
SAVED_MIB = 256
MIB = 1 << 20
# KiB of an argument, and how it is written.
SIZES = {1: "1 KiB", 64: "64 KiB", 1 << 10: "1 MiB", 1 << 14: "16 MiB", 1 << 16: "64 MiB"}
# Buffers are made of bytes that the caller has, or in the block that travels.
KINDS = {"": "Bytes", "buffer_": "Buffer", "made_": "Buffer made in the block"}


def run_job(world, spec, what, build=BUILD):
    """What a job prints: one JSON object."""
    path = os.path.join(world.folder, "actors.yaml")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"version": 1, "job": "bench", **spec}, file)
    done = subprocess.run([os.path.join(build, "cli/monarch"), "run", "--quiet", "--no-prefix", path], env=world.environment, check=False,
                          capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"bench: {what} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def plugin_of(build):
    return os.path.join(build, "tests/bench/libactors.so")


def echoes(hosts, gpus, controller, build=BUILD):
    """A job with the actors of tests/bench/actors.cc, and who calls them."""
    return {"launch": {"local": {"hosts": hosts}},
            "supervision": {"restart": {"max": "unlimited", "backoff": "10ms", "backoff_max": "10ms"}},
            "meshes": {"e": {"dims": {"host": hosts, "gpu": gpus}, "stop": {"grace": "1s"},
                             "actors": {"echo": {"plugin": plugin_of(build), "class": "Echo"}}}},
            "controller": {**controller, "supervision": {"restart": {"max": 0}}}}


def told(world, entry, hosts, gpus, build=BUILD, **args):
    """What a controller of tests/bench/actors.cc says, by the programs of a build."""
    return run_job(world, echoes(hosts, gpus, {"plugin": plugin_of(build), "entry": entry, "args": args}, build), entry, build)


def saved(world, times):
    """MiB/s of each save(), with one copy on another host; the bytes of that copy are compared."""
    folder = tempfile.mkdtemp(dir=world.folder)
    program = ["python3", os.path.join(ROOT, "tests/bench/save_ranks.py"), str(SAVED_MIB), str(times), folder]
    spec = {"launch": {"local": {"hosts": 2, "spares": 1}}, "checkpoints": {"peer": 1, "memory": f"{SAVED_MIB * 4}MiB"},
            "supervision": {"restart": {"max": 0}, "reallocate": {"max": 1}, **FAST},
            "meshes": {"m": {"dims": {"host": 1}, "gang": "host", "program": program, "stop": {"grace": "1s"},
                             "env": {"PYTHONPATH": os.path.join(ROOT, "worker/python"), "PYTHONDONTWRITEBYTECODE": "1"}}}}
    return [SAVED_MIB / seconds for seconds in run_job(world, spec, "saving checkpoints")["seconds"]]


def words(program, *arguments):
    """The numbers that a program of tests/bench prints."""
    done = subprocess.run([os.path.join(BENCH, program), *map(str, arguments)], check=True, capture_output=True, text=True)
    return [float(word) for word in done.stdout.split()]


def of_peer(peer, ranks, what):
    done = subprocess.run([peer, os.path.join(ROOT, "tests/bench/peer_actors.py"), str(ranks), what], check=False, capture_output=True,
                          text=True, timeout=300, cwd=tempfile.gettempdir())
    if done.returncode != 0:
        sys.exit(f"bench: PyTorch Monarch ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


class Turns:
    """What each turn measured, of us and of the others, as lists that go side by side; of what is not here they are empty."""

    def __init__(self, world, runs, peer):
        self.ours, self.peers, self.relays, self.chains, self.direct, self.sealed, self.wire = [], [], [], [], [], [], []
        for _ in range(runs):
            self.ours.append(told(world, "calls", 2, 4))
            chain, direct, relay = words("call-chain", 3000, BYTES)
            self.chains.append(chain)
            self.direct.append(direct)
            self.relays.append(relay)
            self.sealed += words("sealed-stream", 64, 9)
            if shutil.which("iperf3"):
                self.wire.append(iperf(1) / MIB)
            if peer:
                self.peers.append(of_peer(peer, 8, "calls"))

    def has(self, name):
        return name in self.ours[0]

    def of(self, name):
        return [one[name] for one in self.ours]

    def median(self, name):
        return statistics.median(self.of(name))

    def peer(self, name):
        return [one[name] for one in self.peers]

    def rates(self, name, kibibytes):
        return [kibibytes / 1024 / (us / 1e6) for us in self.of(name)]


def us(value):
    return f"{value:.0f} us"


def ms(value):
    return f"{value / 1000:.2f} ms"


def mib(value):
    return f"{value:.0f} MiB/s"


def small_calls(turns):
    one = turns.of("near_p50_us")
    ratio_row("one call, one host, p50", one, "torchmonarch", turns.peer("near_p50_us"), us, "<= 0.2")
    ratio_row("one call, one host, p50", one, "ZeroMQ ipc-relay-ipc", turns.relays, us, "<= 0.65")
    row("one call, one host, p99", us(turns.median("near_p99_us")), "", "", "")
    ratio_row("one call, two hosts, p50", turns.of("far_p50_us"), "ZeroMQ ipc-CURVE-ipc", turns.chains, us, "<= 0.65")
    row("one call, two hosts, p99", us(turns.median("far_p99_us")), "", "",
        f"bare CURVE, no relays, p50: {statistics.median(turns.direct):.0f} us")
    ratio_row("pipelined calls, one host", turns.of("near_calls_per_s"), "torchmonarch", turns.peer("near_calls_per_s"),
              lambda rate: f"{rate:,.0f} /s")
    row("pipelined calls, two hosts", f"{turns.median('far_calls_per_s'):,.0f} /s", "", "", ">= 50,000 /s")


def wide_calls(world, runs, peer):
    for hosts, gpus in ((2, 4), (4, 16), (4, 64)):
        ours, theirs = [], []
        for _ in range(min(3, runs)):
            ours.append(told(world, "wide", hosts, gpus)["p50_us"])
            if peer and hosts * gpus == 64:
                theirs.append(of_peer(peer, 64, "wide")["p50_us"])
        what = f"a call of {hosts * gpus} ranks on {hosts} hosts"
        if hosts * gpus == 64:
            ratio_row(what, ours, "torchmonarch", theirs, ms, "<= 0.06")
        else:
            row(what, ms(statistics.median(ours)), "", "", "")


def bodies_here(turns):
    goals = {("", 1 << 10): "<= 0.35", ("buffer_", 1 << 10): "<= 0.25", ("", 1 << 16): "<= 0.6", ("buffer_", 1 << 16): ""}
    for kind, name in KINDS.items():
        for kibibytes, size in SIZES.items():
            key, what = f"near_{kind}{kibibytes}KiB_us", f"{size} there, {name}, one host"
            if not turns.has(key):
                continue
            if (kind, kibibytes) in goals:
                ratio_row(what, turns.of(key), "torchmonarch", turns.peer(f"near_{kibibytes}KiB_us"), ms, goals[kind, kibibytes])
            elif kind != "made_":
                row(what, ms(turns.median(key)), "", "", "")
            if kibibytes == 1 << 16:
                copies = turns.of("memcpy_65536KiB_us")
                ratio_row(what, turns.of(key), "memcpy", copies, ms, "<= 1.15" if kind == "buffer_" else "")
            if kibibytes == 1 << 16 and kind == "made_":
                ratio_row(what, turns.of(key), "a small call", turns.of("near_p50_us"), ms, "<= 3")


def bodies_there(turns):
    goals = {("buffer_", 1 << 10): ">= 0.5", ("buffer_", 1 << 16): ">= 0.9"}
    for kind, name in KINDS.items():
        for kibibytes, size in SIZES.items():
            key, what = f"far_{kind}{kibibytes}KiB_us", f"{size} there, {name}, two hosts"
            if not turns.has(key):
                continue
            if kibibytes in (1 << 10, 1 << 16):
                rates = turns.rates(key, kibibytes)
                ratio_row(what, rates, "a sealed stream", turns.sealed, mib, goals.get((kind, kibibytes), ""))
                ratio_row(what, rates, "iperf3", turns.wire, mib, ">= 0.42" if goals.get((kind, kibibytes)) == ">= 0.9" else "")
            else:
                row(what, ms(turns.median(key)), "", "", "")


def bench_actors(world, runs):
    """Medians of `runs` turns; each turn measures ours and the others."""
    found = peers.python_of_torchmonarch()
    peer = found and found[0]
    print(f"against torchmonarch {found[1]}" if found else "skipped: PyTorch Monarch, which is not here and could not be installed")
    turns = Turns(world, runs, peer)
    small_calls(turns)
    wide_calls(world, runs, peer)
    bodies_here(turns)
    bodies_there(turns)
    few = min(3, runs)
    beside = [words("sealed-stream", 64, 9)[0] for _ in range(few)]
    ratio_row(f"save() of {SAVED_MIB} MiB, one copy on another host", saved(world, few), "a sealed stream", beside, mib, ">= 0.7")
    deaths = told(world, "deaths", 2, 2, times=100)
    row("64 waiting calls end after a kill -9, p50 / p99", f"{deaths['ended_p50_ms']:.1f} / {deaths['ended_p99_ms']:.1f} ms", "", "",
        "<= 20 ms")
    row("the same handle answers again, p50", f"{deaths['back_p50_ms']:.0f} ms", "", "", "<= 100 ms, and not slower than before: --against")
    print(f"at the end {busy()}")
