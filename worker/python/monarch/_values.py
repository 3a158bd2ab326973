"""Arguments and results as the bodies of calls.

    0x90… array    plain values, monarch._plain's: to actors that a job names
    0xc1 0x00      a pickle of protocol 5
    0xc1 0x01      <BBHIQ: 0xc1, 1, 0, number of buffers, bytes of the pickle; the size of each buffer, u64; the pickle; the
                   buffers, each at a multiple of 64
    0xc1 0x02      with the view that was called: u16, so many bytes, and the pickle
    0xc1 0x03      both: the u16 of the header says how many bytes of a view lie before the pickle

No MessagePack begins with 0xc1. A pickle runs what its sender likes, so it is read of who may run code here anyway: of this
machine and of hosts that are trusted. Who reads a body says so.

Arrays, tensors and other large buffers lie behind the pickle, and what is read of a mapped body are views of it: they may be
written, and keep it as long as they are there.

What only this program has, of its __main__ or made within a function, goes by value with cloudpickle, and by a key from then
on: monarch._own has who knows what.

Thread: any.
"""

import os
import pickle
import struct
import sys
import types

from . import _arrays, _own, _plain
from ._plain import DoesNotTravel, RemoteError, Unreadable, described
from ._plain_read import unpack_call, unpack_value
from ._plain_write import pack_call, pack_value, size_of

__all__ = ["DoesNotTravel", "NotTrusted", "RemoteError", "Unreadable", "dump_call", "dump_error", "dump_plain", "dump_value", "known", "load_call",
           "load_value", "pack_call", "pack_value"]

OUT_OF_BAND = _plain.LARGE_BYTES  # a buffer of so much lies behind the pickle
_COPIED = 64 << 10  # a body of less may lie where the next message does, and is not mapped: its buffers are copied
_BUFFERS, _VIEW = 1, 2
_HEADER = struct.Struct("<BBHIQ")
_ALIGNMENT = 64
_PADS = [bytes(size) for size in range(_ALIGNMENT)]

known = _own.known


class NotTrusted(Exception):
    """A pickle of another host in a mesh whose hosts take no code from each other. It has not been read."""


# ---- writing


class _Pickler(pickle.Pickler):
    """Calls reducer_override for classes, functions and objects of classes, not for plain values."""

    peers = None  # to whom; None: to who has given it
    with_cloud = False  # the second try: what pickle cannot do, and cloudpickle can

    def reducer_override(self, value):
        if isinstance(value, (type, types.FunctionType)):
            return self._code(value)
        reduce = _REDUCERS.get(value.__class__)
        if reduce is not None:
            return reduce(value)
        if self.with_cloud and _own.is_for_cloudpickle(value):
            return _own.by_value(value)
        return NotImplemented

    def _code(self, value):
        if not _own.is_own(value):
            return NotImplemented
        return _own.reduced(value, self.peers, self.fresh)


def _reduce_memoryview(value):
    return memoryview, (pickle.PickleBuffer(value if value.c_contiguous else value.tobytes()),)


def _reduce_tensor(value):
    torch = _arrays.torch_if_there()
    if torch is None or not _arrays.is_plain_tensor(torch, value):
        return NotImplemented
    device = None if value.device.type == "cpu" else str(value.device)
    name, sizes, strides, data = _arrays.tensor_parts(torch, value)
    return _tensor, (name, sizes, strides, pickle.PickleBuffer(data), value.requires_grad, device)


def _tensor(name, sizes, strides, data, requires_grad, device):
    return _arrays.tensor_of(name, sizes, strides, data, requires_grad, device)


_REDUCERS = {memoryview: _reduce_memoryview}


def _look_for_torch():
    # Its own way copies what a tensor has, twice.
    torch = _arrays.torch_if_there()
    if torch is not None and torch.Tensor not in _REDUCERS:
        _REDUCERS[torch.Tensor] = _reduce_tensor


class _Pieces:
    """Where a pickle goes. Large bytes are a piece of their own, and not copied."""

    __slots__ = ("write",)


