"""A part of the matrix of weights.py in memory of a GPU: PyTorch's, where it has CUDA, else that of the driver alone, by ctypes.

What is written goes on a stream of the part's own, and nobody waits for it: the library copies behind it.
"""

import ctypes
import os
import time
from array import array


def device_index(count):
    """Ranks of a host share its GPUs."""
    return int(os.environ.get("MONARCH_LOCAL_RANK", "0")) % count


class TorchPart:
    def __init__(self, torch, rows, columns):
        self.torch = torch
        self.device = torch.device("cuda", device_index(torch.cuda.device_count()))
        self.memory = torch.zeros(rows, columns, dtype=torch.int32, device=self.device)
        torch.cuda.set_stream(torch.cuda.Stream(self.device))

    def write(self, cells):
        self.memory.copy_(self.torch.frombuffer(cells, dtype=self.torch.int32).reshape(self.memory.shape), non_blocking=True)

    def clear(self):
        self.memory.zero_()

    def read(self):
        return array("i", self.memory.flatten().tolist())


class Driver:
    """libcuda.so.1, and the context of one GPU for this thread."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise SystemExit("DEVICE=cuda: %s" % error)
        self.call("cuInit", ctypes.c_uint(0))
        count, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        if count.value == 0:
            raise SystemExit("DEVICE=cuda: there is no GPU here")
        self.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(device_index(count.value)))
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxPushCurrent_v2", context)

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            said = ctypes.c_char_p()
            self.library.cuGetErrorName(ctypes.c_int(code), ctypes.byref(said))
            raise SystemExit("DEVICE=cuda: %s: %s" % (name, (said.value or b"an error").decode()))


class DriverPart:
    """What has __cuda_array_interface__ is an array for the library."""

    def __init__(self, driver, rows, columns):
        self.driver = driver
        self.shape = (rows, columns)
        self.bytes = 4 * rows * columns
        self.cells = self.nothing = array("i", bytes(self.bytes))  # a stream may read them until the next is written
        address, stream, self.event = ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_void_p()
        driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(self.bytes))
        driver.call("cuStreamCreate", ctypes.byref(stream), ctypes.c_uint(1))
        driver.call("cuEventCreate", ctypes.byref(self.event), ctypes.c_uint(2))
        self.address, self.stream = address, stream

    @property
    def memory(self):
        return self

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": "<i4", "data": (self.address.value, False), "version": 3, "stream": self.stream.value}

    def copy(self, name, to, start):
        self.driver.call(name, to, start, ctypes.c_size_t(self.bytes), self.stream)

    def write(self, cells):
        self.copy("cuMemcpyHtoDAsync_v2", self.address, ctypes.c_void_p(cells.buffer_info()[0]))
        self.cells = cells

    def clear(self):
        self.copy("cuMemcpyHtoDAsync_v2", self.address, ctypes.c_void_p(self.nothing.buffer_info()[0]))

    def read(self):
        cells = array("i", bytes(self.bytes))
        self.copy("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(cells.buffer_info()[0]), self.address)
        self.driver.call("cuEventRecord", self.event, self.stream)
        while self.driver.library.cuEventQuery(self.event) == 600:  # CUDA_ERROR_NOT_READY
            time.sleep(0.0002)
        self.driver.call("cuEventQuery", self.event)
        return cells


def make():
    """Part(rows, columns)."""
    try:
        import torch

        if torch.cuda.is_available():
            return lambda rows, columns: TorchPart(torch, rows, columns)
    except ImportError:
        pass
    driver = Driver()
    return lambda rows, columns: DriverPart(driver, rows, columns)
