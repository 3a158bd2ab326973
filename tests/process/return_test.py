"""The supervisor's own death: its guard starts it again, it takes its ranks over as they are, and the job goes on.

Ranks write a step every 20 ms into a file of their own: they keep their processes, and step all the while.
"""

import fcntl
import os
import shutil
import signal
import struct
import time

import harness
import jobs
import recovery
import tap

# Steps until `go` exists, each one a line of output and of a file; then the last one.
STEPS = ("i=0; mark there\nuntil [ -e go ]; do i=$((i+1)); step $i; echo line $i; nap 0.02; done\n"
         "echo last $i\n")
QUICK = {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "1s", "lease": "2s", "orphan_ttl": "20s"}


ADOPTED_S = 8.0  # from the death of a supervisor, or its guard's going on, until the next has heard of all hosts
AS_THEY_ARE = r"^\d hosts have answered within \S+; 4 ranks go on$"


class ReturnTest(recovery.RecoveryTest):
    def stepping(self, name="run", **keys):
        run = self.start(name, self.job(STEPS, mesh={"stop": {"grace": "1s"}}, **keys))
        self.pids = dict(enumerate(self.wait_for_marks("there", 4)))
        harness.wait_for(lambda: self.status()["phase"] == "running", self.status)
        return run

    def steps(self):
        return [self.count_in(f"step.{rank}") for rank in range(4)]

    def ranks(self):
        return [(r["phase"], r["generation"], r["pid"]) for r in self.status()["meshes"][0]["ranks"]]

    def kill_supervisor(self):
        supervisor = self.process("supervisor")
        self.kill(supervisor)
        return supervisor

    def wait_for_adoption(self, times=1):
        """Until it is told for this many times that every host has answered; the last of these events."""
        return harness.wait_for(lambda: self.events("supervisor.adopted")[times - 1:], self.supervisor_log)[0]

    def assert_adopted(self, since):
        """In time, and as they are."""
        adopted = self.wait_for_adoption()
        self.assert_seen(adopted, since, ADOPTED_S)
        self.assert_stage(adopted, AS_THEY_ARE)


