"""What a rank of monarch says of itself, and the events that it is told, for Python programs.

    import monarch_rank as monarch

    monarch.ready()                          # for a mesh with `ready: notify`
    for step in range(first, last):
        train(step)
        monarch.step(step)
        monarch.metric("loss", loss)
        for event in monarch.events(timeout=0):
            if event["event"] == "stopping":
                with monarch.phase("checkpoint"):
                    save()
                raise SystemExit(0)

`monarch status` shows the last word of each. Outside of monarch nothing happens, so that a script needs no second version.
Nothing here but commit() raises for want of a listener, and nothing but events(), commit() and who() waits: what cannot be said
at once is not said.

A checkpoint counts once every rank of the gang has committed it; whoever starts again goes on from the newest of those:

    found = monarch.committed()
    first = load(found["what"]) if found else 0
    for step in range(first, last):
        train(step)
        if step % 100 == 99:
            path = save(step + 1)            # under a name that no other generation writes
            monarch.commit(step + 1, path)
            delete(all that is older than monarch.gang_step())

Any process or thread of a rank may call these; a process that was forked opens its own sockets.

Copy this one file, or add its folder to PYTHONPATH: it needs Python 3.6 or later and nothing else.
"""

import json
import os
import select
import socket
import sys
import threading
import time

__all__ = [
    "ready", "status", "step", "phase", "metric", "watchdog", "stopping", "events", "who", "commit", "committed", "gang_step",
    "gate"
]

_MESSAGE_BYTES = 4096
_GATE_BYTES = 1 << 20  # an environment
_ANSWER_SECONDS = 2.0
_URGENT_SECONDS = 1.0  # how long ready() and stopping() try when the keeper is behind
_RECONNECT_SECONDS = 1.0
_LONG_SECONDS = 3600.0  # how long one connection waits where there is no limit
_ASK_AGAIN_SECONDS = 0.2  # after a door that took no more connections, or a commit of another thread

_notify = {"pid": None, "socket": None, "lock": None}  # type: dict
_events = {"pid": None, "socket": None, "lock": None}  # type: dict
_newest = {"step": None}  # type: dict


class _Phase:
    """Of phase(): leaves the phase at the end of a `with` block, and does nothing without one."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _say("X_MONARCH_PHASE=")
        return False


def ready(text=None):
    # type: (str) -> None
    """This rank is ready: with `ready: notify`, those that depend on its mesh may start. `text` is its status."""
    _say("READY=1" if text is None else "READY=1\nSTATUS=" + _line(text), urgent=True)


def status(text):
    # type: (str) -> None
    """One line about what this rank is doing."""
    _say("STATUS=" + _line(text))


def step(number):
    # type: (int) -> None
    """The number of the step that was just done."""
    try:
        number = int(number)  # also of a numpy integer, or of a tensor with one element
    except (TypeError, ValueError, OverflowError):
        return
    if number >= 0:
        _say("X_MONARCH_STEP=%d" % number)


def phase(name):
    # type: (str) -> _Phase
    """What this rank is in: letters, digits and `_-./`, at most 32. Used in a `with`, it leaves the phase at the end."""
    _say("X_MONARCH_PHASE=" + _line(name))
    return _Phase()


def metric(name, value):
    # type: (str, float) -> None
    """The present value of a metric, of at most 16 by name; names are as those of phases."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return
    _say("X_MONARCH_METRIC=%s:%.9g" % (_line(name), number))


def watchdog():
    # type: () -> None
    """A sign of life without anything else to say."""
    _say("WATCHDOG=1")


def stopping(text=None):
    # type: (str) -> None
    """This rank is about to end. `text` is its status."""
    _say("STOPPING=1" if text is None else "STOPPING=1\nSTATUS=" + _line(text), urgent=True)


