"""Ports: values that are sent to one receiver, from anywhere.

Thread: any.
"""

import collections
import threading

from . import _bodies
from ._future import Thing, future, local
from ._process import process


class Port:
    """Sends to its receiver, in order; it may be passed on to anywhere."""

    def __init__(self, where, number):
        self._where, self._number = where, number
        self.return_undeliverable = True

    def send(self, obj):
        """Sends a value; nobody waits."""
        self._send(obj, None)

    def exception(self, obj):
        """The receiver's get() raises it."""
        self._fail(obj, None)

    def _send(self, value, rank):
        self._say(value, None, rank)

    def _fail(self, error, rank):
        self._say(None, error, rank)

    def _say(self, value, error, rank):
        server = process.server
        if server is not None and server.where == self._where:
            # A copy, as of what goes to another process.
            pieces, _ = _bodies.call((value, error), {}, _bodies.view(((), (), (), 0), 0), None, [])
            (value, error), _ = _bodies.copy(pieces)
            arrived = server.ports.get(self._number)
            if arrived is not None:
                arrived(value, error, rank)
            return
        from ._mesh import built_in_of
        built_in_of(self._where, "port").broadcast(self._number, value, error, rank)

    def __reduce__(self):
        return Port, (self._where, self._number)

    def __repr__(self):
        return "Port(%d of %r)" % (self._number, self._where)


class Responder(Port):
    """The port that an endpoint with explicit_response_port is given: it answers that one call, whenever."""

    def __init__(self, server, one):
        self._server, self._one, self._lock = server, one, threading.Lock()
        self.return_undeliverable = True

    def _take(self):
        with self._lock:
            one, self._one = self._one, None
        return one

    def _send(self, value, _):
        one = self._take()
        if one is not None:
            one.reply(value)

    def _fail(self, error, _):
        one = self._take()
        if one is not None:
            one.fail(error)

    def __reduce__(self):
        number = next(process.numbers)

        def arrived(value, error, rank):
            self._server.ports.pop(number, None)
            if error is not None:
                self._fail(error, rank)
            else:
                self._send(value, rank)

        self._server.ports[number] = arrived
        return Port, (self._server.where, number)

    def __repr__(self):
        return "Port(an answer)"


class PortReceiver:
    """What is sent to a port: recv() gives the future of the next value."""

    def __init__(self, number, once=False):
        self._number, self._once = number, once
        self._lock = threading.Lock()
        self._come, self._asked = collections.deque(), collections.deque()
        self._is_ranked = False

    def _arrived(self, value, error, rank):
        with self._lock:
            if self._asked:
                one = self._asked.popleft()
            else:
                self._come.append((value, error, rank))
                return
        local.complete(one, (value, error, rank))

    def recv(self):
        one = Thing(local)
        with self._lock:
            if self._come:
                one.value, one.done = self._come.popleft(), True
            else:
                self._asked.append(one)
        return future(one, self._of)

    def _of(self, one):
        value, error, rank = one.value
        if error is not None:
            raise error
        if not self._is_ranked:
            return value
        if rank is None:
            raise ValueError("a ranked port receives answers of calls (send(..., port=)); what came was sent by hand, and has no rank")
        return rank, value

    def ranked(self):
        """Gives (rank, value)."""
        one = RankedPortReceiver(self._number, self._once)
        one._lock, one._come, one._asked = self._lock, self._come, self._asked
        one._is_ranked = True
        return one


class RankedPortReceiver(PortReceiver):
    pass


class Channel:
    @staticmethod
    def open(once=False):
        """(port, receiver)"""
        server = process.serving()
        number = next(process.numbers)
        receiver = PortReceiver(number, once)
        server.ports[number] = receiver._arrived
        return Port(server.where, number), receiver

    @staticmethod
    def open_ranked(once=False):
        port, receiver = Channel.open(once)
        return port, receiver.ranked()

    def __class_getitem__(cls, _):
        return cls
