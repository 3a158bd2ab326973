"""configs/ddp.yaml as a user runs it: an unmodified PyTorch script on two virtual hosts with two ranks each."""

import json
import os
import re
import subprocess
import unittest

import harness
import tap

TORCH_PYTHON = "/usr/bin/python3"  # Debian's, whose package python3-torch is
KNOWN_ONCE_IT_RUNS = ("MASTER_PORT", "MONARCH_JOB_ID", "MONARCH_JOB_UUID", "MONARCH_RANK_KEY", "MONARCH_GENERATION", "NOTIFY_SOCKET",
                      "MONARCH_SOCKET", "MONARCH_EVENTS", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE")
SPEC = os.path.join(harness.ROOT, "configs/ddp.yaml")


def has_torch():
    try:
        return subprocess.run([TORCH_PYTHON, "-c", "import torch.distributed"], capture_output=True).returncode == 0
    except OSError:
        return False


@unittest.skipUnless(has_torch(), f"PyTorch for {TORCH_PYTHON} is not installed (Debian: python3-torch)")
class Ddp(harness.MonarchTest):
    @tap.takes(1)
    def test_loss_falls_ranks_agree_and_the_job_ends_with_zero(self):
        done = self.monarch("run", SPEC, timeout=120)
        self.assertEqual(done.status, 0, done)
        losses = [float(x) for x in re.findall(r"^\[trainer/0@v1\] epoch \d+ loss ([0-9.]+)$", done.out, re.M)]
        self.assertGreater(len(losses), 5, done)
        self.assertLess(losses[-1], 0.7 * losses[0], done)
        ranks = re.findall(r"^\[trainer/(\d)@v\d\] rank (\d) of 4 parameters ([0-9a-f]{16}) agree$", done.out, re.M)
        self.assertEqual(sorted(r for r, _, _ in ranks), ["0", "1", "2", "3"], done)
        self.assertTrue(all(prefix == rank for prefix, rank, _ in ranks), done)
        self.assertEqual(len({parameters for _, _, parameters in ranks}), 1, done)
        self.assert_nothing_left()

    def test_plan_shows_the_ranks_coordinates_and_environment_that_run(self):
        program = "import os, json; print(json.dumps(dict(os.environ)))"
        spec = self.spec(
            "version: 1\njob: ddp\nlaunch:\n  local: {hosts: 2}\nmeshes:\n  trainer:\n    dims: {host: 2, slot: 2}\n"
            f"    program: [{TORCH_PYTHON}, -c, '{program}']\n"
        )
        ran = self.monarch("run", spec, "--no-prefix")
        self.assertEqual(ran.status, 0, ran)
        environments = {e["MONARCH_RANK"]: e for e in map(json.loads, ran.out.splitlines())}
        self.assertEqual(sorted(environments), ["0", "1", "2", "3"])
        for rank, environment in environments.items():
            plan = self.monarch("plan", spec, "--env", "--rank", rank, "--json")
            lines = [json.loads(line) for line in plan.out.splitlines()]
            variables = {line["name"]: line["value"] for line in lines if line["type"] == "variable"}
            self.assertGreater(len(variables), 25, plan)
            for name, value in variables.items():
                if name in KNOWN_ONCE_IT_RUNS or value is None:  # of the shell's, plan tells the names alone
                    self.assertIn(name, environment)
                else:
                    self.assertEqual(environment.get(name), value, name)
            place = [line for line in lines if line["type"] == "rank" and str(line["rank"]) == rank]
            self.assertEqual(place[0]["host"], environment["MONARCH_HOST"])
            for dimension, index in place[0]["coordinates"].items():
                self.assertEqual(environment["MONARCH_RANK_" + dimension.upper()], str(index))
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
