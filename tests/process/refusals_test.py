"""What cannot work is said at once, naming the place: state directories, workers that do not answer, supervisors."""

import os
import re
import shlex
import subprocess
import unittest

import harness
import jobs

HELLO = os.path.join(harness.ROOT, "configs", "hello.yaml")


class Refusals(jobs.JobTest):
    def refused(self, status, pattern, *arguments, seconds=5.0, **options):
        """The command fails at once with this status, and names what it is about; no job came to be."""
        done = self.monarch(*(arguments or ("run", HELLO)), **options)
        self.assertEqual((done.status, done.out), (status, ""), done)
        self.assertRegex(done.err, pattern, done)
        self.assertLess(done.seconds, seconds, done)
        self.assertEqual(self.jobs(), [])
        self.assert_nothing_left()
        return done

    def test_a_broken_spec(self):
        path = self.spec("version: 1\njob: a\nmeshes:\n  m:\n    dims: {host: 1}\n    program: [true]\n    hartbeat: 2s\n")
        done = self.refused(2, r"error\[E0107\]: unknown key `hartbeat`\n +--> .*/mesh\.yaml:7:5\n", "run", path)
        self.assertIn("7 |     hartbeat: 2s\n", done.err)

    def test_a_missing_spec(self):
        self.refused(2, r"/no/such/spec\.yaml.*No such file", "run", "/no/such/spec.yaml")

    def test_a_state_directory_that_others_may_write(self):
        os.mkdir(self.path("state"))
        os.chmod(self.path("state"), 0o777)
        self.refused(2, re.escape(self.path("state")))

    def test_a_state_directory_that_is_a_file(self):
        with open(self.path("state"), "w", encoding="ascii"):
            pass
        self.refused(2, re.escape(self.path("state")) + ".*[Nn]ot a directory")
        os.unlink(self.path("state"))

    def test_a_state_directory_that_is_a_link(self):
        os.symlink("/tmp", self.path("state"))
        self.refused(2, re.escape(self.path("state")))

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_a_state_directory_of_somebody_else(self):
        os.mkdir(self.path("state"), 0o700)
        os.chown(self.path("state"), 65534, 65534)
        self.refused(2, re.escape(self.path("state")) + ".*(uid|belongs|own)")
        os.chown(self.path("state"), 0, 0)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_a_job_directory_of_somebody_else(self):
        self.monarch("run", HELLO)
        job, = self.jobs()
        os.chown(self.path("state", "jobs", job), 65534, 65534)
        for command in ("status", "logs", "events", "wait", "stop", "attach"):
            with self.subTest(command=command):
                done = self.monarch(command, job)
                self.assertNotEqual(done.status, 0, done)
                self.assertIn(self.path("state", "jobs", job), done.err)
        os.chown(self.path("state", "jobs", job), 0, 0)

    def in_namespace(self, mount, after=""):
        """`monarch run hello` as root of a private mount namespace, where `mount` was done first."""
        script = f"{mount} || exit 99; {after} exec {shlex.quote(harness.MONARCH)} run {shlex.quote(HELLO)}"
        return self.start_program("unshare", "--mount", "sh", "-c", script).finished()

    def namespaces(self):
        if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("needs root and mount namespaces")
        os.mkdir(self.path("state"), 0o700)

    def test_a_machine_that_does_not_reach_itself(self):
        self.namespaces()
        done = self.start_program("unshare", "--net", harness.MONARCH, "run", HELLO).finished()
        self.assertEqual(done.status, 70, done)
        self.assertRegex(done.err, r"this machine does not reach itself \(its loopback interface is down, .*`ip link set lo up`.*Network is unreachable")
        self.assertLess(done.seconds, 4, "nobody waits for a handshake that cannot be")
        self.assert_nothing_left()
        doctor = self.start_program("unshare", "--net", harness.MONARCH, "doctor", "--json").finished(60)
        found, = [f for f in doctor.json() if f["check"] == "loopback"]
        self.assertEqual((doctor.status, found["health"]), (1, "failed"), doctor)

    def test_a_folder_of_sockets_that_is_somebody_elses(self):
        """As root of a user namespace meets /tmp/monarch-0 of the machine's."""
        self.namespaces()
        os.mkdir(self.path("run", "monarch"), 0o700)
        os.chown(self.path("run", "monarch"), 65534, 65534)
        self.refused(2, "no place for sockets: .*run/monarch belongs to user 65534, not to us .*; XDG_RUNTIME_DIR names another")
        os.chown(self.path("run", "monarch"), 0, 0)

    def test_a_state_directory_that_is_read_only(self):
        self.namespaces()
        done = self.in_namespace(f"mount -t tmpfs -o ro,mode=700 tmpfs {self.path('state')}")
        self.assertEqual(done.status, 2, done)
        self.assertRegex(done.err, re.escape(self.path("state")) + ".*Read-only file system")

    def test_a_state_directory_that_is_full(self):
        self.namespaces()
        state = self.path("state")
        done = self.in_namespace(f"mount -t tmpfs -o size=64k,mode=700 tmpfs {state}",
                                 f"head -c 1m /dev/zero > {state}/filler 2>/dev/null;")
        self.assertEqual(done.status, 74, done)
        self.assertRegex(done.err, "no space for a job in " + re.escape(state))
        self.assert_nothing_left()

    def test_a_path_that_is_too_long_for_a_socket(self):
        deep = self.path("run", "x" * 100)
        os.mkdir(deep, 0o700)
        self.refused(2, re.escape(deep) + ".* has .* bytes.*107", env={"XDG_RUNTIME_DIR": deep})

    def test_a_state_directory_with_a_long_path(self):
        long = self.path("state", *["d" * 200] * 25)
        self.refused(2, r"MONARCH_STATE_DIR has \d+ bytes, more than the", env={"MONARCH_STATE_DIR": long})

    def test_a_worker_that_ends_at_once(self):
        for worker in ("/bin/false", "/bin/true"):
            with self.subTest(worker=worker):
                done = self.monarch("run", HELLO, env={"MONARCH_WORKER": worker})
                # The guard is a worker, too: it ends before there is a supervisor.
                self.assertEqual(done.status, 70, done)
                self.assertRegex(done.err, "ended before it was ready")
                self.assert_nothing_left()

    def worker(self, script):
        """A worker that guards as the real one does, and otherwise runs `script`."""
        return self.write("worker", f'#!/bin/sh\n[ "$1" = keep ] && exec {shlex.quote(harness.WORKER)} "$@"\n{script}\n',
                          mode=0o755)

    def test_hosts_whose_worker_does_not_start(self):
        done = self.monarch("run", HELLO, env={"MONARCH_WORKER": self.worker("exit 3")})
        self.assert_result(done, 69, "failed", cause={"kind": "start"})
        self.assertRegex(done.err, r"(?m)^ root cause .*v[12].*exit code 3")
        self.assertLess(done.seconds, 5)
        self.assert_nothing_left()

    def test_hosts_whose_worker_never_answers(self):
        with open(HELLO, encoding="utf-8") as file:
            text = file.read()
        spec = self.spec(text + "start_timeout: 1s\n")
        done = self.monarch("run", spec, env={"MONARCH_WORKER": self.worker("exec sleep 600")})
        self.assert_result(done, 69, "failed", cause={"kind": "start"})
        self.assertRegex(done.err, r"start_timeout")
        self.assertRegex(self.verdict()["reason"], r"v1.*v2")
        self.assert_nothing_left()

    def test_a_worker_that_is_no_program(self):
        self.refused(70, "MONARCH_WORKER=/no/such/worker", env={"MONARCH_WORKER": "/no/such/worker"})

    def test_a_supervisor_that_cannot_start_says_why(self):
        command = f"ulimit -n 30; exec {shlex.quote(harness.MONARCH)} run {shlex.quote(HELLO)}"
        done = self.start_program("sh", "-c", command).finished()
        self.assertEqual(done.status, 70, done)
        self.assertRegex(done.err, r"(making a zmq|monitoring a) socket: Too many open files \(30 at most: ulimit -n\)\n  = help: its log is .*/supervisor\.log")
        self.assertEqual(self.verdict()["exit_code"], 70)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
