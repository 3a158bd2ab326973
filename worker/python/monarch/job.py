"""monarch.job: hosts for a program, as a job of its own."""

from . import _tied
from ._errors import unbuilt
from ._mesh import HostMesh, this_host
from ._process import process
from .actor import hosts_from_config

__all__ = ["JobState", "LocalJob", "ProcessJob", "hosts_from_config"]


class JobState:
    """The meshes of hosts of a job, by name."""

    def __init__(self, hosts):
        self._hosts = hosts

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self.__dict__["_hosts"][name]
        except KeyError:
            raise AttributeError("'%s' is not a valid host mesh name. Available names: %s" % (name, ", ".join(sorted(self._hosts)))) from None


class _Job:
    def __init__(self):
        self._state = None

    def state(self, cached_path=None):
        """Starts it, the first time."""
        del cached_path
        if self._state is None:
            self._state = JobState(self._hosts())
        return self._state

    def apply(self, client_script=None):
        if client_script is not None:
            unbuilt("a job that runs a client script", "`monarch run` with controller: {program: [python3, SCRIPT]}")
        self.state()

    def kill(self):
        process.close("the job was killed by its program")


class LocalJob(_Job):
    """This host, under each of these names."""

    def __init__(self, hosts=("hosts",)):
        super().__init__()
        self._names = list(hosts)

    def _hosts(self):
        return {name: this_host() for name in self._names}


class ProcessJob(_Job):
    """Virtual hosts of this machine: how many of each name."""

    def __init__(self, meshes, env=None):
        super().__init__()
        for name, count in meshes.items():
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise ValueError("mesh %s has a number of hosts from 1 on, not %r" % (name, count))
        self._meshes, self._env = dict(meshes), dict(env or {})

    def _hosts(self):
        names = process.start(_tied.spec_of(sum(self._meshes.values()), self._env))
        found = {}
        for name, count in self._meshes.items():
            found[name] = HostMesh(process.job.mesh, ["hosts"], [count], None, None, names[:count])
            names = names[count:]
        return found


def _unbuilt_job(name, instead):
    class Unbuilt:
        def __init__(self, *_args, **_kwargs):
            unbuilt(name, instead)

    Unbuilt.__name__ = Unbuilt.__qualname__ = name
    return Unbuilt


SlurmJob = _unbuilt_job("SlurmJob", "launch: {slurm: {nodes: N}} in the spec of a job: monarch-slurm(7)")
KubernetesJob = _unbuilt_job("KubernetesJob", "launch: {command: {exec: [kubectl, exec, -i, ...]}} in the spec of a job: monarch.yaml(5)")
SkyPilotJob = _unbuilt_job("SkyPilotJob", "launch: {ssh: ...} in the spec of a job: monarch.yaml(5)")
