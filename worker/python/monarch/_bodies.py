"""The bodies of calls between what runs here and what monarch._values makes and reads: which form, for whom, and by whose word.

Thread: any; there is no state.
"""

import os
import struct

from . import _values, _wire

QUIET, PORT, TO_PORT = 1, 2, 4  # nobody hears of it; its method is given a port; the first argument is the port that its answer goes to


def trusts(here):
    """Whether a pickle may be read: of this machine, or of any host in a mesh that is `trust: job`."""
    return here or os.environ.get("MONARCH_TRUST") == "job"


def view(parts, flags):
    """What is called, as it goes with a pickled call."""
    data = _wire.pack([flags] + list(parts))
    return struct.pack("<H", len(data)) + data


def call(args, kwargs, view_bytes, peers, fresh):
    """Arguments for Python of this machine."""
    data = _values.dump_plain(args, kwargs, b"\xc1\x02" + view_bytes)
    if data is not None:
        return (data,), len(data)
    return _values.dump_call(args, kwargs, view_bytes, peers, fresh)


def given(fresh, peers):
    """They have what was sent."""
    _values.known.give(fresh, peers)


def forget(peers):
    """They are other processes from now on."""
    _values.known.forget({(mesh.encode(), rank) for mesh, rank in peers})


def plain_call(args, kwargs, name, view_bytes):
    """Arguments for an actor that a job names; `view_bytes`: of one that is known to be of Python, else empty."""
    if kwargs and not view_bytes:
        raise TypeError("%s takes arguments by position alone: it may be of another language" % name)
    return _values.pack_call(args, kwargs, view_bytes[2:], not view_bytes)


def arguments(one):
    """(args, kwargs, view or None, flags) of a delivery, which knows from now on how its answer is to be."""
    body, one.body = one.body, None
    args, kwargs, said, one.form = _values.load_call(body, trusts(one.here), one.sender)
    return args, kwargs, said or None, _flags(said)


def flags_of(body):
    """The same of one that is not read yet."""
    return _flags(body[4:4 + (body[2] | body[3] << 8)]) if len(body) > 4 and body[0] == 0xC1 and body[1] == 2 else 0


def _flags(said):
    return said[1] if said else 0  # the first of a short array


def view_of(said):
    """(labels, sizes, strides, offset), and perhaps the rank of each position."""
    return tuple(_wire.fields(said)[1:])


def result(value, one):
    if one.form == "pickle":
        return _values.dump_value(value, None if one.sender is None else {one.sender})
    return _values.pack_value(value, to_cpp=one.form == "cpp")


def exception(e, one):
    """(pieces, bytes) of an exception, or None."""
    return _values.dump_error(e, None if one.sender is None else {one.sender}) if one.form == "pickle" else None


def value(body, here, sender=None):
    return _values.load_value(body, trusts(here), sender)


def exception_of(body, here, name, text):
    """A remote exception as it was, or what stands for it."""
    if len(body):
        try:
            found = _values.load_value(body, trusts(here))
            if isinstance(found, BaseException):
                return found
        except Exception:
            pass
    return _values.RemoteError(name, text)


def has_buffers(body):
    return len(body) > 1 and body[0] == 0xC1 and bool(body[1] & 1)


def copy(pieces):
    """What a call's pieces are read as."""
    args, _, view_bytes, _ = _values.load_call(b"".join(pieces), True)
    return args, view_bytes
