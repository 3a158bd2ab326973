"""Claims as words at the door: said again, never twice, and in whose name."""

import asyncio
import contextlib
import io
import os
import threading
import time
import unittest
import unittest.mock

import fake_post
from fake_post import GRANTED, WISH, FakePost
from monarch import _calls, _host, _wishes

NOTHING = ["", [], 1, "", [], [], "", {}, []]


class Wishes(unittest.TestCase):
    def setUp(self):
        self.post = FakePost()
        self.addCleanup(self.post.close)
        self.caller = _calls.Caller(self.post.path)
        self.addCleanup(self.caller.close, "the test is over")
        self.connection = self.post.connection()

    def claim(self, what=("procs", [], 2, "n", [["g", 2]], [], "", {"A": "1"}, [])):
        """A thread that claims, and what it gets."""
        got = []

        def run():
            try:
                got.append(self.caller.wishes.claim(list(what)))
            except Exception as e:
                got.append("%s: %s" % (type(e).__name__, e))

        thread = threading.Thread(target=run)
        thread.start()
        return thread, got

    def heard(self):
        kind, fields, _ = self.connection.hear()
        self.assertEqual(kind, WISH)
        return fields

    def test_one_is_said_and_granted(self):
        thread, got = self.claim()
        number, owner, let_go, what = self.heard()
        self.assertEqual((number, owner != 0, let_go), (1, True, 0))
        self.assertEqual(what, ["procs", [], 2, "n", [["g", 2]], [], "", {"A": "1"}, []])
        self.connection.say(GRANTED, [1, "", "procs", [3, 7]])
        thread.join(60)
        self.assertEqual(got, [(1, "procs", [3, 7])])
        ended = self.caller.wishes.let_go(1)
        self.assertEqual(self.heard(), [2, owner, 1, NOTHING])
        self.connection.say(GRANTED, [2, "", "", []])
        self.caller.wishes.wait(ended, 60)

    def test_one_that_nobody_answers_is_told_of(self):
        said = io.StringIO()
        with unittest.mock.patch.object(_wishes, "_SAID_SECONDS", 0.01), contextlib.redirect_stderr(said):
            thread, got = self.claim(("procs", ["a", "b"], 2, "n", [], [], "", {}, []))
            self.heard()
            while "\n" not in said.getvalue():
                time.sleep(0.001)
            self.connection.say(GRANTED, [1, "", "procs", [3, 7]])
            thread.join(60)
        self.assertEqual(got, [(1, "procs", [3, 7])])
        self.assertIn("monarch: spawn_procs() has waited for 0 s: the supervisor of the job has not answered whether 4 slots of mesh procs are idle\n",
                      said.getvalue())

    def test_why_not_is_what_is_raised(self):
        thread, got = self.claim()
        self.heard()
        self.connection.say(GRANTED, [1, "300 slots of mesh procs are wanted, and 256 are idle", "", []])
        thread.join(60)
        self.assertEqual(got, ["RuntimeError: 300 slots of mesh procs are wanted, and 256 are idle"])

    def test_the_next_post_hears_it_again_and_who_it_is(self):
        self.assertEqual(self.connection.hello[7:], [])  # nobody's, before the first
        thread, got = self.claim()
        said = self.heard()
        self.connection.close()
        self.connection = self.post.connection()
        self.assertEqual(self.connection.hello[7], said[1])
        self.assertEqual(self.heard(), said)
        self.connection.say(GRANTED, [1, "", "procs", [0, 1]])
        thread.join(60)
        self.assertEqual(got, [(1, "procs", [0, 1])])

    def test_one_that_is_awaited_goes_on_at_the_next_post(self):
        async def wait():
            await asyncio.wait_for(_host.future_of_all([self.caller.wishes.let_go(9)]).as_asyncio(), 60)

        def answer():
            self.heard()
            self.connection.close()
            self.connection = self.post.connection()
            self.connection.say(GRANTED, [self.heard()[0], "", "", []])

        thread = threading.Thread(target=answer)
        thread.start()
        asyncio.run(wait())
        thread.join(60)

    def test_who_is_refused_asks_no_more(self):
        thread, got = self.claim()
        self.heard()
        self.connection.say(fake_post.CLOSED, ["nobody wishes here"])
        thread.join(60)
        self.assertEqual(got, ["RuntimeError: the post has closed the connection: nobody wishes here"])

    def test_interrupted_it_lets_go_what_nobody_would_know_of(self):
        class Caller:
            door = self.caller.door
            wait = staticmethod(lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))

        self.caller.wishes._caller = Caller
        with self.assertRaises(KeyboardInterrupt):
            self.caller.wishes.claim(["procs", [], 1, "n", [], [], "", {}, []])
        first, second = self.heard(), self.heard()
        self.assertEqual((first[0], second[0], second[2]), (1, 2, 1))

    def test_what_is_the_same_for_all_is_said_once(self):
        commands = [_host.BootstrapCommand(env={"A": "1", "B": str(k)}) for k in range(2)]
        fields = _host.Wish("procs", [], 2, "n", {"g": 2}, commands, binds=[{"cpus": "0"}, {"cpus": "1"}]).fields()
        self.assertEqual(fields[7:], [{"A": "1"}, [{"B": "0", "MONARCH_BIND": "cpus=0"}, {"B": "1", "MONARCH_BIND": "cpus=1"}]])
        self.assertEqual(_host.Wish("procs", ["v2"], 2, "n", {}, [None, None], "/py").fields(),
                         ["procs", ["v2"], 2, "n", [], ["/py", "-m", "monarch.rank"], "", {}, []])

    def test_what_no_claim_can_have_is_said_before_it(self):
        big = [_host.BootstrapCommand(env={"A": str(k) + 400 * "x"}) for k in range(200)]
        for commands, binds, said in (
                (big, None, "of 200 processes: their names and variables have 8[0-9]{4} bytes, and at most 49152"),
                ([_host.BootstrapCommand(env={"A=": "1"})], None, "a variable has a name and a text, not 'A='"),
                ([_host.BootstrapCommand(env={"A": 1})], None, "a variable has a name and a text, not 'A': 1"),
                ([_host.BootstrapCommand("a"), _host.BootstrapCommand("b")], None, "have one interpreter, not a, b"),
                ([None], [{"core": "1"}], "proc_bind has cpunodebind, membind, physcpubind, cpus, each with a text: not 'core'")):
            with self.subTest(said), self.assertRaisesRegex(ValueError, said):
                _host.Wish("procs", [], len(commands), "n", {}, commands, binds=binds).fields()


if __name__ == "__main__":
    os.environ.pop("MONARCH_POST", None)
    unittest.main()
