"""What the tests of whole jobs share: specs from a few words, ranks that report through files, and the usual assertions.

A rank of `self.job(script)` runs `script` by bash in work/. `mark NAME` there makes the file NAME.$MONARCH_RANK, which
the test waits for by `self.wait_for_marks(NAME, ranks)`; nothing guesses from time. `nap SECONDS` waits as `sleep` does,
but without a process: ranks that wait look for a file twenty times a second, and many of them do at once.
"""

import glob
import json
import os
import re
import shlex
import signal

import harness

MARK = "mark() { echo $$ > $1.$MONARCH_RANK.new && mv $1.$MONARCH_RANK.new $1.$MONARCH_RANK; }\n"
# The same for a rank in Python; `word` is its pid unless given. Whoever reads finds all of it, the old or the new.
PYTHON_MARK = """def mark(name, word=None):
    import os
    path = name + '.' + os.environ['MONARCH_RANK']
    with open(path + '.new', 'w') as file: file.write(str(os.getpid() if word is None else word))
    os.replace(path + '.new', path)
"""
NAP = 'nap() { [ "$idle" ] || exec {idle}<> <(:); read -rt "$1" -u "$idle" || :; }\n'
# How far a rank is: of one length and written at once, so that who reads has it whole.
STEP = 'step() { printf "%08d\\n" $1 1<> step.$MONARCH_RANK; }\n'
FOREVER = "while :; do nap 1000; done\n"

# The first failure ends the job.
FAIL_FAST = {"restart": {"max": 0}, "reallocate": {"max": 0}}


def shell(script):
    """The program that runs a rank's script."""
    return ["/bin/bash", "-c", MARK + NAP + STEP + script]


