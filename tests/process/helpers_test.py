"""What a rank has started beside its own process: it outlives that for a moment."""

import glob

import harness
import jobs

# With shared memory, as data loaders have: a process of its own, Python's resource tracker, unlinks it once this one is dead.
SHARING = jobs.PYTHON_MARK + """
import os, sys, time
from multiprocessing import shared_memory
rank, generation = os.environ["MONARCH_RANK"], os.environ["MONARCH_GENERATION"]
kept = shared_memory.SharedMemory(create=True, size=4096, name=f"{sys.argv[1]}-{rank}-{generation}")
mark("made" + generation)
while rank != "1" or not os.path.exists(f"made{generation}.0"):
    time.sleep(0.01)
os._exit(9)
"""


class Leftovers(jobs.JobTest):
    def test_shared_memory_of_killed_python_ranks_is_unlinked(self):
        for name, words in (("alone", ["python3"]), ("in-a-shell", ["bash", "-c", 'python3 "$@"; exit $?', "bash"])):
            with self.subTest(name):
                mine = f"mh-{self.tag}-{name}"
                spec = self.program_job([*words, self.write("sharing.py", SHARING), mine], hosts=1, name=name,
                                        supervision={"restart": {"max": 1, "backoff": "1ms"}})
                done = self.monarch("run", spec)
                self.assertEqual(done.status, 9, done)
                self.assertEqual(self.marks("made2"), [0, 1], done)
                self.assertEqual(glob.glob(f"/dev/shm/{mine}*"), [])


if __name__ == "__main__":
    harness.main()
