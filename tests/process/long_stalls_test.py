"""The supervisor stands still for half a minute, at a job's own times (V04): its guard ends it and starts the next, which takes all ranks
over, held or not, as they are; nobody is given up, though a spare is there."""

import signal
import time

import harness
import stalls_test

STALL_S = 30.0


class LongStalls(stalls_test.StallTest):
    def test_half_a_minute_ends_no_rank_and_moves_none(self):  # V04
        run = self.running(local={"hosts": 3, "spares": 1}, reallocate={"max": 4}, orphan="hold")
        supervisor = self.process("supervisor")
        since = time.monotonic()
        self.kill(supervisor, signal.SIGSTOP)
        self.wait_gone(supervisor, timeout=STALL_S)
        self.wait_for_event("supervisor.adopted")
        self.assertLess(time.monotonic() - since, STALL_S + 10)
        harness.wait_for(lambda: time.monotonic() - since > STALL_S, "half a minute in all", timeout=STALL_S + 5)
        self.assert_untouched(term=2)
        # It judges as ever: a host that falls silent now is found out within the bound, and its gang moves.
        since = self.now()
        keeper = self.process("keeper", "v2")
        self.kill_all([keeper, *(p for p in self.processes() if p.pid in (self.pids[2], self.pids[3]))], signal.SIGSTOP)
        lost = self.wait_for_event("host.lost", timeout=60)
        self.assertEqual(lost["host"], "v2", lost)
        self.assert_seen(lost, since, 40.0)
        self.wait_for_anew([2, 3])
        self.assert_go_on([0, 1])
        self.end_well(run)


if __name__ == "__main__":
    harness.main()
