"""Meshes on healthy hosts over SSH: ranks are where they should be, have what a login has, and are heard where the job was started."""

import os
import re
import subprocess
import unittest

import cluster
import jobs
from host import HOME, Options

TORCH_PYTHON = "/usr/bin/python3"  # Debian's, whose package python3-torch is
OVERLAY = "launch:\n  ssh: {hosts: 'h[1-4]'}\nmeshes:\n  trainer:\n    dims: {host: 4, slot: 2}\n"


def has_torch():
    return subprocess.run([TORCH_PYTHON, "-c", "import torch.distributed"], capture_output=True, check=False).returncode == 0


class Meshes(cluster.ClusterTest):
    def test_ranks_run_on_their_hosts_and_the_job_ends_well(self):
        self.world(4)
        done = self.monarch("run", self.ssh_job("mark up; hostname; echo $MONARCH_HOST; echo $MASTER_ADDR", hosts=4, slots=2), timeout=60)
        self.assert_result(done, 0, "succeeded")
        wanted = {rank: f"h{rank // 2 + 1}" for rank in range(8)}
        self.assertEqual(self.hosts_of_marks("up"), wanted)
        for rank, host in wanted.items():
            lines = re.findall(rf"^\[m/{rank}@{host}\] (.*)$", done.out, re.M)
            self.assertEqual(lines, [host, host, self.w["h1"].address], done)
        self.assert_nothing_left()

    def test_the_status_of_a_rank_is_the_jobs_and_its_words_are_shown(self):
        self.world(2)
        script = "if [ $MONARCH_RANK = 3 ]; then echo went wrong >&2; exit 9; fi; " + jobs.FOREVER
        done = self.monarch("run", self.ssh_job(script), timeout=60)
        self.assert_result(done, 9, "failed", {"host": "h2", "rank": 3, "stderr_tail": re.compile("went wrong")})
        self.assertIn("went wrong", done.err)
        self.assert_nothing_left()

    def test_who_removes_a_job_is_told_where_logs_stay(self):
        self.world(2)
        done = self.monarch("run", self.ssh_job("true"), timeout=60)
        self.assert_result(done, 0, "succeeded")
        job, = self.jobs()
        removed = self.monarch("rm", job)
        self.assertEqual(removed.status, 0, removed)
        self.assertRegex(removed.err, rf"logs of {job} stay on h1, h2, in ~/.local/state/monarch/hosts/{job}\b")
        self.assertTrue(os.path.isdir(self.w["h1"].path(f"{HOME}/.local/state/monarch/hosts/{job}")))

    def test_logs_are_read_where_the_job_was_started(self):
        w = self.world(2)
        done = self.monarch("run", self.ssh_job("echo out of $MONARCH_RANK; echo err of $MONARCH_RANK >&2"), timeout=60)
        self.assertEqual(done.status, 0, done)
        for host in w.hosts:
            host.power_off()
        job, = self.jobs()
        shown = self.monarch("logs", job)
        for rank in range(4):
            self.assertIn(f"out of {rank}\n", shown.out)
            self.assertIn(f"err of {rank}\n", shown.err)

    def test_ranks_have_the_logins_environment(self):
        self.world(1)
        done = self.monarch("run", self.ssh_job("env", hosts=1, slots=1), "--no-prefix", timeout=60)
        self.assertEqual(done.status, 0, done)
        environment = dict(line.split("=", 1) for line in done.out.splitlines() if "=" in line)
        self.assertEqual((environment["HOME"], environment["USER"], environment["SHELL"]), (HOME, "root", "/bin/bash"))
        self.assertEqual([name for name in environment if name.startswith("SSH_")], [])

    @unittest.skipUnless(has_torch(), f"PyTorch for {TORCH_PYTHON} is not installed (Debian: python3-torch)")
    def test_ddp_runs_unchanged_but_for_its_hosts(self):
        self.world(4)
        self.needs_ssh()
        spec = os.path.join(cluster.world.ROOT, "configs/ddp.yaml")
        done = self.monarch("run", "-f", spec, "-f", self.write("hosts.yaml", OVERLAY), timeout=170)
        self.assertEqual(done.status, 0, done)
        ranks = re.findall(r"^\[trainer/(\d)@h(\d)\] rank (\d) of 8 parameters ([0-9a-f]{16}) agree$", done.out, re.M)
        self.assertEqual(sorted((int(r), int(h)) for r, h, _, _ in ranks), [(r, r // 2 + 1) for r in range(8)], done)
        self.assertEqual(len({parameters for _, _, _, parameters in ranks}), 1, done)
        self.assert_nothing_left()

    @unittest.skipUnless(os.environ.get("MONARCH_DEBIAN11_ROOT"),
                         "MONARCH_DEBIAN11_ROOT names no root of Debian 11; CONTRIBUTING.md has how one is made")
    def test_a_debian_11_is_a_host_like_others(self):
        w = self.world(2, options={"h1": Options(root=os.environ["MONARCH_DEBIAN11_ROOT"])})
        self.assertTrue(w["h1"].read("/etc/debian_version").startswith("11."))
        done = self.monarch("run", self.ssh_job("mark up; exit 0"), timeout=60)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(self.hosts_of_marks("up"), {0: "h1", 1: "h1", 2: "h2", 3: "h2"})
        self.assert_nothing_left()


if __name__ == "__main__":
    cluster.main()
