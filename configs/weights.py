"""configs/weights.yaml: a trainer publishes the rows of a matrix, a generator pulls its columns.

usage: weights.py trainer|generator [--rows N] [--columns N] [--steps N] [--pause SECONDS] [--with array|numpy|torch]
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


def train(options, rank, size):
    first, count = tensors.split(options.rows, rank, size)
    with tensors.publisher("weights") as weights:
        for step in range(options.steps):
            cells = matrix(step, range(first, first + count), range(options.columns))
            part = KINDS[options.kind](cells, (count, options.columns))
            with weights.version(step) as version:
                version.put("w", part, of=(options.rows, options.columns), at=(first, 0))
            time.sleep(options.pause)


def generate(options, rank, size):
    first, count = tensors.split(options.columns, rank, size)
    cells = array("i", bytes(4 * options.rows * count))
    part = KINDS[options.kind](cells, (options.rows, count))
    pull = tensors.source("trainer", "weights").into({"w": (part, (options.rows, options.columns), (0, first))})
    got = None
    pulls = 0
    while got is None or got.version < options.steps - 1:
        got = pull(newer_than=got, timeout=60, wait=True)
        if cells != matrix(got.version, range(options.rows), range(first, first + count)):
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
