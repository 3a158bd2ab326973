"""configs/ddp-recover.yaml on nodes of Slurm, in a script of sbatch and from a login node, in one run each: a rank that dies, a node that loses
its power, a slurmd that is killed and its node taken for lost by Slurm, a supervisor that is killed. It ends with the loss of a run that
nobody disturbed."""

import os
import unittest

import harness
import host_faults
import slurm
import training
import world
from training import LOSS, SPEC, TORCH_PYTHON

STEPS, PACE_S = 1200, 0.1
NODES = 6  # four for the ranks, a spare, and one more
OVERLAY = f"launch:\n  slurm: {{spares: 1, nodes: {NODES}}}\n"


@unittest.skipUnless(training.has_torch(), f"PyTorch for {TORCH_PYTHON} is not installed (Debian: python3-torch)")
class SlurmDdp(slurm.SlurmTest, host_faults.HostFaultTest, training.TrainingTest):
    def in_a_script(self, *arguments):
        """sbatch waits, and ends as the script does."""
        template = os.path.join(world.ROOT, "scripts", "monarch.sbatch")
        self.output = self.path("work", f"script.{len(self._slurm.jobs())}")
        return self.start_program("sbatch", "--quiet", "--wait", f"-N{NODES}", f"--output={self.output}", template, *arguments,
                                  env={"MONARCH": harness.MONARCH})

    def from_login(self, *arguments):
        self.output = None
        return self.start("run", *arguments)

    def shown(self, done):
        return done.out if self.output is None else self.read(self.output)

    def test_in_a_script_of_sbatch_it_ends_with_the_loss_of_an_undisturbed_run(self):
        self.goes_through(self.in_a_script)

    def test_from_a_login_node_it_ends_with_the_loss_of_an_undisturbed_run(self):
        self.goes_through(self.from_login)

    def goes_through(self, start):
        if not world.cgroup_parent():
            self.skipTest("no cgroup2 to write to")
        s = self.slurm(NODES, alike=True)
        overlay = self.write("nodes.yaml", OVERLAY)
        calm = start("-f", SPEC, "-f", overlay, *self.flags(STEPS, 0)).finished(180)
        self.assertEqual(calm.status, 0, calm)
        wanted = dict(LOSS.findall(self.shown(calm)))
        self.assertEqual(sorted(wanted), ["0", "1"], calm)

        run = start("-f", SPEC, "-f", overlay, *self.flags(STEPS, PACE_S), "--trace", self.path("work"))
        self.wait_for_progress(0)
        self.wait_for_progress(1)
        harness.wait_for(lambda: self.commits(1), "a checkpoint")
        calm_ranks = [(self.rank(r)["host"], self.rank(r)["pid"]) for r in range(4)]
        self.strike(lambda r: self.w[r["host"]].run("/bin/kill", "-SEGV", r["pid"]), 5)
        dead = self.w[self.rank(4)["host"]]
        self.strike(lambda _: dead.power_off(), 4)
        generation, deaf = self.generation(6), self.rank(6)["host"]
        next(daemon for daemon in s.nodes if daemon.host.name == deaf).kill()
        # What runs there would end when its slurmd comes back: it is stopped in order, and goes on where the last node has become a spare.
        harness.wait_for(lambda: self.generation(6) > generation and self.rank(6)["host"] not in (deaf, dead.name),
                         lambda: f"rank 6 elsewhere: {self.supervisor_log()}", 60)
        self.wait_for_progress(1, self.generation(6))
        generation = self.generation(6)
        supervisor = self.process("supervisor")
        self.kill(supervisor)
        harness.wait_for(lambda: self.monarch("status").status == 0 and self.status()["term"] == 2, "the next term")
        self.wait_for_progress(0)
        self.wait_for_progress(1)
        self.assertEqual(self.generation(6), generation, "a supervisor's end is nobody else's")
        self.assertEqual([(self.rank(r)["host"], self.rank(r)["pid"]) for r in range(4)], calm_ranks)
        done = run.finished(240)
        self.assertEqual(done.status, 0, f"{done}\n{self.supervisor_log()}")
        self.assertEqual(dict(LOSS.findall(self.shown(done))), wanted, done)
        self.assert_never_paused(0)
        self.assert_goes_on_from_commits(1, 3)
        commits = self.commits(1)
        self.assertEqual(commits, sorted(commits), "a commit of an older generation counted")
        self.assert_nothing_left()


if __name__ == "__main__":
    slurm.main()
