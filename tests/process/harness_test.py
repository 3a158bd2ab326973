"""The harness itself, on processes that misbehave on purpose: a check that sees nothing would prove nothing."""

import os
import re
import signal
import subprocess
import sys
import unittest

import harness

# Ends at once and leaves a grandchild in a session of its own, which makes a file when it is as the test wants it.
DAEMON = """
import os, time
parent = os.getpid()
if os.fork():
    os._exit(0)
os.setsid()
while os.getppid() == parent:  # it is what a test might find in its place
    time.sleep(0.001)
{extra}
ready = os.open({ready!r} + ".new", os.O_CREAT | os.O_WRONLY)
os.write(ready, str(os.getpid()).encode())
os.close(ready)
os.rename({ready!r} + ".new", {ready!r})
time.sleep(600)
"""
LET_GO = "os.chdir('/'); os.closerange(0, 3)"


class Harness(harness.MonarchTest):
    def daemon(self, extra="pass", env=None):
        ready = self.path("work", "ready")
        # By stdin: in its arguments the path of the folder would give it away.
        with open(self.write("daemon.py", DAEMON.format(extra=extra, ready=ready)), encoding="utf-8") as script:
            self.start_program(sys.executable, "-", env=env, stdin=script)
        harness.wait_for(lambda: os.path.exists(ready), "the daemon")

    def test_status_and_output_are_those_of_the_command(self):
        done = self.start_program("sh", "-c", "echo out; echo err >&2; exit 7").finished()
        self.assert_output(done, 7, "out\n", re.compile("e.r\n"))
        self.assertEqual(self.start_program("sh", "-c", "kill -SEGV $$").wait(), 139)

    def test_different_output_is_refused(self):
        done = self.start_program("echo", "a").finished()
        for status, out, err in ((1, "a\n", ""), (0, "b\n", ""), (0, "a\n", "x"), (0, re.compile("a"), "")):
            with self.assertRaises(AssertionError):
                self.assert_output(done, status, out, err)

    def test_wait_for_fails_after_its_deadline(self):
        with self.assertRaisesRegex(AssertionError, "not within 0.05 s: a miracle"):
            harness.wait_for(lambda: False, "a miracle", 0.05)

    def test_waiting_for_output_of_a_command_that_ended_fails_at_once(self):
        run = self.start_program("true")
        with self.assertRaisesRegex(AssertionError, "ended with 0 and never said"):
            run.wait_for_out("ready", timeout=60)

    def test_a_detached_process_is_found_by_its_tag(self):
        self.daemon(LET_GO)
        self.assertRegex("\n".join(self.leftovers()), r"process \d+ ")
        with self.assertRaisesRegex(AssertionError, "nothing left but"):
            self.assert_nothing_left(timeout=0.05)
        self.assertEqual(len(self.kill_everything()), 1)
        self.assert_nothing_left()

    def test_a_process_without_the_tag_is_found_by_its_job(self):
        job = f"demo-{self.tag[:4]}"
        os.makedirs(self.path("state", "jobs", job))
        env = {name: None for name in self.environment}
        self.daemon(LET_GO, env={**env, "MONARCH_JOB_ID": job})
        self.assertEqual(len(self.processes()), 1)
        self.kill_everything()

    def test_a_process_without_the_tag_is_found_by_what_it_holds(self):
        env = {name: None for name in self.environment}
        self.daemon(f"{LET_GO}; os.open({self.path('home')!r}, os.O_RDONLY)", env=env)
        self.assertEqual(len(self.processes()), 1)
        self.kill_everything()

    def test_a_process_that_is_not_the_tests_is_not_found(self):
        env = {name: None for name in self.environment}
        self.daemon(LET_GO, env={**env, "MONARCH_JOB_ID": "other-12ab"})
        self.assertEqual([str(p) for p in self.processes()], [])
        os.kill(int(self.read("work", "ready")), signal.SIGKILL)

    def test_a_process_of_another_test_whose_job_has_the_same_id_is_not_found(self):
        job = f"demo-{self.tag[:4]}"
        os.makedirs(self.path("state", "jobs", job))
        env = {name: None for name in self.environment}
        self.daemon(LET_GO, env={**env, "MONARCH_JOB_ID": job, harness.leftovers.TAG: "another"})
        self.assertEqual([str(p) for p in self.processes()], [])
        os.kill(int(self.read("work", "ready")), signal.SIGKILL)

    def test_a_test_that_leaves_a_process_fails(self):
        class Careless(harness.MonarchTest):
            def runTest(self):
                self.start_program("sh", "-c", "sleep 600 & echo there").wait_for_out("there")
        result = unittest.TestResult()
        Careless().run(result)
        self.assertEqual(len(result.failures), 1, result)
        self.assertIn("the test left these running", result.failures[0][1])

    def test_sockets_files_and_keys_are_found(self):
        os.makedirs(self.path("state", "jobs", "demo-12ab"))
        for path in (self.path("state", "jobs", "demo-12ab", "key"), self.path("tmp", "half-written")):
            with open(path, "w", encoding="ascii"):
                pass
        bind = f"import socket; s = socket.socket(socket.AF_UNIX); s.bind({self.path('run', 'door')!r})"
        subprocess.run([sys.executable, "-c", bind], check=True)
        found = "\n".join(self.leftovers())
        for kind in ("key ", "temporary file .*half-written", "socket file .*door"):
            self.assertRegex(found, kind)

    def test_shared_memory_of_a_job_is_found(self):
        os.makedirs(self.path("state", "jobs", f"demo-{self.tag[:4]}"))
        path = f"/dev/shm/monarch-demo-{self.tag[:4]}"
        with open(path, "w", encoding="ascii"):
            self.addCleanup(os.unlink, path)
        self.assertIn(f"shared memory {path}", self.leftovers())

    def test_find_names_processes_by_program_and_argument(self):
        run = self.start_program("sleep", "600")
        self.assertEqual(self.wait_for_process("sleep", "600").pid, run.pid)
        self.assertEqual(self.find("sleep", "601"), [])
        process, = self.find("sleep")
        self.kill(process, signal.SIGTERM)
        self.wait_gone(process)
        self.assertEqual(run.wait(), 143)

    def test_a_file_that_is_out_of_time_cleans_up(self):
        source = ("import harness\nclass Slow(harness.MonarchTest):\n    def test_a(self):\n"
                  "        self.start_program('sleep', '600')\n        print(self.folder, flush=True)\n"
                  "        harness.wait_for(lambda: False, 'the end', 600)\n    test_b = test_a\nharness.main()\n")
        run = self.start_program(sys.executable, self.write("slow.py", source),
                                 env={"PYTHONPATH": os.path.dirname(harness.__file__)})
        folder = run.wait_for_out("^/tmp/mh-.*$").group()
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 1)
        self.assertIn("out of time: the end", run.out)
        self.assertEqual(run.out.count("\nnot ok "), 1, run.out)
        self.assertFalse(os.path.exists(folder))

    def test_ctrl_c_on_the_terminal_is_sigint(self):
        run = self.start_program("sh", "-c", "trap 'echo int; exit 130' INT; echo there; while :; do sleep 0.05; done",
                                 terminal=True)
        run.wait_for_out("there")
        run.type("\x03")
        self.assertEqual(run.wait(), 130)
        self.assertIn("int", run.out)


if __name__ == "__main__":
    harness.main()
