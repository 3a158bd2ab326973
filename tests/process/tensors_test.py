"""Tensors between the ranks of real jobs: the example, who is killed or stands still, and each way to be wrong."""

import json
import os
import re
import shlex
import sys
import unittest

import harness
import tensor_jobs

RANKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tensor_ranks.py")


@unittest.skipIf(harness.SANITIZED, "no Python has the sanitizer's runtime that the library of tensors is built with")
class Tensors(tensor_jobs.TensorTest):
    def test_the_example_over_shm(self):
        self.pulls_the_example("shm")

    def test_the_example_over_tcp(self):
        self.pulls_the_example("tcp", "--set", "tensors.transports=[tcp]")

    def tensor_job(self, tensors=None, **meshes):
        """A job with one rank of each mesh, which runs these words of tensor_ranks.py."""
        made = {}
        for name, words in meshes.items():
            restart = {"max": 8, "backoff": "10ms"}
            made[name] = {"dims": {"one": 1}, "program": [sys.executable, RANKS, *words],
                          "supervision": {"restart": restart}}
        spec = {"version": 1, "job": "tensors", "launch": {"local": {"hosts": len(made)}},
                "tensors": tensors or {}, "meshes": made}
        return self.spec(json.dumps(spec, indent=1), "tensors.yaml")

    def run_pair(self, owner, reader, *arguments, timeout=60):
        folder = self.path("shared")
        os.mkdir(folder)
        place = [folder]
        done = self.monarch("run", "--no-prefix", self.tensor_job(owner=[owner[0], *place, *owner[1:]],
                                                                  reader=[reader[0], *place, *reader[1:]]),
                            *arguments, timeout=timeout)
        self.assert_nothing_left()
        return done

    def pulls_models(self, way, **models):
        """Each mesh has so many ranks, and publications of so many tensors."""
        meshes = {name: {"dims": {"r": ranks}, "sidecar": True, "stop": {"grace": "1s"},
                         "program": [sys.executable, RANKS, "publish_model", *map(str, counts)]}
                  for name, (ranks, *counts) in models.items()}
        asked = [f"{name}:{ranks}:{count}" for name, (ranks, *counts) in models.items() for count in counts]
        meshes["reader"] = {"dims": {"r": 1}, "program": [sys.executable, RANKS, "read_models", *asked]}
        spec = {"version": 1, "job": "models", "tensors": {"transports": [way]}, "meshes": meshes}
        done = self.monarch("run", "--no-prefix", self.spec(json.dumps(spec, indent=1)), timeout=120)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(done.out.splitlines(), [f"{one} {one.split(':')[2]} {{'{way}': {one.split(':')[1]}}}" for one in asked], done)
        self.assert_nothing_left()

    def test_models_of_any_size_over_shm(self):
        self.pulls_models("shm", one=(1, 1, 10, 1_000, 20_000), four=(4, 10, 1_000), many=(64, 10))

    def test_models_of_any_size_over_tcp(self):
        self.pulls_models("tcp", one=(1, 10, 1_000, 20_000), four=(4, 1_000))

    def strikes(self, way):
        """The owner's first process stands still in a pull of 1 GiB, its next is killed in one."""
        done = self.run_pair(["publish_large", "1024", "1"], ["survive", "1024", "0.04", "SIGSTOP", "SIGKILL"],
                             "--set", f"tensors.transports=[{way}]")
        self.assert_result(done, 0, "succeeded")
        stopped, killed = [line for line in done.out.splitlines() if line.startswith("struck")]
        self.assertIn(stopped, ["struck whole", "struck PeerGone", "struck Timeout"], done)
        self.assertIn(killed, ["struck whole", "struck PeerGone"], done)
        self.assertEqual([line for line in done.out.splitlines() if not line.startswith("struck")],
                         ["first True", "after True", "first True", "last 3 True reader 1",
                          "sockets ['0o600']"], done)

    def test_an_owner_that_stands_still_or_is_killed_in_a_pull_over_shm(self):
        self.strikes("shm")

    def test_an_owner_that_stands_still_or_is_killed_in_a_pull_over_tcp(self):
        self.strikes("tcp")

    def freezes(self, way):
        done = self.run_pair(["publish_large", "64", "16", "0.1"], ["freeze", "64"],
                             "--set", f"tensors.transports=[{way}]")
        self.assert_result(done, 0, "succeeded")
        lines = done.out.splitlines()
        self.assertEqual(lines[:2], ["pulled True"] * 2, done)
        self.assertLess(float(lines[2].split()[1]), 1.5, "its patience is 0.5 s")

    def test_a_reader_that_stands_still_over_shm(self):
        self.freezes("shm")

    def test_a_reader_that_stands_still_over_tcp(self):
        self.freezes("tcp")

    def test_each_pair_by_each_way(self):
        done = self.monarch("run", "--no-prefix", os.path.join(tensor_jobs.CONFIGS, "tensors-check.yaml"), "--set",
                            "meshes.check.program=" + json.dumps([sys.executable, "tensors_check.py", "--mib", "1", "--runs", "1"]))
        self.assert_result(done, 0, "succeeded")
        pairs = [(one, other) for one in range(3) for other in range(3) if one != other]
        for way, said in (("shm", r"\d+\.\d\d GB/s"), ("tcp", r"\d+\.\d\d GB/s"), ("verbs", "none: .*no common transport: .*verbs: .+")):
            found = re.findall(rf"(?m)^rank (\d) from (\d) by {way} +{said}$", done.out)
            self.assertEqual(found, [tuple(map(str, pair)) for pair in pairs], done)
        self.assert_nothing_left()

    def test_a_tensor_that_is_mapped(self):
        spec = self.tensor_job(owner=["publish_on"], reader=["map_steadily", "10"])
        done = self.monarch("run", "--no-prefix", spec, "--set", "meshes.owner.sidecar=true")
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(done.out.splitlines(), ["next True {'shm': 1}", "held int64 (1000,) {1} True True", "alive {1}"], done)
        self.assert_nothing_left()

    def test_what_is_wrong(self):
        done = self.run_pair(["publish_wrong"], ["read_wrong"])
        self.assert_result(done, 0, "succeeded")
        said = dict(line.split(" = ", 1) for line in done.out.splitlines() if " = " in line)
        self.maxDiff = None
        self.assertEqual(said, WRONG, done)
        self.assertIn("describe {'w': ('int32', (8, 8))}", done.out)
        self.assertIn("child 7", done.out)

    def test_other_kinds_of_memory(self):
        folder = self.path("shared")
        done = self.monarch("run", "--no-prefix", self.tensor_job(t=["round_floats", folder]))
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(done.out.splitlines(), [
            "{'e': 48, 'n': 0} 0.5",
            *(f"{name} [1, 2, 3, 4]" for name in ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn_x2")),
            "Invalid: tensor b of floats of t is bfloat16 8, and is wanted as uint16 8"], done)

    def test_a_reader_that_comes_after_the_end(self):
        done = self.run_pair(["publish_once"], ["read_late"])
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(done.out.splitlines(), [
            "first True", "newer Ended", "late Ended",
            "Ended: weights of owner is published no more: no publisher at owner/0: it has ended"], done)

    def test_a_job_without_tensors(self):
        spec = self.spec("version: 1\njob: none\nmeshes:\n  t:\n    dims: {one: 1}\n    program: "
                         + json.dumps([sys.executable, RANKS, "say_error"])
                         + "\n    env: {PYTHONPATH: " + json.dumps(harness.MODULES) + "}\n")
        done = self.monarch("run", "--no-prefix", spec)
        self.assert_result(done, 0, "succeeded")
        self.assertRegex(done.out, r"^Unsupported: the library of tensors cannot be loaded: .*; "
                                   r"the spec of a job needs `tensors: {}`\n$")

    def test_a_library_of_another_version(self):
        other = os.path.join(harness.BUILD, "tests", "process", "plugins", "libother-version.so")
        spec = self.spec("version: 1\njob: other\ntensors: {}\nmeshes:\n  t:\n    dims: {one: 1}\n    program: "
                         + json.dumps(["/usr/bin/env", f"MONARCH_RANK_LIBRARY={other}", sys.executable, RANKS, "say_error"]) + "\n")
        done = self.monarch("run", "--no-prefix", spec)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(done.out, f"Unsupported: {other} speaks version 2, and this module 1\n")

    def test_a_library_of_ones_own(self):
        """What a container has in place of ours, or an old one, is said, and not loaded into."""
        program = shlex.join([sys.executable, RANKS, "say_error"])
        beside = shlex.join([sys.executable, "-c", "import monarch_rank as r, monarch_tensors as t, os\nprint(os.path.dirname(r.__file__) == "
                             "os.path.dirname(t.__file__))"])
        spec = self.spec("version: 1\njob: own\ntensors: {}\nmeshes:\n  t:\n    dims: {one: 1}\n    program: "
                         + json.dumps(["/bin/sh", "-c", f"MONARCH_POST= {program}; MONARCH_TENSORS=tcp {program}; {beside}"]) + "\n")
        done = self.monarch("run", "--no-prefix", spec)
        self.assert_result(done, 0, "succeeded")
        self.assertRegex(done.out, r"^Invalid: MONARCH_POST is not set: `monarch run` starts this program\nnothing\nTrue\n$")


WRONG = dict(line.split(" = ", 1) for line in """\
back = Invalid: square: version 6 after version 7: they rise within a generation
other shape = Invalid: tensor w: [0:4, 0:16] is not in the first version of square, and all have the same parts
missing = Invalid: version 8 of square lacks [0:8, 0:8] of w, which the first version has
mesh = Invalid: this job has no mesh ownr; did you mean owner?
twice = Invalid: tensor w: [0:8, 0:8] is put twice
extra = Invalid: tensor b: [0:8, 0:8] is not in the first version of square, and all have the same parts
cast = Invalid: tensor w: int32 is not made into float64; float32 is made into bfloat16
made up = Invalid: dtype 'float31' is not known: bfloat16, bool, complex128, complex32, complex64, float16, float32, float4_e2m1fn_x2, float64, FLOAT8, int16, int32, int64, int8, uint16, uint32, uint64, uint8
name = Invalid: a publication's name has 1 to 128 bytes, and not 129: NAME
again = Invalid: this rank publishes square already
publishers = Invalid: publisher 5 of p: a gang of owner has 1 ranks
first = Invalid: the publishers of p lack 0: the first rank of a gang knows what is whole
room = NoRoom: no memory of 4096TiB for a part
publication = Timeout: owner does not publish sqare within 200ms; did you mean square?
tensor = Invalid: square of owner has no tensor v; it has w
dtype = Invalid: tensor w of square of owner is int32 8 x 8, and is wanted as float32 8 x 8
shape = Invalid: tensor w of square of owner is int32 8 x 8, and is wanted as int32 9 x 8
outside = Invalid: tensor w: [1:9, 0:8] is outside of 8 x 8
uncovered = NotCovered: tensor w: nobody has [7:8, 0:8]
dimensions = Invalid: tensor w has 9 dimensions, and at most 8 are known
mixed = Invalid: tensor w: `of` has 1 dimensions, and the array has 2
read-only = Invalid: tensor w: a buffer that may not be written
format = Invalid: tensor w: a buffer of format 'P' is not known: cast("B") gives its bytes
older = Timeout: square of owner: nothing whole within 200ms; there is no newer version
cancel = Cancelled: the pull of square of owner was cancelled
fork = Invalid: this session was opened before fork(): a child opens its own
""".replace("NAME", "n" * 129).replace("FLOAT8", ", ".join(f"float8_{kind}" for kind in (
    "e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu"))).splitlines())


if __name__ == "__main__":
    harness.main()
