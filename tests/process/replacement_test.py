"""A host whose worker does not start: a spare or a cold host takes its place, and without one the job says who is missing."""

import harness
import jobs

SAY = "echo on $MONARCH_HOST master $MASTER_ADDR node $NODE_RANK of $GROUP_WORLD_SIZE"


def planted(*hosts):
    """For the guard: a file stands where these hosts' workers want their folders."""
    return "".join(f'mkdir -p -m 700 "$JOB/../../hosts/${{JOB##*/}}"; : > "$JOB/../../hosts/${{JOB##*/}}/{host}"\n'
                   for host in hosts)


class Replacement(jobs.JobTest):
    def run_planted(self, hosts, local, script=SAY):
        spec = self.job(script, hosts=2, slots=1, launch={"local": local})
        return self.monarch("run", spec, env={"MONARCH_WORKER": self.planting(planted(*hosts))})

    def replaced(self, local, spare_or_cold):
        done = self.run_planted(["v1"], local)
        verdict = self.assert_result(done, 0, "succeeded")
        self.assertIn("[m/0@v3] on v3 master 127.0.1.3 node 0 of 2\n", done.out)
        self.assertIn("[m/1@v2] on v2 master 127.0.1.3 node 1 of 2\n", done.out)
        self.assertRegex(done.err, r"warning host\.failed v1: .*/v1")
        self.assertRegex(done.err, r"warning host\.replaced v3 takes the place of v1" + spare_or_cold + "\n")
        self.assertEqual([h["host"] for h in verdict["failed_hosts"]], ["v1"], verdict)
        hosts = {h["name"]: (h["phase"], h["role"]) for h in self.status("last")["hosts"]}
        self.assertEqual(hosts, {"v1": ("failed", "none"), "v2": ("ended", "rank"), "v3": ("ended", "rank")})
        shown = self.monarch("logs", "last", "--host", "v3")
        self.assertEqual((shown.status, shown.out.count("\n")), (0, 1), shown)
        self.assertIn("[m/0@v3] on v3 ", shown.out)
        self.assertEqual(self.monarch("logs", "last", "--host", "v1").out, "")
        self.assert_nothing_left()

    def test_a_spare_takes_its_place_and_nothing_is_renumbered(self):
        self.replaced({"hosts": 3, "spares": 1}, "")

    def test_a_cold_host_takes_its_place_where_there_is_no_spare(self):
        self.replaced({"hosts": 3}, "; its worker is launched now")

    def test_without_one_the_job_fails_with_69_and_names_all_that_failed(self):
        done = self.run_planted(["v1", "v2"], {"hosts": 2})
        verdict = self.assert_result(done, 69, "failed", {"kind": "start", "host": "v1"})
        self.assertEqual([h["host"] for h in verdict["failed_hosts"]], ["v1", "v2"], verdict)
        self.assertEqual(verdict["failed_hosts"][0]["phase"], "start")
        self.assertEqual(done.out, "")
        self.assertRegex(done.err, r"(?m)^ root cause 2 hosts did not start(: v1 \(.*\), v2 \(.*\)| \(v1, v2\): .*)$")
        self.assertRegex(done.err, r"(?m)^ hosts +2 have failed to start:$")
        for host in ("v1", "v2"):
            self.assertRegex(done.err, rf"(?m)^   │ {host}  +failed +start +\d+\S* +.*/{host}")
        self.assert_nothing_left()

    def test_a_spare_that_does_not_start_is_told_and_costs_nothing(self):
        done = self.run_planted(["v3"], {"hosts": 3, "spares": 1}, "until grep -q 'host.failed' ../state/jobs/*/supervisor.log; do sleep 0.05; done")
        verdict = self.assert_result(done, 0, "succeeded")
        self.assertRegex(done.err, r"warning host\.failed v3: ")
        self.assertEqual([h["host"] for h in verdict["failed_hosts"]], ["v3"], verdict)
        self.assert_nothing_left()


harness.main()
