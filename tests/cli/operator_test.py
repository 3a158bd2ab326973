"""`monarch restart`, `drain`, `undrain` and `retry` on a real job: what they do, what they say, and what they refuse."""

import json
import re

import harness
import jobs

STAY = "echo begun by $MONARCH_GENERATION on $MONARCH_HOST\nmark there\n" + jobs.FOREVER


class Operator(jobs.JobTest):
    def up(self, hosts=2, pool=None):
        spec = self.job(STAY, hosts=hosts, slots=1, mesh={"gang": "host", "stop": {"grace": "2s"}},
                        launch={"local": {"hosts": pool or hosts}})
        done = self.monarch("up", spec)
        self.assertEqual(done.status, 0, done)
        self.pids = self.wait_for_marks("there", hosts)
        return done.out.strip()

    def pid_of(self, rank):
        return int(self.read("work", f"there.{rank}"))

    def test_restart_starts_the_gangs_that_are_meant_again_and_no_other(self):
        job = self.up()
        done = self.monarch("restart", job, "--rank", "1")
        self.assert_output(done, 0, f"{job}: 1 gang is stopped and started again\n", "")
        harness.wait_for(lambda: self.pid_of(1) != self.pids[1], lambda: f"rank 1 again: {self.supervisor_log()}")
        self.assertEqual(self.pid_of(0), self.pids[0])
        harness.wait_for(lambda: [r["phase"] for r in self.status()["meshes"][0]["ranks"]] == ["running"] * 2,
                         lambda: str(self.status()))
        told = self.monarch("events", job).out
        self.assertRegex(told, r"gang\.stopping .*is stopped and started again, asked by monarch restart, pid \d+")
        every = self.monarch("restart", "--json")
        self.assertEqual(every.status, 0, every)
        self.assertEqual(every.json(), [{"v": 1, "type": "accepted", "job": job, "asked": "restart",
                                         "message": "2 gangs are stopped and started again"}])
        self.assertEqual(self.monarch("stop", job).status, 0)
        after = self.monarch("restart", job)
        self.assert_output(after, 2, "", re.compile(rf"error\[E0923\]: {job} has ended\n.*\n"))
        self.assert_nothing_left()

    def test_hosts_are_drained_and_taken_back(self):
        job = self.up()
        done = self.monarch("drain", job, "v2")
        self.assert_output(done, 0, f"{job}: 1 host is drained: nothing new starts there; 1 gang goes on there until "
                           "stopped or started again\n", "")
        full = self.monarch("drain", "v1", "--now")
        self.assert_output(full, 2, "", re.compile(r"error\[E0928\]: drain of .*: 1 host holds ranks, and no other host "
                                                   r"could take them\n.*\n"))
        none = self.monarch("drain", job, "v3")
        self.assert_output(none, 2, "", re.compile(r"error\[E0921\]: .* has no host v3\n.*\n"))
        self.assertEqual(self.monarch("undrain", "v2").out, f"{job}: 1 host may be used again\n")
        self.assertEqual(self.monarch("undrain", "v2").status, 2)
        forgiven = self.monarch("retry", "--mesh", "m")
        self.assert_output(forgiven, 0, f"{job}: what failed is forgiven\n", "")
        types = [json.loads(line)["event"] for line in self.monarch("events", "--json").out.splitlines()]
        self.assertEqual([t for t in types if t in ("host.drained", "host.undrained")],
                         ["host.drained", "host.undrained"])
        self.assertEqual([self.pid_of(r) for r in (0, 1)], self.pids)
        self.assertEqual(self.monarch("stop", job).status, 0)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
