"""How a job ends: the first cause is named, its exit code is the job's, and nothing is left."""

import json
import os
import re
import signal

import harness
import jobs

# Each rank holds a TCP connection to rank 0, at the port that was reserved for it. Once all are there, rank VICTIM ends;
# what the others then get is a lost connection, of which they die by themselves, as a collective's peers do.
PEERS = """
import os, select, signal, socket, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # they die of the lost connection or are killed
rank, size, victim = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(sys.argv[1])
where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
def lost(who):
    print(f"rank {rank}: connection to {who} lost", file=sys.stderr, flush=True)
    time.sleep(0.1)  # the moment later: the kernel closes connections before it tells of the end
    sys.exit(1)
if rank == 0:
    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.bind(where)
    door.listen()
    peers = [door.accept()[0] for _ in range(size - 1)]
    for peer in peers:
        peer.sendall(b"go")
    ready, _, _ = select.select(peers, [], [])
    lost("a peer")
deadline = time.monotonic() + 20
while True:
    try:
        link = socket.create_connection(where, 20)
        break
    except ConnectionRefusedError:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.01)
link.recv(2)
if rank == victim:
    print("first words", file=sys.stderr)
    print(f"rank {rank}: loss is nan", file=sys.stderr, flush=True)
    os._exit(7)
if not link.recv(1):
    lost("rank 0")
"""

# Rank 2 raises, and needs longer to exit than its peers need to miss it.
LATE = jobs.PYTHON_MARK + """
import os, sys, time, traceback
if os.environ["MONARCH_RANK"] == "2":
    try:
        raise ValueError("loss is nan")
    except ValueError:
        traceback.print_exc()
    mark("raised")
    time.sleep(60)
while not os.path.exists("raised.2"):
    time.sleep(0.01)
time.sleep(0.1)
raise ConnectionError("connection to rank 2 lost")
"""


# Rank 1 is killed, and the kernel is long at giving back its memory: the peer that hears of it by a connection is reaped first.
LONG_END = """
import os, signal, socket
rank, where = os.environ["RANK"], "door"
if rank == "0":
    door = socket.socket(socket.AF_UNIX)
    door.bind(where + ".new")
    door.listen()
    os.rename(where + ".new", where)
    peer = door.accept()[0]
    os.unlink(where)
    peer.sendall(b"go")
    peer.recv(1)
    os._exit(1)
held = os.memfd_create("held")
os.posix_fallocate(held, 0, 512 << 20)
while not os.path.exists(where):
    pass
link = socket.socket(socket.AF_UNIX)
link.connect(where)
link.recv(2)
os.kill(os.getpid(), signal.SIGKILL)
"""


