"""What starts and large bodies cost, in what is the same on machines of any speed: syncs that wait for one another, and page faults."""

import json
import re
import shutil
import subprocess
import unittest

import actors
import harness
import tap
from actors import actor, plugin

SYNCS = "fdatasync,fsync,syncfs,sync_file_range"
MOST_IN_A_ROW = 10
MOST_FAULTS = 100
# Of each sync, by strace: as on a slow disk, so that those that are under way together are seen to be.
DELAY_US = 100_000
SPEC = """
version: 1
job: {name}
meshes:
  m:
    dims: {{slot: 8}}
    program: ["/bin/true"]
"""


def can_delay():
    if shutil.which("strace") is None:
        return False
    tried = subprocess.run(["strace", "--seccomp-bpf", "-f", "-qqq", "-o", "/dev/null", "-e", "inject=fdatasync:delay_enter=1", "true"],
                           stderr=subprocess.DEVNULL, check=False)
    return tried.returncode == 0


def times(trace, program=None):
    """(begun, over) of each sync that `strace -f -ttt -T` saw, until this program was executed."""
    begun, found = {}, []
    for line in trace.splitlines():
        pid, at, rest = line.split(None, 2)
        took = re.search(r" <([0-9.]+)>$", rest)
        if program is not None and rest.startswith(f'execve("{program}", ["{program}"'):
            break
        if "execve" in rest:
            continue
        if rest.endswith("<unfinished ...>"):
            begun[pid] = float(at)
        elif took:
            since = begun.pop(pid, float(at))
            found.append((since, since + float(took.group(1))))
    return found


def in_a_row(intervals):
    """The most of them of which each began when the one before was over."""
    count, end = 0, 0.0
    for begun, over in sorted(intervals, key=lambda one: one[1]):
        if begun >= end:
            count, end = count + 1, over
    return count


class Costs(actors.ActorTest):
    @unittest.skipUnless(can_delay(), "needs strace, and the right to trace")
    def test_ranks_begin_after_few_syncs_one_behind_the_other(self):
        trace = self.path("trace")
        run = self.start_program("strace", "--seccomp-bpf", "-f", "-qqq", "-ttt", "-T", "-o", trace, "-e", "trace=execve," + SYNCS,
                                 "-e", f"inject={SYNCS}:delay_enter={DELAY_US}", harness.MONARCH, "run", self.spec(SPEC.format(name="starts")), "--quiet")
        self.assertEqual(run.finished().status, 0, run)
        syncs = times(self.read(trace), "/bin/true")
        self.assertLess(len(syncs), len(times(self.read(trace))), "the ranks were not seen to begin")
        self.assertGreaterEqual(len(syncs), 5, "nothing is durable, or nothing was traced")
        self.assertLessEqual(in_a_row(syncs), MOST_IN_A_ROW, self.read(trace))

    def test_syncs_that_are_under_way_together_count_as_one(self):
        trace = ("7 10.0 fdatasync(3 <unfinished ...>\n8 10.1 fsync(4)           = 0 (DELAYED) <0.400000>\n7 10.5 <... fdatasync resumed>) = 0 <0.500000>\n"
                 "7 10.6 +++ exited with 0 +++\n8 10.7 fsync(4)           = 0 (DELAYED) <0.100000>\n")
        self.assertEqual([(begun, round(over, 3)) for begun, over in times(trace)], [(10.1, 10.5), (10.0, 10.5), (10.7, 10.8)])
        self.assertEqual(in_a_row(times(trace)), 2)
        begins = trace.replace("+++ exited with 0 +++", 'execve("/bin/true", ["/bin/true"], 0x1) = 0 <0.1>')
        self.assertEqual(in_a_row(times(begins, "/bin/true")), 1)

    @unittest.skipIf(harness.SANITIZED, "a sanitizer has pages of its own")
    def test_a_large_buffer_takes_no_new_pages_once_its_block_is_warm(self):
        job = self.actor_job({"reader": actor("page_faults", "Reader")}, {"plugin": plugin("page_faults"), "entry": "page_faults"}, hosts=1, gpus=1)
        done = self.monarch("run", "--quiet", "--no-prefix", job)
        self.assertEqual(done.status, 0, done)
        faults = json.loads(done.out)
        self.assertLessEqual(max(faults.values()), MOST_FAULTS, faults)


if __name__ == "__main__":
    tap.main()
