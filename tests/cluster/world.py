"""A private world of hosts on this machine: namespaces, a switch, an sshd each. Needs root; touches nothing outside itself.

    with world.World(hosts=3) as w:
        w["h1"].run("hostname").stdout                  # in the host, entered from outside
        w.login.run("ssh", "h2", "uname -a")            # as an operator would: `login` knows every host's key
        w.link("h1", "login", loss=0.1, delay=0.05)     # one direction; both() for both. See switch.Rule
        w.cut("login", "h2")                            # frames from login to h2 vanish
        w["h1"].unplug(); w["h1"].power_off(); w["h1"].power_on(); w["h3"].freeze()

Hosts are `login` (10.77.0.1) and h1, h2, … (10.77.1.1, …). Each has its own net, pid, mount, uts, ipc and cgroup namespaces,
a root file system over that of the machine (what it writes is its own), its own /root, /home, /tmp, /run, /dev/shm and boot id.
All but login run sshd with a host key of their own; login's ~/.ssh has the client key and known_hosts for all.
The checkout is there read-only, its build folder on login alone.

A world ends with close(), and with whoever started it, however that ends: no process, mount, interface or cgroup is left.
Two worlds have the same names and addresses and do not meet.
"""

import dataclasses
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import world_init
from host import DEADLINE_S, Host, Options, read

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("MONARCH_BUILD_DIR") or os.path.join(ROOT, "build")
# In new namespaces: an overlay of the root over memory, and an interface.
_TRY = """mount -t tmpfs world /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
ip tuntap add dev eth0 mode tap"""
PROGRAMS = ("/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/ssh-keygen", "/usr/bin/nsenter")


def why_not():
    """What this machine lacks for a world, or None."""
    if os.geteuid() != 0:
        return "needs root"
    for program in PROGRAMS:
        if not os.path.exists(program):
            return f"needs {program}"
    if not shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin:/bin"):
        return "needs ip (iproute2)"
    if not os.path.exists("/dev/net/tun"):
        return "needs /dev/net/tun"
    tried = subprocess.run(["unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork", "sh", "-ec", _TRY],
                           stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False, timeout=DEADLINE_S)
    return None if tried.returncode == 0 else "needs namespaces with mounts: " + tried.stderr.decode().strip()


