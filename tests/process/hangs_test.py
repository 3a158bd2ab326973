"""Ranks that stand still or make no progress (P06-P10): seen soon, named rightly, ended where the spec says so."""

import os
import signal
import time

import harness
import jobs
import recovery
import talking_test

# Steps ten times a second until `stuck.RANK` is there, which stops the first generation alone; then it does what HOW says.
STEPS = ("import threading\nstep = 0\nmark('there')\n"
         "while os.environ['MONARCH_GENERATION'] != '1' or not os.path.exists('stuck.' + rank):\n  monarch.step(step); step += 1\n"
         "  mark('step', step); time.sleep(0.1)\n")
DEADLOCK = STEPS + "lock = threading.Lock()\nlock.acquire()\nlock.acquire()\n"
LIVELOCK = STEPS + "while True: pass\n"
RESTART = {"hang": {"action": "restart", "phases": {"step": "3s"}}}
AGAIN = {**RESTART, "restart": {"max": 1}}
# With a limit for steps, too, one of the two would be named.
STILL = {"hang": {"action": "restart"}, "restart": {"max": 1}}
GANGS = {"gang": "host", "stop": {"grace": "1s"}}


def text_of(path):
    with open(path, encoding="ascii") as file:
        return file.read()


class HangTest(talking_test.TalkingTest, recovery.RecoveryTest):
    def running(self, script=DEADLOCK, **keys):
        """Two gangs of one rank that have both said a step; the command."""
        run = self.start("run", self.python_job(script, hosts=2, mesh=GANGS, **keys))
        for rank in (0, 1):
            self.wait_for_rank(lambda r: r["progress"] and r["progress"]["step"], number=rank)
        self.pids = {rank: self.pid_of(rank) for rank in (0, 1)}
        return run

    def assert_comes_back(self, run, rank, rule):
        """The gang of this rank starts again in place, as another process; the other's is the one of the start, and steps on."""
        failed = self.wait_for_event("gang.failed")
        self.assert_stage(failed, rule + r".*\[restart 1 of 1 in 10m, at once; then: fail\]", rank=rank, generation=1)
        self.wait_for_anew([rank])
        self.assert_go_on([1 - rank])
        where = {r["rank"]: (r["host"], r["generation"]) for r in self.status()["meshes"][0]["ranks"]}
        self.assertEqual(where, {rank: (f"v{rank + 1}", 2), 1 - rank: (f"v{2 - rank}", 1)})
        self.stop(run)

    def step_of(self, rank):
        return self.count_in(f"step.{rank}")

    def assert_steps(self, rank):
        """This rank goes on."""
        before = self.step_of(rank)
        harness.wait_for(lambda: self.step_of(rank) > before + 2, lambda: f"rank {rank} to step on from {before}")

    def pid(self, rank):
        return self.rank(rank)["pid"]


