"""The supervisor stands still and goes on (V04, V08): what it did not read nobody failed to send, so it gives up no host, though a spare
is there to take over."""

import contextlib
import os
import signal
import time

import harness
import recovery
from recovery import after

SPARE = {"local": {"hosts": 3, "spares": 1}, "reallocate": {"max": 4}, "orphan": "hold", "orphan_ttl": "20s",
         "heartbeat": "200ms", "suspect_after": "700ms", "lost_after": "1500ms"}


class StallTest(recovery.RecoveryTest):
    def stall(self, seconds, meanwhile):
        supervisor = self.process("supervisor")
        self.kill(supervisor, signal.SIGSTOP)
        until = time.monotonic() + seconds
        try:
            meanwhile()
            harness.wait_for(lambda: time.monotonic() > until, "the end of the stall")
        finally:
            self.kill(supervisor, signal.SIGCONT)

    def assert_untouched(self, term=1):
        self.assert_go_on(range(4))
        self.assert_nothing_done()
        status = self.status()
        self.assertEqual([(r["phase"], r["generation"]) for r in status["meshes"][0]["ranks"]], [("running", 1)] * 4)
        self.assertEqual(status["term"], term)

    def assert_judges_as_ever(self):
        """Nobody tells of a stall that harmed nobody; a rank that dies after it is seen as soon as any."""
        since = self.now()
        self.signal_by_pid(self.pids[2])
        failed = self.wait_for_event("gang.failed")
        self.assert_seen(failed, since)
        self.assert_answer(failed, "restart", 1, 4, rank=2, generation=1)
        self.wait_for_anew([2, 3])
        self.assert_go_on([0, 1])


class Stalls(StallTest):
    def test_one_within_the_lease_is_not_noticed_by_any_rank(self):  # V08
        run = self.running(lease="8s", **SPARE)
        self.stall(3.5, lambda: (after(3), self.assert_go_on(range(4))))
        after(2)
        self.assert_untouched()
        self.assert_judges_as_ever()
        self.end_well(run)

    def test_one_beyond_the_lease_holds_the_ranks_and_ends_none(self):  # V04
        run = self.running(lease="2s", **SPARE)
        before = {}

        def meanwhile():
            after(3)
            before.update({rank: self.step_of(rank) for rank in range(4)})
            after(1)
            self.assertEqual({rank: self.step_of(rank) for rank in range(4)}, before, "their lease has ended")
        self.stall(5, meanwhile)
        after(2)
        self.assert_untouched()
        self.assert_judges_as_ever()
        self.end_well(run)


class Pauses(StallTest):
    def signal_each(self, pids, number):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # a shell's child may have ended by itself
                os.kill(pid, number)

    def stop_everything(self):
        """Until nobody is left who could fork another one."""
        stopped = set()
        while fresh := {process.pid for process in self.processes()} - stopped:
            self.signal_each(fresh, signal.SIGSTOP)
            stopped |= fresh
        return stopped

    def test_of_everything_for_longer_than_an_orphan_lives_ends_nothing(self):
        """A laptop's lid, a paused container, `scontrol suspend`: who would have renewed the leases stood still as well."""
        run = self.running(lease="2s", **{**SPARE, "orphan_ttl": "3s"})
        everybody = self.stop_everything()
        after(8)
        self.signal_each(everybody, signal.SIGCONT)
        self.assertIn("the supervisor did not run for ", self.wait_for_event("supervisor.stood_still")["message"])
        after(4)
        self.assert_untouched()
        self.assertEqual([(h["name"], h["phase"]) for h in self.status()["hosts"]], [(f"v{n}", "ready") for n in (1, 2, 3)])
        self.assert_judges_as_ever()
        self.end_well(run)


if __name__ == "__main__":
    harness.main()
