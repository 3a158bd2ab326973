"""Views of meshes: which ranks of a mesh something is about. Hosts, processes, actors and values share what is here.

A view is labels, sizes, strides and an offset over the ranks of a mesh, in row-major order. Where its ranks do not lie in
steps, positions go through an explicit list of ranks. Nothing here knows of connections or of processes.

Thread: values; none changes once it is made.
"""

import itertools
import operator

from ._shapes import Extent, Point, Region, Shape, Slice, cut, dense, product, texts

__all__ = ["Extent", "Point", "Region", "Shape", "Slice", "ValueMesh", "View", "cut", "dense", "point_in", "runs_in_steps", "runs_of"]


def runs_of(ranks):
    """An explicit list of ranks, each once, as [[first, count, step]…]."""
    left, runs, at = sorted(ranks), [], 0
    while at < len(left):
        end = at + 1
        step = left[end] - left[at] if end < len(left) else 1
        while end < len(left) and left[end] - left[end - 1] == step:
            end += 1
        runs.append([left[at], end - at, step if end - at > 1 else 1])
        at = end
    return runs


def runs_in_steps(sizes, strides, offset):
    """The ranks of a view as [[first, count, step]…]: few. Their order says nothing."""
    dims = []  # dims that go on where the next one ends are one
    for size, stride in zip(sizes, strides):
        if size == 1:
            continue
        if dims and dims[-1][1] == size * stride:
            dims[-1] = [dims[-1][0] * size, stride]
        else:
            dims.append([size, stride])
    if not dims:
        return [[offset, 1, 1]]
    dims.sort()
    count, step = dims.pop()
    heads = itertools.product(*(range(0, size * stride, stride) for size, stride in dims))
    return [[first, count, step] for first in sorted(offset + sum(at) for at in heads)]


def point_in(view, rank):
    """Where a rank is in a view: (labels, sizes, strides, offset), and a list of ranks behind it where it has one."""
    labels, sizes, strides, offset = view[:4]
    if len(view) > 4 and view[4] is not None:
        rank = view[4].index(rank)
    return Point(Slice(offset=offset, sizes=sizes, strides=strides).index(rank), Extent(labels, sizes))


class View:
    """Some ranks of a mesh. Who has one calls _view() once, says in _with() how another one of the same is made, and sets
    _base where its positions are not ranks: the rank of each position."""

    _base = None

    def _view(self, labels, sizes, strides, offset):
        self._labels, self._sizes, self._strides, self._offset = tuple(labels), tuple(sizes), tuple(strides), offset
        return self

    def _with(self, labels, sizes, strides, offset):
        raise NotImplementedError

    def _as_view(self):
        """As it travels: see point_in()."""
        if self._base is None:
            return self._labels, self._sizes, self._strides, self._offset
        return self._labels, self._sizes, self._strides, self._offset, tuple(self._base)

    @property
    def _ndslice(self):
        return Slice(offset=self._offset, sizes=self._sizes, strides=self._strides)

    @property
    def _region(self):
        return Region(self._labels, self._ndslice)

    @property
    def _shape(self):
        return Shape(self._labels, self._ndslice)

    def _positions(self):
        return list(self._ndslice)

    def _ranks(self):
        """The ranks, in row-major order."""
        found = self._positions()
        return found if self._base is None else [self._base[at] for at in found]

    def _runs(self):
        """[[first, count, step]…] of the ranks, for the wire."""
        if self._base is None:
            return runs_in_steps(self._sizes, self._strides, self._offset)
        return runs_of(self._ranks())

    @property
    def extent(self):
        return Extent(self._labels, self._sizes)

    @property
    def sizes(self):
        return dict(zip(self._labels, self._sizes))

    def size(self, dim=None):
        """How many; of one dim, or of some."""
        if dim is None:
            return product(self._sizes)
        if isinstance(dim, str):
            if dim not in self._labels:
                raise KeyError("%r does not have dimension %r" % (self, dim))
            return self._sizes[self._labels.index(dim)]
        return product([self.size(one) for one in dim])

    def __len__(self):
        return product(self._sizes)

    def slice(self, **at):
        """A number drops its dim, a slice keeps it: mesh.slice(host=0, gpu=slice(2, 6))."""
        return self._with(*cut(self._labels, self._sizes, self._strides, self._offset, at))

    def flatten(self, name):
        """One dim instead of all. ValueError where there are gaps between the ranks."""
        wanted = dense(self._sizes)
        if list(self._strides) != wanted:
            raise ValueError("cannot flatten sparse mesh: strides %s are not %s" % (list(self._strides), wanted))
        return self._with(texts([name]), [len(self)], [1], self._offset)

    def split(self, **how):
        """Dims cut into several: mesh.split(host=("dp", "pp"), gpu=("tp", "cp"), pp=16, cp=2). One size each may be left out."""
        given = {}
        for key, value in how.items():
            if key in self._labels:
                if isinstance(value, str):
                    raise ValueError("expected a sequence of dimensions, but got %r" % value)
            elif not isinstance(value, int):
                raise ValueError("%r is not an existing dim. Expected an integer size constraint on a new dim." % key)
            else:
                given[key] = value
        unused = dict(given)
        labels, sizes, strides = [], [], []
        for label, size, stride in zip(self._labels, self._sizes, self._strides):
            names = texts(how.get(label, (label,)))
            parts = _parts(label, size, names, given)
            for k, name in enumerate(names):
                if name in labels:
                    raise ValueError("Duplicate dimension name %r" % name)
                unused.pop(name, None)
                labels.append(name)
                sizes.append(parts[k])
                strides.append(stride * product(parts[k + 1:]))
        if unused:
            raise ValueError("unused size constraints: %r" % (tuple(unused),))
        return self._with(labels, sizes, strides, self._offset)

    def rename(self, **names):
        return self.split(**{label: (name,) for label, name in names.items()})


