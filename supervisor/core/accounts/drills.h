#pragma once

// Drills: who injects faults into this job, written down before each blow, and what the drill's own blows explain. A
// failure that a fault explains is told with its number, and where the drill asks for that it is no evidence against a
// host; budgets and back-offs are those of any failure.
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include <string>

#include "supervisor/core/crew/core_basis.h"
#include "supervisor/core/crew/times.h"
#include "supervisor/core/state/events.h"

namespace monarch {

class Drills {
 public:
  Drills(const CoreBasis& basis, DrillWatch& mine) : basis_(basis), watch_(mine) {}

  void on(const DrillNoted& event);
  void look_at_times();
  void returned();

  // Is this failure, or the loss of this host, a drill's own doing, and no evidence against anybody?
  bool is_own_blow(MeshId mesh, GangId gang) const;
  bool is_own_blow(HostId host) const;
  // What a fault explains says so, in words and for programs.
  void add_failure(JobEvent& event, MeshId mesh, GangId gang) const;
  void add_loss(JobEvent& event, HostId host) const;
  void failed(MeshId mesh, GangId gang);
  void lost(HostId host);
  // The gang is past where it was, or will never be.
  void recovered(MeshId mesh, GangId gang);

  template <class Visit>
  void each_time(Visit& visit) const {
    visit(watch_.since, TimeKind::kPast);
    visit(watch_.until, TimeKind::kPatience);
    for (OpenFault& fault : watch_.open) visit(fault.until, TimeKind::kGrace);
  }

 private:
  void begin(const DrillNoted& event);
  void stop(const DrillNoted& event);
  void end(const std::string& why);
  void note_fault(const DrillNoted& event);
  void note_undone(const DrillNoted& event);
  void tell(EventKind kind, Severity severity, const std::string& what);
  void tell_of_fault(EventKind kind, Severity severity, const DrillNoted& event, const std::string& what);

  const CoreBasis& basis_;
  DrillWatch& watch_;
};

}  // namespace monarch
