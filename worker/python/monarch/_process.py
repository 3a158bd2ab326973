"""What this process has: its place, the connection by which it calls, the one by which it is called, and the job it started.

Thread: any; each is made once, at first use.
"""

import atexit
import itertools
import os
import threading

from . import _calls
from . import _door as d


class Where:
    """The address of a process: a rank of a mesh, or a guest, with the name of its host."""

    __slots__ = ("mesh", "rank", "host")

    def __init__(self, mesh, rank, host=""):
        self.mesh, self.rank, self.host = mesh, rank, host

    def __reduce__(self):
        return Where, (self.mesh, self.rank, self.host)

    def __eq__(self, other):
        return isinstance(other, Where) and (self.mesh, self.rank, self.host) == (other.mesh, other.rank, other.host)

    def __hash__(self):
        return hash((self.mesh, self.rank, self.host))

    def __repr__(self):
        return "%s/%d" % (self.mesh, self.rank) if not self.host else "%s/%d of %s" % (self.mesh, self.rank, self.host)


def place_of_environment():
    """(mesh, rank, generation) of a rank of a job, or None."""
    words = os.environ
    if "MONARCH_MESH" not in words or "MONARCH_POST" not in words:
        return None
    return words["MONARCH_MESH"], int(words["MONARCH_RANK"]), int(words["MONARCH_GENERATION"])


class Process:
    def __init__(self):
        self._lock = threading.RLock()
        self._caller = None
        self.server = None  # what is called in this process
        self.job = None  # that it has started
        self.root = None  # Where of the program: named controllers live there
        self.numbers = itertools.count(1)
        self._path = None
        self._over = None

    def path(self):
        """The door of this host's post. A program that was started by hand starts a job for it."""
        with self._lock:
            if self._over is not None:
                raise RuntimeError(self._over)
            if self._path is None:
                self._path = os.environ.get("MONARCH_POST")
                if self._path is None:
                    from . import _host
                    self.job = _host.start_job()
                    self._path = self.job.door
            return self._path

    def start(self, spec):
        """Starts a job of that spec for this program, which has none yet; the names of its hosts."""
        with self._lock:
            if self._path is not None:
                raise RuntimeError("this process has come to a job already: one program has one")
            from . import _host
            self.job = _host.start_job(spec)
            self._path = self.job.door
            return list(self.job.hosts)

    def use_door(self, path):
        """Calls go by this door, as with MONARCH_POST."""
        with self._lock:
            if self._path not in (None, path):
                raise RuntimeError("this process has come to the door %s already" % self._path)
            self._path = path

    def caller(self):
        caller = self._caller
        if caller is None:
            with self._lock:
                if self._caller is None:
                    self._caller = _calls.Caller(self.path(), place_of_environment())
                caller = self._caller
        return caller

    def owner(self):
        """The number by which this process has claims, or 0."""
        return 0 if self._caller is None else self._caller.wishes.owner

    def serving(self):
        """The server of this process; one that is no `monarch.rank` serves in a thread of its own from now on."""
        if self.server is None:
            with self._lock:
                if self.server is None:
                    from . import _serve
                    self.server = _serve.beside_a_program(self.path(), place_of_environment())
                    if self.root is None:
                        self.root = self.server.where
        return self.server

    def where(self):
        return self.serving().where

    def close(self, why):
        with self._lock:
            self._over = why
            caller, server, job = self._caller, self.server, self.job
            self._caller = self.server = self.job = None
        if server is not None:
            server.end(why)
        if caller is not None:
            caller.close(why)
        if job is not None:
            job.stop()

    def forked(self):
        """In a child nothing of the parent's may speak at the door."""
        why = "this process was forked from one that has come to a post: it calls nothing; start a program of its own instead"
        self._lock = threading.RLock()
        if self._caller is None and self.server is None and self.job is None:
            return
        self._over = why
        if self._caller is not None:
            self._caller.forked(why)
        if self.server is not None:
            self.server.forked()
        if self.job is not None:
            self.job.forked()


def _at_exit():
    if process._caller is not None or process.server is not None or process.job is not None:
        process.close("this program is about to end")


process = Process()
atexit.register(_at_exit)
os.register_at_fork(after_in_child=process.forked)


def own_place():
    """Where this process is, without its serving: a rank of a job is where it was started."""
    if process.server is not None:
        return process.server.where
    place = place_of_environment()
    return None if place is None else Where(place[0], place[1])
