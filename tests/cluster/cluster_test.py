"""The fixture of jobs on hosts itself: that commands run on login, and that what is left on a host is seen."""

import signal

import cluster
import jobs


class Fixture(cluster.ClusterTest):
    def test_monarch_runs_on_the_login_host(self):
        w = self.world(1)
        done = self.monarch("run", self.job("hostname; pwd; exit 7", hosts=1, slots=1))
        self.assertEqual(done.status, 7, done)
        self.assertIn("login\n", done.out)
        self.assertIn(self.path("work"), done.out)
        self.assertEqual(self.verdict()["exit_code"], 7)
        self.assert_nothing_left()
        self.assertFalse(w["h1"].run("test", "-e", jobs.harness.MONARCH, check=False).returncode == 0)

    def test_signals_reach_the_command_and_marks_are_found(self):
        self.world(1)
        run = self.start("run", self.job("mark up; " + jobs.FOREVER, hosts=1, slots=2))
        self.wait_for_marks("up", 2)
        self.assertGreater(len(self.on_hosts()), 2)
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 143)
        self.assert_nothing_left()

    def test_ctrl_c_on_the_terminal_is_the_commands_alone_and_its_last_words_are_heard(self):
        self.world(1)
        run = self.start_program("/bin/sh", "-c", "trap 'sleep 0.5; echo last; exit 7' INT; echo there; while :; do sleep 0.05; done",
                                 terminal=True)
        run.wait_for_out("there")
        run.type("\x03")
        self.assertEqual((run.wait(), "last" in run.out), (7, True), run)

    def test_what_is_left_on_a_host_is_seen(self):
        w = self.world(2)
        self.assertEqual(self.leftovers(), [])
        running = w["h2"].start("sleep", "1000")
        jobs.harness.wait_for(lambda: self.find("sleep", "1000"), "the process on h2")
        self.assertIn("sleep 1000", "\n".join(self.leftovers()))
        running.kill()
        running.wait()
        self.kill_everything()
        for path in ("/tmp/x", "/run/y", "/dev/shm/z"):
            w["h1"].write(path, "")
        w["h1"].write("/tmp/up.0", "a mark is none")
        self.assertEqual(self.leftovers(), ["h1: /tmp/x", "h1: /run/y", "h1: /dev/shm/z"])

    def test_a_host_that_is_off_has_nothing(self):
        w = self.world(1)
        w["h1"].write("/tmp/x", "")
        w["h1"].power_off()
        self.assertEqual(self.leftovers(), [])


if __name__ == "__main__":
    cluster.main()
