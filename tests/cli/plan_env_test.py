"""What `plan --env` says of a rank's environment is what the rank then has."""

import re

import harness
import jobs

SHELL = {"SECRET": "s3cret", "PLAIN": "as it is", "SLURM_PROCID": "7", "OMPI_COMM_WORLD_RANK": "3", "GREETING": "of the shell"}


class PlanEnv(jobs.JobTest):
    def test_what_is_planned_is_what_runs(self):
        spec = self.program_job(["/usr/bin/env", "-0"], hosts=2, slots=2,
                                mesh={"env": {"GREETING": "hello"}, "env_pass": ["SECRET"]})
        lines = self.monarch("plan", spec, "--rank", "3", "--json", env=SHELL).json()
        planned = {o["name"]: (o["value"], o["from"]) for o in lines if o["type"] == "variable"}
        text = self.monarch("plan", spec, "--rank", "3", env=SHELL).out
        self.assertNotIn("s3cret", text)
        self.assertNotIn("as it is", text)
        self.assertRegex(text, r"(?m)^  left out, since another launcher set them: OMPI_COMM_WORLD_RANK SLURM_PROCID$")
        done = self.monarch("run", "-q", spec, env=SHELL)
        self.assertEqual(done.status, 0, done)
        has = dict(v.split("=", 1) for v in self.read(self.job_file("logs/m/3.1.out")).split("\0") if v)
        self.assertEqual(sorted(has), sorted(planned), "the names of what ran, and of what was planned")
        shell = {**self.environment, **SHELL}
        for name, (value, source) in planned.items():
            if source == "shell":
                self.assertEqual((value, has[name]), (None, shell[name]), name)
            elif not re.search(r"[(?]", value):  # what only the start can tell is said to be so
                self.assertEqual(has[name], value, name)
        self.assertEqual(planned["GREETING"], ("hello", "env of the spec"))
        self.assertEqual(planned["SECRET"], ("(6 bytes, not shown)", "env_pass"))
        self.assertEqual(planned["MONARCH_RANK_KEY"], ("(chosen at the start)", "worker"))
        self.assertEqual(planned["PLAIN"][1], "shell")
        self.assertNotIn("SLURM_PROCID", planned)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
