"""What the suite says: a line of TAP for each row, and with --table the figures as MEASURED.md takes them."""

import statistics
import time

GIB = 1 << 30


class Report:
    def __init__(self):
        self.failed = []
        self._figures, self._notes, self._row, self._wrong = {}, [], None, []

    def run(self, number, row, *arguments):
        """One row; what goes wrong in it is told, and the next one runs."""
        self._row, self._wrong = row.__name__.replace("_", " "), []
        began = time.monotonic()
        try:
            row(self, *arguments)
        except Skipped as why:
            print(f"ok {number} - {self._row} # SKIP {why}", flush=True)
            return
        except Exception as error:  # noqa: BLE001
            if isinstance(error, OutOfTime):
                raise
            self._wrong.append(f"{type(error).__name__}: {error}")
        if self._wrong:
            self.failed.append(self._row)
        print(f"{'not ok' if self._wrong else 'ok'} {number} - {self._row} ({time.monotonic() - began:.1f} s)", flush=True)
        for line in self._wrong:
            print("# " + line.replace("\n", "\n# "), flush=True)

    def check(self, holds, what):
        if not holds:
            self._wrong.append(what)

    def note(self, what):
        self._notes.append(what)
        print("# " + what, flush=True)

    def rate(self, what, size, seconds, against=None, goal=None):
        """Bytes a second; and which part they are of one that was told before, or of what is given."""
        rate = size / statistics.median(seconds) / GIB
        whole = self._figures[against][0] if isinstance(against, str) else against
        self._figures[what] = (rate, None if whole is None else rate / whole, against, goal)
        print(f"# {what}: {self._text(what)}", flush=True)
        return rate

    def of(self, what):
        """GiB/s, as they were told."""
        return self._figures[what][0]

    def _text(self, what):
        rate, part, against, _ = self._figures[what]
        return f"{rate:.2f} GiB/s" + ("" if part is None else f", {part:.2f} of {against if isinstance(against, str) else f'{against:.2f}'}")

    def table(self, head):
        """As comments, for it is TAP all the same."""
        lines = [head, "", "| | GiB/s | part | of | goal |", "|---|---|---|---|---|"]
        for what, (rate, part, against, goal) in self._figures.items():
            reached = "" if goal is None else f"≥ {goal}" + ("" if part >= goal else ": not reached")
            of = against if isinstance(against, str) else "" if against is None else f"{against:.2f} GiB/s"
            lines.append(f"| {what} | {rate:.2f} | {'' if part is None else f'{part:.2f}'} | {of} | {reached} |")
        print("#\n# " + "\n# ".join([*lines, "", *(f"* {note}" for note in self._notes)]), flush=True)


class Skipped(Exception):
    """A row that cannot run here, and why."""


class OutOfTime(Exception):
    """The suite has had its time."""


def timed(work, times):
    """How long it takes, each time."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return took
