"""The key of a job is nowhere but in its file, and that is gone after the end; files and folders are its owner's alone."""

import base64
import glob
import os
import stat

import harness
import jobs


class Secrets(jobs.JobTest):
    def test_the_key_is_in_its_file_alone(self):
        run = self.start("run", self.job("env; mark there; until [ -e go ]; do sleep 0.05; done; exit 7"))
        self.wait_for_marks("there", 4)
        path = self.job_file("key")
        with open(path, "rb") as file:
            key = file.read()
        self.assertEqual(len(key), 32)
        needles = self.spellings(key)
        for process in self.processes():
            for part in ("cmdline", "environ"):
                try:
                    with open(f"/proc/{process.pid}/{part}", "rb") as file:
                        self.assert_without(needles, file.read(), f"{part} of {process}")
                except (FileNotFoundError, ProcessLookupError):
                    pass  # a command of a rank, which has ended
                except PermissionError:  # who holds the key is undumpable: only root may look
                    self.assertIn((process.program, part), (("monarch", "environ"), ("monarch-worker", "environ")))
        self.assert_files_without(needles, but=path)
        self.monarch("status", "--json")
        self.write("go", "")
        done, _ = self.end_of(run, 7)
        self.assertFalse(os.path.exists(path))
        self.assert_without(needles, (done.out + done.err).encode(), "what run said")
        self.assert_files_without(needles)

    def test_a_canary_would_be_found(self):
        needles = self.spellings(b"k" * 32)
        self.write("log", f"the key is {(b'k' * 32).hex()}")
        with self.assertRaises(AssertionError):
            self.assert_files_without(needles)

    def test_what_is_kept_is_its_owners_alone(self):
        run = self.start("run", self.job("umask > umask.$RANK; mark there; until [ -e go ]; do sleep 0.05; done"))
        self.wait_for_marks("there", 4)
        for top in (self.path("state"), self.path("run")):
            for place, _, names in os.walk(top):
                self.assertEqual(stat.S_IMODE(os.stat(place).st_mode), 0o700, place)
                for name in names:
                    what = os.lstat(os.path.join(place, name))
                    self.assertEqual(stat.S_IMODE(what.st_mode) & 0o077, 0, os.path.join(place, name))
        # A rank has the umask of whoever runs it, not ours.
        self.assertEqual(int(self.read("work", "umask.0"), 8), self.own_umask())
        self.write("go", "")
        self.end_of(run, 0, "succeeded")

    @staticmethod
    def own_umask():
        mask = os.umask(0o22)
        os.umask(mask)
        return mask

    @staticmethod
    def spellings(key):
        """As it is, and as text would show it: hexadecimal, base64, Z85 of libzmq."""
        digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
        z85 = ""
        for i in range(0, len(key), 4):
            number = int.from_bytes(key[i:i + 4], "big")
            z85 += "".join(digits[number // 85 ** power % 85] for power in (4, 3, 2, 1, 0))
        return [key, key.hex().encode(), key.hex().upper().encode(), base64.b64encode(key), z85.encode()]

    def assert_without(self, needles, data, where):
        for needle in needles:
            self.assertNotIn(needle[:24], data, where)

    def assert_files_without(self, needles, but=None):
        for path in glob.glob(self.path("**"), recursive=True):
            if path != but and os.path.isfile(path):
                with open(path, "rb") as file:
                    self.assert_without(needles, file.read(), path)


if __name__ == "__main__":
    harness.main()
