"""Tensors in memory of GPUs between the ranks of real jobs, on a driver that has none (tests/cuda): the example, who is killed with copies in
a stream, and each way to be wrong."""

import ctypes.util
import json
import os
import sys
import unittest

import harness
import tensor_jobs

RANKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu_ranks.py")
CUDA = os.path.join(harness.BUILD, "tests", "cuda")


def on_gpus(folder=CUDA, **env):
    return {"LD_LIBRARY_PATH": folder, **env}


@unittest.skipIf(harness.SANITIZED, "no Python has the sanitizer's runtime that the library of tensors is built with")
class TensorsOfGpus(tensor_jobs.TensorTest):
    def gpu_spec(self, job, **meshes):
        """One rank of each mesh: (words of gpu_ranks.py, environment, other keys)."""
        made = {name: {"dims": {"one": 1}, "program": [sys.executable, RANKS, *words], "env": env,
                       "supervision": {"restart": {"max": 8, "backoff": "10ms"}}, **more}
                for name, (words, env, more) in meshes.items()}
        return self.spec(json.dumps({"version": 1, "job": job, "tensors": {}, "meshes": made}, indent=1), job + ".yaml")

    def ends_well(self, run):
        done = run.finished(60)
        self.assertEqual(done.status, 0, done)  # of several jobs
        return done

    def test_the_example_by_each_way(self):
        env = json.dumps({"DEVICE": "cuda", **on_gpus(FAKE_CUDA_LATE_US="20000")})
        steps = ["--set", f"meshes.trainer.env={env}", "--set", f"meshes.generator.env={env}"]
        spec = self.example(options=["--steps", "10"])
        runs = {way: self.start("run", "--no-prefix", spec, *steps, "--set", f"job=weights_{way}", "--set", f"tensors.transports=[{way}]")
                for way in ("shm", "tcp")}
        for way, run in runs.items():
            self.assert_pulled(self.ends_well(run), [(str(rank), "9", f"{way}=6") for rank in range(4)])
        self.assert_nothing_left()

    def test_who_is_killed_with_copies_in_a_stream(self):
        folder = self.path("shared")
        os.mkdir(folder)
        late = on_gpus(FAKE_CUDA_LATE_US="5000")
        ends = {"sidecar": True, "stop": {"grace": "1s"}}
        owner = self.start("run", "--no-prefix", self.gpu_spec("owner", owner=(["publish_and_hang", folder], late, ends),
                                                               reader=(["kill_the_owner", folder], late, {})))
        reader = {way: self.start("run", "--no-prefix", self.gpu_spec("reader_" + way, owner=(["publish_on"], late, ends),
                                                                      reader=(["die_in_a_pull"], late, {})),
                                  "--set", f"tensors.transports=[{way}]") for way in ("shm", "tcp")}
        done = self.ends_well(owner)
        self.assertEqual(done.out.splitlines(), ["first 1 0 True", "killed PeerGone"] + ["next 2 True"] * 3, done)
        for way, run in reader.items():
            done = self.ends_well(run)
            self.assertEqual(done.out.splitlines(), [f"begun 1 1 True {{'{way}': 1}}", f"begun 2 1 True {{'{way}': 1}}", "on 1 True True"], done)
        self.assert_nothing_left()

    def test_each_way_to_be_wrong(self):
        failing = on_gpus(FAKE_CUDA_FAIL="cuInit:100:1")
        done = self.ends_well(self.start("run", "--no-prefix", self.gpu_spec(
            "wrong", stub=(["without_a_driver"], on_gpus(os.path.join(CUDA, "stub")), {}), failing=(["without_a_driver"], failing, {}),
            none=(["without_a_driver"], {}, {}), gpu=(["on_a_driver"], on_gpus(), {}),
            program=([], on_gpus(FAKE_CUDA_LATE_US="5000"), {"program": [os.path.join(harness.BUILD, "tests", "process", "gpu-caller")]}))))
        said = dict(line.split(" = ", 1) for line in done.out.splitlines() if " = " in line)
        self.maxDiff = None
        self.assertEqual(said, WRONG, done)
        meshes = {mesh: [line.split(" ", 1)[1] for line in done.out.splitlines() if line.startswith(mesh + " ")] for mesh in NO_DRIVER}
        if ctypes.util.find_library("cuda"):
            del meshes["none"]  # this machine has one
        self.assertEqual(meshes, {mesh: [f"Unsupported: tensor w: no NVIDIA driver: libcuda.so.1{NO_DRIVER[mesh]}", "Unsupported True"]
                                  for mesh in meshes}, done)
        self.assert_nothing_left()


NO_DRIVER = {"stub": ": cuInit: CUDA_ERROR_STUB_LIBRARY (the stub of NVIDIA's toolkit, and no driver)",
             "failing": " of CUDA 13.0: cuInit: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)",
             "none": ": cannot open shared object file: No such file or directory"}
GPU = "GPU 0 (fake GPU 0)"
NOWHERE = "memory at 0x7000 is of no GPU: its driver knows none there"
WRONG = dict(line.split(" = ", 1) for line in f"""\
memory = Invalid: tensor w: {NOWHERE}
stream = Device: tensor w: {GPU}: recording an event in a stream: CUDA_ERROR_INVALID_HANDLE (invalid resource handle): is the stream another GPU's?
graph = Invalid: tensor w: {GPU}: the stream is captured into a graph
copy = Device: tensor w: {GPU}: copying 8 bytes to the host: CUDA_ERROR_INVALID_VALUE (invalid argument)
late = Timeout: version 6 of device waits for a stream of {GPU}
whole = True True
into = Invalid: tensor w: {NOWHERE}
other = Device: {GPU}: recording an event in a stream: CUDA_ERROR_INVALID_HANDLE (invalid resource handle): is the stream another GPU's?
late pull = Timeout: device of gpu: nothing whole within 50ms
host = True
program = whole, and then: version 2 of program waits for a stream of {GPU}
""".splitlines())


if __name__ == "__main__":
    harness.main()
