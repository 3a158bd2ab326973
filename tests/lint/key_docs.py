"""Every key of a spec, and of a scenario of a drill, is in the manual page, in the JSON Schema and in the reference of its kind.

The list of keys in a page stands between two comments and is what `monarch explain --all --json` makes it, for scenarios
`monarch explain drill --all --json`:

    python3 tests/lint/key_docs.py --update BUILD_ROOT    writes it anew
"""

import json
import os
import re
import subprocess
import sys

PAGE = "man/monarch.yaml.5"
REFERENCE = "configs/reference.yaml"
DRILL_PAGE = "man/monarch-drill.7"
DRILL_REFERENCE = "configs/drills/reference.yaml"
# The page, the reference, and what `monarch explain` calls the schema; its paths begin with that.
SCHEMAS = [(PAGE, REFERENCE, ""), (DRILL_PAGE, DRILL_REFERENCE, "drill")]
BEGIN = '.\\" keys: written by tests/lint/key_docs.py --update\n'
END = '.\\" end of the keys\n'

# A stand-in for the binary.
FAKE = r"""#!/bin/sh
case "$*" in
*--schema) echo '{"properties": {"job": {"properties": {}}}}' ;;
*drill*) echo '{"path": "drill.job", "takes": "a path", "built": "yes", "doc": "its job", "more": "", "required": true}' ;;
*) echo '{"path": "job", "takes": "a name", "built": "yes", "doc": "its name", "more": "", "required": true}' ;;
esac
"""
KEY = ".TP\n.B job\nIts name.\nTakes a name; must be written.\n"
DRILL_KEY = ".TP\n.B job\nIts job.\nTakes a path; must be written.\n"
CLEAN = {"bin/monarch": FAKE, PAGE: ".TH X 5\n" + BEGIN + KEY + END, REFERENCE: "job: x\n",
         DRILL_PAGE: ".TH X 7\n" + BEGIN + DRILL_KEY + END, DRILL_REFERENCE: "job: x\n"}
PLANTS = [
    (PAGE, ".TH X 5\n" + BEGIN + KEY.replace("Its name", "A name") + END, "is not what `monarch explain` says"),
    (PAGE, ".TH X 5\n" + KEY, "lacks the comments around the list of keys"),
    (REFERENCE, "jobs: x\n", "does not show job"),
    (DRILL_PAGE, ".TH X 7\n" + BEGIN + KEY + END, "is not what `monarch explain drill` says"),
    (DRILL_REFERENCE, "jobs: x\n", "does not show job"),
    ("bin/monarch", FAKE.replace('"properties": {"job"', '"properties": {"jobs"'), "the JSON Schema does not have job"),
]


def roff(text):
    """A text as roff shows it as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def sentence(text):
    """With a capital and a full stop; a word of the spec at the front stays as it is written."""
    first = text.split(" ", 1)[0]
    if first.isalpha() and first.islower():
        text = text[0].upper() + text[1:]
    return text if text.endswith(".") else text + "."


def key_entry(key):
    facts = "Takes " + key["takes"]
    if key.get("required"):
        facts += "; must be written"
    elif "default" in key:
        facts += "; default " + key["default"]
    lines = [".TP", ".B " + roff(key["path"])]
    if key["doc"]:
        lines.append(roff(sentence(key["doc"])))
    lines.append(roff(sentence(facts)))
    if key["more"]:
        lines.append(roff(key["more"]))
    if key["built"] != "yes":
        built = "not built yet" if key["built"] == "no" else "built: " + key["built"]
        lines.append(roff(sentence(built)))
    return "\n".join(lines) + "\n"


def ask(binary, *arguments):
    done = subprocess.run([binary, "explain", *arguments], check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=30)
    return done.stdout.decode()


def keys_of(binary, name):
    keys = [json.loads(line) for line in ask(binary, *([name] if name else []), "--all", "--json").splitlines()]
    for key in keys:
        key["path"] = key["path"][len(name) + 1:] if name else key["path"]
    return keys


def list_of(keys):
    return "".join(key_entry(key) for key in keys if not (key["path"].endswith("*") and not key["doc"]))


def schema_at(schema, whole, path):
    """The part of the JSON Schema that describes the key, or None."""
    parts = path.split(".")
    here = [schema]
    for part in parts:
        following = []
        while here:
            node = here.pop()
            if not isinstance(node, dict):
                continue
            if "$ref" in node:
                here.append(whole["definitions"][node["$ref"].rsplit("/", 1)[1]])
            for choice in node.get("anyOf", []) + node.get("allOf", []):
                here.append(choice)
            if part == "[]":
                following.append(node.get("items"))
            elif part == "*":
                following.append(node.get("additionalProperties"))
            else:
                following.append(node.get("properties", {}).get(part))
        here = [node for node in following if node]
    return here[0] if here else None


def binary_of(tree, build):
    if build is None:
        path = os.path.join(tree.root, "bin/monarch")
        os.chmod(path, 0o755)
        return path
    return os.path.join(build, "cli/monarch")


def split_page(text):
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        return None
    return text[:begin + len(BEGIN)], text[begin + len(BEGIN):end], text[end:]


def check(tree, build):
    binary = binary_of(tree, build)
    if not os.path.exists(binary):
        from run_lint import Skip
        raise Skip("no binary is built here")
    return [line for schema in SCHEMAS for line in check_one(tree, binary, *schema)]


def check_one(tree, binary, of_page, of_reference, name):
    asked = "monarch explain" + (" " + name if name else "")
    keys = keys_of(binary, name)
    found = []
    page = split_page(tree.read(of_page)) if tree.exists(of_page) else None
    if page is None:
        found.append(f"{of_page}: lacks the comments around the list of keys")
    elif page[1] != list_of(keys):
        found.append(f"{of_page}: the list of keys is not what `{asked}` says; key_docs.py --update writes it")
    schema = json.loads(ask(binary, *([name] if name else []), "--schema"))
    reference = tree.read(of_reference)
    for key in keys:
        path = key["path"]
        if schema_at(schema, schema, path) is None:
            found.append(f"{os.path.relpath(binary, tree.root)}: the JSON Schema does not have {path}")
        last = path.rsplit(".", 1)[-1]
        if last != "*" and not re.search(rf"(?<![\w]){re.escape(last)}:", reference):
            found.append(f"{of_reference}: does not show {path}")
    return found


def update(build):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for of_page, _, name in SCHEMAS:
        page = os.path.join(root, of_page)
        with open(page, encoding="utf-8") as file:
            before, _, after = split_page(file.read())
        with open(page, "w", encoding="utf-8") as file:
            file.write(before + list_of(keys_of(os.path.join(build, "cli/monarch"), name)) + after)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "--update":
        sys.exit(__doc__)
    update(sys.argv[2])
