"""Ethernet frames of IPv4 and TCP: read just as far as the switch must, and forged where it answers for somebody.

Pure: bytes in, bytes out. A frame that is too short or something else is None or unchanged, never an error.
"""

import collections
import struct

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
_ETHERNET = 14

# A TCP segment: where its header starts, what decides about it. `end` is the sequence number after it.
Segment = collections.namedtuple("Segment", "flow at sequence acknowledged flags end payload_at payload_end")


def is_ipv4(frame):
    return len(frame) >= _ETHERNET + 20 and frame[12:14] == b"\x08\x00"


def packet_bytes(frame):
    """Length of the IPv4 packet in the frame."""
    return struct.unpack_from("!H", frame, _ETHERNET + 2)[0]


def segment(frame):
    """The TCP segment in a frame, or None; fragments are none. `flow` is the same for both directions."""
    if not is_ipv4(frame) or frame[23] != 6 or struct.unpack_from("!H", frame, 20)[0] & 0x3FFF:
        return None
    at = _ETHERNET + (frame[14] & 15) * 4
    end = min(_ETHERNET + packet_bytes(frame), len(frame))
    if at + 20 > end:
        return None
    source, target, sequence, acknowledged, offset, flags = struct.unpack_from("!HHIIBB", frame, at)
    payload_at = min(at + (offset >> 4) * 4, end)
    length = end - payload_at + bool(flags & SYN) + bool(flags & FIN)
    flow = frozenset(((frame[26:30], source), (frame[30:34], target)))
    return Segment(flow, at, sequence, acknowledged, flags, (sequence + length) & 0xFFFFFFFF, payload_at, end)


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _tcp_checksum(addresses, tcp):
    return checksum(addresses + struct.pack("!HH", 6, len(tcp)) + tcp)


def _reset(frame, sequence, acknowledged, flags, backwards):
    """A frame with nothing but an RST, along the way of `frame` or back."""
    at = segment(frame).at
    macs = frame[0:12] if not backwards else frame[6:12] + frame[0:6]
    addresses = frame[26:34] if not backwards else frame[30:34] + frame[26:30]
    ports = frame[at:at + 4] if not backwards else frame[at + 2:at + 4] + frame[at:at + 2]
    tcp = ports + struct.pack("!IIBBHHH", sequence, acknowledged, 5 << 4, flags, 0, 0, 0)
    tcp = tcp[:16] + struct.pack("!H", _tcp_checksum(addresses, tcp)) + tcp[18:]
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0) + addresses
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    return macs + b"\x08\x00" + header + tcp


def resets(frame):
    """What ends the connection of a segment at both ends, in its place: a frame to its target, and one back.

    Each end believes an RST whose sequence number is exactly the next that it awaits (RFC 5961): for the target that is
    this segment's own, if it is dropped; for the source it is what the segment acknowledges.
    """
    found = segment(frame)
    return (_reset(frame, found.sequence, 0, RST, backwards=False),
            _reset(frame, found.acknowledged, 0, RST, backwards=True))


def refusal(frame):
    """What a host answers to a SYN for a port where nobody listens."""
    found = segment(frame)
    return _reset(frame, 0, found.end, RST | ACK, backwards=True)


def corrupted(frame, bit):
    """The frame with one bit of its TCP payload flipped and the checksum right again; itself if it has none."""
    found = segment(frame)
    if found is None or found.payload_at == found.payload_end:
        return frame
    changed = bytearray(frame)
    place = bit % ((found.payload_end - found.payload_at) * 8)
    changed[found.payload_at + place // 8] ^= 1 << place % 8
    changed[found.at + 16:found.at + 18] = b"\0\0"
    value = _tcp_checksum(bytes(changed[26:34]), bytes(changed[found.at:found.payload_end]))
    struct.pack_into("!H", changed, found.at + 16, value)
    return bytes(changed)
