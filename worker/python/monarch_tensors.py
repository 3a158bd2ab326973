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

Arrays are those of PyTorch and NumPy, all that has a buffer (array, bytearray, memoryview), and what gives its memory by
__cuda_array_interface__ or __dlpack__, in the host's memory and in that of CUDA's GPUs; none of them is imported here.
The spec of the job has `tensors: {}`; its ranks find this module, and the library beside it, by themselves.
monarch-tensors(7) has all of it.

It needs Python 3.6 or later and nothing else.
"""

import array as _arrays
import ctypes
import json
import math
import os
import struct
import threading

import monarch_tensors_devices as _devices
import monarch_tensors_memory as _memory
from monarch_tensors_memory import Invalid, TensorError, Unsupported

__all__ = ["Cancelled", "Device", "Ended", "Internal", "Invalid", "NoRoom", "NotCovered", "PeerGone", "Pull", "Pulled", "Publisher",
           "Source", "TensorError", "Timeout", "Unreachable", "Unsupported", "Version", "group", "publisher", "source", "split"]

_ABI = 1
_OK = 0
_NEXT_GENERATION = 1
_DIMS = 8
_LONGEST = 1e9  # seconds: thirty years


# ---- Errors.


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


class Device(TensorError):
    """A GPU, or its driver, has failed at it."""


class Internal(TensorError):
    """The system answered what it should not have."""


_ERRORS = {1: Invalid, 2: NotCovered, 3: PeerGone, 4: Ended, 5: Timeout, 6: Cancelled, 7: Unreachable, 8: NoRoom,
           9: Unsupported, 11: Device}


# ---- The library (monarch/tensors_v1.h).


class _Error(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("code", ctypes.c_int32), ("rank", ctypes.c_int64),
                ("generation", ctypes.c_uint64), ("lane", ctypes.c_char * 8), ("text", ctypes.c_char * 1024)]


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
                ("newer_than", ctypes.POINTER(_Version)), ("stream", ctypes.c_uint64)]


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
        self.errors = threading.local()
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
            if getattr(library, "monarch_tensors_abi", None) is None:
                raise Unsupported("%s is no library of tensors" % _library_path())
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
        try:
            error = self.errors.last  # what a call fills is read before the thread's next one
        except AttributeError:
            error = self.errors.last = _made(_Error)
        code = getattr(self.library, "monarch_tensors_" + name)(*arguments, ctypes.byref(error))
        if code == _OK:
            return
        raise _ERRORS.get(code, Internal)(error.text.decode("utf-8", "replace"), None if error.rank < 0 else error.rank,
                                          error.generation, error.lane.decode())

    def tell(self, name, *arguments):
        return getattr(self.library, "monarch_tensors_" + name)(*arguments)


_session = _Session()


# ---- Memory.

# Of memory that is lent; of what Python has no format for that of the bits.
_FORMATS = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "float32": "f", "float64": "d", "bool": "?"}
_UNKNOWN_FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q"}


def _name_of(dtype):
    return next((name for name, known in _memory.DTYPES.items() if known == dtype), "unknown")


def _view(memory, dtype, shape):
    """A memoryview of it; an element of more bytes than any of Python's is a row of bytes."""
    flat = memoryview(memory).cast("B")
    size = _memory.item_bytes(dtype)
    code = _FORMATS.get(_name_of(dtype), _UNKNOWN_FORMATS.get(size))
    if code is None:
        code, shape = "B", tuple(shape) + (size,)
    if len(flat) == 0 or not shape:
        return flat
    return flat.cast(code, shape)


# monarch_tensors_part_v1, as bytes: setting the fields of a structure of ctypes is most of what a call costs.
_PART = struct.Struct("<IIQQBBHIQQQQiiQ")
_PLACE_OF_DATA, _PLACE_OF_DEVICE = (struct.Struct("<Q"), 16), (struct.Struct("<iiQ"), 64)


