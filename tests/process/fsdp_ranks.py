"""What ranks do in tensors_fsdp_test.py: usage: fsdp_ranks.py train|generate

The parameters of a model that FSDP2 shards over the trainer's ranks are published; plain models of the generator pull them whole.
"""

import os
import sys
import time

import monarch_tensors as tensors
import torch
import torch.distributed as dist
from torch import nn

LAYERS = 500  # of two tensors each
GENERATION = int(os.environ["MONARCH_GENERATION"])


def model():
    """Uneven: 7 rows for 4 ranks, so that some have more than others, and of biases of 3 one has none."""
    return nn.Sequential(*[nn.Linear(3 if i % 2 else 7, 7 if i % 2 else 3) for i in range(LAYERS)])


def value(number, shape, version, generation):
    """What the numbered parameter is in that version: no two of its elements, and no other parameter's, are the same."""
    cells = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return ((cells + 64 * number + 1) * (1 + (version % 97) / 128 + generation / 1024)).to(torch.float32).reshape(shape)


def train():
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import distribute_tensor

    dist.init_process_group("gloo")
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    sharded = fully_shard(model(), mesh=mesh)
    sharded(torch.ones(1, 7)).sum().backward()  # it gathers, frees and lays anew what it has
    with tensors.publisher("weights") as weights:
        for step in range(1 << 30):
            with torch.no_grad():
                for number, parameter in enumerate(sharded.parameters()):
                    full = value(number, parameter.shape, step, GENERATION)
                    part = distribute_tensor(full, mesh, parameter.placements, src_data_rank=None)
                    parameter.to_local().copy_(part.to_local())
            with weights.version(step) as version:
                version.put_all(sharded.state_dict())
            time.sleep(0.05)


def generate():
    mine = model()
    pull = tensors.source("trainer", "weights").into(mine)
    names = [name for name, _ in mine.named_parameters()]
    print("tensors", len(names), flush=True)
    got, seen = None, {}
    while seen.get(2, 0) < 3:
        got = pull(newer_than=got, timeout=120, wait=True)
        for number, parameter in enumerate(mine.parameters()):
            if not torch.equal(parameter.detach(), value(number, parameter.shape, got.version, got.generation)):
                sys.exit("%s is not that of version %d of generation %d" % (names[number], got.version, got.generation))
        seen[got.generation] = seen.get(got.generation, 0) + 1
        print("whole", got.generation, got.lanes, flush=True)


{"train": train, "generate": generate}[sys.argv[1]]()
