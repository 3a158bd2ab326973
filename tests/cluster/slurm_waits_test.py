"""What takes its time on a real Slurm: the end of an allocation's time, which it counts in minutes, and an srun that nobody vouches for."""

import harness
import jobs
import slurm
from harness import wait_for

UP = "mark up; " + jobs.FOREVER


class Waits(slurm.SlurmTest):
    def test_a_job_whose_time_is_over_may_be_submitted_again(self):
        s = self.slurm(2)
        run = self.start_program("salloc", "--quiet", "--no-kill", "-N2", "-t", "1", harness.MONARCH, "run", self.slurm_job(UP, supervision={"restart": {"max": 4}, "reallocate": {"max": 4}}))
        self.wait_for_marks("up", 4)
        wait_for(self.verdict_is_there, lambda: f"a verdict\n{run!r}\n{self.supervisor_log()}", 150)
        self.assertEqual(self.verdict()["exit_code"], 92, self.verdict())
        self.assertIn("TIMEOUT", self.verdict()["reason"])
        run.wait()
        self.assert_nothing_left()

    def test_a_launch_that_munge_does_not_vouch_for_says_so(self):
        s = self.slurm(2)
        munge = s.munge["login"]
        script = f"{harness.MONARCH} run {self.slurm_job('true')}"
        self.write("later", f"#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.05; done\n{script}\n", 0o755)
        run = self.start_program("salloc", "--quiet", "--no-kill", "-N2", self.path("work", "later"))
        wait_for(lambda: "RUNNING" in s.jobs().values(), "the allocation")
        munge.kill()
        self.write("go", "")
        wait_for(self.verdict_is_there, lambda: f"a verdict\n{run!r}", 60)
        verdict = self.verdict()
        self.assertEqual(verdict["exit_code"], 69, verdict)
        self.assertEqual({host["kind"] for host in verdict["failed_hosts"]}, {"not let in"}, verdict)
        munge.start()
        run.wait()
        self.assert_nothing_left()


if __name__ == "__main__":
    slurm.main()
