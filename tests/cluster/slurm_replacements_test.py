"""Nodes that Slurm is asked for in the place of lost ones: granted, in the queue, asked for twice, given back; and what Slurm says of nodes
that are well for us."""

import os
import re

import harness
import jobs
import recovery
import slurm
from harness import wait_for

UP = "mark up; " + jobs.FOREVER
QUICK = {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "1s", "lease": "1500ms", "orphan_ttl": "5s"}
RECOVERS = {**QUICK, "restart": {"max": 4}, "reallocate": {"max": 4}}
SHRINKS = {**RECOVERS, "shrink": {"along": "host", "min": 1}}
# Slurm's controller has given up what it was asked before then.
WRAPPED = "/usr/local/bin/sbatch"


class ReplacementTest(slurm.SlurmTest, recovery.RecoveryTest):
    def running_job(self, nodes=2, script=UP, **keys):
        keys = {"supervision": RECOVERS, "mesh": {"gang": "host"}, **keys}
        run = self.salloc(nodes, "run", self.slurm_job(script, **keys))
        self.wait_for_marks("up", 4)
        return run

    def replacements(self):
        """{job of Slurm's: its state} of those that monarch asked for."""
        lines = self._slurm.run("squeue", "-h", "-t", "all", "-o", "%A|%T|%k").stdout.split("\n")
        jobs_of = [line.split("|") for line in lines if line]
        return {int(job): state for job, state, comment in jobs_of if comment.startswith("monarch ")}

    def wait_for_ranks_elsewhere(self, run, hosts):
        wait_for(lambda: any(all(os.path.exists(host.path(f"/tmp/up.{rank}")) for rank in (2, 3)) for host in hosts),
                 lambda: f"ranks 2 and 3 anew\n{run!r}\n{self.supervisor_log()}", 40)

    def shrunk_job(self):
        """Two gangs of two nodes; the second has lost both of its own, got one from Slurm, and waits for another one."""
        s = self.slurm(5)
        run = self.salloc(4, "run", self.slurm_job(UP, 4, 1, slurm={"queue_limit": "3s"},
                                                   supervision={**RECOVERS, "shrink": {"along": "replica", "min": 1}},
                                                   mesh={"dims": {"replica": 2, "host": 2, "slot": 1}, "gang": "replica"}))
        self.wait_for_marks("up", 4)
        s.node_hosts[3].power_off()
        wait_for(lambda: os.path.exists(s.node_hosts[4].path("/tmp/up.3")), lambda: f"rank 3 on h5\n{run!r}\n{self.supervisor_log()}", 40)
        self.assertEqual(self.replacements(), {2: "RUNNING"})
        s.node_hosts[2].power_off()
        return s, run

    def wait_for_returned(self, run):
        self.assertEqual(self.wait_for_event("host.released", timeout=60)["host"], "h5")
        wait_for(lambda: "RUNNING" not in self.replacements().values(), lambda: f"h5 given back\n{run!r}\n{self.supervisor_log()}")
        self._slurm.wait_for_state("h5", "idle")