class JobTest(harness.MonarchTest):
    def job(self, script, hosts=2, slots=2, name="demo", mesh=None, **keys):
        """Path of a spec with one mesh `m` of hosts × slots ranks that run `script`; `mesh` and `keys` are added.

        It fails fast but for what `supervision` says; without any, by `supervision=None`, a job's own defaults act."""
        return self.program_job(shell(script), hosts, slots, name, mesh, **keys)

    def guarding(self, wrapper):
        """A MONARCH_WORKER whose guard runs its supervisor by way of the program `wrapper`, which executes its arguments."""
        return self.write("worker", f"""#!/bin/sh
[ "$1" = keep ] || exec {harness.WORKER} "$@"
for word; do
  shift
  set -- "$@" "$word"
  [ "$word" != -- ] || [ -n "$seen" ] || {{ seen=yes; set -- "$@" {wrapper}; }}
done
exec {harness.WORKER} "$@"
""", mode=0o755)

    def program_job(self, program, hosts=2, slots=2, name="demo", mesh=None, **keys):
        one = {"dims": {"host": hosts, "slot": slots}, "program": program, **(mesh or {})}
        supervision = keys.pop("supervision", {})
        if supervision is not None:
            keys["supervision"] = {**FAIL_FAST, **supervision}
        return self.spec(json.dumps({"version": 1, "job": name, "meshes": {"m": one}, **keys}, indent=1), f"{name}.yaml")

    def planting(self, script):
        """A MONARCH_WORKER whose guard runs `script` first, with JOB naming the job's folder."""
        real = shlex.quote(harness.WORKER)
        return self.write("worker", "#!/bin/sh\n[ $# = 0 ] || [ \"$1\" != keep ] && exec " + real + ' "$@"\n'
                          "for word; do [ \"$last\" = --job-dir ] && JOB=$word; last=$word; done\n"
                          + script + "\nexec " + real + ' "$@"\n', mode=0o755)

    def wait_for_marks(self, name, ranks, timeout=harness.DEADLINE_S):
        """Until each of the ranks (a number of them, or a list) made its mark; what they wrote: their pid in the shell."""
        ranks = range(ranks) if isinstance(ranks, int) else ranks
        paths = [self.path("work", f"{name}.{rank}") for rank in ranks]
        harness.wait_for(lambda: all(map(os.path.exists, paths)),
                         lambda: f"marks {name} of {list(ranks)}; there are {self.marks(name)}\n" +
                         "\n".join(map(repr, self.started())), timeout)
        return [int(self.read(path)) for path in paths]

    def marks(self, name):
        """Ranks that made this mark."""
        found = glob.glob(self.path("work", f"{name}.*"))
        return sorted(int(path.rpartition(".")[2]) for path in found if path.rpartition(".")[2].isdigit())

    def started(self):
        return self._running

    def process(self, role, host=None):
        """The live process with this role: run, supervisor, guard, keeper or daemon (of a host, where there are more)."""
        found = harness.wait_for(lambda: self.processes_of(role, host), lambda: f"a {role} among " + "\n".join(
            map(str, self.processes())))
        self.assertEqual(len(found), 1, found)
        return found[0]

    def processes_of(self, role, host=None):
        if role == "supervisor":
            found = self.find("monarch", "supervise")
        elif role == "guard":
            found = self.find("monarch-worker", "keep")
        elif role == "daemon":
            found = self.find("monarch-worker", "daemon")
        else:
            found = [p for p in self.find("monarch-worker") if p.arguments[1:2] == [b"--job"]]
        pids = {p.pid for p in found}
        found = [p for p in found if p.parent not in pids]  # a child looks like its parent until it has executed its program
        if host is None or role in ("supervisor", "guard"):
            return found
        keepers = {h["name"]: h["keeper_pid"] for h in self.status()["hosts"]}
        return [p for p in found if (p.parent if role == "daemon" else p.pid) == keepers[host]]

    def status(self, *job):
        done = self.monarch("status", "--json", *job)
        self.assertEqual(done.status, 0, done)
        return done.json()[0]

    def count_in(self, name):
        """The number that a rank writes to this file in work/ over and over: 0 before it does, and while it is at it."""
        path = self.path("work", name)
        return int(self.read(path).strip() or 0) if os.path.exists(path) else 0

    def log(self, name, job=None):
        return self.read(self.job_file(name, job))

    def supervisor_log(self):
        return "".join(f"--- {job}\n{self.log('supervisor.log', job)}" for job in self.jobs())

    def assert_result(self, finished, status, outcome, cause=None):
        """Status of the command, and what verdict.json says: exit code, outcome, and the fields of `cause`."""
        if finished.status != status:
            self.fail(f"status {finished.status}, not {status}: {finished}\n{self.supervisor_log()}")
        if not os.path.exists(self.job_file("verdict.json")):
            self.fail(f"no verdict: {finished}\n{self.supervisor_log()}")
        verdict = self.verdict()
        self.assertEqual((verdict["exit_code"], verdict["outcome"]), (status, outcome), verdict)
        if verdict["left_behind"]:
            self.fail(f"left behind: {verdict['left_behind']}: {finished}\n{self.supervisor_log()}")
        for key, value in (cause or {}).items():
            self.assertIsNotNone(verdict["cause"], verdict)
            if isinstance(value, re.Pattern):
                self.assertRegex(verdict["cause"][key], value, verdict)
            else:
                self.assertEqual(verdict["cause"][key], value, verdict)
        return verdict

    def end_of(self, run, status, outcome="failed", cause=None, timeout=harness.DEADLINE_S):
        """Waits for `run`, asserts its result and that nothing is left; what it was."""
        finished = run.finished(timeout)
        verdict = self.assert_result(finished, status, outcome, cause)
        self.assert_nothing_left()
        return finished, verdict

    def signal_by_pid(self, pid, number=signal.SIGKILL):
        """Signals a process of this test that wrote down its own pid."""
        process = next((p for p in self.processes() if p.pid == pid), None)
        self.assertIsNotNone(process, f"process {pid} is none of this test")
        self.kill(process, number)
