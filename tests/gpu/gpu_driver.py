"""libcuda.so.1 by ctypes, as a program has it that uses nothing else: the real one, or the fake of tests/cuda."""

import ctypes
import mmap
import time

SUCCESS, NOT_READY = 0, 600
PORTABLE, READ_ONLY = 1, 8
DISABLE_TIMING = 2
PIECE = 1 << 30  # of what is registered at once

READ, READ_WRITE = mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE

SIGNATURES = {
    "cuCtxPushCurrent_v2": [ctypes.c_void_p],
    "cuDeviceGet": [ctypes.c_void_p, ctypes.c_int],
    "cuDeviceGetAttribute": [ctypes.c_void_p, ctypes.c_int, ctypes.c_int],
    "cuDeviceGetName": [ctypes.c_char_p, ctypes.c_int, ctypes.c_int],
    "cuDevicePrimaryCtxRetain": [ctypes.c_void_p, ctypes.c_int],
    "cuDriverGetVersion": [ctypes.c_void_p],
    "cuEventCreate": [ctypes.c_void_p, ctypes.c_uint],
    "cuEventDestroy_v2": [ctypes.c_void_p],
    "cuEventQuery": [ctypes.c_void_p],
    "cuEventRecord": [ctypes.c_void_p, ctypes.c_void_p],
    "cuGetErrorName": [ctypes.c_int, ctypes.c_void_p],
    "cuInit": [ctypes.c_uint],
    "cuLaunchHostFunc": [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p],
    "cuMemAlloc_v2": [ctypes.c_void_p, ctypes.c_size_t],
    "cuMemFree_v2": [ctypes.c_uint64],
    "cuMemHostRegister_v2": [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint],
    "cuMemHostUnregister": [ctypes.c_void_p],
    "cuMemcpyDtoHAsync_v2": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p],
    "cuMemcpyHtoDAsync_v2": [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
    "cuStreamCreate": [ctypes.c_void_p, ctypes.c_uint],
    "cuStreamDestroy_v2": [ctypes.c_void_p],
}


class NoGpu(Exception):
    """There is nothing to run on; says why."""


class DriverError(Exception):
    """A call of the driver that did not do what it was to do."""


class Driver:
    """One GPU, whose primary context is current in the thread that made this."""

    def __init__(self, device=0, path="libcuda.so.1"):
        try:
            self.library = ctypes.CDLL(path)
        except OSError as error:
            raise NoGpu(str(error)) from None
        for name, types in SIGNATURES.items():
            getattr(self.library, name).argtypes = types
        code = self.library.cuInit(0)
        if code:
            raise NoGpu(f"{path}: cuInit: {self.word(code)}")
        self.device = self._asked(ctypes.c_int, "cuDeviceGet", device)
        self.version = self._asked(ctypes.c_int, "cuDriverGetVersion")
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 255, self.device)
        self.name = name.value.decode()
        self.call("cuCtxPushCurrent_v2", self._asked(ctypes.c_void_p, "cuDevicePrimaryCtxRetain", self.device))

    def word(self, code):
        said = ctypes.c_char_p()
        self.library.cuGetErrorName(code, ctypes.byref(said))
        return (said.value or b"error %d" % code).decode()

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            raise DriverError(f"{name}: {self.word(code)}")

    def _asked(self, kind, name, *arguments):
        answer = kind()
        self.call(name, ctypes.byref(answer), *arguments)
        return answer.value

    def attribute(self, number):
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, self.device)
        return value.value

    def allocate(self, size):
        return self._asked(ctypes.c_uint64, "cuMemAlloc_v2", size)

    def free(self, at):
        self.call("cuMemFree_v2", at)

    def make_stream(self):
        return self._asked(ctypes.c_void_p, "cuStreamCreate", 1)  # which waits for no other

    def make_event(self):
        return self._asked(ctypes.c_void_p, "cuEventCreate", DISABLE_TIMING)

    def to_host(self, host, device, size, stream=None):
        self.call("cuMemcpyDtoHAsync_v2", host, device, size, stream)

    def to_device(self, device, host, size, stream=None):
        self.call("cuMemcpyHtoDAsync_v2", device, host, size, stream)

    def is_done(self, event):
        code = self.library.cuEventQuery(event)
        if code not in (SUCCESS, NOT_READY):
            raise DriverError(f"a stream: {self.word(code)}")
        return code == SUCCESS

    def settle(self, stream=None):
        """Until all is done that was enqueued there."""
        event = self.make_event()
        self.call("cuEventRecord", event, stream)
        while not self.is_done(event):
            time.sleep(0.00002)
        self.call("cuEventDestroy_v2", event)

    def register(self, at, size, flags=PORTABLE):
        """The driver's code, 0 where all of it is registered; else none of it is."""
        for piece in range(0, size, PIECE):
            code = self.library.cuMemHostRegister_v2(at + piece, min(PIECE, size - piece), flags)
            if code:
                self.unregister(at, piece)
                return code
        return SUCCESS

    def unregister(self, at, size):
        for piece in range(0, size, PIECE):
            self.call("cuMemHostUnregister", at + piece)


_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Mapping:
    """Memory of the host at an address: a file's, or nobody's else."""

    def __init__(self, size, protection=READ_WRITE, kind=mmap.MAP_SHARED, file=None):
        self.size = size
        if file is None:
            kind |= mmap.MAP_ANONYMOUS
        self.at = _libc.mmap(None, size, protection, kind, -1 if file is None else file, 0)
        if self.at in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), "mmap")

    def protect(self, protection):
        """Whether the kernel lets it."""
        return _libc.mprotect(self.at, self.size, protection) == 0

    def fill(self, byte):
        ctypes.memset(self.at, byte, self.size)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        _libc.munmap(self.at, self.size)
