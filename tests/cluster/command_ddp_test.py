"""configs/ddp-recover.yaml on hosts that OpenSSH's ssh reaches by a signed host key (launch.command): a host loses its power, and its gang
goes on from its last commit on the spare."""

import json
import unittest

import cluster
import host_faults
import signed
import training
import world
from training import LOSS, SPEC, TORCH_PYTHON

STEPS, PACE_S = 120, 0.05


@unittest.skipUnless(training.has_torch(), f"PyTorch for {TORCH_PYTHON} is not installed (Debian: python3-torch)")
class CommandDdp(host_faults.HostFaultTest, training.TrainingTest):
    def test_it_survives_the_power_loss_of_a_host(self):
        if not world.cgroup_parent():
            self.skipTest("no cgroup2 to write to")
        self.world(5)
        signed.sign_hosts(self.w)
        launch = {"launch": {"command": {"hosts": "h[1-5]", "spares": 1, "exec": signed.EXEC}}}
        overlay = self.write("hosts.yaml", json.dumps(launch))
        run = self.start("run", "-f", SPEC, "-f", overlay, *self.flags(STEPS, PACE_S), "--trace", self.path("work"))
        self.wait_for_progress(0)
        self.wait_for_progress(1)
        dead = self.w[self.rank(4)["host"]]
        self.strike(lambda _: dead.power_off(), 4)
        done = run.finished(240)
        self.assertEqual(done.status, 0, f"{done}\n{self.supervisor_log()}")
        self.assertEqual(sorted(dict(LOSS.findall(done.out))), ["0", "1"], done)
        self.assert_never_paused(0)
        dead.power_on()
        self.assert_nothing_left(30)


if __name__ == "__main__":
    cluster.main()
