"""The memory that monarch_tensors.py publishes from and pulls into: where an array lies, and what it is a part of.

PyTorch's and NumPy's arrays are known by what they say of themselves, and neither is imported. What is no plain memory
whose bytes are its values is refused by name, with what to call instead. Memory of a GPU is not read here.
"""

import array as arrays
import ctypes
import fnmatch
import operator
import sys

import monarch_tensors_devices as _devices

_NAME_BYTES = 128
_NESTED = 64  # dicts within one another


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


class Unsupported(TensorError):
    """This library or this machine cannot do it."""


for _error in (TensorError, Invalid, Unsupported):
    _error.__module__ = "monarch_tensors"

# DLPack's codes (dlpack.h), bits of a lane, and lanes.
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
DTYPES = {"int8": (_INT, 8, 1), "int16": (_INT, 16, 1), "int32": (_INT, 32, 1), "int64": (_INT, 64, 1),
          "uint8": (_UINT, 8, 1), "uint16": (_UINT, 16, 1), "uint32": (_UINT, 32, 1), "uint64": (_UINT, 64, 1),
          "float16": (_FLOAT, 16, 1), "float32": (_FLOAT, 32, 1), "float64": (_FLOAT, 64, 1),
          "bfloat16": (_BFLOAT, 16, 1), "complex32": (_COMPLEX, 32, 1), "complex64": (_COMPLEX, 64, 1),
          "complex128": (_COMPLEX, 128, 1), "bool": (_BOOL, 8, 1),
          "float8_e3m4": (7, 8, 1), "float8_e4m3": (8, 8, 1), "float8_e4m3b11fnuz": (9, 8, 1), "float8_e4m3fn": (10, 8, 1),
          "float8_e4m3fnuz": (11, 8, 1), "float8_e5m2": (12, 8, 1), "float8_e5m2fnuz": (13, 8, 1), "float8_e8m0fnu": (14, 8, 1),
          "float4_e2m1fn_x2": (17, 4, 2)}
_KNOWN = frozenset(DTYPES.values())
TYPESTR = {"i": _INT, "u": _UINT, "f": _FLOAT, "c": _COMPLEX, "b": _BOOL}
_BUFFER = {"b": _INT, "h": _INT, "i": _INT, "l": _INT, "q": _INT, "n": _INT, "B": _UINT, "H": _UINT, "I": _UINT,
           "L": _UINT, "Q": _UINT, "N": _UINT, "c": _UINT, "e": _FLOAT, "f": _FLOAT, "d": _FLOAT, "?": _BOOL}


def item_bytes(dtype):
    return dtype[1] * dtype[2] // 8


def dtype_named(name):
    text = str(name).split(".")[-1]
    if text not in DTYPES:
        raise Invalid("dtype %r is not known: %s" % (name, ", ".join(sorted(DTYPES))))
    return DTYPES[text]


# ---- What callers give.


def name_bytes(name, what):
    """A name as the library takes it."""
    if not isinstance(name, str):
        raise Invalid("%s is a %s, and no text" % (what, type(name).__name__))
    try:
        encoded = name.encode()
    except UnicodeError as error:
        raise Invalid("%s %r is no text: %s" % (what, name, error))
    if not 1 <= len(encoded) <= _NAME_BYTES:
        raise Invalid("%s has 1 to %d bytes, and not %d: %.160s" % (what, _NAME_BYTES, len(encoded), name))
    if b"\0" in encoded:
        raise Invalid("%s %r has a 0 byte in it" % (what, name))
    return encoded


def whole_number(value, what, end=2 ** 63):
    try:
        number = operator.index(value)
    except TypeError:
        raise Invalid("%s is %r, and no whole number" % (what, value))
    if not 0 <= number < end:
        raise Invalid("%s is %r" % (what, value))
    return number


def extents(values, what, dims=None):
    try:
        values = tuple(values)
    except TypeError:
        raise Invalid("%s is %r, and no tuple of numbers" % (what, values))
    if dims is not None and len(values) != dims:
        raise Invalid("%s has %d dimensions, and the array has %d" % (what, len(values), dims))
    return tuple(whole_number(value, what) for value in values)


