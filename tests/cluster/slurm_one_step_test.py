"""`launch: slurm` with one step for all hosts that are launched at once, on a real Slurm: who has a part in it, and what becomes of the others when
one of them is lost, and of all when something ends what they share."""

import hashlib
import os
import re

import harness
import jobs
import slurm
from harness import wait_for

UP = "mark up; " + jobs.FOREVER
QUICK = {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "1s", "lease": "1500ms", "orphan_ttl": "5s"}
RECOVERS = {**QUICK, "restart": {"max": 4}, "reallocate": {"max": 4}}
# What Slurm knows is heard before silence counts, also on a busy machine.
KNOWN_BY_SLURM = {**RECOVERS, "lost_after": "10s", "lease": "12s", "orphan_ttl": "15s"}
SHARED = r".*\.\+\d+\.\d+"


class OneStep(slurm.SlurmTest):
    def started(self, nodes, hosts, spares=0, **keys):
        """A job that runs on so many hosts, all launched by one step."""
        s = self.slurm(nodes)
        run = self.salloc(nodes, "run", self.slurm_job(UP, hosts=hosts, slots=1, slurm={"own_steps": 1, "spares": spares, "replacements": 0},
                                                       mesh={"gang": "host"}, supervision={**RECOVERS, **keys}))
        self.wait_for_marks("up", hosts)
        return s, run

    def steps(self):
        """{name of the step: its nodes} of the only job of Slurm."""
        job, = self._slurm.jobs()
        return dict(self._slurm.steps(job).values())

    def shared_sruns(self):
        """The processes of those that serve many, the first one first."""
        both = [p for p in super().processes() if p.program == "srun" and any(re.fullmatch(rb"--job-name=.*\.\+\d+\.\d+", a) for a in p.arguments)]
        return sorted(both, key=lambda process: process.parent in [other.pid for other in both])

    def assert_one_step(self, nodes):
        (name, there), = self.steps().items()
        self.assertRegex(name, SHARED)
        self.assertEqual(there, nodes)

    def test_a_job_runs_in_one_step_and_leaves_nothing(self):
        s, run = self.started(4, 4)
        self.assert_one_step("h[1-4]")
        self.assertEqual(len(self.shared_sruns()), 2, "an srun is two processes")
        self.assertEqual([host["phase"] for host in self.status()["hosts"]], ["ready"] * 4)
        self.assertTrue(all(host.run("ls", self.environment["XDG_CACHE_HOME"] + "/monarch/worker").stdout for host in s.node_hosts))
        self.stop(run)
        self.assert_nothing_left()

    def test_fewer_get_a_step_each(self):
        self.slurm(2)
        run = self.salloc(2, "run", self.slurm_job(UP, hosts=2, slots=1, slurm={"own_steps": 2, "replacements": 0}))
        self.wait_for_marks("up", 2)
        self.assertEqual(sorted(self.steps().values()), ["h1", "h2"])
        self.stop(run)
        self.assert_nothing_left()

    def test_a_node_that_loses_its_power_is_replaced_by_a_spare_and_the_step_goes_on(self):
        s, run = self.started(4, 3, spares=1)
        before = self.wait_for_marks("up", 3)
        s.node_hosts[1].power_off()
        wait_for(lambda: self.hosts_of_marks("up").get(1) == "h4", lambda: f"rank 1 on h4\n{run!r}\n{self.supervisor_log()}")
        s.wait_for_state("h2", "down", 90)  # a busy controller takes its time
        wait_for(lambda: self.status()["hosts"][1]["phase"] != "ready", self.supervisor_log)
        after = self.wait_for_marks("up", 3)
        self.assertEqual((before[0], before[2]), (after[0], after[2]), "the healthy ones went on")
        self.stop(run)
        self.assert_nothing_left()

    def test_a_host_that_is_launched_later_gets_a_step_of_its_own(self):
        _, run = self.started(3, 2)
        before = self.wait_for_marks("up", 2)
        self.assert_one_step("h[1-2]")
        self.kill_all([process for role in ("keeper", "daemon") for process in self.processes_of(role, "h2")])
        wait_for(lambda: self.hosts_of_marks("up").get(1) == "h3", lambda: f"rank 1 on h3\n{run!r}\n{self.supervisor_log()}")
        wait_for(lambda: "h3" in self.steps().values(), lambda: f"a step of h3; there are {self.steps()}")
        self.assertEqual(self.wait_for_marks("up", 2)[0], before[0], "the healthy one went on")
        self.stop(run)
        self.assert_nothing_left()

    def test_all_begin_again_when_the_head_of_their_srun_is_killed(self):
        slow = {"heartbeat": "5s", "suspect_after": "15s", "lost_after": "20s", "lease": "25s", "orphan_ttl": "60s"}
        _, run = self.started(3, 3, **slow)
        before = self.wait_for_marks("up", 3)
        self.kill(self.shared_sruns()[0])
        wait_for(lambda: not set(before) & set(self.wait_for_marks("up", 3)), lambda: f"all anew\n{run!r}\n{self.supervisor_log()}", 15)
        self.stop(run)
        self.assert_nothing_left()

    def test_all_outlive_their_srun(self):
        _, run = self.started(3, 3)
        before = self.wait_for_marks("up", 3)
        for srun in self.shared_sruns()[::-1]:
            self.kill(srun)  # the second one first: it would end the step
        wait_for(lambda: self.supervisor_log().count("its step goes on without it") == 3, self.supervisor_log)
        self.assertEqual([host["phase"] for host in self.status()["hosts"]], ["ready"] * 3)
        self.stop(run)
        self.assertEqual(before, self.wait_for_marks("up", 3))
        self.assert_nothing_left()

    def test_a_supervisor_that_is_killed_comes_back_to_them(self):
        _, run = self.started(3, 3)
        before, steps = self.wait_for_marks("up", 3), self.steps()
        self.kill(self.process("supervisor"))
        wait_for(lambda: "the supervisor before it ended unexpectedly" in self.supervisor_log(), self.supervisor_log)
        wait_for(lambda: [host["phase"] for host in self.status()["hosts"]] == ["ready"] * 3, "all hosts")
        self.assertEqual(steps, self.steps())
        self.stop(run)
        self.assertEqual(before, self.wait_for_marks("up", 3))
        self.assert_nothing_left()

    HELD = "/tmp/held"

    def hold_worker(self, host):
        """In the place of the worker's file, which the node has already, one of its size that waits for a word."""
        with open(harness.WORKER, "rb") as file:
            image = file.read()
        folder = f"{self.environment['XDG_CACHE_HOME']}/monarch/worker/{hashlib.sha256(image).hexdigest()}"
        host.run("sh", "-c", f"umask 077; mkdir -p {folder} {self.HELD}")
        host.write(f"{self.HELD}/monarch-worker", "", 0o700)
        with open(host.path(f"{self.HELD}/monarch-worker"), "wb") as file:
            file.write(image)
        script = f'#!/bin/sh\ncd {self.HELD}\necho >held\nwhile [ ! -e go ]; do sleep 0.01; done\nexec ./monarch-worker "$@"\n#'
        host.write(f"{folder}/monarch-worker", script + "#" * (len(image) - len(script)), 0o700)

    def begun_but_one(self):
        """A job of three hosts whose last one is about to start its worker, while those of the others have answered."""
        s = self.slurm(3)
        self.hold_worker(s.node_hosts[2])
        run = self.salloc(3, "run", self.slurm_job(UP, hosts=3, slots=1, slurm={"own_steps": 1, "replacements": 0},
                                                   mesh={"gang": "host"}, supervision=KNOWN_BY_SLURM))
        for host in ("h1", "h2"):
            run.wait_for_err(rf"host\.ready {host}:")
        # A host that is lost before its ranks were ever begun is one that does not start, and there is no other here.
        wait_for(lambda: len(self.hosts_of_marks("up")) == 2, lambda: f"ranks of both\n{run!r}\n{self.supervisor_log()}")
        wait_for(lambda: os.path.exists(s.node_hosts[2].path(f"{self.HELD}/held")), self.supervisor_log)
        return s, run

    def assert_all_there(self, run, workers):
        """Whoever had begun goes on, the last one begins, and there is one of each."""
        wait_for(lambda: len(self.hosts_of_marks("up")) == 3, lambda: f"all ranks\n{run!r}\n{self.supervisor_log()}", 60)
        self.assertEqual(self.hosts_of_marks("up"), {0: "h1", 1: "h2", 2: "h3"})
        self.assertEqual([self.processes_of("keeper", host)[0].pid for host in ("h1", "h2")], workers)
        wait_for(lambda: [len(self.processes_of("keeper", f"h{n}")) for n in (1, 2, 3)] == [1, 1, 1], "one keeper on each node")
        self.assertEqual([host["phase"] for host in self.status()["hosts"]], ["ready"] * 3)

    def test_a_supervisor_that_is_killed_between_two_answers_launches_the_rest(self):
        s, run = self.begun_but_one()
        workers = [self.processes_of("keeper", host)[0].pid for host in ("h1", "h2")]
        self.kill(self.process("supervisor"))
        wait_for(lambda: "the supervisor before it ended unexpectedly" in self.supervisor_log(), self.supervisor_log)
        s.node_hosts[2].write(f"{self.HELD}/go", "")
        self.assert_all_there(run, workers)
        self.stop(run)
        s.node_hosts[2].run("rm", "-r", self.HELD)
        self.assert_nothing_left()

    def test_all_begin_again_when_their_srun_is_killed_between_two_answers(self):
        s, run = self.begun_but_one()
        self.kill(self.shared_sruns()[0])
        wait_for(lambda: "the srun of several workers has ended before those of h3" in self.supervisor_log(), self.supervisor_log)
        s.node_hosts[2].write(f"{self.HELD}/go", "")
        wait_for(lambda: len(self.hosts_of_marks("up")) == 3 and [host["phase"] for host in self.status()["hosts"]] == ["ready"] * 3,
                 lambda: f"all hosts and ranks\n{run!r}\n{self.supervisor_log()}", 60)
        self.stop(run)
        s.node_hosts[2].run("rm", "-r", self.HELD)
        self.assert_nothing_left()

    def test_a_node_whose_home_cannot_be_written_fails_alone(self):
        s = self.slurm(4)
        os.makedirs(s.node_hosts[1].path(self.environment["XDG_CACHE_HOME"]))
        s.node_hosts[1].write(self.environment["XDG_CACHE_HOME"] + "/monarch", "in the way")
        run = self.salloc(4, "run", self.slurm_job(UP, hosts=3, slots=1, slurm={"own_steps": 1, "spares": 1, "replacements": 0},
                                                   mesh={"gang": "host"}, supervision=RECOVERS))
        self.wait_for_marks("up", 3)
        self.assertEqual(self.hosts_of_marks("up"), {0: "h1", 1: "h4", 2: "h3"})
        self.assertRegex(self.supervisor_log(), r"h2.*the host could not take monarch-worker into ~/.cache/monarch")
        self.assert_one_step("h[1-4]")
        self.stop(run)
        self.assert_nothing_left()

    def test_a_node_that_is_dead_when_the_step_begins_is_left_out_of_the_next_one(self):
        s = self.slurm(4)
        spec = self.slurm_job(UP, hosts=3, slots=1, slurm={"own_steps": 1, "spares": 1, "replacements": 0}, mesh={"gang": "host"}, supervision=RECOVERS)
        # Between the two nothing notices: Slurm takes a node for lost after ten seconds.
        run = self.start_program("salloc", "--quiet", "--no-kill", "-N4", "/bin/sh", "-c",
                                 f'touch {self.path("work")}/granted; while [ ! -e {self.path("work")}/go ]; do sleep 0.01; done; exec "$@"',
                                 "sh", jobs.harness.MONARCH, "run", spec)
        wait_for(lambda: os.path.exists(self.path("work") + "/granted"), "the allocation")
        s.node_hosts[1].power_off()
        with open(self.path("work") + "/go", "w", encoding="ascii"):
            pass
        wait_for(lambda: len(self.hosts_of_marks("up")) == 3, lambda: f"all ranks\n{run!r}\n{self.supervisor_log()}", 60)
        self.assertEqual(self.hosts_of_marks("up"), {0: "h1", 1: "h4", 2: "h3"})
        wait_for(lambda: "h2" not in "".join(self.steps().values()), lambda: f"the end of the first step; there are {self.steps()}")
        self.assertEqual(sorted(self.steps().values()), ["h[1,3-4]"])
        self.stop(run)
        self.assert_nothing_left()


if __name__ == "__main__":
    slurm.main()
