"""What holds others off, on hosts: keys before logins, one constant command, modes, ports, and other users of a host."""

import glob
import json
import os
import re
import signal
import socket
import stat
import subprocess

import canary
import cluster
import faults
import harness
import jobs
import leftovers
import people
import users
from host import read, wait_for

UP = "cd /tmp; mark up; " + jobs.FOREVER
SOCKETS = f"/tmp/monarch-{people.ALICE}"
CACHE, STATE = people.HOME + "/.cache/monarch", people.HOME + "/.local/state/monarch"
# A greeting of ZMTP 3.0 (RFC 23) that asks for no keys.
PLAIN = (b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0" + b"NULL").ljust(64, b"\0")
SSH = 22
# Of /proc/net/tcp6, what says the same as an address of IPv4: any, and loopback.
ALIKE = {"0" * 32: "0.0.0.0", "0" * 24 + "01000000": "127.0.0.1"}
SHELLS = {"sh", "bash", "dash", "zsh", "csh", "fish"}


class ControlsTest(people.PeopleTest):
    def running(self, hosts=2, **keys):
        """A job under way, and its ranks' pids."""
        run = self.start("run", self.ssh_job(UP, hosts=hosts, slots=1, **keys))
        self.wait_for_marks("up", hosts, timeout=60)
        return run

    def stop(self, run, job="last"):
        self.assertEqual(self.monarch("stop", job, timeout=60).status, 0)
        run.wait(60)
        self.assert_nothing_left()

    def ranks(self, host):
        return [p for p in map(leftovers.Process, host.pids()) if any(line.startswith(b"MONARCH_RANK=") for line in p.environment)]

    def as_bob(self, host, *command, **options):
        return host.run(*users.becoming(people.BOB), *command, check=False, **options)


class Keys(ControlsTest):
    def fingerprint(self, text):
        done = subprocess.run(["/usr/bin/ssh-keygen", "-l", "-f", "-"], input=text, text=True, capture_output=True, check=True)
        return done.stdout.split()[1]

    def test_nobody_logs_in_to_a_host_whose_key_is_not_trusted(self):
        w = self.peopled(4, options={"h2": faults.unknown_key()})
        known = w.public_key("h1")
        faults.change_key(w["h1"])
        path = people.HOME + "/.ssh/known_hosts"
        w.login.write(path, f"@revoked * {w.public_key('h3')}\n" + read(w.login.path(path)), 0o600)
        done = self.monarch("run", self.ssh_job("true", hosts=3, slots=1, pool=["h1", "h2", "h3"]), timeout=60)
        verdict = self.assert_result(done, 3, "failed")
        self.assertEqual({f["host"]: f["kind"] for f in verdict["failed_hosts"]},
                         {"h1": "host key changed", "h2": "host key unknown", "h3": "host key revoked"})
        changed = read(w["h1"].path("/etc/ssh/ssh_host_ed25519_key.pub"))
        for key in (known, changed, w.public_key("h2"), w.public_key("h3")):
            self.assertIn(self.fingerprint(key), done.err, done)
        self.assertEqual(self.monarch("run", self.ssh_job("true", hosts=1, slots=1, pool=["h4"]), timeout=60).status, 0)
        # sshd names the user of whoever began to log in, also of one that went away again.
        for host in w.hosts:
            log = read(host.path("/var/log/sshd.log"))
            self.assertIn(f"Connection from {w.login.address}", log, host.name)
            self.assertEqual("alice" in log, host.name == "h4", log)
        self.assert_nothing_left()


class Commands(ControlsTest):
    """What sshd executes for us, as strace shows it: one command, whatever the job, in the environment that a login has."""

    HOSTILE = ["$(touch pwned)", "a;touch pwned", "`touch pwned`", "a\ntouch pwned", "-oProxyCommand=touch pwned"]
    EXECUTED = re.compile(r'^\d+ +execve\("((?:[^"\\]|\\.)*)", \[(.*?)\], \[(.*?)\]\) = 0$', re.M)

    def traced(self, host):
        tracing = host.start("strace", "-f", "-qq", "-v", "-s", "100000", "-e", "trace=execve", "-e", "signal=none", "-o", "/var/log/trace",
                             "-p", read(host.path("/run/sshd.pid")).strip())
        wait_for(lambda: "TracerPid:\t0" not in read(f"/proc/{self.sshd(host)}/status"), "strace")
        return tracing

    def sshd(self, host):
        return next(p.pid for p in map(leftovers.Process, host.pids()) if b" ".join(p.arguments).endswith(b" startups"))

    def executed(self, host):
        """(file, arguments, {name of a variable: its value}) of everything that was executed there."""
        unescape = lambda text: [json.loads(f'"{word}"'.replace(r"\'", "'")) for word in re.findall(r'"((?:[^"\\]|\\.)*)"', text)]
        trace = re.sub(r"^(\d+) +(execve\(.*) <unfinished \.\.\.>$(?s:(.*?))^\1 +<\.\.\. execve resumed>\) *= 0$", r"\1 \2) = 0\3",
                       read(host.path("/var/log/trace")), flags=re.M)
        return [(os.path.basename(path), unescape(words), dict(v.split("=", 1) for v in unescape(variables)))
                for path, words, variables in self.EXECUTED.findall(trace)]

    def test_a_host_executes_one_constant_command_in_a_logins_environment(self):
        if not os.path.exists("/usr/bin/strace"):
            self.skipTest("strace is not installed")
        w = self.peopled(1, options={"h1": cluster.world.Options(sshd_config="AcceptEnv *")})
        tracing = self.traced(w["h1"])
        os.mkdir(self.path("work", "tree"))
        for path in (self.path("work", "tree"), self.write("tree/x", "x")):
            os.chown(path, people.ALICE, people.ALICE)
        shell = {"TOKEN": "5ca1ab1e", "LD_LIBRARY_PATH": "/5ca1ab1e", "LC_5CA1AB1E": "C", "BASH_ENV": "/5ca1ab1e"}
        for name, word, keys in (("one", "1", {}), ("two", self.HOSTILE[0], {"workspace": {"path": self.path("work", "tree")}})):
            spec = self.ssh_job("", hosts=1, slots=1, name=name, mesh={
                "program": ["/usr/bin/printf", "%s", *self.HOSTILE], "env": {"WORD": word}, "env_pass": ["TOKEN"]}, **keys)
            done = self.monarch("run", "--no-prefix", spec, env=shell, timeout=60)
            self.assertEqual((done.status, done.out.rstrip("\n")), (0, "".join(self.HOSTILE)), done)
        self.end_tracing(tracing)
        self.assert_nothing_left()
        ran = self.executed(w["h1"])
        logins = [(words, variables) for name, words, variables in ran if name == "bash"]
        self.assertGreater(len(logins), 2, ran)
        command, = {words[2] for words, _ in logins if words[:2] == ["bash", "-c"] and len(words) == 3}
        for words, variables in logins:
            self.assertEqual(words, ["bash", "-c", command])
            self.assertLessEqual(set(variables), {"USER", "LOGNAME", "HOME", "PATH", "SHELL", "LANG", "MAIL", "TZ", "SSH_CLIENT",
                                                  "SSH_CONNECTION", "_"})
        script = re.fullmatch(r"exec /bin/sh -c '([^']*)'", command)[1]
        self.assertEqual([words for name, words, _ in ran if name in SHELLS - {"bash"}], [["/bin/sh", "-c", script]] * len(logins))
        self.assertEqual([words for name, words, _ in ran if name == "printf"], [["/usr/bin/printf", "%s", *self.HOSTILE]] * 2)
        for name, words, variables in ran:
            if name != "printf":
                self.assertNotIn("5ca1ab1e", json.dumps([words, variables]), name)
                self.assertFalse(any(word in self.HOSTILE for word in words), words)
        self.assertEqual([path for path, _ in canary.files(w, w["h1"]) if "pwned" in path], [])

    def end_tracing(self, tracing):
        self.kill(next(p for _, p in self.on_hosts() if p.program == "strace"), signal.SIGINT)
        tracing.wait(60)


class Files(ControlsTest):
    """Modes and owners of what lies on a host, and what others put there before."""

    def open_to_others(self, host):
        """All of the job's on a host that others could look into, and of whoever it should not be. A workspace is the ranks' to be open."""
        found = []
        for top in (SOCKETS, CACHE, STATE):
            self.assertTrue(os.path.isdir(host.path(top)), top)
            for place, folders, names in os.walk(host.path(top)):
                folders[:] = [name for name in folders if name != "workspace" or stat.S_IMODE(os.lstat(f"{place}/{name}").st_mode) != 0o700]
                for path in (place, *(f"{place}/{name}" for name in names)):
                    status = os.lstat(path)
                    if stat.S_IMODE(status.st_mode) & 0o077 or (status.st_uid, status.st_gid) != (people.ALICE, people.ALICE):
                        found.append(f"{host.name}: {path.removeprefix(host.path(''))} {stat.filemode(status.st_mode)} {status.st_uid}")
        return found

    def test_all_is_its_owners_alone_whatever_the_umask(self):
        os.mkdir(self.path("work", "tree"))
        self.write("tree/x", "x")
        w = self.peopled(2)
        for host, mask in zip(w.hosts, ("000", "077")):
            host.write(f"{people.HOME}/.bashrc", f"umask {mask}\n")
        run = self.start("run", self.ssh_job("umask > /tmp/umask.$MONARCH_RANK; echo word; " + UP, slots=1,
                                             mesh={"workdir": ".", "setup": "export A=1"}, workspace={"path": self.path("work", "tree")}))
        self.wait_for_marks("up", 2, timeout=60)
        self.assertEqual([read(host.path(f"/tmp/umask.{rank}")) for rank, host in enumerate(w.hosts)], ["0000\n", "0077\n"])
        self.assertEqual([path for host in w.hosts for path in self.open_to_others(host)], [])
        self.stop(run)
        self.assertEqual([path for host in w.hosts for path in self.open_to_others(host)], [])
        os.chmod(w["h1"].path(f"{CACHE}/blobs"), 0o711)
        self.assertEqual(len(self.open_to_others(w["h1"])), 1, "what would be found")

    def test_what_a_first_host_keeps_for_a_job_is_its_owners_alone(self):
        w = self.peopled(2, rc="umask 000\n")
        run = self.running(supervisor={"on": "first"})
        self.assertTrue(glob.glob(w["h1"].path(STATE + "/jobs/*/key")))
        self.assertEqual([path for host in w.hosts for path in self.open_to_others(host)], [])
        self.stop(run)
        self.assertEqual([path for host in w.hosts for path in self.open_to_others(host)], [])
        self.assertEqual(glob.glob(w["h1"].path(STATE + "/jobs/*/key")), [])

    # What is in the way, by the folder that is ours, and who made it.
    def planted(self, host, path, what):
        there = host.path(path)
        os.makedirs(os.path.dirname(there), exist_ok=True)
        for folder in (f"{people.HOME}/.cache", f"{people.HOME}/.local", f"{people.HOME}/.local/state", os.path.dirname(path)):
            if os.path.isdir(host.path(folder)) and folder.startswith(people.HOME):
                os.chown(host.path(folder), people.ALICE, people.ALICE)
        if what == "link":
            os.symlink("/home/bob", there)
            return
        os.mkdir(there)
        os.chmod(there, 0o777 if what == "open" else 0o755)
        os.chown(there, *((people.BOB,) * 2 if what == "another's" else (people.ALICE,) * 2))

    def test_what_others_put_in_our_places_is_refused_by_name(self):
        """A link, a folder of somebody else's, one that all may write to: where sockets, workers, contents and state belong."""
        places = (SOCKETS, CACHE, CACHE + "/worker", CACHE + "/blobs", STATE)
        ways = [(path, what) for path in places for what in ("link", "another's", "open")]
        os.mkdir(self.path("work", "tree"))
        self.write("tree/x", "x")
        w = self.peopled(len(ways))
        for host, (path, what) in zip(w.hosts, ways):
            self.planted(host, path, what)
        spec = self.ssh_job("true", hosts=len(ways), slots=1, workspace={"path": self.path("work", "tree")})
        verdict = self.assert_result(self.monarch("run", spec, timeout=120), 69, "failed")
        failed = {f["host"]: f["message"] for f in verdict["failed_hosts"]}
        # Where somebody else has the place of sockets, there is a second one.
        elsewhere = {host.name for host, (path, what) in zip(w.hosts, ways) if path == SOCKETS and what != "open"}
        self.assertEqual(failed.keys(), {host.name for host in w.hosts} - elsewhere, verdict)
        for host, (path, what) in zip(w.hosts, ways):
            if host.name not in elsewhere:
                self.assertIn(path, failed[host.name], (path, what))
            self.assertEqual(os.listdir(host.path("/home/bob")), [".bashrc"], (path, what))
            if what == "another's":
                self.assertEqual(os.listdir(host.path(path)), [])
        self.assertEqual(self.marks("up"), [])


class Others(ControlsTest):
    """Another user of a host."""

    SPEAK = ("import socket, sys\nfor path, kind in zip(sys.argv[1:], (2, 5, 5)):\n  try:\n    socket.socket(1, kind).connect(path)\n"
             "    print('connected')\n  except PermissionError:\n    print('refused')\n")

    def test_no_socket_of_a_host_is_another_users_to_open(self):
        w = self.peopled(1)
        run = self.running(1)
        rank = self.ranks(w["h1"])[0]
        variables = dict(line.decode().split("=", 1) for line in rank.environment if b"=" in line)
        doors = [variables[name] for name in ("NOTIFY_SOCKET", "MONARCH_SOCKET", "MONARCH_EVENTS")]
        for asked, answer in ((people.BOB, "refused"), (people.ALICE, "connected")):
            done = w["h1"].run(*users.becoming(asked), "python3", "-c", self.SPEAK, *doors, check=False)
            self.assertEqual(done.stdout.split(), [answer] * 3, done)
        names = [line.split()[7] for line in read(f"/proc/{w['h1'].pid}/net/unix").splitlines()[1:] if len(line.split()) > 7]
        self.assertLessEqual(set(doors), set(names))
        self.assertEqual([name for name in names if name.startswith("@")], [], "these have no modes")
        self.stop(run)


class Words(ControlsTest):
    """What a host says to a launch, to who reads it on a terminal or as JSON."""

    ESCAPES = "\\033[2J\\033]0;title\\007\\x9b31m\\rforged: everything is well\\n"
    CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")

    def test_no_control_character_of_a_host_reaches_a_terminal_or_json(self):
        w = self.peopled(3, options={"h3": cluster.world.Options(sshd_config="Banner /etc/banner\nAllowUsers root")})
        w["h1"].write(people.HOME + "/.bashrc", f"printf '{self.ESCAPES}'; printf '{self.ESCAPES}' >&2; exit 5\n")
        worker = f"#!/bin/sh\nprintf 'failed other {self.ESCAPES}'\nprintf '{self.ESCAPES}' >&2\nexit 1\n"
        w["h2"].write("/usr/local/bin/monarch-worker", worker, 0o755)
        w["h3"].write("/etc/banner", self.ESCAPES.encode().decode("unicode_escape"))
        said = []
        for pool, ssh in ((["h1", "h3"], {}), (["h2"], {"worker": "/usr/local/bin/monarch-worker"})):
            spec = self.ssh_job("true", hosts=len(pool), slots=1, pool=pool, ssh=ssh)
            for words in (("run", spec), ("run", "--json", spec), ("doctor", spec), ("doctor", "--json", spec)):
                done = self.monarch(*words, timeout=60)
                self.assertNotEqual(done.status, 0, done)
                for line in done.out.splitlines() if "--json" in words else ():
                    json.loads(line)
                said.append(done)
            said += [self.monarch(*words, "last") for words in (("events",), ("events", "--json"), ("status", "--json"))]
        shown = self.start("run", spec, terminal=True)
        shown.wait(60)
        self.assertNotRegex(shown.out, r"\x1b\[2J|\x1b\]0;|\x9b|\x07")
        for done in said:
            self.assertIsNone(self.CONTROLS.search(done.out + done.err), done)
        self.assertIn("everything is well", json.dumps([self.verdict(job) for job in self.jobs()]), "it is told, as text")
        self.assert_nothing_left()


class Neighbours(ControlsTest):
    def test_what_ends_a_job_on_a_host_leaves_another_of_the_same_user(self):
        """Keeper and daemon are killed at once, so that a visit has to find the ranks of theirs, by their marks."""
        w = self.peopled(2)
        runs = {name: self.start("run", self.ssh_job(f"cd /tmp; mark {name}; {jobs.FOREVER}", slots=1, name=name))
                for name in ("one", "two")}
        for name in runs:
            self.wait_for_marks(name, 2, timeout=60)
        ours = {name: self.of(name) for name in runs}
        self.assertEqual([len(pids) for pids in ours.values()], [2, 2])
        rank = next(p for p in self.ranks(w["h1"]) if p.pid in ours["one"])
        workers = [p for _, p in self.on_hosts() if p.pid == rank.parent or p.parent == rank.parent and p.program == "monarch-worker"]
        self.kill_all(workers)
        self.assertNotEqual(runs["one"].wait(60), 0)
        self.assertEqual((self.of("one"), self.of("two")), (set(), ours["two"]))
        self.assertEqual({host["daemon_starts"] for host in self.status("two")["hosts"]}, {1})
        self.stop(runs["two"], "two")

    def of(self, name):
        """Pids of that job's ranks: what a rank has forked looks like it until it has executed its program."""
        mark = f"MONARCH_JOB_ID={name}-".encode()
        found = {p.pid: p.parent for host in self.w.hosts for p in self.ranks(host) if p.program == "bash" and p.state != "Z"
                 if any(line.startswith(mark) for line in p.environment)}
        return {pid for pid, parent in found.items() if parent not in found}


class Logins(ControlsTest):
    """What a host's login brings with it."""

    LIBRARY = "libBrokenLocale.so.1"  # of the C library, and used by nobody

    def variables(self, process):
        return {line.decode() for line in process.environment if line.startswith(b"LD_")}

    def test_what_steers_the_loader_reaches_ranks_alone_and_only_as_the_spec_says(self):
        w = self.peopled(1, rc=f"export LD_PRELOAD={self.LIBRARY} LD_LIBRARY_PATH=/of/the/host\n")
        spec = self.ssh_job(UP, hosts=1, slots=1, mesh={"env": {"LD_LIBRARY_PATH": "/of/the/spec"}})
        run = self.start("run", spec, env={"LD_LIBRARY_PATH": "/of/the/shell", "LD_BIND_NOT": "1"})
        self.wait_for_marks("up", 1, timeout=60)
        self.assertEqual(self.variables(self.ranks(w["h1"])[0]), {"LD_LIBRARY_PATH=/of/the/spec"})
        self.assertEqual(self.variables(self.process("daemon")), set())
        for role in ("keeper", "daemon"):
            self.assertNotIn(self.LIBRARY, read(f"/proc/{self.process(role).pid}/maps"), role)
        self.stop(run)

    def test_a_rank_has_the_logins_limits_and_those_who_know_keys_dump_nothing(self):
        w = self.peopled(1, rc="ulimit -Sn 300; ulimit -Ss 7000; ulimit -Su 20000; ulimit -c unlimited\n")
        run = self.start("run", self.ssh_job("cat /proc/self/limits > /tmp/limits; " + UP, hosts=1, slots=1))
        self.wait_for_marks("up", 1, timeout=60)
        login = self.as_alice("ssh", "h1", "cat /proc/self/limits").finished()
        self.assertRegex(login.out, "Max open files +300 ")
        self.assertEqual(read(w["h1"].path("/tmp/limits")), login.out)
        os.unlink(w["h1"].path("/tmp/limits"))
        daemon = self.process("daemon")
        self.assertRegex(read(f"/proc/{daemon.pid}/limits"), r"Max core file size +0 +0 ")
        self.assertEqual(int(read(f"/proc/{daemon.pid}/coredump_filter"), 16), 0)
        for role in ("keeper", "daemon"):  # undumpable: it is root's to look into
            self.assertEqual(os.stat(f"/proc/{self.process(role).pid}/environ").st_uid, 0, role)
        self.stop(run)


class Ports(ControlsTest):
    def listening(self, host):
        """{(address, port)} of what takes connections or datagrams there."""
        found = set()
        for kind in ("tcp", "tcp6", "udp", "udp6"):
            lines = read(f"/proc/{host.pid}/net/{kind}").splitlines()[1:] if os.path.exists(f"/proc/{host.pid}/net/{kind}") else []
            for _, local, _, state, *_ in map(str.split, lines):
                if state == ("0A" if kind.startswith("tcp") else "07"):
                    address, port = local.split(":")
                    found.add((ALIKE.get(address) or socket.inet_ntoa(bytes.fromhex(address)[::-1][:4]), int(port, 16)))
        return found

    def answer(self, host, address, port, words):
        """All that whoever listens says to somebody of that host who has no key."""
        with host.socket() as link:
            link.connect((address, port))
            link.sendall(words)
            said = b""
            try:
                while piece := link.recv(4096):
                    said += piece
            except ConnectionResetError:
                pass
        return said

    def assert_ports(self, doors, elsewhere, **keys):
        """Where the supervisor and its hosts listen, and that nobody without a key hears or sends a word there."""
        # An sshd that would let others in to a port, if it were asked to.
        open_doors = cluster.world.Options(sshd_config="GatewayPorts clientspecified")
        self.peopled(2, options={"h1": open_doors, "h2": open_doors})
        run = self.running(**keys)
        bound = json.loads(self.log("ports.json"))
        ports = {bound["control"], bound["bulk"]}
        self.assertEqual(self.listening(self.w.login), {(doors, port) for port in ports})
        before = self.status()["counters"]
        for host in self.w.hosts:
            listening = {(address, port) for address, port in self.listening(host) if port != SSH}
            self.assertEqual({address for address, _ in listening}, {"127.0.0.1"} if elsewhere else set())
            self.assertEqual(len(listening), 2 if elsewhere else 0, listening)
            for address, port in listening or {(self.w.login.address, port) for port in ports}:
                said = self.answer(host, address, port, PLAIN)
                # No more than a greeting, or the beginning of one: a signature, a version, a mechanism.
                self.assertTrue(len(said) <= len(PLAIN) and PLAIN.startswith(said[:11]), said)
                self.assertLessEqual(set(said[12:]), set(b"CURVE\0\1"), said)
                self.answer(host, address, port, b"GET / HTTP/1.0\r\n\r\n" + b"x" * 200)
        wanted = {f"{port}.{name}": 2 for port in ("control", "bulk") for name in ("junk", "protocol_errors")}
        added = lambda: {name: count - before[name] for name, count in self.status()["counters"].items() if name in wanted}
        harness.wait_for(lambda: added() == wanted, lambda: f"{wanted}, not {added()}")
        self.stop(run)

    def test_nothing_listens_but_the_two_ports_of_the_supervisor(self):
        self.assert_ports("0.0.0.0", elsewhere=False)  # by which address a host reaches them is the host's

    def test_with_a_tunnel_nothing_listens_but_on_loopback(self):
        self.assert_ports("127.0.0.1", elsewhere=True, control={"via": "ssh"})

    def test_with_the_supervisor_on_the_first_host_nothing_listens_here(self):
        w = self.peopled(2)
        run = self.running(supervisor={"on": "first"})
        bound = json.loads(read(*glob.glob(w["h1"].path(STATE + "/jobs/*/ports.json"))))
        wanted = [set(), {("0.0.0.0", bound["control"]), ("0.0.0.0", bound["bulk"])}, set()]
        self.assertEqual([{door for door in self.listening(host) if door[1] != SSH} for host in (w.login, *w.hosts)], wanted)
        self.stop(run)


if __name__ == "__main__":
    cluster.main()
