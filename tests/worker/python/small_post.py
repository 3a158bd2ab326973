"""A post for tests of one interpreter that carries calls, and whose idle slots are real ranks: what it takes to run actors without
a job. It knows no limits, no other hosts and no journal."""

import os
import subprocess
import sys
import threading

from fake_post import (ANSWER, ANSWERS, CALL, CANCEL, DELIVER, FAILURE, GRANTED, OVER, REPLY, TAKE_BACK, WELCOME, WISH, Connection, Door)

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "worker", "python")
GUESTS = "@guests"
VALUE, REMOTE, LOST, BUSY = 0, 1, 2, 4


class SmallPost:
    """`meshes`: name of an idle mesh: its number of slots; those whose name ends with _again start their dead anew."""

    def __init__(self, **meshes):
        self.meshes = meshes
        self.lock = threading.RLock()
        self.serving, self.watching, self.early = {}, [], {}
        self.processes, self.generations, self.claims = {}, {}, {}
        self.deliveries, self.calls, self.guests, self.number = {}, {}, 0, 0
        self.is_over, self.busy = False, 0  # so many calls are refused as busy
        self.door = Door(lambda one: self.thread(self.talk, Connection(one)))
        self.path = self.door.path

    def thread(self, run, *args):
        threading.Thread(target=run, args=args, daemon=True).start()

    def close(self):
        self.is_over = True
        with self.lock:
            processes = list(self.processes.values())
        for one in processes:
            one.kill()
            one.wait()
        self.door.close()

    def talk(self, connection):
        connection.socket.settimeout(None)
        place = None
        try:
            _, hello, _ = connection.hear()
            mesh, rank, _, serves, _, watches = hello[1:7]
            guest = 0
            with self.lock:
                if serves and not mesh:
                    self.guests += 1
                    guest = self.guests
                connection.who = [mesh, [0, rank], hello[3]]
                meshes = [[name, [["slot", size]], 1] for name, size in self.meshes.items()]
                connection.say(WELCOME, [min(4, hello[0]), "v1", meshes, 1024, 1 << 28, 1 << 30, "127.0.0.1", 0, 0, guest, 64 << 20])
                if watches:
                    self.watching.append(connection)
                if serves:
                    place = (GUESTS, guest) if guest else (mesh, rank)
                    self.serving[place] = connection
                    for one in self.early.pop(place, ()):
                        self.deliver(connection, *one)
            while True:
                heard = connection.hear()
                with self.lock:
                    self.take(connection, *heard)
        except (EOFError, OSError):
            with self.lock:
                if self.serving.get(place) is connection:
                    if place[0] == GUESTS:
                        self.left(place, "it has left")
                    else:
                        del self.serving[place]  # reap() says how it has ended
                if connection in self.watching:
                    self.watching.remove(connection)
        finally:
            connection.close()

    # ---- calls

    def take(self, connection, kind, fields, beside):
        if kind == CALL:
            self.call(connection, fields, beside)
        elif kind == REPLY:
            self.reply(fields, beside)
        elif kind == WISH:
            self.wish(connection, *fields)
        elif kind == CANCEL:
            for number, (caller, call, _, place) in list(self.deliveries.items()):
                if caller is connection and call == fields[0] and place in self.serving:
                    self.serving[place].say(TAKE_BACK, [number])
        for one in beside:
            os.close(one)

    def call(self, connection, fields, beside):
        call, mesh, steps, target, _, _, body = fields[:7]
        ranks = [first + k * step for first, count, step in steps for k in range(count)]
        self.calls[(connection, call)] = len(ranks)
        for rank in ranks:
            place = (mesh, rank)
            if self.busy:
                self.busy -= 1
                self.answer(connection, call, rank, [BUSY, "", "too much waits there", "", 1, [0, 0, b"", 0, 0], b""], [])
            elif place in self.serving:
                self.deliver(self.serving[place], connection, call, rank, place, target, body, beside)
            elif place in self.processes and self.processes[place].poll() is None:
                self.early.setdefault(place, []).append((connection, call, rank, place, target, body, [os.dup(one) for one in beside]))
            else:
                self.answer(connection, call, rank, [LOST, "", "%s/%d is not up" % place, "", 0, [0, 0, b"", 0, 0], b""], [])

    def deliver(self, to, caller, call, rank, place, target, body, beside):
        self.number += 1
        self.deliveries[self.number] = (caller, call, rank, place)
        try:
            to.say(DELIVER, [self.number, target, caller.who, body, True], beside)
        except OSError:
            self.left(place, "it has ended")

    def reply(self, fields, beside):
        found = self.deliveries.pop(fields[0], None)
        if found is not None:
            self.answer(*found[:3], fields[1], beside)

    def answer(self, caller, call, rank, outcome, beside):
        left = self.calls[(caller, call)] = self.calls[(caller, call)] - 1
        try:
            if beside:
                caller.say(ANSWER, [call, rank, outcome, True], beside)
                if left == 0:
                    caller.say(OVER, [call, ""])
            else:
                caller.say(ANSWERS, [[[call, rank, outcome, left == 0, True]]])
        except OSError:
            pass

    def left(self, place, why):
        self.serving.pop(place, None)
        for caller, call, rank, *_ in self.early.pop(place, ()):
            self.answer(caller, call, rank, [LOST, "", why, "", 0, [0, 0, b"", 0, 0], b""], [])
        for number, (caller, call, rank, at) in list(self.deliveries.items()):
            if at == place:
                del self.deliveries[number]
                self.answer(caller, call, rank, [LOST, "", why, "", 0, [0, 0, b"", 0, 0], b""], [])

    # ---- claims

    def wish(self, connection, number, owner, let_go, what):
        key = (owner, let_go or number)
        if let_go:
            for place in self.claims.pop(key, ()):
                one = self.processes.pop(place, None)
                self.left(place, "it was let go")
                if one is not None:
                    one.terminate()
                    self.thread(one.wait)
            return connection.say(GRANTED, [number, "", "", []])
        mesh, _, count, _, _, program, workdir, env, rank_env = what
        mesh = mesh or next(iter(self.meshes))
        if key not in self.claims:
            idle = [rank for rank in range(self.meshes[mesh]) if (mesh, rank) not in self.processes]
            if len(idle) < count:
                return connection.say(GRANTED, [number, "%d slots of mesh %s are wanted, and %d are idle" % (count, mesh, len(idle)), "", []])
            self.claims[key] = [(mesh, rank) for rank in idle[:count]]
            for k, place in enumerate(self.claims[key]):
                self.start(place, program, workdir or self.door.folder, {**env, **(rank_env[k] if rank_env else {})})
        return connection.say(GRANTED, [number, "", mesh, [rank for _, rank in self.claims[key]]])

    def start(self, place, program, workdir, env):
        if self.is_over:
            return
        generation = self.generations[place] = self.generations.get(place, 0) + 1
        given = {"MONARCH_POST": self.path, "MONARCH_MESH": place[0], "MONARCH_RANK": str(place[1]), "MONARCH_GENERATION": str(generation)}
        paths = os.pathsep.join([PACKAGE] + [one for one in sys.path if one])
        one = self.processes[place] = subprocess.Popen(program or [sys.executable, "-m", "monarch.rank"], cwd=workdir, stdin=subprocess.DEVNULL,
                                                       env={"PATH": os.environ["PATH"], "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1",
                                                            **env, **given})
        self.thread(self.reap, place, one, (program, workdir, env))

    def reap(self, place, one, words):
        code = one.wait()
        with self.lock:
            if self.processes.get(place) is not one:
                return None  # it was let go, and another may be there
            cause = "killed by SIG%s" % {9: "KILL", 15: "TERM", 11: "SEGV"}.get(-code, -code) if code < 0 else "exit code %d" % code
            self.left(place, cause)
            cause = "%s/%d on v1 (pid %d): %s" % (place[0], place[1], one.pid, cause)
            failure = [[1, list(self.meshes).index(place[0]), place[1], 1, self.generations[place], cause]]
            for connection in list(self.watching):
                try:
                    connection.say(FAILURE, failure)
                except OSError:
                    pass
            if place[0].endswith("_again"):
                self.start(place, *words)
        return None
