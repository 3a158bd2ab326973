#include "supervisor/core/accounts/drills.h"

#include <algorithm>
#include <utility>

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

void Drills::on(const DrillNoted& event) {
  if (basis_.state.phase == JobPhase::kNew || basis_.state.phase == JobPhase::kEnded) return;
  DrillWatch& watch = watch_;
  if (event.what == DrillWhat::kBegin && watch.drill.empty()) return begin(event);
  if (watch.drill.empty()) return;
  if (event.what == DrillWhat::kStop) return stop(event);
  if (event.drill != watch.drill) return;
  watch.until = basis_.now + watch.lease;
  if (event.what == DrillWhat::kFault) note_fault(event);
  if (event.what == DrillWhat::kUndone) note_undone(event);
  if (event.what == DrillWhat::kEnd) end(printable(event.text));
}

void Drills::begin(const DrillNoted& event) {
  DrillWatch& watch = watch_;
  forget_over(watch, basis_.now);
  for (OpenFault& fault : watch.open) fault.number = 0;
  watch.drill = event.drill;
  watch.name = printable(event.name);
  watch.who = event.who.empty() ? "an operator" : printable(event.who);
  watch.since = basis_.now;
  watch.lease = event.lease;
  watch.until = basis_.now + event.lease;
  tell(EventKind::kDrillBegun, Severity::kInfo, text("begins, by ", watch.who, said(event.text)));
}

void Drills::stop(const DrillNoted& event) {
  DrillWatch& watch = watch_;
  if (is_stopped(watch)) return;
  watch.stopped = watch.drill;
  watch.stopped_by = event.who.empty() ? "an operator" : printable(event.who);
  tell(EventKind::kDrillStopped, Severity::kWarning, text("is stopped, asked by ", watch.stopped_by, said(event.text)));
}

void Drills::end(const std::string& why) {
  DrillWatch& watch = watch_;
  tell(EventKind::kDrillEnded, Severity::kInfo, why.empty() ? "has ended" : text("has ended: ", why));
  watch.drill.clear();
  watch.name.clear();
  watch.who.clear();
  watch.until = Instant::never();
}

void Drills::look_at_times() {
  if (watch_.until > basis_.now) return;
  end(text("it was not heard of any more for ", to_text(watch_.lease)));
}

void Drills::tell(EventKind kind, Severity severity, const std::string& what) {
  JobEvent event = basis_.event(kind, severity, text("drill ", watch_.name, " ", what));
  event.details = {{"drill", watch_.drill}, {"name", watch_.name}};
  basis_.emit(std::move(event));
}

// Asked again, it was opened before.
void Drills::note_fault(const DrillNoted& event) {
  DrillWatch& watch = watch_;
  forget_over(watch, basis_.now);
  if (is_stopped(watch) || open_fault(watch, event.number) != nullptr) return;
  OpenFault fault{.number = event.number,
                  .forgiven = event.forgiven,
                  .until = basis_.now + event.lasts + basis_.spec.supervision.lost_after + kDrillEcho,
                  .gangs = {}};
  if (event.rank) {
    fault.gangs.push_back({.mesh = event.rank->mesh, .gang = basis_.mesh(event.rank->mesh).gang_of(event.rank->rank)});
  } else if (event.host) {
    fault.host = event.host;
    basis_.each_gang_on(*event.host, [&](MeshId m, GangId g) {
      if (!has_ended(basis_.gang(m, g).phase)) fault.gangs.push_back({.mesh = m, .gang = g});
    });
  }
  tell_of_fault(EventKind::kDrillFault, Severity::kWarning, event,
                event.lasts > Duration::zero() ? text(" for ", to_text(event.lasts)) : "");
  if (fault.host || !fault.gangs.empty()) watch.open.push_back(std::move(fault));
}

// What it did may still be on its way to be told.
void Drills::note_undone(const DrillNoted& event) {
  if (OpenFault* fault = open_fault(watch_, event.number)) {
    if (std::exchange(fault->undone, true)) return;
    fault->until = basis_.now + basis_.spec.supervision.lost_after + kDrillEcho;
  }
  tell_of_fault(EventKind::kDrillUndone, Severity::kInfo, event, " is taken back");
}

// "fault 3: hang of trainer/5 on v2 for 10s: …"
void Drills::tell_of_fault(EventKind kind, Severity severity, const DrillNoted& event, const std::string& what) {
  std::string whom;
  JobEvent told = basis_.event(kind, severity, "");
  told.details = {{"drill", watch_.drill}, {"number", text(event.number)}, {"fault", printable(event.fault)}};
  const std::optional<HostId> where =
      event.rank && !event.host ? std::optional(basis_.placement.host_of(*event.rank)) : event.host;
  if (event.rank) {
    told.mesh = basis_.mesh(event.rank->mesh).name;
    told.rank = event.rank->rank.value();
    whom = text(" of ", told.mesh, "/", *told.rank);
    told.details.emplace_back("mesh", told.mesh);
    told.details.emplace_back("rank", text(*told.rank));
  }
  if (where) {
    told.host = basis_.name_of(*where);
    whom += text(event.rank ? " on " : " of ", told.host);
    told.details.emplace_back("host", told.host);
  }
  if (event.lasts > Duration::zero()) told.details.emplace_back("lasts_ms", text(event.lasts.count_milliseconds()));
  told.message = text("fault ", event.number, ": ", printable(event.fault), whom, what, said(event.text));
  basis_.emit(std::move(told));
}

namespace {

bool is_forgiven(const OpenFault* fault) { return fault != nullptr && fault->forgiven; }

void add(JobEvent& event, const OpenFault* fault) {
  if (fault == nullptr) return;
  event.details.emplace_back("drill", text(fault->number));
  event.message += fault->number == 0 ? " (by a drill)" : text(" (by fault ", fault->number, " of a drill)");
}

}  // namespace

void Drills::add_failure(JobEvent& event, MeshId mesh, GangId gang) const {
  add(event, explains_failure(watch_, mesh, gang, basis_.now));
}

void Drills::add_loss(JobEvent& event, HostId host) const { add(event, explains_loss(watch_, host, basis_.now)); }

bool Drills::is_own_blow(MeshId mesh, GangId gang) const {
  return is_forgiven(explains_failure(watch_, mesh, gang, basis_.now));
}

bool Drills::is_own_blow(HostId host) const { return is_forgiven(explains_loss(watch_, host, basis_.now)); }

void Drills::failed(MeshId mesh, GangId gang) { note_failed(watch_, mesh, gang, basis_.now); }

void Drills::lost(HostId host) { note_lost(watch_, host, basis_.now); }

void Drills::recovered(MeshId mesh, GangId gang) { note_recovered(watch_, mesh, gang); }

void Drills::returned() {
  not_before(watch_.until, basis_.now + std::max(watch_.lease, kAnswersWithin));
  for (OpenFault& fault : watch_.open) not_before(fault.until, basis_.now + kAnswersWithin);
}

}  // namespace monarch
