"""Secrets of a job over SSH are where they belong and nowhere else: no argument, environment, file, log, core or `ps` of any host.

Canaries are two variables of the submitting shell (one passed on, one read by $(env.X)), a third that no spec names, the job's key, each
worker's key, the key that logs in, and a file of the workspace. Hosts write cores of whatever crashes and may be dumped.
"""

import ctypes
import ctypes.util
import glob
import hashlib
import os
import re
import signal
import socket
import uuid

import canary
import cluster
import harness
import jobs
import leftovers
import people
import users
from host import ENVIRONMENT, HOME, read, wait_for

SLEEPER = "987654"  # seconds, of something that a rank started
VIEWER_LINGERS_S = 60  # on a first host, for a connection that takes it up again (elsewhere.cc)
STATE, CACHE = people.HOME + "/.local/state/monarch", people.HOME + "/.cache/monarch"
# Whether this machine, which its hosts share that setting with, writes cores as files where a process is; else there are none to look into.
CORES = re.fullmatch(r"core(\.%p)?\n", read("/proc/sys/kernel/core_pattern")) is not None
CORE = r"/core(\.\d+)?$"
# Where a canary belongs while a job runs, and where it stays. A shell's own are of the command that it started, and of what holds the job
# for that; root's `ps` shows those.
SHELL, RANK = r"login: (environ of .*|ps)", r"h\d: (environ of .* \(rank\)|ps of a rank)"
STAYS = {
    "ssh key": (rf"login: file ({HOME}|{people.HOME})/\.ssh/id_ed25519",),
    "workspace": (r"login: file \S+/tree/secret", rf"h\d: file {CACHE}/blobs/[0-9a-f]{{64}}"),
}
BELONGS = {
    "passed": (SHELL, RANK), "derived": (SHELL, RANK), "unlisted": (SHELL,),
    "job key": (r"login: file \S+/state/jobs/[^/]+/key",),
    "ssh key": STAYS["ssh key"],
    "workspace": (*STAYS["workspace"], r"login: file \S+/state/jobs/[^/]+/workspace\S*",
                  rf"h\d: file {STATE}/hosts/[^/]+/h\d/workspace/secret"),
}

# Where the first host has the supervisor, what holds the job there was given the shell's values; root sees them.
_HELD = r"h1: (environ of monarch(-worker)?|ps)"
FIRST = {**BELONGS, "passed": (*BELONGS["passed"], _HELD), "derived": (*BELONGS["derived"], _HELD),
         "job key": (rf"h1: file {STATE}/jobs/[^/]+/key",)}


def _public_key(secret):
    sodium = ctypes.CDLL(ctypes.util.find_library("sodium"))
    public = ctypes.create_string_buffer(32)
    sodium.crypto_scalarmult_base(public, secret)
    return public.raw


def _secret_of(keeper):
    """The worker's secret key, out of the sealed memory that its keeper holds for the next daemon."""
    for link in glob.glob(f"/proc/{keeper.pid}/fd/*"):
        if "memfd:" in os.readlink(link):
            with open(link, "rb") as file:
                held = file.read()
            for at in range(len(held) - 31):
                if canary.z85(_public_key(held[at:at + 32])) in held:
                    return held[at:at + 32]
    raise AssertionError(f"{keeper} holds no pair of keys")


