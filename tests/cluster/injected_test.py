"""Faults that are injected as a drill would, on hosts of a job that runs over SSH: they take effect, are answered as the real ones are, and are
taken back."""

import cluster
import harness
import host_faults
import strikes
import tap
from strikes import BUSY, CUT, DAEMON, HOST, KILL, OUT, RANK, SEGV, STOP, WORKER, Strikes

MOVED = r"^h3 takes the place of h2 \[host lost: replacement 1 of 8 in 1h"


class Injected(host_faults.HostFaultTest):
    def setUp(self):
        reason = strikes.lacks()
        if reason:
            self.skipTest(reason)
        super().setUp()

    def striking(self, **options):
        """A job that runs, and who strikes it on h2."""
        run = self.running(**options)
        self.job_id, = self.jobs()
        process = self.process("keeper", "h2")
        uuid = process.arguments[process.arguments.index(b"--job") + 1].decode()
        return run, Strikes(self, self.w["h2"], uuid)

    def moved(self, since):
        self.assert_declared("h2", since)
        self.wait_for_move([2, 3], "h3")
        self.assert_stage(self.wait_for_event("host.replaced"), MOVED, host="h3")
        self.assert_go_on([0, 1])

    def ended(self, run):
        self.end_well(run)
        self.assert_single_effect(range(4))
        self.assert_nothing_left()

    def test_a_rank_dies_of_its_own_doing(self):
        run, striker = self.striking()
        since = self.now()
        with striker as on:
            self.assertEqual(len(on.strike(SEGV, RANK, mesh="m", rank=2)), 1)
        self.assert_seen(self.wait_for_event("gang.failed"), since)
        self.wait_for_move([2, 3], "h2")
        self.assert_stage(self.events("gang.failed")[0], r"^m/2 on h2 .*SIGSEGV.*restart 1 of 4")
        self.assert_go_on([0, 1])
        self.ended(run)

    def test_all_of_a_host_is_killed_at_once(self):
        run, striker = self.striking()
        since = self.now()
        with striker as on:
            self.assertGreaterEqual(len(on.strike(KILL, HOST)), 4)
        self.assert_seen(self.wait_for_event("host.lost", timeout=host_faults.START_S), since, host_faults.DECLARED_S["fast"][1])
        self.wait_for_move([2, 3])
        self.assert_stage(self.wait_for_event("host.replaced"), r"\[host lost: replacement 1 of 8 in 1h")
        self.assert_go_on([0, 1])
        self.ended(run)

    def test_a_host_stands_still_and_is_let_go_on_when_its_ranks_run_elsewhere(self):
        run, striker = self.striking()
        since = self.now()
        with striker as on:
            on.strike(STOP, HOST)
            self.moved(since)
            on.undo()
        self.ended(run)

    def test_a_daemon_and_a_worker_stand_still(self):
        run, striker = self.striking(fast=False)
        with striker as on:
            since = self.now()
            on.strike(STOP, DAEMON)
            self.assert_seen(self.wait_for_event("host.daemon"), since, 10)
            self.assert_go_on(range(4))
            on.undo()
            self.assert_nothing_done()
            since = self.now()
            on.strike(STOP, WORKER)
            self.moved(since)
            on.undo()
        self.ended(run)

    def test_what_a_host_sends_is_dropped_there(self):
        run, striker = self.striking()
        with striker as on:
            since = self.now()
            on.strike(CUT, address=self.w.login.address, ports=strikes.ports_of(self, self.job_id), way=OUT)
            self.assertIn("drop", self.w["h2"].run("/usr/sbin/nft", "list", "ruleset").stdout)
            self.moved(since)
            dropped = self.w["h2"].run("/usr/sbin/nft", "list", "ruleset").stdout
            self.assertNotIn("packets 0 ", dropped)
            on.undo()
            self.assertEqual(self.w["h2"].run("/usr/sbin/nft", "list", "ruleset").stdout, "")
        self.ended(run)

    @tap.takes(tap.ALL)
    def test_a_host_is_kept_busy(self):
        self.wait_for_calm()
        run, striker = self.striking(fast=False)
        since = self.now()
        with striker as on:
            self.assertEqual(len(on.strike(BUSY, processes=32)), 32)
            told = harness.wait_for(lambda: [e for e in self.events("host.pressure") if "short of processors (" in e["message"]],
                                    self.supervisor_log, 90)
            self.assert_seen(told[0], since, 60)
            on.undo()
        self.assert_nothing_done()
        self.assert_unseen()
        self.assert_go_on(range(4))
        self.ended(run)


if __name__ == "__main__":
    cluster.main()
