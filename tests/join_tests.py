"""join_tests.py OUT… -- IN…: the test files IN, one behind the other in the files OUT.

A compiler spends most of a test's time on what all of them include and instantiate; so a tree that is made once, to run its tests, compiles
many together. What a file has in namespace monarch is its own: it gets a namespace around it that no other file has, and an unnamed one
within that, without which GCC takes it for a header's (-Wsubobject-linkage).
"""

import os
import re
import sys

FORM = re.compile(r"\A(.*?^namespace monarch(?:::\w+)* \{\n)(.*)(^\}  // namespace monarch(?:::\w+)*\n)\Z", re.MULTILINE | re.DOTALL)


def joined(paths):
    pieces = ["// Made of others.\n"]
    for path in paths:
        with open(path, encoding="utf-8") as file:
            parts = FORM.match(file.read())
        if not parts:
            raise SystemExit(f"{path}: what it has is not all in one namespace monarch")
        head, body, foot = parts.groups()
        name = "of_" + re.sub(r"\W", "_", os.path.basename(path).removesuffix(".cc"))
        pieces.append(f'#line 1 "{path}"\n{head}namespace {name} {{\nnamespace {{\n#line {head.count(chr(10)) + 1} "{path}"\n{body}}}\n}}\n{foot}')
    return "".join(pieces)


def main(arguments):
    border = arguments.index("--")
    outputs, inputs = arguments[:border], arguments[border + 1:]
    for number, output in enumerate(outputs):
        with open(output, "w", encoding="utf-8") as file:
            file.write(joined(inputs[number::len(outputs)]))


if __name__ == "__main__":
    main(sys.argv[1:])
