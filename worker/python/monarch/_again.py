"""Processes that are started again when they die: spawn_procs(restart=4). Their owner makes their actors anew, under the same
names, so that handles go on; calls of his wait meanwhile.

Thread: any.
"""

import threading
import time

from . import _door as d

_EXPECTED_SECONDS = 1.0  # between a call's end and the word of the failure that has ended it
_MAKE_SECONDS = 30.0
_PAUSE_SECONDS = 0.005  # between two looks whether a process is being started


class Again:
    """Of the processes of one claim; each `most` times."""

    def __init__(self, most, what):
        self._most, self._what = most, what
        self._changed = threading.Condition()
        self._deaths, self._heard_at = {}, {}
        self._until = {}  # ranks whose actors are not there, and until when to wait for them
        self._given_up = {}  # ranks, and why
        self.steps = []  # calls of the built-in actor that make a process what it was: (endpoint, arguments, ranks)

    def wait(self, ranks):
        """Before a call: until their actors are there. What is given up is left to the call."""
        if not self._until:
            return
        with self._changed:
            while True:
                now = time.monotonic()
                for rank in [rank for rank, until in self._until.items() if until <= now]:
                    del self._until[rank]
                until = [self._until[rank] for rank in ranks if rank in self._until]
                if not until:
                    return
                self._changed.wait(max(until) - now)

    def why_not(self, ranks):
        """Why one of them is given up, or None."""
        return next((self._given_up[rank] for rank in ranks if rank in self._given_up), None) if self._given_up else None

    def lost(self, rank, sent):
        """A call that was sent then has ended with its process, of whose failure nothing may have been heard yet."""
        with self._changed:
            if self._heard_at.get(rank, -1.0) < sent and rank not in self._given_up:
                self._until.setdefault(rank, time.monotonic() + _EXPECTED_SECONDS)

    def heard(self, rank, cause):
        """Its process has failed: whether it is made again."""
        with self._changed:
            self._heard_at[rank] = time.monotonic()
            count = self._deaths[rank] = self._deaths.get(rank, 0) + 1
            if count > self._most:
                self._given_up[rank] = "%s; it was made again %d times, as spawn_procs(restart=%d) says" % (cause, self._most, self._most)
                self._until.pop(rank, None)
                self._changed.notify_all()
                return False
            self._until[rank] = time.monotonic() + _MAKE_SECONDS
        threading.Thread(target=self._make, args=(rank, count), name="monarch again", daemon=True).start()
        return True

    def _make(self, rank, count):
        try:
            until = time.monotonic() + _MAKE_SECONDS
            while self._deaths[rank] == count and time.monotonic() < until and not self._what.over:
                if self._is_made(rank):
                    return
                time.sleep(_PAUSE_SECONDS)  # nobody tells that it is being started
        except (d.Ended, RuntimeError):
            pass
        finally:
            with self._changed:
                if self._deaths[rank] == count:
                    self._until.pop(rank, None)
                    self._changed.notify_all()

    def _is_made(self, rank):
        from ._mesh import built_in_at
        calls = [built_in_at(self._what.mesh, rank, name)._send(args, {}) for name, args, ranks in list(self.steps) if rank in ranks]
        for one in calls:
            one.waits.wait(one)
            # A constructor that raises is the actor's failure, of which its owner hears.
            if one.refused or one.got[rank][0] not in (d.VALUE, d.REMOTE):
                return False
        return True
