"""The actor `monarch` of each Python process: makes and ends its actors, and passes on what comes to its ports.

Thread: where the door is read.
"""

from . import _bodies
from ._process import process
from ._views import point_in


def run(server, one):
    """Runs a call of it, and answers."""
    take = ENDPOINTS.get(one.endpoint)
    if take is None:
        return one.refuse("the actor monarch of a process has no endpoint %s" % one.endpoint)
    if one.endpoint not in _OF_ANYBODY and not _bodies.trusts(one.here):
        return one.refuse("%s of another host, and this mesh has no trust: job" % one.endpoint)
    args, kwargs, _, flags = _bodies.arguments(one)
    if flags & _bodies.QUIET:
        one.is_quiet = True
    return take(server, one, *args, **kwargs)


def _make(server, one, wire_name, Class, view, args, kwargs, owner, root, exact, creator, procs):
    if process.root is None:
        process.root = root
    cell = server.cells.get(wire_name)
    if cell is not None and exact and cell.failed is None and not cell.is_over:
        cell.runner.put(lambda: one.reply(None))  # behind its constructor
        return
    cell = server.add_cell(wire_name, Class, point_in(view, server.where.rank), creator, owner)
    if procs is not None:
        from ._mesh import ProcMesh
        cell.instance._procs = ProcMesh(procs, view[:4], view[4] if len(view) > 4 else None)
    given = [args, kwargs]
    del args, kwargs

    def construct():
        try:
            cell.construct(*given)
        except Exception as e:
            del given[:]
            one.fail(e)
        else:
            del given[:]
            one.reply(None)

    cell.runner.put(construct)
    server.release_early(cell)


def _stop(server, one, wire_name):
    cell = server.cells.get(wire_name)
    if cell is None:
        return one.reply(None)

    def end():
        rest = cell.cleanup()
        if rest is None:
            return one.reply(None)
        return _then(rest, server, one)

    return cell.runner.put(end)


async def _then(rest, server, one):
    await rest
    one.reply(None)


def _setup(server, one, bootstrap):
    rest = bootstrap()
    if hasattr(rest, "__await__"):
        import asyncio
        asyncio.run(rest)
    one.reply(None)


def _port(server, one, number, value, error, rank):
    arrived = server.ports.get(number)
    if arrived is not None:
        arrived(value, error, rank)
    one.reply(None)


def _supervise(server, one, wire_name, failure):
    from . import _owner
    one.reply(None)
    _owner.hear(server, wire_name, failure)


def _ping(server, one):
    one.reply(True)


def _actors(server, one):
    """[[name, class, [[endpoint, signature]…]]…]"""
    import inspect
    found = []
    for cell in server.cells.values():
        endpoints = [[name, str(inspect.signature(of._method))] for name, of in cell.methods.items()]
        found.append([cell.wire_name, cell.instance.class_name, endpoints])
    one.reply(found)


def _log_level(server, one, level):
    del server
    import logging
    logging.getLogger().setLevel(level)
    one.reply(None)


def _end(server, one):
    import signal
    one.reply(None)
    signal.raise_signal(signal.SIGTERM)


ENDPOINTS = {
    "make": _make, "stop": _stop, "setup": _setup, "port": _port, "supervise": _supervise, "ping": _ping, "actors": _actors, "end": _end,
    "log_level": _log_level
}
_OF_ANYBODY = ("port", "ping", "actors")  # of the job; the others change what runs here
BEFORE_ANYTHING = ("setup",)  # nothing else is taken while it runs
