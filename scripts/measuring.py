"""What the benchmarks share: how long a command takes, against another in turn, and a row of the table."""

import os
import statistics
import subprocess
import sys
import threading
import time

import machine


def seconds(call):
    """How long it took; nothing if it hung (mpirun of 64 on two processors does now and then)."""
    start = time.monotonic()
    try:
        call()
    except subprocess.TimeoutExpired:
        return None
    return time.monotonic() - start


def quietly(command, timeout=20, **options):
    """Waits without a poll: Popen.wait(timeout) looks after 1, 2, 4 … 64 ms, which is what it would measure."""
    process = subprocess.Popen(command, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options})
    hung = threading.Event()
    timer = threading.Timer(timeout, lambda: (hung.set(), process.kill()))
    timer.start()
    status = process.wait()
    timer.cancel()
    if hung.is_set():
        raise subprocess.TimeoutExpired(command, timeout)
    if status != 0:
        raise subprocess.CalledProcessError(status, command)


def pairs(ours, theirs, runs, before_ours=lambda: None):
    """Medians of ours, theirs and their ratio over `runs` pairs after one that does not count; every ratio; what hung.
    What is done before each of ours is not measured."""
    seconds(ours), seconds(theirs)
    all_pairs = []
    for _ in range(runs):
        before_ours()
        all_pairs.append((seconds(ours), seconds(theirs)))
    measured = [pair for pair in all_pairs if None not in pair]
    if not measured:
        sys.exit("bench: no pair of runs ended")
    ratios = [a / b for a, b in measured]
    hung = "".join(f", {who} hung {n} of {runs} times" for who, n in
                   (("monarch", sum(a is None for a, _ in all_pairs)), ("the other", sum(b is None for _, b in all_pairs))) if n)
    return (statistics.median(a for a, _ in measured), statistics.median(b for _, b in measured),
            statistics.median(ratios), ratios, hung)


def spread(ratios):
    return f"({min(ratios):.2f} to {max(ratios):.2f})"


def busy():
    """What else a figure depends on: 'a load of 0.7 on 2 processors'. The load is that of the last minute, the bench's own in it."""
    return f"a load of {os.getloadavg()[0]:.1f} on {machine.processors():g} processors"


def file_system(path):
    """What a folder is on: 'ext4', 'tmpfs'."""
    return subprocess.run(["df", "--output=fstype", path], check=True, capture_output=True, text=True).stdout.split()[-1]


def head():
    """Of a table, with what the machine does beside it."""
    print(busy())
    print(f"{'what':<50}{'monarch':>14}{'against':>29}{'ratio':>8}  goal", flush=True)


def row(what, ours, against, ratio, goal):
    print(f"{what:<50}{ours:>14}{against:>29}{ratio:>8}  {goal}", flush=True)


def ratio_row(what, ours, name, theirs, show, goal=""):
    """What was measured in turn: medians, and the median of the turns' ratios with the least and the most. Of what is not here there is no
    ratio, and it is named: `theirs` is empty."""
    mine = show(statistics.median(ours))
    if not theirs:
        return row(what, mine, f"no {name} here", "", goal)
    ratios = [a / b for a, b in zip(ours, theirs)]
    row(what, mine, f"{name} {show(statistics.median(theirs))}", f"{statistics.median(ratios):.2f}", f"{goal} {spread(ratios)}".strip())
