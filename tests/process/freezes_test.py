"""SIGSTOP of each process of a job: a short one is no loss, a long one is what it looks like from outside."""

import signal

import harness
import jobs

COUNT = "mark there; i=0; until [ -e go ]; do i=$((i+1)); echo line $i; nap 0.05; done; echo last $i\n"
QUICK = {"heartbeat": "200ms", "suspect_after": "500ms", "lost_after": "1s", "lease": "1500ms", "orphan_ttl": "20s"}


class Freezes(jobs.JobTest):
    def running(self, script, **keys):
        run = self.start("run", self.job(script, mesh={"stop": {"grace": "1s"}}, **keys))
        self.wait_for_marks("there", 4)
        return run

    def freeze(self, process):
        self.kill(process, signal.SIGSTOP)
        harness.wait_for(lambda: harness.leftovers.Process(process.pid).state == "T", f"{process} to stop")

    def test_a_supervisor_that_was_stopped_for_longer_than_the_lease_loses_nothing(self):
        # 4 s are far beyond lost_after and lease here; the lease that the hosts got is orphan_ttl, which nobody reached.
        run = self.running(COUNT, supervision=QUICK)
        supervisor = self.process("supervisor")
        since = harness.time.monotonic()
        self.freeze(supervisor)
        harness.wait_for(lambda: harness.time.monotonic() > since + 4, "4 s of silence")
        self.kill(supervisor, signal.SIGCONT)
        status = self.status()
        self.assertEqual(status["term"], 1)
        self.assertEqual([r["phase"] for r in status["meshes"][0]["ranks"]], ["running"] * 4, self.supervisor_log())
        self.write("go", "")
        done, _ = self.end_of(run, 0, "succeeded")
        self.assertNotIn("host.lost", done.err)
        self.assertEqual(done.out.count("] last "), 4)

    def test_a_daemon_that_hangs_is_replaced_and_no_rank_ends(self):
        run = self.running(COUNT)
        daemon = self.process("daemon", "v1")
        self.freeze(daemon)
        self.wait_gone(daemon)
        harness.wait_for(lambda: self.status()["hosts"][0]["daemon_starts"] == 2, lambda: f"a second: {self.status()}")
        self.write("go", "")
        done, _ = self.end_of(run, 0, "succeeded")
        for rank in range(4):
            prefix = f"[m/{rank}@v{rank // 2 + 1}] "
            lines = [line.removeprefix(prefix) for line in done.out.splitlines() if line.startswith(prefix)]
            self.assertEqual(lines, [f"line {i}" for i in range(1, len(lines))] + [f"last {len(lines) - 1}"])

    def test_a_host_whose_keeper_and_daemon_hang_is_lost(self):
        run = self.running(COUNT, supervision=QUICK)
        # Last the keeper's daemon: a keeper that runs would replace it.
        keeper, daemon = self.process("keeper", "v2"), self.process("daemon", "v2")
        self.freeze(keeper)
        self.freeze(daemon)
        done, _ = self.end_of(run, 92, cause={"kind": "host", "host": "v2"})
        self.assertRegex(done.err, r"error host\.lost v2: silent for ")
        self.assertRegex(done.err, r"(?m)^ root cause host v2 was lost: silent for ")

    def test_a_host_whose_keeper_alone_hangs_is_lost(self):
        run = self.running(COUNT, supervision=QUICK)
        self.freeze(self.process("keeper", "v2"))
        self.end_of(run, 92, cause={"kind": "host", "host": "v2"})

    def test_a_guard_that_is_stopped_stalls_nothing(self):
        run = self.running(COUNT)
        guard = self.process("guard")
        self.freeze(guard)
        run.wait_for_out("line 20")
        self.kill(guard, signal.SIGCONT)
        self.write("go", "")
        self.end_of(run, 0, "succeeded")

    def test_a_rank_that_is_stopped_is_killed_by_stop(self):
        run = self.running(COUNT)
        self.signal_by_pid(int(self.read("work", "there.2")), signal.SIGSTOP)
        self.assertEqual(self.monarch("stop").status, 0)
        self.end_of(run, 143, "stopped")


if __name__ == "__main__":
    harness.main()
