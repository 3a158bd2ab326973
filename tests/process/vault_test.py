"""Checkpoints in the memory of hosts: a gang goes on from the newest step that it committed, with the very bytes, whatever was killed.

Each rank saves every third step and says what it saved in saved.RANK.GENERATION, and what it went on from in resumed.RANK.GENERATION.
What it saves follows from rank, generation and step, so that whoever reads it can tell whether it is right.
"""

import json
import os
import signal
import sys

import harness
import recovery
import tap

sys.dont_write_bytecode = True
HEAD = """import hashlib, json, os, signal, sys, time
import monarch_rank as monarch
rank, generation = int(os.environ["MONARCH_RANK"]), int(os.environ["MONARCH_GENERATION"])
def tell(name, value):
    path = "%s.%d.%d" % (name, rank, generation)
    with open(path + ".new", "w") as file: json.dump(value, file)
    os.rename(path + ".new", path)
def content(rank, generation, step, size):
    head = json.dumps({"rank": rank, "generation": generation, "step": step, "size": size}).encode() + b"\\n"
    return head + hashlib.sha256(head).digest() * (size // 32)
def resumed():
    # What this generation goes on from, and whether it is what was saved.
    found = monarch.load()
    if found is None: return None
    head = json.loads(found.readline().decode())
    return {**head, "right": content(**head) == bytes(found), "committed": monarch.committed()["step"]}
"""
# `hold`: nothing is saved while it is there.
TRAIN = HEAD + """
found = resumed()
tell("resumed", found)
step = found["step"] if found else 0
while not os.path.exists("go"):
    step += 1
    time.sleep(0.005)
    while os.path.exists("hold") and not os.path.exists("go"):
        tell("held", step)
        time.sleep(0.02)
    if step % 3 == 0:
        if not monarch.save(step, content(rank, generation, step, 100000)): sys.exit(3)
        tell("saved", step)
"""
QUICK = {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "1s", "lease": "1500ms"}
if harness.SANITIZED:  # beats are late where all is slow
    QUICK = {"heartbeat": "500ms", "suspect_after": "2s", "lost_after": "5s", "lease": "7s"}


