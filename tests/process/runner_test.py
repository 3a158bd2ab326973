"""What runs these tests: turns, weights, limits, and what is counted of a program that misbehaves (scripts/runner.py, side_by_side.py)."""

import os
import sys
import textwrap
import unittest
import unittest.mock

import harness
import tap

sys.path.insert(0, os.path.join(harness.ROOT, "scripts"))

import machine
import passed
import results
import runner
import trees

HEAD = """
import os, sys, time, unittest
sys.path.insert(0, {folder!r})
import tap
def together(count):
    open('here.%d' % os.getpid(), 'w').close(); open('mark.%s' % time.monotonic_ns(), 'w').close()
    deadline = time.monotonic() + 20
    while sum(name.startswith('mark.') for name in os.listdir('.')) < count:
        assert time.monotonic() < deadline, 'alone'
        time.sleep(0.01)
class Case(unittest.TestCase):
"""


class Runner(harness.MonarchTest):
    def ended(self, cases, share="0.2", limit=30, shares=None, **more):
        """What became of a program with these methods: its tally and runner.Ended."""
        program = self.write("program.py", HEAD.format(folder=os.path.dirname(os.path.abspath(__file__))) +
                             textwrap.indent(textwrap.dedent(cases), "    ") + "\ntap.main()\n")
        test = {"name": "program", "cmd": [sys.executable, "-B", program], "is_parallel": True, "workdir": self.path("work"), "protocol": "tap",
                "env": {"MONARCH_TEST_CASE_SHARE": share}, "timeout": limit, **more}
        found, pool = [], runner.Pool(lambda *_: None)
        with unittest.mock.patch.object(runner, "to_share_out", lambda: shares or runner.processors()):
            pool.add(runner.Program(test, found.append))
            pool.run()
        return results.read(found[0], test, self.folder), found[0]

    def test_cases_that_wait_run_side_by_side(self):
        tally, ended = self.ended("".join(f"def test_{i}(self): together(5)\n" for i in range(5)))
        self.assertEqual((tally.passed, tally.failed), (5, 0), ended.output)
        self.assertEqual(sorted(label for label, _, _ in ended.cases), [f"Case.test_{i}" for i in range(5)])

    def test_cases_that_take_all_there_is_run_one_after_the_other(self):
        alone = "assert not os.path.exists('busy'); open('busy', 'w').close(); time.sleep(0.05); os.unlink('busy')"
        tally, ended = self.ended("".join(f"@tap.takes(16)\ndef test_{i}(self): {alone}\n" for i in range(4)))
        self.assertEqual((tally.passed, tally.failed), (4, 0), ended.output)

    def test_cases_are_fewer_side_by_side_where_others_want_the_machine_too(self):
        alone = "assert not os.path.exists('busy'); open('busy', 'w').close(); time.sleep(0.05); os.unlink('busy')"
        for factor, left in ((1.0, runner.processors()), (4.0, runner.processors() / 4)):
            with unittest.mock.patch.object(runner, "machine_factor", lambda factor=factor: factor):
                self.assertEqual(runner.to_share_out(), left)
        tally, ended = self.ended("".join(f"def test_{i}(self): {alone}\n" for i in range(4)), shares=0.2)
        self.assertEqual((tally.passed, tally.failed), (4, 0), ended.output)

    def test_one_that_hangs_is_ended_and_named_and_the_others_are_not(self):
        tally, ended = self.ended("def test_good(self): pass\ndef test_stuck(self): time.sleep(600)\n", limit=1)
        self.assertEqual((tally.passed, tally.failed), (1, 1), ended.output)
        self.assertRegex(ended.output, "not ok - Case.test_stuck\n# its process ended with 143")

    def test_what_computes_has_so_many_seconds_of_processors_with_all_that_it_started(self):
        spins = "import os\nfor _ in range(3):\n    if os.fork() == 0:\n        while True: pass\nos.wait()"
        test = {"name": "spins", "cmd": [sys.executable, "-c", spins], "is_parallel": True, "protocol": "exitcode", "env": {}, "timeout": 1}
        found, pool = [], runner.Pool(lambda *_: None)
        program = runner.Program(test, found.append, limit=0.2)
        program._limit = 600  # by the clock it may go on
        pool.add(program)
        with unittest.mock.patch.object(runner, "LOOK_S", 0.2):
            pool.run()
        self.assertTrue(found[0].late)
        self.assertEqual(found[0].status, 143)

    def test_a_quota_of_a_group_counts_as_so_many_processors(self):
        for version, (line, top, files) in {"two": ("0::/a/b", "", {"a/cpu.max": "150000 100000", "a/b/cpu.max": "max 100000"}),
                                            "one": ("3:cpu,cpuacct:/a", "cpu", {"a/cpu.cfs_quota_us": "50000", "a/cpu.cfs_period_us": "100000"})}.items():
            mounted = self.path(f"groups-{version}")
            for name, words in files.items():
                path = os.path.join(mounted, top, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="ascii") as file:
                    file.write(words + "\n")
            self.assertEqual(machine.quotas(self.write(f"own-{version}", line + "\n"), mounted), [1.5] if version == "two" else [0.5])

    def test_one_that_dies_is_named(self):
        tally, ended = self.ended("def test_good(self): pass\ndef test_dead(self): os.kill(os.getpid(), 9)\n")
        self.assertEqual((tally.passed, tally.failed), (1, 1), ended.output)
        self.assertIn("not ok - Case.test_dead", ended.output)

    def test_failures_say_why_each_by_itself(self):
        tally, ended = self.ended("def test_a(self): self.fail('apples')\ndef test_b(self): self.fail('pears')\ndef test_c(self): pass\n")
        self.assertEqual((tally.passed, tally.failed), (1, 2), ended.output)
        texts = dict(tally.failures)
        self.assertIn("apples", texts["program: Case.test_a"])
        self.assertNotIn("pears", texts["program: Case.test_a"])

    def test_a_program_that_fails_outside_of_its_cases_is_a_failure(self):
        tally, _ = self.ended("def test_good(self): pass\n", cmd=[sys.executable, "-c", "raise SystemExit('no such thing')"])
        self.assertEqual((tally.passed, tally.failed), (0, 1))
        self.assertIn("no such thing", tally.failures[0][1])

    @unittest.skipUnless(os.geteuid() == 0, "process numbers of one's own need root")
    def test_nothing_of_a_case_outlives_it_and_all_of_its_work_is_counted(self):
        orphan = "\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n            {}\n        os._exit(0)\n    os.wait()\n"
        work = "end = time.process_time() + 0.5\n            while time.process_time() < end: pass\n            open('done', 'w').close(); time.sleep(600)"
        tally, ended = self.ended("def test_it(self):" + orphan.format(work) +
                                  "    while not os.path.exists('done'): time.sleep(0.01)\n    self.assertLess(os.getpid(), 10)\n")
        self.assertEqual((tally.passed, tally.failed), (1, 0), ended.output)
        self.assertGreater(ended.cases[0][2], 0.4)

    def test_a_suite_that_passed_counts_until_a_tracked_file_changes(self):
        self.addCleanup(setattr, passed, "_FILE", passed._FILE)
        self.addCleanup(setattr, trees, "ROOT", trees.ROOT)
        trees.ROOT, passed._FILE = self.path("work"), self.path("passed.json")
        for words in (["init", "-q"], ["add", self.write("a.txt", "one")]):
            self.assertEqual(self.start_program("git", *words).wait(), 0)
        tree = passed.tree_now()
        passed.remember(tree, "unit", "3 passed, 0 failed, 1 skipped")
        passed.remember(tree, "lint", "4 passed, 0 failed")
        self.write("untracked", "")
        self.assertEqual(passed.tally_of(passed.tree_now(), ["unit", "lint"]).line(), "7 passed, 0 failed, 1 skipped")
        self.write("a.txt", "two")
        self.assertIsNone(passed.line_of(passed.tree_now(), "unit"))


if __name__ == "__main__":
    harness.main()
