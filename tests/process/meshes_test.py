"""Several meshes in one job: configs/two-meshes.yaml as it runs, fails and is stopped, and sidecars that end on their own."""

import json
import os
import shutil
import signal

import harness
import jobs

CONFIGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs")


class Meshes(jobs.JobTest):
    def two_meshes(self, *changes):
        for name in ("two-meshes.yaml", "two_meshes.py"):
            shutil.copy(os.path.join(CONFIGS, name), self.path("work", name))
        path = self.path("work", "two-meshes.yaml")
        text = self.read(path)
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        self.write(path, text)
        return path

    def in_order(self, text, *parts):
        at = -1
        for part in parts:
            found = text.find(part, at + 1)
            self.assertGreater(found, at, f"{part!r} does not follow in\n{text}")
            at = found

    def test_they_come_up_in_stages_and_end_with_the_last_that_decides(self):
        done = self.monarch("run", self.two_meshes())
        self.assertEqual(done.status, 0, done)
        self.in_order(done.err, "gang.starting monitor", "gang.running monitor", "gang.starting store",
                      "gang.running store", "gang.starting trainer", "gang.running trainer", "job.running", "gang.done store",
                      "gang.stopped monitor", "job.ended")
        self.assertIn("[store/0@v1] 12 steps of 4 trainers\n", done.out)
        for name, host in (("v1/0", "v1"), ("v2/3", "v2")):
            self.assertIn(f"[trainer/{name[3:]}@{host}] {name} is done\n", done.out)
        self.assert_nothing_left()

    def test_a_trainer_that_fails_stops_the_store_and_then_the_monitor(self):
        done = self.monarch("run", self.two_meshes(
            ("env: {STEPS: 3}", "env: {STEPS: $(self.host_name)}"),
            ("job: two_meshes\n", "job: two_meshes\nsupervision: {restart: {max: 0}}\n")))
        self.assertEqual(done.status, 1, done)
        self.assertEqual(self.verdict()["cause"]["mesh"], "trainer")
        self.in_order(done.err, "gang.failed", "gang.stopped store", "gang.stopped monitor", "job.ended")
        self.assertIn("invalid literal", self.verdict()["cause"]["stderr_tail"])
        self.assert_nothing_left()

    def test_ctrl_c_stops_the_last_stage_first(self):
        run = self.start("run", self.two_meshes(("[python3, two_meshes.py, train,", "[sleep, infinity]  # [")))
        run.wait_for_err(r"job\.running")
        status = self.status()
        self.assertEqual([(m["name"], m["phase"]) for m in status["meshes"]],
                         [("trainer", "ready"), ("store", "ready"), ("monitor", "ready")])
        run.signal(signal.SIGINT)
        done = run.finished()
        self.assertEqual(done.status, 130, done)
        self.in_order(done.err, "gang.stopped trainer", "gang.stopped store", "gang.stopped monitor")
        self.assert_nothing_left()

    def sidecar(self, script, **mesh):
        return self.spec(json.dumps({
            "version": 1, "job": "beside", "start_timeout": "60s", "supervision": jobs.FAIL_FAST, "meshes": {
                "m": {"dims": {"slot": 1}, "program": jobs.shell("while [ ! -e go ]; do nap 0.1; done")},
                "s": {"dims": {"slot": 1}, "sidecar": True, "hosts": {"like": "m"},
                      "program": jobs.shell(script), **mesh}}}), "beside.yaml")

    def test_a_sidecar_that_fails_is_a_warning(self):
        run = self.start("run", self.sidecar("while [ ! -e fail ]; do nap 0.1; done; exit 3"))
        run.wait_for_err(r"job\.running")
        self.write("fail", "")
        run.wait_for_err(r"warning gang\.failed s/0 on v1 .*exit code 3")
        self.write("go", "")
        done = run.finished()
        self.assertEqual(done.status, 0, done)
        self.assert_nothing_left()

    def test_a_sidecar_that_cannot_start_fails_the_start(self):
        done = self.monarch("run", self.sidecar("exit 3", wrap=["/nonexistent/wrapper"]))
        self.assertEqual(done.status, 127, done)
        self.assertIn("ended before it was ready: could not be executed", done.err)
        self.assertEqual(self.verdict()["cause"]["mesh"], "s")
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
