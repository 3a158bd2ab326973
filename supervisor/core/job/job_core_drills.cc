// Drills: who injects faults into this job, written down before each blow, and what the drill's own blows explain. A
// failure that a fault explains is told with its number, and where the drill asks for that it is no evidence against a
// host; budgets and back-offs are those of any failure.

#include <algorithm>
#include <utility>

#include "supervisor/core/job/job_core.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

OpenFault* open_fault(DrillWatch& watch, std::uint32_t number) {
  const auto found = std::find_if(watch.open.begin(), watch.open.end(),
                                  [number](const OpenFault& fault) { return fault.number == number; });
  return found == watch.open.end() ? nullptr : &*found;
}

std::string said(const std::string& words) { return words.empty() ? "" : text(": ", printable(words)); }

}  // namespace

void JobCore::on(const DrillNoted& event) {
  if (state_.phase == JobPhase::kNew || state_.phase == JobPhase::kEnded) return;
  DrillWatch& watch = state_.drill;
  if (event.what == DrillWhat::kBegin && watch.drill.empty()) return begin_drill(event);
  if (watch.drill.empty()) return;
  if (event.what == DrillWhat::kStop) return stop_drill(event);
  if (event.drill != watch.drill) return;
  watch.until = now_ + watch.lease;
  if (event.what == DrillWhat::kFault) note_fault(event);
  if (event.what == DrillWhat::kUndone) note_undone(event);
  if (event.what == DrillWhat::kEnd) end_drill(printable(event.text));
}

void JobCore::begin_drill(const DrillNoted& event) {
  DrillWatch& watch = state_.drill;
  forget_over(watch, now_);
  for (OpenFault& fault : watch.open) fault.number = 0;
  watch.drill = event.drill;
  watch.name = printable(event.name);
  watch.who = event.who.empty() ? "an operator" : printable(event.who);
  watch.since = now_;
  watch.lease = event.lease;
  watch.until = now_ + event.lease;
  tell_of_drill(EventKind::kDrillBegun, Severity::kInfo, text("begins, by ", watch.who, said(event.text)));
}

void JobCore::stop_drill(const DrillNoted& event) {
  DrillWatch& watch = state_.drill;
  if (is_stopped(watch)) return;
  watch.stopped = watch.drill;
  watch.stopped_by = event.who.empty() ? "an operator" : printable(event.who);
  tell_of_drill(EventKind::kDrillStopped, Severity::kWarning,
                text("is stopped, asked by ", watch.stopped_by, said(event.text)));
}

void JobCore::end_drill(const std::string& why) {
  DrillWatch& watch = state_.drill;
  tell_of_drill(EventKind::kDrillEnded, Severity::kInfo, why.empty() ? "has ended" : text("has ended: ", why));
  watch.drill.clear();
  watch.name.clear();
  watch.who.clear();
  watch.until = Instant::never();
}

void JobCore::drill_is_due() {
  if (state_.drill.until > now_) return;
  end_drill(text("it was not heard of any more for ", to_text(state_.drill.lease)));
}

void JobCore::tell_of_drill(EventKind kind, Severity severity, const std::string& what) {
  JobEvent event = event_of(kind, severity, text("drill ", state_.drill.name, " ", what));
  event.details = {{"drill", state_.drill.drill}, {"name", state_.drill.name}};
  emit(std::move(event));
}

// Asked again, it was opened before.
void JobCore::note_fault(const DrillNoted& event) {
  DrillWatch& watch = state_.drill;
  forget_over(watch, now_);
  if (is_stopped(watch) || open_fault(watch, event.number) != nullptr) return;
  OpenFault fault{.number = event.number,
                  .forgiven = event.forgiven,
                  .until = now_ + event.lasts + spec_.supervision.lost_after + kDrillEcho,
                  .gangs = {}};
  if (event.rank) {
    fault.gangs.push_back({.mesh = event.rank->mesh, .gang = mesh_spec(event.rank->mesh).gang_of(event.rank->rank)});
  } else if (event.host) {
    fault.host = event.host;
    each_gang_on(*event.host, [&](MeshId m, GangId g) {
      if (!has_ended(gang(m, g).phase)) fault.gangs.push_back({.mesh = m, .gang = g});
    });
  }
  tell_of_fault(EventKind::kDrillFault, Severity::kWarning, event,
                event.lasts > Duration::zero() ? text(" for ", to_text(event.lasts)) : "");
  if (fault.host || !fault.gangs.empty()) watch.open.push_back(std::move(fault));
}

// What it did may still be on its way to be told.
void JobCore::note_undone(const DrillNoted& event) {
  if (OpenFault* fault = open_fault(state_.drill, event.number)) {
    if (std::exchange(fault->undone, true)) return;
    fault->until = now_ + spec_.supervision.lost_after + kDrillEcho;
  }
  tell_of_fault(EventKind::kDrillUndone, Severity::kInfo, event, " is taken back");
}

// "fault 3: hang of trainer/5 on v2 for 10s: …"
void JobCore::tell_of_fault(EventKind kind, Severity severity, const DrillNoted& event, const std::string& what) {
  std::string whom;
  JobEvent told = event_of(kind, severity, "");
  told.details = {{"drill", state_.drill.drill}, {"number", text(event.number)}, {"fault", printable(event.fault)}};
  const std::optional<HostId> where =
      event.rank && !event.host ? std::optional(placement_.host_of(*event.rank)) : event.host;
  if (event.rank) {
    told.mesh = mesh_spec(event.rank->mesh).name;
    told.rank = event.rank->rank.value();
    whom = text(" of ", told.mesh, "/", *told.rank);
    told.details.emplace_back("mesh", told.mesh);
    told.details.emplace_back("rank", text(*told.rank));
  }
  if (where) {
    told.host = hosts_[where->value()].name;
    whom += text(event.rank ? " on " : " of ", told.host);
    told.details.emplace_back("host", told.host);
  }
  if (event.lasts > Duration::zero()) told.details.emplace_back("lasts_ms", text(event.lasts.count_milliseconds()));
  told.message = text("fault ", event.number, ": ", printable(event.fault), whom, what, said(event.text));
  emit(std::move(told));
}

// What a fault of a drill explains says so, in words and for programs.
void JobCore::add_drill(JobEvent& event, const OpenFault* fault) {
  if (fault == nullptr) return;
  event.details.emplace_back("drill", text(fault->number));
  event.message += fault->number == 0 ? " (by a drill)" : text(" (by fault ", fault->number, " of a drill)");
}

bool JobCore::is_own_blow(MeshId mesh, GangId g) const {
  const OpenFault* fault = explains_failure(state_.drill, mesh, g, now_);
  return fault != nullptr && fault->forgiven;
}

bool JobCore::is_own_blow(HostId id) const {
  const OpenFault* fault = explains_loss(state_.drill, id, now_);
  return fault != nullptr && fault->forgiven;
}

}  // namespace monarch
