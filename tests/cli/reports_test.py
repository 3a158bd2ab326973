"""What a job leaves for programs: --junit, --artifacts, --exit-code, and the log of a CI job."""

import json
import os
import re
import xml.etree.ElementTree as ElementTree

import harness
import jobs

FAILS = r"""printf 'noise <&>"\047 \001\010\033[31m\014 \377\376 \357\277\276 \303\244\r\nlast words\n' >&2
[ $MONARCH_RANK = 2 ] && { sleep 0.2; exit 7; }; exec sleep 1000"""


class Reports(jobs.JobTest):
    def cases(self, path):
        """{(suite, name): its <testcase>} of a file that a parser takes, after its sums were checked."""
        with open(path, "rb") as file:
            root = ElementTree.fromstring(file.read())
        for element in [root, *root]:
            cases = element.findall(".//testcase")
            for sum_name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
                self.assertEqual(int(element.get(sum_name)), len([c for c in cases if c.find(tag) is not None]), sum_name)
            self.assertEqual(int(element.get("tests")), len(cases))
        return {(s.get("name"), c.get("name")): c for s in root for c in s}

    def test_junit_has_a_case_for_each_rank_and_the_first_cause_in_one(self):
        path = self.path("work", "junit.xml")
        done = self.monarch("run", "-q", "--junit", path, self.job(FAILS, hosts=2, slots=2))
        self.assertEqual(done.status, 7, done)
        cases = self.cases(path)
        self.assertEqual(sorted(cases), [("job", self.jobs()[0]), *(("m", f"rank {r} on v{r // 2 + 1}") for r in range(4))])
        failure = cases["m", "rank 2 on v2"].find("failure")
        self.assertEqual((failure.get("type"), failure.get("message")), ("root cause", "exit code 7"))
        self.assertRegex(failure.text, r"\Am/2 on v2, pid \d+: exit code 7\n")
        self.assertIn("noise <&>\"' \\x01\\x08\\x1b[31m\\x0c \\xff\\xfe \\uffff ä\\x0d\nlast words\n", failure.text)
        for rank in (0, 1, 3):
            self.assertIsNotNone(cases["m", f"rank {rank} on v{rank // 2 + 1}"].find("skipped"))
        self.assertIsNone(cases["job", self.jobs()[0]].find("error"))
        # Over the one that is there; a relative name.
        done = self.monarch("run", "-q", "--junit", "junit.xml", self.job("true"))
        self.assertEqual(done.status, 0, done)
        self.assertTrue(all(len(case) == 0 for case in self.cases(path).values()))
        self.assertEqual([n for n in os.listdir(self.path("work")) if "junit" in n], ["junit.xml"])
        self.assert_nothing_left()

    def test_junit_tells_of_an_end_that_is_no_ranks_fault(self):
        path = self.path("work", "junit.xml")
        done = self.monarch("run", "-q", "--timeout", "1s", "--junit", path, self.job("exec sleep 1000", slots=1))
        self.assertEqual(done.status, 124, done)
        cases = self.cases(path)
        self.assertIsNotNone(cases["job", self.jobs()[0]].find("error"))
        self.assertTrue(all(c.find("skipped") is not None for (suite, _), c in cases.items() if suite == "m"))
        self.assert_nothing_left()

    def test_artifacts_are_what_the_job_left(self):
        target = self.path("work", "out", "deep")
        done = self.monarch("run", "-q", "--artifacts", target, self.job("echo out $MONARCH_RANK; echo err >&2; exit 3"))
        self.assertEqual(done.status, 3, done)
        self.assertEqual(sorted(os.listdir(target)),
                         ["events.jsonl", "logs", "spec.yaml", "supervisor.log", "verdict.json"])
        self.assertEqual(json.loads(self.read(target, "verdict.json")), self.verdict())
        events = [json.loads(line) for line in self.read(target, "events.jsonl").splitlines()]
        self.assertEqual(events, self.monarch("events", "last", "--json").json())
        self.assertEqual(events[-1]["event"], "job.ended")
        self.assertEqual(self.read(target, "spec.yaml"), self.read(self.job_file("spec.yaml")))
        rank = self.verdict()["cause"]["rank"]
        self.assertEqual(self.read(target, "logs", "m", f"{rank}.1.out"), f"out {rank}\n")
        self.assertEqual(self.read(target, "logs", "m", f"{rank}.1.err"), "err\n")
        again = self.monarch("run", "-q", "--artifacts", target, self.path("work", "demo.yaml"))
        self.assertEqual((again.status, len(self.jobs())), (2, 1), again)
        self.assertIn(f"--artifacts {target}: there is something in it", again.err)
        self.assert_nothing_left()

    def test_reports_do_not_follow_what_others_put_in_a_folders_place(self):
        for name in ("out", "theirs", "ours"):
            os.mkdir(self.path("work", name))
        os.chmod(self.path("work", "theirs"), 0o777)
        refused = self.monarch("run", "-q", "--artifacts", self.path("work", "theirs"), self.job("true"))
        self.assertEqual((refused.status, self.jobs()), (2, []), refused)
        self.assertIn(f"--artifacts {self.path('work', 'theirs')}: everybody may write to it", refused.err)
        run = self.start("run", "-q", "--artifacts", self.path("work", "out"), "--junit", self.path("work", "ours", "x.xml"),
                         self.job("mark there; until [ -e go ]; do nap 0.05; done", hosts=1, slots=1))
        self.wait_for_marks("there", 1)
        for name in ("out", "ours"):
            os.rename(self.path("work", name), self.path("work", name + ".moved"))
            os.symlink(self.path("work", "theirs"), self.path("work", name))
        self.write("go", "")
        self.assertEqual(run.wait(), 0)
        self.assertEqual(os.listdir(self.path("work", "theirs")), [])
        self.assertIn("verdict.json", os.listdir(self.path("work", "out.moved")))
        self.assertEqual(os.listdir(self.path("work", "ours.moved")), ["x.xml"])
        self.assert_nothing_left()

    def test_reports_that_could_not_be_written_start_nothing(self):
        self.write("file", "")
        for flags in (["--junit", self.path("nowhere", "x.xml")], ["--junit", self.path("work")], ["--junit", ""],
                      ["--artifacts", self.path("work", "file")], ["--artifacts", self.path("work", "file", "x")],
                      ["--artifacts", ""], ["--exit-code", "clas"]):
            done = self.monarch("run", *flags, self.job("true"))
            self.assertEqual((done.status, done.out), (2, ""), done)
            self.assertRegex(done.err, rf"\Aerror\[E0904\]: {flags[0]}")
        self.assertEqual(self.jobs(), [])

    def test_the_readmes_lines_for_ci_hold(self):
        with open(os.path.join(harness.ROOT, "README.md"), encoding="utf-8") as file:
            words = re.search(r"- run: build/cli/monarch (run configs/smoke-ci.yaml .*)", file.read())[1].split()
        words[1] = os.path.join(harness.ROOT, words[1])
        done = self.in_ci(*words)
        self.assertEqual(done.status, 0, done)
        self.assertEqual(sorted(re.findall(r"^\[smoke/\d@v\d\] (rank .*)$", done.out, re.MULTILINE)),
                         [f"rank {r} of 4 on v{r // 2 + 1}" for r in range(4)])
        self.assertEqual(len(self.cases(self.path("work", "junit.xml"))), 5)
        self.assertIn("verdict.json", os.listdir(self.path("work", "out")))
        self.assert_nothing_left()

    def test_exit_codes_by_class(self):
        failing = self.job("exit 7", hosts=1, slots=1)
        self.assertEqual(self.monarch("run", "-q", "--exit-code", "class", failing).status, 1)
        self.assertEqual(self.verdict()["exit_code"], 7)
        self.assertEqual(self.monarch("wait", "last", "--exit-code=class").status, 1)
        self.assertEqual(self.monarch("attach", "-q", "last", "--exit-code=class").status, 1)
        self.assertEqual(self.monarch("wait", "last", "--exit-code=rank").status, 7)
        for script, status in (("true", 0), ("kill -9 $$", 1), ("exec /nonesuch", 1)):
            self.assertEqual(self.monarch("run", "-q", "--exit-code", "class", self.job(script, hosts=1, slots=1)).status,
                             status, script)
        missing = self.program_job(["/nonesuch"], hosts=1, slots=1)
        self.assertEqual(self.monarch("run", "-q", "--exit-code", "class", missing).status, 1)
        late = self.job("exec sleep 1000", hosts=1, slots=1)
        self.assertEqual(self.monarch("run", "-q", "--exit-code", "class", "--timeout", "500ms", late).status, 124)
        self.assert_nothing_left()

    def in_ci(self, *arguments):
        """`monarch ARGUMENTS` with both streams in one log, through a pipe as a runner reads it: its `out`."""
        return self.start_program("/bin/bash", "-c", 'set -o pipefail; "$@" 2>&1 | cat', "bash", harness.MONARCH,
                                  *arguments, env={"GITHUB_ACTIONS": "true"}).finished()

    def test_the_log_of_a_ci_job_is_folded_and_takes_no_command_from_a_rank(self):
        script = r"""printf '::error::forged\nx\r::warning::forged\n##[error]forged\n\033[2Jx\n'; echo '::error::tail' >&2
        sleep 0.2; exit 7"""
        spec = self.job(script, hosts=1, slots=1)
        for flags in ([], ["--no-prefix"], ["--prefix", " "]):
            done = self.in_ci("run", *flags, spec)
            self.assertEqual(done.status, 7, done)
            commands = [line for line in re.split(r"[\r\n]+", done.out)
                        if line.lstrip().startswith("::") or "##[" in line]
            job = self.jobs()[-1]
            annotation = commands.pop()
            self.assertEqual(commands, [f"::group::monarch: start of {job}", "::endgroup::",
                                        f"::group::monarch: output of {job}", "::endgroup::"])
            self.assertRegex(annotation,
                             rf"\A::error title={job} failed \(exit 7\)::m/0 on v1, pid \d+: exit code 7%0A::error::tail\Z")
            # The result is in no group.
            self.assertGreater(done.out.index("result "), done.out.rindex("::endgroup::"))
        events = [json.loads(line) for line in self.in_ci("run", "-q", "--json", spec).out.splitlines() if line[0] == "{"]
        self.assertEqual([o["line"] for o in events if o["type"] == "output" and o["stream"] == "stdout"],
                         ["::error::forged", "x\r::warning::forged", "##[error]forged", "\x1b[2Jx"])
        plain = self.monarch("run", spec)
        self.assertNotIn("::group::", plain.err + plain.out)
        on_terminal = self.start("run", spec, terminal=True, env={"GITHUB_ACTIONS": "true", "TERM": "xterm"})
        self.assertEqual(on_terminal.wait(), 7)
        self.assertNotIn("::group::", on_terminal.out)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
