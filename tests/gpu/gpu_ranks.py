"""The ranks of job_rows.py: gpu_ranks.py ROLE SETTINGS, of which the latter is JSON. What a rank has found it prints as one line of JSON."""

import ctypes
import json
import os
import sys
import time

import monarch_tensors as tensors
from gpu_driver import Driver, Mapping
from report import timed

PIECE = 1 << 16  # of one content
WARM = 3         # versions until slots are as large as they have to be, and registered


def tell(**found):
    print("FOUND " + json.dumps({"role": sys.argv[1], **found}), flush=True)


class GpuArray:
    """Memory of a GPU as others see it: __cuda_array_interface__."""

    def __init__(self, at, shape, stream, strides=None):
        self.at = at
        self.__cuda_array_interface__ = {"shape": tuple(shape), "typestr": "|u1", "data": (at, False), "version": 3, "strides": strides,
                                         "stream": stream}


class Pattern:
    """What the tensors of a version are: pieces, of which each has another byte than those beside it and those of other versions."""

    def __init__(self, size):
        self.size = size

    def byte(self, version, piece):
        return 1 + (version * 37 + piece * 11) % 251

    def write(self, mapping, version):
        for piece in range(self.size // PIECE):
            ctypes.memset(mapping.at + piece * PIECE, self.byte(version, piece), PIECE)

    def check(self, mapping, version, where):
        seen = memoryview((ctypes.c_char * self.size).from_address(mapping.at)).cast("B")
        for piece in range(self.size // PIECE):
            byte = self.byte(version, piece)
            if seen[piece * PIECE:(piece + 1) * PIECE] != bytes([byte]) * PIECE:
                sys.exit(f"version {version} in {where}: piece {piece} is not all {byte}")


class Side:
    """A rank with memory of a GPU, as much of the host's, and the tensors in them."""

    def __init__(self, settings):
        self.driver = Driver(path=settings["driver"])
        self.size, self.folder = settings["size"], settings["folder"]
        self.versions, self.count = settings["versions"], settings["tensors"]
        self.memory = self.driver.allocate(self.size)
        self.stream = self.driver.make_stream()
        self.pattern = Pattern(self.size)
        self.host = Mapping(self.size)
        self.host.fill(0)
        code = self.driver.register(self.host.at, self.size)
        if code:
            sys.exit(f"registering: {self.driver.word(code)}")

    def out(self):
        self.driver.to_host(self.host.at, self.memory, self.size, self.stream)
        self.driver.settle(self.stream)

    def back(self):
        self.driver.to_device(self.memory, self.host.at, self.size, self.stream)
        self.driver.settle(self.stream)

    def arrays(self):
        """By name."""
        each = self.size // self.count
        return {f"t{i}": GpuArray(self.memory + i * each, (each,), self.stream) for i in range(self.count)}

    def mark(self, what):
        with open(os.path.join(self.folder, what), "w", encoding="utf-8"):
            pass

    def wait_for(self, what):
        until = time.monotonic() + 60
        while not os.path.exists(os.path.join(self.folder, what)):
            if time.monotonic() > until:
                sys.exit(f"{what}: not within a minute")
            time.sleep(0.002)


def train(settings):
    side = Side(settings)
    ceiling = timed(side.out, 3)
    arrays, took = side.arrays(), []
    with tensors.publisher("weights", linger=20) as weights:
        for number in range(side.versions):
            side.pattern.write(side.host, number)
            side.back()
            began = time.perf_counter()
            with weights.version(number) as version:
                for name, array in arrays.items():
                    version.put(name, array)
            took.append(time.perf_counter() - began)
            side.mark(f"published-{number}")
            side.wait_for(f"pulled-{number}")
    tell(put=took[WARM:], ceiling=ceiling)


def generate(settings):
    side = Side(settings)
    ceiling = timed(side.back, 3)
    with Mapping(side.size) as other:
        other.fill(1)
        memcpy = timed(lambda: ctypes.memmove(other.at, side.host.at, side.size), 3)
    each = side.size // side.count
    plain = bytearray(side.size)
    parts = memoryview(plain)
    source = tensors.source("trainer", "weights")
    pull = source.into(side.arrays())
    host_pull = source.into({f"t{i}": parts[i * each:(i + 1) * each] for i in range(side.count)})
    took, host_took, got = [], [], None
    lanes = {}
    for number in range(side.versions):
        side.wait_for(f"published-{number}")
        began = time.perf_counter()
        got = pull(newer_than=got, timeout=60, wait=True)
        took.append(time.perf_counter() - began)
        if got.version != number:
            sys.exit(f"version {got.version} came, and not {number}")
        lanes = got.lanes
        side.out()
        side.pattern.check(side.host, number, "memory of the GPU")
        began = time.perf_counter()
        host_pull(timeout=60, wait=True)
        host_took.append(time.perf_counter() - began)
        ctypes.memmove(side.host.at, (ctypes.c_char * side.size).from_buffer(plain), side.size)
        side.pattern.check(side.host, number, "memory of the host")
        side.mark(f"pulled-{number}")
    tell(pull=took[WARM:], host_pull=host_took[WARM:], ceiling=ceiling, memcpy=memcpy, lanes=lanes)


# What is put where something is odd: by name, the shape and the strides within the memory of the tensor.
ODD = {"nothing": ((0, 64), None), "dense": ((64, 1024), None), "rows": ((64, 512), (1024, 1)), "deep": ((4, 8, 256), (16384, 1024, 1)),
       "one": ((1,), None)}
SMALL_BYTES = 48


def odd_arrays(side, small):
    arrays = {name: GpuArray(side.memory + i * PIECE, shape, side.stream, strides) for i, (name, (shape, strides)) in enumerate(ODD.items())}
    first = side.memory + len(ODD) * PIECE
    arrays.update({f"s{i}": GpuArray(first + i * SMALL_BYTES, (SMALL_BYTES,), side.stream) for i in range(small)})
    return arrays


def places(shape, strides):
    """Where the rows of its last dimension begin, and how long they are."""
    dense = []
    step = 1
    for extent in reversed(shape):
        dense.insert(0, step)
        step *= extent
    starts = [0]
    for extent, stride in zip(shape[:-1], strides or dense):
        starts = [start + i * stride for start in starts for i in range(extent)]
    return starts, shape[-1]


def odd_train(settings):
    side = Side(settings)
    arrays = odd_arrays(side, settings["small"])
    with tensors.publisher("weights", linger=20) as weights:
        for number in range(side.versions):
            side.pattern.write(side.host, number)
            side.back()
            with weights.version(number) as version:
                for name, array in arrays.items():
                    version.put(name, array)
            side.mark(f"published-{number}")
            side.wait_for(f"pulled-{number}")


def odd_generate(settings):
    side = Side(settings)
    pull = tensors.source("trainer", "weights").into(odd_arrays(side, settings["small"]))
    got, compared, small = None, 0, settings["small"] * SMALL_BYTES
    for number in range(side.versions):
        side.wait_for(f"published-{number}")
        side.host.fill(0)
        side.back()
        got = pull(newer_than=got, timeout=60, wait=True)
        side.out()
        seen = bytes((ctypes.c_char * side.size).from_address(side.host.at))
        for i, (name, (shape, strides)) in enumerate(ODD.items()):
            starts, row = places(shape, strides)
            wanted = bytearray(PIECE)
            for start in starts:
                wanted[start:start + row] = bytes([side.pattern.byte(number, i)]) * row
            if seen[i * PIECE:(i + 1) * PIECE] != bytes(wanted):
                sys.exit(f"version {number}: tensor {name} has other bytes, or something beside it has")
        first = len(ODD) * PIECE
        wanted = b"".join(bytes([side.pattern.byte(number, len(ODD) + piece)]) * PIECE for piece in range(small // PIECE + 1))
        if seen[first:first + small] != wanted[:small]:
            sys.exit(f"version {number}: a small tensor has other bytes")
        compared += 1
        side.mark(f"pulled-{number}")
    tell(compared=compared)


def error_of(work):
    """(name of its type or None, its words, how long it took)."""
    began = time.perf_counter()
    try:
        work()
    except tensors.TensorError as error:
        return type(error).__name__, str(error), time.perf_counter() - began
    return None, "", time.perf_counter() - began


def publish(weights, number, arrays, **how):
    with weights.version(number, **how) as version:
        for name, array in arrays.items():
            version.put(name, array)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def be_late(_nothing):
    time.sleep(1)


def late(settings):
    """A stream that is a second late: waited for, or for as long as is said."""
    side = Side(settings)
    arrays = side.arrays()
    with tensors.publisher("weights", linger=0) as weights:
        side.driver.call("cuLaunchHostFunc", side.stream, be_late, None)
        waited = error_of(lambda: publish(weights, 0, arrays))
        side.driver.call("cuLaunchHostFunc", side.stream, be_late, None)
        given_up = error_of(lambda: publish(weights, 1, arrays, timeout=0.2))
        side.driver.settle(side.stream)
        after = error_of(lambda: publish(weights, 2, arrays))
    tell(waited=waited, given_up=given_up, after=after)


def captured(settings):
    """A stream that is captured into a graph."""
    side = Side(settings)
    library, graph = side.driver.library, ctypes.c_void_p()
    stream = ctypes.c_void_p(side.stream)
    with tensors.publisher("weights", linger=0) as weights:
        if settings["fake"]:
            library.fakeCapture(stream, 1)
        else:
            side.driver.call("cuStreamBeginCapture_v2", stream, ctypes.c_int(2))
        refused = error_of(lambda: publish(weights, 0, side.arrays()))
        if settings["fake"]:
            library.fakeCapture(stream, 0)
        else:
            library.cuStreamEndCapture(stream, ctypes.byref(graph))  # its code says whether what was refused has spoilt it
        after = error_of(lambda: publish(weights, 1, side.arrays()))
    tell(refused=refused, after=after)


SPOIL = b""".version 6.0
.target sm_60
.address_size 64
.visible .entry spoil() {
  .reg .u64 %at;
  .reg .u32 %value;
  mov.u64 %at, 64;
  mov.u32 %value, 1;
  st.global.u32 [%at], %value;
  ret;
}
"""


def spoil(side, fake):
    """What follows in the stream fails: a kernel has written where nothing is."""
    if fake:
        side.driver.library.fakeFail(b"copy:700:1")
        return
    module, kernel, none = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    side.driver.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(SPOIL))
    side.driver.call("cuModuleGetFunction", ctypes.byref(kernel), module, ctypes.c_char_p(b"spoil"))
    one, shared = ctypes.c_uint(1), ctypes.c_uint(0)
    side.driver.call("cuLaunchKernel", kernel, one, one, one, one, one, one, shared, ctypes.c_void_p(side.stream), none, none)


def broken(settings):
    """A stream that fails, and with it, as CUDA has it, all of this process."""
    side = Side(settings)
    with tensors.publisher("weights", linger=0) as weights:
        spoil(side, settings["fake"])
        failed = error_of(lambda: publish(weights, 0, side.arrays()))
    tell(failed=failed)
    sys.stdout.flush()
    os._exit(0)  # the driver has nothing more to say that would be of use


ROLES = {role.__name__: role for role in (train, generate, odd_train, odd_generate, late, captured, broken)}

if __name__ == "__main__":
    ROLES[sys.argv[1]](json.loads(sys.argv[2]))
