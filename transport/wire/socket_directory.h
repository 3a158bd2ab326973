#pragma once

// A folder of sockets of our own, such as a worker's doors for its ranks: made with mode 0700, and removed whoever made
// it, since what a killed process left there is its successor's to clear.
//
// Thread: any; touches the file system.

#include <string>
#include <string_view>

#include "transport/base/result.h"

namespace monarch {

// How the name of a socket ends at which a rank gives out tensors: the rank makes it beside its doors, and the keeper
// removes it with those.
inline constexpr std::string_view kTensorSocketEnd = ".t";

// How the names of the folders of a job's workers begin, in the runtime directory: "w-", eight digits of its uuid, and
// "-".
std::string socket_directory_prefix(const std::string& job_uuid);

// That of a worker on a machine of its own, found again by the names of its job and host alone. Short, however long
// those are.
std::string host_socket_directory(const std::string& runtime_directory, const std::string& job_uuid,
                                  const std::string& host_name);

// Its parent must be there. One that is there already must be ours and closed to others: kInvalid if it is not.
Status make_socket_directory(const std::string& path);

// Removes the sockets in it whose names begin and end so: what a process of theirs has left that was killed.
void remove_sockets(const std::string& directory, std::string_view begin, std::string_view end);

// Removes the sockets in it, and it. What is not ours, or holds anything else, stays. True if nothing is there
// afterwards.
bool remove_socket_directory(const std::string& path);

}  // namespace monarch