class _Parts:
    """The library's word for the memory of each, in `bytes`; that memory has to stay while it is used."""

    def __init__(self, memories):
        names, extents = [], []
        for memory in memories:
            if len(memory.shape) > _DIMS:
                raise Invalid("tensor %s has %d dimensions, and at most %d are known" % (memory.name, len(memory.shape), _DIMS))
            names.append(_memory.name_bytes(memory.name, "a tensor's name"))
            for values in (memory.shape, memory.strides, memory.of, memory.at):
                extents.extend(values or ())
        self.count = len(memories)
        joined = ctypes.create_string_buffer(b"\0".join(names))
        of_all = _arrays.array("q", extents)
        self.bytes = ctypes.create_string_buffer(max(self.count, 1) * _PART.size)
        self.bytes.keeps = joined, of_all
        name_at, at, place = ctypes.addressof(joined), of_all.buffer_info()[0], 0
        for memory, name in zip(memories, names):
            dims = len(memory.shape)
            step, of_at = 8 * dims, at + 16 * dims
            at_at = of_at if memory.of is None else of_at + step
            _PART.pack_into(self.bytes, place, _PART.size, dims, name_at, memory.address, *memory.dtype, 0, at, at + step,
                            0 if memory.of is None else of_at, 0 if memory.at is None else at_at,
                            memory.device_type, memory.device, memory.stream)
            name_at += len(name) + 1
            at = at_at if memory.at is None else at_at + step
            place += _PART.size

    def move(self, memory):
        """The one that there is lies there now."""
        data, at = _PLACE_OF_DATA
        data.pack_into(self.bytes, at, memory.address)
        device, at = _PLACE_OF_DEVICE
        device.pack_into(self.bytes, at, memory.device_type, memory.device, memory.stream)


def _stream(stream):
    """A handle, or None where none is given."""
    if stream is None:
        return None
    try:
        return _devices.stream_handle(stream)
    except Exception as error:  # noqa: BLE001  # whatever an object answers that is no stream
        raise Invalid("stream= is %r, and no stream of CUDA's: %s" % (stream, error))


def _stream_of_run(memories):
    """The one on which all memory of GPUs is ready."""
    first = None
    for memory in memories:
        if memory.device_type == _devices.HOST:
            continue
        if first is None:
            first = memory
        elif first.stream != memory.stream:
            raise Invalid("tensor %s is ready on stream %#x, and tensor %s on stream %#x: give the stream= on which both are, or pull them one "
                          "after the other" % (first.name, first.stream, memory.name, memory.stream))
    return 0 if first is None else first.stream


def _name(value, what):
    return ctypes.c_char_p(_memory.name_bytes(value, what))


def _milliseconds(seconds, what):
    """As the library counts them: below 0 for none."""
    if seconds is None:
        return -1
    try:
        seconds = float(seconds)
    except (TypeError, ValueError):
        raise Invalid("%s is %r, and no number of seconds" % (what, seconds))
    if math.isnan(seconds):
        raise Invalid("%s is %r, and no number of seconds" % (what, seconds))
    return int(min(max(seconds, 0), _LONGEST) * 1000)


def split(size, index, count):
    """(first, size) of part `index` of `count` neighbouring parts of `size` indices, as even as can be."""
    size, index, count = (_memory.whole_number(value, what) for value, what in
                          ((size, "the size"), (index, "the part"), (count, "the count of parts")))
    if index >= count:
        raise Invalid("part %d of %d" % (index, count))
    first = size * index // count
    return first, size * (index + 1) // count - first


# ---- Publishing.


class Version:
    """One version, while it is written. Its block publishes it at its end, or nothing where an error leaves it."""

    def __init__(self, owner, number):
        self._owner = owner
        self.number = number

    def put(self, name, array, of=None, at=None, dtype=None, stream=None):
        """Copies `array` as the box at `at` of tensor `name`, which has shape `of`; without them it is all of it, and a
        DTensor is the box that it says.

        dtype="bfloat16" rounds float32 on the way; of PyTorch's tensors it is what to(dtype) makes of them. stream: of the GPU, on which
        the array is ready; its own is PyTorch's current one, or what the array says."""
        stream = _stream(stream)
        self._put(_memory.look_at(name, array, False, of, at, stream), dtype, stream)

    def put_all(self, parts, only=None, stream=None):
        """The same of all of a dict, as model.state_dict(), or of a model: a dict within it gives names with dots.
        Parameters that are tied are put once, as the first of them. What is no tensor is refused, but what `only`
        passes over: names and patterns of names ("layers.*"), or a function of name and value."""
        stream = _stream(stream)
        for memory in _memory.look_at_all(_memory.named_parts(parts, only), False, (), stream):
            self._put(memory, None, stream)

    def _put(self, memory, dtype, stream):
        how, as_dtype = "version_put", ()
        if dtype is not None:
            wanted = _memory.dtype_named(dtype)
            made = None if wanted == memory.dtype else _memory.converted(memory, wanted, stream)
            if made is not None:
                memory = made
            elif wanted != memory.dtype:
                how, as_dtype = "version_put_as", (ctypes.c_uint8(wanted[0]), ctypes.c_uint8(wanted[1]))
        self._owner._put(how, _memory.with_rows(memory, stream), as_dtype)

    def empty(self, name, shape, dtype, of=None, at=None):
        """Memory of that box, to be written until the block ends: nothing is copied. A memoryview, dense and row-major,
        of the dtype's format (of bfloat16 of uint16): torch.frombuffer() and numpy.asarray() take it."""
        made = _memory.Memory(name, None)
        made.dtype = _memory.dtype_named(dtype)
        made.shape = _memory.extents(shape, "tensor %s: the shape" % name)
        made.strides = _memory.dense(made.shape, _memory.item_bytes(made.dtype))
        made.of, made.at = (value if value is None else _memory.extents(value, "tensor %s: `%s`" % (name, what), len(made.shape))
                            for value, what in ((of, "of"), (at, "at")))
        memory = ctypes.c_void_p()
        self._owner._call("version_lend", _Parts([made]).bytes, ctypes.byref(memory))
        size = _memory.item_bytes(made.dtype)
        for extent in made.shape:
            size *= extent
        return _view((ctypes.c_char * size).from_address(memory.value or 0), made.dtype, made.shape)


