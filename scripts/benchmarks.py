"""Measures monarch against what people use instead, in one run, pair by pair: absolute times of a shared machine say
little, a ratio of two things that were measured in turn says more.

usage: scripts/bench launch [--runs N]     start-up against mpirun and ssh, size and idle cost of a worker, throughput of output
       scripts/bench recovery [--runs N]   from a fault until what was lost is back
       scripts/bench recovery --overload MINUTES   what a loaded machine costs a job that nothing ails
       scripts/bench recovery --hosts [--runs N]   the same of hosts over sshd, beside a restart of everything
       scripts/bench recovery --weather MINUTES    what a bad network and busy hosts cost a job that nothing ails
       scripts/bench actors [--runs N]     calls between ranks against bare ZeroMQ, a sealed stream, memcpy and PyTorch Monarch
       scripts/bench actors --against BUILD [--runs N]   the same calls by a build of another commit, and by this one
       scripts/bench actors --peers [--runs N]     actors in Python: one program by ours, by PyTorch Monarch and over Ray
       scripts/bench tensors [--runs N]    pulls against a copy in memory and iperf3
       scripts/bench slurm [--runs N]      start-up against srun, the loss of a node against a requeue of the job, on a real Slurm; as root
       scripts/bench scale [--hosts N,N]   many hosts and ranks on this machine: start, memory, idle, status, a lost host, stop
       scripts/bench build                 a clean build, in seconds of processors, and its dearest units
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
import time

import actor_benchmarks
import actor_comparison
import build_benchmarks
import host_benchmarks
import peer_benchmarks
import peers
import recovery_benchmarks
import scale_benchmarks
import slurm_benchmarks
import ssh_benchmarks
import tensor_benchmarks
from measuring import file_system, head, pairs, quietly, row, seconds

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("MONARCH_BUILD_DIR") or os.path.join(ROOT, "build")
MONARCH = os.path.join(BUILD, "cli/monarch")
CURVE_STREAM = os.path.join(BUILD, "tests/bench/curve-stream")


class World:
    """A state directory of its own, removed at the end."""

    def __init__(self, place=None):
        self._place = place

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="mb", dir=self._place)
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


SHARED_MEMORY = "/dev/shm"


def places():
    """Where state may be: where temporary files are, which a machine mostly has on a disk, and memory."""
    found = {file_system(folder): folder for folder in (SHARED_MEMORY, tempfile.gettempdir()) if os.access(folder, os.W_OK)}
    return dict(sorted(found.items(), key=lambda one: one[0] == "tmpfs"))


def bench_start(runs):
    mpirun = peers.mpirun()
    if mpirun is None:
        return row("run of N x true, virtual hosts", "", "no mpirun here", "", "")
    print(f"against {peers.mpirun_version()}")
    for kind, place in places().items():
        with World(place) as world:
            for count, hosts in ((8, 1), (8, 4), (64, 4)):
                spec = world.spec({"host": hosts, "slot": count // hosts}, ["/bin/true"])
                a, b, ratio, spread, hung = pairs(
                    lambda w=world, s=spec: quietly([MONARCH, "run", s, "--quiet"], env=w.environment),
                    lambda n=count: quietly([mpirun, "--oversubscribe", "--allow-run-as-root", "-n", str(n), "true"]), runs)
                goal = "" if count != 8 else "<= 1.0 " if kind == "tmpfs" else "<= 1.1 "
                row(f"run of {count} x true, {hosts} virtual host{'s' * (hosts > 1)}, {kind}", f"{a:.3f} s", f"mpirun {b:.3f} s",
                    f"{ratio:.2f}", f"{goal}(pairs {min(spread):.2f} to {max(spread):.2f}{hung})")


# What has begun, by the words of its execve(2), in the order in which they come.
STAGES = (("guard", '"keep"'), ("supervisor", r'\("[^"]*/monarch", .*"supervise"'), ("worker", '"--host"'), ("daemon", '"daemon"'), ("a rank", '"/bin/true", \\["/bin/true"'))


def bench_stages(world, runs):
    """Where the time of a start goes: when each program of it is executed, in milliseconds from the command's own."""
    if shutil.which("strace") is None:
        return
    spec, trace = world.spec({"slot": 8}, ["/bin/true"]), os.path.join(world.folder, "trace")
    times = []
    for _ in range(runs):
        quietly(["strace", "--seccomp-bpf", "-f", "-ttt", "-e", "trace=execve", "-o", trace, MONARCH, "run", spec, "--quiet"],
                env=world.environment)
        with open(trace, encoding="utf-8", errors="replace") as file:
            lines = [(float(line.split()[1]), line) for line in file if len(line.split()) > 1]
        begun = [next(at for at, line in lines if re.search(f"execve.*{words}", line)) for _, words in STAGES]
        times.append([at - lines[0][0] for at in [*begun, max(at for at, _ in lines)]])
    told = [f"{name} {statistics.median(column) * 1000:.0f}" for (name, _), column in zip([*STAGES, ("the end", "")], zip(*times))]
    print(f"  8 x true on 1 virtual host, traced: {', '.join(told)} ms")


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
    head()
    bench_start(arguments.runs)
    with World() as world:
        bench_stages(world, min(5, arguments.runs))
        ssh_benchmarks.bench_start(arguments.runs)
        bench_worker(world)
        bench_output(world, 3)
        bench_beats(world)


