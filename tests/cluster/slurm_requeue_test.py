"""`on_preempt: requeue | successor`: a job whose nodes Slurm takes goes on as another one, from its newest checkpoint, when Slurm has nodes
again; what follows it at login follows on. On a real Slurm."""

import json
import os
import re

import harness
import slurm
import world
from harness import wait_for

# Commits a step every tenth of a second, from where its gang is said to go on, until the file is there, or the job is stopped.
# Slurm's own TERM is none of its business.
STEPS = """export PYTHONDONTWRITEBYTECODE=1; exec /usr/bin/python3 -c '
import os, signal, sys, time
sys.path.insert(0, "{root}/worker/python")
import monarch_rank
signal.signal(signal.SIGTERM, signal.SIG_IGN)
had = monarch_rank.committed()
step = had["step"] if had else 0
print("begins at", step, "what", had["what"] if had else "-", "generation", os.environ["MONARCH_GENERATION"], flush=True)
while not os.path.exists("{folder}/enough"):
    step += 1
    monarch_rank.commit(step, "ckpt." + str(step))
    for event in monarch_rank.events(0.1):
        if event["event"] == "stopping":
            sys.exit(0)
print("ends at", step, flush=True)
'
"""
RECOVERS = {"restart": {"max": 4}, "reallocate": {"max": 4}}
BEGINS = re.compile(r"begins at (\d+) what (\S+) generation (\d+)")


