"""How long a job is without what it lost: from the fault, by the kernel's clock, to the first words of the processes that come after.

A rank writes down when it began and then sleeps, so that the program's own start is next to nothing: what is measured is ours. Who is
struck is drawn from a seed. Ours and torchrun's restart of a group are measured in turn where PyTorch's launcher is there.
"""

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import peers
from measuring import head, row

DEADLINE_S = 60.0
BEGIN = 'date +%s.%N > "$0/$1.new" && mv "$0/$1.new" "$0/$1"; exec sleep 1000'
FAST = {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "1s", "lease": "1500ms"}
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--no_python", "--monitor_interval", "0.01"]
OF_TORCH_1 = ["--redirects", "1", "--tee", "2"]  # the default, 0, is nothing to PyTorch 1.13 on Python 3.11


def until(look, what, timeout=DEADLINE_S):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.001)
    sys.exit(f"bench: not within {timeout:.0f} s: {what}")


def told(times, digits=0):
    """'p50 / p99 ms' of seconds."""
    ordered = sorted(times)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"{statistics.median(ordered) * 1000:.{digits}f} / {p99 * 1000:.{digits}f} ms"


def spread(times):
    return f"{min(times) * 1000:.0f} to {max(times) * 1000:.0f} ms, {len(times)} faults"


