"""A real Slurm on the hosts of a world: a slurmctld on a host of its own, a slurmd on each node, munge on all, login with the commands.

    class Run(slurm.SlurmTest):
        def test_runs(self):
            s = self.slurm(nodes=3)                  # nodes h1 to h3; h4 has the slurmctld; login submits
            s.run("srun", "-N3", "hostname")         # on login
            s.nodes[1].stop_slurmd()                 # kill -9; a node goes DOWN 10 s after that
            s.controller.stop(); s.controller.cont(); s.controller.kill(); s.controller.start()

Each daemon is of its own host: what befalls the host (power, cable, freezing) befalls it, too. A host that is powered on again has its
files and no daemon. Slurm's state, logs and keys lie in the hosts' own overlays and go with the world.
"""

import os
import signal

import cluster
import harness
import world
from host import Options, read, wait_for

# Of the daemons' own times only the node's is short: within it a test can wait.
SLURMD_TIMEOUT_S, KILL_WAIT_S = 10, 5
_CONF = """ClusterName=bed
SlurmctldHost={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1
SlurmdTimeout={slurmd_timeout}
KillWait={kill_wait}
InactiveLimit=0
ReturnToService=2
GresTypes=gpu
NodeName={nodes} CPUs=4 RealMemory=1000{gres} State=UNKNOWN
PartitionName=main Nodes={nodes} Default=YES MaxTime=INFINITE State=UP
"""
# A job of `high` takes the nodes of one of `low`, which has so many seconds from the word to the end.
_PREEMPTION = """PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=high Nodes={nodes} PriorityTier=10 MaxTime=INFINITE State=UP
PartitionName=low Nodes={nodes} PriorityTier=1 GraceTime={grace} MaxTime=INFINITE State=UP
"""
# WARNING: slurmd 22.05 refuses to start where cgroup v1 and v2 are both mounted, unless it is told which one; cgroup.conf(5).
_CGROUP_CONF = "CgroupPlugin=cgroup/v1\n"
_FOLDERS = {"/etc/munge": 0o700, "/var/lib/munge": 0o700, "/var/log/munge": 0o700, "/run/munge": 0o755, "/etc/slurm": 0o755,
            "/var/spool/slurmctld": 0o755, "/var/spool/slurmd": 0o755}
PROGRAMS = ("/usr/sbin/munged", "/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/bin/srun")
# What Slurm itself keeps on a host while no job of anybody runs.
BELONGS = ("/run/munge/", "/run/slurm", "/run/munged.pid")
# Where nobody looks for leftovers.
_SCRIPT, OUTPUT = "/var/spool/job.sh", "/var/log/job.out"
DAEMONS = ("munged", "slurmctld", "slurmd", "slurmscriptd")


def why_not():
    """What this machine lacks, or None."""
    for program in PROGRAMS:
        if not os.path.exists(program):
            return f"needs {program}"
    return world.why_not()


