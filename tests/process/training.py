"""What the tests of configs/ddp-recover.yaml share: how far its replicas are, what they have committed, and who runs which rank."""

import os
import re
import subprocess

import harness
import recovery

TORCH_PYTHON = "/usr/bin/python3"  # Debian's, whose package python3-torch is
SPEC = os.path.join(harness.ROOT, "configs/ddp-recover.yaml")
LONGEST_PAUSE_S = 2.0  # a machine that is busy with the start of the other replica; far below any time-out of the spec
START_S = 60.0         # PyTorch is imported by four processes at a time
LOSS = re.compile(r"replica (\d) ends at step \d+ with loss ([0-9.]+)$", re.M)


def has_torch():
    try:
        return subprocess.run([TORCH_PYTHON, "-c", "import torch.distributed"], capture_output=True).returncode == 0
    except OSError:
        return False


class TrainingTest(recovery.RecoveryTest):
    def flags(self, steps, pace):
        return ["--", "--steps", steps, "--pace", pace, "--checkpoints", self.path("work", "checkpoints")]

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
