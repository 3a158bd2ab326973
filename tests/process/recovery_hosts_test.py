"""A virtual host loses its keeper, or stands still as a whole: another takes its place, or it comes back itself, and the other gang
never notices."""

import os
import signal

import harness
import recovery

QUICK = {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "1s", "lease": "1500ms"}


class Hosts(recovery.RecoveryTest):
    def host_of(self, rank):
        return next(r["host"] for r in self.status()["meshes"][0]["ranks"] if r["rank"] == rank)

    def test_one_without_its_keeper_comes_back_whole(self):
        # What the daemon that outlived its keeper still kills and removes must be nothing of the next worker's.
        run = self.running("mark there\n[ -S $NOTIFY_SOCKET ] || mark deaf\n" + recovery.COUNT, reallocate={"max": 4})
        since = self.now()
        daemon = self.process("daemon", "v2")
        self.kill(daemon, signal.SIGSTOP)  # it is slow to find out
        self.kill(self.process("keeper", "v2"))
        self.assert_seen(self.wait_for_event("host.lost"), since, 5.0)
        self.wait_for_anew([2, 3])
        again = {r: self.pid_of(r) for r in (2, 3)}
        if any(p.pid == daemon.pid for p in self.processes()):
            self.kill(daemon, signal.SIGCONT)
        self.wait_gone(daemon)
        self.assertEqual({self.host_of(r) for r in (2, 3)}, {"v2"})
        self.assertEqual([p for p in self.processes() if p.pid in (self.pids[2], self.pids[3])], [])
        self.assert_go_on([0, 1])
        folders = [name for name in os.listdir(self.path("run", "monarch")) if name.startswith("w-")]
        self.assertEqual(len(folders), 2, folders)
        self.assertEqual({r: self.pid_of(r) for r in (2, 3)}, again)
        self.end_well(run)
        self.assertEqual(self.marks("deaf"), [])

    def test_one_that_stands_still_is_replaced_by_the_spare(self):
        run = self.running(local={"hosts": 3, "spares": 1}, reallocate={"max": 4}, **QUICK)
        keeper, daemon = self.process("keeper", "v2"), self.process("daemon", "v2")
        since = self.now()
        self.kill_all([keeper, daemon, *(p for p in self.processes() if p.pid in (self.pids[2], self.pids[3]))], signal.SIGSTOP)
        self.assert_seen(self.wait_for_event("host.lost"), since, 4.0)
        self.wait_for_anew([2, 3])
        self.assertEqual({self.host_of(r) for r in (2, 3)}, {"v3"})
        self.assert_go_on([0, 1])
        self.end_well(run)

    def test_one_that_stands_still_is_replaced_by_one_where_all_is_done(self):
        early = recovery.COUNT.replace("[ -e go ]", "[ -e go ] || [ -e early.$MONARCH_RANK ]")
        run = self.running("mark there\n" + early, reallocate={"max": 4}, **QUICK)
        for rank in (2, 3):
            self.write(f"early.{rank}", "")
        self.wait_for_event("gang.done")
        pids = [p.pid for p in self.processes() if p.pid in (self.pids[0], self.pids[1])]
        since = self.now()
        self.kill_all([self.process("keeper", "v1"), self.process("daemon", "v1"),
                       *(p for p in self.processes() if p.pid in pids)], signal.SIGSTOP)
        self.assert_seen(self.wait_for_event("host.lost"), since, 4.0)
        self.wait_for_anew([0, 1])
        self.assertEqual({self.host_of(r) for r in range(4)}, {"v2"}, "who is done is shown where it ran")
        self.assert_stage(self.wait_for_event("host.replaced"),
                          r"^v2, where all has ended, takes the place of v1 \[host lost: replacement 1 of 4", host="v2")
        self.end_well(run)

    def test_one_that_is_drained_at_once_is_left_for_the_spare(self):
        run = self.running(local={"hosts": 3, "spares": 1}, reallocate={"max": 4})
        done = self.monarch("drain", "v2", "--now")
        self.assertEqual(done.status, 0, done)
        self.wait_for_anew([2, 3])
        self.assertEqual({self.host_of(r) for r in (2, 3)}, {"v3"})
        self.assert_go_on([0, 1])
        drained = lambda: next(h for h in self.status()["hosts"] if h["name"] == "v2")["phase"]
        harness.wait_for(lambda: drained() == "ended", drained)
        self.assertEqual(self.events("gang.failed") + self.events("host.lost"), [], "nothing has failed")
        self.end_well(run)


if __name__ == "__main__":
    harness.main()
