"""Future: what a call, or whatever else is waited for, will give.

A future stands on something with `done`, and `waits`, which knows how to wait for it: wait(it, timeout) in a thread,
on_loop(it) in a coroutine. What it gives is computed by who asks for it first, in his thread.

Thread: any.
"""

import math
import sys
import threading
import time


class Future:
    __slots__ = ("_on", "_of", "_value", "_error", "__weakref__")

    def __init__(self, *_args, **_kwargs):
        raise RuntimeError("a Future is not made by hand: calls of endpoints give them")

    def get(self, timeout=None):
        """Waits; TimeoutError takes nothing away: it may be asked again."""
        on = self._on
        if not on.done:
            if timeout is not None and not (0 <= timeout < math.inf):
                raise ValueError("a timeout is a number of seconds from 0 on, or None: %r is none" % (timeout,))
            _warn_on_loop()
            on.waits.wait(on, timeout)
        return self._result()

    result = get

    def exception(self, timeout=None):
        """What get() would raise, or None."""
        if not self._on.done:
            self._on.waits.wait(self._on, timeout)
        try:
            self._result()
        except Exception as e:
            return e
        return None

    def done(self):
        return self._on.done

    def cancel(self):
        """What has not begun does not run; get() raises what became of the rest."""
        cancel = getattr(self._on, "cancel", None)
        if cancel is not None:
            cancel()

    def _result(self):
        of = self._of
        if of is not None:
            try:
                self._value = of(self._on)
            except Exception as e:
                self._error = e
            self._of = None
        if self._error is not None:
            raise self._error
        return self._value

    def __await__(self):
        on = self._on
        if not on.done:
            yield from on.waits.on_loop(on)
        return self._result()

    def as_asyncio(self):
        import asyncio
        return asyncio.ensure_future(_awaited(self))


async def _awaited(future):
    return await future


_new = Future.__new__


def future(on, of):
    """The future of `of(on)`, once `on` is done."""
    made = _new(Future)
    made._on, made._of, made._value, made._error = on, of, None, None
    return made


def _warn_on_loop():
    # Who has not imported asyncio runs no loop of it.
    events = sys.modules.get("asyncio.events")
    if events is not None and events._get_running_loop() is not None:
        import warnings
        warnings.warn("get() in a coroutine stops everything else of its loop: await the future instead", RuntimeWarning, stacklevel=3)


class Waits:
    """Things of this process that one thread completes and others wait for: what comes to a port, a piece of a stream."""

    def __init__(self):
        self._changed = threading.Condition()

    def wait(self, one, timeout=None):
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not one.done:
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError("nothing has come within %g s" % timeout)
                self._changed.wait(left)

    def complete(self, one, value):
        with self._changed:
            one.value, one.done = value, True
            observers, one.observers = one.observers, None
            self._changed.notify_all()
        for run in observers or ():
            run()

    def on_loop(self, one):
        import asyncio
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()

        def wake():
            if not waiter.done():
                waiter.set_result(None)

        with self._changed:
            if one.done:
                return
            one.observers = (one.observers or []) + [lambda: _on(loop, wake)]
        yield from waiter


def _on(loop, run):
    try:
        loop.call_soon_threadsafe(run)
    except RuntimeError:
        pass  # a loop that was closed with calls under way: nobody waits there


class Thing:
    """Something that is waited for, and then has a value."""

    __slots__ = ("waits", "done", "value", "observers")

    def __init__(self, waits):
        self.waits, self.done, self.value, self.observers = waits, False, None, None


local = Waits()


class Done:
    """What need not be waited for."""

    done, waits = True, None

    def __init__(self, value=None):
        self.value = value


class All:
    """Several things: done when each is."""

    def __init__(self, parts):
        self.parts, self.waits = parts, self

    done = property(lambda self: all(one.done for one in self.parts))

    def wait(self, _, timeout=None):
        until = None if timeout is None else time.monotonic() + timeout
        for one in self.parts:
            if not one.done:
                one.waits.wait(one, None if until is None else max(0.0, until - time.monotonic()))

    def on_loop(self, _):
        for one in self.parts:
            if not one.done:
                yield from one.waits.on_loop(one)
