"""Hosts from which nothing reaches the supervisor but through the SSH session: jobs there, refusals, and what befalls the session."""

import os
import re
import signal
import subprocess
import unittest

import cluster
import faults
import jobs
from host import Options, wait_for
from losses_test import ALONE_S, ORPHAN_TTL_S
from meshes_test import OVERLAY, has_torch

VIA_SSH = {"via": "ssh"}
RUNNING = "mark up; " + jobs.FOREVER


class Tunnelled(cluster.ClusterTest):
    def blocked(self, hosts, **options):
        """A world whose hosts cannot call login."""
        w = self.world(hosts, **options)
        for host in w.hosts:
            faults.block_call_back(w, host)
        return w

    def tunnelled(self, script, **keys):
        return self.ssh_job(script, **{"control": VIA_SSH, **keys})

    def running(self, hosts=2):
        self.blocked(hosts)
        run = self.start("run", self.tunnelled(RUNNING, hosts=hosts, supervision={"orphan_ttl": f"{ORPHAN_TTL_S}s"}))
        self.wait_for_marks("up", 2 * hosts, timeout=60)
        return run

    def events(self):
        return [event["event"] for event in self.monarch("events", "last", "--json").json()]

    def stop(self, run):
        self.assertEqual(self.monarch("stop", timeout=60).status, 0)
        run.wait(60)
        self.assert_nothing_left()

    def wait_for_the_end_on(self, *names):
        def there():
            return [str(process) for host, process in self.on_hosts() if host.name in names]
        wait_for(lambda: not there(), lambda: "the end of " + "\n".join(there()), ALONE_S)


