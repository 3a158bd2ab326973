"""A job on nodes of Slurm whose guard has ended as well: the steps live on without it, and `monarch up --resume` comes back to their ranks."""

import os
import signal

import jobs
import slurm
from harness import wait_for

UP = "mark up; " + jobs.FOREVER
RESTARTS = 5  # of a supervisor within ten minutes: monarch-worker keep --restarts
ADOPTED_S = 60


class Resume(slurm.SlurmTest):
    """The allocation is nobody's child: it stays until it is cancelled."""

    def up_there(self, **keys):
        self._slurm.run("salloc", "--quiet", "--no-kill", "--no-shell", "-N2")
        self.allocation, = self._slurm.jobs()
        done = self.in_allocation(self.allocation, "up", **keys)
        self.assertEqual(done.status, 0, done)
        self.job_id, = self.jobs()
        self.pids = self.wait_for_marks("up", 4)
        self.steps = self._slurm.steps(self.allocation)
        self.assertEqual(len(self.steps), 2, self.steps)
        # A talk that has been answered is told to the guard, which is heard by then.
        wait_for(lambda: self.status()["phase"] == "running", self.supervisor_log)

    def in_allocation(self, number, command, nodes="h[1-2]", **keys):
        """In a shell with the variables that tell of it."""
        return self.monarch(command, self.slurm_job(UP, **keys), env={"SLURM_JOB_ID": str(number), "SLURM_JOB_NODELIST": nodes})

    def assert_refused(self, number, why, nodes="h[1-2]"):
        before = self.jobs()
        done = self.in_allocation(number, "run", nodes)
        self.assertEqual(done.status, 2, done)
        self.assertRegex(done.err, rf"error\[E0911\]: Slurm's job {number} {why}\n  = help: `unset SLURM_JOB_ID SLURM_JOB_NODELIST`")
        self.assertEqual(self.jobs(), before, "none was begun")

    def sruns(self):
        return [process for process in self.processes() if process.program == "srun"]

    def lose_a_supervisor(self):
        supervisor = self.process("supervisor")
        self.kill(supervisor)
        self.wait_gone(supervisor)

    def wait_for_adoption(self, times):
        wait_for(lambda: self.monarch("events", self.job_id, "--json").out.count('"supervisor.adopted"') >= times, self.supervisor_log, ADOPTED_S)

    def resume_and_stop(self, sruns, adopted):
        """Nobody is started again; and what carries the steps ends with them, while the allocation stays."""
        resumed = self.monarch("up", "--resume", self.job_id, "--force-takeover")
        self.assertEqual(resumed.status, 0, resumed)
        self.wait_for_adoption(adopted)
        self.assertEqual(self.wait_for_marks("up", 4), self.pids, self.supervisor_log())
        self.assertEqual(self._slurm.steps(self.allocation), self.steps)
        self.assertEqual({p.pid for p in self.sruns()}, sruns)
        self.assertEqual(self.monarch("stop", self.job_id).status, 0)
        wait_for(lambda: not self.sruns(), lambda: f"no srun but {self.sruns()}")
        self.assertEqual(self._slurm.jobs()[self.allocation], "RUNNING")
        self.assert_refused(self.allocation, r"has h\[1-2\], and not h\[2-3\]", "h[2-3]")
        self._slurm.run("scancel", str(self.allocation))
        self.assert_refused(self.allocation, "is over: (CANCELLED|COMPLETING)")
        self.assert_refused(4711, r"is not known to Slurm \(any more\)")
        self.assert_nothing_left()

    def sruns_there(self):
        """Of the two workers: two processes each."""
        wait_for(lambda: len(self.sruns()) == 4, lambda: f"two sruns of two processes; there are {self.sruns()}")
        return {process.pid for process in self.sruns()}

    def test_a_guard_that_has_seen_too_many_crashes_leaves_the_steps_alone(self):
        self.slurm(2)
        self.up_there()
        sruns, guard = self.sruns_there(), self.process("guard")
        for life in range(1, RESTARTS + 1):
            self.lose_a_supervisor()
            self.wait_for_adoption(life)
        self.lose_a_supervisor()
        self.wait_gone(guard)
        self.assertEqual({p.pid for p in self.sruns()}, sruns)
        self.resume_and_stop(sruns, RESTARTS + 1)

    def test_a_guard_that_is_told_to_end_between_two_supervisors_leaves_the_steps_alone(self):
        self.slurm(2)
        self.up_there()
        sruns, guard = self.sruns_there(), self.process("guard")
        for life in (1, 2):
            self.lose_a_supervisor()
            self.wait_for_adoption(life)
        self.lose_a_supervisor()  # the next one comes after a pause
        wait_for(lambda: self.supervisor_log().count("the guarded process was ended by SIGKILL") == 3, self.supervisor_log)
        self.kill(guard, signal.SIGTERM)
        self.wait_gone(guard)
        self.assertFalse(self.processes_of("supervisor"), self.supervisor_log())
        self.assertEqual({p.pid for p in self.sruns()}, sruns)
        self.resume_and_stop(sruns, 3)

    def test_a_guard_that_is_killed_leaves_them_as_well(self):
        self.slurm(2)
        self.up_there()
        sruns, guard, supervisor = self.sruns_there(), self.process("guard"), self.process("supervisor")
        self.kill(guard)
        self.kill(supervisor)
        self.wait_gone(guard)
        self.wait_gone(supervisor)
        self.assertEqual({p.pid for p in self.sruns()}, sruns)
        self.resume_and_stop(sruns, 1)

    def test_a_job_that_is_stopped_leaves_no_srun(self):
        self.slurm(2)
        self.up_there()
        self.sruns_there()
        self.assertEqual(self.monarch("stop", self.job_id).status, 0)
        wait_for(lambda: not self.sruns(), lambda: f"no srun but {self.sruns()}")
        self.assertTrue(os.path.exists(self.job_file("verdict.json")), self.supervisor_log())
        self._slurm.run("scancel", str(self.allocation))
        self.assert_nothing_left()


if __name__ == "__main__":
    slurm.main()
