"""What scripts/bench actors measures in Python: calls of actors as users of PyTorch Monarch write them. One program for all that have such a
package: PyTorch Monarch's own, ours, and Ray's actors under the same names (tests/bench/over_ray). Prints an object of JSON.

usage: peer_actors.py RANKS calls | wide     the calls of tests/bench/actors.cc
       peer_actors.py RANKS start            spawn and call: when the answers were there, by the monotonic clock
       peer_actors.py RANKS same DEATHS      whatever scripts/bench actors --peers compares, with so many ranks killed at the end
       peer_actors.py RANKS cpp              a controller of ours, which calls the actors in C++ of tests/bench/actors.cc

What only some of these need is imported by them: a start is measured, too.
"""

import collections
import dataclasses
import json
import os
import sys
import time

os.environ.setdefault("MONARCH_FILE_LOG", "error")

import monarch.actor  # noqa: E402
from monarch.actor import Actor, endpoint, this_host  # noqa: E402

MIB = 1 << 20
IN_FLIGHT = 1000


@dataclasses.dataclass
class Sample:
    """Of this script, so that it can be imported nowhere."""

    tokens: list
    reward: float
    who: str


class Echo(Actor):
    def __init__(self):
        self.kept = b""

    @endpoint
    def nothing(self, number):
        return number

    @endpoint
    def take(self, data):
        return total(data)

    @endpoint
    def digest(self, data):
        return digest(data)

    @endpoint
    def keep(self, data):
        self.kept = bytes(data)

    @endpoint
    def give(self):
        return self.kept

    @endpoint
    def pid(self):
        return os.getpid()

    @endpoint
    def sleep(self, seconds):
        time.sleep(seconds)


class Loop(Actor):
    @endpoint
    async def nothing(self, number):
        return number


def total(data):
    """As tests/bench/actors.cc has it: whoever gives another answer has not got the bytes."""
    if not isinstance(data, bytes):
        return len(data) + int(data[::4096].sum(dtype="int64"))  # an array of bytes
    return len(data) + sum(data[::4096])


def digest(data):
    import hashlib
    return hashlib.sha256(data).hexdigest()


def must(right, what):
    if not right:
        sys.exit(f"peer_actors: {what}")


