"""The tests of the verbs lane on real libibverbs: in one boot of a guest that has soft-RoCE (guest.py); each case is reported as TAP."""

import os
import re
import sys

import guest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(os.environ["MONARCH_BUILD_DIR"], "tests", "transport-tensor-test")
CASES = "*/verbs:Guest/*"  # what any lane holds to, and what befalls real verbs
BOOT_S = 170.0
WORDS = {"OK": "ok", "FAILED": "not ok", "SKIPPED": "not ok"}


def main():
    command = f"MONARCH_TEST_RDMA=rxe1,rxe0 {os.path.basename(PROGRAM)} --gtest_color=no '--gtest_filter={CASES}'"
    try:
        status, output = guest.run(os.path.join(ROOT, "build-rxe"), command, [PROGRAM], BOOT_S)
    except guest.Unavailable as why:
        print(f"1..0 # SKIP {why}")
        return 0
    count, said = 0, []
    for line in output.splitlines():
        case = re.match(r"\[ +(OK|FAILED|SKIPPED) +\] (\S+?),? .*\(\d+ ms\)$", line)
        if case is None:
            said.append(line)
            continue
        count += 1
        print(f"{WORDS[case[1]]} {count} - {case[2]}")
        if case[1] != "OK":
            print("# " + "\n# ".join(said))
        said = []
    if status != 0:
        count += 1
        print(f"not ok {count} - the guest's program ends with 0\n# it ended with {status}\n# " + "\n# ".join(said))
    print(f"1..{count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
