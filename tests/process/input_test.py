"""What `run` reads reaches the ranks that the key `stdin` names, as fast as they read, and whole."""

import os
import signal
import subprocess

import harness
import jobs

COUNT = "echo rank $MONARCH_RANK: $(wc -c) bytes"


class Input(jobs.JobTest):
    def given(self, data, *arguments):
        return subprocess.run([harness.MONARCH, "run", "--no-prefix", *arguments], input=data, env=self.environment,
                              cwd=self.path("work"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              timeout=harness.patience(harness.DEADLINE_S))

    def test_of_a_rank_and_of_all(self):
        spec = self.job(COUNT)
        data = b"x" * 3_000_000  # more than pipes and pieces hold
        done = self.given(data, "-q", "--stdin", "1", spec)
        self.assertEqual((done.returncode, sorted(done.stdout.decode().splitlines())),
                         (0, ["rank 0: 0 bytes", "rank 1: 3000000 bytes", "rank 2: 0 bytes", "rank 3: 0 bytes"]), done)
        done = self.given(data, "-q", "--set", "stdin=m/all", spec)
        self.assertEqual(sorted(done.stdout.decode().splitlines()), [f"rank {i}: 3000000 bytes" for i in range(4)], done)
        self.assert_nothing_left()

    def test_without_it_nothing_is_read_and_that_is_said(self):
        self.write("lines", "a\nb\n")
        script = f'while read line; do {harness.MONARCH} run -q --no-prefix -n 1 -- echo got $line; done < lines'
        done = self.start_program("/bin/sh", "-c", script).finished()
        self.assertEqual(done.out, "got a\ngot b\n", done)
        self.assertEqual(done.err.count("standard input goes to no rank"), 1, done)
        self.assert_nothing_left()

    def test_it_goes_on_after_the_supervisor_and_comes_to_a_rank_as_it_is_written(self):
        reader, writer = os.pipe()
        run = self.start("run", "--no-prefix", "--stdin", "0",
                         self.job("while read word; do echo got $word; done; echo done", hosts=1, slots=1), stdin=reader)
        os.close(reader)
        os.write(writer, b"one\n")
        run.wait_for_out("got one")
        self.kill(self.process("supervisor"))
        run.wait_for_err("connected again")
        os.write(writer, b"two\n")
        run.wait_for_out("got two")
        os.close(writer)
        self.assertEqual(run.wait(), 0, run)
        self.assertEqual(run.out, "got one\ngot two\ndone\n")
        self.assert_nothing_left()

    def test_a_job_that_is_left_running_reads_its_end(self):
        done = self.monarch("up", self.job("wc -c > got; mark there\n" + jobs.FOREVER, hosts=1, slots=1, stdin="0"))
        self.assertIn("stdin: nobody gives it", done.err)
        self.wait_for_marks("there", 1)
        self.assertEqual(self.read("work", "got").strip(), "0")
        self.assertEqual(self.monarch("stop").status, 0)
        self.assert_nothing_left()

    def test_who_reads_no_more_holds_up_nobody(self):
        with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as source:
            run = self.start("run", "-q", "--no-prefix", "--stdin", "0", self.job("head -1", hosts=1, slots=1), stdin=source.stdout)
            source.stdout.close()
            self.assertEqual(run.wait(), 0, run)
            source.send_signal(signal.SIGTERM)
        self.assertEqual(run.out, "y\n")
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
