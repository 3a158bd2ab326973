"""Peers that mean harm, at the ports of a running job: each is counted by its name in `status --json`, and disturbs nothing.

Outsiders have no key: junk, silence, another mechanism, lengths that nobody could mean, hundreds of connections at once. The
insider has: rogue_worker.cc is the worker of a spare host, and forges, floods and sends what is too large.
"""

import collections
import errno
import json
import os
import re
import shlex
import signal
import socket
import struct
import time

import harness
import jobs
import rogue

SECONDS = float(os.environ.get("MONARCH_TEST_HALF_OPEN_S", "4"))
# A rank that saves once, when it is told to.
SAVE = """import os, time
import monarch_rank as monarch
while not os.path.exists("save"): time.sleep(0.02)
try: print("saved:", monarch.save(1, bytes(1 << 20)))
except Exception as error: print(type(error).__name__, error)
"""
# ZMTP 3.0 (RFC 23): signature, version, mechanism, filler.


def greeting(mechanism):
    return (b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0" + mechanism).ljust(64, b"\0")


class HostileTest(jobs.JobTest):
    # What an honest job adds to at any time.
    # local_health counts nothing: it is how well the supervisor itself keeps its times.
    USUAL = {f"{port}.{name}" for port in ("control", "bulk") for name in ("accepted", "handshaken", "disconnected", "messages")}
    USUAL.add("supervisor.local_health")

    def running(self, hosts=2, beside="", marks=None, **options):
        script = f"mark there; {beside}i=0; until [ -e go ]; do i=$((i+1)); echo line $i; nap 0.05; done; echo last $i"
        run = self.start("run", self.job(script, hosts=hosts, slots=1, **options.pop("keys", {})), **options)
        self.wait_for_marks("there", marks or hosts)
        self.ports = json.loads(self.log("ports.json"))
        self.before = harness.wait_for(self.quiet_counters, self.counters)
        return run

    def counters(self):
        return self.status()["counters"]

    def quiet_counters(self):
        """Once nobody shakes hands: until then it may be junk."""
        now = self.counters()
        return now if now["control.junk"] == now["bulk.junk"] == 0 else None

    def added(self, but=()):
        """What was added since the job ran, of all that an honest job adds nothing to."""
        now = self.counters()
        self.assertEqual(now.keys(), self.before.keys())
        return {name: now[name] - self.before[name] for name in now
                if now[name] != self.before[name] and name not in self.USUAL | set(but)}

    def wait_added(self, **wanted):
        """Until exactly this was added, and nothing else."""
        wanted = {name.replace("__", "."): count for name, count in wanted.items()}
        harness.wait_for(lambda: self.added() == wanted, lambda: f"{wanted} and not {self.added()}")

    def connect(self, port="control"):
        link = socket.create_connection(("127.0.0.1", self.ports[port]), 10)
        self.addCleanup(link.close)
        link.settimeout(20)
        return link

    def wait_closed(self, link):
        try:
            while link.recv(4096):
                pass
        except ConnectionResetError:
            pass

    def told(self):
        return [json.loads(line) for line in self.monarch("events", "last", "--json").out.splitlines()]

    def assert_undisturbed(self, run, but=(), ended=()):
        """No rank was restarted, no host doubted, every line of output is there, and the job ends as it should."""
        for mesh in self.status()["meshes"]:
            self.assertEqual({(r["phase"], r["generation"]) for r in mesh["ranks"] if r["rank"] not in ended}, {("running", 1)})
        self.write("go", "")
        done, _ = self.end_of(run, 0, "succeeded")
        for rank in (0, 1):
            numbers = [int(n) for n in re.findall(rf"^\[m/{rank}@v{rank + 1}\] line (\d+)$", done.out, re.M)]
            self.assertEqual(numbers, list(range(1, len(numbers) + 1)), f"output of rank {rank}")
            self.assertIn(f"[m/{rank}@v{rank + 1}] last {len(numbers)}\n", done.out)
        events = collections.Counter(e["event"] for e in self.told())
        self.assertEqual([e for e in events if re.search("suspect|doubt|silent|lost|restart", e) and e not in but], [], events)
        return done

    def assert_grew_little(self, process, resident, most=2048):
        if not harness.SANITIZED:
            self.assertLess(self.resident(process) - resident, most, "KiB")

    def resident(self, process, field="VmRSS"):
        return int(re.search(rf"{field}:\s+(\d+)", self.read(f"/proc/{process.pid}/status")).group(1))


    def open_files(self, process):
        return len(os.listdir(f"/proc/{process.pid}/fd"))

    def bytes_of_job(self):
        return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(self.job_file("")) for name in names)


