"""Checkpoints in the memory of hosts that are reached over SSH: a gang whose host loses its power, or stands still, goes on from them
on a spare, and what stood still saves nothing any more when it goes on.

The folder that the hosts share here is for what ranks say to this test alone: what they go on from is in no file.
"""

import json
import os
import unittest

import cluster
import harness
import host_faults
import world
from host_faults import MODULES

# As host_faults.COMMIT, by checkpoints that follow from rank, generation and step: a line of effects.RANK is a save that was answered by
# yes, with the generation that saves and the step.
PROGRAM = """import hashlib, json, os, sys, time
import monarch_rank as monarch
rank, generation = os.environ["MONARCH_RANK"], os.environ["MONARCH_GENERATION"]
def write(name, text):
    with open(name + ".new" + generation, "w") as file: file.write(text)
    os.rename(name + ".new" + generation, name)
def content(rank, generation, step):
    head = json.dumps({"rank": rank, "generation": generation, "step": step}).encode() + b"\\n"
    return head + hashlib.sha256(head).digest() * 100000
write("there." + rank, "%s %s %d" % (os.uname().nodename, generation, os.getpid()))
found, step = monarch.load(), 0
if found is not None:
    head = json.loads(found.readline().decode())
    step = head["step"]
    write("resumed.%s.%s" % (rank, generation), json.dumps({**head, "right": content(**head) == bytes(found)}))
while not os.path.exists("go"):
    step += 1
    kept = monarch.save(step, content(rank, generation, step), timeout=None)
    write("answer.%s.%s" % (rank, generation), "%d %s" % (step, kept))
    if not kept: os._exit(3)
    write("step." + rank, str(step))
    with open("effects." + rank, "a") as file: file.write("%s %d\\n" % (generation, step))
    time.sleep(0.1)
"""


@unittest.skipUnless(world.cgroup_parent(), "no cgroup2 to write to")
class Vaults(host_faults.HostFaultTest):
    def ssh_job(self, *arguments, **keys):
        return super().ssh_job(*arguments, **keys, checkpoints={"peer": 1, "memory": "256MiB"})

    def saving(self, **options):
        """As running(), by ranks that keep a checkpoint of 3 MiB at each of their steps."""
        self.write("rank.py", PROGRAM)
        return self.running(script="exec /usr/bin/python3 -B rank.py\n", mesh={"env": {"PYTHONPATH": MODULES}}, **options)

    def commits(self, gang):
        """(generation, step) of each that the gang has committed, in order."""
        events = [e for e in self.events("checkpoint.committed") if e["details"]["gang"] == str(gang)]
        return [(e["generation"], int(e["details"]["step"])) for e in events]

    def assert_resumed(self, gang):
        """Both its ranks went on from the newest step of those that ran before, with what was saved; the generation that did."""
        ranks = [2 * gang, 2 * gang + 1]
        generation = self.generation_of(ranks[0])
        paths = [f"resumed.{rank}.{generation}" for rank in ranks]
        harness.wait_for(lambda: all(os.path.exists(self.path("work", path)) for path in paths), self.supervisor_log)
        found = [json.loads(self.read("work", path)) for path in paths]
        writer, step = max((commit for commit in self.commits(gang) if commit[0] < generation), key=lambda commit: commit[1])
        self.assertEqual(found, [{"rank": str(rank), "generation": str(writer), "step": step, "right": True} for rank in ranks])
        return generation

    def assert_saving(self, ranks):
        before = {rank: self.step_of(rank) for rank in ranks}
        harness.wait_for(lambda: all(self.step_of(rank) > before[rank] + 2 for rank in ranks),
                         lambda: f"saves of {ranks} above {before}: {self.supervisor_log()}", host_faults.START_S)

    def assert_counted_once(self, gang):
        """Its commits are each step once, in order, by generations that never go back; so are the answers that its ranks had."""
        commits = self.commits(gang)
        self.assertEqual(commits, sorted(commits), "a commit of an older generation counted")
        self.assertEqual([step for _, step in commits], list(range(1, commits[-1][1] + 1)), "a step was lost, or counted twice")
        for rank in (2 * gang, 2 * gang + 1):
            lines = [tuple(map(int, line.split())) for line in self.read("work", f"effects.{rank}").splitlines() if line.count(" ") == 1]
            self.assertEqual(lines, sorted(lines), f"a save of rank {rank} counted after its generation")

    def test_a_gang_goes_on_when_one_host_after_the_other_loses_its_power(self):
        run = self.saving(pool=4, spares=2)
        self.w["h2"].power_off()
        self.wait_for_move([2, 3], "h3")
        first = self.assert_resumed(1)
        self.assert_saving([2, 3])
        self.pids.update({rank: self.pid_of(rank) for rank in (2, 3)})
        self.w["h3"].power_off()
        self.wait_for_move([2, 3], "h4")
        self.assertGreater(self.assert_resumed(1), first)
        self.assert_saving([2, 3])
        self.assert_go_on([0, 1])
        self.assertEqual([e["host"] for e in self.events("host.lost")], ["h2", "h3"])
        self.end_well(run, ["h2", "h3"])
        self.assert_counted_once(0)
        self.assert_counted_once(1)
        self.assert_nothing_left()

    def test_a_gang_whose_host_is_frozen_goes_on_elsewhere_and_it_saves_nothing_when_it_is_thawed(self):
        run = self.saving()
        since = self.now()
        self.w["h2"].freeze()
        self.assert_declared("h2", since)
        self.wait_for_move([2, 3], "h3")
        self.assert_resumed(1)
        self.assert_saving([2, 3])
        before = {rank: self.read("work", f"effects.{rank}").count("\n1 ") for rank in (2, 3)}
        self.w["h2"].thaw()
        harness.wait_for(lambda: not self.alive_on("h2", 1), lambda: f"the end of {self.alive_on('h2', 1)}", 30)
        late = {rank: self.read("work", f"effects.{rank}").count("\n1 ") for rank in (2, 3)}
        self.assertEqual(late, before, "a save of the thawed host was answered by yes")
        self.assert_saving([2, 3])
        self.assert_go_on([0, 1])
        self.end_well(run)
        self.assert_counted_once(0)
        self.assert_counted_once(1)
        self.assert_nothing_left()


if __name__ == "__main__":
    cluster.main()
