"""Calls that have no place: clocks, randomness, threads and I/O in the pure cores; sleeping in tests; some anywhere."""

import re

from source_tree import code_of, line_of, without_comments

# Free calls only: a method of the same name (`file.open(`) is somebody else's.
FREE = r"(?<![\w.>])"

CORE = r"(supervisor|worker)/core/.*"
# What actors do is their users' business.
TESTS = r"tests/(?!process/plugins/).*"
EVERYWHERE = r".*"
# A signal goes to a pidfd. Sending one to a number is right only where the number is a child that nobody can have
# reaped yet, or the process group of one: in these files. Tests hold the pids of their own children.
SIGNALS_BY_NUMBER = r"(?!(transport/process/spawn|supervisor/client/start_supervisor|supervisor/doctor/run_checks)\.cc$)(?!tests/).*"
# A path may lead elsewhere a moment later: what is there is opened once, looked at and changed by its descriptor. What has no
# descriptor (a socket's file, what is about to be executed, /proc, whether a folder that may not be made is there) is
# looked at by path in these files; and so is a file of the user's that we write to on order, and what `doctor` only tells of.
BY_PATH = (r"(?!(supervisor/journal/secure_directory|supervisor/client/(start_supervisor|remove_job)"
           r"|supervisor/doctor/(device|spec|state)_checks|supervisor/launch/ssh/machines/ssh_checks|transport/base/files/directories|worker/keeper/(host_locks|notify_socket|rank_files)"
           r"|transport/process/(process_scan|spawn|child_steps|nvidia_gpus)"
           r"|transport/wire/(runtime_directory|seqpacket_listener|socket_directory|socket_file))\.cc$)(?!tests/).*")

BANS = [
    (CORE, r"::now\s*\(|\b(boot|wall)_now\b|\bclock_gettime\b|" + FREE + r"time\s*\(", "a core gets `now` as a value"),
    (CORE, r"\b(rand|srand|random|drand48|getrandom)\s*\(|\brandom_device\b|\bmt19937", "a core is deterministic"),
    (CORE, r"\bunordered_\w+", "the order of an unordered container is not ours"),
    (CORE, r"\bgetenv\b|\benviron\b", "a core has no environment"),
    (CORE, r"\bstd::(thread|jthread|async|mutex|shared_mutex|condition_variable|atomic)\b|\bpthread_", "a core has one thread"),
    (CORE, r"\w*sleep\w*\s*\(|\bsleep_(for|until)\b", "a core never waits"),
    (CORE, FREE + r"(::)?(open|openat|fopen|read|write|close|socket|fork|unlink|mkdir)\s*\(|\b[io]?fstream\b|\bstd::filesystem\b",
     "a core performs nothing"),
    (TESTS, FREE + r"(::)?(u|nano|clock_nano)?sleep\s*\(|\bsleep_(for|until)\b", "tests wait for an event under a deadline"),
    (EVERYWHERE, r"\bvfork\b|\bposix_spawnp?\b", "a blocked child would stall its parent; fork"),
    (EVERYWHERE, FREE + r"(::|std::)?(system|popen)\s*\(", "no shell is run"),
    (EVERYWHERE, r"\b(strcpy|strcat|stpcpy|gets|tmpnam|mktemp)\s*\(|\bv?sprintf\s*\(", "has no bound"),
    (EVERYWHERE, r"\bZMQ_ROUTING_ID\b|\brouting_id\b", "a reconnect under a held id is deaf for ever"),
    (SIGNALS_BY_NUMBER, r"(?<!\w)::kill\s*\(|\b(killpg|tgkill|tkill)\s*\(|" + FREE + r"(?<!::)kill\s*\(\s*-?\s*\w*(pid|group)",
     "signals go to a pidfd"),
    (BY_PATH, r"(?<!\w)::(stat|lstat|access|chmod|chown|lchown|truncate|rename)\s*\("
     r"|\bfilesystem::(exists|status|file_size|is_\w+|permissions|rename|copy\w*|remove\w*|create_\w+|resize_file)\s*\(",
     "a path is opened once"),
]
# An abstract socket has no mode, so any user may connect. Looked for in text that keeps its character constants.
# In the one file that has them, for ranks that see no folder of their job, both ends ask the kernel whose the other is,
# and prove to each other what only ranks of the job know.
CHECKED_ABSTRACT = "transport/tensor/link_socket.cc"
ABSTRACT = re.compile(r"sun_path\s*\+\s*1|sun_path\[0\]\s*=\s*('\\0'|0)|&\s*\w*\.?sun_path\[1\]")