class Secrets(people.PeopleTest):
    def start_job(self, **keys):
        w = self.peopled(3)
        self.wires = [canary.Wire(w.login), canary.Wire(w["h2"])]
        for wire in self.wires:
            self.addCleanup(wire.close)
        words = {name: uuid.uuid4().hex for name in ("passed", "derived", "unlisted", "workspace")}
        os.mkdir(self.path("work", "tree"))
        secret = self.write("tree/secret", words["workspace"] + "\n")
        for path in (self.path("work", "tree"), secret):
            os.chown(path, people.ALICE, people.ALICE)
        self.canaries = {name: canary.spellings(word.encode()) for name, word in words.items()}
        spec = self.ssh_job(f"cat secret > /dev/null; cd /tmp; sleep {SLEEPER} & mark up; {jobs.FOREVER}", hosts=3, slots=1,
                            workspace={"path": self.path("work", "tree")}, supervision={"orphan_ttl": "6s"},
                            mesh={"env_pass": ["CANARY_*"], "env": {"DERIVED": "key=$(env.SHELL_KEY)"}, "workdir": ".",
                                  "setup": "export AGAIN=$CANARY_TOKEN"}, **keys)
        shell = {"CANARY_TOKEN": words["passed"], "SHELL_KEY": words["derived"], "NOBODYS_BUSINESS": words["unlisted"]}
        agent = w.login.path(people.HOME + "/agent")
        self.agent = self.as_alice("ssh-agent", "-D", "-a", people.HOME + "/agent")
        wait_for(lambda: os.path.exists(agent), "an agent")
        shell["SSH_AUTH_SOCK"] = people.HOME + "/agent"
        self.assertEqual(self.as_alice("ssh-add", people.HOME + "/.ssh/id_ed25519", env=shell).wait(), 0)
        said = [self.monarch(*words, spec, env=shell) for words in (("plan",), ("plan", "--json"), ("validate",))]
        run = self.as_alice("/bin/bash", "-c", f"ulimit -c unlimited; exec {self.path('bin', 'monarch')} run {spec}", env=shell)
        self.wait_for_marks("up", 3, timeout=60)
        keys = [self.job_file("key"), *(path for host in w.hosts for path in glob.glob(host.path(STATE + "/jobs/*/key")))]
        self.canaries["job key"] = canary.spellings(*map(self.bytes_of, filter(os.path.exists, keys)))
        self.keepers = {host.name: self.processes_of("keeper", host.name)[0] for host in w.hosts}
        for name, keeper in self.keepers.items():
            self.canaries[f"key of {name}"] = canary.spellings(_secret_of(keeper))
        self.canaries["ssh key"] = self.login_key()
        return run, said

    @staticmethod
    def bytes_of(path):
        with open(path, "rb") as file:
            return file.read()

    def login_key(self):
        """Of the file as it is, and of the number in it."""
        path = people.HOME + "/.ssh/id_ed25519"
        text = self.bytes_of(self.w.login.path(path)).split(b"\n")
        seed = re.search(rb"\0\0\0\x40(.{32})", canary.base64.b64decode(b"".join(text[1:-2])), re.S)[1]
        return [*canary.spellings(seed), text[4][:canary.PIECE]]

    def misplaced(self, belongs=None):
        return self.not_where_they_belong(canary.search(self.canaries, canary.places(self.w, [self.folder])), belongs or BELONGS)

    @staticmethod
    def not_where_they_belong(found, belongs):
        return sorted((name, where) for name, where in found if not any(re.fullmatch(p, where) for p in belongs.get(name, ())))

    def assert_users_see_no_more(self, belongs=None):
        """Who shares the machine sees none; the job's own user has files and ranks, and no look into what holds the job."""
        for host in self.up():
            self.assertEqual(canary.seen_by(host, people.BOB, self.canaries), set(), host.name)
            seen = canary.seen_by(host, people.ALICE, self.canaries)
            self.assertEqual(self.not_where_they_belong(seen, belongs or BELONGS), [], host.name)
            self.assertEqual([where for _, where in seen if "environ of monarch" in where], [], host.name)

    def crash(self, process, number=signal.SIGABRT):
        self.kill(process, number)
        self.wait_gone(process)

    def cores(self):
        return [where for host in self.up() for where, _ in canary.files(self.w, host, [self.folder])
                if re.search(CORE, where)]

    def test_nothing_of_them_is_misplaced_while_the_job_runs_or_after_it_crashed(self):
        run, said = self.start_job()
        self.assertEqual(self.misplaced(), [], "while it runs")
        self.assert_users_see_no_more()
        for host in self.w.hosts:
            for process, name in canary.processes(host):
                self.assertFalse([line for line in process.environment if line.startswith(b"SSH_AUTH_SOCK=")], f"{host.name}: {name}")
        said += [self.monarch(*words) for words in (("status",), ("status", "--json"), ("ps",), ("events", "--json", "last"))]

        # Each of ours crashes with cores allowed, and so does what a rank started.
        viewer, = self.find("monarch", "run")
        self.crash(viewer)
        daemon, = self.processes_of("daemon", "h1")
        self.crash(daemon)
        wait_for(lambda: [p for p in self.processes_of("daemon", "h1") if p.pid != daemon.pid], "another daemon")
        sleeper = next(p for host, p in self.on_hosts() if host.name == "h3" and SLEEPER.encode() in p.arguments)
        self.crash(sleeper, signal.SIGSEGV)
        cores = glob.glob(self.w["h3"].path("/tmp/core*"))
        found = canary.search(self.canaries, (("core", self.bytes_of(core)) for core in cores))
        self.assertEqual(found, {("passed", "core"), ("derived", "core")} if CORES else set(), "a rank's own environment")
        for core in cores:
            os.unlink(core)
        self.assertEqual(self.misplaced(), [], "after crashes")

        supervisor = self.process("supervisor")
        self.crash(self.keepers["h2"])
        self.crash(supervisor)
        wait_for(lambda: [p for p in self.processes_of("supervisor") if p.pid != supervisor.pid], "another supervisor")
        self.crash(self.process("guard"))
        self.agent.signal(signal.SIGTERM)
        harness.wait_for(lambda: os.path.exists(self.job_file("verdict.json")), "the end of the job", 60)
        self.assert_nothing_left(30)
        self.assertEqual(self.misplaced(STAYS), [], "after its end")
        self.assertEqual(self.cores(), [])
        said += [run, *(self.monarch(*words, "last") for words in (("events", "--json"), ("logs",), ("status", "--json")))]
        self.assert_nothing_passed()
        self.assertEqual(canary.search(self.canaries, ((repr(done.arguments), (done.out + done.err).encode()) for done in said)), set())

    def assert_nothing_passed(self):
        frames = [frame for wire in self.wires for frame in wire.close()]
        self.assertGreater(len(frames), 1000)
        self.assertEqual(canary.search(self.canaries, frames), set(), "on the wire")

    def test_nor_where_all_goes_through_a_tunnel(self):
        run, _ = self.start_job(control={"via": "ssh"})
        self.assertEqual(self.misplaced(), [], "while it runs")
        self.assert_users_see_no_more()
        self.assertEqual(self.monarch("stop", "last", timeout=60).status, 0)
        run.wait(60)
        self.agent.signal(signal.SIGTERM)
        self.assert_nothing_left(30)
        self.assertEqual(self.misplaced(STAYS), [], "after its end")
        self.assert_nothing_passed()

    def test_nor_where_the_supervisor_is_on_the_first_host(self):
        self.start_job(supervisor={"on": "first"})
        self.assertEqual(self.misplaced(FIRST), [], "while it runs")
        self.assert_users_see_no_more(FIRST)
        supervisor = self.process("supervisor")
        self.crash(supervisor)
        wait_for(lambda: [p for p in self.processes_of("supervisor") if p.pid != supervisor.pid], "another supervisor")
        self.crash(self.process("guard"))
        for viewer in self.find("monarch", "run"):
            self.crash(viewer)
        self.assertEqual(self.misplaced(FIRST), [], "after crashes")
        self.assertEqual(self.monarch("stop", "last", timeout=60).status, 0)
        self.agent.signal(signal.SIGTERM)
        self.assert_nothing_left(VIEWER_LINGERS_S + 30)
        self.assertEqual(self.misplaced(STAYS), [], "after its end")
        self.assertEqual(self.cores(), [])
        self.assert_nothing_passed()

    def test_what_fetches_a_workspace_leaves_none_of_it_in_a_core(self):
        host = self.peopled(1)["h1"]
        self.assertEqual(self.monarch("run", self.ssh_job("true", hosts=1, slots=1), timeout=60).status, 0)
        worker, = glob.glob(host.path(CACHE + "/worker/*/monarch-worker"))
        word = uuid.uuid4().hex.encode() * 100
        manifest = b"monarch-tree 1\nf - %d %s secret\0" % (2 * len(word), hashlib.sha256(word * 2).hexdigest().encode())
        command = f"ulimit -c unlimited; exec {worker.removeprefix(host.path(''))} workspace --job {'0' * 32} --host h1 --job-id a-0000"
        fetching = host.start(*users.becoming(people.ALICE), "/usr/bin/env", "HOME=" + people.HOME, "/bin/bash", "-c", command,
                              folder=people.HOME, stdin=-1, stdout=-1)
        fetching.stdin.write(b"tree %d\n%s" % (len(manifest), manifest))
        fetching.stdin.flush()
        self.assertEqual([fetching.stdout.readline(), fetching.stdout.readline()], [b"need 0\n", b"end\n"])
        fetching.stdin.write(word)
        fetching.stdin.flush()
        part = CACHE + "/blobs/put.*/part"
        wait_for(lambda: [path for path in glob.glob(host.path(part)) if os.path.getsize(path) == len(word)], "the first half")
        process, = [p for _, p in self.on_hosts() if p.program == "monarch-worker"]
        self.assertEqual(os.stat(f"/proc/{process.pid}/environ").st_uid, 0)
        self.crash(process)
        fetching.communicate()
        places = canary.search({"word": [word[:canary.PIECE]]}, canary.places(self.w, [self.folder]))
        self.assertEqual({re.sub(r"put\.[^/]*", "put", where) for _, where in places}, {f"h1: file {CACHE}/blobs/put/part"})


