"""The example of tensors with the memory of PyTorch and NumPy, which Debian's python3-torch brings."""

import unittest

import harness
import tensor_jobs
import training


@unittest.skipUnless(training.has_torch(), f"PyTorch for {training.TORCH_PYTHON} is not installed")
class TensorsOfTorch(tensor_jobs.TensorTest):
    def test_numpy(self):
        self.pulls_the_example("shm", kind="numpy", python=training.TORCH_PYTHON)

    def test_torch(self):
        self.pulls_the_example("tcp", "--set", "tensors.transports=[tcp]", kind="torch", python=training.TORCH_PYTHON)


if __name__ == "__main__":
    harness.main()
