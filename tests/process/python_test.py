"""Python in real jobs: ranks with actors of Python, and calls between Python and C++."""

import glob
import json
import os
import re
import signal
import sys
import unittest

import actors
import harness
from actors import actor

PACKAGE = os.path.join(harness.ROOT, "worker", "python")
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python")
NAMES = ("survey", "relay", "nurse", "family")  # beside each what it prints under torchmonarch 0.7.0
PEER = os.environ.get("MONARCH_TEST_TORCHMONARCH")  # a Python that has it


def rank_of(*parts):
    return [sys.executable, "-m", "monarch.rank", *parts]


def scorer(class_name="Scorer", name="scorer", args=None):
    return ["--actor", name, "--file", os.path.join(PROGRAMS, "scorer.py"), "--class", class_name,
            *(["--args", json.dumps(args)] if args is not None else [])]


class Programs(harness.MonarchTest):
    """Programs that start a job of their own."""

    def program(self, name, python=sys.executable, package=PACKAGE, **options):
        environment = {"PYTHONPATH": package, "MONARCH_COMMAND": harness.MONARCH, "PYTHONDONTWRITEBYTECODE": "1"}
        return self.start_program(python, os.path.join(PROGRAMS, name + ".py"), env=environment, **options)

    def test_they_print_what_they_print_under_pytorch_monarch(self):
        for name in NAMES:
            with self.subTest(name):
                done = self.program(name).finished(30)
                self.assert_output(done, 0, self.read(PROGRAMS, name + ".out"), "")
        self.assert_nothing_left()

    @unittest.skipUnless(PEER, "MONARCH_TEST_TORCHMONARCH names no Python that has torchmonarch")
    def test_pytorch_monarch_prints_it_too(self):
        for name in NAMES:
            with self.subTest(name):
                done = self.program(name, PEER, None).finished(90)
                self.assertEqual((done.status, done.out), (0, self.read(PROGRAMS, name + ".out")), done)

    def test_a_notebook_defines_a_class_twice(self):
        done = self.program("cells").finished(30)
        lines = done.out.splitlines()
        self.assertIn("told by Teller", lines)
        lines.remove("told by Teller")  # by a rank: some time
        self.assertEqual(lines, ["[('first', 2), ('first', 2)]", "[('second', [1, 1]), ('second', [1, 1])]", "[('first', [2, 2]), ('first', [2, 2])]",
                                 "['second', 'second']"], done)
        self.assertEqual((done.status, done.err), (0, ""), done)

    def test_what_programs_use_beside_actors(self):
        done = self.program("beside").finished(60)
        lines = done.out.splitlines()
        self.assertEqual([line for line in lines if line != "said by a rank"], [
            "{hosts: 2}", "[(0, 'v1'), (1, 'v1'), (2, 'v2'), (3, 'v2')]", "['in v2', 'red']", "[[0, 0, 4, 2], [1, 1, 4, 2], [2, 0, 4, 2], [3, 1, 4, 2]]",
            "[None]"
        ], done)
        self.assertEqual((lines.count("said by a rank"), done.status), (4, 0), done)
        for line in done.err.splitlines():
            self.assertEqual(line, "True True 1.0 0.0", done)

    def test_the_same_handle_answers_whatever_has_died(self):
        read, write = os.pipe()
        run = self.program("again", stdin=read)
        os.close(read)
        run.wait_for_out("told .*\n")
        self.assertEqual(run.out.splitlines()[0], "16", run)
        told, back = map(float, re.search(r"told (\S+) back (\S+)", run.out).groups())
        self.assertLess(told, harness.patience(0.02), run)  # medians
        self.assertLess(back, harness.patience(0.3), run)
        supervisor, = self.find("monarch", "supervise")
        self.kill(supervisor)
        self.wait_for_process("monarch", "supervise")
        os.write(write, b"\n")
        run.wait_for_out(r"\('word', '9'\)")
        # The program is killed: its job ends with it.
        program, = [process for process in self.processes() if process.pid == run.pid]
        self.kill(program)
        self.assertEqual(run.wait(), 137)
        os.close(write)
        self.assert_nothing_left()
        self.assertEqual(self.verdict()["exit_code"], 0)

    def test_an_interrupt_is_the_programs(self):
        run = self.program("polite", terminal=True)
        run.wait_for_out("bye at first")
        run.type("\x03")
        self.assertEqual(run.wait(), 0, run)
        self.assertRegex(run.out, r"(?m)^(\^C)?bye\r?$")
        self.assert_nothing_left()


