"""A caller at the door of a post, and a guest that serves, as monarch-post(7) has it and in Python's standard library alone.

usage: door_client.py MESH ACTOR ENDPOINT RANKS [ARGUMENT…]    calls once, prints an outcome a line
       door_client.py card NAME TEXT                           puts a card of its rank with a key, and asks for it
       door_client.py guests                                   serves as a guest on each host of the machine, and calls those
"""

import fcntl
import glob
import hmac
import os
import socket
import struct
import sys

MAGIC = 0x66726E6D
HELLO, WELCOME, CALL, ANSWER, OVER, DELIVER, REPLY, CLOSED, CARD, ANSWERS = 144, 145, 146, 148, 149, 150, 152, 154, 157, 158
WISH, GRANTED = 171, 172
F_ADD_SEALS, ALL_SEALS = 1033, 15
NOTHING = [0, 0, b""]
KINDS = ("value", "remote error", "rank lost", "deadline", "busy", "gone", "cancelled", "refused")


def pack(value):
    """MessagePack of what is needed here."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return struct.pack(">BQ", 0xCF, value) if value >= 0 else struct.pack(">Bq", 0xD3, value)
    if isinstance(value, str):
        data = value.encode()
        return struct.pack(">BI", 0xDB, len(data)) + data
    if isinstance(value, bytes):
        return struct.pack(">BI", 0xC6, len(value)) + value
    if isinstance(value, dict):
        return struct.pack(">BI", 0xDF, len(value)) + b"".join(pack(key) + pack(one) for key, one in value.items())
    return struct.pack(">BI", 0xDD, len(value)) + b"".join(map(pack, value))


def unpack(data, at=0):
    """The value that begins there, and where it ends."""
    tag = data[at]
    at += 1

    def number(form):
        return struct.unpack_from(">" + form, data, at)[0], at + struct.calcsize(form)

    def text(size, at, of_bytes=False):
        piece = data[at:at + size]
        return (bytes(piece) if of_bytes else piece.decode()), at + size

    def items(count, at):
        values = []
        for _ in range(count):
            value, at = unpack(data, at)
            values.append(value)
        return values, at

    if tag < 0x80:
        return tag, at
    if tag >= 0xE0:
        return tag - 256, at
    if 0x90 <= tag < 0xA0:
        return items(tag & 15, at)
    if 0xA0 <= tag < 0xC0:
        return text(tag & 31, at)
    if tag in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[tag], at
    numbers = {0xCA: "f", 0xCB: "d", 0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q", 0xD0: "b", 0xD1: "h", 0xD2: "i", 0xD3: "q"}
    if tag in numbers:
        return number(numbers[tag])
    sizes = {0xC4: "B", 0xC5: "H", 0xC6: "I", 0xD9: "B", 0xDA: "H", 0xDB: "I", 0xDC: "H", 0xDD: "I"}
    size, at = number(sizes[tag])
    if tag in (0xDC, 0xDD):
        return items(size, at)
    return text(size, at, of_bytes=tag <= 0xC6)


class Door:
    def __init__(self, path=None, guest=False, serves=(), owner=0):
        """As the rank that this process is, by version 2; or as a guest, by version 4, who may have claims as that owner."""
        self.owner = owner
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(path or os.environ["MONARCH_POST"])
        if guest:
            self.say(HELLO, [4, "", 0, 0, bool(serves), list(serves), False, owner])
        else:
            self.say(HELLO, [2, os.environ["MONARCH_MESH"], int(os.environ["MONARCH_RANK"]),
                             int(os.environ["MONARCH_GENERATION"]), False, [], False])
        self.version, self.host, self.meshes, *self.limits = self.hear(WELCOME)
        self.guest = self.limits[6]

    def say(self, kind, fields, beside=None):
        payload = pack(fields)
        header = struct.pack("<IHH16sQIIQQQQ", MAGIC, 1, kind, bytes(16), 0, 0, 0, 0, 0, 0, 0)
        packet = struct.pack("<BBBBI", 0, 0 if beside is None else 1, 0, 0, len(payload)) + header + payload
        rights = [] if beside is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", beside))]
        self.socket.sendmsg([packet], rights)

    def hear(self, *kinds):
        data, *_ = self.socket.recvmsg(1 << 20, 1 << 10)
        kind = struct.unpack_from("<H", data, 8 + 6)[0]
        fields, _ = unpack(data[80:])
        if kind not in kinds:
            sys.exit(f"the post says {kind}: {fields}")
        return fields if len(kinds) == 1 else (kind, fields)

    def wish(self, number, count=1, hosts=(), env=None, name="", let_go=0):
        """What becomes of it: why not, or the mesh and its ranks."""
        self.say(WISH, [number, self.owner, let_go, ["", list(hosts), count, name, [], [], "", env or {}, []]])
        return self.granted(number)

    def granted(self, number):
        told, error, mesh, ranks = self.hear(GRANTED)
        assert told == number, (told, number)
        return error or (mesh, ranks)

    def put_card(self, name, text, key=b""):
        self.say(CARD, [name, [len(text), 1, text], key])

    def card(self, number, mesh, rank, name, since=0):
        """A rank's card of a generation after `since`, once there is one: that, and its text, and what of its key is ours."""
        self.say(CALL, [number, mesh, [[rank, 1, 1]], ["@cards", name, str(since)], False, None, [0, 0, b""]])
        _, _, (how, _, words, _, generation, (_, _, text, *_), own, *_), *_ = self.hear(ANSWER)
        self.hear(OVER)
        return generation, text if how == 0 else words, own

    def call(self, number, mesh, ranks, target, arguments):
        """Each rank's outcome: its number, how it ended, and the value or the text."""
        body = pack(arguments)
        self.say(CALL, [number, mesh, [[rank, 1, 1] for rank in ranks], [*target, "*"], False, None, [len(body), 1, body]])
        while True:
            kind, fields = self.hear(ANSWER, OVER)
            if kind == OVER:
                if fields[1]:
                    yield None, "refused", fields[1]
                return
            _, rank, (how, type_name, text, _, _, (_, _, here, *_), *_), *_ = fields
            yield rank, KINDS[how], unpack(here)[0] if how == 0 else f"{type_name}: {text}"


