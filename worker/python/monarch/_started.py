"""The future of a coroutine of the program: it runs where it is first waited for.

Thread: any; the first one that waits runs it.
"""

import threading

from ._future import Thing, future, local


class _Started(Thing):
    __slots__ = ("_coroutine", "_lock", "_inner")

    def __init__(self, coroutine):
        super().__init__(self)
        self._coroutine, self._lock, self._inner = coroutine, threading.Lock(), Thing(local)

    done = property(lambda self: self._inner.done, lambda self, _: None)

    def _take(self):
        with self._lock:
            coroutine, self._coroutine = self._coroutine, None
        return coroutine

    def wait(self, _, timeout=None):
        coroutine = self._take()
        if coroutine is None:
            return local.wait(self._inner, timeout)
        import asyncio
        from asyncio import events
        if events._get_running_loop() is not None:  # a loop runs nothing else meanwhile
            thread = threading.Thread(target=lambda: asyncio.run(self._run(coroutine)), daemon=True)
            thread.start()
            return local.wait(self._inner, timeout)
        return asyncio.run(asyncio.wait_for(self._run(coroutine), timeout))

    def on_loop(self, _):
        coroutine = self._take()
        if coroutine is None:
            yield from local.on_loop(self._inner)
            return
        yield from self._run(coroutine).__await__()

    async def _run(self, coroutine):
        try:
            local.complete(self._inner, (await coroutine, None))
        except Exception as e:
            local.complete(self._inner, (None, e))


def future_of(coroutine):
    def of(one):
        value, error = one._inner.value
        if error is not None:
            raise error
        return value

    return future(_Started(coroutine), of)
