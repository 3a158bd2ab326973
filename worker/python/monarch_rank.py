"""What a rank of monarch says of itself, and the events that it is told, for Python programs.

    import monarch_rank as monarch

    monarch.ready()                          # for a mesh with `ready: notify`
    for step in range(first, last):
        train(step)
        monarch.step(step)
        monarch.metric("loss", loss)
        for event in monarch.events(timeout=0):
            if event["event"] == "stopping":
                with monarch.phase("checkpoint"):
                    save()
                raise SystemExit(0)

`monarch status` shows the last word of each. Outside of monarch nothing happens, so that a script needs no second version.
Nothing here but commit(), save() and load() raises for want of a listener, and nothing but these, events(), who() and gate() waits:
what cannot be said at once is not said.

monarch listens to the user who started the job. In a process that has become another one, as by setpriv or gosu, commit(), save(),
load() and gate() raise PermissionError at once, and the first call of any other says so on standard error.

A checkpoint counts once every rank of the gang has committed it; whoever starts again goes on from the newest of those:

    found = monarch.committed()
    first = load(found["what"]) if found else 0
    for step in range(first, last):
        train(step)
        if step % 100 == 99:
            path = save(step + 1)            # under a name that no other generation writes
            monarch.commit(step + 1, path)
            delete(all that is older than monarch.gang_step())

In a job with `checkpoints: {peer: N, memory: SIZE}` no disk is needed for that: save() keeps the bytes in the memory of this host and
of N others and commits them, load() has them again on whatever host the rank is then:

    found = monarch.load()
    first, model = pickle.load(found) if found else (0, None)
    for step in range(first, last):
        model = train(step, model)
        if step % 100 == 99:
            monarch.save(step + 1, pickle.dumps((step + 1, model)))

Any process or thread of a rank may call these; a process that was forked opens its own sockets.

Copy this one file, or add its folder to PYTHONPATH: it needs Python 3.6 or later and nothing else.
"""

import array
import errno
import fcntl
import hashlib
import io
import json
import mmap
import os
import re
import select
import socket
import sys
import threading
import time
import types
from importlib import machinery

__all__ = [
    "ready", "status", "step", "phase", "metric", "watchdog", "stopping", "events", "who", "commit", "committed", "gang_step",
    "gate", "save", "load"
]

_MESSAGE_BYTES = 4096
_GATE_BYTES = 1 << 20  # an environment
_VAULT_BYTES = 1 << 16  # a word on each of many hosts
_ANSWER_SECONDS = 2.0
_URGENT_SECONDS = 1.0  # how long ready() and stopping() try when the keeper is behind
_RECONNECT_SECONDS = 1.0
_LONG_SECONDS = 3600.0  # how long one connection waits where there is no limit
_ASK_AGAIN_SECONDS = 0.2  # after a door that took no more connections, or a commit of another thread
_ALONE_SECONDS = 5.0  # for another host that takes a copy: those of a lost one are soon told where else theirs go
_LOOK_AGAIN_SECONDS = 1.0  # for a checkpoint that no host has: one that does may be on its way back
_PIECE_BYTES = 1 << 20
_HASHED_BESIDE_BYTES = 8 << 20  # of a checkpoint whose hash is worth a thread
_KEPT = re.compile(r"vault:([0-9]+):([0-9]+(?:,[0-9]+)*):([0-9a-f]{64})")  # what save() commits: rank, hosts, sha256

# Of Linux, which Python knows from 3.8 on: memfd_create(2) and fcntl(2).
_MFD_CLOEXEC, _MFD_ALLOW_SEALING = 1, 2
_F_ADD_SEALS = 1033
_SEALS = 1 | 2 | 4 | 8  # F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE

_told = set()  # users whose sockets this process may not use, of which standard error has heard
_notify = {"pid": None, "socket": None, "lock": None}  # type: dict
_events = {"pid": None, "socket": None, "lock": None}  # type: dict
_newest = {"step": None}  # type: dict
_copies = {"short": None, "alone": False}  # type: dict


