"""The key of a job is nowhere but in its file, and that is gone after the end; files and folders are its owner's alone.

Who knows a secret shows nothing of itself, and what the submitting shell passes on reaches the ranks and no file.
"""

import base64
import glob
import os
import stat

import harness
import jobs
import users


class Secrets(jobs.JobTest):
    def test_the_key_is_in_its_file_alone(self):
        run = self.start("run", self.job("env; mark there; until [ -e go ]; do nap 0.05; done; exit 7"))
        self.wait_for_marks("there", 4)
        path = self.job_file("key")
        with open(path, "rb") as file:
            key = file.read()
        self.assertEqual(len(key), 32)
        needles = self.spellings(key)
        for process in self.processes():
            for part in ("cmdline", "environ"):
                try:
                    with open(f"/proc/{process.pid}/{part}", "rb") as file:
                        self.assert_without(needles, file.read(), f"{part} of {process}")
                except (FileNotFoundError, ProcessLookupError):
                    pass  # a command of a rank, which has ended
                except PermissionError:  # who holds the key is undumpable: only root may look
                    self.assertIn((process.program, part), (("monarch", "environ"), ("monarch-worker", "environ")))
        self.assert_files_without(needles, but=path)
        self.monarch("status", "--json")
        self.write("go", "")
        done, _ = self.end_of(run, 7)
        self.assertFalse(os.path.exists(path))
        self.assert_without(needles, (done.out + done.err).encode(), "what run said")
        self.assert_files_without(needles)

    def test_a_canary_would_be_found(self):
        needles = self.spellings(b"k" * 32)
        self.write("log", f"the key is {(b'k' * 32).hex()}")
        with self.assertRaises(AssertionError):
            self.assert_files_without(needles)

    def test_what_is_kept_is_its_owners_alone(self):
        for mask in (0o000, 0o077, 0o022):
            with self.subTest(umask=oct(mask)):
                self.kept_under(mask)

    def kept_under(self, mask):
        spec = self.job("umask > umask.$RANK; mark there; until [ -e go ]; do nap 0.05; done")
        run = self.start_program("/bin/sh", "-c", f"umask {mask:o}; exec {harness.MONARCH} run {spec}")
        self.wait_for_marks("there", 4)
        for top in (self.path("state"), self.path("run")):
            for place, _, names in os.walk(top):
                self.assertEqual(stat.S_IMODE(os.stat(place).st_mode), 0o700, place)
                for name in names:
                    what = os.lstat(os.path.join(place, name))
                    self.assertEqual(stat.S_IMODE(what.st_mode) & 0o077, 0, os.path.join(place, name))
        # A rank has the umask of whoever runs it, not ours.
        self.assertEqual(int(self.read("work", "umask.0"), 8), mask)
        self.write("go", "")
        self.assertEqual(run.wait(), 0, run)
        self.assert_nothing_left()
        for name in ("go", *(f"there.{rank}" for rank in range(4))):
            os.unlink(self.path("work", name))

    @staticmethod
    def spellings(key):
        """As it is, and as text would show it: hexadecimal, base64, Z85 of libzmq."""
        digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
        z85 = ""
        for i in range(0, len(key), 4):
            number = int.from_bytes(key[i:i + 4], "big")
            z85 += "".join(digits[number // 85 ** power % 85] for power in (4, 3, 2, 1, 0))
        return [key, key.hex().encode(), key.hex().upper().encode(), base64.b64encode(key), z85.encode()]

    def assert_without(self, needles, data, where):
        for needle in needles:
            self.assertNotIn(needle[:24], data, where)

    def assert_files_without(self, needles, but=None):
        for path in glob.glob(self.path("**"), recursive=True):
            if path != but and os.path.isfile(path):
                with open(path, "rb") as file:
                    self.assert_without(needles, file.read(), path)


# Prints the pids, of those given, whose environment holds the canary, and for the others why it cannot be read.
READ_ENVIRONMENTS = """
import sys
for pid in sys.argv[2:]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            print(pid, "found" if sys.argv[1].encode() in file.read() else "absent")
    except OSError as error:
        print(pid, error.strerror)
"""


class Hidden(users.UserTest):
    CANARY = "canary-3c1f5a9be0d24871"
    OURS = ("guard", "supervisor", "keeper", "daemon")

    def running(self, hosts=1):
        run = self.start("run", self.job("mark there; until [ -e go ]; do nap 0.05; done; exit 7", hosts=hosts, slots=2,
                                         mesh={"env_pass": ["CANARY_*"]}), env={"CANARY_TOKEN": self.CANARY})
        ranks = self.wait_for_marks("there", 2 * hosts)
        viewer, = self.find("monarch", "run")
        return run, {"viewer": viewer, **{role: self.process(role) for role in self.OURS}}, ranks

    def test_who_knows_secrets_is_hidden_and_dumps_no_core(self):
        run, ours, ranks = self.running()
        for role, process in ours.items():
            # What others of the user may not look into belongs to root (proc(5), prctl(2) PR_SET_DUMPABLE).
            self.assertEqual(os.stat(f"/proc/{process.pid}/environ").st_uid, 0, role)
        for role in ("supervisor", "daemon"):
            self.assertRegex(self.read(f"/proc/{ours[role].pid}/limits"), r"Max core file size +0 +0 ", role)
            self.assertEqual(int(self.read(f"/proc/{ours[role].pid}/coredump_filter"), 16), 0, role)
        for pid in ranks:
            self.assertEqual(os.stat(f"/proc/{pid}/environ").st_uid, self.uid, "a rank is its user's")
            for what in ("limits", "coredump_filter"):
                core = [line for line in self.read(f"/proc/{pid}/{what}").splitlines() if "core" in line or what != "limits"]
                mine = [line for line in self.read(f"/proc/self/{what}").splitlines() if "core" in line or what != "limits"]
                self.assertEqual(core, mine, f"{what} of a rank")
        self.write("go", "")
        self.end_of(run, 7)

    def test_what_the_shell_passes_on_reaches_the_ranks_alone(self):
        run, ours, ranks = self.running()
        pids = [*(p.pid for p in ours.values()), *ranks]
        def environments(done):
            self.assertEqual(done.status, 0, done)
            return {int(line.split()[0]): line.partition(" ")[2] for line in done.out.splitlines()}
        program = ("/usr/bin/python3", "-c", READ_ENVIRONMENTS, self.CANARY, *pids)
        mine = environments(self.as_user(*program))
        self.assertEqual(mine, {**{p.pid: "Permission denied" for p in ours.values()}, **{p: "found" for p in ranks}})
        for process in self.processes():
            self.assertNotIn(self.CANARY.encode(), b" ".join(process.arguments), process)
        if os.geteuid() == 0:
            self.assertEqual(set(environments(self.as_other(*program)).values()), {"Permission denied"})
        self.assertEqual(self.files_with(self.CANARY.encode()), [])
        self.monarch("status", "--json")
        self.write("go", "")
        done, _ = self.end_of(run, 7)
        self.assertNotIn(self.CANARY, done.out + done.err)
        self.assertEqual(self.files_with(self.CANARY.encode()), [], "after the end")

    def test_what_is_said_of_a_job_holds_no_value_of_the_shell(self):
        """`env_pass` and $(env.NAME), of two variables: in the environment of ranks and of what they start, nowhere else."""
        passed, named = "canary-7be20c51f0e94a66", "canary-a94d11c2387b4f05"
        script = "sleep 987654 & mark there; until [ -e go ]; do nap 0.05; done; kill $!; exit 7"
        mesh = {"env_pass": ["CANARY_*"], "env": {"DERIVED": "key=$(env.SHELL_KEY)"}}
        spec = self.job(script, hosts=2, slots=1, mesh=mesh)
        shell = {"CANARY_TOKEN": passed, "SHELL_KEY": named}
        said = [self.monarch(*words, spec, env=shell) for words in (("plan",), ("plan", "--json"), ("validate",))]
        run = self.start("run", "--json", spec, env=shell)
        ranks = self.wait_for_marks("there", 2)
        for pid in ranks:
            self.assertLessEqual({f"DERIVED=key={named}", f"CANARY_TOKEN={passed}"}, set(self.environment_of(pid)))
        harness.wait_for(lambda: len(self.find("sleep", "987654")) == 2, "what the ranks started")
        for sleeper in self.find("sleep", "987654"):
            self.assertIn(f"DERIVED=key={named}", self.environment_of(sleeper.pid))
        for process in self.processes():
            line = b" ".join(process.arguments)
            self.assertFalse(passed.encode() in line or named.encode() in line, process)
        said += [self.monarch(*words) for words in (("status",), ("status", "--json"), ("ps",), ("ps", "--json"))]
        self.write("go", "")
        said.append(self.end_of(run, 7)[0])
        said += [self.monarch(*words, "last") for words in (("events",), ("events", "--json"), ("logs",), ("status", "--json"))]
        said.append(self.as_user("/bin/ps", "-eo", "args"))
        for done in said:
            self.assertFalse(passed in done.out + done.err or named in done.out + done.err, done)
        for canary in (passed, named):
            self.assertEqual(self.files_with(canary.encode()), [])

    def environment_of(self, pid):
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().decode().split("\0")

    def files_with(self, needle):
        """Also in the journal, the kept spec and every log: the canary is searched for as it is."""
        found = []
        for path in glob.glob(self.path("**"), recursive=True):
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    found += [path] if needle in file.read() else []
        return found


if __name__ == "__main__":
    harness.main()
