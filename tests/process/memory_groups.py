"""Memory cgroups of v2 or of v1, for tests that bring processes to a limit."""

import os
import tempfile


def hierarchy():
    """(where memory groups can be made, the file of their limit), or None."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        lines = [line.split(" - ") for line in mounts]
    for left, right in lines:
        place, (kind, _, options) = left.split()[4], right.split()
        if kind == "cgroup" and "memory" in options.split(","):
            return place, "memory.limit_in_bytes"
        if kind == "cgroup2":
            with open(os.path.join(place, "cgroup.subtree_control"), encoding="utf-8") as controllers:
                if "memory" in controllers.read().split():
                    return place, "memory.max"
    return None


def make(test, limit):
    """The path of a new group that may have so many bytes; it is removed after the test. Skips the test where none can be made."""
    found = hierarchy()
    if found is None:
        test.skipTest("no cgroup hierarchy with a memory controller: nobody can be brought to its limit alone")
    place, name = found
    try:
        path = tempfile.mkdtemp(prefix="monarch-test-", dir=place)
        test.addCleanup(os.rmdir, path)
        with open(os.path.join(path, name), "w", encoding="utf-8") as file:
            file.write(str(limit))
        with open(os.path.join(path, "cgroup.procs"), "w", encoding="utf-8"):
            pass
    except OSError as error:
        test.skipTest(f"no memory group can be made here: {error}")
    swap = os.path.join(path, "memory.swap.max")
    if os.path.exists(swap):
        with open(swap, "w", encoding="utf-8") as file:
            file.write("0")
    return path