def _parts(label, size, names, given):
    """The sizes of the dims that one dim is cut into."""
    open_ = [name for name in names if name not in given]
    if len(open_) > 1:
        raise ValueError("Cannot infer size of %r because %s have unknown size. Specify all but one as arguments, e.g. %s=4" %
                         (names, " and ".join(open_), open_[0]))
    known = product([given[name] for name in names if name in given])
    if any(given.get(name, 1) < 1 for name in names):
        raise ValueError("Dimension %r of size %d: a part of it has a size of 1 or more: %r" % (label, size, given))
    if size % known if open_ else known != size:
        raise ValueError("Dimension %r of size %d is not evenly divided by %r with sizes %r" %
                         (label, size, names, tuple(given.get(name, "?") for name in names)))
    return [given.get(name, size // known) for name in names]


class ValueMesh(View):
    """A value of each rank, as a call gives them. `values` are by rank: a list, or a dict where there are gaps."""

    def __init__(self, labels, sizes, values, strides=None, offset=0):
        self._view(labels, sizes, dense(sizes) if strides is None else strides, offset)
        self._values = values
        if strides is None and len(values) != len(self):
            raise ValueError("invalid value mesh: expected %d ranks, but contains %d ranks" % (len(self), len(values)))

    def __class_getitem__(cls, _):
        return cls

    def _with(self, labels, sizes, strides, offset):
        return ValueMesh(labels, sizes, self._values, strides, offset)

    def __reduce__(self):
        return _value_mesh, (self._labels, self._sizes, self._strides, self._offset, list(self.values()))

    def get(self, rank):
        """The value of so many-th of them."""
        place = operator.index(rank)
        if not 0 <= place < len(self):
            raise ValueError("index %d out of range (len=%d)" % (place, len(self)))
        return self._values[self._ndslice[place]]

    def item(self, **at):
        """The one value that is there: each dim has a place. KeyError for one that is missing or too many."""
        wanted = {label: at.pop(label) for label in self._labels}
        if at:
            raise KeyError("item has extra dimensions: %s" % list(at))
        for label, place in wanted.items():
            wanted[label] = operator.index(place)
        return self._values[cut(self._labels, self._sizes, self._strides, self._offset, wanted)[3]]

    def items(self):
        extent = self.extent
        for place, rank in enumerate(self._positions()):
            yield Point(place, extent), self._values[rank]

    def values(self):
        return [self._values[rank] for rank in self._positions()]

    def __iter__(self):
        return iter(self.items())

    def __repr__(self):
        import pprint
        import textwrap
        return "ValueMesh(%r):\n%s" % (self.extent, textwrap.indent(pprint.pformat(tuple(self.items())), "  "))


def _value_mesh(labels, sizes, strides, offset, values):
    ranks = Slice(offset=offset, sizes=sizes, strides=strides)
    return ValueMesh(labels, sizes, dict(zip(ranks, values)), strides, offset)