class Ends(jobs.JobTest):
    def test_who_is_long_at_its_end_is_not_passed_over_for_a_peer_that_died_of_it(self):
        done = self.monarch("run", self.program_job(["/usr/bin/python3", self.write("long.py", LONG_END)], hosts=1, slots=2))
        cause = self.verdict()["cause"]
        self.assertEqual((done.status, cause["rank"]), (137, 1), done)
        self.assert_nothing_left()

    def test_who_wrote_its_error_first_is_the_cause_though_it_exits_last(self):
        done = self.monarch("run", self.program_job(["/usr/bin/python3", self.write("late.py", LATE)]))
        cause = self.verdict()["cause"]
        self.assertEqual((done.status, cause["rank"]), (1, 2), done)
        self.assertRegex(cause["summary"], r"^killed before it gave an exit code, and its error came first "
                                           r"\(first to exit: m/[013], exit code 1\)")
        self.assertIn("ValueError: loss is nan", cause["stderr_tail"])
        self.assertRegex(done.err, r"root cause +m/2 on v2, pid \d+: killed before")
        self.assert_nothing_left()

    def test_exit_7_is_the_jobs_though_its_peers_die_of_it(self):
        peers = self.write("peers.py", PEERS)
        for after_failure in ("0s", "10s"):
            with self.subTest(after_failure=after_failure):
                spec = self.program_job(["/usr/bin/python3", peers, "2"], mesh={"stop": {"after_failure": after_failure}})
                done = self.monarch("run", spec)
                job = self.jobs()[-1]
                cause = self.verdict(job)["cause"]
                self.assertEqual((done.status, self.verdict(job)["exit_code"]), (7, 7), done)
                self.assertEqual((cause["mesh"], cause["rank"], cause["host"], cause["end"]["value"]),
                                 ("m", 2, "v2", 7))
                self.assertEqual(cause["stderr_tail"], "first words\nrank 2: loss is nan\n")
                self.assertRegex(done.err, rf"(?m)^ root cause m/2 on v2, pid {cause['pid']}: exit code 7$")
                self.assertIn("   │ first words\n   │ rank 2: loss is nan\n", done.err)
                self.assertIn(f"/logs/m/2.1.err\n try        monarch logs {job} --mesh m --rank 2\n", done.err)
                if after_failure != "0s":
                    self.assertIn("rank 0: connection to a peer lost", done.err)
                self.assert_nothing_left()

    def test_with_two_gangs_both_numbers_are_named(self):
        spec = self.job("mark there; [ $RANK = 1 ] && [ $REPLICA_GROUP_ID = 1 ] && exit 7\n" + jobs.FOREVER,
                        mesh={"dims": {"replica": 2, "host": 1, "slot": 2}, "gang": "replica"})
        done, verdict = self.end_of(self.start("run", spec), 7, cause={"rank": 3, "gang": 1, "gang_rank": 1})
        self.assertRegex(done.err, rf"(?m)^ root cause m/3 \(gang 1, RANK 1\) on v2, pid {verdict['cause']['pid']}: exit")

    def test_one_that_has_ended_before_run_could_look_is_told_whole(self):
        held = self.write("held", "#!/bin/sh\n: > starting; until [ -e begin ]; do sleep 0.02; done; exec \"$@\"\n", mode=0o755)
        held = f"/usr/bin/env --chdir={self.path('work')} {held}"
        run = self.start("run", self.job("echo hello; exit 7", 1, 1), "--json", env={"MONARCH_WORKER": self.guarding(held)})
        harness.wait_for(lambda: os.path.exists(self.path("work", "starting")), lambda: repr(run))
        run.signal(signal.SIGSTOP)
        self.write("begin", "")
        harness.wait_for(lambda: self.jobs() and os.path.exists(self.path("state", "jobs", self.jobs()[0], "verdict.json")), lambda: repr(run))
        harness.wait_for(lambda: not self.processes_of("supervisor"), "the supervisor's end")
        run.signal(signal.SIGCONT)
        done = run.finished()
        self.assertEqual(done.status, 7, done)
        lines = done.json()
        self.assertEqual([e["event"] for e in lines if e["type"] == "event"],
                         [e["event"] for e in self.monarch("events", "last", "--json").json()])
        self.assertEqual({line["type"] for line in lines}, {"output", "event", "result"})

    def test_a_segfault_is_139(self):
        run = self.start("run", self.job('[ $RANK = 1 ] && kill -SEGV $$\n' + jobs.FOREVER))
        done, _ = self.end_of(run, 139, cause={"rank": 1, "summary": re.compile("SEGV")})
        self.assertRegex(done.err, "root cause m/1 on v1, pid .*SIGSEGV")

    def test_a_killed_rank_is_137(self):
        run = self.start("run", self.job("mark there\n" + jobs.FOREVER))
        self.signal_by_pid(self.wait_for_marks("there", 4)[3])
        self.end_of(run, 137, cause={"rank": 3, "host": "v2", "summary": re.compile("KILL")})

    def test_exit_codes_pass_unchanged(self):
        for code in (1, 2, 92, 255):
            with self.subTest(code=code):
                done = self.monarch("run", self.job(f"exit {code}", hosts=1, slots=1))
                self.assertEqual(done.status, code, done)
                self.assertEqual(self.verdict(self.jobs()[-1])["exit_code"], code)
        self.assert_nothing_left()

    def test_a_missing_program_is_127(self):
        run = self.start("run", self.program_job(["/no/such/program"]))
        done, verdict = self.end_of(run, 127, cause={"kind": "rank"})
        self.assertRegex(done.err, r"root cause m/\d on v\d.*/no/such/program.*No such file or directory")
        self.assertEqual(verdict["cause"]["generation"], 1)
        self.assertEqual(done.err.count("gang.starting"), 1, "no retry")
        self.assertLess(done.seconds, 5)

    def test_a_program_that_is_not_on_the_path_is_127(self):
        done, _ = self.end_of(self.start("run", self.program_job(["no-such-program-at-all"])), 127)
        self.assertRegex(done.err, r"root cause m/\d on v\d.*no-such-program-at-all")

    def test_a_program_that_is_not_executable_is_126(self):
        path = self.write("plain", "#!/bin/sh\n", mode=0o644)
        done, _ = self.end_of(self.start("run", self.program_job([path])), 126)
        self.assertRegex(done.err, rf"root cause m/\d on v\d.*{re.escape(path)}.*Permission denied")

    def test_a_missing_workdir_names_the_host(self):
        missing = self.path("work", "nowhere")
        run = self.start("run", self.job("true", mesh={"workdir": missing}))
        done = run.finished()
        self.assertRegex(done.err, rf"root cause m/\d on v\d.*{re.escape(missing)}.*No such file or directory")
        self.assertNotEqual(done.status, 0)
        self.assert_result(done, self.verdict()["exit_code"], "failed")
        self.assert_nothing_left()

    def test_a_program_that_ignores_term_is_killed_after_its_grace(self):
        spec = self.job("trap '' TERM; mark there\n" + jobs.FOREVER, mesh={"stop": {"grace": "300ms"}})
        run = self.start("run", spec)
        self.wait_for_marks("there", 4)
        stop = self.monarch("stop")
        self.assertEqual(stop.status, 0, stop)
        self.end_of(run, 143, "stopped")

    def test_stop_from_elsewhere_is_143(self):
        run = self.start("run", self.job("trap 'mark term; exit 3' TERM; mark there\n" + jobs.FOREVER))
        self.wait_for_marks("there", 4)
        stop = self.monarch("stop", "demo")
        self.assertEqual((stop.status, stop.out), (0, ""), stop)
        _, verdict = self.end_of(run, 143, "stopped")
        self.assertIn("stop", verdict["reason"])
        self.assertEqual(self.marks("term"), [0, 1, 2, 3])

    def test_stop_kill_gives_no_grace(self):
        run = self.start("run", self.job("trap 'mark term' TERM; mark there\n" + jobs.FOREVER))
        self.wait_for_marks("there", 4)
        self.assertEqual(self.monarch("stop", "--kill").status, 0)
        self.end_of(run, 143, "stopped")
        self.assertEqual(self.marks("term"), [])

    def test_a_timeout_stops_in_order_with_124(self):
        run = self.start("run", "--timeout", "1s", self.job("trap 'mark term; exit 0' TERM; mark there\n" + jobs.FOREVER))
        done, verdict = self.end_of(run, 124, "stopped")
        self.assertIn("--timeout", done.err)
        self.assertIn("--timeout", verdict["reason"])
        self.assertLessEqual(set(self.marks("there")), set(self.marks("term")))

    def test_a_time_limit_ends_with_92(self):
        run = self.start("run", self.job("mark there\n" + jobs.FOREVER, time_limit="1s"))
        done = run.finished()
        verdict = self.verdict()
        self.assertEqual((done.status, verdict["exit_code"]), (92, 92), done)
        self.assertIn("time", verdict["reason"])
        self.assert_nothing_left()

    def test_ranks_that_end_with_0_leave_no_children(self):
        run = self.start("run", self.job("(setsid sleep 600 </dev/null >/dev/null 2>&1 &)\nmark there"))
        self.end_of(run, 0, "succeeded")

    def test_a_job_of_two_meshes_ends_when_both_are_done(self):
        meshes = {name: {"dims": {"slot": 2}, "program": jobs.shell(script)} for name, script in (
            ("early", "mark early"), ("late", "until [ -e go ]; do nap 0.05; done; mark late"))}
        run = self.start("run", self.spec(json.dumps({"version": 1, "job": "two", "meshes": meshes, "supervision": jobs.FAIL_FAST})))
        run.wait_for_err("gang.done early")
        run.wait_for_err("job.running")  # one mesh may be done before the other runs
        self.assertEqual(self.status()["phase"], "running")
        self.write("go", "")
        done, _ = self.end_of(run, 0, "succeeded")
        self.assertIn("gang.done late", done.err)
        self.assertEqual(self.marks("late"), [0, 1])

    def test_the_failure_of_one_mesh_ends_the_other(self):
        meshes = {name: {"dims": {"slot": 2}, "program": jobs.shell(script)} for name, script in (
            ("good", f"trap 'mark term; exit 0' TERM; mark there\n{jobs.FOREVER}"),
            ("bad", "until [ -e there.0 ] && [ -e there.1 ]; do nap 0.05; done; exit 7"))}
        run = self.start("run", self.spec(json.dumps({"version": 1, "job": "two", "meshes": meshes, "supervision": jobs.FAIL_FAST})))
        self.end_of(run, 7, cause={"mesh": "bad", "kind": "rank"})


if __name__ == "__main__":
    harness.main()
