"""The door, and calls by it, against a post that says what a test tells it to."""

import asyncio
import gc
import os
import pickle
import threading
import unittest

import fake_post
from fake_post import ANSWER, ANSWERS, CALL, CANCEL, FREE, LET_GO, OVER, REPLY, FakePost, LentBlock
from monarch import _calls, _door, _future, _wire

LARGE = 1 << 20


class DoorTest(unittest.TestCase):
    def setUp(self):
        self.post = FakePost()
        self.addCleanup(self.post.close)

    def caller(self):
        caller = _calls.Caller(self.post.path)
        self.addCleanup(caller.close, "the test is over")
        return caller, self.post.connection()

    def call(self, caller, ranks=(0,), pieces=(b"\x90",), quiet=False, deadline=None, each=None):
        head = _wire.text("p") + _wire.pack([[rank, 1, 1] for rank in ranks]) + _wire.pack(["a", "e", "*"])
        return caller.call(head, _wire.text(""), ranks, list(pieces), sum(map(len, pieces)), quiet, deadline, each)


class Doors(DoorTest):
    def test_it_says_hello_and_hears_welcome(self):
        door = _door.Door(self.post.path, ("p", 3, 2), serves=True, actors=[["*", "*", []]], watches=True)
        self.addCleanup(door.close)
        self.assertEqual(self.post.connection().hello, [4, "p", 3, 2, True, [["*", "*", []]], True])
        self.assertEqual((door.welcome.host, door.welcome.far_bytes, door.says_here), ("v1", 64 << 20, True))
        self.assertEqual((door.welcome.mesh("p").labels, door.welcome.mesh("p").sizes), (["gpu"], [4]))

    def test_a_guest_that_serves_has_a_number(self):
        door = _door.Door(self.post.path, serves=True)
        self.addCleanup(door.close)
        self.assertEqual(door.welcome.guest, 7)

    def test_a_post_that_ends_before_it_has_answered_is_not_the_last(self):
        self.post.dies = 2
        door = _door.Door(self.post.path)
        self.addCleanup(door.close)
        self.assertEqual((door.welcome.host, self.post.dies), ("v1", 0))

    def test_a_post_of_before_is_refused_with_both_versions(self):
        self.post.version = 2
        with self.assertRaisesRegex(_door.Ended, "speaks version 2 of the door; this package needs 3 or later"):
            _door.Door(self.post.path)

    def test_version_3_says_not_where_something_comes_from(self):
        self.post.version = 3
        door = _door.Door(self.post.path)
        self.addCleanup(door.close)
        self.assertFalse(door.says_here)

    def test_what_the_post_says_last_is_said(self):
        caller, connection = self.caller()
        call = self.call(caller)
        connection.say(fake_post.CLOSED, ["its rank has a later process"])
        caller.wait(call)
        self.assertIn("its rank has a later process; it is unknown whether it has run", call.got[0][2])

    def test_nobody_answers(self):
        with self.assertRaisesRegex(_door.Ended, "no post answers at .*/nowhere"):
            _door.Door(self.post.path + "/../nowhere", patience=0.01)


class Lending(DoorTest):
    def test_a_block_is_written_again_once_it_is_free(self):
        caller, connection = self.caller()
        blocks, inodes = [], []
        for k in range(3):
            self.call(caller, pieces=(b"%d" % k, bytes(LARGE)), quiet=True)
            kind, fields, (descriptor,) = connection.hear()
            self.assertEqual((kind, fields[6][:4]), (CALL, [LARGE + 1, 2, b"", 0]))
            self.assertEqual(os.pread(descriptor, 1, 0), b"%d" % k)
            blocks.append(fields[6][4])
            inodes.append(os.fstat(descriptor).st_ino)
            if k == 1:
                connection.say(FREE, [blocks[0], False])
                connection.say(OVER, [1, ""])  # no rank of it was busy
                caller.read_what_is_there()
            os.close(descriptor)
        self.assertEqual(blocks[2], blocks[0])
        self.assertEqual(inodes[2], inodes[0])
        self.assertNotEqual(blocks[1], blocks[0])

    def test_an_unsure_one_is_not(self):
        caller, connection = self.caller()
        self.call(caller, pieces=(bytes(LARGE),), quiet=True)
        first = connection.hear()
        connection.say(FREE, [first[1][6][4], True])
        connection.say(OVER, [1, ""])
        caller.read_what_is_there()
        self.call(caller, pieces=(bytes(LARGE),), quiet=True)
        self.assertNotEqual(connection.hear()[1][6][4], first[1][6][4])

    def test_nobody_may_write_what_is_lent(self):
        caller, connection = self.caller()
        self.call(caller, pieces=(bytes(LARGE),), quiet=True)
        descriptor = connection.hear()[2][0]
        with self.assertRaises(OSError):
            os.pwrite(descriptor, b"x", 0)
        with self.assertRaises(OSError):
            os.ftruncate(descriptor, 0)

    def test_an_answer_is_let_go_with_its_last_view(self):
        caller, connection = self.caller()
        call = self.call(caller)
        number = connection.hear()[1][0]
        lent = LentBlock(b"a" * LARGE)
        connection.say(ANSWER, [number, 0, [0, "", "", "", 1, [LARGE, 2, b"", 0, 5], b""], True], [lent.descriptor])
        connection.say(OVER, [number, ""])
        caller.wait(call)
        kept = call.got[0][1][100:200]
        del call.got[0]
        gc.collect()
        self.assertTrue(connection.hears_nothing())
        kept[0:1] = b"w"  # it may be written, and the lender sees nothing of it
        self.assertEqual((bytes(kept[:2]), lent.map[100:102]), (b"wa", b"aa"))
        del kept
        self.assertEqual(connection.hear()[:2], (LET_GO, [0, number, 0]))

    def test_one_that_nobody_waits_for_any_more_is_let_go_at_once(self):
        caller, connection = self.caller()
        lent = LentBlock(b"a" * LARGE)
        connection.say(ANSWER, [99, 2, [0, "", "", "", 1, [LARGE, 2, b"", 0, 5], b""], True], [lent.descriptor])
        connection.say(OVER, [99, ""])
        while connection.hears_nothing():
            caller.read_what_is_there()
        self.assertEqual(connection.hear()[:2], (LET_GO, [0, 99, 2]))