class _Writing:
    def __init__(self, owner, number, timeout):
        self._owner = owner
        self._number = number
        self._timeout = timeout

    def __enter__(self):
        self._number = _memory.whole_number(self._number, "a version")
        self._milliseconds = _milliseconds(self._timeout, "timeout")
        self._owner._call("version_begin", ctypes.c_uint64(self._number))
        self._owner._left = len(self._owner._read)
        return Version(self._owner, self._number)

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self._owner._session.tell("version_abandon", self._owner._handle)
            return False
        if self._timeout is None:
            self._owner._call("version_commit")
        else:
            self._owner._call("version_commit_within", ctypes.c_int64(self._milliseconds))
        self._owner._have_read()
        return False


class Publisher:
    """What this rank publishes under one name. Its block offers the last version, at its end, until all who read it have
    it or have gone, and where nobody has read any until somebody has, for `linger` seconds at most."""

    def __init__(self, name, publishers=None, patience=None, linger=None):
        self._session = _session.use()
        self._handle = ctypes.c_void_p()
        self._parts = {}  # of what was put before, by name and place
        self._read = []   # memory of GPUs that copies may still read, until their version is whole
        self._left = 0    # so many of them are of versions that never were: until this one is closed
        indices = _memory.extents(() if publishers is None else publishers, "publishers")
        options = _made(_Publish, publisher_count=len(indices), name=_memory.name_bytes(name, "a publication's name"),
                        publishers=(ctypes.c_uint32 * max(len(indices), 1))(*(min(index, 2 ** 32 - 1) for index in indices)),
                        patience_ms=_milliseconds(patience, "patience"), linger_ms=_milliseconds(linger, "linger"))
        self._session.call("publisher_open", self._session.handle, ctypes.byref(options), ctypes.byref(self._handle))

    def version(self, number, timeout=None):
        """A block that writes version `number`; they rise. Its begin waits for slow readers, at most `patience`; its end for the copies from
        GPUs, which are made on their streams, at most `timeout` seconds: then it raises Timeout, and publishes nothing."""
        return _Writing(self, number, timeout)

    def end(self):
        """Offers the last version to its readers, and ends."""
        self._call("publisher_end")
        self.close()

    def close(self):
        """Ends at once."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._session.tell("publisher_free", handle)
        self._parts, self._read = {}, []

    def _have_read(self):
        del self._read[self._left:]

    def _put(self, how, memory, as_dtype):
        # Parts are alike in all versions; where their memory is, is not.
        key, facts = (memory.name, memory.at), (memory.dtype, memory.shape, memory.strides, memory.of)
        known, known_facts = self._parts.get(key, (None, None))
        if known_facts == facts:
            known.move(memory)
        else:
            known = _Parts((memory,))
        if memory.device_type != _devices.HOST:
            self._read.append(memory.keeps)
        self._call(how, known.bytes, *as_dtype)
        self._parts[key] = known, facts

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

    def _run(self, newer_than, timeout, wait, stream=0):
        run = _made(_Run, flags=_NEXT_GENERATION if wait else 0,
                    timeout_ms=_milliseconds(timeout, "timeout"), stream=stream)
        if newer_than is not None:
            if not isinstance(newer_than, Pulled):
                raise Invalid("newer_than is a %s, and not what a pull has returned" % type(newer_than).__name__)
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
        self._session.call("map_make", self._session.handle, _name(mesh, "a mesh's name"), _name(name, "a publication's name"),
                           _name(tensor, "a tensor's name"), ctypes.byref(self._handle))
        self.got = self._run(newer_than, timeout, wait)
        mapped = _made(_Mapped)
        self._session.call("pull_mapped", self._handle, ctypes.byref(mapped))
        self._dtype = (mapped.dtype_code, mapped.dtype_bits, mapped.dtype_lanes)
        self.shape = tuple(mapped.size[:mapped.dims])
        self.dtype = _name_of(self._dtype)
        self._address = mapped.data or 0
        self._bytes = mapped.bytes

    @property
    def memory(self):
        memory = (ctypes.c_char * self._bytes).from_address(self._address)
        memory.keeps = self  # for as long as somebody looks at it
        return _view(memory, self._dtype, self.shape).toreadonly()

    @property
    def __array_interface__(self):
        kind = next((letter for letter, code in _memory.TYPESTR.items() if code == self._dtype[0]), "u")
        size = _memory.item_bytes(self._dtype)
        return {"shape": self.shape, "typestr": ("|" if size == 1 else "<") + kind + str(size),
                "data": (self._address, True), "version": 3}


class Pull(_Running):
    """A wish for boxes of a publication, run by a call, as often as wanted.

    The arrays are kept, and each run looks where their memory is: one that has other memory by then, as by param.data =,
    is pulled into that."""

    def __init__(self, mesh, name, parts, only=None):
        super().__init__()
        self._of = (_name(mesh, "a mesh's name"), _name(name, "a publication's name"))
        # What gives a dict of its parameters is asked anew by each run.
        self._named = (lambda: _memory.named_parts(parts, only)) if hasattr(parts, "state_dict") else None
        self._parts = _memory.named_parts(parts, only) if self._named is None else []
        self._fixed = []
        self._places = None  # what the handle was made for
        self._moving = threading.Lock()
        self._cancelled = False
        self._look()

    def _look(self, stream=None):
        """The memory of each, which is to be held while it is written, and a handle for it."""
        if self._named is not None:
            self._parts = self._named()
        elif self._places is not None and len(self._fixed) == len(self._places):
            return self._fixed  # all of it
        memories = _memory.look_at_all(self._parts, True, self._fixed, stream)
        places = [(memory.name,) + memory.place() for memory in memories]
        if places != self._places:
            self._make(memories)
            self._places = places
        self._fixed = [memory for memory in memories if memory.is_fixed]
        return memories

    def _make(self, memories):
        wanted = _Parts(memories)
        with self._moving:
            if self._handle is None:
                raise Invalid("it is closed")
            made = ctypes.c_void_p()
            self._session.call("pull_make", self._session.handle, self._of[0], self._of[1], wanted.bytes,
                               ctypes.c_size_t(wanted.count), ctypes.byref(made))
            old, self._handle = self._handle, made
            if self._cancelled:
                self._session.tell("pull_cancel", made)
        if old:
            self._session.tell("pull_free", old)

    def __call__(self, newer_than=None, timeout=None, wait=False, stream=None):
        """Pulls the newest version, of those after `newer_than` (a Pulled), and returns a Pulled. timeout: seconds.
        wait: a gang that ends is no error, its next generation is waited for. stream: on which memory of GPUs is filled, all
        of it when this returns; if not given, as of put()."""
        memories = self._look(_stream(stream))
        try:
            return self._run(newer_than, timeout, wait, _stream_of_run(memories))
        except Cancelled:
            self._cancelled = False
            raise
        finally:
            del memories  # until here

    def cancel(self):
        """From any thread: the call that waits raises Cancelled."""
        with self._moving:
            self._cancelled = True
            if self._handle:
                self._session.tell("pull_cancel", self._handle)

    def describe(self):
        """{name: (dtype, shape)} of what was pulled from last."""
        text = self._session.tell("pull_describe", self._handle) if self._handle else None
        if text is None:
            return {}
        return {one["name"]: (one["dtype"], tuple(one["shape"])) for one in json.loads(text.decode())["tensors"]}


class Source:
    """A publication of a mesh."""

    def __init__(self, mesh, name):
        self.mesh = mesh
        self.name = name

    def into(self, parts, only=None):
        """A Pull of {tensor: array}, or {tensor: (array, of, at)}: the array is the box at `at` of a tensor of shape
        `of`, and a DTensor the box that it says. The arrays are written by each call, and kept. As of put_all(), it is
        a model or its state_dict() as well, with `only`."""
        return Pull(self.mesh, self.name, parts, only)

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


# ---- Groups.


def group(name, members, timeout=None):
    """A Group (monarch_tensors_groups): this rank and others, once all of them have called for it.

        group = tensors.group("sync", {"trainer": [0], "generator": "all"}, timeout=60)

    members: ranks of each mesh, in the order of their ranks in the group; the first one holds it. All say the same.
    timeout: seconds; Timeout says who has not called. Who calls again has left the epoch before, and the others hear."""
    from monarch_tensors_groups import Group  # it needs what is here
    return Group(name, members, timeout)
