"""What knows what stays few: a launcher's kind is named in its own folder and in that of the spec, exit codes in one header; and the
phase of a job, host, gang, crew or rank is written by the one file that draws its life."""

import re

LAUNCHES = ("supervisor/launch/", "supervisor/spec/")
KIND = re.compile(r"\bLaunch(Local|Ssh|Slurm|Command)\b")
EXIT_CODES = "transport/base/exit_code.h"
EXIT_CODE = re.compile(r"\bconstexpr\s+(?:int|unsigned|auto)\s+kExit[A-Z]\w*\s*=")
PRODUCT = ("cli/", "supervisor/", "worker/", "transport/")
CORE = ("supervisor/core/crew/", "supervisor/core/job/", "supervisor/core/machines/", "supervisor/core/recovery/", "supervisor/core/state/")
LIFE = re.compile(r"supervisor/core/state/\w+_life\.cc")
# Status has names of phases under the same word.
PHASE_WRITTEN = re.compile(r"(?:[\w\])]\.|->)(?:phase|stage)\s*=(?!=|\s*phase_name\()|exchange\([^,]*\b(?:phase|stage),|\b\w+(?:Phase|Stage)\s*&\s*\w")
COMMENT = re.compile(r"//[^\n]*|#include[^\n]*")

CLEAN = {
    "supervisor/launch/ssh/ssh_spec.h": "struct LaunchSsh {};\n",
    "supervisor/spec/job/build.cc": "Launch made = LaunchLocal{};\n",
    "supervisor/core/core.cc": "// LaunchSsh says it.\nbool here = spec.launch.facts().one_machine;\n",
    "transport/base/exit_code.h": "inline constexpr int kExitLost = 92;\n",
    "supervisor/core/state/gang_life.cc": "void to(GangState& gang, GangPhase next) { gang.phase = next; }\n",
    "supervisor/core/job/told.cc": "tell({.phase = \"launch\"});\n",
    "supervisor/core/job/status.cc": "if (gang.phase == GangPhase::kDone) status.phase = phase_name(gang.phase);\n",
    "tests/supervisor/core_test.cc": "spec.launch = LaunchLocal{};\n",
}
PLANTS = [
    ("supervisor/core/late.cc", "auto* ssh = spec.launch.as<LaunchSsh>();\n", "names a launcher's kind"),
    ("supervisor/core/job/late.cc", "gang.phase = GangPhase::kDone;\n", "writes a phase"),
    ("supervisor/core/recovery/late.cc", "rank->stage = next;\n", "writes a phase"),
    ("supervisor/core/job/later.cc", "std::exchange(state_.phase, JobPhase::kEnded);\n", "writes a phase"),
    ("supervisor/core/state/late.cc", "void end(RankStage& stage) { stage = RankStage::kEnded; }\n", "writes a phase"),
    ("cli/late.h", "bool f(const LaunchSlurm& slurm);\n", "names a launcher's kind"),
    ("cli/late.cc", "constexpr int kExitLate = 99;\n", "an exit code stands in transport/base/exit_code.h"),
]

def check(tree, _build):
    found = []
    for path in tree.cxx():
        if not path.startswith(PRODUCT):
            continue
        text = COMMENT.sub("", tree.read(path))
        if KIND.search(text) and not path.startswith(LAUNCHES):
            found.append(f"{path}: names a launcher's kind ({KIND.search(text).group()}): ask its facts")
        written = PHASE_WRITTEN.search(text)
        if written and path.startswith(CORE) and not LIFE.fullmatch(path):
            found.append(f"{path}: writes a phase ({written.group()}): say it by to(), of the file that draws its life")
        if EXIT_CODE.search(text) and path != EXIT_CODES:
            found.append(f"{path}: an exit code stands in {EXIT_CODES} and nowhere else")
    return found
