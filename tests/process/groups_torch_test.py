"""configs/group.yaml with PyTorch, which Debian's python3-torch brings: all-reduces by Gloo through a kill."""

import json
import os
import re
import unittest

import harness
import recovery
import training

SPEC = os.path.join(harness.ROOT, "configs", "group.yaml")
PROGRAM = json.dumps([training.TORCH_PYTHON, os.path.join(harness.ROOT, "configs", "group.py"), "--steps", "60", "--pause", "0.02"])
ALL = ["generator/0", "generator/1", "generator/2", "trainer/0"]


@unittest.skipIf(harness.SANITIZED, "no Python has the sanitizer's runtime that the library of tensors is built with")
@unittest.skipUnless(training.has_torch(), f"PyTorch for {training.TORCH_PYTHON} is not installed")
class GroupsOfTorch(recovery.RecoveryTest):
    def test_a_generator_that_is_killed_in_an_all_reduce(self):
        run = self.start("run", "--no-prefix", SPEC, "--set", f"meshes.trainer.program={PROGRAM}",
                         "--set", f"meshes.generator.program={PROGRAM}")
        harness.wait_for(lambda: run.out.count(" all of epoch 1.1 ") == 4, lambda: run, training.START_S)
        signalled = self.monarch("signal", "KILL", "--mesh", "generator", "--rank", "1")
        self.assertEqual(signalled.status, 0, signalled)
        run.wait(90)
        self.assertEqual(run.status, 0, run)
        lines = sorted(run.out.splitlines())
        others = [who for who in ALL if who != "generator/1"]
        found = [re.match(r"(\S+) lost at step \d+: (the connection to generator/1 ended|generator/1 is lost: )", line) for line in lines]
        self.assertEqual([one[1] for one in found if one], others, run)
        self.assertEqual([line.split(" from ")[0] for line in lines if "epoch 1.2 of generations" in line],
                         [f"{who} epoch 1.2 of generations 1,1,2,1" for who in ALL], run)
        self.assertEqual([line for line in lines if " done " in line], [f"{who} done 60" for who in ALL], run)
        self.assert_nothing_left()

    def test_a_store_that_the_first_member_makes_late(self):
        """Who waits for it says for whom, and nothing else, and has it as soon as it is there."""
        program = [training.TORCH_PYTHON, os.path.join(os.path.dirname(os.path.abspath(__file__)), "group_ranks.py"), "stores"]
        meshes = {name: {"dims": {"gpu": ranks}, "gang": "each", "program": program} for name, ranks in (("trainer", 1), ("generator", 3))}
        spec = {"version": 1, "job": "groups", "launch": {"local": {"hosts": 2}}, "tensors": {}, "meshes": meshes}
        run = self.start("run", "--no-prefix", self.spec(json.dumps(spec, indent=1), "stores.yaml"))
        run.wait(90)
        self.assertEqual(run.status, 0, run)
        missing = "trainer/0 has not called store()"
        lost = [f"lost {who} PeerGone: the connection to generator/2 ended" for who in ALL if who != "generator/2"]
        none = [f"none {who} Timeout: group sync: no store within 0s: {missing}" for who in ALL if who != "trainer/0"]
        self.assertEqual(sorted(run.out.splitlines()), lost + none + [f"stores {who} 4 1" for who in ALL], run)
        self.assertGreaterEqual(len(re.findall(rf"(?m)^monarch: group sync: no store since [\d.]+s: {re.escape(missing)}$", run.err)), 3, run)
        self.assertNotIn("c10d", run.err, run)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
