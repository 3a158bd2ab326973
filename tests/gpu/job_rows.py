"""Puts from memory of a GPU and pulls into it, through jobs of a build: how fast, against the driver alone in the same processes, and what
becomes of what is odd, late, captured or broken. Each byte is compared (gpu_ranks.py)."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from report import Skipped

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS, TORCH_RANKS = os.path.join(HERE, "gpu_ranks.py"), os.path.join(HERE, "gpu_torch_ranks.py")
TIMEOUT_S = 100
VERSIONS = 7


class JobFailed(Exception):
    """A job did not end as it should have."""


class Jobs:
    def __init__(self, build, driver, fake, size):
        self.monarch, self.fake, self.size, self.driver = os.path.join(os.path.abspath(build), "cli", "monarch"), fake, size, driver

    def run(self, meshes, tensors_spec="{}", ranks=RANKS, env=None, **settings):
        """What its ranks have found, by role."""
        folder = tempfile.mkdtemp(prefix="monarch-gpu-")
        settings = {"driver": self.driver, "fake": self.fake, "folder": folder, "size": self.size, "versions": VERSIONS, "tensors": 1, **settings}
        # A driver that is no system's is found by the ranks as the library looks for it.
        env = {**(env or {}), **({"LD_LIBRARY_PATH": os.path.dirname(self.driver), "FAKE_CUDA_LATE_US": "200"} if self.fake else {})}
        try:
            spec = os.path.join(folder, "gpu.yaml")
            with open(spec, "w", encoding="utf-8") as file:
                file.write(f"version: 1\njob: gpu\nlaunch: {{local: {{hosts: {len(meshes)}}}}}\ntensors: {tensors_spec}\n"
                           "supervision: {restart: {max: 0}}\nmeshes:\n")
                for mesh, role in meshes.items():
                    program = json.dumps([sys.executable, ranks, role, json.dumps(settings)])
                    file.write(f"  {mesh}:\n    dims: {{host: 1, gpu: 1}}\n    env: {json.dumps(env)}\n    program: {program}\n")
            said = self._output_of([self.monarch, "run", "--no-prefix", spec], os.path.join(folder, "state"))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        found = [json.loads(line.partition("FOUND ")[2]) for line in said.splitlines() if line.startswith("FOUND ")]
        return {one.pop("role"): one for one in found}

    def _output_of(self, command, state):
        environment = {**os.environ, "MONARCH_STATE_DIR": state, "PYTHONDONTWRITEBYTECODE": "1"}
        with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
            try:
                output, _ = running.communicate(timeout=TIMEOUT_S)
            except BaseException:  # late, or all are: the job is stopped, and nothing of it stays
                running.terminate()
                output, _ = running.communicate(timeout=30)
                print("# " + output.decode(errors="replace")[-3000:].replace("\n", "\n# "), flush=True)
                raise
        said = output.decode(errors="replace")
        if running.returncode:
            raise JobFailed(f"status {running.returncode}:\n{said[-3000:]}")
        return said

    def moved(self, tensors_spec, **settings):
        """(what the trainer found, what the generator found)"""
        found = self.run({"trainer": "train", "generator": "generate"}, tensors_spec, **settings)
        return found["train"], found["generate"]


def rate(size, seconds):
    return size / statistics.median(seconds) / (1 << 30)


def put_and_pull_over_shm(report, jobs):
    train, generate = jobs.moved("{transports: [shm]}")
    to_host, to_device = rate(jobs.size, train["ceiling"]), rate(jobs.size, generate["ceiling"])
    report.rate("put of one tensor, against a pinned D2H of the same run", jobs.size, train["put"], to_host, 0.9)
    report.rate("pull over shm, registered, against a pinned H2D of the same run", jobs.size, generate["pull"], to_device, 0.9)
    both = [statistics.median(train["put"]) + statistics.median(generate["pull"])]
    report.rate("from GPU to GPU, put and pull, against both copies one after the other", jobs.size, both, 1 / (1 / to_host + 1 / to_device), 0.8)
    report.check("shm" in json.dumps(generate["lanes"]), f"it went by {generate['lanes']}")


def put_of_many_tensors(report, jobs):
    size = jobs.size // (400 << 12) * (400 << 12)
    train, _ = jobs.moved("{transports: [shm]}", tensors=400, size=size)
    report.rate("put of 400 tensors, against a pinned D2H of the same run", size, train["put"], rate(size, train["ceiling"]), 0.9)


def pull_through_rooms(report, jobs):
    train, generate = jobs.moved("{transports: [shm], pin: false}")
    report.rate("put into a slot that is not registered", jobs.size, train["put"], rate(jobs.size, train["ceiling"]))
    floor = min(rate(jobs.size, generate["memcpy"]), rate(jobs.size, generate["ceiling"]))
    report.rate("pull over shm through rooms, against the slower of memcpy and H2D", jobs.size, generate["pull"], floor, 0.9)


def pull_over_tcp(report, jobs):
    _, generate = jobs.moved("{transports: [tcp]}")
    report.rate("pull over tcp, against the pull into the host's memory of the same run", jobs.size, generate["pull"],
                rate(jobs.size, generate["host_pull"]), 0.9)
    report.check("tcp" in json.dumps(generate["lanes"]), f"it went by {generate['lanes']}")


def odd_tensors(report, jobs):
    """None, strided, of three dimensions, of one byte, and 10,000 small ones; fewer where each copy is late by design."""
    small = 500 if jobs.fake else 10_000
    for transports in ("shm", "tcp"):
        found = jobs.run({"trainer": "odd_train", "generator": "odd_generate"}, f"{{transports: [{transports}]}}", size=2 << 20, versions=4, small=small)
        report.check(found["odd_generate"]["compared"] == 4, f"over {transports}: {found}")


def expect(report, found, error, *words):
    """A triple of gpu_ranks.error_of()."""
    named, said, _ = found
    report.check(named == error, f"{error} was expected, and {named} came: {said}")
    for word in words:
        report.check(word in said, f"'{word}' is not in: {said}")


def late_stream(report, jobs):
    found = jobs.run({"trainer": "late"}, size=1 << 20)["late"]
    expect(report, found["waited"], None)
    report.check(found["waited"][2] >= 0.9, f"the block ended after {found['waited'][2]:.2f} s, before its stream")
    expect(report, found["given_up"], "Timeout", "GPU 0")
    report.check(found["given_up"][2] < 0.9, f"it was given up after {found['given_up'][2]:.2f} s, and not 0.2")
    expect(report, found["after"], None)


def captured_stream(report, jobs):
    found = jobs.run({"trainer": "captured"}, size=1 << 20)["captured"]
    expect(report, found["refused"], "Invalid", "captured", "GPU 0")
    expect(report, found["after"], None)


def broken_stream(report, jobs):
    expect(report, jobs.run({"trainer": "broken"}, size=1 << 20)["broken"]["failed"], "Device", "GPU 0", "CUDA_ERROR_ILLEGAL_ADDRESS")


def device_of_torch(jobs):
    """That of its tensors, or the row is skipped."""
    asked = subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.is_available())"], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_S)
    said = asked.stdout.decode().strip()
    if asked.returncode:
        raise Skipped(f"{sys.executable} has no PyTorch: {asked.stderr.decode(errors='replace').strip().splitlines()[-1]}")
    if said != "True" and not jobs.fake:
        raise Skipped(f"the PyTorch of {sys.executable} has no CUDA here")
    return "cuda" if said == "True" and not jobs.fake else "cpu"


def tensors_of_pytorch(report, jobs, env=None):
    """Its dtypes, and a strided tensor, behind a stream of its own that is late."""
    device = device_of_torch(jobs)
    found = jobs.run({"trainer": "torch_train", "generator": "torch_generate"}, ranks=TORCH_RANKS, device=device, env=env)["torch_generate"]
    report.check(found["device"].startswith(device), f"the tensors are on {found['device']}")
    report.note(f"tensors of PyTorch on {found['device']}: {', '.join(found['dtypes'])}")


def expandable_segments(report, jobs):
    """Memory of PyTorch's that is mapped bit by bit, and has no context of its own."""
    if device_of_torch(jobs) != "cuda":
        raise Skipped("it is memory of a GPU's alone")
    tensors_of_pytorch(report, jobs, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})


ROWS = [put_and_pull_over_shm, put_of_many_tensors, pull_through_rooms, pull_over_tcp, odd_tensors, late_stream, captured_stream, broken_stream,
        tensors_of_pytorch, expandable_segments]
