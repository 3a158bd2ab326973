"""What a card does with the memory of the host, by its driver alone: ceilings, registering, views of a slot, rooms."""

import contextlib
import ctypes
import mmap
import os

from gpu_driver import PORTABLE, READ, READ_ONLY, READ_WRITE, SUCCESS, Mapping
from report import timed

MEMCPY = "memcpy of one thread"
TO_HOST, TO_DEVICE = "D2H into a registered slot", "H2D from a registered slot"
ROOM, ROOMS = 1 << 20, 16


class Card:
    """A GPU's memory, and a slot as a publisher has it: a memfd, of which others have views."""

    def __init__(self, driver, size, times):
        self.driver, self.size, self.times = driver, size, times
        self.memory = driver.allocate(size)
        self.file = os.memfd_create("slot")
        os.ftruncate(self.file, size)
        self.slot = Mapping(size, file=self.file)
        self.slot.fill(1)

    def view(self, protection, kind=mmap.MAP_SHARED):
        return Mapping(self.size, protection, kind, self.file)

    def out(self, host):
        self.driver.to_host(host, self.memory, self.size)
        self.driver.settle()

    def back(self, host):
        self.driver.to_device(self.memory, host, self.size)
        self.driver.settle()

    def first_byte(self):
        got = ctypes.create_string_buffer(1)
        self.driver.to_host(ctypes.addressof(got), self.memory, 1)
        self.driver.settle()
        return got.raw[0]

    @contextlib.contextmanager
    def registered(self, mapping):
        code = self.driver.register(mapping.at, mapping.size)
        if code:
            raise RuntimeError(f"registering: {self.driver.word(code)}")
        try:
            yield
        finally:
            self.driver.unregister(mapping.at, mapping.size)


def attributes(report, card):
    """What decides how slots are registered (113), and what is left to the driver otherwise."""
    named = {"registers the host's memory": 99, "registers it read-only": 113, "reaches pageable memory": 88,
             "by the host's page tables": 100, "hands out its memory by descriptors": 103}
    report.note(", ".join(f"{name}: {card.driver.attribute(number)}" for name, number in named.items()))


def ceilings(report, card):
    with Mapping(card.size) as other:
        other.fill(2)
        report.rate(MEMCPY, card.size, timed(lambda: ctypes.memmove(other.at, card.slot.at, card.size), card.times))
    report.rate("D2H into pageable memory", card.size, timed(lambda: card.out(card.slot.at), card.times))
    report.rate("H2D from pageable memory", card.size, timed(lambda: card.back(card.slot.at), card.times))
    with card.registered(card.slot):
        report.rate(TO_HOST, card.size, timed(lambda: card.out(card.slot.at), card.times))
        report.rate(TO_DEVICE, card.size, timed(lambda: card.back(card.slot.at), card.times))
        piece = card.size // 400 // 4096 * 4096

        def in_pieces():
            for at in range(0, piece * 400, piece):
                card.driver.to_host(card.slot.at + at, card.memory + at, piece)
            card.driver.settle()

        report.rate("D2H in 400 pieces", piece * 400, timed(in_pieces, card.times), TO_HOST)


def registering(report, card):
    def once():
        with card.registered(card.slot):
            pass

    took = sorted(timed(once, card.times))[card.times // 2]
    report.note(f"registering a slot, and letting it go, takes {took / card.size * (1 << 30):.3f} s a GiB")


def sees_the_owner(report, card, mapping, what):
    """Whether a GPU reads through that mapping what is in the slot now."""
    card.slot.fill(7)
    report.rate(f"H2D from {what}", card.size, timed(lambda: card.back(mapping.at), card.times), TO_DEVICE)
    return card.first_byte() == 7


def read_only_view(report, card):
    """On x86 it is never registered, with the flag for it or without."""
    with card.view(READ) as view:
        for flags, how in ((PORTABLE | READ_ONLY, "as READ_ONLY"), (PORTABLE, "as any memory")):
            code = card.driver.register(view.at, view.size, flags)
            report.note(f"a read-only view, {how}: {'registered' if code == SUCCESS else card.driver.word(code)}")
            if code == SUCCESS:
                report.check(sees_the_owner(report, card, view, f"a read-only view that was registered {how}"), "it does not see the slot")
                card.driver.unregister(view.at, view.size)


def view_made_read_only(report, card):
    """What a reader has who registers: a view that is made read-only behind its registration."""
    with card.view(READ_WRITE) as view, card.registered(view):
        report.check(view.protect(READ), "the kernel does not let it be made read-only")
        report.check(sees_the_owner(report, card, view, "a view made read-only"), "it does not see what its owner writes")


def private_view(report, card):
    """It is registered as it was at that moment, so no reader may have one."""
    with card.view(READ_WRITE, mmap.MAP_PRIVATE) as view:
        card.slot.fill(5)
        code = card.driver.register(view.at, view.size)
        if code:
            report.note(f"a private view: {card.driver.word(code)}")
            return
        sees = sees_the_owner(report, card, view, "a private view")
        report.note(f"a private view is registered, and sees what its owner writes: {'yes' if sees else 'no'}")
        card.driver.unregister(view.at, view.size)


def rooms(report, card):
    """H2D through pinned rooms, as a pull has them that cannot register its view."""
    driver = card.driver
    with card.view(READ) as view, Mapping(ROOM * ROOMS) as pinned, card.registered(pinned):
        events = [driver.make_event() for _ in range(ROOMS)]

        def through():
            for piece in range(card.size // ROOM):
                room, event = pinned.at + piece % ROOMS * ROOM, events[piece % ROOMS]
                while piece >= ROOMS and not driver.is_done(event):
                    pass
                ctypes.memmove(room, view.at + piece * ROOM, ROOM)
                driver.to_device(card.memory + piece * ROOM, room, ROOM)
                driver.call("cuEventRecord", event, None)
            driver.settle()

        card.slot.fill(9)
        floor = min(report.of(MEMCPY), report.of(TO_DEVICE))
        report.rate("H2D through 16 rooms of 1 MiB", card.size, timed(through, card.times), floor)
        report.check(card.first_byte() == 9, "other bytes came")
        for event in events:
            driver.call("cuEventDestroy_v2", event)


ROWS = [attributes, ceilings, registering, read_only_view, view_made_read_only, private_view, rooms]
