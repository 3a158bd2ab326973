"""Binds this process to processors, as spawn_procs(proc_bind=[…]) has said: numactl's words, cpus and cpunodebind.

Thread: the first one, before there is another.
"""

import os
import sys


def bind(words):
    """`words`: name=value ..., of which cpus and physcpubind are processors, cpunodebind nodes of memory whose processors count."""
    found = None
    for word in words.split():
        name, _, value = word.partition("=")
        if name == "membind":
            sys.stderr.write("monarch.rank: proc_bind: membind is not done here: memory comes from the node that a process runs on\n")
            continue
        these = set()
        for one in numbers(value):
            these |= _of_node(one) if name == "cpunodebind" else {one}
        found = these if found is None else found & these
    if found is not None:
        os.sched_setaffinity(0, found)


def numbers(text):
    """Of a list as the kernel writes it: 0-3,8."""
    found = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def _of_node(node):
    with open("/sys/devices/system/node/node%d/cpulist" % node, encoding="ascii") as file:
        return set(numbers(file.read()))
