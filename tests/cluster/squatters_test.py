"""A job of root's on hosts where others were faster: root may enter their folders, and so has to look whose they are."""

import os

import cluster
import people
from host import HOME

PLACES = ("/tmp/monarch-0", HOME + "/.cache/monarch", HOME + "/.cache/monarch/worker", HOME + "/.cache/monarch/blobs",
          HOME + "/.local/state/monarch", HOME + "/.local/state/monarch/hosts")


class Squatters(cluster.ClusterTest):
    def test_a_folder_that_is_another_users_is_refused_by_name_and_left_empty(self):
        w = self.world(len(PLACES))
        os.mkdir(self.path("work", "tree"))
        self.write("tree/x", "x")
        for host, path in zip(w.hosts, PLACES):
            os.makedirs(host.path(path), 0o700)
            os.chown(host.path(path), people.BOB, people.BOB)
            for level in (os.path.dirname(path), os.path.dirname(os.path.dirname(path))):
                if level.startswith(HOME):
                    os.chmod(host.path(level), 0o700)
        spec = self.ssh_job("mark up", hosts=len(PLACES), slots=1, workspace={"path": self.path("work", "tree")})
        verdict = self.assert_result(self.monarch("run", spec, timeout=120), 69, "failed")
        failed = {f["host"]: f["message"] for f in verdict["failed_hosts"]}
        for host, path in zip(w.hosts, PLACES):
            self.assertIn(path, failed.get(host.name, "it started"), path)
            self.assertEqual(os.listdir(host.path(path)), [], path)
        self.assertEqual(self.marks("up"), [])


if __name__ == "__main__":
    cluster.main()
