"""A running job whose journal cannot be written, or is slow to be: ranks and leases go on, decisions wait, and nothing starts unrecorded."""

import os
import shlex
import shutil
import signal
import subprocess
import time
import unittest

import harness
import jobs

STEPS = "i=0; mark there\nuntil [ -e go ]; do i=$((i+1)); echo $i > step.$MONARCH_RANK; sleep 0.02; done\n"
QUICK = {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "4s", "lease": "5s", "orphan_ttl": "6s"}


def may_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


class Storage(jobs.JobTest):
    def step(self):
        return self.count_in("step.0")

    def wait_for_steps(self, count):
        start = self.step()
        harness.wait_for(lambda: self.step() >= start + count, self.step)

    @unittest.skipUnless(may_mount(), "needs root and mount namespaces")
    def test_a_full_disk_stops_decisions_and_nothing_else(self):
        state = self.path("state")
        os.mkdir(state, 0o700)
        spec = self.job(STEPS, hosts=1, slots=1, supervision=QUICK)
        run = self.start_program("unshare", "--mount", "sh", "-c",
                                 f"mount -t tmpfs -o size=16m,mode=700 tmpfs {state} && "
                                 f"exec {shlex.quote(harness.MONARCH)} run {shlex.quote(spec)}")
        self.wait_for_marks("there", 1)
        run.wait_for_err("job.running")
        supervisor = self.process("supervisor")
        inside = f"/proc/{supervisor.pid}/root{state}"
        with open(f"{inside}/filler", "wb") as filler:
            try:
                while True:
                    filler.write(b"x" * 4096)
                    filler.flush()
            except OSError:
                pass
            finally:
                os.set_blocking(filler.fileno(), True)
                try:
                    filler.close()
                except OSError:
                    pass
        # Each time that its daemon stands still, the host is suspected and heard again: two decisions. What is left of the journal's last
        # page takes some of them.
        daemon = self.processes_of("daemon")[0]
        for _ in range(30):
            if "journal.stuck" in run.err:
                break
            for number in (signal.SIGSTOP, signal.SIGCONT):
                self.kill(daemon, number)
                due = time.monotonic() + 0.9
                harness.wait_for(lambda: time.monotonic() >= due, "the moment")
        run.wait_for_err("journal.stuck")
        self.wait_for_steps(300)  # far beyond its lease
        os.unlink(f"{inside}/filler")
        run.wait_for_err("journal.mended")
        self.write("go", "")
        self.assertEqual(run.wait(), 0, run)

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_slow_syncs_delay_starts_and_no_lease(self):
        traced = self.write("traced", "#!/bin/sh\nexec strace -D -f -qqq -o /dev/null -e trace=fdatasync "
                            "-e inject=fdatasync:delay_enter=1500000 \"$@\"\n", mode=0o755)
        run = self.start("run", self.job(STEPS, hosts=1, slots=1, supervision=QUICK), env={"MONARCH_WORKER": self.guarding(traced)})
        self.wait_for_marks("there", 1, timeout=90)
        self.wait_for_steps(200)
        events = [e["event"] for e in self.monarch("events", "last", "--json").json()]
        self.assertNotIn("host.suspect", events)
        self.write("go", "")
        self.end_of(run, 0, "succeeded", timeout=90)


if __name__ == "__main__":
    harness.main()
