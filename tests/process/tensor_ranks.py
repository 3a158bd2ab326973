"""What ranks do in the tests of tensors (tensors_test.py): usage: tensor_ranks.py WHAT [ARGUMENT...]"""

import glob
import os
import signal
import stat
import sys
import threading
import time
import zlib
from array import array

import monarch_tensors as tensors

RANK = int(os.environ["MONARCH_RANK"])
GENERATION = int(os.environ["MONARCH_GENERATION"])
MIB = 1 << 20


def say(*words):
    print(*words, flush=True)


def wait_for_file(path):
    while not os.path.exists(path):
        time.sleep(0.005)
    return path


PIECE = 4 * MIB


def fill(memory, version):
    """Each byte of memory says which version it is of, or of which generation."""
    piece = bytes([version & 0xFF, GENERATION & 0xFF]) * (PIECE // 2)
    for at in range(0, len(memory), PIECE):
        memory[at:at + PIECE] = piece[:len(memory) - at]


def is_whole(memory, got):
    piece = bytes([got.version & 0xFF, got.generation & 0xFF]) * (PIECE // 2)
    return all(memory[at:at + PIECE] == piece[:len(memory) - at] for at in range(0, len(memory), PIECE))


def publish_large(folder, size, versions, pause="0"):
    """`versions` versions of so many MiB, the process of each generation named in a file; then it waits to be ended."""
    size = int(size) * MIB
    with tensors.publisher("large", patience=0.5) as large:
        slowest = 0
        for number in range(int(versions)):
            begun = time.monotonic()
            with large.version(number) as version:
                slowest = max(slowest, time.monotonic() - begun)
                fill(version.empty("w", (size,), "uint8"), number)
            with open(os.path.join(folder, f"published.{GENERATION}.tmp"), "w", encoding="utf-8") as file:
                file.write(f"{os.getpid()} {slowest}")
            os.rename(file.name, file.name[:-4])
            time.sleep(float(pause))
        wait_for_file(os.path.join(folder, "end"))


def owner_of(folder, generation):
    with open(wait_for_file(os.path.join(folder, f"published.{generation}")), encoding="utf-8") as file:
        return int(file.read().split()[0])


def struck(memory, pull, strike, delay, **how):
    """A pull that is struck in the middle: what came of it, and that nothing is written after it."""
    threading.Timer(delay, strike).start()
    try:
        got = pull(**how)
        outcome = "whole" if is_whole(memory, got) else "torn"
    except tensors.TensorError as error:
        outcome = type(error).__name__
    before = zlib.adler32(memory)
    time.sleep(0.3)
    if zlib.adler32(memory) != before:
        outcome += ", and written after"
    return outcome


def survive(folder, size, delay, *signals):
    """The owner of a large pull gets a signal so many seconds after its begin; its next generation gets the next."""
    memory = bytearray(int(size) * MIB)
    pull = tensors.source("owner", "large").into({"w": memory})
    for generation, name in enumerate(signals, 1):
        owner = owner_of(folder, generation)
        got = pull(timeout=60, wait=True)
        say("first", got.generation == generation and is_whole(memory, got))
        number = getattr(signal, name)
        # Who stands still is not heard of; who is killed is, however long the pull takes.
        limit = 1 if number == signal.SIGSTOP else 60
        outcome = struck(memory, pull, lambda to=owner, number=number: os.kill(to, number), float(delay), timeout=limit)
        say("struck", outcome)
        if number == signal.SIGSTOP:
            os.kill(owner, signal.SIGCONT)
            say("after", is_whole(memory, pull(timeout=60)))
            os.kill(owner, signal.SIGKILL)
    got = pull(timeout=60, wait=True)
    say("last", got.generation, is_whole(memory, got), "reader", GENERATION)
    # Of the owners that were killed nothing is left beside the doors of ranks.
    workers = os.path.dirname(os.path.dirname(os.environ["MONARCH_POST"]))
    sockets = glob.glob(os.path.join(workers, "w-*", "*.t"))
    say("sockets", [oct(stat.S_IMODE(os.stat(path).st_mode)) for path in sockets])
    open(os.path.join(folder, "end"), "w", encoding="utf-8").close()


def publish_on():
    """Versions without end, also when it has a successor."""
    with tensors.publisher("steady", patience=0.2, linger=0) as steady:
        for number in range(1 << 30):
            with steady.version(number) as version:
                version.put("w", array("q", [GENERATION] * 1_000))
            time.sleep(0.02)


def map_steadily(newer):
    """Holds a version while others follow, and goes on to a newer one."""
    source = tensors.source("owner", "steady")
    held = source.map("w", timeout=20)
    with source.map("w", newer_than=held.got, timeout=20) as next_one:
        say("next", next_one.got.version > held.got.version, next_one.got.lanes)
    until = held.got.version + int(newer)
    memory = array("q", bytes(8_000))
    with source.into({"w": memory}) as pull:
        got = pull(timeout=20)
        while got.version < until:
            got = pull(newer_than=got, timeout=20)
    view = held.memory
    say("held", held.dtype, held.shape, set(view), view.readonly, got.version >= until)
    del held
    say("alive", set(view))


def outlive(seconds):
    """Pulls while the owner's host stands still and is replaced, and for so long after it."""
    memory, other = array("q", bytes(8_000)), array("q", bytes(8_000))
    pull = tensors.source("owner", "steady").into({"w": memory})
    got = pull(timeout=20, wait=True)
    say("first", got.generation, set(memory))
    while got.generation == 1:
        got = pull(newer_than=got, timeout=20, wait=True)
    say("next", got.generation, set(memory))
    seen = set()
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        got = pull(newer_than=got, timeout=20)
        with tensors.source("owner", "steady").into({"w": other}) as another:
            seen |= {got.generation, another(timeout=20).generation, *memory, *other}
    say("seen", seen)


def freeze(folder, size):
    """Stands still in the middle of a pull, again and again; whoever publishes must not."""
    memory = bytearray(int(size) * MIB)
    pull = tensors.source("owner", "large").into({"w": memory})
    owner_of(folder, 1)
    for _ in range(2):
        own = os.getpid()
        # Another process wakes this one: none of its own threads runs meanwhile.
        if os.fork() == 0:
            time.sleep(0.01)
            os.kill(own, signal.SIGSTOP)
            time.sleep(0.7)
            os.kill(own, signal.SIGCONT)
            os._exit(0)
        got = pull(timeout=20)
        say("pulled", is_whole(memory, got))
        os.wait()
    with open(os.path.join(folder, "published.1"), encoding="utf-8") as file:
        say("slowest", float(file.read().split()[1]))
    open(os.path.join(folder, "end"), "w", encoding="utf-8").close()


def publish_model(*counts):
    """Publications of so many tensors, of each a row here, until the job ends."""
    ranks = int(os.environ["WORLD_SIZE"])
    opened = [tensors.publisher("m" + count, linger=0) for count in counts]
    for count, model in zip(counts, opened):
        with model.version(1) as version:
            for number in range(int(count)):
                row = memoryview(array("i", [number, RANK])).cast("B").cast("i", (1, 2))
                version.put("layers.%d.weight" % number, row, of=(ranks, 2), at=(RANK, 0))
    signal.pause()


def read_models(*models):
    """Each is MESH:RANKS:TENSORS."""
    for model in models:
        mesh, ranks, count = model.split(":")
        ranks = int(ranks)
        want = {"layers.%d.weight" % number: memoryview(bytearray(8 * ranks)).cast("i", (ranks, 2)) for number in range(int(count))}
        got = tensors.source(mesh, "m" + count).into(want)(timeout=60)
        right = [want["layers.%d.weight" % number].tolist() == [[number, rank] for rank in range(ranks)] for number in range(int(count))]
        say(model, sum(right), got.lanes)


def publish_once(folder):
    """Ends in order, with its process, once somebody has it."""
    with tensors.publisher("weights") as weights:
        with weights.version(1) as version:
            version.put("w", array("q", [7]))
        tensors.source("owner", "weights").describe(timeout=20)  # who only asks what there is has not had it
    with open(os.path.join(folder, "over.tmp"), "w", encoding="utf-8") as file:
        file.write(str(os.getpid()))
    os.rename(file.name, file.name[:-4])


def read_late(folder):
    """Who has had it, and who comes when nobody is there any more."""
    memory = array("q", [0])
    source = tensors.source("owner", "weights")
    pull = source.into({"w": memory})
    got = pull(timeout=20)
    say("first", memory[0] == 7)
    wait_for_file(os.path.join(folder, "over"))
    say("newer", wrong(lambda: pull(newer_than=got, timeout=20)).split(":")[0])
    say("late", wrong(lambda: source.into({"w": memory})(timeout=20)).split(":")[0])
    with open(os.path.join(folder, "over"), encoding="utf-8") as file:
        owner = int(file.read())
    while os.path.exists("/proc/%d" % owner):
        time.sleep(0.005)
    say(wrong(lambda: source.into({"w": memory})(timeout=20)))


def replace_parameters():
    """With PyTorch: whole models, memory that is replaced and freed, and what is no plain memory."""
    import torch

    def model(start):
        made = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Linear(5, 3))
        made[1].weight = torch.nn.Parameter(made[0].weight.t())  # one memory, read by columns
        for number, parameter in enumerate(made.parameters()):
            parameter.data.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) + start * 100 + number)
        return made

    def same(one, other):
        return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values()))

    with tensors.publisher("weights", linger=0) as weights:
        mine = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Linear(5, 3))
        pull = tensors.source("t", "weights").into(mine)
        for number in range(1, 5):
            theirs = model(number)
            with weights.version(number) as version:
                version.put_all(theirs)
            if number == 2:
                mine[0].weight.data = torch.zeros(5, 3)
            if number == 3:
                mine[1].weight = torch.nn.Parameter(torch.zeros(3, 5))
            if number == 4:
                storage = mine[0].bias.untyped_storage() if hasattr(mine[0].bias, "untyped_storage") else mine[0].bias.storage()
                storage.resize_(0)
                say(wrong(lambda: pull(timeout=20)))
                storage.resize_(20 if hasattr(mine[0].bias, "untyped_storage") else 5)
            pull(timeout=20)
            say("same", same(mine, theirs))
    floats = torch.zeros(2, 2)
    for one in (floats.to_sparse(), torch.quantize_per_tensor(floats, 0.1, 0, torch.qint8), torch.zeros(2, device="meta"),
                torch.zeros(2, dtype=torch.complex64).conj(), torch.zeros(2, dtype=torch.complex64).conj().imag,
                torch.zeros(2).expand(3, 2), floats.t(), torch.nn.UninitializedParameter()):
        say(wrong(lambda one=one: tensors.source("t", "weights").into({"x": one}))[:57])


