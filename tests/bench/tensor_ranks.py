"""What the ranks of scripts/bench tensors do: one mesh publishes, one pulls and measures, and prints JSON.

usage: tensor_ranks.py publish SHAPE | pull SHAPE RUNS | publish_many COUNT | pull_many COUNT | die FOLDER | deaths FOLDER TIMES
SHAPE: rows|columns|small
"""

import ctypes
import json
import mmap
import os
import signal
import statistics
import sys
import time
from array import array

import monarch_tensors as tensors

MIB = 1 << 20
RANK = int(os.environ["MONARCH_RANK"])
SIZE = int(os.environ["MONARCH_WORLD_SIZE"])
# (rows, columns) of bytes that are published, and the columns that are pulled of each row: 64 MiB in all but the small one.
SHAPES = {"rows": ((64, MIB), MIB), "columns": ((65536, 2048), 1024), "small": ((1, 4096), 4096)}


def pattern(rows, columns):
    """Rows of bytes that say where they are."""
    line = bytes(range(256)) * (columns // 256)
    memory = bytearray(rows * columns)
    for row in range(rows):
        memory[row * columns:(row + 1) * columns] = line
        memory[row * columns:row * columns + 4] = row.to_bytes(4, "little")
    return memory


def publish(shape):
    (rows, columns), _ = SHAPES[shape]
    first, count = tensors.split(rows, RANK, SIZE)
    memory = pattern(rows, columns)[first * columns:(first + count) * columns]
    with tensors.publisher("bytes", linger=0) as publication:
        with publication.version(1) as version:
            version.put("w", memoryview(memory).cast("B", (count, columns)), of=(rows, columns), at=(first, 0))
        signal.pause()


def pull(shape, runs):
    (rows, columns), wanted = SHAPES[shape]
    size = rows * wanted
    # Private memory of both, each page used once before; as a copy within a program has it.
    to = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    source = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    to[:], source[:] = bytes(size), bytes(size)
    to_at, source_at = (ctypes.addressof(ctypes.c_char.from_buffer(one)) for one in (to, source))
    one = tensors.source("owner", "bytes").into({"w": (memoryview(to).cast("B", (rows, wanted)), (rows, columns), (0, 0))})
    expected = pattern(rows, columns)
    expected = b"".join(bytes(expected[row * columns:row * columns + wanted]) for row in range(rows))
    pulls, copies = [], []
    for turn in range(int(runs) + 1):
        to[:] = bytes(size)
        begun = time.perf_counter()
        got = one(timeout=60)
        took = time.perf_counter() - begun
        if to[:] != expected:
            sys.exit("bytes differ")
        begun = time.perf_counter()
        ctypes.memmove(to_at, source_at, size)
        copied = time.perf_counter() - begun
        if turn > 0:
            pulls.append(took)
            copies.append(copied)
    print(json.dumps({"bytes": size, "lanes": got.lanes, "pulls": pulls, "copies": copies}), flush=True)


def many(count):
    """A model of so many tensors of 4 KiB, each of which says which it is."""
    return {f"model.layers.{i // 128}.mlp.experts.{i % 128}.weight": bytearray(i.to_bytes(4, "little") * 1024) for i in range(int(count))}


def publish_many(count):
    """What a version costs its thread, in seconds, is published as well."""
    took, model = array("d"), many(count)
    with tensors.publisher("many", linger=0) as publication, tensors.publisher("took", linger=0) as told:
        for number in range(8):
            begun = time.thread_time()
            with publication.version(number) as version:
                for name, memory in model.items():
                    version.put(name, memory)
            took.append(time.thread_time() - begun)
        with told.version(0) as version:
            version.put("w", took)
        signal.pause()


def pull_many(count):
    took, model = array("d", bytes(64)), many(count)
    expected = list(map(bytes, model.values()))
    for memory in model.values():
        memory[:] = bytes(4096)
    tensors.source("owner", "took").into({"w": took})(timeout=120)
    begun = time.thread_time()
    one = tensors.source("owner", "many").into(model)
    into = time.thread_time() - begun
    pulls = []
    for _ in range(6):
        begun = time.thread_time()
        one(timeout=60)
        pulls.append(time.thread_time() - begun)
    if list(map(bytes, model.values())) != expected:
        sys.exit("bytes differ")
    costs = {"put": statistics.median(took[3:]), "into": into, "first pull": pulls[0], "later pull": statistics.median(pulls[1:])}
    print(json.dumps({what: seconds / int(count) * 1e6 for what, seconds in costs.items()}), flush=True)


def die(folder):
    with tensors.publisher("pid", linger=0) as publication:
        with publication.version(1) as version:
            version.put("w", memoryview(os.getpid().to_bytes(8, "little")))
        signal.pause()


def deaths(folder, times):
    """From a kill -9 of an owner until who waits for it hears of that."""
    memory = bytearray(8)
    one = tensors.source("owner", "pid").into({"w": memory})
    heard = []
    import threading
    for _ in range(int(times)):
        got = one(timeout=60, wait=True)
        killed = []

        def kill():
            killed.append(time.perf_counter())
            os.kill(int.from_bytes(memory, "little"), signal.SIGKILL)

        threading.Timer(0.05, kill).start()
        try:
            one(newer_than=got, timeout=60)
        except tensors.PeerGone:
            heard.append(time.perf_counter() - killed[0])
    print(json.dumps({"heard": heard, "median": statistics.median(heard)}), flush=True)


{"publish": publish, "pull": pull, "publish_many": publish_many, "pull_many": pull_many, "die": die, "deaths": deaths}[sys.argv[1]](*sys.argv[2:])