class _Checkpoint(mmap.mmap):
    """What load() returns: a mapping, with what libraries ask of a file beside that (from Python 3.13 on it has some of it itself)."""

    def readable(self):
        return True

    def writable(self):
        return False

    def seekable(self):
        return True

    def seek(self, *where):
        super().seek(*where)
        return self.tell()

    def readinto(self, buffer):
        with memoryview(buffer).cast("B") as whole:
            begin = self.tell()
            count = max(0, min(len(whole), len(self) - begin))
            with memoryview(self) as bytes_here:
                whole[:count] = bytes_here[begin:begin + count]
        self.seek(begin + count)
        return count


class _Phase:
    """Of phase(): leaves the phase at the end of a `with` block, and does nothing without one."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _say("X_MONARCH_PHASE=")
        return False


def ready(text=None):
    # type: (str) -> None
    """This rank is ready: with `ready: notify`, those that depend on its mesh may start. `text` is its status."""
    _say("READY=1" if text is None else "READY=1\nSTATUS=" + _line(text), urgent=True)


def status(text):
    # type: (str) -> None
    """One line about what this rank is doing."""
    _say("STATUS=" + _line(text))


def step(number):
    # type: (int) -> None
    """The number of the step that was just done."""
    try:
        number = int(number)  # also of a numpy integer, or of a tensor with one element
    except (TypeError, ValueError, OverflowError):
        return
    if number >= 0:
        _say("X_MONARCH_STEP=%d" % number)


def phase(name):
    # type: (str) -> _Phase
    """What this rank is in: letters, digits and `_-./`, at most 32. Used in a `with`, it leaves the phase at the end."""
    _say("X_MONARCH_PHASE=" + _line(name))
    return _Phase()


def metric(name, value):
    # type: (str, float) -> None
    """The present value of a metric, of at most 16 by name; names are as those of phases."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return
    _say("X_MONARCH_METRIC=%s:%.9g" % (_line(name), number))


def watchdog():
    # type: () -> None
    """A sign of life without anything else to say."""
    _say("WATCHDOG=1")


def stopping(text=None):
    # type: (str) -> None
    """This rank is about to end. `text` is its status."""
    _say("STOPPING=1" if text is None else "STOPPING=1\nSTATUS=" + _line(text), urgent=True)


def events(timeout=None):
    # type: (float) -> object
    """The events for this rank, as dictionaries with an "event": an iterator.

    Without a timeout it goes on for ever (in a thread of its own, mostly); with one it ends once nothing has come for so
    many seconds, 0 taking what is there. The process has one reader: each event comes out once, and one that came before
    the first call comes too. Outside of monarch, with a timeout it ends at once, and without one it waits for ever.
    """
    path = os.environ.get("MONARCH_EVENTS")
    if not path:
        while timeout is None:
            time.sleep(3600)
        return
    while True:
        message = _next_event(path, timeout)
        if message is None:
            return
        try:
            event = json.loads(message.decode("utf-8", "replace"))
        except ValueError:
            continue
        if isinstance(event, dict) and "event" in event:
            yield event


def who():
    # type: () -> dict
    """Who this rank is, by its keeper's word: job, mesh, rank, generation and host; None outside of monarch."""
    path = os.environ.get("MONARCH_SOCKET")
    if not path:
        return None
    answer = _ask(path, "ASK=who", _ANSWER_SECONDS)
    if not answer:
        _tell_of_other_user(path)
    return answer if "rank" in answer else None


def gate():
    # type: () -> dict
    """Where a rank has done all that needs no place: imports, the model. What it returns, and puts into os.environ, is its environment.

    In a rank that was started with a place it returns at once. A rank of a standby gang (`standby` of its mesh) waits here until it is
    given the place of one that failed: RANK, WORLD_SIZE, MASTER_ADDR, MONARCH_RANK and what else depends on the place is known from then
    on, and not before. Call it before anything that reads these, once.
    """
    path = os.environ.get("MONARCH_SOCKET")
    if path:
        while True:
            answer = _ask(path, "ASK=gate", None, _GATE_BYTES)
            if isinstance(answer.get("env"), dict):
                os.environ.update(answer["env"])
                os.environ.pop("MONARCH_STANDBY", None)
                break
            if "error" in answer:
                break  # a keeper that knows of no gates: what is there is all
            _refuse_other_user(path)
            time.sleep(_ASK_AGAIN_SECONDS)
    return dict(os.environ)


