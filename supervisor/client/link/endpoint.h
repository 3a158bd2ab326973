#pragma once

// endpoint.json of a job's directory: where its supervisor listens for viewers on this machine, and, where others may
// come that share the directory, for those. The supervisor writes it before it says ready; a viewer that finds nobody
// there treats the supervisor as gone. It holds the secret key of viewers, and is its owner's alone to read (0600).
//
//   {"v":1,"host":"login1","pid":4711,"term":1,"socket":"/run/user/1000/monarch/hello-3fa2.sock",
//    "viewers":{"addresses":["10.0.0.7"],"port":40123,"server":"<z85>","public":"<z85>","secret":"<z85>"}}
//
// Thread: pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/result.h"

namespace monarch {

inline constexpr char kEndpointFile[] = "endpoint.json";
inline constexpr std::size_t kEndpointBytes = 64U << 10U;  // a larger file is not ours

// The supervisor's ViewerPort, for viewers on other machines.
struct ViewerDoorAddress {
  std::vector<std::string> addresses;  // numeric, of the supervisor's machine
  std::uint16_t port = 0;
  std::string server_key;  // z85
  std::string public_key;  // z85; of all viewers
  std::string secret_key;  // its half
  bool operator==(const ViewerDoorAddress&) const = default;
};

struct Endpoint {
  std::string host;  // the machine's own name
  std::int32_t pid = 0;
  Term term;
  std::string socket;
  std::optional<ViewerDoorAddress> viewers = {};  // nothing: only viewers on that machine may come
};

// gethostname(2), whole; empty where there is none.
std::string name_of_this_machine();

std::string write_endpoint(const Endpoint& endpoint);
Result<Endpoint> parse_endpoint(const std::string& json);

}  // namespace monarch
