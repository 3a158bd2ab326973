"""Jobs of an ordinary user, and what others of the machine may do to them.

Where the tests run as root, the job's user is `user`, whose files and processes differ from root's as any user's do; else
it is whoever runs the tests. `self.as_other(...)` runs a program as somebody else, which takes root: without, the case is
skipped.
"""

import os
import shutil

import harness
import jobs

NOBODY, OTHER = 65534, 65533
SETPRIV = "/usr/bin/setpriv"


def becoming(uid):
    return [SETPRIV, f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


class UserTest(jobs.JobTest):
    user = NOBODY

    def setUp(self):
        super().setUp()
        self.uid, self.prefix, self.program = os.geteuid(), [], harness.MONARCH
        if self.uid != 0:
            return
        if not os.path.exists(SETPRIV):
            self.skipTest(f"{SETPRIV} is not installed")
        # A checkout of root's may lie where nobody else can go.
        for folder, binary in (("bin", harness.MONARCH), ("libexec/monarch", harness.WORKER)):
            os.makedirs(self.path(folder))
            there = self.path(folder, os.path.basename(binary))
            try:
                os.link(binary, there)
            except OSError:  # another file system
                shutil.copy(binary, there)
        self.uid, self.prefix, self.program = self.user, becoming(self.user), self.path("bin", "monarch")
        for place, _, _ in os.walk(self.folder):
            os.chown(place, self.uid, self.uid)

    def takes_root(self, what):
        """Before anything is started: what cannot be done otherwise is skipped."""
        if os.geteuid() != 0:
            self.skipTest(f"{what} takes root")

    def start(self, *arguments, **options):
        return self.start_program(*self.prefix, self.program, *arguments, **options)

    def as_user(self, *command, **options):
        """A program of the job's own user, to its end."""
        return self.start_program(*self.prefix, *command, **options).finished()

    def as_other(self, *command, **options):
        """A program of another user of the machine, to its end."""
        self.takes_root("becoming another user")
        return self.start_program(*becoming(OTHER), *command, **options).finished()
