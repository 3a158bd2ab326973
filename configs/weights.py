"""configs/weights.yaml: a trainer publishes the rows of a matrix, a generator pulls its columns.

usage: weights.py trainer|generator [--rows N] [--columns N] [--steps N] [--pause SECONDS] [--with array|numpy|torch]

With DEVICE=cuda in its environment the matrix is in memory of GPUs (weights_cuda.py).
"""

import argparse
import os
import sys
import time
from array import array

import monarch_tensors as tensors

SEED = 2_654_435_761


def value(step, row, column):
    """What the matrix has there after that step: 32 bits that no other place and no other step has nearby."""
    return (step * SEED + row * 40_503 + column * 7) & 0x7FFFFFFF


def matrix(step, rows, columns):
    """These rows and columns of it, row after row."""
    return array("i", (value(step, row, column) for row in rows for column in columns))


# The same memory as whoever trains has it.
def as_array(cells, shape):
    return memoryview(cells).cast("B").cast("i", shape)


def as_numpy(cells, shape):
    import numpy

    return numpy.frombuffer(cells, dtype=numpy.int32).reshape(shape)


def as_torch(cells, shape):
    import torch

    return torch.frombuffer(cells, dtype=torch.int32).reshape(shape)


KINDS = {"array": as_array, "numpy": as_numpy, "torch": as_torch}


class HostPart:
    """A part of the matrix; one in memory of a GPU is of the same form."""

    def __init__(self, kind, rows, columns):
        self.cells = array("i", bytes(4 * rows * columns))
        self.memory = KINDS[kind](self.cells, (rows, columns))

    def write(self, cells):
        self.cells[:] = cells

    def clear(self):
        self.cells[:] = array("i", bytes(4 * len(self.cells)))

    def read(self):
        return self.cells


def parts(options):
    """Part(rows, columns)."""
    device = os.environ.get("DEVICE", "cpu")
    if device == "cpu":
        return lambda rows, columns: HostPart(options.kind, rows, columns)
    if device != "cuda":
        sys.exit("DEVICE is cpu or cuda, and not %s" % device)
    import weights_cuda

    return weights_cuda.make()


def train(options, rank, size):
    first, count = tensors.split(options.rows, rank, size)
    part = parts(options)(count, options.columns)
    with tensors.publisher("weights") as weights:
        for step in range(options.steps):
            part.write(matrix(step, range(first, first + count), range(options.columns)))
            with weights.version(step) as version:
                version.put("w", part.memory, of=(options.rows, options.columns), at=(first, 0))
                part.clear()  # whatever comes after a put changes nothing of the version
            time.sleep(options.pause)


def generate(options, rank, size):
    first, count = tensors.split(options.columns, rank, size)
    part = parts(options)(options.rows, count)
    pull = tensors.source("trainer", "weights").into({"w": (part.memory, (options.rows, options.columns), (0, first))})
    got = None
    pulls = 0
    while got is None or got.version < options.steps - 1:
        part.clear()
        got = pull(newer_than=got, timeout=60, wait=True)
        if part.read() != matrix(got.version, range(options.rows), range(first, first + count)):
            sys.exit("version %d is not whole" % got.version)
        pulls += 1
    ways = " ".join("%s=%d" % way for way in sorted(got.lanes.items()))
    print("generator %d: %d pulls, each whole, up to version %d (%s)" % (rank, pulls, got.version, ways), flush=True)


def main():
    parser = argparse.ArgumentParser(description="configs/weights.yaml")
    parser.add_argument("mesh", choices=["trainer", "generator"])
    parser.add_argument("--rows", type=int, default=96)
    parser.add_argument("--columns", type=int, default=80)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.05)
    parser.add_argument("--with", dest="kind", choices=sorted(KINDS), default="array")
    options = parser.parse_args()
    rank = int(os.environ["MONARCH_RANK"])
    size = int(os.environ["MONARCH_WORLD_SIZE"])
    (train if options.mesh == "trainer" else generate)(options, rank, size)


main()
