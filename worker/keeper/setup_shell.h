#pragma once

// Runs a `setup` in bash, and answers what it exported. Only the environment counts: where it changes directory, what
// it limits and what it defines without exporting ends with it. What it leaves running belongs to the rank whose
// process ran it, and ends with that.
//
// Thread: the only one of a rank's process before its program, whose group and containment bash is in. Blocks for as
// long as bash takes.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "transport/process/spawn.h"

namespace monarch {

// NAME=value lines. A signal that came meanwhile takes effect after bash has ended, and ends this process as it would
// have at once: bash has the whole grace of an orderly stop.
std::variant<std::vector<std::string>, StepFailure> run_setup(const std::string& setup,
                                                              const std::vector<std::string>& environment);

// What `env -0` wrote, without what bash and the running of the setup added; names that only a shell's own accounting
// changes are as in `before`.
std::vector<std::string> exported_lines(std::string_view captured, const std::vector<std::string>& before);

}  // namespace monarch