class Continued(slurm.SlurmTest):
    def stepping(self, slurm_keys, hosts=2, slots=1):
        return self.slurm_job(STEPS.format(root=world.ROOT, folder=self.path("work")), hosts, slots, slurm=slurm_keys, mesh={"stop": {"grace": "2s"}},
                              supervision=RECOVERS)

    def continued(self, job):
        """The id of the job that goes on from it."""
        path = self.path("state", "jobs", job, "continued.json")
        wait_for(lambda: os.path.exists(path), lambda: f"{path}\n{self.supervisor_log()}", 60)
        with open(path) as file:
            return json.load(file)["job"]

    def lines(self, job):
        return self.monarch("logs", job).out

    def first_job(self):
        """The one that a script has begun: its folder is there a moment before what is in it."""
        def begun():
            jobs = self.jobs()
            return jobs and os.path.exists(self.job_file("spec.yaml", jobs[0])) and jobs[0]
        return wait_for(begun, "a job", 60)

    def committed(self, job, step):
        wait_for(lambda: any(line["step"] >= step for mesh in self.status(job).get("meshes", []) for line in mesh.get("committed", [])),
                 lambda: f"step {step}\n{self.supervisor_log()}", 60)

    def enough(self):
        self.write("enough", "")

    def verdict_of(self, job):
        with open(self.path("state", "jobs", job, "verdict.json")) as file:
            return json.load(file)

    def assert_well(self, job):
        waited = self.monarch("wait", job)
        self.assertEqual(waited.status, 0, f"{waited}\n{self.supervisor_log()}")

    def assert_goes_on(self, before, after):
        """What the second saw is what the first had committed last."""
        self.assertEqual({found[1:] for found in BEGINS.findall(self.lines(before))}, {("-", "1")})
        last = max(line["step"] for mesh in self.status(before)["meshes"] for line in mesh["committed"])
        wait_for(lambda: len(BEGINS.findall(self.lines(after))) == 2, lambda: self.lines(after))
        began = set(BEGINS.findall(self.lines(after)))
        self.assertEqual(began, {(str(last), f"ckpt.{last}", "2")}, self.lines(after))

    def script(self, spec, *options):
        template = os.path.join(world.ROOT, "scripts", "monarch.sbatch")
        asked = self.start_program("sbatch", "--parsable", "-N2", f"--output={self.path('work', 'out')}", *options, template, spec,
                                   env={"MONARCH": harness.MONARCH}).finished()
        return int(asked.out)

    def test_a_preempted_job_of_a_script_is_requeued_and_goes_on(self):
        s = self.slurm(2, alike=True, grace=15, requeued_after=5)
        job = self.script(self.stepping({"on_preempt": "requeue"}), "-p", "low", "-t", "60")
        first = self.first_job()
        self.committed(first, 3)
        taker = s.submit("sleep 3", "-p", "high", "-N2", "--exclusive")
        second = self.continued(first)
        watcher = self.start("wait", first)
        s.wait_for_job(taker, "COMPLETED")
        self.committed(second, 1)
        verdict = self.verdict_of(first)
        self.assertEqual((verdict["exit_code"], verdict["reason"]), (92, f"Slurm preempts its job {job}; it goes on as {second}"))
        self.assertEqual(verdict["cause"]["rule"], "launch.slurm.on_preempt: requeue")
        self.assert_goes_on(first, second)
        self.enough()
        self.assertEqual(watcher.wait(), 0, watcher)
        self.assertIn(f"{first} goes on as {second}", watcher.err)
        s.wait_for_job(job, "COMPLETED")
        self.assertEqual(self.jobs(), [first, second])
        self.assert_nothing_left()

    def test_what_follows_a_job_from_login_follows_on(self):
        s = self.slurm(2, alike=True, grace=15, requeued_after=5)
        run = self.start("run", self.stepping({"on_preempt": "requeue", "partition": "low", "time": "60m"}))
        wait_for(lambda: BEGINS.search(run.out), lambda: run, 60)
        first, = self.jobs()
        self.committed(first, 3)
        taker = s.submit("sleep 3", "-p", "high", "-N2", "--exclusive")
        second = self.continued(first)
        removed = self.monarch("rm", first)
        self.assertEqual(removed.status, 2, removed)
        self.assertIn(f"{second}, which has not ended, goes on from {first}", removed.err)
        # Before that, it says of the first one that it ends.
        wait_for(lambda: re.search("job 1 of Slurm waits|its supervisor has not begun", self.monarch("status", second).out),
                 lambda: self.monarch("status", second))
        s.wait_for_job(taker, "COMPLETED")
        self.committed(second, 1)
        self.enough()
        self.assertEqual(run.wait(), 0, run)
        self.assert_goes_on(first, second)
        self.assertEqual(self.monarch("rm", first).status, 0)
        self.assertEqual(run.out.count("begins at"), 4, run)
        self.assertIn(f"{first} goes on as {second}", run.err)
        self.assertEqual(set(self._slurm.jobs()), {1, taker}, "the same job of Slurm's")
        self.assert_nothing_left()

    def test_a_successor_goes_on_when_the_time_is_over(self):
        s = self.slurm(2, alike=True)
        run = self.start("run", self.stepping({"on_preempt": "successor", "time": "1m", "warn": "25s"}))
        wait_for(lambda: BEGINS.search(run.out), lambda: run, 60)
        first, = self.jobs()
        second = self.continued(first)
        self.committed(second, 1)
        self.assertEqual(self.verdict_of(first)["reason"], f"the time of Slurm's job 1 is nearly over; it goes on as {second}")
        self.enough()
        self.assertEqual(run.wait(), 0, run)
        self.assert_goes_on(first, second)
        self.assertEqual(len(s.jobs()), 2, s.jobs())
        self.assert_nothing_left()

    def test_a_job_that_somebody_requeues_goes_on(self):
        """Who requeues it stops it, for whoever follows it; its script runs again."""
        s = self.slurm(2, alike=True, requeued_after=5)
        run = self.start("run", self.stepping({"on_preempt": "requeue"}))
        wait_for(lambda: BEGINS.search(run.out), lambda: run, 60)
        first, = self.jobs()
        self.committed(first, 3)
        s.run("scontrol", "requeue", "1")
        self.assertEqual(run.wait(), 143, run)
        second = self.continued(first)
        self.committed(second, 1)
        self.enough()
        self.assert_well(second)
        self.assert_goes_on(first, second)
        self.assert_nothing_left()

    def test_a_job_whose_supervisor_was_killed_with_its_node_goes_on(self):
        """An operator requeues what Slurm has left running; no verdict of its own, and no word of who goes on."""
        s = self.slurm(4, alike=True, requeued_after=5)
        job = self.script(self.stepping({"on_preempt": "requeue"}), "--requeue", "--comment=mine")
        first = self.first_job()
        self.committed(first, 3)
        self.w["h1"].power_off()
        s.wait_for_state("h1", "down", 60)
        s.run("scontrol", "requeue", str(job))
        second = self.continued(first)
        self.committed(second, 1)
        self.enough()
        self.assert_well(second)
        self.assert_goes_on(first, second)
        self.assertEqual(self.verdict_of(first)["exit_code"], 92)
        self.assertEqual(self.verdict_of(first)["reason"],
                         f"Slurm has requeued its job {job}, which ended the supervisor; it goes on as {second}")
        os.unlink(self.path("run", "monarch", f"{first}.sock"))  # a node that loses its power takes its own along
        self.clean(self.up())
        self.assert_nothing_left()

    def test_what_slurm_does_not_requeue_says_so(self):
        s = self.slurm(2, alike=True, grace=15, requeued_after=5)
        run = self.start_program("salloc", "--quiet", "--no-kill", "-N2", "-p", "low", "-t", "60", harness.MONARCH, "run",
                                 self.stepping({"on_preempt": "requeue"}))
        wait_for(lambda: BEGINS.search(run.out), lambda: run, 60)
        first, = self.jobs()
        self.committed(first, 3)
        s.submit("sleep 0.1", "-p", "high", "-N2", "--exclusive")
        second = self.continued(first)
        self.assertEqual(run.wait(), 92, run)
        self.assertIn("Slurm requeues jobs of sbatch, and this shell is in one of salloc", run.err)
        wait_for(lambda: os.path.exists(self.path("state", "jobs", second, "verdict.json")), "its verdict")
        verdict = self.verdict_of(second)
        self.assertEqual(verdict["exit_code"], 92)
        self.assertRegex(verdict["reason"], "^Slurm did not take it: ")
        self.assertEqual(self.start("wait", first).finished().status, 92)
        self.assert_nothing_left()

    def test_a_script_of_ones_own_has_no_successor(self):
        self.slurm(2, alike=True)
        done = self.salloc(2, "run", self.stepping({"on_preempt": "successor"})).finished()
        self.assertEqual(done.status, 2, done)
        self.assertIn("error[E0911]: `launch.slurm.on_preempt: successor` is for a job that monarch submits", done.err)
        self.assertEqual(self.jobs(), [])
        self.assert_nothing_left()


if __name__ == "__main__":
    slurm.main()
