"""The memory that monarch_tensors.py publishes from and pulls into: where an array lies, and what it is a part of.

PyTorch's and NumPy's arrays are known by what they say of themselves, and neither is imported. What is no plain memory
whose bytes are its values is refused by name, with what to call instead.
"""

import ctypes
import fnmatch
import operator

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


for _error in (TensorError, Invalid):
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

    keeps: what holds that memory. is_fixed: while that is kept, its memory is neither moved nor freed by anybody."""

    __slots__ = ("name", "array", "keeps", "is_fixed", "address", "dtype", "shape", "strides", "of", "at", "storage")

    def __init__(self, name, array):
        self.name = name
        self.array = self.keeps = array
        self.is_fixed = False
        self.of = self.at = self.storage = None
        self.address = 0

    def refused(self, words):
        return Invalid("tensor %s: %s" % (self.name, words))

    def is_empty(self):
        return 0 in self.shape

    def place(self):
        """Whoever has the same lies in the same memory."""
        return self.address, self.storage, self.dtype, self.shape, self.strides, self.of, self.at

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


def look_at(name, array, writable, of=None, at=None):
    """The Memory of an array, in which a tensor's box at `at` of shape `of` lies."""
    memory = Memory(name, array)
    if hasattr(array, "local_shards"):
        raise memory.refused("a %s is in pieces: give each of its local_shards(), with of= and at=" % type(array).__name__)
    try:
        if hasattr(array, "placements") and hasattr(array, "device_mesh"):
            array = _local_part(memory, array)
        if hasattr(array, "data_ptr") and hasattr(array, "stride"):
            _of_torch(memory, array)
        elif hasattr(array, "__array_interface__") and not _is_scalar(array):
            _of_interface(memory, array, writable)
        else:
            _of_buffer(memory, array, writable)
    except TensorError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever a kind of array that is not known answers
        raise memory.refused("the memory of a %s cannot be looked at, since it answers %s: %s; give a plain tensor, as by "
                             "detach(), dequantize() or to_local()" % (type(array).__name__, type(error).__name__, error))
    if writable and memory.overlaps():
        raise memory.refused("elements of it lie in the same memory, as those of expand(): call contiguous() or clone() first")
    if writable and not memory.has_rows():
        raise memory.refused("the elements of its last dimension do not lie one behind the other: pull into contiguous() "
                             "memory, and copy from there")
    given = (memory.of, memory.at)
    if memory.of is not None and (of is not None and tuple(of) != given[0] or at is not None and tuple(at) != given[1]):
        raise memory.refused("of=%r and at=%r are given, but by its placements it is of=%r, at=%r: give none of them, or "
                             "its to_local()" % ((of, at) + given))
    if memory.of is None:
        dims = len(memory.shape)
        memory.of = None if of is None else extents(of, "tensor %s: `of`" % name, dims)
        memory.at = None if at is None else extents(at, "tensor %s: `at`" % name, dims)
    return memory


def with_rows(memory):
    """The same values in memory that can be published: of strides that cannot be, a copy."""
    if memory.has_rows():
        return memory
    array = memory.array.to_local() if hasattr(memory.array, "placements") else memory.array
    array = array.contiguous() if hasattr(array, "contiguous") else array.copy(order="C")
    return look_at(memory.name, array, False, memory.of, memory.at)


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
    if tensor.device.type != "cpu":
        return "it is on %s, and only memory of the host is published and pulled: give its cpu()" % tensor.device
    if tensor.is_conj():
        return "its bytes are conjugated when they are read: call resolve_conj()"
    if tensor.is_neg():
        return "its bytes are negated when they are read: call resolve_neg()"
    return None


def _of_torch(memory, tensor):
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
    # Who has made a type of his own says V of it, or what is NumPy's for nothing: float8_e5m2 says f1.
    name = getattr(getattr(array, "dtype", None), "name", None)
    known = DTYPES.get(name) if name else (TYPESTR.get(typestr[1]), size * 8, 1)
    if known not in DTYPES.values() or item_bytes(known) != size:
        raise memory.refused("elements of %s are not known: view(\"uint8\") gives their bytes" % (name or typestr))
    if typestr[0] == ">" and size > 1:
        raise memory.refused("the bytes of its elements are in the other order: call astype(\"%s\")" % name)
    memory.address, read_only = interface["data"]
    if writable and read_only:
        raise memory.refused("an array that may not be written")
    memory.dtype = known
    memory.shape = tuple(interface["shape"])
    memory.strides = tuple(interface.get("strides") or dense(memory.shape, size))
    return None


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
        shared = (ctypes.c_char * view.nbytes).from_buffer(view)
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


def look_at_all(parts, writable, known=()):
    """The Memory of each Part; of those that share one (tied parameters) the first. `known`: what was found before."""
    fixed = {memory.name: memory for memory in known if memory.is_fixed}
    found, places = [], set()
    for part in parts:
        memory = fixed.get(part.name)
        if memory is None or memory.array is not part.array:
            if not _may_be_array(part.array):
                raise Invalid("tensor %s: a %s is no tensor; only= passes over it" % (part.name, type(part.array).__name__))
            memory = look_at(part.name, part.array, writable, part.of, part.at)
        if not memory.is_empty():
            place = memory.place()
            if place in places:
                continue
            places.add(place)
        found.append(memory)
    return found


def _may_be_array(value):
    if hasattr(value, "data_ptr") or hasattr(value, "local_shards") or hasattr(value, "__array_interface__"):
        return True
    try:
        memoryview(value)
    except TypeError:
        return False
    return True
