"""A workspace is on every host before its ranks start there: all of it, only what a host lacks is sent, and nothing is left of it."""

import glob
import hashlib
import os
import re
import signal

import cluster
import faults
import harness
import jobs
from host import HOME, Options, read

BLOBS = HOME + "/.cache/monarch/blobs"
HOSTS = HOME + "/.local/state/monarch/hosts"
WORKER_BYTES = os.path.getsize(harness.WORKER)
PROGRAM = "import os, pkg, pkg.part; print(os.getcwd(), pkg.VALUE, pkg.part.VALUE, sorted(os.listdir('.')))"
SENT = re.compile(r"(h\d): workspace: (\S+) of (\S+) sent in", re.M)


class Workspace(cluster.ClusterTest):
    def package(self):
        os.makedirs(self.path("work", "tree", "pkg"))
        self.write("tree/pkg/__init__.py", "VALUE = 1\n")
        self.write("tree/pkg/part.py", "VALUE = 10\n")
        self.write("tree/pkg/native.so", "elf")
        self.write("tree/notes.ckpt", "x" * 1000)
        self.write("tree/.gitignore", "*.so\n*.ckpt\n__pycache__/\n")
        self.write("tree/.monarchignore", "!native.so\n")

    def tree_job(self, script, hosts=4, slots=1, workdir=".", **keys):
        workspace = {"path": self.path("work", "tree"), **keys.pop("workspace", {})}
        return self.ssh_job(script, hosts=hosts, slots=slots, mesh={"workdir": workdir}, workspace=workspace, **keys)

    def sent(self):
        """{host: (bytes that came, bytes of all)} of the last job."""
        log = max(glob.glob(self.path("state", "jobs", "*", "supervisor.log")), key=os.path.getmtime)
        with open(log, encoding="utf-8") as file:
            return {host: (came, whole) for host, came, whole in SENT.findall(file.read())}

    def blobs(self, host):
        return set(os.listdir(host.path(BLOBS)))

    def test_a_package_is_imported_from_the_tree_and_only_what_changed_is_sent(self):
        w = self.world(4)
        self.package()
        spec = self.tree_job(f'python3 -B -c "{PROGRAM}"')
        done = self.monarch("run", spec, timeout=60)
        self.assert_result(done, 0, "succeeded")
        for rank in range(4):
            line, = re.findall(rf"^\[m/{rank}@h{rank + 1}\] (.*)$", done.out, re.M)
            self.assertRegex(line, rf"^{HOSTS}/demo-[0-9a-f]{{4}}/h{rank + 1}/workspace 1 10 "
                                   r"\['.gitignore', '.monarchignore', 'pkg'\]$")
        size = sum(os.path.getsize(self.path("work/tree", name)) for name in
                   ("pkg/__init__.py", "pkg/part.py", "pkg/native.so", ".gitignore", ".monarchignore"))
        self.assertEqual(self.sent(), {f"h{n}": (f"{size}B", f"{size}B") for n in range(1, 5)})
        self.assertEqual(self.blobs(w["h1"]), {hashlib.sha256(text).hexdigest() for text in (
            b"VALUE = 1\n", b"VALUE = 10\n", b"elf", b"*.so\n*.ckpt\n__pycache__/\n", b"!native.so\n")})
        self.assert_nothing_left()

        self.write("tree/pkg/__init__.py", "VALUE = 2\n")
        before = self.blobs(w["h2"])
        done = self.monarch("run", spec, timeout=60)
        self.assertEqual(re.findall(r"workspace (\d+) \d+ \[", done.out), ["2"] * 4, done)
        self.assertEqual(self.sent(), {f"h{n}": ("10B", f"{size}B") for n in range(1, 5)})
        self.assertEqual(self.blobs(w["h2"]) - before, {hashlib.sha256(b"VALUE = 2\n").hexdigest()})

        done = self.monarch("run", spec, timeout=60)
        self.assertEqual(done.status, 0, done)
        self.assertEqual(self.sent(), {f"h{n}": ("0B", f"{size}B") for n in range(1, 5)})
        self.assert_nothing_left()

    def test_what_a_disk_damaged_is_sent_again(self):
        w = self.world(2)
        self.package()
        spec = self.tree_job("cat pkg/part.py", hosts=2)
        self.assertEqual(self.monarch("run", spec, timeout=60).status, 0)
        kept = hashlib.sha256(b"VALUE = 10\n").hexdigest()
        w["h1"].write(f"{BLOBS}/{kept}", "VALUE = 99\n", mode=0o600)
        done = self.monarch("run", spec, "--no-prefix", timeout=60)
        self.assertEqual((done.status, done.out), (0, "VALUE = 10\n" * 2), done)
        self.assertEqual({host: came for host, (came, _) in self.sent().items()}, {"h1": "11B", "h2": "0B"})
        self.assertEqual(read(w["h1"].path(f"{BLOBS}/{kept}")), "VALUE = 10\n")
        self.assert_nothing_left()

    def test_what_is_damaged_on_its_way_is_not_taken(self):
        """By a network that TCP's checksums do not notice: the host whose copy it was is named, and another takes its place."""
        w = self.world(3)
        self.package()
        content = os.urandom(4 << 20)
        with open(self.path("work", "tree", "data"), "wb") as file:
            file.write(content)
        wanted = hashlib.sha256(content).hexdigest()
        w.link("login", "h1", corrupt=0.02)
        spec = self.tree_job(f"sha256sum data > /tmp/sum.$MONARCH_RANK; cd /tmp; mark up; {jobs.FOREVER}", hosts=2, ssh={"spares": 1})
        run = self.start("run", spec)
        self.wait_for_marks("up", 2, timeout=60)
        w.heal()
        hosts = self.hosts_of_marks("up")
        self.assertEqual(set(hosts.values()), {"h2", "h3"})
        for rank, host in hosts.items():
            self.assertEqual(w[host].read(f"/tmp/sum.{rank}").split()[0], wanted)
            os.unlink(w[host].path(f"/tmp/sum.{rank}"))
        for blob in self.blobs(w["h1"]) if os.path.isdir(w["h1"].path(BLOBS)) else ():
            if not blob.startswith("put."):
                with open(w["h1"].path(f"{BLOBS}/{blob}"), "rb") as file:
                    self.assertEqual(hashlib.sha256(file.read()).hexdigest(), blob)
        run.wait_for_err(r"h1\b.*(closed|timeout|refused|not let in|unreachable)")
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(60), 130)
        self.assert_nothing_left(30)

    def test_a_running_job_is_not_changed_and_changes_nothing(self):
        """Neither by what is edited meanwhile, nor what others start with by what its ranks write."""
        w = self.world(2)
        self.package()
        spec = self.tree_job("echo spoilt > pkg/part.py; cd /tmp; mark up; " + jobs.FOREVER, hosts=2)
        running = self.start("run", spec)
        self.wait_for_marks("up", 2)
        self.write("tree/pkg/__init__.py", "VALUE = 3\n")
        trees = [glob.glob(host.path(f"{HOSTS}/*/{host.name}/workspace"))[0] for host in w.hosts]
        for tree in trees:
            self.assertEqual(read(f"{tree}/pkg/__init__.py"), "VALUE = 1\n")
        running.signal(signal.SIGINT)
        self.assertEqual(running.wait(), 130)
        self.assert_nothing_left()
        done = self.monarch("run", self.tree_job("cat pkg/__init__.py pkg/part.py", hosts=2), "--no-prefix", timeout=60)
        self.assertEqual(sorted(done.out.splitlines()), ["VALUE = 10"] * 2 + ["VALUE = 3"] * 2, done)
        self.assert_nothing_left()

    def test_workdir_and_setup_are_within_the_tree(self):
        self.world(1)
        self.package()
        job = self.ssh_job("pwd; echo $FROM_SETUP", hosts=1, slots=1, workspace={"path": self.path("work", "tree")},
                           mesh={"workdir": "pkg", "setup": "export FROM_SETUP=$(pwd)"})
        done = self.monarch("run", job, "--no-prefix", timeout=60)
        self.assertRegex(done.out, rf"^({HOSTS}/demo-....)/h1/workspace/pkg\n\1/h1/workspace/pkg\n$", done)
        missing = self.monarch("run", self.tree_job("true", hosts=1, workdir="pkg/none"), timeout=60)
        self.assertEqual(missing.status, 127, missing)
        self.assertRegex(missing.err, r"on h1 .*: chdir \S+/workspace/pkg/none: No such file")
        self.assert_nothing_left()

    def without_room(self, hosts):
        self.world(hosts, options={"h1": Options(home_bytes=WORKER_BYTES + (4 << 20))})
        self.package()
        self.write("tree/data", os.urandom(3 << 20).hex())

    def test_a_host_without_room_is_named(self):
        self.without_room(1)
        verdict = self.assert_result(self.monarch("run", self.tree_job("true", hosts=1), timeout=60), 69, "failed")
        failed, = verdict["failed_hosts"]
        self.assertEqual((failed["host"], failed["kind"], failed["phase"]), ("h1", "disk full", "workspace"), verdict)
        self.assert_nothing_left()

    def slow(self, hosts, kibibytes):
        """The worker is there, and a workspace takes a while."""
        w = self.world(hosts)
        self.package()
        self.assertEqual(self.monarch("run", self.tree_job("true", hosts=hosts), timeout=60).status, 0)
        self.write("tree/data", os.urandom(kibibytes << 9).hex())
        for host in w.hosts:
            w.link("login", host.name, bandwidth=200 << 10)
        return w

    def test_what_takes_a_while_to_send_is_told_of_now_and_then(self):
        self.slow(2, 3000)
        done = self.monarch("run", self.tree_job("true", hosts=2), timeout=120)
        self.assertEqual(done.status, 0, done)
        told = re.findall(r"workspace\.sending sending the workspace: (h\d) (\S+) of (\S+), (h\d) (\S+) of (\S+)$", done.err, re.M)
        self.assertEqual(len(told), 1, done)
        one, _, of, other, _, of_other = told[0]
        self.assertEqual(({one, other}, of, of_other), ({"h1", "h2"}, "2.9MiB", "2.9MiB"), done)
        self.assert_nothing_left()

    def test_who_is_killed_while_it_is_sent_leaves_nothing(self):
        w = self.slow(2, 20_000)
        run = self.start("run", self.tree_job("true", hosts=2))
        coming = lambda: all(glob.glob(host.path(f"{BLOBS}/put.*")) or glob.glob(host.path(f"{HOSTS}/*/{host.name}/workspace*"))
                             for host in w.hosts)
        harness.wait_for(coming, lambda: f"a workspace on its way: {[host.run('find', BLOBS, HOSTS).stdout for host in w.hosts]}")
        self.kill_all([self.process(role) for role in ("guard", "supervisor")])
        harness.wait_for(lambda: not self.on_hosts_but_login(), lambda: f"the ends of {self.on_hosts_but_login()}")
        self.assertEqual(run.wait(60), 70, run)
        job = max(self.jobs(), key=lambda name: os.path.getmtime(self.path("state", "jobs", name)))
        self.assertEqual([left for left in self.leftovers() if not re.search(rf"{job}(\.sock|/key)$", left)], [])

    def test_what_takes_it_there_is_killed_and_leaves_nothing(self):
        w = self.slow(1, 20_000)
        run = self.start("run", self.tree_job("true", hosts=1))
        takers = lambda: [process for _, process in self.on_hosts() if b"workspace" in process.arguments]
        taker, = harness.wait_for(takers, "what takes the workspace on h1")
        harness.wait_for(lambda: glob.glob(w["h1"].path(f"{BLOBS}/put.*")), "a piece of it on h1")
        os.kill(taker.pid, signal.SIGKILL)
        self.assertEqual(run.wait(60), 69, run)
        self.assertRegex(run.finished(1).err, r"h1: .*\(workspace, after ")
        self.assert_nothing_left()

    def on_hosts_but_login(self):
        return [str(process) for host, process in self.on_hosts() if host.name != "login"]

    def test_a_host_that_executes_nothing_has_nothing_of_it(self):
        faults.no_exec(self.world(1)["h1"])
        self.package()
        verdict = self.assert_result(self.monarch("run", self.tree_job("true", hosts=1), timeout=90), 69, "failed")
        failed, = verdict["failed_hosts"]
        self.assertEqual((failed["host"], failed["kind"]), ("h1", "not executable"), verdict)
        self.assert_nothing_left()

    def test_a_spare_takes_the_place_of_a_host_without_room(self):
        self.without_room(3)
        done = self.monarch("run", self.tree_job("cd /tmp; mark up", hosts=2, ssh={"spares": 1}), timeout=60)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(set(self.hosts_of_marks("up").values()), {"h2", "h3"})
        self.assert_nothing_left()

    def test_a_manifest_that_leads_out_is_refused_on_the_host(self):
        w = self.world(1)
        self.package()
        self.assertEqual(self.monarch("run", self.tree_job("true", hosts=1), timeout=60).status, 0)
        host = w["h1"]
        host.write("/var/tmp/canary", "alive")
        worker, = glob.glob(host.path(HOME + "/.cache/monarch/worker/*/monarch-worker"))
        worker = worker.removeprefix(host.path(""))
        for path in ("../../../../../../../var/tmp/canary", "/var/tmp/canary", "a/../../x", "x\ny", "."):
            manifest = f"monarch-tree 1\nf - 1 {hashlib.sha256(b'x').hexdigest()} {path}\0"
            said = host.run(worker, "workspace", "--job", "0" * 32, "--host", "h1", "--job-id", "demo-0000", check=False,
                            input=f"tree {len(manifest)}\n{manifest}x")
            self.assertIn("failed refused entry 1 of the tree", said.stdout)
        self.assertEqual(host.read("/var/tmp/canary"), "alive")
        os.unlink(host.path("/var/tmp/canary"))
        self.assert_nothing_left()

    def test_what_is_wrong_with_it_is_said_before_anything_starts(self):
        self.world(1)
        self.package()
        large = self.monarch("run", self.tree_job("true", hosts=1, workspace={"max_size": "20B"}), timeout=60)
        self.assertEqual(large.status, 2, large)
        self.assertRegex(large.err, r"E0317.*more than the 20B of workspace.max_size; its largest: ")
        gone = self.monarch("run", self.tree_job("true", hosts=1, workspace={"path": "/none"}), timeout=60)
        self.assertEqual(gone.status, 2, gone)
        self.assertIn("E0224", gone.err)
        self.assertEqual(self.jobs(), [])


if __name__ == "__main__":
    cluster.main()
