"""A seeded Ethernet switch: which frames reach which ports, when, and what becomes of them on the way.

Pure: no descriptors, no clock; world_init.py feeds it. A rule holds for one direction between two ports. ARP and whatever
else is not IPv4 is cut with the cable but never lost, delayed or doubled: figures asked for are those of the traffic.
"""

import dataclasses
import random

import frames

QUEUE_LIMIT = 20_000  # frames under way; more are dropped and counted
QUEUED_S = 0.2        # of a rule's bandwidth, that may wait; more is dropped and counted


@dataclasses.dataclass
class Rule:
    """What happens to frames of one direction; as it is, nothing."""

    cut: bool = False          # nothing passes
    loss: float = 0.0          # probability
    duplicate: float = 0.0     # probability
    corrupt: float = 0.0       # probability of a flipped bit in a TCP payload, under a right checksum
    delay: float = 0.0         # seconds
    jitter: float = 0.0        # seconds, evenly to either side of the delay; frames overtake one another
    bandwidth: float = 0.0     # bytes of frames a second, one after the other; 0: no limit
    largest: int = 0           # bytes of an IP packet that passes; larger ones vanish without a word; 0: all pass
    syn: str = "pass"          # new connections: pass | drop | reset
    reset: bool = False        # connections that are there when this is set are reset at their next segment
    forget: bool = False       # connections that are there when this is set vanish: nothing of them passes, nobody is told


PLAIN = Rule()


class Switch:
    def __init__(self, seed):
        self._random = random.Random(seed)
        self._rules = {}    # (source, target) -> Rule
        self._spared = {}   # (source, target) -> flows that `reset` and `forget` do not mean: newer than it, or reset already
        self._free_at = {}  # (source, target) -> when what has to go before has gone, under a bandwidth
        self._places = {}   # MAC -> port
        self._ports, self._now = set(), 0.0
        self.counters = {}

    def plug(self, port):
        self._ports.add(port)

    def unplug(self, port):
        """The cable is out: nothing from it or to it, frames under way included (deliverable() says so)."""
        self._ports.discard(port)

    def set_rule(self, source, target, **fields):
        """Changes fields of the rule from source to target; without fields, nothing happens to frames any more."""
        rule = dataclasses.replace(self._rules.get((source, target), PLAIN), **fields) if fields else PLAIN
        self._rules[(source, target)] = rule
        if fields.get("reset") or fields.get("forget") or not (rule.reset or rule.forget):
            self._spared[(source, target)] = set()

    def deliverable(self, source, target):
        """Whether a frame that was under way may still arrive."""
        return source in self._ports and target in self._ports

    def frame(self, source, data, now=0.0):
        """What becomes of a frame that comes now: [(delay in seconds, from port, to port, bytes)]."""
        self._now = now
        if source not in self._ports or len(data) < 14:
            return self._count("unplugged")
        if not data[6] & 1:
            self._places[data[6:12]] = source
        place = None if data[0] & 1 else self._places.get(data[0:6])
        if place is not None:
            return [] if place == source else self._passed(source, place, data)
        return [way for target in sorted(self._ports - {source}) for way in self._passed(source, target, data)]

    def _passed(self, source, target, data):
        if target not in self._ports:
            return self._count("unplugged")
        rule = self._rules.get((source, target), PLAIN)
        if rule is PLAIN:
            return [(0.0, source, target, data)]
        if rule.cut:
            return self._count("cut")
        if not frames.is_ipv4(data):
            return [(0.0, source, target, data)]
        if rule.largest and frames.packet_bytes(data) > rule.largest:
            return self._count("too_large")
        answer = self._answered(rule, source, target, data)
        return self._weathered(rule, source, target, data) if answer is None else answer

    def _answered(self, rule, source, target, data):
        """What the switch makes of a segment in its target's place, or None."""
        if rule.syn == "pass" and not rule.reset and not rule.forget:
            return None
        segment = frames.segment(data)
        if segment is None:
            return None
        opening = segment.flags & (frames.SYN | frames.ACK) == frames.SYN
        if opening and rule.syn == "drop":
            return self._count("syn_dropped")
        if opening and rule.syn == "reset":
            self._count("syn_reset")
            return [(0.0, target, source, frames.refusal(data))]
        if opening:
            self._spare(source, target, segment.flow)
        spared = segment.flow in self._spared[(source, target)]
        if rule.forget and not spared:
            return self._count("forgotten")
        if not rule.reset or spared or not segment.flags & frames.ACK or segment.flags & frames.RST:
            return None
        self._spare(source, target, segment.flow)
        self._count("reset")
        there, back = frames.resets(data)
        return [(0.0, source, target, there), (0.0, target, source, back)]

    def _spare(self, one, other, flow):
        for way in ((one, other), (other, one)):
            self._spared.setdefault(way, set()).add(flow)

    def _weathered(self, rule, source, target, data):
        draw = self._random.random
        if rule.loss and draw() < rule.loss:
            return self._count("lost")
        if rule.corrupt and draw() < rule.corrupt:
            data = frames.corrupted(data, self._random.getrandbits(20))
            self._count("corrupted")
        waits = 0.0
        if rule.bandwidth:
            waits = max(0.0, self._free_at.get((source, target), 0.0) - self._now)
            if waits > QUEUED_S:
                return self._count("queue_full")
            waits += len(data) / rule.bandwidth
            self._free_at[(source, target)] = self._now + waits
        ways = [(waits + self._delay(rule), source, target, data)]
        if rule.duplicate and draw() < rule.duplicate:
            self._count("duplicated")
            ways.append((waits + self._delay(rule), source, target, data))
        return ways

    def _delay(self, rule):
        return max(0.0, rule.delay + (self._random.uniform(-rule.jitter, rule.jitter) if rule.jitter else 0.0))

    def _count(self, what):
        self.counters[what] = self.counters.get(what, 0) + 1
        return []
