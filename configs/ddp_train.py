"""Trains a small classifier with DistributedDataParallel. It knows nothing of monarch: any launcher that sets torchrun's
environment (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT) can run it.

The data set is two interleaved spirals of 2,048 points, the same on every rank; each rank trains on its share of them.
"""

import argparse
import hashlib
import math
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def two_spirals(points):
    """Returns (points, 2) coordinates and (points,) labels in {0, 1}."""
    generator = torch.Generator().manual_seed(0)
    turn = torch.rand(points, generator=generator).sqrt() * 2 * math.pi
    label = torch.arange(points) % 2
    angle = turn + label * math.pi
    noise = torch.randn(points, 2, generator=generator) * 0.1
    position = torch.stack([turn * angle.cos(), turn * angle.sin()], dim=1) / (2 * math.pi)
    return position + noise * 0.1, label


def fingerprint(model):
    """A hash of every parameter, bit for bit."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return digest.digest()[:8]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32, help="points per rank and step")
    arguments = parser.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)  # DDP makes all ranks start from rank 0's parameters
    torch.set_num_threads(1)

    model = torch.nn.Sequential(
        torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2)
    )
    model = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    points = TensorDataset(*two_spirals(2048))
    sampler = DistributedSampler(points, shuffle=True, seed=1)
    loader = DataLoader(points, batch_size=arguments.batch, sampler=sampler)

    first = last = None
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(2)
        for position, label in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(position), label)
            loss.backward()
            optimizer.step()
            total += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(total)
        last = (total[0] / total[1]).item()
        first = last if first is None else first
        if rank == 0:
            print(f"epoch {epoch} loss {last:.4f}", flush=True)

    mine = torch.frombuffer(bytearray(fingerprint(model)), dtype=torch.uint8)
    everyone = [torch.zeros_like(mine) for _ in range(world)]
    dist.all_gather(everyone, mine)
    agree = all(torch.equal(mine, other) for other in everyone)
    print(f"rank {rank} of {world} parameters {bytes(mine.tolist()).hex()} {'agree' if agree else 'DIFFER'}", flush=True)
    dist.destroy_process_group()
    if not agree or not last < 0.7 * first:
        sys.exit(f"rank {rank}: loss went from {first:.4f} to {last:.4f}, parameters {'agree' if agree else 'differ'}")


if __name__ == "__main__":
    main()
