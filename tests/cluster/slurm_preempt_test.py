"""Slurm wants the nodes back: ranks are told, what ends by that is not started again, and the job ends with 92. On a real Slurm."""

import glob
import json

import harness
import slurm
import world
from harness import wait_for

RECOVERS = {"restart": {"max": 4}, "reallocate": {"max": 4}}
# As a rank that saves at the word: it has a second where Slurm's own TERM, which comes to it as well, would end others.
PATIENT = {"stop": {"grace": "2s"}}
# Writes down each event, and saves when it is told to. TERM is left to its default in a rank that does not listen.
LISTENS = f"""export PYTHONDONTWRITEBYTECODE=1; exec /usr/bin/python3 -c '
import json, os, signal, sys
sys.path.insert(0, "{world.ROOT}/worker/python")
import monarch_rank
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open("/tmp/up." + os.environ["MONARCH_RANK"] + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename(file.name, file.name[:-4])
told = []
for event in monarch_rank.events():
    told.append(event)
    with open("/tmp/told." + os.environ["MONARCH_RANK"] + ".new", "w") as file:
        json.dump(told, file)
    os.rename(file.name, file.name[:-4])
    if event["event"] == "stopping":
        sys.exit(0)
'
"""
DEAF = "mark up; exec sleep 1000\n"


def told(test, rank):
    """What that rank wrote down, of its host's file."""
    for host in test.up():
        for path in glob.glob(host.path(f"/tmp/told.{rank}")):
            return json.loads(world.read(path))
    return []


def assert_told(test, ranks):
    for rank in range(ranks):
        words = told(test, rank)
        test.assertEqual([event["event"] for event in words], ["preempted", "checkpoint_now", "stopping"], words)
    return words[0]


class Preempted(slurm.SlurmTest):
    def assert_ended(self, run, reason):
        self.assertEqual(run.wait(), 92, run)
        verdict = self.verdict()
        self.assertEqual((verdict["exit_code"], verdict["reason"]), (92, reason))
        log = self.supervisor_log()
        self.assertNotIn("gang.failed", log)
        self.assertEqual(log.count("gang.running"), 1, log)
        self.assert_nothing_left()

    def run_it(self, s, script, partition, limit="60", **keys):
        run = self.start_program("salloc", "--quiet", "--no-kill", "-N2", "-p", partition, "-t", limit, harness.MONARCH, "run",
                                 self.slurm_job(script, supervision=RECOVERS, **keys))
        self.wait_for_marks("up", 4)
        job, = s.jobs()
        return run, job

    def test_ranks_of_a_preempted_job_are_told_and_the_job_stops_in_its_grace(self):
        s = self.slurm(2, grace=15)
        run, job = self.run_it(s, LISTENS, "low", mesh=PATIENT)
        taker = s.submit("sleep 0.1", "-p", "high", "-N2", "--exclusive")
        wait_for(self.verdict_is_there, lambda: f"a verdict\n{run!r}\n{self.supervisor_log()}", 30)
        word = assert_told(self, 4)
        self.assertEqual(word["why"], f"Slurm preempts its job {job}")
        self.assertTrue(8_000 < word["left_milliseconds"] <= 15_000, word)
        self.assertTrue(0 < word["stop_milliseconds"] < word["left_milliseconds"], word)
        self.assertIn("job.preempted", self.supervisor_log())
        s.wait_for_job(taker, "COMPLETED")
        self.assert_ended(run, f"Slurm preempts its job {job}")

    def test_of_a_job_without_a_time_limit_slurm_does_not_say_how_long_its_grace_is(self):
        s = self.slurm(2, grace=15)
        run, job = self.run_it(s, LISTENS, "low", limit="UNLIMITED", mesh={"stop": {"grace": "1s"}})
        s.submit("sleep 0.1", "-p", "high", "-N2", "--exclusive")
        wait_for(self.verdict_is_there, lambda: f"a verdict\n{run!r}\n{self.supervisor_log()}", 30)
        self.assertLessEqual(assert_told(self, 4)["left_milliseconds"], 1000 * slurm.KILL_WAIT_S)
        self.assert_ended(run, f"Slurm preempts its job {job}")

    def test_ranks_that_end_by_slurms_own_signal_are_not_started_again(self):
        s = self.slurm(2, grace=15)
        run, job = self.run_it(s, DEAF, "low")
        s.submit("sleep 0.1", "-p", "high", "-N2", "--exclusive")
        wait_for(self.verdict_is_there, lambda: f"a verdict\n{run!r}\n{self.supervisor_log()}", 30)
        self.assert_ended(run, f"Slurm preempts its job {job}")

    def test_a_signal_of_an_operator_is_the_word_that_the_end_is_near(self):
        s = self.slurm(2)
        run, job = self.run_it(s, LISTENS, "main", mesh={"stop": {"grace": "1s"}})
        s.run("scancel", "--signal=TERM", str(job))
        wait_for(self.verdict_is_there, lambda: f"a verdict\n{run!r}\n{self.supervisor_log()}", 15)
        word = assert_told(self, 4)
        self.assertLessEqual(word["left_milliseconds"], 1000 * slurm.KILL_WAIT_S)
        self.assert_ended(run, f"Slurm has signalled its job {job}")


if __name__ == "__main__":
    slurm.main()
