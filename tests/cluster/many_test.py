"""As many hosts as a session each makes a difference for: every one keeps its tunnel, and start and end are bounded in time."""

import cluster
import faults

HOSTS = 64
BOUND_S = 90  # of a machine with two cores that is busy with other things: it takes a tenth of that


class Many(cluster.ClusterTest):
    def test_a_job_on_many_hosts_that_cannot_call_back(self):
        w = self.world(HOSTS)
        for host in w.hosts:
            faults.block_call_back(w, host)
        spec = self.ssh_job("mark up; sleep 6", hosts=HOSTS, slots=1, ssh={"connect_timeout": "1m"}, control={"via": "ssh"})
        done = self.monarch("run", spec, "--quiet", timeout=BOUND_S)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(len(self.marks("up")), HOSTS)
        events = [event["event"] for event in self.monarch("events", "last", "--json").json()]
        self.assertEqual(events.count("host.ready"), HOSTS)
        self.assertNotIn("host.lost", events)
        self.assertNotIn("its tunnel", self.supervisor_log())
        self.assert_nothing_left()


if __name__ == "__main__":
    cluster.main()
