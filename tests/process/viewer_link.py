"""The viewer's half of `monarch over-ssh`, as cli/away/viewer_frames.h has it: frames over a child's pipes.

    other = viewer_link.Link(test, words=["status", job], job=job)     # starts over-ssh and says what it is to run
    other.order(); other.until("end")                                  # out, err and files come in; other.end is what it said
"""

import json
import os
import select
import struct
import subprocess
import time

import harness

KINDS = {"order": 1, "signal": 2, "window": 3, "closed": 4, "taken": 5, "ping": 6,
         "welcome": 16, "refused": 17, "out": 18, "err": 19, "file": 20, "bytes": 21, "end": 22, "pong": 23}
NAMES = {number: name for name, number in KINDS.items()}
GREETING = b"monarch-talks 1\n"
COUNTED = {"out", "err", "file", "bytes", "end"}


def frame(kind, payload=b""):
    return struct.pack(">BQ", KINDS[kind], len(payload)) + payload


def numbers(*values):
    return struct.pack(f">{len(values)}Q", *values)


class Link:
    """Acknowledges what it takes unless told not to; `before` is a link whose viewer this one takes up."""

    def __init__(self, test, words=(), job="", terminal="other other", variables=(), junit=False, artifacts=False,
                 lingers=0, before=None, env=None):
        self.order_json = {"v": 1, "words": list(words), "job": job, "variables": [list(pair) for pair in variables],
                           "terminal": terminal, "junit": junit, "artifacts": artifacts, "lingers": lingers,
                           "token": before.welcome["token"] if before else "",
                           "taken": before.taken if before else 0}
        environment = {**test.environment, **(env or {})}
        self.err_path = test.path("work", f"over-ssh-{id(self)}.err")
        with open(self.err_path, "wb") as err:
            self.child = subprocess.Popen([harness.MONARCH, "over-ssh"], env=environment, cwd=test.path("work"),
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, bufsize=0,
                                          start_new_session=True, preexec_fn=harness._default_signals)
        test.addCleanup(self.close)
        greeting = self.child.stdout.read(len(GREETING))
        assert greeting == GREETING, greeting
        self.buffer, self.frames, self.out, self.err = b"", [], b"", b""
        self.files, self.taken, self.acknowledges = {}, before.taken if before else 0, True
        self.welcome = self.end = self.refused = None

    def order(self):
        self.send("order", json.dumps(self.order_json).encode())

    def send(self, kind, payload=b""):
        self.send_raw(frame(kind, payload))

    def send_raw(self, data):
        self.child.stdin.write(data)

    def signal(self, number):
        self.send("signal", numbers(number))

    def step(self, timeout=0.1):
        """Takes what has come; False at the end of the stream."""
        ready, _, _ = select.select([self.child.stdout], [], [], timeout)
        if not ready:
            return True
        data = os.read(self.child.stdout.fileno(), 1 << 16)
        self.buffer += data
        count = self.taken
        while len(self.buffer) >= 9:
            kind, size = struct.unpack(">BQ", self.buffer[:9])
            if len(self.buffer) < 9 + size:
                break
            self._take(NAMES[kind], self.buffer[9:9 + size])
            self.buffer = self.buffer[9 + size:]
        if self.acknowledges and self.taken != count:
            try:
                self.send("taken", numbers(self.taken))
            except BrokenPipeError:
                pass  # the last one was taken, and it has left
        return bool(data)

    def _take(self, name, payload):
        self.frames.append(name)
        self.taken += name in COUNTED
        if name == "welcome":
            self.welcome = json.loads(payload)
        elif name == "refused":
            self.refused = payload.decode()
        elif name == "out":
            self.out += payload
        elif name == "err":
            self.err += payload
        elif name == "file":
            said = json.loads(payload)
            self.files[said["name"]] = [said["size"], b""]
        elif name == "bytes":
            self.files[next(reversed(self.files))][1] += payload
        elif name == "end":
            self.end = json.loads(payload)

    def until(self, what, timeout=harness.DEADLINE_S):
        """Until a frame of this name has come, or a condition holds."""
        done = what if callable(what) else lambda: what in self.frames
        deadline = time.monotonic() + harness.patience(timeout)
        while not done():
            assert time.monotonic() < deadline, f"not within {timeout} s: {what} of {self!r}"
            assert self.step() or done(), f"ended without {what}: {self!r}"
        return self

    def status(self, timeout=harness.DEADLINE_S):
        return self.child.wait(timeout)

    def cut(self):
        """As a connection that ends."""
        self.child.stdin.close()
        self.child.stdout.close()

    def close(self):
        for stream in (self.child.stdin, self.child.stdout):
            try:
                stream.close()
            except BrokenPipeError:
                pass
        try:
            self.child.wait(5)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def __repr__(self):
        with open(self.err_path, encoding="utf-8", errors="replace") as file:
            words = file.read()
        return (f"{self.order_json['words']}: {self.frames[-20:]} end {self.end} refused {self.refused}\n--- out\n"
                f"{self.out[-2000:]!r}\n--- err\n{self.err[-2000:]!r}\n--- its own words\n{words}---")
