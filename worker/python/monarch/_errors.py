"""What calls raise, and what owners are told of failures.

Thread: values.
"""

import re


class SupervisionError(RuntimeError):
    """The actor or its process has failed, or is not there any more; nobody may know whether the call has run."""

    endpoint = None  # the name of what was called


class ActorError(Exception):
    """An endpoint has let `exception` out. The actor lives."""

    def __init__(self, exception, message="A remote actor call has failed.", traceback=""):
        super().__init__(exception, message, traceback)
        self.exception, self.message, self.exception_formatted = exception, message, traceback

    def __str__(self):
        return "%s\n %s" % (self.message, self.exception_formatted)


_SIGNAL = re.compile(r"killed by (SIG[A-Z0-9]+)")
_CODE = re.compile(r"exit code (\d+)")
_HOST = re.compile(r"\bon ([A-Za-z0-9_.-]+) \(pid ")


class MeshFailure:
    """What an owner is told of, once for each process or actor of his that has failed."""

    def __init__(self, mesh_name, ranks, cause, mesh=None, host=None):
        self.mesh_name, self.ranks, self.cause, self.mesh = mesh_name, list(ranks), cause, mesh
        signal, code, place = _SIGNAL.search(cause), _CODE.search(cause), _HOST.search(cause)
        self.signal = signal.group(1) if signal else None
        self.exit_code = int(code.group(1)) if code else None
        self.host = host or (place.group(1) if place else None)

    def report(self):
        return "%s: %s" % (self.mesh_name, self.cause)

    def __str__(self):
        return "MeshFailure(mesh_name=%s, crashed_ranks=%r): %s" % (self.mesh_name, self.ranks, self.cause)

    __repr__ = __str__


def unbuilt(what, instead):
    """What Monarch has and this package does not: says what to use."""
    raise NotImplementedError("%s is not built here: %s" % (what, instead))