# ---- What is wrong, and what is said of it.


def wrong(run):
    try:
        run()
    except tensors.TensorError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def read_wrong(folder):
    cells = array("i", bytes(4 * 64))
    square = memoryview(cells).cast("B").cast("i", (8, 8))
    source = tensors.source("owner", "square")

    def into(parts, timeout=20):
        return lambda: source.into(parts)(timeout=timeout)

    source.into({"w": square})(timeout=20)
    say("describe", source.describe(timeout=20))
    rank_0 = tensors.source("owner", "square").into({"w": square})(timeout=20)
    say("lanes", rank_0.lanes)
    for name, run in {
        "mesh": lambda: tensors.source("ownr", "square").into({"w": square}),
        "publication": lambda: tensors.source("owner", "sqare").into({"w": square})(timeout=0.2),
        "tensor": into({"v": square}),
        "dtype": into({"w": memoryview(cells).cast("B").cast("f", (8, 8))}),
        "shape": into({"w": (square, (9, 8), (0, 0))}),
        "outside": into({"w": (square, (8, 8), (1, 0))}),
        "uncovered": lambda: tensors.source("owner", "hole").into({"w": square})(timeout=20),
        "dimensions": into({"w": memoryview(bytearray(512)).cast("B", (1, 1, 1, 1, 1, 1, 1, 1, 512))}),
        "mixed": into({"w": (square, (8,), (0, 0))}),
        "read-only": into({"w": bytes(256)}),
        "format": into({"w": memoryview(bytearray(8)).cast("P")}),
        "older": lambda: source.into({"w": square})(newer_than=rank_0, timeout=0.2),
    }.items():
        say(name, "=", wrong(run))
    cancelled = source.into({"w": square})
    threading.Timer(0.05, cancelled.cancel).start()
    say("cancel", "=", wrong(lambda: cancelled(newer_than=rank_0)))
    child = os.fork()
    if child == 0:
        say("fork", "=", wrong(lambda: cancelled(timeout=1)))
        say("child", tensors.source("owner", "square").into({"w": square})(timeout=20).version)
        os._exit(0)
    os.waitpid(child, 0)
    open(os.path.join(folder, "end"), "w", encoding="utf-8").close()


