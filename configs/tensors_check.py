"""configs/tensors-check.yaml: each rank pulls from each other one by each way, when it is its turn.

usage: tensors_check.py [--mib N] [--runs N]
"""

import argparse
import os
import statistics
import subprocess
import sys

import monarch_tensors as tensors

WAYS = os.environ["MONARCH_TENSORS"].split(",")
RANK = int(os.environ["MONARCH_RANK"])
SIZE = int(os.environ["MONARCH_WORLD_SIZE"])
PIECE = 65_521  # a prime: no boundary of pages or READs falls where the bytes repeat


def content(rank, size):
    """What that rank publishes: bytes that no other rank and no other place nearby has."""
    piece = bytes((at * 7 + (at >> 8) * 11 + rank * 31) & 0xFF for at in range(PIECE))
    return (piece * (size // PIECE + 1))[:size]


def measure(owner, way, size, runs):
    """GB/s, or why there are none; what is pulled first warms both sides and is not counted."""
    memory = bytearray(size)
    try:
        with tensors.source(os.environ["MONARCH_MESH"], "data").into({"rank%d" % owner: memory}) as pull:
            got = pull(timeout=60)
            if list(got.lanes) != [way]:
                return "it went by " + " ".join(got.lanes)
            if memory != content(owner, size):
                sys.exit("rank %d from %d by %s: other bytes came" % (RANK, owner, way))
            seconds = [pull(timeout=60).seconds for _ in range(runs)]
    except tensors.TensorError as error:
        return "none: %s" % error
    if memory != content(owner, size):
        sys.exit("rank %d from %d by %s: other bytes came" % (RANK, owner, way))
    return "%.2f GB/s" % (size / statistics.median(seconds) / 1e9)


def read(way, size, runs):
    for owner in range(SIZE):
        if owner != RANK:
            print("rank %d from %d by %-5s %s" % (RANK, owner, way, measure(owner, way, size, runs)), flush=True)


def main():
    parser = argparse.ArgumentParser(description="configs/tensors-check.yaml")
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--way", choices=WAYS)
    options = parser.parse_args()
    size = options.mib << 20
    if options.way:
        return read(options.way, size, options.runs)
    with tensors.publisher("data") as data, tensors.publisher("turn", linger=5) as turn:
        with data.version(0) as version:
            version.put("rank%d" % RANK, content(RANK, size))
        pull = tensors.source(os.environ["MONARCH_MESH"], "turn").into({})
        status = 0
        for number in range(SIZE):
            # A session has the ways that its process was started with: each way has one of its own.
            for way in WAYS if number == RANK else []:
                words = [sys.executable, __file__, "--mib", str(options.mib), "--runs", str(options.runs), "--way", way]
                status |= subprocess.run(words, env=dict(os.environ, MONARCH_TENSORS=way)).returncode
            # A version is there once all have published it: that ends the turn.
            with turn.version(number) as version:
                version.put("done", bytes(1), of=(SIZE,), at=(RANK,))
            got = pull(timeout=600)
            while got.version < number:
                got = pull(newer_than=got, timeout=600)
    return status


sys.exit(main())
