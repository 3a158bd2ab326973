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


def python_of_torch():
    """An interpreter that has PyTorch, and its version; None: there is none."""
    for python in (os.path.join(os.environ.get("MONARCH_BENCH_TORCH", ""), "python3"), "/usr/bin/python3"):
        asked = "import torch, torch.distributed.run; print(torch.__version__)"
        try:
            said = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
        except OSError:
            continue
        if said.returncode == 0:
            return python, said.stdout.strip()
    return None
