"""Starts and the loss of a node on a real Slurm, in a private world of hosts on this machine (tests/cluster), beside what Slurm itself does.

A start is `monarch run` against `srun`, both from the login host, with the environment that salloc gave for one and the same allocation.
A loss is a node whose power goes, until all ranks run again, each saying when and where it began. Slurm's side of it has no
monarch: a batch script that runs the same program by srun. Every loss has a Slurm of its own, so none meets what another left.
"""

import contextlib
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

from measuring import head, quietly, row, seconds
from recovery_benchmarks import until, when

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests/process"), os.path.join(ROOT, "tests/cluster")]
import slurm  # noqa: E402
import world  # noqa: E402
from host import ENVIRONMENT, HOME, Options  # noqa: E402

MONARCH = os.path.join(world.BUILD, "cli/monarch")
PLACES = {"MONARCH_STATE_DIR": HOME + "/state", "XDG_RUNTIME_DIR": HOME + "/runtime"}
SLOTS, RANKS = 2, 4  # of a node; of a job on two nodes
# Of either side: says when and where it began, in one piece.
RANK = """rank=${MONARCH_RANK:-$SLURM_PROCID}
echo "$(date +%s.%N) $(hostname)" > "$0.$rank.new" && mv "$0.$rank.new" "$0.$rank"
exec sleep 1000
"""
# What salloc runs: it tells its environment, and holds the allocation until its standard input is closed.
HOLD = 'env -0 > "$0.new" && mv "$0.new" "$0"; exec cat'
LOST = "h2"
# WARNING: Slurm by itself waits for SlurmdTimeout, and a job that it then requeues for 2 minutes more (seen with 22.05.8: BeginTime).
BY_ITSELF_S = 300.0
# Slurm asks its nodes at every third of SlurmdTimeout, monarch's beat every second.
PERIOD_S = slurm.SLURMD_TIMEOUT_S / 3
NOTE = f"""  monarch: default supervision, one gang of all ranks, 2 nodes and a spare. Slurm: 2 nodes, a third one is idle; an operator acts at
  the moment of the loss, and names the lost node (--exclude) where the job is submitted anew. A requeued job waits until that node
  is DOWN all the same: SlurmdTimeout is {slurm.SLURMD_TIMEOUT_S} s here, 300 s by default, which comes on top, as it does where nobody acts."""