class Search(people.PeopleTest):
    """What finds nothing above finds what is planted."""

    WORD = "5ca1ab1e0ddba11c0ffee0" * 2

    def crash_in(self, host, folder):
        """Somebody of alice's who may be dumped and knows the word, where ours would be."""
        script = "ulimit -c unlimited; echo up; read never"
        process = host.start(*users.becoming(people.ALICE), "/bin/bash", "-c", script, folder=folder, stdin=-1, stdout=-1,
                             env={**ENVIRONMENT, "WORD": self.WORD})
        self.assertEqual(process.stdout.readline(), b"up\n")
        crashed, = [p for p in map(leftovers.Process, host.pids()) if b"WORD=" + self.WORD.encode() in p.environment]
        os.kill(crashed.pid, signal.SIGABRT)
        process.communicate()
        return f"{host.name}: file {os.path.join(folder, 'core')}"

    def test_a_canary_is_found_in_each_kind_of_place_and_spelling(self):
        w = self.peopled(1)
        h1 = w["h1"]
        canaries = {"word": canary.spellings(self.WORD.encode())}
        self.assertEqual(canary.search(canaries, canary.places(w, [self.folder])), set())
        wire = canary.Wire(w.login)
        with w.login.socket(socket.SOCK_DGRAM) as link:
            link.sendto(b"before" + self.WORD.encode(), (h1.address, 9))
        wait_for(lambda: wire.passed(self.WORD.encode()), "what was sent")
        self.assertEqual(canary.search(canaries, wire.close()), {("word", "login: frame")})
        wanted = {self.crash_in(*place) for place in ((h1, "/"), (w.login, "/"), (w.login, self.path("work"))) if CORES}
        raw = self.WORD.encode()
        texts = {"/etc/x": raw, HOME + "/x": raw.hex().encode(), "/home/alice/.bash_history": raw.hex().upper().encode(), "/tmp/x": raw,
                 "/var/log/sshd.log": raw, "/run/x": canary.z85(raw), "/dev/shm/x": raw[:canary.PIECE], "/var/tmp/x": raw,
                 "/tmp/y": canary.base64.b64encode(raw), "/tmp/z": canary.base64.b64encode(b"1" + raw + b"2"),
                 "/home/alice/w": canary.base64.b64encode(b"12" + raw + b"3")}
        for path, text in texts.items():
            with open(h1.path(path), "ab") as file:
                file.write(b"before\n" + text + b"\nafter")
            wanted.add(f"h1: file {path}")
        h1.write(f"/tmp/{self.WORD}", "")
        self.write("x", self.WORD)
        quiet = h1.start("sleep", "1000", env={**ENVIRONMENT, "WORD": self.WORD})
        loud = h1.start("python3", "-c", "import sys; sys.stdin.read()", self.WORD, stdin=-1)
        wait_for(lambda: {p.program[:6] for p in map(leftovers.Process, h1.pids())} >= {"sleep", "python"}, "two processes")
        wanted |= {f"h1: name /tmp/{self.WORD}", f"login: file {self.path('work', 'x')}", "h1: environ of sleep", "h1: ps"}
        found = {re.sub(CORE, "/core", where) for _, where in canary.search(canaries, canary.places(w, [self.folder]))}
        self.assertEqual({where for where in found if "cmdline of python" not in where}, wanted)
        self.assertEqual(len(found - wanted), 1, found)
        seen = {where for _, where in canary.seen_by(h1, people.BOB, canaries)}
        self.assertEqual({re.sub(r"python\S*", "python", where) for where in seen},
                         {"h1: cmdline of python", "h1: ps", f"h1: name /tmp/{self.WORD}",
                          *(f"h1: file {path}" for path in texts if path.startswith(("/tmp", "/var/tmp", "/run", "/dev")))})
        loud.communicate()
        self.kill(next(p for _, p in self.on_hosts() if p.program == "sleep"))
        quiet.wait()


if __name__ == "__main__":
    cluster.main()
