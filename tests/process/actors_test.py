"""Actors in real jobs: what calls can do, what ends a job, and each way in which a plugin or a spec can be wrong."""

import math
import os
import re
import shlex
import shutil
import signal
import sys

import actors
import harness
from actors import actor, plugin
from harness import patience

CASES = ["gathers", "knows its place", "tells errors", "calls one", "streams and folds", "scatters", "keeps the order",
         "answers later", "has deadlines", "carries bodies", "carries many bodies", "refuses", "takes handles", "overlaps",
         "tells deadlocks", "counts failed broadcasts", "has named actors", "pipelines"]


class Actors(actors.ActorTest):
    def test_what_calls_can_do(self):
        counter = actor("cases", "Counter", args={"start": 5, "names": ["a", "b"]})
        job = self.actor_job({"counter": counter, "other": actor("cases", "Other")},
                             {"plugin": plugin("cases"), "entry": "cases"})
        # So few files for each process: one of the cases has more bodies than that under way.
        command = f"ulimit -n 1024; exec {harness.MONARCH} run --quiet --no-prefix {job}"
        done = self.start_program("/bin/sh", "-c", command).finished(60)
        self.assertEqual(done.out.splitlines(), [f"ok {name}" for name in CASES], done)
        self.assertEqual(done.status, 0, done)
        self.assert_nothing_left()

    def test_the_program_of_the_readme(self):
        done = self.monarch("run", "--no-prefix", self.example("actors"))
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(done.out.splitlines(), [f"{rank}: hello world from ({rank})" for rank in range(4)] +
                         [f"{rank} said: saying bye is hard" for rank in range(8)])
        self.assert_nothing_left()

    def test_a_parameter_server_learns(self):
        done = self.monarch("run", "--no-prefix", self.example("parameter_server"))
        self.assert_result(done, 0, "succeeded")
        self.assertRegex(done.out, r"after 400 steps of each worker: 14\d of 150 are known")
        self.assert_nothing_left()

    def test_a_controller_decides_about_the_end(self):
        tally = {"tally": actor("steady", "Tally")}
        done = self.monarch("run", self.actor_job(tally, {"plugin": plugin("steady"), "entry": "throws"}))
        self.assert_result(done, 1, "failed")
        self.assertIn("monarch: the controller let out std::runtime_error: nothing goes on", done.err)
        self.assert_nothing_left()

    def test_another_program_is_a_controller_too(self):
        tally = {"tally": actor("steady", "Tally")}
        done = self.monarch("run", self.actor_job(tally, {"program": ["/bin/sh", "-c", "test -S $MONARCH_POST && exit 9"]}))
        self.assert_result(done, 9, "failed")
        self.assert_nothing_left()

    def test_the_door_is_open_to_other_languages(self):
        client = os.path.join(os.path.dirname(os.path.abspath(__file__)), "door_client.py")
        command = " ".join([shlex.quote(sys.executable), client])
        done = self.monarch("run", "--no-prefix", self.actor_job(
            {"counter": actor("cases", "Counter", args={"start": 5, "names": []})},
            {"program": ["/bin/sh", "-c", f"{command} t counter where 0,3 && {command} t counter fail 1 why; {command} t counter get 9; "
                                               f"{command} card me here; {command} guests"]}))
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(done.out.splitlines(), [
            "0 value v1 t (0,0) counter", "3 value v2 t (1,1) counter", "1 remote error std::out_of_range: why",
            "None refused there is no rank t/9: the mesh has 4",
            "1 b'here' True",
            "v1 asked: True 24 answered: value ['there and back'] True", "v1 asked: True 67108865", "v1 value  True",
            "v1 rank lost it has left True",
            "v2 asked: True 24 answered: value ['there and back'] True",
            "v2 refused its arguments are 64MiB: a call carries 1GiB at most, 64MiB to another host True",
            "v2 rank lost it has left True"])
        self.assert_nothing_left()

    def test_without_a_controller_it_runs_until_it_is_stopped(self):
        run = self.start("run", self.actor_job({"tally": actor("steady", "Tally")},
                                               meshes={"t": {"dims": {"x": 1}, "actors": {}},
                                                       "u": {"dims": {"x": 1}, "hosts": {"like": "t"},
                                                             "actors": {"tally": actor("steady", "Tally")}}}))
        run.wait_for_err(r"job\.running")
        ranks = self.find("monarch-rank")
        self.assertEqual(len(ranks), 2, ranks)
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 143, run)
        self.assert_nothing_left()

    def test_a_rank_loads_nothing_but_what_the_job_began_with(self):
        here = self.path("work", "libtally.so")
        shutil.copyfile(plugin("steady"), here)
        run = self.start("run", self.actor_job({"tally": {"plugin": "./libtally.so", "class": "Tally"}}))
        run.wait_for_err(r"job\.running")
        shutil.copyfile(plugin("cases"), here + ".new")
        os.rename(here + ".new", here)
        self.kill(self.find("monarch-rank")[0])
        run.wait_for_err("was changed since the job began")
        run.signal(signal.SIGTERM)
        run.wait()


