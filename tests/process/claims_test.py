"""Idle slots, which a process at the door claims: whoever of ours dies, what is claimed stays so, until it is let go."""

import glob
import json
import signal
import time

import door_client
import harness
import recovery

SLOT = 'echo "slot $MONARCH_RANK has $CLAIM, generation $MONARCH_GENERATION, trust $MONARCH_TRUST"; exec sleep 600'
ME, OTHER = 77, 78


class Claims(recovery.RecoveryTest):
    def begin(self):
        spec = {"version": 1, "job": "claims", "launch": {"local": {"hosts": 2}},
                "supervision": {"heartbeat": "200ms", "suspect_after": "600ms", "lost_after": "1s", "lease": "2s", "orphan_ttl": "20s"},
                "meshes": {"procs": {"dims": {"host": 2, "slot": 16}, "idle": True, "program": ["/bin/sh", "-c", SLOT],
                                     "stop": {"grace": "1s"}, "claims": {"env": ["CLAIM"]},
                                     "supervision": {"restart": {"max": 4, "backoff": "10ms"}}}}}
        run = self.start("run", self.spec(json.dumps(spec), "claims.yaml"))
        run.wait_for_err(r"job\.running")
        harness.wait_for(lambda: len(self.posts()) == 2, "the posts of both hosts")
        return run

    def posts(self):
        return sorted(glob.glob(self.path("run", "monarch", "w-*", "post")))

    def door(self, host, owner):
        """Of the post of that host, also while it is started again."""
        def come():
            for path in self.posts():
                try:
                    door = door_client.Door(path, guest=True, owner=owner)
                except (OSError, SystemExit):
                    continue
                if door.host == host:
                    return door
                door.socket.close()
            return None
        return harness.wait_for(come, f"the door of {host}")

    def mesh(self):
        return self.status()["meshes"][0]

    def claims(self):
        return [(one["name"], one["host"], one["ranks"]) for one in self.mesh()["claims"]]

    def pids(self, ranks):
        return [self.mesh()["ranks"][rank]["pid"] for rank in ranks]

    def wait_for_claims(self, wanted):
        harness.wait_for(lambda: self.claims() == wanted, lambda: f"{wanted}, not {self.claims()}")

    def test_what_is_claimed_stays_so_whoever_dies(self):
        run = self.begin()
        self.assertEqual(self.find("sleep", "600"), [], "what nobody has claimed costs no process")
        door = self.door("v1", ME)
        mine = list(range(16))
        self.assertEqual(door.wish(1, 16, env={"CLAIM": "mine"}, name="workers"), ("procs", mine))
        for rank in mine:
            run.wait_for_out(rf"slot {rank} has mine, generation 1, trust host$")
        self.assertEqual(door.wish(2), "it wants 1 slots of mesh procs on v1, and 0 of 16 are idle: workers (16) has the others")
        self.assertEqual(door.wish(3, hosts=["v2"], env={"LD_PRELOAD": "evil.so"}),
                         "LD_PRELOAD comes from another host: mesh procs takes it with `claims: {env: [LD_PRELOAD]}`, or all with "
                         "`trust: job`")
        self.assertEqual(door.wish(4, 2, hosts=["v2"], env={"CLAIM": "far"}), ("procs", [16, 17]))
        self.assertRegex(self.monarch("status").out, r"(?m)^  claim 1, workers, of v1: 0-15\n  claim 2, of v1: 16-17\n  14 idle: 18-31$")
        # Who leaves has let go.
        other = self.door("v2", OTHER)
        self.assertEqual(other.wish(1, 3, name="short"), ("procs", [18, 19, 20]))
        other.socket.close()
        both = [("workers", "v1", mine), ("", "v1", [16, 17])]
        self.wait_for_claims(both)

        # The supervisor's death ends nothing, and the next one knows the claims.
        harness.wait_for(lambda: self.mesh()["ranks"][17]["phase"] == "running", "the far ranks")
        before = self.pids(mine)
        self.kill(self.process("supervisor"))
        self.wait_for_event("supervisor.adopted")
        self.assertEqual(self.claims(), both)
        self.assertEqual(self.pids(mine), before)
        self.assertEqual(door.wish(5), "it wants 1 slots of mesh procs on v1, and 0 of 16 are idle: workers (16) has the others")
        victim, = [p for p in self.find("sleep", "600") if p.pid == before[3]]
        self.kill(victim)
        run.wait_for_out(r"slot 3 has mine, generation 2, trust host$")

        # So does a post's: its process comes to the next one, by its number.
        before = self.pids(mine)
        post, = [p for p in self.find("monarch-worker", "post") if p.pid == self.peer_of(door)]
        self.kill(post)
        door = self.door("v1", ME)
        time.sleep(2)  # longer than it takes to be missed
        self.assertEqual(self.claims(), both)
        self.assertEqual(self.pids(mine), before)
        self.assertEqual(door.wish(1, 16, env={"CLAIM": "mine"}, name="workers"), ("procs", mine), "said twice it is one")
        self.assertEqual(door.wish(6, let_go=1), ("", []))
        harness.wait_for(lambda: all(self.mesh()["ranks"][rank]["phase"] == "idle" for rank in mine), self.claims)
        self.assertEqual(door.wish(7, 1, env={"CLAIM": "anew"}), ("procs", [0]))
        run.wait_for_out(r"slot 0 has anew, generation 2, trust host$")
        self.assertEqual(self.claims(), [("", "v1", [16, 17]), ("", "v1", [0])])
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 143, run)
        self.assert_nothing_left()

    def peer_of(self, door):
        """The process at the other end."""
        import socket
        import struct
        return struct.unpack("3i", door.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


if __name__ == "__main__":
    harness.main()
