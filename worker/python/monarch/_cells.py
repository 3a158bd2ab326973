"""Cell: an actor of this process, and how its messages run: one at a time and in order, but for concurrent endpoints.

What a cell is given is a Delivery, or a function without arguments that may return something to await. Where it runs its
runner says: on the thread that reads the door (the first one of a process), on a thread of its own, or on a loop.

Thread: put() any; all else where the runner runs.
"""

import collections
import sys
import threading

from . import _bodies, _context
from ._context import Context, Instance
from ._delivery import Delivery
from ._errors import SupervisionError

CLEANUP_SECONDS = 3.0
_IS_COROUTINE = 0x80  # inspect.CO_COROUTINE


def endpoints_of(Class):
    """The endpoints of a class by name."""
    from ._endpoints import EndpointProperty
    found = {}
    for name in dir(Class):
        one = getattr(Class, name, None)
        if isinstance(one, EndpointProperty):
            found[name] = one
    return found


def is_async(method):
    return bool(getattr(getattr(method, "__code__", None), "co_flags", 0) & _IS_COROUTINE)


class Cell:
    def __init__(self, server, wire_name, Class, rank, creator=None, owner=None):
        self.server, self.wire_name, self.Class, self.owner = server, wire_name, Class, owner
        self.name = wire_name.partition("#")[0]
        self.methods = endpoints_of(Class)
        self.wants_loop = any(is_async(one._method) for one in self.methods.values()) or not self.methods and any(
            is_async(getattr(Class, name, None)) for name in ("__cleanup__", "__supervise__"))
        class_name = "%s.%s" % (Class.__module__, Class.__qualname__)
        self.instance = Instance(self.name, class_name, rank, server.where, wire_name, creator)
        self.instance._cell = self
        self.own_context = Context(self.instance, rank)
        self.obj = self.failed = None
        self.is_over = False
        self.delivery = 0  # that it runs
        self.children = []  # what it has claimed and spawned: it ends with it
        self.runner = None

    # ---- messages

    def construct(self, args, kwargs):
        """Makes the object; raises what its constructor does, and has failed then."""
        _context.enter(self.own_context)
        try:
            self.obj = self.Class(*args, **kwargs)
        except BaseException as e:
            self.fail(_traceback(e), e)
            raise

    def do(self, one):
        """Runs a delivery to its end, or returns what is to be awaited."""
        method = self._begin(one)
        if method is None:
            return None
        try:
            args, kwargs = self._arguments(one)
            if one.port is not None:
                args = args[1:]
            if method._port:
                args = (one.port or self.server.responder(one),) + tuple(args)
            self.delivery = one.number
            value = method._method(self.obj, *args, **kwargs)
            # The memory that they lie in is its lender's again before he hears the answer.
            del args, kwargs
            if value is not None and hasattr(value, "__await__"):
                return self._await(one, method, value)
            if not method._port:
                self._answer(one, value)
        except Exception as e:
            self._failed(one, method, e)
        finally:
            self.delivery = 0
        return None

    async def _await(self, one, method, value):
        try:
            value = await value
            if not method._port:
                self._answer(one, value)
        except Exception as e:
            self._failed(one, method, e)

    def _answer(self, one, value):
        if one.port is not None:
            one.port._send(value, one.rank)
            value = None
        one.reply(value)

    def _begin(self, one):
        """The method that a delivery is for, or None where it is answered already."""
        if not self.server.begins(one):
            return None
        if self.failed is not None or self.is_over:
            one.fail(SupervisionError(self.why_not()))
            return None
        method = self.methods.get(one.endpoint)
        if method is not None:
            return method
        plain = getattr(self.Class, one.endpoint, None)
        if callable(plain) and not one.endpoint.startswith("__"):
            from ._endpoints import EndpointProperty
            return EndpointProperty(plain, port=bool(_bodies.flags_of(one.body) & _bodies.PORT))  # as_endpoint() of the caller
        one.refuse("actor %s (%s) has no endpoint %s" % (self.name, self.Class.__qualname__, one.endpoint))
        return None

    def _arguments(self, one):
        args, kwargs, view, flags = _bodies.arguments(one)
        one.is_quiet = bool(flags & _bodies.QUIET)  # nobody hears of an error
        now = self.own_context if view is None else self.server.context_of(self, view)
        _context.enter(now)
        if flags & _bodies.TO_PORT:
            one.port, one.rank = args[0], now.message_rank.rank
        return args, kwargs

    def _failed(self, one, method, e):
        if one.port is not None:
            one.port._fail(e, one.rank)
        one.fail(e)
        # An exception that nobody hears of is the actor's end.
        if one.is_quiet or method._port:
            self.fail("endpoint %s: %s" % (one.endpoint, _traceback(e)), e)

    # ---- its end

    def why_not(self):
        return "actor %s has failed: %s" % (self.name, self.failed) if self.failed is not None else "actor %s was stopped" % self.name

    def fail(self, why, error=None):
        """It takes nothing more, and its owner is told."""
        if self.failed is not None or self.is_over:
            return
        self.failed = why
        from . import _owner
        _owner.tell_owner(self, why)
        _owner.let_go(self)

    def cleanup(self, error=None):
        """Its last word; awaitable where that is."""
        if self.is_over:
            return None
        self.is_over = True
        from . import _owner
        _owner.let_go(self)
        last = getattr(self.obj, "__cleanup__", None)
        if last is None:
            return None
        _context.enter(self.own_context)
        return _guarded(last, error)

    async def cleanup_on_loop(self):
        if isinstance(self.runner, LoopRunner):
            self.runner.cancel_tasks()
        rest = self.cleanup()
        if rest is not None:
            await rest

    def stop_later(self, reason=None):
        self.runner.put(self.cleanup)

    def hear(self, failure):
        """supervise() it: on a loop also while an endpoint waits, else behind the present message."""
        put = getattr(self.runner, "put_beside", self.runner.put)
        put(lambda: self.supervise(failure))

    def supervise(self, failure):
        """Tells the actor of a failure of what it owns; what it does not handle fails it, too."""
        if self.failed is not None or self.is_over:
            return None
        handler = getattr(self.obj, "__supervise__", None)
        if handler is None:
            return self.fail("unhandled: %s" % failure)
        _context.enter(self.own_context)
        try:
            handled = handler(failure)
        except Exception as e:
            return self.fail("__supervise__ of %s: %s" % (failure, _traceback(e)), e)
        if hasattr(handled, "__await__"):
            return self._await_supervise(failure, handled)
        return None if handled else self.fail("unhandled: %s" % failure)

    async def _await_supervise(self, failure, handled):
        try:
            handled = await handled
        except Exception as e:
            return self.fail("__supervise__ of %s: %s" % (failure, _traceback(e)), e)
        return None if handled else self.fail("unhandled: %s" % failure)