class Job:
    """`monarch up` of ranks that write down when they began; stopped at the end."""

    def __init__(self, monarch, world, dims, gang, supervision, local, program=None, folder=None, mesh=None):
        self.monarch, self.environment = monarch, world.environment
        self.folder = folder or tempfile.mkdtemp(dir=world.folder)
        program = program or ["/bin/sh", "-c", BEGIN, self.folder, "$(self.rank)"]
        spec = {"version": 1, "job": "bench", "launch": {"local": local}, "supervision": supervision,
                "meshes": {"m": {"dims": dims, "gang": gang, "program": program, **(mesh or {})}}}
        path = os.path.join(self.folder, "spec.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec, file)
        self.ranks = 1
        for size in dims.values():
            self.ranks *= size

        self.id = self.ask("up", path).strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ask("stop", self.id, "--kill")

    def ask(self, *words):
        done = subprocess.run([self.monarch, *words, "--quiet"] if words[0] == "up" else [self.monarch, *words],
                              env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S)
        if done.returncode != 0:
            sys.exit(f"bench: monarch {' '.join(words)}: {done.stderr}")
        return done.stdout

    def status(self):
        return json.loads(self.ask("status", self.id, "--json"))

    def pids(self):
        return {r["rank"]: r["pid"] for r in self.status()["meshes"][0]["ranks"]}

    def began(self, rank):
        try:
            with open(os.path.join(self.folder, str(rank)), encoding="ascii") as file:
                return float(file.read())
        except OSError:
            return 0.0

    def back(self, ranks, since):
        """Seconds from then until the last of these ranks began anew."""
        until(lambda: all(self.began(r) > since for r in ranks), f"ranks {ranks} anew")
        return max(self.began(r) for r in ranks) - since

    def settled(self):
        until(lambda: all(r["phase"] == "running" for r in self.status()["meshes"][0]["ranks"]), "ranks that run")


def death_seen(monarch, world, runs, seed):
    """From SIGKILL of a rank that is a gang of its own to the event that says so."""
    draw = random.Random(seed)
    seen = []
    supervision = {"restart": {"max": "unlimited", "backoff": "0ms"}}
    with Job(monarch, world, {"slot": 8}, "each", supervision, {"hosts": 1}) as job:
        for number in range(runs):
            job.settled()
            rank = draw.randrange(8)
            pid, since = job.pids()[rank], time.time()
            os.kill(pid, signal.SIGKILL)
            job.back([rank], since)
            failed = [e for e in map(json.loads, job.ask("events", job.id, "--json").splitlines()) if e.get("event") == "gang.failed"]
            until(lambda n=number, f=failed: len(f) > n, "gang.failed")
            seen.append(when(failed[-1]["time"]) - since)
    row("death of a process seen, p50 / p99", told(seen, 1), "", "", f"p99 <= 20 ms ({spread(seen)})")


def when(stamp):
    from datetime import datetime
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


def gang_in_place(monarch, world, runs, seed):
    draw = random.Random(seed)
    ours = []
    supervision = {"restart": {"max": "unlimited", "backoff": "0ms"}}
    with Job(monarch, world, {"slot": 8}, "all", supervision, {"hosts": 1}) as job:
        for _ in range(runs):
            job.settled()
            pid, since = job.pids()[draw.randrange(8)], time.time()
            os.kill(pid, signal.SIGKILL)
            ours.append(job.back(range(8), since))
    theirs = torchrun_restart(world, runs, seed)
    against = f"torchrun {told(theirs)}" if theirs else "no torchrun here"
    ratio = f"{statistics.median(ours) / statistics.median(theirs):.2f}" if theirs else ""
    row("a gang of 8 back in place, p50 / p99", told(ours), against, ratio, f"p99 <= 150 ms ({spread(ours)})")


# Its start costs a second, before the gate.
SLOW = """import os, sys, time
sys.path.insert(0, sys.argv[1])
import monarch_rank
time.sleep(1)
place = monarch_rank.gate()
path = os.path.join(sys.argv[2], place["MONARCH_RANK"])
with open(path + ".new", "w") as file: file.write("%.9f" % time.time())
os.replace(path + ".new", path)
time.sleep(1000)
"""


def gang_by_standby(monarch, world, runs, seed):
    """A gang of 8 whose program starts for a second: anew on its host, and by a standby gang that has done that already."""
    times = {}
    for standby in (0, 1):
        draw = random.Random(seed)
        times[standby] = []
        supervision = {"restart": {"max": "unlimited", "backoff": "0ms"}}
        folder = tempfile.mkdtemp(dir=world.folder)
        path = os.path.join(folder, "slow.py")
        with open(path, "w", encoding="ascii") as file:
            file.write(SLOW)
        program = ["/usr/bin/python3", path, os.path.join(ROOT, "worker/python"), folder]
        with Job(monarch, world, {"slot": 8}, "all", supervision, {"hosts": 2, "spares": 1}, program=program, folder=folder,
                 mesh={"standby": {"gangs": standby}}) as job:
            for _ in range(runs):
                until(lambda: all(job.began(r) > 0 for r in range(8)), "ranks at work")
                job.settled()
                if standby:
                    until(lambda: job.status()["meshes"][0]["standby"][0]["phase"] == "ready", "a standby at its gate")
                pid, since = job.pids()[draw.randrange(8)], time.time()
                os.kill(pid, signal.SIGKILL)
                times[standby].append(job.back(range(8), since))
    ratio = f"{statistics.median(times[1]) / statistics.median(times[0]):.2f}"
    row("a gang of 8 that starts for 1 s, back by standby", told(times[1]), f"anew {told(times[0])}", ratio,
        f"p99 <= 250 ms ({spread(times[1])})")


def torchrun_restart(world, runs, seed):
    """The same of torchrun: one of 8 processes is killed, it kills the others, and starts 8 again. Nothing: it does not run here."""
    found = peers.python_of_torch()
    if found is None:
        return []
    print(f"against torchrun of PyTorch {found[1]}")
    draw = random.Random(seed)
    folder = tempfile.mkdtemp(dir=world.folder)
    script = os.path.join(folder, "rank.sh")  # in an argument torchrun would take $$ for a $
    with open(script, "w", encoding="ascii") as file:
        file.write(f"echo $$ > {folder}/pid.$LOCAL_RANK\nset -- $LOCAL_RANK\n" + BEGIN.replace("$0", folder) + "\n")
    options = TORCHRUN + (OF_TORCH_1 if found[1].startswith("1.") else [])
    launcher = subprocess.Popen([found[0], *options, "--nproc_per_node", "8", "--max_restarts", str(runs + 1), "/bin/sh", script],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def began(rank):
        try:
            with open(os.path.join(folder, str(rank)), encoding="ascii") as file:
                return float(file.read())
        except OSError:
            return 0.0
    times = []
    try:
        until(lambda: launcher.poll() is not None or all(began(r) > 0 for r in range(8)), "torchrun's ranks")
        for _ in range(runs):
            if launcher.poll() is not None:
                return []
            with open(os.path.join(folder, f"pid.{draw.randrange(8)}"), encoding="ascii") as file:
                pid = int(file.read())
            since = time.time()
            os.kill(pid, signal.SIGKILL)
            until(lambda s=since: launcher.poll() is not None or all(began(r) > s for r in range(8)), "torchrun's next group")
            if launcher.poll() is not None:
                return times
            times.append(max(began(r) for r in range(8)) - since)
    finally:
        if launcher.poll() is None:
            os.killpg(launcher.pid, signal.SIGTERM)
        launcher.wait()
    return times


def keeper_and_daemon(job, host):
    keeper = next(h["keeper_pid"] for h in job.status()["hosts"] if h["name"] == host)
    with open(f"/proc/{keeper}/task/{keeper}/children", encoding="ascii") as file:
        return [keeper, *map(int, file.read().split())]


def host_lost(job):
    """All of virtual host v2 stands still. Returns when."""
    job.settled()
    stopped = keeper_and_daemon(job, "v2")
    since = time.time()
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    return since


def lost_host(monarch, world, runs, supervision, what, goal):
    """All of a virtual host stands still; its gang begins on the spare."""
    times = []
    for _ in range(runs):
        settings = {"restart": {"max": 4}, "reallocate": {"max": 4}, **supervision}
        with Job(monarch, world, {"host": 2, "slot": 2}, "host", settings, {"hosts": 3, "spares": 1}) as job:
            times.append(job.back([2, 3], host_lost(job)))
    row(f"a lost virtual host on a spare, {what}", f"{statistics.median(times):.2f} s", "", "", f"{goal} ({spread(times)})")


# A host is cold until something has worked on it for two seconds, as one whose caches, images or data have to come first.
WARM = '[ -e "$0/warm.$MONARCH_HOST" ] || { sleep 2; : > "$0/warm.$MONARCH_HOST"; }'


def prepared_spare(monarch, world, runs):
    """The same, fast profile, where a program's first start on a host takes 2 s: on a spare as it is, and on one that
    `spares.prepare` has warmed."""
    times = {}
    for prepared in (False, True):
        times[prepared] = []
        for _ in range(runs):
            folder = tempfile.mkdtemp(dir=world.folder)
            spares = {"count": 1, "prepare": ["/bin/sh", "-c", WARM, folder]} if prepared else {"count": 1}
            program = ["/bin/sh", "-c", f"{WARM}; {BEGIN}", folder, "$(self.rank)"]
            settings = {"restart": {"max": 4}, "reallocate": {"max": 4}, **FAST}
            with Job(monarch, world, {"host": 2, "slot": 2}, "host", settings, {"hosts": 3, "spares": spares}, program=program,
                     folder=folder) as job:
                until(lambda: all(job.began(r) > 0 for r in range(4)), "ranks at work")
                if prepared:
                    until(lambda: "prepared" in [h["preparation"] for h in job.status()["hosts"]], "a prepared spare")
                times[prepared].append(job.back([2, 3], host_lost(job)))
    ours, cold = statistics.median(times[True]), statistics.median(times[False])
    row("the same, 2 s of warming done by `prepare`", f"{ours:.2f} s", f"unprepared {cold:.2f} s", f"{ours / cold:.2f}",
        f"<= 3 s ({spread(times[True])})")


def supervisor_back(monarch, world, runs):
    times = []
    with Job(monarch, world, {"host": 2, "slot": 4}, "host", {"restart": {"max": 4}}, {"hosts": 2}) as job:
        job.settled()
        before = job.pids()
        for number in range(runs):
            pid = job.status()["supervisor_pid"]
            since = time.monotonic()
            os.kill(pid, signal.SIGKILL)

            def adopted(term=number + 2):
                done = subprocess.run([monarch, "status", job.id, "--json"], env=job.environment, capture_output=True,
                                      text=True, check=False)
                if done.returncode != 0:
                    return False
                status = json.loads(done.stdout)
                return status["term"] == term and status["supervisor_pid"] and all(h["phase"] == "ready" for h in status["hosts"])
            until(adopted, "the next term")
            times.append(time.monotonic() - since)
        if job.pids() != before:
            sys.exit("bench: ranks were started again when the supervisor came back")
    row("the supervisor back, every rank adopted", f"{statistics.median(times):.2f} s", "", "", f"<= 1 s ({spread(times)})")


OVERLOAD = 64  # processes that want all of a core, for each core


def overload(monarch, world, minutes):
    """Processes that spin, each in a session and so in a scheduling group of its own, beside a job that nothing ails."""
    count = OVERLOAD * len(os.sched_getaffinity(0))
    with Job(monarch, world, {"host": 4, "slot": 4}, "host", {}, {"hosts": 5, "spares": 1}) as job:
        job.settled()
        before = job.pids()
        spinning = []
        try:
            for _ in range(count):
                spinning.append(subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"], start_new_session=True,
                                                 stdin=subprocess.DEVNULL))
            time.sleep(minutes * 60)
        finally:
            for process in spinning:
                process.kill()
                process.wait()
        events = [json.loads(line)["event"] for line in job.ask("events", job.id, "--json").splitlines()]
        kept = job.pids() == before
    told_of = {kind: events.count(kind) for kind in ("gang.failed", "host.lost", "host.suspect")}
    row(f"restarts in {minutes:g} min under {OVERLOAD}x CPU overload", str(told_of["gang.failed"]), "", "",
        f"0 ({count} spinning, {'every rank kept' if kept else 'RANKS CHANGED'}; hosts lost {told_of['host.lost']}, "
        f"suspected {told_of['host.suspect']})")


def bench_recovery(monarch, world, runs, seed, minutes):
    if minutes > 0:
        return overload(monarch, world, minutes)
    print(f"seed {seed}")
    head()
    death_seen(monarch, world, runs, seed)
    gang_in_place(monarch, world, runs, seed)
    few = max(2, runs // 10)
    gang_by_standby(monarch, world, few, seed)
    lost_host(monarch, world, few, {}, "by default", "<= 8 s")
    lost_host(monarch, world, few, FAST, "fast profile", "<= 3 s")
    prepared_spare(monarch, world, few)
    supervisor_back(monarch, world, few)
