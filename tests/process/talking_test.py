"""Ranks talk back: what they say reaches status, what they are told reaches them, and neither costs or leaves anything."""

import glob
import json
import os
import re
import shutil
import sys

import harness
import jobs
import users

sys.dont_write_bytecode = True
HEAD = "import json, os, signal, sys, time\nimport monarch_rank as monarch\nrank = os.environ['MONARCH_RANK']\n" + jobs.PYTHON_MARK
SLEEP = "while True: time.sleep(1)\n"


class TalkingTest(jobs.JobTest):
    def python_job(self, script, hosts=1, slots=1, mesh=None, **keys):
        self.write("rank.py", HEAD + script)
        env = {"PYTHONPATH": harness.MODULES, "PYTHONDONTWRITEBYTECODE": "1"}
        return self.program_job(["python3", "rank.py"], hosts, slots, mesh={"env": env, **(mesh or {})}, **keys)

    def rank(self, number=0, mesh=0):
        return self.status()["meshes"][mesh]["ranks"][number]

    def wait_for_rank(self, holds, number=0, mesh=0):
        """Until the rank of status holds; that rank. Its progress may not be there yet."""
        def look():
            done = self.monarch("status", "--json")
            if done.status != 0:
                return None  # the job is not there yet
            rank = done.json()[0]["meshes"][mesh]["ranks"][number]
            return rank if holds(rank) else None
        return harness.wait_for(look, lambda: f"rank {number} as it should be: {self.monarch('status', '--json')!r}")

    def said(self, **values):
        """For wait_for_rank: its progress has these values."""
        return lambda rank: rank["progress"] and all(rank["progress"][k] == v for k, v in values.items())

    def socket_folders(self):
        return glob.glob(self.path("run", "monarch", "w-*"))

    def stop(self, run, status=143):
        self.assertEqual(self.monarch("stop").status, 0)
        self.end_of(run, status, "stopped")
        self.assertEqual(self.socket_folders(), [])


