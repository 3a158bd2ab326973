"""Actors on hosts that are reached over SSH: what they need is shipped once."""

import json
import os
import shutil
import signal
import subprocess

import actors
import cluster
from actor_jobs import END, Calls
from workspace_test import SENT


class OverSsh(Calls, cluster.ClusterTest):
    def sent(self):
        with open(self.job_file("supervisor.log", self.jobs()[-1]), encoding="utf-8") as file:
            return {host: came for host, came, _ in SENT.findall(file.read())}

    def test_a_plugin_is_shipped_once(self):
        w = self.world(2)
        self.needs_ssh()
        os.makedirs(self.path("work", "tree"))
        shutil.copyfile(actors.plugin("steady"), self.path("work", "tree", "libsteady.so"))
        spec = self.steady(2, "./libsteady.so", {"ssh": {"hosts": [h.name for h in w.hosts]}},
                           workspace={"path": self.path("work", "tree")})
        w["h1"].write(END, "")
        for is_first in (True, False):
            seen = self.seen(self.monarch("run", spec, timeout=60))
            self.assertEqual(seen["kinds"], {"value": 4 * seen["calls"]}, seen)
            self.assertEqual({host: came != "0B" for host, came in self.sent().items()}, {"h1": is_first, "h2": is_first})
        os.unlink(w["h1"].path(END))
        self.assert_nothing_left()

    def test_no_byte_of_a_large_body_is_in_the_clear(self):
        w = self.world(2)
        self.needs_ssh()
        os.makedirs(self.path("work", "tree"))
        shutil.copyfile(actors.plugin("steady"), self.path("work", "tree", "libsteady.so"))
        spec = self.spec(json.dumps({
            "version": 1, "job": "bodies", "launch": {"ssh": {"hosts": [h.name for h in w.hosts]}},
            "workspace": {"path": self.path("work", "tree")},
            "meshes": {"t": {"dims": {"host": 2, "gpu": 1}, "actors": {"tally": {"plugin": "./libsteady.so", "class": "Tally"}}}},
            "controller": {"plugin": "./libsteady.so", "entry": "carry", "args": {"rounds": 2, "go": END}}}))
        run = self.start("run", "--no-prefix", spec)
        run.wait_for_out("ready")
        known = {int(line.split()[3].rsplit(":", 1)[1]) for line in w["h2"].run("ss", "-Hltn").stdout.splitlines()}
        sniffer = w["h2"].start("python3", "-c", SNIFFER, json.dumps(sorted(known)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(sniffer.stdout.readline(), "listens\n")
        w["h1"].run("python3", "-c", "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto("
                    "bytes(at * 31 & 255 for at in range(99)), ('h2', 9))")
        begins = [END, END + ".0", END + ".1"]  # and each round
        for name in begins:
            w["h1"].write(name, "")
        run.wait(60)
        self.assertRegex(run.out, r"wrong 0, value 2\n$")
        seen, found, clear, beside = map(int, sniffer.communicate("", timeout=30)[0].split())
        self.assertGreater(seen, 32 << 20, "bytes of packets")
        self.assertEqual(clear, 0, "packets of TCP with a piece of a body")
        self.assertGreater(found, 0, "others: that which shows that it would be found")
        self.assertGreater(beside, seen // 2, "by connections that were not there before")
        for name in begins:
            os.unlink(w["h1"].path(name))
        self.assert_nothing_left()

    def test_no_pickle_of_another_host_is_read(self):
        w = self.world(2)
        self.needs_ssh()
        tree = self.path("work", "tree")
        os.makedirs(tree)
        here = os.path.dirname(os.path.abspath(__file__))
        for name in (os.path.join(here, "pickler.py"), os.path.join(here, "..", "process", "door_client.py")):
            shutil.copy(name, tree)
        with open(os.path.join(tree, "victim.py"), "w", encoding="utf-8") as file:
            file.write(VICTIM)
        spec = self.spec(json.dumps({
            "version": 1, "job": "pickles", "launch": {"ssh": {"hosts": [h.name for h in w.hosts]}}, "workspace": {"path": tree},
            "meshes": {"victim": {"dims": {"host": 1}, "actors": {"victim": {"python": "victim.py", "class": "Victim"}}},
                       "slots": {"dims": {"host": 1, "slot": 2}, "per_host": ["slot"], "hosts": {"like": "victim"}, "idle": True,
                                 "program": ["sleep", "600"]},
                       "trap": {"dims": {"host": 1}, "depends_on": ["victim"], "program": ["python3", "pickler.py", "/tmp/ran"]}}}))
        run = self.start("run", "--no-prefix", spec)
        run.wait_for_out("done", timeout=60)
        lines = run.out.splitlines()
        refused = [line for line in lines if line.startswith(("victim ", "monarch ", "end "))]
        self.assertEqual(len(refused), 7, run)
        for line in refused:
            self.assertRegex(line, "trust: job", run)
        self.assertIn("ask NotTrusted", lines, run)
        claims = [line.removeprefix("claim ") for line in lines if line.startswith("claim ")]
        self.assertRegex(claims[0], "^LD_PRELOAD comes from another host")
        self.assertRegex(claims[1], "^PYTHONSTARTUP comes from another host")
        self.assertEqual(claims[2:], ["MONARCH_TRUST is set by monarch for each rank", "('slots', [0])"], run)
        for host in w.hosts:
            self.assertFalse(os.path.exists(host.path("/tmp/ran")), run)
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 143, run)
        self.assert_nothing_left()


VICTIM = """
from monarch.actor import Actor, actors, endpoint

class Victim(Actor):
    @endpoint
    def take(self, *values):
        return len(values)

    @endpoint
    def ask(self):
        try:
            return repr(actors("trap", "trap").spring.call_one().get(timeout=20))
        except Exception as e:
            return type(e).__name__
"""


# All that comes to and goes from a host, until its input ends: bytes; packets that have a piece of plugins/steady.cc's bodies, of others
# and of TCP; bytes of TCP by ports that are not among those given. The kernel gives what it has room for.
SNIFFER = """
import json, select, socket, struct, sys
known = set(json.loads(sys.argv[1]))
piece = bytes(at * 31 & 255 for at in range(64))
heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
heard.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)
print("listens", flush=True)
seen = found = clear = beside = 0
while True:
    ready = select.select([heard, sys.stdin], [], [], 60)[0]
    if heard in ready:
        packet = heard.recv(1 << 17)
        seen += len(packet)
        tcp = packet[12:14] == bytes([8, 0]) and packet[23] == 6
        clear += tcp and piece in packet
        found += not tcp and piece in packet
        if tcp:
            start = 14 + (packet[14] & 15) * 4
            beside += 0 if known & set(struct.unpack_from("!HH", packet, start)) else len(packet)
    else:
        break
print(seen, found, clear, beside)
"""


if __name__ == "__main__":
    cluster.main()
