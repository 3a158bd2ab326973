"""The tarball of scripts/package in a minimal Debian 12 root, used by somebody without rights; and that removal leaves nothing.

Needs root, debootstrap, and a mirror of Debian ($MONARCH_DEBIAN_MIRROR, else deb.debian.org); without them it is skipped by name. The
root has a mount namespace of its own and no network but loopback.
"""

import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import harness

MIRROR = os.environ.get("MONARCH_DEBIAN_MIRROR", "http://deb.debian.org/debian")
USER = 1234

# As root in new namespaces: the devices and /proc of a container, then the user's script with nothing of ours around it.
ENTER = r"""
set -eu
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
ip link set lo up
exec chroot --userspec=1234:1234 "$1" /usr/bin/env -i HOME=/home/user PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 \
  /bin/sh -euc "$2"
"""
USE = r"""
cd /home/user
tar xzf /tmp/monarch.tar.gz
cd monarch-*
ldd bin/monarch
bin/monarch version
bin/monarch run share/doc/monarch/examples/hello.yaml
bin/monarch run share/doc/monarch/examples/smoke-ci.yaml
bin/monarch ps --all
bin/monarch doctor || true
ln -s "$PWD/bin/monarch" /home/user/link
cd /
/home/user/link run /home/user/monarch-*/share/doc/monarch/examples/hello.yaml --quiet
/home/user/link rm --all
rm -r /home/user/monarch-* /home/user/link
"""
PARTS = ["bin/monarch", "libexec/monarch/monarch-worker", "share/man/man1/monarch.1", "share/man/man5/monarch.yaml.5",
         "share/bash-completion/completions/monarch.bash", "share/zsh/site-functions/_monarch",
         "share/fish/vendor_completions.d/monarch.fish", "share/monarch/monarch.schema.json", "share/monarch/python/monarch_rank.py",
         "share/monarch/python/monarch_tensors.py", "share/monarch/python/monarch/actor.py",
         "share/doc/monarch/LICENSE",
         "share/doc/monarch/README.md", "share/doc/monarch/examples/hello.yaml", "share/doc/monarch/examples/monarch.sbatch",
         "share/doc/monarch/licenses/libzmq3-dev"]


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="mp-", dir="/tmp")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        done = subprocess.run([os.path.join(harness.ROOT, "scripts/package"), cls.folder], check=False, timeout=600,
                              env={**os.environ, "MONARCH_PACKAGE_BUILT": "1"}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise AssertionError(done.stderr.decode(errors="replace"))
        cls.tarball = done.stdout.decode().strip()

    def test_the_tarball_holds_every_part(self):
        with tarfile.open(self.tarball) as tar:
            names = tar.getnames()
            tops = {name.split("/")[0] for name in names}
            self.assertEqual(len(tops), 1, tops)
            top, = tops
            self.assertRegex(top, r"^monarch-\d+\.\d+\.\d+-linux-\w+$")
            for part in PARTS:
                self.assertTrue({f"{top}/{part}", f"{top}/{part}.gz"} & set(names), f"{part} among {names}")
            for member in tar.getmembers():
                self.assertTrue(member.isreg() or member.isdir(), member.name)
                self.assertEqual((member.uid, member.gid, member.mode & 0o6022), (0, 0, 0), member.name)

    def test_uninstalling_leaves_nothing(self):
        place = os.path.join(self.folder, "installed")
        subprocess.run(["meson", "install", "-C", harness.BUILD, "--no-rebuild", "--destdir", place], check=True, timeout=300,
                       stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.assertTrue(os.listdir(place))
        subprocess.run(["meson", "--internal", "uninstall"], cwd=harness.BUILD, check=True, timeout=300,
                       stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        left = [os.path.join(base, name) for base, _, names in os.walk(place) for name in names]
        self.assertEqual(left, [])

    def test_it_runs_in_a_minimal_root_without_rights(self):
        if os.geteuid() != 0 or not shutil.which("debootstrap"):
            self.skipTest("needs root and debootstrap")
        root = os.path.join(self.folder, "root")
        made = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", root, MIRROR], check=False, timeout=600,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if made.returncode != 0:
            self.skipTest("debootstrap: " + made.stdout.decode(errors="replace").strip().splitlines()[-1])
        shutil.copy(self.tarball, os.path.join(root, "tmp", "monarch.tar.gz"))
        home = os.path.join(root, "home", "user")
        os.makedirs(home)
        os.chown(home, USER, USER)
        before = self.files(root)
        done = subprocess.run(["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "/bin/sh", "-c", ENTER, "sh",
                               root, USE], check=False, timeout=300, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, 0, out + err)
        self.assertIn("[greeters/0@v1] hello", out)
        self.assertIn("[smoke/3@v2] rank 3 of 4 on v2", out)
        self.assertNotIn("not found", out, "a library of the build machine is missing there")
        linked = sorted(line.split()[0] for line in out.splitlines() if line.startswith("\t") and " => " in line)
        self.assertEqual([name for name in linked if not name.startswith(("libc.", "libm."))], [], out)
        # The user's folders for state and sockets, both empty, are no part of the package.
        theirs = (home + "/.local", os.path.join(root, "tmp", f"monarch-{USER}"))
        left = {f for f in self.files(root) - before if not f.startswith(theirs) or os.path.isfile(f)}
        self.assertEqual(left, set())

    @staticmethod
    def files(root):
        return {os.path.join(base, name) for base, folders, names in os.walk(root) for name in (*folders, *names)
                if not base.startswith((os.path.join(root, "proc"), os.path.join(root, "dev"), os.path.join(root, "sys")))}


if __name__ == "__main__":
    harness.main()
