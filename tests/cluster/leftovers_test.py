"""A world's end: whatever kills whichever part of it, nothing of it is left on the machine."""

import json
import os
import signal
import subprocess
import sys

import bed
import world
from host import DEADLINE_S, read, wait_for

# A driver of its own, to be killed: it says what its world consists of, and waits.
DRIVER = """
import json, sys
sys.path[:0] = {path!r}
import world
w = world.World(hosts=2)
print(json.dumps([w.guard_pid, w["h1"].pid, w.cgroup or "", w.folder]), flush=True)
sys.stdin.read()
w.close()
"""


def _namespaces(pid):
    return {kind: os.readlink(f"/proc/{pid}/ns/{kind}") for kind in ("pid", "net", "mnt")}


class Leftovers(bed.BedTest):
    def setUp(self):
        code = DRIVER.format(path=sys.path)
        self.driver = subprocess.Popen([sys.executable, "-B", "-c", code], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        self.addCleanup(self._end)
        self.links = sorted(os.listdir("/sys/class/net"))
        self.guard, self.host, self.cgroup, self.folder = json.loads(self.driver.stdout.readline())
        self.spaces = [_namespaces(self.guard), _namespaces(self.host)]
        self.init = next(pid for pid in _pids() if _parent(pid) == self.guard)
        self.assertGreater(len(self._left()), 4, "what is looked for is there while the world is")

    def _end(self):
        self.driver.kill()
        self.driver.wait()
        self.driver.stdin.close()
        self.driver.stdout.close()

    def _left(self):
        """What of the world there is now, in words."""
        own = _namespaces("self")
        strange = {name for spaces in self.spaces for kind, name in spaces.items() if name != own[kind]}
        found = []
        for pid in _pids():
            for kind in ("pid", "net", "mnt"):
                try:
                    name = os.readlink(f"/proc/{pid}/ns/{kind}")
                    if name in strange:
                        found.append(f"process {pid} in {name}: {read(f'/proc/{pid}/cmdline')!r}")
                except OSError:
                    pass  # gone meanwhile, or none of ours
        found += [f"folder {path}" for path in (self.folder, self.cgroup) if path and os.path.exists(path)]
        found += [line for line in read("/proc/self/mountinfo").splitlines() if self.folder in line]
        if sorted(os.listdir("/sys/class/net")) != self.links:
            found.append(f"interfaces {os.listdir('/sys/class/net')}, before {self.links}")
        return found

    def _assert_gone(self):
        wait_for(lambda: not self._left(), lambda: "nothing but\n" + "\n".join(self._left()))

    def test_kill_of_who_started_it(self):
        self.driver.kill()
        self._assert_gone()

    def test_kill_of_its_guard(self):
        os.kill(self.guard, signal.SIGKILL)  # it would have removed the folders; who started it does, in close()
        wait_for(lambda: not [line for line in self._left() if line.startswith("process")], "the end of its processes")
        self.driver.stdin.close()
        self.assertEqual(self.driver.wait(DEADLINE_S), 0)
        self._assert_gone()

    def test_kill_of_its_init(self):
        os.kill(self.init, signal.SIGKILL)
        self.driver.kill()
        self._assert_gone()

    def test_kill_with_a_host_that_is_frozen(self):
        if not self.cgroup:
            self.skipTest("no cgroup2 to write to")
        with open(os.path.join(self.cgroup, "h1", "cgroup.freeze"), "w", encoding="ascii") as file:
            file.write("1")
        self.driver.kill()
        self._assert_gone()


def _pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _parent(pid):
    try:
        return int(read(f"/proc/{pid}/stat").rpartition(")")[2].split()[1])
    except OSError:
        return 0


if __name__ == "__main__":
    bed.main()