def committed():
    # type: () -> dict
    """The newest checkpoint that all ranks of this gang had committed when they were started: None, or a dictionary.

    "step" is its number, "what" is what this rank said of it, "generation" which start of the gang wrote it. All ranks of a
    gang are told the same step. It stays the same for as long as this rank runs.
    """
    try:
        return {
            "step": int(os.environ["MONARCH_COMMITTED_STEP"]),
            "what": os.environ.get("MONARCH_COMMITTED_WHAT", ""),
            "generation": int(os.environ["MONARCH_COMMITTED_GENERATION"]),
        }
    except (KeyError, ValueError):
        return None


def commit(step, what="", gang=False, timeout=60.0):
    # type: (int, str, bool, float) -> bool
    """This rank has written the checkpoint of `step`: True once that is known, whatever then becomes of rank, host or supervisor.

    `what` is what the rank will need to find it, a digest or a name: at most 128 printable characters of ASCII. Write all of it
    to disk first (fsync), under a name that no other generation of the rank writes, such as one with MONARCH_GENERATION in it.
    The checkpoint is the gang's once each of its ranks has committed the same step, or one has with gang=True: it then speaks
    for all of them. Steps only rise. Until then a gang that fails goes on from the step before: keep what you wrote of
    gang_step() and of all steps above it.

    False: it does not count, since a later generation of the gang has taken this one's place, or a later step was committed,
    or others of the gang have committed none of this rank's last 8 for 45 s, in which this one waits; standard error says which.
    TimeoutError: nobody has answered for `timeout` seconds (None: no limit), and the question still stands: it may yet come to count,
    so keep what was written. ValueError: `what` is none.
    Outside of monarch it is True at once: nobody else writes.
    """
    return _commit(int(step), str(what), gang, _Deadline(timeout)) if os.environ.get("MONARCH_SOCKET") else True


def save(step, data, gang=False, timeout=60.0):
    # type: (int, object, bool, float) -> bool
    """Keeps the checkpoint of `step` in the memory of this host and of others, and commits it: see commit() for what that is.

    For a job with `checkpoints: {peer: N, memory: SIZE}`: copies go to N hosts that have no rank of this gang, so that the loss of this
    host, or of its whole gang, takes nothing with it. `data` is the checkpoint of this rank: bytes, or whatever else is one contiguous
    buffer (an array of numpy), or a function that writes it to the binary file that it is given and may seek there:

        monarch.save(step, lambda file: torch.save(model.state_dict(), file))

    The file is in memory, and it is this rank's copy: beside it nothing of that size is made here. `gang` is as of commit(): all ranks
    of the gang will load what this one saves.

    True: it counts. Where fewer hosts have it than should, standard error says once which do not and why; where no other host can take a
    copy for 5 s, it is kept on this one alone and outlives the rank, but not the host. False: it does not count, since a later generation
    of the gang has taken this one's place, a later step was committed, or others are far behind (commit()); standard error says which.
    MemoryError: there is no room for it in checkpoints.memory of this host, or of those that are to have a copy. TimeoutError: there was
    no answer for `timeout` seconds after all was written (None: no limit), in which copies have to cross the network; unless it says that
    it may yet count, it does not.
    OSError: there is no memory for the file. After each of these errors the gang still has the step before, and may try the next.
    RuntimeError: the job's spec has no `checkpoints`, or this rank has no place yet. ValueError: the step is none.
    Outside of monarch it is True at once, and `data` is not looked at.
    """
    if not os.environ.get("MONARCH_SOCKET"):
        return True
    step, path = int(step), _vault()
    mesh, rank, generation = _place()
    descriptor, digest = _sealed_file(step, data)
    try:
        deadline = _Deadline(timeout)
        answer = _keep(path, _question("save", mesh, rank, generation, step, digest), step, deadline, descriptor)
    finally:
        os.close(descriptor)
    if "refused" in answer:
        sys.stderr.write("monarch_rank: the checkpoint of step %d does not count: %s\n" % (step, answer["refused"]))
        return False
    if "full" in answer:
        raise MemoryError(str(answer["full"]))
    hosts = ",".join(str(int(host)) for host in answer["hosts"])
    return _commit(step, "vault:%s:%s:%s" % (rank, hosts, digest), gang, deadline)


