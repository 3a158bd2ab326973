"""Actors and values of tests, in a module that ranks import."""

import dataclasses
import enum
import os
import signal
import time
from typing import Any, NamedTuple

from monarch.actor import Actor, Channel, current_rank, current_size, endpoint, this_host


@dataclasses.dataclass
class Reading:
    station: int
    of: Any


class Pair(NamedTuple):
    a: int
    b: Any


class Color(enum.Enum):
    RED = 1
    BLUE = "b"


class Odd(Exception):
    def __init__(self, code):
        super().__init__(code)
        self.code = code


def prepare():
    os.environ["SET"] = "yes"


class Worker(Actor):
    def __init__(self, start=0):
        self.total = start

    @endpoint
    def add(self, n, *, times=1):
        self.total += n * times
        return self.total

    @endpoint
    def place(self):
        return current_rank().rank, dict(current_size()), os.getpid()

    @endpoint
    def env(self, name):
        return os.environ.get(name)

    @endpoint
    def log_level(self):
        import logging
        return logging.getLogger().level

    @endpoint
    def same(self, value):
        return value

    @endpoint
    def nap(self, seconds):
        time.sleep(seconds)
        return seconds

    @endpoint
    def die(self):
        os.kill(os.getpid(), signal.SIGKILL)

    @endpoint
    def odd(self, code):
        raise Odd(code)

    @endpoint
    def processors(self):
        return sorted(os.sched_getaffinity(0))

    @endpoint(explicit_response_port=True)
    def later(self, port, n):
        port.send(n + 1)

    def hidden(self, n):
        return 3 * n


class Half(Actor):
    """Cannot be made on half of its ranks."""

    def __init__(self):
        if current_rank().rank % 2:
            raise ValueError("an odd rank")

    @endpoint
    def hi(self):
        return "hi"


class Clash(Actor):
    @endpoint
    def slice(self):
        pass


class Parent(Actor):
    def __init__(self):
        self.told = []

    @endpoint
    def claim(self, count):
        self.procs = this_host().spawn_procs({"child": count})
        self.children = self.procs.spawn("children", Worker, 5)
        return list(self.children.add.call(1).get().values())

    @endpoint
    def lose(self, which):
        try:
            self.children.slice(child=which).die.call_one().get()
        except RuntimeError as e:
            return type(e).__name__
        return None

    @endpoint
    def heard(self):
        return self.told

    def __supervise__(self, failure):
        self.told.append((failure.ranks, failure.signal, failure.exit_code, failure.host))
        return True


class Hears(Actor):
    @endpoint
    async def through(self, other, n):
        return await other.add.call_one(n)

    @endpoint
    def channel(self):
        port, self.receiver = Channel.open()
        return port
