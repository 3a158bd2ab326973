"""Values as bodies of calls: what comes back is what went, what does not travel is said, and a lying body is no more than an error."""

import collections
import dataclasses
import datetime
import decimal
import fractions
import pickle
import random
import socket
import struct
import sys
import threading
import types
import unittest

import things
from monarch import _own, _values
from monarch._plain import DoesNotTravel, RemoteError, Unreadable

KiB = 1 << 10


def joined(pieces):
    data = b"".join(bytes(piece) for piece in pieces[0])
    assert len(data) == pieces[1]
    return data


def there_and_back(value, peers=None):
    return _values.load_value(bytearray(joined(_values.dump_value(value, peers))), True)


def plainly(value, to_cpp=False):
    return _values.load_value(joined(_values.pack_value(value, to_cpp)), False)


class Pickles(unittest.TestCase):
    def test_values_come_back(self):
        for value in (None, 1, -1 << 70, "é", b"x" * 100, [1, (2, {3})], {"a": [b"y" * (64 * KiB)]}, things.Reading(1, [2.5]), things.Color.BLUE,
                      ValueError("why"), range(3), decimal.Decimal("1.5"), collections.OrderedDict(a=1), things.Reading, len, things.Worker.hidden):
            with self.subTest(value=str(value)[:40]):
                back = there_and_back(value)
                self.assertEqual(str(back) if isinstance(value, Exception) else back, str(value) if isinstance(value, Exception) else value)
                self.assertIs(type(back), type(value))

    def test_large_buffers_lie_behind_and_may_be_written(self):
        data = bytearray(bytes(range(256)) * 800)
        pieces, total = _values.dump_value([pickle.PickleBuffer(data), 7, memoryview(b"z" * (20 * KiB))])
        self.assertTrue(any(isinstance(piece, memoryview) and piece.nbytes == len(data) for piece in pieces))  # not copied
        body = bytearray(joined((pieces, total)))
        first, seven, view = _values.load_value(body, True)
        self.assertEqual((bytes(first), seven, bytes(view)), (bytes(data), 7, b"z" * (20 * KiB)))
        first[0] ^= 1
        self.assertTrue(view.readonly)  # as what was sent

    def test_calls_have_their_view_in_all_four_forms(self):
        view = struct.pack("<H", 3) + b"vie"
        for args in ((1,), (pickle.PickleBuffer(bytearray(20 * KiB)),)):
            for said in (b"", view):
                with self.subTest(args=args, said=said):
                    body = bytearray(joined(_values.dump_call(args, {"k": 2}, said)))
                    self.assertEqual(body[:2], bytes((0xC1, (len(args[0:1]) if args != (1,) else 0) | (2 if said else 0))))
                    got, kwargs, found, form = _values.load_call(body, True)
                    self.assertEqual((len(got), kwargs, found, form), (1, {"k": 2}, said[2:], "pickle"))
        self.assertEqual(_values.load_call(_values.dump_plain((1, "a"), {"k": None}), True)[:2], ((1, "a"), {"k": None}))
        self.assertIsNone(_values.dump_plain((object,), {}))

    def test_what_does_not_travel_is_named(self):
        for args, kwargs, said in (
                ((1, [2, {"a": threading.Lock()}]), {}, "argument 2, item 1, key 'a': an object of lock, a class of _thread: cannot pickle"),
                ((), {"with_": socket.socket}, None),
                ((things.Reading(1, {"s": (x for x in ())}),), {}, "argument 1, field of, key 's': a generator: cannot pickle"),
                ((), {"k": things.Pair(1, threading.Lock())}, "argument k, item 1: an object of lock"),
                ((lambda: LOCK,), {}, "argument 1: a lambda of .*: (cannot pickle|.* has no cloudpickle to send it with)")):
            with self.subTest(said):
                if said is None:
                    _values.dump_call(args, kwargs)
                    continue
                with self.assertRaisesRegex(DoesNotTravel, said):
                    _values.dump_call(args, kwargs)
        self.assertIsNone(_values.dump_error(Locked()))

    def test_it_is_not_read_without_trust(self):
        ran = []
        Trap.run = ran.append
        body = joined(_values.dump_value(Trap()))
        with self.assertRaisesRegex(_values.NotTrusted, "an answer that is a pickle of another host, and this mesh has no trust: job"):
            _values.load_value(body, False)
        with self.assertRaisesRegex(_values.NotTrusted, "arguments that are a pickle of another host"):
            _values.load_call(body, False)
        self.assertEqual(ran, [])

    def test_a_lying_body_is_an_error(self):
        good = joined(_values.dump_call((pickle.PickleBuffer(bytearray(20 * KiB)), "a"), {}, struct.pack("<H", 2) + b"vw"))
        chance = random.Random(11)
        for _ in range(2000):
            body = bytearray(good[:chance.randrange(2, len(good))] if chance.random() < 0.4 else good)
            for _ in range(chance.randrange(0, 4)):
                body[chance.randrange(1, min(len(body), 120))] = chance.randrange(256)
            try:
                _values.load_call(body, True)
            except Exception as e:  # whatever a pickle does: it is of who may run code here anyway
                self.assertNotIsInstance(e, (MemoryError, SystemError))

    def test_a_module_that_is_not_here_is_named_with_where_it_was_looked_for(self):
        body = b"\xc1\x00" + b"cno_such_module\nThing\n."
        with self.assertRaisesRegex(ModuleNotFoundError, r"python\S* has no module no_such_module, .*; its sys.path: .*monarch|tests"):
            _values.load_value(body, True)


