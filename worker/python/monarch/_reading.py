"""Relief: a second thread that reads the door while the first one is at something that takes long.

It looks every few milliseconds, and only while there is something to do: an idle process has nothing that wakes it.

Thread: begin(), end() and read_what_is_there() where the door is read.
"""

import select
import threading
import time

from . import _door as d

_TICK_SECONDS = 0.005
_QUIET_TICKS = 200  # after so many without anything to do it sleeps


class Relief:
    def __init__(self, server):
        self._server = server
        self._reading = threading.Lock()  # who reads what is there has it, but for the first thread where nobody else may
        self._serial = self._busy = 0  # what the first thread is at; 0: it reads
        self._progress = 0  # of a loop
        self._is_asleep, self._wakes = True, None
        self._buffer = None

    def begin(self):
        """The first thread reads no more until end()."""
        self._serial += 1
        self._busy = self._serial
        if self._is_asleep:
            self._wake()

    def end(self):
        with self._reading:
            self._busy = 0

    def is_busy(self):
        return self._busy != 0

    def read_what_is_there(self):
        """On a loop that is told that there is something."""
        if not self._reading.acquire(False):
            return
        try:
            self._progress += 1
            if self._is_asleep:
                self._wake()
            self._read(None)
        finally:
            self._reading.release()

    def _read(self, buffer):
        server = self._server
        while True:
            heard = server.door.read(d.socket.MSG_DONTWAIT, buffer)
            if heard is None:
                return
            server.take(*heard)

    # ---- the second thread

    def _wake(self):
        self._is_asleep = False
        if self._wakes is None:
            self._wakes = threading.Semaphore(0)
            threading.Thread(target=self._run, name="monarch relief", daemon=True).start()
        self._wakes.release()

    def _run(self):
        while True:
            self._wakes.acquire()
            door = self._server.door
            try:
                self._attend()
            except d.Refused:
                return
            except d.Ended:
                try:
                    self._server.come_again(door)
                except d.Ended:
                    return  # the first thread hears of it, too
                self._wakes.release()
            except (OSError, ValueError):
                self._wakes.release()  # a descriptor of a connection that has ended

    def _attend(self):
        quiet, last = 0, None
        while True:
            time.sleep(_TICK_SECONDS)
            now = (self._busy, self._progress)
            if now != last:
                last, quiet = now, 0
            elif now[0]:
                self._relieve_thread(now[0])
            elif self._server.loop is not None and self._is_readable(0):
                self._relieve_loop(now[1])
            else:
                quiet += 1
                if quiet >= _QUIET_TICKS and self._is_idle():
                    self._is_asleep, last = True, (0, self._progress)
                    if (self._busy, self._progress) == last:
                        return
                    self._is_asleep = False

    def _relieve_thread(self, serial):
        while self._busy == serial:
            if self._is_readable(20 * _TICK_SECONDS):
                with self._reading:
                    if self._busy == serial:
                        self._read(self._own_buffer())

    def _relieve_loop(self, progress):
        while self._progress == progress:
            if self._is_readable(20 * _TICK_SECONDS):
                with self._reading:
                    if self._progress == progress:
                        self._read(self._own_buffer())
                        self._ping()

    def _is_idle(self):
        """Whether a loop is there for what comes: it may be stopped by something that it runs."""
        if self._server.loop is None:
            return True
        before = self._progress
        self._ping()
        time.sleep(_TICK_SECONDS)
        return self._progress != before

    def _ping(self):
        try:
            self._server.loop.call_soon_threadsafe(self._pong)
        except RuntimeError:
            raise d.Ended("the loop has ended") from None

    def _pong(self):
        self._progress += 1

    def _own_buffer(self):
        # What the first thread has read last lies in the connection's own.
        if self._buffer is None:
            self._buffer = d.buffer()
        return self._buffer

    def _is_readable(self, seconds):
        poller = select.poll()
        poller.register(self._server.door, select.POLLIN)
        return bool(poller.poll(seconds * 1000))
