"""Where code runs: which actor, of which mesh, and for which call.

Thread: each thread, and each task of a loop, has a context of its own.
"""

import contextvars

from ._views import Extent, Point

_NOWHERE = Point(0, Extent([], []))
_now = contextvars.ContextVar("monarch", default=None)


class Creator:
    """Who has spawned an actor, as it travels."""

    def __init__(self, rank, name, class_name, creator):
        self.rank, self.name, self.class_name, self.creator = rank, name, class_name, creator

    def __repr__(self):
        return _qualified(self)


class Instance:
    """An actor as it sees itself."""

    def __init__(self, name, class_name, rank, where, wire_name="", creator=None, procs=None):
        self.name, self.class_name, self.rank, self.creator = name, class_name, rank, creator
        self._where, self._wire_name, self._procs = where, wire_name, procs
        self._cell = None

    @property
    def actor_id(self):
        where = self._where
        if where is None:
            return self.name
        return "%s/%d/%s" % (where.mesh if not where.host else "%s%s" % (where.host, where.mesh), where.rank, self._wire_name or self.name)

    @property
    def proc_id(self):
        return self.actor_id.rpartition("/")[0]

    @property
    def proc_mesh(self):
        """The processes that it was spawned on."""
        if self._procs is None:
            from ._mesh import proc_mesh_of
            self._procs = proc_mesh_of(self._where)
        return self._procs

    @property
    def proc(self):
        """The one process that it is in."""
        mesh = self.proc_mesh
        return mesh.slice(**{label: self.rank[label] for label in self.rank}) if len(self.rank) else mesh

    def stop(self, reason=None):
        """Ends this actor once the present message has been handled."""
        self._own_cell("stop").stop_later(reason)

    def abort(self, reason=None):
        """Fails this actor: its owner is told."""
        self._own_cell("abort").fail(reason or "it has aborted itself")

    kill = abort

    def _own_cell(self, what):
        if self._cell is None:
            raise RuntimeError("%s() of an actor is called within it" % what)
        return self._cell

    def as_creator(self):
        return Creator(self.rank, self.name, self.class_name, self.creator)

    def __repr__(self):
        return _qualified(self)


def _qualified(one):
    names = []
    while one is not None:
        of = "%s " % one.class_name if one.class_name else ""
        names.append("<%s%s%s>" % (of, one.name, one.rank if len(one.rank) else ""))
        one = one.creator
    return ".".join(reversed(names))


class Context:
    __slots__ = ("actor_instance", "message_rank")

    def __init__(self, actor_instance, message_rank):
        self.actor_instance, self.message_rank = actor_instance, message_rank


_program = Context(Instance("client", None, _NOWHERE, None), _NOWHERE)


def context():
    """The actor whose code runs, and its place in the slice that was called; in the program that of the program."""
    return _now.get() or _program


def enter(context_of_message):
    _now.set(context_of_message)


def running_cell():
    """The actor of this process whose code runs, or None."""
    now = _now.get()
    return None if now is None else now.actor_instance._cell


def current_rank():
    return context().message_rank


def current_size():
    extent = context().message_rank.extent
    return {label: extent[label] for label in extent}


def current_actor_name():
    return str(context().actor_instance.actor_id)
