"""Extents and points, by which people name ranks, and ranks in steps: slices, shapes, regions.

Thread: values; none changes once it is made.
"""

import itertools
import operator
from collections.abc import Mapping


def product(sizes):
    found = 1  # math.prod, which imports a library that a bare interpreter does not have loaded
    for size in sizes:
        found *= size
    return found


def dense(sizes):
    """The strides of ranks without a gap."""
    return [product(sizes[k + 1:]) for k in range(len(sizes))]


def texts(labels):
    if isinstance(labels, str):
        raise TypeError("labels are a list of texts, not one text: %r" % labels)
    labels = tuple(labels)
    for label in labels:
        if not isinstance(label, str):
            raise TypeError("a label is a text, not %r" % (label,))
    return labels


def _numbers(sizes, what):
    sizes = tuple(operator.index(size) for size in sizes)
    for size in sizes:
        if size < 0:
            raise ValueError("%s is not below 0: %d" % (what, size))
    return sizes


class _Labelled(Mapping):
    """By label, in the order of the dims. A label that is not there is a ValueError, as Monarch has it."""

    __slots__ = ()

    def _at(self, label):
        if not isinstance(label, str):
            raise TypeError("a label is a text, not %r" % (label,))
        labels = self._names()
        if label not in labels:
            raise ValueError("Dimension %r not found" % label)
        return labels.index(label)

    def __iter__(self):
        return iter(self._names())

    def __len__(self):
        return len(self._names())

    def __contains__(self, label):
        return label in self._names()

    def keys(self):
        return list(self._names())

    def get(self, label, default=None):
        return self[label] if label in self else default


class Extent(_Labelled):
    """Dims: how many of each label."""

    __slots__ = ("_labels", "_sizes")

    def __init__(self, labels, sizes):
        self._labels, self._sizes = texts(labels), _numbers(sizes, "a size")
        if len(self._labels) != len(self._sizes):
            raise ValueError("label/sizes dimension mismatch: %d != %d" % (len(self._labels), len(self._sizes)))

    def _names(self):
        return self._labels

    @property
    def labels(self):
        return list(self._labels)

    @property
    def sizes(self):
        return list(self._sizes)

    @property
    def nelements(self):
        return product(self._sizes)

    @property
    def region(self):
        return Region(self._labels, Slice.new_row_major(self._sizes))

    def __getitem__(self, label):
        return self._sizes[self._at(label)]

    def __eq__(self, other):
        if not isinstance(other, Extent):
            return False
        return self._labels == other._labels and self._sizes == other._sizes

    def __hash__(self):
        return hash((self._labels, self._sizes))

    def __reduce__(self):
        return Extent, (self._labels, self._sizes)

    def __repr__(self):
        return "{%s}" % ", ".join("%s: %d" % one for one in zip(self._labels, self._sizes))


class Point(_Labelled):
    """One place of an extent, by its rank there. Whether it is inside shows only when it is asked where it is."""

    __slots__ = ("_rank", "_extent")

    def __init__(self, rank, extent):
        if not isinstance(extent, Extent):
            raise TypeError("a point is of an Extent, not of %s" % type(extent).__name__)
        self._rank, self._extent = operator.index(rank), extent
        if self._rank < 0:
            raise ValueError("a rank is not below 0: %d" % self._rank)

    def _names(self):
        return self._extent._labels

    @property
    def rank(self):
        return self._rank

    @property
    def extent(self):
        return self._extent

    def size(self, label):
        return self._extent[label]

    def _inside(self):
        total = self._extent.nelements
        if self._rank >= total:
            raise ValueError("out of range: total ranks %d; does not contain rank %d" % (total, self._rank))

    def __getitem__(self, label):
        sizes, k = self._extent._sizes, self._at(label)
        self._inside()
        return self._rank // product(sizes[k + 1:]) % sizes[k]

    def __eq__(self, other):
        if not isinstance(other, Point):
            return False
        return self._rank == other._rank and self._extent == other._extent

    def __hash__(self):
        return hash((self._rank, self._extent))

    def __reduce__(self):
        return Point, (self._rank, self._extent)

    def __repr__(self):
        self._inside()
        return "{%s}" % ", ".join("'%s': %d/%d" % (label, self[label], self.size(label)) for label in self)


