"""The simulator gives the same runs for the same seeds, also in another process: no address and no other memory decides (I24)."""

import subprocess
import sys

SEEDS = "1..100"


def digest(simulator):
    ran = subprocess.run([simulator, "--seeds", SEEDS, "--digest"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         timeout=240, check=False)
    return ran.returncode, ran.stdout.decode(errors="replace").strip().splitlines()


def main():
    print("1..1")
    first, second = digest(sys.argv[1]), digest(sys.argv[1])
    told = first[1] and first[1][-1].startswith("digest of 100 seeds: ")
    for code, lines in (first, second):
        print("#", code, lines[-1] if lines else "nothing was printed")
    print("ok" if told and first == second and first[0] == 0 else "not ok", "- the digest of 100 seeds is the same twice")


if __name__ == "__main__":
    main()
