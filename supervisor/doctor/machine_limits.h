#pragma once

// Where a machine has too little for a job, and how a limit of its kernel is written: the same for this machine and for
// hosts that tell of themselves. Whether too little is a fault or worth a word is decided by who looks.
//
// Thread: pure functions.

#include <cstdint>
#include <string>

namespace monarch::doctor {

inline constexpr std::uint64_t kFewFiles = 4096;            // a link per host and pipes per rank, with room to spare
inline constexpr std::uint64_t kSmallShm = 1ULL << 30U;     // containers get 64 MiB unless told otherwise
inline constexpr std::uint64_t kLittleSpace = 1ULL << 30U;  // on the disk
inline constexpr std::uint64_t kNoSpace = 8ULL << 20U;      // below it, a job is refused

// "4096" or "unlimited", where a limit is kUnlimited (RLIM_INFINITY).
std::string limit_text(std::uint64_t limit);
// The same of bytes: "64 KiB".
std::string bytes_limit_text(std::uint64_t limit);

}  // namespace monarch::doctor
