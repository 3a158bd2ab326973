"""Actor, endpoint and this_host by Ray, as thin as can be: each rank is an actor of Ray in a process of its own, each endpoint a method."""

import logging

import ray


class Actor:
    pass


def endpoint(method):
    return method


class Future:
    """Of one call, or of all ranks' together."""

    def __init__(self, asked):
        self._asked = asked

    def get(self):
        got = ray.get(self._asked)
        return Values(got) if isinstance(got, list) and isinstance(self._asked, list) else got

    def __await__(self):
        return self._asked.__await__()


class Values:
    def __init__(self, got):
        self._got = got

    def values(self):
        return self._got


class Endpoint:
    def __init__(self, methods):
        self._methods = methods

    def call(self, *args):
        return Future([method.remote(*args) for method in self._methods])

    def call_one(self, *args):
        method, = self._methods
        return Future(method.remote(*args))


class ActorMesh:
    def __init__(self, ranks):
        self._ranks = ranks

    def slice(self, gpus):
        return ActorMesh([self._ranks[gpus]])

    def __getattr__(self, name):
        found = self.__dict__[name] = Endpoint([getattr(rank, name) for rank in self._ranks])
        return found


class ProcMesh:
    def __init__(self, count):
        self._count = count

    def spawn(self, name, actor, *args):
        made = ray.remote(num_cpus=0)(actor)
        return ActorMesh([made.options(name=f"{name}{rank}").remote(*args) for rank in range(self._count)])


class HostMesh:
    def spawn_procs(self, per_host):
        count, = per_host.values()
        return ProcMesh(count)


def this_host():
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    return HostMesh()
