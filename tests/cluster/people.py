"""Jobs of an ordinary user on every host of a world, login included, and another user beside: root sees all, they must not.

    class Run(people.PeopleTest):
        def test_runs(self):
            w = self.peopled(3)
            done = self.monarch("run", self.ssh_job("mark up", hosts=3))   # alice, on login, as alice of each host
"""

import os
import shutil

import cluster
import harness
import host as hosts
import users

ALICE, BOB = 4077, 4078
PEOPLE = {"alice": ALICE, "bob": BOB}
HOME = "/home/alice"
# A host of an operator who wants to see what crashes: cores are written where a process is, which is / for ours.
SHELL_RC = "ulimit -c unlimited\n"


def _own(path, uid):
    for place, folders, names in os.walk(path):
        for entry in (".", *folders, *names):
            os.lchown(os.path.join(place, entry), uid, uid)


class PeopleTest(cluster.ClusterTest):
    def peopled(self, *arguments, rc=SHELL_RC, **options):
        w = self.world(*arguments, **options)
        for host in [w.login, *w.hosts]:
            self._add_people(host, rc)
        for folder, binary in (("bin", harness.MONARCH), ("libexec/monarch", harness.WORKER)):
            os.makedirs(self.path(folder))
            shutil.copy(binary, self.path(folder))
        self.environment["HOME"] = HOME
        for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "TMPDIR"):
            self.environment.pop(name)
        _own(self.folder, ALICE)
        return w

    def _add_people(self, host, rc):
        for name, uid in PEOPLE.items():
            host.write("/etc/passwd", hosts.read(host.path("/etc/passwd")) + f"{name}:x:{uid}:{uid}::/home/{name}:/bin/bash\n")
            host.write("/etc/shadow", hosts.read(host.path("/etc/shadow")) + f"{name}:*:19000:0:99999:7:::\n", 0o640)
            home = host.path(f"/home/{name}")
            os.mkdir(home)
            if uid == ALICE:
                shutil.copytree(host.path(hosts.HOME + "/.ssh"), f"{home}/.ssh")
            host.write(f"/home/{name}/.bashrc", rc)
            os.chmod(home, 0o700)
            _own(home, uid)
        os.chown(host.path("/"), ALICE, ALICE)  # sshd's StrictModes takes a / of the user's as it takes root's

    def ssh_job(self, script, *arguments, **keys):
        ssh = {"user": "alice", **(keys.pop("ssh", None) or {})}
        path = super().ssh_job(script, *arguments, ssh=ssh, **keys)
        os.chown(path, ALICE, ALICE)
        return path

    def as_alice(self, *command, **options):
        return self.start_program(*users.becoming(ALICE), *command, **options)

    def start(self, *arguments, **options):
        return self.as_alice(self.path("bin", "monarch"), *arguments, **options)
