"""The user's own limits: they hold for the ranks, and not for what keeps many of them."""

import os
import zlib

import harness
import jobs
import recovery
import tap
import users


class Descriptors(recovery.RecoveryTest):
    def test_one_host_keeps_more_ranks_than_the_soft_limit_has_descriptors_for(self):
        spec = self.job("ulimit -Sn", hosts=1, slots=80)
        run = self.start_program("/bin/sh", "-c", f"ulimit -Sn 256; exec {harness.MONARCH} run --no-prefix {spec}")
        done = run.finished()
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(done.out, "256\n" * 80)
        self.assert_nothing_left()


    def under_a_hard_limit(self, most, script):
        """32 ranks of one host whose worker may have that many descriptors."""
        spec = self.job(script, hosts=1, slots=32, supervision={"restart": {"max": 4}})
        return self.start_program("/bin/sh", "-c", f"ulimit -n {most}; exec {harness.MONARCH} run {spec}").finished(60)

    def test_generations_that_fail_at_once_need_no_more_than_one_of_them(self):
        done = self.under_a_hard_limit(256, "exit 9")
        self.assert_result(done, 9, "failed")
        self.assertIn("restart 4 of 4", done.err)
        self.assertNotIn("Too many open files", done.err)
        self.assertEqual(self.events("host.lost") + self.events("host.daemon"), [])
        self.assert_nothing_left()

    def test_too_few_for_one_generation_are_named_and_tried_once(self):
        done = self.under_a_hard_limit(128, "exit 9")
        verdict = self.assert_result(done, 126, "failed")
        self.assertRegex(verdict["reason"], r"^m/\d+ on v1 .*could not be executed: .* \(128 at most: ulimit -n\): Too many open files$")
        self.assertEqual(len(self.events("gang.starting")), 1)
        self.assert_nothing_left()


class Limits(jobs.JobTest):
    # A sanitizer turns core dumps off.
    LOWERED = "ulimit -Sn 300; ulimit -f 3000000; ulimit -Ss 7000; ulimit -Su 20000; " + (
        "ulimit -c 0" if harness.SANITIZED else "ulimit -c 7; ulimit -Sv 9000000")

    def test_a_rank_has_every_limit_of_the_shell_and_no_other(self):
        """Processes, memory, files, cores: what the user lowered stays lowered, and what we need for us is not the ranks'."""
        spec = self.job("cat /proc/self/limits > limits.$MONARCH_RANK", hosts=2, slots=1)
        done = self.start_program("/bin/bash", "-c", f"{self.LOWERED}\ncat /proc/self/limits > limits.shell; "
                                  f"exec {harness.MONARCH} run {spec}").finished()
        self.assert_result(done, 0, "succeeded")
        shell = self.read("work", "limits.shell")
        self.assertRegex(shell, "Max open files +300 ")
        for rank in (0, 1):
            self.assertEqual(self.read("work", f"limits.{rank}"), shell)
        self.assert_nothing_left()

    def test_a_rank_at_its_limit_harms_nobody_else(self):
        """One rank takes descriptors and memory until it gets no more; the other and both hosts go on."""
        memory = "ulimit -Sv 3000000\n"
        script = ("if [ $MONARCH_RANK = 0 ]; then\n" + (memory if harness.SANITIZED else "") +
                  "  exec python3 -c 'import os\nheld = []\n"
                  "try:\n  while True: held.append(os.open(\"/dev/null\", os.O_RDONLY))\nexcept OSError as e: print(e.strerror)\n"
                  "for fd in held: os.close(fd)\n"
                  "try:\n  while True: held.append(bytearray(1 << 26))\nexcept MemoryError: print(\"no memory\")\n'\n"
                  "fi\nuntil [ -e go ]; do nap 0.05; done\n")
        spec = self.job(script, hosts=1, slots=2)
        run = self.start_program("/bin/bash", "-c",
                                 f"ulimit -Sn 200\n{'' if harness.SANITIZED else memory}exec {harness.MONARCH} run {spec}")
        run.wait_for_out("no memory")
        self.assertIn("Too many open files", run.out)
        self.assertEqual([(h["phase"], h["daemon_starts"]) for h in self.status()["hosts"]], [("ready", 1)])
        self.write("go", "")
        self.end_of(run, 0, "succeeded")


