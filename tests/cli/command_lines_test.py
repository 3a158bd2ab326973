"""Command lines that are wrong, or that only look: all of stdout, stderr and status, as golden/command_lines.txt has them.

Each case there is

    $ [NAME=VALUE…] monarch ARGUMENTS… [< FILE]
    = STATUS

and what was written; see goldens.py. `python3 tests/cli/command_lines_test.py --update` (with PYTHONPATH=tests/process) writes the
file anew.
"""

import os
import re
import shlex
import time

import goldens
import harness

POINTER = '{"v":1,"host":"node01","bundle":"' + "a" * 64 + '","monarch":"","directory":""}'
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "command_lines.txt")

GOOD = """version: 1
job: hello
launch:
  local: {hosts: 2, spares: 0}
meshes:
  greeter:
    dims: {host: 2, slot: 2}
    program: [echo, hello]
    env: {GREETING: hi}
    env_pass: [SECRET]
supervision:
  restart: {max: 0}
  reallocate: {max: 0}
"""
PAIR = GOOD.replace("hosts: 2", "hosts: 3").replace("supervision:", """  reader:
    dims: {slot: 1}
    program: [echo, hello]
supervision:""")
SHELL = GOOD.replace("GREETING: hi", "GREETING: $(env.NOBODY_SETS_THIS) on $(self.host_name)")
TREE = GOOD.replace("local: {hosts: 2, spares: 0}", "ssh: {hosts: [n1, n2]}") + "workspace: {path: tree, max_size: 1KiB}\n"
DRILL = "version: 1\ndrill: smoke\njob: good.yaml\ncontrol: 10s\nfaults:\n  - {fault: kill, at: 0s, target: {mesh: greeter}}\n"
BROKEN = GOOD.replace("dims:", "dimms:").replace("reallocate: {max: 0}", "hartbeat: 2s")


