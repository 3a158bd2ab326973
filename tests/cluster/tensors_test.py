"""Tensors between hosts that are reached over SSH, and have nothing of ours."""

import json
import os
import shutil

import cluster
import harness
import tensor_jobs
import world
from actor_jobs import FAST

ALONE_S = 15  # until what nobody reaches has ended by itself

RANKS = os.path.join(harness.ROOT, "tests", "process", "tensor_ranks.py")


class Tensors(tensor_jobs.PullsTheExample, cluster.ClusterTest):
    def tree(self, *files):
        folder = self.path("work", "tree")
        os.makedirs(folder)
        for file in files:
            shutil.copy(file, folder)
        return {"path": folder}

    def test_the_example_over_ssh(self):
        w = self.world(3)
        self.needs_ssh()
        tree = self.tree(os.path.join(tensor_jobs.CONFIGS, "weights.py"))

        def mesh(hosts, name, **keys):
            program = ["python3", "weights.py", name, "--steps", "8", "--pause", "0.1"]
            return {"dims": {"host": hosts, "gpu": 2}, "program": program, **keys}

        done = self.monarch("run", "--no-prefix", self.spec(json.dumps({
            "version": 1, "job": "weights", "launch": {"ssh": {"hosts": [h.name for h in w.hosts]}}, "workspace": tree,
            "tensors": {"transports": ["tcp"]}, "meshes": {"trainer": mesh(2, "trainer", depends_on=["generator"]), "generator": mesh(1, "generator")}})),
            timeout=60)
        self.assertEqual(done.status, 0, done)
        self.assert_pulled(done, [(str(rank), "7", "tcp=4") for rank in range(2)])
        self.assert_nothing_left()

    def test_a_cable_that_is_pulled_out(self):
        w = self.world(3)
        self.needs_ssh()
        tree = self.tree(RANKS)
        run = self.start("run", "--no-prefix", self.spec(json.dumps({
            "version": 1, "job": "cable", "launch": {"ssh": {"hosts": [h.name for h in w.hosts], "spares": 1}}, "workspace": tree,
            "supervision": FAST, "tensors": {"transports": ["tcp"]},
            "meshes": {"owner": {"dims": {"host": 1}, "sidecar": True, "stop": {"grace": "1s"},
                                 "program": ["python3", "tensor_ranks.py", "publish_steadily", "8"]},
                       "reader": {"dims": {"host": 1}, "program": ["python3", "tensor_ranks.py", "pull_through_a_loss", "8"]}}})))
        run.wait_for_out("begun True")
        w["h1"].power_off()
        run.wait(60)
        self.assertEqual(run.status, 0, run)
        self.assertRegex(run.out, r"lost PeerGone within \d\.\d+ quiet True\non 2 True reader 1\n")

    def test_an_owner_that_thaws_after_its_successor_has_begun(self):
        """Until its keeper looks at its lease it publishes on, and nobody pulls from it: its card has gone with its generation."""
        if not world.cgroup_parent():
            self.skipTest("no cgroup2 to write to")
        w = self.world(3)
        self.needs_ssh()
        run = self.start("run", "--no-prefix", self.spec(json.dumps({
            "version": 1, "job": "thaw", "launch": {"ssh": {"hosts": [h.name for h in w.hosts], "spares": 1}},
            "workspace": self.tree(RANKS), "supervision": {**FAST, "orphan_ttl": "4s"}, "tensors": {},
            "meshes": {"owner": {"dims": {"host": 1}, "sidecar": True, "stop": {"grace": "1s"},
                                 "program": ["python3", "tensor_ranks.py", "publish_on"]},
                       "reader": {"dims": {"host": 1}, "program": ["python3", "tensor_ranks.py", "outlive", "3"]}}})))
        run.wait_for_out("first 1")
        w["h1"].freeze()
        run.wait_for_out("next 2")
        w["h1"].thaw()
        run.wait_for_out("seen")
        run.wait(60)
        self.assertEqual((run.status, run.out), (0, "first 1 {1}\nnext 2 {2}\nseen {2}\n"), run)
        self.assert_nothing_left(ALONE_S)


if __name__ == "__main__":
    cluster.main()