class Meshes(Tunnelled):
    def test_ranks_run_where_hosts_cannot_call_back_and_know_each_others_addresses(self):
        w = self.blocked(4)
        done = self.monarch("run", self.tunnelled("mark up; echo $MASTER_ADDR; echo err >&2", hosts=4, slots=2), timeout=60)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(self.hosts_of_marks("up"), {rank: f"h{rank // 2 + 1}" for rank in range(8)})
        self.assertEqual(re.findall(r"^\[m/\d@h\d\] (.*)$", done.out, re.M), [w["h1"].address] * 8, done)
        self.assertNotIn("host.suspect", self.events())
        self.assert_nothing_left()

    def test_hosts_behind_a_jump_host_are_reached_by_the_address_that_it_used(self):
        w = self.blocked(3)
        for host in w.hosts[1:]:
            w.cut("login", host.name)
        spec = self.tunnelled("mark up; echo $MASTER_ADDR", pool=["h2", "h3"], ssh={"jump": ["h1"]})
        done = self.monarch("run", spec, timeout=60)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(re.findall(r"^\[m/\d@h\d\] (.*)$", done.out, re.M), [w["h2"].address] * 4, done)
        done = self.monarch("run", self.ssh_job("true", pool=["h2", "h3"], ssh={"jump": ["h1"]}), timeout=60)
        self.assertEqual(done.status, 0, f"without a word of control: {done}")
        self.assert_nothing_left()

    @unittest.skipUnless(has_torch(), "PyTorch is not installed (Debian: python3-torch)")
    def test_ddp_runs_unchanged(self):
        self.blocked(4)
        self.needs_ssh()
        spec = os.path.join(cluster.world.ROOT, "configs/ddp.yaml")
        overlay = self.write("hosts.yaml", OVERLAY + "control: {via: ssh}\n")
        done = self.monarch("run", "-f", spec, "-f", overlay, timeout=170)
        self.assertEqual(done.status, 0, done)
        ranks = re.findall(r"^\[trainer/(\d)@h(\d)\] rank (\d) of 8 parameters ([0-9a-f]{16}) agree$", done.out, re.M)
        self.assertEqual(sorted((int(r), int(h)) for r, h, _, _ in ranks), [(r, r // 2 + 1) for r in range(8)], done)
        self.assert_nothing_left()

    def test_a_flood_of_output_puts_no_host_in_doubt(self):
        self.blocked(2)
        flood = "head -c 100000000 /dev/zero | tr '\\0' '\\n' & yes | head -c 100000000 >&2; wait"
        null = os.open("/dev/null", os.O_WRONLY)
        self.addCleanup(os.close, null)
        run = self.start("run", self.tunnelled(flood, slots=1, logs={"max_size": "16MiB"}), stdout=null)
        self.assertEqual(run.wait(120), 0, run)
        self.assertEqual([type for type in self.events() if type in ("host.suspect", "host.lost")], [])
        self.assert_nothing_left()


    def test_output_over_a_narrow_line_loses_no_host(self):
        """2.4 Mbit/s, and 3 MB of output on each host."""
        w = self.blocked(2)
        run = self.start("run", self.tunnelled("mark up; while [ ! -e /tmp/go ]; do nap 0.1; done; head -c 3000000 /dev/zero | tr '\\0' '\\n'",
                                               slots=1), stdout=subprocess.DEVNULL)
        self.wait_for_marks("up", 2)
        for host in w.hosts:
            w.link(host.name, "login", bandwidth=300_000)
            host.write("/tmp/go", "")
        self.assertEqual(run.wait(120), 0, run)
        self.assertNotIn("host.lost", self.events())
        for host in w.hosts:
            os.unlink(host.path("/tmp/go"))
        self.assert_nothing_left()


class Refusals(Tunnelled):
    def test_an_sshd_that_forbids_it_is_named_and_replaced(self):
        self.blocked(3, options={"h1": Options(sshd_config="AllowTcpForwarding no")})
        done = self.monarch("run", self.tunnelled("mark up", hosts=2, slots=1, ssh={"spares": 1}), timeout=60)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(self.hosts_of_marks("up"), {0: "h3", 1: "h2"})
        self.assertRegex(done.err, r"h1: forwarding refused \(tunnel,.*AllowTcpForwarding")
        self.assert_nothing_left()

    def test_without_another_host_the_job_fails_and_says_what_to_change(self):
        self.blocked(2, options={"h2": Options(sshd_config="PermitListen 10.0.0.1:9")})
        done = self.monarch("run", self.tunnelled("mark up", slots=1), timeout=60)
        verdict = self.assert_result(done, 69, "failed")
        failed, = verdict["failed_hosts"]
        self.assertEqual((failed["host"], failed["kind"], failed["phase"]), ("h2", "forwarding refused", "tunnel"), verdict)
        self.assertIn("ExitOnForwardFailure=yes -R", failed["again"], verdict)
        self.assertEqual(self.marks("up"), [])
        self.assert_nothing_left()


class Losses(Tunnelled):
    def test_sessions_that_are_killed_are_opened_again_and_nothing_is_lost(self):
        run = self.running()
        before = self.wait_for_marks("up", 4)
        for host in self.w.hosts:
            host.stop_sshd()
            host.start_sshd()
        wait_for(lambda: self.supervisor_log().count("its tunnel is open again") == 2, "two tunnels", 20)
        self.assertEqual(self.monarch("status").status, 0)
        self.assertEqual(self.wait_for_marks("up", 4), before)
        self.assertNotIn("host.lost", self.events())
        self.stop(run)

    def test_connections_that_are_forgotten_on_the_way_are_opened_again_before_a_host_is_lost(self):
        """As a router does that translates addresses: nothing passes, and neither end hears of it."""
        run = self.running()
        before = self.wait_for_marks("up", 4)
        for times in (1, 2):
            for host in self.w.hosts:
                self.w.both("login", host.name, forget=True)
            for word in ("its tunnel is open again", "heard again"):
                wait_for(lambda: self.supervisor_log().count(word) == 2 * times, self.supervisor_log, 20)
        self.assertEqual(self.monarch("status").status, 0)
        self.assertEqual(self.wait_for_marks("up", 4), before)
        self.assertNotIn("host.lost", self.events())
        self.stop(run)

    def test_a_host_whose_sshd_is_gone_for_good_is_lost_and_cleans_up_by_itself(self):
        run = self.running()
        self.w["h2"].stop_sshd()
        finished = run.finished(60)
        verdict = self.verdict()
        self.assertEqual((verdict["outcome"], verdict["cause"]["host"]), ("failed", "h2"), finished)
        self.wait_for_the_end_on("h2")
        self.w["h2"].start_sshd()
        self.assert_nothing_left()

    def test_power_loss(self):
        run = self.running()
        self.w["h2"].power_off()
        self.assertNotEqual(run.finished(60).status, 0)
        self.assertEqual(self.verdict()["cause"]["host"], "h2")
        self.assert_nothing_left()

    def test_an_interrupt_ends_ranks_workers_and_sessions_in_order(self):
        run = self.running()
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(60), 130, run)
        self.assertEqual(self.verdict()["left_behind"], [])
        self.assertNotIn("ended by order", self.supervisor_log())
        self.assert_nothing_left()

    def test_a_supervisor_that_comes_back_takes_the_same_way(self):
        run = self.running()
        ranks = [rank["pid"] for rank in self.status()["meshes"][0]["ranks"]]
        old = self.process("supervisor")
        self.kill(old)
        wait_for(lambda: "supervisor.adopted" in self.events(), self.supervisor_log)
        self.assertNotIn(old.pid, [p.pid for p in self.processes_of("supervisor")])
        self.assertEqual([rank["pid"] for rank in self.status()["meshes"][0]["ranks"]], ranks)
        self.assertEqual(self.monarch("stop", "last", timeout=60).status, 0)
        self.assertEqual(run.wait(60), 143, run)
        self.assertEqual(self.verdict()["left_behind"], [])
        self.assertEqual(self.supervisor_log().count("its tunnel is open again"), 2, self.supervisor_log())
        self.assert_nothing_left()

    def test_without_supervisor_and_guard_hosts_clean_up_by_themselves(self):
        run = self.running()
        job, = self.jobs()
        self.kill_all([self.process(role) for role in ("guard", "supervisor")])
        self.wait_for_the_end_on("h1", "h2")
        self.assertEqual(run.wait(60), 70, run)
        # What a supervisor alone can remove, on login: the key and its socket.
        self.assertEqual([left for left in self.leftovers() if not re.search(rf"{job}(\.sock|/key)$", left)], [])


if __name__ == "__main__":
    cluster.main()
