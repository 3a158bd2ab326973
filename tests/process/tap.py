"""Runs the unittest cases of the calling file and reports them as TAP, case by case: `tap.main()`."""

import sys
import traceback
import unittest


class _TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self._number = 0

    def _say(self, word, test, note=""):
        self._number += 1
        name = f"{type(test).__name__}.{getattr(test, '_testMethodName', test)}"
        print(f"{word} {self._number} - {name}{note}", flush=True)

    def _failed(self, test, error):
        self._say("not ok", test)
        print("# " + "".join(traceback.format_exception(*error)).rstrip().replace("\n", "\n# "), flush=True)

    def addSuccess(self, test):
        self._say("ok", test)

    def addError(self, test, err):
        super().addError(test, err)
        self._failed(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._failed(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._failed(test, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._say("ok", test, f" # SKIP {reason}")


_result = _TapResult()


def stop():
    """No further case is started."""
    _result.stop()


def main():
    """Arguments name cases to run (`Class.method`, or a part of it); none runs all."""
    cases = []

    def collect(suite):
        for item in suite:
            if isinstance(item, unittest.TestSuite):
                collect(item)
            elif not sys.argv[1:] or any(a in item.id() for a in sys.argv[1:]):
                cases.append(item)

    collect(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    print(f"1..{len(cases)}" if cases else "1..0 # SKIP no case has that name", flush=True)
    unittest.TestSuite(cases).run(_result)
    sys.exit(0 if _result.wasSuccessful() else 1)
