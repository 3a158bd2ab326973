"""Plugins and programs built outside of the tree, against what was installed, by each compiler that is here."""

import os
import re
import shutil
import subprocess
import tempfile

import actors
import harness
import tensor_jobs

GREETER = os.path.join(harness.ROOT, "configs", "greeter.cc")
COMPILERS = ["c++", "clang++-14"]
OURS = re.compile(r"((typeinfo|typeinfo name|vtable|guard variable) for )?(monarch|Greeter|drive)")


class Sdk(tensor_jobs.PullsTheExample, actors.ActorTest):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="ms-", dir="/tmp")
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        subprocess.run(["meson", "install", "-C", harness.BUILD, "--no-rebuild", "--quiet", "--destdir", cls.root], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        found = [os.path.join(folder, "monarch-actor.pc") for folder, _, files in os.walk(cls.root) if "monarch-actor.pc" in files]
        cls.found_by = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(found[0]), "PKG_CONFIG_SYSROOT_DIR": cls.root}

    def test_a_plugin_is_built_by_what_pkg_config_says(self):
        for compiler in COMPILERS:
            if shutil.which(compiler) is None:
                continue
            with self.subTest(compiler):
                built = self.path("work", f"libgreeter-{compiler}.so")
                command = f"{compiler} $(pkg-config --cflags monarch-actor) -Wall -Wextra -Werror -o {built} {GREETER}"
                done = subprocess.run(["/bin/sh", "-c", command], check=False, env=self.found_by, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                self.assertEqual((done.returncode, done.stdout), (0, ""), command)
                symbols = subprocess.run(["nm", "-DC", "--defined-only", built], check=True, text=True,
                                         stdout=subprocess.PIPE).stdout.splitlines()
                # What the standard library defines of our types is its own.
                ours = [name for name in (line.split(maxsplit=2)[2] for line in symbols) if OURS.match(name)]
                self.assertEqual(ours, ["monarch_plugin_v1_get"])
                ran = self.monarch("run", "--no-prefix", self.actor_job(
                    {}, {"plugin": built, "entry": "drive"}, hosts=1,
                    meshes={"trainer": {"dims": {"gpu": 8}, "actors": {"greeter": {"plugin": built, "class": "Greeter"}}}}))
                self.assertEqual(ran.status, 0, ran)
                self.assertIn("3: hello world from (3)\n", ran.out)

    def test_a_program_pulls_tensors(self):
        for compiler in COMPILERS:
            if shutil.which(compiler) is None:
                continue
            for way in ("shm", "tcp"):
                with self.subTest(compiler=compiler, way=way):
                    built = self.path("work", f"weights-{compiler}")
                    source = os.path.join(harness.ROOT, "configs", "weights.cc")
                    command = (f"{compiler} -std=c++20 $(pkg-config --cflags-only-I monarch-actor) -Wall -Wextra -Werror -O1 "
                               f"-o {built} {source}")
                    done = subprocess.run(["/bin/sh", "-c", command], check=False, env=self.found_by, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                    self.assertEqual((done.returncode, done.stdout), (0, ""), command)
                    with open(os.path.join(harness.ROOT, "configs", "weights.yaml"), encoding="utf-8") as file:
                        spec = file.read().replace("python3, weights.py", built)
                    ran = self.monarch("run", "--no-prefix", self.spec(spec), "--set", f"tensors.transports=[{way}]")
                    self.assertEqual(ran.status, 0, ran)
                    self.assert_pulled(ran, [(str(rank), "19", f"{way}=6") for rank in range(4)])


if __name__ == "__main__":
    harness.main()
