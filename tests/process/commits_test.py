"""Ranks commit checkpoints: a gang goes on from the newest that all of its ranks committed, and a commit is kept once it is answered."""

import json
import os
import signal
import sys

import harness
import jobs

sys.dont_write_bytecode = True
HEAD = """import json, os, signal, socket, sys, time
import monarch_rank as monarch
rank, generation = int(os.environ["MONARCH_RANK"]), int(os.environ["MONARCH_GENERATION"])
def tell(name, value):
    with open("%s.%d.%d.new" % (name, rank, generation), "w") as file: json.dump(value, file)
    os.rename("%s.%d.%d.new" % (name, rank, generation), "%s.%d.%d" % (name, rank, generation))
def ask(words):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.connect(os.environ["MONARCH_SOCKET"])
        door.send(words.encode())
        return json.loads(door.recv(4096).decode())
"""


class CommitTest(jobs.JobTest):
    def python_job(self, script, hosts=1, slots=1, mesh=None, **keys):
        self.write("rank.py", HEAD + script)
        env = {"PYTHONPATH": harness.MODULES, "PYTHONDONTWRITEBYTECODE": "1"}
        return self.program_job(["python3", "rank.py"], hosts, slots, mesh={"env": env, **(mesh or {})}, **keys)

    def told(self, name, rank=0, generation=1):
        path = self.path("work", f"{name}.{rank}.{generation}")
        harness.wait_for(lambda: os.path.exists(path), lambda: f"{path}; {self.started()}\n{self.supervisor_log()}")
        return json.loads(self.read(path))

    def committed_steps(self):
        events = self.monarch("events", "last", "--json").json()
        return [(e["generation"], int(e["details"]["step"])) for e in events if e["event"] == "checkpoint.committed"]


class Commits(CommitTest):
    def test_a_gang_goes_on_from_what_all_of_its_ranks_committed(self):
        # Rank 1 dies before it commits step 4, which rank 0 has: both go on from step 3.
        run = self.start("run", self.python_job(
            "found = monarch.committed()\ntell('found', [found, ask('ASK=committed')])\n"
            "for step in range(found['step'] + 1 if found else 1, 7):\n"
            "    if (rank, generation, step) == (1, 1, 4):\n"
            "        while not os.path.exists('ahead.0.1'): time.sleep(0.01)\n"
            "        os.kill(os.getpid(), signal.SIGKILL)\n"
            "    if not monarch.commit(step, 'ckpt/%d.r%d.g%d' % (step, rank, generation)): sys.exit(3)\n"
            "    if (rank, generation, step) == (0, 1, 4):\n"
            "        tell('ahead', True)\n"
            "        time.sleep(1000)\n",
            hosts=2, supervision={"restart": {"max": 3}}))
        self.end_of(run, 0, "succeeded")
        for rank in (0, 1):
            self.assertEqual(self.told("found", rank), [None, {"v": 1, "step": None}])
            known = {"step": 3, "what": f"ckpt/3.r{rank}.g1", "generation": 1}
            self.assertEqual(self.told("found", rank, 2), [known, {"v": 1, **known}])
        self.assertEqual(self.committed_steps(), [(1, 1), (1, 2), (1, 3), (2, 4), (2, 5), (2, 6)])
        mesh = self.monarch("status", "last", "--json").json()[0]["meshes"][0]
        self.assertEqual(mesh["committed"], [{"gang": 0, "step": 6, "generation": 2}])
        self.assertIn("committed step 6 (generation 2)", self.monarch("status", "last").out)

    def test_one_rank_may_speak_for_its_gang_and_steps_only_rise(self):
        run = self.start("run", self.python_job(
            "if rank == 1: time.sleep(1000)\n"
            "tell('answers', [monarch.commit(10, 'all', gang=True), ask('COMMIT=10\\nWHAT=all\\nOF=gang'),\n"
            "                 ask('COMMIT=9'), ask('COMMIT=ten'), monarch.commit(10, 'other')])\n"
            "time.sleep(1000)\n", slots=2))
        first, again, below, none, other = self.told("answers")
        self.assertEqual((first, again), (True, {"v": 1, "ok": True, "step": 10, "gang": 10}))
        self.assertEqual(below, {"v": 1, "ok": False, "step": 9, "refused":
                                 "the gang has committed step 10 in generation 1: a step below it is none any more"})
        self.assertEqual(none, {"v": 1, "error": "COMMIT is the number of a step"})
        self.assertIs(other, False)
        self.assertEqual(self.committed_steps(), [(1, 10)])
        self.assertEqual(self.status()["counters"]["commits.refused"], 2)
        self.assertEqual(self.monarch("stop").status, 0)
        finished, _ = self.end_of(run, 143, "stopped")
        self.assertIn("monarch_rank: the checkpoint of step 10 does not count: "
                      "step 10 is committed already, as `all`", finished.err)

    def test_a_commit_that_was_answered_outlives_the_supervisor_and_one_that_was_asked_meanwhile_is_answered(self):
        run = self.start("run", self.python_job(
            "found = monarch.committed()\ntell('found', found)\n"
            "def wait_for(name):\n    while not os.path.exists(name): time.sleep(0.01)\n"
            "if not found:\n"
            "    tell('first', monarch.commit(5, 'ckpt/5'))\n"
            "    wait_for('away')\n    tell('asks', True)\n"
            "    try: monarch.commit(6, 'ckpt/6', timeout=0.5)\n"
            "    except TimeoutError as error: tell('late', [str(error), monarch.gang_step()])\n"
            "    tell('second', [monarch.commit(6, 'ckpt/6', timeout=None), monarch.gang_step()])\n"
            "    wait_for('die')\n    os.kill(os.getpid(), signal.SIGKILL)\n",
            supervision={"restart": {"max": 3}}))
        self.assertIs(self.told("first"), True)
        guard, supervisor = self.process("guard"), self.process("supervisor")
        self.kill(guard, signal.SIGSTOP)  # nobody starts another one
        self.kill(supervisor)
        self.write("away", "")
        self.told("asks")
        self.assertEqual(self.told("late"), ["the checkpoint of step 6: nobody has answered for 0.5 s; it may yet count", 5])
        self.assertEqual(self.committed_steps(), [(1, 5)])
        self.kill(guard, signal.SIGCONT)
        self.assertEqual(self.told("second"), [True, 6])
        self.assertEqual(self.status()["term"], 2)
        self.write("die", "")
        self.assertEqual(self.told("found", 0, 2), {"step": 6, "what": "ckpt/6", "generation": 1})
        self.end_of(run, 0, "succeeded")
        self.assertEqual(self.committed_steps(), [(1, 5), (1, 6)])


