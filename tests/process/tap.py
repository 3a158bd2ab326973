"""Runs the unittest cases of the calling file and reports them as TAP, case by case: `tap.main()`."""

import sys
import traceback
import unittest

import side_by_side


ALL = 1024  # processors: nothing that waits runs beside it


def takes(share):
    """Decorates a case that takes so much of a processor, for `scripts/test` to run fewer beside it: most wait, and take little."""

    def mark(method):
        method.share = share
        return method
    return mark


class _TapResult(unittest.TestResult):
    def _say(self, word, test, note=""):
        print(f"{word} - {_label(test)}{note}", flush=True)

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


def _label(test):
    return f"{type(test).__name__}.{getattr(test, '_testMethodName', test)}"


def _share(case):
    return getattr(getattr(case, case._testMethodName, None), "share", None)


def stop():
    """No further case is started."""
    _result.stop()


def _run(cases):
    """The exit code of cases that ran in a row."""
    unittest.TestSuite(cases).run(_result)
    return 0 if _result.wasSuccessful() else 1


def _groups(cases):
    """Cases that share what their class has set up are one group; any other is one alone."""
    shared = {}
    for case in cases:
        sets_up = type(case).setUpClass.__func__ is not unittest.TestCase.setUpClass.__func__
        label = type(case).__name__ if sets_up else _label(case)
        shared.setdefault(label, []).append(case)
    return [side_by_side.Group(label, lambda of=of: _run(of), max(filter(None, map(_share, of)), default=None))
            for label, of in shared.items()]


def _run_side_by_side(cases, channel, limit):
    codes = []

    def ended(label, code, output):
        codes.append(code)
        # One write, so that its lines stay together.
        print(output, end="" if output.endswith("\n") else "\n", flush=True)
        if code not in (0, 1):
            print(f"not ok - {label}\n# its process ended with {code}", flush=True)

    try:
        side_by_side.run(_groups(cases), channel, limit, ended)
    except side_by_side.Over as over:
        print(f"not ok - all of them\n# {over}", flush=True)
        return 1
    return max(codes, default=0) and 1


def main():
    """Arguments name cases to run (`Class.method`, or a part of it); none runs all."""
    turns = side_by_side.turns()
    cases = []

    def collect(suite):
        for item in suite:
            if isinstance(item, unittest.TestSuite):
                collect(item)
            elif not sys.argv[1:] or any(a in item.id() for a in sys.argv[1:]):
                cases.append(item)

    collect(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    print(f"1..{len(cases)}" if cases else "1..0 # SKIP no case has that name", flush=True)
    sys.exit(_run_side_by_side(cases, *turns) if turns else _run(cases))