class Daemon:
    """One of Slurm's on one host."""

    def __init__(self, host, pid_file, *command):
        self.host, self._pid_file, self._command = host, pid_file, command

    def start(self):
        """It says that it is there by its own end: the process that is started forks when it serves."""
        done = self.host.run(*self._command, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{self.host.name}: {self._command}: {done.stderr}{self.log()[-2000:]}")

    def log(self):
        name = os.path.basename(self._command[0])
        path = self.host.path(f"/var/log/{name}.log")
        return read(path) if os.path.exists(path) else ""

    def pid(self):
        """In its host."""
        return int(self.host.read(self._pid_file))

    def kill(self):
        """As power takes it: without a word, and what it started lives on."""
        self._signal(signal.SIGKILL)
        wait_for(lambda: not self._lives(), f"the end of {self._command[0]} on {self.host.name}")

    def stop(self):
        self._signal(signal.SIGSTOP)

    def cont(self):
        self._signal(signal.SIGCONT)

    def _signal(self, number):
        self.host.run("kill", f"-{int(number)}", str(self.pid()))

    def _lives(self):
        return self.host.run("kill", "-0", str(self.pid()), check=False).returncode == 0


class Slurm:
    """See the top of this file."""

    def __init__(self, made, nodes, gpus=0, grace=None, requeued_after=None):
        self.world, self.login = made, made.login
        self.node_hosts = made.hosts[:nodes]
        controller = made.hosts[nodes]
        gres = f" Gres=gpu:{gpus}" if gpus else ""
        self._conf = _CONF.format(controller=controller.name, nodes=f"h[1-{nodes}]", gres=gres,
                                  slurmd_timeout=SLURMD_TIMEOUT_S, kill_wait=KILL_WAIT_S)
        if grace is not None:
            self._conf += _PREEMPTION.format(nodes=f"h[1-{nodes}]", grace=grace)
        if requeued_after is not None:
            self._conf += f"AuthInfo=cred_expire={requeued_after}\n"
        self._gpus = gpus
        self._key = os.urandom(128)
        self.munge = {host.name: Daemon(host, "/run/munge/munged.pid", "/usr/sbin/munged", "--num-threads=2")
                      for host in [made.login, *made.hosts]}
        self.controller = Daemon(controller, "/run/slurmctld.pid", "/usr/sbin/slurmctld", "-i")
        self.nodes = [Daemon(host, "/run/slurmd.pid", "/usr/sbin/slurmd", "-N", host.name) for host in self.node_hosts]
        for host in [made.login, *made.hosts]:
            self._prepare(host)
        for daemon in [*self.munge.values(), self.controller, *self.nodes]:
            daemon.start()
        self.wait_for_idle(nodes)

    def _prepare(self, host):
        for folder, mode in _FOLDERS.items():
            os.makedirs(host.path(folder), exist_ok=True)
            os.chown(host.path(folder), 0, 0)
            os.chmod(host.path(folder), mode)
        with open(host.path("/etc/munge/munge.key"), "wb") as file:
            file.write(self._key)
        os.chown(host.path("/etc/munge/munge.key"), 0, 0)
        os.chmod(host.path("/etc/munge/munge.key"), 0o400)
        host.write("/etc/slurm/slurm.conf", self._conf)
        host.write("/etc/slurm/cgroup.conf", _CGROUP_CONF)
        if self._gpus:
            # Any file does: nothing here asks what it is.
            host.write("/etc/slurm/gres.conf", "".join(f"Name=gpu File=/dev/{name}\n" for name in ("zero", "full", "null")[:self._gpus]))

    def power_on(self, host):
        """A node that had lost its power, with its daemons."""
        host.power_on()
        for folder in ("/run/munge",):
            os.makedirs(host.path(folder), exist_ok=True)
        self.munge[host.name].start()
        next(daemon for daemon in self.nodes if daemon.host is host).start()

    def run(self, *arguments, **options):
        """A command on login, to its end."""
        return self.login.run(*arguments, **options)

    def states(self):
        """{node: its state, as sinfo writes it}"""
        lines = self.run("sinfo", "-h", "-N", "-o", "%n %T").stdout.split("\n")
        return dict(line.split() for line in lines if line)

    def wait_for_idle(self, count):
        wait_for(lambda: sum(state == "idle" for state in self.states().values()) >= count,
                 lambda: f"{count} idle nodes; there are {self.states()}\n{self.controller.log()[-2000:]}")

    def wait_for_state(self, node, word, timeout=30):
        """Until sinfo's state of the node has the word in it."""
        wait_for(lambda: word in self.states()[node], lambda: f"{node} {word}; there are {self.states()}", timeout)

    def jobs(self):
        """{job id: state} of all that squeue knows, ended ones as well until they are forgotten."""
        lines = self.run("squeue", "-h", "-t", "all", "-o", "%A %T").stdout.split("\n")
        return {int(line.split()[0]): line.split()[1] for line in lines if line}

    def live_jobs(self):
        """What squeue shows."""
        return [line for line in self.run("squeue", "-h", "-o", "%A %T %j").stdout.split("\n") if line]

    def steps(self, job):
        """{step id: (name, nodes)} of a job, its batch script's left out."""
        lines = self.run("squeue", "-h", "-s", "-j", str(job), "-o", "%i|%j|%N").stdout.split("\n")
        found = [line.split("|") for line in lines if line]
        return {step: (name, nodes) for step, name, nodes in found if not step.endswith((".batch", ".extern"))}

    def forget_all(self):
        """The controller anew, with no state: the next job has the number 1 again.

        WARNING: a slurmd that still has the former job 1 ends whatever of job 1 is on its node, so the next one belongs on another node."""
        self.controller.kill()
        self.controller.host.run("sh", "-c", "rm -rf /var/spool/slurmctld/*")
        self.controller.start()
        self.wait_for_idle(len(self.node_hosts))

    def submit(self, script, *options):
        """sbatch of a script given as text, on login; the job's id."""
        self.login.write(_SCRIPT, "#!/bin/bash\n" + script, 0o755)
        return int(self.run("sbatch", "--parsable", "--chdir=/", f"--output={OUTPUT}", *options, _SCRIPT).stdout.split(";")[0])

    def wait_for_job(self, job, *states, timeout=60):
        wait_for(lambda: self.jobs().get(job) in states, lambda: f"job {job} {states}; there are {self.jobs()}", timeout)


class SlurmTest(cluster.ClusterTest):
    def slurm(self, nodes=3, gpus=0, alike=False, grace=None, requeued_after=None):
        """A world with that many nodes, and one host more for the slurmctld. `alike`: the nodes have monarch and the test's folder, as
        where both lie on a file system that all share. `grace`: jobs of the partition `high` preempt those of `low` after so many seconds.
        `requeued_after`: a job that is requeued waits so many seconds; Slurm's own default is two minutes (slurm.conf(5), cred_expire)."""
        there = Options(sshd=False, build=alike, shared=(self.folder,) if alike else ())
        made = self.world(nodes + 1, options={f"h{n}": there for n in range(1, nodes + 2)})
        self._slurm = Slurm(made, nodes, gpus, grace, requeued_after)
        return self._slurm

    def slurm_job(self, script, hosts=2, slots=2, slurm=None, **keys):
        """Path of a spec as of JobTest.job(), for whatever allocation it is started in."""
        mesh = {"workdir": "/tmp", **keys.pop("mesh", {})}
        return self.job(script, hosts, slots, mesh=mesh, launch={"slurm": slurm or {}}, **keys)

    def salloc(self, nodes, *arguments, **options):
        """Starts monarch on login, within an allocation of so many nodes."""
        return self.start_program("salloc", "--quiet", "--no-kill", f"-N{nodes}", harness.MONARCH, *arguments, **options)

    def stop(self, run):
        """WARNING: a signal to salloc gives the allocation back, whatever runs in it; salloc(1)."""
        done = self.monarch("stop")
        self.assertEqual(done.status, 0, done)
        self.assertEqual(run.wait(), 143, run)

    def verdict_is_there(self):
        try:
            return self.jobs() and self.verdict()
        except (FileNotFoundError, ValueError):
            return None

    def on_hosts(self):
        """What Slurm runs for itself is nobody's leftover."""
        return [(host, process) for host, process in super().on_hosts()
                if os.path.basename(b"".join(process.arguments[:1]).decode(errors="replace")).partition(":")[0] not in DAEMONS]

    def wait_for_no_worker(self):
        """Nor a rank that sleeps: Slurm kills them with their step."""
        def left():
            return [process for _, process in self.on_hosts()
                    if b"monarch-worker" in b"".join(process.arguments[:1]) or process.program == "sleep"]
        wait_for(lambda: not left(), lambda: f"no worker; there are {left()}")

    def _files_of_jobs(self, host):
        return [path for path in super()._files_of_jobs(host) if not path.startswith(BELONGS)]

    def clean(self, hosts):
        """Of workers that Slurm has killed, with all that could have removed them: sockets, and cgroups that are empty."""
        for host in hosts:
            host.run("sh", "-c", "rm -rf /tmp/monarch-0/w-*")
            for group, _, _ in sorted(os.walk(host.cgroup or ""), reverse=True):
                if "/monarch-" in group:
                    os.rmdir(group)

    def assert_nothing_left(self):
        """Slurm needs a moment to see that a job's steps have ended."""
        harness.wait_for(lambda: not self._slurm.live_jobs(), lambda: f"the end of {self._slurm.live_jobs()}")
        super().assert_nothing_left()


def main():
    reason = why_not()
    if reason:
        print(f"1..0 # SKIP {reason}")
        raise SystemExit(0)
    harness.main()