def publish_wrong(folder):
    cells = array("i", range(64))
    square = memoryview(cells).cast("B").cast("i", (8, 8))
    wide = memoryview(cells).cast("B").cast("i", (4, 16))
    names = {}
    with tensors.publisher("square", linger=0) as publication:
        def write(number, *parts):
            def run():
                with publication.version(number) as version:
                    for name, array_, keys in parts:
                        version.put(name, array_, **keys)
            return run
        write(7, ("w", square, {}))()
        with tensors.publisher("hole", linger=0) as hole:
            with hole.version(0) as version:
                version.put("w", wide, of=(8, 8), at=(0, 0)) if False else version.put(
                    "w", memoryview(bytes(4 * 56)).cast("i", (7, 8)), of=(8, 8))
            names["back"] = wrong(write(6, ("w", square, {})))
            names["other shape"] = wrong(write(8, ("w", wide, {})))
            names["missing"] = wrong(write(8))
            names["twice"] = wrong(write(8, ("w", square, {}), ("w", square, {})))
            names["extra"] = wrong(write(8, ("w", square, {}), ("b", square, {})))
            names["cast"] = wrong(write(8, ("w", square, {"dtype": "float64"})))
            names["made up"] = wrong(write(8, ("w", square, {"dtype": "float31"})))
            names["name"] = wrong(lambda: tensors.publisher("n" * 129))
            names["again"] = wrong(lambda: tensors.publisher("square").version(1).__enter__())
            names["publishers"] = wrong(lambda: tensors.publisher("p", publishers=[0, 5]))
            names["first"] = wrong(lambda: tensors.publisher("p", publishers=[1]))
            huge = tensors.publisher("huge", linger=0)
            names["room"] = wrong(lambda: huge.version(0).__enter__().empty("w", (1 << 52,), "uint8"))
            for name, words in names.items():
                say(name, "=", words)
            wait_for_file(os.path.join(folder, "end"))


