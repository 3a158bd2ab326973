"""What the tests of the test bed share: a world for each test, connections in it, and what they see. `bed.main()` runs them."""

import contextlib
import fcntl
import signal
import socket
import struct
import sys
import termios
import unittest

import tap
import world
from host import DEADLINE_S

SILENCE_S = 1.0  # how long nothing must be heard


class BedTest(unittest.TestCase):
    def world(self, *arguments, **options):
        made = world.World(*arguments, **options)
        self.addCleanup(made.close)
        print(f"# {self.id()}: {len(made.hosts)} hosts and login in {made.seconds:.2f} s", flush=True)
        return made

    def socket_of(self, host, kind=socket.SOCK_STREAM):
        made = host.socket(kind)
        self.addCleanup(made.close)
        return made

    def listener(self, host, port=5000):
        made = self.socket_of(host)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host.address, port))
        made.listen()
        return made

    def connection(self, source, target, port=5000):
        """Both ends of a new TCP connection over the world's network."""
        with contextlib.closing(self.listener(target, port)) as listener:
            one = self.socket_of(source)
            one.connect((target.address, port))
            other, _ = listener.accept()
        other.settimeout(DEADLINE_S)
        self.addCleanup(other.close)
        return one, other

    def datagrams(self, host, port=6000):
        made = self.socket_of(host, socket.SOCK_DGRAM)
        made.bind((host.address, port))
        return made

    def greeting(self, source, host):
        """A connection to the host's sshd, which has said who it is and waits."""
        made = self.socket_of(source)
        made.connect((host.address, 22))
        self.assertIn(b"SSH-2.0", made.recv(256))
        return made

    def assert_silent(self, connection, seconds=SILENCE_S):
        """Neither data nor an end comes."""
        connection.settimeout(seconds)
        with self.assertRaises(TimeoutError):
            self.assertFalse(repr(connection.recv(256)), "the connection spoke or ended")
        connection.settimeout(DEADLINE_S)

    def exchange(self, one, other, data=b"word"):
        """Data goes from one to the other."""
        one.sendall(data)
        got = b""
        while len(got) < len(data):
            got += other.recv(1 << 16)
        self.assertEqual(got, data)

    def assert_reset(self, connection):
        with self.assertRaises(ConnectionResetError):
            connection.recv(256)


def unsent(connection):
    """Bytes that the peer's kernel has not acknowledged."""
    return struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, b"\0" * 4))[0]


def _terminated(_number, _frame):
    tap.stop()
    raise AssertionError("out of time")


def main():
    signal.signal(signal.SIGTERM, _terminated)
    reason = world.why_not()
    if reason:
        print(f"1..0 # SKIP {reason}")
        sys.exit(0)
    tap.main()
