"""What the tests of recovery and of faults share: a job of two gangs whose ranks count, and what its events say of a failure.

Each rank of `self.counting(...)` writes its count into step.RANK, so that a test sees who goes on and who began anew. Nothing here
judges by the wall clock but the bound of a detection, which is generous: a loaded machine is no fault.

A test of a fault says by these words what it asserts, and tests/lint/faults.py looks for one of each:
    assert_seen, assert_unseen           the event that tells of it has a time, at most so long after the fault; or none tells of it
    assert_stage, assert_nothing_done    which stage of the ladder answers; or that none does
    assert_go_on                         gangs that it does not concern are the processes they were, and step on. A fault that ends a
                                         whole job has another job beside it: `self.beside()`, whose rank is called `beside` here
    assert_nothing_left                  in harness.py
"""

import datetime
import json
import os
import re
import time

import harness
import jobs

# Counts for ever, or until the file `go` is there.
COUNT = "i=0; until [ -e go ]; do step $((++i)); nap 0.05; done\n"
SEEN_S = 1.0   # from a fault to its event
START_S = 5.0  # from a command to its ranks
DONE = ("host.lost", "host.replaced", "host.wedged", "gang.failed", "gang.parked")  # what a stage of the ladder does
LINE = re.compile(r"^(\S+) (?:error |warning )?([a-z]+\.[a-z_]+) (.*)$", re.M)  # of an event, as `run` shows it


def after(seconds):
    """Waits for this long, where it is the length of a fault."""
    until = time.monotonic() + seconds
    harness.wait_for(lambda: time.monotonic() >= until, f"{seconds} s", timeout=seconds + harness.DEADLINE_S)


class RecoveryTest(jobs.JobTest):
    pids = {}

    def counting(self, script="mark there\n" + COUNT, hosts=2, slots=2, mesh=None, local=None, **supervision):
        """A spec with a gang for each host; `restart: {max: 4}` unless written."""
        settings = {"restart": {"max": 4}, **supervision}
        gang = {"gang": "host", "stop": {"grace": "2s"}, **(mesh or {})}
        return self.job(script, hosts=hosts, slots=slots, mesh=gang, supervision=settings,
                        launch={"local": local or {"hosts": hosts}})

    def running(self, *arguments, **options):
        run = self.start("run", self.counting(*arguments, **options))
        ranks = options.get("hosts", 2) * options.get("slots", 2)
        self.pids = dict(enumerate(self.wait_for_marks("there", ranks)))
        return run

    def events(self, kind=None):
        done = self.monarch("events", "last", "--json")
        found = [json.loads(line) for line in done.out.splitlines()] if done.status == 0 else []
        return [e for e in found if kind is None or e["event"] == kind]

    def wait_for_event(self, kind, number=1, timeout=harness.DEADLINE_S):
        """Until there are so many of this kind; the last of them."""
        found = harness.wait_for(lambda: (e := self.events(kind)) and len(e) >= number and e,
                                 lambda: f"{number} x {kind} among\n" + "\n".join(
                                     f"{e['event']}: {e['message']}" for e in self.events()), timeout)
        return found[number - 1]

    def wait_for_told(self, run, kind, timeout=harness.DEADLINE_S):
        """As wait_for_event, of what a command shows: some events are in no journal."""
        def look():
            return next(({"time": t, "event": k, "message": m} for t, k, m in LINE.findall(run.err) if k == kind), None)
        return harness.wait_for(look, lambda: f"{kind} from {run!r}", timeout)

    def beside(self):
        """Another job, in a state directory of its own: its rank counts until end_beside()."""
        script = ("MONARCH_RANK=beside\nmark there\n" + COUNT).replace("-e go ", "-e go.beside ")
        spec = self.program_job(jobs.shell(script), hosts=1, slots=1, name="beside")
        self.other = self.start("run", spec, env={"MONARCH_STATE_DIR": self.path("home", "beside")})
        there = self.path("work", "there.beside")
        harness.wait_for(lambda: os.path.exists(there), lambda: repr(self.other))
        self.pids = {**dict(self.pids), "beside": self.pid_of("beside")}

    def end_beside(self):
        self.assert_go_on(["beside"])
        self.write("go.beside", "")
        self.assertEqual(self.other.wait(), 0, self.other)

    def step_of(self, rank):
        return self.count_in(f"step.{rank}")

    def pid_of(self, rank):
        return int(self.read("work", f"there.{rank}"))

    def wait_for_anew(self, ranks):
        """Until these ranks run as other processes than at the start."""
        harness.wait_for(lambda: all(self.pid_of(r) != self.pids[r] for r in ranks),
                         lambda: f"ranks {ranks} anew: {self.supervisor_log()}")

    def assert_go_on(self, ranks):
        """They are the processes of the start, and count on."""
        before = {r: self.step_of(r) for r in ranks}
        harness.wait_for(lambda: all(self.step_of(r) > before[r] + 1 for r in ranks), lambda: f"ranks {ranks} going on")
        self.assertEqual({r: self.pid_of(r) for r in ranks}, {r: self.pids[r] for r in ranks})

    def assert_seen(self, event, since, within=SEEN_S):
        """The event came at most so long after `since` (of time.time()), or somewhat later where the machine is busy."""
        after_it = self.time_of(event) - since
        self.assertLess(after_it, harness.patience(within), event)
        self.assertGreater(after_it, -0.1, event)  # an earlier one tells of something else

    def time_of(self, event):
        """As time.time()."""
        return datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()

    def assert_unseen(self, *kinds):
        """Nothing of these kinds was said."""
        self.assertEqual([e["message"] for e in self.events() if e["event"] in kinds], [])

    def assert_stage(self, told, pattern, **fields):
        """An event, or the cause of a verdict, tells by its rule which stage answers, and has these fields."""
        self.assertRegex(told.get("rule") or told["message"], pattern, told)
        self.assertEqual({name: told[name] for name in fields}, fields, told)

    def assert_answer(self, failed, remedy, number, of, **fields):
        """A failure tells by its details which remedy answers it, which that is of how many, and has these fields."""
        told = failed["details"]
        self.assertEqual((told.get("remedy"), told.get("number"), told.get("of")), (remedy, str(number), str(of)), failed)
        self.assertEqual({name: failed[name] for name in fields}, fields, failed)

    def assert_nothing_done(self, *kinds):
        """No stage answered; or those that are named did not."""
        self.assertEqual([e["message"] for e in self.events() if e["event"] in (kinds or DONE)], [])

    def end_well(self, run):
        self.write("go", "")
        return self.end_of(run, 0, "succeeded")

    def now(self):
        return time.time()
