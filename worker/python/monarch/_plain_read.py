"""Reads plain values (monarch._plain). What it is given may be anybody's: whatever it is, it gives a value or Unreadable.

Thread: any.
"""

import struct
import sys

from . import _arrays
from . import _plain as p

_NUMBERS = {
    tag: struct.Struct(form) for tag, form in
    {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}.items()
}
_SIZES = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
_FIXED = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_SMALL_BODY = 64 << 10


class _Call:
    """What the body of a call from Python ends with."""

    def __init__(self, view, kwargs):
        self.view, self.kwargs = view, kwargs


def _get(data, at, end, depth=0):
    """The value that begins there, and where it ends."""
    tag = data[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xE0:
        return tag - 256, at
    if tag < 0x90:
        return _map(data, at, end, tag & 15, depth)
    if tag < 0xA0:
        return _list(data, at, end, tag & 15, depth)
    if tag < 0xC0:
        return _text(data, at, end, tag & 31)
    if tag == 0xC0:
        return None, at
    if tag in (0xC2, 0xC3):
        return tag == 0xC3, at
    form = _NUMBERS.get(tag)
    if form is not None:
        return form.unpack_from(data, at)[0], at + form.size
    if tag in _FIXED:
        size = _FIXED[tag]
    else:
        width = _SIZES[tag]
        size = int.from_bytes(data[at:at + width], "big")
        at += width
    if tag <= 0xC6:
        return bytes(_part(data, at, end, size)), at + size
    if tag <= 0xC9 or tag in _FIXED:
        kind = data[at]
        _part(data, at + 1, end, size)
        return _EXT[kind](data, at + 1, at + 1 + size, depth + 1), at + 1 + size
    if tag <= 0xDB:
        return _text(data, at, end, size)
    return (_list if tag <= 0xDD else _map)(data, at, end, size, depth)


def _part(data, at, end, size):
    if at + size > end:
        raise p.Unreadable("it ends early")
    return data[at:at + size]


def _text(data, at, end, size):
    return str(_part(data, at, end, size), "utf-8"), at + size


def _deeper(depth):
    if depth >= p.DEPTH:
        raise p.Unreadable("it is nested too deeply")
    return depth + 1


def _list(data, at, end, count, depth):
    depth, found = _deeper(depth), []
    for _ in range(count):
        value, at = _get(data, at, end, depth)
        found.append(value)
    return found, at


def _map(data, at, end, count, depth):
    depth, found = _deeper(depth), {}
    for _ in range(count):
        key, at = _get(data, at, end, depth)
        found[key], at = _get(data, at, end, depth)
    if len(found) != count:
        raise p.Unreadable("a key is there twice")
    return found, at


def _only(data, at, end, depth):
    """The value that is all there is from there to there."""
    value, stop = _get(data, at, end, _deeper(depth))
    if stop != end:
        raise p.Unreadable("it goes on behind its end")
    return value


def _get_slice(data, at, end, depth):
    return slice(*_only(data, at, end, depth))


def _get_integer(data, at, end, _):
    return int.from_bytes(_part(data, at, end, end - at), "big", signed=True)


def _get_time(data, at, end, depth):
    import datetime
    name, said = _only(data, at, end, depth)
    if name == "timedelta":
        return datetime.timedelta(*said)
    if name == "timezone":
        return datetime.timezone(datetime.timedelta(*said))
    return {"datetime": datetime.datetime, "date": datetime.date, "time": datetime.time}[name].fromisoformat(said)


def _class(names):
    found = p.find_class(*names[:2])
    if found is None:
        raise p.Unreadable("no class %s is imported here from %s" % (names[1], names[0]))
    return found


def _get_dataclass(data, at, end, depth):
    names, at = _get(data, at, end, _deeper(depth))
    kind = _class(names)
    fields = kind.__dict__.get("__dataclass_fields__") or getattr(kind, "__dataclass_fields__", None)
    if not isinstance(fields, dict) or hasattr(kind, "__del__"):
        raise p.Unreadable("%s of %s is no class that travels between hosts" % (names[1], names[0]))
    made = object.__new__(kind)
    has = set()
    while at < end:
        name, at = _get(data, at, end, depth + 1)
        value, at = _get(data, at, end, depth + 1)
        if name not in fields:
            raise p.Unreadable("%s of %s has no field %r" % (names[1], names[0], name))
        has.add(name)
        object.__setattr__(made, name, value)
    for name, field in fields.items():
        if name not in has and field._field_type.name == "_FIELD" and name not in kind.__dict__:
            raise p.Unreadable("%s of %s misses its field %r" % (names[1], names[0], name))
    if at != end:
        raise p.Unreadable("it goes on behind its end")
    return made


def _get_namedtuple(data, at, end, depth):
    names, at = _get(data, at, end, _deeper(depth))
    values, kind = _only(data, at, end, depth), _class(names)
    if not issubclass(kind, tuple) or len(getattr(kind, "_fields", ())) != len(values) or hasattr(kind, "__del__"):
        raise p.Unreadable("%s of %s has other fields here" % (names[1], names[0]))
    return tuple.__new__(kind, values)


def _get_enum(data, at, end, depth):
    names = _only(data, at, end, depth)
    kind = _class(names)
    enum = sys.modules.get("enum")
    if enum is None or not issubclass(kind, enum.Enum) or names[2] not in kind.__members__:
        raise p.Unreadable("%s of %s has no member %r" % (names[1], names[0], names[2]))
    return kind.__members__[names[2]]


def _get_array(data, at, end, depth):
    (dtype, sizes, scalar), at = _get(data, at, end, _deeper(depth))
    array = _arrays.array_of(dtype, sizes, _part(data, at, end, end - at))
    return array[()] if scalar else array


def _get_tensor(data, at, end, depth):
    (name, sizes, strides, requires_grad), at = _get(data, at, end, _deeper(depth))
    return _arrays.tensor_of(name, sizes, strides, bytearray(_part(data, at, end, end - at)), requires_grad)


def _get_torch(data, at, end, depth):
    import torch
    said = _only(data, at, end, depth)
    return _arrays.dtype_of(torch, said) if isinstance(said, str) else torch.Size(said)


def _get_exception(data, at, end, depth):
    name, text, args = _only(data, at, end, depth)
    builtins = sys.modules["builtins"]
    kind = getattr(builtins, name, None) if args is not None and "." not in name else None
    if isinstance(kind, type) and issubclass(kind, BaseException):
        try:
            return kind(*args)
        except TypeError:
            pass
    return p.RemoteError(name, text)


def _get_call(data, at, end, depth):
    view, at = _get(data, at, end, depth)
    kwargs = {}
    while at < end:
        name, at = _get(data, at, end, depth)
        if not isinstance(name, str):
            raise p.Unreadable("an argument has no name")
        kwargs[name], at = _get(data, at, end, depth)
    if at != end:
        raise p.Unreadable("it goes on behind its end")
    return _Call(view, kwargs)


_EXT = {
    p.TUPLE: lambda *of: tuple(_only(*of)),
    p.SET: lambda *of: set(_only(*of)),
    p.FROZENSET: lambda *of: frozenset(_only(*of)),
    p.COMPLEX: lambda data, at, end, _: complex(*p.COMPLEX_FORM.unpack(_part(data, at, end, end - at))),
    p.BYTEARRAY: lambda data, at, end, _: bytearray(_part(data, at, end, end - at)),
    p.TIME: _get_time, p.DATACLASS: _get_dataclass, p.NAMEDTUPLE: _get_namedtuple, p.ENUM: _get_enum, p.ARRAY: _get_array,
    p.TENSOR: _get_tensor, p.TORCH: _get_torch, p.EXCEPTION: _get_exception, p.INTEGER: _get_integer, p.SLICE: _get_slice,
    p.CALL: _get_call
}


def unpack_value(data):
    """The value of a body. Unreadable where it is none."""
    data = bytes(data) if len(data) <= _SMALL_BODY else memoryview(data)  # bytes are read faster
    try:
        value, at = _get(data, 0, len(data))
    except p.Unreadable:
        raise
    except ImportError as e:
        raise p.Unreadable("%s has no module %s" % (sys.executable, e.name)) from None
    except RecursionError:
        raise p.Unreadable("it is nested too deeply") from None
    except Exception as e:  # whatever is wrong with bytes that anybody has sent
        raise p.Unreadable("no value: %s: %s" % (type(e).__name__, e)) from None
    if at != len(data):
        raise p.Unreadable("it goes on behind its end")
    return value


def unpack_call(data):
    """(args, kwargs, view, whether Python has called) of a body of arguments; a view of no bytes: none was said."""
    args = unpack_value(data)
    if not isinstance(args, list):
        raise p.Unreadable("arguments are an array")
    if args and isinstance(args[-1], _Call):
        end = args.pop()
        return args, end.kwargs, end.view, True
    return args, {}, b"", False
