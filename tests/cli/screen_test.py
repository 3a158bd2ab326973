"""What a person sees: real commands in a window of tmux, whose screen is read back after each step, colours and all."""

import os
import re
import shlex
import shutil
import signal
import subprocess

import harness
import jobs

SLOW_WORKER = """#!/bin/sh
if [ "$1" != keep ]; then until [ -e {go} ]; do sleep 0.05; done; fi
exec {worker} "$@"
"""


class Window:
    """A tmux server of our own with one window, in which a shell runs one command line and then says its status."""

    def __init__(self, test, columns=100, lines=30):
        self._test = test
        self._socket = test.path("tmux")
        environment = {**test.environment, "SHELL": "/bin/sh"}
        self._environment = {k: v for k, v in environment.items() if k != "TMUX"}
        test.addCleanup(self._end)
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines), "-c", test.path("work"),
                  "exec /bin/sh")
        self.tmux("set-option", "-g", "window-size", "manual")
        # All that is written to the window, byte by byte.
        self._record = test.path("record")
        self.tmux("pipe-pane", "-o", f"cat > {shlex.quote(self._record)}")

    def tmux(self, *arguments):
        done = subprocess.run(["tmux", "-S", self._socket, *arguments], env=self._environment, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)
        self._test.assertEqual(done.returncode, 0, done)
        return done.stdout.decode(errors="replace")

    def run(self, *arguments, env=""):
        """`monarch ARGUMENTS` on a screen that is empty."""
        words = " ".join(map(shlex.quote, [harness.MONARCH, *map(str, arguments)]))
        script = self._test.write("command", f"PS1=; clear; {env} {words}; echo status=$?.\n")
        self.tmux("send-keys", f". {script}", "Enter")

    def key(self, name):
        self.tmux("send-keys", name)

    def resize(self, columns, lines=30):
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def screen(self, colours=False):
        return self.tmux("capture-pane", "-p", *(["-e"] if colours else []))

    def raw(self):
        with open(self._record, "rb") as file:
            return file.read()

    def wait_for(self, pattern):
        """The screen once it shows this."""
        found = []

        def look():
            found[:] = [self.screen()]
            return re.search(pattern, found[0], re.MULTILINE)
        harness.wait_for(look, lambda: f"{pattern!r} on the screen\n{found[0]}")
        return found[0]

    def status(self):
        """Of the command, once it has ended."""
        return int(re.search(r"status=(\d+)\.", self.wait_for(r"status=\d+\."))[1])

    def _end(self):
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], env=self._environment, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20)
        harness.wait_for(lambda: not self._test.find("tmux") and not self._test.find("tmux: server"), "the end of tmux")
        if os.path.exists(self._socket):
            os.unlink(self._socket)


