"""standby of a mesh: gangs that wait at gate() on spares, and take the place of one that fails, as the processes that they are.

A rank notes its pid once it has come to its gate (loaded.HOST.PID), and again, with what gate() returned, once it has a place (there.RANK).
"""

import glob
import json
import signal

import harness
import jobs
import recovery

PROGRAM = jobs.PYTHON_MARK + """
import json, os, sys, time
sys.path.insert(0, os.environ["MODULES"])
import monarch_rank as monarch
assert "MONARCH_STANDBY" not in os.environ or "RANK" not in os.environ
host = os.environ["MONARCH_HOST"]
open("loaded.%s.%d" % (host, os.getpid()), "w").close()
mine = monarch.gate()
assert mine["RANK"] == os.environ["RANK"] and "MONARCH_STANDBY" not in os.environ
with open("runs", "a") as file: file.write("%s %s %d\\n" % (mine["MONARCH_RANK"], mine["MONARCH_GENERATION"], os.getpid()))
mark("place", json.dumps({k: mine[k] for k in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "MONARCH_GENERATION", "MONARCH_HOST")}))
mark("there")
print("placed as", mine["MONARCH_RANK"], flush=True)
i = 0
while not os.path.exists("go"):
    i += 1
    mark("step", i)
    time.sleep(0.05)
"""
QUICK = {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "1s", "lease": "1500ms"}


class Standby(recovery.RecoveryTest):
    def standing(self, program=PROGRAM, hosts=2, spares=1, standby=1):
        self.write("program.py", program)
        mesh = {"gang": "host", "per_host": ["slot"], "standby": {"gangs": standby}, "env": {"MODULES": harness.MODULES, "WHO": "$(self.rank)"},
                "stop": {"grace": "2s"}}
        spec = self.program_job(["python3", "program.py"], hosts, 2, mesh=mesh,
                                launch={"local": {"hosts": hosts + spares, "spares": spares}},
                                supervision={"restart": {"max": 4}, "reallocate": {"max": 4}, **QUICK})
        run = self.start("run", spec)
        self.pids = dict(enumerate(self.wait_for_marks("there", 2 * hosts)))
        return run

    def waiting(self, host):
        """The pids that came to their gates there."""
        return {int(p.rpartition(".")[2]) for p in glob.glob(self.path("work", f"loaded.{host}.*"))}

    def assert_one_process_each(self):
        """No rank ran twice in one generation."""
        runs = [line.split()[:2] for line in self.read("work", "runs").splitlines()]
        self.assertEqual(len(runs), len({tuple(r) for r in runs}), runs)

    def hosts_of_ranks(self):
        return [r["host"] for r in self.status()["meshes"][0]["ranks"]]

    def assert_taken(self, ranks, host, waiting):
        self.wait_for_anew(ranks)
        self.assertEqual({self.pid_of(r) for r in ranks}, waiting)
        harness.wait_for(lambda: {self.hosts_of_ranks()[r] for r in ranks} == {host}, self.status)
        for rank in ranks:
            place = json.loads(self.read("work", f"place.{rank}"))
            self.assertEqual((place["RANK"], place["WORLD_SIZE"], place["MONARCH_HOST"]), (str(rank % 2), "2", host))
            self.assertGreater(int(place["MONARCH_GENERATION"]), 1)
        self.assert_one_process_each()

    def test_one_at_its_gate_takes_the_place_of_a_gang_that_fails(self):
        run = self.standing()
        self.assertRegex(self.wait_for_event("standby.ready")["message"], r"^m: standby 0 is at its gate$")
        self.assertIn("standby 0 on v3, at its gate", self.monarch("status").out)
        waiting = self.waiting("v3")
        self.assertEqual(len(waiting), 2)
        self.signal_by_pid(self.pids[3], signal.SIGKILL)
        self.assert_taken([2, 3], "v3", waiting)
        self.assert_go_on([0, 1])
        # The host that was left is where the next one waits.
        self.wait_for_event("standby.ready", 2)
        self.assertEqual(self.status()["meshes"][0]["standby"], [{"phase": "ready", "hosts": ["v2"]}])
        done, _ = self.end_well(run)
        self.assertIn("[m/2@v3] placed as 2", done.out)

    def test_one_takes_the_place_of_a_gang_whose_host_is_lost(self):
        run = self.standing()
        self.wait_for_event("standby.ready")
        waiting = self.waiting("v3")
        self.kill(self.process("keeper", "v2"))
        self.assert_taken([2, 3], "v3", waiting)
        self.assert_go_on([0, 1])
        self.end_well(run)

    def test_a_supervisor_that_comes_back_finds_it_at_its_gate(self):
        run = self.standing()
        self.wait_for_event("standby.ready")
        waiting = self.waiting("v3")
        self.kill(self.process("supervisor"))
        self.wait_for_event("supervisor.adopted")
        self.assertEqual(self.waiting("v3"), waiting)
        self.signal_by_pid(self.pids[3], signal.SIGKILL)
        self.assert_taken([2, 3], "v3", waiting)
        self.end_well(run)

    def test_one_that_fails_is_started_again_and_never_fails_the_job(self):
        failing = PROGRAM.replace("mine = monarch.gate()", "if \"MONARCH_STANDBY\" in os.environ: sys.exit(3)\nmine = monarch.gate()")
        run = self.standing(failing)
        failed = self.wait_for_event("standby.failed", 2)
        self.assertIn("exit code 3, before it was at its gate", failed["message"])
        self.assert_go_on([0, 1, 2, 3])
        self.end_well(run)

    def test_one_that_still_loads_gives_its_host_to_a_gang_that_needs_it(self):
        loading = PROGRAM.replace("mine = monarch.gate()", "if \"MONARCH_STANDBY\" in os.environ: time.sleep(1000)\nmine = monarch.gate()")
        run = self.standing(loading)
        harness.wait_for(lambda: len(self.waiting("v3")) == 2, self.status)
        waiting = self.waiting("v3")
        self.kill(self.process("keeper", "v2"))
        self.wait_for_anew([2, 3])
        self.assertEqual({self.hosts_of_ranks()[r] for r in (2, 3)}, {"v3"})
        self.assertEqual({self.pid_of(r) for r in (2, 3)} & waiting, set())
        self.assertEqual([p for p in self.processes() if p.pid in waiting], [])
        self.assert_one_process_each()
        self.end_well(run)


if __name__ == "__main__":
    harness.main()
