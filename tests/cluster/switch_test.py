"""The switch and its forged frames by themselves: no namespaces, no root."""

import struct
import unittest

import frames
import switch
import tap

HERE, THERE = b"\x02\x77\0\0\0\1", b"\x02\x77\0\0\0\2"


def tcp(sequence=100, acknowledged=200, flags=frames.ACK, payload=b"", backwards=False, port=5000):
    """A segment from 10.77.0.1:40000 to 10.77.0.2:port, with right checksums."""
    ends = ((HERE, b"\x0a\x4d\0\1", 40000), (THERE, b"\x0a\x4d\0\2", port))
    (mac, address, source), (other_mac, other, target) = reversed(ends) if backwards else ends
    body = struct.pack("!HHIIBBHHH", source, target, sequence, acknowledged, 5 << 4, flags, 1000, 0, 0) + payload
    total = frames.checksum(address + other + struct.pack("!HH", 6, len(body)) + body)
    body = body[:16] + struct.pack("!H", total) + body[18:]
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 1, 0, 64, 6, 0) + address + other
    header = header[:10] + struct.pack("!H", frames.checksum(header)) + header[12:]
    return other_mac + mac + b"\x08\x00" + header + body


def right(frame):
    """Whether both checksums of a TCP frame hold: a sum over data and its checksum is 0."""
    body = frame[34:]
    return frames.checksum(frame[14:34]) == 0 and frames.checksum(frame[26:34] + struct.pack("!HH", 6, len(body)) + body) == 0


