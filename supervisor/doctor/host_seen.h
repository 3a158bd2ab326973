#pragma once

// HostSeen: all that was learnt of one host of a pool, by itself, by its neighbours and by the way there; and
// HostFinding, what is said of it. No judgement is made here.
//
// Thread: values.

#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/state/launch_failure.h"
#include "supervisor/doctor/finding.h"
#include "supervisor/launch/ssh/session/ssh_target.h"
#include "transport/base/time.h"
#include "transport/messages/check.h"
#include "transport/messages/launch.h"

namespace monarch::doctor {

// The host's clock less this machine's: the truth lies within `bound` of `offset`.
struct ClockSample {
  Duration offset;
  Duration bound;
};

// From when a request left here and was received there, and its answer left there and came here.
ClockSample clock_sample(WallTime left, WallTime received, WallTime answered, WallTime came);

// A token that one host wrote and this one was asked for.
struct TokenSeen {
  std::string writer;
  std::string expected;
  TokenFound found;
};

struct HostSeen {
  std::string name;
  SshRoute route;                        // for commands to copy
  std::optional<LaunchFailure> failure;  // nothing else, or nothing more, is known of it
  bool silent = false;                   // it had not answered when the time was up
  std::string late;                      // as of FairTimer: meanwhile
  Duration reached_after;                // until its first answer
  bool copied = false;                   // the worker was not there before
  std::optional<ClockSample> clock;
  std::optional<HostFacts> facts;
  bool tunnel = false;               // its sshd leads ports back, as control.via wants it
  std::string no_call_back_because;  // empty: it was asked to call
  std::vector<DoorReached> call_back;
  std::string no_door_because;          // empty: its neighbours were asked to knock
  std::vector<DoorReached> neighbours;  // at which it knocked
  std::vector<FolderFacts> folders;
  std::vector<ProgramFacts> programs;
  std::vector<TokenFound> written;
  std::vector<TokenSeen> tokens;
};

struct HostFinding {
  std::string host;
  Finding finding;
};
using HostFindings = std::vector<HostFinding>;

}  // namespace monarch::doctor
