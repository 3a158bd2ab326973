#pragma once

// The limits that a process meets when it starts a process or a thread, which an error of the system does not name.
//
// Thread: any.

#include <cstdint>
#include <string>
#include <string_view>

#include "transport/base/result.h"

namespace monarch {

// What is behind EAGAIN of fork(2) and execve(2): "100 processes of this user at most: ulimit -u", or the group that is
// full; empty where neither explains it.
std::string processes_limit();

// Of pthread_create(3): the stack that a thread would have, where there is no room for one, else processes_limit().
std::string threads_limit();

// "starting a thread: Resource temporarily unavailable (100 processes of this user at most: ulimit -u)"
Error thread_error(int errno_value);

// What user code let out, with threads_limit() where it ends with the system's word for EAGAIN.
std::string with_threads_limit(std::string words);

// How much stack a process of ours needs in any case.
inline constexpr std::uint64_t kLeastStackBytes = 256U << 10U;

// Empty: it has that. "the stack may have 64KiB (ulimit -s), and 256KiB are needed at least"
std::string why_stack_is_too_small();

}  // namespace monarch
