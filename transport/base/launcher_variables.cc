#include "transport/base/launcher_variables.h"

#include <algorithm>

namespace monarch {

namespace {

constexpr std::array<std::string_view, 5> kForeignNames = {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS",
                                                           "SLURM_NPROCS", "MPI_LOCALRANKID"};
// PMI_, PMI2_ and PMIX_ all begin with the first.
constexpr std::array<std::string_view, 3> kForeignPrefixes = {"PMI", "OMPI_", "SLURM_STEP_"};

constexpr std::array<std::string_view, 9> kTalkingNames = {kNotifyVariable, kQuestionsVariable, kEventsVariable,
                                                           kVaultVariable,  "WATCHDOG_USEC",    "WATCHDOG_PID",
                                                           "LISTEN_FDS",    "LISTEN_PID",       "LISTEN_FDNAMES"};

}  // namespace

bool is_talking_variable(std::string_view name) {
  return std::find(kTalkingNames.begin(), kTalkingNames.end(), name) != kTalkingNames.end();
}

bool is_committed_variable(std::string_view name) { return name.starts_with("MONARCH_COMMITTED_"); }

bool is_foreign_launcher_variable(std::string_view name) {
  return std::find(kForeignNames.begin(), kForeignNames.end(), name) != kForeignNames.end() ||
         std::any_of(kForeignPrefixes.begin(), kForeignPrefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace monarch