# Each is said by the rank, with plugin, actor and rank; nothing is tried twice that is wrong for ever.
BAD = {
    "no class": ({"a": actor("steady", "Taly")}, 2, r"t/[01]: actor a: plugin \S*libsteady\.so has no class Taly; did you mean Tally\?"),
    "throws": ({"a": actor("bad", "Throws")}, 1, r"t/[01]: actor a: Throws of \S*libbad\.so: std::runtime_error: no such model"),
    "args": ({"a": actor("bad", "Wants", args={"rat": 1})}, 1, r"t/[01]: actor a: Wants of \S*: monarch::BadArguments: args\.rate is missing"),
    "args of another kind": ({"a": actor("bad", "Wants", args={"rate": "fast"})}, 1, r"args\.rate: "),
    "aborts": ({"a": actor("bad", "Aborts")}, 134, r"killed by SIGABRT"),
    "no plugin": ({"a": actor("no_plugin", "A")}, 2, r"has no function monarch_plugin_v1_get"),
    "later": ({"a": actor("later_abi", "A")}, 2, r"speaks version 2 of the interface, and this monarch 1"),
    "beside": ({"a": actor("beside", "Greeter")}, 2, r"libbeside\.so: .*\$ORIGIN"),
}


class BadActors(actors.ActorTest):
    def assert_refused(self, actors_of_it, status, words, controller=None):
        fast = {"restart": {"max": 0}}
        done = self.monarch("run", self.actor_job(actors_of_it, controller or {"plugin": plugin("steady"), "entry": "throws"},
                                                  hosts=1, supervision=fast))
        self.assertEqual(done.status, status, done)
        self.assertRegex(done.err, words)

    def test_a_plugin_that_is_wrong(self):
        for what, (actors_of_it, status, words) in BAD.items():
            with self.subTest(what):
                self.assert_refused(actors_of_it, status, words)

    def test_a_controller_that_is_wrong(self):
        self.assert_refused({"tally": actor("steady", "Tally")}, 2, r"controller/0: plugin \S*libsteady\.so has no controller "
                            r"stedy; did you mean steady\?", {"plugin": plugin("steady"), "entry": "stedy"})

    def test_a_constructor_that_throws_is_not_tried_again(self):
        """And the verdict has its words, as of any rank that fails."""
        done = self.monarch("run", "--quiet", self.actor_job({"a": actor("bad", "Throws")},
                                                             {"plugin": plugin("steady"), "entry": "throws"}, hosts=1))
        self.assertEqual(done.status, 1, done)
        self.assertRegex(done.err, r"root cause t/[01].*: ended before it was ready: exit code 1\n")
        self.assertRegex(done.err, r"\n   │ monarch-rank: t/[01]: actor a: Throws of \S+: std::runtime_error: no such model\n")
        self.assertIn("its actors could not be made: fail, no retry", done.err)
        self.assertNotIn("sidecar", done.err)

    def test_a_constructor_that_hangs(self):
        done = self.monarch("run", self.actor_job({"a": actor("bad", "Hangs")}, hosts=1, start_timeout=f"{math.ceil(patience(1))}s"))
        self.assertEqual(done.status, 69, done)
        self.assertRegex(done.err, r"waiting for ranks .*t/0@v1 \(has not said READY=1\)")

    def test_a_spec_that_is_wrong(self):
        tally = {"tally": actor("steady", "Tally")}
        for what, keys, words in (
                ("no file", {"actors": {"a": {"plugin": "./libnone.so", "class": "A"}}}, r"E0334.*the plugin cannot be read"),
                ("two things", {"actors": tally, "mesh": {"program": ["/bin/true"]}}, r"E0106.*more than one thing"),
                ("its name", {"actors": tally, "controller": {"plugin": plugin("steady"), "entry": "throws"},
                              "meshes": {"controller": {"dims": {"x": 1}, "actors": {}}}}, r"E0335"),
                ("half a controller", {"actors": tally, "controller": {"plugin": plugin("steady")}}, r"E0106.*`controller` has"),
                ("nothing to decide", {"actors": tally, "controller": {"args": {}}}, r"E0106.*`controller` has nothing")):
            with self.subTest(what):
                done = self.monarch("run", self.actor_job(**{"controller": None, **keys}))
                self.assertEqual(done.status, 2, done)
                self.assertRegex(done.err, re.compile(words, re.S))


if __name__ == "__main__":
    harness.main()
