"""`monarch rm` on real jobs: what it takes away, what it refuses, and that nothing outside is ever touched."""

import os
import re
import signal
import subprocess

import harness
import jobs


class Removal(jobs.JobTest):
    def up(self, script="mark there\n" + jobs.FOREVER, **keys):
        done = self.monarch("up", self.job(script, **keys))
        self.assertEqual(done.status, 0, done)
        self.pids = self.wait_for_marks("there", 4)
        return done.out.strip()

    def ended(self, name="demo"):
        before = set(self.jobs())
        self.assertEqual(self.monarch("run", self.job("true\n", name=name)).status, 0)
        job, = set(self.jobs()) - before
        return job

    def test_a_job_that_lives_is_refused_and_nothing_is_removed(self):
        old = self.ended("old")
        job = self.up()
        refused = self.monarch("rm", old, job)
        self.assert_output(refused, 2, "", re.compile(
            rf"error\[E0925\]: {job} is live: its supervisor, pid \d+ on \S+, holds it\n  = help: monarch stop {job}\n"))
        self.assertEqual(sorted(self.jobs()), sorted([old, job]))
        swept = self.monarch("rm", "--all")
        self.assert_output(swept, 0, re.compile(rf"removed {old}: \d+ files of \d+ KiB\n"),
                           "monarch: 1 job lives and is left\n")
        self.assertEqual(self.monarch("stop", job).status, 0)
        # At once: a supervisor that has just written its verdict is waited for.
        self.assertEqual(self.monarch("rm", job).status, 0)
        self.assertEqual(self.jobs(), [])
        self.assertEqual(os.listdir(self.path("state", "jobs")), [])
        self.assert_nothing_left()
        self.assert_output(self.monarch("rm", "--all"), 0, "", "monarch: there is nothing to remove\n")

    def test_age_decides_and_a_dry_run_removes_nothing(self):
        job = self.ended()
        verdict = self.job_file("verdict.json")
        self.assertEqual(self.monarch("rm", "--older-than", "1h").out, "")
        text = self.read(verdict)
        with open(verdict, "w", encoding="utf-8") as file:
            file.write(re.sub(r'"ended":"\d{4}', '"ended":"2001', text))
        dry = self.monarch("rm", "--older-than", "1h", "--dry-run")
        self.assertRegex(dry.out, rf"\Awould remove {job}: ")
        self.assertEqual(self.jobs(), [job])
        self.assertRegex(self.monarch("rm", "--older-than", "1h").out, rf"\Aremoved {job}: ")
        self.assertEqual(self.jobs(), [])

    def test_what_a_dead_supervisor_and_guard_left_is_ended_and_removed(self):
        script = "setsid sleep 1000 & mark there; trap '' TERM HUP INT\n" + jobs.FOREVER
        job = self.up(script, supervision={"orphan_ttl": "10m"})
        stranger = self.start_program(*jobs.shell(jobs.FOREVER), env={"MONARCH_JOB_ID": job})
        supervisor, guard = self.process("supervisor"), self.process("guard")
        self.kill(supervisor, signal.SIGSTOP)
        self.kill(guard)
        self.kill(supervisor)
        self.wait_gone(supervisor)
        self.wait_gone(guard)
        self.assertTrue(os.path.exists(self.job_file("key")))
        what = r"\d\d processes, 3 sockets, (\d cgroups?, )?\d+ files of "  # a daemon may be quicker with its own
        dry = self.monarch("rm", "--dry-run", job)
        self.assertRegex(dry.out, rf"\Awould remove {job}: {what}")
        done = self.monarch("rm", job)
        self.assertEqual(done.status, 0, done)
        self.assertRegex(done.out, rf"\Aremoved {job}: {what}")
        self.assertEqual(self.jobs(), [])
        # A name proves nothing: who only says to be of the job lives on.
        self.assertIsNone(stranger.status)
        stranger.end()
        self.assert_nothing_left()
        self.assertEqual(os.listdir(self.path("state", "jobs")), [])
        self.assertFalse(os.path.exists(self.path("state", "hosts", job)))

    def test_the_cgroups_of_keepers_and_daemons_that_were_killed_together_are_removed(self):
        job = self.up()
        # They are named by a uuid that only the journal tells.
        groups = [group.removeprefix("cgroup ") for group in harness.leftovers.cgroups(self.folder)]
        if not groups:
            self.skipTest("no cgroup is writable here")
        supervisor, guard = self.process("supervisor"), self.process("guard")
        workers = [self.process(role, host) for host in ("v1", "v2") for role in ("daemon", "keeper")]
        self.kill(supervisor, signal.SIGSTOP)
        self.kill(guard)
        self.kill(supervisor)
        for worker in workers:
            self.kill(worker, signal.SIGSTOP)
        for worker in workers:
            self.kill(worker)
        self.wait_gone(supervisor)
        self.assertEqual([group for group in groups if not os.path.exists(group)], [])
        done = self.monarch("rm", job)
        self.assertEqual(done.status, 0, done)
        self.assertRegex(done.out, rf"\Aremoved {job}: (\d+ process(es)?, )?3 sockets, 2 cgroups, \d+ files of ")
        self.assertEqual([group for group in groups if os.path.exists(group)], [])
        self.assert_nothing_left()

    def test_a_guard_that_brings_the_supervisor_back_keeps_the_job(self):
        job = self.up()
        supervisor, guard = self.process("supervisor"), self.process("guard")
        self.kill(guard, signal.SIGSTOP)
        self.kill(supervisor)
        self.wait_gone(supervisor)
        refused = self.monarch("rm", job)
        self.assertEqual((refused.status, refused.out), (2, ""), refused)
        self.assertIn(f"{job} is live: its guard, pid {guard.pid}, starts its supervisor again", refused.err)
        self.kill(guard, signal.SIGCONT)
        harness.wait_for(lambda: self.processes_of("supervisor"), "the supervisor of the next term")
        harness.wait_for(lambda: self.monarch("stop", job).status == 0, "its answer to a stop")
        self.assertEqual(self.monarch("wait", job).status, 143)

    def test_links_and_mounts_are_not_followed(self):
        job = self.ended()
        folder = self.path("state", "jobs", job)
        precious = self.path("precious")
        os.makedirs(os.path.join(precious, "inner"))
        self.write("kept", "kept")
        os.symlink(precious, os.path.join(folder, "logs", "link"))
        os.symlink(self.path("work", "kept"), os.path.join(folder, "logs", "file"))
        if os.geteuid() == 0:
            mounted = os.path.join(folder, "logs", "mounted")
            os.mkdir(mounted)
            if subprocess.run(["mount", "-t", "tmpfs", "none", mounted], check=False, stderr=subprocess.DEVNULL).returncode == 0:
                refused = self.monarch("rm", job)
                subprocess.run(["umount", mounted], check=True)
                self.assertEqual(refused.status, 70, refused)
                self.assertRegex(refused.err, r"error\[E0926\]: .* another file system is mounted at .*/mounted: unmount it")
        done = self.monarch("rm", "--all")
        self.assertEqual(done.status, 0, done)
        self.assertEqual(os.listdir(self.path("state", "jobs")), [])
        self.assertTrue(os.path.isdir(os.path.join(precious, "inner")))
        self.assertEqual(self.read("work", "kept"), "kept")

    def test_a_folder_that_is_a_link_is_no_job(self):
        job = self.ended()
        folder = self.path("state", "jobs", job)
        os.rename(folder, self.path("elsewhere"))
        os.symlink(self.path("elsewhere"), folder)
        done = self.monarch("rm", job)
        self.assertEqual(done.status, 2, done)
        self.assertTrue(os.path.exists(self.path("elsewhere", "verdict.json")))


if __name__ == "__main__":
    harness.main()
