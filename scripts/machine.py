"""How fast this machine is, and what a tree of processes has used of it. Standard library only.

Nobody knows how long work takes on a machine that he has not seen: half the speed, a cgroup of one processor, others that want it. So the limit
of a program is in seconds of processors, a limit by the clock is for what hangs, and both are multiplied by factor().
"""

import os
import time

ROUNDS = 4_000_000
REFERENCE_S = 0.30     # what ROUNDS take where the limits are meant as they are written
MOST = 16.0
TICKS = os.sysconf("SC_CLK_TCK")


def processors():
    """Those that this process may use: by its mask, and by the quota of the cgroups that it is in."""
    count = float(len(os.sched_getaffinity(0)))
    return min([count, *quotas()])


def quotas(membership="/proc/self/cgroup", mounted="/sys/fs/cgroup"):
    """How many processors' time each cgroup above this process grants; none where none limits it."""
    found = []
    for line in _read(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        tops = [os.path.join(mounted, "cpu"), os.path.join(mounted, controllers)] if controllers else [mounted, os.path.join(mounted, "unified")]
        for top in tops:
            folder = path.rstrip("/")
            while True:
                found += _quota_of(top + folder)
                if not folder:
                    break
                folder = folder.rpartition("/")[0]
    return found


def _quota_of(folder):
    words = _read(folder + "/cpu.max").split()
    if not words:
        words = [_read(f"{folder}/cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    try:
        quota, period = int(words[0]), int(words[1])
    except (ValueError, IndexError):  # "max", or no such file
        return []
    return [quota / period] if quota > 0 and period > 0 else []


def _read(path):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def factor():
    """How many times longer than on the machine of the limits a fixed piece of work takes here, on all processors of the mask at once; 1 at least.

    A quota and others' load make it take longer, as a slow processor does."""
    began = time.monotonic()
    children = []
    for _ in os.sched_getaffinity(0):
        child = os.fork()
        if child == 0:
            number = 0
            for i in range(ROUNDS):
                number = (number * 31 + i) & 0xFFFFFFFF
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    return min(max((time.monotonic() - began) / REFERENCE_S, 1.0), MOST)


def tree_seconds(roots):
    """{root: seconds of processors}, of each process and all that descend from it, those that they waited for among them."""
    parents, used = {}, {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        fields = _read(f"/proc/{name}/stat").rpartition(")")[2].split()
        if len(fields) < 15:
            continue  # it has ended meanwhile
        parents[int(name)] = int(fields[1])
        used[int(name)] = sum(map(int, fields[11:15])) / TICKS
    sums = dict.fromkeys(roots, 0.0)
    for pid, seconds in used.items():
        above, seen = pid, set()
        while above in parents and above not in seen:
            if above in sums:
                sums[above] += seconds
                break
            seen.add(above)
            above = parents[above]
    return sums
