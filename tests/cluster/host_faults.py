"""What the tests of faults share that strike hosts and networks while a job runs over SSH: the job of tests/process/recovery.py, whose
ranks count, on hosts that share a folder as those of a cluster share a file system.

A gang of `self.running()` is on a host of its own, gang g on h(g+1); spares and cold hosts come after. Each rank says in there.RANK who
it is, in step.RANK how far, and adds a line to effects.RANK for each of its steps, so that a test sees whether what it did ever goes
back to an older generation. A fault is verified to have taken effect by who asked for it: the switch's counters, the freezer's state, a
connection that does not open.

Beside the words of recovery.py that tests/lint/faults.py looks for, there is assert_unseen for a fault that is none of the job's.
"""

import os
import socket

import cluster
import harness
import recovery
import world
from host import Options

COUNT = """echo "$(uname -n) $MONARCH_GENERATION $$" > there.$MONARCH_RANK.new; mv there.$MONARCH_RANK.new there.$MONARCH_RANK
i=0; until [ -e go ]; do step $((++i))
echo "$MONARCH_GENERATION $i" >> effects.$MONARCH_RANK; nap 0.05; done
"""
# A network that answers in milliseconds: a lost host is given up in two seconds.
FAST = {"heartbeat": "250ms", "suspect_after": "750ms", "lost_after": "1500ms", "lease": "2s", "orphan_ttl": "4s"}
DECLARED_S = {"default": (4.0, 9.0), "fast": (1.2, 5.0)}  # from the fault to host.lost; the longer one is a busy machine's
START_S = 60
CALM_PERCENT = 10  # of the last ten seconds, in which something waited for processors, memory or disks
MODULES = harness.MODULES  # every host has the checkout
# As COUNT, by steps that count only once they are committed: a line of effects.RANK is a commit that was answered by yes.
COMMIT = """import os, time
import monarch_rank as monarch
rank, generation = os.environ["MONARCH_RANK"], os.environ["MONARCH_GENERATION"]
def write(name, text):
    with open(name + ".new" + generation, "w") as file: file.write(text)
    os.rename(name + ".new" + generation, name)
write("there." + rank, "%s %s %d" % (os.uname().nodename, generation, os.getpid()))
found = monarch.committed()
step = found["step"] if found else 0
while not os.path.exists("go"):
    step += 1
    if not monarch.commit(step, "%s/%s" % (generation, rank), timeout=None): os._exit(3)
    write("step." + rank, str(step))
    with open("effects." + rank, "a") as file: file.write("%s %d\\n" % (generation, step))
    time.sleep(0.1)
"""
SUSPECTED = ("host.suspect", "host.lost", "hosts.held")


