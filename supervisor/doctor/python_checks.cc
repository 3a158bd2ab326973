#include "supervisor/doctor/python_checks.h"

#include <string>

#include "transport/base/text.h"
#include "transport/process/run_program.h"

namespace monarch::doctor {

namespace {

constexpr Duration kPythonPatience = Duration::seconds(4);  // less than all checks have together

// Lines: the interpreter, whether the package is ours, and its folder, or nothing. It is found, and not imported: torch
// takes seconds. The working directory is no place of a program's. Python takes a folder `actor` before a file
// `actor.py`: where both packages were installed into one folder it imports the actors of the other.
constexpr const char* kWhosePackage = R"(
import importlib.util, os, sys
sys.path = [path for path in sys.path if path]
found = importlib.util.find_spec("monarch")
folder = next(iter(found.submodule_search_locations or [found.origin]), "") if found else ""
has = lambda *names: os.path.exists(os.path.join(folder, *names))
ours = has("_tied.py") and not has("actor", "__init__.py")
print(sys.executable, ours, folder, sep="\n")
)";

// Up to the next newline; they are taken away.
std::string take_line(std::string& said) {
  const std::size_t newline = said.find('\n');
  std::string line = said.substr(0, newline);
  said.erase(0, newline == std::string::npos ? newline : newline + 1);
  return line;
}

}  // namespace

Findings check_python() {
  const std::string check = "python";
  auto said = run_program({"python3", "-c", kWhosePackage}, {.deadline = kPythonPatience});
  if (!said.ok() && said.error().code == ErrorCode::kNotFound) return {{.check = check, .found = "no python3 in PATH"}};
  if (!said.ok()) {
    return {{.check = check,
             .health = Health::kWarning,
             .found = text("python3: ", said.error().message),
             .means = "programs of Python do not start",
             .fix = "install Python anew, or put another python3 first in PATH"}};
  }
  const std::string python = printable(take_line(*said));
  const bool is_ours = take_line(*said) == "True";
  const std::string folder = take_line(*said);
  if (folder.empty()) return {{.check = check, .found = text(python, " has no package monarch of its own")}};
  if (is_ours) return {{.check = check, .found = text(python, " imports ours, ", printable(folder))}};
  return {{.check = check,
           .health = Health::kNote,
           .found = text(python, " imports another package monarch, ", printable(folder)),
           .means = "what imports monarch.actor runs on that one, such as torchmonarch, and not on this monarch",
           .fix = "PYTHONPATH=$(monarch python) python3 PROGRAM, or an environment without the other one"}};
}

}  // namespace monarch::doctor
