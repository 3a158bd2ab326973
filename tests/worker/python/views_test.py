"""Views of meshes, extents and points: as Monarch has them."""

import pickle
import random
import unittest

from monarch._shapes import Extent, Point, Shape, Slice, dense
from monarch._views import ValueMesh, View, point_in, runs_in_steps, runs_of


class Ranks(View):
    def __init__(self, labels, sizes, strides=None, offset=0, base=None):
        self._view(labels, sizes, dense(list(sizes)) if strides is None else strides, offset)
        if base is not None:
            self._base = base

    def _with(self, labels, sizes, strides, offset):
        return Ranks(labels, sizes, strides, offset, self._base)


def spelled(runs):
    return sorted(first + k * step for first, count, step in runs for k in range(count))


class Views(unittest.TestCase):
    def setUp(self):
        self.mesh = Ranks(["host", "gpu"], [2, 4])

    def test_an_index_drops_its_dim_and_a_slice_keeps_it(self):
        one = self.mesh.slice(host=1)
        self.assertEqual((one.sizes, one._ranks()), ({"gpu": 4}, [4, 5, 6, 7]))
        some = self.mesh.slice(gpu=slice(1, 4, 2))
        self.assertEqual((some.sizes, some._ranks()), ({"host": 2, "gpu": 2}, [1, 3, 5, 7]))
        self.assertEqual(some.slice(host=0, gpu=1)._ranks(), [3])

    def test_flatten_split_and_rename(self):
        self.assertEqual(self.mesh.flatten("rank").sizes, {"rank": 8})
        self.assertEqual(self.mesh.slice(host=1).flatten("g")._ranks(), [4, 5, 6, 7])
        cut = self.mesh.split(gpu=("tp", "cp"), cp=2)
        self.assertEqual((cut.sizes, cut.slice(tp=1, cp=0)._ranks()), ({"host": 2, "tp": 2, "cp": 2}, [2, 6]))
        self.assertEqual(self.mesh.rename(gpu="g").sizes, {"host": 2, "g": 4})
        for wrong, kind, said in (
                (lambda: self.mesh.slice(gpu=0).flatten("h"), ValueError, "cannot flatten sparse mesh"),
                (lambda: self.mesh.split(gpu=("a", "b"), b=3), ValueError, "not evenly divided"),
                (lambda: self.mesh.split(gpu=("a", "b")), ValueError, "Cannot infer size"),
                (lambda: self.mesh.split(gpu=("host",)), ValueError, "Duplicate dimension name 'host'"),
                (lambda: self.mesh.split(gpu="ab"), ValueError, "expected a sequence of dimensions"),
                (lambda: self.mesh.split(x=("a",)), ValueError, "'x' is not an existing dim"),
                (lambda: self.mesh.rename(gpu="g", c="d"), ValueError, "'c' is not an existing dim"),
                (lambda: self.mesh.size("x"), KeyError, "does not have dimension 'x'")):
            with self.subTest(said), self.assertRaisesRegex(kind, said):
                wrong()

    def test_runs_are_the_ranks_whatever_the_view(self):
        chance = random.Random(3)
        for _ in range(500):
            view = Ranks(["a", "b", "c"], [chance.randrange(1, 5) for _ in range(3)])
            for label, size in list(view.sizes.items()):
                first = chance.randrange(size)
                view = view.slice(**{label: slice(first, chance.randrange(first, size) + 1, chance.randrange(1, 3))})
            self.assertEqual(spelled(view._runs()), sorted(view._ranks()))
            for place, rank in enumerate(view._ranks()):
                self.assertEqual(point_in(view._as_view(), rank).rank, place)
        self.assertEqual(runs_in_steps([2, 4], [4, 1], 0), [[0, 8, 1]])
        self.assertEqual(runs_of([9, 2, 4, 6]), [[2, 3, 2], [9, 1, 1]])

    def test_ranks_that_are_no_run(self):
        mesh = Ranks(["a", "b"], [2, 2], base=[7, 3, 4, 12])
        self.assertEqual(mesh.slice(a=1)._ranks(), [4, 12])
        self.assertEqual(spelled(mesh._runs()), [3, 4, 7, 12])
        self.assertEqual([point_in(mesh._as_view(), rank).rank for rank in mesh._ranks()], [0, 1, 2, 3])


class Points(unittest.TestCase):
    def test_they_are_mappings(self):
        extent = Extent(["host", "gpu"], [2, 4])
        point = Point(6, extent)
        self.assertEqual((repr(extent), repr(point), dict(point), extent.nelements), ("{host: 2, gpu: 4}", "{'host': 1/2, 'gpu': 2/4}",
                                                                                     {"host": 1, "gpu": 2}, 8))
        self.assertEqual((point.rank, point.size("gpu"), point == Point(6, Extent(["host", "gpu"], [2, 4]))), (6, 4, True))
        self.assertEqual(pickle.loads(pickle.dumps((extent, point))), (extent, point))
        for wrong, kind in ((lambda: point["x"], ValueError), (lambda: Point(8, extent)["gpu"], ValueError), (lambda: Point(-1, extent), ValueError),
                            (lambda: Extent(["a"], [1, 2]), ValueError), (lambda: Extent("ab", [1, 2]), TypeError), (lambda: point + 1, TypeError)):
            with self.assertRaises(kind):
                wrong()

    def test_shapes(self):
        shape = Shape(["a", "b"], Slice.new_row_major([2, 3]))
        self.assertEqual((shape.at("a", 1).ranks(), shape.index(b=2).ranks(), shape.select("b", slice(0, 2)).ranks()), ([3, 4, 5], [2, 5], [0, 1, 3, 4]))
        self.assertEqual((shape.coordinates(4), str(shape), len(shape)), ({"a": 1, "b": 1}, "{a=2,b=3}", 6))
        self.assertEqual(shape.region.point_of_base_rank(5).rank, 5)
        with self.assertRaisesRegex(ValueError, "this base rank 6 does not belong"):
            shape.region.point_of_base_rank(6)
        self.assertEqual(pickle.loads(pickle.dumps(shape)), shape)
        one = Slice(offset=4, sizes=[2], strides=[3])
        self.assertEqual((list(one), one[0:2], one.get(1), one.nditem([1]), repr(one)),
                         ([4, 7], (4, 7), 7, 7, "Slice { offset: 4, sizes: [2], strides: [3] }"))


class Values(unittest.TestCase):
    def test_a_value_of_each(self):
        values = ValueMesh(["a", "b"], [2, 2], [10, 11, 12, 13])
        self.assertEqual([(dict(point), value) for point, value in values.items()][2], ({"a": 1, "b": 0}, 12))
        self.assertEqual((values.item(a=1, b=1), values.get(2), list(values.slice(b=1).values()), len(values)), (13, 12, [11, 13], 4))
        self.assertEqual(repr(values.slice(a=0)), "ValueMesh({b: 2}):\n  (({'b': 0/2}, 10), ({'b': 1/2}, 11))")
        back = pickle.loads(pickle.dumps(values.slice(b=1)))
        self.assertEqual((list(back.values()), back.item(a=1)), ([11, 13], 13))
        for wrong, kind in ((lambda: values.item(a=1), KeyError), (lambda: values.item(a=0, b=0, c=0), KeyError), (lambda: values.get(4), ValueError),
                            (lambda: ValueMesh(["a"], [3], [1]), ValueError)):
            with self.assertRaises(kind):
                wrong()


if __name__ == "__main__":
    unittest.main()
