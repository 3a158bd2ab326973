"""Delivery: a call that has come to this process, and its one answer.

Thread: any; answered by whoever has it.
"""

import threading

from . import _bodies, _wire
from . import _door as d

_TEXT_BYTES = 60 << 10
_NO_BODY = b"\x95\x00\x00\xc4\x00\x00\x00"


class Delivery:
    __slots__ = ("door", "number", "actor", "endpoint", "body", "here", "kept", "sender", "form", "is_in_packet", "is_quiet", "port", "rank")

    def __init__(self, door, number, actor, endpoint, body, here, kept, sender):
        self.door, self.number, self.actor, self.endpoint = door, number, actor, endpoint
        self.body, self.here, self.kept, self.sender = body, here, kept, sender
        self.form = "cpp"  # how it was asked, and is answered
        self.is_in_packet = self.is_quiet = False
        self.port = self.rank = None  # where its answer goes, and as whose

    def reply(self, value):
        pieces, total = _bodies.result(value, self)
        far = self.door.welcome.far_bytes
        if total > far and not self.here:
            return self.refuse("a result of %d bytes is above the limit of %d bytes between hosts" % (total, far))
        fields, beside, block = self.door.body(pieces, total)
        return self._send(b"\x97\x00\xa0\xa0\xa0\x00" + fields + b"\xc4\x00", beside, block)

    def fail(self, e):
        """The caller hears of it as what it is, where that travels."""
        import traceback
        text = "".join(traceback.format_exception(type(e), e, e.__traceback__))
        text = text.replace("Traceback (most recent call last):", "Traceback of where the remote call failed (most recent call last):")
        kind = type(e)
        name = kind.__name__ if kind.__module__ in ("builtins", "__main__") else "%s.%s" % (kind.__module__, kind.__qualname__)
        self.say(d.REMOTE, name, _words(e), text, _bodies.exception(e, self))

    def refuse(self, why):
        self.say(d.REFUSED, "", why)

    def say(self, kind, name, text, traceback="", own=None):
        """An answer that is no value; `own`: an exception as pieces, and their bytes."""
        fields, beside, block = (_NO_BODY, None, 0) if own is None else self.door.body(*own)
        self.body = None
        texts = _wire.text(name[:200]) + _wire.text(_cut(text)) + _wire.text(_cut(traceback))
        self._send(b"\x97" + _wire.uint(kind) + texts + b"\x00" + fields + b"\xc4\x00", beside, block)

    def _send(self, outcome, beside, block):
        kept = self.kept
        keeps = kept is not None and kept.keeps()
        try:
            self.door.send(d.REPLY, b"\x93" + _wire.uint(self.number) + outcome + (b"\xc3" if keeps else b"\xc2"), beside)
        except d.Ended:
            self.door.pool.freed(block)
        if keeps:
            kept.said()


class Kept:
    """Arguments in somebody else's memory: who has lent it hears when nobody reads them any more."""

    __slots__ = ("_door", "_number", "_lock", "_is_gone", "_is_said")

    def __init__(self, door, number):
        self._door, self._number = door, number
        self._lock, self._is_gone, self._is_said = threading.RLock(), False, False

    def gone(self):
        """The last view of them has gone, in the middle of whatever."""
        with self._lock:
            self._is_gone = True
            if self._is_said:
                self._let_go()

    def keeps(self):
        return not self._is_gone

    def said(self):
        """The reply that keeps them has been sent."""
        with self._lock:
            self._is_said = True
            if self._is_gone:
                self._let_go()

    def _let_go(self):
        self._door.let_go(b"\x93" + _wire.uint(self._number) + b"\x00\x00")


def _cut(text):
    data = text.encode("utf-8", "replace")
    return text if len(data) <= _TEXT_BYTES else data[-_TEXT_BYTES:].decode("utf-8", "ignore")


def _words(e):
    try:
        return str(e)
    except Exception:
        return "an exception that cannot be shown"
