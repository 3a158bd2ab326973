"""Actors on hosts that are reached over SSH: what they need is shipped once."""

import os
import shutil

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


if __name__ == "__main__":
    cluster.main()
