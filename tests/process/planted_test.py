"""What others planted where we are about to write is not followed, not written to, and named; other users get no answer.

A guard that plants before it begins stands in for whoever was faster: it puts a link, another's file or a fifo in the place of
each file of a job, of which a real attacker knows the names as well as we do.
"""

import json
import os
import stat

import harness
import jobs
import users

VICTIM = "precious"

CONNECT = """
import socket, sys
link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
link.settimeout(20)
link.connect(sys.argv[1])
try:
    print("answer", link.recv(100))
except ConnectionResetError:
    print("answer b''")
"""

SPEAK = """
import socket, sys
link = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
link.connect(sys.argv[1])
link.send(b"X_MONARCH_STEP=666\\nSTATUS=foreign")
print("sent")
"""


class Planted(jobs.JobTest):
    def victim(self):
        path = self.write("victim", VICTIM, mode=0o644)
        return path

    def assert_unharmed(self, path):
        self.assertEqual(self.read(path), VICTIM)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o644)

    def run_with(self, script):
        return self.monarch("run", self.job("exit 0", hosts=1, slots=1), env={"MONARCH_WORKER": self.planting(script)})

    def test_links_in_the_place_of_a_jobs_files(self):
        victim = self.victim()
        # Files of the supervisor before it is ready, then of the worker and its ranks.
        for name in ("lock", "key", "ports.json", "endpoint.json", "journal.0001", "verdict.json", "logs/worker.v1.log"):
            with self.subTest(name=name):
                done = self.run_with(f"mkdir -p -m 700 $JOB/logs; ln -sf {victim} $JOB/{name}")
                job, = self.jobs()
                path = self.path("state", "jobs", job, name)
                self.assert_unharmed(victim)
                if done.status == 0:
                    # Replaced as a whole, never written through.
                    self.assertFalse(os.path.islink(path), path)
                else:
                    self.assertIn(job, done.err + self.supervisor_log(), done)
                    self.assertIn(os.path.basename(name), done.err + self.supervisor_log(), done)
                self.assert_nothing_left()
                self.forget(job)

    def test_a_link_in_the_place_of_a_jobs_folder(self):
        elsewhere = self.path("work", "elsewhere")
        os.mkdir(elsewhere)
        for name, script in (("logs", f"rmdir $JOB/logs 2>/dev/null; ln -s {elsewhere} $JOB/logs"),
                             ("logs/m", f"mkdir -p -m 700 $JOB/logs; ln -s {elsewhere} $JOB/logs/m")):
            with self.subTest(name=name):
                done = self.run_with(script)
                job, = self.jobs()
                self.assertEqual(os.listdir(elsewhere), [], done)
                self.assertIn(f"{job}/{name}", done.err + self.supervisor_log() + self.worker_logs(job), done)
                self.assert_nothing_left()
                self.forget(job)

    def worker_logs(self, job):
        path = self.job_file("logs/worker.v1.log", job)
        return self.read(path) if os.path.isfile(path) else ""

    def test_fifos_hold_nobody(self):
        for name in ("lock", "key", "ports.json", "journal.0001", "logs/worker.v1.log"):
            with self.subTest(name=name):
                done = self.run_with(f"mkdir -p -m 700 $JOB/logs; mkfifo -m 600 $JOB/{name}")
                job, = self.jobs()
                planted = self.path("state", "jobs", job, name)
                if os.path.exists(planted) and stat.S_ISFIFO(os.stat(planted).st_mode):
                    os.unlink(planted)  # it would hold whoever reads it here
                self.assertLess(done.seconds, 20, done)
                if done.status != 0:
                    self.assertIn(job, done.err + self.supervisor_log(), done)
                    self.assertIn(os.path.basename(name), done.err + self.supervisor_log(), done)
                self.assert_nothing_left()
                self.forget(job)

    def forget(self, job):
        os.rename(self.path("state", "jobs", job), self.path("work", job))

    def test_folders_that_are_links_or_others_to_write(self):
        os.mkdir(self.path("state"), 0o700)
        for place in (("state", "jobs"), ("run", "monarch")):
            path = self.path(*place)
            for what, plant in (("a link", lambda p: os.symlink(self.path("work"), p)),
                                ("writable by all", lambda p: (os.mkdir(p), os.chmod(p, 0o777))),
                                ("a file", lambda p: open(p, "w", encoding="ascii").close())):
                with self.subTest(path=path, what=what):
                    plant(path)
                    done = self.monarch("run", self.job("exit 0", hosts=1, slots=1))
                    self.assertIn(done.status, (2, 70), done)
                    self.assertIn(path, done.err)
                    self.forget_folder(path)

    def forget_folder(self, path):
        if os.path.islink(path) or not os.path.isdir(path):
            os.unlink(path)
        else:
            os.rmdir(path)
        for job in self.jobs():
            self.forget(job)