def load(timeout=60.0):
    # type: (float) -> object
    """What save() kept of the step that this gang goes on from, wherever it is; None where there is none, so that the rank begins anew.

    It is a read-only buffer of these bytes which reads like a file, too (read, readinto, readline, seek, tell), for pickle.load(),
    torch.load() or numpy.frombuffer(): a mapping (mmap) of memory that this host has anyway. An empty checkpoint is an empty io.BytesIO.
    None: no checkpoint was committed (committed() is None), or the newest was committed by commit(), by another name.

    Its sha256 is that of what was saved: a copy that differs is named on standard error, and another host's is taken. A host that has a
    copy may be away for a moment, so it is looked for until the timeout is over (seconds; None: no limit). Then:
    FileNotFoundError: no host that answers has it; the text has the hosts that were asked. TimeoutError: this host's vault has not
    answered. All ranks of a gang go on from the same step: a rank goes on from something else, such as an older checkpoint on a disk,
    only if all others of its gang do. Else let the error end it.
    RuntimeError: the job's spec has no `checkpoints` any more. It may be called again, and copies nothing then either.
    """
    found = committed()
    saved = _KEPT.fullmatch(found["what"]) if found else None
    if not saved:
        return None
    step, deadline, path = found["step"], _Deadline(timeout), _vault()
    mesh = _place()[0]
    rank, hosts, digest = saved.groups()
    question = _question("load", mesh, rank, found["generation"], step, digest) + "\nHOSTS=" + hosts
    spoiled, missing = [], None
    while True:
        without = "\nNOT=" + ",".join(spoiled) if spoiled else ""
        try:
            answer, descriptor = _ask_vault(path, question + without, step, deadline)
        except TimeoutError:
            if missing is None:
                raise
            raise FileNotFoundError(missing) from None
        if descriptor is not None:
            content = _verified(descriptor, digest)
            if content is not None:
                return content
            spoiled.append(str(answer.get("host")))
            sys.stderr.write("monarch_rank: the copy of the checkpoint of step %d that came from host %s is not what was saved "
                             "(sha256); another is asked for\n" % (step, spoiled[-1]))
            continue
        why = "its descriptor did not come through: has this process too many open files?" if answer.get("ok") else answer.get("missing")
        text = "the checkpoint of step %d of %s/%s is in no host's memory: %s" % (step, mesh, rank, why)
        if spoiled:
            text += "; what came from host %s is not what was saved" % ", ".join(spoiled)
        if text != missing:
            sys.stderr.write("monarch_rank: %s; looking for it again\n" % text)
        missing = text
        deadline.sleep(_LOOK_AGAIN_SECONDS)


def gang_step():
    # type: () -> int
    """The newest step that all ranks of this gang have committed, as far as this process knows: None before there is one.

    It is what committed() says, until commit() hears more. A gang that fails goes on from no step below it: what was written of
    those may be deleted.
    """
    if _newest["step"] is None:
        known = committed()
        return known["step"] if known else None
    return _newest["step"]


class _Deadline:
    """The end of a timeout in seconds, from now on; None: there is no end."""

    def __init__(self, timeout):
        self.timeout = timeout
        self._end = None if timeout is None else time.monotonic() + timeout

    def left(self):
        """Seconds, as many as one question may wait; 0 and less: it is over."""
        return _LONG_SECONDS if self._end is None else min(_LONG_SECONDS, self._end - time.monotonic())

    def sleep(self, seconds):
        time.sleep(min(seconds, max(0.0, self.left())))