class Calls(DoorTest):
    def test_several_answers_in_one_message(self):
        caller, connection = self.caller()
        one, two = self.call(caller, (0, 1)), self.call(caller, (2,))
        a, b = connection.hear()[1][0], connection.hear()[1][0]
        value = [0, "", "", "", 300, [2, 1, b"\x91\x07", 0, 0], b""]
        error = [1, "ValueError", "no", "tb", 1, [0, 0, b"", 0, 0], b""]
        connection.say(ANSWERS, [[[a, 1, value, False, True], [b, 2, error, True, False], [a, 0, value, True, False]]])
        caller.wait(one)
        self.assertTrue(two.done)
        self.assertEqual(one.got, {1: (0, b"\x91\x07", True), 0: (0, b"\x91\x07", False)})
        self.assertEqual(two.got, {2: (1, "ValueError", "no", "tb", b"", False)})

    def test_a_call_that_is_refused_as_it_is(self):
        caller, connection = self.caller()
        heard = []
        call = self.call(caller, (0, 1), each=lambda rank, got: heard.append((rank, got)))
        connection.say(OVER, [connection.hear()[1][0], "there is no mesh p"])
        caller.wait(call)
        self.assertEqual((call.refused, heard), ("there is no mesh p", [(0, None), (1, None)]))

    def test_a_timeout_takes_nothing_away(self):
        caller, connection = self.caller()
        call = self.call(caller)
        future = _future.future(call, lambda done: done.got[0][1])
        with self.assertRaises(TimeoutError):
            future.get(timeout=0.01)
        for wrong in (-1, float("inf")):
            with self.assertRaises(ValueError):
                future.get(timeout=wrong)
        connection.answer(connection.hear()[1][0], 0, b"\x07")
        self.assertEqual((future.get(timeout=60), future.get()), (b"\x07", b"\x07"))

    def test_two_threads_wait_and_one_reads(self):
        caller, connection = self.caller()
        calls = [self.call(caller) for _ in range(8)]
        threads = [threading.Thread(target=caller.wait, args=(call,)) for call in calls]
        for one in threads:
            one.start()
        for number in reversed([connection.hear()[1][0] for _ in calls]):
            connection.answer(number, 0, b"\x07")
        for one in threads:
            one.join(5)
        self.assertTrue(all(call.done for call in calls))

    def test_awaited_on_one_loop_after_the_other(self):
        caller, connection = self.caller()

        async def wait():
            call = self.call(caller)
            connection.answer(connection.hear()[1][0], 0, b"\x07")
            future = _future.future(call, lambda done: done.got[0][1])
            return await asyncio.gather(future.as_asyncio(), future.as_asyncio())

        for _ in range(3):
            self.assertEqual(asyncio.run(wait()), [b"\x07", b"\x07"])

    def test_a_loop_that_was_closed_with_calls_under_way(self):
        caller, connection = self.caller()

        async def leave():
            asyncio.ensure_future(_future.future(self.call(caller), None).as_asyncio())
            await asyncio.sleep(0)

        asyncio.run(leave())
        connection.answer(connection.hear()[1][0], 0, b"\x07")
        call = self.call(caller)
        connection.answer(connection.hear()[1][0], 0, b"\x08")
        caller.wait(call)
        self.assertEqual(call.got[0][1], b"\x08")

    def test_the_next_call_comes_to_the_next_post(self):
        caller, connection = self.caller()
        call = self.call(caller)
        connection.hear()
        connection.close()
        caller.wait(call)
        self.assertEqual(call.got[0][0], _door.GONE)
        again = self.call(caller)
        connection = self.post.connection()
        connection.answer(connection.hear()[1][0], 0, b"\x07")
        caller.wait(again)
        self.assertEqual(again.got[0][1], b"\x07")

    def test_cancel_and_deadline(self):
        caller, connection = self.caller()
        call = self.call(caller, deadline=123 << 32)
        self.assertEqual(connection.hear()[1][5], 123 << 32)
        call.cancel()
        self.assertEqual(connection.hear()[:2], (CANCEL, [call.id]))

    def test_a_fork_calls_nothing(self):
        caller, connection = self.caller()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                caller.forked("this process was forked")
                self.call(caller)
            except RuntimeError as e:
                code = 0 if "was forked" in str(e) else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        call = self.call(caller)
        connection.answer(connection.hear()[1][0], 0, b"\x07")
        caller.wait(call)

    def test_a_future_is_not_made_by_hand(self):
        with self.assertRaisesRegex(RuntimeError, "not made by hand"):
            _future.Future()


