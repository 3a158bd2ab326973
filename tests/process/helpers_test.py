"""What a rank has started beside its own process: it outlives that for a moment, and a signal is not for it."""

import glob

import harness
import jobs

# With shared memory, as data loaders have: a process of its own, Python's resource tracker, unlinks it once this one is dead.
SHARING = jobs.PYTHON_MARK + """
import os, sys, time
from multiprocessing import resource_tracker, shared_memory
rank, generation = os.environ["MONARCH_RANK"], os.environ["MONARCH_GENERATION"]
kept = shared_memory.SharedMemory(create=True, size=4096, name=f"{sys.argv[1]}-{rank}-{generation}")
# It puts away what is left once it has seen to it that signals do not end it.
tracker = resource_tracker._resource_tracker._pid
while not int(next(line.split()[1] for line in open(f"/proc/{tracker}/status") if line.startswith("SigIgn:")), 16) & 1 << 14:
    time.sleep(0.01)
mark("made" + generation)
while rank != "1" or not os.path.exists(f"made{generation}.0"):
    time.sleep(0.01)
os._exit(9)
"""
# It needs its helper to save, and says by marks whether it lives.
SAVING = jobs.PYTHON_MARK + """
import signal, subprocess, sys, time
helper = subprocess.Popen(["sleep", "1000"])
def save(number, _):
    try:
        how = -helper.wait(0.2)
    except subprocess.TimeoutExpired:
        how = 0
    mark(signal.Signals(number).name, how)
    if number == signal.SIGTERM:
        sys.exit(0)
for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, save)
mark("there")
while True:
    time.sleep(0.05)
"""


class Leftovers(jobs.JobTest):
    def test_shared_memory_of_killed_python_ranks_is_unlinked(self):
        for name, words in (("alone", ["python3"]), ("in_a_shell", ["bash", "-c", 'python3 "$@"; exit $?', "bash"])):
            with self.subTest(name):
                mine = f"mh-{self.tag}-{name}"
                spec = self.program_job([*words, self.write("sharing.py", SHARING), mine], hosts=1, name=name,
                                        supervision={"restart": {"max": 1, "backoff": "1ms"}})
                done = self.monarch("run", spec)
                self.assertEqual(done.status, 9, done)
                self.assertEqual(self.marks("made2"), [0, 1], done)
                self.assertEqual(glob.glob(f"/dev/shm/{mine}*"), [])


class Signals(jobs.JobTest):
    def saving(self, words=("python3",), **stop):
        spec = self.program_job([*words, self.write("saving.py", SAVING)], hosts=1, slots=1, mesh={"stop": {"grace": "20s", **stop}})
        run = self.start("run", spec)
        self.wait_for_marks("there", 1)
        return run

    def test_they_go_to_the_ranks_own_process(self):
        run = self.saving()
        self.assertEqual(self.monarch("signal", "USR1").status, 0)
        self.assertEqual(self.wait_for_marks("SIGUSR1", 1), [0], "its helper lives")
        self.assertEqual(self.monarch("stop").status, 0)
        self.assertEqual(self.wait_for_marks("SIGTERM", 1), [0], "its helper lives")
        self.end_of(run, 143, "stopped")

    def test_they_go_to_what_a_shell_waits_for(self):
        run = self.saving(["bash", "-c", 'python3 "$0"; exit $?'])
        self.assertEqual(self.monarch("stop").status, 0)
        self.end_of(run, 143, "stopped")
        self.assertEqual(self.marks("SIGTERM"), [0], "it has the whole grace, also where its shell dies of the signal at once")

    def test_they_go_to_its_group_where_that_is_wanted(self):
        run = self.saving(to="group")
        self.assertEqual(self.monarch("signal", "USR1", "--to", "rank").status, 0)
        self.assertEqual(self.wait_for_marks("SIGUSR1", 1), [0])
        self.assertEqual(self.monarch("signal", "USR2").status, 0)
        self.assertEqual(self.wait_for_marks("SIGUSR2", 1), [12], "its helper has died of it")
        wrong = self.monarch("signal", "USR2", "--to", "groups")
        self.assertEqual(wrong.status, 2, wrong)
        self.assertIn("did you mean group?", wrong.err)
        self.assertEqual(self.monarch("stop").status, 0)
        self.end_of(run, 143, "stopped")


if __name__ == "__main__":
    harness.main()
