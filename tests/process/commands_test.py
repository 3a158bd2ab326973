"""C21, X14: what a spec or a command line says is a word to us: no shell reads it, and none runs but the bash of `setup`."""

import collections
import os
import re

import harness
import jobs

# What a shell, ssh or an option parser would make something of.
HOSTILE = ["-oProxyCommand=touch pwned", "--config=pwned", "a;touch pwned", "a|touch pwned", "a&touch pwned", "$(touch pwned)",
           "`touch pwned`", "a\ntouch pwned", "a b", "../../pwned", "/tmp/pwned", "a@b", "*", "~root", "", "\u202ename"]

SHELLS = {"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "csh", "tcsh", "fish", "rbash", "busybox"}

# Each rank says what it was given, word by word, and where it is.
REPEAT = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['WORD'], os.path.basename(os.getcwd())]), flush=True)"

SUCCEEDED = re.compile(r'^\d+ +execve(?:at)?\("((?:[^"\\]|\\.)*)", \[([^\]]*)\].* = 0$')
RESUMED = re.compile(r"^(\d+) +<\.\.\. execve(?:at)? resumed>.* = 0$")
UNFINISHED = re.compile(r"^(\d+) +(execve(?:at)?\(.*) <unfinished \.\.\.>$")


class Shells(jobs.JobTest):
    def executed(self, trace):
        """What was executed, in order: path and argument vector as strace shows them."""
        begun, found = {}, []
        for line in self.read("work", trace).splitlines():
            unfinished, resumed = UNFINISHED.match(line), RESUMED.match(line)
            if unfinished:
                begun[unfinished[1]] = unfinished[2]
                continue
            if resumed:
                line = f"{resumed[1]} {begun.pop(resumed[1])} = 0"
            match = SUCCEEDED.match(line)
            if match:
                found.append((match[1], match[2]))
        return found

    def traced(self, *arguments):
        """A command and all that descends from it, under strace until the last of them has ended."""
        strace = "/usr/bin/strace"
        if not os.path.exists(strace):
            self.skipTest(f"{strace} is not installed")
        # WARNING: LeakSanitizer stops a world that is traced already, and ends with an error (LLVM 14).
        unchecked = {"ASAN_OPTIONS": ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "detect_leaks=0"]))}
        return self.start_program(strace, "-f", "-qq", "-v", "-s", "200", "-e", "trace=execve,execveat", "-e", "signal=none",
                                  "-o", self.path("work", "trace"), harness.MONARCH, *arguments, env=unchecked)

    def names(self):
        """How often each program was executed, by the name of its file, or by its first argument for /proc/self/exe."""
        count = collections.Counter()
        for path, vector in self.executed("trace"):
            name = os.path.basename(path)
            if harness.SANITIZED and name.startswith("llvm-symbolizer"):
                continue  # the sanitizer's own: it names frames to hold them against its suppressions
            count["daemon" if path == "/proc/self/exe" and '"daemon"' in vector else name] += 1
        return count

    def test_no_shell_runs_in_a_whole_job_but_the_bash_of_setup(self):
        """With a wrap, a readiness that is probed, a daemon that is killed and replaced, and an orderly stop."""
        serve = (jobs.PYTHON_MARK + "import os, signal, socket, time\nsignal.signal(signal.SIGTERM, lambda *_: os._exit(0))\n"
                 "door = socket.create_server(('', int(os.environ['MONARCH_PORT_HTTP'])))\n"
                 "mark('there')\ntime.sleep(1000)\n")
        spec = self.program_job(["/usr/bin/python3", "-c", serve], hosts=2, slots=1,
                                mesh={"setup": "export A=1", "wrap": ["/usr/bin/env", "--"], "ports": {"http": "auto"},
                                      "ready": {"tcp": "http"}, "stop": {"grace": "20s"}})
        run = self.traced("run", spec)
        run.wait_for_err("job.running", timeout=60)
        pids = self.wait_for_marks("there", 2)
        killed = self.process("daemon", "v1")
        self.kill(killed)
        harness.wait_for(lambda: [h["daemon_starts"] for h in self.status()["hosts"]] == [2, 1], "another daemon")
        self.assertEqual([p for p in pids if not os.path.exists(f"/proc/{p}")], [])
        self.assertEqual(self.monarch("stop", "last").status, 0)
        self.assertEqual(run.wait(60), 143, run)
        self.assert_nothing_left()
        ran = self.names()
        shells = {name: n for name, n in ran.items() if name in SHELLS}
        self.assertEqual(shells, {"bash": 2}, ran)
        for path, vector in self.executed("trace"):
            if os.path.basename(path) == "bash":
                self.assertTrue(vector.startswith('"setup", "-c", '), vector)
        # Everything else that ran: our own, by their paths, and what the spec names. The other `env` is bash's: env -0.
        python = os.path.basename(os.path.realpath("/usr/bin/python3"))
        self.assertEqual({name: n for name, n in ran.items() if name not in SHELLS},
                         {"monarch": 2, "monarch-worker": 3, "daemon": 3, "env": 4, "python3": 2}, (ran, python))

    def test_words_reach_a_rank_as_they_are_and_no_command_comes_of_them(self):
        os.mkdir(self.path("work", "$(touch pwned);x"))
        words = [w for w in HOSTILE if w]
        spec = self.program_job(["/usr/bin/python3", "-c", REPEAT, *words], hosts=1, slots=1,
                                mesh={"env": {"WORD": words[5]}, "workdir": self.path("work", "$(touch pwned);x")})
        run = self.traced("run", "--no-prefix", spec)
        done = run.finished(60)
        self.assertEqual(done.status, 0, done)
        self.assertEqual(harness.json.loads(done.out), [words, words[5], "$(touch pwned);x"])
        self.assertEqual({name: n for name, n in self.names().items() if name in SHELLS}, {})
        self.assertEqual([f for _, _, names in os.walk(self.folder) for f in names if "pwned" in f], [])
        self.assert_nothing_left()


