"""`supervisor: {on: first}` with a first host that does not start: each way has its class, its status and its command, and nothing is left."""

import os
import unittest

import cluster
import faults
from first_test import QUICK, First
from host import Options


class TheFirstHost(First):
    def refused(self, status, kind, plant=lambda host: None, options=None):
        w = self.world(2, options={"h1": options} if options else {})
        plant(w["h1"])
        done = self.monarch("up", self.first_job("mark up", slots=1, ssh=QUICK), timeout=90)
        self.assertEqual(done.status, status, done)
        failed, = self.verdict()["failed_hosts"]
        self.assertEqual((failed["host"], failed["kind"]), ("h1", kind), failed)
        self.assertIn("so no other host takes its place", done.err)
        self.assertEqual(self.marks("up"), [])
        if w["h1"].pid is not None:
            self.assert_clean()
        return done

    def test_with_another_key(self):
        self.refused(3, "host key changed", faults.change_key)

    def test_with_a_key_that_nobody_knows(self):
        self.refused(3, "host key unknown", options=faults.unknown_key())

    def test_that_refuses(self):
        self.refused(69, "refused", faults.refuse)

    def test_that_is_silent(self):
        self.refused(69, "timeout", faults.hung_sshd)

    def test_that_lets_nobody_in(self):
        self.refused(69, "not let in", faults.refuse_login)

    def test_without_room(self):
        self.refused(69, "disk full", options=faults.full_disk())

    def test_whose_home_executes_nothing(self):
        self.refused(69, "not executable", faults.no_exec)

    def test_that_may_not_be_written_to(self):
        self.refused(69, "not writable", faults.read_only_home)

    def test_of_another_architecture(self):
        self.refused(69, "architecture", faults.other_architecture)

    @unittest.skipUnless(os.environ.get("MONARCH_DEBIAN11_ROOT"),
                         "MONARCH_DEBIAN11_ROOT names no root of Debian 11; CONTRIBUTING.md has how one is made")
    def test_of_debian_11_is_too_old_for_a_supervisor(self):
        done = self.refused(69, "system too old", options=Options(root=os.environ["MONARCH_DEBIAN11_ROOT"]))
        self.assertIn("GLIBC", done.err)

    def test_whose_shell_never_stops_printing(self):
        self.refused(69, "shell noise", faults.endless_shell)


if __name__ == "__main__":
    cluster.main()
