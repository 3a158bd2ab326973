"""Measures monarch against what people use instead, in one run, pair by pair: absolute times of a shared machine say
little, a ratio of two things that were measured in turn says more.

usage: scripts/bench launch [--runs N]     start-up against mpirun, size and idle cost of a worker, throughput of output
       scripts/bench build                 a clean build, in seconds
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("MONARCH_BUILD_DIR") or os.path.join(ROOT, "build")
MONARCH = os.path.join(BUILD, "cli/monarch")
CURVE_STREAM = os.path.join(BUILD, "tests/bench/curve-stream")
MPIRUN = ["mpirun", "--oversubscribe", "--allow-run-as-root"]


class World:
    """A state directory of its own, removed at the end."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="mb")
        self.environment = dict(os.environ, MONARCH_STATE_DIR=self.folder + "/state", XDG_RUNTIME_DIR=self.folder)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def spec(self, dims, program):
        path = os.path.join(self.folder, "bench.yaml")
        sizes = ", ".join(f"{name}: {size}" for name, size in dims.items())
        with open(path, "w") as file:
            file.write("version: 1\njob: bench\nlaunch: {local: {}}\nmeshes:\n  bench:\n"
                       f"    dims: {{{sizes}}}\n    program: {json.dumps(program)}\n")
        return path


def seconds(call):
    """How long it took; nothing if it hung (mpirun of 64 on two processors does now and then)."""
    start = time.monotonic()
    try:
        call()
    except subprocess.TimeoutExpired:
        return None
    return time.monotonic() - start


def quietly(command, timeout=20, **options):
    """Waits without a poll: Popen.wait(timeout) looks after 1, 2, 4 … 64 ms, which is what it would measure."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    hung = threading.Event()
    timer = threading.Timer(timeout, lambda: (hung.set(), process.kill()))
    timer.start()
    status = process.wait()
    timer.cancel()
    if hung.is_set():
        raise subprocess.TimeoutExpired(command, timeout)
    if status != 0:
        raise subprocess.CalledProcessError(status, command)


def pairs(ours, theirs, runs):
    """Medians of ours, theirs and their ratio over `runs` pairs after one that does not count; every ratio; what hung."""
    seconds(ours), seconds(theirs)
    all_pairs = [(seconds(ours), seconds(theirs)) for _ in range(runs)]
    measured = [pair for pair in all_pairs if None not in pair]
    if not measured:
        sys.exit("bench: no pair of runs ended")
    ratios = [a / b for a, b in measured]
    hung = "".join(f", {who} hung {n} of {runs} times" for who, n in
                   (("monarch", sum(a is None for a, _ in all_pairs)), ("mpirun", sum(b is None for _, b in all_pairs))) if n)
    return (statistics.median(a for a, _ in measured), statistics.median(b for _, b in measured),
            statistics.median(ratios), ratios, hung)


def row(what, ours, against, ratio, goal):
    print(f"{what:<46}{ours:>14}{against:>22}{ratio:>8}  {goal}", flush=True)


def bench_start(world, runs):
    for count, hosts in ((8, 1), (8, 4), (64, 4)):
        spec = world.spec({"host": hosts, "slot": count // hosts}, ["/bin/true"])
        a, b, ratio, spread, hung = pairs(
            lambda s=spec: quietly([MONARCH, "run", s, "--quiet"], env=world.environment),
            lambda n=count: quietly(MPIRUN + ["-n", str(n), "true"]), runs)
        row(f"run of {count} x true, {hosts} virtual host{'s' * (hosts > 1)}", f"{a:.3f} s", f"mpirun {b:.3f} s",
            f"{ratio:.2f}", f"{'<= 0.8 ' if count == 8 else ''}(pairs {min(spread):.2f} to {max(spread):.2f}{hung})")


def processes_below(pid):
    """pids of a process and all that came from it."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    parents[int(name)] = int(file.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                pass
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def value_of(pid, name):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(rf"^{name}:\s+(\d+)", file.read(), re.M).group(1))


