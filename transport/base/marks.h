#pragma once

// The marks of a keeper, its daemon, its vault and its post, whose environment nobody may read: who looks for what a
// job left finds them by their command line. Ranks, and what they start, are found by their environment; see
// launcher_variables.h.
//
// A supervisor's mark is its job's directory.
//
// Thread: constants.

#include <string_view>

namespace monarch {

// monarch-worker [daemon|post|vault|step] --job UUID --host NAME
// monarch-worker workspace --job UUID --host NAME --job-id ID
// monarch supervise --job-dir DIRECTORY ...
inline constexpr std::string_view kDaemonArgument = "daemon";
inline constexpr std::string_view kVaultArgument = "vault";
inline constexpr std::string_view kPostArgument = "post";
inline constexpr std::string_view kStepArgument = "step";
inline constexpr std::string_view kWorkspaceArgument = "workspace";
inline constexpr std::string_view kJobArgument = "--job";
inline constexpr std::string_view kHostArgument = "--host";
inline constexpr std::string_view kJobIdArgument = "--job-id";
inline constexpr std::string_view kSuperviseArgument = "supervise";
inline constexpr std::string_view kJobDirectoryArgument = "--job-dir";

}  // namespace monarch
