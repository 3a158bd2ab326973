"""A command that cannot write its result says so and exits with 74; one that follows a job goes on with it."""

import harness
import jobs

LOST = "error[E0936]: what was to be printed is lost: stdout: No space left on device\n"


class LostOutput(jobs.JobTest):
    def full(self, *arguments):
        with open("/dev/full", "wb") as full:
            run = self.start(*arguments, stdout=full.fileno())
            run.wait()
            return run.finished()

    def test_of_a_command_that_prints_a_result(self):
        spec = self.job("echo out")
        self.assertEqual(self.monarch("run", "-q", spec).status, 0)
        for line in ("version", "--help", "run --help", "ps --all", "explain E0101", "init -", "completion bash", f"plan {spec}",
                     f"validate {spec}", f"validate --json {spec}", "status last", "events last", "wait last --json", "logs last"):
            with self.subTest(line):
                done = self.full(*line.split())
                self.assertEqual(done.status, 74, done)
                self.assertIn(LOST, done.err)

    def test_of_a_job_that_ends_well(self):
        spec = self.job("echo out; echo err >&2", hosts=1, slots=1)
        done = self.full("run", "-q", spec)
        self.assertEqual(done.status, 74, done)
        self.assertIn(LOST, done.err)
        on_stderr = self.start_program("/bin/sh", "-c", 'exec "$@" 2>/dev/full', "sh", harness.MONARCH, "run", "-q", spec).finished()
        self.assertEqual(on_stderr.status, 74, on_stderr)
        self.assert_nothing_left()

    def test_of_a_job_that_goes_on(self):
        done = self.full("run", self.job("echo out; exit 5", slots=2))
        self.assertEqual(done.status, 5, done)
        self.assertIn("monarch: stdout: No space left on device; what ranks write is in the logs", done.err)
        self.assert_nothing_left()

    def test_a_reader_that_goes_away_is_no_failure(self):
        done = self.start_program("/bin/bash", "-c", f"{harness.MONARCH} explain --json | true; exit ${{PIPESTATUS[0]}}").finished()
        self.assertEqual((done.status, done.err), (0, ""))


if __name__ == "__main__":
    harness.main()
