"""The network of a world: each fault that can be injected is seen to have taken effect, and to end with heal()."""

import socket
import time

import bed
from host import DEADLINE_S

_SO_RCVBUFFORCE = 33  # not in Python's socket


class Network(bed.BedTest):
    def setUp(self):
        self.w = self.world(2)
        self.login, self.h1 = self.w.login, self.w["h1"]

    def received(self, connection, quiet_s=bed.SILENCE_S):
        """All datagrams until none comes for a while: [(bytes, when)]."""
        connection.settimeout(quiet_s)
        got = []
        try:
            while True:
                got.append((connection.recv(65536), time.monotonic()))
        except TimeoutError:
            return got

    def round_trips(self, count):
        """Seconds of each of `count` datagrams from login to h1 and back, one at a time."""
        here, there = self.datagrams(self.login), self.datagrams(self.h1)
        seconds = []
        for number in range(count):
            started = time.monotonic()
            here.sendto(b"%d" % number, (self.h1.address, 6000))
            data, sender = there.recvfrom(100)
            there.sendto(data, sender)
            self.assertEqual(here.recv(100), b"%d" % number)
            seconds.append(time.monotonic() - started)
        here.close()
        there.close()
        return sorted(seconds)

    def test_a_pulled_cable_is_silence_and_a_connection_survives_it(self):
        one, other = self.connection(self.login, self.h1)
        self.exchange(one, other)
        self.h1.unplug()
        self.assertEqual(self.h1.read("/sys/class/net/eth0/carrier"), "0\n")
        one.sendall(b"late")
        other.sendall(b"late too")
        self.assert_silent(one)
        self.assert_silent(other)
        self.h1.plug()
        self.assertEqual(other.recv(100), b"late")
        self.assertEqual(one.recv(100), b"late too")

    def test_others_talk_while_one_cable_is_out(self):
        self.h1.unplug()
        self.exchange(*self.connection(self.login, self.w["h2"]))

    def test_a_one_way_cut_stops_one_way(self):
        here, there = self.datagrams(self.login), self.datagrams(self.h1)
        here.sendto(b"first", (self.h1.address, 6000))
        self.assertEqual(there.recv(100), b"first")
        self.w.cut("login", "h1")
        here.sendto(b"lost", (self.h1.address, 6000))
        there.sendto(b"passes", (self.login.address, 6000))
        self.assertEqual(here.recv(100), b"passes")
        self.assert_silent(there)
        self.assertGreaterEqual(self.w.counters()["cut"], 1)
        self.w.heal()
        here.sendto(b"again", (self.h1.address, 6000))
        self.assertEqual(there.recv(100), b"again")

    def test_a_reset_ends_what_is_connected_at_both_ends_and_nothing_new(self):
        one, other = self.connection(self.login, self.h1)
        self.exchange(one, other)
        self.w.both("login", "h1", reset=True)
        one.sendall(b"the last word")
        self.assert_reset(one)
        self.assert_reset(other)
        self.assertEqual(self.w.counters()["reset"], 1)
        one, other = self.connection(self.login, self.h1, port=5001)
        self.exchange(one, other)
        self.exchange(other, one)

    def test_without_new_connections_the_old_ones_live(self):
        one, other = self.connection(self.login, self.h1)
        self.w.link("login", "h1", syn="drop")
        self.exchange(one, other)
        self.listener(self.h1, 5001)
        new = self.socket_of(self.login)
        new.settimeout(bed.SILENCE_S)
        with self.assertRaises(TimeoutError):
            new.connect((self.h1.address, 5001))
        self.exchange(*self.connection(self.h1, self.login, port=5002))  # the other way they are made

    def test_new_connections_can_be_refused(self):
        self.listener(self.h1, 5001)
        self.w.link("login", "h1", syn="reset")
        with self.assertRaises(ConnectionRefusedError):
            self.socket_of(self.login).connect((self.h1.address, 5001))

    def test_an_mtu_black_hole_passes_small_packets_and_swallows_large_ones(self):
        one, other = self.connection(self.login, self.h1)
        self.exchange(one, other)
        self.w.both("login", "h1", largest=1200)
        self.exchange(one, other, b"s" * 1000)
        one.sendall(b"l" * 1400)
        self.assert_silent(other)
        self.w.heal()
        self.assertEqual(other.recv(1, socket.MSG_WAITALL), b"l")

    def test_loss_and_doubles_come_as_often_as_asked_for(self):
        here, there = self.datagrams(self.login), self.datagrams(self.h1)
        there.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 22)
        self.w.link("login", "h1", loss=0.2, duplicate=0.1)
        for number in range(2000):
            here.sendto(b"%d" % number, (self.h1.address, 6000))
        got = [data for data, _ in self.received(there)]
        counters = self.w.counters()
        # What the switch drew: 2,000 draws at 0.2 have a standard deviation of 18, 1,600 at 0.1 one of 12.
        self.assertAlmostEqual(counters["lost"], 400, delta=90)
        self.assertAlmostEqual(counters["duplicated"], 160, delta=60)
        # And what became of it.
        self.assertEqual(len(set(got)), 2000 - counters["lost"])
        self.assertEqual(len(got) - len(set(got)), counters["duplicated"])

    def test_delay_is_added_each_way(self):
        plain = self.round_trips(20)
        self.w.both("login", "h1", delay=0.05)
        delayed = self.round_trips(20)
        print(f"# round trips: {plain[10] * 1e3:.2f} ms plain, {delayed[10] * 1e3:.2f} ms with 50 ms each way", flush=True)
        self.assertLess(plain[0], 0.02)
        self.assertGreaterEqual(delayed[0], 0.1)
        self.assertLess(delayed[0], 0.15)

    def test_jitter_lets_packets_overtake_one_another(self):
        here, there = self.datagrams(self.login), self.datagrams(self.h1)
        self.w.link("login", "h1", delay=0.05, jitter=0.05)
        started = time.monotonic()
        for number in range(200):
            here.sendto(b"%d" % number, (self.h1.address, 6000))
        took = time.monotonic() - started
        got = self.received(there)
        self.assertEqual(len(got), 200)
        self.assertNotEqual([int(data) for data, _ in got], list(range(200)))
        self.assertGreater(got[-1][1] - got[0][1], 0.05)
        self.assertLess(took, 5)

    def test_what_is_corrupted_passes_tcp_unnoticed(self):
        one, other = self.connection(self.login, self.h1)
        self.w.link("login", "h1", corrupt=1.0)
        one.sendall(b"\0" * 1000)
        got = other.recv(1000, socket.MSG_WAITALL)
        self.assertEqual(sum(byte.bit_count() for byte in got), self.w.counters()["corrupted"])

    def test_megabytes_arrive_whole_through_bad_weather(self):
        one, other = self.connection(self.login, self.h1)
        self.w.both("login", "h1", loss=0.01, duplicate=0.01, delay=0.001, jitter=0.001)
        data = bytes(range(256)) * 4096
        got = bytearray()
        one.setblocking(False)
        sent = 0
        deadline = time.monotonic() + DEADLINE_S
        while len(got) < len(data) and time.monotonic() < deadline:
            try:
                sent += one.send(data[sent:sent + 65536]) if sent < len(data) else 0
            except BlockingIOError:
                pass
            other.settimeout(0.01)
            try:
                got += other.recv(1 << 20)
            except TimeoutError:
                pass
        self.assertEqual(bytes(got), data)


if __name__ == "__main__":
    bed.main()
