"""What the loss of a host costs, on hosts of a private world of this machine (tests/cluster), each with its sshd; as root.

A host is struck at a moment drawn from a seed. Ranks say when they began, or how far they are: time is lost where a step is not
done, or is done again. Beside it the same faults, by the same seed, cost whoever stops and starts the whole job at each of them.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

from measuring import row
from recovery_benchmarks import FAST, OVERLOAD, spread, until, when

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests/process"), os.path.join(ROOT, "tests/cluster")]
import world  # noqa: E402
from host import HOME, Options  # noqa: E402

MONARCH = os.path.join(world.BUILD, "cli/monarch")
PLACES = ("MONARCH_STATE_DIR=" + HOME + "/state", "XDG_RUNTIME_DIR=" + HOME + "/runtime")
BEGIN = 'date +%s.%N > "$0/$1.new" && mv "$0/$1.new" "$0/$1"; exec sleep 1000'


class Hosts:
    """A world whose hosts share a folder, and monarch on its login."""

    def __init__(self, count, seed):
        self.folder = tempfile.mkdtemp(prefix="monarch-bench-")
        names = [f"h{number}" for number in range(1, count + 1)]
        self.world = world.World(hosts=count, seed=seed, shared=[self.folder],
                                 options={name: Options(shared=(self.folder,)) for name in names})
        self.world.login.run("mkdir", "-m", "700", HOME + "/runtime")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.world.close()
        subprocess.run(["rm", "-rf", self.folder], check=True)

    def ask(self, *words, check=True, timeout=120):
        done = self.world.login.run(*PLACES, MONARCH, *words, check=False, timeout=timeout)
        if check and done.returncode != 0:
            sys.exit(f"bench: monarch {' '.join(words)}: {done.stderr}")
        return done

    def spec(self, folder, pool, dims, gang, program, supervision, spares):
        spec = {"version": 1, "job": "bench", "launch": {"ssh": {"hosts": pool, "spares": spares, "connect_timeout": "5s"}},
                "supervision": supervision,
                "meshes": {"m": {"dims": dims, "gang": gang, "program": program, "workdir": "/tmp", "stop": {"grace": "1s"}}}}
        path = os.path.join(folder, "spec.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec, file)
        return path

    def events(self, job, kind):
        told = self.ask("events", job, "--json").stdout
        return [e for e in map(json.loads, told.splitlines()) if e.get("event") == kind]

    def ready_hosts(self, job):
        return [h["name"] for h in json.loads(self.ask("status", job, "--json").stdout)["hosts"] if h["phase"] == "ready"]

    def new_folder(self):
        return tempfile.mkdtemp(dir=self.folder)


def began(folder, rank):
    try:
        with open(os.path.join(folder, str(rank)), encoding="ascii") as file:
            return float(file.read())
    except (OSError, ValueError):
        return 0.0


def silent_host(runs, draw, supervision, what, goals):
    """A cable is pulled: until the host is given up, and until its gang has begun on the spare."""
    declared, back = [], []
    with Hosts(3, 1) as hosts:
        for _ in range(runs):
            folder = hosts.new_folder()
            settings = {"restart": {"max": 4}, "reallocate": {"max": 4}, **supervision}
            spec = hosts.spec(folder, ["h1", "h2", "h3"], {"host": 2, "slot": 2}, "host",
                              ["/bin/sh", "-c", BEGIN, folder, "$(self.rank)"], settings, 1)
            job = hosts.ask("up", spec, "--quiet").stdout.strip()
            until(lambda f=folder: all(began(f, r) for r in range(4)), "ranks")
            until(lambda j=job: len(hosts.ready_hosts(j)) == 3, "a spare")
            time.sleep(draw.uniform(0, 1))
            since = time.time()
            hosts.world["h2"].unplug()
            until(lambda f=folder, s=since: all(began(f, r) > s for r in (2, 3)), "ranks anew")
            back.append(max(began(folder, r) for r in (2, 3)) - since)
            declared.append(when(hosts.events(job, "host.lost")[0]["time"]) - since)
            hosts.world["h2"].plug()
            hosts.ask("stop", job, "--kill")
    row(f"a silent host declared, {what}", f"{statistics.median(declared):.2f} s", "", "", f"{goals[0]} ({spread(declared)})")
    row(f"its gang begins on a spare, {what}", f"{statistics.median(back):.2f} s", "", "", f"{goals[1]} ({spread(back)})")


def weather(minutes, seed):
    """Loss, delay, and hosts that stand still for two seconds each, beside a job that nothing ails."""
    draw = random.Random(seed)
    with Hosts(5, seed) as hosts:
        folder = hosts.new_folder()
        spec = hosts.spec(folder, "h[1-5]", {"host": 4, "slot": 2}, "host", ["/bin/sh", "-c", BEGIN, folder, "$(self.rank)"], {}, 1)
        job = hosts.ask("up", spec, "--quiet").stdout.strip()
        until(lambda: all(began(folder, r) for r in range(8)), "ranks")
        before = {r: began(folder, r) for r in range(8)}
        for host in hosts.world.hosts:
            hosts.world.both("login", host.name, loss=0.1, delay=0.2, jitter=0.1)
        end, freezes = time.monotonic() + minutes * 60, 0
        while time.monotonic() < end:
            host = draw.choice(hosts.world.hosts)
            host.freeze()
            time.sleep(2)
            host.thaw()
            freezes += 1
            time.sleep(draw.uniform(1, 9))
        hosts.world.heal()
        kept = before == {r: began(folder, r) for r in range(8)}
        count = {kind: len(hosts.events(job, kind)) for kind in ("gang.failed", "host.lost", "host.suspect")}
        hosts.ask("stop", job, "--kill")
    row(f"restarts in {minutes:g} min of bad weather", str(count["gang.failed"]), "", "",
        f"0 (10 % loss, 200 ± 100 ms, {freezes} freezes of 2 s; {'every rank kept' if kept else 'RANKS CHANGED'}; hosts lost "
        f"{count['host.lost']}, suspected {count['host.suspect']})")


def overload(minutes, seed):
    """Many more processes than processors on the hosts of a job that nothing ails."""
    spinning = OVERLOAD * len(os.sched_getaffinity(0))
    with Hosts(5, seed) as hosts:
        folder = hosts.new_folder()
        spec = hosts.spec(folder, "h[1-5]", {"host": 4, "slot": 2}, "host", ["/bin/sh", "-c", BEGIN, folder, "$(self.rank)"], {}, 1)
        job = hosts.ask("up", spec, "--quiet").stdout.strip()
        until(lambda: all(began(folder, r) for r in range(8)), "ranks")
        before = {r: began(folder, r) for r in range(8)}
        hogs = [hosts.world.hosts[number % 5].start("/bin/sh", "-c", "until [ -e /tmp/calm ]; do :; done") for number in range(spinning)]
        time.sleep(minutes * 60)
        for host in hosts.world.hosts:
            host.write("/tmp/calm", "")
        for hog in hogs:
            hog.wait()
        kept = before == {r: began(folder, r) for r in range(8)}
        count = {kind: len(hosts.events(job, kind)) for kind in ("gang.failed", "host.lost", "host.suspect")}
        hosts.ask("stop", job, "--kill")
    row(f"restarts in {minutes:g} min under {OVERLOAD}x CPU overload", str(count["gang.failed"]), "", "",
        f"0 ({spinning} spinning on 5 hosts; {'every rank kept' if kept else 'RANKS CHANGED'}; hosts lost {count['host.lost']}, "
        f"suspected {count['host.suspect']})")


# ---- the comparison with stopping and starting everything ----

REPLICAS, SPARES = 8, 2
STEP_S, EVERY, START_S = 0.1, 10, 2.0  # a step; steps between two checkpoints; what the program does before its first step
FAULTS = ("segv", "unplug", "kill", "freeze", "worker")
# Goes on from its last checkpoint. Every step is written down, with when it was done.
STEPS = """import os, sys, time
folder, rank, step_s, every, start_s = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
def write(name, text):
    path = os.path.join(folder, name)
    with open(path + ".new%d" % os.getpid(), "w") as file: file.write(text)
    os.replace(path + ".new%d" % os.getpid(), path)
