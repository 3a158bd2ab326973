"""Runs the real `monarch` in a private world, under deadlines, and proves that it left nothing behind.

    import harness

    class Run(harness.MonarchTest):
        def test_exit_code_of_a_rank_is_the_jobs(self):
            spec = self.spec("version: 1 ...")
            done = self.monarch("run", spec)                 # waits; done.status, done.out, done.err, done.seconds
            self.assertEqual(done.status, 7, done)
            self.assert_nothing_left()

        def test_supervisor_dies(self):
            run = self.start("run", self.spec("..."))        # goes on; run.pid, run.out, run.err (what came so far)
            run.wait_for_err("ready")                        # a regular expression, under a deadline
            supervisor, = self.find("monarch", "supervise")  # live processes of this test by program and argument
            self.kill(supervisor)                            # SIGKILL through a pidfd
            self.assertEqual(run.wait(), 70)

    harness.main()

Each test has a folder of its own, short enough for socket paths: state/ (MONARCH_STATE_DIR), run/ (XDG_RUNTIME_DIR),
cache/ (XDG_CACHE_HOME), tmp/ (TMPDIR), home/ (HOME) and work/, where specs are written and commands run. The environment
is just these, PATH, LANG and a tag that children inherit. When a test ends, whatever it started is killed, and the test
fails if anything was there to kill: a test that means to leave a job running stops it itself.

Nothing waits without a deadline: wait_for(predicate, what) looks every 10 ms and fails naming what did not happen. On a machine that is busy
it waits longer.
The binaries are those of $MONARCH_BUILD_DIR, else of build/. Cases are reported as TAP; standard library only.
`PYTHONPATH=tests/process python3 tests/process/x_test.py Run.test_name` runs one case.
"""

import contextlib
import difflib
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest
import uuid

import leftovers
import tap

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODULES = os.path.join(ROOT, "worker", "python")  # what ranks in Python import of ours
BUILD = os.environ.get("MONARCH_BUILD_DIR") or os.path.join(ROOT, "build")
SANITIZED = "san" in os.path.basename(BUILD)  # keeps what was freed, and maps a shadow that no address limit allows
MONARCH = os.path.join(BUILD, "cli/monarch")
WORKER = os.path.join(BUILD, "worker/monarch-worker")

DEADLINE_S = 30.0  # of a wait that names none
LOOK_S = 0.01      # between two looks
ENDING_S = 2.0     # for what is about to end: a command returns moments before its supervisor and guard have ended


def patience(timeout):
    """So many seconds on a machine that has processors to spare; up to four times as many where more processes want them than there are, and
    three times as many at least for what a sanitizer slows down; and all that as often as who runs the tests found the machine to be slower
    than the one that limits are meant for (scripts/runner.py)."""
    busy = min(max(os.getloadavg()[0] / os.cpu_count(), 3.0 if SANITIZED else 1.0), 4.0)
    return timeout * min(max(busy, 1.0) * float(os.environ.get("MONARCH_TEST_PATIENCE", "1")), 16.0)


class OutOfTime(AssertionError):
    """The test may go on no longer."""


def wait_for(predicate, what, timeout=DEADLINE_S):
    """The first true answer of predicate(); AssertionError naming `what` (text, or a function giving it) after timeout, or as much more as
    patience() grants; or when the test is out of time."""
    began = time.monotonic()
    why = f"not within {timeout} s"
    try:
        while True:
            looked = time.monotonic()
            answer = predicate()
            if answer:
                return answer
            waited = time.monotonic() - began
            if waited >= timeout and waited >= patience(timeout):
                break
            time.sleep(max(LOOK_S, 2 * (time.monotonic() - looked)))  # a look that costs much is not all that this machine does
    except OutOfTime as over:
        why = str(over)
    raise AssertionError(f"{why}: {what() if callable(what) else what}")


class Finished:
    """A command that ended: its status as a shell shows it (128 + n for signal n), its output, how long it took."""

    def __init__(self, arguments, status, out, err, seconds):
        self.arguments, self.status, self.out, self.err, self.seconds = arguments, status, out, err, seconds

    def __repr__(self):
        return f"{self.arguments} -> {self.status} after {self.seconds:.2f} s\n--- out\n{self.out}--- err\n{self.err}---"

    def json(self):
        """stdout as JSON, one object per line."""
        return [json.loads(line) for line in self.out.splitlines()]


