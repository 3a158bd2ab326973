"""Includes follow the arrows of ARCHITECTURE.md: each folder names the folders it may know, and nothing else."""

import re

from source_tree import includes_of

TRANSPORT = ["transport/"]
LOW = ["transport/base/", "transport/messages/", "transport/loop/", "transport/wire/"]

# The longest prefix that matches a file decides; an entry that ends in a slash is a folder. A folder knows itself.
ARROWS = {
    "cli/": ["cli/", "supervisor/client/", "supervisor/spec/", "supervisor/core/", "supervisor/journal/journal_reader.h",
             "supervisor/launch/slurm/submission.h", "supervisor/workspace/scan.h", "supervisor/drill/core/",
             "supervisor/drill/scenario/", *TRANSPORT],
    "cli/cmd/cmd_supervise.cc": ["cli/", "supervisor/", *TRANSPORT],
    "cli/cmd/cmd_doctor.cc": ["cli/", "supervisor/", *TRANSPORT],
    "cli/drill/": ["cli/", "supervisor/", *TRANSPORT],
    "cli/cmd/cmd_drill.cc": ["cli/", "supervisor/", *TRANSPORT],
    "cli/away/away.cc": ["cli/", "supervisor/", *TRANSPORT],
    "cli/cmd/cmd_launch_for.cc": ["cli/", "supervisor/", *TRANSPORT],
    "supervisor/": ["supervisor/", *TRANSPORT],
    "supervisor/core/": ["supervisor/core/", "transport/base/", "transport/messages/"],
    "worker/main.cc": ["worker/keeper/", "worker/errand/", "worker/daemon/", "worker/post/", "worker/vault/", "worker/core/",
                       "worker/embedded/", *TRANSPORT],
    "worker/daemon/": ["worker/daemon/", "worker/core/", *TRANSPORT],
    "worker/drill/": ["worker/drill/", "worker/core/", "transport/process/", *LOW],
    "worker/errand/": ["worker/errand/", "worker/core/", "worker/drill/", "transport/process/", *LOW],
    "worker/keeper/": ["worker/keeper/", "worker/core/", "worker/errand/", "transport/process/", *LOW],
    "worker/embedded/": ["worker/embedded/"],
    "worker/servant/": ["worker/servant/", "transport/process/", *LOW],
    "worker/post/": ["worker/post/", "worker/servant/", "worker/core/", *TRANSPORT],
    "worker/vault/": ["worker/vault/", "worker/servant/", "worker/core/", *TRANSPORT],
    "worker/rank/": ["worker/rank/", "worker/sdk/", *TRANSPORT],
    "worker/library/": ["worker/library/", "worker/rank/", "worker/sdk/", "transport/tensor/", *TRANSPORT],
    "worker/core/": ["worker/core/", "transport/base/", "transport/messages/"],
    "worker/sdk/": ["worker/sdk/", "transport/codec/"],
    "transport/codec/": ["transport/codec/"],
    "transport/base/": ["transport/base/", "transport/codec/"],
    "transport/messages/": ["transport/messages/", "transport/base/", "transport/codec/"],
    "transport/loop/": ["transport/loop/", "transport/base/"],
    "transport/process/": ["transport/process/", "transport/loop/", "transport/base/", "transport/messages/"],
    "transport/output/": ["transport/output/", "transport/base/"],
    "transport/wire/": ["transport/wire/", "transport/messages/", "transport/loop/", "transport/base/", "transport/codec/"],
    "transport/zmq/": ["transport/zmq/", *LOW],
    "transport/peers/": ["transport/peers/", "transport/zmq/", *LOW],
    "transport/tensor/core/": ["transport/tensor/core/", "transport/base/", "transport/codec/"],
    "transport/tensor/": ["transport/tensor/", "transport/codec/", *LOW],
    "configs/": ["worker/sdk/", "transport/codec/"],  # what users write
    "tests/": [""],
}
# Rooms of a folder from the lowest floor up: a file includes what is on the floors below its room's, and its own room. So there is no
# circle. The folder's own files are on the floor of "".
FLOORS = {
    "cli/": [["term"], ["args", "show"], ["", "import", "job"], ["follow"], ["away", "start"], ["drill"], ["cmd"]],
    "supervisor/": [["core"], ["journal", "workspace"], ["viewers", "workers"], ["loop"], ["away"]],
    "supervisor/client/": [["link", "output"], ["", "stacks"]],
    "supervisor/core/": [["spec"], ["state"], ["health", "recovery"], ["crew"], ["facts"], ["accounts"], ["hosts"], ["gangs"], ["machines"], ["job"], ["beats"]],
    "supervisor/spec/": [["yaml"], ["schema"], ["hosts"], ["check", "job"], [""]],
    "supervisor/launch/ssh/": [["session"], [""]],
    "transport/base/": [[""], ["files"]],
    "worker/core/": [[""], ["post", "vault"]],
}
# Headers that are installed: users include them by angle brackets, and so may we.
INSTALLED = re.compile(r"^monarch/")
INSTALLED_FROM = ("transport/codec/", "worker/sdk/")

