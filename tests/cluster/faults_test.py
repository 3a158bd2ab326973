"""The faults of hosts that tests of jobs plant: what OpenSSH says of each, and that the host is well otherwise."""

import bed
import faults
from host import HOME


class Faults(bed.BedTest):
    def ssh(self, w, command="echo well", **options):
        return w.login.run("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=1", "h1", command, check=False, **options)

    def assert_refused(self, w, words):
        said = self.ssh(w)
        self.assertEqual(said.returncode, 255, said)
        self.assertIn(words, said.stderr)
        self.assertEqual(w.login.run("ssh", "h2", "echo well").stdout, "well\n")

    def test_a_key_that_changed(self):
        w = self.world(2)
        faults.change_key(w["h1"])
        self.assert_refused(w, "REMOTE HOST IDENTIFICATION HAS CHANGED")

    def test_a_key_that_nobody_knows(self):
        self.assert_refused(self.world(2, options={"h1": faults.unknown_key()}), "Host key verification failed")

    def test_a_key_that_was_revoked(self):
        w = self.world(2)
        faults.revoke_key(w, w["h1"])
        self.assert_refused(w, "REVOKED HOST KEY DETECTED")

    def test_a_login_that_is_refused(self):
        w = self.world(2)
        faults.refuse_login(w["h1"])
        self.assert_refused(w, "Permission denied (publickey)")

    def test_a_dead_host(self):
        w = self.world(2)
        faults.dead(w["h1"])
        self.assert_refused(w, "timed out")

    def test_a_host_where_no_sshd_listens(self):
        w = self.world(2)
        faults.refuse(w["h1"])
        self.assert_refused(w, "Connection refused")

    def test_a_host_in_a_black_hole(self):
        w = self.world(2)
        faults.black_hole(w, w["h1"])
        self.assert_refused(w, "timed out")

    def test_an_sshd_that_says_nothing(self):
        w = self.world(2)
        faults.hung_sshd(w["h1"])
        self.assert_refused(w, "Connection timed out during banner exchange")

    def test_a_full_disk(self):
        w = self.world(1, options={"h1": faults.full_disk()})
        said = self.ssh(w, f"head -c {faults.ROOM_BYTES * 2} /dev/zero >file")
        self.assertIn("No space left on device", said.stderr)

    def test_a_shell_that_talks(self):
        w = self.world(1)
        faults.noisy_shell(w["h1"], lines=2)
        self.assertEqual(self.ssh(w).stdout, "Welcome to h1, line 1\nWelcome to h1, line 2\nwell\n")

    def test_a_shell_that_never_stops_talking(self):
        w = self.world(1)
        faults.endless_shell(w["h1"])
        said = w.login.run("sh", "-c", "ssh h1 echo well | head -n 1000 | sort -u").stdout
        self.assertEqual(said, "Welcome to the machine\n")

    def test_another_architecture(self):
        w = self.world(1)
        faults.other_architecture(w["h1"])
        self.assertEqual(self.ssh(w, "uname -m; uname -s").stdout, "riscv64\nLinux\n")

    def test_a_home_where_nothing_may_be_executed_or_written(self):
        w = self.world(2)
        faults.no_exec(w["h1"])
        self.assertIn("Permission denied", self.ssh(w, "cp /bin/true mine && ./mine").stderr)
        faults.read_only_home(w["h2"])
        self.assertIn("Read-only", w.login.run("ssh", "h2", f"touch {HOME}/x", check=False).stderr)

    def test_a_call_back_that_is_blocked_or_refused(self):
        w = self.world(2)
        faults.block_call_back(w, w["h1"])
        faults.refuse_call_back(w, w["h2"])
        listener = self.listener(w.login)
        for name, wanted in (("h1", TimeoutError), ("h2", ConnectionRefusedError)):
            self.assertEqual(w.login.run("ssh", name, "echo well").stdout, "well\n")
            one = self.socket_of(w[name])
            one.settimeout(bed.SILENCE_S)
            with self.assertRaises(wanted):
                one.connect((w.login.address, 5000))
        listener.close()


if __name__ == "__main__":
    bed.main()