class VaultTest(recovery.RecoveryTest):
    def vault_job(self, script, hosts=2, slots=2, memory="64MiB", local=None, **supervision):
        """A gang for each host; of virtual hosts, as many as there are gangs unless `local` has more."""
        self.write("rank.py", script)
        env = {"PYTHONPATH": harness.MODULES, "PYTHONDONTWRITEBYTECODE": "1"}
        return self.program_job(["python3", "rank.py"], hosts, slots, mesh={"gang": "host", "stop": {"grace": "2s"}, "env": env},
                                checkpoints={"peer": 1, "memory": memory}, launch={"local": local or {"hosts": hosts}},
                                supervision={"restart": {"max": 8}, **QUICK, **supervision})

    def training(self, **options):
        """`run` of a job whose ranks have all committed a step."""
        run = self.start("run", self.vault_job(TRAIN, **options))
        for rank in range(4):
            self.assertIsNone(self.told("resumed", rank))
            self.wait_for_saved(rank, 1)
        harness.wait_for(lambda: all(self.commits(gang) for gang in (0, 1)), lambda: f"commits of both: {self.supervisor_log()}")
        return run

    # What the ranks say.

    def look(self, name, rank, generation=1):
        path = self.path("work", f"{name}.{rank}.{generation}")
        return json.loads(self.read(path)) if os.path.exists(path) else NotImplemented

    def told(self, name, rank, generation=1):
        harness.wait_for(lambda: self.look(name, rank, generation) is not NotImplemented,
                         lambda: f"{name}.{rank}.{generation}; {self.started()}\n{self.supervisor_log()}")
        return self.look(name, rank, generation)

    def saved(self, rank, generation=1):
        step = self.look("saved", rank, generation)
        return 0 if step is NotImplemented else step

    def wait_for_saved(self, rank, above, generation=1):
        harness.wait_for(lambda: self.saved(rank, generation) > above,
                         lambda: f"a save of rank {rank} above {above}: {self.started()}\n{self.supervisor_log()}")

    def assert_saving(self, ranks, generation=1):
        """Each of them saves on."""
        before = {rank: self.saved(rank, generation) for rank in ranks}
        for rank in ranks:
            self.wait_for_saved(rank, before[rank], generation)

    def wait_for_commit_of_new(self, gang, generation):
        """Until a step is committed that none of its ranks has saved yet: its copies are where they belong now."""
        newest = max(self.saved(rank, generation) for rank in (2 * gang, 2 * gang + 1))
        harness.wait_for(lambda: any(c["gang"] == gang and c["step"] > newest for c in self.status()["meshes"][0]["committed"]),
                         lambda: f"a commit of gang {gang} above step {newest}: {self.status()}\n{self.supervisor_log()}")

    def commits(self, gang):
        """(generation, step) of what the gang has committed."""
        events = [e for e in self.events("checkpoint.committed") if e["details"]["gang"] == str(gang)]
        return [(e["generation"], int(e["details"]["step"])) for e in events]

    def assert_resumed(self, gang, generation=2):
        """Its ranks went on from the newest step that the generations before had committed; the step."""
        found = [self.told("resumed", rank, generation) for rank in (2 * gang, 2 * gang + 1)]
        writer, step = max((commit for commit in self.commits(gang) if commit[0] < generation), key=lambda commit: commit[1])
        self.assertEqual(found, [{"rank": rank, "generation": writer, "step": step, "size": 100000, "right": True, "committed": step}
                                 for rank in (2 * gang, 2 * gang + 1)], self.supervisor_log())
        return step

    def rank_pid(self, rank):
        return next(r["pid"] for r in self.status()["meshes"][0]["ranks"] if r["rank"] == rank)

    def host_of(self, rank):
        return next(r["host"] for r in self.status()["meshes"][0]["ranks"] if r["rank"] == rank)

    # The processes that keep.

    def vaults_of(self, host):
        keepers = {h["name"]: h["keeper_pid"] for h in self.status()["hosts"]}
        return [p for p in self.find("monarch-worker", "vault") if p.parent == keepers[host]]

    def vault(self, host):
        """The one of this host, once there is one."""
        return harness.wait_for(lambda: (found := self.vaults_of(host)) and len(found) == 1 and found[0],
                                lambda: f"one vault of {host} among " + "\n".join(map(str, self.processes())))

    def end(self, run):
        """The ranks are done, and nothing is left: no vault, no socket, no rank."""
        self.end_well(run)
        self.assertEqual(self.find("monarch-worker", "vault"), [])


