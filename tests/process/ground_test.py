"""What a job says and does when the ground is taken away under its supervisor: its journal, its guard."""

import os
import shutil

import harness
import jobs
import recovery


class Journal(recovery.RecoveryTest):
    def test_a_job_whose_journal_is_removed_ends_with_74_and_says_why(self):  # S07
        run = self.running()
        self.beside()
        since = self.now()
        shutil.rmtree(self.path("state", "jobs"))
        failed = self.wait_for_told(run, "journal.failed")
        self.assert_seen(failed, since, 5.0)  # it looks every second
        self.assert_stage(failed, "the job's state directory or its journal was removed.*stepping down")
        done = run.finished()
        self.end_beside()
        self.assertEqual(done.status, 74, done)
        self.assertIn("root cause the journal cannot be written: the job's state directory or its journal was removed",
                      done.err)
        self.assert_nothing_left()

    def test_a_verdict_is_in_the_journal_however_long_the_last_line_of_stderr(self):
        done = self.monarch("run", self.job("head -c 70000 /dev/zero | tr '\\0' x >&2; exit 7", hosts=1, slots=1))
        self.assertEqual(done.status, 7, done)
        self.assertNotIn("error [supervisor] journal", self.supervisor_log())
        os.unlink(self.job_file("verdict.json"))
        self.assertEqual(self.monarch("wait", "last").status, 7)
        self.assert_nothing_left()


class Guard(jobs.JobTest):
    def test_a_lost_guard_is_said_to_who_looks_on(self):
        run = self.start("run", self.job(f"mark up; {jobs.FOREVER}"))
        self.wait_for_marks("up", 4)
        self.kill(self.process("guard"))
        run.wait_for_err(r"warning guard\.lost the guard of the supervisor has gone .*a crash would not be mended")
        self.assertEqual(self.monarch("stop").status, 0)
        self.assertEqual(run.wait(), 143)
        self.assert_nothing_left()


harness.main()
