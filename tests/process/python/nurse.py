"""One of four dies of SIGKILL inside of a call. The others answer, the hook hears of it, and a new process takes the place."""

import os
import signal
import threading
import time

import monarch.actor
from monarch._rust_bindings.monarch_hyperactor.supervision import SupervisionError
from monarch.actor import Actor, current_rank, endpoint, this_host

told = threading.Event()
failures = []


def hook(failure):
    failures.append(failure)
    told.set()


class Patient(Actor):
    def __init__(self, ward):
        self.ward, self.bed = ward, current_rank()["bed"]

    @endpoint
    def pid(self):
        return os.getpid()

    @endpoint
    def rest(self, seconds):
        time.sleep(seconds)
        return "rested in %s" % self.ward

    @endpoint
    def where(self):
        return "%s %d" % (self.ward, self.bed)


if __name__ == "__main__":
    monarch.actor.unhandled_fault_hook = hook
    procs = this_host().spawn_procs(per_host={"bed": 4})
    patients = procs.spawn("patients", Patient, "east")
    pids = list(patients.pid.call().get().values())
    print(len(set(pids)), os.getpid() in pids)
    third = patients.slice(bed=2)
    rest = third.rest.call_one(3600)
    well = patients.slice(bed=0).rest.call_one(0.01)
    os.kill(pids[2], signal.SIGKILL)
    try:
        rest.get()
    except SupervisionError as e:
        print("SupervisionError", isinstance(e, RuntimeError))
    print(well.get())
    print(told.wait(30), len(failures) > 0, bool(failures[0].report()))
    print([patients.slice(bed=bed).where.call_one().get() for bed in (0, 1, 3)])
    print(sorted(patients.slice(bed=slice(0, 2)).where.call().get().values()))
    try:
        patients.where.call().get()
    except SupervisionError as e:
        print("SupervisionError")
    place = this_host().spawn_procs(per_host={"bed": 1})
    new = place.spawn("patient", Patient, "west")
    print(new.where.call_one().get(), new.pid.call_one().get() in pids)
    print(new.rest.call_one(0).get())
