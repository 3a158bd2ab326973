"""What knows what stays few: a launcher's kind is named in its own folder and in that of the spec, exit codes in one header; and the
phase of a job, host, gang, crew or rank is written by the one file that draws its life. A machine of the core includes no other, and
no class of it grows without end; what is known in many files may become known in less and not in more."""

import re

LAUNCHES = ("supervisor/launch/", "supervisor/spec/")
KIND = re.compile(r"\bLaunch(Local|Ssh|Slurm|Command)\b")
EXIT_CODES = "transport/base/exit_code.h"
EXIT_CODE = re.compile(r"\bconstexpr\s+(?:int|unsigned|auto)\s+kExit[A-Z]\w*\s*=")
PRODUCT = ("cli/", "supervisor/", "worker/", "transport/")
CORE = ("supervisor/core/accounts/", "supervisor/core/gangs/", "supervisor/core/crew/", "supervisor/core/facts/", "supervisor/core/hosts/", "supervisor/core/job/", "supervisor/core/machines/", "supervisor/core/recovery/", "supervisor/core/state/")
LIFE = re.compile(r"supervisor/core/state/\w+_life\.cc")
# Status has names of phases under the same word.
PHASE_WRITTEN = re.compile(r"(?:[\w\])]\.|->)(?:phase|stage)\s*=(?!=|\s*phase_name\()|exchange\([^,]*\b(?:phase|stage),|\b\w+(?:Phase|Stage)\s*&\s*\w")
MACHINES = "supervisor/core/machines/"
INCLUDES = re.compile(r'#include "(supervisor/core/machines/\w+\.h)"')
CORE_ROOM = "supervisor/core/"
CORE_CLASS = "supervisor/core/job/job_core.h"
FUNCTION = re.compile(r"^  (?! |return|using|for|if)[^\n=]*\([^\n]*(?:;|\{|,)$", re.MULTILINE)
# JobCore decides nothing itself: machines do, each about a part of the state, of which others ask by the name of a question.
MOST_FUNCTIONS = 30
MOST_OF_ANY = 40
MOST_FILES = {"GangPhase": 10, "HostPhase": 14}
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
    ("supervisor/core/machines/late.cc", '#include "supervisor/core/machines/other.h"\n', "includes another machine"),
    ("supervisor/core/job/job_core.h", "".join(f"  void f{i}();\n" for i in range(300)), "300 functions, more than"),
    ("supervisor/core/gangs/late.h", "".join(f"  void f{i}();\n" for i in range(41)), "41 functions, more than"),
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
        others = [other for other in INCLUDES.findall(tree.read(path)) if not path.removesuffix(".cc").startswith(other.removesuffix(".h"))]
        if path.startswith(MACHINES) and others:
            found.append(f"{path}: includes another machine ({others[0]}): it is handed on by JobCore")
    for path in tree.cxx():
        if not path.startswith(CORE_ROOM) or not path.endswith(".h"):
            continue
        functions = len(FUNCTION.findall(COMMENT.sub("", tree.read(path))))
        most = MOST_FUNCTIONS if path == CORE_CLASS else MOST_OF_ANY
        if functions > most:
            found.append(f"{path}: {functions} functions, more than {most}: a decision of its own is a machine")
    for phase, most in MOST_FILES.items():
        named = [path for path in tree.cxx() if path.startswith("supervisor/") and re.search(rf"\b{phase}\b", tree.read(path))]
        if len(named) > most:
            found.append(f"{phase} is named in {len(named)} files, more than {most}: ask the core by a name of the question")
    return found
