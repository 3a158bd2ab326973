"""`monarch python`: the folder it prints has all that programs import, wherever the command lies."""

import os
import shutil
import subprocess

import harness

IMPORTS = "import monarch.actor, monarch_rank, monarch_tensors, os; print(os.path.dirname(os.path.dirname(monarch.__file__)))"


class Python(harness.MonarchTest):
    def installed(self):
        """The command alone in the bin/ of a prefix of its own."""
        os.makedirs(self.path("work", "prefix", "bin"))
        return shutil.copy(os.path.join(harness.BUILD, "cli", "monarch"), self.path("work", "prefix", "bin"))

    def asked(self, program, *arguments):
        return self.start_program(program, "python", *arguments).finished()

    def test_in_a_build_tree(self):
        folder = os.path.join(os.path.realpath(harness.BUILD), "worker", "python")
        self.assert_output(self.monarch("python"), 0, folder + "\n", "")
        here = {os.path.relpath(os.path.join(place, name), harness.MODULES) for place, _, names in os.walk(harness.MODULES)
                for name in names if name.endswith(".py")}
        self.assertEqual({name for name in here if not os.path.exists(os.path.join(folder, name))}, set(),
                         "in no meson.build of worker/python")

    def test_what_it_prints_is_for_pythonpath(self):
        monarch = os.path.join(harness.BUILD, "cli", "monarch")
        shown = subprocess.run(["/bin/sh", "-c", f'PYTHONPATH=$("{monarch}" python) exec python3 -B -c "{IMPORTS}"'], check=True,
                               timeout=60, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout
        self.assertEqual(shown, self.monarch("python").out)

    def test_an_installation_that_was_moved(self):
        program = self.installed()
        folder = self.path("work", "prefix", "share", "monarch", "python")
        shutil.copytree(harness.MODULES, folder)
        os.symlink(program, self.path("work", "link"))
        for way in (program, self.path("work", "link")):
            self.assert_output(self.asked(way), 0, os.path.realpath(folder) + "\n", "")
        os.rename(self.path("work", "prefix"), self.path("work", "a:b"))
        folder = os.path.realpath(self.path("work", "a:b", "share", "monarch", "python"))
        self.assert_output(self.asked(self.path("work", "a:b", "bin", "monarch")), 70, "",
                           f"error[E0908]: the folder is {folder}, and PYTHONPATH takes no path with a `:` in it\n"
                           "  = help: move the installation\n")

    def test_an_installation_without_it(self):
        program = self.installed()
        prefix = os.path.realpath(self.path("work", "prefix"))
        self.assert_output(self.asked(program), 70, "",
                           f"error[E0908]: the Python package is missing; looked for {prefix}/share/monarch/python, "
                           f"{prefix}/worker/python\n  = help: install monarch anew\n")

    def test_it_takes_nothing(self):
        self.assert_output(self.monarch("python", "prog.py"), 2, "",
                           "error[E0903]: unexpected argument `prog.py`\n  = help: usage: monarch python [flags]\n")


if __name__ == "__main__":
    harness.main()
