"""The rogue of the tests: a worker of a job that means harm, and does what it is ordered (rogue_worker.cc)."""

import os
import re

import harness

PROGRAM = os.path.join(harness.BUILD, "tests/process/rogue-worker")


class Rogue:
    def __init__(self, folder):
        self.folder = folder
        if not os.path.exists(folder):
            os.mkdir(folder)
            os.mkfifo(os.path.join(folder, "orders"))

    def worker_of(self, host):
        """The environment of a supervisor for which it is this host's worker, and the real one that of the others."""
        return {"MONARCH_WORKER": PROGRAM, "ROGUE_HOST": host, "ROGUE_FOLDER": self.folder, "ROGUE_REAL_WORKER": harness.WORKER}

    def order(self, word, number=0):
        """It does that; its answer."""
        path = os.path.join(self.folder, "answers")
        open(path, "w", encoding="ascii").close()
        with open(os.path.join(self.folder, "orders"), "w", encoding="ascii") as orders:
            orders.write(f"{word} {number}\n")

        def answer():
            with open(path, encoding="ascii") as file:
                return re.fullmatch(r"(\S+) (\d+)\n", file.read())

        said, count = harness.wait_for(answer, f"an answer to {word}").groups()
        if said != word:
            raise AssertionError(f"{said} and not {word}")
        return int(count)
