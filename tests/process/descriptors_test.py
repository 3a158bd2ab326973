"""The supervisor has hardly a descriptor left (V10): strangers take what there is, and who is connected stays.

A stranger here dials both ports without end, two hundred connections at a time, and says nothing on any of them.
"""

import os
import resource
import signal
import time

import harness
import recovery

# A stranger's or a daemon's first packet that was dropped comes again after 1 s, then after 2 s more.
PATIENT = {"heartbeat": "200ms", "suspect_after": "900ms", "lost_after": "10s", "lease": "12s"}
QUICK = {"heartbeat": "200ms", "suspect_after": "900ms", "lost_after": "2s", "lease": "3s"}
SEEN_S = 5.0  # it looks twice a second
# A connection that says nothing has two seconds, in which it holds a descriptor; an operator who comes meanwhile does not wait for that.
ASKED, ANSWERED_S = 40, 3.0 if harness.SANITIZED else 1.0
SPARE = 24  # descriptors that the supervisor has besides what it has in use
DIAL = """
import json, select, socket, sys
ports = json.load(open(sys.argv[1]))
held = []
while True:
    while len(held) < 200:
        link = socket.socket()
        link.setblocking(False)
        link.connect_ex(('127.0.0.1', ports['control' if len(held) % 2 else 'bulk']))
        held.append(link)
    for link in select.select(held, [], [], 0.05)[0]:
        try: over = not link.recv(4096)
        except OSError: over = True
        if over: held.remove(link); link.close()
"""


def used_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        words = stat.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Descriptors(recovery.RecoveryTest):
    def asked(self):
        """How long an operator waits for an answer."""
        since = time.monotonic()
        self.status()
        return time.monotonic() - since

    def test_strangers_take_none_of_the_last_and_the_job_goes_on(self):  # V10
        run = self.running(hosts=2, **QUICK)
        supervisor = self.process("supervisor")
        before = resource.prlimit(supervisor.pid, resource.RLIMIT_NOFILE)
        scarce = len(os.listdir(f"/proc/{supervisor.pid}/fd")) + SPARE
        resource.prlimit(supervisor.pid, resource.RLIMIT_NOFILE, (scarce, before[1]))
        since = self.now()
        stranger = self.start_program("/usr/bin/python3", "-c", DIAL, self.job_file("ports.json"))
        waited = [self.asked() for _ in range(ASKED)]
        self.assertLess(max(waited), ANSWERED_S, waited)
        self.assert_seen(self.wait_for_told(run, "descriptors.scarce"), since, SEEN_S)
        used, since = used_seconds(supervisor.pid), time.monotonic()
        recovery.after(5)  # enough to lose a host
        share = (used_seconds(supervisor.pid) - used) / (time.monotonic() - since)
        self.assertLess(share, 0.5, "it spins")
        # It still decides, writes its journal and answers.
        failed_at = self.now()
        self.signal_by_pid(self.pids[2])
        failed = self.wait_for_event("gang.failed")
        self.assert_seen(failed, failed_at, SEEN_S)
        self.assert_answer(failed, "restart", 1, 4, rank=2, generation=1)
        self.wait_for_anew([2, 3])
        self.assert_go_on([0, 1])
        counters = self.status()["counters"]
        self.assertGreater(counters["supervisor.turned_away"], 0)
        stranger.end()
        resource.prlimit(supervisor.pid, resource.RLIMIT_NOFILE, before)
        run.wait_for_err("descriptors.enough", timeout=10)
        self.assert_nothing_done("host.lost", "host.replaced")
        # Who dials now is heard.
        self.kill(self.process("daemon", "v2"))
        host = lambda: next(h for h in self.status()["hosts"] if h["name"] == "v2")
        harness.wait_for(lambda: host()["daemon_starts"] == 2 and host()["phase"] == "ready", host)
        self.assert_go_on([0, 1])
        self.end_well(run)

    def test_with_none_at_all_what_is_connected_stays_and_the_next_is_heard_again(self):  # V10
        run = self.running(hosts=2, **PATIENT)
        supervisor = self.process("supervisor")
        daemon = self.process("daemon", "v2")
        before = resource.prlimit(supervisor.pid, resource.RLIMIT_NOFILE)
        since = self.now()
        resource.prlimit(supervisor.pid, resource.RLIMIT_NOFILE, (8, before[1]))
        self.assert_seen(self.wait_for_told(run, "descriptors.scarce"), since, SEEN_S)
        # A daemon that is new cannot get in; its host's ranks go on as long as their lease does.
        self.kill(daemon)
        used, since = used_seconds(supervisor.pid), time.monotonic()
        self.assert_go_on([0, 1])
        recovery.after(1)  # the new daemon dials
        self.assertLess(used_seconds(supervisor.pid) - used, 0.5 * (time.monotonic() - since), "it spins")
        resource.prlimit(supervisor.pid, resource.RLIMIT_NOFILE, before)
        run.wait_for_err("descriptors.enough", timeout=10)
        host = lambda: next(h for h in self.status()["hosts"] if h["name"] == "v2")
        harness.wait_for(lambda: host()["daemon_starts"] == 2 and host()["phase"] == "ready", host)
        self.assert_go_on(range(4))
        self.assert_nothing_done()
        self.end_well(run)


if __name__ == "__main__":
    harness.main()