def _pickled(value, peers, fresh, with_cloud=False):
    pieces, buffers = [], []

    def lies_here(buffer):
        raw = buffer.raw()
        if raw.nbytes < OUT_OF_BAND:
            return True
        buffers.append(raw)
        return False

    file = _Pieces()
    file.write = pieces.append
    pickler = _Pickler(file, 5, buffer_callback=lies_here)
    pickler.peers, pickler.with_cloud, pickler.fresh = peers, with_cloud, fresh
    pickler.dump(value)
    return pieces, buffers


def _pickled_or_said(value, peers, label):
    """The pickle, its buffers, and what of this program's own is in it by value. DoesNotTravel."""
    _look_for_torch()
    fresh = []
    try:
        return _pickled(value, peers, fresh) + (fresh,)
    except Exception as e:  # whatever an object's own way of being pickled raises
        why = e
    try:
        if _own.has_cloudpickle():
            del fresh[:]
            return _pickled(value, peers, fresh, True) + (fresh,)
    except Exception as e:
        why = e
    raise _what_does_not_travel(value, label, why)


def dump(value, view=b"", peers=None, label="the value", fresh=None):
    """A body, as pieces, and how many bytes they have.

    `view` is what monarch._bodies says of who is called. `peers` are who reads it, as a set of anything that names a process: what they know goes by
    its key; None: all who read it have given it. They know what is in it from then on; where the body may still be held
    back, `fresh` is a list that is filled with what known.give(fresh, peers) is to be told once it has been sent."""
    parts, buffers, own = _pickled_or_said(value, peers, label)
    if own:
        if fresh is not None:
            fresh += own
        elif peers is not None:
            known.give(own, peers)
    size = sum(map(size_of, parts))
    if not buffers:
        head = b"\xc1\x02" + view if view else b"\xc1\x00"
        return [head] + parts, len(head) + size
    head = _HEADER.pack(0xC1, _BUFFERS | (_VIEW if view else 0), len(view[2:]), len(buffers), size)
    head += struct.pack("<%dQ" % len(buffers), *[one.nbytes for one in buffers]) + view[2:]
    pieces, total = [head] + parts, len(head) + size
    for one in buffers:
        pad = -total % _ALIGNMENT
        pieces += [_PADS[pad], one]
        total += pad + one.nbytes
    return pieces, total


def dump_call(args, kwargs, view=b"", peers=None, fresh=None):
    return dump((args, kwargs), view, peers, "", fresh)


_PLAIN = frozenset((int, float, str, bool, type(None)))
_FEW = 32


def _is_simple(value):
    """Whether a plain pickle is all it takes, and is small but for one text."""
    kind = value.__class__
    if kind in _PLAIN:
        return True
    if kind is list or kind is tuple:
        return len(value) <= _FEW and all(one.__class__ in _PLAIN for one in value)
    if kind is dict:
        return len(value) <= _FEW and all(a.__class__ in _PLAIN and b.__class__ in _PLAIN for a, b in value.items())
    return kind is bytes and len(value) < OUT_OF_BAND


def dump_plain(args, kwargs, head=b"\xc1\x00"):
    """The whole body of a call where its arguments are of the simplest, else None. `head`: its first bytes, with the view."""
    for one in args:
        if one.__class__ not in _PLAIN and not _is_simple(one):
            return None
    for one in kwargs.values():
        if not _is_simple(one):
            return None
    return head + pickle.dumps((args, kwargs), 5)


def dump_value(value, peers=None, fresh=None):
    """A result."""
    if value.__class__ in _PLAIN or _is_simple(value):
        data = b"\xc1\x00" + pickle.dumps(value, 5)
        return [data], len(data)
    return dump(value, b"", peers, "the result", fresh)


def dump_error(error, peers=None):
    """An exception, or None where it does not travel: its text is said beside it."""
    try:
        return dump(error, b"", peers, "the exception")
    except DoesNotTravel:
        return None


# ---- what does not travel


