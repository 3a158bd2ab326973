"""Memory by which large bodies travel (monarch-post(7), "Version 3"): blocks that this process lends, and those of others that it reads.

A block is written by its lender alone, and again only once the post has said that nobody reads it. Who reads one maps it
privately and may write what he reads; it is let go when the last view of it has gone, so that whatever a program keeps of
an argument or of an answer stays as it was.

Thread: any.
"""

import fcntl
import itertools
import mmap
import os
import threading
import weakref

LEAST = 65536
KEPT_BYTES = 256 << 20  # of blocks that wait for their next use
COPIED_BYTES = 64 << 10  # so little is copied sooner than mapped
MAPPINGS = 256  # each has a descriptor as long as anything of it is kept; what comes beyond is copied
_MFD_CLOEXEC, _MFD_ALLOW_SEALING = 1, 2
_F_ADD_SEALS = 1033
_SEALS = 0x1 | 0x2 | 0x4 | 0x10  # F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_FUTURE_WRITE
_WRITE_SEALS = 0x1 | 0x2 | 0x4 | 0x8


class Block:
    """Memory that this process has written and lends; its mapping was made before the seal that forbids others to."""

    def __init__(self, size, number):
        first = os.memfd_create("monarch-body", _MFD_CLOEXEC | _MFD_ALLOW_SEALING)
        try:
            os.ftruncate(first, size)
            self.map = mmap.mmap(first, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
            self.map.madvise(mmap.MADV_DONTFORK)  # a child would write what its parent lends
            fcntl.fcntl(first, _F_ADD_SEALS, _SEALS)
            # What goes to others can be read alone.
            self.descriptor = os.open("/proc/self/fd/%d" % first, os.O_RDONLY | os.O_CLOEXEC)
        finally:
            os.close(first)
        self.size, self.number, self.lent, self.is_unsure = size, number, 0, False

    def close(self):
        os.close(self.descriptor)
        self.map.close()


class Pool:
    """The blocks of one connection: their numbers are the connection's."""

    def __init__(self):
        self._lock = threading.Lock()
        self._blocks = {}  # by number
        self._free = []
        self._next = 1

    def lend(self, pieces, total):
        """The pieces, one behind the other, in a block that is lent once from now on: its descriptor and its number."""
        size = LEAST
        while size < total:
            size *= 2
        block = self._take(size)
        at = 0
        for piece in pieces:
            piece = memoryview(piece).cast("B") if not isinstance(piece, bytes) else piece
            block.map[at:at + len(piece)] = piece
            at += len(piece)
        return block.descriptor, block.number

    def _take(self, size):
        with self._lock:
            for place, block in enumerate(self._free):
                if block.size == size:
                    del self._free[place]
                    block.lent = 1
                    return block
            number = self._next
            self._next += 1
        block = Block(size, number)
        block.lent = 1
        with self._lock:
            self._blocks[number] = block
        return block

    def hold(self, number):
        """It is lent once more, to who lends it: freed() takes that back."""
        with self._lock:
            block = self._blocks.get(number)
            if block is not None:
                block.lent += 1

    def freed(self, number, unsure=False):
        """The post says so, or it was not sent. Of an unsure one the kernel alone knows: it is used no more."""
        with self._lock:
            block = self._blocks.get(number)
            if block is None or block.lent == 0:
                return
            block.lent -= 1
            block.is_unsure |= unsure
            if block.lent > 0:
                return
            if block.is_unsure or sum(one.size for one in self._free) + block.size > KEPT_BYTES:
                del self._blocks[number]
                block.close()
            else:
                self._free.append(block)

    def close(self):
        """The connection has ended. Nobody says any more who reads what is lent: it is others' from now on."""
        with self._lock:
            for block in self._blocks.values():
                block.close()
            self._blocks.clear()
            self._free.clear()


def read_block(descriptor, start, size, when_gone=None):
    """The bytes of a body that lies in memory, as a view that may be written; `when_gone()` once no view of it is left,
    perhaps in the middle of something else of the same thread. The descriptor is closed."""
    try:
        if size <= COPIED_BYTES or len(_watched) >= MAPPINGS:
            return _copied(descriptor, start, size, when_gone)
        skipped = start % mmap.PAGESIZE  # a mapping begins at a page
        mapping = mmap.mmap(descriptor, size + skipped, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE, offset=start - skipped)
    finally:
        os.close(descriptor)
    key = next(_keys)
    _watched[key] = weakref.ref(mapping, _Gone(key, when_gone))
    return memoryview(mapping)[skipped:]


def _copied(descriptor, start, size, when_gone):
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size:
        got = os.preadv(descriptor, [view[at:]], start + at)
        if got == 0:
            raise EOFError("a body of %d bytes ends after %d" % (size, at))
        at += got
    if when_gone is not None:
        when_gone()
    return view


_watched = {}  # what is mapped: the references that tell of its end
_keys = itertools.count()


class _Gone:
    def __init__(self, key, run):
        self._key, self._run = key, run

    def __call__(self, _):
        _watched.pop(self._key, None)
        if self._run is not None:
            self._run()


def sealed(data):
    """A descriptor of memory with these bytes that nobody writes any more."""
    descriptor = os.memfd_create("monarch-word", _MFD_CLOEXEC | _MFD_ALLOW_SEALING)
    try:
        at = 0
        while at < len(data):
            at += os.write(descriptor, data[at:])
        fcntl.fcntl(descriptor, _F_ADD_SEALS, _WRITE_SEALS)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
