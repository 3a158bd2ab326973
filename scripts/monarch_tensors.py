"""Tensors between the ranks of a job of monarch, for Python programs.

Each rank of a gang publishes its part of named tensors, version after version; ranks of other meshes pull them, each in
its own layout:

    import monarch_tensors as tensors

    # rank r of 8 has rows of w                            # rank r of 6 wants columns of it
    with tensors.publisher("weights") as weights:           at, size = tensors.split(4096, r, 6)
        for step in range(100):                             w = torch.empty(8192, size)
            train(w, step)                                  pull = tensors.source("trainer", "weights").into(
            with weights.version(step) as version:              {"w": (w, (8192, 4096), (0, at))})
                version.put("w", w, of=(8192, 4096),        got = None
                            at=(r * 1024, 0))               while got is None or got.version < 99:
                                                                got = pull(newer_than=got, timeout=60, wait=True)
                                                                generate(w)

A pull returns one whole version of one generation of the gang, or raises a TensorError; then what is in the memory is
undefined, and nothing writes into it any more. Publishing copies, so a trainer goes on at once.

Arrays are those of PyTorch and NumPy, and all that has a buffer (array, bytearray, memoryview); neither is imported here.
The spec of the job has `tensors: {}`; its ranks find this module, and the library beside it, by themselves.
monarch-tensors(7) has all of it.

It needs Python 3.6 or later and nothing else.
"""

import ctypes
import json
import os
import threading

__all__ = ["Cancelled", "Ended", "Internal", "Invalid", "NoRoom", "NotCovered", "PeerGone", "Pull", "Pulled", "Publisher",
           "Source", "TensorError", "Timeout", "Unreachable", "Unsupported", "Version", "publisher", "source", "split"]

_ABI = 1
_OK = 0
_NEXT_GENERATION = 1
_DIMS = 8


# ---- Errors.


class TensorError(Exception):
    """Why a tensor was not published or pulled.

    rank: the rank of the other mesh that it is about, or None. generation: of its gang, or 0. lane: "shm", "tcp" or "".
    """

    def __init__(self, text, rank=None, generation=0, lane=""):
        super().__init__(text)
        self.rank = rank
        self.generation = generation
        self.lane = lane


class Invalid(TensorError, ValueError):
    """What is asked for is wrong, or does not fit what others publish."""


class NotCovered(TensorError):
    """Nobody has some of it."""


class PeerGone(TensorError):
    """The generation of the gang that publishes it is over. Its next one can be pulled from."""


class Ended(TensorError):
    """It is published no more, and there is nothing newer."""


class Timeout(TensorError, TimeoutError):
    """Nothing whole within the time."""


class Cancelled(TensorError):
    """cancel() was called."""


class Unreachable(TensorError):
    """A rank that lives is not reached."""


class NoRoom(TensorError, MemoryError):
    """No memory, or another limit."""


class Unsupported(TensorError):
    """This library or this machine cannot do it."""


class Internal(TensorError):
    """The system answered what it should not have."""


_ERRORS = {1: Invalid, 2: NotCovered, 3: PeerGone, 4: Ended, 5: Timeout, 6: Cancelled, 7: Unreachable, 8: NoRoom,
           9: Unsupported}


# ---- The library (monarch/tensors_v1.h).


class _Error(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("code", ctypes.c_int32), ("rank", ctypes.c_int64),
                ("generation", ctypes.c_uint64), ("lane", ctypes.c_char * 8), ("text", ctypes.c_char * 1024)]


