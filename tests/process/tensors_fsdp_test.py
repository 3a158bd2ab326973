"""The weights of a model that FSDP2 shards over four ranks, 1,000 tensors, as a generator of two ranks pulls them, through the death of a
trainer's rank. Real PyTorch, as `scripts/test torchft` installs it: Debian's has no FSDP2."""

import json
import os
import re
import signal
import subprocess
import unittest

import harness
import recovery

FOLDER = os.environ.get("MONARCH_TEST_TORCHFT") or os.path.join(harness.ROOT, "build-torchft")
PYTHON = os.path.join(FOLDER, "bin/python3")
RANKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fsdp_ranks.py")
IMPORT_S = 120.0  # PyTorch, by six processes at a time


def has_fsdp():
    try:
        return subprocess.run([PYTHON, "-c", "from torch.distributed.fsdp import fully_shard"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@unittest.skipIf(harness.SANITIZED, "no Python has the sanitizer's runtime that the library of tensors is built with")
@unittest.skipUnless(has_fsdp(), f"PyTorch with FSDP2 is not installed in {FOLDER}: `scripts/test torchft` does it")
class TensorsOfFsdp(recovery.RecoveryTest):
    def pulls(self, way):
        threads = {"OMP_NUM_THREADS": "1"}
        spec = {"version": 1, "job": "fsdp", "tensors": {"transports": [way]}, "meshes": {
            "trainer": {"dims": {"rank": 4}, "env": threads, "sidecar": True, "stop": {"grace": "1s"}, "program": [PYTHON, RANKS, "train"],
                        "supervision": {"restart": {"max": 8, "backoff": "10ms"}}},
            "generator": {"dims": {"rank": 2}, "env": threads, "program": [PYTHON, RANKS, "generate"]}}}
        run = self.start("run", self.spec(json.dumps(spec, indent=1)))

        def whole(generation):
            return set(re.findall(rf"(?m)^\[generator/(\d)@\S+\] whole {generation} {{'{way}': 4}}$", run.out))
        harness.wait_for(lambda: len(whole(1)) == 2 or run.status is not None, lambda: f"a pull of each: {run.out}\n{run.err}", IMPORT_S)
        self.assertIsNone(run.status, run)
        trainer = next(mesh for mesh in self.status()["meshes"] if mesh["name"] == "trainer")
        self.signal_by_pid(next(rank["pid"] for rank in trainer["ranks"] if rank["rank"] == 2), signal.SIGKILL)
        done = run.finished(IMPORT_S * 2)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(len(re.findall(r"(?m)^\[generator/\d@\S+\] tensors 1000$", done.out)), 2, done)
        self.assertEqual(whole(2), {"0", "1"}, done)
        self.assert_nothing_left()

    def test_each_byte_over_shm_through_the_death_of_a_rank(self):
        self.pulls("shm")

    def test_each_byte_over_tcp_through_the_death_of_a_rank(self):
        self.pulls("tcp")


if __name__ == "__main__":
    harness.main()
