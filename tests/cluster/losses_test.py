"""What befalls hosts and supervisor while a job runs over SSH: it fails fast, names who it was, and leaves nothing where we reach."""

import re
import time

import cluster
import harness
import jobs
from host import wait_for

RUNNING = "mark up; " + jobs.FOREVER
# A host that hears nothing has killed its ranks after the longer of these, and nothing of ours is left on it after both. The time to
# live is such that a worker which waited it twice would be late.
LEASE_S, ORPHAN_TTL_S = 6, 12
ALONE_S = LEASE_S + ORPHAN_TTL_S + 3


class Losses(cluster.ClusterTest):
    def running(self, hosts=3, **keys):
        self.world(hosts)
        keys = {"supervision": {"orphan_ttl": f"{ORPHAN_TTL_S}s"}, **keys}
        run = self.start("run", self.ssh_job(RUNNING, hosts=hosts, slots=2, **keys))
        self.wait_for_marks("up", 2 * hosts, timeout=60)
        return run

    def assert_lost(self, run, host):
        finished = run.finished(60)
        verdict = self.assert_failed(finished)
        self.assertEqual(verdict["cause"]["host"], host, verdict)
        self.assertRegex(verdict["cause"]["summary"], re.compile(r"lost|silent"), verdict)
        return finished

    def wait_for_the_end_on(self, since, *names):
        """Of everything on hosts that nobody has reached since then."""
        def there():
            return [str(process) for host, process in self.on_hosts() if host.name in names]
        wait_for(lambda: not there(), lambda: "the end of " + "\n".join(there()), since + ALONE_S - time.monotonic())

    def assert_failed(self, finished):
        self.assertNotIn(finished.status, (0, None), finished)
        verdict = self.verdict()
        self.assertEqual(verdict["outcome"], "failed", verdict)
        return verdict

    def test_power_loss(self):
        run = self.running()
        self.w["h2"].power_off()
        self.assert_lost(run, "h2")
        self.assert_nothing_left()

    def test_a_pulled_cable_and_the_host_cleans_up_by_itself(self):
        run = self.running()
        self.w["h2"].unplug()
        cut = time.monotonic()
        self.assert_lost(run, "h2")
        # The lease ends what runs there; nobody reaches it to tell it.
        self.wait_for_the_end_on(cut, "h2")
        self.w["h2"].plug()
        self.assert_nothing_left(30)

    def test_a_frozen_host_is_lost_and_its_ranks_do_nothing_when_it_thaws(self):
        run = self.running()
        if not self.w.cgroup:
            self.skipTest("no cgroup2 to write to")
        self.w["h2"].freeze()
        self.assert_lost(run, "h2")
        self.w["h2"].thaw()
        self.assert_nothing_left(ALONE_S)

    def test_a_killed_keeper_takes_its_ranks_with_it(self):
        run = self.running(2)
        keeper, = self.processes_of("keeper", "h2")
        self.kill(keeper)
        finished = run.finished(60)
        verdict = self.assert_failed(finished)
        self.assertEqual((finished.status, verdict["cause"]["host"]), (92, "h2"), verdict)
        self.assertIn("its keeper was killed, and its ranks with it", verdict["cause"]["summary"])
        self.assert_nothing_left()

    def test_a_restart_of_sshd_is_nobodys_business(self):
        run = self.running(2)
        for host in self.w.hosts:
            host.restart_sshd()
        self.assertEqual(self.monarch("status").status, 0)
        self.assertEqual(self.monarch("stop", timeout=60).status, 0)
        run.wait(60)
        self.assert_nothing_left()

    def test_a_killed_supervisor_comes_back_to_the_same_ranks(self):
        run = self.running(2)
        before = {rank: pid for rank, pid in enumerate(self.wait_for_marks("up", 4))}
        old = self.process("supervisor")
        self.kill(old)
        wait_for(lambda: [p for p in self.processes_of("supervisor") if p.pid != old.pid], "another supervisor")
        harness.wait_for(lambda: self.monarch("status").status == 0, "an answer of the supervisor")
        self.assertEqual(dict(enumerate(self.wait_for_marks("up", 4))), before)
        self.assertEqual(self.monarch("stop", timeout=60).status, 0)
        run.wait(60)
        self.assert_nothing_left()

    def test_without_supervisor_and_guard_hosts_clean_up_by_themselves(self):
        run = self.running(2)
        job, = self.jobs()
        self.kill_all([self.process(role) for role in ("guard", "supervisor")])
        self.wait_for_the_end_on(time.monotonic(), "h1", "h2")
        self.assertEqual(run.wait(60), 70, run)
        # What a supervisor alone can remove, on login: the key and its socket.
        self.assertEqual([left for left in self.leftovers() if not re.search(rf"{job}(\.sock|/key)$", left)], [])


if __name__ == "__main__":
    cluster.main()
