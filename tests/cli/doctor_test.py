"""`monarch doctor` on this machine: what it says of places, of a spec and of what crashed jobs left; its exit codes."""

import os
import shutil
import signal
import socket

import harness
import jobs


class Doctor(jobs.JobTest):
    def findings(self, *arguments, **options):
        done = self.monarch("doctor", "--json", *arguments, timeout=60, **options)
        return done, {f["check"]: f for f in done.json()}

    def test_it_looks_at_every_part_and_changes_nothing(self):
        done, found = self.findings()
        for check in ("libzmq", "monarch-worker", "version", "state directory", "runtime directory", "earlier jobs",
                      "sockets", "loopback", "containment", "stack dumps", "open files (ulimit -n)", "shared memory", "clock source",
                      "processors", "GPUs", "RDMA", "python"):
            self.assertTrue(check in found or any(c.startswith(check) for c in found), (check, done))
        for finding in done.json():
            self.assertEqual((finding["v"], finding["type"]), (1, "finding"))
            if finding["health"] != "fine":
                self.assertTrue(finding["means"], finding)
        self.assertFalse(os.path.exists(self.path("state")))
        table = self.monarch("doctor", timeout=60)
        self.assertEqual(table.status, done.status)
        self.assertRegex(table.out, r"\ACHECK +STATE +FOUND\n")
        self.assertRegex(table.err, r"monarch: \d+ findings: \d+ failed, \d+ warnings?, \d+ notes?\n")
        self.assert_nothing_left()

    def test_it_says_whose_package_python_imports(self):
        python = {"PYTHONPATH": harness.MODULES, "PATH": "/usr/bin:/bin"}
        ours = self.findings(env=python)[1]["python"]
        self.assertEqual((ours["health"], ours["found"]), ("fine", f"/usr/bin/python3 imports ours, {harness.MODULES}/monarch"))
        # One that has the same name, alone and in one folder with ours: its actors are a folder, which Python prefers.
        for mixed in (False, True):
            other = self.path(f"other-{mixed}")
            if mixed:
                shutil.copytree(harness.MODULES, other)
            os.makedirs(os.path.join(other, "monarch", "actor"))
            for name in ("monarch", "monarch/actor"):
                with open(os.path.join(other, name, "__init__.py"), "a", encoding="utf-8"):
                    pass
            done, found = self.findings(env={**python, "PYTHONPATH": other})
            self.assertEqual(found["python"]["health"], "note", done)
            self.assertEqual(found["python"]["found"], f"/usr/bin/python3 imports another package monarch, {other}/monarch")
            self.assertIn("PYTHONPATH=$(monarch python)", found["python"]["fix"])
        without = self.findings(env={"PATH": self.path("work")})[1]["python"]
        self.assertEqual((without["health"], without["found"]), ("fine", "no python3 in PATH"))

    def test_a_place_that_cannot_hold_jobs_fails(self):
        os.mkdir(self.path("open"), 0o777)
        os.chmod(self.path("open"), 0o777)
        done, found = self.findings(env={"MONARCH_STATE_DIR": self.path("open")})
        self.assertEqual(done.status, 1, done)
        self.assertEqual(found["state directory"]["health"], "failed")
        self.assertIn("can be written by others", found["state directory"]["found"])

    def test_a_spec_is_held_against_the_machine(self):
        good = self.job("true\n")
        _, found = self.findings(good)
        self.assertEqual((found["mesh m"]["health"], found["virtual hosts"]["health"]), ("fine", "fine"), found)
        bad = self.program_job(["no-such-program"], name="bad")
        done, found = self.findings(bad)
        self.assertEqual(done.status, 1, done)
        self.assertEqual(found["mesh m"]["found"], "no no-such-program in PATH")
        self.assertIn("exit code 127", found["mesh m"]["means"])
        # What it needs of the machine, also where a flag says so.
        greedy, found = self.findings(good, "--set", "meshes.m.resources.cpus=100000")
        self.assertEqual(greedy.status, 1, greedy)
        self.assertTrue(any(f["found"].startswith("v1 needs 200000 cores, and there are ") for f in greedy.json()), greedy)
        with socket.create_server(("", 0)) as taken:
            port = taken.getsockname()[1]
            done, _ = self.findings(self.job("true\n", hosts=1, slots=1, mesh={"ports": {"http": port}}, name="porty"))
            self.assertEqual(done.status, 1, done)
            self.assertIn(f"port {port} (http): Address already in use", done.out)
        done, _ = self.findings(self.job("true\n", mesh={"wrap": ["no-such-wrapper"]}, name="wrapped"))
        self.assertEqual(done.status, 1, done)
        self.assertIn("no no-such-wrapper in PATH", done.out)
        nothing = self.monarch("doctor", "--set", "job=x")
        self.assertEqual((nothing.status, nothing.out), (2, ""), nothing)
        broken = self.spec("version: 1\n", "broken.yaml")
        self.assertEqual(self.monarch("doctor", broken).status, 2)

    def test_what_a_crash_left_is_named_with_the_command_that_removes_it(self):
        done = self.monarch("up", self.job("mark there\n" + jobs.FOREVER))
        self.assertEqual(done.status, 0, done)
        job = done.out.strip()
        self.wait_for_marks("there", 4)
        _, found = self.findings()
        self.assertNotIn(job, found["earlier jobs"]["found"])
        self.assertEqual(found["sockets"]["found"], "none is stale; 1 in use")
        guard, supervisor = self.process("guard"), self.process("supervisor")
        self.kill(supervisor, signal.SIGSTOP)
        self.kill(guard)
        self.kill(supervisor)
        self.wait_gone(supervisor)
        lines = [f for f in self.findings()[0].json() if f["check"] in ("earlier jobs", "sockets") and job in f["found"]]
        self.assertEqual({f["fix"] for f in lines}, {f"monarch rm {job}"}, lines)
        self.assertTrue(any(f["found"] == f"{job} has neither a supervisor nor a verdict" for f in lines), lines)
        self.assertTrue(any(f["found"].startswith(f"{job} is over, and left ") for f in lines), lines)
        self.assertEqual(self.monarch("rm", job).status, 0)
        _, found = self.findings()
        self.assertNotIn(job, found["earlier jobs"]["found"])
        self.assertEqual(found["sockets"]["health"], "fine", found)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