class Bed:
    """Nodes with a Slurm of their own, a folder that all of them share, and monarch on login; gone at the end."""

    def __init__(self, nodes):
        self.folder = tempfile.mkdtemp(prefix="monarch-bench-")
        with contextlib.ExitStack() as ending:
            ending.callback(subprocess.run, ["rm", "-rf", self.folder], check=True)
            shared = Options(sshd=False, shared=(self.folder,))
            made = world.World(hosts=nodes + 1, shared=[self.folder], options={f"h{n}": shared for n in range(1, nodes + 2)})
            ending.enter_context(made)
            self.slurm = slurm.Slurm(made, nodes)
            made.login.run("mkdir", "-m", "700", HOME + "/runtime")
            self._ending = ending.pop_all()
        self.world, self.login = made, made.login
        self.mark = os.path.join(self.folder, "rank")
        self.program = ["/bin/sh", self.path("rank", RANK)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._ending.close()

    def path(self, name, text):
        """Of a file with this text, for all hosts."""
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    @contextlib.contextmanager
    def allocation(self, nodes):
        """The environment that salloc gives to commands of an allocation of so many nodes."""
        path = os.path.join(self.folder, "environment")
        held = self.login.start("salloc", "--quiet", "--no-kill", f"-N{nodes}", f"--ntasks-per-node={SLOTS}", "/bin/sh", "-c", HOLD, path,
                                stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)  # it tells of the node that is lost
        try:
            until(lambda: os.path.exists(path), "an allocation")
            with open(path, encoding="utf-8") as file:
                found = dict(word.split("=", 1) for word in file.read().split("\0") if word.startswith("SLURM"))
            yield {**ENVIRONMENT, **PLACES, **found}
        finally:
            held.stdin.close()
            held.wait(60)

    def ask(self, environment, *words):
        """monarch on login, within an allocation; its stdout."""
        done = self.login.run(MONARCH, *words, env=environment, check=False)
        if done.returncode != 0:
            sys.exit(f"bench: monarch {' '.join(words)}: {done.stderr}")
        return done.stdout

    def ready_hosts(self, environment, job):
        return [host["name"] for host in json.loads(self.ask(environment, "status", job, "--json"))["hosts"] if host["phase"] == "ready"]

    def spec(self, hosts, spares, program):
        spec = {"version": 1, "job": "bench", "launch": {"slurm": {"spares": spares}},
                "meshes": {"m": {"dims": {"host": hosts, "slot": SLOTS}, "workdir": "/tmp", "program": program}}}
        return self.path("spec.yaml", json.dumps(spec))

    def began(self, rank):
        """When the rank last began and where, or that it has not."""
        try:
            with open(f"{self.mark}.{rank}", encoding="ascii") as file:
                at, where = file.read().split()
        except FileNotFoundError:
            return 0.0, ""
        return float(at), where

    def all_began(self, ranks, since, timeout=60.0):
        """Seconds from then until the last of them had begun; none may be where the power is off."""
        until(lambda: all(self.began(rank)[0] > since for rank in range(ranks)), f"{ranks} ranks", timeout)
        if since and (where := sorted({self.began(rank)[1] for rank in range(ranks)})) != ["h1", "h3"]:
            sys.exit(f"bench: {ranks} ranks began anew on {where}")
        return max(self.began(rank)[0] for rank in range(ranks)) - since


# ---- starts ----

def ranks_of_srun(told):
    """{host: how many of its tasks ended with 0}, as `srun -v` says."""
    found = {}
    for host, first, last in re.findall(r"_task_finish: (\S+): tasks? (\d+)(?:-(\d+))?: Completed", told):
        found[host] = found.get(host, 0) + int(last or first) - int(first) + 1
    return found


def ranks_of_monarch(bed, environment, known):
    """{host: how many of its ranks ended with 0} of the last job, which is none that is known."""
    status = json.loads(bed.ask(environment, "status", "last", "--json"))
    if status["job"] in known:
        return {}
    known.add(status["job"])
    ended = [rank["host"] for rank in status["meshes"][0]["ranks"] if rank["end"] == "exit code 0"]
    return {host: ended.count(host) for host in ended}


def measured(command, environment):
    """Seconds that it took to end with 0, and what it wrote to stderr."""
    with tempfile.TemporaryFile("w+") as told:
        try:
            took = seconds(lambda: quietly(command, 60, env=environment, stdin=subprocess.DEVNULL, stderr=told))
        except subprocess.CalledProcessError as error:
            took = f"with {error.returncode}"
        told.seek(0)
        text = told.read()
    if not isinstance(took, float):
        sys.exit(f"bench: {' '.join(command)} ended {took or 'never'}: {text}")
    return took, text


def start(nodes, runs):
    """`true` on all slots of an allocation, in turns: which one is first changes from pair to pair."""
    expected = {f"h{number}": SLOTS for number in range(1, nodes + 1)}
    times, known = {"monarch": [], "srun": []}, set()
    with Bed(nodes) as bed, bed.allocation(nodes) as environment:
        commands = {"monarch": bed.login.command(MONARCH, "run", bed.spec(nodes, 0, ["/bin/true"]), "--quiet"),
                    "srun": bed.login.command("srun", "-v", f"-N{nodes}", f"-n{nodes * SLOTS}", "true")}
        for number in range(runs + 1):  # the first pair ships the worker, and does not count
            for who in sorted(commands, reverse=number % 2 == 1):
                took, told = measured(commands[who], environment)
                ran = ranks_of_srun(told) if who == "srun" else ranks_of_monarch(bed, environment, known)
                if ran != expected:
                    sys.exit(f"bench: {who} ran ranks on {ran}")
                if number:
                    times[who].append(took)
        ready = events(bed, environment, "last", "host.ready")
    ours, theirs = times["monarch"], times["srun"]
    ratios = [a / b for a, b in zip(ours, theirs)]
    row(f"run of {nodes * SLOTS} x true, {nodes} nodes of Slurm, warm cache", f"{statistics.median(ours):.3f} s",
        f"srun {statistics.median(theirs):.3f} s", f"{statistics.median(ratios):.2f}",
        f"<= 2 (pairs {min(ratios):.2f} to {max(ratios):.2f}; {min(ours):.3f} to {max(ours):.3f} s against {min(theirs):.3f} to "
        f"{max(theirs):.3f} s, {runs} pairs)")
    told_of = ", ".join(f"{name.removesuffix('_ms').replace('_', ' ')} {statistics.median(int(e['details'][name]) for e in ready):.0f}"
                        for name in ready[0]["details"] if name.endswith("_ms"))
    print(f"  per host, medians of the last run in ms: {told_of}")


# ---- a node that loses its power ----

def events(bed, environment, job, kind=None):
    told = map(json.loads, bed.ask(environment, "events", job, "--json").splitlines())
    return [event for event in told if kind in (None, event.get("event"))]


def first(told, kind):
    """When the first event of a kind was."""
    found = [when(event["time"]) for event in told if event.get("event") == kind]
    return found[0] if found else sys.exit(f"bench: no event {kind}")


def between(told, cause, answer):
    """Seconds from the first event of one kind to the first of another."""
    return first(told, answer) - first(told, cause)


def delay_row(what, times, goal):
    """How long one step took, in each of the losses."""
    row(what, f"{statistics.median(times):.3f} s", "", "", f"{goal} ({min(times):.3f} to {max(times):.3f} s, {len(times)} losses)")


def strike(bed, draw):
    """At some moment between two looks of whoever watches. Returns when the power went."""
    time.sleep(draw.uniform(0, PERIOD_S))
    since = time.time()
    bed.world[LOST].power_off()
    return since


def met_by_monarch(draw):
    """Two nodes and a spare, by default in all: seconds until the node was given up, and until all ranks ran; all events."""
    with Bed(3) as bed, bed.allocation(3) as environment:
        job = bed.ask(environment, "up", bed.spec(2, 1, bed.program), "--quiet").strip()
        bed.all_began(RANKS, 0)
        until(lambda: bed.ready_hosts(environment, job) == ["h1", "h2", "h3"], "a spare")
        since = strike(bed, draw)
        back = bed.all_began(RANKS, since)
        told = events(bed, environment, job)
        bed.ask(environment, "stop", job, "--kill")
    return first(told, "host.lost") - since, back, told


def met_by_request(draw):
    """Two nodes, no spare, and a third node that is idle: seconds until Slurm had been asked for it, from the moment when the host's place was
    given away, and until all ranks ran."""
    with Bed(3) as bed, bed.allocation(2) as environment:
        job = bed.ask(environment, "up", bed.spec(2, 0, bed.program), "--quiet").strip()
        bed.all_began(RANKS, 0)
        since = strike(bed, draw)
        back = bed.all_began(RANKS, since)
        told = events(bed, environment, job)
        log = bed.login.read(f"{HOME}/state/jobs/{job}/supervisor.log")
        bed.ask(environment, "stop", job, "--kill")
    asked = re.search(r"^(\S+) .* asked Slurm for a node: its job \d+$", log, re.MULTILINE)
    if asked is None:
        sys.exit(f"bench: nobody asked Slurm for a node:\n{log}")
    return when(asked[1]) - first(told, "host.replaced"), back


def met_by_slurm(draw, act, timeout=60.0):
    """Two nodes, and a third one that is idle; `act` is what an operator does at the very moment."""
    with Bed(3) as bed:
        script = "srun " + " ".join(bed.program) + "\n"
        options = ["-N2", f"--ntasks-per-node={SLOTS}", "--requeue"]
        job = bed.slurm.submit(script, *options)
        bed.all_began(RANKS, 0)
        since = strike(bed, draw)
        act(bed.slurm, job, script, options)
        return bed.all_began(RANKS, since, timeout)


def requeue(bed, job, _script, _options):
    bed.run("scontrol", "requeue", str(job))


def submit_anew(bed, job, script, options):
    bed.run("scancel", str(job))
    bed.submit(script, f"--exclude={LOST}", *options)


def loss(runs, seed):
    draw = random.Random(seed)
    lost, ours, told, requeued, anew, asked, granted = [], [], [], [], [], [], []
    for _ in range(runs):
        for times, value in zip((asked, granted), met_by_request(draw)):
            times.append(value)
        for times, value in zip((lost, ours, told), met_by_monarch(draw)):
            times.append(value)
        requeued.append(met_by_slurm(draw, requeue))
        anew.append(met_by_slurm(draw, submit_anew))
    for what, name, theirs, goal in ((f"a node loses its power: {RANKS} ranks again", "scontrol requeue", requeued, "<= 8 s "),
                                     ("  the same", "scancel, sbatch", anew, "")):
        ratios = [a / b for a, b in zip(ours, theirs)]
        row(what, f"{statistics.median(ours):.2f} s", f"{name} {statistics.median(theirs):.2f} s", f"{statistics.median(ratios):.2f}",
            f"{goal}({min(ours):.2f} to {max(ours):.2f} s against {min(theirs):.2f} to {max(theirs):.2f} s, {runs} losses each)")
    alone = met_by_slurm(draw, lambda *_: None, BY_ITSELF_S)
    row("  the same, and nobody tells Slurm", f"{statistics.median(ours):.2f} s", f"Slurm by itself {alone:.1f} s",
        f"{statistics.median(ours) / alone:.2f}", "(1 loss)")
    delay_row("  of it until the node was given up", lost, "5 to 6 s")
    delay_row("  from there until a spare was named for it", [between(e, "host.lost", "host.replaced") for e in told], "")
    delay_row("the same without a spare: until Slurm was asked", asked, "<= 200 ms")
    delay_row(f"  until {RANKS} ranks ran on the node that it gave", granted, "")
    print(NOTE)


def bench_slurm(runs, seed):
    reason = slurm.why_not()
    if reason:
        print(f"skipped: nodes of Slurm: this machine {reason}")
        return
    print(f"seed {seed}")
    head()
    start(4, runs)
    loss(max(2, runs // 5), seed)
