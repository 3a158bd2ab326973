"""What the launcher for Slurm relies on, seen on the real one: what a step, a node and a controller do when something ends them.

Each case is a fact of Slurm 22.05 that a decision in supervisor/launch/slurm/README.md rests on; a Slurm that behaves
otherwise fails here first.
"""

import os
import signal
import time

import slurm
from host import wait_for

HOLD = "sleep 1000\n"
STEP = "srun --jobid={job} --overlap -N1 -n1 -w {node} --no-kill --kill-on-bad-exit=0 --wait=0 "
CAPPED_S = 15  # of a call that nobody answers: MessageTimeout, and a little


class Bed(slurm.SlurmTest):
    def allocation(self, s, nodes=3):
        """A job that holds so many nodes; its id."""
        job = s.submit(HOLD, f"-N{nodes}", "--no-kill", "--no-requeue")
        s.wait_for_job(job, "RUNNING")
        return job

    def step(self, s, job, node, command, **options):
        """A step started from login, as the supervisor will: it is there when its process is."""
        known = set(s.steps(job))
        srun = s.login.start("/bin/sh", "-c", STEP.format(job=job, node=node) + command, **options)
        wait_for(lambda: set(s.steps(job)) - known, "the step")
        made, = set(s.steps(job)) - known
        return srun, made

    def sleepers(self, host, seconds):
        return [process for place, process in self.on_hosts() if place is host and process.arguments[-1:] == [seconds.encode()] and process.program == "sleep"]

    def sruns(self, seconds):
        """The processes of an srun, the first one first."""
        both = [p for _, p in self.on_hosts() if p.program == "srun" and seconds.encode() in p.arguments]
        return sorted(both, key=lambda process: process.parent in [other.pid for other in both])

    def end(self, s, job):
        s.run("scancel", str(job))
        self.assert_nothing_left()

    def test_a_step_outlives_an_srun_that_is_killed_whole_and_is_ended_alone(self):
        s = self.slurm(3)
        job = self.allocation(s)
        h2 = s.node_hosts[1]
        first, first_step = self.step(s, job, "h2", "sleep 7001")
        _, other_step = self.step(s, job, "h2", "sleep 7002")
        self.assertEqual({first_step, other_step}, set(s.steps(job)))
        wait_for(lambda: self.sleepers(h2, "7001") and self.sleepers(h2, "7002"), "both")
        for process in self.sruns("7001")[::-1]:
            os.kill(process.pid, signal.SIGKILL)
        first.wait()
        time.sleep(1)  # for something not to happen
        self.assertIn(first_step, s.steps(job))
        self.assertTrue(self.sleepers(h2, "7001"))
        s.run("scancel", "--signal=KILL", first_step)
        wait_for(lambda: not self.sleepers(h2, "7001"), "the end of the step")
        wait_for(lambda: first_step not in s.steps(job), "Slurm to see it")
        self.assertTrue(self.sleepers(h2, "7002"))
        self.assertEqual(s.jobs()[job], "RUNNING")
        self.end(s, job)

    def test_a_step_ends_with_the_first_process_of_its_srun(self):
        s = self.slurm(2)
        job = self.allocation(s, 2)
        h2 = s.node_hosts[1]
        srun, step = self.step(s, job, "h2", "sleep 7001")
        wait_for(lambda: self.sleepers(h2, "7001"), "the step's process")
        os.kill(self.sruns("7001")[0].pid, signal.SIGKILL)
        wait_for(lambda: not self.sleepers(h2, "7001"), "the end of the step")
        wait_for(lambda: step not in s.steps(job), "Slurm to see it")
        srun.wait()
        self.end(s, job)

    def test_a_step_of_many_nodes_ends_on_all_where_it_cannot_begin_on_one(self):
        s = self.slurm(3)
        job = self.allocation(s)
        h1, h2, _ = s.node_hosts
        h2.power_off()
        srun = s.login.start("/bin/sh", "-c", f"srun --jobid={job} --overlap -N3 -n3 --ntasks-per-node=1 --no-kill --kill-on-bad-exit=0 --wait=0 sleep 7001")
        wait_for(lambda: self.sleepers(h1, "7001"), "the healthy node's process")
        wait_for(lambda: not self.sleepers(h1, "7001"), "the end of the healthy node's", 40)
        self.assertNotEqual(srun.wait(), 0)
        self.assertEqual(s.jobs()[job], "RUNNING")
        self.end(s, job)

    def test_a_step_has_its_own_input_and_output_and_says_who_started_it(self):
        s = self.slurm(2)
        job = self.allocation(s, 2)
        done = s.run("/bin/sh", "-c", STEP.format(job=job, node="h2") +
                     """/bin/sh -c 'cat; echo "$SLURM_LAUNCH_NODE_IPADDR $SLURM_STEP_ID $(hostname)"; echo words >&2; exit 7'""",
                     input="x" * 100_000 + "\n", check=False)
        self.assertEqual(done.returncode, 7)
        self.assertEqual(done.stdout, "x" * 100_000 + f"\n{s.login.address} 0 h2\n")
        self.assertIn("words\n", done.stderr)
        self.end(s, job)

    def test_a_node_without_its_slurmd_goes_down_and_what_runs_there_lives_until_it_is_back(self):
        s = self.slurm(2)
        job = self.allocation(s, 2)
        h2 = s.node_hosts[1]
        self.step(s, job, "h2", "sleep 7001")
        wait_for(lambda: self.sleepers(h2, "7001"), "the step's process")
        s.nodes[1].kill()
        s.wait_for_state("h2", "down")
        self.assertEqual(s.jobs()[job], "RUNNING")
        self.assertTrue(self.sleepers(h2, "7001"), "Slurm does not fence")
        s.nodes[1].start()
        wait_for(lambda: not self.sleepers(h2, "7001"), "the end of what Slurm took for lost")
        self.end(s, job)

    def test_a_job_without_no_kill_loses_its_healthy_node_as_well(self):
        s = self.slurm(2)
        job = s.submit(HOLD, "-N2", "--no-requeue")
        s.wait_for_job(job, "RUNNING")
        h1, h2 = s.node_hosts
        self.step(s, job, "h1", "sleep 7001")
        wait_for(lambda: self.sleepers(h1, "7001"), "the step's process")
        h2.unplug()
        wait_for(lambda: not self.sleepers(h1, "7001"), "the end of the healthy node's", 40)
        s.wait_for_job(job, "NODE_FAIL")
        h2.plug()
        self.assert_nothing_left()

    def test_calls_end_by_themselves_while_the_controller_is_gone_or_stands_still_and_steps_go_on(self):
        s = self.slurm(2)
        job = self.allocation(s, 2)
        h2 = s.node_hosts[1]
        self.step(s, job, "h2", "sleep 7001")
        wait_for(lambda: self.sleepers(h2, "7001"), "the step's process")
        time.sleep(6)  # WARNING: Slurm writes its state every 5 s (slurmctld/state_save.c); a job younger than that is forgotten
        for befall, mend in ((s.controller.stop, s.controller.cont), (s.controller.kill, s.controller.start)):
            befall()
            began = time.monotonic()
            done = s.run("squeue", "-h", check=False)
            took = time.monotonic() - began
            self.assertNotEqual(done.returncode, 0, done)
            self.assertLess(took, CAPPED_S)
            self.assertIn("slurm_load_jobs error", done.stderr)
            self.assertTrue(self.sleepers(h2, "7001"))
            mend()
            wait_for(lambda: s.run("squeue", "-h", check=False).returncode == 0, "the controller")
        self.assertEqual(s.jobs()[job], "RUNNING")
        self.assertTrue(self.sleepers(h2, "7001"))
        self.end(s, job)

    def test_without_munge_a_call_says_that_it_is_not_who_it_says(self):
        s = self.slurm(1)
        s.munge["login"].kill()
        done = s.run("squeue", "-h", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"(?i)munge|auth")
        s.munge["login"].start()
        self.assertEqual(s.run("squeue", "-h").stdout, "")

    def test_a_node_that_lost_its_power_comes_back(self):
        s = self.slurm(2, gpus=2)
        self.assertEqual(s.run("sinfo", "-h", "-o", "%G").stdout.strip(), "gpu:2")
        h2 = s.node_hosts[1]
        h2.power_off()
        s.wait_for_state("h2", "down")
        s.power_on(h2)
        s.wait_for_state("h2", "idle")


if __name__ == "__main__":
    slurm.main()
