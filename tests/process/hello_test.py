"""configs/hello.yaml, as the README shows it: every rank speaks, the job exits 0, and nothing is left."""

import os

import harness

HELLO = os.path.join(harness.ROOT, "configs", "hello.yaml")


class Hello(harness.MonarchTest):
    def test_every_rank_speaks_and_the_job_exits_0(self):
        done = self.monarch("run", HELLO)
        self.assertEqual(done.status, 0, done)
        self.assertEqual(sorted(done.out.splitlines()), [
            "[greeters/0@v1] hello from rank 0 of 4 on host 0", "[greeters/1@v1] hello from rank 1 of 4 on host 0",
            "[greeters/2@v2] hello from rank 2 of 4 on host 1", "[greeters/3@v2] hello from rank 3 of 4 on host 1"])
        self.assert_nothing_left()

    def test_the_verdict_says_so_too(self):
        self.monarch("run", HELLO)
        self.assertEqual(self.verdict()["exit_code"], 0, self.verdict())


if __name__ == "__main__":
    harness.main()
