"""A post for tests of one interpreter: says what it is told to, and keeps what it hears."""

import array
import mmap
import os
import queue
import socket
import struct
import tempfile
import threading

from monarch import _wire

HELLO, WELCOME, CALL, CANCEL, ANSWER, OVER, DELIVER, TAKE_BACK, REPLY, FAILURE, CLOSED = range(144, 155)
ANSWERS, LET_GO, FREE, WISH, GRANTED = 158, 159, 170, 171, 172
SECONDS = 10


class Door:
    """A socket in a folder of its own; `on_connection(socket)` is called for each that comes, in a thread of the door's."""

    def __init__(self, on_connection):
        self._folder, self._on_connection = tempfile.TemporaryDirectory(), on_connection
        self.folder = self._folder.name
        self.path = os.path.join(self.folder, "post")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(self.path)
        self._listener.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        while True:
            try:
                one, _ = self._listener.accept()
            except OSError:
                return
            self._on_connection(one)

    def close(self):
        # Its number may be another listener's at once: nobody accepts there any more.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        self._folder.cleanup()


class FakePost:
    """`connections` are those that have said hello, in order."""

    def __init__(self, version=4, guest=7):
        self.version, self.guest = version, guest
        self.connections, self.dies = queue.Queue(), 0  # so many connections end before their hello is read
        self.door = Door(self._welcome)
        self.path = self.door.path

    def _welcome(self, one):
        if self.dies > 0:
            self.dies -= 1
            return one.close()
        connection = Connection(one)
        kind, hello, _ = connection.hear()
        connection.hello = hello
        welcome = [min(self.version, hello[0]), "v1", [["p", [["gpu", 4]], 1]], 1024, 1 << 28, 64 << 20, "", 0, 0]
        if self.version >= 4:
            welcome += [self.guest if hello[4] and not hello[1] else 0, 64 << 20]
        connection.say(WELCOME, welcome)
        self.connections.put(connection)

    def connection(self):
        return self.connections.get(timeout=SECONDS)

    def close(self):
        self.door.close()


class Connection:
    def __init__(self, one):
        self.socket, self.hello = one, None
        one.settimeout(SECONDS)

    def hear(self):
        """(kind, fields, descriptors); TimeoutError where nothing comes."""
        data, ancillary, _, _ = self.socket.recvmsg(1 << 17, 256)
        if not data:
            raise EOFError
        found = array.array("i")
        for _, _, of in ancillary:
            found.frombytes(of)
        return struct.unpack_from("<H", data, 14)[0], _wire.fields(memoryview(data)[80:]), list(found)

    def say(self, kind, fields, descriptors=()):
        payload = _wire.pack(fields)
        packet = struct.pack("<BBHI", 0, len(descriptors), 0, len(payload)) + struct.pack("<IHH64x", 0x66726E6D, 1, kind) + payload
        self.socket.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else [])

    def hears_nothing(self):
        """Whether nothing has come yet that was sent before this."""
        self.socket.setblocking(False)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
            return False
        except BlockingIOError:
            return True
        finally:
            self.socket.settimeout(SECONDS)

    def answer(self, number, rank, value, last=True, here=True):
        body = b"\xc1\x00" + value if value[:1] == b"\x80" else value
        self.say(ANSWERS, [[[number, rank, [0, "", "", "", 1, [len(body), 1, body, 0, 0], b""], last, here]]])

    def deliver(self, number, actor, endpoint, body, descriptor=None, block=0, here=True):
        way = [len(body), 1, body, 0, 0] if descriptor is None else [len(body), 2, b"", 0, block]
        self.say(DELIVER, [number, [actor, endpoint, "*"], ["", [0, 0], 0], way, here], [descriptor] if descriptor is not None else [])

    def close(self):
        self.socket.close()


class LentBlock:
    """Memory of the post's, which it writes whenever it likes."""

    def __init__(self, data):
        self.first = os.memfd_create("lent", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.first, len(data))
        self.map = mmap.mmap(self.first, len(data), mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        self.map[:] = data
        self.descriptor = os.open("/proc/self/fd/%d" % self.first, os.O_RDONLY | os.O_CLOEXEC)
