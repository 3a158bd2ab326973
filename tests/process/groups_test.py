"""Groups of ranks across meshes, in real jobs: who is killed or ends, who never comes, and each way to be wrong."""

import json
import os
import re
import sys
import unittest

import harness
import recovery

RANKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "group_ranks.py")
ALL = ["generator/0", "generator/1", "generator/2", "trainer/0"]


@unittest.skipIf(harness.SANITIZED, "no Python has the sanitizer's runtime that the library of tensors is built with")
class Groups(recovery.RecoveryTest):
    def start_group(self, *words, hosts=2):
        """A trainer's rank and three generators, each a gang of its own, which run these words of group_ranks.py."""
        restart = {"restart": {"max": 20, "backoff": "10ms"}}
        program = [sys.executable, RANKS, *map(str, words)]
        meshes = {name: {"dims": {"gpu": ranks}, "gang": "each", "program": program, "supervision": restart}
                  for name, ranks in (("trainer", 1), ("generator", 3))}
        spec = {"version": 1, "job": "groups", "launch": {"local": {"hosts": hosts}}, "tensors": {}, "meshes": meshes}
        return self.start("run", "--no-prefix", self.spec(json.dumps(spec, indent=1), f"{'-'.join(map(str, words[:1]))}-{len(os.listdir(self.path('work')))}.yaml"))

    def shared(self, name):
        folder = self.path(f"shared-{name}")
        os.mkdir(folder)
        return folder

    def ended(self, run, status=0):
        run.wait(60)
        self.assertEqual(run.status, status, run)
        return sorted(run.out.splitlines())

    def strike(self, victim, how):
        return victim, how, self.start_group("through", self.shared(victim.replace("/", "-") + how), victim, how)

    def test_a_member_that_is_struck(self):
        """All others have it within a second; those that are killed come back, and the next epoch has their next generation.
        One that ends in order, the first as well, is lost in the same way, and does not come back."""
        strikes = [self.strike(victim, how) for victim, how in (("generator/1", "kill"), ("trainer/0", "kill"),
                                                                ("generator/1", "exit"), ("trainer/0", "exit"))]
        for victim, how, run in strikes:
            with self.subTest(victim=victim, how=how):
                lines = self.ended(run)
                first = [line for line in lines if line.startswith("met ") and " 1.1 " in line]
                self.assertEqual(first, [f"met {who} {(index + 1) % 4} 4 1.1 1,1,1,1 None" for index, who in enumerate(ALL)], run)
                others = [who for who in ALL if who != victim]
                self.assertEqual([line for line in lines if line.startswith("lost ")], [f"lost {who} within" for who in others], run)
                why = re.compile(rf"why (\S+) {victim} is lost: .*killed by SIGKILL.*" if how == "kill" else
                                 rf"why (\S+) the connection to {victim} ended")
                found = [why.fullmatch(line) for line in lines if line.startswith("why ")]
                self.assertEqual([one and one[1] for one in found], others, run)
                again = [line for line in lines if line.startswith("met ") and line not in first]
                epoch = "2.1 2,1,1,1" if victim == "trainer/0" else "1.2 1,1,2,1"
                self.assertEqual(again, [] if how == "exit" else [f"met {who} {(index + 1) % 4} 4 {epoch} None" for index, who in enumerate(ALL)], run)
        self.assert_nothing_left()

    def test_a_member_that_never_comes_and_what_is_wrong(self):
        waits = self.start_group("missing", 1)
        wrong = self.start_group("wrong")
        lines = self.ended(waits)
        missing = r"(generator/\d, )*generator/2 ha(s|ve) not called"
        self.assertEqual(len(lines), 3, waits)
        for who, seconds, line in zip(("generator/0", "generator/1", "trainer/0"), (1, 1, 2), lines):
            self.assertRegex(line, rf"^{who} Timeout: group sync has not met within {seconds}s: {missing}$", waits)
        noticed = re.findall(rf"(?m)^monarch: group sync has not met since \d+m?s?[\d.]*m?s?: {missing}$", waits.err)
        self.assertGreaterEqual(len(noticed), 6, waits)
        lines = self.ended(wrong)
        self.maxDiff = None
        said = dict(line.split(" = ", 1) for line in lines if " = " in line)
        self.assertEqual(said, WRONG, wrong)
        self.assertEqual([line for line in lines if " = " not in line], sorted(SAID), wrong)
        self.assert_nothing_left()

    def test_a_signal_in_a_call(self):
        run = self.start_group("interrupted")
        lines = self.ended(run)
        self.assertEqual(lines[:2], ["ended generator/1 True", "ended trainer/0 True"], run)
        self.assertEqual(lines[2:6], [f"epoch {who} 3" for who in ALL], run)
        for who, line in zip(("generator/1", "trainer/0"), lines[6:]):
            self.assertRegex(line, rf"^none {who} Timeout: group early has not met within 500ms: .*ha(s|ve) not called$", run)
        self.assertEqual(len(lines), 8, run)
        self.assert_nothing_left()

    def test_how_long_it_takes(self):
        """Five losses; most take a few milliseconds, and one has a second on a machine that is busy."""
        run = self.start_group("quickly", 5, self.shared("quickly"))
        heard = [json.loads(line.split(" ", 1)[1]) for line in self.ended(run)]
        self.assertEqual(len(heard), 15, run)
        slowest = sorted(one["s"] for one in heard)
        print(f"# lost after a kill -9: median {slowest[7] * 1e3:.1f} ms, most {slowest[-1] * 1e3:.1f} ms", flush=True)
        self.assertLess(slowest[7], 0.05)
        self.assertLess(slowest[-1], 1)
        self.assert_nothing_left()


WRONG = dict(line.split(" = ", 1) for line in """\
twice = Invalid: group sync: generator/1 is a member twice
mesh = Invalid: this job has no mesh generatr; did you mean generator?
rank = Invalid: group sync: generator has no rank 3; the nearest is 2
own = Invalid: group sync: trainer/0 is none of generator/0 to 2
none = Invalid: group sync has no members
empty = Invalid: no rank of trainer is named: leave it out, or say "all"
list = Invalid: the members of a group are a list, and not a dict of mesh and ranks
word = Invalid: the ranks of trainer are 'most', and not "all" or numbers
number = Invalid: a rank of trainer is -1
kind = Invalid: a rank of trainer is 0.5, and no whole number
name = Invalid: a group's name has 1 to 128 bytes, and not 0: _
long = Invalid: a group's name has 1 to 128 bytes, and not 129: NAME
timeout = Invalid: timeout is 'soon', and no number of seconds
closed = Invalid: group alone is closed
call = Invalid: group alone: on_lost() has a int, which cannot be called
fork = Invalid: this session was opened before fork(): a child opens its own
""".replace("NAME", "n" * 129).replace(" _\n", " \n").splitlines())
SAID = """\
at once True
alone 0 1 None [Member(mesh='trainer', rank=0, generation=1)]
again True trainer/0 has called for the group again None
late True
child 1
disagree generator/0 Invalid: group sync: members disagree: generator/0 has generator/0 to 1; generator/1 has generator/0 to 2
disagree generator/1 Invalid: group sync: members disagree: generator/0 has generator/0 to 1; generator/1 has generator/0 to 2
""".splitlines()


if __name__ == "__main__":
    harness.main()