class Slice:
    """Ranks in steps: an offset, and of each dim its size and its stride."""

    __slots__ = ("offset", "_sizes", "_strides")

    def __init__(self, *, offset, sizes, strides):
        self.offset = operator.index(offset)
        self._sizes, self._strides = _numbers(sizes, "a size"), _numbers(strides, "a stride")
        if len(self._sizes) != len(self._strides):
            raise ValueError("invalid dims: expected %d, got %d" % (len(self._sizes), len(self._strides)))

    @staticmethod
    def new_row_major(sizes):
        return Slice(offset=0, sizes=sizes, strides=dense(list(sizes)))

    @property
    def ndim(self):
        return len(self._sizes)

    @property
    def sizes(self):
        return list(self._sizes)

    @property
    def strides(self):
        return list(self._strides)

    def nditem(self, coordinates):
        if len(coordinates) != len(self._sizes):
            raise IndexError("invalid dims: expected %d, got %d" % (len(self._sizes), len(coordinates)))
        return self.offset + sum(at * stride for at, stride in zip(coordinates, self._strides))

    def coordinates(self, rank):
        """Where a rank is: its place in each dim. ValueError where it is not in here."""
        left, found = rank - self.offset, []
        for size, stride in zip(self._sizes, self._strides):
            # A dim of one has a place and no step; what lies within any other is less than one step of it.
            at = 0 if size == 1 else left // stride
            left -= at * stride
            found.append(at)
            if not 0 <= at < size:
                break
        else:
            if left == 0:
                return found
        raise ValueError("value %d not in slice" % rank)

    def index(self, rank):
        """Which of them a rank is, in row-major order."""
        place = 0
        for at, size in zip(self.coordinates(rank), self._sizes):
            place = place * size + at
        return place

    def get(self, place):
        """The rank that is there, in row-major order."""
        if not 0 <= place < len(self):
            raise ValueError("index %d out of range %d" % (place, len(self)))
        return self[place]

    def __getitem__(self, place):
        if isinstance(place, slice):
            return tuple(self[one] for one in range(*place.indices(len(self))))
        if not 0 <= place < len(self):
            raise IndexError("index %d out of range %d" % (place, len(self)))
        rank = self.offset
        for size, stride in zip(reversed(self._sizes), reversed(self._strides)):
            rank += place % size * stride
            place //= size
        return rank

    def __len__(self):
        return product(self._sizes)

    def __iter__(self):
        steps = [range(0, size * stride, stride) if stride else (0,) * size for size, stride in zip(self._sizes, self._strides)]
        return (self.offset + sum(at) for at in itertools.product(*steps))

    def __eq__(self, other):
        return isinstance(other, Slice) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def _key(self):
        return self.offset, self._sizes, self._strides

    def __reduce__(self):
        return _slice, self._key()

    def __repr__(self):
        return "Slice { offset: %d, sizes: %s, strides: %s }" % (self.offset, self.sizes, self.strides)


def _slice(offset, sizes, strides):
    return Slice(offset=offset, sizes=sizes, strides=strides)


class Region:
    """Labels and ranks in steps, of a larger space."""

    __slots__ = ("_labels", "_slice")

    def __init__(self, labels, slice):
        self._labels, self._slice = texts(labels), slice
        if len(self._labels) != slice.ndim:
            raise ValueError("label slice dimension mismatch: %d != %d" % (len(self._labels), slice.ndim))

    @property
    def labels(self):
        return list(self._labels)

    def slice(self):
        return self._slice

    def as_shape(self):
        return Shape(self._labels, self._slice)

    def point_of_base_rank(self, rank):
        try:
            return Point(self._slice.index(rank), Extent(self._labels, self._slice._sizes))
        except ValueError:
            raise ValueError("out of range base rank: this base rank %d does not belong to this region" % rank) from None

    def __eq__(self, other):
        return type(other) is type(self) and self._labels == other._labels and self._slice == other._slice

    def __hash__(self):
        return hash((self._labels, self._slice))

    def __reduce__(self):
        return type(self), (self._labels, self._slice)

    def __repr__(self):
        return "Region(%s, %r)" % (list(self._labels), self._slice)


class Shape(Region):
    """A region that can be cut."""

    __slots__ = ()

    @staticmethod
    def unity():
        return Shape([], Slice(offset=0, sizes=[], strides=[]))

    @property
    def ndslice(self):
        return self._slice

    @property
    def extent(self):
        return Extent(self._labels, self._slice._sizes)

    @property
    def region(self):
        return Region(self._labels, self._slice)

    def ranks(self):
        return list(self._slice)

    def coordinates(self, rank):
        return dict(zip(self._labels, self._slice.coordinates(rank)))

    def at(self, label, index):
        return self._cut({label: operator.index(index)})

    def select(self, label, slice):
        return self._cut({label: slice})

    def index(self, **at):
        return self._cut(at)

    def _cut(self, at):
        labels, sizes, strides, offset = cut(self._labels, self._slice._sizes, self._slice._strides, self._slice.offset, at)
        return Shape(labels, Slice(offset=offset, sizes=sizes, strides=strides))

    def __len__(self):
        return len(self._slice)

    def __str__(self):
        return "{%s}" % ",".join("%s=%d" % one for one in zip(self._labels, self._slice._sizes))

    def __repr__(self):
        return "Shape { labels: [%s], slice: %r }" % (", ".join('"%s"' % label for label in self._labels), self._slice)


def cut(labels, sizes, strides, offset, at):
    """What is left of a view where some labels have an index, which drops the dim, or a slice."""
    sizes, strides = list(sizes), list(strides)
    for label, wanted in at.items():
        if label not in labels:
            raise TypeError("Shape does not have dimension labeled %r" % (label,))
        k = labels.index(label)
        size, stride = sizes[k], strides[k]
        if isinstance(wanted, slice):
            first, end, step = wanted.indices(size)
            if first >= end or step < 1:
                raise ValueError("empty range %d:%d:%d of dimension %s of size %d" % (first, end, step, label, size))
            sizes[k], strides[k] = -((first - end) // step), step * stride
        else:
            first = operator.index(wanted)
            if not 0 <= first < size:
                raise IndexError("index out of range: %s=%d, of %d" % (label, first, size))
        offset += first * stride
    kept = [k for k, label in enumerate(labels) if label not in at or isinstance(at[label], slice)]
    return [labels[k] for k in kept], [sizes[k] for k in kept], [strides[k] for k in kept], offset
