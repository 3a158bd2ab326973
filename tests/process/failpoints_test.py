"""The supervisor is killed at each step of writing its journal: before the write, before the sync, before what follows is sent.

strace ends it at the n-th such call; its guard starts it again. Whatever the moment: the job ends well, and each rank's program was started
once. (A supervisor that dies before it has said that it is ready has started nothing: then the run fails, and leaves nothing.)
"""

import os
import re
import shutil
import subprocess
import unittest

import harness
import recovery

RANK = "echo $$ >> ran.$MONARCH_RANK; mark there\n" + recovery.COUNT
RETURNED_S = 10.0  # from the command until the next supervisor


def can_trace():
    if shutil.which("strace") is None:
        return False
    tried = subprocess.run(["strace", "-D", "-f", "-qqq", "-o", "/dev/null",
                            "-e", "inject=fdatasync:signal=KILL:when=9", "true"], stderr=subprocess.DEVNULL, check=False)
    return tried.returncode == 0


@unittest.skipUnless(can_trace(), "needs strace, and the right to trace")
class Failpoints(recovery.RecoveryTest):
    def traced(self, what, then):
        """A MONARCH_WORKER whose guard runs its first supervisor under strace with these words; $JOB is the job's folder.

        `then`: under what the later ones run, if anything."""
        once = self.path("work", "once")
        shutil.rmtree(once, ignore_errors=True)
        strace = "exec strace -D -f -qqq -o /dev/null"
        traced = self.write("traced", f"#!/bin/sh\nmkdir {once} 2>/dev/null || {then and strace + ' ' + then or 'exec'} \"$@\"\n"
                            "for word; do [ \"$last\" = --job-dir ] && JOB=$word; last=$word; done\n"
                            f"{strace} {what} \"$@\"\n", mode=0o755)
        return self.guarding(traced)

    def killed_at(self, what, then=""):
        """One run; how often its supervisor came back."""
        for name in os.listdir(self.path("work")):
            if name.startswith(("ran.", "there.", "step.", "go")):
                os.unlink(self.path("work", name))
        before = set(self.jobs())
        since = self.now()
        run = self.start("run", self.counting(RANK, slots=1), env={"MONARCH_WORKER": self.traced(what, then)})
        harness.wait_for(lambda: run.status is not None or len(self.marks("there")) == 2, lambda: repr(run))
        if run.status is None:
            self.pids = dict(enumerate(self.wait_for_marks("there", 2)))
            self.assert_go_on([0, 1])
            self.write("go", "")
        done = run.finished()
        job, = set(self.jobs()) - before
        log = self.log("supervisor.log", job)
        terms = len(re.findall(r"this is term \d+", log))
        ran = [self.read("work", f"ran.{rank}") for rank in range(2) if os.path.exists(self.path("work", f"ran.{rank}"))]
        if done.status == 70 and "before it was ready" in done.err:
            self.assertEqual(ran, [], done)
        else:
            self.assertEqual(done.status, 0, f"{done}\n{log}")
            self.assertEqual([text.count("\n") for text in ran], [1, 1], f"started once each\n{log}")
            self.assert_nothing_done()
            if terms > 1:
                returned = self.events("supervisor.returned")[0]
                self.assert_seen(returned, since, RETURNED_S)
                self.assert_stage(returned, "as term 2")
        self.assert_nothing_left()
        return terms

    def killed_at_each(self, what, points, least):
        came_back = 0
        for when in points:
            with self.subTest(when=when):
                came_back += self.killed_at(what.format(when=when))
        self.assertGreaterEqual(came_back, least, "most of these moments come")

    def test_before_a_record_is_written(self):  # V03
        self.killed_at_each("-P $JOB/journal.0001 -e trace=write -e inject=write:signal=KILL:when={when}", range(1, 13), 6)

    def test_before_a_record_is_synced(self):  # V03
        self.killed_at_each("-e trace=fdatasync -e inject=fdatasync:signal=KILL:when={when}", range(1, 15), 6)

    def test_before_what_is_recorded_is_sent(self):  # V03
        self.killed_at_each("-e trace=sendto -e inject=sendto:signal=KILL:when={when}", range(2, 40, 3), 5)

    def test_before_hosts_are_launched_and_the_next_one_waits_for_its_disk(self):  # V03
        """What the launcher finds out by itself comes before its orders, which are written down first."""
        for when in range(1, 6):
            with self.subTest(when=when):
                self.killed_at(f"-e trace=sendmsg -e inject=sendmsg:signal=KILL:when={when}",
                               "-e trace=fdatasync -e inject=fdatasync:delay_enter=100000")


if __name__ == "__main__":
    harness.main()
