"""The first process of a world, and its switch: boots hosts, passes their frames on, ends everything when it is told or left.

    python3 world_init.py CONTROL FOLDER SEED CGROUP

CONTROL is the descriptor of a SEQPACKET socket to world.py: requests and answers are JSON objects, one a message; an answer
to `boot` carries a pidfd of the host's init. When the other side closes it, or dies, the world ends. The process that is
started is a guard, which forks the world's init into namespaces of its own and removes the cgroup CGROUP afterwards; when
the guard dies, the kernel kills the world's init, and with it every process in the world.
"""

import heapq
import json
import os
import queue
import select
import selectors
import signal
import socket
import sys
import threading
import time
import traceback

import host_init
import linux
import switch

_NAMESPACES = linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWNET | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC
_FRAME = 65536
_BATCH = 64  # frames of one port in a row


class Port:
    """A host as the switch and its boot know it."""

    def __init__(self, name):
        self.name = name
        self.tap = None      # descriptor, while it is up
        self.pid = None      # of its init, in the world's pid namespace
        self.pending = None  # request that its boot or its end will answer


class Aside:
    """Does one after the other, in a thread of its own, what waits for the kernel's one lock of all interfaces: other worlds that
    begin and end hold it for seconds on a busy machine, and frames are passed on meanwhile. What follows is called in the loop."""

    def __init__(self, selector):
        self._asked, self._done = queue.SimpleQueue(), queue.SimpleQueue()
        self._wake, self._wake_end = socket.socketpair()
        selector.register(self._wake, selectors.EVENT_READ, self._finish)
        threading.Thread(target=self._work, daemon=True).start()

    def do(self, work, then=lambda error: None):
        self._asked.put((work, then))

    def _work(self):
        while True:
            work, then = self._asked.get()
            error = None
            try:
                work()
            except OSError as raised:
                error = raised
            self._done.put((then, error))
            self._wake_end.send(b".")

    def _finish(self):
        for _ in self._wake.recv(4096):
            then, error = self._done.get()
            then(error)