def _guarded(last, error):
    """__cleanup__, whose errors are told and stop nobody."""
    try:
        done = last(error)
    except Exception as e:
        sys.stderr.write("monarch: __cleanup__: %s\n" % _traceback(e))
        return None
    return _guarded_await(done) if hasattr(done, "__await__") else None


async def _guarded_await(done):
    import asyncio
    try:
        await asyncio.wait_for(done, CLEANUP_SECONDS)
    except Exception as e:
        sys.stderr.write("monarch: __cleanup__: %s\n" % _traceback(e))


def _traceback(e):
    import traceback
    return "".join(traceback.format_exception(type(e), e, e.__traceback__)).rstrip()[-16000:]


class ThreadRunner:
    """A thread for a cell without coroutines."""

    def __init__(self, cell):
        import queue
        self._cell, self._queue = cell, queue.SimpleQueue()
        threading.Thread(target=self._run, name="monarch %s" % cell.name, daemon=True).start()

    def put(self, item):
        self._queue.put(item)

    def _run(self):
        while True:
            run_item(self._cell, self._queue.get())


def run_item(cell, item):
    """On a thread without a loop; what is to be awaited gets one."""
    rest = cell.do(item) if type(item) is Delivery else item()
    if rest is not None and hasattr(rest, "__await__"):
        import asyncio
        asyncio.run(_awaited(rest))


async def _awaited(one):
    return await one


class LoopRunner:
    """A cell on a loop: start() by who runs it, or a thread of its own."""

    def __init__(self, cell):
        self._cell, self._items, self._loop, self._waiter = cell, collections.deque(), None, None
        self._ident, self._is_over = None, False
        self._tasks = set()

    def put(self, item):
        self._items.append(item)
        loop = self._loop
        if loop is None:
            return
        if threading.get_ident() == self._ident:
            self._wake()
        else:
            try:
                loop.call_soon_threadsafe(self._wake)
            except RuntimeError:
                pass  # the loop has ended with its process

    def put_beside(self, run):
        """What does not wait for the present message."""
        loop = self._loop
        if loop is None:
            return self.put(run)
        try:
            loop.call_soon_threadsafe(self._run_beside, run)
        except RuntimeError:
            pass  # the loop has ended with its process
        return None

    def _run_beside(self, run):
        rest = run()
        if rest is not None and hasattr(rest, "__await__"):
            self._keep(self._loop.create_task(rest))

    def _keep(self, task):
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _wake(self):
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def on_own_thread(self):
        import asyncio
        threading.Thread(target=lambda: asyncio.run(self.turns()), name="monarch %s" % self._cell.name, daemon=True).start()
        return self

    async def turns(self):
        import asyncio
        self._ident = threading.get_ident()
        self._loop = loop = asyncio.get_running_loop()
        while not self._is_over:
            while self._items and not self._is_over:
                await self._one(loop, self._items.popleft())
            self._waiter = loop.create_future()
            if not self._items and not self._is_over:
                await self._waiter

    def stop(self):
        """turns() ends behind the present message."""
        self._is_over = True
        self._wake()

    async def _one(self, loop, item):
        import asyncio
        if type(item) is not Delivery:
            rest = item()
        else:
            method = self._cell.methods.get(item.endpoint)
            rest = self._cell.do(item)
            if rest is not None and method is not None and method._concurrent:
                self._keep(loop.create_task(rest))
                await asyncio.sleep(0)  # it begins before the next one does
                return
        if rest is not None and hasattr(rest, "__await__"):
            await rest

    def cancel_tasks(self):
        for task in list(self._tasks):
            task.cancel()
