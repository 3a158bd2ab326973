"""Actors by a small post: their calls, what is wrong about them, failures, and processes that are made again."""

import asyncio
import os
import threading
import time
import types
import unittest

import things
from monarch import _owner, actor
from monarch._process import Process, process
from monarch.actor import (Accumulator, ActorError, Channel, Endpoint, Extent, Future, Point, SupervisionError, as_endpoint, current_rank,
                           get_or_spawn_controller, send, this_host, this_proc)
from small_post import SmallPost


def until(what, seconds=60.0):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise AssertionError("not within %g s" % seconds)
        time.sleep(0.002)


class ActorTest(unittest.TestCase):
    """One post for all of a class."""

    meshes = {"procs": 6, "procs_again": 2}

    @classmethod
    def setUpClass(cls):
        cls.post = SmallPost(**cls.meshes)
        cls.told = []
        cls.hook = actor.unhandled_fault_hook
        actor.unhandled_fault_hook = cls.told.append
        process.use_door(cls.post.path)
        process.job = types.SimpleNamespace(mesh="procs", door=cls.post.path, stop=lambda: None, forked=lambda: None)

    @classmethod
    def tearDownClass(cls):
        process.close("the test is over")
        actor.unhandled_fault_hook = cls.hook
        del _owner._claims[:]
        Process.__init__(process)
        cls.post.close()


