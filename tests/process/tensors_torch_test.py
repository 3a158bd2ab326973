"""The example of tensors with the memory of PyTorch and NumPy, which Debian's python3-torch brings."""

import json
import os
import unittest

import harness
import tensor_jobs
import training

RANKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tensor_ranks.py")


@unittest.skipUnless(training.has_torch(), f"PyTorch for {training.TORCH_PYTHON} is not installed")
class TensorsOfTorch(tensor_jobs.TensorTest):
    def test_numpy(self):
        self.pulls_the_example("shm", kind="numpy", python=training.TORCH_PYTHON)

    def test_torch(self):
        self.pulls_the_example("tcp", "--set", "tensors.transports=[tcp]", kind="torch", python=training.TORCH_PYTHON)


    def test_models_and_memory_that_is_replaced(self):
        spec = {"version": 1, "job": "models", "tensors": {},
                "meshes": {"t": {"dims": {"one": 1}, "program": [training.TORCH_PYTHON, RANKS, "replace_parameters"]}}}
        done = self.monarch("run", "--no-prefix", self.spec(json.dumps(spec)), timeout=60)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(done.out.splitlines(), SAID.replace("_\n", " \n").splitlines(), done)


SAID = """\
same True
same True
same True
Invalid: tensor 0.bias: its storage has 0 bytes, and it needs 20: that was freed, as by resize_(0)
same True
Invalid: tensor x: its layout is torch.sparse_coo, and it
Invalid: tensor x: it is quantized: give its int_repr(),_
Invalid: tensor x: it is on the device meta, and has no m
Invalid: tensor x: its bytes are conjugated when they are
Invalid: tensor x: its bytes are negated when they are re
Invalid: tensor x: elements of it lie in the same memory,
Invalid: tensor x: the elements of its last dimension do_
Invalid: tensor x: the memory of a UninitializedParameter
"""


if __name__ == "__main__":
    harness.main()