class CommandLines(harness.MonarchTest):
    def world(self):
        self.write("good.yaml", GOOD)
        self.write("broken.yaml", BROKEN)
        self.write("pair.yaml", PAIR)
        self.write("over.yaml", "meshes:\n  greeter:\n    dims: {slot: 4}\n    env: {GREETING: hallo}\n")
        self.write("typo.yaml", "meshes:\n  greeter:\n    evn: {}\n")
        self.write("shell.yaml", SHELL)
        self.write("drill.yaml", DRILL)
        self.write("wrong_drill.yaml", DRILL.replace("10s", "5s").replace("kill", "power-loss").replace("mesh: greeter", "host: v1"))
        self.write("empty.yaml", "")
        self.write("tree.yaml", TREE)
        os.mkdir(self.path("work", "tree"))
        self.write("tree/main.py", "x" * 1500)
        self.write("tree/data.bin", "x" * 2_000)
        os.symlink("/etc/hosts", self.path("work", "tree", "hosts"))
        os.mkdir(self.path("work", "folder"))
        foreign = self.path("foreign")
        os.makedirs(os.path.join(foreign, "jobs"), 0o700)
        os.chmod(os.path.join(foreign, "jobs"), 0o777)
        far = self.path("elsewhere", "jobs", "far-0001")
        os.makedirs(far, 0o700)
        os.chmod(self.path("elsewhere"), 0o700)
        for name, words in (("spec.yaml", GOOD), ("spec.dir", "/"), ("elsewhere.json", POINTER)):
            with open(os.path.join(far, name), "w", encoding="ascii") as file:
                file.write(words)
        self.write("plain", "")
        # What a parser must not be asked to hold; see the register of errors.
        self.write("large.yaml", "version: 1\n" + "# a comment\n" * 100_000)
        self.write("many.yaml", "version: 1\njob: many\nmeshes:\n" + "".join(f"  m{i}: {{}}\n" for i in range(20_001)))
        self.write("long.yaml", "version: 1\njob: '" + "x" * 200_000 + "'\n")

    def answer(self, line):
        # A line of the file has no newline, and a variable with several values has.
        words = [w.replace("\\n", "\n") for w in shlex.split(line.replace("@", self.folder))]
        env = {}
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            env[name] = value
        assert words.pop(0) == "monarch", line
        stdin = "/dev/null"
        if words[-2:-1] == ["<"]:
            stdin = words.pop()
            words.pop()
        begun = time.monotonic()
        with open(os.path.join(self.path("work"), stdin), "rb") as given:
            done = self.start_program("/bin/sh", "-c", 'cd "$1"; shift; exec "$@"', "sh", self.path("work"), harness.MONARCH,
                                      *words, env=env, stdin=given).finished()
        self.assertLess(time.monotonic() - begun, 10, line)
        return goldens.shown(done, self.folder)

    def test_every_command_line_is_answered_as_written(self):
        self.world()
        found = goldens.cases(GOLDEN)
        refused = [line for line, expected in found if not expected.startswith("= 0")]
        self.assertGreaterEqual(len(refused), 40)
        for line, expected in found:
            with self.subTest(line):
                self.assertEqual(self.answer(line), expected, line)
        self.assertEqual(self.jobs(), [], "a command line that is wrong made a job")
        self.assert_nothing_left()

    def test_a_spec_on_standard_input_is_waited_for_to_its_end(self):
        self.world()
        reader, writer = os.pipe()
        checking = self.start("validate", "-", stdin=reader)
        os.close(reader)
        os.write(writer, GOOD[:40].encode())
        os.write(writer, GOOD[40:].encode())
        os.close(writer)
        done = checking.finished()
        self.assertEqual((done.status, done.out), (0, "<stdin>: valid\n"), done)

    def test_a_terminal_is_no_spec(self):
        for command in (("run", "-"), ("validate", "-"), ("plan", "-f", "-")):
            done = self.start(*command, terminal=True)
            self.assertEqual(done.wait(), 2, done.out)
            self.assertIn("cannot read the spec <stdin>: standard input is a terminal", done.out)
            self.assertIn("monarch validate - < mesh.yaml", done.out)

    def test_a_broken_spec_is_refused_at_once(self):
        self.world()
        times = []
        for _ in range(5):
            done = self.monarch("run", self.path("work", "broken.yaml"))
            self.assertEqual(done.status, 2, done)
            times.append(done.seconds)
        # The best of five: what else this machine does is not what is measured.
        self.assertLess(min(times), 0.2, times)

    def test_another_users_job_is_refused_by_name(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give a directory away")
        theirs = self.path("state", "jobs", "hello-0001")
        os.makedirs(theirs, 0o700)
        for path in ("state", "state/jobs"):
            os.chmod(self.path(*path.split("/")), 0o700)
        os.chown(theirs, 65534, 65534)
        for command in ("status", "stop", "logs", "attach", "wait", "events"):
            done = self.monarch(command, "hello-0001")
            self.assertEqual(done.status, 2, done)
            self.assertIn(theirs, done.err)
            self.assertIn("belongs to user 65534", done.err)
            self.assertEqual(done.out, "")

    def test_explanations_fit_a_narrow_terminal(self):
        for what in ("supervision", "meshes.*.stop", "E0305"):
            shown = self.start_program("/bin/sh", "-c", 'stty cols 60; exec "$0" explain "$1" --color never', harness.MONARCH,
                                       what, terminal=True)
            self.assertEqual(shown.wait(), 0)
            lines = shown.out.splitlines()
            self.assertGreater(len(lines), 3, what)
            # What a key takes, its example, and a cell of a table that is alone on its line are one line each.
            long = [line for line in lines[1:] if len(line) > 60 and not re.match(r" +(takes|[a-z_]+:) | {10}\S", line)]
            self.assertEqual(long, [], what)

    def test_help_is_fast(self):
        self.assertLess(min(self.monarch("--help").seconds for _ in range(10)), 0.1)


if __name__ == "__main__":
    goldens.main(CommandLines, GOLDEN)
