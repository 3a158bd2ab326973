"""A script that Slurm runs again looks for what the run before has left. Slurm itself is not needed for that: tests/cluster has it."""

import re

import harness
import jobs

AGAIN = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h1", "SLURM_JOB_CPUS_PER_NODE": "1", "SLURM_RESTART_COUNT": "1", "PATH": "/nonexistent"}


class Requeued(jobs.JobTest):
    def left(self, code):
        """A job of before, of which nobody can tell any more where it ran."""
        self.assertEqual(self.monarch("run", self.job(f"exit {code}\n", hosts=1, slots=1, supervision={"restart": {"max": 0}})).status, code)
        with open(self.job_file("spec.yaml"), "w", encoding="utf-8") as file:
            file.write("version: 1\njob: of another version\n")

    def again(self):
        done = self.monarch("run", self.job("true\n", hosts=1, slots=1, launch={"slurm": {"on_preempt": "requeue"}}), env=AGAIN)
        return re.search(r"monarch: whether (\S+) is of the run before of job 7 of Slurm, and has what to go on from, its spec does not tell: .*\n", done.err), done

    def test_says_of_which_job_it_cannot_tell(self):
        self.left(3)
        before, = self.jobs()
        note, done = self.again()
        self.assertTrue(note, done)
        self.assertEqual(note[1], before)
        self.assertEqual(len(self.jobs()), 2, "and a new job begins")

    def test_has_nothing_to_say_of_one_that_ended_well(self):
        self.left(0)
        note, done = self.again()
        self.assertFalse(note, done)
        self.assertEqual(len(self.jobs()), 2, done)


if __name__ == "__main__":
    harness.main()
