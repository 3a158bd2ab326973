"""Runs tests side by side, as many as the processors bear by what the tests say of themselves. Standard library only.

A test says in its environment (meson.build) what it weighs:
    MONARCH_TEST_SHARE=0.3         all of it takes this share of a processor; without a word a whole one
    MONARCH_TEST_CASE_SHARE=0.15   each of its cases does, and asks for its turn before it starts (tests/process/side_by_side.py)
One that must be alone among its like is `is_parallel: false`.

What takes a processor or more computes, and goes on beside what waits, at a lower priority: that keeps the machine busy, and is not felt by
what must answer in time. Each of the two kinds has all of the processors to share out, or what others leave of them.

A test that has used MODEST_PATIENCE times its limit in seconds of processors, it and all that it started, gets TERM, and half a minute later
KILL; so does one, or a case that took its turn, which has gone on for HANGS times its limit by the clock (as modest, MODEST_PATIENCE times that). Both are longer on a machine that is
slower, or has less to give, than the one that the limits are meant for (scripts/machine.py). The tests are told how much, too.
"""

import functools
import json
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import time

import machine

GRACE_S = 30.0
LOOK_S = 5.0        # between two looks at what programs have used
HANGS = 2           # a limit by the clock is so many times that of processors
PROGRESS_S = 60.0
# Programs that have started and not yet asked for a turn: Python's start is work, and asking is quick.
STARTING = 2
MODEST, MODEST_PATIENCE = 19, 4  # nice(2) of what computes, and how much longer it may take for that
CROWDED, LESS_MODEST = 1.5, 1    # where others want the machine, too, what is as modest as that would get nothing
# Debian's programs, not those that a version manager has put before them.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Ended:
    """A test that has run: its output, its exit status as a shell shows it, whether its time was up, what it and its cases took."""

    def __init__(self):
        self.output, self.status, self.late = "", None, False
        self.seconds = self.processor_seconds = 0.0
        self.cases = []  # (label, seconds, seconds of the processor) of those that took turns


