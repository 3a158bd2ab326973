"""Finds what a test left behind: processes, sockets, shared memory, temporary files, keys and cgroups of its jobs.

A process belongs to a test if its environment carries the test's tag, or no tag and a job id of its state directory, or if it holds
something in the test's folder (working directory, open file, an argument). Our own processes show no environment and
no files to anybody but root: for an ordinary user they belong to a test as parents or children of what belongs to it, or
because they did a moment ago. Nothing here kills; see harness.py.
"""

import glob
import os
import re
import stat

TAG = "MONARCH_HARNESS_TAG"
OURS = ("monarch", "monarch-worker")


class Process:
    """One look at a process; every field is empty where the process was already going away."""

    def __init__(self, pid):
        self.pid = pid
        self.arguments = _read(f"/proc/{pid}/cmdline").split(b"\0")[:-1]
        self.environment = set(_read(f"/proc/{pid}/environ").split(b"\0"))
        status = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        self.state = status[0].decode() if status else ""
        self.parent = int(status[1]) if status else 0
        self.start = int(status[19]) if status else 0
        # Who made itself undumpable shows its executable to root alone.
        executable = _link(f"/proc/{pid}/exe") or (self.arguments[0].decode(errors="replace") if self.arguments else "")
        self.program = os.path.basename(executable.removesuffix(" (deleted)"))

    def carries(self, tag, jobs):
        """The test's tag, or a job's id where it has no tag: ids are short, and a test at the same time may have the same."""
        tags = {entry for entry in self.environment if entry.startswith(f"{TAG}=".encode())}
        return bool((tags or self.environment) & {f"{TAG}={tag}".encode(), *(f"MONARCH_JOB_ID={job}".encode() for job in jobs)})

    def hidden(self):
        """One of our programs, and not for us to look into."""
        return self.program in OURS and not os.access(f"/proc/{self.pid}/environ", os.R_OK)

    def holds(self, folder):
        links = [_link(f"/proc/{self.pid}/cwd"), *(_link(f"/proc/{self.pid}/fd/{name}") for name in names(f"/proc/{self.pid}/fd"))]
        prefix = folder + "/"
        return any(link == folder or link.startswith(prefix) for link in links) or any(
            prefix.encode() in argument for argument in self.arguments)

    def __str__(self):
        text = b" ".join(self.arguments).decode(errors="replace") or self.program
        return f"process {self.pid} ({self.state}, child of {self.parent}): {text[:160]}"


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def names(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def ancestors():
    """This process and its parents: they hold the test's folder too, and are not what it left."""
    found, pid = set(), os.getpid()
    while pid > 1 and pid not in found:
        found.add(pid)
        pid = Process(pid).parent
    return found


def processes(folder, tag, jobs, known=None):
    """The live processes of a test. A zombie is its parent's business and has no environment to tell it by. `known` is
    a set that one test passes every time: it remembers the hidden ones, whose relatives may end before them.

    WARNING: a process that forks and exits between the listing of /proc and the look at it would show neither itself
    nor its child. So the listing is repeated until it holds no process that was not looked at.
    """
    seen = ancestors()
    found, hidden = [], []
    for _ in range(100):
        new = {int(entry) for entry in os.listdir("/proc") if entry.isdigit()} - seen
        if not new:
            break
        seen |= new
        for process in map(Process, sorted(new)):
            if process.state in ("", "Z", "X"):
                continue
            if process.carries(tag, jobs) or process.holds(folder):
                found.append(process)
            elif process.hidden():
                hidden.append(process)
    return found + _relatives(found, hidden, known if known is not None else set())


def _relatives(found, hidden, known):
    """Those of the hidden processes that belong to the found ones, by birth or by memory."""
    ours = [p for p in hidden if (p.pid, p.start) in known]
    grew = True
    while grew:
        pids = {p.pid for p in found + ours}
        parents = {p.parent for p in found + ours}
        new = [p for p in hidden if p not in ours and (p.parent in pids or p.pid in parents)]
        ours += new
        grew = bool(new)
    known.update((p.pid, p.start) for p in ours)
    return ours


def sockets(folder):
    """Socket files below the folder, and bound unix sockets that name it though their file may be gone."""
    found = {f"socket file {path}" for path in _walk(folder) if _is_socket(path)}
    for line in _read("/proc/net/unix").decode(errors="replace").splitlines()[1:]:
        name = line.split()[7:]
        if name and name[0].lstrip("@").startswith(folder + "/"):
            found.add(f"bound socket {name[0]}")
    return sorted(found)


def _is_socket(path):
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False  # gone since it was listed


def _walk(folder):
    for place, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(place, name)


def files(folder):
    """What must not outlive a job: anything in the temporary and runtime folders, a job's key."""
    found = [f"temporary file {p}" for sub in ("tmp", "run") for p in _walk(os.path.join(folder, sub))]
    found += [f"key {p}" for p in glob.glob(os.path.join(folder, "state/jobs/*/key"))]
    return found


def shared_memory(jobs, before):
    """New entries of /dev/shm that name one of our jobs, or `monarch` without naming any job at all."""
    found = []
    for name in sorted(set(os.listdir("/dev/shm")) - before):
        anonymous = "monarch" in name and not re.search(r"-[0-9a-f]{4}\b", name)
        if anonymous or any(job in name for job in jobs):
            found.append(f"shared memory /dev/shm/{name}")
    return found


def _journals(folder):
    return b"".join(_read(path) for path in glob.glob(os.path.join(folder, "state/jobs/*/journal.*")))


def groups(place):
    """Of a cgroup file system, innermost first. A group without groups of its own has two links, and its many files are not listed."""
    try:
        if os.stat(place).st_nlink > 2:
            with os.scandir(place) as entries:
                inside = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
            for path in inside:
                yield from groups(path)
    except OSError:
        return  # gone meanwhile, or not ours
    yield place


def cgroups(folder):
    """Groups of the test's jobs, innermost first, below every cgroup mount that mountinfo knows.

    They are named after the job's uuid, which nothing tells but its journal.
    """
    journals = _journals(folder)
    if not journals:
        return []
    found = []
    for line in _read("/proc/self/mountinfo").decode().splitlines():
        fields, _, rest = line.partition(" - ")
        if not rest.startswith("cgroup2"):
            continue
        for place in groups(fields.split()[4]):
            uuid = re.search(r"/monarch-([0-9a-f]{32})(/|$)", place)
            if uuid and bytes.fromhex(uuid.group(1)) in journals:
                found.append(f"cgroup {place}")
    return found