def bench_recovery(arguments):
    if arguments.hosts or arguments.weather:
        return host_benchmarks.bench_hosts(max(2, arguments.runs // 10), arguments.seed, arguments.weather)
    with World() as world:
        recovery_benchmarks.bench_recovery(MONARCH, world, arguments.runs, arguments.seed, arguments.overload)


def bench_actors(arguments):
    if arguments.against:
        with World() as world, World() as other:
            return actor_comparison.bench_against(world, BUILD, other, os.path.abspath(arguments.against), arguments.runs or 5)
    if arguments.peers:
        with World() as world:
            return peer_benchmarks.bench_peers(world, arguments.runs or 7)
    head()
    with World() as world:
        actor_benchmarks.bench_actors(world, arguments.runs or 7)


def bench_tensors(arguments):
    head()
    with World() as world:
        tensor_benchmarks.bench_tensors(world, arguments.runs)


def bench_scale(arguments):
    head()
    with World() as world:
        scale_benchmarks.bench_scale(world, [int(size) for size in arguments.hosts.split(",")], arguments.ranks)


def bench_slurm(arguments):
    slurm_benchmarks.bench_slurm(arguments.runs, arguments.seed)


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    benches = parser.add_subparsers(dest="bench", required=True, metavar="NAME")
    launch = benches.add_parser("launch", help="start, worker, output")
    launch.add_argument("--runs", type=int, default=15, help="pairs of each comparison of starts")
    launch.set_defaults(call=bench_launch)
    recovery = benches.add_parser("recovery", help="from a fault until what was lost is back")
    recovery.add_argument("--runs", type=int, default=50, help="faults of each kind; a tenth of it where a host is lost")
    recovery.add_argument("--seed", type=int, default=1, help="of who is struck")
    recovery.add_argument("--overload", type=float, default=0, metavar="MINUTES",
                          help="instead: so long under 64 spinning processes a core, with nothing struck")
    recovery.add_argument("--hosts", action="store_true",
                          help="instead: hosts over sshd that fall silent, and the same faults against stopping and starting everything; as root")
    recovery.add_argument("--weather", type=float, default=0, metavar="MINUTES",
                          help="instead: so long with lost and late packets and short freezes on such hosts, and as long under overload")
    recovery.set_defaults(call=bench_recovery)
    actors = benches.add_parser("actors", help="calls between ranks")
    actors.add_argument("--runs", type=int, help="turns of ours and of the others: 7, of builds 5")
    instead = actors.add_mutually_exclusive_group()
    instead.add_argument("--against", metavar="BUILD",
                         help="instead: a build of another commit and this tree's, in turns, at most 5 minutes; 1 where a gate is missed")
    instead.add_argument("--peers", action="store_true", help="instead: one program in Python by ours, by PyTorch Monarch and over Ray, in turns")
    actors.set_defaults(call=bench_actors)
    pulls = benches.add_parser("tensors", help="pulls between ranks")
    pulls.add_argument("--runs", type=int, default=7, help="turns of ours and of the others")
    pulls.set_defaults(call=bench_tensors)
    nodes = benches.add_parser("slurm", help="start and the loss of a node, on nodes of Slurm")
    nodes.add_argument("--runs", type=int, default=15, help="pairs of starts; a fifth of it where a node is lost")
    nodes.add_argument("--seed", type=int, default=1, help="of when the power goes")
    nodes.set_defaults(call=bench_slurm)
    scale = benches.add_parser("scale", help="many hosts and ranks on this machine")
    scale.add_argument("--hosts", default="64,256,512,1000", help="how many, one size after the other")
    scale.add_argument("--ranks", type=int, default=8, help="of each host")
    scale.set_defaults(call=bench_scale)
    benches.add_parser("build", help="a clean build").set_defaults(call=lambda _: build_benchmarks.bench_build())
    arguments = parser.parse_args()
    arguments.call(arguments)


if __name__ == "__main__":
    main()
