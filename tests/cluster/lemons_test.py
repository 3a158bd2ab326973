"""Hosts that fail again and again, that fail when they are needed, and a link that fails between two that are well: what was learnt of a host
is not forgotten, nothing goes to and fro, and nobody is blamed without evidence."""

import cluster
import faults
import harness
import host_faults
import recovery

FLAPS = 20
# The first rank of a gang answers the second one, each tenth of a second; who misses the other for a second ends with a code of its own.
PEERS = """import os, socket, time
rank, generation = os.environ["MONARCH_RANK"], os.environ["MONARCH_GENERATION"]
def write(name, text):
    with open(name + ".new" + generation, "w") as file: file.write(text)
    os.rename(name + ".new" + generation, name)
place, until = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), time.monotonic() + 5
write("there." + rank, "%s %s %d" % (os.uname().nodename, generation, os.getpid()))
try:
    if os.environ["RANK"] == "0":
        listener = socket.create_server(place)
        listener.settimeout(5)
        peer, _ = listener.accept()
    else:
        peer = None
        while peer is None:
            try: peer = socket.create_connection(place, 1)
            except OSError:
                if time.monotonic() > until: raise
                time.sleep(0.05)
    peer.settimeout(1)
    step = 0
    while not os.path.exists("go"):
        peer.sendall(b"x")
        if not peer.recv(1) and not os.path.exists("go"): os._exit(5)
        step += 1
        write("step." + rank, str(step))
        with open("effects." + rank, "a") as file: file.write("%s %d\\n" % (generation, step))
        time.sleep(0.1)
except OSError:
    os._exit(0 if os.path.exists("go") else 5)
"""


class Lemons(host_faults.HostFaultTest):
    def test_ranks_that_die_there_of_nothing_of_theirs(self):  # H09
        run = self.running(restart={"max": 8})
        for rank in (2, 3):
            since = self.now()
            generation = self.generation_of(2)
            self.kill_rank(rank)
            self.assert_seen(self.wait_for_event("gang.failed", generation), since)
            harness.wait_for(lambda g=generation: self.generation_of(2) > g and self.generation_of(3) > g, self.supervisor_log)
        # Two different ranks of it are evidence, and the second death moves them.
        self.assert_stage(self.wait_for_event("host.quarantined"), r"^h2: m/2 and m/3 died there of what is not their program's doing")
        self.wait_for_move([2, 3], "h3")
        self.assert_go_on([0, 1])
        self.kill_rank(2)
        harness.wait_for(lambda: self.generation_of(2) == 4, self.supervisor_log)
        self.assertEqual(self.host_of(2), "h3")
        self.end_well(run)
        self.assert_single_effect(range(4))
        self.assert_nothing_left()

    def kill_rank(self, rank):
        host, _, pid = self.pid_of(rank).split()
        self.w[host].run("/bin/kill", "-KILL", pid)

    def test_a_cable_that_goes_in_and_out(self):  # N05
        run = self.running()
        since = self.now()
        for _ in range(FLAPS):
            self.w["h2"].unplug()
            recovery.after(2.2)
            self.w["h2"].plug()
            recovery.after(0.8)
        self.assert_seen(self.events("host.lost")[0], since, host_faults.DECLARED_S["fast"][1])
        moves = [e for e in self.events("host.replaced") if e["message"].startswith("h3 takes the place of h2")]
        self.assertEqual(len(moves), 1, self.supervisor_log())
        self.assert_stage(moves[0], r"\[host lost: replacement 1 of 8 in 1h")
        self.assertEqual({(self.host_of(r), self.generation_of(r)) for r in (2, 3)}, {("h3", 2)})
        self.assert_go_on([0, 1])
        self.end_well(run)
        self.assert_single_effect(range(4))
        self.assert_nothing_left()

    def test_a_host_that_cannot_be_reached_when_it_is_needed(self):  # H12
        run = self.running(pool=5, spares=0, ssh={"connect_timeout": "3s"})
        faults.hung_sshd(self.w["h3"])
        faults.black_hole(self.w, self.w["h4"])
        since = self.now()
        self.w["h2"].power_off()
        self.assert_declared("h2", since)
        # One after the other, each with a time of its own.
        self.wait_for_move([2, 3], "h5")
        self.assert_stage(self.events("host.replaced")[-1], r"^h5 takes the place of ")
        self.assertEqual({e["host"] for e in self.events("host.failed")}, {"h3", "h4"})
        self.assert_go_on([0, 1])
        self.end_well(run, ["h2"])
        self.assert_single_effect(range(4))
        self.assert_nothing_left()

    def test_two_that_do_not_reach_each_other_and_both_reach_us(self):  # N07
        self.write("rank.py", PEERS)
        run = self.running(pool=5, gangs=4, slots=1, script="exec /usr/bin/python3 -B rank.py\n",
                           mesh={"dims": {"pair": 2, "host": 2}, "gang": "pair"})
        self.w.both("h3", "h4", cut=True)
        since = self.now()
        self.assert_connects("h4", False, source=self.w["h3"])
        # Ranks that miss each other say so by a code of their own: that is no evidence about a host, and their gang stays where it is.
        failed = self.wait_for_event("gang.failed")
        self.assert_seen(failed, since, 5.0)
        self.assert_stage(failed, r"exit code 5.*\[restart 1 of 4 in 10m, at once")
        self.wait_for_event("gang.failed", 2)
        self.w.both("h3", "h4", cut=False)
        self.wait_for_move([2, 3])
        self.assertEqual({r: self.host_of(r) for r in (2, 3)}, {2: "h3", 3: "h4"})
        self.assert_nothing_done("host.lost", "host.replaced", "host.quarantined", "host.suspect")
        self.assert_go_on([0, 1])
        self.end_well(run)
        self.assert_single_effect(range(4))
        self.assert_nothing_left()

    def test_a_host_where_large_packets_are_lost(self):  # N10
        run = self.running(pool=4, spares=0, ssh={"connect_timeout": "3s"})
        for name in ("h1", "h3"):
            self.w.both("login", name, largest=1200)
        since = self.now()
        self.w["h2"].power_off()
        self.assert_declared("h2", since)
        # h1 runs on: its beats are small. h3 cannot be started: its key exchange is not.
        self.wait_for_move([2, 3], "h4")
        self.assert_stage(self.events("host.replaced")[-1], r"^h4 takes the place of ")
        failed, = [e for e in self.events("host.failed") if e["host"] == "h3"]
        self.assertIn("timeout", failed["message"])
        self.assertGreater(self.counted("too_large"), 0)
        self.assert_go_on([0, 1])
        self.w.heal()
        self.end_well(run, ["h2"])
        self.assert_single_effect(range(4))
        # An sshd goes on sending its half of a key exchange, later and later, until somebody says that nobody waits for it.
        self.assert_nothing_left(60)

    def test_a_spare_where_somebody_has_the_port(self):  # N13
        run = self.running(pool=4, spares=2, slots=1, mesh={"ports": {"http": 18080}})
        since = self.now()
        with self.w["h3"].socket() as taken:
            taken.bind(("0.0.0.0", 18080))
            taken.listen()
            self.w["h2"].power_off()
            self.assert_declared("h2", since)
            self.wait_for_move([1], "h4")
            self.assert_stage(self.events("host.replaced")[-1], r"^h4 takes the place of ")
        lacks = [e["message"] for e in self.events() if "18080" in e["message"]]
        self.assertTrue(lacks, self.supervisor_log())
        self.assert_go_on([0])
        self.end_well(run, ["h2"])
        self.assert_single_effect(range(2))
        self.assert_nothing_left()


if __name__ == "__main__":
    cluster.main()
