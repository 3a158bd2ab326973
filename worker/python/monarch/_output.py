"""What the processes of a program's job print: it comes to the program's own sys.stdout and sys.stderr, bare and in whole lines.

Thread: one for each of the two; option() any.
"""

import subprocess
import sys
import threading


class Output:
    """A child that follows the job's output; it ends with the job, and all has been shown then."""

    def __init__(self, command, job):
        self.is_shown = True
        self._child = subprocess.Popen([command, "logs", "-f", "--no-prefix", job], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, start_new_session=True)
        self._threads = [threading.Thread(target=self._show, args=one, daemon=True, name="monarch output")
                         for one in ((self._child.stdout, "stdout"), (self._child.stderr, "stderr"))]
        for one in self._threads:
            one.start()

    def _show(self, pipe, name):
        for line in pipe:
            if not self.is_shown:
                continue
            stream = getattr(sys, name)  # a notebook has put its own there
            try:
                stream.write(line.decode("utf-8", "replace"))
                stream.flush()
            except (OSError, ValueError):
                pass

    def wait(self, seconds):
        """For the end of what is still to come."""
        for one in self._threads:
            one.join(seconds)
        if self._child.poll() is None:
            self._child.terminate()


def option(stream_to_client, aggregate_window_sec, level):
    from . import _once
    from ._process import process
    output = getattr(process.job, "output", None)
    if output is not None:
        output.is_shown = bool(stream_to_client)
    if aggregate_window_sec not in (None, 3) or level != 20:
        _once.say("logging_option(): lines are shown as they come, of every level")