END_OF_TERMINAL = b"\x00\x1eover\x00"


class Running:
    """A command under way. Output goes to files, so that it never blocks; on a terminal, `out` holds all of it."""

    def __init__(self, arguments, environment, folder, stdin, terminal, stdout=None):
        self.arguments = arguments
        self._paths = [tempfile.mkstemp(prefix=name, dir=folder) for name in ("out-", "err-")]
        self._started = time.monotonic()
        self._ended = None
        self._terminal, streams = None, [stdin, *(descriptor for descriptor, _ in self._paths)]
        if stdout is not None:
            streams[1] = stdout
        if terminal:
            self._terminal, side = pty.openpty()
            streams = [side, side, side]
        try:
            # With a terminal the command leads a session of its own on it: Ctrl-C typed there reaches it as SIGINT.
            self._child = subprocess.Popen(arguments, env=environment, cwd=os.path.join(folder, "work"),
                                           stdin=streams[0], stdout=streams[1], stderr=streams[2],
                                           start_new_session=True,
                                           preexec_fn=_own_terminal if terminal else _default_signals)
        finally:
            if terminal:
                self._side = side
                self._told_all = threading.Event()
                self._reader = threading.Thread(target=self._copy_terminal, daemon=True)
            else:
                for descriptor, _ in self._paths:
                    os.close(descriptor)
        if terminal:
            self._reader.start()
        self.pid = self._child.pid

    def _copy_terminal(self):
        rest = b""
        while True:
            try:
                data = os.read(self._terminal, 65536)
            except OSError:  # EIO: the last process closed its side
                data = b""
            if not data:
                os.write(self._paths[0][0], rest)
                os.close(self._paths[0][0])
                os.close(self._paths[1][0])
                self._told_all.set()
                return
            rest += data
            if END_OF_TERMINAL in rest:
                rest = rest.replace(END_OF_TERMINAL, b"")
                os.write(self._paths[0][0], rest)
                rest = b""
                self._told_all.set()
            # What may be the beginning of the mark waits for what follows it.
            kept = next((n for n in range(len(END_OF_TERMINAL) - 1, 0, -1) if rest.endswith(END_OF_TERMINAL[:n])), 0)
            os.write(self._paths[0][0], rest[:len(rest) - kept])
            rest = rest[len(rest) - kept:]

    def _hear_all(self):
        """What it showed last: the terminal's end would be told before what is still on its way from it (the kernel hands that on
        later), so our own side is open until a mark has come through behind it."""
        if self._side is not None:
            side, self._side = self._side, None
            try:
                os.write(side, END_OF_TERMINAL)
            except OSError:  # it was hung up
                self._told_all.set()
            os.close(side)
        self._told_all.wait(patience(5))

    def out_bytes(self):
        with open(self._paths[0][1], "rb") as file:
            return file.read()

    def _text(self, index):
        with open(self._paths[index][1], "rb") as file:
            return file.read().decode(errors="replace")

    @property
    def out(self):
        return self._text(0)

    @property
    def err(self):
        return self._text(1)

    def type(self, text):
        """Types on the terminal: "\\x03" is Ctrl-C, "\\x1a" Ctrl-Z."""
        os.write(self._terminal, text.encode())

    def signal(self, number):
        """To this command alone, while it is our child and not yet reaped."""
        self._child.send_signal(number)

    @property
    def status(self):
        """As a shell shows it, or None while it runs."""
        code = self._child.poll()
        if code is not None and self._ended is None:
            self._ended = time.monotonic()
        return code if code is None or code >= 0 else 128 - code

    def wait(self, timeout=DEADLINE_S):
        """Its status, or AssertionError with all output when it does not end in time."""
        wait_for(lambda: self.status is not None, lambda: f"the end of {self!r}", timeout)
        if self._terminal is not None:
            self._hear_all()
        return self.status

    def finished(self, timeout=DEADLINE_S):
        status = self.wait(timeout)
        return Finished(self.arguments, status, self.out, self.err, self._ended - self._started)

    def wait_for_out(self, pattern, timeout=DEADLINE_S):
        return self._wait_for(0, pattern, timeout)

    def wait_for_err(self, pattern, timeout=DEADLINE_S):
        return self._wait_for(1, pattern, timeout)

    def _wait_for(self, index, pattern, timeout):
        """The match. Fails at once when the command has ended without it."""
        def look():
            over = self.status is not None
            if over and self._terminal is not None:
                self._hear_all()
            match = re.search(pattern, self._text(index), re.MULTILINE)
            if over and not match:
                raise AssertionError(f"ended with {self.status} and never said {pattern!r}: {self!r}")
            return match
        return wait_for(look, lambda: f"{pattern!r} from {self!r}", timeout)

    def end(self):
        """Kills it if it runs; reaps it."""
        if self.status is None:
            self._child.kill()
        self._child.wait(10)
        if self._terminal is not None:
            self._hear_all()

    def __repr__(self):
        return f"{self.arguments} (status {self.status})\n--- out\n{self.out}--- err\n{self.err}---"


