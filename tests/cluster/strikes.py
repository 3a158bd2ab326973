"""Faults as `monarch drill` has them injected: by the worker's own `monarch-worker check` on the host, asked as its supervisor would."""

import glob
import json
import os
import subprocess

import harness
from host import HOME

KILL, SEGV, ABORT, STOP, BUSY, CUT = range(6)   # transport/messages/strike.h
RANK, DAEMON, KEEPER, WORKER, HOST = range(5)
BOTH, IN, OUT = range(3)
STRUCK = 11                                     # of the fields of check.h's answer
PATIENCE_NS = 5_000_000_000
LIFE_NS = 600_000_000_000


def lacks():
    """What this machine lacks for them, or None."""
    try:
        import msgpack  # noqa: F401  pylint: disable=unused-import
    except ImportError:
        return "needs python3-msgpack"
    return None if os.path.exists("/usr/sbin/nft") else "needs nft (nftables)"


class Strikes:
    """Of one job on one host, until it is left: `with Strikes(test, host, job) as strikes: strikes.strike(...)`."""

    def __init__(self, test, host, uuid):
        self.test, self.host, self.uuid = test, host, uuid
        worker, = glob.glob(host.path(HOME + "/.cache/monarch/worker/*/monarch-worker"))
        self.check = host.start("/" + os.path.relpath(worker, host.path("/")), "check", stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.check.stdin.close()
        self.test.assertEqual(self.check.wait(harness.DEADLINE_S), 0)
        self.check.stdout.close()

    def strike(self, what, whom=HOST, mesh="", rank=0, processes=0, address="", ports=(), way=BOTH, percent=100):
        """Once it is in effect: the processes that were struck, as the host numbers them."""
        order = [what, whom, self.uuid, self.host.name, mesh, rank, processes, address, list(ports), way, percent, 0, 0, ""]
        error, struck = self._ask(order, False)
        self.test.assertEqual(error, "")
        return struck

    def undo(self):
        self.test.assertEqual(self._ask(None, True), ["", []])

    def _ask(self, order, undo):
        import msgpack
        request = [["", ""], LIFE_NS, PATIENCE_NS, False, False, None, 0, [], [], [], [], [], None, order, undo, False]
        packed = msgpack.packb(request)
        self.check.stdin.write(b"%d\n" % len(packed) + packed)
        self.check.stdin.flush()
        size = int(self.check.stdout.readline())
        return msgpack.unpackb(self.check.stdout.read(size))[-2][:2]


def ports_of(test, job):
    """What the job's supervisor listens on."""
    return [port for port in json.loads(test.read("state", "jobs", job, "ports.json")).values() if isinstance(port, int)]
