"""Output arrives byte for byte: much of it, to a slow reader, in odd shapes, and from whoever still holds the pipe."""

import hashlib
import os
import select

import harness
import jobs

# Writes MEGABYTES of lines that name their rank, and keeps their checksum in a file.
WRITER = """
import hashlib, os, sys
rank, megabytes = int(os.environ["RANK"]), int(sys.argv[1])
digest, left = hashlib.sha256(), megabytes << 20
number = 0
while left > 0:
    lines = []
    for _ in range(512):
        body = b"%d:%d:" % (rank, number)
        lines.append(body + b"x" * (127 - len(body)) + b"\\n")
        number += 1
    data = b"".join(lines)[:left]
    digest.update(data)
    left -= len(data)
    while data:
        data = data[os.write(1, data):]
with open(f"sum.{rank}.new", "w") as file:
    file.write(digest.hexdigest())
os.rename(f"sum.{rank}.new", f"sum.{rank}")
"""


class Output(jobs.JobTest):
    def writer(self, megabytes, **keys):
        return self.program_job(["/usr/bin/python3", self.write("writer.py", WRITER), str(megabytes)], **keys)

    def assert_sums(self, out, ranks):
        digests = {rank: hashlib.sha256() for rank in range(ranks)}
        for line in out.splitlines(keepends=True):
            digests[int(line[:line.index(b":")])].update(line)
        for rank in range(ranks):
            wanted = self.read("work", f"sum.{rank}")
            self.assertEqual(digests[rank].hexdigest(), wanted, f"rank {rank} as shown")
            with open(self.job_file(f"logs/m/{rank}.1.out"), "rb") as file:
                self.assertEqual(hashlib.sha256(file.read()).hexdigest(), wanted, f"rank {rank} in its file")

    def test_64_mib_from_8_ranks_arrive_byte_for_byte(self):
        run = self.start("run", "--no-prefix", "--quiet", self.writer(8, slots=4))
        self.assertEqual(run.wait(60), 0)
        self.assert_sums(run.out_bytes(), 8)
        self.assert_nothing_left()

    def test_what_python_prints_is_seen_while_it_runs(self):
        program = self.write("print.py", "import os, time\nprint('epoch', 1)\nwhile not os.path.exists('go'): time.sleep(0.05)\n")
        run = self.start("run", self.program_job(["/usr/bin/python3", program], slots=2), env={"PYTHONUNBUFFERED": None})
        run.wait_for_out(r"(?s)epoch 1.*epoch 1")
        self.write("go", "")
        self.assertEqual(run.wait(), 0)
        self.assert_nothing_left()

    def test_a_slow_reader_blocks_no_rank_and_loses_nothing(self):
        reader, writer = os.pipe()
        try:
            run = self.start("run", "--no-prefix", "--quiet", self.writer(4, slots=2), stdout=writer)
            os.close(writer)
            # Nobody has read a byte, and every rank has written all it has.
            harness.wait_for(lambda: all(os.path.exists(self.path("work", f"sum.{r}")) for r in range(4)), "all written")
            pieces = []
            while True:
                ready, _, _ = select.select([reader], [], [], harness.DEADLINE_S)
                self.assertTrue(ready, f"no output from {run}")
                piece = os.read(reader, 65536)
                if not piece:
                    break
                pieces.append(piece)
        finally:
            os.close(reader)
        self.assertEqual(run.wait(), 0)
        self.assert_sums(b"".join(pieces), 4)
        self.assert_nothing_left()

    def test_a_reader_that_leaves_does_not_end_the_job(self):
        reader, writer = os.pipe()
        run = self.start("run", self.job("mark there; while [ ! -e go ]; do echo line; nap 0.02; done; mark late"),
                         stdout=writer)
        os.close(writer)
        self.wait_for_marks("there", 4)
        os.close(reader)
        harness.wait_for(lambda: os.path.getsize(self.job_file("logs/m/0.1.out")) > 200, "more output")
        self.write("go", "")
        self.wait_for_marks("late", 4)
        run.wait()
        self.assertEqual(self.verdict()["outcome"], "succeeded", run)
        self.assert_nothing_left()

    def one(self, script, *flags):
        """What one rank shows that runs `script`, and what is in its file."""
        run = self.start("run", "--quiet", *flags, self.job(script, hosts=1, slots=1))
        self.assertEqual(run.wait(), 0, run)
        with open(self.job_file("logs/m/0.1.out"), "rb") as file:
            kept = file.read()
        self.assert_nothing_left()
        return run.out_bytes(), kept

    def test_a_last_line_without_its_end_is_shown(self):
        shown, kept = self.one("printf 'first\\nlast words'")
        self.assertEqual(kept, b"first\nlast words")
        self.assertEqual(shown, b"[m/0@v1] first\n[m/0@v1] last words\n")

    def test_a_line_of_1_mib(self):
        shown, kept = self.one("head -c 1048576 /dev/zero | tr '\\0' 'a'; echo; echo next", "--no-prefix")
        self.assertEqual(kept, b"a" * (1 << 20) + b"\nnext\n")
        self.assertEqual(shown, kept)

    def test_a_line_of_1_mib_with_its_prefix(self):
        shown, _ = self.one("head -c 1048576 /dev/zero | tr '\\0' 'a'; echo; echo next")
        self.assertEqual(shown.replace(b"[m/0@v1] ", b"").replace(b"\n", b""), b"a" * (1 << 20) + b"next")
        self.assertTrue(shown.endswith(b"\n[m/0@v1] next\n"))

    def test_binary_bytes(self):
        data = bytes(range(256)) * 16 + b"\n"
        with open(self.path("work", "binary"), "wb") as file:
            file.write(data)
        shown, kept = self.one("cat binary", "--no-prefix")
        self.assertEqual(kept, data)
        self.assertEqual(shown, data)

    def test_a_rank_that_closes_its_stdout_goes_on(self):
        shown, kept = self.one("echo before; exec >&-; sleep 0.2; mark late")
        self.assertEqual((shown, kept), (b"[m/0@v1] before\n", b"before\n"))
        self.assertEqual(self.marks("late"), [0])

    def test_output_of_a_child_that_is_still_writing(self):
        # The rank waits for it; its own parent, which started it, has gone.
        shown, _ = self.one("(sh -c 'sleep 0.3; echo from a grandchild; echo > done' &) ; echo parent\n"
                            "until [ -e done ]; do nap 0.02; done")
        self.assertEqual(sorted(shown.splitlines()), [b"[m/0@v1] from a grandchild", b"[m/0@v1] parent"])

    def test_output_of_a_child_that_outlived_its_rank(self):
        # It is killed with what its rank left; what it wrote before that is kept.
        shown, _ = self.one("(sh -c 'echo from a child; echo > done; exec sleep 600' &); until [ -e done ]; do nap 0.02; done")
        self.assertEqual(shown, b"[m/0@v1] from a child\n")

    def test_stdout_and_stderr_are_kept_apart(self):
        run = self.start("run", "--quiet", self.job("echo out; echo err >&2", slots=1))
        self.assertEqual(run.wait(), 0)
        self.assertEqual(sorted(run.out.splitlines()), ["[m/0@v1] out", "[m/1@v2] out"])
        self.assertEqual(sorted(run.err.splitlines()), ["[m/0@v1] err", "[m/1@v2] err"])
        for rank in (0, 1):
            self.assertEqual(self.log(f"logs/m/{rank}.1.err"), "err\n")
        self.assert_nothing_left()

    def test_stdin_is_empty(self):
        shown, _ = self.one("readlink /proc/self/fd/0; cat; echo end")
        self.assertEqual(shown, b"[m/0@v1] /dev/null\n[m/0@v1] end\n")

    def test_escapes_do_not_reach_the_terminal(self):
        run = self.start("run", self.job("printf 'red \\033[31m and \\033]0;title\\007 text\\n'", hosts=1, slots=1),
                         terminal=True)
        self.assertEqual(run.wait(), 0)
        self.assertNotIn("\x1b]0;", run.out)
        self.assertNotIn("\x1b[31m and", run.out)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