class Progress(TalkingTest):
    def test_status_shows_what_ranks_say(self):
        run = self.start("run", self.python_job(
            "monarch.status('loading')\nmonarch.step(17)\nmonarch.metric('loss', 2.5)\nmonarch.metric('norm', float('nan'))\n"
            "monarch.phase('checkpoint')\n" + SLEEP, slots=2))
        whole = self.said(step=17, phase="checkpoint", status="loading", metrics={"loss": 2.5, "norm": "nan"})
        rank = self.wait_for_rank(whole, number=1)
        self.assertLess(rank["progress"]["age_milliseconds"], 30_000)
        self.wait_for_rank(whole, number=0)
        text = self.monarch("status").out
        self.assertRegex(text, r"  RANK  HOST  PHASE +PID +GENERATION  READY  STEP  IN +METRICS +STATUS +SAID +END\n"
                               r"  0     v1    running +\d+ +1 +yes +17 +checkpoint  loss 2.5, norm nan  loading +[\d.m]+s ago")
        self.stop(run)

    def test_what_is_not_taken_is_counted_by_name_on_its_host(self):
        run = self.start("run", self.python_job(
            "import socket\nlink = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
            "say = lambda words: link.sendto(words, os.environ['NOTIFY_SOCKET'])\n"
            "if rank == '1':\n  for i in range(3): say(b'X_MONARCH_STEP=x')\n  say(b'x' * 5000)\n" + SLEEP, hosts=2))
        none = dict.fromkeys(("bad_values", "too_long", "foreign", "connections", "slow_readers"), 0)
        drops = lambda: {h["name"]: h["talk_drops"] for h in self.status()["hosts"]}
        run.wait_for_err("job.running")
        harness.wait_for(lambda: drops() == {"v1": none, "v2": {**none, "bad_values": 3, "too_long": 1}},
                         lambda: f"counts of v2: {drops()}")
        self.assertIsNone(self.rank(1)["progress"])
        self.stop(run)

    def test_a_mesh_that_says_nothing_looks_as_before(self):
        run = self.start("run", self.job("mark there\n" + jobs.FOREVER, hosts=1, slots=1))
        self.wait_for_marks("there", 1)
        harness.wait_for(lambda: self.rank()["phase"] == "running", "a running rank")
        self.assertIsNone(self.rank()["progress"])
        self.assertRegex(self.monarch("status").out, r"  RANK  HOST  PHASE +PID +GENERATION  END\n")
        self.stop(run)

    def test_words_are_safe_for_a_terminal(self):
        run = self.start("run", self.python_job(
            "monarch._say('STATUS=' + chr(27) + '[31mred' + chr(7))\nmonarch.step(1)\n" + SLEEP))
        self.wait_for_rank(self.said(step=1))
        text = self.monarch("status").out
        self.assertIn("[31mred", text)
        self.assertNotRegex(text, r"[\x00-\x09\x0b-\x1f\x7f]")
        self.stop(run)

    def test_systemd_notify_and_any_child_may_speak(self):
        if not shutil.which("systemd-notify"):
            self.skipTest("no systemd-notify here")
        run = self.start("run", self.job("(setsid sh -c 'systemd-notify --status=\"from a child\" X_MONARCH_STEP=3')\n" +
                                         jobs.FOREVER, hosts=1, slots=1))
        self.wait_for_rank(self.said(step=3, status="from a child"))
        self.stop(run)

    def test_a_flood_delays_no_beat_and_fills_no_journal(self):
        run = self.start("run", self.python_job(
            "import socket\n"
            "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
            "s.connect(os.environ['NOTIFY_SOCKET'])\n"
            "n = 0\n"
            "while True:\n"
            "    n += 1\n"
            "    s.send(b'X_MONARCH_STEP=%d\\nX_MONARCH_METRIC=loss:%d\\nSTATUS=%d' % (n, n, n))\n", slots=2))
        self.wait_for_rank(lambda rank: rank["progress"] and rank["progress"]["step"] > 50_000)
        host, = self.status()["hosts"]
        self.assertEqual((host["phase"], host["daemon_starts"]), ("ready", 1))
        events = self.monarch("events", "--json").out
        self.assertNotIn("host.suspect", events)
        journal = sum(os.path.getsize(path) for path in glob.glob(self.job_file("journal.*")))
        self.assertLess(journal, 64 << 10)
        stopped = self.monarch("stop")
        self.assertLess(stopped.seconds, 10, stopped)
        self.end_of(run, 143, "stopped")

    def test_outside_of_monarch_nothing_happens(self):
        done = self.start_program("python3", "-c", f"import sys; sys.path.insert(0, {harness.MODULES!r})\n" + (
            "import monarch_rank as m\nm.ready()\nm.status('x')\nm.step(1)\nm.step('no number')\nm.metric('a', 1)\n"
            "m.watchdog()\nm.stopping()\nprint(list(m.events(timeout=0)), m.who())\nwith m.phase('p'): print('in')\n"),
            env={"PYTHONDONTWRITEBYTECODE": "1"}).finished()
        self.assert_output(done, 0, "[] None\nin\n", "")

    def test_a_rank_that_became_another_user_is_told_so_at_once(self):
        if os.geteuid() != 0:
            self.skipTest("becoming another user takes root")
        os.makedirs(self.path("run", "sockets"), 0o700)
        for folder in (self.folder, self.path("work")):
            os.chmod(folder, 0o755)
        os.chmod(shutil.copy(os.path.join(harness.MODULES, "monarch_rank.py"), self.path("work")), 0o644)
        doors = {name: self.path("run", "sockets", name) for name in ("NOTIFY_SOCKET", "MONARCH_SOCKET", "MONARCH_VAULT", "MONARCH_EVENTS")}
        own = {"MONARCH_MESH": "m", "MONARCH_RANK": "0", "MONARCH_GENERATION": "1", "PYTHONDONTWRITEBYTECODE": "1",
               "PYTHONPATH": self.path("work") + ":" + self.path("run", "sockets")}
        done = self.start_program(*users.becoming(users.NOBODY), "/usr/bin/python3", "-c", (
            "import monarch_rank as m\nimport monarch_tensors as t\nm.step(1)\nm.step(2)\nprint(list(m.events(timeout=0)), m.who())\n"
            "for call in (lambda: m.commit(3, 'x'), lambda: m.save(3, b'x'), m.gate, lambda: t.publisher('w')):\n"
            "  try: print(call())\n"
            "  except PermissionError as error: print(error)\n"), env={**doors, **own}).finished()
        self.assertEqual(done.status, 0, done)
        lines = done.out.splitlines()
        self.assertEqual((lines[0], len(lines)), ("[] None", 5), done)
        for line in lines[1:]:
            self.assertIn(f"this process is of user {users.NOBODY}, and ", line)
            self.assertIn(" is for user 0, who started the job", line)
        self.assertIn(": monarch_tensors: this process", lines[4].replace("[Errno 13] ", ": "))
        self.assertEqual(done.err.count("monarch does not hear this rank"), 3, done)

    def test_a_keeper_that_is_gone_hurts_no_script(self):
        gone = {"NOTIFY_SOCKET": self.path("run", "gone.n"), "MONARCH_EVENTS": self.path("run", "gone.e"),
                "MONARCH_SOCKET": self.path("run", "gone.s"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = self.start_program("python3", "-c", f"import sys; sys.path.insert(0, {harness.MODULES!r})\n" + (
            "import monarch_rank as m\nm.ready()\nm.step(1)\nprint(list(m.events(timeout=0.1)), m.who())\n"),
            env=gone).finished()
        self.assert_output(done, 0, "[] None\n", "")


class Doors(TalkingTest):
    def test_a_rank_gets_its_own_doors_and_not_those_of_systemd(self):
        run = self.start("run", self.job("env | sort > env.$MONARCH_RANK\nmark there\n" + jobs.FOREVER, slots=1), env={
            "NOTIFY_SOCKET": "/run/systemd/notify", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1", "LISTEN_FDS": "1"})
        self.wait_for_marks("there", 2)
        for rank in range(2):
            env = dict(line.split("=", 1) for line in self.read("work", f"env.{rank}").splitlines() if "=" in line)
            for name, end in (("NOTIFY_SOCKET", "n"), ("MONARCH_SOCKET", "s"), ("MONARCH_EVENTS", "e")):
                self.assertRegex(env[name], rf"^{re.escape(self.path('run', 'monarch'))}/w-[0-9a-f]{{8}}-{rank}/0\.{rank}\.{end}$")
                self.assertEqual(os.stat(env[name]).st_mode & 0o777, 0o600)
                self.assertEqual(os.stat(os.path.dirname(env[name])).st_mode & 0o777, 0o700)
            self.assertFalse({"WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS"} & set(env))
        self.stop(run)

    def test_a_rank_may_ask_who_it_is(self):
        run = self.start("run", self.python_job("print(json.dumps(monarch.who()))\n"))
        done, _ = self.end_of(run, 0, "succeeded")
        line, = [l for l in done.out.splitlines() if "{" in l]
        job, = self.jobs()
        self.assertEqual(json.loads(line[line.index("{"):]),
                         {"v": 1, "job": job, "mesh": "m", "rank": 0, "generation": 1, "host": "v1"})
        self.assertEqual(self.socket_folders(), [])

    def test_a_rank_that_hears_that_it_is_stopped_saves_and_succeeds(self):
        run = self.start("run", self.python_job(
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "monarch.ready()\nmonarch.step(5)\n"
            "for event in monarch.events():\n"
            "    if event['event'] == 'stopping':\n"
            "        with monarch.phase('checkpoint'):\n"
            "            mark('saved', json.dumps(event))\n"
            "        sys.exit(0)\n", hosts=2))
        for rank in range(2):
            self.wait_for_rank(self.said(step=5), number=rank)
        stopped = self.monarch("stop")
        self.assertLess(stopped.seconds, 20, stopped)
        self.end_of(run, 143, "stopped")
        for rank in range(2):
            event = json.loads(self.read("work", f"saved.{rank}"))
            self.assertEqual(event, {"v": 1, "event": "stopping", "signal": 15, "grace_milliseconds": 30_000})
        self.assertEqual(self.socket_folders(), [])

    def test_doors_outlive_the_daemon(self):
        run = self.start("run", self.python_job(
            "monarch.ready()\nmonarch.step(1)\nn = 1\n"
            "while True:\n"
            "    if os.path.exists('go'):\n"
            "        n = 2\n"
            "    monarch.step(n)\n"
            "    time.sleep(0.05)\n"))
        self.wait_for_rank(self.said(step=1))
        self.kill(self.process("daemon", "v1"))
        harness.wait_for(lambda: self.status()["hosts"][0]["daemon_starts"] == 2, "a second daemon")
        self.write("go", "")
        self.wait_for_rank(self.said(step=2))
        self.stop(run)

    def ended_by_kill_of(self, *roles):
        run = self.start("run", self.job("mark there\n" + jobs.FOREVER, hosts=2, slots=1))
        self.wait_for_marks("there", 2)
        self.assertEqual(len(self.socket_folders()), 2)
        self.kill_all([self.process(role, "v2") for role in roles])
        self.end_of(run, 92, cause={"kind": "host", "host": "v2"})
        self.assertEqual(self.socket_folders(), [])

    def test_nothing_is_left_of_a_killed_keeper(self):
        self.ended_by_kill_of("keeper")

    def test_nothing_is_left_of_a_killed_keeper_and_daemon(self):
        if not self.has_cgroups():
            self.skipTest("no writable cgroup here: ranks of a host whose keeper and daemon are both killed are found by nobody")
        self.ended_by_kill_of("daemon", "keeper")

    def has_cgroups(self):
        run = self.start("run", self.job("mark first\n" + jobs.FOREVER, hosts=1, slots=1, name="look"))
        self.wait_for_marks("first", 1)
        groups = harness.leftovers.cgroups(self.folder)
        self.stop(run)
        shutil.rmtree(self.path("state", "jobs"))
        return bool(groups)


class Ready(TalkingTest):
    def test_a_mesh_is_ready_when_its_ranks_say_so(self):
        run = self.start("run", self.python_job(
            "while not os.path.exists('go.' + rank): time.sleep(0.02)\n"
            "monarch.ready('serving')\n" + SLEEP, slots=2, mesh={"ready": "notify"}))
        for rank in range(2):
            self.wait_for_rank(lambda r: r["phase"] == "running", number=rank)
        self.write("go.1", "")
        self.assertEqual(self.wait_for_rank(lambda r: r["ready"], number=1)["progress"]["status"], "serving")
        self.assertFalse(self.rank(0)["ready"])
        self.assertEqual(self.status()["meshes"][0]["phase"], "running")
        self.write("go.0", "")
        harness.wait_for(lambda: self.status()["meshes"][0]["phase"] == "ready", "a ready mesh")
        # What was said stays said, also for the next daemon.
        self.kill(self.process("daemon", "v1"))
        harness.wait_for(lambda: self.status()["hosts"][0]["daemon_starts"] == 2, "a second daemon")
        self.assertEqual([r["ready"] for r in self.status()["meshes"][0]["ranks"]], [True, True])
        self.stop(run)

    def test_a_setup_has_no_sockets_and_speaks_for_no_rank(self):
        """It is the mesh's, run by one rank for all; nor does what it exports take a rank's word from it."""
        names = ("NOTIFY_SOCKET", "MONARCH_SOCKET", "MONARCH_EVENTS")
        setup = ("env > setup.env; [ -z \"$NOTIFY_SOCKET\" ] || systemd-notify --ready\n" +
                 "".join(f"export {name}={self.path('run', 'elsewhere')}\n" for name in names))
        run = self.start("run", self.python_job(
            "while not os.path.exists('go'): time.sleep(0.02)\nmonarch.ready()\n" + SLEEP,
            slots=2, mesh={"ready": "notify", "setup": setup}))
        for rank in range(2):
            self.assertFalse(self.wait_for_rank(lambda r: r["phase"] == "running", number=rank)["ready"])
        given = self.read("work", "setup.env").splitlines()
        self.assertIn("MONARCH_MESH=m", given)
        self.assertEqual([line for line in given if line.partition("=")[0] in names], [])
        self.write("go", "")
        for rank in range(2):
            self.wait_for_rank(lambda r: r["ready"], number=rank)
        self.stop(run)

    def test_a_mesh_is_ready_when_its_ports_accept(self):
        run = self.start("run", self.python_job(
            "import socket\n"
            "while not os.path.exists('go'): time.sleep(0.02)\n"
            "s = socket.socket()\n"
            "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
            "s.bind((sys.argv[1], int(sys.argv[2])))\n"
            "s.listen()\n" + SLEEP, hosts=2,
            mesh={"program": ["python3", "rank.py", "127.0.0.1", "$(self.port.http)"], "ports": {"http": "auto"},
                  "ready": {"tcp": "http"}}))
        for rank in range(2):
            self.wait_for_rank(lambda r: r["phase"] == "running", number=rank)
        self.assertEqual([r["ready"] for r in self.status()["meshes"][0]["ranks"]], [False, False])
        # A daemon that comes later goes on asking.
        self.kill(self.process("daemon", "v1"))
        harness.wait_for(lambda: self.status()["hosts"][0]["daemon_starts"] == 2, "a second daemon")
        self.write("go", "")
        for rank in range(2):
            self.wait_for_rank(lambda r: r["ready"], number=rank)
        self.stop(run)


if __name__ == "__main__":
    harness.main()
