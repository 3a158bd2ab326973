"""What many hosts and many ranks cost: virtual hosts of this machine, which runs all of them on its few processors. Each job is checked: every
rank runs, nothing is suspected before somebody is struck, a lost host's ranks are on the spare, and nothing is left."""

import json
import os
import statistics
import subprocess
import sys
import time

from measuring import row, seconds

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("MONARCH_BUILD_DIR") or os.path.join(ROOT, "build")
MONARCH = os.path.join(BUILD, "cli/monarch")
IDLE_S = 10
DEADLINE_S = 300
TICKS = os.sysconf("SC_CLK_TCK")
GOAL_HOSTS = 1_000
SIMULATED_SEEDS = 3


def ask(world, *words):
    return subprocess.run([MONARCH, *words], env=world.environment, check=True, capture_output=True, text=True, timeout=DEADLINE_S)


def events_of(world, job):
    return [json.loads(line) for line in ask(world, "events", job, "--json").stdout.splitlines()]


def status_of(world, job):
    return json.loads(ask(world, "status", job, "--json").stdout)


def supervisor_of(job):
    """The pid of the process that decides about that job."""
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", encoding="utf-8", errors="replace") as file:
                words = file.read().split("\0")
        except (OSError, ValueError):
            continue
        if len(words) > 1 and words[1] == "supervise" and any(word.endswith("/" + job) for word in words):
            return int(name)
    sys.exit(f"bench: {job} has no supervisor")


def used(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / TICKS


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def until(what, look):
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if look():
            return
        time.sleep(0.02)
    sys.exit(f"bench: {what}: not within {DEADLINE_S} s")


def lost_host(world, job):
    """Seconds from the death of a host's keeper and daemon until the gang runs again, on the spare."""
    host = next(host for host in status_of(world, job)["hosts"] if host["phase"] == "ready")
    begun = time.time()
    subprocess.run(["pkill", "-9", "-P", str(host["keeper_pid"]), "-f", "daemon"], check=False)
    os.kill(host["keeper_pid"], 9)
    until("the gang runs on the spare", lambda: [event for event in events_of(world, job)
                                                  if event.get("event") == "gang.running" and "again" in event["message"]])
    return time.time() - begun


def bench_hosts(world, hosts, ranks):
    path = os.path.join(world.folder, "scale.json")
    spec = {"version": 1, "job": "scale", "launch": {"local": {"hosts": hosts + 1, "spares": 1}},
            "meshes": {"m": {"dims": {"host": hosts, "slot": ranks}, "gang": "host", "program": ["/bin/sleep", "100000"]}}}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(spec, file)
    begun = time.monotonic()
    up = subprocess.run([MONARCH, "up", path], env=world.environment, capture_output=True, text=True, timeout=DEADLINE_S)
    start = time.monotonic() - begun
    if up.returncode != 0:
        told = [line for line in up.stderr.splitlines() if " error " in line or "reason" in line] or up.stderr.splitlines()
        return row(f"{hosts} hosts x {ranks}: running after", "does not start", "", "", told[-1].strip()[-90:])
    job = up.stdout.strip()
    pid = supervisor_of(job)
    cpu_of_start = used(pid)
    size = resident(pid)
    before, began = used(pid), time.monotonic()
    time.sleep(IDLE_S)
    idle = (used(pid) - before) / (time.monotonic() - began)
    suspected = sum(event.get("event") == "host.suspect" for event in events_of(world, job))
    running = sum(rank["phase"] == "running" for mesh in status_of(world, job)["meshes"] for rank in mesh["ranks"])
    if running != hosts * ranks:
        sys.exit(f"bench: {running} of {hosts * ranks} ranks run")
    shown = statistics.median(seconds(lambda: ask(world, "status", job)) for _ in range(5))
    back = lost_host(world, job)
    stop = seconds(lambda: ask(world, "stop", job))
    goal = hosts == GOAL_HOSTS
    name = f"{hosts} hosts x {ranks}"
    row(f"{name}: running after", f"{start:.1f} s", f"its supervisor used {cpu_of_start:.1f} s", "", "<= 60 s" if goal else "")
    row(f"{name}: supervisor, resident, a host", f"{size / hosts:.0f} KiB", "", "", "<= 200 KiB" if goal else "")
    row(f"{name}: supervisor, idle, of a core", f"{idle:.1%}", "", "", "<= 10 %" if goal else "")
    row(f"{name}: status, whole command", f"{shown * 1000:.0f} ms", "", "", "<= 50 ms" if goal else "")
    row(f"{name}: suspected while nothing ails", f"{suspected}", f"{len(up.stderr.splitlines())} lines on the terminal", "", "0" if goal else "")
    row(f"{name}: a lost host's gang on the spare", f"{back:.1f} s", "", "", "")
    row(f"{name}: stop", f"{stop:.1f} s", "", "", "")


def bench_simulated(hosts):
    """The same core, with ranks and hosts that fail: seconds of a processor for what it decides, and whether all that it promised held."""
    command = [os.path.join(BUILD, "tests/sim/monarch-sim"), "--hosts", str(hosts), "--seeds", f"1..{SIMULATED_SEEDS}"]
    took = seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=DEADLINE_S))
    row(f"{hosts} hosts in the simulator, a seed", f"{took / SIMULATED_SEEDS:.1f} s", f"{SIMULATED_SEEDS} seeds, all held", "", "")


def bench_scale(world, sizes, ranks):
    for count, goal in ((128, ""), (1_000, "<= 3 s"), (3_000, "")):
        took = seconds(lambda n=count: subprocess.run([MONARCH, "run", "-q", "-n", str(n), "--", "true"], env=world.environment, check=True,
                                                      stdout=subprocess.DEVNULL, timeout=DEADLINE_S))
        row(f"run -n {count} -- true", f"{took:.2f} s", "", "", goal)
    for hosts in sizes:
        bench_simulated(hosts)
        bench_hosts(world, hosts, ranks)
