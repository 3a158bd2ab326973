#pragma once

// Hosts: which of them serve, whom they serve, and what may be asked of them.
//
// Thread: pure functions.

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "supervisor/core/crew/core_basis.h"

namespace monarch {

using GangOf = std::pair<MeshId, GangId>;

// It has a standby's place, and every rank has passed its gate, or has ended.
struct PlacedGang {
  MeshId mesh;
  GangId gang;
  std::vector<CrewMember> members;
};

inline constexpr std::size_t kLemonLosses = 3;  // within the window of `reallocate`

// From the worker's key to its hello: two round trips, on a machine that may be busy starting.
inline constexpr Duration kCallBackDeadline = Duration::seconds(20);

// Is this host on request, and was somebody asked for it who has not granted it yet?
bool is_in_queue(const CoreFacts& job, HostId id);
inline bool may_request(const CoreFacts& job) { return job.state.no_request_before <= job.now; }
bool is_free_to_launch(const CoreFacts& job, HostId id);
// As a host that is not taken.
bool may_take(const CoreFacts& job, HostId id);
// Something on its slot may run yet.
bool serves_gangs(const CoreFacts& job, HostId id);
// So, or what it wrote last is still to be read there. Where all has ended for good the slot may go to any host, and
// this one to another slot.
bool is_taken(const CoreFacts& job, HostId id);
bool lives_alone(const CoreFacts& job, MeshId mesh, GangId g, HostId where);
bool serves_parked_alone(const CoreFacts& job, HostId id);
// Which standby gang of its mesh has this gang's place.
std::optional<std::uint32_t> standby_of(const CoreFacts& job, MeshId mesh, GangId g);
// Is its end wanted, once what ran there last has been read?
bool is_to_end(const CoreFacts& job, HostId id);
// Does a standby gang live there, but for one that has this gang's place?
bool stands_by_on(const CoreFacts& job, HostId id, std::optional<GangOf> but_for);
// Does anything beside the gangs live?
bool any_lives_beside(const CoreFacts& job);
// What still runs there, and is not of this gang, for people; empty: nothing.
std::string runs_beside(const CoreFacts& job, HostId id, GangOf gang);
// Of connected ones those that are warm are taken first, and those where a standby gang waits last.
int order_of_spare(const CoreFacts& job, HostId id);
// How far this spare is warmed, in a word for status; empty: it is not.
std::string_view word_of_spare(const CoreFacts& job, HostId id);

// A host that was lost again and again, while the others suffice.
bool is_lemon(const CoreFacts& job, HostId id);
// A virtual host whose last worker is not proven to have ended.
bool is_occupied(const CoreFacts& job, const HostState& state);
// It serves still, and nothing new is to start there.
bool is_left(const HostState& host);
// What a host lacks it will lack; whatever else kept its worker from starting may pass.
bool lacks_something(const HostState& host);
LaunchFailure lack_of(const CoreFacts& job, HostId id, const std::string& what);
// From its end until it may be launched again, longer each time; `at_once` where its worker ended by itself.
Duration return_wait(const HostState& host, bool at_once);

// How long its worker may take to start: another host's needs the rest of start_timeout. And to say hello.
Duration launch_deadline(const CoreFacts& job);
Duration call_back_deadline(const CoreFacts& job);
// Of hosts with a disk of their own the output travels; of virtual ones it is where it belongs.
Duration drain_patience(const CoreFacts& job);

}  // namespace monarch
