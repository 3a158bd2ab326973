"""Groups of ranks across the meshes of a job: who meets, where a store for them can be, and that one of them is lost.

    group = tensors.group("sync", {"trainer": [0], "generator": "all"}, timeout=60)     # every member calls it
    pg = torch.distributed.ProcessGroupNCCL(group.store(), group.rank, group.size)
    group.on_lost(pg.abort)
    ...
    group.check()                       # raises PeerGone once a member has ended; the next group() of all is the next epoch

monarch-tensors(7) has all of it. What is imported of PyTorch is imported by store() alone.
"""

import collections
import ctypes
import ipaddress
import os
import socket
import sys
import threading
import time
import traceback

import monarch_tensors as _tensors
import monarch_tensors_memory as _memory
from monarch_tensors_memory import Invalid

__all__ = ["Group", "Member"]

NOTICE_S = 30           # between two lines that name who is missing
_STORE_TRY_S = 2        # for one connection to a store
_STORE_TIMEOUT_S = 300  # PyTorch's own

Member = collections.namedtuple("Member", ["mesh", "rank", "generation"])


class _Members(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("count", ctypes.c_uint32), ("mesh", ctypes.c_char_p),
                ("ranks", ctypes.POINTER(ctypes.c_uint32))]


class _Meet(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("members_count", ctypes.c_uint32), ("name", ctypes.c_char_p),
                ("members", ctypes.POINTER(_Members)), ("timeout_ms", ctypes.c_int64), ("notice_ms", ctypes.c_int64),
                ("offer", ctypes.c_void_p), ("offer_bytes", ctypes.c_uint64)]


class _Info(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("rank", ctypes.c_uint32), ("size", ctypes.c_uint32), ("port", ctypes.c_uint32),
                ("generation", ctypes.c_uint64), ("epoch", ctypes.c_uint64), ("address", ctypes.c_char_p),
                ("offer", ctypes.c_void_p), ("offer_bytes", ctypes.c_uint64)]


class _Member(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("rank", ctypes.c_uint32), ("generation", ctypes.c_uint64),
                ("mesh", ctypes.c_char_p)]


def _wish(mesh, ranks):
    """The library's word for ranks of a mesh."""
    wish = _tensors._made(_Members, mesh=_memory.name_bytes(mesh, "a mesh's name"))
    if isinstance(ranks, str) and ranks == "all":
        return wish
    if isinstance(ranks, (str, bytes)):
        raise Invalid("the ranks of %s are %r, and not \"all\" or numbers" % (mesh, ranks))
    indices = _memory.extents((ranks,) if isinstance(ranks, int) else ranks, "a rank of %s" % mesh)
    if not indices:
        raise Invalid("no rank of %s is named: leave it out, or say \"all\"" % mesh)
    wish.count = len(indices)
    wish.ranks = (ctypes.c_uint32 * len(indices))(*(min(index, 2 ** 32 - 1) for index in indices))
    return wish


class _Meeting:
    """A call for a group. Handlers of signals run in the main thread alone, and not while it is in the library: there another thread
    calls, so that Ctrl-C, or a handler that raises, ends the call."""

    def __init__(self, session, options):
        self._session = session
        self._options = options
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._handle = None
        self._error = None
        self._given_up = False

    def wait(self):
        if threading.current_thread() is not threading.main_thread():
            return self._meet(self._options)
        try:
            threading.Thread(target=self._run, name="monarch group meets", daemon=True).start()
        except RuntimeError:  # at the end of the interpreter no thread begins
            return self._meet(self._options)
        try:
            self._done.wait()
        except BaseException:
            self._give_up()
            raise
        if self._error is not None:
            raise self._error
        return self._handle

    def _meet(self, options):
        handle = ctypes.c_void_p()
        self._session.call("group_meet", self._session.handle, ctypes.byref(options), ctypes.byref(handle))
        return handle

    def _run(self):
        try:
            handle, error = self._meet(self._options), None
        except _tensors.TensorError as raised:
            handle, error = None, raised
        with self._lock:
            self._handle, self._error = handle, error
            if self._given_up:
                self._free()
        self._done.set()

    def _give_up(self):
        """A newer call takes the place of the one that waits, and ends at once."""
        with self._lock:
            self._given_up = True
            if self._done.is_set() or self._handle is not None or self._error is not None:
                return self._free()
        try:
            self._options.timeout_ms = 0
            self._session.tell("group_free", self._meet(self._options))
        except _tensors.TensorError:
            pass

    def _free(self):
        handle, self._handle = self._handle, None
        if handle is not None:
            self._session.tell("group_free", handle)


