"""Hosts that do not start, each for a reason of its own: all are named with it, and well ones take their places."""

import re

import cluster
import faults

# Name of the host, and what verdict.json must call its failure.
KINDS = {"h1": "host key changed", "h2": "host key unknown", "h3": ("timeout", "unreachable"), "h4": "timeout", "h5": "disk full",
         "h6": "shell noise", "h7": "architecture", "h8": "call-back blocked"}
OPTIONS = {"h2": faults.unknown_key(), "h5": faults.full_disk()}
QUICK = {"connect_timeout": "3s"}


class SickHosts(cluster.ClusterTest):
    def plant(self, w):
        faults.change_key(w["h1"])
        faults.dead(w["h3"])
        faults.black_hole(w, w["h4"])
        faults.endless_shell(w["h6"])
        faults.other_architecture(w["h7"])
        faults.block_call_back(w, w["h8"])

    def assert_kinds(self, verdict, kinds):
        got = {failed["host"]: failed["kind"] for failed in verdict["failed_hosts"]}
        self.assertEqual(got.keys(), kinds.keys(), verdict)
        for host, kind in got.items():
            self.assertIn(kind, kinds[host] if isinstance(kinds[host], tuple) else (kinds[host],), verdict)

    def assert_told(self, done, kinds):
        """One screen has all of them."""
        block = done.err[done.err.index("failed to start:"):]
        for host in kinds:
            self.assertRegex(block, re.compile(rf"│ {host}\b", re.M), done)
        self.assertLess(len(block.splitlines()), 40, done)

    def test_eight_sick_hosts_without_spares_fail_the_job_and_are_all_named(self):
        w = self.world(8, options=OPTIONS)
        self.plant(w)
        done = self.monarch("run", self.ssh_job("mark up", hosts=8, slots=1, ssh=QUICK), timeout=120)
        verdict = self.assert_result(done, 69, "failed")
        self.assert_kinds(verdict, KINDS)
        self.assert_told(done, KINDS)
        self.assertEqual(self.marks("up"), [])
        self.assert_nothing_left()

    def test_two_well_hosts_among_them_are_enough(self):
        w = self.world(10, options=OPTIONS)
        self.plant(w)
        done = self.monarch("run", self.ssh_job("mark up", hosts=2, slots=2, ssh={**QUICK, "spares": 8}), timeout=120)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(set(self.hosts_of_marks("up").values()), {"h9", "h10"})
        self.assert_nothing_left()

    def test_a_spare_takes_the_place_of_a_host_that_lacks_a_port(self):
        w = self.world(3)
        with w["h1"].socket() as taken:
            taken.bind(("0.0.0.0", 18080))
            taken.listen()
            spec = self.ssh_job("mark up", hosts=2, slots=1, mesh={"ports": {"http": 18080}}, ssh={"spares": 1})
            done = self.monarch("run", spec, timeout=60)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(set(self.hosts_of_marks("up").values()), {"h2", "h3"})
        self.assert_kinds(self.verdict(), {"h1": "lacks resources"})
        self.assert_nothing_left()

    def test_every_host_that_lacks_cores_is_named_whoever_is_first(self):
        """What the spec asks for is on no host, and one more does not even start."""
        w = self.world(4)
        faults.refuse(w["h2"])
        done = self.monarch("run", self.ssh_job("mark up", hosts=4, slots=1, mesh={"resources": {"cpus": 4000}}, ssh=QUICK), timeout=60)
        verdict = self.assert_result(done, 69, "failed")
        kinds = {"h1": "lacks resources", "h2": "refused", "h3": "lacks resources", "h4": "lacks resources"}
        self.assert_kinds(verdict, kinds)
        self.assert_told(done, kinds)
        self.assertEqual(self.marks("up"), [])
        self.assert_nothing_left()

    def test_every_host_that_lacks_a_port_is_named(self):
        w = self.world(3)
        with w["h1"].socket() as first, w["h3"].socket() as third:
            for taken in (first, third):
                taken.bind(("0.0.0.0", 18080))
                taken.listen()
            spec = self.ssh_job("mark up", hosts=3, slots=1, mesh={"ports": {"http": 18080}})
            done = self.monarch("run", spec, timeout=60)
        verdict = self.assert_result(done, 69, "failed")
        self.assert_kinds(verdict, {"h1": "lacks resources", "h3": "lacks resources"})
        self.assertEqual(self.marks("up"), [])
        self.assert_nothing_left()

    def test_refused_host_keys_alone_are_a_status_of_their_own(self):
        w = self.world(3, options={"h2": faults.unknown_key()})
        faults.change_key(w["h1"])
        faults.revoke_key(w, w["h3"])
        done = self.monarch("run", self.ssh_job("true", hosts=3, slots=1), timeout=60)
        verdict = self.assert_result(done, 3, "failed")
        self.assert_kinds(verdict, {"h1": "host key changed", "h2": "host key unknown", "h3": "host key revoked"})
        self.assert_nothing_left()

    def test_what_is_no_reason_to_fail_does_not(self):
        """A few lines of an rc file, and a changed key of a host that is not needed."""
        w = self.world(3)
        faults.noisy_shell(w["h1"])
        faults.change_key(w["h3"])
        done = self.monarch("run", self.ssh_job("mark up", hosts=2, slots=1, pool=["h1", "h2"]), timeout=60)
        self.assert_result(done, 0, "succeeded")
        self.assert_nothing_left()

    def test_other_ways_not_to_start(self):
        ways = {"h1": ("refused", faults.refuse), "h2": ("not let in", faults.refuse_login), "h3": ("timeout", faults.hung_sshd),
                "h4": ("not executable", faults.no_exec), "h5": ("not writable", faults.read_only_home)}
        w = self.world(5)
        for name, (_, plant) in ways.items():
            plant(w[name])
        done = self.monarch("run", self.ssh_job("true", hosts=5, slots=1, ssh=QUICK), timeout=90)
        verdict = self.assert_result(done, 69, "failed")
        self.assert_kinds(verdict, {name: kind for name, (kind, _) in ways.items()})


if __name__ == "__main__":
    cluster.main()
