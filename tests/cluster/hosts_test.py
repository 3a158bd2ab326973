"""The hosts of a world: that they are machines of their own, that power, freezing and sshd are what they would be there."""

import os
import tempfile
import threading

import bed
import world
from host import DEADLINE_S, HOME, Options, read, wait_for


class Hosts(bed.BedTest):
    def test_each_is_reached_by_ssh_and_is_a_machine_of_its_own(self):
        w = self.world(4)
        for host in w.hosts:
            said = w.login.run("ssh", host.name, "hostname; readlink /proc/self/ns/pid; cat /proc/sys/kernel/random/boot_id; pwd")
            name, pids, boot, home = said.stdout.split()
            self.assertEqual((name, home), (host.name, HOME))
            for other in ["self", *(h.pid for h in [w.login, *w.hosts] if h is not host)]:
                self.assertNotEqual(pids, os.readlink(f"/proc/{other}/ns/pid"))
                self.assertNotEqual(boot, read(f"/proc/{other}/root/proc/sys/kernel/random/boot_id").strip())

    def test_what_one_writes_no_other_has(self):
        w = self.world(2)
        name = f"/of-{os.getpid()}"
        for folder in ("/tmp", "/run", "/dev/shm", HOME, "/var/tmp", "/etc", "/usr/bin", "/home"):
            w["h1"].write(folder + name, "here")
            self.assertEqual(w["h1"].read(folder + name), "here")
            for other in ("", w["h2"].path(""), w.login.path("")):
                self.assertFalse(os.path.exists(other + folder + name), other + folder)

    def test_the_build_is_on_login_alone_and_nobody_writes_to_the_checkout(self):
        w = self.world(1)
        self.assertEqual(os.listdir(w["h1"].path(world.BUILD)) if os.path.isdir(world.BUILD) else [], [])
        for host in (w.login, w["h1"]):
            self.assertEqual(host.read(os.path.join(world.ROOT, "LICENSE")), read(os.path.join(world.ROOT, "LICENSE")))
            failed = host.run("touch", os.path.join(world.ROOT, "LICENSE"), check=False)
            self.assertIn("Read-only", failed.stderr)

    def test_power_loss_is_silence_and_leaves_no_process(self):
        w = self.world(1)
        left = w["h1"].start("sh", "-c", "echo here; exec sleep 1000", stdout=-1)
        self.assertEqual(left.stdout.readline(), b"here\n")     # not on its way into the host any more
        left.stdout.close()
        talk = self.greeting(w.login, w["h1"])
        marks = os.readlink(f"/proc/{w['h1'].pid}/ns/pid")
        w["h1"].power_off()
        self.assertEqual(left.wait(DEADLINE_S), -9)
        self.assertEqual(_processes_in(marks), [])
        self.assert_silent(talk)
        talk.sendall(b"anybody there?")
        self.assert_silent(talk)
        self.assertFalse(w.cgroup and os.path.exists(w["h1"].cgroup))

    def test_the_end_of_a_process_is_no_silence(self):
        """What power_off() is there for: a process that is killed says so, by its kernel."""
        w = self.world(1)
        talk = self.greeting(w.login, w["h1"])
        w["h1"].stop_sshd()
        self.assertEqual(talk.recv(256), b"")

    def test_after_a_reboot_the_disk_is_there_and_the_rest_is_new(self):
        w = self.world(1)
        host = w["h1"]
        before = host.read("/proc/sys/kernel/random/boot_id")
        kept, lost = [HOME + "/kept", "/etc/kept"], ["/tmp/lost", "/run/lost", "/dev/shm/lost"]
        for path in kept + lost:
            host.write(path, "x")
        host.power_off()
        host.power_on()
        self.assertNotEqual(host.read("/proc/sys/kernel/random/boot_id"), before)
        self.assertEqual([path for path in kept + lost if os.path.exists(host.path(path))], kept)
        self.assertEqual(w.login.run("ssh", "h1", "hostname").stdout, "h1\n")

    def test_a_frozen_host_acknowledges_and_does_nothing(self):
        w = self.world(1)
        if not w.cgroup:
            self.skipTest("no cgroup2 to write to")
        host = w["h1"]
        running = host.start("sleep", "0")  # whatever is started from outside freezes too, once it is in
        self.assertEqual(running.wait(DEADLINE_S), 0)
        host.freeze()
        talk = self.socket_of(w.login)
        talk.connect((host.address, 22))
        talk.sendall(b"SSH-2.0-test\r\n")
        wait_for(lambda: bed.unsent(talk) == 0, "an acknowledgement by the kernel of a frozen host")
        self.assert_silent(talk)
        host.thaw()
        self.assertIn(b"SSH-2.0", talk.recv(256))

    def test_a_restart_of_sshd_keeps_its_sessions(self):
        w = self.world(1)
        session = w.login.start("ssh", "h1", "echo started; read line; echo got $line", stdin=-1, stdout=-1)
        self.assertEqual(session.stdout.readline(), b"started\n")
        before = w["h1"].read("/run/sshd.pid")
        w["h1"].restart_sshd()
        self.assertNotEqual(w["h1"].read("/run/sshd.pid"), before)
        out, _ = session.communicate(b"word\n", DEADLINE_S)
        self.assertEqual(out, b"got word\n")
        self.assertEqual(w.login.run("ssh", "h1", "hostname").stdout, "h1\n")

    def test_a_host_can_be_another_system_below(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
            os.mkdir(other + "/etc")  # a layer above the machine's, so it must be no part of that
            with open(other + "/etc/debian_version", "w", encoding="ascii") as file:
                file.write("11.99\n")
            w = self.world(2, options={"h1": Options(root=other + ":/")})
            self.assertEqual(w.login.run("ssh", "h1", "cat /etc/debian_version").stdout, "11.99\n")
            self.assertNotEqual(w["h2"].read("/etc/debian_version"), "11.99\n")

    def test_two_worlds_with_the_same_addresses_do_not_meet(self):
        one, two = self.world(1), self.world(1)
        self.assertEqual(one["h1"].address, two["h1"].address)
        self.assertNotEqual(one.public_key("h1"), two.public_key("h1"))
        for w, word in ((one, "one"), (two, "two")):
            w["h1"].write(HOME + "/name", word)
        for w, word in ((one, "one"), (two, "two")):
            self.assertEqual(w.login.run("ssh", "h1", "cat name").stdout, word)
        one["h1"].power_off()
        self.assertEqual(two.login.run("ssh", "h1", "cat name").stdout, "two")

    def test_eight_hosts_take_ssh_at_once(self):
        w = self.world(8)
        ended = {}

        def look(host):
            ended[host.name] = w.login.run("ssh", host.name, "hostname").stdout.strip()

        threads = [threading.Thread(target=look, args=(host,)) for host in w.hosts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
        self.assertEqual(ended, {host.name: host.name for host in w.hosts})


def _processes_in(namespace):
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/ns/pid") == namespace:
                found.append(int(name))
        except OSError:
            pass  # gone meanwhile
    return found


if __name__ == "__main__":
    bed.main()
