"""A job of root's on hosts where others were faster: root may enter their folders, and so has to look whose they are."""

import os

import cluster
import people
from host import HOME

FIRST, SECOND = "/tmp/monarch-0", "/var/tmp/monarch-0"
PLACES = (HOME + "/.cache/monarch", HOME + "/.cache/monarch/worker", HOME + "/.cache/monarch/blobs",
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


    def test_who_is_faster_in_a_folder_of_everybodys_keeps_nobody_out(self):
        w = self.world(2)
        for host, places in zip(w.hosts, ((FIRST,), (FIRST, SECOND))):
            for path in places:
                os.makedirs(host.path(path), 0o700)
                os.chown(host.path(path), people.BOB, people.BOB)
        spec = self.ssh_job("mark up; nap 1", hosts=1, slots=1)
        self.assert_result(self.monarch("run", spec, timeout=120), 0, "succeeded")
        self.assertEqual(os.stat(w.hosts[0].path(SECOND)).st_uid, 0)
        self.assertEqual(os.listdir(w.hosts[0].path(FIRST)), [])
        self.assertEqual(self.monarch("rm", *self.jobs()).status, 0)
        verdict = self.assert_result(self.monarch("run", self.ssh_job("mark up", hosts=2, slots=1), timeout=120), 69, "failed")
        self.assertIn(FIRST, verdict["failed_hosts"][0]["message"])


if __name__ == "__main__":
    cluster.main()
