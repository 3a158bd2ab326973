"""Server: what is called in this process. It reads the door, hands each delivery to its actor, and answers.

Who is idle reads. The thread that reads runs the first actor of the process itself, so that a short endpoint costs no
hand-over; where one runs for more than a few milliseconds a second thread reads meanwhile, so that other actors,
concurrent endpoints and what is taken back do not wait for it.

Thread: run() one; the rest any.
"""

import os
import threading

from . import _bodies, _context, _wire
from . import _door as d
from ._cells import CLEANUP_SECONDS, Cell, LoopRunner, ThreadRunner, run_item
from ._delivery import Delivery, Kept
from ._errors import SupervisionError
from ._process import Where, process
from ._reading import Relief
from ._views import point_in

READY = "monarch.ready"  # the endpoint by which C++ waits for an actor
BUILT_IN = "monarch"  # the actor that each Python process has
ANY_ACTOR = [["*", "*", []]]  # of a process whose actors come and go
_TARGETS = 4096  # names of endpoints that are kept decoded
_POST_PATIENCE = 30.0
_EARLY_SECONDS = 5.0  # for which a call of an actor waits that is not made yet: another host's word of it may be slower


class Server:
    def __init__(self, door, where, place=None, told=(), watches=False):
        self.door, self.where, self.place, self.watches = door, where, place, watches
        self._told = told
        self.thread = None  # beside a program: that reads
        self.cells = {}
        self.ports = {}  # by number: what is run with (rank, value, exception) that came there
        self._targets, self._views = {}, {}
        self._waiting, self._taken_back = set(), set()  # deliveries that have not begun
        self._early = {}  # by the name of an actor that is not made yet
        self._main = None  # the cell that runs where the door is read
        self._mailbox = []  # what came for it while another thread read
        self._ident = None
        self.loop = None  # of that cell, where it has coroutines
        self._relief = Relief(self)
        self._over = self._ending = self._wakes_up = None
        self._lock, self._coming, self._ended = threading.Lock(), threading.Lock(), []

    # ---- reading

    def begin(self):
        """This thread will read."""
        self._ident = threading.get_ident()

    def run(self):
        """Until somebody says end(); a post that ends is started again, and is come to again."""
        self.begin()
        while True:
            door = self.door
            try:
                if self._main is None or not isinstance(self._main.runner, LoopRunner):
                    self._run_on_thread(door)
                import asyncio
                asyncio.run(self._run_on_loop())
            except d.Refused:
                raise
            except d.Ended:
                self.come_again(door)

    def _run_on_thread(self, door):
        read, take, mailbox = door.read, self.take, self._mailbox
        while True:
            heard = read()
            if heard is not None:
                take(*heard)
                if mailbox:
                    self._run_mailbox()
                if self._ending is not None:
                    raise self._ending
                if self._main is not None and isinstance(self._main.runner, LoopRunner):
                    return

    async def _run_on_loop(self):
        import asyncio
        self.loop = loop = asyncio.get_running_loop()
        self._wakes_up = over = loop.create_future()

        def ready():
            try:
                self._relief.read_what_is_there()
            except d.Ended as e:
                if not over.done():
                    over.set_exception(e)

        turns = loop.create_task(self._main.runner.turns())
        try:
            while True:
                door = self.door
                loop.add_reader(door.fileno(), ready)
                ready()
                try:
                    await over
                    break
                except d.Ended as e:
                    if self._over is not None or isinstance(e, d.Refused):
                        self._ending = self._ending or d.Refused(self._over or str(e))
                        break
                    await loop.run_in_executor(None, self.come_again, door)
                    self._wakes_up = over = loop.create_future()
                finally:
                    loop.remove_reader(door.fileno())
            self._main.runner.stop()
            await turns
            await self._main.cleanup_on_loop()
        finally:
            turns.cancel()
        raise self._ending

    def come_again(self, old):
        """That connection has ended: to the next post of this host. What came by the old one is answered no more: nobody waits
        for it, and what has not begun does not run."""
        with self._coming:
            if self._over is not None:
                raise d.Refused(self._over)
            if self.door is not old:
                return
            self._waiting.clear()
            self._taken_back.clear()
            self.door = d.Door(old.path, self.place, serves=True, actors=self._told, watches=self.watches, patience=_POST_PATIENCE,
                               owner=process.owner())
            self._ended.append(old)  # its descriptor is some loop's yet
            if self.place is None:
                self.where = Where(d.GUESTS, self.door.welcome.guest, self.door.welcome.host)

    def end_soon(self, ending):
        """From a signal's handler, on the thread that reads: the present message ends, and run() raises `ending`."""
        self._ending = ending
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self._end_loop)
        elif not self._relief.is_busy():
            raise ending

    def _end_loop(self):
        if not self._wakes_up.done():
            self._wakes_up.set_result(None)

    def is_over(self):
        return self._over is not None

    def runs_items_of(self, cell):
        """Whether what is put to a cell runs without anything that comes by the door."""
        return not isinstance(cell.runner, _MainRunner) or threading.get_ident() == self._ident

    def take(self, kind, data, beside):
        """A message of the connection, on the thread that has read it."""
        if kind == d.DELIVER:
            self._deliver(self.door, data, beside)
        elif kind == d.TAKE_BACK:
            number = _wire.fields(data)[0]
            if number in self._waiting:
                self._taken_back.add(number)
        elif kind == d.FAILURE:
            from . import _owner
            _owner.heard_failure(_wire.fields(data)[0], self.door.welcome)
        elif beside:
            d.drop(beside)

    def _deliver(self, door, data, beside):
        """By hand: the fields of a delivery up to the target's end say where it goes."""
        number, at = _wire.number(data, 1)
        end = at + 1
        for _ in range(3):
            tag = data[end]
            end = end + 1 + (tag & 31) if 0xA0 <= tag < 0xC0 else _wire.span(data, end)[1]
        key = bytes(data[at:end])
        target = self._targets.get(key)
        if target is None:
            if len(self._targets) >= _TARGETS:
                self._targets.clear()
            target = self._targets[key] = tuple(_wire.unpack(key)[0][:2])
        sender, at = self._sender(data, end)
        size, at = _wire.number(data, at + 1)
        way = data[at]
        begin, stop = _wire.span(data, at + 1)
        start, at = _wire.number(data, stop)
        block, at = _wire.number(data, at)
        here = door.says_here and data[at] == 0xC3
        kept = None
        if way == 2:
            kept = Kept(door, number) if block else None
            body = d.take_body(size, start, beside, kept.gone if kept else None)
        else:
            body = data[begin:stop]
            if _bodies.has_buffers(body):
                body, way = memoryview(bytearray(body)), 2  # of what is read there something may be kept
        one = Delivery(door, number, target[0], target[1], body, here, kept, sender)
        one.is_in_packet = way != 2
        del body
        cell = self.cells.get(target[0])
        if cell is not None and target[1] == READY:
            one.body = None
            one.reply(None)
        elif cell is not None:
            self._give(cell, one)
        elif target[0] == BUILT_IN:
            self._built_in(one)
        else:
            self._wait_for_cell(one)

    def _sender(self, data, begin):
        """Who calls, of [mesh, [mesh number, rank], generation]: as a peer of monarch._values, or None of a guest."""
        name, at = _wire.span(data, begin + 1)
        if name == at:
            return None, at + 4 if data[at + 1:at + 4] == b"\0\0\0" else _wire.unpack(data, begin)[1]
        key = bytes(data[name:at])
        _, at = _wire.number(data, at + 1)
        rank, at = _wire.number(data, at)
        _, at = _wire.number(data, at)
        return (key, rank), at

    def _give(self, cell, one):
        if cell is self._main and threading.get_ident() == self._ident and type(cell.runner) is not LoopRunner:
            # Its bytes lie in the connection's buffer: who reads meanwhile has one of his own.
            self._relief.begin()
            cell.do(one)
            self._relief.end()
            return
        if one.is_in_packet:
            one.body, one.is_in_packet = bytes(one.body), False
        self._waiting.add(one.number)
        if cell is self._main and type(cell.runner) is not LoopRunner:
            self._mailbox.append(one)
        else:
            cell.runner.put(one)

    def _run_mailbox(self):
        while self._mailbox:
            item = self._mailbox.pop(0)
            self._relief.begin()
            run_item(self._main, item)
            self._relief.end()

    def begins(self, one):
        """False: it was taken back, and is answered as that; or its connection has ended."""
        if one.door is not self.door:
            return False
        if one.number in self._waiting:
            self._waiting.discard(one.number)
            if one.number in self._taken_back:
                self._taken_back.discard(one.number)
                one.say(d.CANCELLED, "", "it was taken back before it began")
                return False
        return True

    def _wait_for_cell(self, one):
        """A handle may be faster than the word by which its actor is made."""
        if one.is_in_packet:
            one.body, one.is_in_packet = bytes(one.body), False
        with self._lock:
            waiting = self._early.setdefault(one.actor, [])
            waiting.append(one)
            if len(waiting) > 1:
                return
        timer = threading.Timer(_EARLY_SECONDS, self._give_up_early, (one.actor,))
        timer.daemon = True
        timer.start()

    def _give_up_early(self, name):
        with self._lock:
            waiting = self._early.pop(name, ())
        for one in waiting:
            one.fail(SupervisionError("%s has no actor %s (any more)" % (self.where, name)))

    # ---- the built-in actor

    def _built_in(self, one):
        from . import _builtin
        is_first = threading.get_ident() == self._ident and self.loop is None and one.endpoint not in _builtin.BEFORE_ANYTHING
        if is_first:
            self._relief.begin()
        try:
            _builtin.run(self, one)
        except Exception as e:
            one.fail(e)
        finally:
            if is_first:
                self._relief.end()

    def add_cell(self, wire_name, Class, rank, creator=None, owner=None):
        """A cell with a runner: the first one runs where the door is read."""
        cell = Cell(self, wire_name, Class, rank, creator, owner)
        is_first = self._main is None and (self._ident is None or threading.get_ident() == self._ident)
        if cell.wants_loop:
            cell.runner = LoopRunner(cell) if is_first else LoopRunner(cell).on_own_thread()
        else:
            cell.runner = _MainRunner(self) if is_first else ThreadRunner(cell)
        if is_first:
            self._main = cell
        self.cells[wire_name] = cell
        return cell

    def release_early(self, cell):
        with self._lock:
            waiting = self._early.pop(cell.wire_name, ())
        for one in waiting:
            self._waiting.add(one.number)
            cell.runner.put(one)

    def context_of(self, cell, view):
        """Of a message: the place of this process in the slice that was called."""
        key = (cell.wire_name, view)
        found = self._views.get(key)
        if found is None:
            if len(self._views) >= _TARGETS:
                self._views.clear()
            found = self._views[key] = _context.Context(cell.instance, point_in(_bodies.view_of(view), self.where.rank))
        return found

    def responder(self, one):
        from ._ports import Responder
        return Responder(self, one)

    # ---- the end

    def cleanup(self):
        """Each actor's last word, within its time."""
        waits = []
        for cell in list(self.cells.values()):
            if cell is self._main:
                run_item(cell, cell.cleanup)
                continue
            done = threading.Event()
            cell.runner.put(lambda cell=cell, done=done: _last(cell, done))
            waits.append(done)
        for done in waits:
            done.wait(CLEANUP_SECONDS)

    def end(self, why):
        """From any thread: run() ends, and what it runs has its last word first."""
        self._over = why
        self.door.shut()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join(CLEANUP_SECONDS + 1)

    def forked(self):
        os.close(self.door.socket.detach())