class WorldInit:
    def __init__(self, control, folder, seed):
        self._control, self._folder = control, folder
        self._switch = switch.Switch(seed)
        self._ports = {}
        self._under_way, self._number = [], 0
        self._selector = selectors.DefaultSelector()
        self._aside = Aside(self._selector)
        self._selector.register(control, selectors.EVENT_READ, self._requested)
        wake, self._wake_end = socket.socketpair()
        for end in (wake, self._wake_end):
            end.setblocking(False)
        signal.set_wakeup_fd(self._wake_end.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(wake, selectors.EVENT_READ, lambda: self._reap(wake))
        self._over = False

    def run(self):
        while not self._over:
            for key, _ in self._selector.select(self._wait()):
                key.data()
            self._deliver()

    # Requests.

    def _requested(self):
        try:
            data = self._control.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        if not data:
            self._over = True
            return
        request = json.loads(data)
        try:
            getattr(self, "do_" + request["do"])(request)
        except (OSError, KeyError, ValueError, TypeError) as error:
            self._fail(request, error)

    def _fail(self, request, error):
        self._answer(request, error=f"{type(error).__name__}: {error}")

    def _answer(self, request, descriptors=(), **fields):
        message = json.dumps({"id": request["id"], **fields}).encode()
        try:
            socket.send_fds(self._control, [message], list(descriptors))
        except (BrokenPipeError, ConnectionResetError):
            self._over = True

    def do_boot(self, request):
        host = request["host"]
        port = self._ports.setdefault(host["name"], Port(host["name"]))
        if port.pid or port.pending:
            raise ValueError(f"{port.name} is on already")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        port.pending = request
        place = os.path.join(self._folder, host["name"])
        os.makedirs(place, exist_ok=True)
        host_init.start(host, place, theirs)
        theirs.close()
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._booted(port, ours))

    def _booted(self, port, channel):
        data, descriptors, _, _ = socket.recv_fds(channel, 8192, 1)
        word, _, rest = data.partition(b" ")
        if word == b"pid":
            port.pid = int(rest)
            return
        self._selector.unregister(channel)
        channel.close()
        request, port.pending = port.pending, None
        if word != b"ready":
            self._answer(request, error=rest.decode() or f"{port.name} ended while it booted")
            return
        port.tap = descriptors[0]
        os.set_blocking(port.tap, False)
        self._switch.plug(port.name)
        self._selector.register(port.tap, selectors.EVENT_READ, lambda: self._read(port))
        pidfd = os.pidfd_open(port.pid)
        self._answer(request, [pidfd])
        os.close(pidfd)

    def do_power_off(self, request):
        port = self._ports[request["name"]]
        if port.tap is None:
            raise ValueError(f"{port.name} is off already")
        self._selector.unregister(port.tap)
        port.pending = request
        # The cable first: nobody hears of the end of anything in it.
        self._cable(port, False, lambda error: port.pid and os.kill(port.pid, signal.SIGKILL))

    def do_cable(self, request):
        port = self._ports[request["name"]]
        if port.tap is None:
            raise ValueError(f"{port.name} is off")
        self._cable(port, request["in"], lambda error: self._fail(request, error) if error else self._answer(request))

    def _cable(self, port, plugged, then):
        self._switch.plug(port.name) if plugged else self._switch.unplug(port.name)
        tap = port.tap
        self._aside.do(lambda: linux.set_carrier(tap, plugged), then)

    def do_rules(self, request):
        for source, target in request["ways"]:
            self._switch.set_rule(source, target, **request["fields"])
        self._answer(request)

    def do_counters(self, request):
        self._answer(request, counters=self._switch.counters)

    # Children: hosts' inits, and orphans of the world.

    def _reap(self, wake):
        wake.recv(4096)
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            for port in self._ports.values():
                if port.pid == pid:
                    self._ended(port)

    def _ended(self, port):
        """The kernel reports the end of a pid namespace's init when nothing is left in it."""
        port.pid = None
        if port.tap is None:
            return  # it never came up; _booted answers
        self._switch.unplug(port.name)
        if port.pending is None:
            self._selector.unregister(port.tap)  # it was killed by somebody else
        # The descriptor keeps the interface, and so must not outlive the host.
        tap, port.tap = port.tap, None
        request, port.pending = port.pending, None
        self._aside.do(lambda: os.close(tap), lambda error: request and self._answer(request))

    # Frames.

    def _wait(self):
        return max(0.0, self._under_way[0][0] - time.monotonic()) if self._under_way else None

    def _read(self, port):
        for _ in range(_BATCH):
            try:
                data = os.read(port.tap, _FRAME)
            except OSError:
                return  # none left; or the interface is gone, and _ended will be called
            for delay, source, target, frame in self._switch.frame(port.name, data, time.monotonic()):
                if delay == 0.0:
                    self._write(target, frame)
                elif len(self._under_way) < switch.QUEUE_LIMIT:
                    self._number += 1
                    heapq.heappush(self._under_way, (time.monotonic() + delay, self._number, source, target, frame))

    def _deliver(self):
        now = time.monotonic()
        while self._under_way and self._under_way[0][0] <= now:
            _, _, source, target, frame = heapq.heappop(self._under_way)
            if self._switch.deliverable(source, target):
                self._write(target, frame)

    def _write(self, target, frame):
        tap = self._ports[target].tap
        try:
            if tap is not None:
                os.write(tap, frame)
        except OSError:
            pass  # the host took its interface down; a cable would not know


def _world(control, folder, seed, guard):
    linux.die_with_parent(signal.SIGKILL)
    if select.select([guard], [], [], 0)[0]:
        return  # the guard died before this was asked for: its end of the pipe is closed
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    linux.mount("world", folder, "tmpfs", data="mode=700")
    os.mkdir(os.path.join(folder, "none"))
    try:
        # A switch that waits for a processor would delay every host's frames. Children go back to ordinary.
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except OSError:
        pass  # not allowed here: figures are as good as the machine is idle
    WorldInit(control, folder, seed).run()


def remove_cgroups(place):
    """The group and all below it, innermost first. Whoever entered a host from outside may take a moment to end."""
    deadline = time.monotonic() + 5
    while os.path.isdir(place) and time.monotonic() < deadline:
        for path, _, _ in os.walk(place, topdown=False):
            try:
                os.rmdir(path)
            except OSError:
                time.sleep(0.005)


def main():
    control = socket.socket(fileno=int(sys.argv[1]))
    folder, seed, cgroup = sys.argv[2], int(sys.argv[3]), sys.argv[4]
    os.setsid()  # a Ctrl-C at the tests' terminal is theirs
    linux.unshare(_NAMESPACES)
    linux.mount(None, "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    guard, held = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(held)
            _world(control, folder, seed, guard)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    control.close()
    _, status = os.waitpid(pid, 0)
    if cgroup:
        remove_cgroups(cgroup)
    try:
        linux.umount(folder)
        os.rmdir(folder)
    except OSError:
        pass  # it was not mounted yet; world.py removes it, or was faster
    sys.exit(os.waitstatus_to_exitcode(status) and 1)


if __name__ == "__main__":
    main()
