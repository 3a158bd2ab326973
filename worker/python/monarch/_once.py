"""What is said once to a program: where something that it asks for is done otherwise here, or not at all.

Thread: any.
"""

import sys

_said = set()


def say(words):
    if words not in _said:
        _said.add(words)
        sys.stderr.write("monarch: %s\n" % words)
