"""Warming by spares.prepare: a spare is warmed once as soon as it is connected, and nothing of the job depends on how that goes.

What warms writes its pid into prepared.HOST; ranks count as in the tests of recovery.
"""

import glob
import os

import harness
import recovery

# Whole or not at all; the environment beside it, so that it is there once the mark is.
MARKED = ("env > env.$MONARCH_HOST; echo $$ >> runs.$MONARCH_HOST; "
          "echo $$ > prepared.$MONARCH_HOST.new && mv prepared.$MONARCH_HOST.new prepared.$MONARCH_HOST\n")
QUICK = {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "1s", "lease": "1500ms"}


class Prepare(recovery.RecoveryTest):
    def warming(self, script, spares=1, before="", **spare_keys):
        prepare = ["/bin/sh", "-c", before + MARKED + script]
        local = {"hosts": 1 + spares, "spares": {"count": spares, "prepare": prepare, **spare_keys}}
        return self.running(hosts=1, local=local, reallocate={"max": 4}, **QUICK)

    def warm_pid(self, host):
        path = self.path("work", f"prepared.{host}")
        harness.wait_for(lambda: os.path.exists(path), lambda: f"{path}: {self.supervisor_log()}")
        return int(self.read(path))

    def runs(self, host):
        return len(self.read("work", f"runs.{host}").split())

    def preparation(self, host):
        return next(h["preparation"] for h in self.status()["hosts"] if h["name"] == host)

    def is_running(self, pid):
        return any(p.pid == pid for p in self.processes())

    def lose_v1(self):
        self.kill(self.process("keeper", "v1"))
        self.wait_for_anew([0, 1])
        return {r["host"] for r in self.status()["meshes"][0]["ranks"]}

    def test_a_spare_is_warmed_once_and_takes_the_place_of_a_lost_host(self):
        run = self.warming("echo warm; echo cold >&2\n")
        self.assertRegex(self.wait_for_event("host.prepared")["message"], r"^v2: is prepared, after ")
        self.assertEqual(self.preparation("v2"), "prepared")
        self.assertRegex(self.monarch("status").out, r"(?m)^ *v2 .*\bprepared\b")
        environment = dict(line.split("=", 1) for line in self.read("work", "env.v2").splitlines() if "=" in line)
        self.assertEqual((environment["MONARCH_PREPARE"], environment["MONARCH_HOST"]), ("1", "v2"))
        self.assertEqual({"RANK", "WORLD_SIZE", "MONARCH_RANK", "MONARCH_MESH"} & set(environment), set())
        written = {os.path.basename(p): self.read(p) for p in glob.glob(self.job_file("logs/spares-prepare/*"))}
        self.assertEqual({n: t for n, t in written.items() if n.endswith((".out", ".err"))},
                         {"1.1.out": "warm\n", "1.1.err": "cold\n"})
        self.assertEqual(self.lose_v1(), {"v2"})
        self.assertEqual(self.runs("v2"), 1)
        done, _ = self.end_well(run)
        self.assertNotIn("warm", done.out)

    def test_one_whose_warming_fails_stays_a_spare_behind_the_prepared_ones(self):
        run = self.warming("[ $MONARCH_HOST != v2 ]\n", spares=2)
        failed = self.wait_for_event("host.unprepared")
        self.assertEqual(failed["severity"], "warning")
        self.assertRegex(failed["message"], r"^v2: is not prepared: exit code 1; what it wrote is in \S+/spares-prepare/1\.1\.err; it stays")
        self.wait_for_event("host.prepared")
        self.assertEqual([self.preparation(h) for h in ("v2", "v3")], ["unprepared", "prepared"])
        self.assertEqual(self.lose_v1(), {"v3"})
        self.end_well(run)

    def test_one_that_takes_too_long_is_ended_and_told_of(self):
        timeout = "5s" if harness.SANITIZED else "1s"
        run = self.warming("while :; do sleep 0.1; done\n", timeout=timeout)
        pid = self.warm_pid("v2")
        failed = self.wait_for_event("host.unprepared")
        self.assertIn(f"it took longer than spares.timeout ({timeout})", failed["message"])
        self.assertFalse(self.is_running(pid))
        self.assert_go_on([0, 1])
        self.end_well(run)

    def test_a_spare_that_is_needed_is_freed_first(self):
        run = self.warming("trap 'sleep 0.5; : > freed.$MONARCH_HOST; exit 0' TERM; while :; do sleep 0.1; done\n")
        pid = self.warm_pid("v2")
        self.assertEqual(self.lose_v1(), {"v2"})
        freed = self.path("work", "freed.v2")
        self.assertFalse(self.is_running(pid))
        born = min(os.stat(self.path("work", f"there.{r}")).st_mtime_ns for r in (0, 1))
        self.assertLess(os.stat(freed).st_mtime_ns, born)
        self.assertRegex(self.wait_for_event("host.unprepared")["message"], r"^v2: is not prepared: the host was needed")
        self.assertEqual(self.runs("v2"), 1)
        self.end_well(run)

    def test_a_supervisor_that_comes_back_warms_nothing_twice(self):
        run = self.warming("until [ -e warm ]; do sleep 0.05; done\n", spares=1)
        pid = self.warm_pid("v2")
        self.kill(self.process("supervisor"))
        self.wait_for_event("supervisor.adopted")
        self.assertTrue(self.is_running(pid))
        self.write("warm", "")
        self.wait_for_event("host.prepared")
        self.kill(self.process("supervisor"))
        self.wait_for_event("supervisor.adopted", 2)
        self.assertEqual((self.preparation("v2"), self.runs("v2")), ("prepared", 1))
        self.assert_go_on([0, 1])
        self.end_well(run)

    def test_what_still_warms_is_ended_with_the_job(self):
        # It is marked once it would hear of its end.
        run = self.warming("while :; do sleep 0.1; done\n", before="trap ': > told; exit 0' TERM\n")
        self.warm_pid("v2")
        self.end_well(run)
        self.assertTrue(os.path.exists(self.path("work", "told")))


if __name__ == "__main__":
    harness.main()
