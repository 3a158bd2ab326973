"""A host is gone, as far as the job can see: it lost power, stands still, was started anew, or nothing passes between it and us. Its gang goes
on elsewhere, nobody acts twice, the other gang goes on, and what comes back is of no effect."""

import signal

import cluster
import harness
import host_faults
import world

MOVED = r"^h3 takes the place of h2 \[host lost: replacement 1 of 8 in 1h"


class LostHosts(host_faults.HostFaultTest):
    def moved(self, since):
        """The gang of h2 counts on h3 by the first stage that may answer; the one of h1 is untouched, and nobody did a thing twice."""
        self.assert_declared("h2", since)
        self.wait_for_move([2, 3], "h3")
        self.assert_stage(self.wait_for_event("host.replaced"), MOVED, host="h3")
        self.assert_go_on([0, 1])
        self.assertEqual([e["host"] for e in self.events("host.lost")], ["h2"])
        self.assert_single_effect(range(4))

    def ended(self, run, unproven=()):
        self.end_well(run, unproven)
        self.assert_single_effect(range(4))

    def test_without_power(self):  # H01
        run = self.running(fast=False)
        since = self.now()
        self.w["h2"].power_off()
        self.assert_connects("h2", False)
        self.moved(since)
        self.ended(run, ["h2"])
        self.assert_nothing_left()

    def test_started_anew(self):  # H04
        run = self.running()
        before = self.w["h2"].read("/proc/sys/kernel/random/boot_id")
        since = self.now()
        self.w["h2"].power_off()
        self.moved(since)
        self.w["h2"].power_on()
        self.assertNotEqual(self.w["h2"].read("/proc/sys/kernel/random/boot_id"), before)
        # It is asked, and says that nothing of the job is there: it will be a spare, as a host that was never in the job.
        harness.wait_for(lambda: len([e for e in self.events("host.ready") if e["host"] == "h2"]) == 2,
                         lambda: f"h2 as a spare: {self.supervisor_log()}", 90)
        self.assertEqual({r: self.host_of(r) for r in range(4)}, {0: "h1", 1: "h1", 2: "h3", 3: "h3"})
        self.ended(run)
        self.assert_nothing_left()

    def test_that_comes_back_without_its_storage_is_no_spare(self):
        self.world(3)
        for host in self.w.hosts:
            host.run("mkdir", "/tmp/store")
        run = self.running(storage=[{"path": "/tmp/store"}])
        since = self.now()
        self.w["h2"].power_off()
        self.moved(since)
        self.w["h2"].power_on()
        failed = self.wait_for_event("host.failed", timeout=90)
        self.assertEqual((failed["host"], failed["details"]["kind"]), ("h2", "unwell"), failed)
        self.assertIn("it was lost, and is looked at before it is used again: storage: /tmp/store is not there", failed["message"])
        self.assertEqual([e["host"] for e in self.events("host.ready")].count("h2"), 1)
        self.assert_go_on([0, 1])
        self.ended(run)
        self.assert_nothing_left()

    def test_unplugged(self):  # N01
        run = self.running()
        since = self.now()
        self.w["h2"].unplug()
        self.assert_connects("h2", False)
        self.moved(since)
        # Nobody reaches it: it ends what it has by its own clock.
        harness.wait_for(lambda: not self.alive_on("h2", 1), lambda: f"the end of {self.alive_on('h2', 1)}", 30)
        self.w["h2"].plug()
        self.ended(run)
        self.assert_nothing_left()

    def test_that_hears_us_and_is_not_heard(self):  # N02
        self.one_way("h2", "login")

    def test_that_is_heard_and_does_not_hear_us(self):  # N03
        self.one_way("login", "h2")

    def one_way(self, source, target):
        run = self.running()
        since = self.now()
        self.w.cut(source, target)
        self.moved(since)
        self.assertGreater(self.counted("cut"), 0)
        harness.wait_for(lambda: not self.alive_on("h2", 1), lambda: f"the end of {self.alive_on('h2', 1)}", 30)
        self.w.heal()
        self.ended(run)
        self.assert_nothing_left()

    def test_whose_worker_stands_still_and_is_ended_by_another_way(self):  # H06
        run = self.running()
        since = self.now()
        self.kill_all([process for role in ("daemon", "keeper") for process in self.processes_of(role, "h2")], signal.SIGSTOP)
        self.moved(since)
        # Its ranks could have gone on for ever: who keeps their lease stood still. A session ended them before others took their place.
        self.assertEqual(self.alive_on("h2", 1), [])
        self.ended(run)
        self.assert_nothing_left()

    def test_whose_worker_is_killed_whole(self):  # H05
        run = self.running()
        since = self.now()
        keeper, = self.processes_of("keeper", "h2")
        daemon, = self.processes_of("daemon", "h2")
        self.kill_all([daemon, keeper])  # else it cleans up after its keeper, and says so
        self.wait_for_event("host.lost", timeout=host_faults.START_S)
        self.assert_seen(self.wait_for_event("host.lost"), since, host_faults.DECLARED_S["fast"][1])
        self.wait_for_move([2, 3])
        self.assert_stage(self.wait_for_event("host.replaced"), r"\[host lost: replacement 1 of 8 in 1h")
        self.assert_go_on([0, 1])
        self.assertEqual(self.alive_on("h2", 1), [])
        self.ended(run)
        self.assert_nothing_left()