def _what_does_not_travel(value, label, why):
    """The innermost part that does not, of arguments where there is no label."""
    path = [label] if label else []
    if not label:
        args, kwargs = value
        for place, one in [(str(k), one) for k, one in enumerate(args, 1)] + list(kwargs.items()):
            if not _travels(one):
                path, value = ["argument " + place], one
                break
    for _ in range(50):
        inner = next(((place, one) for place, one in _inside(value) if not _travels(one)), None)
        if inner is None:
            break
        path.append(inner[0])
        value = inner[1]
    reason = str(why) or type(why).__name__
    return DoesNotTravel("%s: %s" % (described(value), reason[:500]), path)


def _travels(value):
    try:
        _pickled(value, None, [], _own.has_cloudpickle())
        return True
    except Exception:
        return False


def _inside(value):
    if isinstance(value, dict):
        return [("key %r" % (key,), one) for pair in value.items() for key, one in ((pair[0], pair[0]), pair)]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [("item %d" % k, one) for k, one in enumerate(value)]
    if isinstance(value, (type, types.ModuleType)) or not hasattr(value, "__dict__"):
        return [("field %s" % name, getattr(value, name)) for name in getattr(type(value), "__slots__", ()) if hasattr(value, name)]
    if isinstance(value, types.FunctionType):
        names = value.__code__.co_freevars
        return [("variable %s" % name, cell.cell_contents) for name, cell in zip(names, value.__closure__ or ()) if _is_full(cell)]
    return [("field %s" % name, one) for name, one in list(vars(value).items())]


def _is_full(cell):
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


# ---- reading


def is_pickle(body):
    return len(body) > 1 and body[0] == 0xC1


def load(body, sender=None):
    """The value of a pickled body, and the bytes of its view, which are none where it has none. `sender` knows from now on what
    was in it."""
    how, view = body[1], b""
    if how > (_BUFFERS | _VIEW):
        raise Unreadable("a body of kind %d" % how)
    _own.local.sender = sender
    if not how & _BUFFERS:
        at = 2
        if how & _VIEW:
            at = 4 + (body[2] | body[3] << 8)
            view = bytes(body[4:at])
        return _loads(memoryview(body)[at:], None), view
    if len(body) <= _COPIED:
        body = bytearray(body)
    body = memoryview(body)
    _, _, length, count, size = _HEADER.unpack_from(body)
    if count > len(body) // 8:
        raise Unreadable("a body of %d bytes is said to have %d buffers" % (len(body), count))
    at = _HEADER.size + 8 * count
    sizes = struct.unpack_from("<%dQ" % count, body, _HEADER.size)
    view, at = bytes(body[at:at + length]), at + length
    data, at = body[at:at + size], at + size
    buffers = []
    for one in sizes:
        at += -at % _ALIGNMENT
        if at + one > len(body):
            raise Unreadable("a buffer of a body ends behind it")
        buffers.append(body[at:at + one])
        at += one
    return _loads(data, buffers), view


def _loads(data, buffers):
    try:
        return pickle.loads(data, buffers=buffers)
    except pickle.UnpicklingError as e:
        raise Unreadable("a pickle: %s" % e) from e
    except _own.OtherCloudpickle:
        raise
    except ModuleNotFoundError as e:
        raise ModuleNotFoundError("%s has no module %s, which what it was sent is of; its sys.path: %s" %
                                  (sys.executable, e.name, os.pathsep.join(sys.path)), name=e.name) from e


def load_call(body, trusted, sender=None):
    """(args, kwargs, bytes of the view, who has called: "pickle", "plain" or "cpp"). `trusted`: it may be a pickle."""
    if not is_pickle(body):
        args, kwargs, view, python = unpack_call(body)
        return args, kwargs, view, "plain" if python else "cpp"
    if not trusted:
        raise NotTrusted("arguments that are a pickle of another host, and this mesh has no trust: job")
    (args, kwargs), view = load(body, sender)
    return args, kwargs, view, "pickle"


def load_value(body, trusted, sender=None):
    """A result."""
    if not is_pickle(body):
        return unpack_value(body)
    if not trusted:
        raise NotTrusted("an answer that is a pickle of another host, and this mesh has no trust: job")
    return load(body, sender)[0]