def cgroup_parent():
    """This process's group in cgroup2, where groups can be made; None where there is none to write to."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        places = [fields.split()[4] for fields, _, rest in (line.partition(" - ") for line in mounts)
                  if rest.startswith("cgroup2")]
    with open("/proc/self/cgroup", encoding="utf-8") as groups:
        own = next((line[3:].strip() for line in groups if line.startswith("0::")), None)
    if not places or own is None:
        return None
    path = os.path.normpath(places[0] + own)
    return path if os.access(path, os.W_OK) else None


class World:
    """See the top of this file. `options` maps names of hosts to what differs there; `shared` are folders that login has too.

    With `ipv6` hosts have addresses of IPv6 alone, fd77::1 (login), fd77::2 and so on; the switch's rules but `cut` are for IPv4."""

    def __init__(self, hosts=2, seed=1, options=None, shared=(), ipv6=False):
        self.seed, self._shared, self.ipv6 = seed, list(shared), ipv6
        self.folder = tempfile.mkdtemp(prefix="mw-", dir="/tmp")
        parent = cgroup_parent()
        self.cgroup = os.path.join(parent, os.path.basename(self.folder)) if parent else None
        options = {"login": Options(sshd=False), **(options or {})}
        names = ["login", *(f"h{number}" for number in range(1, hosts + 1))]
        self._hosts = {name: Host(self, name, number, options.get(name, Options())) for number, name in enumerate(names)}
        self._number, self._guard, self._control = 0, None, None
        started = time.monotonic()
        try:
            self._keys = _keys(self._hosts)
            self._start()
            self.boot(list(self._hosts.values()))
        except BaseException:
            self.close()
            raise
        self.seconds = time.monotonic() - started

    def _start(self):
        if self.cgroup:
            os.mkdir(self.cgroup)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(DEADLINE_S)
        with theirs:
            self._guard = subprocess.Popen(
                [sys.executable, "-B", os.path.join(HERE, "world_init.py"), str(theirs.fileno()), self.folder, str(self.seed),
                 self.cgroup or ""], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                # Also for who runs this file from elsewhere.
                env={**os.environ, "PYTHONPATH": ":".join([HERE, os.path.join(ROOT, "tests/process")])})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __getitem__(self, name):
        return self._hosts[name]

    @property
    def login(self):
        return self._hosts["login"]

    @property
    def hosts(self):
        """All but login."""
        return [host for name, host in self._hosts.items() if name != "login"]

    @property
    def guard_pid(self):
        return self._guard.pid

    def close(self):
        if self._control:
            self._control.close()
        if self._guard:
            try:
                self._guard.wait(DEADLINE_S)
            except subprocess.TimeoutExpired:
                self._guard.kill()
                self._guard.wait()
        for host in self._hosts.values():
            host.forget()
        if self.cgroup:
            world_init.remove_cgroups(self.cgroup)
        try:
            os.rmdir(self.folder)
        except FileNotFoundError:
            pass  # the guard did

    # Requests to the world's init.

    def ask(self, what, **fields):
        """An answer, without descriptors."""
        return self._wait_for(self._send(what, fields))[0]

    def _send(self, what, fields):
        self._number += 1
        self._control.send(json.dumps({"id": self._number, "do": what, **fields}).encode())
        return self._number

    def _wait_for(self, number):
        data, descriptors, _, _ = socket.recv_fds(self._control, 1 << 16, 1)
        if not data:
            raise AssertionError("the world has ended")
        answer = json.loads(data)
        if "error" in answer:
            raise AssertionError(answer["error"])
        assert number in (None, answer["id"]), answer
        return answer, descriptors

    def boot(self, hosts):
        """All of them at once; returns when the sshd of each listens."""
        for host in hosts:
            if host.cgroup:
                os.mkdir(host.cgroup)
        asked = {self._send("boot", {"host": self._description(host)}): host for host in hosts}
        while asked:
            answer, descriptors = self._wait_for(None)
            asked.pop(answer["id"]).booted(descriptors[0])

    def _description(self, host):
        login = host is self.login
        names = "".join(f"{h.address} {h.name}\n" for h in self._hosts.values())
        ssh_files = {"authorized_keys": self._keys["client"][1]}
        if login:
            ssh_files = {"id_ed25519": self._keys["client"][0], "id_ed25519.pub": self._keys["client"][1],
                         "known_hosts": self.known_hosts()}
        return {"name": host.name, "address": host.address, "mac": host.mac, "cgroup": host.cgroup,
                "hosts_file": "127.0.0.1 localhost\n" + names, "ssh_files": ssh_files, "host_key": self._keys[host.name][0],
                "public_key": self._keys[host.name][1],
                "read_only": [ROOT, BUILD] if login or host.options.build else [ROOT],
                "hidden": [] if login or host.options.build else [BUILD],
                **dataclasses.asdict(host.options), "shared": [*host.options.shared, *(self._shared if login else [])]}

    def known_hosts(self):
        return "".join(f"{host.name},{host.address} {self.public_key(host.name)}\n" for host in self.hosts if host.options.known)

    def public_key(self, name):
        """`ssh-ed25519 AAAA…` of a host."""
        return " ".join(self._keys[name][1].split()[:2])

    # The switch.

    def link(self, source, target, **fields):
        """What happens to frames from source to target (names, or "*"); see switch.Rule. No fields: nothing any more."""
        names = list(self._hosts)
        ways = [(s, t) for s in names for t in names if s != t and source in (s, "*") and target in (t, "*")]
        assert ways, f"no link from {source} to {target}"
        self.ask("rules", ways=ways, fields=fields)

    def both(self, one, other, **fields):
        self.link(one, other, **fields)
        self.link(other, one, **fields)

    def cut(self, source, target):
        self.link(source, target, cut=True)

    def part(self, names):
        """These hosts and the others are on two switches, and the cable between is out: all at once."""
        others = [name for name in self._hosts if name not in names]
        ways = [way for one in names for other in others for way in ((one, other), (other, one))]
        self.ask("rules", ways=ways, fields={"cut": True})

    def heal(self):
        """No rule holds any more; cables stay as they are."""
        self.link("*", "*")

    def counters(self):
        return self.ask("counters")["counters"]


def _keys(names):
    """{name: (private, public)} for each name and the client."""
    with tempfile.TemporaryDirectory() as folder:
        path = {name: os.path.join(folder, name) for name in [*names, "client"]}
        started = [subprocess.Popen(["/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path[name]],
                                    stdin=subprocess.DEVNULL) for name in path]
        for process in started:
            assert process.wait(DEADLINE_S) == 0, process.args
        return {name: (read(path[name]), read(path[name] + ".pub")) for name in path}
