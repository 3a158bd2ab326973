"""Pulls of tensors, against a copy in memory and against iperf3, in one run, turn by turn; bytes are compared in each."""

import json
import os
import shutil
import statistics
import subprocess
import sys

from measuring import row, spread

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(ROOT, "tests/rxe"))
import guest  # noqa: E402
BUILD = os.environ.get("MONARCH_BUILD_DIR") or os.path.join(ROOT, "build")
MONARCH = os.path.join(BUILD, "cli/monarch")
RANKS = os.path.join(ROOT, "tests/bench/tensor_ranks.py")
GROUP_RANKS = os.path.join(ROOT, "tests/process/group_ranks.py")
PORT = 45_201


RESTART = {"restart": {"max": "unlimited", "backoff": "10ms", "backoff_max": "10ms"}}


def mesh(ranks, program, **keys):
    return {"dims": {"gpu": ranks}, "program": ["python3", *map(str, program)], "stop": {"grace": "1s"}, **keys}


def lines_of(world, tensors, meshes):
    """What the ranks of a job on two hosts say."""
    path = os.path.join(world.folder, "tensors.yaml")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"version": 1, "job": "bench", "launch": {"local": {"hosts": 2}}, "tensors": tensors, "meshes": meshes}, file)
    done = subprocess.run([MONARCH, "run", "--quiet", "--no-prefix", path], env=world.environment, check=False,
                          capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"bench: a job of tensors ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.splitlines()


def told(world, way, owners, publishes, reads):
    """What the reader of a job says."""
    lines = lines_of(world, {"transports": [way]}, {
        "owner": mesh(owners, [RANKS, *publishes], sidecar=True, supervision=RESTART),
        "reader": mesh(1, [RANKS, *reads], supervision={"restart": {"max": 0}})})
    return json.loads(lines[-1])


def groups(world, word, *words):
    """What four members of a group on two hosts say, each a gang of its own."""
    members = {name: mesh(ranks, [GROUP_RANKS, word, *words], gang="each", supervision=RESTART)
               for name, ranks in (("trainer", 1), ("generator", 3))}
    return [json.loads(line.split(" ", 1)[1]) for line in lines_of(world, {}, members)]


def of_groups(world):
    epochs = {}
    for one in groups(world, "meetings", 100):
        epochs.setdefault(one["turn"], []).append(one["s"])
    meets = sorted(min(took) for took in epochs.values())
    row("group() of 4 ranks on 2 hosts, p50 / p99 of 100", f"{meets[50] * 1e3:.1f} / {meets[98] * 1e3:.1f} ms", "", "", "<= 50 ms")
    folder = os.path.join(world.folder, "groups")
    os.mkdir(folder)
    heard = sorted(one["s"] for one in groups(world, "quickly", 34, folder))
    row(f"a group's lost after a kill -9, p50 / p99 of {len(heard)}",
        f"{heard[len(heard) // 2] * 1e3:.1f} / {heard[len(heard) * 99 // 100 - 1] * 1e3:.1f} ms", "", "", "<= 50 ms")


def pulls(world, way, owners, shape, runs):
    return told(world, way, owners, ["publish", shape], ["pull", shape, runs])


def iperf(streams):
    """Bytes a second over the loopback interface, by so many streams."""
    server = subprocess.Popen(["iperf3", "-s", "-1", "--forceflush", "-p", str(PORT)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in server.stdout:
        if "listening" in line:
            break
    done = subprocess.run(["iperf3", "-c", "127.0.0.1", "-p", str(PORT), "-P", str(streams), "-t", "1", "-J"], check=True,
                          capture_output=True, text=True)
    server.wait()
    return json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"] / 8


def of_many(world, runs):
    """What each of many tensors of 4 KiB costs the calling thread, from Python."""
    most = {"put": 15, "into": 10, "first pull": 15, "later pull": 1}
    turns = [[told(world, "shm", 1, ["publish_many", count], ["pull_many", count]) for count in (20_000, 2_000)] for _ in range(runs)]
    for what, limit in most.items():
        many, few = (statistics.median(turn[i][what] for turn in turns) for i in (0, 1))
        ratios = [turn[0][what] / turn[1][what] for turn in turns]
        row(f"{what}, each of 20,000 tensors of 4 KiB, from Python", f"{many:.2f} us", f"of 2,000 {few:.2f} us", f"{statistics.median(ratios):.2f}",
            f"<= {limit} us, <= 1.5 x {spread(ratios)}; the caller's thread")


def rate(size, seconds):
    return f"{size / seconds / (1 << 30):.1f} GiB/s"


def over_verbs(runs):
    """In one boot of a guest, turn by turn: ours, and ib_read_bw at three sizes of a READ, of which the best counts."""
    sizes = (1 << 16, 1 << 18, 1 << 20)
    theirs = [f"(ib_read_bw -d rxe1 -x 1 -F -s {size} -n {(64 << 20) // size} >/dev/null 2>&1 & usleep 700000; "
              f"ib_read_bw -d rxe0 -x 1 -F -s {size} -n {(64 << 20) // size} 127.0.0.1 | sed -n 's/^ *{size} /theirs /p'; wait)"
              for size in sizes]
    turn = "verbs-pull rxe1 rxe0 1 | sed 's/^/ours /'; " + "; ".join(theirs)
    try:
        status, output = guest.run(os.path.join(ROOT, "build-rxe"), "; ".join([turn] * runs),
                                   [os.path.join(BUILD, "tests/bench/verbs-pull")], 60.0 * runs)
    except guest.Unavailable as why:
        print(f"verbs: {why}")
        return
    words = [line.split() for line in output.splitlines()]
    ours = [float(line[1]) for line in words if line[:1] == ["ours"]]
    best = [float(line[3]) * (1 << 20) for line in words if line[:1] == ["theirs"]]
    if status != 0 or len(ours) != runs or len(best) != runs * len(sizes):
        sys.exit(f"bench: the guest ended with {status}\n{output}")
    turns = [(mine, max(best[at * len(sizes):(at + 1) * len(sizes)])) for at, mine in enumerate(ours)]
    ratios = [mine / other for mine, other in turns]
    row("pull over verbs, 64 MiB of 1 owner, soft-RoCE in a guest", f"{statistics.median(ours) / 1e6:.0f} MB/s",
        f"ib_read_bw's best {statistics.median(other for _, other in turns) / 1e6:.0f} MB/s", f"{statistics.median(ratios):.2f}",
        f">= 0.95 {spread(ratios)}; pages warm")


def bench_tensors(world, runs):
    for owners, shape, what in ((1, "rows", "64 MiB of 1 owner"), (8, "rows", "64 MiB of 8 owners"),
                                (1, "columns", "64 MiB in rows of 1 KiB")):
        got = pulls(world, "shm", owners, shape, runs)
        ratios = [copy / pull for pull, copy in zip(got["pulls"], got["copies"])]
        row(f"pull over shm, {what}", rate(got["bytes"], statistics.median(got["pulls"])),
            f"memcpy {rate(got['bytes'], statistics.median(got['copies']))}", f"{statistics.median(ratios):.2f}",
            f">= {0.85 if shape == 'columns' else 1.0} {spread(ratios)}; pages warm")
    small = pulls(world, "shm", 1, "small", runs * 100)
    row("pull of 4 KiB over shm, from Python, p50", f"{statistics.median(small['pulls']) * 1e6:.0f} us", "", "", "")
    small = pulls(world, "tcp", 1, "small", runs * 100)
    row("the same over tcp", f"{statistics.median(small['pulls']) * 1e6:.0f} us", "", "", "")
    of_many(world, max(runs // 2, 3))
    if shutil.which("iperf3") is None:
        print("iperf3 is not installed: tcp is compared with nothing")
    for owners, shape, what in ((1, "rows", "64 MiB of 1 owner"), (1, "columns", "64 MiB in rows of 1 KiB")):
        turns = []
        for _ in range(runs):
            ours = pulls(world, "tcp", owners, shape, 3)
            turns.append((ours["bytes"] / statistics.median(ours["pulls"]), iperf(4) if shutil.which("iperf3") else 0))
        mine, other = (statistics.median(turn[i] for turn in turns) for i in (0, 1))
        ratios = [a / b for a, b in turns if b]
        row(f"pull over tcp, {what}", rate(mine, 1), f"iperf3 -P 4 {rate(other, 1)}" if other else "",
            f"{statistics.median(ratios):.2f}" if ratios else "", f">= 0.9 {spread(ratios)}; loopback" if ratios else "")
    over_verbs(max(runs // 2, 3))
    folder = world.folder
    for way in ("shm", "tcp"):
        heard = sorted(told(world, way, 1, ["die", folder], ["deaths", folder, 20])["heard"])
        row(f"PeerGone after a kill -9 of the owner, {way}, p50 / 18th of 20",
            f"{statistics.median(heard) * 1000:.1f} / {heard[17] * 1000:.1f} ms", "", "", "<= 100 ms in 18 of 20")
    of_groups(world)