class Standstills(HangTest):
    def test_a_rank_that_is_stopped_is_told_of_at_once_and_goes_on_where_it_was(self):
        run = self.running()
        pid, since = self.pid(0), self.now()
        self.signal_by_pid(pid, signal.SIGSTOP)
        event = self.wait_for_event("rank.stopped")
        self.assert_seen(event, since)
        self.assertEqual((event["rank"], event["pid"], event["host"]), (0, pid, "v1"))
        self.assertIn("is stopped by a signal; nothing is done about it", event["message"])
        rank = self.wait_for_rank(lambda r: r["standstill"] == "stopped")
        self.assertEqual(rank["phase"], "suspended")
        self.assert_steps(1)
        self.signal_by_pid(pid, signal.SIGCONT)
        self.assertIn("goes on, after ", self.wait_for_event("rank.continued")["message"])
        self.assert_steps(0)
        self.assertEqual(self.pid(0), pid)
        self.stop(run)

    def test_a_rank_that_is_frozen_with_its_cgroup_is_told_of(self):
        run = self.running()
        folder = self.own_cgroup_of(0, run)
        self.freeze(folder, "1")
        try:
            self.assertIn("is frozen with its cgroup", self.wait_for_event("rank.stopped")["message"])
            self.assertEqual(self.wait_for_rank(lambda r: r["standstill"] == "frozen")["phase"], "suspended")
            self.assert_steps(1)
        finally:
            self.freeze(folder, "0")
        self.wait_for_event("rank.continued")
        self.assert_steps(0)
        self.stop(run)

    def test_a_stopped_rank_is_started_again_where_the_spec_asks_for_that(self):  # P06
        run = self.running(supervision=STILL)
        since = time.monotonic(), self.now()
        self.signal_by_pid(self.pid(1), signal.SIGSTOP)
        self.assert_seen(self.wait_for_event("rank.hung"), since[1], 6.0)
        self.assertGreater(time.monotonic() - since[0], 2.5)  # a person who looks for a moment costs nothing
        self.assert_comes_back(run, 1, "made no progress: it has been stopped by a signal for ")

    def test_a_frozen_rank_is_started_again_where_the_spec_asks_for_that(self):  # P07
        run = self.running(supervision=STILL)
        folder, since = self.own_cgroup_of(0, run), self.now()
        self.freeze(folder, "1")
        self.assert_seen(self.wait_for_event("rank.hung"), since, 10.0)
        self.assert_comes_back(run, 0, "made no progress: it has been frozen with its cgroup for ")

    def test_what_monarch_signal_stops_is_left_alone(self):
        run = self.running(supervision=RESTART)
        self.assertEqual(self.monarch("signal", "demo", "STOP", "--rank", "0").status, 0)
        self.wait_for_rank(lambda r: r["phase"] == "suspended" and not r["watched"])
        since = time.monotonic()
        harness.wait_for(lambda: time.monotonic() > since + 6, "twice the limit of a step")
        self.assertEqual(self.monarch("signal", "demo", "CONT", "--rank", "0").status, 0)
        self.assert_steps(0)
        self.assertEqual(self.events("rank.hung"), [])
        self.stop(run)

    def own_cgroup_of(self, rank, run):
        folder = self.cgroup_of(self.pid(rank))
        if folder is None:
            self.stop(run)
            self.skipTest("no cgroup v2 can be written here")
        return folder

    def cgroup_of(self, pid):
        """The folder of the v2 hierarchy that a rank is in, if that is its own."""
        lines = text_of(f"/proc/{pid}/cgroup").splitlines()
        path = next((line[3:] for line in lines if line.startswith("0::")), "/")
        mounts = [line.split() for line in text_of("/proc/self/mountinfo").splitlines()]
        point = next((words[4] for words in mounts if words[words.index("-") + 1] == "cgroup2"), None)
        folder = point and point + path
        return folder if folder and "monarch-" in path and os.access(f"{folder}/cgroup.freeze", os.W_OK) else None

    def freeze(self, folder, value):
        with open(f"{folder}/cgroup.freeze", "w", encoding="ascii") as file:
            file.write(value)


