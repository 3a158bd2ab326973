"""What ranks do in the tests of groups (groups_test.py): usage: group_ranks.py WHAT [ARGUMENT...]

A ring stands for a collective where PyTorch is not needed: each member sends to the next, and hangs for ever where a
member is gone, as a collective of GPUs does; what ends it is group.on_lost()."""

import json
import os
import signal
import socket
import sys
import threading
import time

import monarch_tensors as tensors
import monarch_tensors_groups as groups

MESH = os.environ["MONARCH_MESH"]
RANK = int(os.environ["MONARCH_RANK"])
GENERATION = int(os.environ["MONARCH_GENERATION"])
ME = "%s/%d" % (MESH, RANK)
ALL = {"trainer": [0], "generator": "all"}


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def meet(timeout=30, members=None, name="sync"):
    return tensors.group(name, ALL if members is None else members, timeout=timeout)


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def touch(folder, name, words=""):
    path = os.path.join(folder, name)
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(words)
    os.rename(path + ".tmp", path)


class Hang:
    """A call that comes to its end by abort() alone."""

    def __init__(self, group):
        self.ended = threading.Event()
        group.on_lost(self.abort)

    def abort(self):
        self.at = now()
        self.ended.set()

    def __call__(self):
        self.ended.wait(60)


def through(folder, victim, how):
    """All meet, `victim` ends itself in the middle of a call, the others are told; all meet again, and end in order."""
    group = meet()
    call = Hang(group)
    assert group.members[group.rank] == groups.Member(MESH, RANK, GENERATION), group.members
    say("met", ME, group.rank, group.size, "%d.%d" % group.epoch, ",".join(str(one.generation) for one in group.members), group.lost)
    if ME == victim and GENERATION == 1:
        while len([name for name in os.listdir(folder) if name.startswith("in.")]) < group.size - 1:
            time.sleep(0.005)
        touch(folder, "struck", repr(now()))
        if how == "exit":
            sys.stdout.flush()
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    if GENERATION == 1 and group.epoch[1] == 1 and group.epoch[0] == 1:
        touch(folder, "in." + ME.replace("/", "."))
        call()
        with open(os.path.join(folder, "struck"), encoding="utf-8") as file:
            struck = float(file.read())
        say("lost", ME, "within" if call.at - struck < 1 else "%.3f" % (call.at - struck))
        touch(folder, "took." + ME.replace("/", "."), "%.6f" % (call.at - struck))
        try:
            group.check()
            say("not lost", ME)
        except tensors.PeerGone:
            pass
        deadline = now() + 2
        while "is lost" not in group.lost and now() < deadline and how != "exit":
            time.sleep(0.01)
        say("why", ME, group.lost)
        if how == "exit":
            return
        group = meet()
        say("met", ME, group.rank, group.size, "%d.%d" % group.epoch, ",".join(str(one.generation) for one in group.members), group.lost)
    wait_all(group, folder)


def wait_all(group, folder):
    """Nobody ends before all have met again."""
    touch(folder, "again." + ME.replace("/", "."))
    while len([name for name in os.listdir(folder) if name.startswith("again.")]) < group.size:
        time.sleep(0.01)


def missing(timeout):
    """One that never comes is named in between, and at the end. The first member waits for longer: it has ended, then."""
    groups.NOTICE_S = 0.3
    if ME == "generator/2":
        return
    try:
        meet(float(timeout) * (2 if MESH == "trainer" else 1))
    except tensors.Timeout as error:
        say(ME, "Timeout:", error)


def said(run):
    try:
        run()
    except (tensors.TensorError, ValueError) as error:
        return "%s: %s" % (type(error).__name__, error)
    return "nothing"


