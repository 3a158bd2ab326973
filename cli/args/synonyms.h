#pragma once

// What users of other launchers type, and how that is said here: commands and flags of torchrun, srun, mpirun, nomad,
// docker and kubectl. It only makes suggestions: none of these words is taken.
//
// Thread: constant data.

#include <optional>
#include <string>
#include <string_view>

namespace monarch {

// "run" for "launch"; nothing for what nobody else calls a command.
std::optional<std::string> command_meant(std::string_view written);
// "torchrun", "srun", "mpirun": `monarch init --from` takes a whole line of theirs.
bool is_other_launcher(std::string_view written);
// What to do instead of `run --nproc-per-node`, as a sentence without its full stop. `flag` is as typed, without a
// value.
std::optional<std::string> instead_of_flag(std::string_view command, std::string_view flag);

}  // namespace monarch
