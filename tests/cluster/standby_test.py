"""Warm standby over SSH: gangs that wait at gate() on spares take the place of one whose rank or host is lost, as the processes that they
are, on hosts with disks of their own.

A process notes its pid on its host once it has come to its gate (loaded.PID). It counts on both its streams for as long as it waits, so
that something is on its way from there at any moment, and says its place once it has one.
"""

import glob
import json
import os
import re

import cluster
import harness
import jobs
from host import HOME, wait_for

PROGRAM = jobs.PYTHON_MARK + """
import os, sys, threading, time, types
monarch = types.ModuleType("monarch_rank")
exec(os.environ["HELPER"], monarch.__dict__)
placed = threading.Event()
def talk():
    i = 0
    while not placed.is_set():
        i += 1
        print("out", i, flush=True)
        print("err", i, file=sys.stderr, flush=True)
        time.sleep(0.002)
talker = threading.Thread(target=talk)
if "MONARCH_STANDBY" in os.environ:
    talker.start()
    open("loaded.%d" % os.getpid(), "w").close()
mine = monarch.gate()
placed.set()
if talker.is_alive(): talker.join()
print("placed as", mine["MONARCH_RANK"], flush=True)
mark("up-" + mine["MONARCH_GENERATION"])
while True: time.sleep(0.1)
"""
# The NVIDIA driver's files of one GPU.
MADE_UP_GPU = r"""
set -e
mount --make-private /proc
mount -t tmpfs none /proc/driver
place=/proc/driver/nvidia/gpus/0000:3b:00.0
mkdir -p $place
printf 'Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-11112222-0000-0000-0000-00000000000%s\nBus Location: \t 0000:3b:00.0\nDevice Minor: \t 0\n' $0 > $place/information
"""
HELPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "worker", "python", "monarch_rank.py")
LOST_S = 60  # a lost host is given up after 5 s, and its lease ends a second later; the rest is a busy machine's


class SpareTest(cluster.ClusterTest):
    def events(self, kind, job=None):
        job = next((j for j in self.jobs() if job and j.startswith(job)), "last")
        done = self.monarch("events", job, "--json")
        found = [json.loads(line) for line in done.out.splitlines()] if done.status == 0 else []
        return [event for event in found if event["event"] == kind]

    def wait_for_event(self, kind, number=1, timeout=harness.DEADLINE_S, job=None):
        return harness.wait_for(lambda: (e := self.events(kind, job)) and len(e) >= number and e,
                                lambda: f"{number} x {kind}: {self.supervisor_log()}", timeout)[number - 1]

    def stopped(self):
        self.assertEqual(self.monarch("stop", timeout=90).status, 0)
        self.assertEqual(self.run_.wait(60), 143, self.run_)
        self.assert_output_is_copied()
        self.assert_nothing_left()

    def assert_output_is_copied(self):
        """What any process wrote on a host that is up is in the job's folder, and nothing else is."""
        job, = self.jobs()
        for host in self.w.hosts:
            if host.pid is None:
                continue
            logs = host.path(f"{HOME}/.local/state/monarch/hosts/{job}/{host.name}/logs")
            files = [path for end in (".out", ".err") for path in glob.glob(f"{logs}/*/*{end}")]
            for path in files:
                name = path.removeprefix(logs + "/")
                with open(path, "rb") as file:
                    there = file.read()
                copied = self.job_file("logs/" + name)
                here = b""
                if os.path.exists(copied):
                    with open(copied, "rb") as file:
                        here = file.read()
                self.assertEqual((len(here), here[-40:]), (len(there), there[-40:]), f"{host.name}: {name}\n{self.supervisor_log()}")
                self.assertEqual(here, there, f"{host.name}: {name}")


