"""Calls while a host of theirs is lost, and on nodes of Slurm."""

import os
import shutil

import actors
import cluster
import slurm
from actor_jobs import END, Calls


class LostHost(Calls, cluster.ClusterTest):
    def test_its_calls_end_at_the_verdict_and_its_ranks_are_back_on_the_spare(self):
        w = self.world(4)
        self.needs_ssh()
        os.makedirs(self.path("work", "tree"))
        shutil.copyfile(actors.plugin("steady"), self.path("work", "tree", "libsteady.so"))
        run = self.start("run", self.steady(3, "./libsteady.so", {"ssh": {"hosts": [h.name for h in w.hosts], "spares": 1}},
                                            workspace={"path": self.path("work", "tree")}))
        run.wait_for_out("begun")
        w["h3"].power_off()
        run.wait_for_err(r"h4 takes the place of h3")
        run.wait_for_err(r"gangs [^\n]* running again|(?s:(gang \d+ is running again.*){2})")  # both of them
        w["h1"].write(END, "")
        run.wait(30)
        seen = self.seen(run)
        self.assertLessEqual(set(seen["kinds"]), {"value", "lost", "gone"}, seen)
        self.assertGreater(seen["kinds"]["lost"], 0, seen)
        self.assertEqual(seen["generations"], [1, 1, 1, 1, 2, 2], seen)

    def test_a_cut_between_two_hosts_costs_no_call(self):
        w = self.world(3)
        self.needs_ssh()
        os.makedirs(self.path("work", "tree"))
        shutil.copyfile(actors.plugin("steady"), self.path("work", "tree", "libsteady.so"))
        run = self.start("run", self.steady(3, "./libsteady.so", {"ssh": {"hosts": [h.name for h in w.hosts]}},
                                            workspace={"path": self.path("work", "tree")}))
        run.wait_for_out("begun")
        for _ in range(3):
            w.cut("h1", "h2")
            w.cut("h2", "h1")
            self.pass_time(1)
            w.heal()
            self.pass_time(1)
        w["h1"].write(END, "")
        run.wait(30)
        seen = self.seen(run)
        self.assertEqual(set(seen["kinds"]), {"value"}, seen)
        self.assertGreater(seen["worst_ms"], 800, seen)
        os.unlink(w["h1"].path(END))
        self.assert_nothing_left()


class OnSlurm(Calls, slurm.SlurmTest):
    def test_ranks_of_two_nodes_are_called(self):
        s = self.slurm(2, alike=True)
        s.node_hosts[0].write(END, "")
        there = self.path("work", "libsteady.so")  # in a folder that all of them have
        shutil.copyfile(actors.plugin("steady"), there)
        run = self.salloc(2, "run", self.steady(2, there, {"slurm": {}}))
        run.wait(60)
        seen = self.seen(run)
        self.assertEqual(seen["kinds"], {"value": 4 * seen["calls"]}, seen)


if __name__ == "__main__":
    cluster.main()
