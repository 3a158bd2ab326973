"""Writes plain values (monarch._plain).

Thread: any.
"""

import struct
import sys

from . import _arrays, _wire
from . import _plain as p

_MARK = struct.Struct(">BIb")  # ext of any size
_REAL = struct.Struct(">Bd")


def _put(value, out, cpp):
    put = _PUT.get(value.__class__)
    if put is None:
        _put_other(value, out, cpp)
    else:
        put(value, out, cpp)


def _put_none(_, out, __):
    out.append(_wire.NIL)


def _put_bool(value, out, _):
    out.append(_wire.TRUE if value else _wire.FALSE)


def _put_int(value, out, cpp):
    if 0 <= value <= 0xFFFFFFFFFFFFFFFF:
        out.append(_wire.uint(value))
    elif -32 <= value < 0:
        out.append(bytes((value & 0xFF,)))
    elif -0x80000000 <= value < 0:
        out.append(struct.pack(">Bi", 0xD2, value))
    elif -0x8000000000000000 <= value < 0:
        out.append(struct.pack(">Bq", 0xD3, value))
    elif cpp:
        raise p.DoesNotTravel("a number of more than 64 bits")
    else:
        _put_ext(p.INTEGER, [value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)], out)


def _put_float(value, out, _):
    out.append(_REAL.pack(0xCB, value))


def _put_str(value, out, _):
    try:
        data = value.encode()
    except UnicodeEncodeError as e:
        raise p.DoesNotTravel("a text that is no Unicode: %s" % e.reason) from None
    size = len(data)
    if size < 32:
        out.append(bytes((0xA0 | size,)) + data)
    elif size <= 0xFF:
        out.append(bytes((0xD9, size)) + data)
    else:
        out.append(struct.pack(">BI", 0xDB, size))
        out.append(data)


def _put_bytes(value, out, _):
    out.append(_wire.binary_head(len(value)))
    out.append(value)


def _put_memoryview(value, out, _):
    data = value.cast("B") if value.c_contiguous else memoryview(value.tobytes())
    out.append(_wire.binary_head(data.nbytes))
    out.append(data)


def _put_bytearray(value, out, cpp):
    if cpp:
        _put_bytes(value, out, cpp)
    else:
        _put_ext(p.BYTEARRAY, [value], out)


def _put_list(value, out, cpp):
    out.append(_wire.list_head(len(value)))
    k = 0
    try:
        for k, one in enumerate(value):
            _put(one, out, cpp)
    except p.DoesNotTravel as e:
        raise e.within("item %d" % k)


def _put_tuple(value, out, cpp):
    if cpp:
        _put_list(value, out, cpp)
    else:
        inner = []
        _put_list(value, inner, cpp)
        _put_ext(p.TUPLE, inner, out)


def _put_dict(value, out, cpp):
    count = len(value)
    out.append(bytes((0x80 | count,)) if count < 16 else struct.pack(">BI", 0xDF, count))
    key = None
    try:
        for key, one in value.items():
            _put(key, out, cpp)
            _put(one, out, cpp)
    except p.DoesNotTravel as e:
        raise e.within("key %r" % (key,))


def _put_set(value, out, cpp):
    _python_alone(value, cpp)
    inner = []
    _put_list(list(value), inner, cpp)
    _put_ext(p.SET if value.__class__ is set else p.FROZENSET, inner, out)


def _put_complex(value, out, cpp):
    _python_alone(value, cpp)
    _put_ext(p.COMPLEX, [p.COMPLEX_FORM.pack(value.real, value.imag)], out)


def _put_slice(value, out, cpp):
    _python_alone(value, cpp)
    _put_packed(p.SLICE, [value.start, value.stop, value.step], out)


def _put_time(value, out, cpp):
    _python_alone(value, cpp)
    name = value.__class__.__name__
    if name == "timedelta":
        said = [value.days, value.seconds, value.microseconds]
    elif name == "timezone":
        offset = value.utcoffset(None)
        said = [offset.days, offset.seconds, offset.microseconds]
    else:
        said = value.isoformat()
    _put_packed(p.TIME, [name, said], out)


