"""Looks for secrets wherever a job could leave them: in what processes show of themselves, and in every file of every host.

    canaries = {"token": canary.spellings(b"…"), …}                    # what is looked for, by a name of ours
    for place in canary.places(world, [folder]): …                     # (where, bytes), all that root sees
    found = canary.search(canaries, places)                            # {(name, where)}
    canary.seen_by(host, uid, canaries)                                # the same, of what a user of that host sees

`where` says host, kind and place: "h1: environ of monarch-worker", "h2: file /home/alice/core", "login: ps". Names of files are
looked into as well. Needs root; /proc of the machine shows every process of every host.
"""

import base64
import json
import os
import socket
import stat
import threading

import leftovers
import linux
import world

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
MEMORY = ("/tmp", "/run", "/var/tmp", "/home", "/dev/shm")  # file systems of a host that are not part of its overlay
_SO_RCVBUFFORCE = 33  # not in Python's socket
BATCH = 1 << 20  # bytes
PIECE = 20  # of a spelling, which is what is looked for: a line may be broken, or an end cut off

# Of one user's view: what comes on its standard input is looked for, and places where it is are written, one a line. It says nothing of
# itself, since the canaries are in its memory and nowhere else.
_VIEW = """
import json, os, stat, subprocess, sys
asked = json.load(sys.stdin)
needles = [(name, bytes.fromhex(word)) for name, words in asked["canaries"].items() for word in words]
def look(where, data):
    for name in sorted({name for name, needle in needles if needle in data}):
        print(json.dumps([name, where]))
def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
for pid in filter(str.isdigit, os.listdir("/proc")):
    program = read(f"/proc/{pid}/comm").decode(errors="replace").strip()
    for part in ("cmdline", "environ"):
        look(f"{part} of {program}" + (" (rank)" if b"MONARCH_RANK=" in read(f"/proc/{pid}/environ") else ""), read(f"/proc/{pid}/{part}"))
for top in asked["tops"]:
    for place, folders, names in os.walk(top):
        folders[:] = [name for name in folders if os.path.join(place, name) not in asked["but"]]
        for path in (os.path.join(place, name) for name in names):
            look(f"name {path}", os.fsencode(path))
            try:
                regular = stat.S_ISREG(os.lstat(path).st_mode)
            except OSError:
                continue
            look(f"file {path}", read(path) if regular else b"")
for line in subprocess.run(["ps", "auxeww"], stdout=subprocess.PIPE, check=False).stdout.splitlines():
    look("ps" + (" of a rank" if b" MONARCH_RANK=" in line else ""), line)
"""


class Wire:
    """Every frame that passes the network of a host, in both directions, until it is closed."""

    _ALL, _ROOM = 3, 64 << 20  # ETH_P_ALL; bytes that the kernel keeps until they are read

    def __init__(self, host):
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/proc/{host.pid}/ns/net", os.O_RDONLY)
        try:
            linux.setns(there, linux.CLONE_NEWNET)
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(self._ALL))
        finally:
            linux.setns(own, linux.CLONE_NEWNET)
            os.close(there)
            os.close(own)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, self._ROOM)
        self._socket.settimeout(0.1)
        self._where, self._frames, self._over = f"{host.name}: frame", [], threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        while not self._over.is_set():
            try:
                self._frames.append(self._socket.recv(1 << 16))
            except TimeoutError:
                pass

    def passed(self, word):
        return any(word in frame for frame in list(self._frames))

    def close(self):
        """What passed, as search() takes it."""
        self._over.set()
        self._reader.join()
        self._socket.close()
        return [(self._where, frame) for frame in self._frames]


def spellings(secret):
    """As it is, and as text would show it: hexadecimal, base64 wherever it begins in what was encoded, Z85 of libzmq."""
    found = [secret, secret.hex().encode(), secret.hex().upper().encode()]
    for before in range(3):
        text = base64.b64encode(b"\0" * before + secret)
        found.append(text[4 if before else 0:-4])
    if len(secret) % 4 == 0:
        found.append(z85(secret))
    return sorted({spelled[:PIECE] for spelled in found if len(spelled) >= 8})


def z85(data):
    words = (int.from_bytes(data[i:i + 4], "big") for i in range(0, len(data), 4))
    return "".join(Z85[word // 85 ** power % 85] for word in words for power in (4, 3, 2, 1, 0)).encode()


def search(canaries, places):
    return {found for batch in _batches(places) for found in _in_batch(canaries, batch)}


def _batches(places):
    """Many places are small, and most hold nothing: together they are looked into once."""
    batch, size = [], 0
    for where, data in places:
        batch.append((where, data))
        size += len(data)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    yield batch


def _in_batch(canaries, batch):
    together = b"\0".join(data for _, data in batch)
    for name, words in canaries.items():
        there = [word for word in words if word in together]
        yield from ((name, where) for where, data in batch if any(word in data for word in there))


def places(w, shared=()):
    """(where, bytes) of all hosts that are up. `shared`: folders of login that are the machine's own."""
    for host in [w.login, *w.hosts]:
        if host.pid is not None:
            yield from _processes(host)
            yield from files(w, host, shared if host is w.login else ())
            for line in host.run("ps", "auxeww").stdout.encode(errors="replace").splitlines():
                yield f"{host.name}: ps" + (" of a rank" if b" MONARCH_RANK=" in line else ""), line
            yield f"{host.name}: sockets", _read(f"/proc/{host.pid}/net/unix")


def processes(host):
    """What ran there a moment ago, with one word for a rank and all that it started."""
    found = map(leftovers.Process, host.pids())
    return [(p, p.program + (" (rank)" if any(line.startswith(b"MONARCH_RANK=") for line in p.environment) else "")) for p in found]


def _processes(host):
    for process, name in processes(host):
        yield f"{host.name}: cmdline of {name}", b" ".join(process.arguments)
        yield f"{host.name}: environ of {name}", b"\n".join(process.environment)


def files(w, host, shared=()):
    """All that the host ever wrote: the upper layer of its root, its homes, and what lies in memory."""
    disk = f"/proc/{w.guard_pid}/root{w.folder}/{host.name}"
    tops = [(f"{disk}/upper", ""), (f"{disk}/home", "/root"), *((host.path(top), top) for top in MEMORY), *((top, top) for top in shared)]
    but = {*shared, world.ROOT, world.BUILD}  # the machine's own, seen there
    for top, name in tops:
        for place, folders, names in os.walk(top):
            inside = name + place[len(top):]
            folders[:] = [folder for folder in folders if f"{inside}/{folder}" not in but]
            for entry in names:
                yield f"{host.name}: name {inside}/{entry}", os.fsencode(entry)
                if _is_regular(f"{place}/{entry}"):
                    yield f"{host.name}: file {inside}/{entry}", _read(f"{place}/{entry}")


def seen_by(host, uid, canaries, tops=(*MEMORY, "/root", "/var/log"), but=()):
    """{(name, where)} of what a user of the host can read: processes, files below `tops`, ps."""
    asked = {"canaries": {name: [word.hex() for word in words] for name, words in canaries.items()}, "tops": tops,
             "but": [*but, world.ROOT, world.BUILD]}
    done = host.run("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "python3", "-c", _VIEW, input=json.dumps(asked))
    return {(name, f"{host.name}: {where}") for name, where in map(json.loads, done.stdout.splitlines())}


def _is_regular(path):
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
