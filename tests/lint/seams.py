"""What knows what stays few: a launcher's kind is named in its own folder and in that of the spec, and exit codes in one header."""

import re

LAUNCHES = ("supervisor/launch/", "supervisor/spec/")
KIND = re.compile(r"\bLaunch(Local|Ssh|Slurm|Command)\b")
EXIT_CODES = "transport/base/exit_code.h"
EXIT_CODE = re.compile(r"\bconstexpr\s+(?:int|unsigned|auto)\s+kExit[A-Z]\w*\s*=")
PRODUCT = ("cli/", "supervisor/", "worker/", "transport/")
COMMENT = re.compile(r"//[^\n]*|#include[^\n]*")

CLEAN = {
    "supervisor/launch/ssh/ssh_spec.h": "struct LaunchSsh {};\n",
    "supervisor/spec/job/build.cc": "Launch made = LaunchLocal{};\n",
    "supervisor/core/core.cc": "// LaunchSsh says it.\nbool here = spec.launch.facts().one_machine;\n",
    "transport/base/exit_code.h": "inline constexpr int kExitLost = 92;\n",
    "tests/supervisor/core_test.cc": "spec.launch = LaunchLocal{};\n",
}
PLANTS = [
    ("supervisor/core/late.cc", "auto* ssh = spec.launch.as<LaunchSsh>();\n", "names a launcher's kind"),
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
        if EXIT_CODE.search(text) and path != EXIT_CODES:
            found.append(f"{path}: an exit code stands in {EXIT_CODES} and nowhere else")
    return found