class Calls(ActorTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.procs = this_host().spawn_procs({"g": 2})
        cls.workers = cls.procs.spawn("workers", things.Worker)
        cls.one = cls.workers.slice(g=0)

    def test_what_it_logs_is_from_a_level_on(self):
        asyncio.run(self.procs.logging_option(stream_to_client=True, aggregate_window_sec=None, level=42))
        self.assertEqual(list(self.workers.log_level.call().get().values()), [42, 42])
        for wrong in ({"level": 256}, {"aggregate_window_sec": 3}):
            with self.assertRaises(ValueError):
                asyncio.run(self.procs.logging_option(**wrong))

    def test_the_ways_of_calling(self):
        self.assertEqual([value[0] for value in self.workers.place.call().get().values()], [0, 1])
        self.assertEqual(self.one.same.call_one({"a": [1]}).get(), {"a": [1]})
        self.assertIn(self.workers.same.choose(3).get(), (3,))
        self.assertEqual([one.get() for one in self.workers.same.stream("x")], ["x", "x"])
        self.assertEqual(Accumulator(self.workers.same, 0, lambda a, b: a + b).accumulate(2).get(), 4)
        self.assertIsNone(self.workers.same.broadcast(1))
        self.assertEqual(as_endpoint(self.one.hidden).call_one(4).get(), 12)
        self.assertEqual(list(self.workers.later.call(1).get().values()), [2, 2])

    def test_a_slice_has_its_own_points_and_a_single_one_none(self):
        self.assertEqual(self.workers.slice(g=slice(1, 2)).place.call().get().item(g=0)[:2], (0, {"g": 1}))
        self.assertEqual(self.one.place.call_one().get()[:2], (0, {}))
        self.assertEqual((current_rank().rank, len(current_rank())), (0, 0))

    def test_what_was_raised_comes_as_it_was(self):
        with self.assertRaises(ActorError) as raised:
            self.one.odd.call_one(7).get()
        self.assertEqual((type(raised.exception.exception), raised.exception.exception.code), (things.Odd, 7))
        self.assertIn("Traceback of where the remote call failed", str(raised.exception))
        self.assertIn("Actor call workers.odd failed.", str(raised.exception))

    def test_awaited(self):
        async def ask():
            hears = self.procs.spawn("hears", things.Hears)
            return await asyncio.gather(*(hears.through.call(self.one, 0).as_asyncio() for _ in range(3)))

        self.assertEqual([len(one) for one in asyncio.run(ask())], [2, 2, 2])

    def test_ports(self):
        port, receiver = Channel.open()
        port.send({"a": 1})
        self.assertEqual(receiver.recv().get(timeout=60), {"a": 1})
        port.exception(KeyError("k"))
        with self.assertRaises(KeyError):
            receiver.recv().get(timeout=60)
        port, receiver = Channel.open_ranked()
        send(self.workers.same, ("v",), {}, port)
        self.assertEqual(sorted(receiver.recv().get(timeout=60) for _ in range(2)), [(0, "v"), (1, "v")])

    def test_actors_of_this_process_and_the_one_controller_of_all(self):
        here = this_proc().spawn("here", things.Worker)
        self.assertEqual(here.place.call_one().get()[2], os.getpid())
        one, same = get_or_spawn_controller("shelf", things.Worker).get(), get_or_spawn_controller("shelf", things.Worker).get()
        one.add.call_one(3).get()
        self.assertEqual((same.add.call_one(0).get(), same.place.call_one().get()[2]), (3, os.getpid()))

    def test_a_call_that_has_not_begun_is_taken_back(self):
        napping, second = self.one.nap.call_one(0.1), self.one.add.call_one(1)
        second.cancel()
        with self.assertRaises(SupervisionError):
            second.get(timeout=60)
        self.assertEqual(napping.get(), 0.1)

    def test_one_that_is_busy_is_asked_again(self):
        with self.post.lock:
            self.post.busy = 2
        self.assertEqual(self.one.same.call_one(5).get(timeout=60), 5)
        with self.post.lock:
            self.post.busy = 3
        self.assertEqual([one.get(timeout=60) for one in self.workers.same.stream(6)], [6, 6])

    def test_64_mib_there_and_back(self):
        data = bytearray(64 << 20)
        data[-1] = 7
        back = self.one.same.call_one(data).get()
        self.assertEqual((type(back), len(back), back[-1]), (bytearray, 64 << 20, 7))
        back[0] = 1  # it may be written

    def test_what_is_wrong_is_said_by_the_caller(self):
        procs, workers, one = self.procs, self.workers, self.one
        for what, kind, said in (
                (lambda: this_host().spawn_procs({"g": 300}), RuntimeError, "300 slots of mesh procs are wanted, and [0-9]+ are idle"),
                (lambda: this_host().spawn_procs({"g": 0}), ValueError, "a size from 1 on: 'g': 0"),
                (lambda: this_host().spawn_procs({"g": 2}, proc_bind=[{}]), ValueError, r"proc_bind length \(1\) must equal procs_per_host \(2\)"),
                (lambda: this_host().spawn_procs({"g": 1}, restart=-1), ValueError, "from 0 on, not -1"),
                (lambda: workers.slice(h=0), TypeError, "does not have dimension labeled 'h'"),
                (lambda: workers.slice(g=2), IndexError, "index out of range: g=2, of 2"),
                (lambda: workers.slice(g=-1), IndexError, "index out of range: g=-1, of 2"),
                (lambda: workers.slice(g=slice(2, 2)), ValueError, "empty range 2:2:1 of dimension g of size 2"),
                (lambda: workers.add.call_one(1), ValueError, "call_one of workers.add: its mesh has 2 actors; slice it, or use call"),
                (lambda: one.add.call_one(), TypeError, "missing a required argument: 'n'"),
                (lambda: one.add.call_one(1, 2), TypeError, "too many positional arguments"),
                (lambda: one.add.broadcast(1, by=2), TypeError, "unexpected keyword argument 'by'"),
                (lambda: procs.spawn("w", things.Worker, 1, 2), TypeError, "too many positional arguments"),
                (lambda: procs.spawn("w", things.Worker(1)), TypeError, "spawned of a class, not of <things.Worker"),
                (lambda: one.hidden(1), RuntimeError, "hidden is not annotated as an endpoint.*as_endpoint"),
                (lambda: one.nothing, AttributeError, "Worker has no endpoint nothing"),
                (lambda: one.add(1), TypeError, r"workers.add is an endpoint: call it as workers.add.call\(...\), or by call_one"),
                (lambda: procs.spawn("c", things.Clash), ValueError, "collides with an endpoint name: attribute=slice"),
                (lambda: one.same.call_one([0, {"a": threading.Lock()}]), TypeError,
                 "argument 1, item 1, key 'a': an object of lock, a class of _thread: cannot pickle"),
                (lambda: one.within(-1), ValueError, "a number of seconds from 0 on, not -1"),
                (lambda: Future(), RuntimeError, "is not made by hand"),
                (lambda: procs.activate(), NotImplementedError, "the tensor engine is not built here: .*monarch-tensors"),
                (lambda: one.add.rref(1), NotImplementedError, "monarch-tensors"),
                (lambda: this_host().sync_workspace(), NotImplementedError, "at the start of a job"),
                (lambda: actor.attach("tcp://x"), NotImplementedError, "`monarch up` starts workers"),
                (lambda: actor.hosts_from_config("gpus"), ValueError, "the job has no mesh gpus; it has procs, procs_again"),
                (lambda: send(one.add, (1,), {}, None, "some"), ValueError, "all or choose, not 'some'"),
                (lambda: as_endpoint(one.add), ValueError, "expected a method of a spawned actor"),
                (lambda: Point(0, Extent([], [])) + 1, TypeError, "unsupported operand"),
                (lambda: one.same.call_one(bytes((1 << 30) + 1)), ValueError, "above the limit of 1073741824 bytes on one machine")):
            with self.subTest(said), self.assertRaisesRegex(kind, said):
                what()
        self.assertIsInstance(one.add, Endpoint)

    def test_a_host_dim_is_none_of_its_processes(self):
        hosts = actor.HostMesh("procs", ["hosts"], [2], hosts=["v1", "v2"])
        with self.assertRaisesRegex(ValueError, "per_host labels .'hosts'. overlap with host labels .'hosts'."):
            hosts.spawn_procs({"hosts": 2})

    def test_what_is_stopped_is_called_no_more(self):
        brief = self.procs.spawn("brief", things.Worker)
        brief.stop().get(timeout=60)
        with self.assertRaisesRegex(SupervisionError, "brief.add: actor mesh brief was stopped: stopped by client"):
            brief.slice(g=0).add.call_one(1)

    def test_a_constructor_that_raises_on_some_ranks(self):
        half = self.procs.spawn("half", things.Half)
        self.assertEqual(half.slice(g=0).hi.call_one().get(timeout=60), "hi")
        with self.assertRaisesRegex(SupervisionError, "half.hi .'g': 1/2.: actor half has failed:(.|\n)*ValueError: an odd rank"):
            half.hi.call().get(timeout=60)
        with self.assertRaisesRegex(ActorError, "an odd rank"):
            half.initialized.get(timeout=60)
        until(lambda: self.told)
        self.assertEqual((self.told[0].ranks, self.told[0].mesh_name), ([1], "half"))
        self.told.clear()

    def test_a_fork_calls_nothing(self):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                self.one.add.call_one(1)
            except RuntimeError as e:
                code = 0 if "was forked" in str(e) else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


class Failures(ActorTest):
    def test_a_process_that_dies_and_one_that_takes_its_place(self):
        procs = this_host().spawn_procs({"bed": 3}, bootstrap_command=lambda at: actor.BootstrapCommand(env={"BED": str(at["bed"])}),
                                        proc_bind=[{"cpus": "0"}] * 3)
        workers = procs.spawn("workers", things.Worker)
        self.assertEqual(list(workers.env.call("BED").get().values()), ["0", "1", "2"])
        self.assertEqual(list(workers.processors.call().get().values()), [[0]] * 3)
        with self.assertRaisesRegex(SupervisionError, "workers.die: killed by SIGKILL"):
            workers.slice(bed=1).die.call_one().get(timeout=60)
        until(lambda: self.told)
        failure, = self.told
        self.told.clear()
        self.assertEqual((failure.mesh_name, failure.ranks, failure.signal, failure.exit_code, failure.host), ("workers", [1], "SIGKILL", None, "v1"))
        self.assertEqual([workers.slice(bed=k).same.call_one(k).get(timeout=60) for k in (0, 2)], [0, 2])
        procs.stop().get(timeout=60)
        with self.assertRaisesRegex(SupervisionError, "process mesh anon was stopped: stopped by client"):
            procs.spawn("w", things.Worker)
        again = this_host().spawn_procs({"bed": 6})
        self.assertEqual(len(again.spawn("w", things.Worker).add.call(1).get(timeout=60)), 6)
        again.stop().get(timeout=60)

    def test_an_actor_claims_and_hears_of_what_it_loses(self):
        home = this_host().spawn_procs({"g": 1})
        parent = home.spawn("parent", things.Parent)
        one = parent.slice(g=0)
        self.assertEqual(one.claim.call_one(2).get(timeout=60), [6, 6])
        self.assertEqual(one.lose.call_one(1).get(timeout=60), "SupervisionError")
        until(lambda: one.heard.call_one().get(timeout=60))
        self.assertEqual(one.heard.call_one().get(timeout=60), [([1], "SIGKILL", None, "v1")])
        self.assertEqual(self.told, [])
        home.stop().get(timeout=60)

    def test_a_process_is_made_again_with_its_actors(self):
        procs = this_host().spawn_procs({"g": 2}, restart=1, bootstrap=things.prepare)
        workers = procs.spawn("workers", things.Worker, 5)
        one = workers.slice(g=1)
        self.assertEqual(one.add.call_one(1).get(timeout=60), 6)
        with self.assertRaisesRegex(SupervisionError, "killed by SIGKILL"):
            one.die.call_one().get(timeout=60)
        self.assertEqual(one.add.call_one(1).get(timeout=60), 6)  # it is a new one
        self.assertEqual(list(workers.env.call("SET").get(timeout=60).values()), ["yes", "yes"])
        self.assertEqual(self.told, [])
        with self.assertRaises(SupervisionError):
            one.die.call_one().get(timeout=60)
        until(lambda: self.told)
        self.told.clear()
        with self.assertRaisesRegex(SupervisionError, r"made again 1 times, as spawn_procs\(restart=1\) says"):
            one.add.call_one(1)
        self.assertEqual(workers.slice(g=0).add.call_one(1).get(timeout=60), 6)
        procs.stop().get(timeout=60)

    def test_part_of_a_claim_is_ended_and_the_rest_goes_on(self):
        procs = this_host().spawn_procs({"g": 2})
        workers = procs.spawn("workers", things.Worker)
        workers.add.call(1).get(timeout=60)
        procs.slice(g=0).stop().get(timeout=60)
        self.assertEqual(workers.slice(g=1).add.call_one(1).get(timeout=60), 2)
        procs.stop().get(timeout=60)
        self.assertEqual(self.told, [])


class Over(ActorTest):
    def test_nothing_is_called_after_the_context_was_shut_down(self):
        here = this_proc().spawn("here", things.Worker)
        self.assertEqual(here.add.call_one(1).get(timeout=60), 1)
        actor.shutdown_context().get()
        with self.assertRaisesRegex(RuntimeError, r"shutdown_context\(\) was called: this process calls nothing any more"):
            here.add.call_one(1)


if __name__ == "__main__":
    unittest.main()
