#pragma once

// endpoint.json of a job's directory: where its supervisor listens for viewers on this machine. The supervisor writes it before it
// says ready; a viewer that finds nobody there treats the supervisor as gone.
//
//   {"v":1,"host":"login1","pid":4711,"term":1,"socket":"/run/user/1000/monarch/hello-3fa2.sock"}
//
// Thread: pure functions.

#include <cstdint>
#include <string>

#include "transport/base/ids.h"
#include "transport/base/result.h"

namespace monarch {

inline constexpr char kEndpointFile[] = "endpoint.json";
inline constexpr std::size_t kEndpointBytes = 64U << 10U;  // a larger file is not ours

struct Endpoint {
  std::string host;  // the machine's own name
  std::int32_t pid = 0;
  Term term;
  std::string socket;
};

std::string write_endpoint(const Endpoint& endpoint);
Result<Endpoint> parse_endpoint(const std::string& json);

}  // namespace monarch
