"""What cores are given is recorded by one run of the simulator and checked by another: none differs, and a core that decides
otherwise is found."""

import subprocess
import sys
import tempfile

SEEDS = "1..40"
# Of the planted bugs those that are the core's own; the others are its drivers', which a check does without.
BUG = "ready-at-once"


def simulator(*arguments):
    ran = subprocess.run([sys.argv[1], *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, check=False)
    told = ran.stdout.decode(errors="replace")
    print("#", *arguments, "->", ran.returncode)
    print("".join(f"#   {line}\n" for line in told.splitlines()), end="")
    return ran.returncode, told


def main():
    print("1..3")
    with tempfile.TemporaryDirectory() as folder:
        code, _ = simulator("--record", folder, "--seeds", SEEDS)
        print("ok" if code == 0 else "not ok", "1 - runs are recorded")
        code, told = simulator("--check", folder)
        print("ok" if code == 0 and told.endswith("no difference\n") else "not ok", "2 - the same tree answers the same")
        code, told = simulator("--check", folder, "--mutant", BUG)
        found = code == 1 and told.startswith("seed ") and "another one: to host" in told
        print("ok" if found else "not ok", "3 - a core that decides otherwise is found, and in what")


if __name__ == "__main__":
    main()