def dense(shape, size):
    strides = []
    for extent in reversed(shape):
        strides.append(size)
        size *= extent
    return tuple(reversed(strides))


# ---- Where an array lies.


class Memory:
    """Address, dtype (code, bits, lanes), shape, strides in bytes, and the box that it is, if it says so itself.

    device_type, device: of DLPack; -1: of which GPU it is the driver says. stream: of the GPU, on which it is ready. keeps: what holds
    that memory. is_fixed: while that is kept, its memory is neither moved nor freed by anybody. tensor: PyTorch's that it is of."""

    __slots__ = ("name", "array", "keeps", "is_fixed", "address", "dtype", "shape", "strides", "of", "at", "storage", "device_type", "device",
                 "stream", "tensor")

    def __init__(self, name, array):
        self.name = name
        self.array = self.keeps = array
        self.is_fixed = False
        self.of = self.at = self.storage = self.tensor = None
        self.address = self.device = self.stream = 0
        self.device_type = _devices.HOST

    def refused(self, words):
        return Invalid("tensor %s: %s" % (self.name, words))

    def unsupported(self, words):
        return Unsupported("tensor %s: %s" % (self.name, words))

    def is_empty(self):
        return 0 in self.shape

    def place(self):
        """Whoever has the same lies in the same memory."""
        return self.address, self.storage, self.dtype, self.shape, self.strides, self.of, self.at, self.device_type, self.device

    def has_rows(self):
        """Whether the elements of its last dimension lie one behind the other, and nothing runs backwards."""
        wide = [step for extent, step in zip(self.shape, self.strides) if extent > 1]
        last = self.shape and self.shape[-1] > 1 and self.strides[-1] != item_bytes(self.dtype)
        return self.is_empty() or (not last and min(wide, default=0) >= 0)

    def overlaps(self):
        """Whether two of its elements lie in the same place, as those of an expanded tensor."""
        reach = item_bytes(self.dtype)
        for step, extent in sorted((abs(step), extent) for extent, step in zip(self.shape, self.strides) if extent > 1):
            if step < reach:
                return not self.is_empty()
            reach = step * (extent - 1) + reach
        return False


def look_at(name, array, writable, of=None, at=None, stream=None):
    """The Memory of an array, in which a tensor's box at `at` of shape `of` lies. stream: the handle of the one on which memory of a GPU is
    ready, where the caller knows that better than the array."""
    memory = Memory(name, array)
    try:
        if type(array) in _BUFFERS:
            _of_buffer(memory, array, writable)
        else:
            _of_any(memory, array, writable, stream)
    except TensorError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever a kind of array that is not known answers
        raise memory.refused("the memory of a %s cannot be looked at, since it answers %s: %s; give a plain tensor, as by "
                             "detach(), dequantize() or to_local()" % (type(array).__name__, type(error).__name__, error))
    if writable and not memory.is_fixed:  # a buffer is dense
        _check_writable(memory)
    given = (memory.of, memory.at)
    if memory.of is not None and (of is not None and tuple(of) != given[0] or at is not None and tuple(at) != given[1]):
        raise memory.refused("of=%r and at=%r are given, but by its placements it is of=%r, at=%r: give none of them, or "
                             "its to_local()" % ((of, at) + given))
    if memory.of is None:
        dims = len(memory.shape)
        memory.of = None if of is None else extents(of, "tensor %s: `of`" % name, dims)
        memory.at = None if at is None else extents(at, "tensor %s: `at`" % name, dims)
    return memory


def _check_writable(memory):
    if memory.overlaps():
        raise memory.refused("elements of it lie in the same memory, as those of expand(): call contiguous() or clone() first")
    if not memory.has_rows():
        raise memory.refused("the elements of its last dimension do not lie one behind the other: pull into contiguous() "
                             "memory, and copy from there")


