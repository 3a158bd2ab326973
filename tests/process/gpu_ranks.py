"""What ranks do in the tests of memory of GPUs (tensors_gpu_test.py): usage: gpu_ranks.py WHAT [ARGUMENT...]"""

import os
import signal
import sys
import threading
import time
from array import array

import gpu_arrays
import monarch_tensors as tensors

GENERATION = int(os.environ["MONARCH_GENERATION"])
ROWS, COLUMNS = 64, 4096
LONG = 600  # seconds that a stream is late: nobody waits for its end
LATE = 3    # of one whose end is waited for


def say(*words):
    print(*words, flush=True)


def wrong(run):
    try:
        run()
    except tensors.TensorError as error:
        return "%s: %s" % (type(error).__name__, error)
    return "nothing"


def is_whole(target, got):
    return target.peek() == bytes([(16 * got.generation + got.version) % 256]) * (ROWS * COLUMNS)


def publish(publication, weights, number, after=lambda: None):
    weights.fill((16 * GENERATION + number) % 256)
    with publication.version(number) as version:
        version.put("w", weights)
        weights.fill(0)
        after()


# ---- Who publishes is killed, with copies in its streams.


def publish_and_hang(folder):
    """The first process never comes to the end of its second version; the next one goes on until the job ends."""
    gpu = gpu_arrays.Gpu()
    weights = gpu_arrays.Array(gpu, ROWS, COLUMNS)
    with tensors.publisher("weights", linger=0) as publication:
        publish(publication, weights, 0)
        if GENERATION == 1:
            gpu.spin(weights.stream, LONG)
            publish(publication, weights, 1, lambda: write_file(folder, "hangs", str(os.getpid())))
        for number in range(1, 1 << 30):
            publish(publication, weights, number)
            time.sleep(0.01)


def write_file(folder, name, text=""):
    path = os.path.join(folder, name)
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".tmp", path)


def read_file(folder, name):
    path = os.path.join(folder, name)
    while not os.path.exists(path):
        time.sleep(0.005)
    with open(path, encoding="utf-8") as file:
        return file.read()


def kill_the_owner(folder):
    gpu = gpu_arrays.Gpu()
    target = gpu_arrays.Array(gpu, ROWS, COLUMNS)
    pull = tensors.source("owner", "weights").into({"w": target})
    got = pull(timeout=60)
    say("first", got.generation, got.version, is_whole(target, got))
    owner = int(read_file(folder, "hangs"))
    threading.Timer(0.1, os.kill, (owner, signal.SIGKILL)).start()
    say("killed", wrong(lambda: pull(newer_than=got, timeout=60)).split(":")[0])
    for _ in range(3):
        target.fill(0)
        got = pull(newer_than=got, timeout=60, wait=True)
        say("next", got.generation, is_whole(target, got))


# ---- Who pulls is killed, with copies in its stream.


def publish_on():
    gpu = gpu_arrays.Gpu()
    weights = gpu_arrays.Array(gpu, ROWS, COLUMNS)
    with tensors.publisher("weights", patience=0.2, linger=0) as publication:
        for number in range(1 << 30):
            publish(publication, weights, number)
            time.sleep(0.01)


def die_with_events(gpu):
    """One that is there at two looks is waited for."""
    seen = 0
    while seen < 2:
        time.sleep(0.01)
        seen = seen + 1 if gpu.events() else 0
    os.kill(os.getpid(), signal.SIGKILL)


def die_in_a_pull():
    """The first process dies with all of a version in its stream, its next one pulls on from the same owner."""
    gpu = gpu_arrays.Gpu()
    target = gpu_arrays.Array(gpu, ROWS, COLUMNS)
    pull = tensors.source("owner", "weights").into({"w": target})
    got = pull(timeout=60)
    say("begun", GENERATION, got.generation, is_whole(target, got), got.lanes)
    if GENERATION == 1:
        gpu.spin(target.stream, LONG)
        threading.Thread(target=die_with_events, args=(gpu,)).start()
        pull(newer_than=got, timeout=60)
        say("it came to an end")
    for _ in range(3):
        last = got
        got = pull(newer_than=got, timeout=60)
    say("on", got.generation, is_whole(target, got), got.version > last.version)


# ---- Errors by name.


class Somewhere:
    """Of memory that no driver has given."""

    __cuda_array_interface__ = {"shape": (2, 4), "typestr": "|u1", "data": (0x7000, False), "version": 3}


def goes_on():
    """Memory of the host is published and pulled in this process all the same."""
    cells = array("i", [1, 2, 3])
    with tensors.publisher("host", linger=0) as publication:
        with publication.version(1) as version:
            version.put("w", array("i", [4, 5, 6]))
        tensors.source(os.environ["MONARCH_MESH"], "host").into({"w": cells})(timeout=20)
    return cells.tolist() == [4, 5, 6]


def without_a_driver():
    mesh = os.environ["MONARCH_MESH"]
    with tensors.publisher("device", linger=0) as publication:
        with publication.version(1) as version:
            say(mesh, wrong(lambda: version.put("w", Somewhere())))
            version.put("h", array("i", [7]))
    said = wrong(lambda: tensors.source(mesh, "device").into({"w": Somewhere()}))
    say(mesh, said.split(":")[0], goes_on())


def on_a_driver():
    other = gpu_arrays.Gpu(1).stream()
    gpu = gpu_arrays.Gpu()
    weights = gpu_arrays.Array(gpu, 2, 4)
    number = 0

    def version(*actions, timeout=None):
        nonlocal number
        number += 1
        with publication.version(number, timeout=timeout) as written:
            for action in actions:
                action(written)

    def put(written, **how):
        written.put("w", weights, **how)

    with tensors.publisher("device", linger=0) as publication:
        weights.fill(1)
        version(put)
        say("memory =", wrong(lambda: version(lambda written: written.put("w", Somewhere()))))
        say("stream =", wrong(lambda: version(lambda written: put(written, stream=other))))
        gpu.capture(weights.stream, True)
        say("graph =", wrong(lambda: version(put)))
        gpu.capture(weights.stream, False)
        gpu.fail("cuMemcpyDtoHAsync_v2:1:1")
        say("copy =", wrong(lambda: version(put)))
        gpu.heal()
        late = gpu_arrays.Array(gpu, 2, 4)
        gpu.spin(late.stream, LATE)
        say("late =", wrong(lambda: version(lambda written: written.put("w", late), timeout=0.05)).split(" for longer than ")[0])
        weights.fill(9)
        version(put)
        target = gpu_arrays.Array(gpu, 2, 4)
        source = tensors.source(os.environ["MONARCH_MESH"], "device")
        got = source.into({"w": target})(timeout=20)
        say("whole =", got.version == number, target.peek() == b"\t" * 8)
        say("into =", wrong(lambda: source.into({"w": Somewhere()})))
        say("other =", wrong(lambda: source.into({"w": target})(timeout=20, stream=other)))
        gpu.spin(target.stream, LATE)
        say("late pull =", wrong(lambda: source.into({"w": target})(timeout=0.05)).split(";")[0])
    say("host =", goes_on())


WHAT = [publish_and_hang, kill_the_owner, publish_on, die_in_a_pull, without_a_driver, on_a_driver]
{run.__name__: run for run in WHAT}[sys.argv[1]](*sys.argv[2:])
