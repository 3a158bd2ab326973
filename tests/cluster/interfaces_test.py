"""network: {interface, ports} on hosts of their own: which address and ports ranks are given, and a host that lacks the interface."""

import re

import cluster

SHOW = "mark up; echo $MASTER_ADDR $MASTER_PORT $NCCL_SOCKET_IFNAME $GLOO_SOCKET_IFNAME $MONARCH_PORT_HTTP"


class Interfaces(cluster.ClusterTest):
    def with_interfaces(self, hosts, *names):
        w = self.world(hosts)
        for name in names:
            # A pair whose other end is left alone: it is up, and has an address.
            w[name].run("ip", "link", "add", "ib0", "type", "veth", "peer", "name", "ib0x")
            w[name].run("ip", "link", "set", "ib0x", "up")
            w[name].run("ip", "link", "set", "ib0", "up")
            w[name].run("ip", "address", "add", f"10.88.0.{name[1:]}/24", "dev", "ib0")
        return w

    def test_ranks_are_given_the_interfaces_address_and_ports_of_the_range(self):
        self.with_interfaces(2, "h1", "h2")
        spec = self.ssh_job(SHOW, network={"interface": "ib0", "ports": "20000-20019"}, mesh={"ports": {"http": "auto"}})
        done = self.monarch("run", spec, timeout=60)
        self.assert_result(done, 0, "succeeded")
        shown = re.findall(r"^\[m/\d@(h\d)\] (\S+) (\d+) (\S+) (\S+) (\d+)$", done.out, re.M)
        self.assertEqual([(a, n, g) for _, a, _, n, g, _ in shown], [("10.88.0.1", "ib0", "ib0")] * 4, done)
        self.assertEqual(len({master for _, _, master, _, _, _ in shown}), 1, done)
        ports = [(host, int(port)) for host, _, _, _, _, port in shown] + [("h1", int(shown[0][2]))]
        self.assertEqual(len(set(ports)), 5, done)
        self.assertTrue(all(20000 <= port <= 20019 for _, port in ports), done)
        self.assert_nothing_left()

    def test_a_host_without_the_interface_says_what_it_has_and_is_replaced(self):
        w = self.with_interfaces(3, "h2", "h3")
        spec = self.ssh_job("mark up", slots=1, network={"interface": "ib0"}, ssh={"spares": 1})
        done = self.monarch("run", spec, timeout=60)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(self.hosts_of_marks("up"), {0: "h3", 1: "h2"})
        self.assertEqual([(f["host"], f["kind"]) for f in self.verdict()["failed_hosts"]], [("h1", "no such interface")])
        self.assertRegex(done.err, rf"h1: .*network\.interface is ib0,.* \({re.escape(w['h1'].address)}\)")
        self.assert_nothing_left()

    def test_it_counts_before_the_way_through_a_tunnel(self):
        self.with_interfaces(2, "h1", "h2")
        spec = self.ssh_job("echo $MASTER_ADDR", slots=1, network={"interface": "ib0"}, control={"via": "ssh"})
        done = self.monarch("run", spec, timeout=60)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(re.findall(r"^\[m/\d@h\d\] (.*)$", done.out, re.M), ["10.88.0.1"] * 2, done)
        self.assert_nothing_left()


if __name__ == "__main__":
    cluster.main()
