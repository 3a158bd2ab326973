"""Meshes as programs have them: of hosts, of processes, and of actors.

Thread: any; a mesh never changes once it is made, but that it can be stopped.
"""

import math
import os

from . import _context
from ._cells import endpoints_of
from ._endpoints import Endpoint, EndpointProperty, NotAnEndpoint
from ._errors import SupervisionError, unbuilt
from ._future import All, Done, future
from ._process import process
from ._signature import of_constructor
from ._views import Extent, Point, View, dense


class Procs:
    """Where the ranks of a mesh are: the job's mesh, or the guests of a host; `name` is what people call it."""

    __slots__ = ("mesh", "host", "name", "is_plain", "over", "again")

    def __init__(self, mesh, host="", name="", is_plain=False):
        self.mesh, self.host, self.name, self.is_plain = mesh, host, name, is_plain
        self.over = []  # why it is over, once it is
        self.again = None  # monarch._again's, of their owner: they are started again when they die

    def __reduce__(self):
        return Procs, (self.mesh, self.host, self.name, self.is_plain)


class _Mesh(View):
    """What meshes of processes and of actors share."""

    def _place(self, procs, view, base=None):
        self._procs = procs
        self._view(*view)
        if base is not None:
            self._base = tuple(base)

    def _one(self, place):
        """The so-many-th of it alone."""
        return self._with([], [], [], self._ndslice[place])

    def _by_position(self):
        return self._labels, self._sizes, self._strides, self._offset


class ActorMesh(_Mesh):
    """Actors of one class, one in each process of a mesh. Its endpoints are its attributes."""

    def __init__(self, procs, wire_name, Class, view, base=None, seconds=None):
        self._place(procs, view, base)
        self._wire_name, self._class, self._seconds = wire_name, Class, seconds
        self._over = []  # why it is over, once it is: all its slices know
        self._made = None
        self.__name__ = getattr(Class, "__name__", wire_name)

    def _with(self, labels, sizes, strides, offset):
        one = ActorMesh(self._procs, self._wire_name, self._class, (labels, sizes, strides, offset), self._base, self._seconds)
        one._made, one._over = self._made, self._over
        return one

    def within(self, seconds):
        """The same actors; a call of them that has not begun after so many seconds does not run, and is a TimeoutError."""
        if not 0 <= seconds < math.inf:
            raise ValueError("within() takes a number of seconds from 0 on, not %r" % (seconds,))
        one = self._with(*self._by_position())
        one._seconds = seconds
        return one

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        Class = self.__dict__["_class"]
        if Class is None:
            one = self.__dict__[name] = Endpoint(self, name, None)
            return one
        what = getattr(Class, name, _NONE)
        if isinstance(what, EndpointProperty):
            one = self.__dict__[name] = Endpoint(self, name, what)
            return one
        if what is _NONE:
            raise AttributeError("%s has no endpoint %s" % (Class.__qualname__, name))
        return NotAnEndpoint(self, name)

    @property
    def initialized(self):
        """A future that is done once the actors are made, with the error of one that is not."""
        return self._made if self._made is not None else future(Done(), lambda _: None)

    @property
    def _name(self):
        return future(Done(), lambda _: self._wire_name)

    def stop(self, reason="stopped by client"):
        """Ends the actors: each __cleanup__ has run once the future is done. Calls are SupervisionError from then on."""
        if not self._over:
            self._over.append("actor mesh %s was stopped: %s" % (self._wire_name.partition("#")[0], reason))
        ended = built_in(self, "stop").call(self._wire_name)
        return future(ended._on, lambda call: _no_matter(call))

    def __reduce__(self):
        return _actor_mesh, (self._procs, self._wire_name, self._class, self._by_position(), self._base, self._seconds)

    def __repr__(self):
        return "ActorMesh(class=%s, shape=%s)" % (self._class, self._shape)


_NONE = object()


def _actor_mesh(*fields):
    return ActorMesh(*fields)


def _no_matter(_):
    return None


class _BuiltIn:
    """The endpoints that each Python process has."""


def built_in(mesh, name):
    """An endpoint of the built-in actor of each process of a mesh."""
    actors = ActorMesh(mesh._procs, "monarch", _BuiltIn, mesh._by_position(), mesh._base)
    return Endpoint(actors, name, None)


def built_in_of(where, name):
    """An endpoint of the built-in actor of one process."""
    return built_in_at(where.mesh, where.rank, name, where.host)


def built_in_at(mesh, rank, name, host=""):
    return Endpoint(ActorMesh(Procs(mesh, host), "monarch", _BuiltIn, ((), (), (), rank)), name, None)