class _Part(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("dims", ctypes.c_uint32), ("name", ctypes.c_char_p),
                ("data", ctypes.c_void_p), ("dtype_code", ctypes.c_uint8), ("dtype_bits", ctypes.c_uint8),
                ("dtype_lanes", ctypes.c_uint16), ("reserved", ctypes.c_uint32),
                ("size", ctypes.POINTER(ctypes.c_uint64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("of", ctypes.POINTER(ctypes.c_uint64)), ("at", ctypes.POINTER(ctypes.c_uint64))]


class _Mapped(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("dims", ctypes.c_uint32), ("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64),
                ("dtype_code", ctypes.c_uint8), ("dtype_bits", ctypes.c_uint8), ("dtype_lanes", ctypes.c_uint16),
                ("reserved", ctypes.c_uint32), ("size", ctypes.c_uint64 * 8)]


class _Version(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("gang", ctypes.c_uint32), ("generation", ctypes.c_uint64),
                ("number", ctypes.c_uint64)]


class _Publish(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("publisher_count", ctypes.c_uint32), ("name", ctypes.c_char_p),
                ("publishers", ctypes.POINTER(ctypes.c_uint32)), ("patience_ms", ctypes.c_int64),
                ("linger_ms", ctypes.c_int64)]


class _Run(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("timeout_ms", ctypes.c_int64),
                ("newer_than", ctypes.POINTER(_Version))]


class _Pulled(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("gang", ctypes.c_uint32), ("generation", ctypes.c_uint64),
                ("number", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("seconds", ctypes.c_double),
                ("by_shm", ctypes.c_uint32), ("by_tcp", ctypes.c_uint32), ("by_verbs", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]


def _made(struct, **fields):
    made = struct(**fields)
    made.struct_size = ctypes.sizeof(struct)
    return made


def _library_path():
    path = os.environ.get("MONARCH_RANK_LIBRARY")
    if path:
        return path
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libmonarch-rank.so")
    return beside if os.path.exists(beside) else "libmonarch-rank.so"


class _Session:
    """This process's, made when it is first wanted; a forked child makes its own."""

    def __init__(self):
        self.lock = threading.Lock()
        self.process = None
        self.library = None
        self.handle = None

    def use(self):
        with self.lock:
            if self.process != os.getpid():
                self.open()
            return self

    def open(self):
        if self.library is None:
            try:
                library = ctypes.CDLL(_library_path())
            except OSError as error:
                raise Unsupported("the library of tensors cannot be loaded: %s; the spec of a job needs `tensors: {}`" % error)
            if library.monarch_tensors_abi() != _ABI:
                raise Unsupported("%s speaks version %d, and this module %d" %
                                  (_library_path(), library.monarch_tensors_abi(), _ABI))
            library.monarch_tensors_pull_describe.restype = ctypes.c_char_p
            self.library = library
        handle = ctypes.c_void_p()
        self.process = None
        self.call("session_open", ctypes.byref(handle))
        self.handle = handle
        self.process = os.getpid()

    def call(self, name, *arguments):
        error = _made(_Error)
        code = getattr(self.library, "monarch_tensors_" + name)(*arguments, ctypes.byref(error))
        if code == _OK:
            return
        raise _ERRORS.get(code, Internal)(error.text.decode("utf-8", "replace"), None if error.rank < 0 else error.rank,
                                          error.generation, error.lane.decode())

    def tell(self, name, *arguments):
        return getattr(self.library, "monarch_tensors_" + name)(*arguments)


_session = _Session()


# ---- Memory of others.

# DLPack's codes (dlpack.h).
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_DTYPES = {"int8": (_INT, 8), "int16": (_INT, 16), "int32": (_INT, 32), "int64": (_INT, 64), "uint8": (_UINT, 8),
           "uint16": (_UINT, 16), "uint32": (_UINT, 32), "uint64": (_UINT, 64), "float16": (_FLOAT, 16),
           "float32": (_FLOAT, 32), "float64": (_FLOAT, 64), "bfloat16": (_BFLOAT, 16), "complex64": (_COMPLEX, 64),
           "complex128": (_COMPLEX, 128), "bool": (_BOOL, 8)}
_TYPESTR = {"i": _INT, "u": _UINT, "f": _FLOAT, "c": _COMPLEX, "b": _BOOL}
_BUFFER = {"b": _INT, "h": _INT, "i": _INT, "l": _INT, "q": _INT, "n": _INT, "B": _UINT, "H": _UINT, "I": _UINT,
           "L": _UINT, "Q": _UINT, "N": _UINT, "c": _UINT, "e": _FLOAT, "f": _FLOAT, "d": _FLOAT, "?": _BOOL}


# Back, for memory that is lent; of what Python has no format for that of the bits.
_FORMATS = {(_INT, 8): "b", (_INT, 16): "h", (_INT, 32): "i", (_INT, 64): "q", (_FLOAT, 32): "f", (_FLOAT, 64): "d",
            (_BOOL, 8): "?"}
_UNKNOWN_FORMATS = {8: "B", 16: "H", 32: "I", 64: "Q"}


class _Memory:
    """Where an array lies, and how: address, dtype (code, bits), shape, strides in bytes. It keeps the array."""

    def __init__(self, array, writable):
        self.keeps = array
        if hasattr(array, "data_ptr") and hasattr(array, "stride"):
            self.of_torch(array)
        elif hasattr(array, "__array_interface__"):
            self.of_interface(array.__array_interface__, writable)
        else:
            self.of_buffer(array, writable)

    def of_torch(self, tensor):
        if tensor.device.type != "cpu":
            raise Invalid("a tensor on %s: only memory of the host is published and pulled" % tensor.device)
        name = str(tensor.dtype).split(".")[-1]
        if name not in _DTYPES:
            raise Invalid("tensors of %s are not known" % tensor.dtype)
        self.dtype = _DTYPES[name]
        self.shape = tuple(tensor.shape)
        self.strides = tuple(step * tensor.element_size() for step in tensor.stride())
        self.address = tensor.data_ptr()

    def of_interface(self, interface, writable):
        order, kind, size = interface["typestr"][0], interface["typestr"][1], int(interface["typestr"][2:])
        if kind not in _TYPESTR or (order == ">" and size > 1):
            raise Invalid("arrays of %s are not known" % interface["typestr"])
        self.address, read_only = interface["data"]
        if writable and read_only:
            raise Invalid("an array that may not be written")
        self.dtype = (_TYPESTR[kind], size * 8)
        self.shape = tuple(interface["shape"])
        self.strides = interface.get("strides") or _dense(self.shape, size)

    def of_buffer(self, array, writable):
        view = array if isinstance(array, memoryview) else memoryview(array)
        code = view.format[1:] if view.format[:1] in "@=<" and len(view.format) > 1 else view.format
        if code not in _BUFFER:
            raise Invalid("a buffer of format %r is not known" % view.format)
        if writable and view.readonly:
            raise Invalid("a buffer that may not be written")
        self.dtype = (_BUFFER[code], view.itemsize * 8)
        self.shape = tuple(view.shape)
        self.strides = tuple(view.strides)
        self.keeps = (array, view)
        if view.nbytes == 0:
            self.address = 0
            return
        if view.readonly:
            # Of a writable buffer alone ctypes tells where it lies; and who may only read it may be given a copy.
            self.shared = (ctypes.c_char * view.nbytes).from_buffer_copy(view.tobytes())
            self.strides = _dense(self.shape, view.itemsize)
        elif view.contiguous:
            self.shared = (ctypes.c_char * view.nbytes).from_buffer(view)
        else:
            raise Invalid("a buffer that is not contiguous")
        self.address = ctypes.addressof(self.shared)


def _dense(shape, size):
    strides = []
    for extent in reversed(shape):
        strides.append(size)
        size *= extent
    return tuple(reversed(strides))


def _extents(values, what, dims):
    values = tuple(int(value) for value in values)
    if len(values) != dims:
        raise Invalid("%s has %d dimensions, and the array has %d" % (what, len(values), dims))
    if any(value < 0 for value in values):
        raise Invalid("%s is %r" % (what, values))
    return (ctypes.c_uint64 * dims)(*values)


def _part(name, memory, of, at):
    dims = len(memory.shape)
    if dims > _DIMS:
        raise Invalid("tensor %s has %d dimensions, and at most %d are known" % (name, dims, _DIMS))
    part = _made(_Part, dims=dims, name=name.encode(), data=memory.address, dtype_code=memory.dtype[0],
                 dtype_bits=memory.dtype[1], dtype_lanes=1)
    part.size = _extents(memory.shape, "the shape", dims)
    part.strides = (ctypes.c_int64 * dims)(*memory.strides)
    if of is not None:
        part.of = _extents(of, "tensor %s: `of`" % name, dims)
    if at is not None:
        part.at = _extents(at, "tensor %s: `at`" % name, dims)
    return part


def split(size, index, count):
    """(first, size) of part `index` of `count` neighbouring parts of `size` indices, as even as can be."""
    if not 0 <= index < count:
        raise Invalid("part %d of %d" % (index, count))
    first = size * index // count
    return first, size * (index + 1) // count - first


# ---- Publishing.


class Version:
    """One version, while it is written. Its block publishes it at its end, or nothing where an error leaves it."""

    def __init__(self, owner, number):
        self._owner = owner
        self.number = number

    def put(self, name, array, of=None, at=None, dtype=None):
        """Copies `array` as the box at `at` of tensor `name`, which has shape `of`; without them it is all of it.

        dtype="bfloat16" rounds float32 on the way."""
        memory = _Memory(array, False)
        code, bits = memory.dtype if dtype is None else _dtype(dtype)
        self._owner._call("version_put_as", ctypes.byref(_part(name, memory, of, at)), ctypes.c_uint8(code),
                          ctypes.c_uint8(bits))

    def empty(self, name, shape, dtype, of=None, at=None):
        """Memory of that box, to be written until the block ends: nothing is copied. A memoryview, dense and row-major,
        of the dtype's format (of bfloat16 of uint16): torch.frombuffer() and numpy.asarray() take it."""
        code, bits = _dtype(dtype)
        shape = tuple(int(extent) for extent in shape)
        memory = self._lend(name, shape, (code, bits), of, at)
        return _view((ctypes.c_char * memory[1]).from_address(memory[0]), (code, bits), shape)

    def _lend(self, name, shape, dtype, of, at):
        made = _Memory.__new__(_Memory)
        made.keeps, made.dtype, made.shape, made.address = None, dtype, shape, 0
        made.strides = _dense(shape, dtype[1] // 8)
        memory = ctypes.c_void_p()
        self._owner._call("version_lend", ctypes.byref(_part(name, made, of, at)), ctypes.byref(memory))
        size = dtype[1] // 8
        for extent in shape:
            size *= extent
        return memory.value or 0, size


def _view(memory, dtype, shape):
    flat = memoryview(memory).cast("B")
    if len(flat) == 0 or not shape:
        return flat
    return flat.cast(_FORMATS.get(dtype, _UNKNOWN_FORMATS.get(dtype[1], "B")), shape)


def _dtype(name):
    text = str(name).split(".")[-1]
    if text not in _DTYPES:
        raise Invalid("dtype %r is not known: %s" % (name, ", ".join(sorted(_DTYPES))))
    return _DTYPES[text]


class _Writing:
    def __init__(self, owner, number):
        self._owner = owner
        self._number = number

    def __enter__(self):
        if not 0 <= self._number < 2 ** 63:
            raise Invalid("version %r" % self._number)
        self._owner._call("version_begin", ctypes.c_uint64(self._number))
        return Version(self._owner, self._number)

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self._owner._session.tell("version_abandon", self._owner._handle)
            return False
        self._owner._call("version_commit")
        return False


class Publisher:
    """What this rank publishes under one name. Its block offers the last version, at its end, until all who ever read
    it have it or have gone, for `linger` seconds at most."""

    def __init__(self, name, publishers=None, patience=None, linger=None):
        self._session = _session.use()
        self._handle = ctypes.c_void_p()
        indices = [int(index) for index in publishers] if publishers is not None else []
        options = _made(_Publish, publisher_count=len(indices), name=name.encode(),
                        publishers=(ctypes.c_uint32 * max(len(indices), 1))(*indices),
                        patience_ms=-1 if patience is None else int(patience * 1000),
                        linger_ms=-1 if linger is None else int(linger * 1000))
        self._session.call("publisher_open", self._session.handle, ctypes.byref(options), ctypes.byref(self._handle))

    def version(self, number):
        """A block that writes version `number`; they rise. Its begin waits for slow readers, at most `patience`."""
        return _Writing(self, number)

    def end(self):
        """Offers the last version to its readers, and ends."""
        self._call("publisher_end")
        self.close()

    def close(self):
        """Ends at once."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._session.tell("publisher_free", handle)

    def _call(self, name, *arguments):
        if self._handle is None:
            raise Invalid("it is closed")
        self._session.call(name, self._handle, *arguments)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self._call("publisher_end")
        finally:
            self.close()
        return False

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            self.close()


def publisher(name, publishers=None, patience=None, linger=None):
    """A Publisher of this rank. publishers: which ranks of the gang publish, as indices within it; all, if not given.
    patience: seconds that slow readers are waited for (2). linger: seconds at the end (30)."""
    return Publisher(name, publishers, patience, linger)


# ---- Pulling.


class Pulled:
    """What a pull has brought: version, generation, gang, bytes, seconds, lanes ({"shm": 3, "tcp": 1}: ranks)."""

    def __init__(self, version, generation, gang, size, seconds, lanes):
        self.version = version
        self.generation = generation
        self.gang = gang
        self.bytes = size
        self.seconds = seconds
        self.lanes = lanes

    def __repr__(self):
        return "Pulled(version=%d, generation=%d, bytes=%d, seconds=%.6f, lanes=%r)" % (
            self.version, self.generation, self.bytes, self.seconds, self.lanes)


class _Running:
    """What is run by a call: a handle of the library, and its end."""

    def __init__(self):
        self._session = _session.use()
        self._handle = ctypes.c_void_p()

    def _run(self, newer_than, timeout, wait):
        run = _made(_Run, flags=_NEXT_GENERATION if wait else 0,
                    timeout_ms=-1 if timeout is None else max(int(timeout * 1000), 0))
        if newer_than is not None:
            version = _made(_Version, gang=newer_than.gang, generation=newer_than.generation,
                            number=newer_than.version)
            run.newer_than = ctypes.pointer(version)
        pulled = _made(_Pulled)
        if self._handle is None:
            raise Invalid("it is closed")
        self._session.call("pull_run", self._handle, ctypes.byref(run), ctypes.byref(pulled))
        counts = (("shm", pulled.by_shm), ("verbs", pulled.by_verbs), ("tcp", pulled.by_tcp))
        lanes = {lane: count for lane, count in counts if count}
        return Pulled(pulled.number, pulled.generation, pulled.gang, pulled.bytes, pulled.seconds, lanes)

    def close(self):
        handle, self._handle = self._handle, None
        if handle is not None:
            self._session.tell("pull_free", handle)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.close()
        return False

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            self.close()


class Mapped(_Running):
    """All of a tensor as a rank of this machine has it: read-only, not copied, and as it is until close() or the end of
    the block; numpy.asarray() takes it. got: a Pulled. memory: a memoryview, dense and row-major, of the dtype's format
    (of bfloat16 of uint16)."""

    def __init__(self, mesh, name, tensor, newer_than, timeout, wait):
        super().__init__()
        self._session.call("map_make", self._session.handle, ctypes.c_char_p(mesh.encode()), ctypes.c_char_p(name.encode()),
                           ctypes.c_char_p(tensor.encode()), ctypes.byref(self._handle))
        self.got = self._run(newer_than, timeout, wait)
        mapped = _made(_Mapped)
        self._session.call("pull_mapped", self._handle, ctypes.byref(mapped))
        dtype = (mapped.dtype_code, mapped.dtype_bits)
        self.shape = tuple(mapped.size[:mapped.dims])
        self.dtype = next((known for known, code in _DTYPES.items() if code == dtype), "unknown")
        self._address = mapped.data or 0
        self._dtype = dtype
        self._bytes = mapped.bytes

    @property
    def memory(self):
        memory = (ctypes.c_char * self._bytes).from_address(self._address)
        memory.keeps = self  # for as long as somebody looks at it
        return _view(memory, self._dtype, self.shape).toreadonly()

    @property
    def __array_interface__(self):
        kind = next((letter for letter, code in _TYPESTR.items() if code == self._dtype[0]), "u")
        return {"shape": self.shape, "typestr": ("|" if self._dtype[1] == 8 else "<") + kind + str(self._dtype[1] // 8),
                "data": (self._address, True), "version": 3}


class Pull(_Running):
    """A wish for boxes of a publication, run by a call, as often as wanted."""

    def __init__(self, mesh, name, parts):
        super().__init__()
        self._memories = []
        wanted = []
        for tensor, given in parts.items():
            array, of, at = (given + (None, None))[:3] if isinstance(given, tuple) else (given, None, None)
            memory = _Memory(array, True)
            self._memories.append(memory)
            wanted.append(_part(tensor, memory, of, at))
        self._session.call("pull_make", self._session.handle, ctypes.c_char_p(mesh.encode()),
                           ctypes.c_char_p(name.encode()), (_Part * max(len(wanted), 1))(*wanted),
                           ctypes.c_size_t(len(wanted)), ctypes.byref(self._handle))

    def __call__(self, newer_than=None, timeout=None, wait=False):
        """Pulls the newest version, of those after `newer_than` (a Pulled), and returns a Pulled. timeout: seconds.
        wait: a gang that ends is no error, its next generation is waited for."""
        return self._run(newer_than, timeout, wait)

    def cancel(self):
        """From any thread: the call that waits raises Cancelled."""
        self._session.tell("pull_cancel", self._handle)

    def describe(self):
        """{name: (dtype, shape)} of what was pulled from last."""
        text = self._session.tell("pull_describe", self._handle)
        if text is None:
            return {}
        return {one["name"]: (one["dtype"], tuple(one["shape"])) for one in json.loads(text.decode())["tensors"]}


class Source:
    """A publication of a mesh."""

    def __init__(self, mesh, name):
        self.mesh = mesh
        self.name = name

    def into(self, parts):
        """A Pull of {tensor: array}, or {tensor: (array, of, at)}: the array is the box at `at` of a tensor of shape
        `of`. The arrays are written by each call, and kept."""
        return Pull(self.mesh, self.name, parts)

    def map(self, tensor, newer_than=None, timeout=None, wait=False):
        """The tensor as a rank of this machine has it, a Mapped: nothing is copied. Its publisher goes on in other
        memory; of more than two at a time it is refused a version. The others are as of a Pull's call."""
        return Mapped(self.mesh, self.name, tensor, newer_than, timeout, wait)

    def describe(self, timeout=None):
        """{tensor: (dtype, shape)}, once a version is there."""
        with self.into({}) as pull:
            pull(timeout=timeout)
            return pull.describe()


def source(mesh, name):
    """The publication `name` of mesh `mesh`."""
    return Source(mesh, name)
