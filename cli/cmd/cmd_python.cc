#include <fcntl.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/args/say.h"
#include "cli/commands.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

// Where the folder is, from that of the command: of an installation, which may have been moved as a whole, and of a
// build tree.
constexpr std::array kPythonPlaces = {"../share/monarch/python", "../worker/python"};

bool holds_the_package(const std::filesystem::path& folder) {
  return UniqueFd(::open((folder / "monarch" / "__init__.py").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)).valid();
}

int run_python(const Arguments&, Context& context) {
  const std::filesystem::path here = std::filesystem::path(context.executable).parent_path();
  std::vector<std::string> tried;
  for (const char* place : kPythonPlaces) {
    const std::string folder = (here / place).lexically_normal().string();
    if (!holds_the_package(folder)) {
      tried.push_back(printable(folder));
      continue;
    }
    if (folder.find(':') != std::string::npos) {
      say_error(context.terminal, {.id = "E0908",
                                   .message = text("the folder is ", printable(folder),
                                                   ", and PYTHONPATH takes no path with a `:` in it"),
                                   .help = "move the installation"});
      return kExitInternal;
    }
    write_out(context.terminal, folder + "\n");
    return kExitOk;
  }
  say_error(context.terminal, {.id = "E0908",
                               .message = text("the Python package is missing; looked for ", join(tried, ", ")),
                               .help = "install monarch anew"});
  return kExitInternal;
}

}  // namespace

Command python_command() {
  return {.name = "python",
          .summary = "print the folder of the Python package, for PYTHONPATH",
          .description = "A program written for PyTorch Monarch runs by PYTHONPATH=$(monarch python) python3 PROGRAM.",
          .flags = {},
          .positionals = {},
          .run = run_python};
}

}  // namespace monarch
