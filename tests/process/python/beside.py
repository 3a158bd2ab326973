"""What programs use beside actors: jobs of virtual hosts, bootstrap, the environment of each process, torchrun's variables, arrays."""

import asyncio
import os
import sys

from monarch.actor import Actor, current_rank, endpoint, this_proc
from monarch.job import ProcessJob
from monarch.spmd import setup_torch_elastic_env_async


class Member(Actor):
    @endpoint
    def env(self, *names):
        return [os.environ.get(name) for name in names]

    @endpoint
    def place(self):
        return current_rank().rank, os.environ["MONARCH_HOST"]

    @endpoint
    def more(self, values):
        values += 1  # what comes may be written
        return values

    @endpoint
    def say(self, word):
        print(word, flush=True)


def prepared():
    os.environ["PREPARED"] = "in %s" % os.environ["MONARCH_HOST"]


def arrays():
    found = []
    try:
        import numpy
        found.append(numpy.zeros(8 << 20))
    except ImportError:
        pass
    try:
        import torch
        found.append(torch.zeros(16 << 20))
    except ImportError:
        pass
    return found


if __name__ == "__main__":
    hosts = ProcessJob({"trainers": 2}, env={"TEAM": "red"}).state().trainers
    print(hosts.extent)
    procs = hosts.spawn_procs({"gpus": 2}, bootstrap=prepared)
    members = procs.spawn("members", Member)
    print(list(members.place.call().get().values()))
    print(list(members.env.call("PREPARED", "TEAM").get().values())[3])
    asyncio.run(setup_torch_elastic_env_async(procs))
    print([list(map(int, values)) for values in members.env.call("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE").get().values()])
    one = members.slice(hosts=0, gpus=1)  # of this host: between hosts there is less room
    for values in arrays():
        back = one.more.call_one(values).get()
        print(type(back) is type(values), len(back) == len(values), float(back[-1]), float(values[-1]), file=sys.stderr)
    here = this_proc().spawn("here", Member)
    print(here.env.call_one("TEAM").get())
    members.say.call("said by a rank").get()