class Forks(users.UserTest, recovery.RecoveryTest):
    """P12: rank 1 makes processes without end, each in a session of its own and nobody's child, and ends; rank 0 counts."""

    FORK = (jobs.PYTHON_MARK + "import os, sys, time\nmark('there')\nstep, made = 0, 0\n"
            "while os.environ['MONARCH_RANK'] + os.environ['MONARCH_GENERATION'] != '11' and not os.path.exists('go'):\n"
            "  step += 1\n  mark('step', step)\n  time.sleep(0.05)\nif os.path.exists('go'): sys.exit(0)\ntry:\n  while made < int(sys.argv[1]):\n    child = os.fork()\n    if child == 0:\n"
            "      code = 11\n      try:\n        os.setsid()\n        if os.fork() == 0: time.sleep(600)\n        code = 0\n"
            "      finally: os._exit(code)\n"
            "    if os.waitpid(child, 0)[1] != 0: raise BlockingIOError(11, os.strerror(11))\n    made += 1\n"
            "except OSError as e: print(e.strerror, flush=True)\n"
            "mark('made')\n"
            "while not os.path.exists('die'): time.sleep(0.05)\nsys.exit(7)\n")

    def setUp(self):
        # Of a user's processes all count, whoever started them: no other case has this user.
        self.user = 61000 + zlib.crc32(self.id().encode()) % 1000
        super().setUp()

    def forking(self, number):
        return self.program_job(["/usr/bin/python3", "-c", self.FORK, str(number)], hosts=2, slots=1, mesh={"gang": "host"},
                                supervision={"restart": {"max": 4}})

    def assert_ends_with_it(self, run):
        """The rank ends, and all that it made before the next generation of it runs."""
        since = self.now()
        self.write("die", "")
        failed = self.wait_for_event("gang.failed")
        self.assert_seen(failed, since)
        self.assert_stage(failed, r"exit code 7 .*\[restart 1 of 4", rank=1, generation=1)
        self.wait_for_anew([1])
        self.assertEqual(len([p.pid for p in self.processes() if p.arguments[1:2] == [b"-c"]]), 2)
        self.assert_go_on([0])
        self.end_well(run)

    def test_a_thousand_orphans_of_a_rank_end_with_it(self):
        run = self.start("run", self.forking(1000))
        self.pids = dict(enumerate(self.wait_for_marks("there", 2, timeout=60)))
        self.wait_for_marks("made", [1], timeout=60)
        own = [p.pid for p in self.processes() if p.arguments[1:2] == [b"-c"]]
        self.assertEqual((len(own), set(self.pids.values()) <= set(own)), (1002, True))
        self.assert_ends_with_it(run)

    def test_the_users_limit_of_processes_holds_for_a_rank_and_its_host_goes_on(self):
        if self.uid == 0:
            self.skipTest("root has no limit of processes")
        run = self.start_program(*self.prefix, "/bin/bash", "-c", f"ulimit -Su 600; exec {self.program} run {self.forking(100000)}")
        self.pids = dict(enumerate(self.wait_for_marks("there", 2, timeout=60)))
        self.wait_for_marks("made", [1], timeout=60)
        run.wait_for_out("Resource temporarily unavailable")
        self.assertEqual([(h["phase"], h["daemon_starts"]) for h in self.status()["hosts"]], [("ready", 1)] * 2)
        self.assert_ends_with_it(run)


    def test_a_stack_that_is_too_small_is_named_at_once(self):
        if harness.SANITIZED:
            self.skipTest("a sanitizer needs more stack than that before the program begins")
        done = self.start_program("/bin/bash", "-c", f"ulimit -s 64; exec {harness.MONARCH} run {self.job('exit 9', hosts=1, slots=1)}").finished(20)
        self.assertEqual((done.status, done.out, done.err),
                         (70, "", "monarch: the stack may have 64KiB (ulimit -s), and 256KiB are needed at least\n"))
        self.assert_nothing_left()

    def test_too_few_processes_for_one_generation_are_named_and_tried_once(self):
        if self.uid == 0:
            self.skipTest("root has no limit of processes")
        spec = self.job("exit 9", hosts=1, slots=64, supervision={"restart": {"max": 4}})
        done = self.start_program(*self.prefix, "/bin/bash", "-c", f"ulimit -u 60; exec {self.program} run {spec}").finished(60)
        verdict = self.assert_result(done, 126, "failed")
        self.assertRegex(verdict["reason"], r"could not be executed: .*\(60 processes of this user at most: ulimit -u\): "
                                            "Resource temporarily unavailable$")
        self.assertEqual(len(self.events("gang.starting")), 1)
        self.assert_nothing_left()


class Floods(jobs.JobTest):
    # A beat every second, give or take a tenth: half a second late is 1.6 s of silence.
    LATE = {"heartbeat": "1s", "suspect_after": "1600ms"}
    ATTEMPTS = 4  # this machine may be busy with other things, too
    BYTES = 5_000_000 if harness.SANITIZED else 1_000_000_000  # of each stream

    def doubts(self):
        types = [e["event"] for e in self.monarch("events", "last", "--json").json()]
        self.assertIn("host.ready", types)
        return [t for t in types if t.startswith("host.") and t != "host.ready"]

    def flood(self, script):
        """Runs it as one rank of two; what doubts came of it."""
        run = self.start("run", self.job(f"if [ $MONARCH_RANK = 0 ]; then {script}; fi; mark done\n"
                                         "until [ -e go ]; do nap 0.05; done", hosts=1, slots=2,
                                         supervision=self.LATE, logs={"max_size": "16MiB"}), stdout=self.null())
        self.wait_for_marks("done", 2, timeout=60)
        doubts = self.doubts()
        self.write("go", "")
        self.assertEqual(run.wait(), 0)
        self.assert_nothing_left()
        for name in ("go", "done.0", "done.1"):
            os.unlink(self.path("work", name))
        return doubts

    def null(self):
        descriptor = os.open("/dev/null", os.O_WRONLY)
        self.addCleanup(os.close, descriptor)
        return descriptor

    @tap.takes(0.6)
    def test_output_of_a_rank_delays_no_beat_by_half_a_second(self):
        seen = []
        for _ in range(self.ATTEMPTS):
            seen.append(self.flood(f"head -c {self.BYTES} /dev/zero | tr '\\0' '\\n' & yes | head -c {self.BYTES} >&2; wait"))
            if not seen[-1]:
                return
        self.fail(f"each time: {seen}")

    def test_words_of_a_rank_delay_no_beat_by_half_a_second(self):
        """Datagrams at NOTIFY_SOCKET, as fast as they are taken, for four seconds."""
        self.write("talk.py", "import os, socket, time\nlink = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                   "door = os.environ.get('NOTIFY_SOCKET')\nuntil = time.monotonic() + 4\n"
                   "while door and time.monotonic() < until: link.sendto(b'X_MONARCH_STEP=%d' % time.monotonic_ns(), door)\n")
        seen = []
        for _ in range(self.ATTEMPTS):
            seen.append(self.flood("python3 talk.py"))
            if not seen[-1]:
                return
        self.fail(f"each time: {seen}")


if __name__ == "__main__":
    harness.main()
