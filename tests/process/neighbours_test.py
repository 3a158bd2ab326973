"""Two jobs at once, alike in everything but who they are: what happens to one is nothing to the other.

Their hosts have the same names and their ranks the same keys; where there is no cgroup, only the job's uuid tells them apart.
"""

import harness
import jobs


class WithCgroup(jobs.JobTest):
    no_cgroup = False

    def setUp(self):
        super().setUp()
        if self.no_cgroup:
            self.environment["MONARCH_NO_CGROUP"] = "1"

    def two_jobs(self):
        runs = {}
        for name in ("left", "right"):
            runs[name] = self.start("run", self.job(f"mark {name}; until [ -e go ]; do nap 0.05; done", name=name))
            self.wait_for_marks(name, 4)
        ids = {job.rpartition("-")[0]: job for job in self.jobs()}
        return runs, ids

    def alive(self, name):
        pids = self.wait_for_marks(name, 4)
        return [p.pid for p in self.processes() if p.pid in pids] == sorted(pids)

    def assert_right_goes_on(self, runs, ids):
        self.assertTrue(self.alive("right"))
        status = self.status(ids["right"])
        self.assertEqual({(r["phase"], r["generation"]) for r in status["meshes"][0]["ranks"]}, {("running", 1)})
        self.write("go", "")
        self.assertEqual(runs["right"].wait(), 0)
        self.assert_nothing_left()

    def test_a_kill_of_one_job_leaves_the_other(self):
        runs, ids = self.two_jobs()
        self.assertEqual(self.monarch("stop", "--kill", ids["left"]).status, 0)
        runs["left"].wait()
        self.assert_right_goes_on(runs, ids)

    def test_what_cleans_up_after_a_killed_keeper_leaves_the_other_job(self):
        runs, ids = self.two_jobs()
        keepers = [h["keeper_pid"] for h in self.status(ids["left"])["hosts"]]
        self.kill_all([process for process in self.processes() if process.pid in keepers])
        self.assertEqual(runs["left"].wait(), 92)
        self.assert_right_goes_on(runs, ids)


class WithoutCgroup(WithCgroup):
    no_cgroup = True


if __name__ == "__main__":
    harness.main()
