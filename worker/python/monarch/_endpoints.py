"""Endpoints: methods of an actor that are called from elsewhere, and the ways of calling them.

Thread: any.
"""

import random
import time

from . import _bodies, _wire
from . import _door as d
from ._errors import ActorError, SupervisionError, unbuilt
from ._future import All, Thing, future, local
from ._process import process
from ._signature import Signature
from ._views import Point, ValueMesh


class EndpointProperty:
    """What @endpoint makes of a method."""

    def __init__(self, method, port=False, concurrent=False):
        self._method, self._port, self._concurrent = method, port, concurrent
        self.__doc__ = getattr(method, "__doc__", None)
        self.__name__ = getattr(method, "__name__", "endpoint")

    def _signature(self):
        return Signature(self._method, 2 if self._port else 1)


def endpoint(method=None, *, propagate=None, explicit_response_port=False, instrument=True):
    """A method that others call: `def` or `async def`. With `explicit_response_port` it is given a port as its first argument,
    and its answer is what it sends there."""
    if method is None:
        return lambda found: EndpointProperty(found, explicit_response_port)
    return EndpointProperty(method, explicit_response_port)


def concurrent_endpoint(method=None, *, propagate=None, explicit_response_port=False, instrument=True):
    """An `async def` that others call, of which several run at once: only the order in which they begin is kept."""
    if method is None:
        return lambda found: _concurrent(found, explicit_response_port)
    return _concurrent(method, explicit_response_port)


def _concurrent(method, port):
    from ._cells import is_async
    if not is_async(method):
        raise TypeError("@concurrent_endpoint is for `async def`: %s is not" % getattr(method, "__qualname__", method))
    return EndpointProperty(method, port, True)


class NotAnEndpoint:
    """A method of an actor that is none, on a mesh of it."""

    def __init__(self, mesh, name):
        self._mesh, self._name = mesh, name

    def __call__(self, *_args, **_kwargs):
        raise RuntimeError("Actor %s.%s is not annotated as an endpoint. To call it as one, add a @endpoint decorator to it, or directly wrap it "
                           "in one as_endpoint(obj.method).call(...)" % (self._mesh._class, self._name))


def as_endpoint(not_an_endpoint, *, propagate=None, explicit_response_port=False):
    """Calls a method that is no endpoint as one: as_endpoint(mesh.method).call(...)."""
    if not isinstance(not_an_endpoint, NotAnEndpoint):
        raise ValueError("expected a method of a spawned actor")
    mesh, name = not_an_endpoint._mesh, not_an_endpoint._name
    return Endpoint(mesh, name, EndpointProperty(getattr(mesh._class, name), explicit_response_port), is_other=True)