def _default_signals():
    # A shell that runs the tests in the background has them ignore SIGINT and SIGQUIT, and a command would inherit it.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _own_terminal():
    _default_signals()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class MonarchTest(unittest.TestCase):
    """A test with its world; see the top of this file."""

    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mh-", dir="/tmp")
        self.tag = uuid.uuid4().hex
        self._shm_before = set(os.listdir("/dev/shm"))
        self._hidden = set()
        self._running = []
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8", "HOME": self.path("home"),
            "TMPDIR": self.path("tmp"), "MONARCH_STATE_DIR": self.path("state"), "XDG_RUNTIME_DIR": self.path("run"),
            "XDG_CACHE_HOME": self.path("cache"), "XDG_STATE_HOME": self.path("xdg"), leftovers.TAG: self.tag,
        }
        for sub in ("home", "tmp", "run", "cache", "xdg", "work"):
            os.mkdir(self.path(sub), 0o700)
        self.addCleanup(self._end)

    def path(self, *parts):
        """A path in the test's folder."""
        return os.path.join(self.folder, *parts)

    # Commands.

    def start(self, *arguments, **options):
        """`monarch ARGUMENTS` in the background."""
        return self.start_program(MONARCH, *arguments, **options)

    def start_program(self, *arguments, env=None, stdin=subprocess.DEVNULL, terminal=False, stdout=None):
        """Any program. env: variables to add, or to drop where the value is None. stdout: a descriptor instead of `out`."""
        environment = {k: v for k, v in {**self.environment, **(env or {})}.items() if v is not None}
        running = Running([str(a) for a in arguments], environment, self.folder, stdin, terminal, stdout)
        self._running.append(running)
        return running

    def monarch(self, *arguments, timeout=DEADLINE_S, **options):
        """`monarch ARGUMENTS` to its end."""
        return self.start(*arguments, **options).finished(timeout)

    def write(self, name, text, mode=0o644):
        """A file in work/; its path."""
        path = self.path("work", name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def read(self, *parts):
        """The text of a file in the test's folder."""
        with open(self.path(*parts), encoding="utf-8", errors="replace") as file:
            return file.read()

    def spec(self, text, name="mesh.yaml"):
        return self.write(name, text)

    # What is there.

    def jobs(self):
        """Ids of the jobs in the state directory, oldest first."""
        try:
            folder = self.path("state", "jobs")
            names = [name for name in os.listdir(folder) if not name.startswith(".")]  # not what is on its way there
            return sorted(names, key=lambda job: os.stat(os.path.join(folder, job)).st_mtime_ns)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def job_file(self, name, job=None):
        """Path of a file of a job (the only one, unless named)."""
        if job is None:
            jobs = self.jobs()
            self.assertEqual(len(jobs), 1, f"one job is expected here: {jobs}")
            job = jobs[0]
        return self.path("state", "jobs", job, name)

    def verdict(self, job=None):
        return json.loads(self.read(self.job_file("verdict.json", job)))

    def processes(self):
        return leftovers.processes(self.folder, self.tag, self.jobs(), self._hidden)

    def find(self, program, *arguments):
        """Live processes of this test whose program has this name and whose arguments hold all of these."""
        wanted = {a.encode() for a in arguments}
        return [p for p in self.processes() if p.program == program and wanted <= set(p.arguments[1:])]

    def wait_for_process(self, program, *arguments, timeout=DEADLINE_S):
        """The one process that find() finds, once there is exactly one."""
        what = f"one {program} {' '.join(arguments)} among "
        return wait_for(lambda: (f := self.find(program, *arguments)) and len(f) == 1 and f[0],
                        lambda: what + "\n".join(map(str, self.processes())), timeout)

    def kill(self, process, number=signal.SIGKILL):
        """Signals a process that find() found, never another that got its number since."""
        self.kill_all([process], number)

    def kill_all(self, processes, number=signal.SIGKILL):
        """As kill(), of all at once: none lives to tell of the death of another, which is why they stand still first."""
        with contextlib.ExitStack() as held:
            descriptors = []
            for process in processes:
                descriptors.append(os.pidfd_open(process.pid))
                held.callback(os.close, descriptors[-1])
                found = leftovers.Process(process.pid).arguments
                if not found:
                    raise ProcessLookupError(f"{process} has ended")
                self.assertEqual(found, process.arguments, "the process is another one")
            for step in (signal.SIGSTOP, number) if number == signal.SIGKILL and len(descriptors) > 1 else (number,):
                for descriptor in descriptors:
                    with contextlib.suppress(ProcessLookupError):  # it ends by what became of the others
                        signal.pidfd_send_signal(descriptor, step)

    def wait_gone(self, process, timeout=DEADLINE_S):
        """Until the process has ended (a zombie has)."""
        try:
            descriptor = os.pidfd_open(process.pid)
        except ProcessLookupError:
            return
        try:
            limit = patience(timeout)
            ready, _, _ = select.select([descriptor], [], [], limit)
            self.assertTrue(ready, f"not within {limit} s: the end of {process}")
        finally:
            os.close(descriptor)

    # What is left.

    def leftovers(self):
        """Everything that must not outlive a job, in words."""
        jobs = self.jobs()
        return [*map(str, self.processes()), *leftovers.sockets(self.folder),
                *leftovers.files(self.folder), *leftovers.shared_memory(jobs, self._shm_before),
                *leftovers.cgroups(self.folder)]

    def assert_nothing_left(self, timeout=10.0):
        wait_for(lambda: not self.leftovers(), lambda: "nothing left but\n" + "\n".join(self.leftovers()), timeout)

    def assert_output(self, finished, status, out, err):
        """All of status, stdout and stderr; out and err may be compiled patterns that match the whole text."""
        for name, got, wanted in (("stdout", finished.out, out), ("stderr", finished.err, err)):
            if isinstance(wanted, re.Pattern):
                self.assertRegex(got, re.compile(rf"\A(?:{wanted.pattern})\Z", wanted.flags), f"{name} of {finished}")
            elif got != wanted:
                diff = difflib.unified_diff(wanted.splitlines(True), got.splitlines(True), "expected", "got")
                self.fail(f"{name} of {finished.arguments}:\n{''.join(diff)}")
        self.assertEqual(finished.status, status, finished)

    def kill_everything(self):
        """Kills every process of the test until none is left, and says which there were."""
        killed = {}
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            found = self.processes()
            if not found:
                break
            for process in found:
                killed[process.pid] = str(process)
                try:
                    self.kill(process)
                except (ProcessLookupError, AssertionError):
                    pass  # gone since it was found
            time.sleep(LOOK_S)
        return list(killed.values())

    def _end(self):
        for running in self._running:
            running.end()
        deadline = time.monotonic() + ENDING_S
        while self.processes() and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        killed = self.kill_everything()
        for group in leftovers.cgroups(self.folder):
            try:
                os.rmdir(group.removeprefix("cgroup "))
            except OSError:
                pass  # not empty: its own finding, by the processes in it
        shutil.rmtree(self.folder, ignore_errors=True)
        self.assertEqual(killed, [], "the test left these running")


def _terminated(_number, _frame):
    # Meson ends a file that is out of time by SIGTERM: this case fails, its clean-up runs, no other case starts. (A
    # KeyboardInterrupt would skip the clean-up.)
    tap.stop()
    raise OutOfTime("out of time")


def main():
    signal.signal(signal.SIGTERM, _terminated)
    tap.main()


if __name__ == "__main__":
    sys.exit("this is a library; see its top")
