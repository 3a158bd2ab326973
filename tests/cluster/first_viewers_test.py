"""`supervisor: {on: first}` as its user sees it: `run` and `up` from a machine that only looks, and what befalls the connection."""

import json
import os
import re
import shutil
import signal

import cluster
import harness
import jobs
from first_test import CACHE, First
from host import wait_for

TICKS = "i=0; while :; do i=$((i+1)); echo tick $i; nap 0.05; done\n"


class Viewers(First):
    def running(self, script=TICKS, *flags, **keys):
        self.world(2)
        run = self.start("run", self.first_job(script, slots=1, **keys), *flags)
        run.wait_for_out("tick", timeout=90)
        return run

    def viewers_there(self):
        return [str(process) for host, process in self.on_hosts() if host.name == "h1" and b"over-ssh" in process.arguments]

    def stopped(self):
        """The job, from here."""
        self.assertEqual(self.monarch("stop", "last", timeout=60).status, 0)
        wait_for(lambda: not self.viewers_there(), lambda: f"the end of {self.viewers_there()}", 90)
        self.assert_clean()

    def ticks(self, run, rank):
        return [int(n) for n in re.findall(rf"^\[m/{rank}@h\d\] tick (\d+)$", run.out, re.M)]

    def test_a_cut_cable_costs_run_no_line(self):
        run = self.running()
        self.wait_until_launched()
        self.w.both("login", "h1", cut=True)
        run.wait_for_err(r"^monarch: lost h1, trying again for 2m; demo-\w+ goes on there$", timeout=30)
        self.w.heal()
        run.wait_for_err(r"^monarch: h1 answers again$", timeout=90)
        seen = len(self.ticks(run, 0))
        wait_for(lambda: len(self.ticks(run, 0)) > seen + 100, lambda: f"more output: {run!r}", 60)
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(60), 130, run)
        for rank in (0, 1):
            ticks = self.ticks(run, rank)
            self.assertEqual(ticks, list(range(1, len(ticks) + 1)), "no line is lost, and none comes twice")
        self.assert_clean()

    def test_a_run_that_is_killed_leaves_the_job_to_be_attached_again(self):
        run = self.running()
        self.wait_until_launched()
        run.signal(signal.SIGKILL)
        run.wait()
        attached = self.start("attach", "last", "--json")
        attached.wait_for_out('"type":"output"', timeout=60)
        attached.signal(signal.SIGTERM)
        self.assertEqual(attached.wait(60), 143, attached)
        self.stopped()

    def test_ctrl_c_twice_kills_what_would_not_stop(self):
        run = self.running("trap '' TERM; " + TICKS, mesh={"stop": {"grace": "60s"}})
        run.signal(signal.SIGINT)
        run.wait_for_err("Ctrl-C again kills")
        run.signal(signal.SIGINT)
        run.wait_for_err("Ctrl-C again leaves")
        self.assertEqual(run.wait(60), 130, run)
        self.assert_clean()

    def test_reports_of_run_lie_here_and_its_lines_are_those_of_any_run(self):
        self.world(2)
        done = self.monarch("run", self.first_job("echo hello; exit $((MONARCH_RANK * 7))", slots=1), "--json", "--junit", "j.xml",
                            "--artifacts", "out", "--exit-code=class", timeout=90)
        self.assertEqual(done.status, 1, done)
        lines = done.json()
        self.assertEqual({line["type"] for line in lines}, {"output", "event", "result"})
        self.assertEqual(lines[-1]["exit_code"], 7)
        self.assertEqual([e["event"] for e in lines if e["type"] == "event"],
                         [e["event"] for e in self.monarch("events", "last", "--json", timeout=60).json()])
        self.assertIn("<testsuite", self.read("work", "j.xml"))
        self.assertEqual(json.loads(self.read("work", "out", "verdict.json"))["exit_code"], 7)
        self.assertEqual(self.read("work", "out", "logs", "m", "1.1.out"), "hello\n")
        row, = self.monarch("ps", "--all", "--json").json()
        self.assertEqual((row["phase"], row["exit_code"], row["where"]), ("failed", 7, "h1"))
        self.assert_clean()

    def test_signals_of_run_reach_the_ranks(self):
        run = self.running("trap 'echo got it' USR1; " + TICKS)
        wait_for(lambda: self.ticks(run, 0) and self.ticks(run, 1), lambda: f"both ranks to run: {run!r}", 60)
        run.signal(signal.SIGUSR1)
        wait_for(lambda: run.out.count("got it") == 2, lambda: f"both ranks: {run!r}", 60)
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(60), 143, run)
        self.assert_clean()

    def test_up_of_a_spec_that_is_live_there_says_so(self):
        self.world(2)
        spec = self.first_job("mark up; " + jobs.FOREVER, slots=1)
        first = self.monarch("up", spec, timeout=90)
        self.assertEqual(first.status, 0, first)
        again = self.monarch("up", spec, timeout=90)
        self.assertEqual((again.status, again.out), (0, first.out), again)
        self.assertIn("is live, and its spec is unchanged", again.err)
        self.assertEqual(os.listdir(self.path("state", "jobs")), [first.out.strip()])
        self.stopped()

    def test_up_asks_a_job_that_was_live_when_it_was_last_seen(self):
        self.world(2)
        spec = self.first_job("mark up; while [ ! -e /tmp/end ]; do nap 0.05; done", slots=1)
        first = self.monarch("up", spec, timeout=90)
        self.assertEqual(first.status, 0, first)
        self.wait_until_launched()
        self.w.both("login", "h1", cut=True)
        asked = self.monarch("up", spec, timeout=90)
        self.assertEqual(asked.status, 69, asked)
        self.assertRegex(asked.err, r"(?m)^monarch: demo-\w+ has the same spec, and may be live: `monarch rm --here demo-\w+` forgets it here")
        self.w.heal()
        for host in ("h1", "h2"):
            self.w[host].run("touch", "/tmp/end")
        self.verdict_there(first.out.strip())
        second = self.monarch("up", spec, timeout=90)
        self.assertEqual(second.status, 0, second)
        self.assertNotEqual(second.out, first.out, "that one has ended, though nobody here had seen it")
        self.assertNotIn("unchanged", second.err)
        self.assertEqual(self.monarch("wait", "last", timeout=60).status, 0)
        for host in ("h1", "h2"):
            self.w[host].run("rm", "/tmp/end")
        self.assert_clean()

    def test_a_newer_monarch_here_looks_by_the_one_that_started_the_job(self):
        w = self.world(2)
        self.assertEqual(self.monarch("up", self.first_job(TICKS, slots=1), timeout=90).status, 0)
        newer = self.path("bin", "monarch")
        os.mkdir(self.path("bin"))
        shutil.copy(harness.MONARCH + ".shipped", newer)
        shutil.copy(harness.WORKER, self.path("bin", "monarch-worker"))
        with open(newer, "ab") as file:
            file.write(b"newer")
        status = self.start_program(newer, "status", "last", "--json").finished(60)
        self.assertEqual((status.status, status.json()[0]["phase"]), (0, "running"), status)
        bundle, = os.listdir(w["h1"].path(CACHE + "/bundle"))
        os.rename(w["h1"].path(f"{CACHE}/bundle/{bundle}"), w["h1"].path(f"{CACHE}/bundle/gone"))
        gone = self.start_program(newer, "status", "last").finished(60)
        self.assertEqual(gone.status, 69, gone)
        self.assertIn(f"of the sha256 {bundle}, is not in the cache there any more", gone.err)
        os.rename(w["h1"].path(f"{CACHE}/bundle/gone"), w["h1"].path(f"{CACHE}/bundle/{bundle}"))
        self.stopped()


del First  # its own tests are those of its file


if __name__ == "__main__":
    cluster.main()