def wrong():
    """Each way to be wrong, on one rank of three generators and a trainer."""
    if ME == "generator/1":
        time.sleep(0.1)
    if MESH == "generator" and RANK < 2:
        say("disagree", ME, said(lambda: meet(20, {"generator": [0, 1, 2] if RANK else [0, 1]})))
    if ME != "trainer/0":
        return
    words = said(lambda: meet(0, None, "at once"))  # no thread but this one may have looked at it yet
    say("at once", words.endswith(("within 0s: no member has answered yet", "have not called")))
    for what, members in (("twice", {"generator": [1, 1], "trainer": [0]}), ("mesh", {"trainer": [0], "generatr": "all"}),
                          ("rank", {"trainer": [0], "generator": [3]}), ("own", {"generator": "all"}), ("none", {}),
                          ("empty", {"trainer": []}), ("list", ["trainer"]), ("word", {"trainer": "most"}), ("number", {"trainer": [-1]}),
                          ("kind", {"trainer": [0.5]})):
        say(what, "=", said(lambda: meet(5, members)))
    say("name =", said(lambda: meet(5, None, "")))
    say("long =", said(lambda: meet(5, None, "n" * 129)))
    say("timeout =", said(lambda: meet("soon")))
    with meet(5, {"trainer": [0]}, "alone") as alone:
        say("alone", alone.rank, alone.size, alone.lost, alone.members)
        calls = []
        alone.on_lost(lambda: calls.append("called"))
        with socket.socket() as held:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind((alone.address, alone.port))
            held.listen(1)
        again = meet(5, {"trainer": [0]}, "alone")
        say("again", again.epoch > alone.epoch, alone.lost, again.lost)
        while not calls:
            time.sleep(0.005)
        done = threading.Event()
        alone.on_lost(lambda: 1 / 0)  # the others are called all the same
        alone.on_lost(sys.exit)
        alone.on_lost(done.set)
        say("late", done.wait(10))
        say("call =", said(lambda: alone.on_lost(5)))
        again.close()
        again.close()
        say("closed =", said(again.check))
    before = meet(5, {"trainer": [0]}, "before")
    pid = os.fork()
    if pid == 0:
        say("fork =", said(before.check))
        with meet(5, {"trainer": [0]}, "child") as child:
            say("child", child.size)
        os._exit(0)
    os.waitpid(pid, 0)


class Ends(Exception):
    pass


def interrupted():
    """What a handler of a signal raises ends a call for a group, which then counts no more; who calls again is in it."""
    def end(number, frame):
        raise Ends()
    signal.signal(signal.SIGTERM, end)
    if ME == "trainer/0" or ME == "generator/1":
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
        begun = now()
        try:
            meet(timeout=60, name="early")
            say("met", ME)
        except Ends:
            say("ended", ME, now() - begun < 5)
        meet(name="all are here").close()
        say("none", ME, said(lambda: meet(timeout=0.5, name="early")))
    else:
        meet(name="all are here").close()
    meet(name="all are done").close()
    group = meet(name="early")
    say("epoch", ME, group.epoch[1])
    meet(name="end").close()


def stores():
    """The first member calls store() after all others do, which name it meanwhile; nobody makes two, and none is made of an
    epoch that is lost."""
    groups.NOTICE_S = 0.3
    group = meet()
    if group.rank > 0:
        say("none", ME, said(lambda: group.store(timeout=0)))
    else:
        time.sleep(1.5)
    made = []
    threads = [threading.Thread(target=lambda: made.append(group.store(timeout=None))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made[0].set(ME, "there")
    for index in range(group.size):
        made[0].get("%s/%d" % group.members[index][:2])
    say("stores", ME, len(made), len(set(map(id, made))))
    meet(name="all have read").close()
    if ME == "generator/2":
        return
    while group.lost is None:
        time.sleep(0.005)
    say("lost", ME, said(group.store))


def quickly(rounds, folder):
    """How long a group takes to meet, and how long a loss is not heard of: rank 0 of the generators ends itself again and
    again, the others say."""
    meets = []
    for turn in range(GENERATION - 1 if ME == "generator/0" else 0, int(rounds)):
        begun = now()
        group = meet()
        meets.append(now() - begun)
        call = Hang(group)
        ready = os.path.join(folder, "ready.%d." % turn)
        touch(folder, "ready.%d.%d" % (turn, group.rank))
        if ME == "generator/0" and GENERATION == turn + 1:
            while sum(os.path.exists(ready + str(rank)) for rank in range(group.size)) < group.size:
                time.sleep(0.002)
            touch(folder, "struck.%d" % turn, repr(now()))
            os.kill(os.getpid(), signal.SIGKILL)
        call()
        with open(os.path.join(folder, "struck.%d" % turn), encoding="utf-8") as file:
            say("heard", json.dumps({"who": ME, "turn": turn, "s": call.at - float(file.read()), "meet": meets[-1]}))


def meetings(rounds):
    """How long all take to meet, epoch after epoch: who calls last says how long it took from then on."""
    for turn in range(int(rounds)):
        begun = now()
        with meet():
            say("met", json.dumps({"turn": turn, "s": now() - begun}))


def cables():
    """Until the first member is one on a spare: who lives says by the clock of the wall when it heard of each loss."""
    while True:
        group = meet(60)
        call = Hang(group)
        say("met", ME, "%d.%d" % group.epoch)
        if group.epoch[0] > 1:
            return
        call()
        heard = time.time()
        time.sleep(0.3)  # what is told first need not name the cause
        say("heard", ME, "%.3f" % heard, group.lost)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