LOCK = threading.Lock()


class Locked(Exception):
    def __init__(self):
        super().__init__("locked")
        self.lock = LOCK


class Trap:
    run = None

    def __reduce__(self):
        return _run_trap, ()


def _run_trap():
    Trap.run(1)


@unittest.skipUnless(_own.has_cloudpickle(), "no cloudpickle")
class Own(unittest.TestCase):
    """What is this program's alone goes by value once."""

    def setUp(self):
        self.main = types.ModuleType("__main__")
        was = sys.modules["__main__"]
        sys.modules["__main__"] = self.main
        self.addCleanup(sys.modules.__setitem__, "__main__", was)

    def define(self, source):
        exec(compile(source, "cell", "exec"), self.main.__dict__)
        return self.main

    def test_a_class_goes_by_value_and_then_by_its_key(self):
        main = self.define("import dataclasses\n@dataclasses.dataclass\nclass R:\n    a: int\n    def twice(self): return double(self.a)\n"
                           "def double(n): return 2 * n\n")
        peers, fresh = {("p", 0), ("p", 1)}, []
        first = joined(_values.dump_call((main.R(1),), {}, b"", peers, fresh))
        _values.known.give(fresh, peers)
        again = joined(_values.dump_call((main.R(1),), {}, b"", peers, []))
        self.assertLess(len(again), len(first) // 4)
        self.assertEqual(len(joined(_values.dump_call((main.R(1),), {}, b"", peers | {("p", 2)}, []))), len(first))  # not all have it
        _values.known.forget({("p", 1)})
        self.assertEqual(len(joined(_values.dump_call((main.R(1),), {}, b"", peers, []))), len(first))
        (back,), _, _, _ = _values.load_call(first, True)
        self.assertEqual((back.a, back.twice()), (1, 2))

    def test_a_name_that_is_defined_again_is_another_thing(self):
        first = self.define("class R:\n    def say(self): return 'first'\n").R
        peers, fresh = {("p", 0)}, []
        _values.dump_call((first,), {}, b"", peers, fresh)
        _values.known.give(fresh, peers)
        second = self.define("class R:\n    def say(self): return 'second'\n").R
        body = joined(_values.dump_call((second, first), {}, b"", peers, []))
        (second, first), _, _, _ = _values.load_call(body, True)
        self.assertEqual((second().say(), first().say()), ("second", "first"))

    def test_lambdas_and_closures_go_by_value_with_what_they_use(self):
        main = self.define("offset = 3\ndef made(n):\n    return lambda x: x + n + offset\n")
        self.assertEqual(there_and_back(main.made(4), {("p", 0)})(1), 8)

    def test_cloudpickle_of_another_version_is_refused_with_both(self):
        main = self.define("class R:\n    pass\n")
        body = joined(_values.dump_value(main.R, {("q", 0)}))
        here = _own._cloudpickle(None).__version__
        other = body.replace(here.encode(), b"9" * len(here))
        self.assertNotEqual(other, body)
        self.define("R = None")
        _values.known._by_key.clear()
        with self.assertRaisesRegex(ImportError, "was sent with cloudpickle 9+, and .* here has cloudpickle %s: both ends need the same" % here):
            _values.load_value(other, True)

    def test_a_key_that_was_never_given_is_said(self):
        self.define("class R:\n    pass\n")
        body = b"\xc1\x00" + pickle.dumps(_Named(), 5)
        with self.assertRaisesRegex(LookupError, "a class or function that this process has not been given"):
            _values.load_value(body, True)


class _Named:
    def __reduce__(self):
        return _own._named, (b"0123456789ab",)


class Plain(unittest.TestCase):
    VALUES = [
        None, True, False, 0, 127, 128, 255, 256, 65535, 65536, 1 << 32, (1 << 64) - 1, -1, -32, -33, -128, -129, -(1 << 15), -(1 << 31), -(1 << 31) - 1,
        -(1 << 63), 1.5, float("inf"), "", "é" * 31, "x" * 300, b"", b"x" * 300, b"y" * 70000, [], [1, [2, [3]]], list(range(20)), {}, {"a": {1: b"z"}},
        {k: k for k in range(20)}
    ]
    PYTHON = [
        1 << 64, -(1 << 63) - 1, (1, 2), (), {1, 2}, frozenset((3,)), 1 + 2j, bytearray(b"ab"), slice(1, None, 2), things.Reading(1, (2,)),
        things.Pair(1, [2]), things.Color.RED, datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.timezone.utc), datetime.date(2026, 1, 2),
        datetime.time(3, 4), datetime.timedelta(1, 2, 3)
    ]

    def test_all_have_them(self):
        for value in self.VALUES:
            for to_cpp in (True, False):
                with self.subTest(value=str(value)[:40], to_cpp=to_cpp):
                    back = plainly(value, to_cpp)
                    self.assertEqual((back, type(back)), (value, type(value)))

    def test_python_has_more(self):
        for value in self.PYTHON:
            with self.subTest(value=value):
                back = plainly(value)
                self.assertEqual((back, type(back)), (value, type(value)))
        error = plainly(ValueError("why", 2))
        self.assertEqual((type(error), error.args), (ValueError, ("why", 2)))
        error = plainly(things.Odd(3))
        self.assertEqual((type(error), error.type_name, str(error)), (RemoteError, "things.Odd", "3"))

    def test_to_cpp_they_are_arrays_and_numbers(self):
        for value, there in (((1, 2), [1, 2]), (things.Reading(1, 2.5), [1, 2.5]), (things.Pair(1, "b"), [1, "b"]), (things.Color.RED, 1),
                             (bytearray(b"ab"), b"ab"), (memoryview(b"cd"), b"cd")):
            with self.subTest(value=value):
                self.assertEqual(plainly(value, True), there)

    def test_what_does_not_travel_is_named(self):
        for args, to_cpp, said in (
                (([1, {2}],), True, "argument 1, item 1: a set, which C\\+\\+ does not have"),
                ((0, 1 << 70), True, "argument 2: a number of more than 64 bits"),
                ((things.Color.BLUE,), True, "argument 1: an object of Color, a class of things, which is no number"),
                (({"a": [fractions.Fraction(1, 2)]},), False, "argument 1, key 'a', item 0: an object of Fraction, a class of fractions"),
                ((things.Reading(1, len),), False, "argument 1, field of: a function of builtins"),
                (("\ud800",), False, "argument 1: a text that is no Unicode"),
                ((Local(1),), False, "argument 1: an object of Local, a class of __main__|of values_test"),
                ((things.Worker,), False, "argument 1: the class Worker of things")):
            with self.subTest(said), self.assertRaisesRegex(DoesNotTravel, said):
                if args == (Local(1),):
                    args[0].__dict__["more"] = 1
                _values.pack_call(args, {}, b"", to_cpp)
        loop = []
        loop.append(loop)
        with self.assertRaisesRegex(DoesNotTravel, "nested too deeply, or holds itself"):
            _values.pack_value(loop)
        with self.assertRaisesRegex(DoesNotTravel, "argument key"):
            _values.pack_call((), {"key": len}, b"", False)

    def test_a_call_between_pythons_has_names_and_who_is_called(self):
        body = joined(_values.pack_call((1, (2,)), {"k": {3}}, b"view", False))
        self.assertEqual(_values.load_call(body, False), ([1, (2,)], {"k": {3}}, b"view", "plain"))
        body = joined(_values.pack_call((1, (2,)), {}, b"", True))
        self.assertEqual(_values.load_call(body, False), ([1, [2]], {}, b"", "cpp"))

    def test_whatever_bytes_come_give_a_value_or_an_error(self):
        chance, good = random.Random(7), [joined(_values.pack_value(value)) for value in self.VALUES + self.PYTHON if len(str(value)) < 1000]
        good += [joined(_values.pack_call((1, things.Reading(1, 2)), {"k": 2}, b"v", False))]
        for _ in range(20000):
            body = bytearray(chance.choice(good))
            for _ in range(chance.randrange(1, 4)):
                body[chance.randrange(len(body) or 1):] = bytes(body[chance.randrange(len(body) or 1):]) if chance.random() < 0.2 else body[:]
                if body:
                    body[chance.randrange(len(body))] = chance.randrange(256)
                del body[300:]
            if body[:1] == b"\xc1":
                continue
            try:
                _values.load_value(bytes(body), False)
            except Unreadable:
                pass
        for body in (b"", b"\xdd\xff\xff\xff\xff", b"\x91" * 5000, b"\xdf\xff\xff\xff\xff\x01", b"\xc9\xff\xff\xff\xff\x01", b"\x82\x01\x02\x01\x03"):
            with self.subTest(body=body[:8]), self.assertRaises(Unreadable):
                _values.load_value(body, False)

    def test_reading_runs_nothing(self):
        def with_class(module, name, kind):
            inner = joined(_values.pack_value([module, name]))
            return struct.pack(">BIb", 0xC9, len(inner), kind) + inner

        for module, name in (("os", "system"), ("subprocess", "Popen"), ("things", "Worker"), ("no.such", "X")):
            for kind in (6, 7, 8):  # dataclass, named tuple, enum
                with self.subTest(name=name, kind=kind), self.assertRaises(Unreadable):
                    _values.load_value(with_class(module, name, kind), False)


@dataclasses.dataclass
class Local:
    a: int


if __name__ == "__main__":
    unittest.main()
