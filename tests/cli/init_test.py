"""`monarch init`: the spec that it writes, and what it makes of command lines of other launchers.

golden/translations.txt holds a table of lines, each with the status, stdout and stderr of `monarch init --from LINE -`; see
goldens.py for the form. `python3 tests/cli/init_test.py --update` (with PYTHONPATH=tests/process) writes it anew.
"""

import os
import re
import stat

import goldens
import harness

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "translations.txt")
HOSTFILE = "# two hosts\nnode1 slots=2\nnode2 slots=2   # the other\n"
UNEVEN = "node1 slots=2\nnode2\n"


class Init(harness.MonarchTest):
    def answer(self, line):
        return goldens.shown(self.monarch("init", "--from", line, "-"), self.folder)

    def world(self):
        self.write("hosts.txt", HOSTFILE)
        self.write("uneven.txt", UNEVEN)

    def test_every_line_is_translated_as_written_and_validates(self):
        self.world()
        found = goldens.cases(GOLDEN)
        translated = [line for line, expected in found if expected.startswith("= 0\n")]
        self.assertGreaterEqual(len(translated), 20)
        self.assertGreaterEqual(len(found) - len(translated), 15)
        for number, (line, expected) in enumerate(found):
            with self.subTest(line):
                answer = self.answer(line)
                self.assertEqual(answer, expected, line)
                if line not in translated:
                    continue
                spec = "".join(part[2:] + "\n" for part in answer.splitlines() if part[:2] in ("1 ", "1"))
                done = self.monarch("validate", self.write(f"spec{number}.yaml", spec))
                self.assertEqual(done.status, 0, done)
                # What is missing is said on stderr as well as in the spec.
                said = re.findall(r"^2 monarch: not carried over: (.*)$", answer, re.MULTILINE)
                written = re.sub(r"\n1 #   (?! )", " ", answer)
                for note in said:
                    self.assertIn("1 # - " + note, written)

    def test_the_spec_to_start_from_has_eight_live_lines_and_runs(self):
        done = self.monarch("init")
        self.assertEqual((done.status, done.out), (0, ""), done)
        with open(self.path("work", "mesh.yaml"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        live = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
        self.assertEqual(len(live), 8, live)
        run = self.monarch("run", self.path("work", "mesh.yaml"), "--no-prefix")
        self.assertEqual(run.status, 0, run)
        self.assertEqual(sorted(run.out.splitlines()),
                         [f"hello from rank {rank} of 4 on host {rank // 2}" for rank in range(4)])
        self.assert_nothing_left()

    def test_every_commented_key_of_it_can_be_taken_in(self):
        lines = self.monarch("init", "-").out.splitlines()[2:]
        whole = [re.sub(r"^( *)# ", r"\1", line) for line in lines]
        self.assertGreater(sum(line != was for line, was in zip(whole, lines)), 30)
        done = self.monarch("validate", self.write("whole.yaml", "\n".join(whole) + "\n"))
        self.assertEqual(done.status, 0, done)

    def test_nothing_is_overwritten(self):
        for path in ("there.yaml", "link.yaml"):
            self.write("there.yaml", "mine\n")
            if path == "link.yaml":
                os.symlink(self.path("work", "nowhere.yaml"), self.path("work", path))
            done = self.monarch("init", self.path("work", path))
            self.assertEqual(done.status, 2, done)
            self.assertIn("error[E0931]: cannot write", done.err)
        with open(self.path("work", "there.yaml"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine\n")
        self.assertFalse(os.path.exists(self.path("work", "nowhere.yaml")))
        done = self.monarch("init", self.path("work", "no", "folder.yaml"))
        self.assertEqual(done.status, 2, done)
        self.assertIn("No such file or directory", done.err)

    def test_what_the_shell_sets_is_left_to_it_and_taken_along_to_other_hosts(self):
        self.environment["OMP_NUM_THREADS"] = "3"
        here = self.monarch("init", "--from", "torchrun --nproc-per-node 2 t.py", "-")
        self.assertNotIn("OMP_NUM_THREADS: 1", here.out)
        self.assertIn("OMP_NUM_THREADS: is 3 in this shell", here.err)
        there = self.monarch("init", "--from", "srun -w a,b torchrun --nnodes 2 --nproc-per-node 2 t.py", "-")
        self.assertNotIn("OMP_NUM_THREADS: 1", there.out)
        self.assertIn("    env_pass: [OMP_NUM_THREADS]\n", there.out)
        self.assertNotIn("in this shell", there.err)

    def test_ranks_are_counted_as_torchrun_counts_them(self):
        done = self.monarch("init", "--from", "torchrun --nproc-per-node cpu t.py", "-")
        self.assertIn(f"dims: {{slot: {os.cpu_count()}}}\n", done.out)
        self.assertIn(f"--nproc-per-node cpu: always {os.cpu_count()}, which", done.err)

    def test_ranks_are_started_again_only_where_the_line_says_so(self):
        for line, limit in (("torchrun t.py", 0), ("torchrun --max-restarts 3 t.py", 3), ("mpirun -np 2 a.out", 0),
                            ("srun -n 2 a.out", 0)):
            done = self.monarch("init", "--from", line, "-")
            self.assertIn(f"\nsupervision:\n  restart: {{max: {limit}}}\n", done.out, done)

    def test_a_refused_line_writes_nothing(self):
        path = self.path("work", "t.yaml")
        done = self.monarch("init", "--from", "torchrun --nonsense t.py", path)
        self.assertEqual((done.status, done.out), (2, ""), done)
        self.assertFalse(os.path.exists(path))
        done = self.monarch("init", "--from", "torchrun t.py", path)
        self.assertEqual(done.status, 0, done)
        self.assertTrue(stat.S_ISREG(os.stat(path).st_mode))

    def test_a_spec_elsewhere_runs_in_the_folder_where_the_line_was(self):
        os.mkdir(self.path("work", "specs"))
        done = self.monarch("init", "--from", "mpirun -np 1 /bin/pwd", "specs/pwd.yaml")
        self.assertEqual(done.status, 0, done)
        run = self.monarch("run", self.path("work", "specs", "pwd.yaml"), "--no-prefix")
        self.assertEqual((run.status, run.out), (0, self.path("work") + "\n"), run)
        self.assert_nothing_left()


if __name__ == "__main__":
    goldens.main(Init, GOLDEN)
