"""Drills of jobs on real hosts, over SSH and in an allocation of Slurm: they pass there, and what they did goes away however they end.

The lease is tried in rounds that are drawn by seed: MONARCH_TEST_DRILL_SEED, MONARCH_TEST_DRILL_ROUNDS of them."""

import json
import os
import random
import signal

import cluster
import harness
import host_faults
import slurm
import strikes
import world
from harness import wait_for

DRILLS = os.path.join(world.ROOT, "configs", "drills")
SEEDS = (1, 2, 3)
FIVE = ["segv", "kill", "reset", "power-loss", "hang"]
FIGURES = ("ttd", "ttf", "tts", "ttr", "ours")
# Nobody is given up while it stands still, and no rank that does is started again: what was is to be there after it.
PATIENT = {"heartbeat": "250ms", "suspect_after": "300s", "lost_after": "600s", "lease": "610s"}
COUNT = "python3 -c 'import monarch_rank, time\nn = 0\nwhile True:\n time.sleep(0.05); n += 1; monarch_rank.step(n)'\n"
LONG, SHORT = "60s", "2s"  # how long a fault lasts; of which the round waits for the end takes the short one


class DrillTest(cluster.ClusterTest):
    def report(self, folder):
        return json.loads(self.read("work", folder, "report.json"))

    def assert_passed(self, drill, folder, name, faults):
        """The drill has passed, with these faults in effect, and its report has all figures of them."""
        self.assertEqual(drill.status, 0, f"{drill}\n{self.supervisor_log()}")
        self.assertRegex(drill.out.splitlines()[-1],
                         rf"\Adrill {name}: passed, \d+ faults seen, 0 inert, ours p95 .*; report: {folder}/report\.html\Z")
        report = self.report(folder)
        self.assertEqual((report["verdict"], report["exit_code"], report["leftovers"]), ("passed", 0, []))
        self.assertEqual([fault["fault"] for fault in report["faults"]], faults)
        print(f"# {self.id()}: {drill.out.splitlines()[-1]} ({drill.seconds:.0f} s)", flush=True)
        return report

    def five_faults(self, start):
        for seed in SEEDS:
            folder = f"five-{seed}"
            drill = start(os.path.join(DRILLS, "five-faults.yaml"), "--seed", str(seed), "--out", folder)
            report = self.assert_passed(drill.finished(harness.patience(150)), folder, "five-faults", FIVE)
            self.assertEqual({kind["kind"] for kind in report["kinds"]}, {"process", "host", "hang"})
            for kind in report["kinds"]:
                for figure in FIGURES:
                    self.assertEqual(set(kind[figure]), {"n", "p50", "p95", "max"}, kind)
            self.assert_nothing_left()


class OverSsh(DrillTest):
    def test_five_faults(self):
        self.world(6)
        self.five_faults(lambda *words: self.start("drill", *words, "--set", "launch={ssh: {hosts: 'h[1-6]', spares: 2}}"))

    def test_the_smoke_of_a_spec_that_has_no_scenario(self):
        self.world(4)
        drill = self.monarch("drill", "--smoke", os.path.join(DRILLS, "steps.yaml"), "--set", "launch={ssh: {hosts: 'h[1-4]', spares: 1}}",
                             "--set", "meshes.trainer.dims.host=3", "--out", "smoke", timeout=120)
        self.assert_passed(drill, "smoke", "smoke", ["kill", "hang", "daemon-kill", "power-loss", "supervisor-kill"])
        self.assert_nothing_left()


class OnSlurm(slurm.SlurmTest, DrillTest):
    def test_five_faults_in_an_allocation(self):
        if slurm.why_not():
            self.skipTest(slurm.why_not())
        self.slurm(6, alike=True)
        self.five_faults(lambda *words: self.salloc(6, "drill", *words, "--set", "launch={slurm: {spares: 2}}"))