def _of_any(memory, array, writable, stream):
    if hasattr(array, "local_shards"):
        raise memory.refused("a %s is in pieces: give each of its local_shards(), with of= and at=" % type(array).__name__)
    if hasattr(array, "placements") and hasattr(array, "device_mesh"):
        array = _local_part(memory, array)
    if hasattr(array, "data_ptr") and hasattr(array, "stride"):
        return _of_torch(memory, array, stream)
    on_cuda = getattr(array, "__cuda_array_interface__", None)
    if on_cuda is not None:
        dtype = _dtype_said(array, on_cuda["typestr"])
        # What has no letter for it is left to DLPack, which has.
        if dtype is not None or not hasattr(array, "__dlpack__"):
            return _of_cuda(memory, array, on_cuda, dtype, writable, stream)
    elif hasattr(array, "__array_interface__") and not _is_scalar(array):
        return _of_interface(memory, array, writable)
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        return _of_dlpack(memory, array, writable, stream)
    return _of_buffer(memory, array, writable)


def with_rows(memory, stream):
    """The same values in memory that can be published: of strides that cannot be, a copy."""
    if memory.has_rows():
        return memory
    if memory.tensor is not None:
        with _devices.on_stream(memory, stream):
            array = memory.tensor.contiguous()
    elif memory.device_type == _devices.HOST and hasattr(memory.array, "__array_interface__"):
        array = memory.array.copy(order="C")
    else:
        raise memory.refused("the elements of its last dimension do not lie one behind the other, and its memory is not copied here: give a "
                             "dense copy of it")
    return look_at(memory.name, array, False, memory.of, memory.at, stream)


def converted(memory, dtype, stream):
    """The same of PyTorch's tensor as one of another dtype, on its device. None: it is none of PyTorch's."""
    torch = sys.modules.get("torch")
    if memory.tensor is None or torch is None:
        return None
    name = next(name for name, known in DTYPES.items() if known == dtype)
    if not hasattr(torch, name):
        raise memory.refused("PyTorch %s has no %s" % (torch.__version__, name))
    with _devices.on_stream(memory, stream):
        try:
            array = memory.tensor.to(getattr(torch, name))
        except (RuntimeError, TypeError, NotImplementedError) as error:
            raise memory.refused("PyTorch does not make %s of it: %s" % (name, error))
    return look_at(memory.name, array, False, memory.of, memory.at, stream)


# What these are told to do is said in the words of PyTorch.
def _why_not_plain(tensor):
    if getattr(tensor, "is_nested", False):
        return "it is nested: give each of its unbind()"
    if str(tensor.layout) != "torch.strided":
        return "its layout is %s, and its values do not lie in one piece of memory: call to_dense()" % tensor.layout
    if tensor.is_quantized:
        return "it is quantized: give its int_repr(), and scale and zero point as tensors of their own, or dequantize()"
    if tensor.device.type == "meta":
        return "it is on the device meta, and has no memory: call to_empty(device=\"cpu\")"
    if tensor.device.type not in ("cpu", "cuda"):
        return "it is on %s, and only memory of the host and of CUDA's GPUs is published and pulled: give its cpu()" % tensor.device
    if tensor.is_conj():
        return "its bytes are conjugated when they are read: call resolve_conj()"
    if tensor.is_neg():
        return "its bytes are negated when they are read: call resolve_neg()"
    return None


def _of_torch(memory, tensor, stream):
    why = _why_not_plain(tensor)
    if why:
        raise memory.refused(why)
    name = str(tensor.dtype).split(".")[-1]
    if name not in DTYPES:
        raise memory.refused("elements of %s are not known: view(torch.uint8) gives their bytes" % tensor.dtype)
    memory.dtype = DTYPES[name]
    memory.shape = tuple(tensor.shape)
    size = tensor.element_size()
    memory.strides = tuple(step * size for step in tensor.stride())
    memory.address = tensor.data_ptr()
    memory.tensor = tensor
    if memory.is_empty():
        memory.address = 0
        return
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    needed = tensor.storage_offset() * size + size + sum(
        step * (extent - 1) for extent, step in zip(memory.shape, memory.strides))
    if needed > storage.nbytes():
        raise memory.refused("its storage has %d bytes, and it needs %d: that was freed, as by resize_(0)" % (storage.nbytes(), needed))
    if memory.address == 0:
        raise memory.refused("a %s has no memory of its own: give the plain tensor that it stands for, as by wait(), "
                             "dequantize() or to_local()" % type(tensor).__name__)
    memory.keeps = (tensor, storage)
    memory.storage = getattr(storage, "_cdata", None)
    if tensor.device.type == "cuda":
        _on_cuda(memory, tensor.device, stream)


