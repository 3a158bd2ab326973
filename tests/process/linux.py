"""The system calls that a world is made of and that Python 3.11 has no name for. Failures are OSErrors naming the call."""

import ctypes
import fcntl
import os
import socket
import struct

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS = 0x00020000, 0x02000000, 0x04000000
CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x08000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
_MNT_DETACH = 2
_PR_SET_PDEATHSIG = 1
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_TUNSETIFF, _TUNSETCARRIER, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x400454E2, 0x0002, 0x1000

_libc = ctypes.CDLL(None, use_errno=True)


def _call(what, result):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _bytes(text):
    return None if text is None else os.fsencode(text)


def unshare(flags):
    _call("unshare", _libc.unshare(flags))


def setns(descriptor, kind):
    _call("setns", _libc.setns(descriptor, kind))


def mount(source, target, kind=None, flags=0, data=None):
    _call(f"mount {source} on {target}",
          _libc.mount(_bytes(source), _bytes(target), _bytes(kind), ctypes.c_ulong(flags), _bytes(data)))


def umount(target):
    """At once for whoever looks; in fact when nobody uses it any more."""
    _call(f"umount {target}", _libc.umount2(_bytes(target), _MNT_DETACH))


def bind(source, target, read_only=False):
    """The tree at source, with what is mounted below it, at target too. Only the top mount becomes read-only."""
    mount(source, target, flags=MS_BIND | MS_REC)
    if read_only:
        mount(None, target, flags=MS_REMOUNT | MS_BIND | MS_RDONLY)


def change_root(place):
    """The mount point `place` becomes the root of this mount namespace, and what was the root is out of reach.

    pivot_root(".", ".") stacks the old root over the new one, from where it is unmounted; see pivot_root(2).
    """
    os.chdir(place)
    number = _PIVOT_ROOT[os.uname().machine]
    _call(f"pivot_root {place}", _libc.syscall(ctypes.c_long(number), b".", b"."))
    umount(".")
    os.chdir("/")


def die_with_parent(number):
    """Signal `number` when the thread that forked this process ends."""
    _call("prctl", _libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(number), 0, 0, 0))


def open_tap(name):
    """A new network interface of this network namespace; frames are read from and written to the descriptor."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI))
    return descriptor


def set_carrier(descriptor, on):
    """Whether the interface of a tap has a cable in it."""
    fcntl.ioctl(descriptor, _TUNSETCARRIER, struct.pack("i", int(on)))


def close_all_but(kept):
    """Closes every descriptor from 3 on, but for these."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                pass  # the one that listed the folder


# ---- Sockets of another process.

_PIDFD_GETFD = 438
_TCP_INFO_BYTES = 120  # linux/tcp.h: tcpi_bytes_acked, tcpi_bytes_received


def tcp_sockets(pid):
    """{descriptor: (local port, remote port, listens)} of a process of this network namespace."""
    known = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as file:
            for line in file.read().splitlines()[1:]:
                words = line.split()
                ports = [int(address.rsplit(":", 1)[1], 16) for address in words[1:3]]
                known[int(words[9])] = (*ports, words[3] == "0A")
    found = {}
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return {}  # it has just ended
    for fd in descriptors:
        try:
            kind, _, inode = os.readlink(f"/proc/{pid}/fd/{fd}").partition(":[")
        except OSError:
            continue  # it has just been closed
        if kind == "socket" and int(inode[:-1]) in known:
            found[int(fd)] = known[int(inode[:-1])]
    return found


def borrow_socket(pid, fd):
    """The same socket in this process: pidfd_getfd(2)."""
    process = os.pidfd_open(pid)
    try:
        number = _libc.syscall(_PIDFD_GETFD, process, fd, 0)
    finally:
        os.close(process)
    if number < 0:
        _call(f"descriptor {fd} of process {pid}", number)
    return socket.socket(fileno=number)


def tcp_bytes(connection):
    """(acknowledged, received) since it was made."""
    return struct.unpack_from("=QQ", connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), _TCP_INFO_BYTES)
