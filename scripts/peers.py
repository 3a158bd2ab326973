"""What the benchmarks measure against: the newest from PyPI, where scripts/bench has installed it, else what this machine has."""

import os
import shutil
import subprocess


def mpirun():
    """Its path; None: there is none."""
    return shutil.which("mpirun", path=os.environ.get("MONARCH_BENCH_OPENMPI")) or shutil.which("mpirun")


def mpirun_version():
    """As `mpirun (Open MPI) 5.0.11`."""
    return subprocess.run([mpirun(), "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def _python_of(folder, asked):
    """The first interpreter that can do what is asked, in this folder or Debian's, and what it says; None: there is none."""
    for python in (os.path.join(os.environ.get(folder, ""), "python3"), "/usr/bin/python3"):
        try:
            said = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
        except OSError:
            continue
        if said.returncode == 0:
            return python, said.stdout.strip()
    return None


def python_of_torch():
    """An interpreter that has PyTorch, and its version; None: there is none."""
    return _python_of("MONARCH_BENCH_TORCH", "import torch, torch.distributed.run; print(torch.__version__)")


def python_of_torchmonarch():
    """An interpreter that has PyTorch Monarch, and its version; None: there is none."""
    return _python_of("MONARCH_BENCH_TORCHMONARCH", "import monarch.actor, importlib.metadata as all; print(all.version('torchmonarch'))")


def python_of_ray():
    """An interpreter that has Ray, and its version; None: there is none."""
    return _python_of("MONARCH_BENCH_RAY", "import ray; print(ray.__version__)")