CLEAN = {
    "cli/cmd/b.h": '#pragma once\n#include "cli/args/a.h"\n',
    "cli/args/a.h": "#pragma once\n",
    "supervisor/core/job/b.h": "#pragma once\n",
    "transport/base/result.h": "#pragma once\n",
    "transport/zmq/link.h": '#pragma once\n#include "transport/base/result.h"\n',
    "transport/process/process.h": '#pragma once\n#include "transport/base/result.h"\n',
    "supervisor/core/job.h": '#pragma once\n#include "transport/base/result.h"\n',
    "supervisor/journal.h": '#pragma once\n#include "supervisor/core/job.h"\n#include "transport/zmq/link.h"\n',
    "supervisor/journal/journal_reader.h": "#pragma once\n",
    "worker/core/rank.h": '#pragma once\n#include "transport/base/result.h"\n',
    "worker/daemon/daemon.h": "#pragma once\n",
    "transport/codec/monarch/codec.hpp": "#pragma once\n#include <vector>\n",
    "worker/sdk/monarch/actor.hpp": "#pragma once\n#include <monarch/codec.hpp>\n",
    "worker/keeper/keeper.cc": '#include "worker/core/rank.h"\n#include "transport/process/process.h"\n',
    "transport/wire/codec.h": '#pragma once\n#include "transport/codec/monarch/codec.hpp"\n',
    "cli/cmd/cmd_supervise.cc": '#include "supervisor/journal.h"\n',
    "cli/cmd/cmd_ps.cc": '#include "supervisor/journal/journal_reader.h"\n// #include "worker/core/rank.h"\n',
    "tests/cli/ps_test.cc": '#include "supervisor/journal.h"\n#include "worker/core/rank.h"\n',
    "tests/fake.h": "#pragma once\n",
}
PLANTS = [
    ("cli/args/late.cc", '#include "cli/cmd/b.h"\n', "cli/args is on no floor above cli/cmd"),
    ("supervisor/core/spec/late.cc", '#include "supervisor/core/job/b.h"\n', "is on no floor above"),
    ("cli/cmd/cmd_run.cc", '#include "supervisor/journal.h"\n', "may not include supervisor/journal.h"),
    ("cli/cmd/cmd_stop.cc", '#include "worker/core/rank.h"\n', "may not include worker/core/rank.h"),
    ("supervisor/core/late.cc", '#include "transport/zmq/link.h"\n', "may not include transport/zmq/link.h"),
    ("supervisor/late.cc", '#include "worker/core/rank.h"\n', "may not include worker/core/rank.h"),
    ("worker/daemon/late.cc", '#include "supervisor/core/job.h"\n', "may not include supervisor/core/job.h"),
    ("worker/keeper/late.cc", '#include "transport/zmq/link.h"\n', "may not include transport/zmq/link.h"),
    ("worker/keeper/other.cc", '#include "worker/daemon/daemon.h"\n', "may not include worker/daemon/daemon.h"),
    ("worker/core/late.cc", '#include "transport/process/process.h"\n', "may not include transport/process"),
    ("worker/sdk/monarch/late.hpp", '#include "transport/base/result.h"\n', "may not include transport/base"),
    ("transport/base/late.cc", '#include "transport/zmq/link.h"\n', "may not include transport/zmq/link.h"),
    ("transport/loop/late.cc", '#include <monarch/codec.hpp>\n', "may not include transport/codec/monarch/codec.hpp"),
    ("supervisor/spec/late.cc", '#include "tests/fake.h"\n', "may not include tests/fake.h"),
    ("supervisor/near.cc", '#include "journal.h"\n', "is not a path from the root"),
    ("helpers/late.cc", "\n", "belongs to no folder of the arrows"),
]


def rule_of(path):
    prefixes = [p for p in ARROWS if path == p or (p.endswith("/") and path.startswith(p))]
    return ARROWS[max(prefixes, key=len)] if prefixes else None


def floor_of(folder, path):
    """(floor, room) of a file in a folder of FLOORS; None: it lies in another, or in a room that is on no floor."""
    if not path.startswith(folder):
        return None
    room = path.removeprefix(folder).rpartition("/")[0].partition("/")[0]
    return next(((i, room) for i, floor in enumerate(FLOORS[folder]) if room in floor), None)


def upwards(path, target):
    """Where an include leads to a floor that is not below, in words; or None."""
    for folder in FLOORS:
        here, there = floor_of(folder, path), floor_of(folder, target)
        if here and there and here[1] != there[1] and here[0] <= there[0]:
            return f"{folder}{here[1]} is on no floor above {folder}{there[1]}: may not include {target}"
    return None


def check(tree, _build):
    found = []
    for path in tree.cxx():
        allowed = rule_of(path)
        if allowed is None:
            found.append(f"{path}: belongs to no folder of the arrows")
            continue
        for line, quoted, target in includes_of(tree.read(path)):
            place = next((p for p in INSTALLED_FROM if INSTALLED.match(target) and tree.exists(p + target)), None)
            if place:
                target = place + target
            elif not quoted:
                continue
            elif not tree.exists(target):
                found.append(f"{path}:{line}: `{target}` is not a path from the root")
                continue
            if not any(target == a or (a.endswith("/") or a == "") and target.startswith(a) for a in allowed):
                found.append(f"{path}:{line}: may not include {target}")
            elif words := upwards(path, target):
                found.append(f"{path}:{line}: {words}")
    return found
