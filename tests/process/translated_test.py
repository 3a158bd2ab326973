"""Command lines of torchrun, srun and mpirun, translated by `monarch init --from`, run as they did. Where the launcher itself is
installed its own run is what is compared with; else what its manual says."""

import json
import os
import shutil
import socket
import subprocess
import sys

import harness

REPORT = r"""import json, os, sys
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "OMP_NUM_THREADS", "A",
         "NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING")
report = json.dumps([{name: os.environ.get(name) for name in names}, sys.argv[1:], os.getcwd()])
os.write(1, (report + "\n").encode())  # one write a line: the ranks of torchrun and mpirun share one pipe
sys.exit(int(os.environ.get("FAIL_WITH", "0")) if os.environ.get("RANK", "1") == "1" else 0)
"""

ASYNC_ERRORS = ("NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING")  # torchrun sets that which its torch reads
OF_TORCHRUN = {"OMP_NUM_THREADS": "1", **{name: "1" for name in ASYNC_ERRORS}}


class Translated(harness.MonarchTest):
    def translate(self, line):
        """The path of the spec."""
        done = self.monarch("init", "--from", line, "t.yaml")
        self.assertEqual(done.status, 0, done)
        return self.path("work", "t.yaml")

    def run_spec(self, line, status=0):
        """What the ranks said, sorted."""
        done = self.monarch("run", self.translate(line), "--no-prefix", timeout=60)
        self.assertEqual(done.status, status, done)
        self.assert_nothing_left()
        return self.reports(done.out)

    @staticmethod
    def reports(out):
        return sorted((json.loads(line) for line in out.splitlines() if line.startswith("[{")), key=json.dumps)

    def expected(self, ranks, argv, per_host=None, **env):
        per_host = per_host or ranks
        rows = []
        for rank in range(ranks):
            row = {"RANK": str(rank), "LOCAL_RANK": str(rank % per_host), "WORLD_SIZE": str(ranks),
                   "LOCAL_WORLD_SIZE": str(per_host), "GROUP_RANK": str(rank // per_host),
                   "OMP_NUM_THREADS": "1" if per_host > 1 else None, "A": None}
            row.update({name: None for name in ASYNC_ERRORS})
            row.update(env)
            rows.append([row, argv, self.path("work")])
        return sorted(rows, key=json.dumps)

    def assert_same(self, ours, theirs):
        theirs = self.reports(theirs.out)
        self.assertTrue(theirs)
        for report in ours:
            for name in (*ASYNC_ERRORS, "OMP_NUM_THREADS"):  # srun sets none for ranks
                if theirs[0][0][name] is None:
                    report[0][name] = None
        self.assertEqual(sorted(ours, key=json.dumps), theirs)

    def test_torchrun(self):
        self.write("report.py", REPORT)
        # -r and -t of a rank that is not there: the elastic agent of PyTorch 1.13 fails on Python 3.11 without them.
        line = ("A='x y' /usr/bin/python3 -m torch.distributed.run --standalone --nproc_per_node=3 -r 9:1 -t 9:1 "
                "report.py --lr 0.1 'a b'")
        found = self.run_spec(line)
        self.assertEqual(found, self.expected(3, ["--lr", "0.1", "a b"], A="x y", **OF_TORCHRUN))
        if subprocess.run(["/usr/bin/python3", "-c", "import torch.distributed.run"], check=False, stdin=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=60).returncode != 0:
            self.skipTest("PyTorch is not installed: not compared with torchrun itself")
        try:
            socket.getaddrinfo("localhost", None)
        except OSError:
            self.skipTest("`localhost` is no name here (/etc/hosts), and torchrun needs it: not compared with torchrun itself")
        theirs = self.start_program("/bin/sh", "-c", line).finished(timeout=90)
        self.assertEqual(theirs.status, 0, theirs)
        self.assert_same(found, theirs)
        # Python's argparse takes a `--` behind the script for itself; one further on is the script's.
        for words in ("report.py -- --x -- y", "-- report.py -- --x"):
            dashes = line.replace("report.py --lr 0.1 'a b'", words)
            os.remove(self.path("work", "t.yaml"))
            theirs = self.start_program("/bin/sh", "-c", dashes).finished(timeout=90)
            self.assert_same(self.run_spec(dashes), theirs)

    def test_torchrun_leaves_what_the_shell_sets(self):
        self.write("report.py", REPORT)
        own = {"OMP_NUM_THREADS": "3", "NCCL_ASYNC_ERROR_HANDLING": "0"}
        self.environment.update(own)
        line = f"{sys.executable} -m torch.distributed.run --nproc-per-node 2 report.py"
        self.assertEqual(self.run_spec(line), self.expected(2, [], **{**OF_TORCHRUN, **own}))

    def test_a_torchrun_in_path_brings_its_own_python(self):
        self.write("report.py", REPORT)
        os.makedirs(self.path("bin"))
        own = os.path.join(self.path("bin"), "python-of-torch")
        os.symlink(os.path.realpath("/bin/sh"), own)  # another file than any python3: only its name is looked at
        with open(os.path.join(self.path("bin"), "torchrun"), "w", encoding="utf-8") as file:
            file.write(f"#!{own} -s\n")
        os.chmod(file.name, 0o755)
        self.environment["PATH"] = self.path("bin") + ":" + self.environment["PATH"]
        done = self.monarch("init", "--from", "torchrun report.py", "-")
        self.assertEqual(done.status, 0, done)
        self.assertIn(f"program: [{own}, -u, report.py]", done.out)
        self.assertIn(f"torchrun of this machine runs under {own}", done.err)

    def test_torchrun_of_two_nodes(self):
        self.write("report.py", REPORT)
        line = f"{sys.executable} -m torch.distributed.run --nnodes 2 --nproc-per-node 2 --rdzv-endpoint h:1 report.py"
        self.assertEqual(self.run_spec(line), self.expected(4, [], per_host=2, **OF_TORCHRUN))

    def test_torchrun_of_a_module_that_fails(self):
        self.write("report.py", REPORT)
        line = f"FAIL_WITH=7 PYTHONPATH=. {sys.executable} -m torch.distributed.run --nproc-per-node 2 --max-restarts 0 -m report x"
        self.run_spec(line, status=7)

    def test_mpirun(self):
        script = "echo \"$A $1\"; [ \"$2\" = \"two words\" ]"
        line = f"mpirun -np 4 -x A=b /bin/sh -c '{script}' sh one \"two words\""
        done = self.monarch("run", self.translate(line), "--no-prefix")
        self.assertEqual((done.status, done.out), (0, "b one\n" * 4), done)
        self.assert_nothing_left()
        if shutil.which("mpirun") is None:
            self.skipTest("mpirun is not installed: not compared with it")
        root = "--allow-run-as-root --oversubscribe" if os.geteuid() == 0 else "--oversubscribe"
        theirs = self.start_program("/bin/sh", "-c", line.replace("mpirun", "mpirun " + root)).finished(timeout=60)
        self.assertEqual((theirs.status, theirs.out), (done.status, done.out), theirs)

    def test_programs_find_their_place_as_srun_and_mpirun_tell_it(self):
        self.write("place.sh", "echo $SLURM_PROCID/$SLURM_NTASKS on $SLURM_NODEID/$SLURM_NNODES: $SLURM_LOCALID\n")
        done = self.monarch("run", self.translate("srun -N 2 -n 4 /bin/sh place.sh"), "--no-prefix")
        self.assertEqual(sorted(done.out.splitlines()), ["0/4 on 0/2: 0", "1/4 on 0/2: 1", "2/4 on 1/2: 0", "3/4 on 1/2: 1"], done)
        os.remove(self.path("work", "t.yaml"))
        self.write("place.sh", "echo $OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE: "
                   "$OMPI_COMM_WORLD_LOCAL_RANK/$OMPI_COMM_WORLD_LOCAL_SIZE\n")
        line = "mpirun -np 2 /bin/sh place.sh"
        done = self.monarch("run", self.translate(line), "--no-prefix")
        self.assertEqual(sorted(done.out.splitlines()), ["0/2: 0/2", "1/2: 1/2"], done)
        self.assert_nothing_left()
        if shutil.which("mpirun") is None:
            self.skipTest("mpirun is not installed: not compared with it")
        root = "--allow-run-as-root --oversubscribe" if os.geteuid() == 0 else "--oversubscribe"
        theirs = self.start_program("/bin/sh", "-c", line.replace("mpirun", "mpirun " + root)).finished(timeout=60)
        self.assertEqual(sorted(theirs.out.splitlines()), sorted(done.out.splitlines()), theirs)

    def test_srun(self):
        self.write("report.py", REPORT)
        os.mkdir(self.path("work", "sub"))
        line = f"srun -N 2 --ntasks-per-node=2 --export=ALL,A=b -D {self.path('work', 'sub')} -K {sys.executable} ../report.py x"
        expected = [[row, argv, self.path("work", "sub")] for row, argv, _ in self.expected(4, ["x"], per_host=2, A="b")]
        self.assertEqual(self.run_spec(line), sorted(expected, key=json.dumps))

    def test_srun_of_torchrun(self):
        self.write("report.py", REPORT)
        line = f"srun -N 2 {sys.executable} -m torch.distributed.run --nnodes 2 --nproc-per-node 2 report.py"
        self.assertEqual(self.run_spec(line), self.expected(4, [], per_host=2, **OF_TORCHRUN))


harness.main()
