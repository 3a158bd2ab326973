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

from measuring import head, row
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


def compare(seed):
    """The same faults, met by supervision and by who stops and starts everything: a drill of virtual hosts says what each lost."""
    scenario = os.path.join(ROOT, "configs", "drills", "every-20s.yaml")
    with tempfile.TemporaryDirectory(prefix="monarch-bench-") as folder:
        places = {"MONARCH_STATE_DIR": os.path.join(folder, "state"), "XDG_RUNTIME_DIR": folder}
        done = subprocess.run([MONARCH, "drill", scenario, "--compare", "--seed", str(seed), "--json"], env={**os.environ, **places},
                              stdout=subprocess.PIPE, check=False)
    report = json.loads(done.stdout)
    if done.returncode != 0:
        sys.exit(f"bench: {report['sentence']}")
    lost = {who: report["compare"][who]["lost_rank_milliseconds"] / 1000 for who in ("here", "full_restart")}
    row(f"rank-seconds lost to {len(report['faults'])} faults in 5 min", f"{lost['here']:.0f} s", f"stop and start: {lost['full_restart']:.0f} s",
        f"{report['compare']['ratio']:.2f}", f"<= 0.2 (seed {seed}; ETTR {report['ettr']:.3f}, goodput {report['goodput']:.3f})")


def bench_hosts(runs, seed, minutes):
    reason = world.why_not()
    if reason:
        print(f"skipped: faults of hosts: this machine {reason}")
        return
    print(f"seed {seed}")
    head()
    if minutes > 0:
        weather(minutes, seed)
        return overload(minutes, seed)
    draw = random.Random(seed)
    silent_host(runs, draw, {}, "by default", ("5 to 6 s", "<= 8 s"))
    silent_host(runs, draw, FAST, "fast profile", ("<= 2 s", "<= 3 s"))
    compare(seed)
