"""Completion in the shells themselves: each loads what `monarch completion` prints, and is asked what follows."""

import os
import shutil
import unittest

import harness
import jobs

BASH = r"""
source <("$MONARCH" completion bash)
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_monarch
printf '%s\n' "${COMPREPLY[@]}"
"""
# The functions of zsh's completion system, replaced by ones that print: what is tested is ours.
ZSH = r"""
compdef() { :; }
source <("$MONARCH" completion zsh)
_describe() { local -a all; all=("${(@P)4}"); print -rl -- "${(@)all%%:*}" }
_files() { print -r -- "files $*" }
words=("$@"); CURRENT=$#
_monarch
"""
FISH = r"""
$MONARCH completion fish | source
complete -C "$argv[1]" | string replace -r '\t.*' ''
"""


class Shells(jobs.JobTest):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("bin"))
        os.symlink(harness.MONARCH, self.path("bin", "monarch"))
        self.environment["MONARCH"] = harness.MONARCH
        self.environment["PATH"] = self.path("bin") + ":" + self.environment["PATH"]

    def need(self, shell):
        if not shutil.which(shell):
            raise unittest.SkipTest(f"there is no {shell}")

    def bash(self, *words):
        done = self.start_program("/bin/bash", "--norc", "-c", BASH, "bash", "monarch", *words).finished()
        self.assertEqual((done.status, done.err), (0, ""), done)
        return done.out.split()

    def zsh(self, *words):
        self.need("zsh")
        done = self.start_program("zsh", "-f", "-c", ZSH, "zsh", "monarch", *words).finished()
        self.assertEqual(done.err, "", done)
        return done.out.split()

    def fish(self, *words):
        self.need("fish")
        done = self.start_program("fish", "--no-config", "-c", FISH, " ".join(["monarch", *words])).finished()
        self.assertEqual(done.err, "", done)
        return done.out.split()

    def check(self, shell):
        self.assertIn("validate", shell(""))
        self.assertEqual(shell("vali"), ["validate"])
        self.assertNotIn("supervise", shell("su"))
        self.assertLessEqual({"--mesh", "--json", "--help"}, set(shell("logs", "--")))
        self.assertEqual(shell("ps", "--color", "ne"), ["never"])
        run = self.monarch("run", self.job("true\n", name="nightly"))
        self.assertEqual(run.status, 0, run)
        job, = self.jobs()
        self.assertEqual(shell("status", "nigh"), [job])
        self.assertEqual(shell("logs", job, "--mesh", ""), ["m"])
        self.assertEqual(shell("signal", job, "USR"), ["USR1", "USR2"])
        self.assertEqual(shell("completion", "z"), ["zsh"])

    def test_bash(self):
        self.check(self.bash)
        self.assertEqual(self.bash("ps", "--color", "=", "al"), ["always"])
        self.assertIn("work/nightly.yaml", " ".join(self.bash("run", self.path("work/ni"))))

    def test_zsh(self):
        self.check(self.zsh)
        self.assertIn("files", self.zsh("run", ""))

    def test_fish(self):
        self.check(self.fish)

    def test_an_answer_takes_no_time(self):
        self.monarch("run", self.job("true\n"))
        best = min(self.monarch("complete", "logs", "last", "--mesh", "").seconds for _ in range(10))
        self.assertLess(best, 0.2)  # 50 ms on a machine that does nothing else

    def test_an_unknown_shell_is_refused(self):
        done = self.monarch("completion", "csh")
        self.assertEqual(done.status, 2, done)


if __name__ == "__main__":
    harness.main()
