"""What signals to `monarch run` do: the three stages of Ctrl-C, orderly stops, what reaches the ranks, what stops nothing."""

import os
import signal

import harness
import jobs
import recovery

# Says that it got TERM, and takes as long as it likes to end: until the test makes the file `go`.
SLOW = "trap 'mark term; until [ -e go ]; do nap 0.05; done; mark ended; exit 0' TERM\nmark there\n" + jobs.FOREVER


class Signals(recovery.RecoveryTest):
    def running(self, script, grace="30s", **options):
        run = self.start("run", self.job(script, mesh={"stop": {"grace": grace}}), **options)
        self.pids = dict(enumerate(self.wait_for_marks("there", 4)))
        return run

    def assert_heard(self, run, since, what):
        """The stop is told of in time, and what it is."""
        stopping = self.wait_for_told(run, "job.stopping")
        self.assert_seen(stopping, since)
        self.assert_stage(stopping, what)

    def test_ctrl_c_stops_in_order_with_130(self):  # V11
        run = self.running(SLOW)
        self.beside()
        since = self.now()
        run.signal(signal.SIGINT)
        self.wait_for_marks("term", 4)
        self.assert_heard(run, since, "SIGINT")
        self.assertIn("monarch: stopping; Ctrl-C again kills\n", run.err)
        self.write("go", "")
        run.wait()
        self.end_beside()
        done, verdict = self.end_of(run, 130, "interrupted")
        self.assertEqual(self.marks("ended"), [0, 1, 2, 3], "each had its grace")
        self.assertRegex(verdict["reason"], "run, pid .*SIGINT")
        self.assertRegex(done.err, r"(?m)^ result +interrupted \(exit 130\)")

    def test_a_second_ctrl_c_kills(self):  # V11
        run = self.running(SLOW)
        self.beside()
        since = self.now()
        run.signal(signal.SIGINT)
        self.wait_for_marks("term", 4)
        self.assert_heard(run, since, "SIGINT")
        run.signal(signal.SIGINT)
        run.wait()
        self.end_beside()
        done, _ = self.end_of(run, 130, "interrupted")
        self.assertIn("monarch: killing; Ctrl-C again leaves, and the supervisor goes on killing\n", done.err)
        self.assertEqual(self.marks("ended"), [])

    def test_a_third_ctrl_c_leaves_and_the_supervisor_goes_on(self):  # V11
        run = self.running(SLOW)
        supervisor = self.process("supervisor")
        self.beside()
        # While it is stopped it cannot kill: the viewer has somebody to leave behind.
        self.kill(supervisor, signal.SIGSTOP)
        for said in ("Ctrl-C again kills", "Ctrl-C again leaves", "leaving"):
            run.signal(signal.SIGINT)
            if said != "leaving":
                run.wait_for_err(said)
        done = run.finished()
        self.assertEqual(done.status, 130, done)
        self.assertIn("goes on killing it: monarch status", done.err)
        since = self.now()
        self.kill(supervisor, signal.SIGCONT)
        waited = self.monarch("wait", "last")
        self.assertEqual(waited.status, 130, waited)
        self.assert_result(waited, 130, "interrupted")
        stopping = self.wait_for_event("job.stopping")
        self.assert_seen(stopping, since)
        self.assert_stage(stopping, "SIGINT")
        self.end_beside()
        self.assert_nothing_left()
        self.assertEqual(self.marks("ended"), [])

    def test_term_stops_in_order_with_143_and_hup_with_129(self):  # V11
        for number, code in ((signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            with self.subTest(signal=number):
                run = self.running(SLOW)
                self.beside()
                since = self.now()
                run.signal(number)
                self.wait_for_marks("term", 4)
                self.assert_heard(run, since, signal.Signals(number).name)
                run.signal(number)  # a second one adds nothing
                self.write("go", "")
                done = run.finished()
                job = self.jobs()[-1]
                self.assertEqual((done.status, self.verdict(job)["exit_code"], self.verdict(job)["outcome"]),
                                 (code, code, "stopped"), done)
                self.assertEqual(self.marks("ended"), [0, 1, 2, 3])
                self.end_beside()
                self.assert_nothing_left()
                for mark in ("go", "go.beside", "there.beside", "step.beside", *(f"{m}.{r}" for m in ("there", "term", "ended") for r in range(4))):
                    os.unlink(self.path("work", mark))

    def test_a_hang_up_that_it_was_started_to_ignore_stops_nothing_and_an_int_does(self):
        spec = self.job("mark there; until [ -e go ]; do nap 0.05; done; echo trained to the end")
        run = self.start_program("env", "--ignore-signal=HUP", "--ignore-signal=INT", "--ignore-signal=QUIT", harness.MONARCH, "run", spec)
        self.wait_for_marks("there", 4)
        run.signal(signal.SIGHUP)  # of a shell that ends
        run.signal(signal.SIGINT)  # of somebody who means this very process, and no key of a terminal
        done = run.finished()
        self.assertEqual(done.status, 130, done)
        self.assertIn("stopping; Ctrl-C again kills", done.err)

    def test_usr1_reaches_the_ranks(self):
        run = self.running("trap 'mark usr1' USR1; trap 'mark usr2' USR2; trap 'mark quit' QUIT\nmark there\n"
                           "until [ -e go ]; do nap 0.05; done; true")
        for name in ("usr1", "usr2", "quit"):
            run.signal(getattr(signal, f"SIG{name.upper()}"))
            self.wait_for_marks(name, 4)
        self.write("go", "")
        self.end_of(run, 0, "succeeded")

    def test_a_stopped_viewer_stalls_nothing(self):
        run = self.running("mark there; until [ -e go ]; do nap 0.05; done; echo late; mark late")
        # SIGTSTP would do nothing to it: it leads an orphaned process group here.
        run.signal(signal.SIGSTOP)
        self.write("go", "")
        self.wait_for_marks("late", 4)
        harness.wait_for(lambda: os.path.exists(self.job_file("verdict.json")), "the end without its viewer")
        run.signal(signal.SIGCONT)
        done, _ = self.end_of(run, 0, "succeeded")
        self.assertEqual(sorted(done.out.splitlines()), [f"[m/{r}@v{r // 2 + 1}] late" for r in range(4)])

    def test_ctrl_c_on_a_terminal(self):
        run = self.running(SLOW, terminal=True)
        run.type("\x03")
        self.wait_for_marks("term", 4)
        self.write("go", "")
        self.end_of(run, 130, "interrupted")
        self.assertEqual(self.marks("ended"), [0, 1, 2, 3])

    def test_ctrl_z_and_fg_in_a_shell(self):
        spec = self.job("trap 'mark cont' CONT; mark there; until [ -e go ]; do nap 0.05; done; mark late")
        shell = self.start_program("bash", "--norc", "--noprofile", "-i", terminal=True)
        shell.type(f"{harness.MONARCH} run {spec}\n")
        self.wait_for_marks("there", 4)
        shell.type("\x1a")
        shell.wait_for_out(r"Stopped .*monarch run")
        self.assertEqual(self.status()["phase"], "running")
        shell.type("fg\n")
        self.wait_for_marks("cont", 4)
        self.write("go", "")
        self.wait_for_marks("late", 4)
        shell.type("echo ended with $?; exit\n")
        shell.wait_for_out(r"^ended with 0\r$")
        shell.wait()
        self.assert_nothing_left()


class SignalsForRanks(recovery.RecoveryTest):
    """Whoever signals every process that runs somewhere, as Slurm does for --signal=USR1@90, means the ranks."""

    NUMBERS = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM,
               signal.SIGPROF, signal.SIGPIPE, signal.SIGXCPU, signal.SIGXFSZ, signal.SIGIO, *range(signal.SIGRTMIN, signal.SIGRTMAX + 1)]

    def test_end_no_process_of_ours(self):
        spec = self.job("trap 'mark saved' USR1; mark there; until [ -e go ]; do nap 0.05; done", mesh={"gang": "host"},
                        checkpoints={"peer": 1, "memory": "64MiB"})
        run = self.start("run", spec)
        ranks = self.wait_for_marks("there", 4)
        harness.wait_for(lambda: len(self.find("monarch-worker", "vault")) == 2, "two vaults")
        ours = sorted(p.pid for p in [*self.find("monarch-worker"), *self.find("monarch", "supervise")])
        self.assertEqual(len(ours), 8, "keeper, daemon and vault of two hosts, a supervisor and its guard")
        for number in self.NUMBERS:
            for pid in ours:
                os.kill(pid, number)
        for pid in ranks:
            os.kill(pid, signal.SIGUSR1)
        self.wait_for_marks("saved", 4)
        now = sorted(p.pid for p in [*self.find("monarch-worker"), *self.find("monarch", "supervise")])
        self.assertEqual(now, ours)
        self.write("go", "")
        self.end_of(run, 0, "succeeded")
        self.assertFalse([*self.events("host.lost"), *self.events("gang.failed"), *self.events("job.stopping")])


if __name__ == "__main__":
    harness.main()