CLEAN = {
    "supervisor/core/job.cc": 'int f(Instant now);\n// time(0) in a comment\nconst char* kText = "sleep(1)";\n'
                              "int n = 1'000'000; int uptime(int); int x = uptime(1); void g() { log.open(2); }\n",
    "transport/base/clock.cc": "int f() { return clock_gettime(CLOCK_BOOTTIME, &now); }\nint g() { return snprintf(a, 1, b); }\n",
    "transport/process/spawn.cc": "int f() { return ::kill(-group, SIGKILL); }\n",
    "tests/process/a_test.cc": 'void f() { spawn({"sleep", "100"}); loop.run_until(deadline); kill(pid, 9); }\n',
    "cli/a.cc": "void Guard::kill(int) { rank.kill(pid); supervisor->kill(9); return kill(now, actions); }\n",
}
PLANTS = [
    ("supervisor/a.cc", "struct stat s; if (::stat(path, &s) == 0) open(path);\n", "a path is opened once"),
    ("worker/daemon/f.cc", "if (std::filesystem::exists(path)) f();\n", "a path is opened once"),
    ("supervisor/core/a.cc", "auto t = std::chrono::steady_clock::now();\n", "gets `now` as a value"),
    ("worker/core/b.cc", "auto t = monarch::boot_now();\n", "gets `now` as a value"),
    ("worker/core/c.cc", "auto t = time(nullptr);\n", "gets `now` as a value"),
    ("supervisor/core/d.cc", "int r = rand();\n", "deterministic"),
    ("supervisor/core/e.h", "std::unordered_map<int, int> m;\n", "not ours"),
    ("supervisor/core/f.cc", 'auto* p = std::getenv("HOME");\n', "no environment"),
    ("worker/core/g.cc", "std::thread t;\n", "one thread"),
    ("worker/core/h.cc", "usleep(3);\n", "never waits"),
    ("supervisor/core/i.cc", "int fd = ::open(path, 0);\n", "performs nothing"),
    ("supervisor/core/j.cc", "std::ofstream out;\n", "performs nothing"),
    ("tests/supervisor/a_test.cc", "void f() { std::this_thread::sleep_for(1s); }\n", "under a deadline"),
    ("tests/supervisor/b_test.cc", "void f() { ::usleep(1); }\n", "under a deadline"),
    ("transport/process/p.cc", "auto pid = vfork();\n", "would stall"),
    ("cli/cmd/cmd_run.cc", 'int r = std::system("ls");\n', "no shell"),
    ("cli/render.cc", 'std::sprintf(buffer, "%d", 1);\n', "has no bound"),
    ("transport/zmq/link.cc", "set(ZMQ_ROUTING_ID, id);\n", "deaf for ever"),
    ("transport/loop/unix.cc", "address.sun_path[0] = '\\0';\n", "abstract socket"),
    ("worker/keeper/ranks.cc", "void f() { ::kill(pid, SIGTERM); }\n", "pidfd"),
    ("supervisor/stop.cc", "void f() {\n  kill(pid, SIGTERM);\n}\n", "pidfd"),
]


def check(tree, _build):
    found = []
    for path in tree.cxx():
        text = tree.read(path)
        code = code_of(text)
        for where, what, why in BANS:
            if re.fullmatch(where, path):
                for match in re.finditer(what, code, re.MULTILINE):
                    found.append(f"{path}:{line_of(code, match.end())}: `{match.group().strip()}`: {why}")
        for match in ABSTRACT.finditer(without_comments(text) if path != CHECKED_ABSTRACT else ""):
            found.append(f"{path}:{line_of(text, match.start())}: an abstract socket has no mode: any user may connect")
    return found
