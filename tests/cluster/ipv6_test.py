"""Hosts that have addresses of IPv6 alone: by name and by number, through a jump host, through a tunnel, and what is said of them."""

import os
import re
import unittest

import cluster
from host import HOME, Options
from meshes_test import OVERLAY, has_torch

SHOW = "mark up; echo $MASTER_ADDR"


class Ipv6(cluster.ClusterTest):
    def masters(self, done):
        return re.findall(r"^\[m/\d@\w+\] (.*)$", done.out, re.M)

    def by_number(self, *names, **more):
        return [{"name": f"n{name[1:]}", "address": self.w[name].address, **more} for name in names]

    def test_hosts_whose_names_have_no_other_addresses(self):
        w = self.world(3, ipv6=True)
        spec = self.ssh_job(SHOW, hosts=2, network={"interface": "eth0"}, ssh={"spares": 1})
        done = self.monarch("run", spec, timeout=60)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(self.hosts_of_marks("up"), {0: "h1", 1: "h1", 2: "h2", 3: "h2"})
        self.assertEqual(self.masters(done), [w["h1"].address] * 4, done)
        self.assert_nothing_left()

    def test_addresses_in_numbers_and_another_port(self):
        w = self.world(2, ipv6=True, options={"h1": Options(sshd_config="Port 2222"), "h2": Options(sshd_config="Port 2222")})
        known = "".join(f"[{host.address}]:2222 {w.public_key(host.name)}\n" for host in w.hosts)
        w.login.write(HOME + "/.ssh/known_hosts", known, 0o600)
        spec = self.ssh_job(SHOW, pool=self.by_number("h1", "h2", port=2222), control={"address": w.login.address})
        done = self.monarch("run", spec, timeout=60)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(self.masters(done), [w["h1"].address] * 4, done)
        self.assert_nothing_left()

    def test_a_host_that_is_not_known_is_shown_with_a_command_that_works(self):
        w = self.world(1, ipv6=True, options={"h1": Options(sshd_config="Port 2222", known=False)})
        done = self.monarch("run", self.ssh_job("true", hosts=1, slots=1, pool=self.by_number("h1", port=2222)), timeout=60)
        verdict = self.assert_result(done, 3, "failed")
        failed, = verdict["failed_hosts"]
        self.assertEqual(failed["kind"], "host key unknown")
        self.assertIn(f"[{w['h1'].address}]:2222", failed["message"])
        shown = w.login.run("sh", "-c", failed["again"], check=False)
        self.assertIn("Host key verification failed", shown.stderr, failed["again"])
        self.assert_nothing_left()

    def test_through_a_jump_host(self):
        w = self.world(3, ipv6=True)
        for host in w.hosts[1:]:
            w.cut("login", host.name)
        spec = self.ssh_job(SHOW, pool=self.by_number("h2", "h3"), control={"via": "ssh"},
                            ssh={"jump": [f"[{w['h1'].address}]"]})
        done = self.monarch("run", spec, timeout=60)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(self.masters(done), [w["h2"].address] * 4, done)
        self.assert_nothing_left()

    def test_through_a_tunnel(self):
        w = self.world(2, ipv6=True)
        done = self.monarch("run", self.ssh_job(SHOW, control={"via": "ssh"}), timeout=60)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(self.masters(done), [w["h1"].address] * 4, done)
        self.assert_nothing_left()

    def test_the_doctor_has_nothing_to_say_of_them(self):
        self.world(3, ipv6=True)
        done = self.monarch("doctor", self.ssh_job("true", hosts=3, slots=1), "--json", timeout=90)
        self.assertEqual([line for line in done.json() if line["type"] == "finding" and "host" in line], [], done)
        self.assertEqual(done.status, 0, done)
        self.assert_nothing_left()

    @unittest.skipUnless(has_torch(), "PyTorch is not installed (Debian: python3-torch)")
    def test_ddp_runs_unchanged(self):
        self.world(4, ipv6=True)
        self.needs_ssh()
        spec = os.path.join(cluster.world.ROOT, "configs/ddp.yaml")
        done = self.monarch("run", "-f", spec, "-f", self.write("hosts.yaml", OVERLAY), timeout=170)
        self.assertEqual(done.status, 0, done)
        ranks = re.findall(r"^\[trainer/(\d)@h(\d)\] rank (\d) of 8 parameters ([0-9a-f]{16}) agree$", done.out, re.M)
        self.assertEqual(sorted((int(r), int(h)) for r, h, _, _ in ranks), [(r, r // 2 + 1) for r in range(8)], done)
        self.assert_nothing_left()


if __name__ == "__main__":
    cluster.main()