def cpu_nanoseconds(pid):
    """Of all threads: schedstat(proc) counts each thread's time on a processor."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total


def bench_worker(world):
    spec = world.spec({"host": 1, "slot": 2}, ["/bin/sleep", "600"])
    job = subprocess.run([MONARCH, "up", spec, "--quiet"], env=world.environment, check=True, capture_output=True,
                         text=True).stdout.strip()
    try:
        status = json.loads(subprocess.run([MONARCH, "status", job, "--json"], env=world.environment, check=True,
                                           capture_output=True, text=True).stdout)
        keeper = status["hosts"][0]["keeper_pid"]
        ours = [p for p in processes_below(keeper) if "monarch" in os.readlink(f"/proc/{p}/exe")]
        resident = sum(value_of(p, "VmRSS") for p in ours)
        time.sleep(2)  # the start is over: what is measured is idleness
        before, start = sum(map(cpu_nanoseconds, ours)), time.monotonic()
        time.sleep(20)
        share = (sum(map(cpu_nanoseconds, ours)) - before) / 1e9 / (time.monotonic() - start)
        row("worker (keeper + daemon), resident", f"{resident / 1024:.1f} MiB", "", "", "<= 8 MB")
        row("worker, idle with 2 ranks, of a core", f"{share:.2%}", "", "", "<= 0.2 %")
    finally:
        subprocess.run([MONARCH, "stop", job, "--quiet"], env=world.environment, stdout=subprocess.DEVNULL)


def bench_output(world, runs):
    mebibytes = 512
    expected = hashlib.sha256(b"\0" * (mebibytes << 20)).hexdigest()
    spec = world.spec({"slot": 1}, ["/usr/bin/head", "-c", str(mebibytes << 20), "/dev/zero"])
    ratios, ours, bare = [], [], []
    for turn in range(runs + 1):
        process = subprocess.Popen([MONARCH, "run", spec, "--quiet", "--no-prefix"], env=world.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        digest, first = hashlib.sha256(), None
        while piece := process.stdout.read1(1 << 20):
            first = first or time.monotonic()
            last = time.monotonic()
            digest.update(piece) if turn == 0 else None  # hashing costs as much as sending: once is enough
        if process.wait() != 0 or (turn == 0 and digest.hexdigest() != expected):
            sys.exit(f"bench: the output of the rank did not arrive whole (status {process.returncode})")
        told = subprocess.run([CURVE_STREAM, str(mebibytes), "1024"], check=True, capture_output=True, text=True).stdout
        if turn:
            ours.append(mebibytes / (last - first))
            bare.append(int(told.split()[0]) / float(told.split()[1]) / (1 << 20))
            ratios.append(ours[-1] / bare[-1])
    row("rank output to file and viewer", f"{statistics.median(ours):.0f} MiB/s",
        f"bare CURVE {statistics.median(bare):.0f} MiB/s", f"{statistics.median(ratios):.2f}",
        f">= 0.4 (pairs {min(ratios):.2f} to {max(ratios):.2f})")


def bench_beats(world):
    """The longest that the supervisor heard nothing of a host while its ranks flood it with output."""
    spec = world.spec({"slot": 4}, ["/bin/sh", "-c", "head -c 512M /dev/zero"])
    run = subprocess.Popen([MONARCH, "run", spec, "--quiet", "--no-prefix"], env=world.environment,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    longest = 0
    while run.poll() is None:
        told = subprocess.run([MONARCH, "status", "last", "--json"], env=world.environment, capture_output=True, text=True)
        if told.returncode == 0:
            longest = max([longest] + [host["silent_milliseconds"] for host in json.loads(told.stdout)["hosts"]])
        time.sleep(0.02)
    row("longest pause between beats, output flooding", f"{longest / 1000:.2f} s", "", "", "<= 1.1 + 0.5 s")


def bench_launch(arguments):
    print(f"{'what':<46}{'monarch':>14}{'against':>22}{'ratio':>8}  goal")
    with World() as world:
        bench_start(world, arguments.runs)
        bench_worker(world)
        bench_output(world, 3)
        bench_beats(world)


def bench_build(_):
    with tempfile.TemporaryDirectory(prefix="mb") as folder:
        quietly(["meson", "setup", folder, ROOT])
        took = seconds(lambda: quietly(["ninja", "-C", folder], timeout=3600))
    row(f"clean build on {os.cpu_count()} processors", f"{took:.0f} s", "", "", "<= 240 s")


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    benches = parser.add_subparsers(dest="bench", required=True, metavar="NAME")
    launch = benches.add_parser("launch", help="start, worker, output")
    launch.add_argument("--runs", type=int, default=15, help="pairs of each comparison of starts")
    launch.set_defaults(call=bench_launch)
    benches.add_parser("build", help="a clean build").set_defaults(call=bench_build)
    arguments = parser.parse_args()
    arguments.call(arguments)


if __name__ == "__main__":
    main()
