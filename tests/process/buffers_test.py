"""Large bodies while something breaks: eight senders and eight readers, of which each knows each byte, some Buffers that are
kept, readers and a post that are killed. No byte differs, every block comes back, and memory stays in bounds. Buffers that are kept
for ever, and a plugin that was built before there were any.

MONARCH_TEST_ROUNDS: how often; each time is another job.
"""

import json
import os
import random

import actors
import harness
from actors import actor, plugin

ROUNDS = int(os.environ.get("MONARCH_TEST_ROUNDS", "1"))
LENT = 128 << 20  # by each process; what is more are bodies on their way, in memory of their own
READ = 256 << 20
READERS = [4, 5, 6, 7, 12, 13, 14, 15]


class Buffers(actors.ActorTest):
    def job_of(self, end):
        """The ranks of gpu 0 to 3 send, those of 4 to 7 read."""
        return self.actor_job({"sender": actor("buffers", "Sender"), "reader": actor("buffers", "Reader")},
                              {"plugin": plugin("buffers"), "entry": "buffers", "args": {"end": end}}, gpus=8,
                              mesh={"supervision": {"restart": {"max": 9, "backoff": "20ms"}}})

    def pid_of(self, rank):
        mesh = next(m for m in self.status()["meshes"] if m["name"] == "t")
        return next(one["pid"] for one in mesh["ranks"] if one["rank"] == rank)

    def kill_reader(self, rank):
        process, = harness.wait_for(lambda: [p for p in self.find("monarch-rank") if p.pid == self.pid_of(rank)], f"rank {rank}")
        self.kill(process)
        harness.wait_for(lambda: self.pid_of(rank) not in (None, process.pid), f"another process of rank {rank}")

    def kill_post(self):
        post = self.find("monarch-worker", "post")[0]
        self.kill(post)
        harness.wait_for(lambda: post.pid not in [p.pid for p in self.find("monarch-worker", "post")], "the post's end")

    def test_no_byte_differs_and_every_block_comes_back(self):
        for number in range(ROUNDS):
            seed = random.randrange(1 << 30)
            draw = random.Random(seed)
            end = self.path("work", f"end.{number}")
            run = self.start("run", "--no-prefix", self.job_of(end))
            run.wait_for_out("begun")
            self.kill_reader(draw.choice(READERS))
            self.kill_post()
            self.kill_reader(draw.choice(READERS))
            self.write(f"end.{number}", "")
            done = run.finished(60)
            words = f"round {number}, seed {seed}: {done}"
            self.assertEqual(done.status, 0, words)
            seen = json.loads(done.out[done.out.index("{"):])
            self.assertEqual(seen["wrong"], 0, words)
            self.assertGreater(seen["values"], 20, words)
            self.assertTrue(seen["all_back"], words)
            self.assertLess(seen["most_lent"], 2 * LENT, words)
            self.assertLess(seen["most_read"], READ + LENT, words)
            self.assert_nothing_left()

    def test_buffers_that_are_kept_for_ever(self):
        """Calls go on in new memory, one line says so, and blocks come back once the Buffers are dropped."""
        end = self.path("work", "end")
        run = self.start("run", "--no-prefix", self.actor_job(
            {"hoarder": actor("buffers", "Hoarder")},
            {"plugin": plugin("buffers"), "entry": "hoards", "args": {"end": end}}, gpus=1))
        run.wait_for_out("kept")
        run.wait_for_err("goes in new memory")
        self.write("end", "")
        done = run.finished(60)
        self.assertEqual(done.status, 0, done)
        seen = json.loads(done.out[done.out.index("{"):])
        self.assertTrue(seen["right"], done)
        self.assertGreater(seen["without"], 20, done)
        self.assertEqual(seen["in_blocks"], 24, done)
        self.assertLess(seen["most_lent"], LENT + (8 << 20), done)
        self.assertEqual(done.err.count("goes in new memory"), 1, done)
        self.assert_nothing_left()


class BuiltBefore(actors.ActorTest):
    """A plugin of the interface before Buffers, in a rank of today: it is called, and calls."""

    def run_controller(self, of, entry):
        stores = {"before": actor("built_before", "Store"), "today": actor("buffers", "Store")}
        done = self.monarch("run", "--quiet", "--no-prefix", self.actor_job(stores, {"plugin": plugin(of), "entry": entry}, gpus=1))
        self.assertEqual(done.status, 0, done)
        self.assert_nothing_left()
        return done.out.splitlines()

    def test_its_controller_calls(self):
        self.assertEqual(self.run_controller("built_before", "before"), [
            f"ok {which}, {how}" for which in ("before", "today") for how in ("one after the other", "all at once")])

    def test_a_controller_of_today_calls_it(self):
        self.assertEqual(self.run_controller("buffers", "today"), ["ok before"])


if __name__ == "__main__":
    harness.main()
