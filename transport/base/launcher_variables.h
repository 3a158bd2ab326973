#pragma once

// Names of environment variables that a rank does not get from whoever started the job, or gets from its worker alone:
// what the worker does, and `plan` tells beforehand.
//
// Thread: pure functions and constants.

#include <array>
#include <string_view>

namespace monarch {

// Variables by which Slurm and MPI launchers tell a process its place. Left in, a rank would believe that it is theirs.
bool is_foreign_launcher_variable(std::string_view name);

// What systemd tells a service, and we a rank, about sockets to talk to. Left in, a rank would talk to somebody else's.
bool is_talking_variable(std::string_view name);

// What we tell a rank of its gang's checkpoints. Left in, a rank of a job within a rank would go on from the outer
// one's.
bool is_committed_variable(std::string_view name);

// The marks by which a rank's processes are found again; MONARCH_HOST is one too, and no secret before the start.
inline constexpr std::string_view kHostVariable = "MONARCH_HOST";
inline constexpr std::string_view kJobUuidVariable = "MONARCH_JOB_UUID";
inline constexpr std::string_view kRankKeyVariable = "MONARCH_RANK_KEY";
// Where a rank talks back (monarch-rank(7)).
inline constexpr std::string_view kNotifyVariable = "NOTIFY_SOCKET";
inline constexpr std::string_view kQuestionsVariable = "MONARCH_SOCKET";
inline constexpr std::string_view kEventsVariable = "MONARCH_EVENTS";
inline constexpr std::string_view kVaultVariable = "MONARCH_VAULT";
// What monarch-rank is to be (worker/rank/rank_manifest.h).
inline constexpr std::string_view kActorsVariable = "MONARCH_ACTORS";
inline constexpr std::string_view kPostVariable = "MONARCH_POST";
inline constexpr std::string_view kRestartCauseVariable = "MONARCH_RESTART_CAUSE";
inline constexpr std::string_view kTensorsVariable = "MONARCH_TENSORS";  // lanes for tensors: "shm,verbs,tcp"
inline constexpr std::string_view kUnpinnedWord = "unpinned";        // among them: no driver of GPUs is to know memory
inline constexpr std::string_view kTrustVariable = "MONARCH_TRUST";  // meshes.*.trust, of ranks that call or are called
inline constexpr std::string_view kRankLibraryVariable = "MONARCH_RANK_LIBRARY";
inline constexpr std::string_view kStandbyVariable = "MONARCH_STANDBY";
inline constexpr std::array<std::string_view, 8> kChosenAtStart = {
    kJobUuidVariable, kRankKeyVariable, kNotifyVariable, kQuestionsVariable,
    kEventsVariable,  kVaultVariable,   kPostVariable,   kRankLibraryVariable};

}  // namespace monarch