write("who." + rank, "%s %d" % (os.uname().nodename, os.getpid()))
time.sleep(start_s)
try: step = int(open(os.path.join(folder, "checkpoint." + rank)).read())
except OSError: step = 0
with open(os.path.join(folder, "steps." + rank), "a", buffering=1) as steps:
    while True:
        time.sleep(step_s)
        step += 1
        steps.write("%d %.3f\\n" % (step, time.time()))
        if step % every == 0: write("checkpoint." + rank, str(step))
"""


class Plan:
    """Which fault strikes which replica when, in seconds from the start; drawn from a seed."""

    def __init__(self, seed, seconds):
        draw = random.Random(seed)
        kinds = draw.sample(FAULTS, len(FAULTS))
        replicas = draw.sample(range(REPLICAS), len(kinds))
        slot = (seconds - 15) / len(kinds)
        self.faults = [(5 + number * slot + draw.uniform(0, slot / 4), kind, replica)
                       for number, (kind, replica) in enumerate(zip(kinds, replicas))]

    def __str__(self):
        return ", ".join(f"{kind} of replica {replica} at {at:.0f} s" for at, kind, replica in self.faults)


class Training:
    """Eight replicas of one rank on a host each, for so long, and faults meanwhile."""

    def __init__(self, hosts, plan, seconds):
        self.hosts, self.plan, self.seconds = hosts, plan, seconds
        self.folder = hosts.new_folder()
        with open(os.path.join(self.folder, "steps.py"), "w", encoding="ascii") as file:
            file.write(STEPS)
        self.program = ["/usr/bin/python3", os.path.join(self.folder, "steps.py"), self.folder, "$(self.rank)",
                        *map(str, (STEP_S, EVERY, START_S))]
        self.gone = set()

    def steps(self, rank):
        """(step, when) of each, in the order in which they were done."""
        try:
            with open(os.path.join(self.folder, f"steps.{rank}"), encoding="ascii") as file:
                return [(int(a), float(b)) for a, b in (line.split() for line in file if line.endswith("\n"))]
        except OSError:
            return []

    def strike(self, kind, replica):
        with open(os.path.join(self.folder, f"who.{replica}"), encoding="ascii") as file:
            name, pid = file.read().split()
        if name in self.gone:
            return  # it is not back yet
        host = self.hosts.world[name]
        if kind in ("segv", "kill"):
            host.run("/bin/kill", "-SEGV" if kind == "segv" else "-KILL", pid, check=False)
        elif kind == "worker":
            host.run("/usr/bin/pkill", "-KILL", "-x", "monarch-worker", check=False)
        else:
            getattr(host, kind)()
            self.gone.add(name)

    def run(self, start, look):
        """From the moment when all are at work; strikes by the plan, and looks now and then. Returns how many seconds of all ranks were
        lost: in which no step was done that is kept, a step taking what it mostly does."""
        start()
        until(lambda: all(self.steps(r) for r in range(REPLICAS)), "replicas at work")
        self.since = time.time()
        first = {r: self.steps(r)[-1][0] for r in range(REPLICAS)}
        faults = list(self.plan.faults)
        while (now := time.time() - self.since) < self.seconds:
            if faults and now >= faults[0][0]:
                self.strike(*faults.pop(0)[1:])
            look()
            time.sleep(0.05)
        done = {r: [(s, t) for s, t in self.steps(r) if t <= self.since + self.seconds] for r in range(REPLICAS)}
        step_s = statistics.median(b[1] - a[1] for all_of in done.values() for a, b in zip(all_of, all_of[1:]))
        kept = sum(max(s for s, _ in done[r]) - first[r] for r in range(REPLICAS))
        return REPLICAS * self.seconds - kept * step_s

    def heal(self):
        for name in self.gone:
            self.hosts.world[name].plug()
            self.hosts.world[name].thaw()

    def timeline(self):
        """How many replicas made progress that was new, in each second."""
        seconds = [set() for _ in range(int(self.seconds) + 1)]
        for rank in range(REPLICAS):
            highest = 0
            for step, at in self.steps(rank):
                if step > highest and 0 <= at - self.since < self.seconds:
                    seconds[int(at - self.since)].add(rank)
                highest = max(highest, step)
        return "".join(str(len(s)) for s in seconds[:-1])


def supervised(hosts, plan, seconds):
    training = Training(hosts, plan, seconds)
    spec = hosts.spec(training.folder, f"h[1-{REPLICAS + SPARES}]", {"replica": REPLICAS, "host": 1}, "replica", training.program,
                      {"restart": {"max": 8}, "reallocate": {"max": 8}}, SPARES)
    jobs = []
    lost = training.run(lambda: jobs.append(hosts.ask("up", spec, "--quiet").stdout.strip()), lambda: None)
    hosts.ask("stop", jobs[0], "--kill")
    training.heal()
    return lost, training.timeline()


def started_anew(hosts, plan, seconds):
    """Any fault ends the job; it is started again as a whole, at once, on hosts that are there."""
    training = Training(hosts, plan, seconds)
    running = []

    def start():
        pool = [h.name for h in hosts.world.hosts if h.name not in training.gone][:REPLICAS]
        spec = hosts.spec(training.folder, pool, {"replica": REPLICAS, "host": 1}, "all", training.program,
                          {"restart": {"max": 0}, "reallocate": {"max": 0}}, 0)
        running[:] = [hosts.world.login.start(*PLACES, MONARCH, "run", spec, "--quiet", stdout=subprocess.DEVNULL,
                                              stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)]

    def look():
        if running[0].poll() is not None:
            start()
    lost = training.run(start, look)
    hosts.ask("stop", "last", "--kill", check=False)
    running[0].wait(60)
    training.heal()
    return lost, training.timeline()


def compare(seeds, seconds):
    """The same faults, met by supervision and by a restart of everything."""
    ratios = []
    for seed in seeds:
        plan = Plan(seed, seconds)
        lost = {}
        print(f"seed {seed}: {plan}")
        for name, how in (("monarch", supervised), ("stop and start", started_anew)):
            with Hosts(REPLICAS + SPARES + 1, seed) as hosts:
                lost[name], timeline = how(hosts, plan, seconds)
            print(f"  {name:<16}{timeline}  {lost[name]:.0f} of {REPLICAS * seconds:.0f} rank-seconds lost", flush=True)
        ratios.append(lost["monarch"] / lost["stop and start"])
    row(f"time lost to 5 faults in {seconds:g} s, 8 replicas", "", "stop and start of everything", f"{statistics.median(ratios):.2f}",
        f"<= 0.2 (seeds {', '.join(map(str, seeds))}: {', '.join(f'{r:.2f}' for r in ratios)})")


def bench_hosts(runs, seed, minutes):
    reason = world.why_not()
    if reason:
        print(f"skipped: faults of hosts: this machine {reason}")
        return
    print(f"seed {seed}")
    print(f"{'what':<50}{'monarch':>14}{'against':>29}{'ratio':>8}  goal")
    if minutes > 0:
        weather(minutes, seed)
        return overload(minutes, seed)
    draw = random.Random(seed)
    silent_host(runs, draw, {}, "by default", ("5 to 6 s", "<= 8 s"))
    silent_host(runs, draw, FAST, "fast profile", ("<= 2 s", "<= 3 s"))
    compare(range(seed, seed + 3), 75)
