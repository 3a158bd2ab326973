"""configs/hello.yaml, as the README shows it, and its kin: every rank speaks, the job exits 0, and nothing is left."""

import os
import re

import harness
import jobs

HELLO = os.path.join(harness.ROOT, "configs", "hello.yaml")
LINES = [f"hello from rank {rank} of 4 on host {rank // 2}" for rank in range(4)]
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


class Hello(jobs.JobTest):
    def test_every_rank_speaks_and_the_job_exits_0(self):
        done = self.monarch("run", HELLO)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(sorted(done.out.splitlines()),
                         [f"[greeters/{rank}@v{rank // 2 + 1}] {line}" for rank, line in enumerate(LINES)])
        job, = self.jobs()
        states = "".join(rf"{TIME} {state}\n" for state in (
            rf"job\.starting {job}: starting on 2 hosts", r"host\.ready v[12]: worker is connected",
            r"host\.ready v[12]: worker is connected", r"gang\.starting greeters: gang 0 is starting, generation 1",
            # A rank may end before or after the supervisor has put it down as running.
            r"gang\.running greeters: gang 0 is running",
            r"(gang\.done greeters: gang 0 is done|job\.running .*: every mesh is ready)",
            r"(gang\.done greeters: gang 0 is done|job\.running .*: every mesh is ready)",
            r"job\.ended ended with exit code 0: every rank ended with exit code 0"))
        self.assert_output(done, 0, re.compile("(?s:.*)"), re.compile(
            rf"monarch: job {job} from .*/hello\.yaml\n{states} result +succeeded \(exit 0\) .*\n"))
        self.assert_nothing_left()

    def test_json_types_every_line(self):
        done = self.monarch("run", "--json", HELLO)
        self.assert_result(done, 0, "succeeded")
        lines = done.json()
        self.assertEqual({line["v"] for line in lines}, {1})
        output = [line for line in lines if line["type"] == "output"]
        self.assertEqual(sorted((o["mesh"], o["rank"], o["host"], o["generation"], o["stream"], o["line"]) for o in output),
                         [("greeters", rank, f"v{rank // 2 + 1}", 1, "stdout", line) for rank, line in enumerate(LINES)])
        events = [line for line in lines if line["type"] == "event"]
        self.assertEqual([e["number"] for e in events], list(range(1, len(events) + 1)))
        self.assertEqual((events[0]["event"], events[-1]["event"]), ("job.starting", "job.ended"))
        self.assertEqual(lines[-1], self.verdict())
        self.assertEqual(len(output) + len(events) + 1, len(lines))
        self.assert_nothing_left()

    def test_without_prefix_lines_are_as_they_were_written(self):
        done = self.monarch("run", "--no-prefix", "--quiet", HELLO)
        self.assertEqual(sorted(done.out.splitlines()), LINES)
        self.assert_output(done, 0, re.compile("(?s:.*)"), "")
        self.assert_nothing_left()

    def test_64_ranks_on_4_hosts(self):
        done = self.monarch("run", self.job('echo "$RANK of $WORLD_SIZE on $MONARCH_HOST"; echo $RANK >&2', hosts=4, slots=16))
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(sorted(done.out.splitlines()), sorted(
            f"[m/{rank}@v{rank // 16 + 1}] {rank} of 64 on v{rank // 16 + 1}" for rank in range(64)))
        for rank in range(64):
            self.assertIn(f"\n[m/{rank}@v{rank // 16 + 1}] {rank}\n", done.err)
        self.assert_nothing_left()

    def test_the_files_hold_what_was_shown(self):
        self.monarch("run", HELLO)
        for rank, line in enumerate(LINES):
            self.assertEqual(self.log(f"logs/greeters/{rank}.1.out"), line + "\n")
            self.assertEqual(self.log(f"logs/greeters/{rank}.1.err"), "")
        self.assert_nothing_left()

    def test_the_environment_is_what_plan_says(self):
        self.environment.update(SLURM_PROCID="9", OMPI_COMM_WORLD_RANK="9", PMI_RANK="9", WATCHDOG_USEC="9", MY_OWN="kept",
                                CUDA_VISIBLE_DEVICES="")
        spec = self.job("env -0 > env.$RANK", slots=3, mesh={"env": {"ADDED": "value with = and $"}})
        planned = [line for line in self.monarch("plan", "--env", "--json", "--rank", "0-5", spec).json()
                   if line["type"] == "variable"]
        self.assert_result(self.monarch("run", spec), 0, "succeeded")
        job, = self.jobs()
        chosen = {"MONARCH_GENERATION": r"1", "MASTER_PORT": r"\d+", "MONARCH_JOB_ID": job, "TORCHELASTIC_RUN_ID": job,
                  "TORCHELASTIC_ERROR_FILE": "/.*", "MONARCH_JOB_UUID": "[0-9a-f]{32}",
                  "MONARCH_RANK_KEY": r"0\.\d\.1\.1", "NOTIFY_SOCKET": r"/.*/0\.\d\.n",
                  "MONARCH_SOCKET": r"/.*/0\.\d\.s", "MONARCH_EVENTS": r"/.*/0\.\d\.e"}
        masters = set()
        for rank in range(6):
            env = dict(line.split("=", 1) for line in self.read("work", f"env.{rank}").split("\0")[:-1])
            masters.add((env["MASTER_ADDR"], env["MASTER_PORT"]))
            wanted = {line["name"]: line["value"] for line in planned if line["rank"] == rank}
            for name in [line["name"] for line in planned if line["rank"] == rank and line["from"] == "shell"]:
                self.assertIsNone(wanted[name], "a value of the shell may be a secret")
                wanted[name] = self.environment[name]
            for name, value in wanted.items():
                with self.subTest(rank=rank, name=name):
                    self.assertRegex(env[name], rf"\A(?:{chosen.get(name, re.escape(value))})\Z")
            self.assertEqual((env["RANK"], env["LOCAL_RANK"], env["WORLD_SIZE"]), (str(rank), str(rank % 3), "6"))
            self.assertEqual((env["ADDED"], env["MY_OWN"]), ("value with = and $", "kept"))
            for name in ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "WATCHDOG_USEC"):
                self.assertNotIn(name, env)
            # The rank's own shell adds the rest.
            self.assertEqual(set(env) - set(wanted) - {"PWD", "OLDPWD", "SHLVL", "_"}, set())
        self.assertEqual(len(masters), 1, masters)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
