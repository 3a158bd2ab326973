"""Hosts on which a command opens a shell (launch.command): OpenSSH's ssh, which knows an authority and no key, and nsenter, which is none."""

import re

import cluster
import harness
import jobs
import signed

NSENTER = ["/usr/bin/nsenter", "--target=$(host)", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--", "/bin/sh"]


class CommandTest(cluster.ClusterTest):
    def command_job(self, script, hosts=2, slots=2, pool=None, command=None, **keys):
        """As ssh_job()."""
        command = {"hosts": pool or [host.name for host in self.w.hosts], "exec": signed.EXEC, **(command or {})}
        return self.job(script, hosts, slots, mesh={"workdir": "/tmp", **keys.pop("mesh", {})}, launch={"command": command}, **keys)


class Ssh(CommandTest):
    def test_by_ssh_and_a_signed_key_a_lost_host_is_replaced_and_nothing_stays(self):
        w = self.world(3)
        signed.sign_hosts(w)
        calm = self.monarch("run", self.ssh_job("true", pool=["h1"], hosts=1), timeout=60)
        self.assertEqual(calm.status, 3, f"launch.ssh reads no certificates: {calm}")
        spec = self.command_job("mark up; " + jobs.FOREVER, command={"spares": 1}, mesh={"gang": "host"},
                                supervision={"heartbeat": "250ms", "suspect_after": "750ms", "lost_after": "1500ms", "lease": "2s",
                                             "orphan_ttl": "4s", "restart": {"backoff": "100ms"}, "reallocate": {"max": 1}})
        run = self.start("run", spec)
        self.wait_for_marks("up", 4)
        self.assertEqual(set(self.hosts_of_marks("up").values()), {"h1", "h2"})
        w["h2"].power_off()
        harness.wait_for(lambda: set(self.hosts_of_marks("up").values()) == {"h1", "h3"}, self.supervisor_log, 30)
        self.assertEqual(self.monarch("stop").status, 0)
        self.assertEqual(run.finished(60).status, 143, self.supervisor_log())
        w["h2"].power_on()
        self.assert_nothing_left()

    def test_why_a_host_is_not_reached_is_told_as_ssh_says_it(self):
        w = self.world(3)
        signed.sign_hosts(w, but=["h2"])
        w["h3"].stop_sshd()
        done = self.monarch("run", self.command_job("true", hosts=3, slots=1), timeout=60)
        self.assertEqual(done.status, 69, done)
        self.assertRegex(done.err, r"h2: host key unknown \(start, after .*ssh ended without a shell on the host \(exit code 255\): "
                                   r"Host key verification failed\.\n")
        self.assertRegex(done.err, r"h3: refused \(start, .*port 22: Connection refused\n")
        self.assertIn("ssh -oBatchMode=yes -oStrictHostKeyChecking=yes h2", done.err)
        absent = self.monarch("run", self.command_job("true", command={"exec": ["/usr/bin/nosuch", "$(host)"]}), timeout=60)
        self.assertEqual(absent.status, 69, absent)
        self.assertIn("/usr/bin/nosuch", absent.err)
        hung = self.start("run", self.command_job(jobs.FOREVER, hosts=1, pool=["h1"], command={"exec": ["/bin/sleep", "600"]}))
        harness.wait_for(lambda: self.find("sleep", "600"), "the command")
        self.assertEqual(self.monarch("stop").status, 0)
        self.assertLess(hung.finished(20).seconds, 8, "nobody needs a proof of what was never reached")
        self.assert_nothing_left()


class NoSsh(CommandTest):
    """monarch runs in login's network, and sees the processes of all hosts: it enters them."""

    def start_program(self, *arguments, **options):
        entered = ["/usr/bin/nsenter", f"--net=/proc/{self.w.login.pid}/ns/net", "--", *arguments]
        return super(cluster.ClusterTest, self).start_program(*entered, **options)

    def test_nsenter_starts_and_ends_a_mesh(self):
        w = self.world(2)
        pool = [{"name": host.name, "address": str(host.pid)} for host in w.hosts]
        spec = self.command_job("mark up; uname -n; exit 0", pool=pool, command={"exec": NSENTER}, control={"address": w.login.address})
        done = self.monarch("run", spec, timeout=60)
        self.assertEqual(done.status, 0, f"{done}\n{self.supervisor_log()}")
        self.assertEqual(self.hosts_of_marks("up"), {0: "h1", 1: "h1", 2: "h2", 3: "h2"})
        self.assertEqual(re.findall(r"^\[m/3@h2\] (.*)$", done.out, re.M), ["h2"], done)
        came_by_ssh = {"SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22"}  # of who starts the job: it means nothing on the hosts
        untold = self.monarch("run", self.command_job("true", pool=pool, command={"exec": NSENTER}), env=came_by_ssh, timeout=60)
        self.assertEqual(untold.status, 69, untold)
        self.assertIn("say it in control.address", untold.err)
        self.assert_nothing_left()


if __name__ == "__main__":
    cluster.main()
