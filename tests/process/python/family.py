"""An actor claims three processes, spawns its children there, loses one, hears of it in __supervise__, and goes on with the rest."""

import asyncio
import os
import signal

from monarch.actor import Actor, MeshFailure, current_rank, endpoint, this_host


class Child(Actor):
    def __init__(self, name):
        self.name, self.number = name, current_rank()["child"]

    @endpoint
    def who(self):
        return "%s %d" % (self.name, self.number)

    @endpoint
    def leave(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Parent(Actor):
    def __init__(self, name):
        self.name, self.heard = name, []
        self.told = asyncio.Event()
        self.procs = this_host().spawn_procs(per_host={"child": 3}, name="children")
        self.children = self.procs.spawn("children", Child, name)

    @endpoint
    async def roll_call(self):
        return [value for _, value in (await self.children.who.call()).items()]

    @endpoint
    async def lose(self, child):
        try:
            await self.children.slice(child=child).leave.call_one()
        except Exception as e:
            lost = type(e).__name__
        await asyncio.wait_for(self.told.wait(), 30)
        return lost, len(self.heard) > 0, all(self.heard)

    @endpoint
    async def rest(self):
        return [await self.children.slice(child=child).who.call_one() for child in (0, 2)]

    @endpoint
    async def all_of_them(self):
        try:
            await self.children.who.call()
        except Exception as e:
            return type(e).__name__

    def __supervise__(self, failure):
        self.heard.append(isinstance(failure, MeshFailure))
        self.told.set()
        return True


async def main():
    home = this_host().spawn_procs(per_host={"home": 1})
    parent = home.spawn("parent", Parent, "Ada").slice(home=0)
    print(await parent.roll_call.call_one())
    print(*await parent.lose.call_one(1))
    print(await parent.rest.call_one())
    print(await parent.all_of_them.call_one())
    print(await parent.rest.call_one())


if __name__ == "__main__":
    asyncio.run(main())
