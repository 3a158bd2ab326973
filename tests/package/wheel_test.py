"""The wheel of `scripts/package --wheel`: what it says of itself is true, and pip puts it into a fresh environment that has no network and
nothing else, where ranks and actors run; beside another package of the name `monarch`; and that removal leaves nothing."""

import base64
import csv
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile

import harness
import jobs

MOST_BYTES = 12_000_000
NAME = r"monarch_run-(\d+\.\d+\.\d+)-py3-none-manylinux_2_36_\w+\.whl"
PARTS = ["{data}/scripts/monarch", "{data}/data/libexec/monarch/monarch-worker", "{data}/data/share/man/man1/monarch.1",
         "{data}/data/share/man/man7/monarch-python.7", "{data}/data/share/monarch/python/monarch/actor.py", "monarch/__init__.py",
         "monarch/actor.py", "monarch/_embedded/cloudpickle/__init__.py", "monarch_rank.py", "monarch_tensors.py",
         "monarch_tensors_devices.py", "monarch_tensors_groups.py",
         "monarch_tensors_memory.py", "{info}/METADATA", "{info}/WHEEL", "{info}/RECORD", "{info}/licenses/LICENSE",
         "{info}/licenses/libzmq3-dev"]
# Its own function and a lambda travel by value, which takes cloudpickle.
PROGRAM = """
from monarch.actor import Actor, endpoint, this_host

class Adder(Actor):
    @endpoint
    def do(self, function, number):
        return function(number)

adders = this_host().spawn_procs({"gpus": 2}).spawn("adders", Adder)
print(sorted(value for _, value in adders.do.call(lambda number: number + 1, 41).get().items()))
import monarch
print(monarch.__file__)
"""
# Loopback alone.
WITHOUT_NETWORK = ["unshare", "--net", "/bin/sh", "-c", 'ip link set lo up; exec "$@"', "sh"] if os.geteuid() == 0 else []


