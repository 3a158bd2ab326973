"""Wishes: what this process asks of the idle slots of its job, until it is answered (monarch-post(7), 171 and 172).

A wish has a number that is never used again. So it may be said twice: when a connection ends, the next one says what is
unanswered. They are the wishes of one owner, a number that this process draws and says in each hello from its first wish on.

Thread: any.
"""

import itertools
import os
import sys
import time

from . import _door as d
from . import _wire

_SAID_SECONDS = 30.0  # after which people are told that nobody answers
_NOTHING = ["", [], 1, "", [], [], "", {}, []]  # of a wish by which a claim ends


class Wish:
    """One of them. Its answer: `error`, or the mesh and the ranks of a claim."""

    __slots__ = ("waits", "number", "fields", "by", "done", "error", "mesh", "ranks", "observers")
    id = 0  # it is no call

    def __init__(self, waits, number, fields):
        self.waits, self.number, self.fields = waits, number, fields
        self.by, self.done, self.observers = None, False, None
        self.error, self.mesh, self.ranks = "", "", []


class Wishes:
    def __init__(self, caller):
        self._caller, self._numbers = caller, itertools.count(1)
        self._unanswered = {}
        self.owner = 0

    def claim(self, what):
        """Waits for the answer, however long that takes: (number of the claim, mesh, ranks); RuntimeError with the post's sentence."""
        one = self._say(0, what)
        try:
            self._wait_long(one, what)
        except BaseException:  # Ctrl-C, say: nobody would know of what is claimed
            self.let_go(one.number)
            raise
        if one.error:
            raise RuntimeError(one.error)
        return one.number, one.mesh, one.ranks

    def _wait_long(self, one, what):
        began = time.monotonic()
        while True:
            try:
                return self.wait(one, _SAID_SECONDS)
            except TimeoutError:
                sys.stderr.write("monarch: spawn_procs() has waited for %d s: the supervisor of the job has not answered whether %d slots%s are idle\n" %
                                 (time.monotonic() - began, what[2] * max(1, len(what[1])), " of mesh " + what[0] if what[0] else ""))

    def let_go(self, number):
        """A claim ends whole; what is waited for."""
        return self._say(number, _NOTHING)

    def _say(self, let_go, what):
        if not self.owner:
            self.owner = int.from_bytes(os.urandom(8), "big") or 1
        number = next(self._numbers)
        one = Wish(self, number, _wire.pack([number, self.owner, let_go, what]))
        self._unanswered[number] = one
        door = self._caller.door
        if door is None:
            self._caller.open()  # which says all that is unanswered
        else:
            self._send(door, one)
        return one

    def _send(self, door, one):
        one.by = door
        try:
            door.send(d.WISH, one.fields)
        except d.Ended as e:
            self._caller.ended(door, str(e))

    # ---- what the caller says and hears

    def say_again(self, door):
        """To the next post."""
        for one in list(self._unanswered.values()):
            self._send(door, one)

    def answered(self, number, error, mesh, ranks):
        one = self._unanswered.pop(number, None)
        if one is not None:
            one.error, one.mesh, one.ranks = error, mesh, ranks
            self._end(one)

    def over(self, why):
        """Nobody answers any more."""
        for number in list(self._unanswered):
            self.answered(number, why, "", [])

    def connection_ended(self):
        """Who awaits one has to see to the next connection."""
        for one in list(self._unanswered.values()):
            self._tell(one)

    def _end(self, one):
        one.done = True
        self._tell(one)

    @staticmethod
    def _tell(one):
        observers, one.observers = one.observers, None
        for run in observers or ():
            run()

    # ---- waiting

    def wait(self, one, timeout=None):
        self._caller.wait(one, timeout)

    def on_loop(self, one):
        while not one.done:
            self._caller.open()
            yield from self._caller.on_loop(one)

    def left(self, _):
        """The connection that one was said by has ended."""
        self._caller.open()