class Continued(CommitTest):
    """`--continue JOB`: a new job that goes on from one that has ended."""

    UNTIL = ("found = monarch.committed()\ntell('found', found)\n"
             "step = found['step'] if found else 0\n"
             "while not os.path.exists('enough') and step < 3:\n"
             "    step += 1\n"
             "    monarch.commit(step, 'ckpt/%d.r%d.g%d' % (step, rank, generation))\n"
             "while not os.path.exists('enough'): time.sleep(0.02)\n")

    def stopped(self, spec):
        up = self.monarch("up", spec)
        self.assertEqual(up.status, 0, up)
        job = up.out.strip()
        harness.wait_for(lambda: (1, 3) in self.committed_steps(), lambda: f"three steps\n{self.supervisor_log()}")
        self.assertEqual(self.monarch("stop", job).status, 0)
        return job

    def test_counts_on_and_begins_at_the_last_checkpoint(self):
        spec = self.python_job(self.UNTIL, slots=2)
        before = self.stopped(spec)
        self.write("enough", "")
        run = self.start("run", spec, "--continue", before).finished()
        self.assertEqual(run.status, 0, run)
        for rank in (0, 1):
            self.assertIsNone(self.told("found", rank))
            self.assertEqual(self.told("found", rank, 2), {"step": 3, "what": f"ckpt/3.r{rank}.g1", "generation": 1})
        after = self.jobs()[-1]
        self.assertIn(f"{after} goes on from {before}", self.monarch("events", after).out)
        self.assertEqual(json.loads(self.read("state", "jobs", after, "continues.json")), {"v": 1, "job": before})
        self.assertEqual(self.monarch("wait", before).status, 143, "somebody's choice, and no part of the job before")

    def test_goes_on_from_what_one_that_never_began_was_to_go_on_from(self):
        spec = self.python_job(self.UNTIL)
        first = self.stopped(spec)
        kept = {}
        for name in os.listdir(self.path("state", "jobs", first)):
            if name.startswith("journal."):
                with open(self.path("state", "jobs", first, name), "r+b") as file:
                    kept[name] = file.read()
                    file.seek(0)
                    file.write(b"x" * 40)
        self.assertEqual(self.monarch("run", spec, "--continue", first).status, 74)
        second = self.jobs()[-1]
        for name, whole in kept.items():
            with open(self.path("state", "jobs", first, name), "wb") as file:
                file.write(whole)
        self.write("enough", "")
        run = self.start("run", spec, "--continue", second).finished()
        self.assertEqual(run.status, 0, run)
        self.assertEqual(self.told("found", 0, 2), {"step": 3, "what": "ckpt/3.r0.g1", "generation": 1})
        self.assertIn(f"goes on from {first}", self.monarch("events", self.jobs()[-1]).out)

    def test_survives_a_crash_of_the_supervisor(self):
        spec = self.python_job(self.UNTIL)
        before = self.stopped(spec)
        up = self.monarch("up", spec, "--continue", before)
        self.assertEqual(up.status, 0, up)
        self.assertEqual(self.told("found", 0, 2)["step"], 3)
        self.kill(self.process("supervisor"))
        harness.wait_for(lambda: self.monarch("status", up.out.strip()).status == 0 and self.status(up.out.strip())["term"] == 2, "the next term")
        self.assertEqual(self.status(up.out.strip())["meshes"][0]["committed"], [{"gang": 0, "step": 3, "generation": 1}])
        self.write("enough", "")
        self.assertEqual(self.monarch("wait", up.out.strip()).status, 0)

    def test_refuses_what_has_not_ended_or_never_was(self):
        spec = self.python_job(self.UNTIL)
        up = self.monarch("up", spec)
        live = self.monarch("run", spec, "--continue", up.out.strip())
        self.assertEqual(live.status, 2, live)
        self.assertIn("it has not ended, and only one may act on what it has", live.err)
        self.assertIn(f"monarch stop {up.out.strip()}", live.err)
        self.assertEqual(self.monarch("run", spec, "--continue", "nobody-0000").status, 2)
        self.assertEqual(self.monarch("stop").status, 0)
        self.assertEqual(len(self.jobs()), 1)

    def test_does_not_begin_anew_where_the_journal_cannot_be_read(self):
        spec = self.python_job(self.UNTIL)
        before = self.stopped(spec)
        for name in os.listdir(self.path("state", "jobs", before)):
            if name.startswith("journal."):
                with open(self.path("state", "jobs", before, name), "r+b") as file:
                    file.write(b"x" * 40)
        run = self.monarch("run", spec, "--continue", before)
        self.assertEqual(run.status, 74, run)
        self.assertIn(f"it goes on from {before}: the journal of {before} cannot be read", run.err)


if __name__ == "__main__":
    harness.main()
