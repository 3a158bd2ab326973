"""A job whose spec says nothing of recovery: what fails is started again, what is lost is replaced, and what cannot work ends soon."""

import re
import signal

import harness
import jobs
import recovery


class Defaults(recovery.RecoveryTest):
    def spec_of(self, script, **keys):
        path = self.job(script, supervision=None, **keys)
        self.assertNotIn("supervision", self.read(path))
        return path

    def last_words(self, kind):
        """The rule of each such event, which stands in brackets at its end."""
        return [re.search(r"\[(.*)\]$", e["message"]).group(1) for e in self.events(kind)]

    def test_a_killed_rank_is_started_again_with_its_gang(self):
        run = self.start("run", self.spec_of("mark up-$MONARCH_GENERATION\n" + recovery.COUNT))
        pids = self.wait_for_marks("up-1", 4)
        self.signal_by_pid(pids[1])
        again = self.wait_for_marks("up-2", 4)
        self.assertEqual(set(again) & set(pids), set())
        done, verdict = self.end_well(run)
        self.assertEqual(self.last_words("gang.failed"), ["restart 1 of 4 in 10m, at once; then: restart 2"])
        self.assertIsNone(verdict["cause"])
        # Nobody has to be told of what acts as it is documented.
        self.assertNotIn("acts as", done.err)

    def test_a_program_that_cannot_work_ends_with_its_code_once_the_budget_is_spent(self):
        run = self.start("run", self.spec_of("[ $MONARCH_RANK = 1 ] && { echo $MONARCH_GENERATION >> tries; exit 1; }\n"
                                             + recovery.COUNT, hosts=1))
        _, verdict = self.end_of(run, 1, cause={"rank": 1, "generation": 5, "summary": "exit code 1",
                                                "rule": "restart: 4 of 4 in 10m are spent: fail"})
        self.assertEqual(self.read("work", "tries").split(), ["1", "2", "3", "4", "5"])
        self.assertEqual(verdict["outcome"], "failed")
        waits = [re.search(r", (?:at once|after (\S+));", words) for words in self.last_words("gang.failed")[:-1]]
        self.assertEqual([wait and bool(wait.group(1)) for wait in waits], [False, True, True, True], waits)

    def test_a_lost_host_is_replaced_by_a_spare(self):
        run = self.start("run", self.spec_of("mark up-$MONARCH_GENERATION\n" + recovery.COUNT,
                                             launch={"local": {"hosts": 3, "spares": 1}}))
        self.wait_for_marks("up-1", 4)
        self.kill(self.process("keeper", "v2"), signal.SIGKILL)
        self.wait_for_marks("up-2", 4)
        self.assertRegex(self.wait_for_event("gang.failed")["message"], r"\[host lost: replacement 1 of 4 in 1h; then: replacement 2\]$")
        self.assertEqual({r["rank"]: r["host"] for r in self.status()["meshes"][0]["ranks"]},
                         {0: "v1", 1: "v1", 2: "v3", 3: "v3"})
        self.end_well(run)

    def test_a_program_without_a_spec_is_started_again(self):
        run = self.start("run", "-n", "1", "--", *jobs.shell("mark up-$MONARCH_GENERATION\n" + recovery.COUNT))
        self.signal_by_pid(self.wait_for_marks("up-1", 1)[0])
        self.wait_for_marks("up-2", 1)
        self.end_well(run)


if __name__ == "__main__":
    harness.main()
