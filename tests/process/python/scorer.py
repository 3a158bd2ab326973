"""Python actors that a job names, called from Python and from C++."""

import asyncio
import os
import time

from monarch.actor import Actor, concurrent_endpoint, current_rank, endpoint


class Scorer(Actor):
    def __init__(self, start, names=()):
        self.total, self.names = start, list(names)
        self.kept = []

    @endpoint
    def add(self, n):
        self.total += n
        return self.total

    @endpoint
    def describe(self):
        rank = current_rank()
        return {"rank": rank.rank, "at": dict(rank), "names": self.names, "pid": os.getpid()}

    @endpoint
    def length(self, data):
        return len(data)

    @endpoint
    def made(self, n, byte):
        return bytes([byte]) * n

    @endpoint
    def keep(self, data):
        self.kept.append(data)

    @endpoint
    def kept_are(self):
        return [data[0] for data in self.kept]

    @endpoint
    def fail(self, why):
        raise ValueError(why)

    @endpoint
    def nap(self, seconds):
        time.sleep(seconds)
        return "rested"

    def __cleanup__(self, exc):
        print("put away", self.total, flush=True)


class Loop(Actor):
    """Asynchronous, with endpoints that overlap."""

    def __init__(self):
        self.opened = asyncio.Event()
        self.at_once = self.most = 0

    @concurrent_endpoint
    async def wait(self):
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await self.opened.wait()
        self.at_once -= 1
        return self.most

    @endpoint
    async def open(self):
        self.opened.set()
        return os.getpid()


class Broken(Actor):
    def __init__(self):
        raise RuntimeError("no such model")
