"""`launch: slurm` inside of an allocation, on a real Slurm: a step for each node, and what becomes of the job when something ends one."""

import os
import re
import signal

import harness
import jobs
import slurm
import world
from harness import wait_for
from host import ENVIRONMENT

UP = "mark up; " + jobs.FOREVER
QUICK = {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "1s", "lease": "1500ms", "orphan_ttl": "5s"}
RECOVERS = {**QUICK, "restart": {"max": 4}, "reallocate": {"max": 4}}


class Inside(slurm.SlurmTest):
    def steps(self):
        """{name of the step: its id} of the only job of Slurm."""
        job, = self._slurm.jobs()
        return {name: step for step, (name, _) in self._slurm.steps(job).items()}

    def sruns(self, node):
        """The processes of the one that carries the worker's step of a node, the first one first."""
        both = [process for process in super().processes() if process.program == "srun" and
                f"--nodelist={node}".encode() in process.arguments and not any(a.endswith(b".end") for a in process.arguments)]
        return sorted(both, key=lambda process: process.parent in [other.pid for other in both])

    def test_a_job_runs_on_the_nodes_of_its_allocation(self):
        s = self.slurm(3)
        done = self.salloc(3, "run", self.slurm_job('echo "rank $MONARCH_RANK on $(hostname) of $MASTER_ADDR"', hosts=3, slots=2)).finished()
        self.assertEqual(done.status, 0, done)
        lines = sorted(re.findall(r"rank \d on h\d of \S+", done.out))
        self.assertEqual(lines, [f"rank {r} on h{1 + r // 2} of {s.node_hosts[0].address}" for r in range(6)], done)
        self.assertEqual(self.verdict()["exit_code"], 0)
        self.assert_nothing_left()
        for host in s.node_hosts:
            self.assertTrue(host.run("ls", self.environment["XDG_CACHE_HOME"] + "/monarch/worker").stdout,
                            "the worker was not shipped")

    def test_the_exit_code_is_that_of_the_first_cause(self):
        self.slurm(2)
        done = self.salloc(2, "run", self.slurm_job("[ $MONARCH_RANK != 3 ] || exit 7\n" + jobs.FOREVER)).finished()
        self.assertEqual(done.status, 7, done)
        self.assert_nothing_left()

    def test_the_template_for_sbatch_runs_a_spec(self):
        s = self.slurm(2, alike=True)
        spec = self.slurm_job('echo "rank $MONARCH_RANK on $(hostname)"')
        template = os.path.join(world.ROOT, "scripts", "monarch.sbatch")
        asked = s.run("sbatch", "--parsable", "-N2", f"--chdir={self.path('work')}", "--output=out", "--error=err", template, spec, "--quiet",
                      env={**ENVIRONMENT, **self.environment, "MONARCH": harness.MONARCH})
        job = int(asked.stdout)
        s.wait_for_job(job, "COMPLETED", "FAILED")
        out, err = self.read("work", "out"), self.read("work", "err")
        self.assertEqual(s.jobs()[job], "COMPLETED", out + err)
        self.assertEqual(sorted(re.findall(r"rank \d on h\d", out)), [f"rank {r} on h{1 + r // 2}" for r in range(4)], out + err)
        self.assert_nothing_left()

    def test_sbatch_that_is_told_that_its_time_is_over_stops_the_job_in_order(self):
        s = self.slurm(2, alike=True)
        spec = self.slurm_job("trap 'echo saved; exit 0' TERM; mark up; " + jobs.FOREVER)
        template = os.path.join(world.ROOT, "scripts", "monarch.sbatch")
        asked = s.run("sbatch", "--parsable", "-N2", f"--chdir={self.path('work')}", "--output=out", "--error=err", template, spec,
                      env={**ENVIRONMENT, **self.environment, "MONARCH": harness.MONARCH})
        job = int(asked.stdout)
        self.wait_for_marks("up", 4)
        s.run("scancel", "--batch", "--signal=TERM", str(job))
        s.wait_for_job(job, "COMPLETED", "FAILED")
        self.assertEqual(self.read("work", "out").count("saved"), 4, self.read("work", "out") + self.read("work", "err"))
        self.assertEqual(self.verdict()["exit_code"], 143)
        self.assert_nothing_left()

    def test_a_node_that_loses_its_power_is_replaced_by_a_spare(self):
        s = self.slurm(3)
        run = self.salloc(3, "run", self.slurm_job(UP, hosts=2, slots=2, slurm={"spares": 1}, mesh={"gang": "host"}, supervision=RECOVERS))
        before = self.wait_for_marks("up", 4)
        s.node_hosts[1].power_off()
        wait_for(lambda: self.hosts_of_marks("up").get(2) == "h3", lambda: f"rank 2 on h3\n{run!r}")
        self.wait_for_marks("up", 4)
        self.assertEqual(before[:2], self.wait_for_marks("up", [0, 1]), "the healthy gang went on")
        self.stop(run)
        self.assert_nothing_left()

    def test_a_script_that_ups_hears_how_long_that_holds_and_wait_waits(self):
        s = self.slurm(2)
        spec = self.slurm_job("mark up; while [ ! -e /tmp/go ]; do nap 0.05; done")
        run = self.start_program("salloc", "--quiet", "--no-kill", "-N2", "/bin/sh", "-c",
                                 f'job=$({harness.MONARCH} up "$1") && exec {harness.MONARCH} wait "$job"', "sh", spec)
        run.wait_for_err(r"Slurm ends it with its job \d+, once .*: `monarch wait \S+` waits for it")
        self.wait_for_marks("up", 4)
        for host in s.node_hosts:
            host.write("/tmp/go", "")
        self.assertEqual(run.wait(), 0, run)
        for host in s.node_hosts:
            host.run("rm", "/tmp/go")
        self.assert_nothing_left()

    def test_a_worker_outlives_its_srun(self):
        self.slurm(2)
        run = self.salloc(2, "run", self.slurm_job(UP, supervision=RECOVERS))
        before = self.wait_for_marks("up", 4)
        for srun in self.sruns("h2")[::-1]:
            self.kill(srun)  # the second one first: it would end the step
        wait_for(lambda: "its step goes on without it" in self.supervisor_log(), self.supervisor_log)
        self.assertEqual(self.status()["hosts"][1]["phase"], "ready")
        seen = self.monarch("status")
        self.assertEqual((seen.status, seen.err), (0, ""), "the spec is what it was, also outside of the allocation")
        self.stop(run)
        self.assertEqual(before, self.wait_for_marks("up", 4))
        self.assert_nothing_left()

    def test_a_worker_whose_srun_is_killed_at_its_head_is_replaced_at_once(self):
        s = self.slurm(3)
        slow = {**RECOVERS, "heartbeat": "5s", "suspect_after": "15s", "lost_after": "20s", "lease": "25s"}
        run = self.salloc(3, "run", self.slurm_job(UP, slurm={"spares": 1}, mesh={"gang": "host"}, supervision=slow))
        before = self.wait_for_marks("up", 4)
        self.kill(self.sruns("h2")[0])
        wait_for(lambda: all(os.path.exists(s.node_hosts[2].path(f"/tmp/up.{rank}")) for rank in (2, 3)),
                 lambda: f"ranks 2 and 3 anew\n{run!r}\n{self.supervisor_log()}", 15)
        self.assertEqual(before[:2], self.wait_for_marks("up", [0, 1]), "the healthy gang went on")
        self.stop(run)
        self.assert_nothing_left()

    def test_a_worker_that_is_killed_is_seen_by_the_end_of_its_step_and_its_ranks_begin_again(self):
        s = self.slurm(3)
        # Slower than Slurm is: what is seen is not its silence.
        slow = {**RECOVERS, "heartbeat": "5s", "suspect_after": "15s", "lost_after": "20s", "lease": "25s"}
        run = self.salloc(3, "run", self.slurm_job(UP, slurm={"spares": 1}, mesh={"gang": "host"}, supervision=slow))
        before = self.wait_for_marks("up", 4)
        self.kill_all([process for role in ("keeper", "daemon") for process in self.processes_of(role, "h2")])
        wait_for(lambda: all(os.path.exists(s.node_hosts[2].path(f"/tmp/up.{rank}")) for rank in (2, 3)),
                 lambda: f"ranks 2 and 3 anew\n{run!r}\n{self.supervisor_log()}", 15)
        self.assertEqual(before[:2], self.wait_for_marks("up", [0, 1]), "the healthy gang went on")
        self.stop(run)
        self.assert_nothing_left()

    def test_a_supervisor_that_is_killed_comes_back_to_its_steps(self):
        self.slurm(2)
        run = self.salloc(2, "run", self.slurm_job(UP, supervision=RECOVERS))
        before = self.wait_for_marks("up", 4)
        steps = self.steps()
        self.kill(self.process("supervisor"))
        wait_for(lambda: "the supervisor before it ended unexpectedly" in self.supervisor_log(), self.supervisor_log)
        wait_for(lambda: all(host["phase"] == "ready" for host in self.status()["hosts"]), "both hosts")
        self.assertEqual(steps, self.steps())
        self.stop(run)
        self.assertEqual(before, self.wait_for_marks("up", 4))
        self.assert_nothing_left()

    def test_ranks_are_started_again_in_place_while_the_controller_is_away_and_the_job_ends(self):
        s = self.slurm(2)
        run = self.salloc(2, "run", self.slurm_job("mark up; [ -e /tmp/again.0 ] && exit 0; " + jobs.FOREVER, supervision=RECOVERS))
        before = self.wait_for_marks("up", 4)
        s.controller.kill()
        for host in s.node_hosts:
            host.write("/tmp/again.0", "")
        os.kill(next(p.pid for h, p in self.on_hosts() if h.name == "h2" and p.environment & {b"MONARCH_RANK=2"}), signal.SIGKILL)
        wait_for(lambda: self.verdict_is_there(), lambda: f"a verdict\n{run!r}\n{self.supervisor_log()}")
        self.assertNotEqual(before, self.wait_for_marks("up", 4))
        self.assertEqual(self.verdict()["exit_code"], 0, self.supervisor_log())
        s.controller.start()
        run.wait()
        self.assert_nothing_left()

    def test_a_node_that_is_cut_off_is_replaced_and_what_ran_there_has_ended_when_it_is_back(self):
        s = self.slurm(3)
        run = self.salloc(3, "run", self.slurm_job(UP, hosts=2, slots=2, slurm={"spares": 1}, mesh={"gang": "host"}, supervision=RECOVERS))
        self.wait_for_marks("up", 4)
        h2, h3 = s.node_hosts[1:]
        h2.unplug()
        wait_for(lambda: all(os.path.exists(h3.path(f"/tmp/up.{rank}")) for rank in (2, 3)), lambda: f"ranks 2 and 3 anew\n{run!r}", 15)
        wait_for(lambda: not [p for h, p in self.on_hosts() if h is h2 and b"MONARCH_RANK=2" in p.environment], "the end of rank 2 there")
        s.wait_for_state("h2", "down")
        h2.plug()
        self.stop(run)
        self.assert_nothing_left()

    def test_ranks_are_started_again_in_place_while_the_controller_stands_still(self):
        s = self.slurm(2)
        run = self.salloc(2, "run", self.slurm_job(UP, mesh={"gang": "host"}, supervision=RECOVERS))
        before = self.wait_for_marks("up", 4)
        s.controller.stop()
        rank = next(p for h, p in self.on_hosts() if h.name == "h2" and p.environment & {b"MONARCH_RANK=2"})
        os.kill(rank.pid, signal.SIGKILL)
        wait_for(lambda: self.wait_for_marks("up", 4)[2:] != before[2:], lambda: f"ranks 2 and 3 anew\n{run!r}", 10)
        s.controller.cont()
        self.stop(run)
        self.assert_nothing_left()

    def test_an_allocation_that_is_cancelled_ends_the_job_and_no_host_is_launched_again(self):
        s = self.slurm(3)
        run = self.salloc(3, "run", self.slurm_job(UP, slurm={"spares": 1}, supervision=RECOVERS))
        self.wait_for_marks("up", 4)
        job, = s.jobs()
        s.run("scancel", str(job))
        wait_for(self.verdict_is_there, lambda: f"a verdict\n{run!r}\n{self.supervisor_log()}", 15)
        self.assertEqual(self.verdict()["exit_code"], 143, self.verdict())
        self.assertIn(f"Slurm, whose job {job} is over", self.verdict()["reason"])
        run.wait()
        self.assert_nothing_left()

    def test_the_doctor_says_what_it_takes(self):
        s = self.slurm(2)
        spec = self.slurm_job("true")
        inside = self.salloc(2, "doctor", spec).finished()
        self.assertEqual(inside.status, 0, inside)
        self.assertRegex(inside.out, r"launch.slurm +fine +sbatch, srun, squeue, scancel, sinfo and scontrol are in PATH\n")
        self.assertRegex(inside.out, r"launch.slurm +fine +job 1 has 2 nodes\n")
        outside = self.monarch("doctor", spec)
        self.assertRegex(outside.out, r"launch.slurm +fine +this shell is in no allocation: sbatch is asked for one\n")
        os.symlink("/nonexistent", s.login.path("/usr/local/bin/srun"))
        without = self.monarch("doctor", spec, env={"PATH": "/usr/local/bin"})
        self.assertEqual(without.status, 1, without)
        self.assertRegex(without.out, r"launch.slurm +failed +no sbatch in PATH\n")

    def test_an_allocation_that_is_too_small_is_refused_with_both_numbers(self):
        self.slurm(2)
        done = self.salloc(2, "run", self.slurm_job("true", hosts=2, slurm={"spares": 1})).finished()
        self.assertEqual(done.status, 2, done)
        self.assertIn("error[E0304]: the job needs 3 nodes, and job 1 of Slurm has 2", done.err)
        self.assert_nothing_left()


if __name__ == "__main__":
    slurm.main()