class ProcMesh(_Mesh):
    """Processes that actors are spawned in."""

    def __init__(self, procs, view, base=None, hosts=None, setup=None):
        self._place(procs, view, base)
        self._hosts, self._setup = hosts, setup  # a future, where something runs first in each

    def _with(self, labels, sizes, strides, offset):
        return ProcMesh(self._procs, (labels, sizes, strides, offset), self._base, self._hosts, self._setup)

    def _set_up(self, bootstrap):
        self._setup = built_in(self, "setup").call(bootstrap)
        if self._procs.again is not None:
            self._procs.again.steps.append(("setup", (bootstrap,), frozenset(self._ranks())))

    def spawn(self, name, Class, *args, **kwargs):
        """An actor of that class in each of the processes, at once; its constructor runs there."""
        return self._spawn("%s#%x.%x" % (name, os.getpid(), next(process.numbers)), Class, args, kwargs)

    def _spawn(self, wire_name, Class, args, kwargs, exact=False):
        from . import _owner
        if self._procs.over:
            raise SupervisionError("process mesh %s was stopped: %s" % (self._procs.name, self._procs.over[0]))
        check_class(Class)
        of_constructor(Class).check(args, kwargs)
        mesh = ActorMesh(self._procs, wire_name, Class, self._by_position(), self._base)
        owner, instance = _owner.present_owner(), _context.context().actor_instance
        said = (wire_name, Class, self._as_view(), args, kwargs, owner, process.root, exact, instance.as_creator(), self._procs)
        made = built_in(self, "make").call(*said)
        if self._procs.again is not None:
            self._procs.again.steps.append(("make", said, frozenset(self._ranks())))
        mesh._made = future(made._on, lambda _: made._result() and None)
        _owner.spawned(mesh)
        return mesh

    @property
    def initialized(self):
        """A future that is True once the processes are there, and what runs first in them has."""
        asked, setup = built_in(self, "ping").call(), self._setup
        return future(asked._on, lambda _: bool(asked._result()) and (setup is None or bool(setup.get())))

    @property
    def host_mesh(self):
        if self._hosts is None:
            raise NotImplementedError("these processes were passed on without their hosts: pass the HostMesh, too")
        return self._hosts

    @property
    def _uid(self):
        return "%s/%s" % (self._procs.mesh, self._procs.name)

    def stop(self, reason="stopped by client"):
        """Ends the processes."""
        from . import _owner
        if self._procs.over:
            return future(Done(), lambda _: None)
        return _owner.release(self, reason)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.stop()

    async def logging_option(self, stream_to_client=False, aggregate_window_sec=None, level=20):
        """What these processes log from this level on is printed, and equal lines of so many seconds are shown together. Whatever they
        print comes to the program, also without `stream_to_client`, as it does from PyTorch Monarch's processes of this host."""
        if not 0 <= level <= 255:
            raise ValueError("Invalid logging level: %s" % (level,))
        if aggregate_window_sec is not None and not stream_to_client:
            raise ValueError("aggregate_window_sec is of what is streamed to the client: stream_to_client=True")
        from . import _output
        await built_in(self, "log_level").call(level)
        _output.fold(aggregate_window_sec)

    def activate(self):
        unbuilt("the tensor engine", "tensors are published and pulled: monarch-tensors(7)")

    def rank_tensor(self, dim):
        unbuilt("rank_tensor() of the tensor engine", "current_rank() in an endpoint")

    def rank_tensors(self):
        unbuilt("rank_tensors() of the tensor engine", "current_rank() in an endpoint")

    def __reduce__(self):
        return _proc_mesh, (self._procs, self._by_position(), self._base)

    def __eq__(self, other):
        return isinstance(other, ProcMesh) and (self._procs.mesh, self._procs.host, self._as_view()) == (other._procs.mesh, other._procs.host,
                                                                                                      other._as_view())

    def __hash__(self):
        return hash((self._procs.mesh, self._procs.host, self._as_view()))

    def __repr__(self):
        return "ProcMesh(%s)" % self._shape


def _proc_mesh(*fields):
    return ProcMesh(*fields)


def proc_mesh_of(where):
    """The process that is there, alone."""
    return ProcMesh(Procs(where.mesh, where.host, where.mesh), ((), (), (), where.rank))


def check_class(Class):
    """ValueError for an endpoint that nobody could call, since a mesh has that name."""
    if not isinstance(Class, type):
        raise TypeError("an actor is spawned of a class, not of %r" % (Class,))
    for name in endpoints_of(Class):
        if hasattr(ActorMesh, name) or name in ("_procs", "_class"):
            raise ValueError("ActorMesh has an attribute that collides with an endpoint name: attribute=%s of %s" % (name, Class))


