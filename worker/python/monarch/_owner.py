"""Who owns what: processes that were claimed and actors that were spawned belong to the actor, or the program, that did it.
It is told of their failures, and they end with it.

Thread: any.
"""

import os
import sys
import threading

from . import _context
from . import _door as d
from ._errors import MeshFailure
from ._process import own_place, process

_lock = threading.Lock()
_claims = []  # of this process
_watch = []  # the connection by which a rank hears of failures
_spawned = {}  # (mesh, rank): names of the actors that this process has spawned there


class _Claim:
    def __init__(self, claim, procs, cell):
        self.claim, self.procs, self.cell = claim, procs, cell
        self.ranks = list(claim.ranks)
        self.left = set(claim.ranks)

    def is_made_again(self, rank, cause):
        again = self.procs._procs.again
        return again is not None and again.heard(rank, cause)


def present_owner():
    """(where, actor) of whose code runs; an actor without a name is the program. None where nobody can be told."""
    cell = _context.running_cell()
    try:
        return process.where(), "" if cell is None else cell.wire_name
    except d.Ended:
        return None


def claimed(claim, procs):
    cell = _context.running_cell()
    one = _Claim(claim, procs, cell)
    with _lock:
        _claims.append(one)
    if cell is not None:
        cell.children.append(one)
    _start_watch()


def spawned(mesh):
    """Remembers which actors are where, for what is said of a process that fails."""
    with _lock:
        for rank in mesh._ranks():
            _spawned.setdefault((mesh._procs.mesh, rank), []).append(mesh._wire_name.partition("#")[0])


def release(procs, reason):
    """Lets these processes go; a future. A claim is let go whole: where only some of its processes are, they end one by one."""
    from . import _host
    ranks, parts, some = set(procs._ranks()), [], False
    with _lock:
        mine = [one for one in _claims if one.claim.mesh == procs._procs.mesh and not ranks.isdisjoint(one.ranks)]
        for one in mine:
            one.left -= ranks
            if not one.left:
                _claims.remove(one)
                one.procs._procs.over.append(reason)
    for one in mine:
        if one.left:
            some = True
        else:
            parts.append(one.claim.let_go())
    if some or not mine:
        parts.append(_host.end(procs))
    return _host.future_of_all(parts)


def let_go(cell):
    """What an actor owns ends with it."""
    children, cell.children = cell.children, []
    for one in children:
        if one.left:
            one.procs.stop("its owner, actor %s, has ended" % cell.name)


# ---- failures


def _start_watch():
    """A program's serving connection watches; a rank's does not, before it owns something."""
    present_owner()
    server = process.server
    if server is not None and server.watches:
        return
    with _lock:
        if _watch:
            return
        from . import _serve
        _watch.append(_serve.watch_as(None if server is None else server.place))
    threading.Thread(target=_read_watch, name="monarch watch", daemon=True).start()


def _read_watch():
    from . import _wire
    door = _watch[0]
    try:
        while True:
            heard = door.read()
            if heard is not None and heard[0] == d.FAILURE:
                heard_failure(_wire.fields(heard[1])[0], door.welcome)
    except d.Ended:
        with _lock:
            _watch.remove(door)
    server = process.server
    if server is not None and not server.is_over():
        try:
            _start_watch()
        except d.Ended:
            pass


def heard_failure(failure, welcome):
    """Of processes of the job: their owners here are told, once for each process."""
    _, place, first, count, _, cause = failure[:6]
    name = welcome.meshes[place].name if place < len(welcome.meshes) else ""
    from . import _bodies
    _bodies.forget((name, rank) for rank in range(first, first + count))
    told, spent = [], []
    with _lock:
        for one in list(_claims):
            if one.claim.mesh != name:
                continue
            for rank in range(first, first + count):
                if rank in one.left and not one.is_made_again(rank, cause):
                    one.left.discard(rank)
                    actors = _spawned.pop((name, rank), None) or [one.procs._procs.name]
                    told.append((one.cell, MeshFailure(actors[-1], [one.ranks.index(rank)], cause, one.procs)))
            if not one.left and one in _claims:  # all its processes are dead: others may have the slots
                _claims.remove(one)
                spent.append(one)
    for one in spent:
        one.claim.let_go()
    for cell, failure in told:
        _deliver(cell, failure)


def _deliver(cell, failure):
    if cell is None:
        return _run_hook(failure)
    server = cell.server
    if server.runs_items_of(cell):
        return cell.hear(failure)
    # The thread that reads the door runs the actor, too, and is woken by what comes there.
    from ._mesh import built_in_of
    return built_in_of(server.where, "supervise").broadcast(cell.wire_name, failure)


def hear(server, wire_name, failure):
    """Somebody says of what this process owns that it has failed."""
    if not wire_name:
        return _run_hook(failure)
    cell = server.cells.get(wire_name)
    return None if cell is None else cell.hear(failure)


def tell_owner(cell, why):
    """An actor of this process has failed."""
    if cell.owner is None:
        return
    where, name = cell.owner
    failure = MeshFailure(cell.name, [cell.instance.rank.rank], why)
    if where == own_place():
        return hear(process.server, name, failure)
    from ._mesh import built_in_of
    try:
        built_in_of(where, "supervise").broadcast(name, failure)
    except d.Ended:
        pass
    return None


# ---- what nobody handles


def unhandled_fault_hook(failure):
    """What becomes of a failure that no owner has handled. Assign your own to monarch.actor.unhandled_fault_hook; this one
    ends the program with exit code 1."""
    del failure
    sys.exit(1)


def _run_hook(failure):
    """In a thread of its own: a hook may call actors."""
    threading.Thread(target=_hook, args=(failure,), name="monarch fault", daemon=True).start()


def _hook(failure):
    actor = sys.modules.get("monarch.actor")
    run = getattr(actor, "unhandled_fault_hook", unhandled_fault_hook)
    try:
        run(failure)
    except BaseException as e:
        import datetime
        import socket
        sys.stderr.write("Unhandled monarch error on the root actor, hostname=%s, PID=%d at time %s:\n%s\n" %
                         (socket.gethostname(), os.getpid(), datetime.datetime.now(), failure.report()))
        if not isinstance(e, SystemExit):
            import traceback
            traceback.print_exception(type(e), e, e.__traceback__)
        sys.stderr.flush()
        _end_program()


def _end_program():
    """The main thread is interrupted, so that what it has to put away is; the exit code is 1 then."""
    import _thread
    import atexit
    atexit.register(_exit)
    _thread.interrupt_main()


def _exit():
    process.close("this program is about to end")
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(1)
