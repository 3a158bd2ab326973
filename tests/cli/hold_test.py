"""`monarch hold` on a real job: who is not watched for hangs, until when, what is said of it, and what is refused."""

import re

import harness
import jobs

HELD = "not watched for hangs until monarch hold --release"


class Hold(jobs.JobTest):
    def up(self):
        done = self.monarch("up", self.job("mark there\n" + jobs.FOREVER))
        self.assertEqual(done.status, 0, done)
        self.pids = self.wait_for_marks("there", 4)
        return done.out.strip()

    def hold(self, words, *arguments):
        self.assert_output(self.monarch("hold", *arguments), 0, words + "\n", "")

    def unwatched(self):
        return [r["rank"] for r in self.status()["meshes"][0]["ranks"] if not r["watched"]]

    def test_who_is_held_is_not_watched_until_released(self):
        job = self.up()
        self.assertEqual(self.unwatched(), [])
        self.hold(f"{job}: 1 rank {HELD}", job, "--rank", "1")
        self.assertEqual(self.unwatched(), [1])
        self.hold(f"{job}: 1 rank: held already", "--rank", "1")
        self.hold(f"{job}: 2 ranks {HELD}", "last", "--at", "host=1")
        self.assertEqual(self.unwatched(), [1, 2, 3])
        self.hold(f"{job}: 1 rank watched for hangs again", "--release", "--host", "v2", "--rank", "2")
        self.assertEqual(self.unwatched(), [1, 3])
        self.hold(f"{job}: 4 ranks watched for hangs again", job, "--release")
        self.hold(f"{job}: 4 ranks: none was held", "--release")
        self.assertEqual(self.unwatched(), [])
        told = re.findall(r"ranks\.(held|released) (\S+): (?:not )?watched for hangs .*, asked by monarch hold, pid \d+",
                          self.monarch("events", job).out)
        self.assertEqual(told, [("held", "m/1"), ("held", "m/2-3"), ("released", "m/2"), ("released", "m/1,3")])
        self.assertEqual(self.monarch("stop", job).status, 0)
        self.assert_nothing_left()

    def test_it_touches_no_process(self):
        job = self.up()
        self.hold(f"{job}: 4 ranks {HELD}", job)
        self.assertEqual([r["pid"] for r in self.status()["meshes"][0]["ranks"]], self.pids)
        self.signal_by_pid(self.pids[2])  # an end counts as ever
        self.assertEqual(self.monarch("wait", job).status, 137)
        self.assertEqual(self.verdict()["cause"]["rank"], 2)
        self.assert_nothing_left()

    def test_what_is_not_there_is_refused(self):
        job = self.up()
        for wrong in (["--generation", "2"], ["--host", "v1", "--rank", "3"]):
            none = self.monarch("hold", job, *wrong)
            self.assert_output(none, 2, "", re.compile(rf"error\[E0923\]: nothing of {job} is selected\n.*\n"))
        unknown = self.monarch("hold", job, "--rank", "9")
        self.assertEqual((unknown.status, unknown.out), (2, ""), unknown)
        self.assertEqual(self.unwatched(), [])
        self.assertEqual(self.monarch("stop", job).status, 0)
        ended = self.monarch("hold", job)
        self.assert_output(ended, 2, "", re.compile(rf"error\[E0923\]: {job} has ended: there is nothing to hold\n.*\n"))
        self.assertEqual(self.monarch("hold", "nonesuch").status, 2)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
