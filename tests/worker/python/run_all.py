"""Runs the tests of the package, in one interpreter: these files, or all *_test.py beside this one."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "..", "worker", "python")]
    names = sys.argv[1:] or [name for name in os.listdir(HERE) if name.endswith("_test.py")]
    modules = sorted(os.path.splitext(os.path.basename(name))[0] for name in names)
    found = unittest.defaultTestLoader.loadTestsFromNames(modules)
    done = unittest.TextTestRunner(sys.stdout, verbosity=1).run(found)
    return 0 if done.wasSuccessful() and done.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
