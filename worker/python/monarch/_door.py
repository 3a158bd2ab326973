"""One connection to a post's door (monarch-post(7)): packets, and bodies beside them in memory.

Nobody reads for others here: who waits for something calls read() himself. Who sends never reads. What the post says of
memory that was lent is heard by the way.

Thread: send() any; read() one at a time.
"""

import array
import collections
import errno
import os
import select
import socket
import struct
import threading
import time

from . import _memory, _wire

HELLO, WELCOME, CALL, CANCEL, ANSWER, OVER, DELIVER, TAKE_BACK, REPLY, FAILURE, CLOSED, WAIT, RING = range(144, 157)
ANSWERS, LET_GO, FREE, WISH, GRANTED = 158, 159, 170, 171, 172
VALUE, REMOTE, LOST, DEADLINE, BUSY, GONE, CANCELLED, REFUSED = range(8)
GUESTS = "@guests"  # the mesh of guests that serve

VERSION = 4  # the latest that is spoken here
_OLDEST = 3
HERE_BYTES = 48 << 10  # a larger body goes beside its message
FAR_BYTES = 64 << 20  # of a body between hosts, where the post does not say
_PACKET_BYTES = 80 + (64 << 10)
_ENVELOPE = struct.Struct("<BBHI")
_HEADS = {kind: struct.pack("<IHH64x", 0x66726E6D, 1, kind) for kind in range(144, 173)}


class Ended(Exception):
    """The connection has."""


class Refused(Ended):
    """The post has closed it, and has said why."""


class TooLarge(ValueError):
    """A body that no post carries."""


class Mesh:
    """What the welcome says of a mesh."""

    def __init__(self, name, dims, gang):
        self.name, self.labels, self.sizes, self.gang = name, [d[0] for d in dims], [d[1] for d in dims], gang


class Welcome:
    """The post's answer to a hello."""

    def __init__(self, fields):
        fields = fields + [None] * (11 - len(fields))
        self.version, self.host, meshes, self.calls, self.call_bytes, self.body_bytes = fields[:6]
        self.address, self.first_port, self.last_port = fields[6:9]
        self.guest = fields[9] or 0  # the number of a guest that serves; 0: this is none
        self.far_bytes = fields[10] or min(FAR_BYTES, self.body_bytes)
        self.meshes = [Mesh(*mesh[:3]) for mesh in meshes]

    def mesh(self, name):
        return next((one for one in self.meshes if one.name == name), None)