class Outsiders(HostileTest):
    def test_junk_silence_and_another_mechanism_have_a_counter_each(self):
        run = self.running()
        for port in ("control", "bulk"):
            for _ in range(3):
                junk = self.connect(port)
                junk.sendall(b"GET / HTTP/1.0\r\nHost: here\r\n\r\n" + b"x" * 200)
                self.wait_closed(junk)
            for link in [self.connect(port) for _ in range(4)]:
                self.wait_closed(link)  # silent until the handshake's interval is over
            for _ in range(5):
                plain = self.connect(port)
                plain.sendall(greeting(b"NULL"))
                self.wait_closed(plain)
        self.wait_added(control__junk=3, control__silent=4, control__protocol_errors=5,
                        bulk__junk=3, bulk__silent=4, bulk__protocol_errors=5)
        self.assert_undisturbed(run)

    def test_a_length_that_nobody_can_mean_costs_no_memory(self):
        run = self.running()
        supervisor = self.process("supervisor")
        resident = self.resident(supervisor)
        for length in (2 ** 63 - 1, 2 ** 40, 2 ** 31):
            for _ in range(10):
                link = self.connect()
                link.sendall(greeting(b"CURVE") + b"\x06" + struct.pack(">Q", length) + b"\x05HELLO")
                self.wait_closed(link)
        self.assert_grew_little(supervisor, resident)
        harness.wait_for(lambda: sum(self.added().values()) == 30, lambda: f"30 of a name: {self.added()}")
        self.assert_undisturbed(run)

    def test_every_counter_is_in_the_manual(self):
        run = self.running()
        page = self.read(os.path.join(harness.ROOT, "man/monarch.1"))
        self.assertEqual([name for name in self.before
                          if not re.search(rf"^\.B.*\b{re.escape(name.partition('.')[2])}\b", page, re.M)], [])
        self.assert_undisturbed(run)

    def test_hundreds_of_half_open_connections_keep_no_worker_out(self):
        """400 that say nothing or half a greeting, each replaced as soon as it is closed, while a new daemon joins."""
        run = self.running()
        half_open = [self.connect() for _ in range(400)]
        for link in half_open[::2]:
            link.sendall(greeting(b"CURVE")[:11])
        daemon = self.process("daemon", "v2")
        host = lambda: next(h for h in self.status()["hosts"] if h["name"] == "v2")
        killed = time.monotonic()
        self.kill(daemon)
        joined = None
        closed = 0
        while time.monotonic() < killed + SECONDS or joined is None:
            for i, link in enumerate(half_open):
                link.setblocking(False)
                try:
                    over = not link.recv(64)
                except BlockingIOError:
                    over = False
                except ConnectionResetError:
                    over = True
                if over:
                    link.close()
                    half_open[i] = self.connect()
                    closed += 1
            now = host()
            if joined is None and now["daemon_starts"] == 2 and now["phase"] == "ready":
                joined = time.monotonic() - killed
            self.assertLess(time.monotonic() - killed, 30 + SECONDS, now)
        self.assertLess(joined, 5)
        self.assertGreaterEqual(closed, 400, "each was closed in its time")
        for link in half_open:
            link.close()
        added = self.added()
        self.assertGreaterEqual(added.pop("control.silent"), 400)
        added.pop("control.junk", None)  # what was closed this moment
        self.assertEqual(added, {})
        self.assert_undisturbed(run)


    def test_nobody_else_listens_at_the_ports_of_a_supervisor_that_crashed(self):
        run = self.running()
        supervisor, guard = self.process("supervisor"), self.process("guard")
        self.kill(guard, signal.SIGSTOP)  # the next one comes when we have looked
        self.kill(supervisor)
        harness.wait_for(lambda: "State:\tZ" in self.read(f"/proc/{supervisor.pid}/status"), "the supervisor's end")
        for port in ("control", "bulk"):
            with socket.socket() as thief:
                thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                with self.assertRaises(OSError) as refused:
                    thief.bind(("127.0.0.1", self.ports[port]))
                    thief.listen()
                self.assertEqual(refused.exception.errno, errno.EADDRINUSE)
        self.kill(guard, signal.SIGCONT)
        harness.wait_for(lambda: self.process("supervisor").pid != supervisor.pid and self.status()["term"] == 2, self.supervisor_log)
        # And once more, by the sockets that were handed on.
        self.kill(self.process("supervisor"))
        harness.wait_for(lambda: self.status()["term"] == 3, self.supervisor_log)
        self.assertEqual(json.loads(self.log("ports.json")), self.ports)
        self.assert_undisturbed(run)