class LiveTest(DrillTest):
    """One job on h1 and h2 that lasts, and blows at it."""

    def setUp(self):
        if strikes.lacks():
            self.skipTest(strikes.lacks())
        super().setUp()

    def begin(self, **supervision):
        self._worlds or self.world(2)
        spec = self.ssh_job("exec " + COUNT, mesh={"gang": "host", "env": {"PYTHONPATH": host_faults.MODULES}},
                            supervision={**PATIENT, **supervision}, drills={"allow": True})
        done = self.monarch("up", "-q", spec)
        self.assertEqual(done.status, 0, done)
        self.wait_for_ranks(done.out.strip())

    def wait_for_ranks(self, job):
        """Until each has executed its program: one that has not is a shell yet."""
        wait_for(lambda: len(self.ranks()) == 4, lambda: f"ranks that count: {self.ranks()}\n{self.supervisor_log()}")
        self.job_id = job

    def ranks(self):
        return [process for _, process in self.on_hosts() if process.program.startswith("python3")]

    def end(self):
        self.assertEqual(self.monarch("stop", self.job_id).status, 0)
        self.assert_nothing_left()

    def live(self, fault, lasts, *target):
        return self.start("drill", "--live", self.job_id, "--fault", fault, "--for", lasts, *target)

    def there(self):
        """What a fault may change on the hosts, but for what stands still."""
        ranks = self.ranks()
        return {"ranks": sorted(process.pid for process in ranks),
                "limits": {process.pid: world.read(f"/proc/{process.pid}/limits") for process in ranks},
                "shm": [sorted(os.listdir(host.path("/dev/shm"))) for host in self.w.hosts],
                "nft": [host.run("/usr/sbin/nft", "list", "ruleset").stdout for host in self.w.hosts],
                "checks": len(self.checks())}

    def stopped(self):
        return [process for host, process in self.on_hosts() if host is not self.w.login and process.state == "T"]

    def checks(self):
        return [process for host, process in self.on_hosts() if host is not self.w.login and process.arguments[1:2] == [b"check"]]

    def check(self):
        """The one that was asked: not its guard, which is its child."""
        found = self.checks()
        return next(process for process in found if process.parent not in {other.pid for other in found})

    def session(self):
        """The sshd of the check's session."""
        by_pid = {process.pid: process for _, process in self.on_hosts()}
        process = self.check()
        while process.program != "sshd":
            process = by_pid[process.parent]
        return process

    def kinds(self):
        return [event["event"] for event in map(json.loads, self.monarch("events", self.job_id, "--json").out.splitlines())]


class Live(LiveTest):
    def test_a_host_is_cut_off_and_is_back(self):
        self.begin(suspect_after="1s", lost_after="20s", lease="21s")
        before = self.there()
        drill = self.live("cut", "3s", "--host", "h2")
        drill.wait_for_err("fault 1: cut of h2")
        wait_for(lambda: "drop" in self.w["h2"].run("/usr/sbin/nft", "list", "ruleset").stdout, lambda: f"a rule: {drill!r}")
        done = drill.finished(60)
        self.assertEqual(done.status, 0, done)
        self.assertEqual(self.there(), before)
        self.assertEqual([kind for kind in self.kinds() if kind.startswith("drill.") or kind == "host.suspect"],
                         ["drill.begun", "drill.fault", "host.suspect", "drill.undone", "drill.ended"])
        self.end()


