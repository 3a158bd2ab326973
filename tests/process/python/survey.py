"""Eight stations that measure: the ways of calling, slices, values of the script's own classes, and errors. It has no __main__ guard."""

import dataclasses
import logging

from monarch.actor import Actor, ActorError, current_rank, current_size, endpoint, this_host

log = logging.getLogger(__name__)
OFFSET = 273.0


@dataclasses.dataclass
class Reading:
    station: int
    kelvin: list

    def warmest(self):
        return max(self.kelvin)


def kelvin(celsius):
    return celsius + OFFSET


class Station(Actor):
    def __init__(self, first, rule):
        self.rank = current_rank().rank
        self.rule = rule
        self.celsius = [first + self.rank + k / 4 for k in range(3)]
        self.notes = 0
        log.debug("station %d", self.rank)

    @endpoint
    def read(self):
        return Reading(self.rank, [kelvin(one) for one in self.celsius])

    @endpoint
    def place(self):
        return dict(current_rank()), dict(current_size())

    @endpoint
    def ruled(self, *, over=0.0):
        return [one for one in map(self.rule, self.celsius) if one > over]

    @endpoint
    def note(self, count):
        self.notes += count

    @endpoint
    def noted(self):
        return self.notes

    @endpoint
    def better(self, reading):
        return Reading(self.rank, [one + 1 for one in reading.kelvin])

    @endpoint
    def check(self):
        if self.rank % 2:
            raise ValueError("station %d is out of order" % self.rank)
        return "in order"


procs = this_host().spawn_procs(per_host={"hut": 2, "bench": 4})
stations = procs.spawn("stations", Station, 7.0, lambda value: round(value * 1.5, 2))

for point, reading in stations.read.call().get().items():
    print(dict(point), reading, reading.warmest())
print(stations.extent, stations.sizes, len(stations))

one = stations.slice(hut=1, bench=2)
print(one.read.call_one().get(), one.place.call_one().get())
print(one.better.call_one(Reading(0, [1.0, 2.0])).get())

row = stations.slice(bench=slice(1, 3))
print(row.sizes, sorted(reading.station for reading in row.read.call().get().values()))
print(list(row.place.call().get().values())[3])
print(stations.slice(hut=1).flatten("station").place.call().get().item(station=3))
print(stations.ruled.call(over=17.0).get().item(hut=1, bench=0))
print(stations.split(bench=("table", "seat"), seat=2).slice(table=1, seat=0).read.call().get())

for _ in range(3):
    stations.note.broadcast(1)
stations.slice(hut=0).note.broadcast(10)
print(list(stations.noted.call().get().values()))
print(sorted(future.get() for future in stations.slice(hut=0).noted.stream()))
print(stations.choose.__name__ if hasattr(stations, "choose") else type(stations.read.choose().get()).__name__)

try:
    stations.check.call().get()
except ActorError as e:
    print("ActorError", "is out of order" in str(e))
try:
    stations.slice(hut=0, bench=1).check.call_one().get()
except ActorError as e:
    print(type(e.exception).__name__, e.exception)
print(list(stations.slice(bench=slice(0, 4, 2)).check.call().get().values()))
for wrong in (lambda: stations.slice(floor=0), lambda: stations.read.call_one(), lambda: stations.better.call(), lambda: stations.slice(bench=4)):
    try:
        wrong()
    except Exception as e:
        print(type(e).__name__)
procs.stop().get()
