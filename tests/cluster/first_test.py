"""`supervisor: {on: first}`: the supervisor is on the first host, which the starting machine reaches and which the others call; that
machine launches the hosts, and may be gone once the job runs. Asked is monarch on the first host, as anybody there would."""

import glob
import hashlib
import json
import os
import re
import signal
import uuid

import canary
import cluster
import faults
import jobs
from harness import wait_for
from host import HOME

STATE, CACHE = HOME + "/.local/state/monarch", HOME + "/.cache/monarch"
RUNNING = "mark up; " + jobs.FOREVER
QUICK = {"connect_timeout": "3s"}
# Of a worker that nobody can end: its lease, its orphan_ttl, and a second for each look at either.
ORPHAN_TTL_S, ALONE_S = 6, 30


class First(cluster.ClusterTest):
    def first_job(self, script, **keys):
        return self.ssh_job(script, **{"supervisor": {"on": "first"}, "supervision": {"orphan_ttl": f"{ORPHAN_TTL_S}s"}, **keys})

    def begin(self, spec, command="up", env=None):
        """Until the supervisor there is ready: the command that runs here, and the job's id."""
        before = set(self.jobs())
        run = self.start(command, spec, env=env)
        wait_for(lambda: set(self.jobs()) - before, lambda: f"a job\n{run!r}", 60)
        job, = set(self.jobs()) - before
        wait_for(lambda: self.elsewhere(job).get("directory"), lambda: f"a supervisor on h1\n{run!r}\n{self.supervisor_log()}", 60)
        return run, job

    def elsewhere(self, job):
        try:
            return json.loads(self.read(self.job_file("elsewhere.json", job)))
        except (FileNotFoundError, ValueError):
            return {}

    def there(self, *arguments, check=True):
        """monarch on the first host."""
        job = self.jobs()[-1]
        return self.w["h1"].run(self.elsewhere(job)["monarch"], *arguments, check=check)

    def verdict_there(self, job, timeout=60):
        path = f"{STATE}/jobs/{job}/verdict.json"
        wait_for(lambda: os.path.exists(self.w["h1"].path(path)), lambda: f"the end of {job}\n" + self.log_there(job), timeout)
        return json.loads(self.w["h1"].read(path))

    def log_there(self, job):
        return self.w["h1"].read(f"{STATE}/jobs/{job}/supervisor.log") + "\nhere:\n" + self.supervisor_log()

    def end(self, run):
        """Of a command here that may follow what it cannot reach any more."""
        if run.status is None:
            run.signal(signal.SIGKILL)
        run.wait(60)

    def launchers(self):
        return self.find("monarch", "launch-for")

    def wait_until_launched(self):
        wait_for(lambda: not self.launchers(), lambda: "the launcher's leave\n" + self.supervisor_log(), 60)

    def assert_clean(self, timeout=ALONE_S):
        """Nothing of the job is on any host: no process, key or socket."""
        self.assert_nothing_left(timeout)
        for host in self.up():
            for name in ("key", "ports.json", "endpoint.json"):
                self.assertEqual(glob.glob(host.path(f"{STATE}/jobs/*/{name}")), [], host.name)
        self.assertEqual(glob.glob(self.path("state", "jobs", "*", "workspace.*")), [])