class Standby(SpareTest):
    def standing(self, slots=2, slow=None, program=PROGRAM, **more):
        """Two gangs of two ranks on h1 and h2, and one at its gate on h3; `slow` is a rule of the switch for what that one sends."""
        self._worlds or self.world(3)
        with open(HELPER, encoding="utf-8") as file:
            helper = file.read()
        mesh = {"workdir": "/tmp", "gang": "host", "standby": {"gangs": 1}, "env": {"HELPER": helper}, **more}
        spec = self.program_job(["/usr/bin/python3", "-c", program], slots=slots, mesh=mesh, supervision=None,
                                launch={"ssh": {"hosts": ["h1", "h2", "h3"], "spares": 1}})
        self.run_ = self.start("run", spec)
        self.wait_for_marks("up-1", 2 * slots, timeout=60)
        self.assertEqual(self.hosts_of_marks("up-1"), {rank: f"h{rank // slots + 1}" for rank in range(2 * slots)})
        self.wait_for_event("standby.ready", timeout=60)
        if slow:
            self.w.link("h3", "login", **slow)

    def waiting(self, host):
        """The pids, on that host, of who came to a gate there."""
        return {int(path.rpartition(".")[2]) for path in glob.glob(self.w[host].path("/tmp/loaded.*"))}

    def signal_by_pid_on(self, host, rank):
        pid, = self.wait_for_marks("up-1", [rank])
        self.w[host].run("/bin/kill", "-SEGV", pid)

    def ranks(self):
        return sorted(self.status()["meshes"][0]["ranks"], key=lambda rank: rank["rank"])

    def assert_taken(self, waiting, host="h3", timeout=harness.DEADLINE_S):
        """The second gang is who waited on that host, and the first one is what it was."""
        pids = self.wait_for_marks("up-2", [2, 3], timeout)
        self.assertEqual(self.hosts_of_marks("up-2"), {2: host, 3: host})
        self.assertEqual(set(pids), waiting)
        harness.wait_for(lambda: all(rank["phase"] == "running" for rank in self.ranks()), self.ranks)
        self.assertEqual([(rank["host"], rank["generation"]) for rank in self.ranks()],
                         [("h1", 1), ("h1", 1), (host, 2), (host, 2)])

    def text(self, name):
        path = self.job_file("logs/" + name)
        return self.read(path) if os.path.exists(path) else ""

    def assert_spoken_without_a_gap(self):
        """What the two said at their gate and behind it, which lies in two files one after the other."""
        for i in range(2):
            for stream in ("out", "err"):
                text = self.text(f"standby-m/{i}.1.{stream}") + self.text(f"m/{2 + i}.2.{stream}")
                lines = text.splitlines()
                counted = [line for line in lines if line.startswith(stream)]
                self.assertEqual(counted, [f"{stream} {n + 1}" for n in range(len(counted))])
                self.assertEqual(lines[len(counted):], [f"placed as {2 + i}"] if stream == "out" else [])
                self.assertGreater(len(counted), 10)

    def test_one_elsewhere_takes_the_place_of_a_gang_whose_rank_dies_of_a_bad_access(self):
        self.standing()
        waiting = self.waiting("h3")
        done = self.monarch("signal", "SEGV", "--rank", "3")
        self.assertEqual(done.status, 0, done)
        self.assert_taken(waiting)
        # The host that was left is where the next one waits.
        self.wait_for_event("standby.ready", 2)
        self.assertEqual(self.status()["meshes"][0]["standby"], [{"phase": "ready", "hosts": ["h2"]}])
        self.stopped()
        self.assert_spoken_without_a_gap()

    def test_one_takes_the_place_of_a_gang_whose_host_loses_power(self):
        self.standing()
        waiting = self.waiting("h3")
        self.w["h2"].power_off()
        self.assert_taken(waiting, timeout=LOST_S)
        self.stopped()
        self.assert_spoken_without_a_gap()

    def test_one_takes_the_place_of_a_gang_behind_a_pulled_cable(self):
        self.standing()
        waiting = self.waiting("h3")
        self.w["h2"].unplug()
        self.assert_taken(waiting, timeout=LOST_S)
        self.w["h2"].plug()
        wait_for(lambda: not [p for h, p in self.on_hosts() if h.name == "h2" and b"-c" in p.arguments], "the end of the old gang", 60)
        self.stopped()
        self.assert_spoken_without_a_gap()

    def test_what_is_still_on_its_way_when_it_is_given_its_place_is_copied(self):
        self.standing(slow={"delay": 0.3})
        waiting = self.waiting("h3")
        self.assertEqual(self.monarch("signal", "SEGV", "--rank", "3").status, 0)
        self.assert_taken(waiting)
        self.stopped()
        self.assert_spoken_without_a_gap()

    def test_the_last_words_of_one_that_dies_at_its_gate_are_copied(self):
        self.standing(slow={"delay": 0.3})
        before = self.waiting("h3")
        self.w["h3"].run("/bin/kill", "-SEGV", max(before))
        failed = self.wait_for_event("standby.failed")
        self.assertRegex(failed["message"], rf"^m: standby 0 rank [01] on h3 \(pid {max(before)}\): killed by SIGSEGV")
        self.wait_for_event("standby.ready", 2)
        self.assertEqual(len(self.waiting("h3") - before), 2)
        self.stopped()

    def test_the_last_words_of_one_that_ends_with_the_job_are_copied(self):
        talking = PROGRAM.replace("import os, sys,", "import signal, os, sys,").replace("placed = threading.Event()", """
placed = threading.Event()
def last(*_):
    placed.set()
    left = b"x" * 500000 + b"last\\n"
    while left: left = left[os.write(1, left):]
    os._exit(0)
signal.signal(signal.SIGTERM, last)""")
        self.standing(slow={"delay": 0.3}, program=talking)
        self.stopped()
        self.assertEqual(["xlast\n" in self.text(f"standby-m/{i}.1.out") for i in range(2)], [True, True])

    def other_job(self, host):
        """Ends with what a job of the same user says that wants the GPU of that host."""
        spec = self.job("mark other", hosts=1, slots=1, name="other", mesh={"workdir": "/tmp", "resources": {"gpus": 1}},
                        launch={"ssh": {"hosts": [host]}})
        return self.monarch("run", spec, timeout=60)

    def assert_gpu_is_held(self, host):
        refused = self.other_job(host)
        self.assertEqual(refused.status, 69, refused)
        self.assertRegex(refused.err, rf"GPU 0 \(GPU-\S+\) of host {host} is held by job demo-[0-9a-f]{{4}} \(pid \d+\)")

    def test_one_holds_the_gpus_that_it_waits_for(self):
        self.world(3)
        for number, host in enumerate(self.w.hosts):
            host.run("/bin/sh", "-c", MADE_UP_GPU, str(number))
        self.standing(slots=1, resources={"gpus": 1})
        self.assert_gpu_is_held("h3")
        self.signal_by_pid_on("h2", 1)
        self.wait_for_marks("up-2", [1])
        self.assertEqual(self.hosts_of_marks("up-2"), {1: "h3"})
        self.wait_for_event("standby.ready", 2, job="demo")
        self.assert_gpu_is_held("h3")  # it is the gang's now
        self.assert_gpu_is_held("h2")  # and this the next standby's
        demo, = (job for job in self.jobs() if job.startswith("demo"))
        self.assertEqual(self.monarch("stop", demo, timeout=90).status, 0)
        self.assertEqual(self.run_.wait(60), 143, self.run_)
        done = self.other_job("h3")
        self.assertEqual(done.status, 0, done)
        self.assert_nothing_left()