class Serving(DoorTest):
    def setUp(self):
        super().setUp()
        from monarch import _serve
        from monarch.actor import Actor, endpoint

        class Keeper(Actor):
            def __init__(self):
                self.kept = []

            @endpoint
            def keep(self, data):
                self.kept.append(data)

            @endpoint
            def drop(self):
                self.kept.clear()

            @endpoint
            def size(self, data):
                return len(data)

            @endpoint
            def fail(self):
                raise ValueError("why")

        self.server = _serve.beside_a_program(self.post.path, ("p", 1, 1))
        self.addCleanup(self.server.end, "the test is over")
        self.connection = self.post.connection()
        from monarch._views import Extent, Point
        self.cell = self.server.add_cell("keeper", Keeper, Point(1, Extent(["gpu"], [4])))
        self.cell.construct((), {})

    def reply(self):
        kind, fields, _ = self.connection.hear()
        self.assertEqual(kind, REPLY)
        return fields

    def lent(self, data):
        from monarch import _values

        class Array:  # what arrays do: their memory is out of band
            pass

        pieces, total = _values.dump_call((pickle.PickleBuffer(data),), {}, b"", None, [])
        return LentBlock(b"".join(pieces)), total

    def test_an_answer_says_whether_arguments_are_kept(self):
        block, total = self.lent(bytearray(b"a" * LARGE))
        self.connection.deliver(1, "keeper", "size", bytes(total), block.descriptor, 3)
        self.assertEqual(self.reply()[2], False)
        self.connection.deliver(2, "keeper", "keep", bytes(total), block.descriptor, 3)
        self.assertEqual(self.reply()[2], True)
        self.assertTrue(self.connection.hears_nothing())
        self.connection.deliver(3, "keeper", "drop", b"\x90")
        self.assertEqual({self.connection.hear()[0], self.connection.hear()[0]}, {REPLY, LET_GO})

    def test_plain_arguments_are_answered_plainly(self):
        self.connection.deliver(1, "keeper", "size", b"\x91\xc4\x03abc", here=False)
        self.assertEqual(self.reply()[1][5][:3], [1, 1, b"\x03"])

    def test_a_pickle_of_another_machine_is_not_read(self):
        self.connection.deliver(1, "keeper", "size", b"\xc1\x00" + pickle.dumps((eval, ()))[:-1] + b"R.", here=False)
        kind, name, text = self.reply()[1][:3]
        self.assertEqual((kind, "NotTrusted" in name, "trust: job" in text), (1, True, True))

    def test_another_machine_ends_and_makes_nothing_here(self):
        for endpoint in ("end", "make", "stop", "setup", "supervise"):
            self.connection.deliver(1, "monarch", endpoint, b"\x90", here=False)
            kind, _, text = self.reply()[1][:3]
            self.assertEqual((kind, text), (7, "%s of another host, and this mesh has no trust: job" % endpoint))
        self.connection.deliver(1, "monarch", "ping", b"\x90", here=False)
        self.assertEqual(self.reply()[1][0], 0)

    def test_errors_and_what_is_not_there(self):
        self.connection.deliver(1, "keeper", "fail", b"\x90")
        self.assertEqual(self.reply()[1][:3], [1, "ValueError", "why"])
        self.connection.deliver(2, "keeper", "feil", b"\x90")
        self.assertEqual(self.reply()[1][0], 7)
        self.connection.deliver(3, "keeper", "size", b"\x90")
        self.assertEqual(self.reply()[1][:2], [1, "TypeError"])


if __name__ == "__main__":
    unittest.main()