class Starts(First):
    def test_ranks_run_everywhere_and_the_first_host_keeps_the_job(self):
        w = self.world(3)
        _, job = self.begin(self.first_job("mark up; echo $MASTER_ADDR >/tmp/master.$MONARCH_RANK", hosts=3))
        verdict = self.verdict_there(job)
        self.assertEqual((verdict["exit_code"], verdict["outcome"], verdict["left_behind"]), (0, "succeeded", []), self.log_there(job))
        self.assertEqual(self.hosts_of_marks("up"), {rank: f"h{rank // 2 + 1}" for rank in range(6)})
        self.assertEqual(w["h3"].read("/tmp/master.4"), w["h1"].address + "\n")
        for rank in range(6):
            os.unlink(w[f"h{rank // 2 + 1}"].path(f"/tmp/master.{rank}"))
        self.assertEqual(self.elsewhere(job)["directory"], f"{STATE}/jobs/{job}")
        self.assertFalse(os.path.exists(self.job_file("journal.0001", job)))
        self.wait_until_launched()
        self.assert_clean()

    def test_run_shows_the_job_and_ends_as_it_did(self):
        w = self.world(3)
        done = self.monarch("run", self.first_job("echo out; echo err >&2; exit $((MONARCH_RANK == 2 ? 7 : 0))", hosts=3, slots=1),
                            timeout=90)
        self.assertEqual(done.status, 7, done)
        self.assertIn("[m/2@h3] out\n", done.out, done)
        self.assertIn("[m/2@h3] err\n", done.err, done)
        self.assertEqual(self.monarch("status", "last", "--json").json()[0]["verdict"]["cause"]["host"], "h3")
        self.assertEqual(self.monarch("rm", "last").status, 0)
        self.assertEqual(os.listdir(w["h1"].path(STATE + "/jobs")), [])
        self.assert_clean()

    def test_up_returns_when_the_job_runs_and_stop_ends_it_from_here(self):
        self.world(2)
        done = self.monarch("up", self.first_job(RUNNING, slots=1), timeout=90)
        job, = self.jobs()
        self.assertEqual((done.status, done.out), (0, job + "\n"), done)
        self.wait_for_marks("up", 2)  # its ranks were executed; how far they are is theirs
        self.assertEqual(self.monarch("stop", timeout=60).status, 0)
        self.assertEqual(self.verdict_there(job)["outcome"], "stopped")
        self.assert_clean()

    def test_an_interrupt_of_run_ends_the_job_there(self):
        self.world(2)
        run, job = self.begin(self.first_job(RUNNING, slots=1), "run")
        self.wait_for_marks("up", 2, timeout=60)
        run.wait_for_err("job.running", 60)
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(60), 130, run)
        self.assertEqual(self.verdict_there(job)["outcome"], "interrupted")
        self.assert_clean()

    def test_a_second_start_ships_nothing(self):
        self.world(3)
        spec = self.first_job("mark up", hosts=3, slots=1)
        for _ in range(2):
            self.assertEqual(self.monarch("run", spec, timeout=90).status, 0)
            self.wait_until_launched()
            self.assertEqual(self.supervisor_log().count("monarch copied in"), 1)
        self.assertEqual(len(glob.glob(self.w["h1"].path(CACHE + "/bundle/*"))), 1)
        self.assert_clean()

    def test_a_workspace_comes_from_the_starting_machine(self):
        self.world(2)
        os.mkdir(self.path("work", "tree"))
        self.write("tree/data", "of login\n")
        _, job = self.begin(self.first_job("grep -q 'of login' data && cd /tmp && mark up", slots=1, mesh={"workdir": "."},
                                           workspace={"path": self.path("work", "tree")}))
        self.assertEqual(self.verdict_there(job)["exit_code"], 0, self.log_there(job))
        self.assertEqual(self.hosts_of_marks("up"), {0: "h1", 1: "h2"})
        self.wait_until_launched()
        self.assert_clean()

    def test_values_of_the_shell_reach_ranks_and_nothing_that_others_see(self):
        w = self.world(2)
        words = {name: uuid.uuid4().hex for name in ("passed", "derived", "unlisted")}
        shell = {"CANARY_TOKEN": words["passed"], "SHELL_KEY": words["derived"], "NOBODYS": words["unlisted"]}
        script = "printf %s $CANARY_TOKEN$DERIVED | sha256sum >/tmp/sum.$MONARCH_RANK; " + RUNNING
        _, job = self.begin(self.first_job(script, slots=1, mesh={"env_pass": ["CANARY_*", "PATH"], "env": {"DERIVED": "$(env.SHELL_KEY)"}}),
                            env=shell)
        self.wait_for_marks("up", 2, timeout=60)
        self.wait_until_launched()
        canaries = {name: canary.spellings(word.encode()) for name, word in words.items()}
        found = canary.search(canaries, canary.places(w, [self.folder]))
        belongs = re.compile(r"login: (environ of .*|ps)|h1: (environ of monarch(-worker)?|ps)|h\d: (environ of .* \(rank\)|ps of a rank)")
        self.assertEqual([one for one in sorted(found) if not belongs.fullmatch(one[1])], [])
        self.assertEqual({name for name, where in found if not where.startswith("login")}, {"passed", "derived"})
        wanted = hashlib.sha256((words["passed"] + words["derived"]).encode()).hexdigest()
        for rank, host in enumerate(("h1", "h2")):
            self.assertEqual(w[host].read(f"/tmp/sum.{rank}").split()[0], wanted)
            os.unlink(w[host].path(f"/tmp/sum.{rank}"))
        self.there("stop", job)
        self.assertEqual(self.verdict_there(job)["outcome"], "stopped")
        self.assert_clean()


class Doctor(First):
    def test_no_host_is_asked_to_call_the_starting_machine(self):
        w = self.world(2)
        for host in w.hosts:
            faults.block_call_back(w, host)
        done = self.monarch("doctor", self.first_job("true", slots=1), "--json", timeout=60)
        self.assertNotIn("call-back", done.out, done)


class OtherHosts(First):
    def test_a_spare_takes_the_place_of_one_that_does_not_start(self):
        w = self.world(4)
        faults.refuse(w["h2"])
        _, job = self.begin(self.first_job("mark up", hosts=2, slots=1, pool=["h1", "h2", "h3"], ssh={"spares": 1}))
        verdict = self.verdict_there(job)
        self.assertEqual((verdict["exit_code"], verdict["failed_hosts"][0]["host"], verdict["failed_hosts"][0]["kind"]), (0, "h2", "refused"))
        self.assertEqual(self.hosts_of_marks("up"), {0: "h1", 1: "h3"})
        self.wait_until_launched()
        self.assert_clean()

    def test_so_does_a_cold_host_while_the_launcher_is_there(self):
        w = self.world(4)
        faults.change_key(w["h2"])
        _, job = self.begin(self.first_job("mark up", hosts=2, slots=1))
        verdict = self.verdict_there(job)
        self.assertEqual((verdict["exit_code"], verdict["failed_hosts"][0]["kind"]), (0, "host key changed"), verdict)
        self.assertEqual(self.hosts_of_marks("up"), {0: "h1", 1: "h3"})
        self.wait_until_launched()
        self.assert_clean()


if __name__ == "__main__":
    cluster.main()
