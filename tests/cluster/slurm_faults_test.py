"""What Slurm does to a job, or fails to do, on a real one: a node that it takes for lost, a controller that is gone, an answer that is lost, a
queue that does not move, and the ends of an allocation. A gang that it does not concern goes on; of what ends a whole job, another job."""

import os

import harness
import host_faults
import slurm
from harness import wait_for

# What monarch looks at every ten seconds.
LOOK_S = 12
MOVED = r"^h3 takes the place of h2 \[host %s: replacement 1 of 8 in 1h"
ASKED = r"^new1 takes the place of h2; its worker is launched now \[host lost: replacement 1 of 8 in 1h"
SBATCH = "/usr/local/bin/sbatch"
SHRINK = {"shrink": {"along": "host", "min": 1}}


class SlurmFaultTest(slurm.SlurmTest, host_faults.HostFaultTest):
    def allocated(self, nodes=3, spares=1, slurm_keys=None, options=(), meanwhile=None, **supervision):
        """`run` in salloc, as HostFaultTest.running(): the gangs of two nodes count, and the spares are connected. `meanwhile` is done when
        it was asked for."""
        self.profile = "fast"
        settings = {"restart": {"max": 4}, "reallocate": {"max": 8}, **host_faults.FAST, **supervision}
        spec = self.slurm_job(host_faults.COUNT, hosts=2, slots=2, slurm={"spares": spares, **(slurm_keys or {})}, supervision=settings,
                              mesh={"gang": "host", "workdir": self.path("work"), "stop": {"grace": "2s"}})
        run = self.start_program("salloc", "--quiet", "--no-kill", f"-N{nodes}", *options, harness.MONARCH, "run", spec)
        if meanwhile:
            meanwhile()
        wait_for(lambda: all(self.step_of(r) > 1 for r in range(4)), lambda: f"steps of all: {run!r}", host_faults.START_S)
        run.wait_for_err(r"job\.running", host_faults.START_S)
        for number in range(3, 3 + spares):
            run.wait_for_err(rf"host\.ready h{number}:", host_faults.START_S)
        self.pids = {r: self.pid_of(r) for r in range(4)}
        self.assertEqual([self.host_of(r) for r in range(4)], ["h1", "h1", "h2", "h2"])
        return run

    def replaced(self, since, told, host=None):
        """The gang of h2 counts elsewhere; the one of h1 is untouched, and nobody did a thing twice."""
        self.assert_declared("h2", since)
        self.wait_for_move([2, 3], host)
        self.assert_stage(self.wait_for_event("host.replaced"), told)
        self.assert_go_on([0, 1])
        self.assert_single_effect(range(4))

    def kill_rank(self):
        self.w["h2"].run("/bin/kill", "-KILL", self.pid_of(2).split()[2])

    def strike_rank(self):
        """Rank 2 is killed; its gang is started again in its place."""
        since = self.now()
        self.kill_rank()
        self.assert_seen(self.wait_for_event("gang.failed"), since)
        self.wait_for_move([2, 3], "h2", 10)
        self.assert_answer(self.wait_for_event("gang.failed"), "restart", 1, 4)
        self.assert_go_on([0, 1])

    def requests(self):
        """{job of Slurm's: its state} of those that monarch asked for."""
        lines = self._slurm.run("squeue", "-h", "-t", "all", "-o", "%A|%T|%k").stdout.split("\n")
        return {int(line.split("|")[0]): line.split("|")[1] for line in lines if "|monarch " in line}

    def ended(self, run, code, reason, since, within):
        """The whole job, with this code and reason; nothing was started again."""
        wait_for(self.verdict_is_there, lambda: f"a verdict\n{run!r}\n{self.supervisor_log()}", 60)
        verdict = self.verdict()
        self.assertEqual(verdict["exit_code"], code, verdict)
        self.assertRegex(verdict["reason"], reason)
        self.assert_seen(self.wait_for_event("job.stopping"), since, within)
        self.assert_nothing_done("gang.waiting", "host.named")
        self.end_beside()
        run.wait()


