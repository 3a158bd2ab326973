"""More than one supervisor of a job, over SSH: who comes second is told who holds the job; a copy of its folder is nobody's until somebody says
so; and who was left behind changes nothing when it goes on."""

import shutil
import signal

import cluster
import harness
import host_faults


class TwoSupervisors(host_faults.HostFaultTest):
    def detached(self):
        """The job runs and no viewer looks on: its id."""
        run = self.running(fast=False)
        run.signal(signal.SIGKILL)
        run.wait()
        job, = self.jobs()
        return job

    def copy(self):
        shutil.copytree(self.path("state"), self.path("copy"))
        return {"MONARCH_STATE_DIR": self.path("copy")}

    def stopped(self, job, env=None):
        """All ranks are those of the start, no host was doubted, and nothing is left."""
        self.assert_go_on(range(4))
        self.assert_nothing_done()
        self.assert_unseen()
        self.assertEqual(self.monarch("stop", job, timeout=60, env=env).status, 0)
        if env:  # the folder that it was copied from is nobody's any more
            self.assertEqual(self.monarch("rm", job).status, 0)
        self.assert_single_effect(range(4))
        self.assert_nothing_left()

    def test_the_second_one_is_told_who_holds_the_job(self):  # V05
        job = self.detached()
        since = self.now()
        supervisor = self.process("supervisor")
        refused = self.monarch("up", "--resume", job)
        self.assertEqual(refused.status, 75, refused)
        self.assertRegex(refused.err, rf"another supervisor holds .*: pid \d+ on login, since \d{{4}}-")
        self.assertLess(self.now() - since, 5)
        self.assertEqual(self.process("supervisor").pid, supervisor.pid)
        self.stopped(job)

    def test_a_copy_of_its_folder_is_refused_beside_the_job_and_without_force(self):  # V06
        job = self.detached()
        copy = self.copy()
        for _ in ("while it is supervised", "while it is not"):
            refused = self.monarch("up", "--resume", job, env=copy)
            self.assertEqual(refused.status, 75, refused)
            self.assertIn("and this is another directory", refused.err)
            self.kill_all([process for role in ("guard", "supervisor") for process in self.processes_of(role)])
        since = self.now()
        forced = self.monarch("up", "--resume", job, "--force-takeover", env=copy, timeout=60)
        self.assertEqual(forced.status, 0, forced)
        self.wait_for_adoption(job, copy)
        self.assertLess(self.now() - since, host_faults.START_S)
        self.stopped(job, copy)

    def wait_for_adoption(self, job, env):
        harness.wait_for(lambda: "supervisor.adopted" in self.monarch("events", job, env=env).out,
                         lambda: self.monarch("events", job, env=env).out)

    def test_who_was_left_behind_is_obeyed_by_nobody(self):  # V07
        job = self.detached()
        copy = self.copy()
        self.kill_all([process for role in ("guard", "supervisor") for process in self.processes_of(role)])
        self.assertEqual(self.monarch("up", "--resume", job, "--force-takeover", env=copy, timeout=60).status, 0)
        self.wait_for_adoption(job, copy)
        before = {r: self.pid_of(r) for r in range(4)}
        self.kill_all([process for role in ("guard", "supervisor") for process in self.processes_of(role)])
        # The first one comes back with a journal that knows of no other. Its hosts do.
        since = self.now()
        self.monarch("up", "--resume", job, timeout=60)
        harness.wait_for(lambda: "have promised term 1000001" in self.supervisor_log(), self.supervisor_log)
        self.assertLess(self.now() - since, host_faults.START_S)
        harness.wait_for(lambda: not self.processes_of("supervisor"), self.supervisor_log)
        self.assertEqual({r: self.pid_of(r) for r in range(4)}, before)
        self.assertEqual(self.monarch("up", "--resume", job, env=copy, timeout=60).status, 0)
        self.wait_for_adoption(job, copy)
        self.stopped(job, copy)


if __name__ == "__main__":
    cluster.main()
