"""Runs groups of cases of a test program side by side, each in a process of its own, when somebody who sees the whole machine says so.

The socket of $MONARCH_TEST_TURNS, of kind SEQPACKET, leads to who says so (scripts/runner.py). Messages are JSON:
    {"want": label, "share": …}                              the next group asks for its turn, one at a time; the share of a processor that
                                                             it takes, where that is more than its fellows' ($MONARCH_TEST_CASE_SHARE)
    {}                                                       the answer: it may start
    {"done": label, "seconds": …, "processor_seconds": …}    it has ended
A group has $MONARCH_TEST_LIMIT_S seconds; then it gets TERM, and half a minute later KILL. When the socket ends, so does everything.

Where it may be done, by root, a group has process numbers, a /proc and a /tmp in memory of its own: a look for leftovers reads the group's
processes alone, which makes many at once affordable, and nothing of a group outlives it. What its orphans use of the processor is counted for it, too.
"""

import json
import os
import selectors
import signal
import socket
import sys
import tempfile
import time

import linux

GRACE_S = 30.0
LOST = 70  # the process of a group failed outside of its cases


class Group:
    """`body` runs in a process of its own; what it returns is the exit code, what it writes is `output`."""

    def __init__(self, label, body, share=None):
        self.label, self.share, self._body = label, share, body
        self._file = self._pid = self.descriptor = self.deadline = self._started = self._terminated = None
        self._asked = False

    def start(self, limit, terminated):
        """`terminated` is what TERM does in it."""
        self._terminated = terminated
        self._file, self._started = tempfile.TemporaryFile(), time.monotonic()
        self.deadline = self._started + limit
        sys.stdout.flush()
        self._pid = _forked(self._run)
        self.descriptor = os.pidfd_open(self._pid)

    def _run(self):
        signal.signal(signal.SIGTERM, self._terminated)
        os.dup2(self._file.fileno(), 1)
        os.dup2(self._file.fileno(), 2)
        try:
            linux.unshare(linux.CLONE_NEWPID | linux.CLONE_NEWNS)
        except PermissionError:
            return self._body()
        linux.mount(None, "/", flags=linux.MS_REC | linux.MS_PRIVATE)
        return _follow(self._run_as_first)

    def _run_as_first(self):
        linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
        if not any(path.startswith("/tmp/") for path in (os.getcwd(), __file__, os.environ.get("MONARCH_BUILD_DIR", ""))):
            linux.mount("tmp", "/tmp", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=1777")
        code = _follow(self._body)
        # The kernel would end the rest with us, and count for nobody what it has used.
        try:
            os.kill(-1, signal.SIGKILL)
            while True:
                os.wait()
        except (ProcessLookupError, ChildProcessError):
            return code

    def press(self):
        """Its time is up, or everybody's."""
        signal.pidfd_send_signal(self.descriptor, signal.SIGKILL if self._asked else signal.SIGTERM)
        self.deadline = time.monotonic() + GRACE_S
        self._asked = True

    def reap(self):
        """Its exit code, output, seconds, and seconds of the processor with all that it started."""
        _, status, usage = os.wait4(self._pid, 0)
        os.close(self.descriptor)
        with self._file:
            self._file.seek(0)
            output = self._file.read().decode(errors="replace")
        return os.waitstatus_to_exitcode(status), output, time.monotonic() - self._started, usage.ru_utime + usage.ru_stime


def _forked(body):
    """The pid of a child that ends with body()'s answer: it never returns into what its parent was doing."""
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    code = LOST
    try:
        linux.die_with_parent(signal.SIGKILL)
        code = body() if os.getppid() in (parent, 0) else LOST
    except BaseException as error:  # pylint: disable=broad-except
        print(f"# {type(error).__name__}: {error}", flush=True)
    finally:
        sys.stdout.flush()
        os._exit(code)


def _follow(body):
    """The exit code of a child that runs body() and is told of a TERM that comes here. Reaps whoever becomes ours."""
    terminated = signal.getsignal(signal.SIGTERM)
    child = 0

    def pass_on(number, _):
        if child:
            os.kill(child, number)

    signal.signal(signal.SIGTERM, pass_on)
    child = _forked(lambda: (signal.signal(signal.SIGTERM, terminated), body())[1])
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


class Over(Exception):
    """Nobody gives turns any more, or this program is to end."""


class _Turns:
    """The groups that wait for their turn and those that have it."""

    def __init__(self, groups, channel, limit, ended, terminated):
        self._waiting, self._channel, self._limit, self._ended = list(groups), channel, limit, ended
        self._terminated = terminated
        self._running = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ)
        self._asked = False

    def run(self):
        try:
            while self._waiting or self._running:
                self._turn()
        finally:
            self._end_all()

    def _turn(self):
        if self._waiting and not self._asked:
            self._say({"want": self._waiting[0].label, "share": self._waiting[0].share})
            self._asked = True
        for key, _ in self._selector.select(self._until_deadline()):
            if key.fileobj is self._channel:
                self._start()
            else:
                self._reap(key.fd)
        for group in self._running.values():
            if time.monotonic() >= group.deadline:
                group.press()

    def _until_deadline(self):
        return max(0.0, min((group.deadline for group in self._running.values()), default=60.0) - time.monotonic()) if self._running else None

    def _say(self, message):
        try:
            self._channel.send(json.dumps(message).encode())
        except OSError as error:
            raise Over("nobody gives turns any more") from error

    def _start(self):
        if not self._channel.recv(1 << 16):
            raise Over("nobody gives turns any more")
        self._asked = False
        group = self._waiting.pop(0)
        group.start(self._limit, self._terminated)
        self._running[group.descriptor] = group
        self._selector.register(group.descriptor, selectors.EVENT_READ)

    def _reap(self, descriptor):
        self._selector.unregister(descriptor)
        group = self._running.pop(descriptor)
        code, output, seconds, processor_seconds = group.reap()
        self._ended(group.label, code, output)
        self._say({"done": group.label, "seconds": seconds, "processor_seconds": processor_seconds})

    def _end_all(self):
        for group in self._running.values():
            group.press()
        while self._running:
            group = self._running.pop(next(iter(self._running)))
            if not _ends(group):
                group.press()
            code, output, _, _ = group.reap()
            self._ended(group.label, code, output)


def _ends(group):
    with selectors.DefaultSelector() as selector:
        selector.register(group.descriptor, selectors.EVENT_READ)
        return bool(selector.select(max(0.0, group.deadline - time.monotonic())))


def turns():
    """The channel to who gives turns, and the seconds that each group has; None where nobody does. What is started does not see it."""
    descriptor = os.environ.pop("MONARCH_TEST_TURNS", None)
    limit = os.environ.pop("MONARCH_TEST_LIMIT_S", None)
    if descriptor is None:
        return None
    os.set_inheritable(int(descriptor), False)
    return socket.socket(fileno=int(descriptor)), float(limit)


def run(groups, channel, limit, ended):
    """All of them; calls ended(label, exit code, output) for each. Raises Over, after it has ended those under way."""

    def terminated(_number, _frame):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Over("out of time")

    before = signal.signal(signal.SIGTERM, terminated)
    try:
        _Turns(groups, channel, limit, ended, before).run()
    finally:
        signal.signal(signal.SIGTERM, before)