class Terminal(jobs.JobTest):
    def setUp(self):
        if shutil.which("tmux") is None:
            self.skipTest("tmux is not installed")
        super().setUp()

    def slow(self):
        """A worker that does not start before `go` is there."""
        worker = self.write("slow-worker", SLOW_WORKER.format(go=self.path("work", "go"), worker=harness.WORKER), 0o755)
        return f"MONARCH_WORKER={worker}"

    def test_the_progress_line_names_who_is_waited_for_and_makes_room(self):
        window = Window(self)
        window.run("run", self.job("echo hello", hosts=3, slots=1), env=self.slow())
        screen = window.wait_for(r"^ starting +hosts 0/3 +waiting for v1, v2, v3 \(\ds\)")
        self.assertEqual(screen.count("starting"), 1, screen)
        window.wait_for(r"waiting for v1, v2, v3 \([1-9]s\)")  # it moves
        self.write("go", "")
        self.assertEqual(window.status(), 0)
        screen = window.screen()
        self.assertNotIn("waiting for", screen)
        self.assertEqual(sorted(re.findall(r"^\[m/\d@v\d\] hello$", screen, re.MULTILINE)),
                         ["[m/0@v1] hello", "[m/1@v2] hello", "[m/2@v3] hello"], screen)
        self.assertRegex(screen, r"(?m)^ result +succeeded \(exit 0\)")
        self.assert_nothing_left_but_tmux()

    def test_a_narrow_window_has_one_line_of_progress_however_it_is_resized(self):
        window = Window(self, columns=40)
        window.run("run", self.job("true", hosts=4, slots=1), env=self.slow())
        screen = window.wait_for(r"^ starting +hosts 0/4")
        self.assertNotIn("(0s)", screen)  # it did not fit, and was cut
        for columns in (24, 60, 30, 100):
            window.resize(columns)
            whole = r"waiting for v1, v2, v3, v4 \(\d+s\)$" if columns > 52 else r"^ starting +hosts 0/4"
            screen = window.wait_for(whole)
            harness.wait_for(lambda: window.screen().count("hosts 0/4") == 1,
                             lambda: f"one line of progress at {columns} columns\n{window.screen()}")
            self.assertLessEqual(max(map(len, window.screen().splitlines())), columns)
        self.write("go", "")
        self.assertEqual(window.status(), 0)
        self.assertNotIn("hosts 0/4", window.screen())
        self.assert_nothing_left_but_tmux()

    def test_a_failure_is_a_screen_that_its_rank_cannot_forge(self):
        window = Window(self)
        window.run("run", self.job(
            r"""printf 'first\n\033[2J\033[H\033]0;forged\007\233\302\233 x\ry\n'; printf '\033[31mboom\n' >&2
            [ $MONARCH_RANK = 1 ] && { mark dead; exit 7; }; exec sleep 1000""", hosts=1, slots=2))
        self.assertEqual(window.status(), 7)
        screen = window.screen()
        self.assertRegex(screen, r"(?m)^\[m/1@v1\] first$")  # not cleared
        self.assertRegex(screen, r"(?m)^\[m/1@v1\] \\x1b\[2J\\x1b\[H\\x1b\]0;forged\\x07\\x9b\\xc2\\x9b x$")
        self.assertRegex(screen, r"(?m)^\[m/1@v1\] y$")
        self.assertRegex(screen, r"(?m)^ result +failed \(exit 7\)")
        self.assertRegex(screen, r"(?m)^ root cause m/1 on v1, pid \d+: exit code 7$")
        self.assertRegex(screen, r"(?m)^ +│ \\x1b\[31mboom$")
        self.assertRegex(screen, r"(?m)^ try +monarch logs demo-.{4} --mesh m --rank 1$")
        self.assertNotIn("forged", window.tmux("display-message", "-p", "#{pane_title}"))
        colours = window.screen(colours=True)
        self.assertRegex(colours, r"\x1b\[31mresult")
        self.assertRegex(colours, r"\x1b\[3[2456]m\[m/1@v1\]\x1b\[(39|0)m")
        self.assert_nothing_left_but_tmux()

    def test_ctrl_c_once_stops_and_says_what_a_second_does(self):
        window = Window(self)
        window.run("run", self.job("mark there; echo up\n" + jobs.FOREVER))
        self.wait_for_marks("there", 4)
        window.wait_for(r"\[m/3@v2\] up")
        window.key("C-c")
        self.assertEqual(window.status(), 130)
        screen = window.screen()
        self.assertRegex(screen, r"(?m)^monarch: stopping; Ctrl-C again kills$")
        self.assertRegex(screen, r"(?m)^ result +interrupted \(exit 130\)")
        self.assert_nothing_left_but_tmux()

    def test_ctrl_c_twice_kills(self):
        window = Window(self)
        window.run("run", self.job("trap '' TERM; mark there\n" + jobs.FOREVER, mesh={"stop": {"grace": "1000s"}}))
        self.wait_for_marks("there", 4)
        window.key("C-c")
        window.wait_for(r"^monarch: stopping; Ctrl-C again kills$")
        window.wait_for(r"^ stopping +\(\ds\)")
        window.key("C-c")
        self.assertEqual(window.status(), 130)
        self.assertRegex(window.screen(), r"(?m)^monarch: killing; Ctrl-C again leaves, and the supervisor goes on killing$")
        self.assert_nothing_left_but_tmux()

    def test_ctrl_c_three_times_leaves(self):
        window = Window(self)
        window.run("run", self.job("mark there\n" + jobs.FOREVER))
        self.wait_for_marks("there", 4)
        supervisor = self.process("supervisor")
        self.kill(supervisor, signal.SIGSTOP)  # it answers nobody
        for words in (r"^monarch: stopping; Ctrl-C again kills$", r"^monarch: killing; Ctrl-C again leaves",
                      r"^monarch: leaving demo-.{4}; its supervisor goes on killing it: monarch status demo-.{4}$"):
            window.key("C-c")
            window.wait_for(words)
        self.assertEqual(window.status(), 130)
        self.kill(supervisor, signal.SIGCONT)
        harness.wait_for(lambda: os.path.exists(self.job_file("verdict.json")), "the verdict")
        self.assertEqual(self.verdict()["exit_code"], 130)
        self.assert_nothing_left_but_tmux()

    def test_attach_shows_what_comes_and_detaches(self):
        job = self.monarch("up", self.job("i=0; mark there; while :; do i=$((i+1)); echo tick $i; nap 0.1; done")).out.strip()
        window = Window(self)
        window.run("attach")
        window.wait_for(rf"^monarch: attached to {job}; Ctrl-C detaches$")
        window.wait_for(r"^\[m/3@v2\] tick \d+$")
        window.key("C-c")
        self.assertEqual(window.status(), 130)
        self.assertRegex(window.screen(), rf"(?m)^monarch: detached; {job} goes on. To stop it: monarch stop {job}$")
        self.assertEqual(self.monarch("ps", "--json").json()[0]["phase"], "running")
        self.assertEqual(self.monarch("stop").status, 0)
        self.assert_nothing_left_but_tmux()

    def test_no_color_has_progress_and_no_colour(self):
        window = Window(self)
        window.run("run", self.job("echo hello; exit 3", hosts=2, slots=1), env="NO_COLOR=1 " + self.slow())
        window.wait_for(r"^ starting +hosts 0/2")
        self.write("go", "")
        self.assertEqual(window.status(), 3)
        self.assertRegex(window.screen(), r"(?m)^ result +failed \(exit 3\)")
        self.assertEqual(re.findall(r"\x1b\[[0-9;]+m", window.screen(colours=True)), [])
        self.assert_nothing_left_but_tmux()

    def test_a_dumb_terminal_has_neither_colour_nor_progress(self):
        window = Window(self)
        window.run("run", self.job(r"printf '\033[31mred\n'; exit 3", hosts=1, slots=1), env="TERM=dumb " + self.slow())
        window.wait_for(r"^\S+Z job.starting demo-.{4}: starting on 1 host$")
        self.write("go", "")
        self.assertEqual(window.status(), 3)
        said = window.raw().partition(b"monarch: job")[2]
        self.assertIn(b"job.ended", said)
        self.assertIn(b"[m/0@v1] \\x1b[31mred", said)
        # Up to the shell's own words: no escape, and no carriage return but those that the terminal adds.
        said = said.partition(b"status=")[0]
        self.assertNotIn(b"\x1b", said)
        self.assertNotIn(b"\r", said.replace(b"\r\n", b""))
        self.assert_nothing_left_but_tmux()

    def assert_nothing_left_but_tmux(self):
        """Nothing of the job; tmux and its shell are ours, and go when the test ends."""
        def left():
            return [line for line in self.leftovers() if self.is_of_the_job(line)]
        harness.wait_for(lambda: not left(), lambda: "nothing left but\n" + "\n".join(left()), 10)

    def is_of_the_job(self, line):
        return not re.search(r"tmux|/bin/sh$|cat$|cat > ", line)


class Pipe(jobs.JobTest):
    """The same on pipes: lines with their time, and no control character among our own words."""

    CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

    def assert_plain(self, words):
        self.assertIsNone(self.CONTROL.search(words), repr(words))

    def test_what_we_say_on_a_pipe_has_no_control_character(self):
        bad = self.monarch("run", self.job(r"printf '\033[31mboom\r\n' >&2; exit 7", hosts=2, slots=1), "-q")
        self.assertEqual(bad.status, 7, bad)
        ours = "\n".join(line for line in bad.err.splitlines() if not line.startswith("[m/"))
        self.assertIn("│ \\x1b[31mboom\\x0d", ours)
        self.assert_plain(ours)
        good = self.monarch("run", self.job("echo fine", hosts=2, slots=1))
        self.assert_plain(good.out + good.err)
        for line in good.err.splitlines():
            self.assertRegex(line, r"^(monarch: |\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z | (result|reason|log|try) )")
        job = self.jobs()[-1]
        for command in (["status", job], ["ps", "--all"], ["events", job], ["logs", job], ["attach", job],
                        ["plan", self.path("work", "demo.yaml")], ["status", job, "--json"], ["events", job, "--json"]):
            done = self.monarch(*command)
            self.assert_plain(done.out + done.err)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
