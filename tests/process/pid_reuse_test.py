"""A dead rank's process number is somebody else's by now (P13): whatever the job does to that rank, the new owner is not touched."""

import harness
import recovery

# Executes `sleep` under a number of our choosing, which takes root.
INNOCENT = r"""
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
number = ctypes.c_int(int(sys.argv[1]))
args = struct.pack("=11Q", 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(number), 1, 0)
pid = libc.syscall(435, ctypes.c_char_p(args), ctypes.c_size_t(len(args)))
if pid < 0: sys.exit(os.strerror(ctypes.get_errno()))
if pid == 0: os.execv("/bin/sleep", ["sleep", "4321"])
print("there", flush=True)
os.waitpid(pid, 0)
"""


class PidReuse(recovery.RecoveryTest):
    def innocent(self, pid):
        """A process that has this number; the command that waits for its end."""
        for _ in range(20):
            started = self.start_program("/usr/bin/python3", "-c", INNOCENT, str(pid))
            harness.wait_for(lambda: started.out or started.status is not None, lambda: repr(started))
            if started.out:
                harness.wait_for(lambda: self.find("sleep", "4321"), "sleep in the place of who took its number")
                return started
            if "File exists" not in started.err:
                self.skip_job(f"choosing a process number takes root: {started.err.strip()}")
        self.skip_job(f"the number {pid} did not stay free")

    def skip_job(self, why):
        self.assertEqual(self.monarch("stop", "--kill").status, 0)
        self.skipTest(why)

    def assert_lives(self, pid):
        self.assertEqual([p.pid for p in self.find("sleep", "4321")], [pid])

    def test_the_new_owner_of_a_ranks_number_is_never_signalled(self):  # P13
        run = self.running()
        since = self.now()
        self.signal_by_pid(self.pids[2])
        failed = self.wait_for_event("gang.failed")
        self.assert_seen(failed, since)
        self.assert_answer(failed, "restart", 1, 4, rank=2, generation=1)
        self.wait_for_anew([2, 3])
        innocent = self.innocent(self.pids[2])
        self.assert_lives(self.pids[2])
        self.assertEqual(self.monarch("signal", "USR1", "--rank", "2").status, 0)  # ends a shell that has no trap
        self.assertIn("restart 2 of 4", self.wait_for_event("gang.failed", 2)["message"])
        self.assert_go_on([0, 1])
        self.assert_lives(self.pids[2])
        self.assertEqual(self.monarch("stop", "--kill").status, 0)
        self.assertEqual(run.wait(), 143)
        self.assert_lives(self.pids[2])
        self.kill(self.find("sleep", "4321")[0])
        innocent.wait()
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
