"""Jobs over SSH whose specs say nothing of recovery: a gang is started again in place, or moves to a host of the pool that is left; the
other gang goes on as if nothing had been."""

import json

import cluster
import harness
import jobs

# A rank marks each generation of its that runs, on its host.
SCRIPT = "mark up-$MONARCH_GENERATION\n" + jobs.FOREVER
LOST_S = 60  # a lost host is given up after 5 s, and its lease ends a second later; the rest is a busy machine's


class Recovery(cluster.ClusterTest):
    def running(self, pool, spares=0):
        """Two gangs of two ranks, on h1 and h2."""
        self.world(pool)
        self.run_ = self.start("run", self.ssh_job(SCRIPT, mesh={"gang": "host"}, ssh={"spares": spares}, supervision=None))
        self.wait_for_marks("up-1", 4, timeout=60)
        self.assertEqual(self.hosts_of_marks("up-1"), {0: "h1", 1: "h1", 2: "h2", 3: "h2"})
        self.run_.wait_for_err(r"job\.running")
        self.untouched = self.ranks()[:2]

    def ranks(self):
        return sorted(self.status()["meshes"][0]["ranks"], key=lambda rank: rank["rank"])

    def came_back(self, host, rule, timeout=harness.DEADLINE_S):
        """The second gang runs on that host in its next generation, by that rule, and the first gang is what it was."""
        self.wait_for_marks("up-2", [2, 3], timeout)
        self.assertEqual(self.hosts_of_marks("up-2"), {2: host, 3: host})
        harness.wait_for(lambda: all(rank["phase"] == "running" for rank in self.ranks()), self.ranks)
        ranks = self.ranks()
        self.assertEqual([(rank["host"], rank["generation"]) for rank in ranks[2:]], [(host, 2)] * 2)
        same = ("pid", "host", "generation", "phase")
        self.assertEqual([[rank[key] for key in same] for rank in ranks[:2]],
                         [[rank[key] for key in same] for rank in self.untouched])
        failed = [json.loads(line) for line in self.monarch("events", "last", "--json").out.splitlines()]
        failed = [event["message"] for event in failed if event["event"] == "gang.failed"]
        self.assertEqual(len(failed), 1, failed)
        self.assertTrue(failed[0].endswith(f"[{rule}]"), failed)
        return failed[0]

    def stopped(self):
        self.assertEqual(self.monarch("stop", timeout=60).status, 0)
        self.assertEqual(self.run_.wait(60), 143, self.run_)
        self.assert_nothing_left()

    def test_a_rank_of_a_bad_access_is_started_again_in_place_with_its_gang(self):
        self.running(2)
        done = self.monarch("signal", "SEGV", "--rank", "3")
        self.assertEqual(done.status, 0, done)
        self.assertIn("SIGSEGV", self.came_back("h2", "restart 1 of 4 in 10m, at once; then: restart 2"))
        self.stopped()

    def test_a_gang_moves_to_the_spare_when_its_host_loses_power(self):
        self.running(3, spares=1)
        self.w["h2"].power_off()
        self.came_back("h3", "host lost: replacement 1 of 4 in 1h; then: replacement 2", LOST_S)
        self.stopped()

    def test_without_a_spare_a_cold_host_of_the_pool_is_launched(self):
        self.running(3)
        self.assertEqual({host["name"]: host["phase"] for host in self.status()["hosts"]}["h3"], "cold")
        self.w["h2"].power_off()
        self.came_back("h3", "host lost: replacement 1 of 4 in 1h; then: replacement 2", LOST_S)
        self.stopped()

    def test_what_a_rank_wrote_last_is_here_before_its_drained_host_is_ended(self):
        self.world(3)
        lines = 100_000
        last = f"trap 'seq -f {'x' * 70}%.0f {lines}; exit 0' TERM\n"
        self.run_ = self.start("run", self.ssh_job(last + SCRIPT, slots=1, mesh={"gang": "host"}, ssh={"spares": 1}, supervision=None))
        self.wait_for_marks("up-1", 2, timeout=60)
        self.run_.wait_for_err(r"job\.running")
        self.w.link("h2", "login", bandwidth=2 << 20)  # all of it takes some 4 s
        self.assertEqual(self.monarch("drain", "h2", "--now", timeout=60).status, 0)
        self.wait_for_marks("up-2", [1])
        host = lambda: next(host for host in self.status()["hosts"] if host["name"] == "h2")
        harness.wait_for(lambda: host()["phase"] == "ended", host, 60)
        written = self.log("logs/m/1.1.out").splitlines()
        self.assertEqual((len(written), written[-1]), (lines, f"{'x' * 70}{lines}"))
        self.assertNotIn("output.incomplete", self.monarch("events").out)
        self.w.heal()
        self.stopped()


if __name__ == "__main__":
    cluster.main()
