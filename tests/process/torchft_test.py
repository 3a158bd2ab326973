"""configs/torchft.yaml with the real torchft: steps go on while a replica group is dead, and it comes back; who waits in a collective for a
host that is gone leaves it with the verdict, and not by a time-out."""

import contextlib
import os
import re
import signal
import subprocess
import unittest

import harness
import recovery

FOLDER = os.environ.get("MONARCH_TEST_TORCHFT") or os.path.join(harness.ROOT, "build-torchft")
SPEC = os.path.join(harness.ROOT, "configs/torchft.yaml")
IMPORT_S = 120.0  # torch, by six processes at a time
PACE_S = 0.8
LEAVES_S = 1.0    # after the verdict
STEP = re.compile(r"^\[trainer/(\d+)@(v\d+)\] step (\d+): (committed|discarded) by (\d) groups", re.M)
LEFT = re.compile(r"^\[trainer/(\d+)@v\d+\] step \d+: a gang is lost, its collective is left", re.M)
LEADERS = {"0", "2", "4"}  # rank 0 of each group tells


def has_torchft():
    try:
        return subprocess.run([os.path.join(FOLDER, "bin/python3"), "-c", "import torchft"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@unittest.skipUnless(has_torchft(), f"torchft is not installed in {FOLDER}: `scripts/test torchft` does it")
class TorchFt(recovery.RecoveryTest):
    def training(self, steps, pace=0.1):
        path = os.path.join(FOLDER, "bin") + ":" + self.environment.get("PATH", os.environ["PATH"])
        program = f'meshes.trainer.program=[python3, torchft_train.py, --steps, "{steps}", --pace, "{pace}"]'
        run = self.start("run", SPEC, "--set", program, env={"PATH": path, "RUST_LOG": "warn"})
        self.wait_for_quorum(run, 3)
        self.pids = {r["rank"]: r["pid"] for r in self.trainer()["ranks"]}
        return run

    def trainer(self):
        return next(m for m in self.status()["meshes"] if m["name"] == "trainer")

    def committed(self, run, first=0):
        """(rank, step, groups) of each committed step that a group's rank 0 told of, but for so many words of the run."""
        return [(rank, int(step), int(groups)) for rank, _, step, how, groups in STEP.findall(run.out[first:]) if how == "committed"]

    def wait_for_quorum(self, run, groups, first=0, of=LEADERS):
        """Until each of these has committed three steps in a quorum of so many groups."""
        def all_have():
            found = [rank for rank, _, n in self.committed(run, first) if n == groups]
            return all(found.count(rank) >= 3 for rank in of)
        harness.wait_for(all_have, lambda: f"steps of {groups} groups by {of}: {run.out[-3000:]}\n{self.supervisor_log()}", IMPORT_S)

    def goes_on(self, run, before):
        """Without group 1, and with it again, which does not begin anew; then to the end."""
        self.wait_for_quorum(run, 2, before, {"0", "4"})
        alone = max(step for rank, step, n in self.committed(run, before) if rank == "0" and n == 2)
        again = len(run.out)
        self.wait_for_quorum(run, 3, again)
        returned = [step for rank, step, _ in self.committed(run, before) if rank == "2"]
        self.assertGreater(min(returned), alone - 3, "it began anew")
        self.assertEqual({r["rank"]: r["pid"] for r in self.trainer()["ranks"] if r["rank"] not in (2, 3)},
                         {r: p for r, p in self.pids.items() if r not in (2, 3)})
        done = run.finished(300)
        self.assertEqual(done.status, 0, f"{done}\n{self.supervisor_log()}")

    def test_steps_go_on_while_a_group_is_dead_and_it_comes_back(self):
        run = self.training(600)
        before, since = len(run.out), self.now()
        self.signal_by_pid(self.pids[3], signal.SIGKILL)
        failed = self.wait_for_event("gang.failed")
        self.assert_seen(failed, since)
        self.assert_answer(failed, "restart", 1, 8)
        self.goes_on(run, before)
        self.assert_nothing_left()

    def test_a_collective_with_a_host_that_is_gone_is_left_at_the_verdict(self):
        run = self.training(300, PACE_S)
        gone = [p for p in self.processes() if b"MONARCH_HOST=v3" in p.environment]
        gone += [*self.processes_of("keeper", "v3"), *self.processes_of("daemon", "v3")]
        # It ends in the middle of its passes, and the others come to the collective without it.
        before = len(run.out)
        harness.wait_for(lambda: self.committed(run, before), "a step")
        recovery.after(PACE_S / 4)
        before, since = len(run.out), self.now()
        self.kill_all(gone, signal.SIGSTOP)
        # Of those that the others wait for, nothing is heard, and no connection closes.
        harness.wait_for(lambda: len(set(LEFT.findall(run.out[before:]))) == 4, lambda: f"four that leave: {run.out[before:][-3000:]}", 60)
        left = self.now()
        lost = self.wait_for_event("host.lost")
        self.assert_seen(lost, since, 6.0)
        self.assertLess(left - self.time_of(lost), LEAVES_S)
        self.assert_stage(self.wait_for_event("host.replaced"), r"^v5 takes the place of v3")
        self.goes_on(run, before)
        for process in gone:
            with contextlib.suppress(ProcessLookupError):  # it was killed as it stood
                self.kill(process, signal.SIGCONT)
        self.assert_nothing_left(30)


if __name__ == "__main__":
    harness.main()