class HostFaultTest(cluster.ClusterTest, recovery.RecoveryTest):
    """Hosts are h1 and up; `self.pids` holds for each rank "HOST GENERATION PID" of the start."""

    profile = "default"

    def world(self, hosts=3, options=None, **more):
        shared = (self.path("work"),)
        all_options = {f"h{number}": Options(shared=shared) for number in range(1, hosts + 1)}
        for name, option in (options or {}).items():
            option.shared = (*option.shared, *shared)
            all_options[name] = option
        return super().world(hosts, options=all_options, **more)

    def wait_for_calm(self):
        """The kernel counts pressure for the whole machine, so what another test did is told of this job's hosts as well."""
        def shortage():
            fields = [world.read(f"/proc/pressure/{what}").split()[1] for what in ("cpu", "memory", "io")]
            return [percent for percent in (float(field.partition("=")[2]) for field in fields) if percent >= CALM_PERCENT]
        harness.wait_for(lambda: not shortage(), lambda: f"a machine that is calm: {shortage()} % of the last 10 s", 120)

    def running(self, pool=3, spares=1, gangs=2, slots=2, script=COUNT, fast=True, ssh=None, mesh=None, storage=(), **supervision):
        """`run` of a job of so many gangs, whose ranks all count. `fast`: by the quick times above, else by the defaults."""
        self._worlds or self.world(pool)
        self.profile = "fast" if fast else "default"
        settings = {"restart": {"max": 4}, "reallocate": {"max": 8}, **(FAST if fast else {"orphan_ttl": "10s"}), **supervision}
        spec = self.ssh_job(script, hosts=gangs, slots=slots, ssh={"spares": spares, **(ssh or {})}, supervision=settings,
                            mesh={"gang": "host", "workdir": self.path("work"), "stop": {"grace": "2s"}, **(mesh or {})},
                            **({"storage": list(storage)} if storage else {}))
        run = self.start("run", spec)
        ranks = range(gangs * slots)
        harness.wait_for(lambda: all(self.step_of(r) > 1 for r in ranks), lambda: f"steps of all: {run!r}", START_S)
        run.wait_for_err(r"job\.running", START_S)
        for number in range(gangs + 1, gangs + spares + 1):
            run.wait_for_err(rf"host\.ready h{number}:", START_S)
        self.pids = {r: self.pid_of(r) for r in ranks}
        self.assertEqual({r: self.host_of(r) for r in ranks}, {r: f"h{r // slots + 1}" for r in ranks})
        return run

    # Who runs where.

    def pid_of(self, rank):
        return self.read("work", f"there.{rank}").strip()

    def host_of(self, rank):
        return self.pid_of(rank).split()[0]

    def generation_of(self, rank):
        return int(self.pid_of(rank).split()[1])

    def wait_for_move(self, ranks, host=None, timeout=START_S):
        """Until these ranks count as other processes than at the start; on that host."""
        def moved():
            return all(self.pid_of(r) != self.pids[r] and host in (None, self.host_of(r)) for r in ranks)
        harness.wait_for(moved, lambda: f"ranks {ranks} on {host or 'another host'}, not {[self.pid_of(r) for r in ranks]}: "
                         f"{self.supervisor_log()}", timeout)
        before = {r: self.step_of(r) for r in ranks}
        harness.wait_for(lambda: all(self.step_of(r) != before[r] for r in ranks), lambda: f"steps of {ranks}: {self.supervisor_log()}")

    def alive_on(self, host, generation):
        """Processes of ranks of that generation there."""
        mark = f"MONARCH_GENERATION={generation}".encode()
        return [process for place, process in self.on_hosts() if place.name == host and mark in process.environment]

    # What is asserted.

    def assert_declared(self, host, since, number=1):
        """It was given up, and not before nor long after its time; and nobody else was."""
        lost = self.wait_for_event("host.lost", number, START_S)
        earliest, latest = DECLARED_S[self.profile]
        self.assertEqual(lost["host"], host, self.supervisor_log())
        self.assert_seen(lost, since, latest)
        self.assertGreater(self.time_of(lost) - since, earliest, lost)
        return lost

    def assert_unseen(self, *kinds):
        """No host was doubted, nor given up; or nothing of these kinds was said."""
        self.assertEqual([e["message"] for e in self.events() if e["event"] in (kinds or SUSPECTED)], [])

    def assert_single_effect(self, ranks):
        """What each of them did never went back to an older generation, and each generation counted on without a gap."""
        for rank in ranks:
            lines = [tuple(map(int, line.split())) for line in self.read("work", f"effects.{rank}").splitlines() if line.count(" ") == 1]
            wanted = [(a[0], a[1] + 1) if a[0] == b[0] else (b[0], 1) for a, b in zip(lines, lines[1:])]
            self.assertEqual([(a, b) for a, b in zip(lines[1:], wanted) if a != b], [], f"rank {rank}")
            self.assertEqual([a for a, b in zip(lines, lines[1:]) if a[0] > b[0]], [], f"rank {rank} acted as an older generation")

    def assert_connects(self, host, connects=True, source=None):
        """Whether a new connection to its sshd opens, from login or another host."""
        with (source or self.w.login).socket() as one:
            one.settimeout(1)
            try:
                one.connect((self.w[host].address, 22))
                one.recv(64)
                opened = True
            except (TimeoutError, ConnectionError, OSError, socket.timeout):
                opened = False
        self.assertEqual(opened, connects, f"a connection to {host}")

    def counted(self, what):
        """How many frames the switch has treated so."""
        return self.w.counters().get(what, 0)

    # The end.

    def end_well(self, run, unproven=(), timeout=60):
        """The ranks are done; of the hosts in `unproven`, and of no other, nobody can say that nothing lives there."""
        self.write("go", "")
        finished = run.finished(timeout)
        self.assertEqual(finished.status, 0, f"{finished}\n{self.supervisor_log()}")
        verdict = self.verdict()
        self.assertEqual((verdict["outcome"], sorted(verdict["left_behind"])), ("succeeded", sorted(unproven)), verdict)
        return finished, verdict

    def committing(self, **options):
        """As running(), by ranks that commit each of their steps."""
        self.write("rank.py", COMMIT)
        return self.running(script="exec /usr/bin/python3 -B rank.py\n", mesh={"env": {"PYTHONPATH": MODULES}}, **options)