class HostMesh(View):
    """Hosts that processes are spawned on."""

    def __init__(self, mesh, labels=(), sizes=(), python=None, owned=None, hosts=None):
        self._view(labels, sizes, dense(list(sizes)), 0)
        self._mesh, self._python, self._hosts = mesh, python, hosts  # names by position; none: the host of who spawns
        self._over = []
        self._spawned = owned if owned is not None else []

    def _with(self, labels, sizes, strides, offset):
        one = HostMesh(self._mesh, labels, sizes, self._python, self._spawned, self._hosts)
        one._view(labels, sizes, strides, offset)
        one._over = self._over
        return one

    def spawn_procs(self, per_host=None, bootstrap=None, name=None, proc_bind=None, bootstrap_command=None, *, restart=0):
        """Processes on each host, as many as the product of these dims; `bootstrap` runs in each before anything else. One that
        dies is started again so many times, with its actors, which are made anew."""
        from . import _again, _host, _owner
        per_host = _dims(per_host or {})
        if self._over:
            raise RuntimeError("HostMesh has already been shut down")
        if set(per_host) & set(self._labels):
            raise ValueError("per_host labels %s overlap with host labels %s" % (list(per_host), list(self._labels)))
        count = math.prod(per_host.values())
        if proc_bind is not None and len(proc_bind) != count:
            raise ValueError("proc_bind length (%d) must equal procs_per_host (%d)" % (len(proc_bind), count))
        if isinstance(restart, bool) or not isinstance(restart, int) or restart < 0:
            raise ValueError("restart is how often a process is started again, from 0 on, not %r" % (restart,))
        labels, sizes = list(self._labels) + list(per_host), list(self._sizes) + list(per_host.values())
        commands = [_command_at(bootstrap_command, place, labels, sizes) for place in range(math.prod(sizes))]
        hosts = [self._hosts[at] for at in self._positions()] if self._hosts else []
        wish = _host.Wish(self._mesh, hosts, count, name or "anon", dict(zip(labels, sizes)), commands, self._python, proc_bind)
        claim = _host.claim(wish, restart > 0)
        base = None if claim.is_run() else claim.ranks
        procs = ProcMesh(Procs(claim.mesh, "", name or "anon"), (labels, sizes, dense(sizes), 0 if base else claim.ranks[0]), base, self)
        if restart:
            procs._procs.again = _again.Again(restart, procs._procs)
        _owner.claimed(claim, procs)
        self._spawned.append(procs)
        if bootstrap is not None:
            procs._set_up(bootstrap)
        return procs

    def with_python_executable(self, python_executable):
        """The same hosts; what is spawned runs that interpreter."""
        one = self._with(self._labels, self._sizes, self._strides, self._offset)
        one._python = python_executable
        return one

    @property
    def region(self):
        return self._region

    @property
    def initialized(self):
        return future(Done(), lambda _: True)

    def stop(self):
        """Ends what was spawned here; the hosts stay."""
        parts = [one.stop("its hosts were stopped")._on for one in self._spawned]
        del self._spawned[:]
        return future(All(parts), lambda _: None)

    def shutdown(self):
        """stop(), and nothing is spawned here any more."""
        ended = self.stop()
        self._over.append(True)
        return ended

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.shutdown()

    def sync_workspace(self, *_args, **_kwargs):
        unbuilt("sync_workspace()", "the spec's workspace is synced at the start of a job: monarch.yaml(5)")

    def __eq__(self, other):
        return isinstance(other, HostMesh) and (self._mesh, self._as_view()) == (other._mesh, other._as_view())

    def __hash__(self):
        return hash((self._mesh, self._as_view()))

    def __reduce__(self):
        hosts = [self._hosts[at] for at in self._positions()] if self._hosts else None
        return HostMesh, (self._mesh, self._labels, self._sizes, self._python, None, hosts)

    def __repr__(self):
        return "HostMesh(%s)" % self._shape


def _dims(per_host):
    for label, size in per_host.items():
        if not isinstance(label, str) or isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError("a dim of per_host is a name and a size from 1 on: %r: %r" % (label, size))
    return dict(per_host)


def _command_at(command, place, labels, sizes):
    """The BootstrapCommand of a place, where there is one."""
    if command is None or not callable(command):
        return command
    return command(Point(place, Extent(labels, sizes)))


def this_proc():
    """This process, for actors in it."""
    return proc_mesh_of(process.where())


def this_host():
    """The host of this process, for processes on it. A program by hand starts a job of its own, which ends with it."""
    from . import _host
    return HostMesh(_host.idle_mesh())

