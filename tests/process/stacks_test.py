"""`monarch stacks` on real jobs: gdb before ranks of which one is stuck, a Python program, debuggers that are not there or do not end."""

import json
import os
import re
import shutil
import unittest

import actors
import harness
import jobs

STUCK = os.path.join(os.environ["MONARCH_BUILD_DIR"], "tests", "process", "stuck-rank")
LONG = ("--timeout", "40s")  # a machine that is busy with other things is not what is tested

# Shows a frame `step` of all ranks but 2, and says itself which process it looked at.
PY_SPY = """#!/bin/sh
PATH=/usr/bin:/bin
[ "$1 $2" = "dump --pid" ] || exit 64
function=step; tr '\\0' '\\n' < /proc/$3/environ | grep -qx MONARCH_RANK=2 && function=save
printf 'Process %s: python3 t.py\\nPython v3.11.2 (/usr/bin/python3.11)\\n\\n' "$3"
printf 'Thread %s (idle): "MainThread"\\n    %s (t.py:1%s)\\n    <module> (t.py:99)\\n' "$3" "$function" "$(($3 % 10))"
printf 'Thread 0x7F (idle): "loader"\\n    wait (threading.py:320)\\n'
"""


class Stacks(jobs.JobTest):
    def tools(self, **scripts):
        """An environment in which these debuggers alone are there."""
        folder = self.path("tools")
        os.makedirs(folder, exist_ok=True)
        for name, script in scripts.items():
            path = os.path.join(folder, name.replace("_", "-"))
            if script.startswith("/"):
                os.symlink(script, path)
                continue
            with open(path, "w", encoding="utf-8") as file:
                file.write(script)
            os.chmod(path, 0o755)
        return {"PATH": folder}

    def up(self, program, marks, env, **keys):
        done = self.monarch("up", self.program_job(program, **keys), env=env)
        self.assertEqual(done.status, 0, done)
        paths = [self.path("work", f"there.{rank}") for rank in range(marks)]
        harness.wait_for(lambda: all(map(os.path.exists, paths)), lambda: f"marks of {marks} ranks")
        return done.out.strip()

    def end(self, job):
        self.assertEqual(self.monarch("stop", job, "--kill").status, 0)
        self.assert_nothing_left()

    def test_seven_ranks_share_a_stack_and_one_is_stuck_in_a_lock(self):
        gdb = shutil.which("gdb")
        self.assertIsNotNone(gdb, "gdb is not installed; scripts/test process installs it")
        job = self.up([STUCK, "3"], 8, self.tools(gdb=gdb), hosts=2, slots=4)
        shown = None

        def stands():  # the mark comes a moment before the lock
            nonlocal shown
            shown = self.monarch("stacks", *LONG)
            self.assertEqual(shown.status, 0, shown)
            return shown.out.startswith(f"8 ranks of {job}: 7 + 1\n")
        harness.wait_for(stands, lambda: f"7 + 1: {shown}")
        self.assertEqual(shown.err, "")
        many, one = shown.out.split("\n\n")[1:]
        self.assertRegex(many, r"\A7 ranks: m/0-2,4-7 on v1 v2\n  stuck-rank \(by gdb\)\n(    .*\n)*    step \(stuck_rank\.cc:\d+\)\n"
                               r"    main \(stuck_rank\.cc:\d+\)\Z")
        self.assertRegex(one, r"\A1 rank: m/3 on v1\n(.*\n)*    \S*pthread_mutex_lock.*\n    step_under_lock \(stuck_rank\.cc:\d+\)\n    main ")
        rows = self.monarch("stacks", job, "--json", "--rank", "2-3", *LONG).json()
        self.assertEqual([(row["v"], row["rank"], row["group"], row["why_not"]) for row in rows], [(1, 2, 1, None), (1, 3, 2, None)])
        frames = [frame["function"] for frame in rows[1]["processes"][0]["threads"][0]["frames"]]
        self.assertIn("step_under_lock", frames)
        raw = self.monarch("stacks", "--raw", "--rank", "3", *LONG)
        self.assertRegex(raw.out, r"\A== m/3 on v1\n-- \d+ stuck-rank, gdb\n(.*\n)*#\d+ .* in step_under_lock \(\)")
        # They stood still only while they were looked at.
        self.assertEqual({rank["phase"] for rank in self.status()["meshes"][0]["ranks"]}, {"running"})
        self.end(job)

    def test_ranks_of_actors_are_shown_too(self):
        gdb = shutil.which("gdb")
        self.assertIsNotNone(gdb, "gdb is not installed; scripts/test process installs it")
        tally = {"plugin": actors.plugin("steady"), "class": "Tally"}
        spec = {"version": 1, "job": "demo", "launch": {"local": {"hosts": 1}}, "meshes": {"m": {"dims": {"r": 2}, "actors": {"tally": tally}}}}
        done = self.monarch("up", self.spec(json.dumps(spec)), env=self.tools(gdb=gdb))
        self.assertEqual(done.status, 0, done)
        shown = self.monarch("stacks", *LONG)
        self.assertEqual((shown.status, shown.err), (0, ""), shown)
        self.assertRegex(shown.out, r"\A2 ranks of demo-\w+: alike\n\n2 ranks: m/0-1 on v1\n  monarch-rank \(by gdb\)\n")
        # The plugin is a file that a debugger finds by the name that the loader has.
        rank = self.find("monarch-rank")[0]
        with open(f"/proc/{rank.pid}/maps", encoding="utf-8") as file:
            plugin, = {line.split(None, 5)[5].strip() for line in file if "libsteady" in line}
        self.assertTrue(os.path.isfile(plugin), plugin)
        self.end(done.out.strip())
        self.assertFalse(os.path.exists(self.path("state", "hosts")) and os.listdir(self.path("state", "hosts")))

    def test_a_python_program_is_shown_by_its_own_functions(self):
        program = ["/usr/bin/python3", "-c", "import os,time\nopen('there.' + os.environ['MONARCH_RANK'], 'w')\ntime.sleep(600)"]
        job = self.up(program, 4, self.tools(py_spy=PY_SPY))
        shown = self.monarch("stacks", *LONG)
        self.assertEqual((shown.status, shown.err), (0, ""), shown)
        self.assertRegex(shown.out, rf"\A4 ranks of {job}: 3 \+ 1\n\n3 ranks: m/0-1,3 on v1 v2\n  python3\S* \(by py-spy\)\n"
                                    r"    step \(t\.py:\d+(-\d+)?\)\n    <module> \(t\.py:99\)\n\n1 rank: m/2 on v2\n(.*\n)*    save ")
        threads = self.monarch("stacks", "--all-threads", "--rank", "2", *LONG)
        self.assertIn('    thread "loader":\n      wait (threading.py:320)\n', threads.out)
        self.end(job)

    def test_who_has_ended_is_not_looked_at(self):
        job = self.up(["/bin/sh", "-c", "[ $MONARCH_RANK = 0 ] && exit 0; : > there.$MONARCH_RANK; : > there.0; while :; do /bin/sleep 1; done"],
                      4, self.tools(gdb="#!/bin/sh\necho '#0  main ()'\n"))
        harness.wait_for(lambda: self.status()["meshes"][0]["ranks"][0]["phase"] == "done", "the end of rank 0")
        shown = self.monarch("stacks", *LONG)
        self.assertRegex(shown.out, rf"\A3 ranks of {job}: ")
        none = self.monarch("stacks", job, "--rank", "0")
        self.assert_output(none, 2, "", re.compile(rf"error\[E0923\]: the rank of {job} that is meant does not run\n.*\n"))
        self.end(job)
        ended = self.monarch("stacks", job)
        self.assert_output(ended, 2, "", re.compile(rf"error\[E0923\]: {job} has ended: there is nothing to look at\n.*\n"))

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_ranks_let_their_keeper_trace_them_where_yama_asks_for_that(self):
        """Without Yama the kernel refuses the call, which is made all the same; with it at 1 it is what lets a debugger in."""
        told = self.path("work", "prctl")
        worker = self.write("worker", f"#!/bin/sh\n[ \"$1\" = keep ] && exec {harness.WORKER} \"$@\"\n"
                            f"exec strace -D -f -qqq -e trace=prctl -o {told} {harness.WORKER} \"$@\"\n", mode=0o755)
        job = self.up(["/bin/sh", "-c", ": > there.$MONARCH_RANK; while :; do sleep 1; done"], 2, {"MONARCH_WORKER": worker},
                      hosts=1, slots=2)
        keeper = self.process("keeper").pid
        # What was a call of one rank while the other made one is told in two pieces, the second without the number.
        calls = lambda: re.findall(r"prctl\(PR_SET_PTRACER, (\w+)\b", self.read(told))
        harness.wait_for(lambda: len(calls()) >= 2, lambda: f"two calls in {self.read(told)}")
        self.assertEqual([int(pid, 0) for pid in calls()], [keeper] * 2)
        self.end(job)
        # Where faults may be injected, whoever does that is no child of the keeper.
        os.unlink(told)
        job = self.up(["/bin/sleep", "600"], 0, {"MONARCH_WORKER": worker}, hosts=1, slots=1,
                      drills={"allow": True})
        harness.wait_for(lambda: os.path.exists(told) and calls(), lambda: f"a call in {self.read(told)}")
        self.assertEqual(calls(), ["PR_SET_PTRACER_ANY"])
        self.end(job)

    def test_a_debugger_that_does_not_end_is_killed_at_its_time(self):
        job = self.up([STUCK, "0"], 4, self.tools(gdb="#!/bin/sh\nexec /bin/sleep 7654\n"), hosts=1, slots=4)
        shown = self.monarch("stacks", "--timeout", "2s")
        self.assertEqual(shown.status, 70, shown)
        self.assertRegex(shown.out, r"(?s)not shown: 4 ranks\n  m/0-3 on v1: gdb was not done within 2s and was killed \(--timeout ")
        self.assertRegex(shown.err, rf"error\[E0929\]: no stack of {job} could be taken: gdb was not done within 2s")
        harness.wait_for(lambda: not self.find("sleep", "7654"), "no debugger")
        self.assertEqual({rank["phase"] for rank in self.status()["meshes"][0]["ranks"]}, {"running"})
        self.end(job)

    def test_where_no_debugger_is_it_is_said_what_to_install(self):
        job = self.up([STUCK, "0"], 2, self.tools(), hosts=1, slots=2)
        shown = self.monarch("stacks")
        self.assertEqual(shown.status, 70, shown)
        self.assertIn("no debugger is in the PATH of the worker on v1: install elfutils (eu-stack) or gdb there", shown.err)
        rows = [json.loads(line) for line in self.monarch("stacks", "--json").out.splitlines()]
        self.assertEqual([row["group"] for row in rows], [None, None])
        self.end(job)


if __name__ == "__main__":
    harness.main()
