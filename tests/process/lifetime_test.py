"""`lifetime`: a job that was left up is announced its end, and is stopped in order when it comes."""

import os
import signal

import harness
import jobs

QUIET = "trap 'mark told; exit 0' TERM\nmark there\nwhile :; do nap 0.05; done\n"


class Lifetime(jobs.JobTest):
    def up(self, script, **lifetime):
        done = self.monarch("up", self.job(script, hosts=1, slots=1, lifetime=lifetime))
        self.assertEqual(done.status, 0, done)
        return self.jobs()[0]

    def wait_for_end(self):
        """Without asking anybody: a question is a use."""
        path = self.job_file("verdict.json")
        harness.wait_for(lambda: os.path.exists(path), lambda: "the end of the job\n" + self.supervisor_log())
        self.assert_nothing_left()

    def assert_expired(self, cause):
        """What is told of the job afterwards: it was stopped, with 92, after it was announced once."""
        verdict = self.verdict()
        self.assertEqual((verdict["exit_code"], verdict["outcome"], verdict["left_behind"]), (92, "stopped", []), verdict)
        self.assertEqual(verdict["cause"]["kind"], "time_limit", verdict)
        self.assertRegex(verdict["reason"], cause)
        self.assertEqual(self.monarch("wait", "last").status, 92)
        told = self.monarch("events", "last", "--json").json()
        types = [event["event"] for event in told]
        expiring = [event for event in told if event["event"] == "job.expiring"]
        self.assertEqual([event["severity"] for event in expiring], ["warning"], types)
        order = [types.index(t) for t in ("job.running", "job.expiring", "job.stopping", "job.ended")]
        self.assertEqual(order, sorted(order), types)
        return expiring[0]["message"]

    def test_max_ends_a_job_whoever_looks_on(self):
        run = self.start("run", self.job(QUIET, hosts=1, slots=1, lifetime={"max": "2s"}))
        self.wait_for_marks("there", 1)
        done = run.finished()
        self.assertEqual(done.status, 92, done)
        self.assertRegex(done.err, r"lifetime\.max \(2s\) is reached in 200ms: the job is stopped then")
        self.assertEqual(self.marks("told"), [0], "the stop was an orderly one")
        self.assert_nothing_left()
        self.assert_expired(r"lifetime\.max \(2s\) reached")

    def test_max_ends_a_job_that_was_left_up(self):
        self.up(QUIET, max="2s")
        self.wait_for_end()
        self.assertEqual(self.marks("told"), [0])
        self.assertRegex(self.assert_expired(r"lifetime\.max \(2s\) reached"), r"lifetime\.max \(2s\) is reached in 200ms")

    def test_idle_ends_a_job_that_nobody_uses(self):
        self.up(QUIET, idle="2s")
        self.wait_for_end()
        self.assertEqual(self.marks("told"), [0])
        message = self.assert_expired(r"lifetime\.idle \(2s\): no viewer, no request and no output")
        self.assertRegex(message, r"lifetime\.idle \(2s\): nobody has used the job, it is stopped in 200ms")

    def test_output_and_viewers_are_uses(self):
        """The rank writes for longer than `idle`, then a viewer is there for longer than that."""
        self.up("mark there\ni=0; while [ $i -lt 60 ]; do echo word; nap 0.1; i=$((i+1)); done\nmark written\n"
                "until [ -e attached ]; do nap 0.05; done\nsleep 6; mark looked\nwhile :; do nap 0.05; done\n", idle="4s")
        self.wait_for_marks("written", 1)
        attach = self.start("attach", "last")
        attach.wait_for_err("attached")
        self.write("attached", "")
        self.wait_for_marks("looked", 1)
        self.assertIsNone(attach.status, attach)
        attach.signal(signal.SIGINT)
        attach.wait()
        self.wait_for_end()
        self.assert_expired(r"lifetime\.idle \(4s\)")


if __name__ == "__main__":
    harness.main()
