"""Processes that are made again: whatever kills them, the same handle answers. It is told by its standard input to go on."""

import os
import signal
import sys
import time

from monarch.actor import Actor, BootstrapCommand, SupervisionError, current_rank, endpoint, this_host


class Keeper(Actor):
    def __init__(self, word):
        self.word, self.rank = word, current_rank().rank

    @endpoint
    def pid(self):
        return os.getpid()

    @endpoint
    def word_of(self):
        return self.word, os.environ["OF_RANK"]

    @endpoint
    def nap(self, seconds):
        time.sleep(seconds)


def killed(one):
    """Seconds until the exception, and until the handle answers again."""
    pid = one.pid.call_one().get()
    nap = one.nap.call_one(3600)
    time.sleep(0.02)
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    try:
        nap.get()
    except SupervisionError:
        told = time.monotonic() - began
    assert one.pid.call_one().get() != pid
    return told, time.monotonic() - began


if __name__ == "__main__":
    def variables(place):
        return BootstrapCommand(env={"OF_RANK": str(place["slot"])})

    procs = this_host().spawn_procs({"slot": 16}, bootstrap_command=variables, restart=4)
    keepers = procs.spawn("keepers", Keeper, "word")
    print(len(set(keepers.pid.call().get().values())), flush=True)
    times = [killed(keepers.slice(slot=k % 4)) for k in range(12)]
    print("told %.4f back %.4f" % tuple(sorted(one)[6] for one in zip(*times)), flush=True)
    sys.stdin.readline()
    killed(keepers.slice(slot=9))
    print(keepers.slice(slot=9).word_of.call_one().get(), flush=True)
    sys.stdin.readline()
