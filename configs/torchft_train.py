"""Trains a small classifier with torchft: replica groups average their gradients, and a step counts only if all of a quorum had it.

Each replica group is a gang of monarch: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are those of the group, REPLICA_GROUP_ID is its
number, and a group that failed comes back with the next MONARCH_GENERATION, takes model, optimizer and step from a peer, and joins the
next quorum. Within a group the ranks average their gradients over gloo; between groups rank r of each does so with rank r of the others.

A peer whose host is gone closes no connection, and a collective would wait for it until its time-out. Who is told by monarch that a
gang is lost leaves the collective at once, discards that step, and asks for the next quorum.
"""

import argparse
import math
import os
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torchft import Manager
from torchft.process_group import ProcessGroupGloo

import monarch_rank as monarch

POINTS = 2048
PATIENCE = timedelta(seconds=60)  # torchft's own


def two_spirals():
    """Returns (POINTS, 2) coordinates and (POINTS,) labels in {0, 1}."""
    generator = torch.Generator().manual_seed(0)
    turn = torch.rand(POINTS, generator=generator).sqrt() * 2 * math.pi
    label = torch.arange(POINTS) % 2
    angle = turn + label * math.pi
    position = torch.stack([turn * angle.cos(), turn * angle.sin()], dim=1) / (2 * math.pi)
    return position + torch.randn(POINTS, 2, generator=generator) * 0.01, label


class Collective:
    """What a rank does with the same rank of the other groups: an average that can be left."""

    def __init__(self, manager, group):
        self.manager, self.group = manager, group
        self.lost = threading.Event()
        self.left = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for event in monarch.events():
            if event["event"] == "peer_lost":
                self.lost.set()

    def average(self, gradients):
        """Returns the average over the groups of this quorum; of a step where that fails, which is not committed, anything."""
        self.lost.clear()
        result = gradients.clone()  # a collective that was left may still write here
        work = self.manager.allreduce(result)
        done = threading.Event()
        threading.Thread(target=lambda: (work.wait(), done.set()), daemon=True).start()
        while not done.wait(0.02):
            if self.lost.is_set():
                print(f"step {self.manager.current_step()}: a gang is lost, its collective is left", flush=True)
                self.manager.report_error(RuntimeError("a gang of this quorum was lost"))
                # Gloo knows no abort (NCCL does): whoever waits in it does so to the time-out, and so would who destroys it.
                self.left.append(self.group.parent)
                self.group.abort()
                return gradients
        return result


def arguments_of():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=32, help="points per rank and step")
    parser.add_argument("--pace", type=float, default=0.05, help="seconds that the passes of a step take at least")
    return parser.parse_args()


def main():
    arguments = arguments_of()
    replica = int(os.environ["REPLICA_GROUP_ID"])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")  # this group alone
    rank, world = dist.get_rank(), dist.get_world_size()
    positions, labels = two_spirals()
    model = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def load(state):
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])

    group = ProcessGroupGloo(timeout=PATIENCE)
    manager = Manager(
        pg=group, load_state_dict=load, state_dict=lambda: {"model": model.state_dict(), "optimizer": optimizer.state_dict()},
        min_replica_size=1, timeout=PATIENCE, quorum_timeout=PATIENCE, connect_timeout=timedelta(seconds=10),
        use_async_quorum=False, replica_id=f"replica-{replica}", hostname=os.environ["MASTER_ADDR"])
    collective = Collective(manager, group)
    while manager.current_step() < arguments.steps:
        began = time.monotonic()
        optimizer.zero_grad()
        manager.start_quorum()
        step = manager.current_step()
        seed = torch.Generator().manual_seed(step * 1000 + replica * world + rank)
        chosen = torch.randint(POINTS, (arguments.batch,), generator=seed)
        loss = torch.nn.functional.cross_entropy(model(positions[chosen]), labels[chosen])
        loss.backward()
        time.sleep(max(0.0, arguments.pace - (time.monotonic() - began)))  # as a model would that is worth its replicas
        gradients = torch.cat([p.grad.flatten() for p in model.parameters()])
        dist.all_reduce(gradients)
        gradients /= world
        gradients = collective.average(gradients)
        offset = 0
        for parameter in model.parameters():
            parameter.grad.copy_(gradients[offset:offset + parameter.numel()].view_as(parameter))
            offset += parameter.numel()
        committed = manager.should_commit()
        if committed:
            optimizer.step()
            monarch.step(step + 1)
            monarch.metric("loss", loss.item())
        if rank == 0:
            print(f"step {step}: {'committed' if committed else 'discarded'} by {manager.num_participants()} groups, loss {loss.item():.4f}",
                  flush=True)
    manager.shutdown(wait=False)
    os._exit(0)


if __name__ == "__main__":
    main()
