"""Trains a small classifier with DistributedDataParallel and goes on from its last checkpoint when its gang is started again.

Each replica (a gang) trains alone and has checkpoints of its own, each a file with model, optimizer and step that rank 0 writes and
commits for all of the gang; the newest that monarch has journalled is what its next generation goes on from, whatever else lies
there. What a step trains on follows from its number, so that a run that was interrupted ends with the loss of one that was not.
Outside of monarch it runs as well, from the beginning: monarch_rank does nothing there.
"""

import argparse
import math
import os
import shutil
import tempfile
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import monarch_rank as monarch

POINTS = 2048


def two_spirals():
    """Returns (POINTS, 2) coordinates and (POINTS,) labels in {0, 1}."""
    generator = torch.Generator().manual_seed(0)
    turn = torch.rand(POINTS, generator=generator).sqrt() * 2 * math.pi
    label = torch.arange(POINTS) % 2
    angle = turn + label * math.pi
    noise = torch.randn(POINTS, 2, generator=generator) * 0.1
    position = torch.stack([turn * angle.cos(), turn * angle.sin()], dim=1) / (2 * math.pi)
    return position + noise * 0.1, label


def share_of(step, rank, world, batch):
    """The points that this rank trains on in this step."""
    generator = torch.Generator().manual_seed(step)
    return torch.randperm(POINTS, generator=generator)[: batch * world][rank::world]


class Checkpoints:
    """Of one replica. Training goes on while one is being committed: where the supervisor is away, checkpoints wait, not steps."""

    def __init__(self, folder, replica):
        self.folder = os.path.join(folder, f"replica-{replica}")
        os.makedirs(self.folder, exist_ok=True)
        self.generation = os.environ.get("MONARCH_GENERATION", "1")
        found = monarch.committed()
        self.newest = found["what"] if found else None
        self.committing = None

    def load(self):
        """The newest, or None."""
        path = os.path.join(self.folder, self.newest or "")
        # It is gone if the replica failed once more after its end.
        return torch.load(path) if os.path.isfile(path) else None

    def save(self, state):
        if self.committing and self.committing.is_alive():
            return
        # No other generation writes this name, so a rank that thaws after its gang was started again harms nothing.
        name = f"{state['step']}.g{self.generation}.pt"
        with open(os.path.join(self.folder, name), "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        folder = os.open(self.folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        self.committing = threading.Thread(target=self._commit, args=(state["step"], name), daemon=True)
        self.committing.start()

    def _commit(self, step, name):
        if not monarch.commit(step, name, gang=True, timeout=None):
            return  # the one before stays
        before, self.newest = self.newest, name
        if before:
            os.remove(os.path.join(self.folder, before))

    def clear(self):
        """The replica has ended; the last one takes the folder of all along."""
        if self.committing:
            self.committing.join()
        shutil.rmtree(self.folder)
        try:
            os.rmdir(os.path.dirname(self.folder))
        except OSError:
            pass


def arguments_of():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=32, help="points per rank and step")
    parser.add_argument("--every", type=int, default=10, help="steps between two checkpoints")
    parser.add_argument("--pace", type=float, default=0.05, help="seconds that a step takes at least")
    parser.add_argument("--checkpoints", default=os.path.join(tempfile.gettempdir(), os.environ.get("MONARCH_JOB_ID", "ddp")))
    parser.add_argument("--trace", help="a folder: each replica notes there when it did which step")
    return parser.parse_args()


def main():
    arguments = arguments_of()
    replica = os.environ.get("REPLICA_GROUP_ID", "0")
    generation = os.environ.get("MONARCH_GENERATION", "1")
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(int(replica))

    model = DistributedDataParallel(torch.nn.Sequential(
        torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    checkpoints = Checkpoints(arguments.checkpoints, replica)
    first = 0
    state = checkpoints.load()
    if state:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
        if rank == 0:
            print(f"goes on from step {first}, generation {generation}", flush=True)

    position, label = two_spirals()
    for step in range(first, arguments.steps):
        began = time.monotonic()
        mine = share_of(step, rank, world, arguments.batch)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(position[mine]), label[mine])
        loss.backward()
        optimizer.step()
        monarch.step(step + 1)
        if rank == 0 and arguments.trace:
            with open(os.path.join(arguments.trace, f"steps.{replica}"), "a") as file:
                file.write(f"{generation} {step + 1} {time.monotonic():.3f}\n")
        if rank == 0 and (step + 1) % arguments.every == 0:
            checkpoints.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1})
        time.sleep(max(0.0, arguments.pace - (time.monotonic() - began)))

    with torch.no_grad():
        final = torch.nn.functional.cross_entropy(model.module(position), label).item()
    if rank == 0:
        print(f"replica {replica} ends at step {arguments.steps} with loss {final:.6f}", flush=True)
        checkpoints.clear()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
