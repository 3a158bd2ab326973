"""A trainer's rank and three generators all-reduce by Gloo, step after step, through the death of any of them: the others
hear of it, meet again as soon as it is back, and go on with the step that the furthest of them has reached.

usage: group.py [--steps N] [--pause SECONDS]
"""

import argparse
import datetime
import os
import threading
import time

import torch
import torch.distributed as dist

import monarch_tensors as tensors

MEMBERS = {"trainer": [0], "generator": "all"}  # the trainer's rank is rank 0 of the group, and holds it
ME = "%s/%s" % (os.environ["MONARCH_MESH"], os.environ["MONARCH_RANK"])


def say(*words):
    print(ME, *words, flush=True)


class Progress:
    def __init__(self, steps, pause):
        self.step = 0
        self.steps = steps
        self.pause = pause

    def run(self, group):
        """The steps that are left, with all of the group."""
        # Where one dies while the others connect to it, Gloo waits for it five times as long as this.
        gloo = dist.ProcessGroupGloo(group.store(), group.rank, group.size, datetime.timedelta(seconds=20))
        newest = dist.AllreduceOptions()
        newest.reduceOp = dist.ReduceOp.MAX
        step = torch.tensor([self.step])
        gloo.allreduce([step], newest).wait()  # who has come back knows none
        self.step = int(step)
        say("all of epoch %d.%d go on with step %d" % (group.epoch + (self.step,)))
        while self.step < self.steps:
            values = torch.full((1 << 16,), float(group.rank + 1))
            gloo.allreduce([values]).wait()
            if not bool((values == group.size * (group.size + 1) / 2).all()):
                raise SystemExit("%s: a wrong sum in step %d" % (ME, self.step))
            self.step += 1
            time.sleep(self.pause)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--pause", type=float, default=0.1)
    flags = parser.parse_args()
    progress = Progress(flags.steps, flags.pause)
    finished = False
    while not finished:
        with tensors.group("sync", MEMBERS, timeout=120) as group:
            generations = ",".join(str(member.generation) for member in group.members)
            say("epoch", "%d.%d" % group.epoch, "of generations", generations, "from step", progress.step)
            lost = threading.Event()
            group.on_lost(lost.set)  # with NCCL: its abort(), which is what ends a call that hangs
            try:
                progress.run(group)
                finished = True
            except (RuntimeError, tensors.PeerGone):  # Gloo's word for a peer that is gone, or the store's
                if not lost.wait(10):
                    raise  # it is another error
                say("lost at step %d:" % progress.step, group.lost)
            if finished:
                # Nobody goes while another is not done; who comes back here has the last step from the others.
                finished = all_are_done()
    say("done", progress.step)


def all_are_done():
    try:
        tensors.group("done", MEMBERS, timeout=20).close()
        return True
    except (tensors.Timeout, tensors.PeerGone):
        return False


if __name__ == "__main__":
    main()