def _on_cuda(memory, device, stream):
    torch = sys.modules["torch"]
    if getattr(torch.version, "hip", None):
        raise memory.unsupported(_devices.ROCM_WORDS)
    memory.device_type, memory.device = _devices.CUDA, device.index
    memory.stream = torch.cuda.current_stream(device).cuda_stream if stream is None else stream


# NumPy makes an array for a moment where a scalar is asked where it lies.
def _is_scalar(array):
    return hasattr(array, "dtype") and hasattr(array, "tobytes") and not hasattr(array, "ctypes")


def _of_interface(memory, array, writable):
    interface = array.__array_interface__
    if interface.get("mask") is not None or (hasattr(array, "mask") and hasattr(array, "filled")):
        raise memory.refused("it is masked: call filled()")
    if not isinstance(interface.get("data"), tuple):
        return _of_buffer(memory, array, writable)
    typestr = interface["typestr"]
    size = int(typestr[2:] or 0)  # of objects it is not said
    known = _dtype_said(array, typestr)
    if known is None:
        name = getattr(getattr(array, "dtype", None), "name", None)
        raise memory.refused("elements of %s are not known: view(\"uint8\") gives their bytes" % (name or typestr))
    _in_our_order(memory, array, typestr)
    memory.address, read_only = interface["data"]
    if writable and read_only:
        raise memory.refused("an array that may not be written")
    memory.dtype = known
    memory.shape = tuple(interface["shape"])
    memory.strides = tuple(interface.get("strides") or dense(memory.shape, size))
    return None


# Who has made a type of his own says V of it, or what is NumPy's for nothing: float8_e5m2 says f1.
def _dtype_said(array, typestr):
    name = getattr(getattr(array, "dtype", None), "name", None)
    size = int(typestr[2:] or 0)
    known = DTYPES.get(name) if name else (TYPESTR.get(typestr[1]), size * 8, 1)
    return known if known in _KNOWN and item_bytes(known) == size else None


def _in_our_order(memory, array, typestr):
    if typestr[0] == ">" and int(typestr[2:]) > 1:
        name = getattr(getattr(array, "dtype", None), "name", None) or typestr[1:]
        raise memory.refused("the bytes of its elements are in the other order: call astype(\"%s\")" % name)


def _of_cuda(memory, array, interface, dtype, writable, stream):
    """Version 3 of __cuda_array_interface__; those before say nothing of a stream."""
    if dtype is None:
        raise memory.refused("elements of %s are not known: view(\"uint8\") gives their bytes" % interface["typestr"])
    if interface.get("mask") is not None:
        raise memory.refused("it is masked: give a plain array")
    _in_our_order(memory, array, interface["typestr"])
    address, read_only = interface["data"]
    if writable and read_only:
        raise memory.refused("an array that may not be written")
    memory.dtype = dtype
    memory.shape = extents(interface["shape"], "tensor %s: its shape" % memory.name)
    strides = interface.get("strides")
    memory.strides = dense(memory.shape, item_bytes(dtype)) if strides is None else tuple(operator.index(step) for step in strides)
    if memory.is_empty():
        return
    memory.address = whole_number(address, "tensor %s: its address" % memory.name, 2 ** 64)
    memory.device_type, memory.device = _devices.CUDA, -1
    said = interface.get("stream") if stream is None else None
    if said is not None:
        stream = whole_number(said, "tensor %s: its stream" % memory.name, 2 ** 64)
        if stream == 0:
            raise memory.refused("its stream is 0, which may be one of two: it says 1 or 2")
    memory.stream = stream or 0


