"""`supervisor: {on: first}`, and who goes: the starting machine, its launcher at any moment, the supervisor, the first host, another one."""

import contextlib
import os
import signal
import time

import cluster
import faults
from first_test import ALONE_S, RUNNING, First
from harness import wait_for


class Losses(First):
    def test_the_starting_machine_may_go_once_the_job_runs(self):
        w = self.world(3)
        run, job = self.begin(self.first_job("mark up; until [ -e /tmp/go ]; do nap 0.1; done; mark done", hosts=3, slots=1))
        self.wait_for_marks("up", 3, timeout=60)
        self.wait_until_launched()
        w.login.unplug()
        time.sleep(8)  # more than a lease: whoever depended on login would have been frozen and lost
        for host in w.hosts:
            host.write("/tmp/go", "")
        verdict = self.verdict_there(job)
        self.assertEqual((verdict["exit_code"], verdict["outcome"], verdict["left_behind"]), (0, "succeeded", []), self.log_there(job))
        self.assertEqual(self.marks("done"), [0, 1, 2])
        for host in w.hosts:
            os.unlink(host.path("/tmp/go"))
        w.login.plug()
        self.end(run)
        self.assert_clean()

    def test_a_launcher_that_is_killed_midway_fails_what_it_had_not_done(self):
        w = self.world(3)
        faults.hung_sshd(w["h3"])
        run, job = self.begin(self.first_job("mark up", hosts=3, slots=1, ssh={"connect_timeout": "60s"}))
        wait_for(lambda: self.log_there(job).count("worker is connected") == 2, lambda: self.log_there(job), 60)
        launcher, = self.launchers()
        self.kill(launcher)
        verdict = self.verdict_there(job)
        self.assertEqual((verdict["exit_code"], verdict["outcome"]), (69, "failed"), self.log_there(job))
        self.assertEqual([(f["host"], f["kind"]) for f in verdict["failed_hosts"]], [("h3", "launcher gone")], verdict)
        self.assertEqual(verdict["left_behind"], ["h3"], verdict)
        self.assertIn("h3: its worker cannot be ended from here", self.log_there(job))
        run.wait(60)
        self.assert_clean()

    def test_a_launcher_that_is_killed_before_anything_is_there_leaves_nothing(self):
        w = self.world(2)
        faults.hung_sshd(w["h1"])
        run = self.start("up", self.first_job("true", slots=1, ssh={"connect_timeout": "60s"}))
        launcher = wait_for(self.launchers, "a launcher", 60)[0]
        self.kill(launcher)
        self.assertEqual(run.wait(60), 70, run)
        self.assert_clean()

    def test_a_launcher_that_is_killed_at_any_moment_leaves_nothing(self):
        self.world(3)
        spec = self.first_job("sleep 1", hosts=3, slots=1)
        for moment in (0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6):
            with self.subTest(moment=moment):
                run = self.start("run", spec)
                wait_for(self.launchers, "a launcher", 60)
                time.sleep(moment)
                with contextlib.suppress(ProcessLookupError):  # it may have done all, and left
                    for launcher in self.launchers():
                        self.kill(launcher)
                run.wait(90)
                self.assert_clean(2 * ALONE_S)

    def test_an_interrupt_while_the_first_host_is_awaited(self):
        w = self.world(2)
        faults.hung_sshd(w["h1"])
        run = self.start("up", self.first_job("true", slots=1, ssh={"connect_timeout": "60s"}))
        wait_for(self.launchers, "a launcher", 60)
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(30), 130, run)
        self.assert_clean()

    def test_a_supervisor_that_crashes_there_comes_back_to_the_same_ranks(self):
        w = self.world(2)
        run, job = self.begin(self.first_job("mark up; until [ -e /tmp/go ]; do nap 0.1; done; mark done", slots=1))
        before = self.wait_for_marks("up", 2, timeout=60)
        self.wait_until_launched()
        self.kill(self.process("supervisor"))
        wait_for(lambda: "supervisor.adopted" in self.log_there(job), lambda: self.log_there(job), 60)
        self.assertEqual(self.wait_for_marks("up", 2), before)
        for host in w.hosts:
            host.write("/tmp/go", "")
        verdict = self.verdict_there(job)
        self.assertEqual((verdict["exit_code"], verdict["left_behind"]), (0, []), self.log_there(job))
        self.assertEqual(self.marks("done"), [0, 1])
        for host in w.hosts:
            os.unlink(host.path("/tmp/go"))
        self.end(run)
        self.assert_clean()

    def test_without_the_first_host_the_others_clean_up_by_themselves(self):
        w = self.world(3)
        run, _ = self.begin(self.first_job(RUNNING, hosts=3, slots=1))
        self.wait_for_marks("up", 3, timeout=60)
        self.wait_until_launched()
        self.assertEqual(run.wait(60), 0, run)
        w["h1"].power_off()
        self.assert_clean(2 * ALONE_S)

    def test_a_host_that_is_lost_after_the_start_is_named(self):
        w = self.world(3)
        _, job = self.begin(self.first_job(RUNNING, hosts=3, slots=1))
        self.wait_for_marks("up", 3, timeout=60)
        self.wait_until_launched()
        w["h3"].unplug()
        verdict = self.verdict_there(job)
        self.assertEqual((verdict["outcome"], verdict["cause"]["host"], verdict["left_behind"]), ("failed", "h3", ["h3"]), verdict)
        self.assertIn("h3: its worker cannot be ended from here", self.log_there(job))
        self.assert_clean()


if __name__ == "__main__":
    cluster.main()
