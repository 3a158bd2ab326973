"""`launch: slurm` from a login node: the job is given to sbatch, waited for in Slurm's queue, and looked at from where it was submitted.

The nodes and login share the test's folder, as the machines of a cluster share homes."""

import json
import os
import re
import signal
import time

import harness
import jobs
import recovery
import slurm
from harness import wait_for
from host import ENVIRONMENT

UP = "mark up; " + jobs.FOREVER
QUICK = {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "1s", "lease": "1500ms", "orphan_ttl": "5s"}
RECOVERS = {**QUICK, "restart": {"max": 4}, "reallocate": {"max": 4}}


class Login(slurm.SlurmTest, recovery.RecoveryTest):
    def queued(self, nodes, *command, script=UP, **keys):
        """A viewer of a job whose nodes somebody else has."""
        s = self.slurm(nodes, alike=True)
        other = s.submit("sleep 1000", f"-N{nodes}", "--exclusive")
        s.wait_for_job(other, "RUNNING")
        viewer = self.start(*(command or ["run"]), self.slurm_job(script, **keys))
        wait_for(lambda: re.search("job 2 of Slurm waits", viewer.err), lambda: viewer)
        return s, other, viewer

    def test_run_submits_follows_and_exits_as_the_job_does(self):
        s = self.slurm(3, alike=True)
        done = self.start("run", self.slurm_job('echo "rank $MONARCH_RANK on $(hostname)"; sleep 1; [ $MONARCH_RANK != 3 ] || exit 7')).finished()
        self.assertEqual(done.status, 7, done)
        self.assertEqual(sorted(set(re.findall(r"rank \d on h\d", done.out))), [f"rank {r} on h{1 + r // 2}" for r in range(4)], done)
        self.assertRegex(done.out, r"\[m/3@h2\] rank 3 on h2")
        self.assertIn("it is job 1 of Slurm", done.err)
        s.wait_for_job(1, "FAILED")
        self.assertEqual(self.verdict()["exit_code"], 7)
        shown = self.status("last")
        self.assertEqual((shown["phase"], shown["verdict"]["exit_code"]), ("ended", 7), shown)
        self.assertEqual([rank["host"] for rank in shown["meshes"][0]["ranks"]], ["h1", "h1", "h2", "h2"], shown)
        script = self.read(self.job_file("slurm.out"))
        self.assertIn("exit code 7", script)
        self.assertNotIn("rank 3 on", script, "what ranks write is not written twice")
        self.assert_nothing_left()

    def test_commands_here_see_and_steer_a_job_whose_supervisor_is_on_a_node(self):
        s = self.slurm(3, alike=True)
        up = self.start("up", self.slurm_job("echo hello; " + UP, slurm={"spares": 1})).finished()
        self.assertEqual(up.status, 0, up)
        job = up.out.strip()
        endpoint = json.loads(self.read("state", "jobs", job, "endpoint.json"))
        self.assertEqual(endpoint["host"], "h1")
        self.assertEqual(os.stat(self.job_file("endpoint.json")).st_mode & 0o777, 0o600)
        self.assertRegex(self.monarch("ps").out, rf"{job} +running")
        self.assertEqual(json.loads(self.monarch("ps", "--json").out)["hosts"], 3, "two and a spare, and none of those that Slurm may be asked for")
        status = self.status()
        self.assertEqual([host["name"] for host in status["hosts"]], ["h1", "h2", "h3"])
        self.assertEqual({rank["phase"] for rank in status["meshes"][0]["ranks"]}, {"running"})
        self.assertEqual(self.monarch("logs", job).out.count("hello"), 4)
        self.assertIn("job.running", self.monarch("events", "--json").out)
        self.assertEqual(self.monarch("signal", "CONT").status, 0)
        attached = self.start("attach", job)
        wait_for(lambda: "attached to" in attached.err, lambda: attached)
        stacks = self.monarch("stacks", "--rank", "0")
        self.assertIn("m/0 on h1", stacks.out, stacks)
        stopped = self.monarch("stop")
        self.assertEqual(stopped.status, 0, stopped)
        self.assertEqual(attached.wait(), 143, attached)
        s.wait_for_job(1, "FAILED")
        self.assert_nothing_left()

    def test_up_with_the_same_spec_again_finds_the_job(self):
        s = self.slurm(2, alike=True)
        spec = self.slurm_job(UP)
        first = self.start("up", spec).finished()
        again = self.start("up", spec).finished()
        self.assertEqual((again.status, again.out), (0, first.out), again)
        self.assertIn("its spec is unchanged", again.err)
        self.assertEqual(len(s.jobs()), 1)
        self.assertEqual(self.monarch("stop").status, 0)
        self.assert_nothing_left()

    def test_a_killed_supervisor_comes_back_and_the_viewer_here_with_it(self):
        s = self.slurm(2, alike=True)
        run = self.start("run", self.slurm_job("mark up; while [ ! -e %s/go ]; do nap 0.1; done; echo went on" % self.path("work")))
        self.wait_for_marks("up", 4)
        self.kill(self.process("supervisor"))
        wait_for(lambda: "connected again" in run.err, lambda: run, 30)
        self.write("go", "")
        done = run.finished()
        self.assertEqual(done.status, 0, done)
        self.assertEqual(done.out.count("went on"), 4, done)
        s.wait_for_job(1, "COMPLETED")
        self.assert_nothing_left()

    def test_a_viewer_that_is_killed_leaves_the_job_alone(self):
        s = self.slurm(2, alike=True)
        run = self.start("run", self.slurm_job(UP))
        self.wait_for_marks("up", 4)
        run.signal(signal.SIGKILL)
        wait_for(lambda: run.status is not None, lambda: run)
        self.assertEqual(self.status()["phase"], "running")
        self.assertEqual(self.monarch("stop").status, 0)
        s.wait_for_job(1, "FAILED")
        self.assert_nothing_left()

    def test_ctrl_c_stops_the_job_in_order(self):
        s = self.slurm(2, alike=True)
        run = self.start("run", self.slurm_job("trap 'echo saved; exit 0' TERM; " + UP))
        self.wait_for_marks("up", 4)
        run.signal(signal.SIGINT)
        done = run.finished()
        self.assertEqual(done.status, 130, done)
        self.assertEqual(done.out.count("saved"), 4, done)
        s.wait_for_job(1, "FAILED")
        self.assert_nothing_left()

    def test_what_a_job_wrote_is_shown_also_where_it_was_over_before_anybody_looked(self):
        """It begins and ends while its viewer waits for squeue's answer."""
        s, other, run = self.queued(2, script='echo "rank $MONARCH_RANK was here"')
        s.login.write("/tmp/hold", "")
        s.login.write("/usr/local/bin/squeue", "#!/bin/sh\n[ ! -e /tmp/hold ] || echo >/tmp/asked\n"
                      'while [ -e /tmp/hold ]; do sleep 0.01; done\nexec /usr/bin/squeue "$@"\n', 0o755)
        wait_for(lambda: os.path.exists(s.login.path("/tmp/asked")), lambda: run)
        s.run("scancel", str(other))
        wait_for(lambda: self.verdict_is_there() and not self.processes_of("supervisor"), lambda: run)
        s.run("rm", "/tmp/hold", "/tmp/asked")
        self.assertEqual(run.wait(), 0, run)
        self.assertEqual(sorted(re.findall(r"rank \d was here", run.out)), [f"rank {r} was here" for r in range(4)], run)
        self.assertIn("job.ended", run.err, run)
        self.assert_nothing_left()

    def test_why_it_waits_is_said_and_it_begins_by_itself_without_anybody(self):
        s, other, up = self.queued(2, "up")
        wait_for(lambda: re.search(r"job 2 of Slurm waits: (Resources|Priority)", up.err), lambda: up)
        job = self.jobs()[0]
        self.assertRegex(self.monarch("status").out, rf"^{job}  queued: job 2 of Slurm waits: (Resources|Priority)\n$")
        logs = self.monarch("logs")
        self.assertEqual((logs.status, logs.out), (0, ""), logs)
        self.assertRegex(logs.err, rf"{job} has written nothing: job 2 of Slurm waits: (Resources|Priority)\n$")
        self.assertRegex(self.monarch("ps").out, rf"{job} +queued")
        refused = self.monarch("rm", job)
        self.assertNotEqual(refused.status, 0, refused)
        self.assertIn("is in Slurm's queue", refused.err)
        up.signal(signal.SIGKILL)
        attached = self.start("attach")
        wait_for(lambda: "of Slurm waits" in attached.err, lambda: attached)
        s.run("scancel", str(other))
        self.wait_for_marks("up", 4)
        wait_for(lambda: "attached to" in attached.err, lambda: attached)
        wait_for(lambda: self.status()["phase"] == "running", self.status)
        self.assertEqual(self.monarch("stop").status, 0)
        self.assertEqual(attached.wait(), 143, attached)
        self.assert_nothing_left()

    def test_a_reason_that_no_waiting_helps_against_is_explained(self):
        self.slurm(2, alike=True)
        run = self.start("run", self.slurm_job(UP, hosts=3))
        wait_for(lambda: "job 1 of Slurm waits: PartitionNodeLimit: the partition has, or allows, fewer nodes than the job asks for" in run.err, lambda: run)
        run.signal(signal.SIGINT)
        self.assertEqual(run.finished().status, 130, run)
        self.assert_nothing_left()

    def test_ctrl_c_in_the_queue_takes_it_out(self):
        s, other, run = self.queued(2)
        run.signal(signal.SIGINT)
        done = run.finished()
        self.assertEqual(done.status, 130, done)
        self.assertEqual(s.jobs()[2], "CANCELLED")
        self.assertEqual(self.verdict()["exit_code"], 130)
        s.run("scancel", str(other))
        self.assert_nothing_left()

    def test_a_terminal_that_is_resized_meanwhile_is_no_second_ctrl_c(self):
        s, other, run = self.queued(2)
        s.login.write("/usr/local/bin/scancel", "#!/bin/sh\n[ -e %s ] || exit 1\nexec /usr/bin/scancel \"$@\"\n" % self.path("work", "may"), 0o755)
        run.signal(signal.SIGINT)
        wait_for(lambda: "trying on" in run.err, lambda: run)
        run.signal(signal.SIGWINCH)
        time.sleep(0.5)  # in which it would leave
        self.write("may", "")
        done = run.finished()
        self.assertEqual(done.status, 130, done)
        self.assertEqual(s.jobs()[2], "CANCELLED", done)
        self.assertEqual(self.verdict()["exit_code"], 130)
        s.run("/usr/bin/scancel", str(other))
        self.assert_nothing_left()

    def test_time_in_the_queue_is_none_of_the_jobs(self):
        may_take = round(harness.patience(4))
        s, other, run = self.queued(2, "run", "--timeout", f"{may_take}s")
        began = time.monotonic()
        wait_for(lambda: time.monotonic() - began > may_take + 1, "longer than the job may take", timeout=may_take + 30)
        self.assertIsNone(run.status, run)
        s.run("scancel", str(other))
        self.wait_for_marks("up", 4)
        self.assertEqual(run.wait(), 124, run)
        self.assert_nothing_left()

    def test_one_that_ended_in_the_queue_with_nobody_there_is_none_that_lives(self):
        s, other, up = self.queued(2, "up")
        up.signal(signal.SIGKILL)
        s.run("scancel", "2")
        s.wait_for_job(2, "CANCELLED")
        status = self.monarch("status", "last")
        self.assertRegex(status.out, "  ended: its job 2 of Slurm is over before a supervisor began: it is CANCELLED")
        self.assertIn("has written nothing: its job 2 of Slurm is over before", self.monarch("logs", "last").err)
        self.assertEqual(self.verdict()["exit_code"], 143)
        self.assertNotIn("queued", self.monarch("ps", "--all").out)
        self.assertEqual(self.monarch("rm", self.jobs()[0]).status, 0)
        s.run("scancel", str(other))
        self.assert_nothing_left()

    def test_what_a_shell_has_for_slurms_commands_makes_no_other_job_of_it(self):
        s = self.slurm(2, alike=True)
        hostile = {"SQUEUE_PARTITION": "nonesuch", "SQUEUE_STATES": "CANCELLED", "SBATCH_ARRAY_INX": "0-3", "SBATCH_JOB_NAME": "x",
                   "SBATCH_WAIT": "1", "SCANCEL_STATE": "PENDING"}
        run = self.start("run", self.slurm_job(UP), env=hostile)
        self.wait_for_marks("up", 4)
        self.assertEqual(s.jobs(), {1: "RUNNING"})
        self.assertEqual(self.monarch("stop", env=hostile).status, 0)
        self.assertEqual(run.wait(), 143, run)
        self.assert_nothing_left()

    def test_stop_takes_it_out_of_the_queue_and_who_waits_hears_it(self):
        s, other, run = self.queued(2)
        waiting = self.start("wait")
        stopped = self.monarch("stop")
        self.assertEqual(stopped.status, 0, stopped)
        self.assertEqual(run.wait(), 143, run)
        self.assertEqual(waiting.wait(), 143, waiting)
        self.assertEqual(s.jobs()[2], "CANCELLED")
        s.run("scancel", str(other))
        self.assert_nothing_left()

    def test_one_that_somebody_cancels_in_the_queue_has_ended(self):
        s, other, run = self.queued(2)
        s.run("scancel", "2")
        done = run.finished()
        self.assertEqual(done.status, 143, done)
        self.assertIn("its job 2 of Slurm is over before a supervisor began: it is CANCELLED", done.err)
        s.run("scancel", str(other))
        self.assert_nothing_left()

    def test_what_slurm_does_not_take_is_said_and_leaves_nothing(self):
        s = self.slurm(2, alike=True)
        for slurm_keys, why in (({"partition": "nonesuch"}, "Invalid partition"), ({"constraint": "nonesuch"}, "Invalid feature")):
            done = self.monarch("run", self.slurm_job(UP, slurm=slurm_keys))
            self.assertEqual(done.status, 2, done)
            self.assertIn("error[E0935]: Slurm did not take the job", done.err)
            self.assertIn(why, done.err)
            self.assertFalse(s.live_jobs())
        self.assert_nothing_left()

    def test_a_script_that_finds_no_monarch_says_so_here(self):
        s = self.slurm(2)
        done = self.start("run", self.slurm_job(UP)).finished()
        self.assertEqual(done.status, 69, done)
        self.assertIn("is over before a supervisor began: it is FAILED", done.err)
        self.assert_nothing_left()
        self.assertEqual(s.live_jobs(), [])

    def test_the_script_that_is_shown_runs_when_somebody_submits_it(self):
        s = self.slurm(2, alike=True)
        shown = self.monarch("up", "--print", self.slurm_job('echo "rank $MONARCH_RANK"', slurm={"time": "10m", "options": ["--comment=a b"]}))
        self.assertEqual(shown.status, 0, shown)
        self.assertIn('#SBATCH --nodes=2\n', shown.out)
        self.assertIn('#SBATCH --time=10\n', shown.out)
        self.assertIn('#SBATCH "--comment=a b"\n', shown.out)
        asked = s.run("sbatch", "--parsable", f"--output={self.path('out')}", self.write("job.sh", shown.out),
                      env={**ENVIRONMENT, **self.environment})
        s.wait_for_job(int(asked.stdout), "COMPLETED", "FAILED")
        self.assertEqual(s.jobs()[int(asked.stdout)], "COMPLETED", self.read("out"))
        self.assertEqual(sorted(re.findall(r"rank \d", self.read("out"))), [f"rank {r}" for r in range(4)])
        self.assertIn("comment", s.run("scontrol", "show", "job", asked.stdout.strip()).stdout.lower())
        self.assert_nothing_left()


if __name__ == "__main__":
    slurm.main()