def publish_steadily(size):
    """Until it is stopped."""
    size = int(size) * MIB
    with tensors.publisher("steady", linger=0) as steady:
        number = 0
        while True:
            with steady.version(number) as version:
                fill(version.empty("w", (size,), "uint8"), number)
            number += 1
            time.sleep(0.05)


def pull_through_a_loss(size):
    """Pulls again and again, until an owner is lost; then on, from the next generation."""
    memory = bytearray(int(size) * MIB)
    pull = tensors.source("owner", "steady").into({"w": memory})
    got = pull(timeout=30)
    say("begun", is_whole(memory, got), got.lanes)
    begun = time.monotonic()
    try:
        while time.monotonic() - begun < 30:
            begun = time.monotonic()
            got = pull(newer_than=got, timeout=30)
            if not is_whole(memory, got):
                return say("torn")
    except tensors.TensorError as error:
        before = zlib.adler32(memory)
        time.sleep(1)
        say("lost", type(error).__name__, "within", round(time.monotonic() - begun, 1) - 1, "quiet",
            zlib.adler32(memory) == before)
    got = pull(timeout=60, wait=True)
    say("on", got.generation, is_whole(memory, got), "reader", GENERATION)


def say_error():
    say(wrong(lambda: tensors.source("t", "x").into({})))


class Eight:
    """An array of NumPy's with a type of ml_dtypes."""

    def __init__(self, name):
        self.dtype, self.cells = type("dtype", (), {"name": name}), array("B", bytes(4))
        self.ctypes = None
        self.__array_interface__ = {"typestr": "<V1", "shape": (4,), "data": (self.cells.buffer_info()[0], False), "version": 3}


def round_floats(folder):
    """float32 as bfloat16, and other kinds of memory."""
    floats = array("f", [1.0, -2.5, 3.14159274, 65504.0, 1e-40, float("inf"), 1.00390625, 1.01171875])
    with tensors.publisher("floats", linger=0) as publication:
        with publication.version(1) as version:
            version.put("b", floats, dtype="bfloat16")
            memory = version.empty("e", (2, 3), "float64")
            memory[1, 2] = 0.5
            version.put("s", array("i", [11]), of=(1,))
            version.put("n", array("q"))
            for name in ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn_x2"):
                version.empty(name, (4,), name)[:] = b"\1\2\3\4"
        halves, doubles = array("H", bytes(16)), array("d", bytes(48))
        got = {}
        for name, into in {"e": memoryview(doubles).cast("B").cast("d", (2, 3)), "n": array("q")}.items():
            got[name] = tensors.source("t", "floats").into({name: into})(timeout=20).bytes
        say(got, doubles[5])
        for name in ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn_x2"):
            eight = Eight(name)
            tensors.source("t", "floats").into({name: eight})(timeout=20)
            say(name, eight.cells.tolist())
        say(wrong(lambda: tensors.source("t", "floats").into({"b": halves})(timeout=20)))


WHAT = [publish_large, survive, freeze, publish_on, map_steadily, outlive, read_wrong, publish_wrong, say_error, publish_steadily, pull_through_a_loss,
        round_floats, publish_model, read_models, publish_once, read_late,
        replace_parameters]
{run.__name__: run for run in WHAT}[sys.argv[1]](*sys.argv[2:])
