#pragma once

// How long what a worker says may be. It holds each before it says it, by cutting or refusing; and a supervisor, which
// may be told anything by a host that is somebody else's, reads no message in which one is longer (wire/from_host.h).

#include <cstddef>
#include <cstdint>

#include "transport/base/time.h"

namespace monarch {

// What a rank says of itself.
inline constexpr std::size_t kStatusBytes = 200;  // of STATUS; the rest is cut
inline constexpr std::size_t kPhaseBytes = 32;
inline constexpr std::size_t kMetricNameBytes = 32;
inline constexpr std::size_t kMetricValueBytes = 32;
inline constexpr std::size_t kMetrics = 16;           // of a rank, by name; one more is counted as bad
inline constexpr std::size_t kCommitWhatBytes = 128;  // a longer one is refused

namespace limits {

// What a worker says of itself and of its ranks.
inline constexpr std::size_t kNameBytes = 255;    // of a host, a program's file
inline constexpr std::size_t kWordBytes = 128;    // a version, a key in z85, a boot's id, an address, a device's uuid
inline constexpr std::size_t kPathBytes = 4'096;  // PATH_MAX
inline constexpr std::size_t kExplanationBytes = 8'192;  // why something failed, with the path of it
inline constexpr std::size_t kGpusPerHost = 1'024;
inline constexpr Duration kLongestTime = Duration::seconds(std::int64_t{100} * 366 * 24 * 3'600);

}  // namespace limits

}  // namespace monarch
