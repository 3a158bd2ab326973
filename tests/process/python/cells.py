"""What a notebook does: cells that run one by one in __main__, and a class that is defined twice."""

CELLS = ["""
import asyncio
from monarch.actor import Actor, endpoint, this_host

class Teller(Actor):
    @endpoint
    def say(self, thing):
        return "first", thing.double()

class Thing:
    def __init__(self, n):
        self.n = n
    def double(self):
        return 2 * self.n

procs = this_host().spawn_procs({"g": 2})
tellers = procs.spawn("tellers", Teller)
print(list(tellers.say.call(Thing(1)).get().values()))
""", """
class Thing:
    def __init__(self, n):
        self.n = n
    def double(self):
        return [self.n, self.n]

class Teller(Actor):
    @endpoint
    def say(self, thing):
        return "second", thing.double()

    @endpoint
    def tell(self):
        print("told by %s" % type(self).__name__, flush=True)

second = procs.spawn("tellers", Teller)
print(list(second.say.call(Thing(1)).get().values()))
""", """
print(list(tellers.say.call(Thing(2)).get().values()))

async def ask():
    return [value async for value in _values()]

async def _values():
    for future in second.say.stream(Thing(3)):
        yield (await future)[0]

print(asyncio.run(ask()))
second.slice(g=0).tell.call_one().get()
procs.stop().get()
"""]

if __name__ == "__main__":
    for number, cell in enumerate(CELLS, 1):
        exec(compile(cell, "<cell %d>" % number, "exec"), globals())