class Switching(unittest.TestCase):
    def setUp(self):
        self.switch = switch.Switch(seed=1)
        for port in ("a", "b", "c"):
            self.switch.plug(port)
        self.switch.frame("b", b"\xff" * 6 + THERE + b"\x08\x06" + b"arp")  # tells where it is

    def test_a_frame_to_a_known_place_goes_there_alone_and_others_to_all(self):
        self.assertEqual(self.switch.frame("a", tcp()), [(0.0, "a", "b", tcp())])
        self.assertEqual([way[2] for way in self.switch.frame("c", tcp(backwards=True))], ["a"])
        self.assertEqual([way[2] for way in self.switch.frame("a", b"\xff" * 6 + HERE + b"\x08\x06")], ["b", "c"])

    def test_short_frames_and_unplugged_ports_are_nothing(self):
        self.assertEqual(self.switch.frame("a", b"short"), [])
        self.switch.unplug("b")
        self.assertEqual(self.switch.frame("a", tcp()), [])
        self.assertEqual(self.switch.frame("b", tcp(backwards=True)), [])
        self.assertFalse(self.switch.deliverable("a", "b"))

    def test_a_rule_is_of_one_direction(self):
        self.switch.frame("a", tcp())
        self.switch.set_rule("a", "b", cut=True)
        self.assertEqual(self.switch.frame("a", tcp()), [])
        self.assertEqual(len(self.switch.frame("b", tcp(backwards=True))), 1)
        self.switch.set_rule("a", "b")
        self.assertEqual(len(self.switch.frame("a", tcp())), 1)

    def test_arp_is_not_lost(self):
        self.switch.set_rule("a", "b", loss=1.0)
        self.assertEqual(self.switch.frame("a", tcp()), [])
        self.assertEqual(len(self.switch.frame("a", THERE + HERE + b"\x08\x06")), 1)

    def test_size_is_that_of_the_packet(self):
        self.switch.set_rule("a", "b", largest=140)
        self.assertEqual(len(self.switch.frame("a", tcp(payload=b"x" * 100))), 1)
        self.assertEqual(self.switch.frame("a", tcp(payload=b"x" * 101)), [])

    def test_a_reset_meets_each_old_connection_once_and_no_new_one(self):
        self.switch.frame("a", tcp())
        for way in (("a", "b"), ("b", "a")):
            self.switch.set_rule(*way, reset=True)
        (_, _, one, there), (_, _, other, back) = self.switch.frame("a", tcp(payload=b"word"))
        self.assertEqual((one, other), ("b", "a"))
        self.assertTrue(right(there) and right(back))
        self.assertEqual((frames.segment(there).sequence, frames.segment(there).flags), (100, frames.RST))
        self.assertEqual((frames.segment(back).sequence, frames.segment(back).flags), (200, frames.RST))
        self.assertEqual(self.switch.frame("b", tcp(backwards=True))[0][3], tcp(backwards=True))
        opening = tcp(flags=frames.SYN, port=5001)
        answer = tcp(flags=frames.SYN | frames.ACK, port=5001, backwards=True)
        self.assertEqual(self.switch.frame("a", opening)[0][3], opening)
        self.assertEqual(self.switch.frame("b", answer)[0][3], answer)

    def test_a_forgotten_connection_is_silent_in_both_directions_and_a_new_one_is_not(self):
        self.switch.frame("a", tcp())
        for way in (("a", "b"), ("b", "a")):
            self.switch.set_rule(*way, forget=True)
        self.assertEqual(self.switch.frame("a", tcp(payload=b"word")), [])
        self.assertEqual(self.switch.frame("b", tcp(backwards=True)), [])
        opening = tcp(flags=frames.SYN, port=5001)
        answer = tcp(flags=frames.SYN | frames.ACK, port=5001, backwards=True)
        self.assertEqual(self.switch.frame("a", opening)[0][3], opening)
        self.assertEqual(self.switch.frame("b", answer)[0][3], answer)
        self.assertEqual(self.switch.frame("a", tcp(port=5001))[0][3], tcp(port=5001))

    def test_a_bandwidth_sends_frames_one_after_the_other_and_drops_what_would_wait_for_long(self):
        frame = tcp(payload=b"x" * 946)  # 1,000 bytes
        self.switch.frame("a", frame)
        self.switch.set_rule("a", "b", bandwidth=100_000)
        delays = [round(way[0], 6) for _ in range(22) for way in self.switch.frame("a", frame, now=5.0)]
        self.assertEqual(delays, [round(0.01 * n, 6) for n in range(1, 22)])
        self.assertEqual(self.switch.counters["queue_full"], 1)
        self.assertEqual(round(self.switch.frame("a", frame, now=6.0)[0][0], 6), 0.01)
        self.assertEqual(self.switch.frame("b", tcp(backwards=True), now=5.0)[0][0], 0.0)

    def test_a_refusal_acknowledges_the_syn(self):
        self.switch.set_rule("a", "b", syn="reset")
        (_, source, target, frame), = self.switch.frame("a", tcp(flags=frames.SYN))
        found = frames.segment(frame)
        self.assertEqual((source, target, found.acknowledged), ("b", "a", 101))
        self.assertEqual(found.flags, frames.RST | frames.ACK)
        self.assertTrue(right(frame))

    def test_corruption_changes_one_bit_and_keeps_the_checksum_right(self):
        frame = tcp(payload=b"payload")
        changed = frames.corrupted(frame, 13)
        self.assertTrue(right(changed))
        self.assertEqual(sum((a ^ b).bit_count() for a, b in zip(frame[54:], changed[54:])), 1)
        self.assertEqual(frames.corrupted(tcp(), 13), tcp())

    def test_frames_that_lie_about_their_lengths_are_no_segments(self):
        frame = tcp(payload=b"payload")
        for length in range(len(frame)):
            frames.segment(frame[:length])
        self.assertIsNone(frames.segment(frame[:14] + b"\x4f" + frame[15:40]))

    def test_one_seed_is_one_run(self):
        def run(seed):
            made = switch.Switch(seed)
            made.plug("a")
            made.plug("b")
            made.set_rule("a", "b", loss=0.3, duplicate=0.1, delay=0.01, jitter=0.005)
            return [made.frame("a", tcp(sequence=n)) for n in range(200)]

        self.assertEqual(run(7), run(7))
        self.assertNotEqual(run(7), run(8))


if __name__ == "__main__":
    tap.main()
