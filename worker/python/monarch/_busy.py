"""Calls that a post has refused since too much waits at a rank or its host: they are asked again with growing pauses, in the
order in which they were refused. They have not run.

Thread: add() any; the rest one of its own, which ends when there are none.
"""

import collections
import sys
import threading
import time

from . import _door as d

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.001, 0.25
_SAID_SECONDS = 30.0  # after which people are told


class Busy:
    def __init__(self, caller):
        self._caller, self._lock = caller, threading.Lock()
        self._refused, self._thread = collections.deque(), None

    def add(self, call, rank, got):
        """The call is still under way for that rank; `got` is its answer where it cannot be asked again."""
        with self._lock:
            self._refused.append((call, rank, got))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="monarch busy", daemon=True)
                self._thread.start()

    def forked(self):
        self._lock, self._thread = threading.Lock(), None
        self._refused.clear()

    def _run(self):
        pause, began, is_said = _FIRST_PAUSE_SECONDS, time.monotonic(), False
        while True:
            time.sleep(pause)  # nobody tells when there is room
            with self._lock:
                now = list(self._refused)
                self._refused.clear()
            for one in now:
                self._ask(*one)
            self._caller.read_what_is_there()  # of broadcasts nobody else may
            with self._lock:
                if not now and not self._refused and pause >= _LONGEST_PAUSE_SECONDS:
                    self._thread = None
                    return
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            if now and not is_said and time.monotonic() - began > _SAID_SECONDS:
                is_said = True
                sys.stderr.write("monarch: calls wait for room since %d s: %s\n" % (_SAID_SECONDS, now[0][2][2]))

    def _ask(self, call, rank, got):
        try:
            is_asked = not call.is_cancelled and self._caller.ask_again(call, rank)
        except (d.Ended, RuntimeError):
            is_asked = False
        if not is_asked:
            self._caller.settle(call, rank, got)