class LeaseTest(LiveTest):
    """However a drill ends, what it did is taken back."""

    FAULTS = {"freeze": ("--host", "h1"), "hang": ("--rank", "2"), "no-files": ("--rank", "1"), "cut": ("--host", "h2")}
    ENDS = ("drill", "session", "check", "supervisor", "ctrl_c", "stopped", "silent")
    WAITS = ("stopped", "silent")  # nobody tells the host: it goes by its own clock

    def is_in_effect(self, fault, before):
        if fault in ("freeze", "hang"):
            return bool(self.stopped())
        now = self.there()
        return now["nft"] != before["nft"] if fault == "cut" else now["limits"] != before["limits"]

    def end_of_drill(self, drill):
        drill.signal(signal.SIGKILL)
        drill.wait()

    def end_of_session(self, _):
        os.kill(self.session().pid, signal.SIGKILL)

    def end_of_check(self, _):
        os.kill(self.check().pid, signal.SIGKILL)

    def end_of_supervisor(self, _):
        self.kill(self.process("supervisor"))

    def end_of_ctrl_c(self, drill):
        drill.signal(signal.SIGINT)

    def end_of_stopped(self, drill):
        drill.signal(signal.SIGSTOP)

    def end_of_silent(self, _):
        for host in self.w.hosts:
            self.w.cut("login", host.name)
            self.w.cut(host.name, "login")

    def is_back(self, before):
        return not self.stopped() and self.there() == before

    def try_round(self, what, fault, end):
        before = self.there()
        drill = self.live(fault, SHORT if end in self.WAITS else LONG, *self.FAULTS[fault])
        drill.wait_for_err(f"fault 1: {fault}")
        wait_for(lambda: self.is_in_effect(fault, before), lambda: f"{what} in effect: {drill!r}\n{self.supervisor_log()}")
        getattr(self, f"end_of_{end}")(drill)
        wait_for(lambda: self.is_back(before), lambda: f"{what}: all as before {before}; there is {self.there()}, stopped "
                 f"{[str(process) for process in self.stopped()]}\n{drill!r}\n{self.supervisor_log()}", 30)
        if end == "silent":
            self.w.heal()
        if end == "stopped":
            os.kill(drill.pid, signal.SIGCONT)  # nsenter has stopped as its child did, and lets that go on
        if end != "drill":
            code = drill.wait(60)
            self.assertEqual(code == 130, end == "ctrl_c", f"{what}: {code}: {drill!r}")
            self.assertIn("report: ", drill.out + drill.err, what)
            if fault in ("freeze", "hang"):
                self.assertNotIn("in effect still", drill.err, what)
        self.assertNotIn("gang.failed", self.kinds(), what)
        return drill


class Lease(LeaseTest):
    def test_twenty_rounds(self):
        seed = int(os.environ.get("MONARCH_TEST_DRILL_SEED", "1"))
        draw = random.Random(seed)
        self.begin()
        for number in range(int(os.environ.get("MONARCH_TEST_DRILL_ROUNDS", "20"))):
            end = self.ENDS[number % len(self.ENDS)]
            fault = "freeze" if number < len(self.ENDS) else draw.choice(list(self.FAULTS))
            what = f"round {number} of seed {seed}: {fault}, and the end of {end}"
            print(f"# {what}", flush=True)
            self.try_round(what, fault, end)
            if end == "drill":  # for its lease nobody else may drill the job
                self.end()
                self.begin()
        self.end()


class SlurmLease(slurm.SlurmTest, LeaseTest):
    """The talk with a node is an srun here. With one that is killed its step is: the check and its guard."""

    def session(self):
        drill = {process.pid for process in self.find("monarch", "drill")}
        return next(process for process in self.find("srun") if process.parent in drill)

    def test_however_its_drill_ends_a_frozen_node_goes_on(self):
        if slurm.why_not():
            self.skipTest(slurm.why_not())
        self.slurm(2, alike=True)
        spec = self.slurm_job("exec " + COUNT, mesh={"gang": "host", "env": {"PYTHONPATH": host_faults.MODULES}},
                              supervision=PATIENT, drills={"allow": True})
        run = self.salloc(2, "run", spec)
        self.wait_for_ranks(wait_for(self.jobs, "a job")[0])
        for end in ("session", "check", "ctrl_c", "stopped", "drill"):
            print(f"# the end of {end}", flush=True)
            self.try_round(f"freeze, and the end of {end}", "freeze", end)
        self.stop(run)
        self.assert_nothing_left()


if __name__ == "__main__":
    cluster.main()
