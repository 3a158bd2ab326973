#pragma once

// Crew: the processes of one incarnation on some hosts: what their hosts hold for them, how far each of them is, when
// they have to have ended. What is its kind's alone stands beside it.
//
// Thread: values.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "supervisor/core/state/past_places.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"

namespace monarch {

enum class RankStage : std::uint8_t {
  kPending,   // no process
  kStarting,  // START was decided
  kRunning,
  kStopping,  // a stop was decided
  kEnded,     // see end
  kLost,      // its host is lost
};
constexpr RankStage monarch_enum_max(RankStage) { return RankStage::kLost; }

// Wanted alive: the stages in which a lease is granted.
inline bool lives(RankStage stage) {
  return stage == RankStage::kStarting || stage == RankStage::kRunning || stage == RankStage::kStopping;
}

enum class CrewPhase : std::uint8_t {
  kWaiting,    // nothing of it was begun, or is awaited
  kReserving,  // its hosts were asked to hold what it needs
  kStarting,   // START was decided; until all of its members are up
  kRunning,
  kStopping,
  kOver,  // what its members wrote last may still come
};
constexpr CrewPhase monarch_enum_max(CrewPhase) { return CrewPhase::kOver; }

struct CrewMember {
  RankStage stage = RankStage::kPending;
  std::int32_t pid = 0;
  bool at_gate = false;
  bool output_complete = false;
};

// What one host holds for a crew.
struct HostPorts {
  bool held = false;                 // it has answered
  std::vector<std::uint16_t> ports;  // as Reserved has them
};

struct Crew {
  CrewPhase phase = CrewPhase::kWaiting;
  Generation generation;         // the newest that was decided
  std::vector<HostId> hosts;     // in the order of its members
  std::vector<HostPorts> ports;  // of each of these
  std::vector<CrewMember> members;
  Instant deadline = Instant::never();  // until it is up, as its kind says; kStopping: when its hosts are given up
  Duration late_before;                 // as of JobState
  std::int32_t stop_signal = 15;        // of the stop that was ordered
  Duration stop_grace;                  // likewise
  std::vector<PastPlace> places;        // of its generations
};

inline bool any_lives(const Crew& crew) {
  return std::any_of(crew.members.begin(), crew.members.end(),
                     [](const CrewMember& member) { return lives(member.stage); });
}

// It is on its hosts, or about to be: nobody else starts there.
inline bool is_about(const Crew& crew) { return crew.phase != CrewPhase::kWaiting && crew.phase != CrewPhase::kOver; }

inline bool is_on(const Crew& crew, HostId host) {
  return std::find(crew.hosts.begin(), crew.hosts.end(), host) != crew.hosts.end();
}

// From TERM to KILL, of crews that have nothing to save.
inline constexpr Duration kCrewGrace = Duration::seconds(5);

}  // namespace monarch
