"""A rank that is killed is started again with its gang, in place and within its budget; other gangs do not notice."""

import re
import signal

import harness
import jobs

# A rank says and marks each generation of its that runs, and waits: once it is marked it may be killed.
SCRIPT = ("echo $MONARCH_RANK: generation $MONARCH_GENERATION, restart $TORCHELASTIC_RESTART_COUNT, port $MASTER_PORT\n"
          "mark up-$MONARCH_GENERATION\n" + jobs.FOREVER)


class Recovery(jobs.JobTest):
    def run_gangs(self, budget):
        spec = self.job(SCRIPT, mesh={"gang": "host"}, supervision={"restart": {"max": budget}})
        run = self.start("run", spec)
        return run, self.wait_for_marks("up-1", 4)

    def ranks(self):
        return {rank["rank"]: rank for rank in self.status()["meshes"][0]["ranks"]}

    def test_a_gang_is_started_again_in_place_and_the_other_is_left_alone(self):
        run, pids = self.run_gangs(2)
        self.signal_by_pid(pids[0], signal.SIGSEGV)
        again = self.wait_for_marks("up-2", [0, 1])
        self.assertEqual(set(again) & set(pids), set())
        harness.wait_for(lambda: self.ranks()[1]["phase"] == "running", lambda: self.ranks())
        ranks = self.ranks()
        self.assertEqual([ranks[rank]["pid"] for rank in (2, 3)], pids[2:])
        self.assertEqual([ranks[rank]["generation"] for rank in range(4)], [2, 2, 1, 1])
        self.assertEqual(self.marks("up-2"), [0, 1])
        self.monarch("stop")
        done, _ = self.end_of(run, 143, "stopped")
        said = [line for line in done.out.splitlines() if line.startswith("[m/0@v1]")]
        self.assertEqual([re.sub(r".*?(generation \d, restart \d).*", r"\1", line) for line in said],
                         ["generation 1, restart 0", "generation 2, restart 1"])
        self.assertNotEqual(*[line.rpartition(" ")[2] for line in said])
        self.assertRegex(done.err, r"m/0 on v1 \(pid \d+\): killed by SIGSEGV.* \[restart 1 of 2 in 10m, at once; then: "
                                   r"restart 2\]")
        logs = self.monarch("logs", "last", "--rank", "0", "--no-prefix")
        self.assertEqual([line[3:15] for line in logs.out.splitlines()], ["generation 1", "generation 2"], logs)

    def test_a_spent_budget_ends_the_job_with_the_last_first_cause(self):
        run, pids = self.run_gangs(1)
        self.signal_by_pid(pids[3], signal.SIGSEGV)
        self.signal_by_pid(self.wait_for_marks("up-2", [2, 3])[1], signal.SIGBUS)
        self.end_of(run, 128 + signal.SIGBUS,
                    cause={"rank": 3, "generation": 2, "rule": "restart: 1 of 1 in 10m are spent: fail"})
        self.assertEqual(self.marks("up-2"), [2, 3])


if __name__ == "__main__":
    harness.main()