class Insider(HostileTest):
    """The worker of v3, a spare, is the rogue. Ranks run on v1 and v2."""

    def running_with_rogue(self, beside="", hosts=2, **keys):
        self.rogue = rogue.Rogue(self.path("rogue"))
        run = self.running(hosts=hosts, beside=beside, marks=min(hosts, 2), keys={"launch": {"local": {"hosts": 3, "spares": 3 - hosts}}, **keys},
                           env=self.rogue.worker_of("v3"))
        harness.wait_for(lambda: self.host("v3")["phase"] == "ready", lambda: f"the rogue: {self.status()}")
        self.before = harness.wait_for(self.quiet_counters, self.counters)
        return run

    def host(self, name):
        return next(h for h in self.status()["hosts"] if h["name"] == name)

    def order(self, word, number):
        return self.rogue.order(word, number)

    def test_what_a_valid_peer_must_not_say_is_refused_and_counted(self):
        run = self.running_with_rogue()
        supervisor = self.process("supervisor")
        for word, count in (("forge", 3), ("foreign", 4), ("malformed", 5), ("frames", 6), ("oversize", 7), ("output", 8)):
            self.assertEqual(self.order(word, count), count)
        self.wait_added(control__forged=3, control__foreign_job=4, control__malformed=11, control__oversize=7,
                        output__forged_pieces=8)
        # One told in the log, however many there are.
        self.assertEqual(len(re.findall("claims to be", self.supervisor_log())), 1)
        resident = self.resident(supervisor)
        self.assertEqual(self.order("huge", 5), 5)
        self.assert_grew_little(supervisor, resident)
        self.assert_undisturbed(run)

    def test_a_message_of_any_number_of_frames_takes_no_memory_for_it(self):
        run = self.running_with_rogue()
        supervisor = self.process("supervisor")
        before = self.resident(supervisor, "VmHWM")
        self.assertEqual(self.order("endless", 1_500), 1_500)
        harness.wait_for(lambda: self.counters()["control.hoarded"] - self.before["control.hoarded"] > 0, self.supervisor_log)
        self.assertRegex(self.supervisor_log(), r"a connection of 127\.0\.\d+\.\d+ \d+ was ended: \d+(\.\d)?MiB of it lay here as messages that had no end")
        # 97 MiB, and what comes between two looks; 1,500 MiB without them.
        self.assertLess(self.resident(supervisor, "VmHWM") - before, 750 << 10)
        self.assertEqual(self.process("supervisor").pid, supervisor.pid)
        # One thread reads what all hosts say, and had a gibibyte and a half to read: on a busy machine another may be late for a while.
        self.assert_undisturbed(run, but=("host.suspect",))

    def test_what_is_longer_than_it_may_be_is_not_read_whatever_message_has_it(self):
        # Of a sanitizer's supervisor, which takes long to read it, a host is not heard for long.
        patience = {"supervision": {"lost_after": "60s", "lease": "70s"}} if harness.SANITIZED else {}
        run = self.running_with_rogue(**patience)
        supervisor = self.process("supervisor")
        said, shown = self.order("stretch", 0), self.order("stretch", 1)
        self.assertGreater(said, 10)
        self.assertGreater(shown, 5)
        self.wait_added(control__malformed=said, output__forged_pieces=shown)
        refused = "v3: it sends output of what was not started there; that is dropped and counted, as output.forged_pieces"
        harness.wait_for(lambda: refused in self.supervisor_log(), self.supervisor_log)
        self.order("stretch", 0)
        self.order("stretch", 1)
        self.wait_added(control__malformed=2 * said, output__forged_pieces=2 * shown)
        resident = self.resident(supervisor)  # with what the first of each took to be read at all, and maps twice
        for _ in range(5):
            self.order("stretch", 0)
            self.order("stretch", 1)
        self.wait_added(control__malformed=7 * said, output__forged_pieces=7 * shown)
        self.assert_grew_little(supervisor, resident, most=8192)  # of tens of megabytes that were sent
        self.assert_undisturbed(run, but=["host.suspect"] if harness.SANITIZED else [])  # it reads fifty times slower
        self.assertEqual(self.supervisor_log().count(refused), 1)

    def test_one_that_holds_a_rank_and_exaggerates_ruins_that_rank_alone(self):
        run = self.running_with_rogue(hosts=3, mesh={"gang": "host"})
        supervisor = self.process("supervisor")
        self.assertGreater(self.order("exaggerate", 0), 100)
        resident, open_files, held = self.resident(supervisor), self.open_files(supervisor), self.bytes_of_job()
        for _ in range(5):
            self.order("exaggerate", 0)
        self.status()
        self.assert_grew_little(supervisor, resident)
        self.assertLess(self.open_files(supervisor) - open_files, 8)
        self.assertLess(self.bytes_of_job() - held, 1 << 20)
        self.assertEqual(self.process("supervisor").pid, supervisor.pid)
        self.assertEqual(self.order("finish", 0), 1)
        self.assert_undisturbed(run, ended=[2])

    def test_one_that_speaks_for_a_later_supervisor_is_cut_off_alone(self):
        run = self.running_with_rogue(supervision={
            "heartbeat": "200ms", "suspect_after": "1s", "lost_after": "1500ms", "lease": "2s"})
        supervisor = self.process("supervisor").pid
        self.assertEqual(self.order("term", 3), 3)
        told = harness.wait_for(lambda: [e for e in self.told() if e["event"] == "host.quarantined"], self.supervisor_log)
        self.assertRegex(told[0]["message"], r"^v3: it speaks for a supervisor of term 1001, of which nobody else has heard")
        self.assertEqual(self.added(), {"control.later_term": 3})
        self.assertEqual(self.process("supervisor").pid, supervisor)
        self.assert_undisturbed(run, but=["host.lost"])
        self.assertEqual({e["host"] for e in self.told() if e["event"] == "host.lost"}, {"v3"})

    def test_one_that_fills_anothers_vault_in_the_name_of_a_rank_that_it_does_not_have(self):
        self.write("save.py", SAVE)
        saves = f"[ $MONARCH_RANK = 1 ] || PYTHONPATH={shlex.quote(harness.MODULES)} python3 -B save.py > saved.log 2>&1 & "
        run = self.running_with_rogue(beside=saves, mesh={"gang": "host"}, checkpoints={"peer": 1, "memory": "8MiB"})
        self.assertEqual(self.order("vault", 8), 8)
        self.write("save", "")
        harness.wait_for(lambda: self.read(self.path("work", "saved.log")), "a word of the rank that saves")
        self.assertEqual(self.read(self.path("work", "saved.log")), "saved: True\n")
        self.assert_undisturbed(run)

    def test_a_flood_is_cut_to_its_budget_and_beats_are_heard_in_time(self):
        run = self.running_with_rogue()
        sent = self.order("flood", 4)
        self.assertGreater(sent, 5_000 if harness.SANITIZED else 20_000, "a flood that is none proves nothing")
        harness.wait_for(lambda: self.added().get("control.flooded", 0) > 0, "some that were dropped")
        heard = self.counters()["control.messages"] - self.before["control.messages"]
        # The burst, the rate for as long as it took to read them all, and everybody's beats.
        self.assertLess(heard, sent * (0.9 if harness.SANITIZED else 0.5))  # of a slow reader the rate is a larger part
        # On a busy machine an answer to the flood may find its queue full.
        self.assertEqual(self.added().keys() - {"control.sends_full"}, {"control.flooded"})
        for name in ("v1", "v2"):
            self.assertEqual(self.host(name)["phase"], "ready")
        self.assert_undisturbed(run)

    def test_a_key_of_an_ended_job_opens_nothing(self):
        run = self.running_with_rogue()
        self.order("old", 0)
        self.assert_undisturbed(run)
        for name in ("go", "there.0", "there.1", "demo.yaml"):
            os.unlink(self.path("work", name))
        first, = self.jobs()
        os.rename(self.path("state", "jobs", first), self.path("work", first))
        run = self.running_with_rogue()
        self.assertEqual(self.order("old", 1), 2, "the old key was let in")
        self.wait_added(control__auth_refused=1)
        self.assert_undisturbed(run)


if __name__ == "__main__":
    harness.main()
