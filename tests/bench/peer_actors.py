"""What scripts/bench actors measures of PyTorch Monarch: the calls of tests/bench/actors.cc as its own users write them. Prints JSON.

usage: peer_actors.py RANKS calls | RANKS wide
"""

import collections
import json
import os
import statistics
import sys
import tempfile
import time

os.environ.setdefault("MONARCH_FILE_LOG", "error")

from monarch.actor import Actor, endpoint, this_host  # noqa: E402


class Echo(Actor):
    @endpoint
    def nothing(self, number):
        return number

    @endpoint
    def take(self, data):
        return total(data)


def total(data):
    """As tests/bench/actors.cc has it: whoever gives another answer has not got the bytes."""
    return len(data) + sum(data[::4096])


def must(right, what):
    if not right:
        sys.exit(f"peer_actors: {what}")


def median_us(runs, call):
    times = []
    for turn in range(runs + runs // 10 + 1):
        begun = time.perf_counter()
        call(turn)
        if turn > runs // 10:  # the first are warm-up
            times.append((time.perf_counter() - begun) * 1e6)
    return statistics.median(times)


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


def main(ranks, what):
    os.chdir(tempfile.gettempdir())
    actors = this_host().spawn_procs(per_host={"gpus": ranks}).spawn("echo", Echo)
    actors.nothing.call(1).get()
    found = {"ranks": ranks}
    calls(actors, found) if what == "calls" else wide(actors, found, ranks)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