class Injection(jobs.JobTest):
    """X14 wherever a name is taken: refused with the place, by its grammar, and nothing begins."""

    def refused(self, *arguments):
        done = self.monarch(*arguments)
        self.assertEqual((done.status, done.out), (2, ""), done)
        self.assertIn("error[E", done.err)
        self.assertNotIn("\x1b", done.err)
        self.assertEqual(self.jobs(), [])
        self.assertEqual([f for _, _, names in os.walk(self.folder) for f in names if "pwned" in f], [])
        return done

    def spec_with(self, place, word):
        mesh = {"dims": {"host": 1}, "program": ["/bin/true"]}
        spec = {"version": 1, "job": "demo", "meshes": {"m": mesh}}
        if place == "job":
            spec["job"] = word
        elif place == "mesh":
            spec["meshes"] = {word: mesh}
        elif place == "dimension":
            mesh["dims"] = {word: 1}
        elif place == "port":
            mesh["ports"] = {word: "auto"}
        elif place == "like":
            spec["meshes"]["n"] = {**mesh, "hosts": {"like": word}}
        elif place == "depends_on":
            mesh["depends_on"] = [word]
        elif place == "variable":
            mesh["env"] = {word + "=": "x"}
        return self.spec(harness.json.dumps(spec, indent=1))

    def test_names_in_a_spec(self):
        for place in ("job", "mesh", "dimension", "port", "like", "depends_on", "variable"):
            for word in HOSTILE:
                with self.subTest(place=place, word=word):
                    self.refused("validate", self.spec_with(place, word))

    def test_names_on_the_command_line(self):
        for word in HOSTILE:
            with self.subTest(word=word):
                self.refused("status", f"--host={word}", "last")
                self.refused("logs", f"--mesh={word}", "last")
                self.refused("run", "-n", "1", f"-H={word}", "--", "/bin/true")


class Bytes(jobs.JobTest):
    """Names and arguments are bytes: files of old data sets have Latin-1 in theirs."""

    SHOW = 'cat "$1"; printf "%s " "$@" "$OLD" "${PWD##*/}" | od -An -tx1'

    def shown(self, *words):
        return "data\n" + "".join(f" {byte:02x}" for byte in b"".join(word + b" " for word in words)) + "\n"

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("work", "d\udce9"))
        self.write("d\udce9/a\udce9", "data\n")

    def test_of_a_command_line_reach_the_program(self):
        done = self.monarch("run", "-n", "1", "--no-prefix", "--", "/bin/sh", "-c", f"cd d\udce9; {self.SHOW}", "sh", "a\udce9", "\udcff",
                            env={"OLD": "\udce0"})
        self.assertEqual((done.status, done.out), (0, self.shown(b"a\xe9", b"\xff", b"\xe0", b"d\xe9")), done)
        self.assertIn("!!binary", self.read(self.job_file("spec.yaml")))
        self.assertEqual(self.status("last")["phase"], "ended")
        self.assert_nothing_left()

    def test_of_a_specs_own_name_and_folder(self):
        spec = self.spec("version: 1\njob: old\nmeshes:\n  m:\n    dims: {r: 1}\n    env: {OLD: !!binary 4A==}\n    program:\n      - /bin/sh\n"
                         f"      - -c\n      - '{self.SHOW}'\n      - sh\n      - !!binary YQ==\n", "d\udce9/s\udce9.yaml")
        os.rename(self.path("work", "d\udce9/a\udce9"), self.path("work", "d\udce9/a"))
        done = self.monarch("run", "--no-prefix", spec)
        self.assertEqual((done.status, done.out), (0, self.shown(b"a", b"\xe0", b"d\xe9")), done)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
