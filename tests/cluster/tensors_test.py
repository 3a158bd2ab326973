"""Tensors between hosts that are reached over SSH, and have nothing of ours."""

import datetime
import json
import os
import re
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

    def test_a_group_whose_hosts_lose_their_cables(self):
        """That of a member and that of the first: the others hear of it at the verdict, and meet the one on the spare."""
        w = self.world(5)
        self.needs_ssh()
        program = {"program": ["python3", "group_ranks.py", "cables"], "gang": "each"}
        run = self.start("run", "--no-prefix", self.spec(json.dumps({
            "version": 1, "job": "group", "launch": {"ssh": {"hosts": [h.name for h in w.hosts], "spares": 2}},
            "workspace": self.tree(os.path.join(os.path.dirname(RANKS), "group_ranks.py")),
            "supervision": {**FAST, "orphan_ttl": "4s"}, "tensors": {"transports": ["tcp"]},
            "meshes": {"trainer": {"dims": {"host": 1}, **program}, "generator": {"dims": {"host": 2}, **program}}})))
        for host, epoch in (("h3", "1.1"), ("h1", "1.2")):
            harness.wait_for(lambda: run.out.count(f" {epoch}\n") == 3, lambda: f"epoch {epoch}: {run!r}", 30)
            w[host].unplug()
            harness.wait_for(lambda: run.err.count(" host.lost ") == (1 if host == "h3" else 2), lambda: f"the loss of {host}: {run!r}", 30)
        run.wait(60)
        self.assertEqual(run.status, 0, run)
        lost = {host: when for when, host in re.findall(r"(?m)^(\S+) error host.lost (\w+): ", run.err)}
        heard = sorted(re.findall(r"(?m)^heard (\S+) (\S+) \S+ is lost: .*host (\w+) was lost: ", run.out))
        self.assertEqual(sorted((who, host) for who, _, host in heard),
                         [("generator/0", "h1"), ("generator/0", "h3"), ("generator/1", "h1"), ("trainer/0", "h3")], run)
        for who, when, host in heard:
            verdict = datetime.datetime.fromisoformat(lost[host].replace("Z", "+00:00")).timestamp()
            self.assertLess(float(when) - verdict, 1, (who, run))
        self.assertEqual(run.out.count(" 2.1\n"), 3, run)
        self.assert_nothing_left(ALONE_S)


if __name__ == "__main__":
    cluster.main()
