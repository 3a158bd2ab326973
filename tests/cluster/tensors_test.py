"""Tensors between hosts that are reached over SSH, and have nothing of ours."""

import json
import os
import shutil

import cluster
import harness
import tensor_jobs
from actor_jobs import FAST

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


if __name__ == "__main__":
    cluster.main()