class _MainRunner:
    """The first cell of a process, where that has no coroutines: it runs where the door is read."""

    def __init__(self, server):
        self._server = server

    def put(self, item):
        self._server._mailbox.append(item)


def _last(cell, done):
    rest = cell.cleanup()
    if rest is None:
        return done.set()
    return _last_awaited(rest, done)


async def _last_awaited(rest, done):
    try:
        await rest
    finally:
        done.set()


def beside_a_program(path, place):
    """Serves what is called in a process that has a program of its own, in a thread."""
    if place is None:
        door = d.Door(path, serves=True, actors=ANY_ACTOR, watches=True)
        if not door.welcome.guest:
            door.close()
            raise d.Ended("the post at %s speaks version %d of the door: guests are not called there" % (path, door.welcome.version))
        where = Where(d.GUESTS, door.welcome.guest, door.welcome.host)
    else:
        door = d.Door(path, place, serves=True, actors=ANY_ACTOR, watches=True)
        where = Where(place[0], place[1])
    server = Server(door, where, place, ANY_ACTOR, True)

    def run():
        try:
            server.run()
        except d.Ended:
            pass
        server.cleanup()

    server.thread = threading.Thread(target=run, name="monarch door", daemon=True)
    server.thread.start()
    return server


def watch_as(place):
    """A connection that hears of failures, for a process whose serving connection does not."""
    return d.Door(process.path(), place, watches=True, owner=process.owner())
