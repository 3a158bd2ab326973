"""`monarch signal` on a real job: who gets it, what is said of it, and what KILL, STOP and CONT do."""

import re
import signal

import harness
import jobs

COUNTS = "trap 'echo got USR1' USR1; trap 'echo got HUP' HUP; mark there\n" + jobs.FOREVER


class Signals(jobs.JobTest):
    def up(self, script=COUNTS, ranks=4, **keys):
        done = self.monarch("up", self.job(script, **keys))
        self.assertEqual(done.status, 0, done)
        self.pids = self.wait_for_marks("there", ranks)
        return done.out.strip()

    def assert_sent(self, words, *arguments):
        done = self.monarch("signal", *arguments)
        self.assert_output(done, 0, words + "\n", "")

    def wait_for_log(self, line, ranks):
        def who():
            return sorted(set(map(int, re.findall(rf"m/(\d)@v\d\] {line}$", self.monarch("logs").out, re.MULTILINE))))
        harness.wait_for(lambda: who() == ranks, lambda: f"{line} of {ranks}, not of {who()}")

    def state_of(self, pid):
        return self.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0]

    def phases(self, job):
        return [rank["phase"] for rank in self.status(job)["meshes"][0]["ranks"]]

    def test_a_signal_reaches_who_is_meant_and_nobody_else(self):
        job = self.up()
        self.assert_sent(f"SIGUSR1 was sent to 4 ranks of {job}", job, "USR1")
        self.wait_for_log("got USR1", [0, 1, 2, 3])
        self.assert_sent(f"SIGHUP was sent to 2 ranks of {job}", "sighup", "--at", "host=1")
        self.wait_for_log("got HUP", [2, 3])
        self.assert_sent(f"SIGUSR1 was sent to 1 rank of {job}", "last", str(int(signal.SIGUSR1)), "--rank", "0")
        for wrong in (["--generation", "2"], ["--host", "v1", "--rank", "3"]):
            none = self.monarch("signal", job, "USR1", *wrong)
            self.assert_output(none, 2, "", re.compile(rf"error\[E0923\]: nothing of {job} is selected\n.*\n"))
        self.assertEqual(self.monarch("stop", job).status, 0)
        self.assertNotIn("got HUP", self.monarch("logs", job, "--rank", "0-1").out)
        ended = self.monarch("signal", job, "USR1")
        self.assert_output(ended, 2, "", re.compile(rf"error\[E0923\]: {job} has ended: .*\n.*\n"))
        self.assert_nothing_left()

    def test_a_rank_that_is_killed_is_the_first_cause(self):
        job = self.up()
        self.assert_sent(f"SIGKILL was sent to 1 rank of {job}", "KILL", "--rank", "2")
        self.assertEqual(self.monarch("wait", job).status, 137)
        cause = self.verdict()["cause"]
        self.assertEqual((cause["rank"], cause["summary"]), (2, "killed by SIGKILL"), cause)
        self.assert_nothing_left()

    def test_a_rank_that_was_stopped_goes_on_and_can_be_ended(self):
        job = self.up()
        self.assert_sent(f"SIGSTOP was sent to 2 ranks of {job}", "STOP", "--at", "slot=0")
        harness.wait_for(lambda: self.state_of(self.pids[0]) == self.state_of(self.pids[2]) == "T", "two stopped ranks")
        self.assertNotEqual(self.state_of(self.pids[1]), "T")
        # Its host tells it with the next beat. It counts as running no more, and is still there to be signalled.
        harness.wait_for(lambda: self.phases(job) == ["suspended", "running", "suspended", "running"],
                         lambda: f"two suspended ranks: {self.phases(job)}")
        self.assertRegex(self.monarch("status", job).out, r"(?m)^  2     v2    suspended  \d+ ")
        self.assertEqual(self.monarch("ps", "--json").json()[0]["ranks_running"], 2)
        self.assert_sent(f"SIGCONT was sent to 1 rank of {job}", "CONT", "--rank", "0")
        harness.wait_for(lambda: self.state_of(self.pids[0]) != "T", "a rank that goes on")
        harness.wait_for(lambda: self.phases(job)[0] == "running", lambda: f"rank 0 running: {self.phases(job)}")
        self.assert_sent(f"SIGUSR1 was sent to 1 rank of {job}", "USR1", "--rank", "0")
        self.wait_for_log("got USR1", [0])
        # Rank 2 is still stopped: the orderly stop continues it, and it ends by the stop signal and not after the grace.
        self.assertEqual(self.monarch("stop", job, "--timeout", "20s").status, 0)
        self.assertEqual({r["end"] for r in self.status(job)["meshes"][0]["ranks"]}, {"killed by SIGTERM"})
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
