"""What the processes of a program's job print: it comes to the program's own sys.stdout and sys.stderr, bare and in whole lines.

Thread: one for each of the two, and one while lines are folded.
"""

import subprocess
import sys
import threading


_MOST_FOLDED = 20000  # lines that differ; then all that wait are shown


class Lines:
    """Shows lines as they come, or the equal ones of a window together."""

    def __init__(self):
        self._lock = threading.Lock()
        self._window, self._waiting, self._timer = None, {}, None

    def fold(self, seconds):
        """Equal lines of so long are shown once, with how many they were; None: each as it comes."""
        self._window = seconds or None
        self.flush()

    def add(self, name, line):
        """`name`: "stdout" or "stderr"."""
        with self._lock:
            if self._window is not None:
                self._waiting[name, line] = self._waiting.get((name, line), 0) + 1
                if len(self._waiting) >= _MOST_FOLDED:
                    self._show()
                elif self._timer is None:
                    self._timer = threading.Timer(self._window, self.flush)
                    self._timer.daemon = True
                    self._timer.start()
                return
            _write(name, line)

    def flush(self):
        with self._lock:
            self._timer = None
            self._show()

    def _show(self):
        waiting, self._waiting = self._waiting, {}
        for (name, line), count in waiting.items():
            _write(name, line if count == 1 else "[%d similar log lines] %s" % (count, line))


def _write(name, line):
    stream = getattr(sys, name)  # a notebook has put its own there
    try:
        stream.write(line)
        stream.flush()
    except (OSError, ValueError):
        pass


class Output:
    """A child that follows the job's output; it ends with the job, and all has been shown then."""

    def __init__(self, command, job):
        self.lines = Lines()
        self._child = subprocess.Popen([command, "logs", "-f", "--no-prefix", job], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, start_new_session=True)
        self._threads = [threading.Thread(target=self._read, args=one, daemon=True, name="monarch output")
                         for one in ((self._child.stdout, "stdout"), (self._child.stderr, "stderr"))]
        for one in self._threads:
            one.start()

    def _read(self, pipe, name):
        for line in pipe:
            self.lines.add(name, line.decode("utf-8", "replace"))

    def wait(self, seconds):
        """For the end of what is still to come."""
        for one in self._threads:
            one.join(seconds)
        self.lines.flush()
        if self._child.poll() is None:
            self._child.terminate()


def fold(seconds):
    """Of the job that this program has started for itself; of another job, who follows it shows it."""
    from ._process import process
    output = getattr(process.job, "output", None)
    if output is not None:
        output.lines.fold(seconds)
