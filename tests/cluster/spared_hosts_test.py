"""What befalls hosts and networks, and is over before anybody need be given up, or harms nobody: no host is doubted that was not silent, no
rank is started again, and what is said to the job meanwhile is done once."""


import os
import signal
import subprocess
import sys
import tempfile

import cluster
import harness
import host_faults
import memory_groups
import recovery
import tap
import world

CALM = "/tmp/calm"  # ends who keeps a host busy
HOG = f"until [ -e {CALM} ]; do :; done"
HOGS = 64           # for two cores
OVERLOADED_S = 10.0
READERS, LIMIT = 4, 64 << 20
# Reads what does not fit into the memory that it may have, until it is told to end. All of it is a hole, so that no disk has a say in how
# short memory is; but on a disk, for of a file in memory nothing can be given up.
READER = """import mmap, os, sys
size = 96 << 20
with open(sys.argv[1], "wb") as file:
    file.truncate(size)
with open(sys.argv[1], "rb") as file:
    os.unlink(sys.argv[1])
    pages = mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)
while not os.path.exists(sys.argv[2]):
    for at in range(0, size, 4096): pages[at]
"""


class SparedHosts(host_faults.HostFaultTest):
    def untouched(self, run, *unseen):
        """As if nothing had been; or nothing of these kinds."""
        self.assert_go_on(range(4))
        self.assert_nothing_done()
        self.assert_unseen(*unseen)
        self.end_well(run)
        self.assert_single_effect(range(4))
        self.assert_nothing_left()

    def test_a_freeze_that_is_shorter_than_suspicion(self):  # H03
        if not world.cgroup_parent():
            self.skipTest("no cgroup2 to write to")
        run = self.running(fast=False)
        self.w["h2"].freeze()
        before = self.step_of(2)
        recovery.after(2)
        self.assertLessEqual(self.step_of(2) - before, 1, "it was not frozen")
        self.w["h2"].thaw()
        self.untouched(run)

    def test_a_cut_that_is_shorter_than_suspicion(self):  # N04
        run = self.running(fast=False)
        self.w.cut("h2", "login")
        self.w.cut("login", "h2")
        recovery.after(2)
        self.assertGreater(self.counted("cut"), 0)
        self.w.heal()
        self.untouched(run)

    def test_a_daemon_that_is_killed_or_stands_still(self):  # H05, H06
        run = self.running(fast=False)
        for number in (signal.SIGKILL, signal.SIGSTOP):
            daemon, = self.processes_of("daemon", "h2")
            self.kill(daemon, number)
            harness.wait_for(lambda: [p for p in self.processes_of("daemon", "h2") if p.pid != daemon.pid],
                             lambda: f"another daemon: {self.supervisor_log()}")
        self.untouched(run, "host.lost", "hosts.held")  # its keeper waits for it for two seconds

    def busy(self, run, start, shortage):
        """Until it is told that a host is short of something, and ten seconds more; nobody is hurt."""
        started = start()
        try:
            since = self.now()
            told = harness.wait_for(lambda: [e for e in self.events("host.pressure") if shortage in e["message"]], self.supervisor_log, 90)
            self.assert_seen(told[0], since, 60)
            recovery.after(OVERLOADED_S)
            self.assertEqual([one.poll() for one in started], [None] * len(started))
            self.assert_go_on(range(4))
        finally:
            self.write("calm", "")
            for host in self.w.hosts:
                host.write(CALM, "")
            for one in started:
                one.wait(60)
        for host in self.w.hosts:
            host.run("rm", CALM)
        self.untouched(run)

    @tap.takes(tap.ALL)
    def test_more_processes_than_cores(self):  # H07
        self.wait_for_calm()
        run = self.running(fast=False)
        self.busy(run, lambda: [self.w[f"h{number % 3 + 1}"].start("/bin/sh", "-c", HOG) for number in range(HOGS)],
                  "short of processors (")

    @tap.takes(tap.ALL)
    def test_less_memory_than_is_read(self):  # H08
        group = memory_groups.make(self, LIMIT)
        self.wait_for_calm()
        run = self.running(fast=False)

        def into_group():
            with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write("0")  # the writer itself

        folder = tempfile.TemporaryDirectory(dir=harness.BUILD)
        self.addCleanup(folder.cleanup)

        # Whose they are makes no difference: the kernel counts for the whole machine.
        def start():
            return [subprocess.Popen([sys.executable, "-c", READER, f"{folder.name}/{number}", self.path("work", "calm")],
                                     preexec_fn=into_group) for number in range(READERS)]
        self.busy(run, start, "short of memory (")

    def test_a_network_that_loses_delays_and_doubles(self):  # N08
        run = self.running(fast=False)
        for host in self.w.hosts:
            self.w.both("login", host.name, loss=0.05, delay=0.2, jitter=0.1, duplicate=0.01)
        recovery.after(15)
        for what in ("lost", "duplicated"):
            self.assertGreater(self.counted(what), 0, what)
        # A command is carried out once.
        done = self.monarch("restart", "--mesh", "m", "--rank", "2", timeout=60)
        self.assertEqual(done.status, 0, done)
        self.wait_for_move([2, 3], "h2")
        self.assertEqual({self.generation_of(r) for r in (2, 3)}, {2})
        self.assertEqual([e["message"] for e in self.events("host.lost")], [])
        self.w.heal()
        self.assert_go_on([0, 1])
        self.assert_nothing_done("host.lost", "host.replaced", "gang.failed")
        self.assert_unseen("host.lost", "hosts.held")
        self.end_well(run)
        self.assert_single_effect(range(4))
        self.assert_nothing_left()

    def test_doubled_frames_and_connections_that_are_reset(self):  # N11, N16
        run = self.running(fast=False)
        for host in self.w.hosts:
            self.w.both("login", host.name, duplicate=0.5)
        for _ in range(3):
            before = self.counted("reset")
            # Said again, it means those that have come since, too: after the reset before this one there may be none yet.
            harness.wait_for(lambda: self.w.both("login", "h2", reset=True) or self.counted("reset") > before,
                             "a connection that is reset")
            self.w.both("login", "h2", reset=False)
            self.assert_go_on(range(4))
        self.assertGreater(self.counted("duplicated"), 0)
        self.untouched(run)

    def test_new_connections_that_are_dropped(self):  # N12
        run = self.running(pool=4, spares=0, fast=True)
        for host in self.w.hosts:
            self.w.both("login", host.name, syn="drop")
        self.assert_connects("h1", False)
        recovery.after(4)
        self.assertGreater(self.counted("syn_dropped"), 0)
        self.untouched(run)


if __name__ == "__main__":
    cluster.main()
