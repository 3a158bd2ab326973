"""monarch.spmd: programs of torchrun's kind in the processes of a mesh."""

import os
import sys

from ._context import current_rank, current_size
from ._endpoints import endpoint
from .actor import Actor

__all__ = ["SPMDActor", "setup_torch_elastic_env", "setup_torch_elastic_env_async"]


class SPMDActor(Actor):
    """Gives its process the environment that torchrun does, by its place in the mesh, and runs a script in it. The last dim is
    the processes of a host."""

    def __init__(self):
        point, sizes = current_rank(), current_size()
        if not sizes:
            raise ValueError("SPMDActor needs a mesh with a dim: spawn_procs(per_host={\"gpus\": N})")
        last = list(sizes)[-1]
        self.rank, self.local_rank, self.local_world_size = point.rank, point[last], sizes[last]
        self.world_size = point.extent.nelements
        self.nproc_per_node = self.local_world_size
        self.group_rank = self.rank // self.local_world_size
        self.group_world_size = self.world_size // self.local_world_size

    def _setup_env(self, master_addr, master_port):
        os.environ.update({
            "MASTER_ADDR": master_addr, "MASTER_PORT": str(master_port), "RANK": str(self.rank), "LOCAL_RANK": str(self.local_rank),
            "LOCAL_WORLD_SIZE": str(self.local_world_size), "GROUP_RANK": str(self.group_rank), "GROUP_WORLD_SIZE": str(self.group_world_size),
            "ROLE_RANK": str(self.rank), "ROLE_WORLD_SIZE": str(self.world_size), "ROLE_NAME": "rank", "WORLD_SIZE": str(self.world_size)
        })

    @endpoint
    def get_host_port(self, use_ipaddr=None):
        """(name or address of this host, a port that is free just now)"""
        import socket
        host = socket.gethostname()
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
            one.bind(("", 0))
            port = one.getsockname()[1]
        if use_ipaddr is not None:
            family = socket.AF_INET6 if str(use_ipaddr).lower().endswith("6") else socket.AF_INET
            host = socket.getaddrinfo(host, port, family)[0][4][0]
        return host, port

    @endpoint
    def setup_env(self, master_addr, master_port):
        self._setup_env(master_addr, master_port)

    @endpoint
    def main(self, master_addr, master_port, script_args):
        """Runs a script, or `-m` and a module, with its arguments."""
        import runpy
        self._setup_env(master_addr, master_port)
        if not script_args:
            raise ValueError("No script or module specified")
        if script_args[0] == "-m":
            sys.argv = list(script_args[1:])
            runpy.run_module(script_args[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = list(script_args)
            runpy.run_path(script_args[0], run_name="__main__")
        return True


def _prepared(proc_mesh, master_addr, master_port):
    if (master_addr is None) != (master_port is None):
        raise ValueError("master_addr and master_port are given both or not at all")
    return proc_mesh.spawn("_SPMDActor", SPMDActor)


def _first(actors):
    return actors.slice(**dict.fromkeys(actors.extent, 0))


def setup_torch_elastic_env(proc_mesh, master_addr=None, master_port=None, use_ipaddr=None):
    """RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and so on, in each process of the mesh; its first is the master."""
    actors = _prepared(proc_mesh, master_addr, master_port)
    if master_addr is None:
        master_addr, master_port = _first(actors).get_host_port.call_one(use_ipaddr).get()
    actors.setup_env.call(master_addr, master_port).get()


async def setup_torch_elastic_env_async(proc_mesh, master_addr=None, master_port=None, use_ipaddr=None):
    """setup_torch_elastic_env() for coroutines."""
    actors = _prepared(proc_mesh, master_addr, master_port)
    if master_addr is None:
        master_addr, master_port = await _first(actors).get_host_port.call_one(use_ipaddr)
    await actors.setup_env.call(master_addr, master_port)
