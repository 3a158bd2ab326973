"""The JSON Schemas that `monarch explain --schema` prints: editors get from them what `monarch validate` says about single keys."""

import glob
import json
import os
import re
import subprocess
import unittest

import harness
import tap

try:
    import jsonschema
    import yaml
except ImportError as error:
    jsonschema = None
    MISSING = str(error)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BROKEN = os.path.join(ROOT, "tests/supervisor/spec/broken")
BROKEN_SCENARIOS = os.path.join(ROOT, "tests/supervisor/drill/scenario/broken")

# What a schema can see in one place: kinds of values, names of keys, words, ranges, what is missing.
SEEN = {"E0101", "E0103", "E0105", "E0106", "E0107", "E0108", "E0109", "E0201", "E0202", "E0203", "E0204", "E0205", "E0206",
        "E0207"}
# Specs whose only faults of this kind are how a number is written, which a parser of YAML does not tell a schema, how long a
# duration or a range is, which a schema cannot count, what one launcher's hosts take and another's do not, or stand in another file.
WRITTEN = {"command_cannot", "octal_and_hex", "yes_and_no", "ports_backwards", "heartbeat_too_fast", "ssh_loopback", "ssh_hosts_file_names"}


def reader():
    """YAML 1.2 as editors read it: `on` is a text, and only true and false are switches."""
    class Loader(yaml.SafeLoader):
        pass
    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"true|false\Z"), list("tf"))
    return Loader


class Printed(unittest.TestCase):
    OF = []
    SEEN = SEEN

    @classmethod
    def setUpClass(cls):
        printed = subprocess.run([harness.MONARCH, "explain", *cls.OF, "--schema"], check=True, stdout=subprocess.PIPE,
                                 stdin=subprocess.DEVNULL, timeout=harness.DEADLINE_S).stdout
        cls.schema = json.loads(printed)
        cls.validator = jsonschema.Draft7Validator(cls.schema)

    def load(self, path):
        with open(path, encoding="utf-8") as file:
            return yaml.load(file, Loader=reader())

    def faults(self, spec):
        return [f"{'/'.join(map(str, fault.absolute_path))}: {fault.message}" for fault in self.validator.iter_errors(spec)]

    def refused(self, folder):
        """How many of its files have a fault that a schema can see, and are refused by it."""
        count = 0
        for path in sorted(glob.glob(os.path.join(folder, "*.yaml"))):
            name = os.path.basename(path).removesuffix(".yaml")
            with open(path.removesuffix(".yaml") + ".txt", encoding="utf-8") as file:
                ids = set(re.findall(r"error\[(E\d+)\]", file.read()))
            if not ids & self.SEEN or name in WRITTEN:
                continue
            try:
                spec = self.load(path)
            except (yaml.YAMLError, UnicodeDecodeError):
                continue
            with self.subTest(name, ids=ids):
                self.assertNotEqual(self.faults(spec), [], f"the schema takes {name}, which monarch refuses")
            count += 1
        return count


@unittest.skipIf(jsonschema is None, "python3-jsonschema or python3-yaml is not installed")
class Schema(Printed):
    def test_is_a_schema(self):
        jsonschema.Draft7Validator.check_schema(self.schema)
        self.assertEqual(self.schema["required"], ["version", "job", "meshes"])
        self.assertIs(self.schema["additionalProperties"], False)

    def test_takes_every_spec_of_configs(self):
        specs = sorted(glob.glob(os.path.join(ROOT, "configs/*.yaml")))
        self.assertGreaterEqual(len(specs), 3)
        for path in specs:
            with self.subTest(path):
                self.assertEqual(self.faults(self.load(path)), [])

    def test_refuses_what_is_broken_in_one_place(self):
        self.assertGreaterEqual(self.refused(BROKEN), 20)

    def test_says_where_each_fault_is(self):
        spec = {"version": 1, "job": "j", "meshes": {"a": {"dims": {"x": 2}, "program": ["true"], "stop": {"grace": 5}}}}
        self.assertEqual([fault.split(":")[0] for fault in self.faults(spec)], ["meshes/a/stop/grace"])
        spec["meshes"]["a"]["stop"] = {"grace": "5s"}
        self.assertEqual(self.faults(spec), [])
        spec["meshes"]["a"]["supervision"] = {"lese": "5s"}
        self.assertIn("'lese'", "".join(self.faults(spec)))


@unittest.skipIf(jsonschema is None, "python3-jsonschema or python3-yaml is not installed")
class ScenarioSchema(Printed):
    OF = ["drill"]
    SEEN = SEEN | {"E0501"}

    def test_is_a_schema(self):
        jsonschema.Draft7Validator.check_schema(self.schema)
        self.assertEqual(self.schema["required"], ["version", "drill", "faults"])

    def test_takes_the_reference_and_refuses_what_is_broken_in_one_place(self):
        self.assertEqual(self.faults(self.load(os.path.join(ROOT, "configs/drills/reference.yaml"))), [])
        self.assertGreaterEqual(self.refused(BROKEN_SCENARIOS), 12)


if __name__ == "__main__":
    tap.main()