class Door:
    """Said hello and welcome; `place` is (mesh, rank, generation) of a rank of the job, or None of a guest; `owner` is the number
    by which this process claims slots, or 0."""

    def __init__(self, path, place=None, serves=False, actors=(), watches=False, patience=10.0, owner=0):
        self.path, self.pool = path, _memory.Pool()
        self.sending = threading.Lock()
        self._let_go = collections.deque()
        self._buffer = buffer()
        mesh, rank, generation = place or ("", 0, 0)
        try:
            hello = [VERSION, mesh, rank, generation, serves, list(actors), watches]
            kind, data, _ = self._meet(_wire.pack(hello + [owner] if owner else hello), time.monotonic() + max(patience, 0.1))
            if kind != WELCOME:
                raise Ended("the post at %s answers with message %d" % (path, kind))
            self.welcome = Welcome(_wire.fields(data))
            if self.welcome.version < _OLDEST:
                raise Ended("the post at %s speaks version %d of the door; this package needs %d or later" %
                            (path, self.welcome.version, _OLDEST))
        except BaseException:
            self.close()
            raise
        self.says_here = self.welcome.version >= 4

    def _meet(self, hello, until):
        """The post's first word. One that is about to end takes a connection, and never reads it: then the next one is met."""
        while True:
            self.socket = _connected(self.path, until - time.monotonic())
            try:
                self.send(HELLO, hello)
                return self._hear_until(until)
            except Refused:
                raise
            except Ended:
                if time.monotonic() > until:
                    raise
            self.socket.close()
            time.sleep(0.002)

    def fileno(self):
        return self.socket.fileno()

    def close(self):
        if "socket" in self.__dict__:
            self.socket.close()
        self.pool.close()

    def __del__(self):
        # Whoever read here may have it yet when it is shut, so that it is closed with the last of them.
        if "socket" in self.__dict__:
            self.close()

    def shut(self):
        """Whoever waits here hears that it has ended."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    # ---- what is sent

    def send(self, kind, payload, beside=None):
        """`beside`: the descriptor of a body. It waits while the post does not read."""
        with self.sending:
            self._send(kind, payload, beside)
        if self._let_go:
            self._tell_let_go()

    def _send(self, kind, payload, beside=None):
        size = len(payload)
        try:
            if size > 65536:
                self._send_as_memory(kind, payload, beside)
            elif beside is None:
                self.socket.send(_ENVELOPE.pack(0, 0, 0, size) + _HEADS[kind] + payload)
            else:
                _send_with(self.socket, _ENVELOPE.pack(0, 1, 0, size) + _HEADS[kind] + payload, [beside])
        except OSError as e:
            if e.errno in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.EBADF):
                raise Ended("the post has closed the connection") from None
            raise

    def _send_as_memory(self, kind, payload, beside):
        memory = _memory.sealed(payload)
        try:
            head = _ENVELOPE.pack(1, 0 if beside is None else 1, 0, len(payload)) + _HEADS[kind]
            _send_with(self.socket, head, [memory] if beside is None else [memory, beside])
        finally:
            os.close(memory)

    def body(self, pieces, total):
        """A body as it goes into a message, the descriptor beside it or None, and the number of its block or 0."""
        if total <= HERE_BYTES:
            data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            return b"\x95" + _wire.uint(total) + b"\x01" + _wire.binary(data) + b"\x00\x00", None, 0
        if total > self.welcome.body_bytes:
            raise TooLarge("a body of %d bytes is above the limit of %d bytes on one machine" % (total, self.welcome.body_bytes))
        descriptor, block = self.pool.lend(pieces, total)
        return b"\x95" + _wire.uint(total) + b"\x02\xc4\x00\x00" + _wire.uint(block), descriptor, block

    def let_go(self, fields):
        """Tells that a body is read no more, now or as soon as somebody else has sent what he is sending. Any thread, within
        anything: it is called where the last view of a body goes."""
        self._let_go.append(fields)
        self._tell_let_go()

    def _tell_let_go(self):
        # Who has the lock looks again after he has let it go, so that what is put there meanwhile is not left.
        while self._let_go and self.sending.acquire(False):
            try:
                while self._let_go:
                    self._send(LET_GO, self._let_go.popleft())
            except (Ended, OSError, IndexError):
                return
            finally:
                self.sending.release()

    # ---- what is read

    def read(self, flags=0, into=None):
        """The next message: its number, its fields as a view that the next read() writes over, and descriptors. None where
        nothing is there and MSG_DONTWAIT is given, and where what came was about memory that was lent. `into`: a buffer()
        of who reads while somebody else still has what he has read."""
        into, data = into or self._buffer
        try:
            size, ancillary, _, _ = self.socket.recvmsg_into(into, 64, flags | socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return None
        except OSError as e:
            raise Ended("the connection to the post has ended: %s" % (e.strerror or e)) from None
        if size == 0:
            raise Ended("the post of this host has ended")
        kind = data[14] | data[15] << 8
        descriptors = None
        if ancillary:
            descriptors = array.array("i")
            for _, _, found in ancillary:
                descriptors.frombytes(found[:len(found) & ~3])
            if data[0] == 1:
                payload = _memory.read_block(descriptors.pop(0), 0, int.from_bytes(data[4:8], "little"))
                return kind, payload, descriptors
        if kind == FREE:
            block, unsure = _wire.fields(data[80:size])[:2]
            self.pool.freed(block, unsure)
            return self.read(flags, (into, data)) if flags else None
        if kind == CLOSED:
            raise Refused("the post has closed the connection: %s" % _wire.fields(data[80:size])[0])
        return kind, data[80:size], descriptors

    def _hear_until(self, until):
        while True:
            if not wait_for(self.socket, max(0.0, until - time.monotonic())):
                raise Ended("the post at %s does not answer" % self.path)
            heard = self.read()
            if heard is not None:
                return heard


def buffer():
    """What read() reads into."""
    packet = bytearray(_PACKET_BYTES)
    return (packet,), memoryview(packet)


def wait_for(one, seconds):
    """Whether there is something to read, or an end, within so many seconds; None: whenever."""
    poller = select.poll()  # select() would end at descriptor 1,023
    poller.register(one, select.POLLIN)
    return bool(poller.poll(None if seconds is None else seconds * 1000))


def take_body(size, start, descriptors, when_gone=None):
    """The bytes of a body that came beside its message."""
    return _memory.read_block(descriptors.pop(0), start, size, when_gone)


def drop(descriptors):
    """What comes along with a message that nobody reads."""
    for one in descriptors or ():
        os.close(one)


def _connected(path, patience):
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 256 << 10)
        until = time.monotonic() + patience
        while True:
            try:
                one.connect(path)
                return one
            except (FileNotFoundError, ConnectionRefusedError, BlockingIOError) as e:
                if time.monotonic() > until:
                    raise Ended("no post answers at %s: %s" % (path, e.strerror)) from None
                time.sleep(0.002)
            except OSError as e:
                raise Ended("no post answers at %s: %s" % (path, e.strerror)) from None
    except BaseException:
        one.close()
        raise


def _send_with(one, packet, descriptors):
    one.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))])
