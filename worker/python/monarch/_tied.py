"""The job that a program starts for itself: virtual hosts of this machine with idle slots, tied to the program by a pipe, so that
the job ends with it however that ends.

Thread: the one that starts it; stop() any.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig

from . import _output
from ._host import AGAIN

_MESH = "procs"
_SLOTS = 256
_START_SECONDS = 60
_OUTPUT_SECONDS = 10
_GRACE = "4s"  # of a rank that is let go: an endpoint may go on for ever, and a __cleanup__ has 3 s


def spec_of(hosts, variables):
    """Of a job with so many virtual hosts, whose ranks have this program's interpreter, paths and folder. Its environment they inherit,
    so that nothing of it is written down."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = [package] + [os.path.abspath(one) for one in sys.path if os.path.abspath(one) != package]
    environment = {**variables, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
    # Interpreters that start beside hundreds of others take long: calls wait until they say READY.
    once = {
        "dims": {"host": hosts, "slot": _SLOTS}, "idle": True, "trust": "job", "program": [sys.executable, "-m", "monarch.rank"],
        "workdir": os.getcwd(), "env": environment, "ready": "notify", "stop": {"grace": _GRACE}, "supervision": {"restart": {"max": 0}}
    }
    # Who claims counts how often; here no start is the last.
    again = {**once, "hosts": {"like": _MESH}, "supervision": {"restart": {"max": "unlimited", "window": "1s", "backoff": "1ms", "backoff_max": "50ms"}}}
    return {"version": 1, "job": "python", "launch": {"local": {"hosts": hosts}}, "meshes": {_MESH: once, _MESH + AGAIN: again}}


def command():
    """The program `monarch`."""
    named = os.environ.get("MONARCH_COMMAND")
    if named:
        return named
    # The one that this package came with: of where it is installed, of a build tree, of pip's --target, of a virtual environment.
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for folder in (os.path.join(package, "..", "..", "..", "bin"), os.path.join(package, "..", "..", "cli"), os.path.join(package, "bin"),
                   sysconfig.get_path("scripts")):
        beside = os.path.normpath(os.path.join(folder, "monarch"))
        if os.access(beside, os.X_OK) and os.path.isfile(beside):
            return beside
    found = shutil.which("monarch")
    if found is None:
        raise RuntimeError("the command monarch is not in PATH; MONARCH_COMMAND says where it is")
    return found


class TiedJob:
    """`mesh`: that processes are claimed of; `door`: of its first host; `hosts`: their names."""

    mesh = _MESH

    def __init__(self, spec):
        self._command = command()
        theirs, self._tie = os.pipe()  # only this process has the end that is written to
        try:
            # In a session of its own: Ctrl-C in a terminal is the program's.
            child = subprocess.Popen([self._command, "up", "--quiet", "--tied", str(theirs), "--json", "-"], pass_fds=[theirs], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        finally:
            os.close(theirs)
        try:
            said, error = child.communicate(json.dumps(spec).encode(), _START_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            raise RuntimeError("monarch up has not started a job within %d s" % _START_SECONDS) from None
        if child.returncode != 0:
            raise RuntimeError("monarch up: %s" % error.decode("utf-8", "replace").strip())
        one = json.loads(said.splitlines()[0])
        self.name, self.door = one["job"], one["door"]
        self.hosts = [host["name"] for host in one["hosts"]]
        self.output = _output.Output(self._command, self.name)

    def stop(self):
        """Its end is that of the pipe; what its ranks have printed is shown before this returns."""
        tie, self._tie = self._tie, None
        if tie is not None:
            os.close(tie)
            self.output.wait(_OUTPUT_SECONDS)

    def forked(self):
        """In a child, which must not hold the job."""
        tie, self._tie = self._tie, None
        if tie is not None:
            os.close(tie)
