"""What the tests of tensors share: the example, with each kind of memory."""

import json
import os
import re
import sys

import harness
import recovery

CONFIGS = os.path.join(harness.ROOT, "configs")
PULLED = r"generator (\d): \d+ pulls, each whole, up to version (\d+) \((.*)\)"


class PullsTheExample:
    def assert_pulled(self, done, expected):
        found = [re.fullmatch(PULLED, line) for line in sorted(done.out.splitlines())]
        self.assertEqual([line and line.groups() for line in found], expected, done)


class TensorTest(PullsTheExample, recovery.RecoveryTest):
    def example(self, kind="array", python=sys.executable, options=()):
        with open(os.path.join(CONFIGS, "weights.yaml"), encoding="utf-8") as file:
            spec = file.read()
        program = ", ".join(json.dumps(word) for word in [python, os.path.join(CONFIGS, "weights.py")])
        spec = spec.replace("python3, weights.py", program)
        for mesh in ("trainer", "generator"):
            self.assertIn(f", {mesh}]", spec)
            spec = spec.replace(f", {mesh}]", f", {mesh}, --with, {kind}{''.join(', ' + option for option in options)}]")
        return self.spec(spec, f"weights-{kind}.yaml")

    def pulls_the_example(self, way, *arguments, **how):
        done = self.monarch("run", "--no-prefix", self.example(**how), *arguments, timeout=60)
        self.assert_result(done, 0, "succeeded")
        self.assert_pulled(done, [(str(rank), "19", f"{way}=6") for rank in range(4)])
        self.assert_nothing_left()