# On hosts that can be told apart, and at the end once the host's mark is whole.
PREPARE = "echo warm; echo cold >&2; touch prepared.$$; "


class Prepare(SpareTest):
    def warming(self, script, spares=2, **spare_keys):
        self.world(1 + spares)
        prepare = ["/bin/sh", "-c", "cd /tmp; " + PREPARE + script]
        ssh = {"spares": {"count": spares, "prepare": prepare, **spare_keys}}
        self.run_ = self.start("run", self.ssh_job("mark up-$MONARCH_GENERATION\n" + jobs.FOREVER, hosts=1, ssh=ssh, supervision=None))
        self.wait_for_marks("up-1", 2, timeout=60)

    def lose_h1(self):
        self.w["h1"].power_off()
        self.wait_for_marks("up-2", 2, LOST_S)
        return set(self.hosts_of_marks("up-2").values())

    def preparation(self):
        return {host["name"]: host["preparation"] for host in self.status()["hosts"]}

    def test_spares_are_warmed_once_and_what_that_said_is_here(self):
        self.warming("true")
        self.wait_for_event("host.prepared", 2)
        self.assertEqual([len(glob.glob(self.w[h].path("/tmp/prepared.*"))) for h in ("h1", "h2", "h3")], [0, 1, 1])
        self.assertEqual(self.lose_h1(), {"h2"})
        self.stopped()
        for host in (1, 2):
            self.assertEqual([self.read(self.job_file(f"logs/spares-prepare/{host}.1.{s}")) for s in ("out", "err")], ["warm\n", "cold\n"])

    def test_one_whose_warming_fails_is_named_and_another_takes_the_place(self):
        self.warming("[ $MONARCH_HOST != h2 ]")
        failed = self.wait_for_event("host.unprepared")
        self.assertEqual(failed["severity"], "warning")
        self.assertRegex(failed["message"], r"^h2: is not prepared: exit code 1; what it wrote is in (\S+); it stays")
        self.wait_for_event("host.prepared")
        self.assertEqual({h: self.preparation()[h] for h in ("h2", "h3")}, {"h2": "unprepared", "h3": "prepared"})
        self.assertEqual(self.lose_h1(), {"h3"})
        place = re.search(r"what it wrote is in (\S+?);", failed["message"])[1]
        self.assertEqual(self.w["h2"].read(place), "cold\n")  # on the host that was named
        self.stopped()

    def test_one_that_takes_too_long_is_ended_there_and_another_takes_the_place(self):
        self.warming("[ $MONARCH_HOST != h2 ] || while :; do sleep 0.1; done", timeout="2s")
        failed = self.wait_for_event("host.unprepared")
        self.assertRegex(failed["message"], r"^h2: is not prepared: it took longer than spares.timeout \(2s\); it stays")
        self.assertEqual([p for h, p in self.on_hosts() if h.name == "h2" and PREPARE.encode() in b" ".join(p.arguments)], [])
        self.wait_for_event("host.prepared")
        self.assertEqual(self.lose_h1(), {"h3"})
        self.stopped()


if __name__ == "__main__":
    cluster.main()