def package(folder):
    done = subprocess.run([os.path.join(harness.ROOT, "scripts/package"), "--wheel", folder], check=False, timeout=600,
                          env={**os.environ, "MONARCH_PACKAGE_BUILT": "1"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode(errors="replace"))
    return done.stdout.decode().strip()


class Wheel(jobs.JobTest):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.mkdtemp(prefix="mw-", dir="/tmp")
        cls.addClassCleanup(shutil.rmtree, cls.place, ignore_errors=True)
        cls.wheel = package(cls.place)

    def fresh_environment(self):
        """A virtual environment with the wheel; the other programs that it is given find it by PATH."""
        venv = self.path("venv")
        made = subprocess.run([sys.executable, "-m", "venv", venv], check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if made.returncode != 0:
            self.skipTest("python3 -m venv: " + made.stdout.strip().replace("\n", " "))
        self.environment["PATH"] = f"{venv}/bin:/usr/bin:/bin"
        before = self.files(venv)
        done = self.run_there("pip", "install", "--quiet", self.wheel)
        self.assertEqual((done.status, done.out), (0, ""), done)
        return venv, before

    def run_there(self, *arguments, **options):
        return self.start_program(*WITHOUT_NETWORK, *arguments, **options).finished(harness.patience(60))

    @staticmethod
    def files(folder):
        return {os.path.join(base, name) for base, _, names in os.walk(folder) for name in names if not name.endswith(".pyc")}

    def test_its_record_names_each_file_with_its_sum(self):
        name = re.fullmatch(NAME, os.path.basename(self.wheel))
        self.assertTrue(name, self.wheel)
        self.assertLessEqual(os.path.getsize(self.wheel), MOST_BYTES)
        info, data = f"monarch_run-{name[1]}.dist-info", f"monarch_run-{name[1]}.data"
        with zipfile.ZipFile(self.wheel) as archive:
            names = archive.namelist()
            self.assertEqual(len(names), len(set(names)))
            self.assertEqual([part for part in PARTS if part.format(data=data, info=info) not in names], [])
            record = list(csv.reader(archive.read(f"{info}/RECORD").decode().splitlines()))
            self.assertEqual([row[0] for row in record], names)
            for at, sum_of, size in record[:-1]:
                content = archive.read(at)
                own = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
                self.assertEqual((sum_of, int(size)), (f"sha256={own}", len(content)), at)
            self.assertEqual(record[-1], [f"{info}/RECORD", "", ""])
            for entry in archive.infolist():
                executable = archive.read(entry).startswith(b"\x7fELF")
                self.assertEqual(entry.external_attr >> 16, stat.S_IFREG | (0o755 if executable else 0o644), entry.filename)
            self.assertNotIn("Requires-Dist", archive.read(f"{info}/METADATA").decode())

    def test_the_same_tree_gives_the_same_bytes(self):
        with open(self.wheel, "rb") as one, open(package(self.path("work")), "rb") as other:
            self.assertEqual(hashlib.sha256(one.read()).digest(), hashlib.sha256(other.read()).digest())

    def test_a_fresh_environment_runs_ranks_and_actors(self):
        venv, before = self.fresh_environment()
        self.assertNotEqual(self.run_there("python3", "-c", "import cloudpickle").status, 0, "the test is to have no other one")
        ran = self.run_there("monarch", "run", "--quiet", "--no-prefix", "-n", "2", "--", "python3", "-c",
                             "import monarch_rank, monarch_tensors, os; print(os.environ['RANK'], monarch_rank.__file__)")
        self.assertEqual(ran.status, 0, ran)
        folder = self.run_there("python3", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").out.strip()
        self.assertEqual(sorted(ran.out.splitlines()), [f"{rank} {folder}/monarch_rank.py" for rank in range(2)], ran)
        program = self.write("program.py", PROGRAM)
        ran = self.run_there("python3", program)
        self.assertEqual((ran.status, ran.out, ran.err), (0, f"[42, 42]\n{folder}/monarch/__init__.py\n", ""), ran)
        # For another interpreter, and where PATH has no command.
        printed = self.run_there("monarch", "python")
        self.assertEqual((printed.status, printed.out), (0, f"{venv}/share/monarch/python\n"), printed)
        ran = self.run_there(sys.executable, program, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": printed.out.strip()})
        self.assertEqual((ran.status, ran.out), (0, f"[42, 42]\n{venv}/share/monarch/python/monarch/__init__.py\n"), ran)
        # A folder that is no environment.
        target = self.path("work", "target")
        self.assertEqual(self.run_there("pip", "install", "--quiet", "--target", target, self.wheel).status, 0)
        ran = self.run_there(sys.executable, program, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": target})
        self.assertEqual((ran.status, ran.out), (0, f"[42, 42]\n{target}/monarch/__init__.py\n"), ran)
        self.assert_nothing_left()
        gone = self.run_there("pip", "uninstall", "--quiet", "--yes", "monarch-run")
        self.assertEqual((gone.status, self.files(venv)), (0, before), gone)

    def test_beside_another_package_of_its_name_it_says_whose_is_imported(self):
        venv, _ = self.fresh_environment()
        folder = self.run_there("python3", "-c", "import monarch; print(list(monarch.__path__)[0])").out.strip()
        os.mkdir(os.path.join(folder, "actor"))
        with open(os.path.join(folder, "actor", "__init__.py"), "w", encoding="utf-8"):
            pass
        told = self.run_there("python3", "-c", "import monarch.actor; print(monarch.actor.__file__)")
        self.assertEqual((told.status, told.out), (0, f"{folder}/actor/__init__.py\n"), told)
        self.assertIn(f"UserWarning: torchmonarch and monarch are both installed in {folder}: monarch.actor is that of torchmonarch", told.err)
        seen = [found for found in self.run_there("monarch", "doctor", "--json").json() if found["check"] == "python"]
        self.assertEqual([(found["health"], found["found"]) for found in seen],
                         [("note", f"{venv}/bin/python3 imports another package monarch, {folder}")])
        ran = self.run_there("/bin/sh", "-c", 'PYTHONPATH=$(monarch python) exec python3 "$0"', self.write("program.py", PROGRAM))
        self.assertEqual((ran.status, ran.out, ran.err), (0, f"[42, 42]\n{venv}/share/monarch/python/monarch/__init__.py\n", ""), ran)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
