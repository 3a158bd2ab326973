"""Workers that overlap put what they made on a shelf, the one controller of all; those who take from it are answered later, by ports."""

import asyncio

from monarch.actor import Actor, concurrent_endpoint, current_rank, endpoint, get_or_spawn_controller, this_host


class Shelf(Actor):
    def __init__(self):
        self.things, self.waiting, self.most = [], [], 0

    @endpoint
    async def put(self, thing):
        self.things.append(thing)
        self._hand_out()

    @endpoint(explicit_response_port=True)
    async def take(self, port, size):
        self.waiting.append((port, size))
        self.most = max(self.most, len(self.waiting))
        self._hand_out()

    @endpoint
    async def counts(self):
        return len(self.things), len(self.waiting), self.most

    def _hand_out(self):
        while self.waiting and len(self.things) >= self.waiting[0][1]:
            port, size = self.waiting.pop(0)
            taken, self.things = self.things[:size], self.things[size:]
            port.send(sorted(taken))


class Press(Actor):
    """Presses two things into one."""

    def __init__(self):
        self.rank = current_rank().rank

    @endpoint
    async def press(self, a, b):
        await asyncio.sleep(0)
        return a * 10 + b


class Worker(Actor):
    def __init__(self, presses):
        self.presses, self.rank = presses, current_rank()["worker"]
        self.at_work = self.most = 0
        self.all_here = asyncio.Event()

    @concurrent_endpoint
    async def make(self, number):
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        if self.at_work == 4:
            self.all_here.set()
        await self.all_here.wait()
        press = self.presses.slice(press=number % 2)
        made = await press.press.call_one(self.rank, number)
        shelf = await get_or_spawn_controller("shelf", Shelf)
        await shelf.put.call_one(made)
        self.at_work -= 1
        return made

    @endpoint
    async def seen(self):
        return self.most


async def main():
    procs = this_host().spawn_procs(per_host={"worker": 2})
    presses = this_host().spawn_procs(per_host={"press": 2}).spawn("presses", Press)
    shelf = await get_or_spawn_controller("shelf", Shelf)
    workers = procs.spawn("workers", Worker, presses)
    takes = [shelf.take.call_one(1) for _ in range(8)]
    print(await shelf.counts.call_one())
    made = [workers.make.call(number) for number in range(4)]
    made = [sorted((await future).values()) for future in made]
    print(made)
    taken = [(await future)[0] for future in takes]
    print(sorted(taken) == sorted(sum(made, [])), len(set(taken)))
    print(await shelf.counts.call_one())
    print(sorted((await workers.seen.call()).values()))
    last = shelf.take.call_one(2)
    await shelf.put.call_one("b")
    await shelf.put.call_one("a")
    print(await last)
    same = await get_or_spawn_controller("shelf", Shelf)
    print((await same.counts.call_one())[2])
    await procs.stop()


if __name__ == "__main__":
    asyncio.run(main())
