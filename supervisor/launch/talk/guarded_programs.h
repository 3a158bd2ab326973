#pragma once

// GuardedPrograms: programs that run on this machine for the supervisor and are no ranks: the guard forks them, since
// only a process without threads may, and tells their ends. Each has three streams, given by who starts it.
//
// Thread: the supervisor's loop. Lifetime: shorter than the guard's.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/launch/guard.h"
#include "supervisor/launch/talk/programs.h"
#include "transport/base/ids.h"
#include "transport/base/result.h"

namespace monarch {

// Programs of the guard are keyed like ranks of a mesh that no spec can have; workers on virtual hosts are those of
// another one.
inline constexpr MeshId kProgramsMesh(0xFFFF'FFFEU);

class GuardedPrograms final : public Programs {
 public:
  GuardedPrograms(Guard& guard, Term term);

  Result<Ticket> start(std::vector<std::string> program, ProgramStreams streams, OnEnd on_end,
                       std::map<std::string, std::string> environment) override;
  void kill(Ticket ticket) override;
  void let_live(Ticket ticket) override;
  void disown(Ticket ticket) override;

  // From the guard's owner. Of whom that is the end of a program.
  enum class Owner : std::uint8_t { kNobody, kThis, kEarlier };
  Owner on_changed(const RankReport& report);
  void on_guard_lost();

 private:
  Incarnation key_of(Ticket ticket) const { return {{kProgramsMesh, Rank(ticket)}, {term_, 1}}; }

  Guard& guard_;
  Term term_;
  Ticket next_;
  std::map<Ticket, OnEnd> running_;
  bool guard_lost_ = false;
};

}  // namespace monarch
