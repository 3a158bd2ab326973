"""Commands for a job that lives on a host: they run there over SSH, and are as if the job were here.

The job is one of virtual hosts of h1, which h1 itself has started; login has what points there, as a start from login leaves it.
"""

import json
import os
import shlex
import signal

import cluster
import faults
import jobs
from host import HOME, wait_for

TICKS = "i=0; while :; do i=$((i+1)); echo tick $i; nap 0.02; done\n"
BUNDLES = HOME + "/.cache/monarch/bundle"


class Away(cluster.ClusterTest):
    def start_world(self, **options):
        w = self.world(1, **options)
        self.pointer("probe-0000", "probe")  # nobody knows such a job: what is shipped for asking is what starts ours
        asked = self.monarch("status", "probe-0000", timeout=120)
        self.assertEqual(asked.status, 2, asked)
        self.assertIn("there is no job", asked.err)
        self.assertEqual(self.monarch("rm", "--here", "probe-0000").status, 0)
        bundle, = os.listdir(w["h1"].path(BUNDLES))
        self.there = f"{BUNDLES}/{bundle}/bin/monarch"
        return w

    def pointer(self, job, name):
        folder = self.path("state", "jobs", job)
        os.makedirs(folder, 0o700)
        os.chmod(self.path("state"), 0o700)
        os.chmod(self.path("state", "jobs"), 0o700)
        spec = {"version": 1, "job": name, "launch": {"ssh": {"hosts": ["h1"]}},
                "meshes": {"m": {"dims": {"host": 1, "slot": 2}, "program": ["/bin/true"]}}}
        pointer = {"v": 1, "host": "h1", "bundle": "0" * 64, "monarch": "/bin/monarch",
                   "directory": f"{HOME}/.local/state/monarch/jobs/{job}"}
        for file, words in (("spec.yaml", json.dumps(spec)), ("spec.dir", "/tmp"), ("elsewhere.json", json.dumps(pointer))):
            with open(os.path.join(folder, file), "w", encoding="ascii") as out:
                out.write(words)
            os.chmod(os.path.join(folder, file), 0o600)

    def job_there(self, script=TICKS, verb="up"):
        """The id of a job that h1 has started."""
        h1 = self.w["h1"]
        spec = {"version": 1, "job": "demo",
                "meshes": {"m": {"dims": {"host": 1, "slot": 2}, "program": jobs.shell(script),
                                 "workdir": "/tmp"}}}
        h1.write("/tmp/demo.yaml", json.dumps(spec))
        h1.run(self.there, verb, "/tmp/demo.yaml", check=verb == "up", timeout=60, errors="replace")
        job = next(name for name in os.listdir(h1.path(HOME + "/.local/state/monarch/jobs")) if name.startswith("demo-")
                   and not os.path.exists(self.path("state", "jobs", name)))
        self.pointer(job, "demo")
        return job

    def here_and_there(self, job, *words):
        """The same command from login, and on h1 itself."""
        h1 = self.w["h1"].run(self.there, *words, check=False, errors="replace")
        return self.monarch(*words, timeout=60), h1

    def viewers_there(self):
        return [str(process) for host, process in self.on_hosts() if host.name == "h1" and b"over-ssh" in process.arguments]

    def end(self, job):
        done = self.monarch("stop", job, timeout=60)
        self.assertEqual(done.status, 0, done)
        done = self.monarch("rm", job, timeout=60)
        self.assertEqual(done.status, 0, done)
        self.assertRegex(done.out, rf"^removed {job}: ")
        self.assertFalse(os.path.exists(self.path("state", "jobs", job)))
        self.assertFalse(os.path.exists(self.w["h1"].path(f"{HOME}/.local/state/monarch/jobs/{job}")))
        wait_for(lambda: not self.viewers_there(), lambda: f"the end of {self.viewers_there()}")

    def test_every_command_says_here_what_it_says_there(self):
        self.start_world()
        job = self.job_there("printf 'a\\377b\\n'; echo err >&2; exit $((MONARCH_RANK * 7))", verb="run")
        for words in (["status", job, "--json"], ["status", job], ["logs", job], ["events", job, "--json"], ["events", "-f", job],
                      ["wait", job], ["wait", job, "--json"], ["attach", job], ["logs", job, "--mesh", "x"],
                      ["signal", job, "USR1"], ["stop", job], ["logs", job, "-f"]):
            here, there = self.here_and_there(job, *words)
            self.assertEqual((here.status, here.out, here.err), (there.returncode, there.stdout, there.stderr), words)
        row, = self.monarch("ps", "--all", "--json").json()
        self.assertEqual((row["job"], row["phase"], row["exit_code"], row["where"]), (job, "failed", 7, "h1"))
        self.assertRegex(self.monarch("ps", "--all").out, rf"{job} +failed .* 7 +h1\n")
        self.assertIn(f"{job}\t", self.monarch("complete", "status", "").out)
        self.end(job)

    def test_a_live_job_is_shown_followed_signalled_and_stopped(self):
        self.start_world()
        job = self.job_there("trap 'echo got it' USR1; " + TICKS)
        self.assertEqual(self.monarch("ps", "--json").json()[0]["seen"], None)
        self.assertEqual(self.monarch("status", "--json", timeout=60).json()[0]["phase"], "running")  # the only live one
        row, = self.monarch("ps", "--json").json()
        self.assertEqual((row["phase"], row["ranks_running"], row["where"]), ("running", 2, "h1"))
        logs = self.start("logs", "demo", "-f", "--rank", "1")
        logs.wait_for_out("tick 3$", timeout=60)
        self.assertEqual(self.monarch("signal", "last", "USR1", timeout=60).out, f"SIGUSR1 was sent to 2 ranks of {job}\n")
        logs.wait_for_out("got it")
        waiting = self.start("wait", job)
        attached = self.start("attach", job, "--json")
        attached.wait_for_out('"type":"output"', timeout=60)
        attached.signal(signal.SIGINT)
        self.assertEqual(attached.wait(), 130, attached)
        self.assertIn("detached", attached.err)
        timed = self.monarch("wait", job, "--timeout", "1s", timeout=60)
        self.assertEqual(timed.status, 124, timed)
        self.assertEqual(self.monarch("stop", job, timeout=60).status, 0)
        self.assertEqual(waiting.wait(), 143, waiting)
        self.assertEqual(logs.wait(), 0, logs)
        self.assertEqual(self.monarch("ps").err.splitlines()[0], "monarch: no job is live")
        self.end(job)

    def test_a_terminal_here_has_colour_and_its_own_width(self):
        self.start_world()
        job = self.job_there()
        shown = self.start("status", job, terminal=True, env={"TERM": "xterm"})
        self.assertEqual(shown.wait(60), 0, shown)
        self.assertIn("\x1b[", shown.out)
        follows = self.start("attach", job, terminal=True, env={"TERM": "xterm"})
        follows.wait_for_out("tick", timeout=60)
        follows.type("\x03")
        self.assertEqual(follows.wait(60), 130, follows)
        self.assertIn("detached", follows.out)
        self.end(job)

    def test_reports_are_written_here(self):
        self.start_world()
        job = self.job_there("echo hello; exit $((MONARCH_RANK * 7))", verb="run")
        done = self.monarch("attach", job, "--junit", "report.xml", "--artifacts", "out", timeout=60)
        self.assertEqual(done.status, 7, done)
        self.assertIn("<testsuite", self.read("work", "report.xml"))
        self.assertEqual(self.read("work", "out", "logs", "m", "1.1.out"), "hello\n")
        self.assertEqual(json.loads(self.read("work", "out", "verdict.json"))["exit_code"], 7)
        self.assertEqual(os.listdir(self.w["h1"].path(HOME + "/.local/state/monarch/reports")), [])
        refused = self.monarch("attach", job, "--artifacts", "out")
        self.assertEqual(refused.status, 2, refused)
        self.end(job)

    def test_a_cut_cable_is_said_and_what_is_shown_goes_on_where_it_was(self):
        w = self.start_world()
        job = self.job_there()
        logs = self.start("logs", job, "-f", "--rank", "0", "--no-prefix")
        logs.wait_for_out("tick 20$", timeout=60)
        w["h1"].unplug()
        logs.wait_for_err(r"^monarch: lost h1, trying again for 2m; demo-\w+ goes on there$")
        seen = len(logs.out.splitlines())
        w["h1"].plug()
        logs.wait_for_err(r"^monarch: h1 answers again$", timeout=60)
        wait_for(lambda: len(logs.out.splitlines()) > seen + 200, "more of the log")
        logs.signal(signal.SIGINT)
        logs.wait()
        ticks = [int(line.split()[1]) for line in logs.out.splitlines() if line.startswith("tick")]
        self.assertEqual(ticks, list(range(1, len(ticks) + 1)), "no line is lost, and none comes twice")
        self.end(job)

    def test_a_connection_that_is_torn_down_is_made_again(self):
        w = self.start_world()
        job = self.job_there()
        logs = self.start("logs", job, "-f", "--rank", "0", "--no-prefix")
        logs.wait_for_out("tick 20$", timeout=60)
        for host, process in self.on_hosts():
            if host.name == "h1" and b" ".join(process.arguments).startswith(b"sshd: root@notty"):
                os.kill(process.pid, signal.SIGKILL)
        seen = len(logs.out.splitlines())
        wait_for(lambda: len(logs.out.splitlines()) > seen + 200, lambda: f"more of the log: {logs!r}", 60)
        logs.signal(signal.SIGINT)
        logs.wait()
        ticks = [int(line.split()[1]) for line in logs.out.splitlines() if line.startswith("tick")]
        self.assertEqual(ticks, list(range(1, len(ticks) + 1)))
        self.end(job)
        self.assertTrue(w)

    def test_where_the_viewer_there_has_ended_another_goes_on_from_now(self):
        self.start_world()
        job = self.job_there()
        logs = self.start("logs", job, "-f", "--rank", "0", "--no-prefix")
        logs.wait_for_out("tick 20$", timeout=60)
        for host, process in self.on_hosts():
            if host.name == "h1" and b"over-ssh" in process.arguments:
                os.kill(process.pid, signal.SIGKILL)
        logs.wait_for_err(r"^monarch: the viewer on h1 has ended meanwhile, and another goes on; ", timeout=60)
        seen = len(logs.out.splitlines())
        wait_for(lambda: len(logs.out.splitlines()) > seen + 100, lambda: f"more of the log: {logs!r}", 60)
        logs.signal(signal.SIGINT)
        self.assertEqual(logs.wait(), 130, logs)
        ticks = [int(line.split()[1]) for line in logs.out.splitlines() if line.startswith("tick")]
        self.assertEqual(ticks, sorted(set(ticks)), "no line comes twice")
        self.end(job)

    def test_a_viewer_that_is_killed_here_ends_there_and_the_job_goes_on(self):
        self.start_world()
        job = self.job_there()
        events = self.start("events", "-f", job)
        events.wait_for_out("job.running", timeout=60)
        events.end()
        status = self.monarch("status", job, "--json", timeout=60)
        self.assertEqual(status.json()[0]["phase"], "running", status)
        self.end(job)  # and waits until nobody there waits for the killed one any more

    def test_a_machine_that_cannot_be_reached_is_named_with_its_class(self):
        w = self.start_world()
        job = self.job_there()
        faults.refuse(w["h1"])
        refused = self.monarch("status", job, timeout=60)
        self.assertEqual(refused.status, 69, refused)
        self.assertRegex(refused.err, r"^error\[E0910\]: h1: refused \(connect, .*\): .*\n.*to see: ssh .*h1")
        self.assertEqual(self.monarch("ps", "--json").json()[0]["phase"], "live")
        self.assertEqual(self.monarch("rm", job, timeout=60).status, 69)
        w["h1"].start_sshd()
        faults.change_key(w["h1"])
        changed = self.monarch("status", job, timeout=60)
        self.assertEqual(changed.status, 3, changed)
        self.assertRegex(changed.err, r"^error\[E0910\]: h1: host key changed \(host key, ")
        only = self.monarch("rm", "--here", job)
        self.assertEqual(only.status, 0, only)
        self.assertIn(f"what is kept of {job} on h1 stays there, in {HOME}/.local/state/monarch/jobs/{job}", only.err)
        w["h1"].run(self.there, "stop", job)
        wait_for(lambda: not self.on_hosts(), lambda: f"the end of {[str(process) for _, process in self.on_hosts()]}")

    def test_a_machine_that_says_junk_is_refused_by_name(self):
        w = self.start_world()
        self.pointer("probe-0001", "probe")
        # Somebody has put another program in monarch's place, with the right name and none of its words.
        size = os.stat(w["h1"].path(self.there)).st_size
        for said, why in ((r"\377\377\377", "a frame of the unknown kind 255"),
                          (r"\022\200\000\000\000\000\000\000\000", "a frame of 9223372036854775808 bytes")):
            script = f"#!/bin/sh\necho monarch-talks 1\nprintf {shlex.quote(said)}\ncat >/dev/null\n"
            w["h1"].write(self.there, script + "#" * (size - len(script)), 0o700)
            junk = self.monarch("status", "probe", timeout=60)
            self.assertEqual(junk.status, 70, junk)
            self.assertIn(f"h1 said what cannot be taken: {why}", junk.err)
        endless = "#!/bin/sh\necho monarch-talks 1\nwhile :; do printf 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'; done\n"
        w["h1"].write(self.there, endless + "#" * (size - len(endless)), 0o700)
        self.assertEqual(self.monarch("status", "probe", timeout=60).status, 70)


if __name__ == "__main__":
    cluster.main()
