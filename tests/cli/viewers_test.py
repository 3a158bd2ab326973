"""Commands that look at a real job: while it runs, after it, with its supervisor gone, and with a reader that is slow or leaves."""

import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess

import harness
import jobs

TICKS = "echo out of $MONARCH_RANK; echo err of $MONARCH_RANK >&2; mark there\n"
HEAVY = "i=0; while [ $i -lt 40 ]; do seq 1 20000; i=$((i+1)); done\n"


class Viewers(jobs.JobTest):
    def up(self, script, **keys):
        done = self.monarch("up", self.job(script, **keys))
        self.assertEqual(done.status, 0, done)
        self.assertRegex(done.out, r"\Ademo-[0-9a-f]{4}\n\Z")
        self.wait_for_marks("there", keys.get("hosts", 2) * keys.get("slots", 2))
        return done.out.strip()

    def assert_looks(self, job, phase, exit_code=None):
        """ps, status, logs and events of a job in this phase."""
        line = next(o for o in self.monarch("ps", "--all", "--json").json() if o["job"] == job)
        self.assertEqual((line["phase"], line["exit_code"], line["ranks"]), (phase, exit_code, 4), line)
        ranks = self.status(job)["meshes"][0]["ranks"]
        self.assertEqual([r["host"] for r in ranks], ["v1", "v1", "v2", "v2"])
        logs = self.monarch("logs", job, "--rank", "1,3")
        self.assertEqual(logs.out, "[m/1@v1] out of 1\n[m/3@v2] out of 3\n")
        self.assertEqual(logs.err, "[m/1@v1] err of 1\n[m/3@v2] err of 3\n")
        one = self.monarch("logs", job, "--mesh", "m", "--rank", "2", "--stderr", "--no-prefix")
        self.assertEqual((one.out, one.err), ("", "err of 2\n"))
        types = [o["event"] for o in self.monarch("events", job, "--json").json()]
        self.assertEqual(types[0], "job.starting")
        self.assertEqual(types.count("host.ready"), 2)
        return types

    def test_commands_look_while_it_runs_and_after_it(self):
        job = self.up(TICKS + jobs.FOREVER)
        self.assertIn("job.running", self.assert_looks(job, "running"))
        self.assertEqual([r["phase"] for r in self.status()["meshes"][0]["ranks"]], ["running"] * 4)
        again = self.monarch("up", self.path("work", "demo.yaml"))
        self.assertEqual((again.status, again.out), (0, job + "\n"))
        self.assertIn("is live, and its spec is unchanged", again.err)
        self.assertEqual(self.monarch("wait", "--timeout", "200ms").status, 124)

        waiter, follower = self.start("wait"), self.start("logs", "--follow", "demo")
        watcher, events = self.start("attach", job[:-1]), self.start("events", "last", "-f")
        follower.wait_for_out("out of 3")
        watcher.wait_for_err("attached to")
        events.wait_for_out("job.running")
        stop = self.monarch("stop", "demo")
        self.assertEqual((stop.status, stop.out), (0, ""), stop)
        self.assertEqual([waiter.wait(), watcher.wait(), follower.wait(), events.wait()], [143, 143, 0, 0])
        self.assertIn("job.ended", events.out)

        self.assertEqual(self.assert_looks(job, "stopped", 143)[-1], "job.ended")
        self.assertEqual(self.monarch("wait", job).status, 143)
        again = self.monarch("stop", job)
        self.assertEqual(again.status, 0)
        self.assertIn("has ended already", again.err)
        self.assertEqual(self.monarch("attach", job).status, 143)
        self.assert_nothing_left()

    def test_commands_look_with_the_supervisor_and_its_guard_gone(self):
        job = self.up(TICKS + jobs.FOREVER)
        self.kill(self.process("guard"))
        self.kill(self.process("supervisor"))
        harness.wait_for(lambda: not self.processes_of("supervisor"), "the end of the supervisor")
        self.assertIn("job.running", self.assert_looks(job, "abandoned"))
        table = self.monarch("status", job)
        self.assertIn("no supervisor answers", table.out)
        self.assertIn(f"{job} is abandoned: its supervisor ended without a verdict", table.err)
        way_on = f"monarch up --resume {job}"
        self.assertIn(way_on, table.err)
        self.assertIn(way_on, self.monarch("ps").err)
        for command in (["stacks", job], ["signal", job, "USR1"], ["hold", job], ["restart", job], ["retry", job],
                        ["drain", job, "v1"]):
            refused = self.monarch(*command)
            self.assertEqual((refused.status, refused.out), (70, ""), refused)
            self.assertIn(way_on, refused.err, refused)
        waiting = self.start("wait", job)
        self.assertEqual(waiting.wait(), 70)
        self.assertIn(f"no supervisor of {job} answers; waiting up to 15s for its guard to start one", waiting.err)
        self.assertIn("has answered for 15s", waiting.err)
        self.kill_everything()

    def test_who_starts_another_job_of_an_abandoned_ones_spec_is_told_how_to_go_on_with_it(self):
        spec = self.job(TICKS + jobs.FOREVER)
        job = self.monarch("up", spec).out.strip()
        self.wait_for_marks("there", 4)
        self.kill(self.process("guard"))
        self.kill(self.process("supervisor"))
        harness.wait_for(lambda: not self.processes_of("supervisor"), "the end of the supervisor")
        another = self.monarch("up", spec)
        self.assertEqual(another.status, 0, another)
        self.assertIn(f"job {job} of the same spec has lost its supervisor: `monarch up --resume {job}` goes on with it",
                      another.err)
        self.assertNotEqual(another.out.strip(), job)
        self.kill_everything()

    def test_ctrl_c_detaches_a_watcher_and_the_job_goes_on(self):
        job = self.up(TICKS + jobs.FOREVER)
        for command in (["attach"], ["logs", "-f"]):
            watcher = self.start(*command, terminal=True)
            watcher.wait_for_out("attached to" if command == ["attach"] else "out of 3")
            watcher.type("\x03")
            self.assertEqual(watcher.wait(), 130)
            self.assertIn(f"monarch stop {job}", watcher.out)
        self.assertEqual(self.monarch("ps", "--json").json()[0]["phase"], "running")
        self.assertEqual(self.monarch("stop").status, 0)
        self.assert_nothing_left()

    def test_ctrl_c_detaches_as_soon_as_that_is_said(self):
        job = self.up(TICKS + jobs.FOREVER)
        slow = ["strace", "-D", "-qqq", "-o", "/dev/null", "-e", "trace=write", "-e", "inject=write:delay_exit=300000:when=1..4"]
        if harness.SANITIZED or shutil.which("strace") is None:
            slow = []
        watcher = self.start_program(*slow, harness.MONARCH, "attach", job, terminal=True)
        watcher.wait_for_out("Ctrl-C detaches")
        watcher.type("\x03")
        self.assertEqual(watcher.wait(), 130)
        self.assertIn(f"monarch stop {job}", watcher.out)
        self.assertEqual(self.monarch("stop").status, 0)
        self.assert_nothing_left()

    def test_a_slow_reader_gets_every_byte(self):
        script = HEAVY + "mark there; until [ -e go ]; do nap 0.02; done; echo end\n"
        spec = self.job(script, hosts=1, slots=1)
        environment = dict(self.environment)
        with subprocess.Popen([harness.MONARCH, "run", "--quiet", "--no-prefix", spec], env=environment,
                              cwd=self.path("work"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
            # The rank has written all and nobody has read a byte: nothing waits for this viewer.
            self.wait_for_marks("there", 1)
            self.write("go", "")
            got = run.stdout.read()
            self.assertEqual(run.wait(), 0)
        wanted = b"".join(b"%d\n" % i for i in range(1, 20001)) * 40 + b"end\n"
        self.assertEqual(len(got), len(wanted))
        self.assertEqual(hashlib.sha256(got).hexdigest(), hashlib.sha256(wanted).hexdigest())
        self.assert_nothing_left()

    def test_nothing_waits_for_a_reader_of_stdout_but_the_output(self):
        spec = self.job(HEAVY + HEAVY + "mark there; echo words on stderr >&2\n" + jobs.FOREVER, hosts=1, slots=1)
        reader, writer = os.pipe()
        run = self.start("run", "--no-prefix", spec, stdout=writer)
        os.close(writer)
        try:
            run.wait_for_err("words on stderr")
            run.signal(signal.SIGINT)
            run.wait_for_err("interrupted")
            run.wait_for_err("waits for whoever reads stdout")
            run.signal(signal.SIGINT)
            self.assertEqual(run.wait(), 130)
        finally:
            os.close(reader)
        self.assert_nothing_left()

    def test_a_reader_that_leaves_does_not_end_the_run(self):
        spec = self.job(HEAVY + "exit 3\n", hosts=1, slots=1)
        with open(self.path("err"), "w", encoding="utf-8") as err:
            with subprocess.Popen([harness.MONARCH, "run", spec], env=self.environment, cwd=self.path("work"),
                                  stdout=subprocess.PIPE, stderr=err) as run:
                self.assertEqual(run.stdout.readline(), b"[m/0@v1] 1\n")
                run.stdout.close()
                self.assertEqual(run.wait(), 3)
        self.assertIn("stdout: Broken pipe; what ranks write is in the logs", self.read("err"))
        self.assert_nothing_left()

    def test_closed_descriptors_are_no_place_for_files(self):
        spec = self.job("echo words", hosts=1, slots=1)
        done = self.start_program("/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", harness.MONARCH, "run", spec).finished()
        self.assertEqual(done.status, 0, done)
        for name in ("journal.0001", "spec.yaml", "supervisor.log", "verdict.json"):
            self.assertNotIn("[m/0@v1]", self.log(name))
        self.assert_nothing_left()

    def test_escapes_of_ranks_reach_a_pipe_and_no_terminal(self):
        spec = self.job(r"printf '\033[2Jboom\n'", hosts=1, slots=1)
        self.assertEqual(self.monarch("run", "-q", spec).out, "[m/0@v1] \x1b[2Jboom\n")
        on_terminal = self.start("run", "--color", "never", spec, terminal=True)
        self.assertEqual(on_terminal.wait(), 0)
        self.assertIn("[m/0@v1] \\x1b[2Jboom", on_terminal.out)
        self.assertNotIn("\x1b[2J", on_terminal.out)
        line, = [o for o in self.monarch("run", "--json", spec).json() if o["type"] == "output"]
        self.assertEqual(line["line"], "\x1b[2Jboom")
        self.assert_nothing_left()

    def test_a_journal_that_lost_its_end_is_said_to_lack_it(self):
        self.assertEqual(self.monarch("run", "-q", self.job("exit 3", hosts=1, slots=1)).status, 3)
        job, = self.jobs()
        journal = self.job_file("journal.0001")
        for command in ("events", "status"):
            self.assertEqual(self.monarch(command, job).err, "")
        for cut in (1, os.path.getsize(journal) // 2):  # the second cuts before the verdict
            os.truncate(journal, os.path.getsize(journal) - cut)
            for command in ("events", "status"):
                done = self.monarch(command, job)
                self.assertEqual(done.status, 0, done)
                self.assertRegex(done.err, rf"monarch: the end of the journal of {job} is missing, and what it told is not shown: "
                                           r"journal\.0001 at byte \d+: \S")
        os.truncate(journal, int(re.search(r"at byte (\d+)", done.err)[1]))  # no record is cut any more
        self.assertIn(": it ends there, without the verdict", self.monarch("events", job).err)
        self.assert_nothing_left()

    def test_a_supervisor_that_cannot_start_says_why(self):
        worker = self.write("worker", "#!/bin/sh\necho some words >&2\nexit 5\n", 0o755)
        done = self.monarch("run", self.job("true"), env={"MONARCH_WORKER": worker})
        self.assertEqual(done.status, 70, done)
        self.assertRegex(done.err, r"error\[E0908\]: the supervisor of demo-.{4} ended before it was ready")
        self.assertIn("│ some words", done.err)
        self.assertEqual(self.verdict()["exit_code"], 70)
        self.assertEqual(self.monarch("ps").out, "")
        self.assertEqual(self.monarch("status", "last").err, "")  # it never came to have a journal that could lack something
        self.assert_nothing_left()

    def test_what_a_spec_names_and_cannot_be_used_is_no_failure_of_monarch(self):
        spec = self.job("true", hosts=1, slots=1, launch={"ssh": {"hosts": ["h1"], "config": "nonesuch"}})
        done = self.monarch("run", spec)
        self.assertEqual(done.status, 2, done)
        self.assertRegex(done.err, r"error\[E0911\]: launch.ssh.config: reading \S*/nonesuch: No such file or directory")
        with socket.socket() as taken, socket.socket() as beside:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            other = port + 1 if port % 2 == 0 else port - 1
            try:
                beside.bind(("127.0.0.1", other))
                beside.listen()
            except OSError:
                pass  # somebody has it already: taken all the same
            taken.listen()
            ports = f"{min(port, other)}-{max(port, other)}"
            done = self.monarch("run", self.job("true", hosts=1, slots=1, control={"ports": ports}))
        self.assertEqual(done.status, 69, done)
        self.assertRegex(done.err, r"error\[E0909\]: control.ports: every port of \S+ is taken")
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