class Gangs(VaultTest):
    def test_one_whose_rank_is_killed_goes_on_in_place_from_its_newest_step(self):
        run = self.training()
        kept = [self.vault(host).pid for host in ("v1", "v2")]
        for generation in (2, 3):  # of the second time, what the first one went on from is old
            self.signal_by_pid(self.rank_pid(2))
            self.assert_resumed(1, generation)
            self.assert_saving([2, 3], generation)
            harness.wait_for(lambda: any(g == generation for g, _ in self.commits(1)), self.supervisor_log)
        self.assertEqual(self.host_of(2), "v2")
        self.assertIs(self.look("resumed", 0, 2), NotImplemented, "the other gang was started again")
        self.assertEqual([self.vault(host).pid for host in ("v1", "v2")], kept)
        self.end(run)

    def test_one_whose_host_is_lost_goes_on_elsewhere_from_a_copy(self):
        run = self.training(local={"hosts": 3, "spares": 1}, reallocate={"max": 4})
        keeper, vault = self.process("keeper", "v2"), self.vault("v2")
        self.kill(keeper, signal.SIGSTOP)  # else it starts another vault
        self.kill(vault)
        self.kill(keeper)
        self.assertGreater(self.assert_resumed(1), 0)
        self.assert_saving([0, 1])
        self.assert_saving([2, 3], 2)
        self.assertEqual([e["host"] for e in self.events("host.lost")], ["v2"])
        self.assertEqual((self.host_of(2), self.host_of(3)), ("v3", "v3"))
        self.end(run)

    def test_one_that_stands_still_with_its_host_goes_on_elsewhere_from_a_copy(self):
        run = self.training(local={"hosts": 3, "spares": 1}, reallocate={"max": 4})
        ranks = {self.rank_pid(rank) for rank in (2, 3)}
        self.kill_all([self.process("keeper", "v2"), self.process("daemon", "v2"), self.vault("v2"),
                       *(p for p in self.processes() if p.pid in ranks)], signal.SIGSTOP)
        self.assert_resumed(1)
        self.assert_saving([2, 3], 2)
        self.assertEqual(self.host_of(2), "v3")
        self.end(run)

    def test_both_are_lost_one_after_the_other(self):
        run = self.training(local={"hosts": 4, "spares": 2}, reallocate={"max": 4})
        for rank, host, other in ((2, "v2", 0), (0, "v1", 2)):
            keeper, vault = self.process("keeper", host), self.vault(host)
            self.kill(keeper, signal.SIGSTOP)
            self.kill(vault)
            self.kill(keeper)
            self.assert_resumed(rank // 2)
            self.assert_saving([rank, rank + 1], 2)
            self.assert_saving([other, other + 1], 1 if host == "v2" else 2)
            # What was saved before has had its only other copy on the host that is lost.
            self.wait_for_commit_of_new(other // 2, 1 if host == "v2" else 2)
        self.end(run)


class Processes(VaultTest):
    def test_a_killed_vault_comes_back_and_what_it_had_is_had_from_another(self):
        run = self.training()
        self.write("hold", "")
        for rank in range(4):
            self.told("held", rank)
        vault = self.vault("v1")
        self.kill(vault)
        self.wait_gone(vault)
        again = harness.wait_for(lambda: (v := self.vault("v1")).pid != vault.pid and v, "another vault of v1")
        self.signal_by_pid(self.rank_pid(0))
        step = self.assert_resumed(0)  # nothing was saved since: this vault has had it from the other host
        os.unlink(self.path("work", "hold"))
        self.wait_for_saved(0, step, 2)
        self.assert_saving([1], 2)
        self.assert_saving([2, 3])
        self.assertEqual(self.vault("v1").pid, again.pid)
        self.assertEqual(self.events("host.lost"), [])
        self.end(run)

    def test_a_vault_that_is_killed_while_ranks_save_costs_them_a_moment(self):
        run = self.training()
        for _ in range(3):
            vault = self.vault("v2")
            self.kill(vault)
            self.wait_gone(vault)
            self.assert_saving(range(4))
        self.assertEqual(self.events("gang.failed"), [])
        self.end(run)

    def test_a_vault_outlives_its_daemon(self):
        run = self.training()
        vault = self.vault("v1")
        self.kill(self.process("daemon", "v1"))
        harness.wait_for(lambda: self.status()["hosts"][0]["daemon_starts"] == 2, "a second daemon")
        self.assert_saving(range(4))
        self.assertEqual(self.vault("v1").pid, vault.pid)
        self.signal_by_pid(self.rank_pid(0))
        self.assert_resumed(0)
        self.assert_saving([0, 1], 2)
        self.assertEqual(self.vault("v1").pid, vault.pid)
        self.end(run)

    def test_ranks_save_on_when_the_supervisor_is_killed(self):
        run = self.training()
        vaults = [self.vault(host).pid for host in ("v1", "v2")]
        supervisor = self.process("supervisor")
        self.kill(supervisor)
        self.wait_gone(supervisor)
        harness.wait_for(lambda: self.monarch("status").status == 0 and self.status()["term"] == 2, self.supervisor_log)
        self.assert_saving(range(4))
        self.signal_by_pid(self.rank_pid(3))
        self.assert_resumed(1)
        self.assert_saving([2, 3], 2)
        self.assert_saving([0, 1])
        self.assertEqual([self.vault(host).pid for host in ("v1", "v2")], vaults)
        self.end(run)


class Memory(VaultTest):
    def kept_bytes(self, host):
        """Of all files in memory that its vault has; None where nobody may look."""
        pid, found = self.vault(host).pid, {}
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{name}"
                if os.readlink(path).startswith("/memfd:"):
                    kept = os.stat(path)
                    found[kept.st_ino] = kept.st_size
        except PermissionError:
            return None
        except FileNotFoundError:
            return self.kept_bytes(host)  # one was closed meanwhile
        return sum(found.values())

    def test_what_does_not_fit_is_an_error_that_says_so_and_the_next_may_fit(self):
        run = self.start("run", self.vault_job(HEAD + """
answers = []
for step, size in ((1, 1 << 20), (2, 65 << 20), (3, 2 << 20)):
    try: answers.append(monarch.save(step, content(rank, generation, step, size)))
    except MemoryError as error: answers.append(str(error))
tell("answers", answers)
""", slots=1))
        for rank in (0, 1):
            first, full, last = self.told("answers", rank)
            self.assertEqual((first, last), (True, True))
            self.assertRegex(full, rf"^checkpoints\.memory of host v{rank + 1} is 64MiB: \S+ are taken, "
                             rf"and m/{rank} has 65MiB of step 2$")
        self.end(run)
        self.assertEqual([self.commits(gang) for gang in (0, 1)], [[(1, 1), (1, 3)]] * 2)

    @tap.takes(0.6)
    def test_it_is_bounded_by_three_steps_of_what_each_host_keeps(self):
        # Two ranks of 4 MiB, each with a copy on the other's host. A step is given up when vaults hear of the next, by a heartbeat: until
        # then what is saved may have to wait for room, in the memory that its rank has handed over.
        run = self.start("run", self.vault_job(HEAD + """
for step in range(1, 51):
    if not monarch.save(step, content(rank, generation, step, (4 << 20) - 4096)): sys.exit(3)
    tell("saved", step)
tell("done", True)
while not os.path.exists("go"): time.sleep(0.02)
""", slots=1, memory="24MiB"))
        most = dict.fromkeys(("v1", "v2"), 0)
        run.wait_for_err(r"job\.running")

        def over():
            for host in most:
                most[host] = max(most[host], self.kept_bytes(host) or 0)
            return all(self.look("done", rank) is True for rank in (0, 1))
        harness.wait_for(over, lambda: f"50 saves of both: {run!r}\n{self.supervisor_log()}", timeout=120)
        self.assertLessEqual(max(most.values()), (24 + 4) << 20)
        if self.kept_bytes("v1") is not None:
            self.assertGreater(min(most.values()), 4 << 20)
        self.assertEqual([self.commits(gang)[-1] for gang in (0, 1)], [(1, 50)] * 2)
        self.end(run)


class Specs(VaultTest):
    def test_a_job_without_the_key_says_so_to_who_saves(self):
        self.write("rank.py", HEAD + "try: monarch.save(1, b'x')\nexcept RuntimeError as error: tell('said', str(error))\n")
        run = self.start("run", self.program_job(["python3", "rank.py"], 1, 1, mesh={
            "env": {"PYTHONPATH": harness.MODULES, "PYTHONDONTWRITEBYTECODE": "1"}}))
        self.assertIn("its spec has no `checkpoints`", self.told("said", 0))
        self.end_of(run, 0, "succeeded")

    def test_one_rank_saves_for_its_gang_and_all_of_it_load_that(self):
        run = self.start("run", self.vault_job(HEAD + """
found = resumed()
tell("resumed", found)
if found: sys.exit(0)
if rank % 2 == 0: tell("saved", monarch.save(7, lambda file: file.write(content(rank, generation, 7, 1000)), gang=True))
time.sleep(1000)
"""))
        for gang in (0, 1):
            self.assertIs(self.told("saved", 2 * gang), True)
            self.signal_by_pid(self.rank_pid(2 * gang + 1))
            wanted = {"rank": 2 * gang, "generation": 1, "step": 7, "size": 1000, "right": True, "committed": 7}
            self.assertEqual([self.told("resumed", rank, 2) for rank in (2 * gang, 2 * gang + 1)], [wanted] * 2)
        self.end_of(run, 0, "succeeded")


if __name__ == "__main__":
    harness.main()