class Replacements(ReplacementTest):
    def drain(self, *nodes):
        for node in nodes:
            self._slurm.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")

    def test_a_lost_node_is_replaced_by_one_that_slurm_is_asked_for(self):
        s = self.slurm(4)
        run = self.running_job()
        before = self.wait_for_marks("up", 4)
        s.node_hosts[1].power_off()
        self.wait_for_ranks_elsewhere(run, s.node_hosts[2:])
        self.assertEqual(before[:2], self.wait_for_marks("up", [0, 1]), "the healthy gang went on")
        named = self.wait_for_event("host.named")["message"]
        node = re.fullmatch(r"new1 is (h[34]): Slurm gave it as job 2 after \S+", named)[1]
        host = next(host for host in self.status()["hosts"] if host["name"] == node)
        self.assertEqual((host["phase"], host["role"]), ("ready", "rank"))
        self.assertEqual(self.replacements(), {2: "RUNNING"})
        self.stop(run)
        self.assertNotIn("RUNNING", self.replacements().values())
        self.assert_nothing_left()

    def test_it_is_like_the_nodes_that_the_job_has(self):
        s = self.slurm(3, gpus=2)
        run = self.start_program("salloc", "--quiet", "--no-kill", "-N2", "--exclusive", "--gres=gpu:2", "-t30", harness.MONARCH, "run",
                                 self.slurm_job(UP, supervision=RECOVERS, mesh={"gang": "host"}))
        self.wait_for_marks("up", 4)
        s.node_hosts[1].power_off()
        self.wait_for_ranks_elsewhere(run, s.node_hosts[2:])
        facts = s.run("scontrol", "show", "job", "2").stdout
        self.assertIn("NumCPUs=4", facts)
        self.assertIn("gpu:2", facts)
        self.assertIn("OverSubscribe=NO", facts)
        self.assertIn("ExcNodeList=h[1-2]", facts)
        limit = re.search(r"TimeLimit=00:(\d\d):00", facts)
        self.assertIn(int(limit[1]), (29, 30), "what is left of the job's own")
        self.stop(run)
        self.assert_nothing_left()

    def test_an_answer_that_is_lost_gives_no_second_node(self):
        s = self.slurm(4)
        s.login.write(WRAPPED, "#!/bin/sh\n/usr/bin/sbatch \"$@\" >/dev/null\nexec sleep 1000\n", 0o755)
        run = self.running_job(slurm={"queue_limit": "1m"})
        s.node_hosts[1].power_off()
        self.wait_for_ranks_elsewhere(run, s.node_hosts[2:])
        self.assertEqual(self.replacements(), {2: "RUNNING"})
        self.assertIn("did not answer within", self.wait_for_told(run, "host.queued")["message"])
        self.stop(run)
        self.assert_nothing_left()

    def test_one_that_stays_in_the_queue_is_cancelled_and_the_job_shrinks(self):
        s = self.slurm(3)
        run = self.running_job(slurm={"queue_limit": "3s"}, supervision=SHRINKS)
        before = self.wait_for_marks("up", 4)
        self.drain("h3")
        s.node_hosts[1].power_off()
        wait_for(lambda: "PENDING" in self.replacements().values(), lambda: f"a job in the queue\n{run!r}\n{self.supervisor_log()}")
        self.assertEqual(self.host_phase("new1"), "queued")
        self.assertRegex(self.wait_for_told(run, "host.queued")["message"], r"new1: Slurm's job 2 waits for a node: \S+")
        self.assertIn("shrink: its gang is parked", self.wait_for_event("gang.parked")["message"])
        wait_for(lambda: self.replacements() == {2: "CANCELLED"}, lambda: f"its end; there are {self.replacements()}", 5)
        self.assertEqual(before[:2], self.wait_for_marks("up", [0, 1]), "the healthy gang went on")
        self.stop(run)
        self.assert_nothing_left()

    def test_one_that_serves_a_parked_gang_alone_is_given_back(self):
        _, run = self.shrunk_job()
        self.wait_for_returned(run)
        self.assertEqual({rank["phase"] for rank in self.status()["meshes"][0]["ranks"]}, {"running", "parked"})
        self.stop(run)
        self.assert_nothing_left()

    def host_phase(self, name):
        return next(host["phase"] for host in self.status()["hosts"] if host["name"] == name)

    def test_one_that_nobody_can_give_is_refused_at_once_and_the_job_fails_with_92(self):
        s = self.slurm(2)
        run = self.running_job(supervision={**RECOVERS, "reallocate": {"max": 1}})
        s.node_hosts[1].power_off()
        done = run.finished()
        self.assertEqual(done.status, 92, done)
        self.assertIn("not granted (queue", done.err)
        self.assertIn("Requested node configuration is not available", done.err)
        self.assert_nothing_left()

    def test_none_is_asked_for_where_the_spec_wants_none(self):
        s = self.slurm(3)
        run = self.running_job(slurm={"replacements": 0}, supervision=SHRINKS)
        s.node_hosts[1].power_off()
        self.wait_for_event("gang.parked")
        self.assertEqual(self.replacements(), {})
        self.stop(run)
        self.assert_nothing_left()

    def test_a_replacement_that_is_lost_is_replaced_by_another(self):
        s = self.slurm(4)
        run = self.running_job()
        s.node_hosts[1].power_off()
        self.wait_for_ranks_elsewhere(run, s.node_hosts[2:])
        first = next(host for host in s.node_hosts[2:] if os.path.exists(host.path("/tmp/up.2")))
        second = next(host for host in s.node_hosts[2:] if host is not first)
        first.power_off()
        self.wait_for_ranks_elsewhere(run, [second])
        self.assertEqual(self.host_phase(second.name), "ready")
        self.stop(run)
        self.assert_nothing_left()

    def test_a_supervisor_that_comes_back_gives_back_what_the_one_before_it_was_given(self):
        s = self.slurm(3)
        run = self.running_job()
        s.node_hosts[1].power_off()
        self.wait_for_ranks_elsewhere(run, s.node_hosts[2:])
        mark = s.node_hosts[2].read("/tmp/up.2")
        self.kill(self.process("supervisor"))
        wait_for(lambda: "the supervisor before it ended unexpectedly" in self.supervisor_log(), self.supervisor_log)
        wait_for(lambda: self.host_phase("h3") == "ready", lambda: f"h3\n{self.supervisor_log()}")
        self.stop(run)
        self.assertEqual(mark, s.node_hosts[2].read("/tmp/up.2"), "its ranks were adopted")
        self.assert_nothing_left()

    def test_the_end_of_the_allocation_ends_the_replacement_as_well(self):
        s = self.slurm(4)
        run = self.running_job()
        s.node_hosts[1].power_off()
        self.wait_for_ranks_elsewhere(run, s.node_hosts[2:])
        s.run("scancel", "1")
        wait_for(self.verdict_is_there, lambda: f"a verdict\n{run!r}\n{self.supervisor_log()}", 15)
        self.assertEqual(self.verdict()["exit_code"], 143, self.verdict())
        run.wait()
        self.assertEqual(len(self.replacements()), 1, "no other was asked for")
        self.assert_nothing_left()

    def test_a_node_that_is_down_for_slurm_alone_is_left_in_order_for_a_spare(self):
        s = self.slurm(3)
        script = "trap 'mark saved; exit 0' TERM; " + UP
        run = self.running_job(3, script, slurm={"spares": 1})
        before = self.wait_for_marks("up", 4)
        s.nodes[1].kill()
        self.wait_for_ranks_elsewhere(run, [s.node_hosts[2]])
        for rank in (2, 3):
            self.assertTrue(os.path.exists(s.node_hosts[1].path(f"/tmp/saved.{rank}")), "it was stopped in order")
        self.assertEqual(before[:2], self.wait_for_marks("up", [0, 1]), "the healthy gang went on")
        drained = self.wait_for_event("host.drained")["message"]
        self.assertRegex(drained, "h2: nothing new starts there, asked by Slurm, which says `.*down")
        self.stop(run)
        s.nodes[1].start()
        self.assert_nothing_left()

    def test_nothing_new_starts_on_a_node_that_slurm_drains_until_it_does_no_more(self):
        s = self.slurm(3)
        run = self.running_job(3, slurm={"spares": 1})
        before = self.wait_for_marks("up", 4)
        self.drain("h2", "h3")
        wait_for(lambda: len([h for h in self.status()["hosts"] if h.get("standing") == "drained"]) == 2,
                 lambda: f"two drained hosts\n{self.status()['hosts']}", 15)
        self.assertEqual(before, self.wait_for_marks("up", 4), "who runs goes on")
        for node in ("h2", "h3"):
            s.run("scontrol", "update", f"nodename={node}", "state=resume")
        wait_for(lambda: not [h for h in self.status()["hosts"] if h.get("standing") == "drained"], "no drained host", 15)
        self.stop(run)
        self.assert_nothing_left()

    def test_a_job_whose_number_is_anothers_now_is_not_ours(self):
        s = self.slurm(3)
        run = self.running_job()
        s.forget_all()
        other = s.submit("exec sleep 1000", "--nodelist=h3")
        self.assertEqual(other, 1, "the controller has forgotten all")
        s.wait_for_job(other, "RUNNING")
        wait_for(self.verdict_is_there, lambda: f"a verdict\n{run!r}\n{self.supervisor_log()}", 30)
        self.assertEqual(self.verdict()["exit_code"], 92, self.verdict())
        self.assertIn("job 1 is not known to it any more", self.verdict()["reason"])
        self.assertEqual(s.jobs()[other], "RUNNING", "nobody touches it")
        s.run("scancel", str(other))
        run.wait()
        # Its workers were killed by Slurm, with all that could have removed their sockets and cgroups.
        self.wait_for_no_worker()


if __name__ == "__main__":
    slurm.main()
