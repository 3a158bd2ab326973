"""Drills of real jobs: what they inject is seen and recovered from, and is gone when they are."""

import json
import os
import re
import signal
import xml.etree.ElementTree as ElementTree

import harness
import jobs

DRILLS = os.path.join(harness.ROOT, "configs", "drills")
# So that a drill of a test is over in seconds.
QUICK = {"heartbeat": "200ms", "restart": {"max": 4}}
STEPS = "python3 -c 'import monarch_rank, time\nn = 0\nwhile True:\n time.sleep(0.05); n += 1; monarch_rank.step(n)'\n"


class Drills(jobs.JobTest):
    def drilled_job(self, **keys):
        return self.job("mark there; exec " + STEPS, supervision=QUICK, drills={"allow": True},
                        mesh={"gang": "host", "env": {"PYTHONPATH": harness.MODULES}}, **keys)

    def scenario(self, **keys):
        scenario = {"version": 1, "drill": "quick", "settle": "500ms", "control": "2s", **keys}
        return self.write("scenario.yaml", json.dumps(scenario))

    def report_of(self, folder):
        return json.loads(self.read("work", folder, "report.json"))

    def states(self):
        """Of the ranks' processes."""
        return [p.state for p in self.processes() if p.program.startswith("python3")]

    def test_the_smoke_scenario_passes_and_leaves_its_report(self):
        done = self.monarch("drill", os.path.join(DRILLS, "smoke.yaml"), "--seed", "7", "--out", "out",
                            "--junit", "drill.xml", timeout=120)
        self.assertEqual(done.status, 0, done)
        last = done.out.splitlines()[-1]
        self.assertRegex(last, r"\Adrill smoke: passed, 5 faults seen, 0 inert, ours p95 .*; report: out/report\.html\Z")
        report = self.report_of("out")
        self.assertEqual((report["v"], report["type"], report["verdict"], report["exit_code"]), (1, "drill", "passed", 0))
        self.assertEqual(len(report["faults"]), 5)
        suite = ElementTree.fromstring(self.read("work", "drill.xml"))
        self.assertEqual([case for case in suite.iter("failure")], [])
        self.assertGreater(len(list(suite.iter("testcase"))), 10)
        self.assertNotIn("<script", self.read("work", "out", "report.html"))
        # All of it is measured again, and by a bound that nobody can meet.
        again = self.monarch("drill", "--replay", "out/report.json")
        self.assertEqual((again.status, again.out.splitlines()[-1]), (0, last.split("; report: ")[0]), again)
        harder = self.scenario(faults=[{"fault": "kill", "at": "0s"}], expect={"ttr_p95": {"process": "1ms"}})
        again = self.monarch("drill", "--replay", "out/report.json", "--expect", harder)
        self.assertEqual(again.status, 1, again)
        self.assert_nothing_left()

    def test_the_report_of_a_soak_is_measured_again(self):
        kept = os.path.join(DRILLS, "soak.report.json")
        self.assertLessEqual(os.path.getsize(kept), 300 << 10)
        with open(kept, encoding="utf-8") as file:
            said = json.load(file)["sentence"]
        again = self.monarch("drill", "--replay", kept, "--html", "page.html")
        self.assertEqual((again.status, again.out), (0, said + "\n"), again)
        self.assertLessEqual(len(self.read("work", "page.html")), 300 << 10)

    def test_the_readmes_line_for_ci_holds(self):
        with open(os.path.join(harness.ROOT, "README.md"), encoding="utf-8") as file:
            words = re.search(r"- run: build/cli/monarch (drill --smoke train.yaml [^`]*)", file.read())[1].split()
        words[words.index("train.yaml")] = os.path.join(DRILLS, "steps.yaml")
        done = self.monarch(*words, timeout=120)
        self.assertEqual(done.status, 0, done)
        self.assertRegex(done.out, r"drill smoke: passed, \d faults seen, 0 inert")
        self.assertIn("spare", done.err)
        self.assertTrue(os.path.exists(self.path("work", "drill.xml")))
        self.assert_nothing_left()

    def test_one_blow_at_a_running_job_is_written_down_and_taken_back(self):
        job = self.monarch("up", "-q", self.drilled_job()).out.strip()
        self.wait_for_marks("there", 4)
        done = self.monarch("drill", "--live", job, "--fault", "hang", "--rank", "3", "--for", "1s", timeout=60)
        self.assertEqual(done.status, 0, done)
        told = [json.loads(line) for line in self.monarch("events", job, "--json").out.splitlines()]
        kinds = [e["event"] for e in told if e["event"].startswith("drill.")]
        self.assertEqual(kinds, ["drill.begun", "drill.fault", "drill.undone", "drill.ended"])
        fault = next(e for e in told if e["event"] == "drill.fault")
        self.assertEqual((fault["mesh"], fault["rank"]), ("m", 3))
        self.assertNotIn("T", self.states())
        self.assertIn("no drill has the job", self.monarch("drill", "--stop", job).err)
        self.assertEqual(self.monarch("stop").status, 0)
        self.assert_nothing_left()

    def test_a_job_that_does_not_allow_it_is_not_struck(self):
        job = self.monarch("up", "-q", self.job("mark there\n" + jobs.FOREVER)).out.strip()
        self.wait_for_marks("there", 4)
        done = self.monarch("drill", "--live", job, "--fault", "kill", timeout=60)
        self.assertEqual((done.status, done.out), (2, ""), done)
        self.assertIn("drills: {allow: true}", done.err)
        self.assertNotIn("EXPECTED", done.err)
        faults = self.monarch("drill", "--faults", job).out.splitlines()
        self.assertRegex(faults[0], r"ON HOSTS +NOT ELSEWHERE, BECAUSE\Z")
        self.assertRegex(next(line for line in faults if line.startswith("kill ")), r"2 of 2 +-\Z")
        self.assertNotIn("gang.failed", self.monarch("events", job).out)
        self.assertEqual(self.monarch("stop").status, 0)
        over = self.monarch("drill", "--live", job, "--fault", "kill")
        self.assertEqual((over.status, over.out), (2, ""), over)
        self.assertIn(f"{job} is over: stopped by monarch stop", over.err)
        self.assert_nothing_left()

    def test_its_output_is_that_of_an_undisturbed_run(self):
        program = ["/usr/bin/python3", os.path.join(DRILLS, "steps.py"), "0.05", "10", "120"]
        spec = self.program_job(program, hosts=2, slots=1, supervision=QUICK, mesh={
            "gang": "host", "ready": "notify", "env": {"PYTHONPATH": harness.MODULES}})
        scenario = self.scenario(job=spec, faults=[{"fault": "kill", "at": "0s"}],
                                 expect={"same_output": "with loss ([0-9.]+)"})
        done = self.monarch("drill", scenario, "--out", "out", timeout=60)
        self.assertEqual(done.status, 0, done)
        same = next(e for e in self.report_of("out")["expect"] if e["what"] == "same_output")
        self.assertEqual((same["n"], same["met"]), (1, True), same)
        self.assert_nothing_left()

    def frozen_drill(self, **options):
        """A drill under way that has frozen a host for longer than the test."""
        scenario = self.scenario(job=self.drilled_job(), faults=[{"fault": "freeze", "at": "0s", "for": "900ms"},
                                                                 {"fault": "hang", "at": "0s", "for": "60s"}])
        drill = self.start("drill", scenario, "--out", "out", **options)
        drill.wait_for_err("fault 2: hang", timeout=60)
        harness.wait_for(lambda: "T" in self.states(), lambda: f"a stopped rank: {drill!r}")
        return drill

    def test_ctrl_c_takes_everything_back_and_reports_what_there_is(self):
        drill = self.frozen_drill()
        drill.signal(signal.SIGINT)
        self.assertEqual(drill.wait(60), 130, drill)
        report = self.report_of("out")
        self.assertEqual((report["verdict"], report["exit_code"]), ("interrupted", 130))
        self.assertEqual(len(report["faults"]), 2)
        self.assert_nothing_left()

    def test_what_it_has_stopped_goes_on_when_it_is_killed(self):
        drill = self.frozen_drill()
        drill.signal(signal.SIGKILL)
        drill.wait()
        harness.wait_for(lambda: "T" not in self.states(), lambda: f"ranks that go on: {self.states()}")
        self.assertEqual(self.monarch("stop").status, 0)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
