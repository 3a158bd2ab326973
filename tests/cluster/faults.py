"""What is wrong with a host that an operator wants to be told of: one function each, to be called before a job starts.

Each leaves the host as such a host is found in the field; faults_test.py has OpenSSH's word for that. What must be there from
the start is an option of the host: `unknown_key()`, `full_disk()`.
"""

import os
import subprocess
import tempfile

from host import HOME, Options, read

ROOM_BYTES = 256 << 10  # in the home of a host with a full disk: for shell and sshd, not for a worker


def unknown_key():
    """Options of a host whose key nobody told login."""
    return Options(known=False)


def full_disk():
    """Options of a host whose home has no room for a worker."""
    return Options(home_bytes=ROOM_BYTES)


def change_key(host):
    """It was installed anew: it has another key than login knows."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "key")
        subprocess.run(["/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
        host.write("/etc/ssh/ssh_host_ed25519_key", read(path), 0o600)
        host.write("/etc/ssh/ssh_host_ed25519_key.pub", read(path + ".pub"))
    host.restart_sshd()


def revoke_key(world, host):
    path = HOME + "/.ssh/known_hosts"
    world.login.write(path, f"@revoked * {world.public_key(host.name)}\n" + world.login.read(path), 0o600)


def refuse_login(host):
    """It knows nobody's key."""
    host.write(HOME + "/.ssh/authorized_keys", "", 0o600)


def dead(host):
    host.power_off()


def refuse(host):
    """It is up, and no sshd listens."""
    host.stop_sshd()


def black_hole(world, host):
    """Whatever is sent to it vanishes."""
    world.cut("*", host.name)


def hung_sshd(host):
    """It takes connections and never says a word."""
    host.run("pkill", "-STOP", "-x", "sshd")


def noisy_shell(host, lines=3):
    """Its shell prints before every command, as with an `echo` in an rc file."""
    host.write(HOME + "/.bashrc", f"for i in $(seq {lines}); do echo Welcome to {host.name}, line $i; done\n")


def endless_shell(host):
    """Its shell never stops printing."""
    host.write(HOME + "/.bashrc", "while :; do echo Welcome to the machine; done\n")


def other_architecture(host, machine="riscv64"):
    """uname says that it is one; a binary of ours would start all the same."""
    host.write("/usr/local/bin/uname", f"""#!/bin/sh
case "$1" in -m) echo {machine};; *) exec /usr/bin/uname "$@";; esac
""", 0o755)


def no_exec(host):
    """Nothing in its home may be executed."""
    host.run("mount", "-o", "remount,bind,noexec", HOME)


def read_only_home(host):
    host.run("mount", "-o", "remount,bind,ro", HOME)


def block_call_back(world, host):
    """A firewall lets ssh in, and nothing that the host begins out."""
    world.link(host.name, "login", syn="drop")


def refuse_call_back(world, host):
    world.link(host.name, "login", syn="reset")


def little_disk(worker):
    """Options of a host whose home has room for that worker, and for little else."""
    return Options(home_bytes=os.path.getsize(worker) + (4 << 20))


def low_limit(host, files=256):
    """Its logins may have few open files."""
    host.write(HOME + "/.bashrc", f"ulimit -n {files}\n")


def rdma_port_down(host):
    """It has a device of a kind that nothing can be sent through."""
    host.run("mount", "-t", "tmpfs", "tmpfs", "/sys/class")
    for name, text in (("state", "1: DOWN"), ("link_layer", "InfiniBand"), ("rate", "400 Gb/sec (4X NDR)")):
        folder = "/sys/class/infiniband/mlx5_0/ports/1"
        os.makedirs(host.path(folder), exist_ok=True)
        host.write(f"{folder}/{name}", text + "\n")


def small_shared_memory(host, size="64m"):
    host.run("mount", "-o", f"remount,size={size}", "/dev/shm")


def orphan(host, uuid="0123456789abcdef0123456789abcdef"):
    """A rank of an earlier job, whose worker is not there any more."""
    return host.start("env", f"MONARCH_JOB_UUID={uuid}", "MONARCH_HOST=" + host.name, "sleep", "1000")


def read_only(host, path):
    host.run("mount", "-o", "remount,bind,ro", path)


def other_storage(host, path):
    """What the other hosts share is a folder of its own there."""
    host.run("mount", "-t", "tmpfs", "tmpfs", path)


def wrong_clock(host, worker, seconds=3600):
    """What the worker says of the time is wrong by that much. WARNING: CLOCK_REALTIME has no namespace (time_namespaces(7)), so it is
    what is told that is changed: every number that is a time of these days, as msgpack writes one."""
    host.write("/usr/local/bin/monarch-worker", f"""#!/usr/bin/python3 -B
import os, re, struct, subprocess, sys, time
if sys.argv[1:] != ["check"]:
    os.execv("{worker}", ["{worker}", *sys.argv[1:]])
def moved(match):
    number, = struct.unpack(">Q", match[0][1:])
    return match[0][:1] + struct.pack(">Q", number + {seconds} * 10**9) if abs(number - time.time_ns()) < 10**12 else match[0]
check = subprocess.Popen(["{worker}", "check"], stdout=subprocess.PIPE)
while piece := os.read(check.stdout.fileno(), 1 << 20):
    os.write(1, re.sub(rb"[\\xcf\\xd3].{{8}}", moved, piece, flags=re.S))
sys.exit(check.wait())
""", 0o755)