class Python(actors.ActorTest):
    def python_job(self, ranks, controller, hosts=2, mesh=None, **keys):
        environment = {"PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1"}
        meshes = {"p": {"dims": {"host": hosts, "gpu": 1}, "program": ranks, "ready": "notify", "sidecar": True, "env": environment, **(mesh or {})}}
        spec = {"version": 1, "job": "python", "launch": {"local": {"hosts": hosts}}, "meshes": meshes,
                "controller": {"program": controller, "env": environment}, **keys}
        return self.spec(json.dumps(spec, indent=1), "python.yaml")

    def actors_job(self, controller, with_cpp=False):
        """As a spec names them; ranks and controller find the package as their worker has it."""
        where = os.path.join(PROGRAMS, "scorer.py")
        meshes = {"p": {"dims": {"host": 2, "gpu": 1},
                        "actors": {"scorer": {"python": where, "class": "Scorer", "args": {"start": 5, "names": ["a"]}},
                                   "loop": {"python": where, "class": "Loop"}}}}
        if with_cpp:
            meshes = {"c": {"dims": {"host": 2, "gpu": 1}, "actors": {"tally": actor("steady", "Tally")}, "stop": {"grace": "1s"}},
                      "p": {"hosts": {"like": "c"}, **meshes["p"]}}
        spec = {"version": 1, "job": "python", "launch": {"local": {"hosts": 2}}, "meshes": meshes, "controller": controller}
        return self.spec(json.dumps(spec, indent=1), "python.yaml")

    def test_python_and_cpp_call_each_other(self):
        done = self.monarch("run", "--quiet", "--no-prefix",
                            self.actors_job({"program": [sys.executable, os.path.join(PROGRAMS, "drive.py")]}, with_cpp=True))
        lines = done.out.splitlines()
        self.assertEqual([line for line in lines if not line.startswith(("ok ", "put away"))], [], done)
        self.assertEqual(len([line for line in lines if line.startswith("ok ")]), 25, done)
        self.assertEqual(len([line for line in lines if line.startswith("put away")]), 2, done)  # __cleanup__, at SIGTERM
        self.assertEqual(done.status, 0, done)
        self.assert_nothing_left()

    def test_a_controller_in_cpp_drives_python(self):
        done = self.monarch("run", "--quiet", "--no-prefix", self.actors_job({"plugin": actors.plugin("pythons"), "entry": "pythons"}))
        self.assertEqual(done.status, 0, done)
        self.assertEqual(done.out.splitlines()[:6], ["total 7"] * 2 + ["length 1048576"] * 2 + ["made 100000 of 7"] * 2, done)
        self.assertIn("error p/0: ValueError: no such thing\n", done.out)
        self.assert_nothing_left()

    def test_a_guest_calls_what_is_there(self):
        spec = self.python_job(rank_of(*scorer(args={"start": 1})), ["unused"], mesh={"sidecar": False}, tensors={})
        with open(spec, encoding="utf-8") as file:
            words = json.load(file)
        del words["controller"]
        run = self.start("run", "--no-prefix", self.spec(json.dumps(words), "guest.yaml"))
        run.wait_for_err(r"job\.running")
        door = sorted(glob.glob(self.path("run", "monarch", "w-*", "post")))[0]
        program = self.write("guest.py", f"""
import sys
sys.path.insert(0, {PACKAGE!r})
from monarch.actor import actors
scorer = actors("p", "scorer", door={door!r})
print(list(scorer.add.call(2).get().values()), [part.get() for part in scorer.length.stream("abc")])
scorer.add.broadcast(1)
print(list(scorer.add.call(0).get().values()), "asyncio" in sys.modules)
""")
        done = self.start_program(sys.executable, program).finished(30)
        self.assertEqual((done.status, done.out), (0, "[3, 3] [3, 3]\n[4, 4] False\n"), done)
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 143, run)
        self.assertEqual(run.out.splitlines(), ["put away 4"] * 2, run)
        self.assert_nothing_left()

    def test_what_is_wrong_is_said(self):
        for what, words, status, said in (
                ("no class", scorer("Scorrer"), 2, r"monarch-rank: actor scorer: \S+/scorer\.py has no class Scorrer; it has Broken, Loop, Scorer"),
                ("no module", ["--actor", "a", "--module", "no.such", "--class", "A"], 2,
                 r"monarch-rank: actor a: module no\.such cannot be imported: \S+ has no module no \(.*\)\n(.*\n)?.*sys\.path: .*worker/python"),
                ("throws", scorer("Broken"), 1, r"monarch-rank: p/0: actor scorer: Broken: RuntimeError: no such model"),
                ("args", scorer(args={"begin": 1}), 1, r"monarch-rank: p/0: actor scorer: Scorer: TypeError: .*begin")):
            with self.subTest(what):
                fast = {"supervision": {"restart": {"max": 0}, "fatal_exit_codes": [1, 2]}}
                done = self.monarch("run", self.python_job(rank_of(*words), ["sleep", "60"], hosts=1, **fast))
                self.assertEqual(done.status, status, done)
                self.assertRegex(done.err, said)

    def test_a_post_that_ends_costs_calls_and_no_process(self):
        program = self.write("drive.py", """
import time
from monarch.actor import SupervisionError, actors
scorer, loop = actors("p", "scorer"), actors("p", "loop")
before = loop.open.call_one().get()
under_way = scorer.nap.call_one(60)
loop.open.call_one().get()
print("under way", flush=True)
try:
    under_way.get(timeout=30)
except SupervisionError as e:
    print("unknown whether it has run" in str(e))
began = time.monotonic()
print(loop.open.call_one().get() == before, flush=True)
print("after %.3f s" % (time.monotonic() - began), flush=True)
""")
        ranks = rank_of(*scorer(args={"start": 0}), *scorer("Loop", "loop"))
        run = self.start("run", "--quiet", "--no-prefix",
                         self.python_job(ranks, [sys.executable, program], hosts=1, mesh={"stop": {"grace": "1s"}}))
        run.wait_for_out("under way")
        post, = self.find("monarch-worker", "post")
        self.kill(post)
        run.wait_for_out("after")
        self.assertEqual(run.out.splitlines()[1:3], ["True", "True"], run)
        self.assertEqual(run.wait(), 0, run)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
