"""Programs in C that were built with the header of tensors as it was published first, beside those built with today's, in one job."""

import json
import os
import unittest

import harness
import recovery


@unittest.skipIf(harness.SANITIZED, "no program has the sanitizer's runtime that the library of tensors is built with")
class TensorsBefore(recovery.RecoveryTest):
    def test_both_publish_and_pull_from_both(self):
        meshes = {name: {"dims": {"one": 1}, "program": [os.path.join(harness.BUILD, "tests", "process", f"tensor-caller-{name}"), "before", "today"]}
                  for name in ("before", "today")}
        spec = {"version": 1, "job": "callers", "launch": {"local": {"hosts": 2}}, "tensors": {}, "meshes": meshes}
        done = self.monarch("run", self.spec(json.dumps(spec)))
        self.assert_result(done, 0, "succeeded")
        said = sorted(line.split("@")[0] + line.split("]")[1] for line in done.out.splitlines())
        self.assertEqual(said, [f"[{reader}/0 {size} bytes a part: version 4 of {owner}" for reader, size in (("before", 64), ("today", 80))
                                for owner in ("before", "today")], done)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
