"""What NCCL does on one GPU where nobody may hang: a group of one, two members on one GPU, and one whose peer never comes (gpu_nccl.py)."""

import json
import os
import subprocess
import sys

from report import Skipped

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu_nccl.py")
TIMEOUT_S = 90
SUCCESS, INVALID_USAGE, IN_PROGRESS = 0, 5, 7
ABORT_S = 10


class Nccl:
    def __init__(self, driver, library):
        self.settings = {"driver": driver, "nccl": library}  # None: where NCCL is, on this machine

    def found(self, role):
        done = subprocess.run([sys.executable, PROGRAM, role, json.dumps(self.settings)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=TIMEOUT_S)
        said = done.stdout.decode(errors="replace")
        lines = [json.loads(line.partition("FOUND ")[2]) for line in said.splitlines() if line.startswith("FOUND ")]
        if not lines:
            raise RuntimeError(f"status {done.returncode}: {said[-2000:]}")
        if "without" in lines[0]:
            raise Skipped(f"no NCCL: {lines[0]['without']}")
        return lines[0]


def aborts(report, found):
    report.check(found["abort"] <= ABORT_S, f"its abort took {found['abort']:.1f} s")


def nccl_alone(report, nccl):
    found = nccl.found("alone")
    report.note(f"NCCL {found['version']}: an id in {found['id']:.3f} s, a group of one in {found['init']:.2f} s")
    report.check(found["state"] == SUCCESS, f"a group of one: state {found['state']}")
    report.check(found.get("reduced"), "it has reduced to something else")
    aborts(report, found)


def nccl_twice_on_one_gpu(report, nccl):
    found = nccl.found("twice")
    report.note(f"two members on one GPU: state {found['state']}, {found['words'].strip() or 'no words'}; aborted in {found['abort']:.2f} s")
    report.check(found["state"] == INVALID_USAGE, f"state {found['state']}")
    aborts(report, found)


def nccl_without_its_peer(report, nccl):
    found = nccl.found("waits")
    report.note(f"a peer that never comes: state {found['state']}, aborted in {found['abort']:.2f} s")
    report.check(found["state"] == IN_PROGRESS, f"state {found['state']}")
    aborts(report, found)


ROWS = [nccl_alone, nccl_twice_on_one_gpu, nccl_without_its_peer]