class Endpoint:
    """An endpoint of the actors of a mesh."""

    def __init__(self, mesh, name, of, is_other=False):
        procs = mesh._procs
        self._mesh, self._name, self._of, self._is_other = mesh, name, of, is_other
        self._ranks = tuple(mesh._ranks())
        self._peers = frozenset((procs.mesh.encode(), rank) for rank in self._ranks)
        self._full = "%s.%s" % (mesh._wire_name.partition("#")[0], name)
        self._target = _wire.pack([mesh._wire_name, name, "*"])
        self._head = _wire.text(procs.mesh) + _wire.pack(mesh._runs()) + self._target
        self._host = _wire.text(procs.host)
        self._is_plain, self._again = procs.is_plain, procs.again
        self._signature = of._signature() if of is not None else None
        self._flags = _bodies.PORT if is_other and of._port else 0
        self._view = _bodies.view(mesh._as_view(), self._flags)
        self._quiet_view = None
        self._seconds = mesh._seconds

    def _send(self, args, kwargs, quiet=False, each=None, port=None):
        signature = self._signature
        if signature is not None and (kwargs or not signature.least <= len(args) <= signature.most):
            signature.check(args, kwargs)
        mesh = self._mesh
        if mesh._over:
            raise SupervisionError("%s: %s" % (self._full, mesh._over[0]))
        if self._again is not None:
            self._wait_again()
        fresh = []  # classes and functions that they are given with it
        if self._is_plain:
            pieces, total = _bodies.plain_call(args, kwargs, self._full, b"" if self._of is None else self._view)
        else:
            view = self._view
            if quiet:
                view, args = self._quietly(args, port)
            pieces, total = _bodies.call(args, kwargs, view, self._peers, fresh)
        deadline = None if self._seconds is None else time.clock_gettime_ns(time.CLOCK_BOOTTIME) + int(self._seconds * 1e9)
        call = process.caller().call(self._head, self._host, self._ranks, pieces, total, quiet, deadline, each, self._head_of)
        if self._again is not None:
            call.sent = time.monotonic()
        if fresh:
            call.lost = self._not_given
            _bodies.given(fresh, self._peers)
            for rank, got in list(call.got.items()):
                if got[0] >= d.LOST:
                    self._not_given(rank)
        return call

    def _not_given(self, rank):
        """A call that gave it something has not come there."""
        _bodies.forget([(self._mesh._procs.mesh, rank)])

    def _head_of(self, rank):
        return _wire.text(self._mesh._procs.mesh) + _wire.pack([[rank, 1, 1]]) + self._target

    def _wait_again(self):
        self._again.wait(self._ranks)
        why = self._again.why_not(self._ranks)
        if why is not None:
            raise SupervisionError("%s: %s" % (self._full, why))

    def _quietly(self, args, port):
        if port is not None:
            return _bodies.view(self._mesh._as_view(), self._flags | _bodies.TO_PORT), (port,) + args
        if self._quiet_view is None:
            self._quiet_view = _bodies.view(self._mesh._as_view(), self._flags | _bodies.QUIET)
        return self._quiet_view, args

    # ---- the ways of calling

    def call(self, *args, **kwargs):
        """All of them: a future of what each gives."""
        mesh = self._mesh

        def of(call):
            _refused(self, call)
            found = []
            for place, rank in enumerate(self._ranks):
                got = call.got[rank]
                if got[0] != d.VALUE:
                    _raise(self, got, call, rank, " %r" % Point(place, mesh.extent))
                found.append(_bodies.value(got[1], got[2]))
            return ValueMesh(mesh._labels, mesh._sizes, found)

        return future(self._send(args, kwargs), of)

    def call_one(self, *args, **kwargs):
        """The one that there is."""
        if len(self._ranks) != 1:
            raise ValueError("call_one of %s: its mesh has %d actors; slice it, or use call()" % (self._full, len(self._ranks)))
        return future(self._send(args, kwargs), self._of_one)

    def _of_one(self, call):
        got = call.got.get(self._ranks[0])
        if got is None:
            _refused(self, call)
        if got[0] == d.VALUE:
            return _bodies.value(got[1], got[2])
        return _raise(self, got, call, self._ranks[0])

    def choose(self, *args, **kwargs):
        """One of them, whichever."""
        ranks = self._ranks
        if len(ranks) == 1:
            return self.call_one(*args, **kwargs)
        return self._chosen().call_one(*args, **kwargs)

    def _chosen(self):
        return Endpoint(self._mesh._one(random.randrange(len(self._ranks))), self._name, self._of, self._is_other)

    def stream(self, *args, **kwargs):
        """All of them: an iterator of futures, the n-th of which is done once n have answered."""
        parts = [Thing(local) for _ in self._ranks]
        left = iter(parts)
        call = self._send(args, kwargs, each=lambda rank, got: local.complete(next(left), (rank, got)))

        def of(part):
            rank, got = part.value
            if got is None:
                _refused(self, call)
            return _bodies.value(got[1], got[2]) if got[0] == d.VALUE else _raise(self, got, call, rank, " of rank %d" % rank)

        return iter([future(_Streamed(part, call), lambda on: of(on.part)) for part in parts])

    def broadcast(self, *args, **kwargs):
        """All of them, and nobody waits: an exception of theirs is the actor's failure."""
        self._send(args, kwargs, quiet=True)

    def rref(self, *_args, **_kwargs):
        unbuilt("rref() of the tensor engine", "tensors are published and pulled: monarch-tensors(7)")

    def __call__(self, *_args, **_kwargs):
        raise TypeError("%s is an endpoint: call it as %s.call(...), or by call_one, choose, stream or broadcast" % (self._full, self._full))

    def __repr__(self):
        return "Endpoint(%s of %r)" % (self._full, self._mesh)


class _Streamed:
    """The n-th answer of a call: who waits for it reads for the call."""

    __slots__ = ("part", "call", "waits")

    def __init__(self, part, call):
        self.part, self.call, self.waits = part, call, self

    done = property(lambda self: self.part.done)

    def wait(self, _, timeout=None):
        self.call.waits.wait(self.call, timeout, self.part)

    def on_loop(self, _):
        self.call.waits.read_on_running_loop(self.call)
        if not self.part.done:
            yield from local.on_loop(self.part)


def _refused(endpoint_, call):
    if call.refused:
        error = SupervisionError("%s: %s" % (endpoint_._full, call.refused))
        error.endpoint = endpoint_._full
        raise error


def _raise(endpoint_, got, call, rank, point=""):
    kind, name, text, traceback, body, here = got
    if kind == d.LOST and endpoint_._again is not None:
        endpoint_._again.lost(rank, call.sent)
    if kind == d.REMOTE:
        if name == "monarch._errors.SupervisionError":
            error = SupervisionError("%s%s: %s" % (endpoint_._full, point, text))
            error.endpoint = endpoint_._full
            raise error
        raise ActorError(_bodies.exception_of(body, here, name, text), "Actor call %s failed." % endpoint_._full, traceback or "%s: %s" % (name, text))
    if kind == d.DEADLINE:
        raise TimeoutError("%s%s: %s" % (endpoint_._full, point, text))
    if kind == d.CANCELLED and call.ring:
        text = call.ring
    error = SupervisionError("%s%s: %s" % (endpoint_._full, point, text))
    error.endpoint = endpoint_._full
    raise error


def send(endpoint_, args, kwargs, port=None, selection="all"):
    """Calls, and what each answers goes to the port."""
    if selection not in ("all", "choose"):
        raise ValueError("a selection is all or choose, not %r" % (selection,))
    if selection == "choose":
        endpoint_ = endpoint_._chosen()
    endpoint_._send(tuple(args), dict(kwargs), quiet=True, port=port)


class Accumulator:
    """Folds what an endpoint gives: Accumulator(endpoint, 0, operator.add).accumulate(...).get()."""

    def __init__(self, endpoint, identity, combine):
        self._endpoint, self._identity, self._combine = endpoint, identity, combine

    def accumulate(self, *args, **kwargs):
        parts = list(self._endpoint.stream(*args, **kwargs))

        def of(_):
            value = self._identity
            for one in parts:
                value = self._combine(value, one._result())
            return value

        return future(All([one._on for one in parts]), of)