class Nodes(SlurmFaultTest):
    def test_that_are_down_for_slurm_and_well_for_us(self):  # R01
        s = self.slurm(3)
        run = self.allocated()
        since = self.now()
        s.nodes[1].kill()
        drained = self.wait_for_event("host.drained", 1, 60)
        self.assertRegex(drained["message"], "^h2: nothing new starts there, asked by Slurm, which says `.*down")
        self.assert_seen(drained, since, slurm.SLURMD_TIMEOUT_S * 2 + LOOK_S)
        self.wait_for_move([2, 3], "h3")
        self.assert_stage(self.wait_for_event("host.replaced"), MOVED % "drained", host="h3")
        self.assert_go_on([0, 1])
        self.assert_single_effect(range(4))
        self.end_well(run)
        s.nodes[1].start()
        self.assert_nothing_left()

    def test_that_are_cut_off(self):  # R02
        s = self.slurm(3)
        run = self.allocated()
        since = self.now()
        s.node_hosts[1].unplug()
        self.replaced(since, MOVED % "lost", "h3")
        wait_for(lambda: not self.alive_on("h2", 1), "the end of what ran there")
        s.node_hosts[1].plug()
        self.write("go", "")
        self.assertEqual(run.finished(60).status, 0, run)
        self.assert_nothing_left()

    def test_that_an_operator_drains(self):  # R11
        s = self.slurm(3)
        run = self.allocated()
        since = self.now()
        s.run("scontrol", "update", "nodename=h2", "state=drain", "reason=fan")
        drained = self.wait_for_event("host.drained", 1, 30)
        self.assertRegex(drained["message"], "^h2: nothing new starts there, asked by Slurm, which says `drain.*: fan")
        self.assert_seen(drained, since, LOOK_S)
        self.assert_go_on(range(4))
        self.assert_nothing_done()
        self.kill_rank()
        self.wait_for_move([2, 3], "h3")
        self.assert_go_on([0, 1])
        self.end_well(run)
        self.assert_nothing_left()


class Controller(SlurmFaultTest):
    def test_that_is_gone(self):  # R03
        s = self.slurm(3)
        run = self.allocated()
        s.controller.kill()
        self.strike_rank()
        s.controller.start()
        self.end_well(run)
        self.assert_nothing_left()

    def test_that_stands_still(self):  # R04
        s = self.slurm(3)
        run = self.allocated()
        s.controller.stop()
        self.strike_rank()
        s.controller.cont()
        self.end_well(run)
        self.assert_nothing_left()

    def test_whose_answer_is_lost(self):  # R05
        s = self.slurm(4)
        s.login.write(SBATCH, '#!/bin/sh\n/usr/bin/sbatch "$@" >/dev/null\nexec sleep 1000\n', 0o755)
        run = self.allocated(2, 0)
        since = self.now()
        s.node_hosts[1].power_off()
        self.replaced(since, ASKED)
        self.assertEqual(self.requests(), {2: "RUNNING"})
        self.end_well(run, ["h2"])
        self.assert_nothing_left()

    def test_that_gives_the_number_of_a_job_to_another_one(self):  # R06
        s = self.slurm(4)
        run = self.allocated()
        self.beside()
        since = self.now()
        s.forget_all()
        other = s.submit("exec sleep 1000", "--nodelist=h4")
        self.assertEqual(other, 1, "the controller has forgotten all")
        self.ended(run, 92, "Slurm, whose job 1 is not known to it any more", since, 30)
        s.wait_for_job(other, "RUNNING")  # nobody touches it
        s.run("scancel", str(other))
        # Its workers were killed by Slurm, with all that could have removed their sockets and cgroups.
        self.wait_for_no_worker()
        self.clean(s.node_hosts)
        self.assert_nothing_left()

    def test_that_is_back_with_an_older_state(self):  # R07
        s = self.slurm(3)
        state, older = "/var/spool/slurmctld", "/var/spool/older"

        def keep_and_release():
            wait_for(lambda: os.path.exists(s.controller.host.path(state + "/job_state")), "the controller's state of a job that waits", 30)
            s.controller.host.run("cp", "-a", state, older)
            s.run("scontrol", "release", "1")

        run = self.allocated(options=("--hold",), meanwhile=keep_and_release)
        self.beside()
        since = self.now()
        s.controller.kill()
        s.controller.host.run("sh", "-c", f"rm -rf {state} && mv {older} {state}")
        s.controller.start()
        self.ended(run, 92, "^stopped by Slurm, whose job 1 is over: (PENDING|REQUEUE)", since, 30)
        s.run("scancel", "1")
        self.wait_for_no_worker()
        self.clean(s.node_hosts)
        self.assert_nothing_left()

    def test_that_does_not_know_who_asks(self):  # R13
        s = self.slurm(3)
        run = self.allocated(2, 0)
        since = self.now()
        s.munge["login"].kill()
        s.node_hosts[1].power_off()
        self.assert_declared("h2", since)
        self.assertRegex(self.wait_for_told(run, "host.queued")["message"],
                         "^new1: Slurm was asked for a node and does not answer: .*; it would not know who asks: munge: .*unge")
        self.assert_go_on([0, 1])
        s.munge["login"].start()
        self.wait_for_move([2, 3], "h3")
        self.assert_stage(self.wait_for_event("host.replaced"), ASKED)
        self.assert_go_on([0, 1])
        self.end_well(run, ["h2"])
        self.assert_nothing_left()


