#pragma once

// ServantPorts: where the processes of one kind listen that serve beside the daemons of a job's hosts (vaults, posts),
// by what beats say of them.
//
// A supervisor that has just come back knows no ports yet. They are whole once those of all connected hosts are known,
// or were waited for long enough: for that of a host that has called, and, longer, for a host that has not. By half a
// list hosts would look for each other in too few places.
//
// Thread: the supervisor's loop. Lifetime: within the core's.

#include <cstdint>
#include <optional>
#include <vector>

#include "supervisor/core/job/job_core.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"

namespace monarch {

class ServantPorts {
 public:
  // Beats of a host that say that there is none: then it has none. A daemon that was started again finds it sooner.
  static constexpr Duration kGoneAfter = Duration::seconds(5);
  // After a supervisor's return, of hosts that call.
  static constexpr Duration kHeardWithin = Duration::seconds(5);
  // And of hosts that do not; mostly they are given up before.
  static constexpr Duration kCalledWithin = Duration::seconds(20);

  enum class Heard : std::uint8_t {
    kSame,
    kFirst,    // where it is, of one of which that was not known
    kChanged,  // where it is, or that there is none any more
  };

  // `returned`: when this supervisor came back.
  ServantPorts(const JobCore& core, std::optional<Instant> returned)
      : core_(core), returned_(returned), servants_(core.hosts().size()), whole_(!returned) {}

  // What a beat of this host says; 0: that there is none.
  Heard hear(HostId host, std::uint16_t port, Instant now);
  // 0: none is known of the worker that the host has now.
  std::uint16_t port(HostId host) const;
  // Beats have said for long enough that there is none.
  bool is_gone(HostId host) const;
  bool whole(Instant now);

 private:
  struct Servant {
    std::uint64_t incarnation = 0;  // of the worker whose it is
    std::uint16_t port = 0;         // 0: not known
    bool called = false;            // its host, or a worker of it before
    std::optional<Instant> absent;  // since when beats say that there is none
    bool gone = false;
  };
  std::uint64_t incarnation_of(HostId host) const { return core_.facts().host(host).incarnation; }

  const JobCore& core_;
  std::optional<Instant> returned_;
  std::vector<Servant> servants_;  // by HostId
  bool whole_ = false;             // once
};

}  // namespace monarch
