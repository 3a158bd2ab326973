"""A running job whose journal cannot be written, or is slow to be: ranks and leases go on, decisions wait, and nothing starts unrecorded."""

import os
import re
import shutil
import signal
import subprocess
import unittest

import harness
import recovery

QUICK = {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "4s", "lease": "5s", "orphan_ttl": "6s"}


def may_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


STUCK_S = 5.0
BEYOND_LEASE_S = 6
MOST_WAITS = 10  # for the disk, one after the other, from a job's start to its end


class Storage(recovery.RecoveryTest):
    def running(self, command=None, **options):
        """Two gangs of one rank that count; `command` runs `monarch run SPEC`, which is appended."""
        spec = self.counting(slots=1, **QUICK)
        run = self.start_program(*(command or []), harness.MONARCH, "run", spec, **options)
        self.pids = dict(enumerate(self.wait_for_marks("there", 2, timeout=90)))
        run.wait_for_err("job.running", timeout=90)
        return run

    def assert_stuck(self, run, since, why):
        """It says so in time; gang 0 goes on far beyond its lease."""
        stuck = self.wait_for_told(run, "journal.stuck")
        self.assert_seen(stuck, since, STUCK_S)
        self.assert_stage(stuck, "the journal cannot be written, decisions wait and ranks go on: .*" + why)
        recovery.after(BEYOND_LEASE_S)
        self.assert_go_on([0])

    def hold(self, wanted):
        """A decision, asked for in the supervisor's own mount namespace."""
        words = ["--rank", "1"] if wanted else ["--release"]
        return self.start_program("nsenter", f"--mount=/proc/{self.supervisor}/ns/mnt", harness.MONARCH, "hold", "demo", *words)

    @unittest.skipUnless(may_mount(), "needs root and mount namespaces")
    def test_a_full_disk_stops_decisions_and_nothing_else(self):  # S01
        state = self.path("state")
        os.mkdir(state, 0o700)
        run = self.running(["unshare", "--mount", "sh", "-c",
                            f"mount -t tmpfs -o size=16m,mode=700 tmpfs {state} && exec \"$@\"", "sh"])
        self.supervisor = self.process("supervisor").pid
        inside = f"/proc/{self.supervisor}/root{state}"
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
        # What is left of the journal's last page takes some decisions.
        asked, since = None, self.now()
        for turn in range(300):
            since = self.now()
            asked = self.hold(turn % 2 == 0)
            harness.wait_for(lambda: asked.status is not None or "journal.stuck" in run.err, lambda: repr(run))
            if asked.status is None:
                break
        self.assert_stuck(run, since, "No space left on device")
        os.unlink(f"{inside}/filler")
        run.wait_for_err("journal.mended")
        self.assertEqual(asked.wait(), 0, asked)  # what was asked for meanwhile is answered now
        self.assert_go_on([0, 1])
        self.write("go", "")
        self.assertEqual(run.wait(), 0, run)
        self.assert_nothing_left()

    @unittest.skipUnless(may_mount(), "needs root and mount namespaces")
    def test_output_that_no_disk_takes_is_shown_and_told(self):
        state, small = self.path("state"), self.path("small")
        logs = self.path("state", "jobs", "demo-*", "logs")
        script = ("for i in {1..40}; do printf '%0999d\\n' $i; done; mark full; until [ -e more ]; do nap 0.05; done\n"
                  f"for i in {{41..160}}; do printf '%0999d\\n' $i; done; echo 'Traceback: OSError 28' >&2\n"
                  f"mark said; until [ -e go ]; do nap 0.05; done\nmount -o remount,size=1m {logs}; echo kept; exit 7\n")
        spec = self.job(script, hosts=1, slots=1)
        small = self.planting("mkdir -p -m 700 $JOB/logs && mount -t tmpfs -o size=64k,mode=700 tmpfs $JOB/logs")
        run = self.start_program("unshare", "--mount", harness.MONARCH, "run", "--no-prefix", spec, env={"MONARCH_WORKER": small})
        self.wait_for_marks("full", 1)
        since = self.now()
        self.write("more", "")
        lost = self.wait_for_told(run, "output.lost")
        self.assert_seen(lost, since, STUCK_S)
        self.assert_stage(lost, "v1: what ranks write is shown and in no file, .* bytes so far: write .*: No space left on device")
        run.wait_for_err("Traceback: OSError 28")
        harness.wait_for(lambda: run.out.count("\n") == 160, lambda: f"{run.out.count(chr(10))} lines of 160 were shown")
        self.assertEqual([int(line) for line in run.out.splitlines()], list(range(1, 161)), "in order, none twice")
        self.assertIn("output is in no file", self.monarch("status").out)
        self.write("go", "")
        done, verdict = self.end_of(run, 7)
        self.assertRegex(verdict["lost_output"][0], r"^v1: \d+ bytes \(write .*: No space left on device\)$")
        self.assertIn("Traceback: OSError 28", verdict["cause"]["stderr_tail"])
        self.assertRegex(done.err, r"(?m)^ output +incomplete: in no file of v1: \d+ bytes")

    @unittest.skipUnless(shutil.which("strace") and os.geteuid() == 0, "needs strace, and root to trace a process that hides its memory")
    def test_a_file_system_that_is_read_only_now_stops_decisions_and_nothing_else(self):  # S08
        run = self.running()
        folder = self.job_file("")
        segments = [name for name in os.listdir(folder) if name.startswith("journal.0")]
        traced = ["-P", folder.rstrip("/"), *(word for name in segments for word in ("-P", folder + name))]
        supervisor = self.process("supervisor").pid
        strace = self.start_program("strace", "-f", "-qqq", "-o", "/dev/null", "-p", str(supervisor), *traced,
                                    "-e", "trace=write,openat", "-e", "inject=write,openat:error=EROFS")
        status = [f"/proc/{supervisor}/task/{task}/status" for task in os.listdir(f"/proc/{supervisor}/task")]
        harness.wait_for(lambda: all(f"TracerPid:\t{strace.pid}\n" in self.read(path) for path in status), lambda: repr(strace))
        since = self.now()
        self.signal_by_pid(self.pids[1])
        self.assert_stuck(run, since, "Read-only file system")
        self.assertEqual(self.pid_of(1), self.pids[1], "a start that nobody wrote down")
        strace.signal(signal.SIGINT)
        strace.wait()
        run.wait_for_err("journal.mended")
        self.wait_for_anew([1])
        failed, = self.events("gang.failed")
        self.assert_answer(failed, "restart", 1, 4, rank=1, generation=1)
        self.end_well(run)

    def test_a_job_that_starts_and_ends_waits_for_the_disk_a_few_times(self):
        spec = self.spec("version: 1\njob: demo\nlaunch: {local: {}}\nmeshes:\n"
                         "  demo: {dims: {slot: 8}, program: [\"true\"]}\n")
        self.assertEqual(self.monarch("run", spec).status, 0)
        told = re.search(r"waits for the disk, one after the other: (\d+), and (\d+) that nobody waited for",
                         self.log("supervisor.log"))
        self.assertIsNotNone(told, self.log("supervisor.log"))
        self.assertLessEqual(int(told[1]), MOST_WAITS, told[0])

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_slow_syncs_delay_starts_and_no_lease(self):  # S03
        traced = self.write("traced", "#!/bin/sh\nexec strace -D -f -qqq -o /dev/null -e trace=fdatasync "
                            "-e inject=fdatasync:delay_enter=1500000 \"$@\"\n", mode=0o755)
        run = self.running(env={"MONARCH_WORKER": self.guarding(traced)})
        since = self.now()
        self.signal_by_pid(self.pids[1])
        failed = self.wait_for_event("gang.failed")
        self.assert_seen(failed, since, STUCK_S)
        self.assert_answer(failed, "restart", 1, 4, rank=1, generation=1)
        self.wait_for_anew([1])
        self.assertGreater(self.now() - since, 1.5, "a start that was not written down")
        recovery.after(BEYOND_LEASE_S)
        self.assert_go_on([0])
        self.assert_nothing_done("host.suspect", "host.lost")
        self.write("go", "")
        self.end_of(run, 0, "succeeded", timeout=90)


if __name__ == "__main__":
    harness.main()
