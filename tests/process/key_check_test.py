"""A start and the self-test of the key check, which goes on beside it: nobody is let in and nothing is launched before it has passed."""

import re
import shutil
import subprocess
import unittest

import harness
import jobs

# Of a thread's second question: the self-test has two connections, of which one I/O thread asks whether they stand (tcp_connecter.cpp).
TRACE = "exec strace -D -f -y -qqq -ttt -o {trace} -e trace=getsockopt,accept4,write,fdatasync -e inject=getsockopt:{what}:when=2 \"$@\"\n"
SLOW_US = 300_000  # a handshake has 2 s


def can_inject():
    if shutil.which("strace") is None:
        return False
    tried = subprocess.run(["strace", "-D", "-f", "-qqq", "-o", "/dev/null", "-e", "inject=getsockopt:error=ECONNREFUSED:when=2", "true"],
                           stderr=subprocess.DEVNULL, check=False)
    return tried.returncode == 0


@unittest.skipUnless(can_inject(), "needs strace, and the right to trace")
class KeyCheck(jobs.JobTest):
    def started(self, what):
        traced = self.write("traced", "#!/bin/sh\n" + TRACE.format(trace=self.path("trace"), what=what), mode=0o755)
        return self.start("run", self.job("mark there"), env={"MONARCH_WORKER": self.guarding(traced)}).finished()

    def times(self, pattern):
        return [float(at) for at in re.findall(r"^\d+ +([0-9.]+) " + pattern, self.read("trace"), re.MULTILINE)]

    def test_a_start_whose_self_test_fails(self):
        done = self.started("error=ECONNREFUSED")
        self.assertEqual(done.status, 70, done)
        self.assertRegex(done.err, r"error\[E0908\]: the self-test of the key check failed: .*\n  = help: its log is .*/supervisor\.log")
        self.assert_nothing_left()
        self.assertEqual(self.marks("there"), [])
        self.assertNotIn("job.starting", self.log("supervisor.log"), "nothing is launched")
        self.assertRegex(self.verdict()["reason"], r"^the supervisor did not start: the self-test of the key check failed: ")

    def test_the_first_record_becomes_durable_meanwhile(self):
        done = self.started(f"delay_exit={SLOW_US}")
        self.assertEqual(done.status, 0, done)
        self.assertEqual(len(self.marks("there")), 4)
        ready, = self.times(r"write\([^ ]*, \"\{\\\"ready\\\":true")
        synced = [at for at in self.times(r"fdatasync\([^ ]*/journal\.0001") if at < ready]
        self.assertEqual(len(synced), 2, "the term, and that the job has begun")
        accepted = self.times(r"accept4\(.*sa_family=AF_INET")
        self.assertEqual(len([at for at in accepted if at < ready]), 2, "the self-test's own, and nobody else")
        self.assertGreater(len(accepted), 2)


if __name__ == "__main__":
    harness.main()
