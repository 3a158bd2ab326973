"""What only a GPU can show: gpu_test.py --build DIR [--table] [--fake]

Of the build it needs DIR/cli/monarch and DIR/worker/monarch-worker, and else python3; PyTorch where it is. A minute, and with --table, which
measures with 1 GiB and prints what MEASURED.md takes, five. Without a GPU it is skipped. --fake runs it on the driver without a GPU that a
whole build has (tests/cuda): what it finds then are faults of this program, and its figures mean nothing.
"""

import argparse
import os
import signal
import sys
import time

import card_rows
import gpu_driver
import job_rows
import nccl_rows
import report

FAKE = os.path.join("tests", "cuda")  # of a build
FAKE_NCCL = os.path.join("tests", "nccl", "libnccl.so.2")


def late(_number, _frame):
    raise report.OutOfTime


def options():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", required=True, help="a folder with cli/monarch and worker/monarch-worker")
    parser.add_argument("--table", action="store_true", help="measure, and print a table")
    parser.add_argument("--fake", action="store_true", help="on the driver without a GPU of that build")
    return parser.parse_args()


def path_of(wanted):
    return os.path.join(os.path.abspath(wanted.build), FAKE, "libcuda.so.1") if wanted.fake else "libcuda.so.1"


def opened(wanted):
    """The driver, or the suite is skipped."""
    try:
        return gpu_driver.Driver(path=path_of(wanted))
    except gpu_driver.NoGpu as why:
        if wanted.fake:
            sys.exit(f"no fake driver in {wanted.build}: {why}")
        print(f"1..0 # SKIP no NVIDIA GPU: {why}")
        sys.exit(0)


def main():
    wanted = options()
    driver = opened(wanted)
    limit_s = 300 if wanted.table else 60
    signal.signal(signal.SIGALRM, late)
    signal.alarm(limit_s)
    size, times = (24 << 20, 1) if wanted.fake else (1 << 30, 5) if wanted.table else (256 << 20, 3)
    head = f"{driver.name}, driver {driver.version // 1000}.{driver.version % 1000 // 10}"
    said = report.Report()
    card = card_rows.Card(driver, size, times)
    jobs = job_rows.Jobs(wanted.build, path_of(wanted), wanted.fake, size)
    nccl = nccl_rows.Nccl(path_of(wanted), os.path.join(os.path.abspath(wanted.build), FAKE_NCCL) if wanted.fake else None)
    rows = [(row, what) for rows, what in ((card_rows.ROWS, card), (job_rows.ROWS, jobs), (nccl_rows.ROWS, nccl)) for row in rows]
    print(f"1..{len(rows)}\n# {head}", flush=True)
    for number, (row, with_what) in enumerate(rows, 1):
        try:
            said.run(number, row, with_what)
        except report.OutOfTime:
            said.failed.append("time")
            print(f"not ok {number} - {row.__name__.replace('_', ' ')}: all have {limit_s} s, and they are over", flush=True)
            break
    signal.alarm(0)
    if wanted.table:
        said.table(f"{time.strftime('%Y-%m-%d')}, {head}, {size >> 20} MiB" + (", on the fake driver: these figures mean nothing" if wanted.fake else ""))
    sys.exit(1 if said.failed else 0)


if __name__ == "__main__":
    main()
