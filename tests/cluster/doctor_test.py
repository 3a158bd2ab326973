"""`monarch doctor SPEC` on hosts: nothing to say of well ones, and every planted fault by its name, on its host and no other."""

import json
import os
import re
import shutil
import signal

import cluster
import faults
import harness
import world
from host import HOME, Options


class Doctor(cluster.ClusterTest):
    def doctor(self, spec, *arguments, timeout=90):
        """(result, {host: {check: [what was found]}} of the findings of hosts)."""
        done = self.monarch("doctor", spec, "--json", *arguments, timeout=timeout)
        found = {}
        for line in done.json():
            if line["type"] == "finding" and "host" in line:
                self.assertTrue(line["means"] and line["fix"], line)
                found.setdefault(line["host"], {}).setdefault(line["check"], []).append(line["found"])
        return done, found

    def test_of_well_hosts_it_says_nothing(self):
        self.world(4)
        done, found = self.doctor(self.ssh_job("true", hosts=3, slots=1, ssh={"spares": 1}))
        self.assertEqual(found, {}, done)
        self.assertEqual(done.status, 0, done)
        hosts = {line["host"]: line for line in done.json() if line["type"] == "host"}
        self.assertEqual(list(hosts), ["h1", "h2", "h3", "h4"])
        for name, host in hosts.items():
            self.assertEqual((host["health"], host["failure"], host["copied"]), ("fine", "", True))
            self.assertEqual([(call["to"], call["address"]) for call in host["call_back"]], [("this machine", "10.77.0.1")])
            number = int(name[1])
            self.assertEqual({call["to"] for call in host["neighbours"]}, {f"h{number % 4 + 1}", f"h{(number + 2) % 4 + 1}"})
        table = self.monarch("doctor", self.path("work/demo.yaml"), timeout=90)
        self.assertRegex(table.out, r"(?m)^HOST +REACHED +CLOCK +FILES +LOCKED +DISK FREE +CORES +GPUS +RDMA +GROUP +CALL-BACK +NEIGHBOURS$")
        self.assertRegex(table.out, r"(?m)^h4 +\d+ms .* 1 of 1 +2 of 2$")
        self.assertNotIn("copied", table.out, "the second time it is there")
        self.assert_nothing_left()


    # Host: how the fault is planted, and what is said of it: {check: pattern}. Those with a number below 20 are reached.
    FAULTS = {
        "h2": (lambda w, h, data: faults.block_call_back(w, h),
               {"call-back": r"blocked: it does not reach this machine at 10\.77\.0\.1 port \d+: no answer within 4s"}),
        "h3": (lambda w, h, data: faults.low_limit(h), {"limits": r"open files \(ulimit -n\): 256, at most 256"}),
        "h4": (None, {"disk": r"state and logs: \S+/monarch/hosts: \d+ KiB of \d+ [KM]iB free"}),
        "h5": (lambda w, h, data: faults.other_storage(h, data), {"storage": r"/\S+/data is not shared: what h1 wrote there is not seen"}),
        "h6": (lambda w, h, data: faults.read_only(h, data), {"storage": r"/\S+/data: making a file: Read-only file system"}),
        "h7": (None, {"storage": r"/\S+/data is not there: "}),
        "h8": (None,  # below
               {"earlier jobs": r"1 process of job 0123456789abcdef\w+, which has no worker there any more: \d+ \(sleep 1000\)"}),
        "h9": (None, {"resources": "mesh g needs 1 GPU, and there are 0"}),
        "h10": (lambda w, h, data: w.link("h10", "h11", syn="drop"),
                {"neighbours": r"blocked: it does not reach h11 at 10\.77\.1\.11 port \d+: no answer within 4s"}),
        "h11": (None, {}),
        "h12": (lambda w, h, data: faults.rdma_port_down(h), {"RDMA": "port mlx5_0:1 is DOWN", "limits": "locked memory .ulimit -l.: 8192 KiB"}),
        "h13": (lambda w, h, data: faults.small_shared_memory(h), {"shared memory": "shared memory: /dev/shm: 64 MiB of 64 MiB free"}),
        "h14": (None, {"network": "an MTU of 1400, where 14 of 15 hosts have an MTU of 9000"}),
        "h15": (lambda w, h, data: h.run("rm", "/usr/local/bin/train"), {"mesh n": "program train: not in PATH"}),
        "h16": (lambda w, h, data: faults.change_key(h), {"host key": "host key changed: "}),
        "h17": (lambda w, h, data: faults.refuse_login(h), {"login": "not let in: "}),
        "h18": (lambda w, h, data: faults.dead(h), {"reach": "(timeout|unreachable): "}),
        "h19": (lambda w, h, data: faults.no_exec(h), {"worker": "not executable: "}),
    }

    def test_it_finds_each_of_many_faults_on_its_host_alone(self):
        data = self.path("data")
        os.mkdir(data)
        options = {f"h{number}": Options(shared=(data,)) for number in range(1, 20)}
        options["h4"].home_bytes = faults.little_disk(harness.WORKER).home_bytes
        options["h14"].mtu = 1400
        options["h7"].shared = ()
        w = self.world(19, options=options)
        for host in w.hosts:
            host.write("/usr/local/bin/train", "#!/bin/sh\n", 0o755)
        for name, (plant, _) in self.FAULTS.items():
            if plant:
                plant(w, w[name], data)
        orphan = faults.orphan(w["h8"])
        self.addCleanup(w["h8"].run, "pkill", "-KILL", "sleep", check=False)
        meshes = {name: {"dims": {"host": hosts}, "program": ["train"], "workdir": "/tmp", **more}
                  for name, hosts, more in (("m", 8, {}), ("g", 1, {"resources": {"gpus": 1}}), ("n", 10, {}))}
        ssh = {"hosts": [host.name for host in w.hosts], "connect_timeout": "3s"}
        self.needs_ssh()
        spec = self.spec(json.dumps({"version": 1, "job": "sick", "launch": {"ssh": ssh}, "meshes": meshes,
                                     "storage": [{"path": data, "shared": True}]}))
        done, found = self.doctor(spec)
        expected = {name: said for name, (_, said) in self.FAULTS.items() if said}
        self.assertEqual({host: set(checks) for host, checks in found.items()},
                         {host: set(said) for host, said in expected.items()}, done)
        for host, said in expected.items():
            for check, pattern in said.items():
                self.assertEqual(len(found[host][check]), 1, (host, found[host]))
                self.assertRegex(found[host][check][0], re.compile(rf"\A{pattern}"), host)
        self.assertEqual(done.status, 1, done)
        self.assertEqual(os.listdir(data), [])
        w["h8"].run("pkill", "-KILL", "sleep")
        orphan.wait(harness.DEADLINE_S)
        self.assert_nothing_left()

    def test_a_clock_that_is_off_and_a_worker_that_is_too_old(self):
        w = self.world(4)
        for host in w.hosts:
            shutil.copyfile(harness.WORKER, host.path("/usr/local/bin/worker.real"))
            os.chmod(host.path("/usr/local/bin/worker.real"), 0o755)
            host.write("/usr/local/bin/monarch-worker", '#!/bin/sh\nexec /usr/local/bin/worker.real "$@"\n', 0o755)
        faults.wrong_clock(w["h2"], "/usr/local/bin/worker.real")
        w["h3"].write("/usr/local/bin/monarch-worker", "#!/bin/sh\necho usage: monarch-worker keep >&2\nexit 2\n", 0o755)
        w["h4"].run("rm", "/usr/local/bin/monarch-worker")
        spec = self.ssh_job("true", hosts=4, slots=1, ssh={"worker": "/usr/local/bin/monarch-worker"})
        _, found = self.doctor(spec)
        self.assertEqual({host: list(checks) for host, checks in found.items()},
                         {"h2": ["clock"], "h3": ["worker"], "h4": ["worker"]}, found)
        self.assertRegex(found["h2"]["clock"][0], r"its clock is (1h|59m \S+) ahead of this machine's \(to within \S+\)")
        self.assertIn("usage: monarch-worker keep", found["h3"]["worker"][0])
        self.assertIn("/usr/local/bin/monarch-worker is not there", found["h4"]["worker"][0])

    def test_a_pool_larger_than_the_sessions_at_a_time_is_held_against_one_host(self):
        data = self.path("data")
        os.mkdir(data)
        w = self.world(5, options={f"h{number}": Options(shared=(data,)) for number in range(1, 6)})
        faults.other_storage(w["h5"], data)
        faults.dead(w["h1"])
        spec = self.ssh_job("true", hosts=1, slots=1, ssh={"parallel": 2, "connect_timeout": "2s"},
                            storage=[{"path": data, "shared": True}])
        done, found = self.doctor(spec)
        self.assertEqual({host: list(checks) for host, checks in found.items()}, {"h1": ["reach"], "h5": ["storage"]}, done)
        self.assertIn("what h2 wrote there is not seen", found["h5"]["storage"][0])
        neighbours = {line["host"]: {call["to"] for call in line["neighbours"]}
                      for line in done.json() if line["type"] == "host" and line["host"] != "h1"}
        self.assertEqual(neighbours, {"h2": {"h3", "h4", "h5"}, "h3": {"h2"}, "h4": {"h2"}, "h5": {"h2"}})
        self.assertEqual(os.listdir(data), [])
        self.assert_nothing_left()

    def test_behind_a_jump_host_the_way_is_the_sessions_or_the_address_has_to_be_told(self):
        self.world(3)
        keys = {"hosts": 2, "slots": 1, "pool": ["h2", "h3"], "ssh": {"jump": ["h1"]}}
        done, found = self.doctor(self.ssh_job("true", **keys))
        self.assertEqual(found, {}, done)
        self.assertTrue(all(line["tunnel"] for line in done.json() if line["type"] == "host"), done)
        done, found = self.doctor(self.ssh_job("true", control={"via": "direct"}, **keys))
        self.assertEqual({host: list(checks) for host, checks in found.items()}, {"h2": ["call-back"], "h3": ["call-back"]}, done)
        self.assertIn("say it in control.address", found["h2"]["call-back"][0])
        done, found = self.doctor(self.ssh_job("true", control={"address": "10.77.0.1", "ports": "21000-21001"}, **keys))
        self.assertEqual(found, {}, done)
        calls = [call["port"] for line in done.json() if line["type"] == "host" for call in line["call_back"]]
        self.assertEqual(calls, [21000, 21001] * 2)

    def test_where_the_session_is_the_way_back_its_sshd_has_to_let_it(self):
        w = self.world(4, options={"h2": Options(sshd_config="AllowTcpForwarding local\n")})
        faults.block_call_back(w, w["h3"])
        spec = self.ssh_job("true", hosts=2, slots=1, control={"via": "ssh"}, pool=["h1", "h2", "h3", "h4"])
        done, found = self.doctor(spec)
        self.assertEqual({host: list(checks) for host, checks in found.items()}, {"h2": ["call-back"]}, done)
        self.assertIn("AllowTcpForwarding", found["h2"]["call-back"][0])
        hosts = {line["host"]: line for line in done.json() if line["type"] == "host"}
        self.assertEqual([name for name, host in hosts.items() if host["tunnel"]], ["h1", "h3", "h4"])
        self.assertEqual({len(host["neighbours"]) for host in hosts.values()}, {2})
        self.assert_nothing_left()

    def test_who_has_not_answered_when_the_time_is_up_is_named(self):
        w = self.world(3)
        faults.hung_sshd(w["h2"])
        spec = self.ssh_job("true", hosts=3, slots=1, ssh={"connect_timeout": "60s"})
        done, found = self.doctor(spec, "--timeout", f"{harness.patience(4):.0f}s")
        self.assertEqual(found, {"h2": {"reach": ["no answer when the time was up"]}}, done)
        self.assertEqual(done.status, 1, done)
        self.assert_nothing_left()

    def test_a_slow_host_and_a_dead_one_keep_no_other_waiting(self):
        """Two may have a session at a time; the dead one would have its for longer than there is time."""
        w = self.world(6)
        faults.hung_sshd(w["h2"])
        w["h4"].write(HOME + "/.bashrc", "sleep 9\n")
        spec = self.ssh_job("true", hosts=6, slots=1, ssh={"parallel": 2, "connect_timeout": "100s"})
        done, found = self.doctor(spec, "--timeout", "40s")
        self.assertEqual(found, {"h2": {"reach": ["no answer when the time was up"]}}, done)
        neighbours = {line["host"]: {call["to"] for call in line["neighbours"]}
                      for line in done.json() if line["type"] == "host" and line["host"] != "h2"}
        self.assertEqual(neighbours, {"h1": {"h3", "h4", "h5", "h6"}, "h3": {"h1"}, "h4": {"h1"}, "h5": {"h1"}, "h6": {"h1"}}, done)
        self.assert_nothing_left()

    def test_new_keys_are_taken_where_that_is_wanted(self):
        w = self.world(2, options={"h2": Options(known=False)})
        spec = self.ssh_job("true", slots=1)
        self.assertEqual({host: list(checks) for host, checks in self.doctor(spec)[1].items()}, {"h2": ["host key"]})
        done, found = self.doctor(spec, "--accept-new")
        self.assertEqual(found, {}, done)
        self.assertIn(w.public_key("h2"), w.login.read(HOME + "/.ssh/known_hosts"))
        self.assertEqual(self.doctor(spec)[1], {})
        self.assert_nothing_left()

    def test_a_doctor_that_is_killed_leaves_nothing(self):
        data = self.path("data")
        os.mkdir(data)
        w = self.world(3, options={f"h{number}": Options(shared=(data,)) for number in (1, 2, 3)})
        w.link("h2", "h3", syn="drop")  # it is waited for while the token lies there
        old = os.path.join(data, ".monarch-doctor-1700000000-of-one-that-was-killed-with-its-host")
        self.write(old, "")
        spec = self.ssh_job("true", hosts=3, slots=1, storage=[{"path": data, "shared": True}])
        running = self.start("doctor", spec)

        def is_of_h1(name):
            try:
                return " of h1 in " in world.read(os.path.join(data, name))
            except FileNotFoundError:
                return False  # it was taken away meanwhile

        harness.wait_for(lambda: any(map(is_of_h1, os.listdir(data))), "a token")
        running.signal(signal.SIGKILL)
        harness.wait_for(lambda: os.listdir(data) == [], lambda: f"no token but {os.listdir(data)}")
        harness.wait_for(lambda: not [p for _, p in self.on_hosts() if b"check" in p.arguments], "the ends of all checks")
        running.wait()
        self.assert_nothing_left()

    def test_what_a_killed_worker_left_is_named_with_commands_that_remove_it(self):
        w = self.world(2)
        spec = self.ssh_job("setsid sleep 1000 &\nmark there\nwait", hosts=1, slots=1, pool=["h1"])
        self.assertEqual(self.monarch("up", spec).status, 0)
        self.wait_for_marks("there", 1)
        look = self.ssh_job("true", hosts=2, slots=1, name="look")
        self.assertEqual(self.doctor(look)[1], {}, "a job that runs is nobody's leftover")
        guard, supervisor, daemon, keeper = (self.process(role) for role in ("guard", "supervisor", "daemon", "keeper"))
        for process, number in ((supervisor, signal.SIGSTOP), (guard, signal.SIGKILL), (supervisor, signal.SIGKILL),
                                (daemon, signal.SIGSTOP), (keeper, signal.SIGKILL), (daemon, signal.SIGKILL)):
            self.kill(process, number)
        harness.wait_for(lambda: not self.processes_of("keeper") and not self.processes_of("daemon"), "the end of the worker")
        for pattern in (r"\d+ process(es)? of job [0-9a-f]{32}, which has no worker there any more: .*sleep 1000",
                        r"1 folder of sockets whose job does not run there"):
            done = self.monarch("doctor", look, "--json", timeout=60)
            finding, = [line for line in done.json() if line["type"] == "finding" and "host" in line]
            self.assertEqual((finding["host"], finding["check"]), ("h1", "earlier jobs"))
            self.assertRegex(finding["found"], pattern)
            w.login.run("sh", "-c", finding["fix"])
        self.assertEqual(self.doctor(look)[1], {})


if __name__ == "__main__":
    cluster.main()
