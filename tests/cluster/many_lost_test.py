"""Many hosts fall silent at once. A switch is likelier than so many hosts: nobody is given up for two leases. Who is heard again by then
has lost nothing; who is not is given up with the others, once, and their gangs go on elsewhere."""

import random

import cluster
import harness
import host_faults
import recovery

GANGS, SPARES = 3, 3
HALF = ["h2", "h3", "h4"]  # two gangs and a spare
THEIRS, OTHERS = range(2, 6), range(2)
RANKS = range(6)
HOLD_S = 2 * 2  # two leases of the fast times
CALM_S = 5.0


class ManyLost(host_faults.HostFaultTest):
    def half(self, **supervision):
        """Three gangs on h1 to h3, and three spares."""
        return self.running(pool=GANGS + SPARES, spares=SPARES, gangs=GANGS, **supervision)

    def assert_held_then_lost(self, since):
        """One hold, and after it one verdict on each; nobody else is meant by either."""
        held = self.wait_for_event("hosts.held")
        self.assert_seen(held, since, host_faults.DECLARED_S["fast"][1])
        lost = [self.wait_for_event("host.lost", number, host_faults.START_S) for number in (1, 2, 3)]
        self.assertEqual(sorted(e["host"] for e in lost), HALF)
        for event in lost:
            self.assertGreater(self.time_of(event) - self.time_of(held), HOLD_S - 1, "the hold held nothing")
            self.assert_seen(event, since, 20)
        self.wait_for_move(THEIRS)
        for number in (1, 2):
            self.assert_stage(self.wait_for_event("host.replaced", number), rf"\[host lost: replacement {number} of 8 in 1h")
        self.assert_go_on(OTHERS)
        self.assertEqual(len(self.events("hosts.held")), 1)
        self.assertEqual(len(self.events("host.lost")), len(HALF))
        self.assertEqual({self.generation_of(r) for r in THEIRS}, {2})

    def test_half_of_them_lose_power(self):  # H14
        run = self.half()
        since = self.now()
        for name in HALF:
            self.w[name].power_off()
        self.assert_held_then_lost(since)
        self.end_well(run, HALF)
        self.assert_single_effect(RANKS)
        self.assert_nothing_left()

    def test_half_of_them_are_cut_off_and_stop_by_themselves(self):  # N06
        run = self.half()
        since = self.now()
        self.w.part(HALF)
        self.assert_connects(HALF[0], False)
        self.assert_held_then_lost(since)
        for name in HALF:
            harness.wait_for(lambda n=name: not self.alive_on(n, 1), lambda n=name: f"the end of {self.alive_on(n, 1)}", 30)
        self.w.heal()
        self.end_well(run)
        self.assert_single_effect(RANKS)
        self.assert_nothing_left()

    def test_a_switch_that_is_back_within_the_hold_costs_no_restart(self):
        run = self.half(orphan_ttl="30s")
        since = self.now()
        self.w.part(HALF)
        self.assert_seen(self.wait_for_event("hosts.held"), since, host_faults.DECLARED_S["fast"][1])
        self.assertGreater(self.counted("cut"), 0)
        self.w.heal()
        self.wait_for_event("host.heard", len(HALF))
        self.assert_go_on(RANKS)
        recovery.after(CALM_S)
        self.assert_nothing_done()
        self.assert_go_on(RANKS)
        self.end_well(run)
        self.assert_single_effect(RANKS)
        self.assert_nothing_left()

    def test_hosts_that_are_cut_off_one_by_one_and_come_back_in_another_order(self):  # N19
        run = self.half()
        since = self.now()
        order = random.Random(19)
        names = order.sample([f"h{number}" for number in range(1, GANGS + 1)], 2)
        for name in names:
            self.w.both(name, "login", cut=True)
            recovery.after(order.uniform(0.5, 1.5))
        for name in order.sample(names, len(names)):
            self.w.both(name, "login", cut=False)
            recovery.after(order.uniform(0.2, 1.0))
        self.assertGreater(self.counted("cut"), 0)
        healed = self.now()
        self.assert_seen(self.wait_for_event("host.suspect"), since, host_faults.DECLARED_S["fast"][1])

        def converged():
            ranks = self.status()["meshes"][0]["ranks"]
            return all(rank["phase"] == "running" for rank in ranks)
        harness.wait_for(converged, self.supervisor_log, 15)
        before = {r: self.step_of(r) for r in RANKS}
        harness.wait_for(lambda: all(self.step_of(r) != before[r] for r in RANKS), self.supervisor_log, 15 - (self.now() - healed))
        for lost in self.events("host.lost"):
            self.assertIn(lost["host"], names)
            self.assert_stage(lost, r"silent for ")
        untouched = [r for r in RANKS if f"h{r // 2 + 1}" not in names]
        self.assert_go_on(untouched)
        self.end_well(run)
        self.assert_single_effect(RANKS)
        self.assert_nothing_left()


if __name__ == "__main__":
    cluster.main()
