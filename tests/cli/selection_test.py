"""The selector on a real job: logs, status, events, attach and run show what is meant, and refuse what does not exist."""

import harness
import jobs

TICKS = "echo out of $MONARCH_RANK; echo err of $MONARCH_RANK >&2; mark there\n"


class Selection(jobs.JobTest):
    def up(self, script):
        done = self.monarch("up", self.job(script))
        self.assertEqual(done.status, 0, done)
        # What a rank wrote is in its file a moment after it wrote it.
        harness.wait_for(lambda: self.shown() == [0, 1, 2, 3], "what four ranks write")
        return done.out.strip()

    def shown(self, *selector):
        """Ranks whose stdout `logs` shows."""
        logs = self.monarch("logs", "last", "--stdout", "--no-prefix", *selector)
        self.assertEqual(logs.status, 0, logs)
        return sorted(int(line.removeprefix("out of ")) for line in logs.out.splitlines())

    def test_every_command_shows_what_is_meant(self):
        job = self.up(TICKS + jobs.FOREVER)
        self.assertEqual(self.shown("--at", "host=1"), [2, 3])
        self.assertEqual(self.shown("--at", "slot=1"), [1, 3])
        self.assertEqual(self.shown("--host", "v1", "--rank", "1-3"), [1])
        self.assertEqual(self.shown("--generation", "1"), [0, 1, 2, 3])
        self.assertEqual(self.shown("--generation", "2"), [])

        status = self.status(job, "--at", "host=1,slot=0")
        self.assertEqual([r["rank"] for r in status["meshes"][0]["ranks"]], [2])
        self.assertEqual([h["name"] for h in status["hosts"]], ["v2"])
        none = self.monarch("status", job, "--generation", "7")
        self.assertEqual((none.status, none.out), (2, ""), none)
        self.assertIn(f"error[E0923]: nothing of {job} is selected", none.err)

        events = self.monarch("events", job, "--json", "--host", "v2").json()
        self.assertEqual({e["host"] for e in events}, {"v2"})
        self.assertIn("host.ready", [e["event"] for e in events])
        for command in ("logs", "status", "events", "attach"):
            refused = self.monarch(command, job, "--at", "gpu=0")
            self.assertEqual((refused.status, refused.out), (2, ""), refused)
            self.assertIn("error[E0921]: --at: the mesh `m` has no dimension `gpu`", refused.err)

        watcher = self.start("attach", job, "--rank", "3")
        watcher.wait_for_err("attached to")
        follower = self.start("logs", "-f", job, "--at", "slot=0")
        follower.wait_for_out("out of 2")
        self.assertEqual(self.monarch("stop", job).status, 0)
        self.assertEqual([watcher.wait(), follower.wait()], [143, 0])
        self.assertNotRegex(follower.out, "out of [13]")
        self.assertNotRegex(watcher.out, "m/[012]@")
        self.assert_nothing_left()

    def test_run_shows_the_output_that_is_meant_and_fails_as_the_whole_job(self):
        # The peers of a rank that failed are killed at once: they must have spoken before.
        last = "[ $MONARCH_RANK != 1 ] || { until [ -e there.0 ] && [ -e there.2 ]; do nap 0.01; done; exit 7; }\n"
        run = self.monarch("run", self.job(TICKS + last + "[ $MONARCH_RANK = 3 ] || exit 0\n" + jobs.FOREVER),
                           "--rank", "0,2", "--no-prefix")
        self.assertEqual(run.status, 7, run)
        self.assertEqual(sorted(run.out.splitlines()), ["out of 0", "out of 2"])
        said = [line for line in run.err.splitlines() if line.startswith("err of")]
        self.assertEqual(sorted(said), ["err of 0", "err of 2"], run)
        self.assertIn("exit code 7", run.err)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