class OtherUsers(users.UserTest):
    def running(self):
        run = self.start("run", self.job("mark there; until [ -e go ]; do nap 0.05; done", hosts=1, slots=2))
        self.wait_for_marks("there", 2)
        return run, self.jobs()[0]

    def finish(self, run):
        self.write("go", "")
        self.end_of(run, 0, "succeeded")

    def test_another_users_connection_is_dropped_and_counted(self):
        self.takes_root("becoming another user")
        run, job = self.running()
        door = self.path("run", "monarch", f"{job}.sock")
        done = self.as_other("/usr/bin/python3", "-c", CONNECT, door)
        self.assertRegex(done.err, "PermissionError")  # by the folder's mode
        for place in (self.folder, self.path("run"), self.path("run", "monarch"), door):
            os.chmod(place, 0o777)
        done = self.as_other("/usr/bin/python3", "-c", CONNECT, door)
        self.assertEqual(done.out, "answer b''\n", done)
        self.assertEqual(self.status()["counters"]["viewers.refused"], 1)
        os.chmod(self.path("run", "monarch"), 0o700)
        self.finish(run)

    def test_a_ranks_sockets_hear_its_user_alone(self):
        self.takes_root("becoming another user")
        script = "env | grep -E '^(NOTIFY_SOCKET|MONARCH_SOCKET|MONARCH_EVENTS)=' > doors; mark there\n"
        run = self.start("run", self.job(script + "until [ -e go ]; do nap 0.05; done", hosts=1, slots=1))
        self.wait_for_marks("there", 1)
        doors = dict(line.split("=", 1) for line in self.read("work", "doors").splitlines())
        if not doors:
            self.write("go", "")
            self.end_of(run, 0, "succeeded")
            self.skipTest("ranks of this build have no sockets to speak at")
        self.assertEqual(set(doors), {"NOTIFY_SOCKET", "MONARCH_SOCKET", "MONARCH_EVENTS"})
        for door in doors.values():
            self.assertEqual(stat.S_IMODE(os.stat(door).st_mode), 0o600, door)
            self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(door)).st_mode), 0o700, door)
            self.assertEqual(os.stat(door).st_uid, self.uid, door)
        notify = doors["NOTIFY_SOCKET"]
        self.assertRegex(self.as_other("/usr/bin/python3", "-c", SPEAK, notify).err, "PermissionError")
        opened = [self.folder, self.path("run"), self.path("run", "monarch"), os.path.dirname(notify)]
        for place in (*opened, *doors.values()):
            os.chmod(place, 0o777)
        self.assertEqual(self.as_other("/usr/bin/python3", "-c", SPEAK, notify).out, "sent\n")
        for name in ("MONARCH_SOCKET", "MONARCH_EVENTS"):
            self.assertEqual(self.as_other("/usr/bin/python3", "-c", CONNECT, doors[name]).out, "answer b''\n", name)
        # The rank itself speaks after the other user did: once it is heard, the other one would have been.
        done = self.as_user("/usr/bin/python3", "-c", SPEAK.replace("666", "17").replace("STATUS", "OTHER"), notify)
        self.assertEqual(done.out, "sent\n", done)
        for place in opened[1:]:
            os.chmod(place, 0o700)
        progress = lambda: self.status()["meshes"][0]["ranks"][0].get("progress") or {}
        harness.wait_for(lambda: progress().get("step") == 17, lambda: f"what the rank said: {progress()}")
        self.assertNotIn("foreign", json.dumps(progress()), "a word stays until another takes its place")
        self.write("go", "")
        self.end_of(run, 0, "succeeded")

    def test_no_socket_is_without_a_mode(self):
        self.takes_root("seeing whose sockets they are")
        run, _ = self.running()
        pids = {p.pid for p in self.processes() if p.program in ("monarch", "monarch-worker")}
        inodes = set()
        for pid in pids:
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            inodes |= {link[8:-1] for link in links if link.startswith("socket:[")}
        names = [line.split()[7:] for line in self.read("/proc/net/unix").splitlines()[1:] if line.split()[6] in inodes]
        bound = [name[0] for name in names if name]
        self.assertTrue(any(name.endswith(".sock") for name in bound), bound)
        self.assertEqual([name for name in bound if name.startswith("@")], [], "an abstract socket")
        self.finish(run)

    def test_nobody_stops_another_users_job_or_looks_into_it(self):
        self.takes_root("becoming another user")
        run, job = self.running()
        for place, _, _ in os.walk(self.folder):
            if not place.startswith(self.path("state")) and not place.startswith(self.path("run")):
                os.chmod(place, 0o755)
        for where in ({}, {"MONARCH_STATE_DIR": self.path("state")}):
            for command in (["stop", job], ["stacks", job], ["signal", job, "KILL"], ["hold", job]):
                with self.subTest(where=where, command=command):
                    done = self.as_other(self.program, *command, env={"HOME": "/nonexistent", "XDG_STATE_HOME": None,
                                                                      "MONARCH_STATE_DIR": "/nonexistent/state", **where})
                    self.assertNotEqual(done.status, 0, done)
                    self.assertEqual(done.out, "", done)
        status = self.status()
        self.assertEqual((status["phase"], [r["phase"] for r in status["meshes"][0]["ranks"]]), ("running", ["running"] * 2))
        self.assertTrue(all(r["watched"] for r in status["meshes"][0]["ranks"]), status)
        self.finish(run)


if __name__ == "__main__":
    harness.main()
