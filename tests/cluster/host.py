"""One host of a world, seen from outside: its power, its cable, its processes and files, and sockets in its network.

What is run in it is started here and enters the host's namespaces and its cgroup: it ends with the host and freezes with it.
"""

import dataclasses
import os
import re
import socket
import subprocess

import harness
import linux
from host_init import ENVIRONMENT, HOME
from world_init import remove_cgroups

DEADLINE_S = 60


@dataclasses.dataclass
class Options:
    """How one host differs from the others."""

    sshd: bool = True
    sshd_config: str = ""  # more lines of it
    root: str = "/"        # the file system below its own, for instance one of debootstrap
    home_bytes: int = 0    # size of /root; 0: what the machine has
    mtu: int = 9000        # so that copies of a worker cost the switch a sixth of the frames
    known: bool = True     # whether login's known_hosts has its key
    shared: tuple = ()     # folders of the machine that it has too, at the same path
    build: bool = False    # whether it has the build, as login has


class Host:
    """A host of a world, seen from outside."""

    def __init__(self, world, name, number, options):
        self._world, self.name, self.options = world, name, options
        self.address = "10.77.0.1" if number == 0 else f"10.77.{1 + (number - 1) // 250}.{1 + (number - 1) % 250}"
        if world.ipv6:
            self.address = f"fd77::{number + 1:x}"
        self.mac = f"02:77:00:00:{number >> 8:02x}:{number & 255:02x}"
        self.cgroup = os.path.join(world.cgroup, name) if world.cgroup else None
        self.pid = None     # of its init, as this process sees it
        self._pidfd = None

    # Power and cable.

    def power_on(self):
        self._world.boot([self])

    def power_off(self):
        """Power loss: the cable goes dead, then everything in it ends. Nobody is told anything."""
        self._world.ask("power_off", name=self.name)
        self.forget()

    def forget(self):
        if self._pidfd is not None:
            os.close(self._pidfd)
        self._pidfd = self.pid = None
        if self.cgroup:
            remove_cgroups(self.cgroup)

    def booted(self, pidfd):
        self._pidfd = pidfd
        with open(f"/proc/self/fdinfo/{pidfd}", encoding="ascii") as info:
            self.pid = int(re.search(r"^Pid:\s+(\d+)$", info.read(), re.MULTILINE).group(1))

    def unplug(self):
        """Pulls the cable: silence in both directions, frames under way included."""
        self._world.ask("cable", name=self.name, **{"in": False})

    def plug(self):
        self._world.ask("cable", name=self.name, **{"in": True})

    def freeze(self):
        """Every process stops at once, as in a virtual machine that is paused. The kernel goes on: it acknowledges."""
        self._set_frozen(1)

    def thaw(self):
        self._set_frozen(0)

    def _set_frozen(self, value):
        with open(os.path.join(self.cgroup, "cgroup.freeze"), "w", encoding="ascii") as file:
            file.write(str(value))
        wait_for(lambda: f"frozen {value}" in read(os.path.join(self.cgroup, "cgroup.events")), f"{self.name} frozen {value}")

    # Inside.

    def path(self, path):
        """Where a file of the host is for us."""
        return f"/proc/{self.pid}/root{path}"

    def read(self, path):
        return read(self.path(path))

    def write(self, path, text, mode=0o644):
        with open(self.path(path), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(path), mode)

    def command(self, *arguments, folder=HOME):
        """What runs a program in this host when it is started here. It belongs to the host's group before it enters, and a
        Ctrl-C at its terminal is its own: nsenter waits for it, where it would die of that first and take the terminal along."""
        join = ["/bin/sh", "-c", 'echo 0 >"$0" && exec "$@"', os.path.join(self.cgroup, "cgroup.procs")] if self.cgroup else []
        enter = ["/usr/bin/nsenter", f"--target={self.pid}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root"]
        return [*join, "/usr/bin/env", "--ignore-signal=INT,QUIT", *enter,
                "--", "/usr/bin/env", "--default-signal=INT,QUIT", "--chdir=" + folder, *map(str, arguments)]

    def start(self, *arguments, folder=HOME, **options):
        return subprocess.Popen(self.command(*arguments, folder=folder),
                                **{"env": ENVIRONMENT, "stdin": subprocess.DEVNULL, **options})

    def run(self, *arguments, check=True, timeout=DEADLINE_S, **options):
        """A program in this host to its end; stdout and stderr as text."""
        done = subprocess.run(self.command(*arguments), check=False, timeout=timeout, text=True,
                              **{"env": ENVIRONMENT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                                 "stdin": None if "input" in options else subprocess.DEVNULL, **options})
        if check and done.returncode != 0:
            raise AssertionError(f"{self.name}: {arguments} ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def pids(self):
        """Of everything in the host but its init, as this process sees them."""
        if self.pid is None:
            return []
        space = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and int(name) != self.pid and os.readlink(f"/proc/{name}/ns/pid") == space:
                    found.append(int(name))
            except OSError:
                pass  # gone meanwhile
        return sorted(found)

    def socket(self, kind=socket.SOCK_STREAM):
        """A socket in this host's network, for us: it belongs to where it was made. Close it before the host's end."""
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/proc/{self.pid}/ns/net", os.O_RDONLY)
        try:
            linux.setns(there, linux.CLONE_NEWNET)
            made = socket.socket(socket.AF_INET6 if self._world.ipv6 else socket.AF_INET, kind)
            made.settimeout(DEADLINE_S)
            return made
        finally:
            linux.setns(own, linux.CLONE_NEWNET)
            os.close(there)
            os.close(own)

    def stop_sshd(self):
        """Ends the listener and every session of it, as a restart of the service does not."""
        self.run("pkill", "-KILL", "-x", "sshd", check=False)
        os.unlink(self.path("/run/sshd.pid"))

    def restart_sshd(self):
        """As the service manager does: the listener is another, sessions live on."""
        listener = int(self.read("/run/sshd.pid"))
        self.run("kill", str(listener))
        wait_for(lambda: not os.path.exists(self.path("/run/sshd.pid")), f"the end of sshd on {self.name}")
        self.start_sshd()

    def start_sshd(self):
        self.run("/usr/sbin/sshd", "-f", "/etc/ssh/sshd_config", "-E", "/var/log/sshd.log")
        wait_for(lambda: os.path.exists(self.path("/run/sshd.pid")), f"sshd on {self.name}")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def wait_for(predicate, what, timeout=DEADLINE_S):
    """As the harness's, with more time."""
    return harness.wait_for(predicate, what, timeout)