def events(timeout=None):
    # type: (float) -> object
    """The events for this rank, as dictionaries with an "event": an iterator.

    Without a timeout it goes on for ever (in a thread of its own, mostly); with one it ends once nothing has come for so
    many seconds, 0 taking what is there. The process has one reader: each event comes out once, and one that came before
    the first call comes too. Outside of monarch, with a timeout it ends at once, and without one it waits for ever.
    """
    path = os.environ.get("MONARCH_EVENTS")
    if not path:
        while timeout is None:
            time.sleep(3600)
        return
    while True:
        message = _next_event(path, timeout)
        if message is None:
            return
        try:
            event = json.loads(message.decode("utf-8", "replace"))
        except ValueError:
            continue
        if isinstance(event, dict) and "event" in event:
            yield event


def who():
    # type: () -> dict
    """Who this rank is, by its keeper's word: job, mesh, rank, generation and host; None outside of monarch."""
    path = os.environ.get("MONARCH_SOCKET")
    if not path:
        return None
    answer = _ask(path, "ASK=who", _ANSWER_SECONDS)
    return answer if "rank" in answer else None


def gate():
    # type: () -> dict
    """Where a rank has done all that needs no place: imports, the model. What it returns, and puts into os.environ, is its environment.

    In a rank that was started with a place it returns at once. A rank of a standby gang (`standby` of its mesh) waits here until it is
    given the place of one that failed: RANK, WORLD_SIZE, MASTER_ADDR, MONARCH_RANK and what else depends on the place is known from then
    on, and not before. Call it before anything that reads these, once.
    """
    path = os.environ.get("MONARCH_SOCKET")
    if path:
        while True:
            answer = _ask(path, "ASK=gate", None, _GATE_BYTES)
            if isinstance(answer.get("env"), dict):
                os.environ.update(answer["env"])
                os.environ.pop("MONARCH_STANDBY", None)
                break
            if "error" in answer:
                break  # a keeper that knows of no gates: what is there is all
            time.sleep(_ASK_AGAIN_SECONDS)
    return dict(os.environ)


def committed():
    # type: () -> dict
    """The newest checkpoint that all ranks of this gang had committed when they were started: None, or a dictionary.

    "step" is its number, "what" is what this rank said of it, "generation" which start of the gang wrote it. All ranks of a
    gang are told the same step. It stays the same for as long as this rank runs.
    """
    try:
        return {
            "step": int(os.environ["MONARCH_COMMITTED_STEP"]),
            "what": os.environ.get("MONARCH_COMMITTED_WHAT", ""),
            "generation": int(os.environ["MONARCH_COMMITTED_GENERATION"]),
        }
    except (KeyError, ValueError):
        return None


def commit(step, what="", gang=False, timeout=60.0):
    # type: (int, str, bool, float) -> bool
    """This rank has written the checkpoint of `step`: True once that is known, whatever then becomes of rank, host or supervisor.

    `what` is what the rank will need to find it, a digest or a name: at most 128 printable characters of ASCII. Write all of it
    to disk first (fsync), under a name that no other generation of the rank writes, such as one with MONARCH_GENERATION in it.
    The checkpoint is the gang's once each of its ranks has committed the same step, or one has with gang=True: it then speaks
    for all of them. Steps only rise. Until then a gang that fails goes on from the step before: keep what you wrote of
    gang_step() and of all steps above it.

    False: it does not count, since a later generation of the gang has taken this one's place, or a later step was committed;
    standard error says which. TimeoutError: nobody has answered for `timeout` seconds (None: no limit), and the question still
    stands: it may yet come to count, so keep what was written. ValueError: `what` is none.
    Outside of monarch it is True at once: nobody else writes.
    """
    path = os.environ.get("MONARCH_SOCKET")
    if not path:
        return True
    what = str(what)
    question = "COMMIT=%d\nOF=%s\nWHAT=%s" % (int(step), "gang" if gang else "rank", what)
    if any(not " " <= character <= "~" for character in what):
        raise ValueError("what a checkpoint is called has printable characters of ASCII alone: %r" % what)
    deadline = None if timeout is None else time.monotonic() + timeout
    why = "nobody has answered"
    while True:
        left = _LONG_SECONDS if deadline is None else deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the checkpoint of step %d: %s for %g s; it may yet count" % (int(step), why, timeout))
        answer = _ask(path, question, min(left, _LONG_SECONDS))
        if answer.get("ok") is True:
            _remember(answer.get("gang"))
            return True
        if "refused" in answer:
            sys.stderr.write(
                "monarch_rank: the checkpoint of step %d does not count: %s\n" % (int(step), answer["refused"])
            )
            return False
        if "error" in answer:
            why = str(answer["error"])
            if "one at a time" not in why:
                raise ValueError(why)
        time.sleep(_ASK_AGAIN_SECONDS if deadline is None else min(_ASK_AGAIN_SECONDS, max(0.0, deadline - time.monotonic())))


