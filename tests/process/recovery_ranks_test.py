"""A rank dies (P01-P05, P16-P18): it is seen at once, its gang starts again in place by the rules, and the other gang never notices."""

import signal

import harness
import jobs
import recovery

RULE = r"\[restart {} of 4 in 10m, at once; then: {}\]"


class Ranks(recovery.RecoveryTest):
    def fails_and_comes_back(self, kill, reason):
        run = self.running()
        since = self.now()
        kill(self.pids[2])
        failed = self.wait_for_event("gang.failed")
        self.assert_seen(failed, since)
        self.assert_stage(failed, reason + r".*\[restart 1 of 4 in 10m, at once; then: restart 2\]", rank=2, host="v2", generation=1)
        self.wait_for_anew([2, 3])
        self.assert_go_on([0, 1])
        # The whole gang, on its host, and nothing else was started again.
        generations = {r["rank"]: (r["generation"], r["host"]) for r in self.status()["meshes"][0]["ranks"]}
        self.assertEqual(generations, {0: (1, "v1"), 1: (1, "v1"), 2: (2, "v2"), 3: (2, "v2")})
        self.end_well(run)

    def test_killed(self):  # P01
        self.fails_and_comes_back(self.signal_by_pid, "killed by SIGKILL")

    def test_of_a_bad_access(self):  # P02
        self.fails_and_comes_back(lambda pid: self.signal_by_pid(pid, signal.SIGSEGV), "killed by SIGSEGV")

    def dies_by_itself(self, command, reason):
        """The first generation of rank 2 does `command` once the file `die` is there."""
        script = ("mark there\nif [ $MONARCH_RANK$MONARCH_GENERATION = 21 ]; then until [ -e die ]; do nap 0.02; done; "
                  + command + "; fi\n" + recovery.COUNT)
        run = self.running(script)
        since = self.now()
        self.write("die", "")
        failed = self.wait_for_event("gang.failed")
        self.assert_seen(failed, since)
        self.assert_stage(failed, reason + r".*\[restart 1 of 4 in 10m, at once; then: restart 2\]", rank=2, host="v2", generation=1)
        self.wait_for_anew([2, 3])
        self.assert_go_on([0, 1])
        done, _ = self.end_well(run)
        return done

    def test_aborting_and_its_last_words_are_kept(self):  # P03
        done = self.dies_by_itself("echo the last words >&2; kill -ABRT $$", "killed by SIGABRT")
        self.assertIn("the last words", done.err)
        self.assertRegex(self.monarch("logs", "last", "--generation", "1", "--rank", "2", "--stderr").out +
                         self.monarch("logs", "last", "--generation", "1", "--rank", "2", "--stderr").err, "the last words")

    def test_with_an_exit_code(self):  # P04
        self.dies_by_itself("exit 1", "exit code 1")

    def test_that_has_no_descriptor_left(self):  # P18
        self.dies_by_itself("ulimit -n 3; : </dev/null || exit 24", "exit code 24")

    def test_again_and_again_until_its_budget_is_spent(self):  # P05
        script = ("mark there\n[ $MONARCH_RANK = 2 ] && { echo $MONARCH_GENERATION >> tries; "
                  "[ $MONARCH_GENERATION != 5 ] || { mark fifth; until [ -e last ]; do nap 0.02; done; }; exit 3; }\n" + recovery.COUNT)
        run = self.running(script, restart={"max": 4, "backoff": "100ms", "jitter": 0})
        self.wait_for_marks("fifth", [2])
        self.assert_go_on([0, 1])
        since = self.now()
        self.write("last", "")
        done, verdict = self.end_of(run, 3, cause={"rank": 2, "summary": "exit code 3"})
        self.assert_seen(self.wait_for_event("gang.failed", 5), since)
        self.assertEqual(self.read("work", "tries").split(), ["1", "2", "3", "4", "5"])
        self.assert_stage(verdict["cause"], r"restart: .*4 of 4 in 10m.* spent: fail")
        told = [e["details"] for e in self.events("gang.failed") if e["rank"] == 2]
        self.assertEqual([(d["remedy"], d["number"], d["of"], d["wait_ms"]) for d in told[:-1]],
                         [("restart", str(i + 1), "4", wait) for i, wait in enumerate(("0", "100", "200", "400"))], told)
        self.assertEqual(told[-1]["remedy"], "fail")
        self.assertIn("then: fail", told[-2]["rule"])
        self.assertEqual([e for e in self.events("gang.failed") if e["rank"] in (0, 1)], [])
        self.assertNotEqual(done.err, "")

    def test_past_where_it_was(self):
        """What a failure cost is told once it is made good: how long that took, and what was done twice."""
        self.write("rank.py", jobs.PYTHON_MARK + "import os, time\nimport monarch_rank as monarch\n"
                   "for step in range(1, 10**9):\n    monarch.step(step)\n    time.sleep(0.02)\n"
                   "    if step == 20: mark('there')\n    if os.path.exists('go'): break\n")
        run = self.start("run", self.program_job(
            ["python3", "rank.py"], hosts=2, slots=1,
            mesh={"gang": "host", "env": {"PYTHONPATH": harness.MODULES, "PYTHONDONTWRITEBYTECODE": "1"}},
            supervision={"restart": {"max": 8}, "reallocate": {"max": 4}}))
        self.wait_for_marks("there", 2)
        self.signal_by_pid(self.pid_of(0))
        past = self.wait_for_event("gang.caught_up")
        furthest = int(next(e["details"]["furthest"] for e in self.events("gang.starting") if e["generation"] == 2))
        self.assertEqual((past["mesh"], past["generation"], past["details"]["gang"]), ("m", 2, "0"))
        self.assertEqual(int(past["details"]["again"]), furthest, past)
        self.assertGreater(int(past["details"]["step"]), furthest)
        self.assertGreater(int(past["details"]["after_ms"]), 20 * furthest)
        self.assertRegex(past["message"], rf"^m: gang 0 is past step {furthest}, where it was, \S+ after it had ended; {furthest} steps")
        time = self.status()["meshes"][0]["rank_milliseconds"]
        self.assertGreater(time["redone"], 15 * furthest, time)
        self.assertGreater(time["new"], 2 * 15 * 20, time)
        self.assertRegex(self.monarch("status").out, r"\n  time .*% new, .*% redone, .*% starting\n")
        # A host that is lost takes nothing of that along.
        self.kill(self.process("keeper", "v2"))
        past = self.wait_for_event("gang.caught_up", 2)
        furthest = int(next(e["details"]["furthest"] for e in self.events("gang.starting")
                            if (e["details"]["gang"], e["generation"]) == ("1", 2)))
        self.assertEqual((past["details"]["gang"], int(past["details"]["again"])), ("1", furthest), past)
        self.assertGreaterEqual(furthest, 20)
        self.write("go", "")
        self.end_of(run, 0, "succeeded")
        self.assertEqual(len(self.events("gang.caught_up")), 2)

    def test_three_times_at_the_same_step(self):  # P05
        self.write("rank.py", jobs.PYTHON_MARK + "import os, sys, time\nimport monarch_rank as monarch\n"
                   "first, generation = os.environ['MONARCH_RANK'] == '0', os.environ['MONARCH_GENERATION']\n"
                   "mark('there')\n"
                   "for step in range(1, 10**9):\n    monarch.step(step)\n    mark('step', step)\n    time.sleep(0.1)\n"
                   "    while step == 5 and first:\n        if generation != '3' or os.path.exists('last'): os._exit(9)\n"
                   "        mark('late')\n        time.sleep(0.02)\n")
        run = self.start("run", self.program_job(
            ["python3", "rank.py"], hosts=2, slots=1,
            mesh={"gang": "host", "env": {"PYTHONPATH": harness.MODULES, "PYTHONDONTWRITEBYTECODE": "1"}},
            supervision={"restart": {"max": 8, "backoff": "0ms"}}))
        self.wait_for_marks("late", [0])
        self.pids = {1: self.pid_of(1)}
        self.assert_go_on([1])
        since = self.now()
        self.write("last", "")
        _, verdict = self.end_of(run, 9, cause={"rank": 0})
        self.assert_stage(verdict["cause"], r"crash 3 in a row at step 5: fail", generation=3)
        failed = self.events("gang.failed")
        self.assert_seen(failed[-1], since)
        self.assertEqual([e["rank"] for e in failed], [0, 0, 0], failed)

    def test_before_it_is_ready(self):  # P16
        script = ("mark there\n[ $MONARCH_RANK$MONARCH_GENERATION = 21 ] && { until [ -e die ]; do nap 0.02; done; exit 4; }\n"
                  "systemd-notify --ready || exit 5\n" + recovery.COUNT)
        if not harness.shutil.which("systemd-notify"):
            script = script.replace("systemd-notify --ready", "PYTHONPATH=" + harness.MODULES +
                                    " python3 -B -c 'import monarch_rank; monarch_rank.ready()'")
        run = self.running(script, mesh={"ready": "notify"})
        self.assert_go_on([0, 1])
        since = self.now()
        self.write("die", "")
        failed = self.wait_for_event("gang.failed")
        self.assert_seen(failed, since)
        self.assert_stage(failed, r"exit code 4.*\[restart 1 of 4", rank=2, generation=1)
        self.wait_for_event("job.running")
        self.wait_for_anew([2, 3])
        self.assert_go_on([0, 1])
        self.end_well(run)

    def test_never_where_its_program_cannot_be_executed(self):  # P17
        self.beside()
        for program, status, why in (["/nonesuch/train"], 127, "No such file"), ([self.write("text", "x\n")], 126, "denied"):
            with self.subTest(program=program):
                since = self.now()
                run = self.start("run", self.program_job(program, hosts=1, slots=1, supervision={"restart": {"max": 4}}))
                finished = run.finished()
                job = self.jobs()[-1]
                self.assertEqual(finished.status, status, finished)
                verdict = self.verdict(job)
                self.assertRegex(verdict["cause"]["summary"], why)
                self.assert_stage(verdict["cause"], "^exec error: fail, no retry$", generation=1)
                failed, = self.events("gang.failed")
                self.assert_seen(failed, since, recovery.START_S)
        self.end_beside()
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
