"""Caller: the connection by which a process calls, and what is under way by it.

Who waits reads: the thread that waits for an answer reads the socket itself, if no other does, and sets what it finds for
the others. So no second thread stands between a call and its answer. `await` has the running loop read when something is
there. Where nobody waits (broadcasts), who sends reads what has come, now and then.

Thread: any.
"""

import functools
import itertools
import os
import threading
import time

from . import _door as d
from . import _wire
from ._busy import Busy
from ._context import running_cell
from ._wishes import Wishes

_QUIET_READ = 64  # after so many broadcasts what has come is read: the post keeps no more than 256 Ki packets
_POST_PATIENCE = 5.0  # one that has ended is started again within a second
_RING_SECONDS = 1.0  # after which a wait of an actor is told to the post


class Call:
    """What was called, and what has come of it: by rank (VALUE, bytes, here), or (kind, type, text, traceback, body, here)."""

    __slots__ = ("waits", "id", "got", "done", "refused", "ring", "observers", "each", "ranks", "by", "sent", "asked", "left",
                 "is_cancelled", "lost")

    def __init__(self, caller, ranks):
        self.waits, self.ranks = caller, ranks
        self.got, self.done, self.refused, self.ring = {}, False, "", ""
        self.id, self.observers, self.each, self.by = 0, None, None, None
        self.sent, self.lost = 0.0, None  # when, where somebody asks; who hears of ranks that it has not come to
        self.asked, self.left, self.is_cancelled = None, 1, False  # what is asked again, and messages of which there is no end yet

    def cancel(self):
        if not self.done:
            self.waits.cancel(self)


