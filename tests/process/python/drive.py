"""A controller in Python: calls actors of C++ (`tally`, of mesh c) and of Python (`scorer` and `loop`, of mesh p) with plain values."""

import asyncio
import time

from monarch.actor import ActorError, SupervisionError, actors


def check(what, got, wanted):
    print("ok" if got == wanted else "WRONG: %r, not %r" % (got, wanted), what, flush=True)


def raised(call):
    try:
        return call()
    except Exception as e:
        return "%s: %s" % (type(e).__name__, str(e).splitlines()[0])


tally = actors("c", "tally")
check("C++ gathers", [value[0] > 0 for value in tally.run.call(7).get().values()], [True] * len(tally))
check("C++ has the size of its mesh", tally.sizes, {"host": 2, "gpu": 1})
one = tally.slice(host=1, gpu=0)
body = bytes(range(256)) * 8192  # 2 MiB: beside its message
check("bodies to C++ and back", [one.give_back.call_one(body).get() == body for _ in range(5)], [True] * 5)
check("C++ refuses", "has no endpoint" in raised(lambda: one.rum.call_one(1).get()), True)
check("by position alone", raised(lambda: one.run.call_one(number=1)), "TypeError: tally.run takes arguments by position alone: it may be of another language")
futures = [one.follow.call_one(k, b"") for k in range(0, 500)]
check("keeps the order", {one.get() for one in futures}, {futures[-1].get()})

scorer = actors("p", "scorer")
check("Python gathers", list(scorer.add.call(2).get().values()), [7, 7])
check("Python knows its place", [value["at"] for value in scorer.describe.call().get().values()], [{"host": 0, "gpu": 0}, {"host": 1, "gpu": 0}])
near = scorer.slice(host=0, gpu=0)
check("bodies to Python", near.length.call_one(body).get(), len(body))
check("bodies from Python", near.made.call_one(1 << 20, 7).get() == b"\x07" * (1 << 20), True)
held = [near.made.call_one(1 << 17, k).get() for k in range(20)]
check("answers that are kept stay as they are", [one[0] for one in held], list(range(20)))
for k in range(20):
    near.keep.call_one(bytes([k]) * (1 << 17)).get()
check("arguments that are kept, too", near.kept_are.call_one().get(), list(range(20)))
error = raised(lambda: near.fail.call_one("why not").get())
check("errors", error, "ActorError: Actor call scorer.fail failed.")
try:
    near.fail.call_one("why not").get()
except ActorError as e:
    check("and what was raised", ["ValueError: why not" in str(e), str(e.exception)], [True, "why not"])

loop = actors("p", "loop").slice(host=0, gpu=0)
waits = [loop.wait.call_one() for _ in range(4)]
loop.open.call_one().get()
check("endpoints overlap", sorted(one.get() for one in waits), [4, 4, 4, 4])
napping = near.nap.call_one(0.3)
began = time.monotonic()
loop.open.call_one().get()
check("one actor does not hold up another", time.monotonic() - began < 0.25, True)
check("a timeout is a look", raised(lambda: napping.get(timeout=0.001)), "TimeoutError: no answer within 0.001 s")
check("and takes nothing away", napping.get(), "rested")
check("a deadline", raised(lambda: [near.nap.call_one(0.3), near.within(0.05).add.call_one(1)][1].get())[:12], "TimeoutError")


async def awaits():
    one, many = await asyncio.gather(near.add.call_one(1).as_asyncio(), scorer.add.call(0).as_asyncio())
    streamed = [await part for part in scorer.length.stream(b"abc")]
    return one > 0, len(many), streamed


check("awaited", asyncio.run(awaits()), (True, 2, [3, 3]))
check("awaited by another loop", asyncio.run(awaits()), (True, 2, [3, 3]))
check("streamed", sorted(part.get() for part in scorer.length.stream(b"ab")), [2, 2])
check("no such mesh", raised(lambda: actors("q", "x")), "ValueError: the job has no mesh q; it has c, p, controller")
check("no such actor", raised(lambda: actors("p", "scores").add.call(1).get())[:17], "SupervisionError:")
check("is one", issubclass(SupervisionError, RuntimeError), True)
