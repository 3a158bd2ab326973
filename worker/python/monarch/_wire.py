"""MessagePack of the door's messages (monarch-post(7)): their fields, not the values of calls, which are monarch._values'.

Thread: any; there is no state.
"""

import struct

_SMALL = [bytes((n,)) for n in range(128)]
_NUMBERS = {
    tag: struct.Struct(form) for tag, form in
    {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}.items()
}
_BYTES, _TEXT, _LIST, _MAP = range(4)
# Bytes of the size that follows the tag, and what is of that size.
_SIZES = {
    0xC4: (1, _BYTES), 0xC5: (2, _BYTES), 0xC6: (4, _BYTES), 0xD9: (1, _TEXT), 0xDA: (2, _TEXT), 0xDB: (4, _TEXT),
    0xDC: (2, _LIST), 0xDD: (4, _LIST), 0xDE: (2, _MAP), 0xDF: (4, _MAP)
}

NIL, FALSE, TRUE = b"\xc0", b"\xc2", b"\xc3"


def uint(n):
    if n < 0x80:
        return _SMALL[n]
    if n <= 0xFF:
        return b"\xcc" + bytes((n,))
    if n <= 0xFFFF:
        return struct.pack(">BH", 0xCD, n)
    if n <= 0xFFFFFFFF:
        return struct.pack(">BI", 0xCE, n)
    return struct.pack(">BQ", 0xCF, n)


def text(words):
    data = words.encode("utf-8", "replace")
    size = len(data)
    if size < 32:
        return bytes((0xA0 | size,)) + data
    if size <= 0xFF:
        return bytes((0xD9, size)) + data
    return (struct.pack(">BH", 0xDA, size) if size <= 0xFFFF else struct.pack(">BI", 0xDB, size)) + data


def binary_head(size):
    if size <= 0xFF:
        return bytes((0xC4, size))
    return struct.pack(">BH", 0xC5, size) if size <= 0xFFFF else struct.pack(">BI", 0xC6, size)


def binary(data):
    return binary_head(len(data)) + data


def list_head(count):
    if count < 16:
        return bytes((0x90 | count,))
    return struct.pack(">BH", 0xDC, count) if count <= 0xFFFF else struct.pack(">BI", 0xDD, count)


def _map_head(count):
    return bytes((0x80 | count,)) if count < 16 else struct.pack(">BH", 0xDE, count)


def pack(value):
    """The fields of a message: nothing, truth, numbers from 0 on, text, bytes, and lists and tables of these."""
    if value is None:
        return NIL
    if value is False:
        return FALSE
    if value is True:
        return TRUE
    if isinstance(value, int):
        return uint(value)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return binary(value)
    if isinstance(value, dict):
        return _map_head(len(value)) + b"".join(pack(key) + pack(one) for key, one in value.items())
    return list_head(len(value)) + b"".join(map(pack, value))


def number(data, at):
    """The unsigned integer that begins there, and where it ends."""
    tag = data[at]
    if tag < 0x80:
        return tag, at + 1
    if tag == 0xCC:
        return data[at + 1], at + 2
    if tag == 0xCD:
        return data[at + 1] << 8 | data[at + 2], at + 3
    if tag == 0xCE:
        return int.from_bytes(data[at + 1:at + 5], "big"), at + 5
    return int.from_bytes(data[at + 1:at + 9], "big"), at + 9


def span(data, at):
    """Where the bytes or the text that begins there lies: from, to."""
    tag = data[at]
    if 0xA0 <= tag < 0xC0:
        return at + 1, at + 1 + (tag & 31)
    width = _SIZES[tag][0]
    begin = at + 1 + width
    return begin, begin + int.from_bytes(data[at + 1:begin], "big")


def count(data, at):
    """How many the list that begins there has, and where its first begins."""
    tag = data[at]
    if 0x90 <= tag < 0xA0:
        return tag & 15, at + 1
    width = _SIZES[tag][0]
    return int.from_bytes(data[at + 1:at + 1 + width], "big"), at + 1 + width


def unpack(data, at=0):
    """The value that begins there, and where it ends. Bytes are copied."""
    tag = data[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xE0:
        return tag - 256, at
    if 0x90 <= tag < 0xA0:
        return _items(data, at, tag & 15)
    if 0xA0 <= tag < 0xC0:
        size = tag & 31
        return str(data[at:at + size], "utf-8", "replace"), at + size
    if tag < 0x90:
        return _mapping(data, at, tag & 15)
    if tag == 0xC0:
        return None, at
    if tag in (0xC2, 0xC3):
        return tag == 0xC3, at
    form = _NUMBERS.get(tag)
    if form is not None:
        return form.unpack_from(data, at)[0], at + form.size
    width, kind = _SIZES[tag]
    size = int.from_bytes(data[at:at + width], "big")
    at += width
    if kind == _BYTES:
        return bytes(data[at:at + size]), at + size
    if kind == _TEXT:
        return str(data[at:at + size], "utf-8", "replace"), at + size
    return _items(data, at, size) if kind == _LIST else _mapping(data, at, size)


def _items(data, at, size):
    found = []
    for _ in range(size):
        value, at = unpack(data, at)
        found.append(value)
    return found, at


def _mapping(data, at, size):
    found, at = _items(data, at, 2 * size)
    return dict(zip(found[::2], found[1::2])), at


def fields(data):
    """All fields of a message."""
    return unpack(data)[0]
