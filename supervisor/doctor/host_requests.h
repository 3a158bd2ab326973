#pragma once

// What hosts are asked, round by round, by the spec and by what they have answered so far.
//
// Thread: pure functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/doctor/host_seen.h"
#include "transport/messages/check.h"

namespace monarch::doctor {

// A host that answers, in the order of the pool.
struct Present {
  std::size_t host = 0;
  DoorCall door;  // at which its neighbours knock; port 0: it has none
};

// The first one of a host of the pool, by the meshes whose ranks may come there: without the doors of this machine,
// which the session knows.
CheckRequest look_request(const JobSpec& spec, std::size_t host);

// Whether ranks of the mesh may come to a host of the pool: a host without a slot may come to any.
bool may_have_ranks(const JobSpec& spec, std::uint32_t mesh, std::size_t host);

// Of each host that is present, in their order: to knock at the neighbours on both sides, and to write the tokens of
// folders of which it is the first that can. Nothing: it is asked nothing.
std::vector<std::optional<CheckRequest>> meet_requests(const JobSpec& spec, const std::vector<Present>& present,
                                                       const std::vector<HostSeen>& hosts,
                                                       const std::string& token_name);

// To read the tokens that others wrote.
struct WrittenToken {
  std::size_t writer = 0;
  TokenOrder order;
};
std::vector<std::optional<CheckRequest>> read_requests(const std::vector<Present>& present,
                                                       const std::vector<HostSeen>& hosts,
                                                       const std::vector<WrittenToken>& tokens);

}  // namespace monarch::doctor