def _put_packed(kind, value, out):
    inner = []
    _put(value, inner, False)
    _put_ext(kind, inner, out)


def _put_ext(kind, inner, out):
    out.append(_MARK.pack(0xC9, sum(map(size_of, inner)), kind))
    out.extend(inner)


def size_of(piece):
    return piece.nbytes if isinstance(piece, memoryview) else len(piece)


def _python_alone(value, cpp):
    if cpp:
        raise p.DoesNotTravel("%s, which C++ does not have" % p.described(value))


_PUT = {
    type(None): _put_none, bool: _put_bool, int: _put_int, float: _put_float, str: _put_str, bytes: _put_bytes, bytearray: _put_bytearray,
    memoryview: _put_memoryview, list: _put_list, tuple: _put_tuple, dict: _put_dict, set: _put_set, frozenset: _put_set,
    complex: _put_complex, slice: _put_slice
}
_TIMES = ("datetime", "date", "time", "timedelta", "timezone")


def _put_other(value, out, cpp):
    kind = type(value)
    if kind.__module__ == "datetime" and kind.__name__ in _TIMES:
        return _put_time(value, out, cpp)
    enum = sys.modules.get("enum")
    if enum is not None and isinstance(value, enum.Enum):
        return _put_enum(value, out, cpp)
    if _put_of_numpy(value, out, cpp) or _put_of_torch(value, out, cpp):
        return None
    if hasattr(type(value), "__dataclass_fields__"):
        return _put_dataclass(value, out, cpp)
    if isinstance(value, tuple) and isinstance(getattr(type(value), "_fields", None), tuple):
        return _put_namedtuple(value, out, cpp)
    if isinstance(value, BaseException):
        _python_alone(value, cpp)
        return _put_exception(value, out)
    raise p.DoesNotTravel(p.described(value))


def _put_enum(value, out, cpp):
    if cpp:
        if not isinstance(value.value, int):
            raise p.DoesNotTravel("%s, which is no number" % p.described(value))
        return _put_int(int(value.value), out, cpp)
    if value.name not in type(value).__members__:
        raise p.DoesNotTravel("%r, which is no single member" % (value,))
    return _put_packed(p.ENUM, p.class_name(type(value)) + [value.name], out)


def _fields_of(value):
    """Names and values of a dataclass. What it has beside its fields would be lost without a word, so it does not travel."""
    import dataclasses
    names = [field.name for field in dataclasses.fields(value)]
    for name in getattr(value, "__dict__", ()):
        if name not in names:
            raise p.DoesNotTravel("%s has %s, which is none of its fields" % (p.described(value), name))
    return [(name, getattr(value, name)) for name in names if hasattr(value, name)]


def _put_named(pairs, out, cpp, with_names):
    name = None
    try:
        for name, one in pairs:
            if with_names:
                _put_str(name, out, cpp)
            _put(one, out, cpp)
    except p.DoesNotTravel as e:
        raise e.within("field %s" % name)


def _put_dataclass(value, out, cpp):
    pairs = _fields_of(value)
    if cpp:
        out.append(_wire.list_head(len(pairs)))
        return _put_named(pairs, out, cpp, False)
    inner = []
    _put(p.class_name(type(value)), inner, cpp)
    _put_named(pairs, inner, cpp, True)
    return _put_ext(p.DATACLASS, inner, out)


def _put_namedtuple(value, out, cpp):
    inner = []
    if not cpp:
        _put(p.class_name(type(value)), inner, cpp)
    inner.append(_wire.list_head(len(value)))
    _put_named(zip(type(value)._fields, value), inner, cpp, False)
    if cpp:
        out.extend(inner)
    else:
        _put_ext(p.NAMEDTUPLE, inner, out)


