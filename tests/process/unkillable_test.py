"""A rank that no signal ends (P15): its host is given up as wedged, and the next generation starts elsewhere, once nothing of it may act.

The test holds the rank at its very exit, as its tracer (PTRACE_O_TRACEEXIT): a kernel that waits for a dead disk looks no other from
outside. SIGKILL has no effect until the tracer lets go.
"""

import ctypes
import os
import signal

import harness
import leftovers
import recovery

PTRACE_SEIZE, PTRACE_DETACH, PTRACE_O_TRACEEXIT = 0x4206, 17, 0x40
LEASE = {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "1s", "lease": "2s"}
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long


class Unkillable(recovery.RecoveryTest):
    def hold_at_its_exit(self, pid):
        if LIBC.ptrace(PTRACE_SEIZE, pid, None, PTRACE_O_TRACEEXIT) != 0:
            self.skipTest(f"may not trace: {os.strerror(ctypes.get_errno())}")
        self.addCleanup(self.let_go, pid)  # before what is left is looked for: clean-ups run from the last

    def let_go(self, pid):
        # ESRCH: it is not held, or has been let go.
        return LIBC.ptrace(PTRACE_DETACH, pid, None, None) == 0

    def assert_left_behind(self, run, status, outcome):
        """The job ends without it and says so; it ends once it may. Its cgroup, whose keeper has gone by then, goes with `rm`."""
        finished = run.finished()
        verdict = self.verdict()
        self.assertEqual((finished.status, verdict["outcome"], verdict["left_behind"]), (status, outcome, ["v2"]), finished)
        self.assertIn(self.pids[2], [p.pid for p in self.processes()])
        self.assertTrue(self.let_go(self.pids[2]))
        harness.wait_for(lambda: not self.processes(), lambda: "\n".join(map(str, self.processes())))
        groups = [line.removeprefix("cgroup ") for line in leftovers.cgroups(self.folder)]
        self.assertEqual(self.monarch("rm", "last").status, 0)
        self.assertEqual([group for group in groups if os.path.exists(group)], [])
        self.assert_nothing_left()
        return finished, verdict["cause"]

    def test_its_gang_starts_on_the_spare_and_never_beside_it(self):  # P15
        run = self.running(local={"hosts": 3, "spares": 1}, reallocate={"max": 4},
                           mesh={"stop": {"grace": "10s", "after_failure": "300ms"}}, **LEASE)
        self.hold_at_its_exit(self.pids[2])
        since = self.now()
        self.signal_by_pid(self.pids[3])
        wedged = self.wait_for_event("host.wedged")
        self.assert_seen(wedged, since, 6.0)
        self.assert_stage(wedged, "does not end after SIGKILL", host="v2")
        self.wait_for_anew([2, 3])
        self.assertIn(self.pids[2], [p.pid for p in self.processes()], "it is still there, and nobody waits for it")
        where = {r["rank"]: (r["host"], r["generation"]) for r in self.status()["meshes"][0]["ranks"]}
        self.assertEqual(where, {0: ("v1", 1), 1: ("v1", 1), 2: ("v3", 2), 3: ("v3", 2)})
        self.assert_go_on([0, 1])
        self.write("go", "")
        self.assert_left_behind(run, 0, "succeeded")

    def test_without_another_host_the_job_says_which_is_wedged(self):  # P15
        run = self.running(mesh={"stop": {"grace": "10s", "after_failure": "300ms"}}, **LEASE)
        self.hold_at_its_exit(self.pids[2])
        since = self.now()
        self.signal_by_pid(self.pids[3])
        self.assert_go_on([0, 1])  # as long as it is waited for
        self.assert_seen(self.wait_for_told(run, "host.wedged"), since, 6.0)
        finished, cause = self.assert_left_behind(run, 92, "failed")
        self.assert_stage(cause, ": fail$", kind="host", host="v2")
        self.assertIn("host v2 is wedged: a process on it does not end after SIGKILL", finished.err)
        self.assertEqual([r for r in (2, 3) if self.pid_of(r) != self.pids[r]], [], "nothing started beside it")

    def test_a_job_is_removed_once_its_cgroups_are_empty_and_not_before(self):
        """One that tells nobody whose it is: as who is on his way out, and waits for a disk there, has no environment any more."""
        run = self.running("[ $MONARCH_RANK != 2 ] || { env -i setsid sleep 4321 & echo $! > odd.new; mv odd.new odd; }\nmark there\n" + recovery.COUNT)
        pid = int(self.read("work", "odd"))
        groups = [line.removeprefix("cgroup ") for line in leftovers.cgroups(self.folder)]
        if not any(str(pid) in self.read(group, "cgroup.procs").split() for group in groups):
            self.assertEqual(self.monarch("stop", "--kill").status, 0)
            self.skipTest("no cgroup v2 can be written here")
        self.hold_at_its_exit(pid)
        self.write("go", "")
        self.assertEqual(run.wait(60), 0, run)
        self.assertEqual(self.verdict()["left_behind"], ["v2"])
        job, = self.jobs()
        refused = self.monarch("rm", job)
        self.assertNotEqual(refused.status, 0, refused)
        self.assertIn(f"something in the cgroup of {job} did not end within ", refused.err)
        self.assertEqual(self.jobs(), [job])
        self.assertTrue(self.let_go(pid))
        self.assertEqual(self.monarch("rm", job).status, 0)
        self.assertEqual([group for group in groups if os.path.exists(group)], [])
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
