"""NCCL on one GPU, without the library of monarch: gpu_nccl.py ROLE SETTINGS, of which the latter is JSON. A process of its own, for a call
of NCCL's may never return. What it has found it prints as one line of JSON."""

import ctypes
import glob
import json
import os
import sys
import sysconfig
import time

from gpu_driver import Driver, Mapping

SUCCESS, IN_PROGRESS = 0, 7
FLOAT32, SUM = 7, 0
COUNT = 1 << 20


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


class Config(ctypes.Structure):
    """As NCCL 2.14 had it: what later libraries know beside it has their defaults."""

    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint), ("blocking", ctypes.c_int)]


def found_library(settings):
    if settings["nccl"]:
        return settings["nccl"]
    beside = glob.glob(os.path.join(sysconfig.get_path("purelib"), "nvidia", "nccl", "lib", "libnccl.so.2"))
    return os.environ.get("MONARCH_NCCL_LIBRARY") or (beside or ["libnccl.so.2"])[0]


class Nccl:
    def __init__(self, settings):
        self.driver = Driver(path=settings["driver"])
        try:
            self.library = ctypes.CDLL(found_library(settings))
        except OSError as error:
            print("FOUND " + json.dumps({"without": str(error)}), flush=True)
            sys.exit(0)
        self.library.ncclGetErrorString.restype = ctypes.c_char_p
        self.library.ncclGetLastError.restype = ctypes.c_char_p
        if hasattr(self.library, "fakeNcclSetContext"):
            self.library.fakeNcclSetContext(0)  # as a real one sees by itself
        version = ctypes.c_int()
        self.check(self.library.ncclGetVersion(ctypes.byref(version)))
        self.version = version.value

    def check(self, code):
        if code not in (SUCCESS, IN_PROGRESS):
            raise RuntimeError(self.library.ncclGetErrorString(code).decode())

    def make_id(self):
        made = Id()
        began = time.perf_counter()
        self.check(self.library.ncclGetUniqueId(ctypes.byref(made)))
        return made, time.perf_counter() - began

    def begin(self, size, rank, of):
        """A communicator that nobody has waited for."""
        comm = ctypes.c_void_p()
        config = Config(ctypes.sizeof(Config), 0xcafebeef, 21400, 0)
        self.check(self.library.ncclCommInitRankConfig(ctypes.byref(comm), size, of, rank, ctypes.byref(config)))
        return comm

    def state(self, comm):
        code = ctypes.c_int()
        self.check(self.library.ncclCommGetAsyncError(comm, ctypes.byref(code)))
        return code.value

    def wait(self, comms, limit_s):
        """The state of the first one that is under way no more, else that it is."""
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            states = [self.state(comm) for comm in comms]
            over = [state for state in states if state not in (SUCCESS, IN_PROGRESS)]
            if over:
                return over[0]
            if all(state == SUCCESS for state in states):
                return SUCCESS
            time.sleep(0.001)
        return IN_PROGRESS

    def abort(self, comm):
        """How long it takes."""
        began = time.perf_counter()
        self.library.ncclCommAbort(comm)
        return time.perf_counter() - began


def alone(nccl):
    """A group of one, and what it reduces."""
    made, took = nccl.make_id()
    began = time.perf_counter()
    comm = nccl.begin(1, 0, made)
    state = nccl.wait([comm], 60)
    begun = time.perf_counter() - began
    if state != SUCCESS:
        return {"state": state, "id": took, "init": begun}
    driver, size = nccl.driver, 4 * COUNT
    source, target, stream = driver.allocate(size), driver.allocate(size), ctypes.c_void_p(driver.make_stream())
    with Mapping(size) as host:
        values = (ctypes.c_float * COUNT).from_address(host.at)
        for i in range(0, COUNT, 1024):
            values[i] = i
        driver.to_device(source, host.at, size, stream)
        host_before = bytes((ctypes.c_char * size).from_address(host.at))
        driver.settle(stream)
        nccl.check(nccl.library.ncclAllReduce(ctypes.c_void_p(source), ctypes.c_void_p(target), ctypes.c_size_t(COUNT), FLOAT32, SUM, comm, stream))
        state = nccl.wait([comm], 20)
        driver.settle(stream)
        host.fill(1)
        driver.to_host(host.at, target, size, stream)
        driver.settle(stream)
        same = bytes((ctypes.c_char * size).from_address(host.at)) == host_before
    return {"state": state, "id": took, "init": begun, "reduced": same, "abort": nccl.abort(comm)}


def twice(nccl):
    """Two members on one GPU, which NCCL refuses."""
    made, _ = nccl.make_id()
    comms = [nccl.begin(2, rank, made) for rank in range(2)]
    state = nccl.wait(comms, 30)
    words = [(nccl.library.ncclGetLastError(comm) or b"").decode(errors="replace") for comm in comms]
    return {"state": state, "words": max(words, key=len), "abort": sum(nccl.abort(comm) for comm in comms)}


def waits(nccl):
    """A member whose peer never comes."""
    made, _ = nccl.make_id()
    comm = nccl.begin(2, 0, made)
    state = nccl.wait([comm], 2)
    return {"state": state, "abort": nccl.abort(comm)}


def main():
    role, settings = sys.argv[1], json.loads(sys.argv[2])
    nccl = Nccl(settings)
    print("FOUND " + json.dumps({"version": nccl.version, **{"alone": alone, "twice": twice, "waits": waits}[role](nccl)}), flush=True)
    os._exit(0)  # what is left of NCCL's threads is of no use


if __name__ == "__main__":
    main()