def _put_of_numpy(value, out, cpp):
    numpy = _arrays.numpy_if_there()
    if numpy is None or not isinstance(value, (numpy.ndarray, numpy.generic)):
        return False
    if cpp and isinstance(value, numpy.generic):
        _put(value.item(), out, cpp)
        return True
    if type(value) is not numpy.ndarray and not isinstance(value, numpy.generic):
        raise p.DoesNotTravel(p.described(value))
    try:
        dtype, sizes, data = _arrays.array_parts(numpy, numpy.asarray(value).astype(value.dtype.newbyteorder("="), copy=False) if cpp else numpy.asarray(value))
    except _arrays.NoBytes as e:
        raise p.DoesNotTravel(str(e)) from None
    if cpp:
        _put_bytes(data, out, cpp)
        return True
    inner = []
    _put([dtype, list(sizes), isinstance(value, numpy.generic)], inner, cpp)
    _put_ext(p.ARRAY, inner + [data], out)
    return True


def _put_of_torch(value, out, cpp):
    torch = _arrays.torch_if_there()
    if torch is None:
        return False
    if isinstance(value, torch.dtype):
        _python_alone(value, cpp)
        _put_packed(p.TORCH, str(value)[6:], out)
    elif isinstance(value, torch.Size):
        _put_list(value, out, cpp) if cpp else _put_packed(p.TORCH, list(value), out)
    elif type(value) in (torch.Tensor, torch.nn.Parameter):
        if value.device.type != "cpu" or not _arrays.is_plain_tensor(torch, value):
            raise p.DoesNotTravel("a tensor of device %s and layout %s" % (value.device, value.layout))
        name, sizes, strides, data = _arrays.tensor_parts(torch, value.contiguous())
        if cpp:
            _put_bytes(memoryview(data).cast("B"), out, cpp)
            return True
        inner = []
        _put([name, list(sizes), list(strides), value.requires_grad], inner, cpp)
        _put_ext(p.TENSOR, inner + [memoryview(data).cast("B")], out)
    else:
        return False
    return True


def _put_exception(value, out):
    kind, args = type(value), None
    if kind.__module__ == "builtins":
        try:
            args = list(value.args)
            _put(args, [], False)
        except p.DoesNotTravel:
            args = None
    name = kind.__qualname__ if kind.__module__ == "builtins" else "%s.%s" % (kind.__module__, kind.__qualname__)
    try:
        text = str(value)
    except Exception as e:
        text = "its text cannot be had: %s" % type(e).__name__
    _put_packed(p.EXCEPTION, [name, text.encode("utf-8", "replace").decode(), args], out)


def _pieces(out):
    """Small ones joined, large ones as they are; and how many bytes they have."""
    total = sum(map(size_of, out))
    if total < p.LARGE_BYTES:
        return [b"".join(out)], total
    pieces, small = [], []
    for one in out:
        if size_of(one) < p.LARGE_BYTES:
            small.append(one)
            continue
        if small:
            pieces.append(b"".join(small))
            small = []
        pieces.append(one)
    if small:
        pieces.append(b"".join(small))
    return pieces, total


def _written(put, what):
    try:
        out = put()
    except RecursionError:
        raise p.DoesNotTravel("%s is nested too deeply, or holds itself" % what) from None
    return _pieces(out)


def pack_call(args, kwargs, view, to_cpp):
    """Arguments, as pieces, and how many bytes they have. To Python the body ends with what C++ does not know: arguments by
    name, and who is called, as monarch._bodies says it. DoesNotTravel says which argument does not."""

    def put():
        out = [_wire.list_head(len(args) + (not to_cpp))]
        place = None
        try:
            for place, one in enumerate(args, 1):
                _put(one, out, to_cpp)
            if not to_cpp:
                inner = [_wire.binary(view)]
                for place, one in kwargs.items():
                    _put_str(place, inner, to_cpp)
                    _put(one, inner, to_cpp)
                _put_ext(p.CALL, inner, out)
        except p.DoesNotTravel as e:
            raise e.within("argument %s" % place)
        return out
    return _written(put, "an argument")


def pack_value(value, to_cpp=False):
    """A result, as pieces, and how many bytes they have."""

    def put():
        out = []
        try:
            _put(value, out, to_cpp)
        except p.DoesNotTravel as e:
            raise e.within("the result")
        return out
    return _written(put, "the result")
