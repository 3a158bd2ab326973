"""What the tests of actors on other hosts share."""

import json
import re

import recovery

FAST = {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "1s", "lease": "1500ms", "restart": {"max": 4, "backoff": "20ms"}}
END = "/tmp/end"  # of the controller's host


class Calls:
    def pass_time(self, seconds):
        recovery.after(seconds)

    def steady(self, hosts, plugin, launch, calls=600, **keys):
        """Path of a spec whose controller calls until END is on its host (tests/process/plugins/steady.cc)."""
        return self.spec(json.dumps({
            "version": 1, "job": "actors", "launch": launch, "supervision": FAST,
            "meshes": {"t": {"dims": {"host": hosts, "gpu": 2}, "stop": {"grace": "2s"}, "workdir": "/tmp",
                             "actors": {"tally": {"plugin": plugin, "class": "Tally"}}}},
            "controller": {"plugin": plugin, "entry": "steady", "workdir": "/tmp", "args": {"calls": calls, "end": END}}, **keys},
            indent=1), "actors.yaml")

    def seen(self, run):
        """What the controller says in the end."""
        self.assertEqual(run.status, 0, run)
        seen = json.loads(re.search(r"(\{.*\})$", run.out, re.M)[1])
        self.assertEqual((seen["twice"], seen["wrong"]), (0, 0), seen)
        return seen