def _hear_signals():
    """Who runs the tests in the background ignores these; what is tested is to hear them."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def _be_modest():
    """WARNING: where the kernel groups processes by session (sched(7), autogroup), nice(2) counts within the session alone."""
    _hear_signals()
    modest = MODEST if machine_factor() < CROWDED else LESS_MODEST
    os.nice(modest)
    try:
        with open("/proc/self/autogroup", "w", encoding="ascii") as group:
            group.write(str(modest))
    except OSError:
        pass  # a kernel that does not


class Program:
    """A test as `meson introspect --tests` describes it, or a build described alike; `environment` is added to its own, `arguments` to
    its command. `done(ended)` is called at its end, and may add others to the pool. A share that is less than a processor is `weight` times
    what the words say."""

    def __init__(self, test, done, environment=None, arguments=(), limit=None, weight=1):
        self.name, self.done = test["name"], done
        words = {**test["env"], **(environment or {})}
        self.takes_turns = "MONARCH_TEST_CASE_SHARE" in words
        share = float(words.get("MONARCH_TEST_CASE_SHARE" if self.takes_turns else "MONARCH_TEST_SHARE", 1))
        self.computes = share >= 1
        self._weight = 1 if self.computes else weight
        self.share = min(share * self._weight, processors()) if test["is_parallel"] else processors()
        limit = (test["timeout"] if limit is None else limit) * machine_factor()
        self._processor_limit = limit * MODEST_PATIENCE  # several processors' at a time
        limit *= HANGS * (MODEST_PATIENCE if self.computes else 1)
        self.ended = Ended()
        self.wants = None  # the case that waits for its turn
        self.next_share = self.share  # of a processor, that a case or all of it takes
        self._shares = {}  # of the cases under way
        self.asked = not self.takes_turns  # has shown that it has started
        self._command, self._limit = [*test["cmd"], *arguments], limit
        told = {"PATH": PATH, "MONARCH_TEST_PATIENCE": f"{machine_factor():.2f}"}
        self._environment, self._workdir = {**os.environ, **told, **words}, test.get("workdir")
        self._termed = False

    def start(self):
        self._file, self._began = tempfile.TemporaryFile(), time.monotonic()
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            kept = []
            if self.takes_turns:
                kept = [theirs.fileno()]
                self._environment.update(MONARCH_TEST_TURNS=str(theirs.fileno()), MONARCH_TEST_LIMIT_S=str(self._limit))
            self.deadline = self._began + self._limit
            self._child = subprocess.Popen(self._command, env=self._environment, cwd=self._workdir, stdin=subprocess.DEVNULL,
                                           stdout=self._file, stderr=subprocess.STDOUT, start_new_session=True, pass_fds=kept,
                                           preexec_fn=_be_modest if self.computes else _hear_signals)
        self.descriptor = os.pidfd_open(self._child.pid)

    def heard(self):
        """What the program says of its turns. False at the end of the channel."""
        try:
            data = self.channel.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            return False
        message = json.loads(data)
        self.asked = True
        if "want" in message:
            self.wants = message["want"]
            self.next_share = min(message["share"] * self._weight, processors()) if message["share"] else self.share
        else:
            del self._shares[message["done"]]
            self.ended.cases.append((message["done"], message["seconds"], message["processor_seconds"]))
        self._count_time()
        return True

    def _count_time(self):
        """Its cases have their time each, and none passes while one waits for its turn."""
        if not self._termed:
            self.deadline = float("inf") if self.wants or self._shares else time.monotonic() + self._limit

    def has_hung_up(self):
        """It asks for nothing any more: what is left is its end."""
        self.wants = None
        if not self._termed:
            self.deadline = time.monotonic() + self._limit

    def give_turn(self):
        self._shares[self.wants] = self.next_share
        self.wants, self.next_share = None, self.share
        self._count_time()
        try:
            self.channel.send(b"{}")
        except OSError:
            pass  # it has ended, which is seen by its descriptor

    def weight(self):
        return sum(self._shares.values()) if self.takes_turns else self.share

    @property
    def under_way(self):
        """How many of its cases are; a program that takes no turns is one."""
        return len(self._shares) if self.takes_turns else 1

    @property
    def pid(self):
        return self._child.pid

    def has_used(self, seconds):
        """Of processors, it and what it started: more than its limit is too much."""
        if seconds >= self._processor_limit and not self._termed and not self.takes_turns:
            self.press()

    def press(self):
        """Its time is up: TERM to all of its session, then KILL."""
        self.ended.late = True
        try:
            os.killpg(self._child.pid, signal.SIGKILL if self._termed else signal.SIGTERM)
        except ProcessLookupError:
            pass  # it has ended since
        self._termed = True
        self.deadline = time.monotonic() + GRACE_S

    def reap(self):
        _, status, usage = os.wait4(self._child.pid, 0)
        self._child.returncode = os.waitstatus_to_exitcode(status)
        code = self._child.returncode
        self.ended.status = code if code >= 0 else 128 - code
        self.ended.seconds = time.monotonic() - self._began
        self.ended.processor_seconds = usage.ru_utime + usage.ru_stime
        self.channel.close()
        os.close(self.descriptor)
        with self._file:
            self._file.seek(0)
            self.ended.output = self._file.read().decode(errors="replace")


class Pool:
    """Programs, in the order in which they were added. `progress(waiting, running)` is called every minute."""

    def __init__(self, progress):
        self._waiting, self._running, self._progress = [], [], progress
        self._selector, self._told = selectors.DefaultSelector(), time.monotonic()
        self._looked = self._told

    def add(self, program):
        self._waiting.append(program)

    def run(self):
        try:
            while self._waiting or self._running:
                self._fill()
                self._look()
        finally:
            for program in self._running:
                program.press()
            limit = time.monotonic() + GRACE_S
            while self._running:
                self._look(limit)

    def _fits(self, program):
        """Beside those of its kind."""
        weight = sum(other.weight() for other in self._running if other.computes == program.computes)
        return weight + program.next_share <= to_share_out() + 1e-6 or weight == 0

    def _fill(self):
        """Who asks comes before who has not begun."""
        asking = [program for program in self._running if program.wants]
        for program in asking:
            if self._fits(program):
                program.give_turn()
        for computes in (False, True):
            while not any(program.wants and program.computes == computes for program in self._running):
                program = next((program for program in self._waiting if program.computes == computes), None)
                if program is None or not self._fits(program) or sum(not other.asked for other in self._running) >= STARTING:
                    break
                self._start(program)

    def _start(self, program):
        self._waiting.remove(program)
        program.start()
        self._running.append(program)
        self._selector.register(program.descriptor, selectors.EVENT_READ, program)
        if program.takes_turns:
            self._selector.register(program.channel, selectors.EVENT_READ, program)

    def _look(self, limit=float("inf")):
        until = min([limit, self._told + PROGRESS_S, self._looked + LOOK_S, *(program.deadline for program in self._running)])
        for key, _ in self._selector.select(max(0.0, until - time.monotonic())):
            program = key.data
            if program not in self._running:
                continue  # its end was among these, too, and came first
            if key.fileobj is program.channel:
                if not program.heard():
                    self._selector.unregister(program.channel)
                    program.has_hung_up()
            else:
                self._reap(program)
        now = time.monotonic()
        for program in self._running:
            if now >= program.deadline or now >= limit:
                program.press()
        if now >= self._looked + LOOK_S:
            self._looked = now
            used = machine.tree_seconds([program.pid for program in self._running])
            for program in self._running:
                program.has_used(used[program.pid])
        if now >= self._told + PROGRESS_S:
            self._told = now
            self._progress(self._waiting, self._running)

    def _reap(self, program):
        self._selector.unregister(program.descriptor)
        if program.takes_turns and program.channel in self._selector.get_map():
            while program.heard():
                pass
            self._selector.unregister(program.channel)
        self._running.remove(program)
        program.reap()
        program.done(program.ended)


def processors():
    return machine.processors()


def to_share_out():
    """So many processors: where others want them, too, what those leave of them."""
    factor = machine_factor()
    return processors() / factor if factor >= CROWDED else processors()


@functools.cache
def machine_factor():
    """Measured once, where the runner is alone."""
    return machine.factor()
