"""configs/ddp-recover.yaml under faults: it ends with the loss of a run that nobody disturbed, and the other replica never pauses."""

import os
import re
import signal
import subprocess
import unittest

import harness
import recovery

TORCH_PYTHON = "/usr/bin/python3"  # Debian's, whose package python3-torch is
SPEC = os.path.join(harness.ROOT, "configs/ddp-recover.yaml")
STEPS, PACE_S = 500, 0.1
LONGEST_PAUSE_S = 2.0  # a machine that is busy with the start of the other replica; far below any time-out of the spec
START_S = 60.0         # PyTorch is imported by four processes at a time
LOSS = re.compile(r"replica (\d) ends at step \d+ with loss ([0-9.]+)$", re.M)


def has_torch():
    try:
        return subprocess.run([TORCH_PYTHON, "-c", "import torch.distributed"], capture_output=True).returncode == 0
    except OSError:
        return False


@unittest.skipUnless(has_torch(), f"PyTorch for {TORCH_PYTHON} is not installed (Debian: python3-torch)")
class DdpRecover(recovery.RecoveryTest):
    def flags(self, pace):
        return ["--", "--steps", STEPS, "--pace", pace, "--checkpoints", self.path("work", "checkpoints")]

    def trace(self, replica):
        """(generation, step, when) of each step so far."""
        path = self.path("work", f"steps.{replica}")
        if not os.path.exists(path):
            return []
        return [(int(g), int(s), float(t)) for g, s, t in (line.split() for line in self.read(path).splitlines() if line.count(" ") == 2)]

    def wait_for_progress(self, replica, generation=None):
        """Until it has done some steps more, of this generation."""
        first = len(self.trace(replica))
        harness.wait_for(lambda: len(t := self.trace(replica)) > first + 3 and (generation is None or t[-1][0] >= generation),
                         lambda: f"steps of replica {replica}, generation {generation}: {self.trace(replica)[-3:]}\n"
                         f"{self.supervisor_log()}", START_S)

    def rank(self, number):
        return next(r for r in self.status()["meshes"][0]["ranks"] if r["rank"] == number)

    def generation(self, rank):
        return self.rank(rank)["generation"]

    def strike(self, fault, rank):
        """The gang of `rank` begins anew after the fault, and the other replica goes on."""
        before = self.generation(rank)
        fault(self.rank(rank))
        harness.wait_for(lambda: self.generation(rank) > before, lambda: f"the next generation: {self.supervisor_log()}")
        self.wait_for_progress(rank // 4, self.generation(rank))

    def freeze_host(self, rank):
        """All that runs there stands still, the ranks too."""
        host = rank["host"]
        ranks = [r["pid"] for r in self.status()["meshes"][0]["ranks"] if r["host"] == host]
        daemon, keeper = self.process("daemon", host), self.process("keeper", host)
        for process in [keeper, daemon, *(p for p in self.processes() if p.pid in ranks)]:
            self.kill(process, signal.SIGSTOP)

    def commits(self, replica):
        """(generation, step) of each that the gang has committed so far."""
        events = [e for e in self.events("checkpoint.committed") if e["details"]["gang"] == str(replica)]
        return [(e["generation"], int(e["details"]["step"])) for e in events]

    def assert_goes_on_from_commits(self, replica, times):
        """Each generation after the first one began after the newest step that was committed before it."""
        trace, commits = self.trace(replica), self.commits(replica)
        began = [(b[0], b[1]) for a, b in zip(trace, trace[1:]) if a[0] != b[0]]
        self.assertEqual(began, [(g, 1 + max(s for h, s in commits if h < g)) for g, _ in began], commits)
        self.assertEqual(len(began), times, began)

    def assert_never_paused(self, replica):
        trace = [t for t in self.trace(replica)]
        gaps = [b[2] - a[2] for a, b in zip(trace, trace[1:]) if a[0] == b[0]]
        self.assertLess(max(gaps), LONGEST_PAUSE_S, f"replica {replica} paused")

    def test_it_ends_with_the_loss_of_an_undisturbed_run(self):
        calm = self.monarch("run", SPEC, *self.flags(0), timeout=180)
        self.assertEqual(calm.status, 0, calm)
        wanted = dict(LOSS.findall(calm.out))
        self.assertEqual(sorted(wanted), ["0", "1"], calm)

        run = self.start("run", SPEC, *self.flags(PACE_S), "--trace", self.path("work"))
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