def _commit(step, what, gang, deadline):
    question = "COMMIT=%d\nOF=%s\nWHAT=%s" % (step, "gang" if gang else "rank", what)
    if any(not " " <= character <= "~" for character in what):
        raise ValueError("what a checkpoint is called has printable characters of ASCII alone: %r" % what)
    why = "nobody has answered"
    while True:
        left = deadline.left()
        if left <= 0:
            raise TimeoutError("the checkpoint of step %d: %s for %g s; it may yet count" % (step, why, deadline.timeout))
        answer = _ask(os.environ["MONARCH_SOCKET"], question, left)
        if answer.get("ok") is True:
            _remember(answer.get("gang"))
            return True
        if "refused" in answer:
            sys.stderr.write("monarch_rank: the checkpoint of step %d does not count: %s\n" % (step, answer["refused"]))
            return False
        if "error" in answer:
            why = str(answer["error"])
            if "one at a time" not in why:
                raise ValueError(why)
        else:
            _refuse_other_user(os.environ["MONARCH_SOCKET"])
        deadline.sleep(_ASK_AGAIN_SECONDS)


def _remember(step):
    if isinstance(step, int) and (_newest["step"] is None or step > _newest["step"]):
        _newest["step"] = step


class _ForAnotherUser(types.ModuleType):
    """Stands for a module of the job's that this process may not read: whoever uses it is told why."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise PermissionError(errno.EACCES, "%s: %s" % (self.__name__, self._why))


class _Tensors:
    """The last finder of modules: of monarch_tensors where it lies in a folder of another user, as after setpriv or gosu."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        whys = [_other_user(os.path.join(folder, name + ".py")) for folder in sys.path] if name == "monarch_tensors" else []
        why = next((why for why in whys if why), None)
        return machinery.ModuleSpec(name, cls(why)) if why else None

    def __init__(self, why):
        self._why = why

    def create_module(self, spec):
        module = _ForAnotherUser(spec.name)
        module._why = self._why
        return module

    def exec_module(self, module):
        pass


def _other_user(path):
    """What keeps this process from a file that belongs to another user; None: it does not, or there is no such file."""
    owner, place = None, path
    while owner is None:
        try:
            owner = os.stat(place).st_uid
        except PermissionError:  # a folder above it says whose it is
            if place == os.path.dirname(place):
                return None
            place = os.path.dirname(place)
        except (OSError, ValueError):
            return None
    me = os.geteuid()
    if owner == me or (place != path and os.access(place, os.X_OK)):
        return None
    return ("this process is of user %d, and %s is for user %d, who started the job: start the job as user %d, or let its ranks stay user %d" %
            (me, path, owner, me, owner))


def _refuse_other_user(path):
    why = _other_user(path)
    if why:
        raise PermissionError(errno.EACCES, why)


def _tell_of_other_user(path):
    why = _other_user(path)
    if why and path not in _told:
        _told.add(path)
        sys.stderr.write("monarch_rank: monarch does not hear this rank: %s\n" % why)


def _ask(path, question, seconds, most=_MESSAGE_BYTES):
    """The answer to a question, or {} where there is none."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            door.settimeout(seconds)
            door.connect(path)
            door.send(question.encode("utf-8", "replace"))
            answer = json.loads(door.recv(most).decode("utf-8", "replace"))
    except (OSError, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _vault():
    path = os.environ.get("MONARCH_VAULT")
    if not path:
        raise RuntimeError("this job keeps no checkpoints in memory: its spec has no `checkpoints`, such as "
                           "`checkpoints: {peer: 1, memory: 8GiB}`")
    return path


def _place():
    """Mesh, rank and generation, which a rank that waits at gate() does not have yet."""
    try:
        return [os.environ["MONARCH_" + name] for name in ("MESH", "RANK", "GENERATION")]
    except KeyError as error:
        raise RuntimeError("%s is not set: this rank has no place before gate()" % error.args[0]) from None


def _question(kind, mesh, rank, generation, step, digest):
    return "VAULT=%s\nMESH=%s\nRANK=%s\nGENERATION=%s\nSTEP=%d\nDIGEST=%s" % (kind, mesh, rank, generation, step, digest)


def _ask_vault(path, question, step, deadline, descriptor=None):
    """The vault's answer, and the descriptor that came along or None. One that ends is started again: it is asked till the deadline."""
    while True:
        left = deadline.left()
        if left <= 0:
            raise TimeoutError("the checkpoint of step %d: the vault of this host (MONARCH_VAULT) has not answered for %g s" %
                               (step, deadline.timeout))
        answer, received = _talk_to_vault(path, question, left, descriptor)
        if "error" in answer:
            raise ValueError("the checkpoint of step %d: %s" % (step, answer["error"]))
        if answer:
            return answer, received
        _refuse_other_user(path)
        deadline.sleep(_ASK_AGAIN_SECONDS)


