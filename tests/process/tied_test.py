"""`monarch up --tied`: a job that is there for a program stops when that ends, whatever else has died, and is in nobody's way."""

import json
import os
import socket
import subprocess

import harness
import jobs
import leftovers

# Ready once it may be, so that `up` is there until then.
PROGRAM = ("mark there\nuntil [ -e go ]; do nap 0.02; done\npython3 -B -c 'import monarch_rank; monarch_rank.ready()'\n" + jobs.FOREVER)


class Tied(jobs.JobTest):
    def spec_of(self, script, **keys):
        return self.read(self.job(script, 1, 1, **keys))

    def up(self, held, spec, *flags):
        """The command, as a program starts it that holds the other end, in one process group with it."""
        errors = os.open(self.path("work", "errors"), os.O_RDWR | os.O_CREAT, 0o600)
        up = subprocess.Popen([harness.MONARCH, "up", "--tied", str(held), "--json", *flags, "-"], env=self.environment,
                              cwd=self.path("work"), pass_fds=[held], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        os.close(errors)
        self.addCleanup(up.stdout.close)
        up.stdin.write(spec.encode())
        up.stdin.close()
        return up

    def said(self, up):
        """Its one line."""
        return json.loads(up.stdout.readline())

    def holders(self, inode):
        """Of the test's processes those that have this pipe open, by their command."""
        def has_it(pid):
            return any(os.path.realpath(f"/proc/{pid}/fd/{fd}").endswith(f"pipe:[{inode}]") for fd in leftovers.names(f"/proc/{pid}/fd"))
        return sorted(p.arguments[1].decode() for p in self.processes() if has_it(p.pid))

    def test_it_outlives_up_and_ends_with_the_program_though_the_supervisor_is_dead_then(self):
        reader, writer = os.pipe()
        spec = self.spec_of(PROGRAM, mesh={"ready": "notify"}, tensors={})
        up = self.up(reader, spec)
        started = self.said(up)  # before any rank is ready
        job = started["job"]
        self.assertIsNone(up.poll())
        self.assertEqual(os.getsid(up.pid), up.pid)  # Ctrl-C of the terminal here does not come there
        v1, = started["hosts"]
        self.assertEqual((started["v"], started["type"], started["phase"], v1), (1, "started", "starting", {"name": "v1", "door": started["door"]}))
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            door.connect(started["door"])
        self.assertEqual([host["door"] for host in self.status(job)["hosts"]], [started["door"]])
        self.wait_for_marks("there", 1)

        up.kill()
        up.wait()
        self.assertEqual(up.stdout.read(), b"")  # nobody else has what a shell would wait for
        os.close(reader)
        if os.geteuid() == 0:  # nobody else may look
            self.assertEqual(self.holders(os.fstat(writer).st_ino), ["keep", "supervise"])
        self.assertEqual([p for p in self.processes() if os.getsid(p.pid) == os.getsid(0)], [])
        self.write("go", "")
        harness.wait_for(lambda: self.status(job)["phase"] == "running", "the job to run")

        supervisor, = self.find("monarch", "supervise")
        self.kill(supervisor)
        os.close(writer)
        self.assertEqual(self.monarch("wait", job).status, 0)
        self.assert_over(job)

    def assert_over(self, job):
        verdict = self.verdict(job)
        self.assertEqual((verdict["outcome"], verdict["exit_code"], verdict["reason"]), ("stopped", 0, "its program ended"))
        stopping, = [e for e in self.monarch("events", job, "--json").json() if e["event"] == "job.stopping"]
        self.assertEqual(stopping["message"], "stopping: its program ended")
        self.assert_nothing_left()

    def test_a_job_without_posts_and_a_socket(self):
        ours, theirs = socket.socketpair()
        spec = self.spec_of(jobs.FOREVER)
        path = self.path("work", "demo.yaml")
        up = self.up(theirs.fileno(), spec, "-q")
        started = self.said(up)
        self.assertEqual(up.wait(), 0)
        theirs.close()
        job = started.pop("job")
        self.assertEqual(started, {"v": 1, "type": "started", "phase": "running", "door": None, "hosts": [{"name": "v1", "door": None}]})
        self.assertEqual(self.read("work", "errors"), "")
        # Who is not tied to it may have it as it is.
        again = self.monarch("up", "--json", "-q", path)
        self.assertEqual((again.status, again.json(), again.err), (0, [{**started, "job": job}], ""))
        ours.send(b"not looked at")
        ours.close()
        self.assertEqual(self.monarch("wait", job).status, 0)
        self.assert_over(job)


if __name__ == "__main__":
    harness.main()
