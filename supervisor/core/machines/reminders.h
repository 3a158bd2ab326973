#pragma once

// Reminders: while the job runs, for whom a gang waits is said again every 30 s, with what is known of its end and what
// an operator can do; and so is who is left alone on purpose. Nothing is decided here.
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include <string>

#include "supervisor/core/crew/core_basis.h"
#include "supervisor/core/crew/times.h"

namespace monarch {

class Reminders {
 public:
  Reminders(const CoreBasis& basis, ReminderState& mine) : basis_(basis), mine_(mine) {
    for (const MeshSpec& mesh : basis.spec.meshes) mine_.gangs.emplace_back(mesh.gangs());
  }
  void look_at_times();
  // At the end of a step: who waits since now.
  void tend();
  template <class Visit>
  void each_time(Visit& visit) const {
    visit(mine_.held_since, TimeKind::kPast);
    visit(mine_.hold_at, TimeKind::kAlarm);
    for (auto& mesh : mine_.gangs) {
      for (GangReminder& gang : mesh) {
        visit(gang.since, TimeKind::kPast);
        visit(gang.at, TimeKind::kAlarm);
      }
    }
  }

 private:
  std::string text_of(MeshId mesh, GangId g) const;
  void remind_of_holds();

  const CoreBasis& basis_;
  ReminderState& mine_;
};

}  // namespace monarch