def _keep(path, question, step, deadline, descriptor):
    """The answer to `save`. Where no other host takes a copy it is asked again for a while, unless that was so the last time, too."""
    patience = time.monotonic() if _copies["alone"] else None  # from the first such answer on: copies take their time
    while True:
        answer = _ask_vault(path, question, step, deadline, descriptor)[0]
        hosts = answer.get("hosts", [])
        if "refused" in answer or "full" in answer or len(hosts) > 1:
            break
        if not hosts:
            raise OSError("the checkpoint of step %d: %s was answered" % (step, json.dumps(answer)))
        if patience is None:
            patience = time.monotonic() + _ALONE_SECONDS
        if time.monotonic() >= patience or deadline.left() <= _ASK_AGAIN_SECONDS:
            break
        deadline.sleep(_ASK_AGAIN_SECONDS)
    if hosts:
        short = answer.get("short")
        if short is not None and short != _copies["short"]:
            sys.stderr.write("monarch_rank: the checkpoint of step %d is on %s: %s\n" %
                             (step, "this host alone" if len(hosts) == 1 else "%d hosts" % len(hosts), short))
        _copies.update(short=short, alone=len(hosts) == 1)
    return answer


def _talk_to_vault(path, question, seconds, descriptor):
    """As _ask(), with a descriptor on either way."""
    passed = array.array("i", [] if descriptor is None else [descriptor])
    received = array.array("i")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            door.settimeout(seconds)
            door.connect(path)
            door.sendmsg([question.encode("utf-8", "replace")],
                         [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed.tobytes())] if passed else [])
            message, ancillary, _, _ = door.recvmsg(_VAULT_BYTES, socket.CMSG_SPACE(passed.itemsize), socket.MSG_CMSG_CLOEXEC)
        for level, kind, value in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                received.frombytes(value[:len(value) - len(value) % received.itemsize])
        answer = json.loads(message.decode("utf-8", "replace"))
    except (OSError, ValueError):
        answer = {}
    answer = answer if isinstance(answer, dict) else {}
    for extra in received[1 if answer else 0:]:
        os.close(extra)
    return answer, received[0] if answer and received else None


def _sealed_file(step, data):
    """A descriptor of a file in memory that holds the data, and which nobody can change any more, and the sha256 of the data."""
    descriptor = _memory_file("monarch-checkpoint")
    try:
        with open(os.dup(descriptor), "w+b") as file:
            if callable(data):
                data(file)
                digest = None
            else:
                digest = _write(file, data)
        try:
            fcntl.fcntl(descriptor, _F_ADD_SEALS, _SEALS)
        except OSError as error:
            why = "it is still mapped for writing" if error.errno == errno.EBUSY else error.strerror
            raise OSError(error.errno, "the file of the checkpoint of step %d cannot be sealed: %s" % (step, why)) from None
        digest = digest or _digest(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, digest


def _write(file, data):
    """Writes it, and returns the sha256 of what stands in the file then, whatever becomes of `data` meanwhile; None: it has to be made
    of the file. A thread makes it piece by piece behind the writing, so that it takes hardly longer than that does."""
    try:
        view = memoryview(data).cast("B")
    except TypeError:
        view = memoryview(b"")
    if len(view) < _HASHED_BESIDE_BYTES:
        file.write(data)
        return None
    descriptor, offsets = file.fileno(), range(0, len(view), _PIECE_BYTES)
    digest, written, given_up, hashed = hashlib.sha256(), threading.Semaphore(0), [], []

    def hash_behind():
        for offset in offsets:
            written.acquire()
            if given_up:
                return
            digest.update(os.pread(descriptor, _PIECE_BYTES, offset))
        hashed.append(True)

    hashing = threading.Thread(target=hash_behind, daemon=True)
    try:
        hashing.start()
    except RuntimeError:  # the process may have no more threads
        file.write(data)
        return None
    try:
        for offset in offsets:
            piece = view[offset:offset + _PIECE_BYTES]
            while piece:
                piece = piece[os.write(descriptor, piece):]
            written.release()
    except BaseException:
        given_up.append(True)
        written.release()
        raise
    finally:
        hashing.join()
    return digest.hexdigest() if hashed else None


def _memory_file(name):
    flags = _MFD_CLOEXEC | _MFD_ALLOW_SEALING
    if hasattr(os, "memfd_create"):  # from Python 3.8 on
        return os.memfd_create(name, flags)
    import ctypes
    create = getattr(ctypes.CDLL(None, use_errno=True), "memfd_create", None)
    if create is None:
        raise RuntimeError("save() needs memfd_create(2): Python 3.8, or a C library that has it (glibc 2.27, musl 1.1.20)")
    descriptor = create(name.encode(), flags)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "memfd_create: " + os.strerror(ctypes.get_errno()))
    return descriptor


