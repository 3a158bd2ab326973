"""Groups of NCCL's in real jobs, C++ programs on a fake driver and a fake NCCL: all kinds of work, a member that is killed in the
middle of it, and what there is not."""

import json
import os
import re
import unittest

import harness
import recovery

RANK = os.path.join(harness.BUILD, "tests", "nccl", "nccl-rank")
FAKES = [os.path.join(harness.BUILD, "tests", name) for name in ("cuda", "nccl")]
ALL = ["generator/0", "generator/1", "generator/2", "trainer/0"]


@unittest.skipIf(harness.SANITIZED, "no program of users' has the sanitizer's runtime that the library of tensors is built with")
class NcclGroups(recovery.RecoveryTest):
    def start_group(self, *words, fakes=True, **more):
        """A trainer's rank and three generators, each a gang of its own."""
        env = {"LD_LIBRARY_PATH": ":".join(FAKES if fakes is True else fakes), "FAKE_CUDA_LATE_US": "2000", **more}
        meshes = {name: {"dims": {"gpu": ranks}, "gang": "each", "program": [RANK, *words], "env": env,
                         "supervision": {"restart": {"max": 5, "backoff": "10ms"}}}
                  for name, ranks in (("trainer", 1), ("generator", 3))}
        spec = {"version": 1, "job": "nccl", "launch": {"local": {"hosts": 2}}, "tensors": {}, "meshes": meshes}
        name = f"{words[0]}-{len(os.listdir(self.path('work')))}.yaml"
        return self.start("run", "--no-prefix", self.spec(json.dumps(spec, indent=1), name))

    def ended(self, run):
        run.wait(60)
        self.assertEqual(run.status, 0, run)
        return sorted(run.out.splitlines())

    def test_all_kinds_of_work(self):
        lines = self.ended(self.start_group("once"))
        self.assertEqual(lines, sorted(["broadcast 1 64", "gathered 0 1 66", "scattered -1"] * 4 + ["received 0 63"]))
        self.assert_nothing_left()

    def test_a_member_that_is_killed(self):
        """All others hear who it was, also who holds the group, and the next group has its next generation."""
        runs = [(victim, self.start_group("through", victim)) for victim in ("generator/1", "trainer/0")]
        for victim, run in runs:
            with self.subTest(victim):
                lines = self.ended(run)
                others = [who for who in ALL if who != victim]
                lost = [re.fullmatch(rf"(\S+) lost: 3 group sync: .*{victim}.*", line) for line in lines if " lost: " in line]
                self.assertEqual([one and one[1] for one in lost], others, run)
                self.assertEqual([line for line in lines if " again: " in line], [f"{who} again: 3" for who in others], run)
                self.assertEqual([line for line in lines if " met " in line],
                                 [f"{who} met {(index + 1) % 4} of 4" for index, who in enumerate(ALL)], run)
                self.assertEqual(len(lines), 10, run)
        self.assert_nothing_left()

    def fails(self, expected, *words, **how):
        """What members say of their group; who has heard it from another says that this one is gone."""
        lines = self.ended(self.start_group("open", *words, **how))
        said = [re.fullmatch(r"(\S+) fails: (.*)", line) for line in lines]
        self.assertEqual([one and one[1] for one in said], ALL, lines)
        found = [one[2] for one in said]
        self.assertTrue(any(re.fullmatch(expected, text) for text in found), found)
        self.assertTrue(all(re.fullmatch(expected, text) or text.startswith("3 group ") for text in found), found)

    def test_what_there_is_not(self):
        with self.subTest("no driver"):
            self.fails(r"9 no NVIDIA driver: libcuda\.so\.1: .*", fakes=[FAKES[1]])
        with self.subTest("no such GPU"):
            self.fails(r"11 group sync: member \d of 4, on GPU 7: GPU 7: looking for it: CUDA_ERROR_INVALID_DEVICE \(.*\)", "sync", "7")
        with self.subTest("a name that has no room for what is said at the end"):
            self.fails(r"1 group n{125}: the name of one with NCCL has at most 124 bytes", 125 * "n")
        with self.subTest("an NCCL that is too old"):
            lines = self.ended(self.start_group("open", FAKE_NCCL_VERSION="21203"))
            self.assertIn("trainer/0 fails: 9 NCCL 2.12.3 is too old: 2.14 or later can be asked without waiting", lines)
        with self.subTest("no NCCL"):
            lines = self.ended(self.start_group("open", fakes=[FAKES[0]], MONARCH_NCCL_LIBRARY="/nowhere/libnccl.so"))
            self.assertIn("trainer/0 fails: 9 NCCL cannot be loaded: /nowhere/libnccl.so: cannot open shared object file: "
                          "No such file or directory", lines)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