class Caller:
    def __init__(self, path, place=None):
        self.path, self.place = path, place
        self._calls, self._ids = {}, itertools.count(1)
        self._reading, self._opening = threading.Lock(), threading.Lock()
        self._changed, self._waiting = threading.Condition(), 0
        self._loops = {}  # id of a loop that has the connection among its readers: (loop, the door)
        self._quiet = 0
        self._over = None  # why nothing can be called any more
        self.wishes, self._busy = Wishes(self), Busy(self)
        self.door = d.Door(path, place)

    # ---- calling

    def call(self, head, host, ranks, pieces, total, quiet=False, deadline=None, each=None, head_of=None):
        """`head`: the call's fields from the mesh to the target, packed; `head_of(rank)`: the same of one rank; `host`: that of a
        guest. `each(rank, got)` hears of each answer, with None for a rank of a call that was refused as it is; without it they
        are in the call."""
        door = self.door or self.open()
        fields, beside, block = door.body(pieces, total)
        call = Call(self, ranks)
        call.by, call.each = door, each
        call.asked = (head_of, b"".join((_wire.TRUE if quiet else _wire.FALSE, _wire.NIL if deadline is None else _wire.uint(deadline), fields,
                                         host if door.says_here else b"")), beside, block)
        if block:
            door.pool.hold(block)  # until all have answered: it may be asked again
        self._ask(call, head)
        if quiet:
            self._quiet += 1
            if block or self._quiet % _QUIET_READ == 0:
                self.read_what_is_there()
        return call

    def _ask(self, call, head):
        door = call.by
        call.id = number = next(self._ids)
        self._calls[number] = call
        _, tail, beside, block = call.asked
        try:
            door.send(d.CALL, (b"\x98" if door.says_here else b"\x97") + _wire.uint(number) + head + tail, beside)
        except d.Ended as e:
            door.pool.freed(block)
            self.ended(door, str(e))

    def ask_again(self, call, rank):
        """Of that rank, which was busy. False: its connection has ended."""
        door = self.door
        if call.by is not door:
            return False
        head_of, _, _, block = call.asked
        if block:
            door.pool.hold(block)
        self._ask(call, head_of(rank))
        return True

    def settle(self, call, rank, got):
        """That is its answer after all."""
        self._has(call, rank, got)
        self._end(call)
        self._wake()

    def cancel(self, call):
        call.is_cancelled = True
        try:
            call.by.send(d.CANCEL, b"\x91" + _wire.uint(call.id))
        except d.Ended as e:
            self.ended(call.by, str(e))

    def say(self, kind, fields):
        """A message that is no call."""
        (self.door or self.open()).send(kind, fields)

    @property
    def welcome(self):
        return (self.door or self.open()).welcome

    def open(self):
        """The connection, which is made anew where one has ended."""
        with self._opening:
            if self._over is not None:
                raise RuntimeError(self._over)
            is_new = False
            if self.door is None:
                self.door = d.Door(self.path, self.place, patience=_POST_PATIENCE, owner=self.wishes.owner)
                is_new = True
            door = self.door
        if is_new:
            self.wishes.say_again(door)
        return door

    def close(self, why):
        """Nothing is called any more: `why` is what is raised."""
        with self._opening:
            self._over = why
            door, self.door = self.door, None
        if door is not None:
            door.shut()
            self._end_calls(door, why)
        self.wishes.over(why)
        self._wake()

    def forked(self, why):
        """In a child: the connection is the parent's."""
        self._over = why
        door, self.door = self.door, None
        if door is not None:
            os.close(door.socket.detach())
        self._calls, self._reading, self._changed = {}, threading.Lock(), threading.Condition()
        self._opening, self._loops = threading.Lock(), {}
        self._busy.forked()

    # ---- waiting

    def wait(self, call, timeout=None, part=None):
        """Until the call is done, or that part of it; TimeoutError."""
        until = None if timeout is None else time.monotonic() + timeout
        waiter = running_cell() if timeout is None else None
        ask_at = time.monotonic() + _RING_SECONDS if waiter is not None and waiter.delivery and call.id else None
        on = part or call
        while not on.done:
            limit = until if ask_at is None else ask_at
            if self._reading.acquire(False):
                try:
                    self._read_until(call, on, limit)
                finally:
                    self._reading.release()
                    self._wake()
            else:
                self._wait_for_reader(on, limit)
            if on.done or limit is None or time.monotonic() < limit:
                continue
            if until is not None:
                raise TimeoutError("no answer within %g s" % timeout)
            ask_at = None  # an actor that waits for long: the post knows whether that can end
            self.say(d.WAIT, b"\x93" + _wire.uint(call.id) + _wire.text(waiter.wire_name) + _wire.uint(waiter.delivery))

    def _read_until(self, call, on, limit):
        while not on.done:
            door = self.door
            if door is None or door is not call.by:
                return call.waits.left(call)
            try:
                if limit is not None and not d.wait_for(door, max(0.0, limit - time.monotonic())):
                    return None
                heard = door.read()
                if heard is not None:
                    self._take(door, *heard)
            except d.Ended as e:
                self.ended(door, str(e), isinstance(e, d.Refused))

    def _wait_for_reader(self, on, limit):
        with self._changed:
            self._waiting += 1
            try:
                if not on.done and self._reading.locked():
                    self._changed.wait(None if limit is None else max(0.0, limit - time.monotonic()))
            finally:
                self._waiting -= 1

    def _wake(self):
        if self._waiting:
            with self._changed:
                self._changed.notify_all()

    def on_loop(self, call):
        """Waits in a coroutine: the running loop reads from now on, too."""
        import asyncio
        loop = asyncio.get_running_loop()
        me, waiter = threading.get_ident(), loop.create_future()

        def wake():
            if not waiter.done():
                waiter.set_result(None)

        def observe():
            if threading.get_ident() == me:
                return wake()
            try:
                loop.call_soon_threadsafe(wake)
            except RuntimeError:
                pass  # it was closed with calls under way: nobody waits there

        call.observers = (call.observers or []) + [observe]
        self.read_on_running_loop(call)
        if call.done:
            observe()
        yield from waiter

    def read_on_running_loop(self, call):
        import asyncio
        self._read_on(asyncio.get_running_loop(), call.by)
        self.read_what_is_there()

    def _read_on(self, loop, door):
        has = self._loops.get(id(loop))
        if has is not None and has[0] is loop and has[1] is door:
            return
        self._loops = {key: one for key, one in self._loops.items() if not one[0].is_closed()}
        if door is self.door:
            loop.add_reader(door.fileno(), self.read_what_is_there)
            self._loops[id(loop)] = (loop, door)

    def read_what_is_there(self):
        door = self.door
        if door is None or not self._reading.acquire(False):
            return
        try:
            while True:
                heard = door.read(d.socket.MSG_DONTWAIT)
                if heard is None:
                    return
                self._take(door, *heard)
        except d.Ended as e:
            self.ended(door, str(e), isinstance(e, d.Refused))
        finally:
            self._reading.release()
            self._wake()

    # ---- what has come

    def _take(self, door, kind, data, beside):
        if kind == d.ANSWERS:
            count, at = _wire.count(data, 1)
            for _ in range(count):
                at = self._answer(door, data, at, None, True)
        elif kind == d.ANSWER:
            self._answer(door, data, 0, beside, False)
            beside = None
        elif kind == d.OVER:
            number, refused = _wire.fields(data)[:2]
            call = self._calls.pop(number, None)
            if call is not None:
                call.refused = refused
                self._end(call)
        elif kind == d.RING:
            number, ring = _wire.fields(data)[:2]
            call = self._calls.get(number)
            if ring and call is not None:
                call.ring = ring
                self.cancel(call)
        elif kind == d.GRANTED:
            self.wishes.answered(*_wire.fields(data)[:4])
            self._wake()
        d.drop(beside)

    def _answer(self, door, data, at, beside, in_list):
        """One answer that begins there; where it ends. A value is read by hand: that is most of what comes."""
        count = data[at] & 15
        number, at = _wire.number(data, at + 1)
        rank, at = _wire.number(data, at)
        if data[at + 1] == 0 and data[at + 2] == data[at + 3] == data[at + 4] == 0xA0:
            kind = d.VALUE
            _, at = _wire.number(data, at + 5)
            size, at = _wire.number(data, at + 1)
            way = data[at]
            begin, end = _wire.span(data, at + 1)
            start, at = _wire.number(data, end)
            block, at = _wire.number(data, at)
            at += 2 + data[at + 1]  # what is personal is of cards, and short
            body = bytes(data[begin:end]) if way == 1 else b""
        else:
            (kind, name, text, traceback, _, (size, way, body, start, block), *_), at = _wire.unpack(data, at)
        if way == 2:
            gone = functools.partial(door.let_go, b"\x93\x00" + _wire.uint(number) + _wire.uint(rank)) if block else None
            body = d.take_body(size, start, beside, gone)
        last = in_list and data[at] == 0xC3
        here = door.says_here and data[at + in_list] == 0xC3
        at += count - 3
        call = self._calls.get(number)
        if call is None:
            return at
        got = (kind, body, here) if kind == d.VALUE else (kind, name, text, traceback, body, here)
        if kind == d.BUSY and call.asked[0] is not None:
            call.left += 1
            self._busy.add(call, rank, got)
        else:
            self._has(call, rank, got)
        if last:
            self._calls.pop(number, None)
            self._end(call)
        return at

    def _has(self, call, rank, got):
        call.got[rank] = got
        if call.lost is not None and got[0] >= d.LOST:
            call.lost(rank)
        if call.each is not None:
            call.each(rank, got)

    def _end(self, call):
        """There is an end of one message of it."""
        call.left -= 1
        if call.left or call.done:
            return
        block = call.asked[3]
        if block:
            call.by.pool.freed(block)
        call.asked = None
        if call.refused and call.each is not None:
            for rank in call.ranks:
                call.each(rank, None)
        call.done = True
        if call.observers:
            for run in call.observers:
                run()
        self._wake()

    def ended(self, door, why, for_good=False):
        """A post that ends is started again: who calls next comes anew."""
        with self._opening:
            if self.door is door:
                self.door = None
        door.shut()
        for loop, of in list(self._loops.values()):
            if of is door:
                try:
                    loop.call_soon_threadsafe(_remove_reader, loop, door)
                except RuntimeError:
                    pass
        self._end_calls(door, why)
        if for_good:
            self.wishes.over(why)
        self.wishes.connection_ended()
        self._wake()

    def left(self, call):
        """The connection that it was called by has ended."""
        self._end_calls(call.by, "the post of this host has ended")

    def _end_calls(self, door, why):
        for number, call in list(self._calls.items()):
            if call.by is not door:
                continue
            self._calls.pop(number, None)
            for rank in call.ranks:
                if rank not in call.got:
                    self._has(call, rank, (d.GONE, "", "%s; it is unknown whether it has run" % why, "", b"", True))
            call.left = 1
            self._end(call)


def _remove_reader(loop, door):
    loop.remove_reader(door.fileno())  # which is open as long as this has the door