def _digest(descriptor):
    digest, offset = hashlib.sha256(), 0
    while True:
        piece = os.pread(descriptor, _PIECE_BYTES, offset)
        if not piece:
            return digest.hexdigest()
        digest.update(piece)
        offset += len(piece)


def _verified(descriptor, digest):
    """What the descriptor holds, or None where that is something else; closes the descriptor."""
    try:
        if _digest(descriptor) != digest:
            return None
        if os.fstat(descriptor).st_size == 0:
            return io.BytesIO(b"")
        # WARNING: before Linux 6.7 nothing maps a file with F_SEAL_WRITE shared, not even for reading.
        return _Checkpoint(descriptor, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    finally:
        os.close(descriptor)


def _line(text):
    return str(text).replace("\n", " ")


def _own(held):
    """What this process keeps: a forked child shares neither its parent's socket nor a lock that was held at the fork."""
    if held["pid"] != os.getpid():
        held["socket"], held["lock"], held["pid"] = None, threading.Lock(), os.getpid()
    return held


def _open(held, kind):
    held["socket"] = socket.socket(socket.AF_UNIX, kind)
    held["socket"].setblocking(False)
    return held["socket"]


def _say(message, urgent=False):
    path = os.environ.get("NOTIFY_SOCKET")
    if not path or "MONARCH_SOCKET" not in os.environ:
        return  # nobody listens, or it is systemd's
    data = message.encode("utf-8", "replace")[:_MESSAGE_BYTES]
    deadline = time.monotonic() + _URGENT_SECONDS
    while True:
        try:
            held = _own(_notify)
            with held["lock"]:
                sender = held["socket"] or _open(held, socket.SOCK_DGRAM)
            sender.sendto(data, path)
            return
        except (BlockingIOError, InterruptedError):
            if not urgent or time.monotonic() >= deadline:
                return
        except PermissionError:
            return _tell_of_other_user(path)
        except OSError:
            return
        time.sleep(0.005)


def _next_event(path, timeout):
    """The bytes of the next event, or None after the timeout or where nobody will tell any more."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        held = _own(_events)
        with held["lock"]:
            reader = held["socket"] or _connect(held, path)
        if reader is None:
            # The keeper has gone, or cannot take one more reader now, or it is another user's.
            _tell_of_other_user(path)
            if left is not None and left <= 0:
                return None
            time.sleep(_RECONNECT_SECONDS if left is None else min(left, _RECONNECT_SECONDS))
            continue
        try:
            poller = select.poll()  # select() would end at descriptor 1,023
            poller.register(reader, select.POLLIN)
            if not poller.poll(None if left is None else left * 1000):
                return None
            message = reader.recv(_MESSAGE_BYTES)
        except (BlockingIOError, InterruptedError):
            continue  # another thread was faster
        except (OSError, ValueError):
            message = b""
        if message:
            return message
        with held["lock"]:
            if held["socket"] is reader:
                reader.close()
                held["socket"] = None
        if left is not None and left <= 0:
            return None


def _connect(held, path):
    try:
        reader = _open(held, socket.SOCK_SEQPACKET)
        reader.connect(path)
        return reader
    except OSError:
        if held["socket"] is not None:
            held["socket"].close()
            held["socket"] = None
        return None


if os.environ.get("MONARCH_SOCKET"):
    sys.meta_path.append(_Tensors)