class Return(ReturnTest):
    def assert_untouched(self, ranks):
        """No rank of these was stopped, started or moved, and each is at work."""
        self.assertEqual(self.ranks(), ranks)
        self.assert_go_on(range(4))
        self.assert_nothing_done()

    def test_all_ranks_are_taken_over_and_the_job_goes_on(self):  # V01
        run = self.stepping()
        ranks = self.ranks()
        since = self.now()
        self.kill_supervisor()
        self.assert_adopted(since)
        self.assert_untouched(ranks)
        returned, = self.events("supervisor.returned")
        self.assertIn("as term 2; 4 ranks on 2 hosts are taken over as they are", returned["message"])
        done, _ = self.end_well(run)
        self.assertIn("monarch: connected again\n", done.err)
        for rank in range(4):
            prefix = f"[m/{rank}@v{rank // 2 + 1}] "
            lines = [line.removeprefix(prefix) for line in done.out.splitlines() if line.startswith(prefix)]
            self.assertEqual(lines, [f"line {i}" for i in range(1, len(lines))] + [f"last {len(lines) - 1}"])

    def test_four_times_in_a_row(self):
        run = self.stepping()
        ranks = self.ranks()
        for life in range(1, 5):
            self.kill_supervisor()
            self.wait_for_adoption(life)
        self.assert_untouched(ranks)
        self.end_well(run)

    def test_the_sixth_death_in_ten_minutes_ends_the_job(self):
        self.stepping(supervision=QUICK)
        job, = self.jobs()
        guard = self.process("guard")
        for life in range(1, 6):
            self.kill_supervisor()
            self.wait_for_adoption(life)
        self.kill_supervisor()
        self.wait_gone(guard)
        self.assertEqual([j["life"] for j in self.monarch("ps", "--all", "--json").json()], ["abandoned"])

    def test_a_rank_that_ended_meanwhile_is_seen_with_its_end(self):
        run = self.stepping()
        pid = self.pids[2]
        guard = self.process("guard")
        self.kill(guard, signal.SIGSTOP)  # nobody starts a supervisor
        self.kill_supervisor()
        self.signal_by_pid(pid)
        self.kill(guard, signal.SIGCONT)
        self.end_of(run, 137, cause={"rank": 2, "host": "v2", "pid": pid})

    def test_a_host_that_was_lost_meanwhile_is_seen(self):
        run = self.stepping()
        guard, keeper = self.process("guard"), self.process("keeper", "v2")
        self.kill(guard, signal.SIGSTOP)
        self.kill_supervisor()
        self.kill(keeper)
        self.kill(guard, signal.SIGCONT)
        self.end_of(run, 92, cause={"kind": "host", "host": "v2"})

    def test_a_job_that_is_stopping_goes_on_stopping(self):
        run = self.start("run", self.job("trap 'mark term; sleep 1; exit 0' TERM\nmark there\n" + jobs.FOREVER))
        self.wait_for_marks("there", 4)
        stop = self.start("stop")
        self.wait_for_marks("term", 4)
        self.kill_supervisor()
        self.assertEqual(stop.wait(), 0, stop)
        self.end_of(run, 143, "stopped")

    def test_viewers_go_on(self):
        self.stepping("up").wait()
        attached, logs = self.start("attach"), self.start("logs", "-f")
        attached.wait_for_out(r"\] line")
        logs.wait_for_out("line")
        self.kill_supervisor()
        self.wait_for_adoption()
        self.write("go", "")
        self.assertIn("] last ", self.end_of(attached, 0, "succeeded")[0].out)
        self.assertEqual(logs.wait(), 0, logs)
        self.assertEqual(logs.out.count("last "), 4)

    def test_hosts_that_were_being_launched_are_launched_again(self):
        # The first worker of v2 never tells its key.
        held = self.path("work", "held")
        worker = self.write("worker", "#!/bin/sh\n"
                            f"case \"$*\" in *\"--host v2\") mkdir {held} 2>/dev/null && exec sleep 600;; esac\n"
                            f"exec {harness.WORKER} \"$@\"\n", mode=0o755)
        run = self.start("run", self.job(STEPS), env={"MONARCH_WORKER": worker})
        harness.wait_for(lambda: os.path.exists(held), self.processes)
        self.kill_supervisor()
        self.pids = self.wait_for_marks("there", 4)
        self.end_well(run)

    def test_a_torn_last_record_costs_nothing(self):  # S04
        run = self.stepping()
        ranks = self.ranks()
        guard, supervisor = self.process("guard"), self.process("supervisor")
        self.kill(guard, signal.SIGSTOP)
        self.kill(supervisor)
        self.wait_gone(supervisor)
        journal = self.job_file("journal.0001")
        with open(journal, "ab") as file:  # what a crash may leave of a record that was being written
            file.write(b"\x4d\x52\x45\x43 half a record")
        since = self.now()
        self.kill(guard, signal.SIGCONT)
        self.assert_adopted(since)
        self.assert_untouched(ranks)
        self.end_well(run)


