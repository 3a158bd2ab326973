"""A rank that the kernel's OOM killer took: it is named so, and nobody else is.

Each job runs in a memory cgroup of its own, of v2 or of v1, whose limit only the rank that takes memory reaches."""

import harness
import jobs
import memory_groups
import recovery

LIMIT = (2000 if harness.SANITIZED else 300) << 20  # the rank is the largest of the group long before it is reached
EATEN_S = 10.0  # until all of it is taken
HUNGRY = "until [ -e eat ]; do nap 0.02; done\nexec python3 -c 'held = []\nwhile True: held.append(b\"x\" * (16 << 20))'"


class Memory(recovery.RecoveryTest):
    def start_in_group(self, spec, *there):
        """Its ranks of these numbers are there."""
        run = self.start_program("/bin/sh", "-c", 'echo 0 > "$1/cgroup.procs" && shift && exec "$@"', "sh", memory_groups.make(self, LIMIT),
                                 harness.MONARCH, "run", spec)
        self.pids = dict(zip(there, self.wait_for_marks("there", there)))
        return run

    def test_the_first_cause_is_named_and_whom_we_killed_then_is_not_called_so(self):
        script = ("trap '' TERM\nmark there\n"
                  "[ $MONARCH_RANK = 1 ] || { " + jobs.FOREVER + " }\n" + HUNGRY)
        spec = self.job(script, hosts=2, slots=1, mesh={"stop": {"grace": "100ms"}})
        run = self.start_in_group(spec, 0, 1)
        self.beside()
        since = self.now()
        self.write("eat", "")
        done = run.finished(60)
        self.end_beside()
        verdict = self.assert_result(done, 137, "failed")
        self.assertEqual(verdict["cause"]["rank"], 1, verdict)
        self.assertEqual(verdict["cause"]["summary"], "killed by SIGKILL (out of memory)", verdict)
        self.assertEqual(verdict["cause"]["end"]["out_of_memory"], True, verdict)
        self.assertIn("root cause m/1 on v2, pid", done.err)
        failed, = self.events("gang.failed")
        self.assert_seen(failed, since, EATEN_S)
        self.assert_stage(failed, r"killed by SIGKILL \(out of memory\).*fail\]$", rank=1)
        ranks = self.status(self.jobs()[-1])["meshes"][0]["ranks"]
        self.assertEqual([rank["end"] for rank in ranks], ["killed by SIGKILL", "killed by SIGKILL (out of memory)"], ranks)
        self.assert_nothing_left()

    def test_it_is_retried_once(self):  # P11; the second time nothing was done since
        spec = self.counting("mark there\n[ $MONARCH_RANK = 0 ] || { echo $MONARCH_GENERATION >> tries\n"
                             "until [ -e eat.$MONARCH_GENERATION ]; do nap 0.02; done\n" + HUNGRY + "; }\n" + recovery.COUNT, slots=1)
        run = self.start_in_group(spec, 0, 1)
        since = self.now()
        self.write("eat", "")
        self.write("eat.1", "")
        failed = self.wait_for_event("gang.failed")
        self.assert_seen(failed, since, EATEN_S)
        self.assert_stage(failed, r"\[out of memory: retried once: restart 1 of 4", rank=1, generation=1)
        self.wait_for_anew([1])
        self.assert_go_on([0])
        since = self.now()
        self.write("eat.2", "")
        done, verdict = self.end_of(run, 137, cause={"rank": 1})
        self.assertEqual(self.read("work", "tries").split(), ["1", "2"], done)
        self.assert_stage(verdict["cause"], "^out of memory again: retried once: fail$", generation=2)
        self.assert_seen(self.events("gang.failed")[-1], since, EATEN_S)


harness.main()