def _of_dlpack(memory, array, writable, stream):
    kind, device = (operator.index(value) for value in array.__dlpack_device__())
    if kind == _devices.ROCM:
        raise memory.unsupported(_devices.ROCM_WORDS)
    if kind not in _devices.HOSTS and kind not in _devices.CUDAS:
        raise memory.refused("it is on a device of type %d, as DLPack counts them, and only memory of the host and of CUDA's GPUs is published "
                             "and pulled" % kind)
    exported = _devices.Exported(array, stream or 0 if kind in _devices.CUDAS else None)
    if writable and exported.is_read_only:
        raise memory.refused("an array that may not be written")
    if exported.dtype not in _KNOWN:
        raise memory.refused("elements of code %d, %d bits and %d lanes, as DLPack counts them, are not known" % exported.dtype)
    size = item_bytes(exported.dtype)
    memory.dtype = exported.dtype
    memory.shape = exported.shape
    memory.strides = dense(memory.shape, size) if exported.strides is None else tuple(step * size for step in exported.strides)
    memory.keeps = exported
    if memory.is_empty():
        return
    memory.address = exported.address
    if kind in _devices.CUDAS:
        memory.device_type, memory.device, memory.stream = kind, device, stream or 0


_BUFFERS = frozenset((memoryview, bytearray, bytes, arrays.array))


def _of_buffer(memory, array, writable):
    if not isinstance(array, memoryview):
        try:
            array = memoryview(array)
        except TypeError:
            raise memory.refused("a %s is no array" % type(array).__name__)
    view = array
    code = view.format[1:] if view.format[:1] in "@=<" and len(view.format) > 1 else view.format
    if code not in _BUFFER:
        raise memory.refused("a buffer of format %r is not known: cast(\"B\") gives its bytes" % view.format)
    if writable and view.readonly:
        raise memory.refused("a buffer that may not be written")
    memory.dtype = (_BUFFER[code], view.itemsize * 8, 1)
    memory.shape = tuple(view.shape)
    memory.strides = dense(memory.shape, view.itemsize)
    memory.is_fixed = True
    if view.nbytes == 0:
        return
    if writable and not view.c_contiguous:
        raise memory.refused("a buffer that is not contiguous")
    if view.readonly or not view.c_contiguous:
        # Of a writable buffer alone ctypes tells where it lies; and who may only read it may be given a copy.
        shared = (ctypes.c_char * view.nbytes).from_buffer_copy(view.tobytes())
    else:
        shared = ctypes.c_char.from_buffer(view)  # it holds all of the view
    memory.keeps = (view, shared)
    memory.address = ctypes.addressof(shared)


# ---- Tensors of a device mesh.