class Progress(HangTest):
    def test_a_deadlock_ends_the_job_where_no_restart_is_left(self):  # P08
        run = self.running(supervision=RESTART)
        since = self.now()
        self.write("stuck.1", "")
        self.assert_go_on([0])  # as long as nobody knows
        event = self.wait_for_event("rank.hung")
        self.assert_seen(event, since, 7.0)
        self.assertEqual((event["rank"], event["host"]), (1, "v2"))
        self.assertRegex(event["message"], r"no word of it for \d.* in phase step, step \d+ \(the limit is 3s, as written\)")
        _, verdict = self.end_of(run, 1, cause={"kind": "rank", "rank": 1, "host": "v2"})
        self.assert_stage(verdict["cause"], ": fail$", generation=1)

    def starts_again(self, script):
        run = self.running(script, supervision=AGAIN)
        since = self.now()
        self.write("stuck.0", "")
        event = self.wait_for_event("rank.hung")
        self.assertEqual(event["rank"], 0)
        self.assert_seen(event, since, 7.0)
        self.assert_comes_back(run, 0, r"made no progress: no word of it for \d.* in phase step")

    def test_a_deadlock_starts_the_gang_again_after_the_written_time(self):  # P08
        self.starts_again(DEADLOCK)

    def test_a_livelock_starts_the_gang_again_as_a_deadlock_does(self):  # P09
        self.starts_again(LIVELOCK)

    def test_who_is_held_is_not_watched_until_it_is_released(self):
        run = self.running(supervision=RESTART)
        done = self.monarch("hold", "demo", "--rank", "0")
        self.assertEqual((done.status, done.err), (0, ""), done)
        self.assertRegex(done.out, r"^demo-\w+: 1 rank not watched for hangs until monarch hold --release\n$")
        self.write("stuck.0", "")
        since = time.monotonic()
        harness.wait_for(lambda: time.monotonic() > since + 6, "twice the limit of a step")
        self.assertEqual(self.events("rank.hung"), [])
        self.assertFalse(self.rank(0)["watched"])
        self.assertEqual(self.monarch("hold", "demo", "--release").status, 0)
        self.assertEqual(self.wait_for_event("rank.hung")["rank"], 0)
        self.end_of(run, 1, cause={"kind": "rank", "rank": 0, "host": "v1"})

    def test_what_somebody_holds_or_stopped_is_left_alone_by_the_next_supervisor_too(self):
        run = self.running(supervision=RESTART)
        self.assertEqual(self.monarch("hold", "demo", "--rank", "0").status, 0)
        self.assertEqual(self.monarch("signal", "demo", "STOP", "--rank", "1").status, 0)
        self.wait_for_rank(lambda r: r["phase"] == "suspended", number=1)
        self.kill(self.process("supervisor"))
        self.wait_for_event("supervisor.adopted")
        self.write("stuck.0", "")
        since = time.monotonic()
        harness.wait_for(lambda: time.monotonic() > since + 6, "twice the limit of a step")
        self.assertEqual(self.events("rank.hung"), [])
        self.assertEqual([self.rank(r)["watched"] for r in (0, 1)], [False, False])
        self.assertEqual(self.monarch("signal", "demo", "CONT", "--rank", "1").status, 0)
        self.assert_steps(1)
        self.assertEqual({r: self.pid(r) for r in (0, 1)}, self.pids)
        self.assertEqual(self.monarch("hold", "demo", "--release").status, 0)
        self.assertEqual(self.wait_for_event("rank.hung")["rank"], 0)
        self.end_of(run, 1, cause={"kind": "rank", "rank": 0, "host": "v1"})

    def test_a_slow_rank_and_a_stopped_supervisor_are_no_hang(self):
        slow = ("step = 0\nmark('there')\n"
                "while True:\n  monarch.step(step); step += 1\n  mark('step', step)\n"
                "  time.sleep(1.5 if rank == '0' else 0.1)\n")
        run = self.running(slow, supervision=RESTART)
        supervisor = self.process("supervisor")
        self.kill(supervisor, signal.SIGSTOP)
        since = time.monotonic()
        harness.wait_for(lambda: time.monotonic() > since + 6, "twice the limit of a step")
        self.kill(supervisor, signal.SIGCONT)
        self.assert_steps(0)
        self.assertEqual(self.events("rank.hung"), [])
        self.stop(run)

    def test_a_program_that_says_nothing_is_never_ended(self):
        run = self.start("run", self.job("mark there\n" + jobs.FOREVER, supervision=RESTART, mesh={"stop": {"grace": "1s"}}))
        self.wait_for_marks("there", 4)
        since = time.monotonic()
        harness.wait_for(lambda: time.monotonic() > since + 6, "twice the limit of a step")
        self.assertEqual([r["phase"] for r in self.status()["meshes"][0]["ranks"]], ["running"] * 4)
        self.stop(run)


if __name__ == "__main__":
    harness.main()
