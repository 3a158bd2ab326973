"""Jobs on the hosts of a world: the fixture of tests/process (jobs.py, harness.py), run on the world's login host.

    class Run(cluster.ClusterTest):
        def test_runs(self):
            w = self.world(4)                                       # see world.py
            spec = self.ssh_job("mark up", hosts=4, slots=2)        # launch: ssh, onto h1 to h4
            done = self.monarch("run", spec)                        # on login, with login's ~/.ssh
            self.assert_nothing_left()                              # on login, nor on any host that is up

The test's folder is login's too, at the same path, so that its files (state, work, verdict) are read as ever. Other hosts do not
have it: ranks run in /tmp there, and their marks are looked for on every host. Binaries of the build are on login alone.
"""

import functools
import os
import re
import subprocess
import sys
import tempfile

import harness
import jobs
import leftovers
import world
from host import HOME

# What a host may keep of a job: the worker and files of its workspace for the next one, and logs; the first one, if the supervisor was
# there, monarch and what is known of the job.
KEPT = (HOME + "/.cache/monarch/worker/", HOME + "/.cache/monarch/blobs/", HOME + "/.local/state/monarch/hosts/",
        HOME + "/.cache/monarch/bundle/", HOME + "/.local/state/monarch/jobs/")
ENDED = ("/workspace", "/.cache/monarch/blobs/put.")  # within those: the tree of a job, and what was on its way
# Where nothing of a job may stay, and what is there without one.
WATCHED, BELONGS = ("/tmp", "/run", "/dev/shm", "/var/tmp", HOME), ("/run/sshd.pid", HOME + "/.ssh/", HOME + "/.bashrc")


@functools.cache
def ssh_is_built():
    """Whether the build takes a spec with `launch: ssh`."""
    spec = "version: 1\njob: a\nlaunch: {ssh: {hosts: [h1]}}\nmeshes: {m: {dims: {slot: 1}, program: [/bin/true]}}\n"
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(spec)
        file.flush()
        asked = subprocess.run([harness.MONARCH, "validate", file.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               check=False, timeout=harness.DEADLINE_S)
    return b"cannot do that yet" not in asked.stdout


class _OnHost(harness.Running):
    """A command whose process here is nsenter: signals are for its child, which is the command."""

    def signal(self, number):
        path = f"/proc/{self.pid}/task/{self.pid}/children"
        child, = harness.wait_for(lambda: world.read(path).split(), f"the child of {self!r}")
        os.kill(int(child), number)


class ClusterTest(jobs.JobTest):
    def setUp(self):
        self._worlds = []
        self.addCleanup(self._close_worlds)  # after the harness has looked for what the test left
        super().setUp()
        self.environment["HOME"] = HOME

    def _close_worlds(self):
        for made in self._worlds:
            made.close()

    def world(self, *arguments, **options):
        """The test's one world."""
        assert not self._worlds
        made = world.World(*arguments, shared=[self.folder], **options)
        self._worlds.append(made)
        print(f"# {self.id()}: {len(made.hosts)} hosts and login in {made.seconds:.2f} s", flush=True)
        return made

    @property
    def w(self):
        return self._worlds[0]

    def up(self):
        if not self._worlds:
            return []  # it ended before it had one
        return [host for host in [self.w.login, *self.w.hosts] if host.pid is not None]

    def start_program(self, *arguments, env=None, stdin=subprocess.DEVNULL, terminal=False, stdout=None):
        environment = {k: v for k, v in {**self.environment, **(env or {})}.items() if v is not None}
        command = self.w.login.command(*arguments, folder=self.path("work"))
        running = _OnHost(command, environment, self.folder, stdin, terminal, stdout)
        self._running.append(running)
        return running

    # Specs.

    def needs_ssh(self):
        if not ssh_is_built():
            self.skipTest("this build does not know launch.ssh")

    def ssh_job(self, script, hosts=2, slots=2, pool=None, ssh=None, **keys):
        """Path of a spec as of JobTest.job(), on h1 and up; `pool` names the hosts instead, `ssh` adds to launch.ssh."""
        self.needs_ssh()
        pool = pool or [host.name for host in self.w.hosts]
        mesh = {"workdir": "/tmp", **keys.pop("mesh", {})}
        return self.job(script, hosts, slots, mesh=mesh, launch={"ssh": {"hosts": pool, **(ssh or {})}}, **keys)

    # Marks: on whichever host the rank ran.

    def _mark_paths(self, name):
        places = [self.path("work"), *(host.path("/tmp") for host in self.up())]
        return {rank: f"{place}/{name}.{rank}" for place in places for rank in _ranks_of_marks(name, place)}

    def marks(self, name):
        return sorted(self._mark_paths(name))

    def hosts_of_marks(self, name):
        """{rank: name of the host}."""
        return {rank: host.name for host in self.up() for rank in _ranks_of_marks(name, host.path("/tmp"))}

    def wait_for_marks(self, name, ranks, timeout=harness.DEADLINE_S):
        """Until each of the ranks made its mark; what they wrote: their pids, each in its host."""
        ranks = list(range(ranks) if isinstance(ranks, int) else ranks)
        harness.wait_for(lambda: set(ranks) <= set(self.marks(name)),
                         lambda: f"marks {name} of {ranks}; there are {self.marks(name)}\n" +
                         "\n".join(map(repr, self.started())), timeout)
        found = self._mark_paths(name)
        return [int(world.read(found[rank])) for rank in ranks]

    # What is there, and what is left.

    def on_hosts(self):
        """(host, process) of whatever runs on the hosts that are up, but for their init and the listening sshd."""
        return [(host, process) for host in self.up() for process in map(leftovers.Process, host.pids())
                if process.state not in ("", "Z", "X") and not b" ".join(process.arguments).endswith(b" startups")]

    def processes(self):
        found = {process.pid: process for process in super().processes() if self._is_of_no_world(process)}
        found.update((process.pid, process) for _, process in self.on_hosts())
        return list(found.values())

    def _is_of_no_world(self, process):
        return not any(process.pid in (made.guard_pid, *(host.pid for host in made.hosts)) for made in self._worlds)

    def processes_of(self, role, host=None):
        if host is None:
            return super().processes_of(role)
        there = {process.pid for place, process in self.on_hosts() if place.name == host}
        return [process for process in super().processes_of(role) if process.pid in there]

    def leftovers(self):
        found = super().leftovers()
        for host in self.up():
            found += [f"{host.name}: {path}" for path in self._files_of_jobs(host)]
            if host.cgroup:
                found += [f"{host.name}: cgroup {path}" for path in leftovers.groups(host.cgroup) if path != host.cgroup]
        return found

    def _files_of_jobs(self, host):
        root = host.path("")
        for top in WATCHED:
            for place, folders, names in os.walk(root + top):
                inside = place.removeprefix(root)
                if inside in (self.folder, world.ROOT, world.BUILD):
                    folders[:] = []  # the machine's own
                    continue
                for name in names:
                    path = f"{inside}/{name}"
                    mark = top == "/tmp" and name.rpartition(".")[2].isdigit()
                    if any(part in path for part in ENDED) or not mark and not path.startswith(KEPT + BELONGS):
                        yield path


def _ranks_of_marks(name, folder):
    return [int(entry[len(name) + 1:]) for entry in leftovers.names(folder) if re.fullmatch(rf"{re.escape(name)}\.\d+", entry)]


def main():
    reason = world.why_not()
    if reason:
        print(f"1..0 # SKIP {reason}")
        sys.exit(0)
    harness.main()
