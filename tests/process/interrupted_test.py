"""The supervisor dies in the midst of a recovery (V12): the next one ends what was begun, once, and nothing that was healthy is touched."""

import signal

import harness
import recovery

QUICK = {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "1s", "lease": "1500ms", "orphan_ttl": "20s"}
LOST_S = 10.0      # until a host is given up, and what acts for it then
RETURNED_S = 5.0


class Interrupted(recovery.RecoveryTest):
    def strike_when(self, kind, since, within=recovery.SEEN_S):
        """Kills the supervisor at the first event of this kind, which is in time; until its successor is there, which is so, too."""
        self.assert_seen(self.wait_for_event(kind), since, within)
        since = self.now()
        self.kill(self.process("supervisor"))
        self.assert_seen(self.wait_for_event("supervisor.returned"), since, RETURNED_S)

    def places(self):
        return {r["rank"]: (r["phase"], r["host"], r["generation"]) for r in self.status()["meshes"][0]["ranks"]}

    def moves_to_the_spare(self, kind):
        run = self.running(local={"hosts": 3, "spares": 1}, reallocate={"max": 4}, **QUICK)
        since = self.now()
        self.kill_all([self.process("keeper", "v2"), self.process("daemon", "v2"),
                       *(p for p in self.processes() if p.pid in (self.pids[2], self.pids[3]))], signal.SIGSTOP)
        self.strike_when(kind, since, LOST_S)
        self.wait_for_anew([2, 3])
        harness.wait_for(lambda: [p[0] for p in self.places().values()] == ["running"] * 4, lambda: str(self.places()))
        self.assertEqual(self.places(), {0: ("running", "v1", 1), 1: ("running", "v1", 1),
                                         2: ("running", "v3", 2), 3: ("running", "v3", 2)})
        self.assert_go_on([0, 1])
        failed, = self.events("gang.failed")
        self.assert_stage(failed, r"\[host lost: replacement 1 of 4 in 1h; then: replacement 2\]", host="v2", generation=1)
        self.end_well(run)

    def test_when_a_host_was_lost(self):  # V12
        self.moves_to_the_spare("host.lost")

    def test_when_its_gang_has_been_given_up(self):  # V12
        self.moves_to_the_spare("gang.failed")

    def test_when_a_gang_starts_again_in_place(self):
        run = self.running()
        since = self.now()
        self.signal_by_pid(self.pids[2])
        self.strike_when("gang.failed", since)
        self.wait_for_anew([2, 3])
        self.assert_go_on([0, 1])
        harness.wait_for(lambda: [p[0] for p in self.places().values()] == ["running"] * 4, lambda: str(self.places()))
        self.assertEqual({rank: place[2] for rank, place in self.places().items()}, {0: 1, 1: 1, 2: 2, 3: 2})
        self.end_well(run)

    def test_when_the_job_goes_on_with_fewer_gangs(self):  # V12
        run = self.running(shrink={"along": "host", "min": 1, "regrow": False}, reallocate={"max": 0}, **QUICK)
        since = self.now()
        self.kill(self.process("keeper", "v2"))
        self.strike_when("gang.parked", since, LOST_S)
        self.wait_for_event("supervisor.adopted")
        self.assert_go_on([0, 1])
        parked, = self.events("gang.parked")
        self.assert_stage(parked, r"\[host lost: reallocate.max is 0: shrink: its gang is parked\]")
        self.assertEqual([self.places()[rank][2] for rank in (0, 1)], [1, 1])
        _, verdict = self.end_well(run)
        self.assertIn("parked", verdict["reason"])


if __name__ == "__main__":
    harness.main()