class Queue(SlurmFaultTest):
    def test_that_does_not_move(self):  # R08
        s = self.slurm(3)
        run = self.allocated(2, 0, {"queue_limit": "3s"}, **SHRINK)
        s.run("scontrol", "update", "nodename=h3", "state=drain", "reason=test")
        since = self.now()
        s.node_hosts[1].power_off()
        self.assert_declared("h2", since)
        asked = self.time_of(self.wait_for_event("host.replaced"))
        parked = self.wait_for_event("gang.parked")
        self.assert_seen(parked, asked + 3, 2)
        self.assert_stage(parked, "no other host is left: shrink: its gang is parked")
        wait_for(lambda: self.requests() == {2: "CANCELLED"}, lambda: f"its end; there are {self.requests()}", 5)
        self.assert_go_on([0, 1])
        self.end_well(run, ["h2"])
        self.assert_nothing_left()

    def test_that_gives_less_than_was_asked_for(self):  # R14
        self.slurm(2)
        self.pids = {}
        self.beside()
        since = self.now()
        done = self.salloc(2, "run", self.slurm_job("true", hosts=2, slurm={"spares": 1})).finished()
        self.assertLess(self.now() - since, 5)
        self.assertEqual(done.status, 2, done)
        self.assert_unseen()
        self.assert_nothing_done()
        self.assertIn("error[E0304]: the job needs 3 nodes, and job 1 of Slurm has 2", done.err)
        self.end_beside()
        self.assert_nothing_left()


class Allocations(SlurmFaultTest):
    def test_that_are_cancelled(self):  # R12
        s = self.slurm(3)
        run = self.allocated()
        self.beside()
        since = self.now()
        s.run("scancel", "1")
        self.ended(run, 143, "^stopped by Slurm, whose job 1 is over", since, 6)
        self.assertEqual(self.requests(), {})
        self.assert_nothing_left()

    def test_that_are_preempted(self):  # R09
        s = self.slurm(2, grace=15)
        run = self.allocated(2, 0, options=("-p", "low", "-t", "60"))
        self.beside()
        since = self.now()
        s.submit("sleep 0.1", "-p", "high", "-N2", "--exclusive")
        self.ended(run, 92, "^Slurm preempts its job 1$", since, 20)
        self.assert_nothing_left()

    def test_whose_time_is_nearly_over(self):  # R10
        self.slurm(2)
        began = self.now()
        run = self.allocated(2, 0, options=("-t", "1"))
        self.beside()
        self.ended(run, 92, "^the time of Slurm's job 1 is nearly over$", began, 60)
        self.assertGreater(self.time_of(self.wait_for_event("job.expiring")) - began, 50, "a tenth of a minute before its end")
        self.assert_nothing_left()


if __name__ == "__main__":
    slurm.main()