def _is_at(peer, address, port):
    """Whether that is the other end of a connection to this address, by IPv4 in IPv6 as well."""
    if not isinstance(peer, tuple) or peer[1] != port:
        return False
    host = ipaddress.ip_address(peer[0].split("%")[0])
    return (getattr(host, "ipv4_mapped", None) or host) == ipaddress.ip_address(address.split("%")[0])


class Group:
    """This rank in one epoch of a group.

    rank, size: its place, and of how many. epoch: (generation of the first member, count), greater than any before.
    members: a list of Member(mesh, rank, generation). address, port: of the first member's host; the port is held by its
    process, within network.ports, and nobody listens at it: what sets SO_REUSEADDR can, in that process.

    The end of it, or of its block, leaves the epoch, which is lost to the others then. One that is forgotten leaves as
    well, but where it has an on_lost() or a store()."""

    def __init__(self, name, members, timeout=None):
        self._session = _tensors._session.use()
        self._lock = threading.Lock()
        self._calls = []
        self._watcher = None
        self._opening = threading.Lock()
        self._store = None
        self._closed = False
        self._handle = None
        if not hasattr(members, "items"):
            raise Invalid("the members of a group are a %s, and not a dict of mesh and ranks" % type(members).__name__)
        wishes = [_wish(mesh, ranks) for mesh, ranks in members.items()]
        options = _tensors._made(_Meet, members_count=len(wishes), name=_memory.name_bytes(name, "a group's name"),
                                 members=(_Members * max(len(wishes), 1))(*wishes), notice_ms=int(NOTICE_S * 1000),
                                 timeout_ms=_tensors._milliseconds(timeout, "timeout"))
        self._handle = _Meeting(self._session, options).wait()
        info = _tensors._made(_Info)
        self._session.tell("group_info", self._handle, ctypes.byref(info))
        self.name = name
        self.rank = info.rank
        self.size = info.size
        self.epoch = (info.generation, info.epoch)
        self.address = info.address.decode()
        self.port = info.port
        self.members = [self._member(index) for index in range(info.size)]

    def _member(self, index):
        member = _tensors._made(_Member)
        self._session.call("group_member", self._handle, ctypes.c_uint32(index), ctypes.byref(member))
        return Member(member.mesh.decode(), member.rank, member.generation)

    def __repr__(self):
        return "Group(%r, rank=%d, size=%d, epoch=%r)" % (self.name, self.rank, self.size, self.epoch)

    @property
    def lost(self):
        """Why the epoch has ended, as text; None while it has not."""
        try:
            self.check()
        except _tensors.PeerGone as error:
            return str(error)
        return None

    def _refuse_closed(self):
        if self._closed:
            raise Invalid("group %s is closed" % self.name)

    def check(self):
        """Raises PeerGone once the epoch is lost. It waits for nothing."""
        with self._lock:
            self._refuse_closed()
            self._session.call("group_check", self._handle)

    def on_lost(self, call):
        """Calls it once the epoch is lost, on a thread of the group's own: at once, if it is lost already. Not where this
        rank has left it before. Of several calls each waits for the one before it."""
        if not callable(call):
            raise Invalid("group %s: on_lost() has a %s, which cannot be called" % (self.name, type(call).__name__))
        with self._lock:
            self._refuse_closed()
            self._calls.append(call)
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name="monarch group", daemon=True)
                self._watcher.start()

    def _watch(self):
        lost = False
        try:
            self._session.call("group_wait_lost", self._handle, ctypes.c_int64(-1))
        except _tensors.PeerGone:
            lost = True
        except _tensors.TensorError:
            pass  # it was left
        while True:
            with self._lock:
                if not lost or not self._calls:
                    self._watcher = None  # who comes later has a thread of his own
                    if self._closed:
                        self._free()
                    return
                call = self._calls.pop(0)
            try:
                call()
            except BaseException:  # SystemExit as well: it would end this thread alone, and the other calls with it
                print("monarch: a call of on_lost() of group %s has failed:" % self.name, file=sys.stderr)
                traceback.print_exc()

    def store(self, timeout=_STORE_TIMEOUT_S):
        """A torch.distributed.TCPStore of the group, which the first member's process has; one and the same in each call.
        It serves the default group (init_process_group(store=…)), and groups beside it. Once the epoch is lost it ends:
        what waits for it, as a group that is being made, raises, and so does this. timeout: seconds for which the first
        member's call is waited for, and of what the store does; None: any time."""
        seconds = _tensors._LONGEST if timeout is None else _tensors._milliseconds(timeout, "timeout") / 1000.0
        with self._opening:
            self.check()
            if self._store is None:
                self._store = self._open_store(seconds)
                self.on_lost(self._end_store)
            return self._store

    def _end_store(self):
        """PyTorch cannot end a wait for a store: the end of its connections does. Nobody is given it again: a thread of it
        runs without a pause, in older versions of PyTorch, until it is freed."""
        self._store = None
        for name in os.listdir("/proc/self/fd"):
            try:
                if os.readlink("/proc/self/fd/" + name).startswith("socket:"):
                    with socket.socket(fileno=os.dup(int(name))) as one:
                        if _is_at(one.getpeername(), self.address, self.port):
                            one.shutdown(socket.SHUT_RDWR)
            except (OSError, ValueError):
                pass  # it is none of TCP, or was closed meanwhile

    def _open_store(self, seconds):
        import datetime
        from torch.distributed import TCPStore
        until = time.monotonic() + seconds
        while True:
            if self.rank > 0:
                self._await_store(until, seconds)
            try:
                store = TCPStore(self.address, self.port, self.size, self.rank == 0, datetime.timedelta(seconds=_STORE_TRY_S),
                                 wait_for_workers=False)
                store.set_timeout(datetime.timedelta(seconds=seconds))
                return store
            except (RuntimeError, OSError) as error:  # of PyTorch
                self.check()
                said = "group %s: no store at %s port %d: %s" % (self.name, self.address, self.port, str(error).splitlines()[0])
                if self.rank == 0:
                    raise _tensors.Internal(said)
                if time.monotonic() >= until:
                    raise _tensors.Timeout(said)

    def _await_store(self, until, seconds):
        """PyTorch would look once a second, each time with a line in the rank's output."""
        begun = time.monotonic()
        say_at = begun + NOTICE_S
        pause = 0.001
        while True:
            missing = self._missing_store()
            if missing is None:
                return
            self.check()
            now = time.monotonic()
            if now >= until:
                raise _tensors.Timeout("group %s: no store within %gs: %s" % (self.name, seconds, missing))
            if now >= say_at:
                say_at = now + NOTICE_S
                print("monarch: group %s: no store since %.3gs: %s" % (self.name, now - begun, missing), file=sys.stderr, flush=True)
            time.sleep(min(pause, until - now))
            pause = min(2 * pause, 0.05)

    def _missing_store(self):
        """Why nobody listens there, or None."""
        try:
            socket.create_connection((self.address, self.port), _STORE_TRY_S).close()
            return None
        except ConnectionRefusedError:
            return "%s/%d has not called store()" % self.members[0][:2]
        except OSError as error:
            return "%s port %d of %s/%d is not reached: %s" % ((self.address, self.port) + self.members[0][:2] + (error,))

    def close(self):
        """Leaves the epoch."""
        with self._lock:
            if self._closed or self._handle is None:
                return
            self._closed = True
            self._store = None
            self._session.tell("group_leave", self._handle)
            if self._watcher is None:
                self._free()  # else the watcher does, once it has returned

    def _free(self):
        handle, self._handle = self._handle, None
        if handle is not None:
            self._session.tell("group_free", handle)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.close()
        return False

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            self.close()
