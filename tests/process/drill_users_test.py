"""Drills on virtual hosts, of somebody who has no right but that of the job's own user."""

import json
import os
import shutil

import harness
import users

SEEDS = (1, 2, 3)


class DrillUsers(users.UserTest):
    def setUp(self):
        super().setUp()
        # The checkout may lie where only root can go.
        for folder in ("configs/drills", "worker/python"):
            shutil.copytree(os.path.join(harness.ROOT, folder), self.path("checkout", folder), symlinks=False,
                            ignore=shutil.ignore_patterns("__pycache__"))
        if os.geteuid() == 0:
            for place, _, names in os.walk(self.path("checkout")):
                for name in (".", *names):
                    os.chown(os.path.join(place, name), self.uid, self.uid)

    def passes(self, name, faults, seed):
        drill = self.start("drill", self.path("checkout/configs/drills", f"{name}.yaml"), "--seed", str(seed), "--out", f"out-{seed}")
        done = drill.finished(150)
        self.assertEqual(done.status, 0, f"{done}\n{self.supervisor_log()}")
        self.assertRegex(done.out.splitlines()[-1],
                         rf"\Adrill {name}: passed, \d faults seen, 0 inert, ours p95 .*; report: out-{seed}/report\.html\Z")
        report = json.loads(self.read("work", f"out-{seed}", "report.json"))
        self.assertEqual([fault["fault"] for fault in report["faults"]], faults)
        self.assertEqual((report["verdict"], report["leftovers"]), ("passed", []))
        print(f"# seed {seed}: {done.out.splitlines()[-1]} ({done.seconds:.0f} s)", flush=True)
        return report

    def test_the_smoke_scenario_passes(self):
        self.passes("smoke", ["kill", "hang", "daemon-kill", "power-loss", "supervisor-kill"], 7)
        self.assert_nothing_left()

    def test_five_faults_pass_by_three_seeds(self):
        for seed in SEEDS:
            report = self.passes("five-faults", ["segv", "kill", "reset", "power-loss", "hang"], seed)
            self.assertEqual({kind["kind"] for kind in report["kinds"]}, {"process", "host", "hang"})
            for kind in report["kinds"]:
                for figure in ("ttd", "ttf", "tts", "ttr", "ours"):
                    self.assertEqual(set(kind[figure]), {"n", "p50", "p95", "max"}, kind)
            self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