class Resume(ReturnTest):
    """`monarch up --resume`: the guard is gone, too."""

    assert_untouched = Return.assert_untouched

    def crash(self):
        """Ends guard and supervisor, and waits until both are gone; the job's id."""
        job, = self.jobs()
        guard, supervisor = self.process("guard"), self.process("supervisor")
        self.kill(guard)
        self.kill(supervisor)
        self.wait_gone(guard)
        self.wait_gone(supervisor)
        return job

    def test_what_lives_is_taken_over_and_goes_on(self):
        self.stepping("up").wait()
        ranks = self.ranks()
        job = self.crash()
        done = self.monarch("up", "--resume", job)
        self.assertEqual((done.status, done.out), (0, f"{job}\n"), done)
        self.wait_for_adoption()
        self.assert_untouched(ranks)
        self.write("go", "")
        self.assertEqual(self.monarch("wait", job).status, 0)
        self.assert_nothing_left()

    def test_a_host_that_ended_meanwhile_is_seen(self):
        self.stepping("up").wait()
        keeper = self.process("keeper", "v2")
        job = self.crash()
        self.kill(keeper)
        self.wait_gone(keeper)
        self.monarch("up", "--resume", job)
        self.assertEqual(self.monarch("wait", job).status, 92)
        self.assertEqual(self.verdict()["cause"]["host"], "v2")
        self.assert_nothing_left()

    def test_ranks_held_since_their_lease_ended_go_on(self):
        self.stepping("up", supervision=QUICK).wait()
        ranks = self.ranks()
        job = self.crash()
        done = self.monarch("up", "--resume", job)
        self.assertEqual(done.status, 0, done)
        self.wait_for_adoption()
        self.assert_untouched(ranks)
        self.assertEqual(self.monarch("stop", job).status, 0)
        self.assert_nothing_left()

    def test_ranks_whose_lease_ended_before_somebody_resumes_them_were_held_and_go_on(self):  # V02
        # A spare could have taken their place: so their lease is no longer than it says.
        spare = {"launch": {"local": {"hosts": 3, "spares": 1}}, "supervision": {**QUICK, "reallocate": {"max": 4}, "orphan": "hold"}}
        self.stepping("up", **spare).wait()
        ranks = self.ranks()
        job = self.crash()
        since, seen = time.monotonic(), None
        while seen != (now := self.steps()):  # held: half a second without a step of any
            seen = now
            recovery.after(0.5)
        self.assertLess(time.monotonic() - since, 10)
        since = self.now()
        self.assertEqual(self.monarch("up", "--resume", job).status, 0)
        self.assert_adopted(since)
        # A host may have answered before it let its ranks go on.
        harness.wait_for(lambda: self.ranks() == ranks, self.supervisor_log)
        self.assert_untouched(ranks)
        self.assertEqual(self.monarch("stop", job).status, 0)
        self.assert_nothing_left()

    @tap.takes(1)
    def test_a_job_whose_start_the_journal_has_forgotten_is_not_waited_for(self):
        # Enough records for a snapshot: what it covers is dropped when there is much of it.
        ended = "[ $MONARCH_RANK = 0 ] || until [ -e out ]; do nap 0.5; done\n[ $MONARCH_RANK = 0 ] || exit 0\n"
        self.monarch("up", self.job(ended + jobs.FOREVER, hosts=1, slots=400))
        self.write("out", "")
        job, = self.jobs()
        harness.wait_for(lambda: os.path.exists(self.job_file("journal.0002")) and os.path.exists(self.job_file("snap")), self.supervisor_log)
        self.crash()
        os.unlink(self.job_file("journal.0001"))
        self.assertEqual(self.events("job.running"), [])
        done = self.monarch("up", "--resume", job)
        self.assertEqual((done.status, done.out), (0, f"{job}\n"), done)
        self.assertEqual(self.status()["phase"], "running")
        self.assertEqual(self.monarch("stop", job).status, 0)
        self.assert_nothing_left()

    def test_who_holds_the_job_is_named(self):
        self.stepping("up").wait()
        job, = self.jobs()
        supervisor = self.process("supervisor")
        done = self.monarch("up", "--resume", job)
        self.assertEqual(done.status, 75, done)
        self.assertRegex(done.err, rf"another supervisor holds .*: pid {supervisor.pid} on \S+, since \d{{4}}-")
        self.assert_go_on(range(4))
        self.assertEqual(self.monarch("stop", job).status, 0)
        self.assert_nothing_left()

    def test_a_guard_that_has_yet_to_start_the_next_supervisor_is_named(self):
        run = self.stepping()
        ranks = self.ranks()
        job, = self.jobs()
        guard, supervisor = self.process("guard"), self.process("supervisor")
        self.kill(guard, signal.SIGSTOP)
        self.kill(supervisor)
        self.wait_gone(supervisor)
        done = self.monarch("up", "--resume", job)
        self.assertEqual(done.status, 75, done)
        self.assertRegex(done.err, rf"a guard holds {self.path('state', 'jobs', job)}, pid {guard.pid} on \S+, since \d{{4}}-")
        self.assertIn(f"kill -CONT {guard.pid}", done.err)
        # Nobody calls it abandoned meanwhile.
        self.assertEqual([(j["job"], j["life"]) for j in self.monarch("ps", "--json").json()], [(job, "live")])
        status = self.monarch("status", job)
        self.assertRegex(status.err, rf"its guard \(pid {guard.pid} on \S+\) starts the next: this is what the journal says")
        self.assertNotIn(f"{job} has neither a supervisor", self.monarch("doctor", timeout=60).out)
        self.kill(guard, signal.SIGCONT)
        self.wait_for_adoption()
        self.assert_untouched(ranks)
        self.end_well(run)

    def test_a_copy_of_the_jobs_folder_is_no_supervisors_unless_by_force(self):
        self.stepping("up").wait()
        ranks = self.ranks()
        job = self.crash()
        shutil.copytree(self.path("state"), self.path("copy"))
        copy = {"MONARCH_STATE_DIR": self.path("copy")}
        refused = self.monarch("up", "--resume", job, env=copy)
        self.assertEqual(refused.status, 75, refused)
        self.assertIn(f"the job was started in {self.path('state', 'jobs', job)}, and this is another directory", refused.err)
        self.assertIn("--force-takeover", refused.err)
        forced = self.monarch("up", "--resume", job, "--force-takeover", env=copy)
        self.assertEqual(forced.status, 0, forced)
        status = self.monarch("status", "--json", job, env=copy).json()[0]
        self.assertEqual([(r["phase"], r["generation"], r["pid"]) for r in status["meshes"][0]["ranks"]], ranks)
        self.assertEqual(self.monarch("stop", job, env=copy).status, 0)

    # Both journals go on from the same term: equal terms would be obeyed from either of them.
    def test_who_was_left_behind_by_force_is_obeyed_by_no_worker(self):
        self.stepping("up").wait()
        job = self.crash()
        shutil.copytree(self.path("state"), self.path("copy"))
        copy = {"MONARCH_STATE_DIR": self.path("copy")}
        self.assertEqual(self.monarch("up", "--resume", job, "--force-takeover", env=copy).status, 0)
        harness.wait_for(lambda: "supervisor.adopted" in self.monarch("events", job, env=copy).out,
                         "the workers' promises to who took the job over")
        ranks = self.ranks_of(copy, job)
        self.kill_all([self.process(role) for role in ("guard", "supervisor")])
        self.monarch("up", "--resume", job)  # the workers' word may come before or after it is ready
        harness.wait_for(lambda: "has promised term 1000001" in self.supervisor_log(), self.supervisor_log)
        harness.wait_for(lambda: not self.processes_of("supervisor"), self.supervisor_log)
        self.assertEqual(self.monarch("up", "--resume", job, env=copy).status, 0)
        self.assertEqual(self.ranks_of(copy, job), ranks)
        self.assertEqual(self.monarch("stop", job, env=copy).status, 0)

    def ranks_of(self, state, job):
        status = self.monarch("status", "--json", job, env=state).json()[0]
        return [(r["phase"], r["generation"], r["pid"]) for r in status["meshes"][0]["ranks"]]

    def test_no_flag_is_dropped_in_silence(self):
        self.stepping("up").wait()
        job = self.crash()
        for flags in (["-f", "other.yaml"], ["--set", "job=other"], ["-n", "3"], ["-H", "v1"], ["--launch", "local"],
                      ["--save", "saved.yaml"], ["--mesh", "m"], ["--accept-new"]):
            done = self.monarch("up", "--resume", job, *flags)
            self.assertEqual(done.status, 2, done)
            self.assertIn(f"error[E0903]: `{flags[0]}` is for ", done.err)
            self.assertIn(f"monarch up --resume {job}\n", done.err)
        done = self.monarch("up", "--resume", job, env={"MONARCH_OPT_LAUNCH": "local"})
        self.assertEqual(done.status, 2, done)
        self.assertIn("`MONARCH_OPT_LAUNCH` is for a spec", done.err)
        self.assertEqual(self.processes_of("guard"), [])
        self.assertEqual(self.monarch("up", "--resume", job).status, 0)
        self.assertEqual(self.monarch("stop", job).status, 0)
        self.assert_nothing_left()

    def test_a_job_that_has_ended_is_not_resumed(self):
        self.monarch("run", self.job("exit 3", hosts=1, slots=1))
        job, = self.jobs()
        done = self.monarch("up", "--resume", job)
        self.assertEqual(done.status, 2, done)
        self.assertIn(f"{job} has ended, with exit code 3", done.err)

    def test_a_job_that_has_ended_is_not_resumed_while_somebody_still_holds_it(self):
        # As its supervisor does for a moment after it has told of the end.
        self.monarch("run", self.job("exit 3", hosts=1, slots=1))
        job, = self.jobs()
        harness.wait_for(lambda: not self.processes_of("supervisor") and not self.processes_of("guard"), "the end of both")
        with open(self.job_file("lock"), "r+b") as lock:
            fcntl.fcntl(lock, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
            done = self.monarch("up", "--resume", job)
        self.assertEqual(done.status, 2, done)
        self.assertIn(f"{job} has ended, with exit code 3", done.err)


if __name__ == "__main__":
    harness.main()
