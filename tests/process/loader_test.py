"""What steers the dynamic loader (LD_PRELOAD and its kin) reaches the ranks as the shell has it, and none of what keeps them."""

import os

import harness
import users

LIBRARY = "libBrokenLocale.so.1"  # of the C library, and used by nobody


class Loader(users.UserTest):
    def environment_of(self, pid):
        with open(f"/proc/{pid}/environ", "rb") as file:
            lines = file.read().decode().split("\0")
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def test_ranks_have_the_shells_and_our_processes_have_none(self):
        given = {"LD_PRELOAD": LIBRARY, "LD_LIBRARY_PATH": "/canary/lib:/canary/lib64", "LD_BIND_NOT": "1"}
        run = self.start("run", self.job("mark there; until [ -e go ]; do nap 0.05; done", hosts=1, slots=2), env=given)
        ranks = self.wait_for_marks("there", 2)
        for pid in ranks:
            environment = self.environment_of(pid)
            self.assertEqual({n: v for n, v in environment.items() if n.startswith("LD_")}, given)
            self.assertEqual([n for n in environment if "HELD" in n], [])
        self.assertIn(LIBRARY, self.read(f"/proc/{ranks[0]}/maps"))
        # Who holds the job is hidden from its own user: root alone can look.
        none_of = (("keeper", "LD_"), ("daemon", "LD_"), ("supervisor", ("LD_PRELOAD", "LD_AUDIT")))
        for role, none in none_of if os.geteuid() == 0 else ():
            process = self.process(role)
            self.assertEqual([n for n in self.environment_of(process.pid) if n.startswith(none)], [], role)
            self.assertNotIn(LIBRARY, self.read(f"/proc/{process.pid}/maps"), role)
        self.write("go", "")
        self.end_of(run, 0, "succeeded")


if __name__ == "__main__":
    harness.main()
