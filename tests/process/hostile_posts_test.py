"""A host that means harm, at the posts of the others and at a rank that publishes: honest calls, pulls and ranks notice nothing, and
what posts and publishers hold once it has stopped is what they held before.
"""

import json
import os
import sys

import actors
import harness
import rogue
from actors import actor, plugin

ATTACKS = ("stretch", "forge", "repeat", "promise", "thief", "exaggerate")
SIZE = 1 << 20
PUBLISH = f"""import os, time
import monarch_tensors as tensors
rank, number = int(os.environ["MONARCH_RANK"]), 0
with tensors.publisher("model") as model:
    while not os.path.exists("end"):
        with model.version(number) as version:
            version.put(f"w{{rank}}", bytearray([number % 251]) * {SIZE})
        number += 1
        time.sleep(0.05)
print("published", number)
"""
PULL = f"""import os, time
import monarch_tensors as tensors
parts = {{f"w{{rank}}": bytearray({SIZE}) for rank in range(2)}}
pull = tensors.source("trainer", "model").into(parts)
got, count = None, 0
while not os.path.exists("stop"):
    got = pull(newer_than=got, timeout=60)
    whole = bytes([got.version % 251]) * {SIZE}
    if any(part != whole for part in parts.values()): raise SystemExit(f"version {{got.version}} is not whole")
    count += 1
    if count == 3: open("pulls." + os.environ["MONARCH_RANK"], "w").close()
print("pulled", count)
"""


class RogueAtPosts(actors.ActorTest):
    def begin(self):
        self.rogue = rogue.Rogue(self.path("rogue"))
        self.write("publish.py", PUBLISH)
        self.write("pull.py", PULL)
        beside = {"dims": {"host": 2}, "hosts": {"like": "t"}, "env": {"PYTHONPATH": harness.MODULES, "PYTHONDONTWRITEBYTECODE": "1"}}
        meshes = {"trainer": {**beside, "program": [sys.executable, "publish.py"]},
                  "generator": {**beside, "program": [sys.executable, "pull.py"]}}
        spec = self.actor_job({"tally": actor("steady", "Tally")},
                              {"plugin": plugin("steady"), "entry": "steady", "args": {"calls": 64, "end": self.path("work", "end")}},
                              gpus=1, launch={"local": {"hosts": 3, "spares": 1}}, tensors={"transports": ["tcp"]})
        with open(spec, encoding="utf-8") as file:
            job = json.load(file)
        job["meshes"].update(meshes)
        run = self.start("run", "--no-prefix", self.spec(json.dumps(job), "actors.yaml"), env=self.rogue.worker_of("v3"))
        run.wait_for_out("begun")
        for rank in range(2):
            harness.wait_for(lambda: os.path.exists(self.path("work", f"pulls.{rank}")), lambda: f"pulls of {rank}: {run.out} {run.err}")
        return run

    def held(self):
        """Of each post and each rank that publishes: its open files and the KiB that it has, by its number."""
        watched = self.find("monarch-worker", "post") + [p for p in self.processes() if str(p).endswith(" publish.py")]
        held = {}
        for process in watched:
            status = self.read(f"/proc/{process.pid}/status")
            resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
            held[process.pid] = (len(os.listdir(f"/proc/{process.pid}/fd")), resident)
        return held

    def is_at_rest(self, before):
        now = self.held()
        return now.keys() == before.keys() and all(now[pid][0] <= files + 4 and now[pid][1] <= resident * 1.1 + 4096
                                                   for pid, (files, resident) in before.items())

    def test_what_it_says_costs_nobody_anything(self):
        run = self.begin()
        before = self.held()
        self.assertEqual(len(before), 4)
        for attack in ATTACKS:
            self.assertGreater(self.rogue.order(f"post-{attack}"), 20, attack)
            harness.wait_for(lambda: self.is_at_rest(before), lambda: f"rest after {attack}: {before}, and now {self.held()}")
        self.write("stop", "")
        harness.wait_for(lambda: run.out.count("pulled") == 2, lambda: f"the end of all pulls: {run.out} {run.err}")
        self.write("end", "")
        self.assertEqual(run.wait(), 0, run)
        seen = json.loads(next(line for line in run.out.splitlines() if "{" in line))
        self.assertEqual((seen["twice"], seen["wrong"], list(seen["kinds"])), (0, 0, ["value"]), seen)
        self.assertEqual(run.out.count("published"), 2, run)
        self.assertEqual([e["event"] for e in self.events() if "restart" in e["event"] or "failed" in e["event"]], [], run)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
