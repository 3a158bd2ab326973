"""The supervisor dies in the midst of a recovery (V12): the next one ends what was begun, once, and nothing that was healthy is touched."""

import signal

import harness
import recovery

QUICK = {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "1s", "lease": "1500ms", "orphan_ttl": "20s"}


class Interrupted(recovery.RecoveryTest):
    def strike_when(self, kind):
        """Kills the supervisor at the first event of this kind; until its successor has heard of every host that is there."""
        self.wait_for_event(kind)
        self.kill(self.process("supervisor"))
        self.wait_for_event("supervisor.returned")

    def places(self):
        return {r["rank"]: (r["phase"], r["host"], r["generation"]) for r in self.status()["meshes"][0]["ranks"]}

    def moves_to_the_spare(self, kind):
        run = self.running(local={"hosts": 3, "spares": 1}, reallocate={"max": 4}, **QUICK)
        for process in [self.process("keeper", "v2"), self.process("daemon", "v2"),
                        *(p for p in self.processes() if p.pid in (self.pids[2], self.pids[3]))]:
            self.kill(process, signal.SIGSTOP)
        self.strike_when(kind)
        self.wait_for_anew([2, 3])
        harness.wait_for(lambda: [p[0] for p in self.places().values()] == ["running"] * 4, lambda: str(self.places()))
        self.assertEqual(self.places(), {0: ("running", "v1", 1), 1: ("running", "v1", 1),
                                         2: ("running", "v3", 2), 3: ("running", "v3", 2)})
        self.assert_go_on([0, 1])
        self.assertEqual(len(self.events("gang.failed")), 1)
        self.end_well(run)

    def test_when_a_host_was_lost(self):  # V12
        self.moves_to_the_spare("host.lost")

    def test_when_its_gang_has_been_given_up(self):  # V12
        self.moves_to_the_spare("gang.failed")

    def test_when_a_gang_starts_again_in_place(self):
        run = self.running()
        self.signal_by_pid(self.pids[2])
        self.strike_when("gang.failed")
        self.wait_for_anew([2, 3])
        self.assert_go_on([0, 1])
        harness.wait_for(lambda: [p[0] for p in self.places().values()] == ["running"] * 4, lambda: str(self.places()))
        self.assertEqual({rank: place[2] for rank, place in self.places().items()}, {0: 1, 1: 1, 2: 2, 3: 2})
        self.end_well(run)

    def test_when_the_job_goes_on_with_fewer_gangs(self):  # V12
        run = self.running(shrink={"along": "host", "min": 1, "regrow": False}, reallocate={"max": 0}, **QUICK)
        self.kill(self.process("keeper", "v2"))
        self.strike_when("gang.parked")
        self.wait_for_event("supervisor.adopted")
        self.assert_go_on([0, 1])
        self.assertEqual(len(self.events("gang.parked")), 1)
        self.assertEqual([self.places()[rank][2] for rank in (0, 1)], [1, 1])
        _, verdict = self.end_well(run)
        self.assertIn("parked", verdict["reason"])


if __name__ == "__main__":
    harness.main()
