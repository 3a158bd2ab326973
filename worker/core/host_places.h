#pragma once

// Where a worker on a machine of its own keeps its things: what a Bootstrap that leaves its folders empty means, and
// what whoever looks for what a worker left finds again from the job's and the host's name alone.
//
// Thread: pure functions.

#include <string>

#include "transport/base/result.h"
#include "transport/messages/bootstrap.h"
#include "worker/core/environment.h"

namespace monarch {

// In a worker's folder of sockets: where ranks ask the host's vault, and where its daemon talks to it.
inline constexpr std::string_view kVaultDoor = "vault";
inline constexpr std::string_view kVaultDaemonDoor = "vault.d";
// The same of its post, where ranks call and are called.
inline constexpr std::string_view kPostDoor = "post";
inline constexpr std::string_view kPostDaemonDoor = "post.d";

// The path of that in this folder.
std::string post_door(const std::string& socket_directory);

struct HostPlaces {
  std::string state_directory;  // $XDG_STATE_HOME/monarch/hosts/<job>/<host>
  std::string log_directory;    // …/logs
};

// kInvalid: the environment has neither HOME nor XDG_STATE_HOME, or a name is no part of a path.
Result<HostPlaces> host_places(const Environment& environment, const std::string& job_id, const std::string& host_name);

// Fills in the folders of a bootstrap that names no state_directory; one that does is left as it is.
Status settle_places(Bootstrap& bootstrap, const Environment& environment, const std::string& socket_directory);

// Whether a name can be a folder: not empty, at most 255 bytes, without a slash, and not beginning with a dot.
bool is_folder_name(const std::string& name);

}  // namespace monarch
