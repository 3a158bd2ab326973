"""Jobs that live on another machine, as this one knows them without asking: `ps`, JOB, and `rm --here`."""

import json
import os
import re

import harness

SPEC = """version: 1
job: far
launch: {ssh: {hosts: [node01]}}
meshes: {m: {dims: {host: 1, slot: 4}, program: [/bin/true]}}
"""


class Pointers(harness.MonarchTest):
    def pointer(self, job, seen=None, verdict=None, **fields):
        """What a start leaves here of a job that lives on node01."""
        folder = self.path("state", "jobs", job)
        os.makedirs(folder, 0o700)
        os.chmod(self.path("state"), 0o700)
        os.chmod(self.path("state", "jobs"), 0o700)
        where = {"v": 1, "host": "node01", "bundle": "a" * 64, "monarch": "/c/bin/monarch", "directory": "/s/jobs/" + job, **fields}
        files = {"spec.yaml": SPEC, "spec.dir": "/", "elsewhere.json": json.dumps(where), "elsewhere.seen.json": seen,
                 "verdict.json": verdict}
        for name, words in files.items():
            if words is None:
                continue
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(words if isinstance(words, str) else json.dumps(words))
            os.chmod(os.path.join(folder, name), 0o600)

    def seen(self, life, phase, exit_code=None, running=0):
        return {"v": 1, "life": life, "phase": phase, "exit_code": exit_code, "running": running}

    def test_ps_shows_what_was_seen_last_and_asks_nobody(self):
        self.pointer("far-0001", self.seen("live", "running", running=4))
        self.pointer("far-0002")
        self.pointer("far-0003", self.seen("ended", "failed", 7))
        shown = self.monarch("ps", "--all")
        self.assertEqual(shown.status, 0, shown)
        self.assertEqual(shown.err, "monarch: jobs on other machines are shown as they were when last spoken with; "
                                    "monarch status JOB asks\n")
        rows = {line.split()[0]: line.split() for line in shown.out.splitlines()}
        self.assertEqual(rows["JOB"][-1], "WHERE")
        self.assertEqual([rows[f"far-000{n}"][-1] for n in (1, 2, 3)], ["node01"] * 3)
        self.assertEqual((rows["far-0001"][1], rows["far-0001"][-3]), ("running", "4"), shown)
        self.assertEqual(rows["far-0002"][1], "live")
        self.assertEqual((rows["far-0003"][1], rows["far-0003"][-2]), ("failed", "7"))
        lines = {line["job"]: line for line in self.monarch("ps", "--json").json()}
        self.assertEqual(set(lines), {"far-0001", "far-0002"})
        self.assertEqual(lines["far-0001"]["where"], "node01")
        self.assertTrue(re.fullmatch(r"\d{4}-\d\d-\d\dT.*Z", lines["far-0001"]["seen"]), lines)
        self.assertEqual(lines["far-0002"]["seen"], None)

    def test_what_is_seen_steers_no_terminal(self):
        self.pointer("far-0001", self.seen("live", "\x1b[2Jrunning"))
        self.assertNotIn("\x1b", self.monarch("ps").out)

    def test_a_pointer_that_cannot_be_read_is_named(self):
        self.pointer("far-0001", v=9)
        status = self.monarch("status", "far")
        self.assert_output(status, 69, "", f"error[E0910]: {self.path('state/jobs/far-0001')}/elsewhere.json does not say "
                                           "where far-0001 lives\n  = help: monarch rm --here far-0001\n")

    def test_a_start_that_failed_has_ended_here(self):
        verdict = {"v": 1, "outcome": "failed", "exit_code": 69, "reason": "the supervisor did not start: h"}
        self.pointer("far-0001", verdict=verdict, monarch="", directory="")
        self.assertNotIn("E0910", self.monarch("wait", "far").err)

    def test_rm_here_takes_the_pointer_alone_and_says_what_stays(self):
        self.pointer("far-0001")
        dry = self.monarch("rm", "--here", "--dry-run", "far")
        self.assertEqual(dry.status, 0, dry)
        self.assertTrue(os.path.exists(self.path("state", "jobs", "far-0001")))
        removed = self.monarch("rm", "--here", "far")
        self.assertEqual(removed.status, 0, removed)
        self.assertRegex(removed.out, r"^removed far-0001: \d files of \d+ KiB\n$")
        self.assertEqual(removed.err, "monarch: what is kept of far-0001 on node01 stays there, in /s/jobs/far-0001\n")
        self.assertEqual(self.jobs(), [])

    def test_a_machine_without_a_name_that_resolves_is_named(self):
        self.pointer("far-0001", self.seen("ended", "failed", 7))
        for words in (["logs", "last"], ["rm", "far"]):
            done = self.monarch(*words)
            self.assertEqual(done.status, 69, done)
            self.assertRegex(done.err, r"^error\[E0910\]: node01: .*\(connect, ")
        self.assertEqual(self.jobs(), ["far-0001"])


if __name__ == "__main__":
    harness.main()