def gang_step():
    # type: () -> int
    """The newest step that all ranks of this gang have committed, as far as this process knows: None before there is one.

    It is what committed() says, until commit() hears more. A gang that fails goes on from no step below it: what was written of
    those may be deleted.
    """
    if _newest["step"] is None:
        known = committed()
        return known["step"] if known else None
    return _newest["step"]


def _remember(step):
    if isinstance(step, int) and (_newest["step"] is None or step > _newest["step"]):
        _newest["step"] = step


def _ask(path, question, seconds, most=_MESSAGE_BYTES):
    """The answer to a question, or {} where there is none."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            door.settimeout(seconds)
            door.connect(path)
            door.send(question.encode("utf-8", "replace"))
            answer = json.loads(door.recv(most).decode("utf-8", "replace"))
    except (OSError, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _line(text):
    return str(text).replace("\n", " ")


def _own(held):
    """What this process keeps: a forked child shares neither its parent's socket nor a lock that was held at the fork."""
    if held["pid"] != os.getpid():
        held["socket"], held["lock"], held["pid"] = None, threading.Lock(), os.getpid()
    return held


def _open(held, kind):
    held["socket"] = socket.socket(socket.AF_UNIX, kind)
    held["socket"].setblocking(False)
    return held["socket"]


def _say(message, urgent=False):
    path = os.environ.get("NOTIFY_SOCKET")
    if not path or "MONARCH_SOCKET" not in os.environ:
        return  # nobody listens, or it is systemd's
    data = message.encode("utf-8", "replace")[:_MESSAGE_BYTES]
    deadline = time.monotonic() + _URGENT_SECONDS
    while True:
        try:
            held = _own(_notify)
            with held["lock"]:
                sender = held["socket"] or _open(held, socket.SOCK_DGRAM)
            sender.sendto(data, path)
            return
        except (BlockingIOError, InterruptedError):
            if not urgent or time.monotonic() >= deadline:
                return
        except OSError:
            return
        time.sleep(0.005)


def _next_event(path, timeout):
    """The bytes of the next event, or None after the timeout or where nobody will tell any more."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        held = _own(_events)
        with held["lock"]:
            reader = held["socket"] or _connect(held, path)
        if reader is None:
            # The keeper has gone, or cannot take one more reader now.
            if left is not None and left <= 0:
                return None
            time.sleep(_RECONNECT_SECONDS if left is None else min(left, _RECONNECT_SECONDS))
            continue
        try:
            poller = select.poll()  # select() would end at descriptor 1,023
            poller.register(reader, select.POLLIN)
            if not poller.poll(None if left is None else left * 1000):
                return None
            message = reader.recv(_MESSAGE_BYTES)
        except (BlockingIOError, InterruptedError):
            continue  # another thread was faster
        except (OSError, ValueError):
            message = b""
        if message:
            return message
        with held["lock"]:
            if held["socket"] is reader:
                reader.close()
                held["socket"] = None
        if left is not None and left <= 0:
            return None


def _connect(held, path):
    try:
        reader = _open(held, socket.SOCK_SEQPACKET)
        reader.connect(path)
        return reader
    except OSError:
        if held["socket"] is not None:
            held["socket"].close()
            held["socket"] = None
        return None
