"""configs/ddp-recover.yaml on hosts over SSH, in one run: a rank that dies, a host that loses its power, one that stands still for half a
minute and goes on when its ranks run elsewhere, one that hears us and is not heard, a supervisor that is killed. It ends with the loss of
a run that nobody disturbed; what ranks of old generations do when they go on changes nothing."""

import unittest

import cluster
import harness
import host_faults
import recovery
import training
import world
from training import LOSS, SPEC, TORCH_PYTHON

STEPS, PACE_S = 900, 0.1
FREEZE_S = 30.0
OVERLAY = 'launch:\n  ssh: {hosts: "h[1-8]", spares: 1}\n'


@unittest.skipUnless(training.has_torch(), f"PyTorch for {TORCH_PYTHON} is not installed (Debian: python3-torch)")
class DdpRecover(host_faults.HostFaultTest, training.TrainingTest):
    def host(self, rank):
        return self.w[self.rank(rank)["host"]]

    def test_it_ends_with_the_loss_of_an_undisturbed_run(self):
        if not world.cgroup_parent():
            self.skipTest("no cgroup2 to write to")
        self.world(8)
        overlay = self.write("hosts.yaml", OVERLAY)
        calm = self.monarch("run", "-f", SPEC, "-f", overlay, *self.flags(STEPS, 0), timeout=180)
        self.assertEqual(calm.status, 0, calm)
        wanted = dict(LOSS.findall(calm.out))
        self.assertEqual(sorted(wanted), ["0", "1"], calm)

        run = self.start("run", "-f", SPEC, "-f", overlay, *self.flags(STEPS, PACE_S), "--trace", self.path("work"))
        self.wait_for_progress(0)
        self.wait_for_progress(1)
        harness.wait_for(lambda: self.commits(1), "a checkpoint")
        calm_ranks = [(self.rank(r)["host"], self.rank(r)["pid"]) for r in range(4)]
        self.strike(lambda r: self.w[r["host"]].run("/bin/kill", "-SEGV", r["pid"]), 5)
        dead = self.host(4)
        self.strike(lambda _: dead.power_off(), 4)
        frozen = self.host(6)
        since = self.now()
        self.strike(lambda _: frozen.freeze(), 6)
        generation = self.generation(6)
        recovery.after(max(0.0, FREEZE_S - (self.now() - since)))
        frozen.thaw()
        harness.wait_for(lambda: not [p for g in range(1, generation) for p in self.alive_on(frozen.name, g)],
                         lambda: f"the end of what runs on {frozen.name}", 30)
        cut = self.host(4)
        self.strike(lambda _: self.w.cut(cut.name, "login"), 4)
        self.w.heal()
        generation, supervisor = self.generation(4), self.process("supervisor")
        self.kill(supervisor)
        harness.wait_for(lambda: self.monarch("status").status == 0 and self.status()["term"] == 2, "the next term")
        self.wait_for_progress(0)
        self.wait_for_progress(1)
        self.assertEqual(self.generation(4), generation)
        self.assertEqual([(self.rank(r)["host"], self.rank(r)["pid"]) for r in range(4)], calm_ranks)
        done = run.finished(240)
        self.assertEqual(done.status, 0, f"{done}\n{self.supervisor_log()}")
        self.assertEqual(dict(LOSS.findall(done.out)), wanted, done)
        self.assert_never_paused(0)
        self.assert_goes_on_from_commits(1, 4)
        commits = self.commits(1)
        self.assertEqual(commits, sorted(commits), "a commit of an older generation counted")
        self.assert_nothing_left(30)


if __name__ == "__main__":
    cluster.main()
