"""Actors: what PyTorch Monarch's users import. The names and what they do are Monarch's; monarch-python(7) has the differences.

    from monarch.actor import Actor, endpoint, this_host

    class Counter(Actor):
        def __init__(self, start):
            self.value = start

        @endpoint
        def add(self, n):
            self.value += n
            return self.value

    counters = this_host().spawn_procs({"gpus": 4}).spawn("counters", Counter, 0)
    print(counters.add.call(2).get())
"""

import functools
import sys

from ._context import Context, context, current_actor_name, current_rank, current_size
from ._endpoints import Accumulator, Endpoint, EndpointProperty, as_endpoint, concurrent_endpoint, endpoint, send
from ._errors import ActorError, MeshFailure, SupervisionError, unbuilt
from ._future import Done, Future, future
from ._host import BootstrapCommand
from ._mesh import ActorMesh, HostMesh, ProcMesh, this_host, this_proc
from ._named import actors, get_or_spawn_controller
from ._owner import unhandled_fault_hook
from ._ports import Channel, Port, PortReceiver, RankedPortReceiver
from ._process import process
from ._views import Extent, Point, ValueMesh

__all__ = [
    "Accumulator", "Actor", "ActorError", "ActorMesh", "BootstrapCommand", "Channel", "ChannelTransport", "Context", "Endpoint", "EndpointProperty",
    "Extent", "Future", "HostMesh", "MeshFailure", "Point", "Port", "PortReceiver", "ProcId", "ProcMesh", "RankedPortReceiver", "SupervisionError",
    "Uid", "ValueMesh", "actors", "as_endpoint", "attach", "attach_to_workers", "concurrent_endpoint", "config", "context", "current_actor_name",
    "current_rank", "current_size", "debug_controller", "default_bootstrap_cmd", "enable_transport", "endpoint", "get_meter",
    "get_or_spawn_controller", "hosts_from_config", "returns_future", "run_worker_loop_forever", "run_worker_loop_until_shutdown", "send",
    "shutdown_context", "span", "start_worker_loop_forever", "this_host", "this_proc", "traced", "unhandled_fault_hook"
]


class Actor:
    """What actors are classes of. `__init__` runs in their process; `__supervise__(failure)` hears of what they own, and returns
    whether it has handled it; `__cleanup__(exc)` is their last word."""

    @functools.cached_property
    def logger(self):
        import logging
        found = logging.getLogger(type(self).__name__)
        found.setLevel(logging.DEBUG)
        return found


ProcId = Uid = str


def shutdown_context(host_timeout=None):
    """Ends what this process has started; a future. Nothing is called by it any more."""
    del host_timeout
    process.close("shutdown_context() was called: this process calls nothing any more")
    return future(Done(), lambda _: None)


def hosts_from_config(name):
    """The hosts of the mesh of that name."""
    process.caller()
    found = process.caller().welcome.mesh(name)
    if found is None:
        raise ValueError("the job has no mesh %s; it has %s" % (name, ", ".join(one.name for one in process.caller().welcome.meshes)))
    return HostMesh(name)


def default_bootstrap_cmd():
    return BootstrapCommand(sys.executable, None, ["-m", "monarch.rank"])


def returns_future(function):
    """An `async def` as a function that gives a Future: it runs where that is first waited for."""
    from . import _started

    @functools.wraps(function)
    def started(*args, **kwargs):
        return _started.future_of(function(*args, **kwargs))

    return started


# ---- what is accepted, and does nothing here


class ChannelTransport:
    """Accepted: what the processes of a job speak is not chosen by its program."""

    def __getattr__(self, name):
        return name


ChannelTransport = ChannelTransport()


def enable_transport(transport):
    from . import _once
    _once.say("enable_transport(%s) does nothing here: the processes of a job find each other by themselves" % (transport,))


class _Nothing:
    """Of telemetry: accepted, and nothing is recorded."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def __call__(self, function):
        return function

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_args, **_kwargs: self


def span(*_args, **_kwargs):
    return _Nothing()


def traced(function=None, **_):
    return function if callable(function) else lambda found: found


def get_meter(*_args, **_kwargs):
    return _Nothing()


# ---- what is not built


def attach(addr):
    unbuilt("attach(%r)" % (addr,), "`monarch up` starts workers, and monarch.actor.actors(MESH, ACTOR, door=PATH) calls what a job has")


def attach_to_workers(*_args, **_kwargs):
    unbuilt("attach_to_workers()", "`monarch up` starts workers on hosts: launch, in monarch.yaml(5)")


def run_worker_loop_forever(*_args, **_kwargs):
    unbuilt("run_worker_loop_forever()", "`monarch up` starts workers on hosts: launch, in monarch.yaml(5)")


run_worker_loop_until_shutdown = start_worker_loop_forever = run_worker_loop_forever


def debug_controller():
    unbuilt("debug_controller()", "`monarch stacks` shows what a rank is at")


def __getattr__(name):
    if name == "config":
        from . import config
        return config
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
