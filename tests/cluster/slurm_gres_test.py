"""GPUs of a Slurm allocation: each node's step has all that the job has there, however they were asked for, and ranks get theirs of them.

Slurm takes any file for a GPU; what the NVIDIA driver shows of two is made up, on each node.
"""

import re

import harness
import slurm

# The NVIDIA driver's files of two GPUs, in the host's own mounts.
MADE_UP_GPUS = r"""
set -e
mount --make-private /proc
mount -t tmpfs none /proc/driver
for n in 0 1; do
  place=/proc/driver/nvidia/gpus/0000:3$n:00.0
  mkdir -p $place
  printf 'Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-%s\nBus Location: \t 0000:3%s:00.0\nDevice Minor: \t %s\n' $0-$n $n $n > $place/information
done
"""
SEES = 'echo "rank $MONARCH_RANK on $(hostname) sees [$CUDA_VISIBLE_DEVICES]"'


class Gres(slurm.SlurmTest):
    def gpu_nodes(self, nodes=2, gpus=2):
        made = self.slurm(nodes, gpus=gpus)
        for host in made.node_hosts:
            host.run("/bin/sh", "-c", MADE_UP_GPUS, host.name)
        return made

    def allocated(self, *options, **keys):
        """What a job of two ranks on each of two nodes did in an allocation with these options."""
        spec = self.slurm_job(SEES, **keys)
        return self.start_program("salloc", "--quiet", "--no-kill", "-N2", *options, harness.MONARCH, "run", spec).finished()

    def assert_seen(self, done, *lists):
        """By the ranks, in their order."""
        self.assertEqual(done.status, 0, f"{done}\n{self.supervisor_log()}")
        seen = sorted(re.findall(r"rank \d on h\d sees \[.*\]", done.out))
        self.assertEqual(seen, [f"rank {r} on h{1 + r // 2} sees [{gpus}]" for r, gpus in enumerate(lists)], done)
        self.assertNotIn("which GPUs job", self.supervisor_log())
        self.assert_nothing_left()

    def test_however_they_were_asked_for_a_step_has_all_that_the_job_has_on_its_node(self):
        self.gpu_nodes()
        for options in (["--gres=gpu:2"], ["--gpus-per-node=2"], ["--gpus=4"], ["--gpus-per-task=1", "--ntasks-per-node=2"]):
            with self.subTest(options):
                self.assert_seen(self.allocated(*options), *["0,1"] * 4)

    def test_nodes_that_have_different_numbers_of_them(self):
        self.gpu_nodes()
        self.assert_seen(self.allocated("--gpus=3"), "0,1", "0,1", "0", "0")

    def test_in_a_step_that_all_share(self):
        self.gpu_nodes()
        for options in (["--gres=gpu:2"], ["--gpus-per-node=2"], ["--gpus=4"], ["--gpus-per-task=1", "--ntasks-per-node=2"]):
            with self.subTest(options):
                self.assert_seen(self.allocated(*options, slurm={"own_steps": 1}), *["0,1"] * 4)
        logs = self.supervisor_log()
        self.assertEqual(logs.count("one step of Slurm for 2 hosts"), 4, logs)
        self.assertNotIn("the srun of several workers has ended", logs)

    def test_nodes_that_have_different_numbers_of_them_share_no_step(self):
        self.gpu_nodes()
        self.assert_seen(self.allocated("--gpus=3", slurm={"own_steps": 1}), "0,1", "0,1", "0", "0")
        self.assertNotIn("one step of Slurm", self.supervisor_log())

    def test_a_job_without_any(self):
        self.gpu_nodes()
        self.assert_seen(self.allocated(), *[""] * 4)

    def test_a_rank_sees_those_of_its_gang_or_its_own(self):
        self.gpu_nodes()
        self.assert_seen(self.allocated("--gpus=4", mesh={"resources": {"gpus": 1, "visible": "gang"}}), *["0,1"] * 4)
        self.assert_seen(self.allocated("--gpus=4", mesh={"resources": {"gpus": 1, "visible": "rank"}}), "0", "1", "0", "1")

    def test_too_few_on_a_node_are_refused_with_the_node_and_both_numbers(self):
        self.gpu_nodes()
        done = self.allocated("--gpus=3", mesh={"resources": {"gpus": 1}})
        self.assertEqual(done.status, 69, done)
        self.assertIn("h2: mesh m needs 2 GPUs, and there are 1", done.err)
        self.assert_nothing_left()

    def test_where_slurm_does_not_say_which_there_are_the_log_does(self):
        s = self.gpu_nodes()
        s.login.write("/usr/local/bin/scontrol", "#!/bin/sh\necho no such thing >&2\nexit 1\n", 0o755)
        done = self.allocated("--gres=gpu:2")
        self.assertEqual(done.status, 0, done)
        self.assertEqual(done.out.count("sees [0,1]"), 4, done)
        self.assertIn("which GPUs job 1 of Slurm has on its nodes is not known (scontrol: no such thing)", self.supervisor_log())
        self.assert_nothing_left()


if __name__ == "__main__":
    slurm.main()
