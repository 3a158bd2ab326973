"""What takes its time on a real Slurm: the end of an allocation's time, which it counts in minutes, and an srun that nobody vouches for."""

import glob
import os
import re
import signal

import harness
import jobs
import slurm
import slurm_login_test
import slurm_preempt_test
import slurm_replacements_test
from harness import wait_for

UP = "mark up; " + jobs.FOREVER



class Regrown(slurm_replacements_test.ReplacementTest):
    """What is given back while a gang is parked is asked for again, with what was missing."""

    def test_a_parked_gang_returns_on_nodes_that_are_asked_for_together(self):
        s, run = self.shrunk_job()
        self.wait_for_returned(run)
        nodes = [s.node_hosts[2], s.node_hosts[4]]
        for mark in [path for host in nodes for path in glob.glob(host.path("/tmp/up.*"))]:
            os.unlink(mark)
        s.power_on(s.node_hosts[2])
        self.wait_for_event("gang.returning", timeout=150)
        wait_for(lambda: sum(os.path.exists(host.path(f"/tmp/up.{rank}")) for host in nodes for rank in (2, 3)) == 2,
                 lambda: f"ranks 2 and 3 anew\n{run!r}\n{self.supervisor_log()}", 40)
        self.assertEqual({rank["phase"] for rank in self.status()["meshes"][0]["ranks"]}, {"running"})
        self.stop(run)
        self.assert_nothing_left()

class Waits(slurm.SlurmTest):
    def test_ranks_are_told_before_the_time_is_over_and_the_job_has_stopped_by_then(self):
        s = self.slurm(2)
        run = self.start_program("salloc", "--quiet", "--no-kill", "-N2", "-t", "1", harness.MONARCH, "run",
                                 self.slurm_job(slurm_preempt_test.LISTENS, mesh=slurm_preempt_test.PATIENT, supervision=slurm_preempt_test.RECOVERS))
        self.wait_for_marks("up", 4)
        job, = s.jobs()
        wait_for(self.verdict_is_there, lambda: f"a verdict\n{run!r}\n{self.supervisor_log()}", 90)
        slurm_preempt_test.assert_told(self, 4)
        self.assertEqual((self.verdict()["exit_code"], self.verdict()["reason"]), (92, f"the time of Slurm's job {job} is nearly over"))
        self.assertIn(f"launch.slurm.warn is 2m, and Slurm's job {job} may run for 1m: ranks are told 6s before its end", self.supervisor_log())
        self.assertEqual(run.wait(), 92, run)
        self.assert_nothing_left()

    def test_a_job_whose_time_is_over_may_be_submitted_again(self):
        s = self.slurm(2)
        run = self.start_program("salloc", "--quiet", "--no-kill", "-N2", "-t", "1", harness.MONARCH, "run", self.slurm_job(UP, slurm={"warn": "0s"}, supervision={"restart": {"max": 4}, "reallocate": {"max": 4}}))
        self.wait_for_marks("up", 4)
        wait_for(self.verdict_is_there, lambda: f"a verdict\n{run!r}\n{self.supervisor_log()}", 150)
        self.assertEqual(self.verdict()["exit_code"], 92, self.verdict())
        self.assertRegex(self.verdict()["reason"], "TIMEOUT|the time of Slurm's job . is over")
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


class FirstNode(slurm.SlurmTest):
    """The node with the script and the supervisor: nobody can start those again, and with --no-kill Slurm leaves the others to the job."""

    def running(self, slurm=None, **keys):
        s = self.slurm(3, alike=True)
        run = self.start("run", self.slurm_job(UP, hosts=3, slurm=slurm, supervision={**slurm_login_test.RECOVERS, **keys}))
        self.wait_for_marks("up", 6)
        return s, run

    def told(self, run, words):
        wait_for(lambda: re.search(words, run.err), lambda: f"{words}: {run!r}", 60)

    def ended(self, s, run, code, reason):
        wait_for(lambda: not s.live_jobs(), lambda: f"the end of {s.jobs()}: {run!r}", 90)
        done = run.finished(60)
        self.assertEqual(done.status, code, done)
        self.assertEqual(self.verdict()["exit_code"], code)
        self.assertRegex(self.verdict()["reason"], reason)
        # What was on the lost node alone goes with it; here it is a folder that all nodes see.
        for socket in glob.glob(self.path("run", "monarch", "*.sock")):
            os.unlink(socket)
        self.assert_nothing_left()

    def test_that_is_lost_ends_the_job_and_its_nodes_are_given_back(self):
        s, run = self.running()
        s.node_hosts[0].power_off()
        self.told(run, "and job 1 of Slurm still has h.*: waiting for Slurm to end it")
        self.ended(s, run, 92, "^the supervisor was lost with h1, and job 1 of Slurm is over: it is CANCELLED")

    def test_that_is_lost_with_the_srun_of_all_ends_the_job_as_well(self):
        s, run = self.running(slurm={"own_steps": 1})
        s.node_hosts[0].power_off()
        self.ended(s, run, 92, "^the supervisor was lost with h1, and job 1 of Slurm is over: it is CANCELLED")

    def test_that_is_well_ends_a_job_whose_supervisor_nobody_starts_again(self):
        s, run = self.running()
        guard = self.process("guard")
        self.kill(guard, signal.SIGSTOP)
        self.kill(self.process("supervisor"))
        self.kill(guard)
        self.ended(s, run, 92, "^the supervisor was lost with h1, and job 1 of Slurm is over: it is FAILED")

    def test_that_is_lost_leaves_a_job_that_a_viewer_can_end(self):
        s, run = self.running(orphan_ttl="10m")
        s.node_hosts[0].power_off()
        self.told(run, "and job 1 of Slurm still has h")
        run.signal(signal.SIGINT)
        self.ended(s, run, 130, "^run, pid .*, SIGINT; the supervisor was lost with h1")

    def test_that_is_lost_leaves_what_others_run_there_alone(self):
        s = self.slurm(3, alike=True)
        script = f"srun -N1 -n1 -w h2 --overlap sleep 1000 & {harness.MONARCH} run {self.slurm_job(UP, hosts=3, supervision=slurm_login_test.RECOVERS)}"
        job = s.submit(script, "-N3", "--no-kill", "--comment=monarch")
        self.wait_for_marks("up", 6)
        s.node_hosts[0].power_off()
        wait_for(lambda: not [nodes for name, nodes in s.steps(job).values() if "demo" in name and nodes != "h1"], lambda: f"the end of our steps: {s.steps(job)}", 90)
        self.assertEqual(s.jobs()[job], "RUNNING")
        s.run("scancel", str(job))
        self.assert_nothing_left()


if __name__ == "__main__":
    slurm.main()