class Frozen(host_faults.HostFaultTest):
    """A host that is paused does not know it: when it goes on, its ranks believe that nothing was."""

    def frozen(self, run_them):
        if not world.cgroup_parent():
            self.skipTest("no cgroup2 to write to")
        run = run_them()
        since = self.now()
        self.w["h2"].freeze()
        self.assert_declared("h2", since)
        self.wait_for_move([2, 3], "h3")
        self.assert_stage(self.wait_for_event("host.replaced"), MOVED, host="h3")
        self.assert_go_on([0, 1])
        self.assertEqual([e["host"] for e in self.events("host.lost")], ["h2"])
        return run

    def test_and_its_ranks_commit_nothing_when_it_goes_on(self):  # H02
        run = self.frozen(self.committing)
        before = self.step_of(2)
        self.w["h2"].thaw()
        harness.wait_for(lambda: not self.alive_on("h2", 1), lambda: f"the end of {self.alive_on('h2', 1)}", 10)
        harness.wait_for(lambda: self.step_of(2) > before + 3, self.supervisor_log)
        self.end_well(run)
        commits = [(e["details"]["gang"], e["generation"], int(e["details"]["step"])) for e in self.events("checkpoint.committed")]
        own = [(generation, step) for gang, generation, step in commits if gang == "1"]
        self.assertEqual(own, sorted(own), "a commit of an older generation counted")
        self.assertEqual([step for _, step in own], list(range(1, own[-1][1] + 1)), "a step was lost, or counted twice")
        self.assertEqual({generation for generation, _ in own}, {1, 2})
        self.assert_nothing_left()

    def test_and_it_stops_them_by_its_own_clock_where_nobody_can_tell_it(self):  # H11
        run = self.frozen(self.running)
        self.w["h2"].unplug()
        lines = {r: self.read("work", f"effects.{r}").count("\n1 ") for r in (2, 3)}
        self.w["h2"].thaw()
        harness.wait_for(lambda: not self.alive_on("h2", 1), lambda: f"the end of {self.alive_on('h2', 1)}", 30)
        # What it was at when the host stood still it may still have done; nothing after it.
        late = {r: self.read("work", f"effects.{r}").count("\n1 ") - lines[r] for r in (2, 3)}
        self.assertTrue(all(number <= 1 for number in late.values()), late)
        self.w["h2"].plug()
        self.assert_go_on([0, 1])
        self.end_well(run)
        self.assert_nothing_left()


if __name__ == "__main__":
    cluster.main()