def _local_part(memory, tensor):
    """A DTensor's part of this rank, and into `memory` the box that it is."""
    mesh, placements = tensor.device_mesh, list(tensor.placements)
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        raise memory.refused("this rank is not in the device mesh of its DTensor")
    size, at = list(tensor.shape), [0] * len(tensor.shape)
    for dim, cut in _cuts(memory, mesh, placements):
        parts, index = mesh.size(dim), coordinate[dim]
        each = -(-size[cut] // parts)
        first = min(each * index, size[cut])
        at[cut] += first
        size[cut] = min(each, size[cut] - first)
    local = tensor.to_local()
    if tuple(local.shape) != tuple(size):
        raise memory.refused("the local part of its DTensor is %s, and by its placements %s it is %s: give its to_local(), "
                             "with of= and at=" % (tuple(local.shape), placements, tuple(size)))
    memory.of, memory.at = tuple(tensor.shape), tuple(at)
    return local


def _cuts(memory, mesh, placements):
    """(dimension of the mesh, dimension of the tensor) of each cut, in the order in which they were made. A strided one,
    as FSDP2 makes of what a later dimension has cut before, comes after that."""
    cuts, waiting = [], {}
    for dim, placement in enumerate(placements):
        kind = type(placement).__name__
        if kind == "Replicate":
            continue
        if kind == "_StridedShard":
            waiting.setdefault(placement.dim, []).append((dim, placement.split_factor))
            continue
        if kind != "Shard":
            raise memory.refused("its DTensor is %s over dimension %d of its device mesh, and only Shard and Replicate are known: "
                                 "call redistribute(), full_tensor(), or give its to_local() with of= and at=" % (kind, dim))
        cuts.append((dim, placement.dim))
        before = mesh.size(dim)
        for other, factor in reversed(waiting.pop(placement.dim, [])):
            if factor != before:
                waiting[placement.dim] = [(other, factor)]
                break
            cuts.append((other, placement.dim))
            before *= mesh.size(other)
    if waiting:
        raise memory.refused("its DTensor is strided over its device mesh (%s): call redistribute(), full_tensor(), or give its "
                             "to_local() with of= and at=" % placements)
    return cuts


# ---- Many at a time.


class Part:
    """One of those that were given by name."""

    __slots__ = ("name", "array", "of", "at")

    def __init__(self, name, given):
        self.name = name
        self.array, self.of, self.at = (given + (None, None))[:3] if isinstance(given, tuple) else (given, None, None)


def named_parts(parts, only=None):
    """A Part of each tensor of a dict, or of what has a state_dict(): a dict within a dict gives names with dots."""
    takes, patterns = _chooser(only)
    found, stack = {}, [("", parts.state_dict() if hasattr(parts, "state_dict") else parts, 0)]
    if not hasattr(stack[0][1], "items"):
        raise Invalid("a dict of tensors is wanted, and not a %s" % type(parts).__name__)
    while stack:
        name, value, depth = stack.pop()
        if hasattr(value, "items") and hasattr(value, "keys"):
            if depth == _NESTED:
                raise Invalid("%s: more than %d dicts within one another" % (name, _NESTED))
            inner = [(_dotted(name, key), one, depth + 1) for key, one in value.items()]
            stack.extend(reversed(inner))
            continue
        if not takes(name, value):
            continue
        if name in found:
            raise Invalid("two tensors are called %s" % name)
        name_bytes(name, "a tensor's name")
        if isinstance(value, tuple) and not 1 <= len(value) <= 3:
            raise Invalid("tensor %s: a tuple of %d is no (array, of, at)" % (name, len(value)))
        found[name] = Part(name, value)
    unused = [pattern for pattern in patterns if not any(fnmatch.fnmatchcase(name, pattern) for name in found)]
    if unused:
        raise Invalid("only=: no tensor is called %s" % ", ".join(unused))
    return list(found.values())


def _dotted(outer, key):
    if not isinstance(key, (str, int)):
        raise Invalid("%s: a key of its dict is a %s, and no text" % (outer or "the dict", type(key).__name__))
    return "%s.%s" % (outer, key) if outer else str(key)


def _chooser(only):
    if only is None:
        return lambda name, value: True, []
    if callable(only):
        return only, []
    patterns = [only] if isinstance(only, str) else _patterns(only)
    return lambda name, value: any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns), patterns


def _patterns(only):
    try:
        patterns = list(only)
    except TypeError:
        raise Invalid("only= is %r: names and patterns of them, or a function of name and value" % (only,))
    for pattern in patterns:
        name_bytes(pattern, "a name of only=")
    return patterns


def look_at_all(parts, writable, known=(), stream=None):
    """The Memory of each Part; of those that share one (tied parameters) the first. `known`: what was found before. stream: see look_at()."""
    fixed = {memory.name: memory for memory in known if memory.is_fixed}
    found, places = [], set()
    for part in parts:
        memory = fixed.get(part.name)
        if memory is None or memory.array is not part.array:
            if not _may_be_array(part.array):
                raise Invalid("tensor %s: a %s is no tensor; only= passes over it" % (part.name, type(part.array).__name__))
            memory = look_at(part.name, part.array, writable, part.of, part.at, stream)
        if not memory.is_empty():
            place = memory.place()
            if place in places:
                continue
            places.add(place)
        found.append(memory)
    return found


def _may_be_array(value):
    if type(value) in _BUFFERS:
        return True
    if any(hasattr(value, one) for one in ("data_ptr", "local_shards", "__array_interface__", "__cuda_array_interface__", "__dlpack__")):
        return True
    try:
        memoryview(value)
    except TypeError:
        return False
    return True
