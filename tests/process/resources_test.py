"""What a mesh gets of its hosts: ports, cores, GPUs, and a setup that runs once per host."""

import json
import os
import socket

import harness
import jobs

# Listens on the rank's port as somebody who asks for no reuse does.
LISTEN = ("import os, socket; s = socket.socket(); s.bind(('0.0.0.0', int(os.environ['MONARCH_PORT_HTTP']))); s.listen(); "
          "print(os.environ['MONARCH_PORT_HTTP'])")

# The NVIDIA driver's files of one GPU, on a /proc/driver of this mount namespace alone.
MADE_UP_GPU = r"""
set -e
mount --make-private /proc
mount -t tmpfs none /proc/driver
place=/proc/driver/nvidia/gpus/0000:3b:00.0
mkdir -p $place
printf 'Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-11112222-0000-0000-0000-000000000000\nBus Location: \t 0000:3b:00.0\nDevice Minor: \t 0\n' > $place/information
exec "$@"
"""
UUID = "GPU-11112222-0000-0000-0000-000000000000"


class Resources(jobs.JobTest):
    def mesh(self, program, more, hosts=1, slots=2, name="spec.yaml", job="res"):
        lines = "".join(f"    {line}\n" for line in more)
        return self.spec(f"version: 1\njob: {job}\nmeshes:\n  m:\n    dims: {{host: {hosts}, slot: {slots}}}\n{lines}"
                         f"    program: {json.dumps(program)}\nsupervision: {{restart: {{max: 0}}, reallocate: {{max: 0}}}}\n", name)

    def shell(self, line):
        return ["/bin/sh", "-c", line]

    def test_every_rank_finds_a_port_of_its_own_free(self):
        done = self.monarch("run", "--no-prefix", "--quiet",
                            self.mesh(["/usr/bin/python3", "-c", LISTEN], ["ports: {http: auto}"], hosts=2, slots=4))
        self.assertEqual(done.status, 0, done)
        self.assertEqual(len(set(done.out.split())), 8, done)
        self.assert_nothing_left()

    def test_a_fixed_port_that_is_taken_is_refused_with_the_name_of_who_has_it(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            done = self.monarch("run", self.mesh(["true"], [f"ports: {{http: {port}}}"], slots=1))
        self.assertEqual(done.status, 69, done)
        self.assertIn(f"port {port} of host v1 is taken by python3 (pid {os.getpid()})", done.err)
        self.assert_nothing_left()

    def test_a_setup_runs_once_per_host_and_is_the_base_of_the_environment(self):
        runs = self.path("work", "runs")
        done = self.monarch("run", "--no-prefix", "--quiet", self.mesh(
            self.shell("echo $A $B"), [f"setup: 'echo $MONARCH_HOST >> {runs}; export A=setup B=setup'", "env: {B: spec}"],
            hosts=2))
        self.assertEqual(done.status, 0, done)
        self.assertEqual(done.out, "setup spec\n" * 4)
        with open(runs) as file:
            self.assertEqual(sorted(file.read().split()), ["v1", "v2"])
        self.assert_nothing_left()

    def test_a_failed_setup_ends_the_job_with_its_own_code(self):
        executed = self.path("work", "executed")
        done = self.monarch("run", self.mesh(self.shell(f"touch {executed}"), ["setup: 'echo no such module >&2; exit 42'"]))
        self.assertEqual(done.status, 42, done)
        self.assertIn("no such module", done.err)
        self.assertFalse(os.path.exists(executed))
        self.assert_nothing_left()

    def test_ctrl_c_ends_a_job_in_its_setup(self):
        run = self.start("run", self.mesh(["true"], [f"setup: 'echo up; touch {self.path('work', 'up')}; sleep 1000'"]))
        harness.wait_for(lambda: os.path.exists(self.path("work", "up")), "the setup")
        run.signal(2)
        self.assertEqual(run.wait(), 130, run)
        self.assert_nothing_left()

    def test_ranks_are_bound_to_cores_of_their_own(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("a machine with two processors")
        done = self.monarch("run", "--no-prefix", "--quiet", self.mesh(
            self.shell("grep Cpus_allowed_list /proc/self/status"), ["resources: {cpus: 1, bind: core}"]))
        self.assertEqual(done.status, 0, done)
        cores = [int(line.split()[1]) for line in done.out.splitlines()]
        self.assertEqual(len(set(cores)), 2, done)
        self.assertLessEqual(set(cores), os.sched_getaffinity(0))
        self.assert_nothing_left()

    def in_namespace(self, *arguments):
        return ["unshare", "--mount", "--propagation", "unchanged", "/bin/sh", "-c", MADE_UP_GPU, "sh", *arguments]

    def test_a_second_job_on_the_same_gpu_is_refused_by_name(self):
        if os.geteuid() != 0:
            self.skipTest("root, for a made-up GPU in a mount namespace")
        first = self.mesh(self.shell("echo sees $CUDA_VISIBLE_DEVICES by $CUDA_DEVICE_ORDER; exec sleep 1000"), ["resources: {gpus: 1}"], slots=1,
                          name="first.yaml", job="first")
        second = self.mesh(["true"], ["resources: {gpus: 1}"], slots=1, name="second.yaml", job="second")
        both = (f"{harness.MONARCH} run {first} & first=$!; while ! grep -q . {self.path('work', 'up')}; do sleep 0.05; done; "
                f"{harness.MONARCH} run {second}; echo second ended with $?; kill -TERM $first; wait $first")
        with open(self.path("work", "up"), "w"):
            pass
        run = self.start_program(*self.in_namespace("/bin/bash", "-c", both))
        run.wait_for_out(r"sees 0 by PCI_BUS_ID$")
        with open(self.path("work", "up"), "w") as file:
            file.write("up\n")
        run.wait(60)
        self.assertIn("second ended with 69", run.out, run)
        self.assertRegex(run.err, rf"GPU 0 \({UUID}\) of host v1 is held by job first-[0-9a-f]{{4}} \(pid \d+\)")
        self.assert_nothing_left()

    def test_more_gpus_than_there_are_are_refused_with_what_there_is(self):
        if os.geteuid() != 0:
            self.skipTest("root, for a made-up GPU in a mount namespace")
        run = self.start_program(*self.in_namespace(
            harness.MONARCH, "run", self.mesh(["true"], ["resources: {gpus: 1}"], slots=2)))
        self.assertEqual(run.wait(), 69, run)
        self.assertIn("needs 2 GPUs, and there are 1", run.err)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
