#include "supervisor/doctor/python_checks.h"

#include <filesystem>

#include "transport/base/text.h"
#include "transport/process/run_program.h"

namespace monarch::doctor {

namespace {

constexpr Duration kPythonPatience = Duration::seconds(4);  // less than all checks have together

// Two lines: the interpreter, and the folder of the package, or nothing. The package is only found, not imported: torch
// takes seconds. The working directory is no place of a program's.
constexpr const char* kWhosePackage = R"(
import importlib.util, sys
sys.path = [path for path in sys.path if path]
found = importlib.util.find_spec("monarch")
print(sys.executable)
print(next(iter(found.submodule_search_locations or [found.origin]), "") if found else "")
)";

// Python takes a folder `actor` before a file `actor.py`: where both packages were installed into one folder it imports
// the actors of the other.
bool is_ours(const std::filesystem::path& folder) {
  std::error_code unreadable;
  return std::filesystem::exists(folder / "_tied.py", unreadable) &&
         !std::filesystem::exists(folder / "actor" / "__init__.py", unreadable);
}

}  // namespace

Findings check_python() {
  const std::string check = "python";
  const auto said = run_program({"python3", "-c", kWhosePackage}, {.deadline = kPythonPatience});
  if (!said.ok() && said.error().code == ErrorCode::kNotFound) return {{.check = check, .found = "no python3 in PATH"}};
  if (!said.ok()) {
    return {{.check = check,
             .health = Health::kWarning,
             .found = text("python3: ", said.error().message),
             .means = "programs of Python do not start",
             .fix = "install Python anew, or put another python3 first in PATH"}};
  }
  const std::size_t newline = said->find('\n');
  const std::string python = printable(said->substr(0, newline));
  std::string folder = newline == std::string::npos ? std::string() : said->substr(newline + 1);
  while (folder.ends_with('\n')) folder.pop_back();
  if (folder.empty()) return {{.check = check, .found = text(python, " has no package monarch of its own")}};
  if (is_ours(folder)) return {{.check = check, .found = text(python, " imports ours, ", printable(folder))}};
  return {{.check = check,
           .health = Health::kNote,
           .found = text(python, " imports another package monarch, ", printable(folder)),
           .means = "what imports monarch.actor runs on that one, such as torchmonarch, and not on this monarch",
           .fix = "PYTHONPATH=$(monarch python) python3 PROGRAM, or an environment without the other one"}};
}

}  // namespace monarch::doctor
