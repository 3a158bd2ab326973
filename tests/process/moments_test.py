"""kill -9 of a random process at a random moment of a job's life: it ends by itself with one of the codes that it may, and
nothing is left. `MONARCH_TEST_SEED=N` repeats a run."""

import os
import random

import harness
import jobs

ROUNDS = int(os.environ.get("MONARCH_TEST_ROUNDS") or 12)
# 0: it was done before, or goes on without. 70: the supervisor. 92 and 69: a host, running or starting. 137: a rank.
MAY_END_WITH = {"supervisor": (0, 70), "guard": (0, 69, 70), "keeper": (0, 69, 92), "daemon": (0, 69, 92), "rank": (0, 137)}


class Moments(jobs.JobTest):
    def test_whatever_dies_whenever(self):
        seed = int(os.environ.get("MONARCH_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
        print(f"# seed {seed}", flush=True)
        chance = random.Random(seed)
        script = "(setsid sleep 600 </dev/null >/dev/null 2>&1 &)\nmark there; sleep 0.1"
        spec = self.job(script, mesh={"stop": {"grace": "500ms"}})
        for round_number in range(ROUNDS):
            role = chance.choice(sorted(MAY_END_WITH))
            wait = chance.uniform(0, 0.3)
            with self.subTest(seed=seed, round=round_number, role=role, wait=round(wait, 3)):
                before = set(self.jobs())
                run = self.start("run", spec)
                due = harness.time.monotonic() + wait
                harness.wait_for(lambda: harness.time.monotonic() >= due, "the moment")
                victims = self.rank_processes() if role == "rank" else self.processes_of(role)
                victim = chance.choice(sorted(victims, key=lambda p: p.pid)) if victims else None
                if victim is not None:
                    try:
                        self.kill(victim)
                    except (ProcessLookupError, AssertionError):
                        pass  # gone since it was found
                status = run.wait()
                self.assertIn(status, MAY_END_WITH[role] if victim else (0,), run)
                job, = set(self.jobs()) - before
                log = self.log("supervisor.log", job)
                try:
                    self.assert_nothing_left()
                except AssertionError as left:
                    self.fail(f"{left}\n{run}\n{log}")

    def rank_processes(self):
        return [p for p in self.find("bash") if b"mark there" in b" ".join(p.arguments)]


if __name__ == "__main__":
    harness.main()
