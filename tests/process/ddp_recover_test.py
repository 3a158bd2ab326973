"""configs/ddp-recover.yaml under faults: it ends with the loss of a run that nobody disturbed, and the other replica never pauses."""

import signal
import unittest

import harness
import training
from training import LOSS, SPEC, TORCH_PYTHON

STEPS, PACE_S = 500, 0.1


@unittest.skipUnless(training.has_torch(), f"PyTorch for {TORCH_PYTHON} is not installed (Debian: python3-torch)")
class DdpRecover(training.TrainingTest):
    def freeze_host(self, rank):
        """All that runs there stands still, the ranks too."""
        host = rank["host"]
        ranks = [r["pid"] for r in self.status()["meshes"][0]["ranks"] if r["host"] == host]
        daemon, keeper = self.process("daemon", host), self.process("keeper", host)
        self.kill_all([keeper, daemon, *(p for p in self.processes() if p.pid in ranks)], signal.SIGSTOP)

    def test_it_ends_with_the_loss_of_an_undisturbed_run(self):
        calm = self.monarch("run", SPEC, *self.flags(STEPS, 0), timeout=180)
        self.assertEqual(calm.status, 0, calm)
        wanted = dict(LOSS.findall(calm.out))
        self.assertEqual(sorted(wanted), ["0", "1"], calm)

        run = self.start("run", SPEC, *self.flags(STEPS, PACE_S), "--trace", self.path("work"))
        self.wait_for_progress(0)
        self.wait_for_progress(1)
        harness.wait_for(lambda: self.commits(1), "a checkpoint")
        calm_ranks = [self.rank(r)["pid"] for r in (0, 1, 2, 3)]
        self.strike(lambda r: self.signal_by_pid(r["pid"], signal.SIGSEGV), 5)
        # One that stands still is ended with its gang, where the others only wait for it.
        self.strike(lambda r: self.signal_by_pid(r["pid"], signal.SIGSTOP), 7)
        self.assertEqual([e["rank"] for e in self.events("rank.hung")], [7])
        # A daemon is started again by its keeper, and no rank notices.
        generation = self.generation(4)
        self.kill(self.process("daemon", self.rank(4)["host"]))
        self.wait_for_progress(1)
        self.assertEqual(self.generation(4), generation)
        # A host stands still, keeper, daemon and ranks: the spare takes its place.
        self.strike(self.freeze_host, 4)
        # A host without its keeper has no spare to go to: it comes back itself.
        self.strike(lambda r: self.kill(self.process("keeper", r["host"])), 6)
        # Nobody notices that the supervisor is another one.
        supervisor, generation = self.process("supervisor"), self.generation(4)
        self.kill(supervisor)
        harness.wait_for(lambda: self.monarch("status").status == 0 and self.status()["term"] == 2, "the next term")
        self.wait_for_progress(0)
        self.wait_for_progress(1)
        self.assertEqual(self.generation(4), generation)
        self.assertEqual([self.rank(r)["pid"] for r in (0, 1, 2, 3)], calm_ranks)
        done = run.finished(180)
        self.assertEqual(done.status, 0, f"{done}\n{self.supervisor_log()}")
        self.assertEqual(dict(LOSS.findall(done.out)), wanted, done)
        self.assert_never_paused(0)
        self.assert_goes_on_from_commits(1, 4)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