def memory_of(size):
    """That nobody changes any more; all of it is zero."""
    memory = os.memfd_create("body", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(memory, size)
    fcntl.fcntl(memory, F_ADD_SEALS, ALL_SEALS)
    return memory


def serve_one(server):
    """Answers what it is called with itself: whether that was asked here, and how many bytes it had."""
    delivery, _, _, (size, way, here, *_), is_here, *_ = server.hear(DELIVER)
    server.say(REPLY, [delivery, [0, "", "", "", 0, [len(here), 1, here] if way == 1 else NOTHING, b""], False])
    return is_here, size


def call_guest(caller, number, server, body, beside=None):
    caller.say(CALL, [number, "@guests", [[server.guest, 1, 1]], ["echo", "f", "*"], False, None, body, server.host], beside)


def answer_to(caller):
    """How it ended, its value or the text, and whether that is of here. Version 4 says the last of a call with it."""
    (_, _, (how, _, text, _, _, (_, way, here, *_), *_), is_last, is_here, *_), = caller.hear(ANSWERS)[0]
    assert is_last
    return KINDS[how], unpack(here)[0] if way == 1 else text, is_here


def call_guests():
    here = os.environ["MONARCH_POST"]
    others = sorted(set(glob.glob(os.path.join(os.path.dirname(os.path.dirname(here)), "*", "post"))) - {here})
    caller = Door(here, guest=True)
    size = (64 << 20) + 1
    for path in (here, *others):
        server = Door(path, guest=True, serves=[["echo", "Echo", [["f", "*", True]]]])
        body = pack(["there and back"])
        call_guest(caller, 1, server, [len(body), 1, body])
        print(server.host, "asked:", *serve_one(server), "answered:", *answer_to(caller))
        memory = memory_of(size)
        call_guest(caller, 2, server, [size, 2, b""], memory)
        os.close(memory)
        if path == here:
            print(server.host, "asked:", *serve_one(server))
        print(server.host, *answer_to(caller))
        server.socket.close()
        call_guest(caller, 3, server, [len(body), 1, body])
        print(server.host, *answer_to(caller), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "guests":
        sys.exit(call_guests())
    door = Door()
    if sys.argv[1] == "card":
        mesh, rank, generation = (os.environ["MONARCH_" + word] for word in ("MESH", "RANK", "GENERATION"))
        key = os.urandom(32)
        door.put_card(sys.argv[2], sys.argv[3].encode(), key)
        *card, own = door.card(1, mesh, int(rank), sys.argv[2])
        of_us = f"rank {rank} generation {generation} of {mesh}"
        print(*card, own == hmac.digest(key, of_us.encode(), "sha256"))
        sys.exit()
    wanted = [int(rank) for rank in sys.argv[4].split(",")]
    for rank, kind, words in sorted(door.call(1, sys.argv[1], wanted, sys.argv[2:4], sys.argv[5:]), key=str):
        print(rank, kind, words, flush=True)
