"""The driver without a GPU (tests/cuda) as Python programs see it: memory that nobody may touch but by it, and streams that are late."""

import ctypes


class Gpu:
    """One of its GPUs, and a context of it for the calling thread."""

    def __init__(self, index=0):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", ctypes.c_uint(0))
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxPushCurrent_v2", context)

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            raise RuntimeError("%s: %d" % (name, code))

    def stream(self):
        made = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(made), ctypes.c_uint(1))
        return made.value

    def spin(self, stream, seconds):
        """Whatever is enqueued there next waits for so long."""
        self.call("fakeSpin", ctypes.c_void_p(stream), ctypes.c_uint(int(seconds * 1e6)))

    def drain(self, stream):
        self.call("fakeDrain", ctypes.c_void_p(stream))

    def events(self):
        """How many there are: who waits for copies has some."""
        return self.library.fakeCount(4)

    def capture(self, stream, on):
        self.call("fakeCapture", ctypes.c_void_p(stream), ctypes.c_int(on))

    def fail(self, script):
        self.library.fakeFail(script.encode())

    def heal(self):
        self.library.fakeHeal()


class Array:
    """Rows of bytes in its memory, with a stream of their own."""

    def __init__(self, gpu, rows, columns, stream=None):
        self.gpu = gpu
        self.shape = (rows, columns)
        self.bytes = rows * columns
        self.stream = gpu.stream() if stream is None else stream
        at = ctypes.c_uint64()
        gpu.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(self.bytes))
        self.at = at.value

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": "|u1", "data": (self.at, False), "version": 3, "stream": self.stream or None}

    def fill(self, byte):
        """As a kernel does, when the stream comes to it."""
        self.gpu.call("fakeFill", ctypes.c_void_p(self.stream), ctypes.c_uint64(self.at), ctypes.c_int(byte), ctypes.c_size_t(self.bytes))

    def peek(self):
        """What is there now, whatever is enqueued."""
        to = ctypes.create_string_buffer(self.bytes)
        self.gpu.call("fakePeek", to, ctypes.c_uint64(self.at), ctypes.c_size_t(self.bytes))
        return to.raw
