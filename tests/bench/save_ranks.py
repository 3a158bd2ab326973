"""What the rank of scripts/bench actors does that saves checkpoints. The first generation saves, and kills its host; the next one loads the
copy that another host has, compares the bytes, and prints as JSON how long each save took.

usage: save_ranks.py MEBIBYTES TIMES FOLDER
"""

import json
import os
import signal
import sys
import time

import monarch_rank as monarch


def content(mebibytes):
    return bytes(range(256)) * (mebibytes << 12)


def save(mebibytes, times, told):
    data, seconds = content(mebibytes), []
    for step in range(1, times + 2):
        begun = time.perf_counter()
        if not monarch.save(step, data):
            sys.exit(f"save_ranks: step {step} does not count")
        seconds.append(time.perf_counter() - begun)
    with open(told + ".new", "w", encoding="ascii") as file:
        json.dump({"bytes": len(data), "seconds": seconds[1:]}, file)  # the first makes the pages
    os.rename(told + ".new", told)
    os.kill(os.getppid(), signal.SIGKILL)  # the keeper, with which all of the host ends
    signal.pause()


def load(mebibytes, told):
    kept = monarch.load()
    if kept is None or kept[:] != content(mebibytes):
        sys.exit("save_ranks: other bytes than were saved")
    with open(told, encoding="ascii") as file:
        print(file.read(), flush=True)


def main(mebibytes, times, folder):
    told = os.path.join(folder, "saved.json")
    load(mebibytes, told) if os.path.exists(told) else save(mebibytes, times, told)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
