"""The folder of the sockets goes while a job lives, as at a log-out or by a cleaner of /tmp: it is made again, and nothing else happens."""

import os
import shutil

import harness
import recovery

SPEAKING = 'until [ -S "$NOTIFY_SOCKET" ] && [ -S "$MONARCH_EVENTS" ]; do nap 0.05; done\nmark there\n' + recovery.COUNT


class Sockets(recovery.RecoveryTest):
    def sockets(self):
        """All below the runtime directory, by name."""
        return sorted(os.path.join(place, name) for place, _, names in os.walk(self.path("run")) for name in names)

    def test_it_is_made_again_and_the_job_is_found_and_recovers(self):
        spec = self.job(SPEAKING, mesh={"gang": "host", "stop": {"grace": "2s"}}, supervision={"restart": {"max": 4}},
                        checkpoints={"peer": 1, "memory": "16MiB"}, launch={"local": {"hosts": 2}})
        run = self.start("run", spec)
        self.pids = dict(enumerate(self.wait_for_marks("there", 4)))
        # Three of each rank, two of each vault, the supervisor's.
        harness.wait_for(lambda: len(self.sockets()) >= 4 * 3 + 2 * 2 + 1, self.sockets)
        before = self.sockets()
        shutil.rmtree(self.path("run"))
        os.mkdir(self.path("run"), 0o700)
        harness.wait_for(lambda: self.sockets() == before, lambda: f"{self.sockets()}, not {before}", timeout=3)
        self.signal_by_pid(self.pids[2])
        self.wait_for_anew([2, 3])
        self.assert_go_on([0, 1])
        shutil.rmtree(self.path("run", "monarch"))
        self.signal_by_pid(self.pids[0])  # its next generation needs doors at once
        self.wait_for_event("gang.failed", 2)
        self.wait_for_anew([0])
        self.assertEqual(self.monarch("status").status, 0)
        self.assertEqual(self.monarch("stop").status, 0)
        self.end_of(run, 143, "stopped")


if __name__ == "__main__":
    harness.main()
