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
    def test_a_full_disk_stops_decisions_and_nothing_else(self):  # S01
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

    @unittest.skipUnless(shutil.which("strace") and os.geteuid() == 0, "needs strace, and root to trace a process that hides its memory")
    def test_a_file_system_that_is_read_only_now_stops_decisions_and_nothing_else(self):  # S08
        mark = "mark there-$MONARCH_GENERATION\n" + STEPS.replace("mark there\n", "")
        run = self.start("run", self.job(mark, hosts=2, slots=1, mesh={"gang": "host"},
                                         supervision={**QUICK, "restart": {"max": 4}}))
        pids = self.wait_for_marks("there-1", 2)
        run.wait_for_err("job.running")
        folder = self.job_file("")
        segments = [name for name in os.listdir(folder) if name.startswith("journal.0")]
        traced = ["-P", folder.rstrip("/"), *(word for name in segments for word in ("-P", folder + name))]
        supervisor = self.process("supervisor").pid
        strace = self.start_program("strace", "-f", "-qqq", "-o", "/dev/null", "-p", str(supervisor), *traced,
                                    "-e", "trace=write,openat", "-e", "inject=write,openat:error=EROFS")
        status = [f"/proc/{supervisor}/task/{task}/status" for task in os.listdir(f"/proc/{supervisor}/task")]
        harness.wait_for(lambda: all(f"TracerPid:\t{strace.pid}\n" in self.read(path) for path in status), lambda: repr(strace))
        since = time.monotonic()
        self.signal_by_pid(pids[1])
        run.wait_for_err("journal.stuck")
        self.assertLess(time.monotonic() - since, 5)
        self.assertIn("Read-only file system", run.err)
        self.wait_for_steps(300)  # the other gang's, far beyond its lease
        self.assertEqual(self.marks("there-2"), [], "a start that nobody wrote down")
        strace.signal(signal.SIGINT)
        strace.wait()
        run.wait_for_err("journal.mended")
        self.wait_for_marks("there-2", [1])
        failed = [e for e in self.monarch("events", "last", "--json").json() if e["event"] == "gang.failed"]
        self.assertEqual(len(failed), 1, failed)
        self.assertIn("restart 1 of 4", failed[0]["message"])
        self.write("go", "")
        self.end_of(run, 0, "succeeded")

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_slow_syncs_delay_starts_and_no_lease(self):  # S03
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