def median(values):
    return sorted(values)[len(values) // 2]


def median_us(runs, call, is_right=lambda turn, got: True):
    """What comes is looked at when the clock stands."""
    times = []
    for turn in range(runs + runs // 10 + 1):
        begun = time.perf_counter()
        got = call(turn)
        took = time.perf_counter() - begun
        if not is_right(turn, got):
            sys.exit(f"peer_actors: a call gave {str(got)[:100]}")
        if turn > runs // 10:  # the first are warm-up
            times.append(took * 1e6)
    return median(times)


def calls(actors, found):
    one = actors.slice(gpus=0)
    found["near_p50_us"] = median_us(1000, lambda number: must(one.nothing.call_one(number).get() == number, "another answer"))
    count, under_way = 4000, collections.deque()
    begun = time.perf_counter()
    for number in range(count):
        under_way.append(one.nothing.call_one(number))
        if len(under_way) == 64:
            under_way.popleft().get()
    for call in under_way:
        call.get()
    found["near_calls_per_s"] = count / (time.perf_counter() - begun)
    for kibibytes, runs in ((1024, 40), (65536, 5)):
        data = os.urandom(kibibytes << 10)
        expected = total(data)
        found[f"near_{kibibytes}KiB_us"] = median_us(runs, lambda _, d=data, e=expected: must(one.take.call_one(d).get() == e, "other bytes"))


def wide(actors, found, ranks):
    found["p50_us"] = median_us(100, lambda number: must(len(list(actors.nothing.call(number).get().values())) == ranks, "answers"))


def resident_kib(pid):
    """{"Rss": KiB, "Pss": KiB}; Pss is its part of what it shares with others."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
        return {words[0][:-1]: int(words[1]) for words in map(str.split, file) if words[0] in ("Rss:", "Pss:")}


def memory(actors, found):
    sizes = [resident_kib(pid) for pid in actors.pid.call().get().values()]
    found["rss_kib"], found["pss_kib"] = (median([one[name] for one in sizes]) for name in ("Rss", "Pss"))


def small(actors, one, ranks, found):
    """Small calls, one after the other and together."""
    found["one_us"] = median_us(1000, lambda number: one.nothing.call_one(number).get(), lambda number, got: got == number)
    found["all_us"] = median_us(300, lambda number: list(actors.nothing.call(number).get().values()), lambda number, got: got == [number] * ranks)
    rates = []
    for _ in range(5):
        begun = time.perf_counter()
        under_way = [one.nothing.call_one(number) for number in range(IN_FLIGHT)]
        got = [call.get() for call in under_way]
        rates.append(IN_FLIGHT / (time.perf_counter() - begun))
        must(got == list(range(IN_FLIGHT)), "calls in flight gave something else")
    found["in_flight_per_s"] = median(rates)


def awaited(found):
    import asyncio
    loop = this_host().spawn_procs(per_host={"gpus": 1}).spawn("loop", Loop)

    async def run(runs):
        times = []
        for number in range(runs + runs // 10):
            begun = time.perf_counter()
            got = await loop.nothing.call_one(number)
            times.append((time.perf_counter() - begun) * 1e6)
            must(got == number, "an awaited call gave something else")
        return median(times[runs // 10:])

    found["awaited_us"] = asyncio.run(run(500))


def values(one, found):
    """Values there, and back; whole bodies are compared once, and a byte of each page every time."""
    import numpy
    sample = Sample([1, 2, 3, 4], 0.5, "x")
    found["dataclass_us"] = median_us(300, lambda _: one.nothing.call_one(sample).get(), lambda _, got: got == sample)
    data = os.urandom(MIB)
    one.keep.call_one(data).get()
    found["back_us"] = median_us(100, lambda _: one.give.call_one().get(), lambda _, got: got == data)
    big = numpy.random.default_rng(1).integers(0, 256, 64 * MIB, dtype="uint8")
    for name, body, runs in (("bytes", data, 100), ("array", big[:MIB].copy(), 100), ("big", big, 10)):
        expected = total(body)
        found[f"{name}_us"] = median_us(runs, lambda _, b=body: one.take.call_one(b).get(), lambda _, got, e=expected: got == e)
        must(one.digest.call_one(body).get() == digest(body), f"{name} came as something else")


def deaths(actors, found, count):
    """From a kill -9 of a rank that is within a call until its caller has the exception."""
    import signal
    monarch.actor.unhandled_fault_hook = lambda failure: None  # by default it ends the program
    pids, times = list(actors.pid.call().get().values()), []
    for rank in range(count):
        call = actors.slice(gpus=rank).sleep.call_one(60)
        time.sleep(0.3)  # it is within its call now
        begun = time.perf_counter()
        os.kill(pids[rank], signal.SIGKILL)
        try:
            call.get()
        except Exception:
            times.append((time.perf_counter() - begun) * 1e6)
    must(len(times) == count, "a call of a rank that was killed gave no exception")
    found["death_us"] = median(times)


def same(actors, found, ranks, killed):
    memory(actors, found)
    one = actors.slice(gpus=0)
    small(actors, one, ranks, found)
    awaited(found)
    values(one, found)
    deaths(actors, found, killed)


def cpp(found, ranks):
    echo = monarch.actor.actors("e", "echo")
    one = echo.slice(host=0, gpu=0)
    small(echo, one, ranks, found)
    data = os.urandom(MIB)
    expected = total(data)
    found["bytes_us"] = median_us(100, lambda _: one.take.call_one(data).get(), lambda _, got: got == expected)


def main(ranks, what, killed):
    found = {"ranks": ranks}
    if what == "cpp":
        cpp(found, ranks)
    else:
        actors = this_host().spawn_procs(per_host={"gpus": ranks}).spawn("echo", Echo)
        must(list(actors.nothing.call(1).get().values()) == [1] * ranks, "the first call")
        found["answered_at"] = time.monotonic()
        if what == "calls":
            calls(actors, found)
        elif what == "wide":
            wide(actors, found, ranks)
        elif what == "same":
            same(actors, found, ranks, killed)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
