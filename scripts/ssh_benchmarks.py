"""Starts over sshd, in a private world of hosts on this machine (tests/cluster), against mpirun and plain ssh over the same sshd.

Everything runs on the world's login host, which knows every host's key. Needs root, namespaces and /dev/net/tun.
"""

import json
import os
import statistics
import sys

import peers
from measuring import pairs, quietly, row

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests/process"), os.path.join(ROOT, "tests/cluster")]
import world  # noqa: E402
from host import HOME, Options  # noqa: E402

MONARCH = os.path.join(world.BUILD, "cli/monarch")
CACHE = HOME + "/.cache/monarch"
PLACES = ("MONARCH_STATE_DIR=" + HOME + "/state", "XDG_RUNTIME_DIR=" + HOME + "/runtime")
PHASES = ("waited", "log_in", "copy", "start", "call_back")


class Login:
    """Commands on the login host of a world, with places of their own."""

    def __init__(self, made):
        self._world = made
        made.login.run("mkdir", "-m", "700", HOME + "/runtime")

    def call(self, *command, timeout=60):
        """A function that runs it to its end."""
        whole = self._world.login.command(*PLACES, *command)
        return lambda: quietly(whole, timeout)

    def spec(self, hosts, slots):
        path = f"{HOME}/{hosts}x{slots}.yaml"
        self._world.login.write(path, f"version: 1\njob: bench\nlaunch: {{ssh: {{hosts: 'h[1-{hosts}]'}}}}\nmeshes:\n  bench:\n"
                                      f"    dims: {{host: {hosts}, slot: {slots}}}\n    workdir: /tmp\n    program: [/bin/true]\n")
        return path

    def run(self, hosts, slots):
        return self.call(MONARCH, "run", self.spec(hosts, slots), "--quiet")

    def last_starts(self):
        """Milliseconds of each phase of each host of the last job."""
        told = self._world.login.run(*PLACES, MONARCH, "events", "last", "--json").stdout
        ready = [event for event in map(json.loads, told.splitlines()) if event.get("event") == "host.ready"]
        return [{phase: int(event["details"][phase + "_ms"]) for phase in PHASES} for event in ready]


def bench_start(runs):
    reason = world.why_not()
    if reason:
        print(f"skipped: starts over sshd: this machine {reason}")
        return
    _four_hosts(runs)
    _sixty_four_hosts(max(3, runs // 3))


def _four_hosts(runs):
    found = peers.mpirun()
    if found is None:
        return print("skipped: starts over sshd against mpirun: there is none")
    # One in the user's cache: each host has a home of its own.
    there = () if found.startswith("/usr/") else (os.path.dirname(os.path.dirname(found)),)
    with world.World(hosts=4, shared=there, options={f"h{number}": Options(shared=there) for number in range(1, 5)}) as made:
        login = Login(made)
        ours = login.run(4, 2)
        mpirun = login.call(found, "--allow-run-as-root", "--host", "h1:2,h2:2,h3:2,h4:2", "--mca", "btl_tcp_if_include", "eth0",
                            "true", timeout=10)
        _row("run of 8 x true, 4 sshd hosts, warm cache", pairs(ours, mpirun, runs), "mpirun", "<= 0.7 ")

        def cold():
            for host in made.hosts:
                host.run("rm", "-rf", CACHE)


        a, b, ratio, spread, hung = pairs(ours, mpirun, max(3, runs // 3), before_ours=cold)
        _row("the same, cold: with the copy of the worker", (a, b, ratio, spread, hung), "mpirun", "")
        size = os.path.getsize(os.path.join(world.BUILD, "worker/monarch-worker"))
        copies = [start["copy"] for start in login.last_starts()]
        print(f"  the copy: {size / 2**20:.1f} MiB to each of 4 hosts at once, {statistics.median(copies):.0f} ms (median of the last run)")


def _sixty_four_hosts(runs):
    with world.World(hosts=64) as made:
        login = Login(made)
        ours = login.run(64, 1)
        everywhere = " ".join(host.name for host in made.hosts)
        ssh = login.call("sh", "-c", f"printf '%s\\n' {everywhere} | xargs -P 64 -I HOST ssh HOST true")
        _row("run of 64 x true, 64 sshd hosts on this machine", pairs(ours, ssh, runs), "64 x ssh HOST true", "<= 1.3 ")
        starts = login.last_starts()
        told = ", ".join(f"{phase.replace('_', ' ')} {statistics.median(start[phase] for start in starts):.0f}" for phase in PHASES)
        print(f"  per host, medians of the last run in ms: {told}")


def _row(what, measured, whom, goal):
    a, b, ratio, spread, hung = measured
    row(what, f"{a:.3f} s", f"{whom} {b:.3f} s", f"{ratio:.2f}", f"{goal}(pairs {min(spread):.2f} to {max(spread):.2f}{hung})")
