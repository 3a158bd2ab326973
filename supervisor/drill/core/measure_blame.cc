#include "supervisor/drill/core/measure_blame.h"

#include <algorithm>
#include <array>
#include <utility>

namespace monarch::drill {

namespace {

using enum EventKind;

enum class Subject : std::uint8_t { kNone, kGang, kHost, kSupervisor };

constexpr std::array kOfGangs = {kGangWaiting, kGangStarting, kGangRunning,  kGangReady,     kGangCaughtUp,
                                 kGangDone,    kGangFailed,   kGangParked,   kGangReturning, kGangEnded,
                                 kRankHung,    kRankStopped,  kRankContinued};
constexpr std::array kOfHosts = {kHostReady,       kHostFailed,    kHostSuspect,  kHostHeard,  kHostReached,
                                 kHostUnreachable, kHostsHeld,     kHostLost,     kHostWedged, kHostReplaced,
                                 kHostQuarantined, kHostDoubtful,  kHostRecalled, kHostDaemon, kHostPressure,
                                 kHostOutOfReach,  kPostUnreached, kPostEnded};
constexpr std::array kOfSupervisors = {kSupervisorReturned, kSupervisorAdopted, kSupervisorStoodStill, kGuardLost,
                                       kJournalStuck,       kJournalMended,     kJournalFailed};
// Somebody is said to have failed, or is moved or started again.
constexpr std::array kOfBlame = {kHostFailed,   kHostSuspect,  kHostsHeld,       kHostLost,     kHostWedged,
                                 kHostReplaced, kHostDaemon,   kHostQuarantined, kHostDoubtful, kGangFailed,
                                 kGangParked,   kGangStarting, kRankHung,        kRankStopped,  kSupervisorReturned,
                                 kGuardLost,    kJournalStuck, kJournalFailed,   kPostEnded};
// The drill's own blows at a host are no evidence against it.
constexpr std::array kOfDoubt = {kHostQuarantined, kHostDoubtful};

template <class Kinds>
bool is_in(const Kinds& kinds, EventKind kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

Subject subject_of(EventKind kind) {
  if (is_in(kOfGangs, kind)) return Subject::kGang;
  if (is_in(kOfHosts, kind)) return Subject::kHost;
  return is_in(kOfSupervisors, kind) ? Subject::kSupervisor : Subject::kNone;
}

class Explainer {
 public:
  Explainer(const Run& run, const TimeSheet& sheet) : run_(run), sheet_(sheet), record_(*run.record) {
    for (const Blow& blow : record_.blows) {
      BlowStory story{.fault = find_fault(blow.fault)};
      const bool felt_late = story.fault != nullptr && story.fault->cost == FaultCost::kIfFelt;
      story.explains = blow.end == BlowEnd::kEffective || (blow.end == BlowEnd::kInert && felt_late);
      blame_.stories.push_back(std::move(story));
    }
    for (std::size_t i = 0; i < record_.blows.size(); ++i) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(),
                     [this](std::size_t a, std::size_t b) { return since(a) < since(b); });
    starts_.resize(run.gangs.size());
  }

  Blame all() && {
    for (const RunEvent& one : run_.by_time) note(one);
    return std::move(blame_);
  }

 private:
  WallTime since(std::size_t i) const {
    const Blow& blow = record_.blows[i];
    return later(struck_at(run_, blow), Duration::zero() - blow.clock_error);
  }
  // The consequences of a silence come that late.
  Duration grace() const {
    return std::min(record_.times.lost_after, kLongest) + std::min(record_.times.lease, kLongest) +
           Duration::seconds(2);
  }

  bool is_about(const Blow& blow, const RunEvent& one, Subject subject) const;
  bool is_open(std::size_t i, const RunEvent& one, Subject subject) const;
  bool goes_on(std::size_t i, WallTime at) const;
  std::optional<std::size_t> explainer_of(const RunEvent& one, Subject subject) const;
  void note(const RunEvent& one);
  void take(std::size_t i, const RunEvent& one, Subject subject);
  void take_gang(BlowStory& story, const RunEvent& one);
  void recovered(GangStory& gang, WallTime at, const JobEvent& event);
  void ask_samples(GangStory& gang, std::uint32_t place, WallTime running) const;
  bool is_blame(const RunEvent& one) const;
  bool was_struck(const std::string& host, WallTime before) const;
  bool soon_after_a_blow(WallTime at) const;

  // How often a gang was started, and whether what nobody explains has ended it since.
  struct Starts {
    std::uint32_t times = 0;
    bool told = false;
  };

  const Run& run_;
  const TimeSheet& sheet_;
  const DrillRecord& record_;
  std::vector<std::size_t> order_;  // of blows, by when they struck
  std::vector<Starts> starts_;      // by gang
  bool stopping_ = false;           // what follows is the job's own end
  Blame blame_;
};

bool Explainer::is_about(const Blow& blow, const RunEvent& one, Subject subject) const {
  if (run_.planted(MeasureMutant::kAnyTarget)) return true;
  const JobEvent& event = *one.event;
  const BlowTarget& target = blow.target;
  switch (subject) {
    case Subject::kNone: return false;
    case Subject::kSupervisor: return target.host.empty() && target.mesh.empty();
    case Subject::kHost:
      if (!target.mesh.empty() || target.host.empty()) return false;
      if (event.kind == kHostReplaced) return detail_of(event, "replaces") == std::string_view(target.host);
      return event.host.empty() || event.host == target.host;
    case Subject::kGang:
      if (!one.gang) return false;
      return strikes(run_, blow, *one.gang);
  }
  return false;
}

// May what follows from it still come, of those that have shown nothing yet?
bool Explainer::goes_on(std::size_t i, WallTime at) const {
  const Blow& blow = record_.blows[i];
  const BlowStory& story = blame_.stories[i];
  if (run_.planted(MeasureMutant::kNeverRecovered)) return true;
  const bool lasts = blow.lasts > Duration::zero();
  if (!lasts && !story.seen) return true;
  WallTime last = over_at(run_, blow);
  if (story.seen) last = std::max(last, *story.seen);
  return at <= later(last, grace());
}

bool Explainer::is_open(std::size_t i, const RunEvent& one, Subject subject) const {
  const BlowStory& story = blame_.stories[i];
  if (run_.planted(MeasureMutant::kNeverRecovered)) return true;
  if (subject == Subject::kHost && story.host_hurt) return true;
  if (subject == Subject::kGang) {
    const auto gang = story.gangs.find(*one.gang);
    if (gang != story.gangs.end() && gang->second.failed) {
      return !gang->second.recovered || one.event->time <= *gang->second.recovered;
    }
  }
  return goes_on(i, one.event->time);
}

// The last that struck the same decides: what came before it is over.
std::optional<std::size_t> Explainer::explainer_of(const RunEvent& one, Subject subject) const {
  if (subject == Subject::kNone || (subject == Subject::kGang && !one.gang)) return std::nullopt;
  for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
    if (!blame_.stories[*at].explains || one.event->time < since(*at)) continue;
    if (!is_about(record_.blows[*at], one, subject)) continue;
    return is_open(*at, one, subject) ? std::optional(*at) : std::nullopt;
  }
  return std::nullopt;
}

bool Explainer::is_blame(const RunEvent& one) const {
  const bool watched = record_.control_from != WallTime{} && one.event->time >= record_.control_from && !stopping_;
  if (!watched || !is_in(kOfBlame, one.event->kind)) return false;
  if (one.event->kind != kGangStarting) return true;
  return one.gang && starts_[*one.gang].times > 0 && !starts_[*one.gang].told;
}

bool Explainer::was_struck(const std::string& host, WallTime before) const {
  for (std::size_t i = 0; i < record_.blows.size(); ++i) {
    if (record_.blows[i].end == BlowEnd::kSkipped) continue;
    if (record_.blows[i].target.host == host && since(i) <= before) return true;
  }
  return false;
}

bool Explainer::soon_after_a_blow(WallTime at) const {
  for (std::size_t i = 0; i < record_.blows.size(); ++i) {
    if (since(i) <= at && at <= later(since(i), Duration::seconds(60))) return true;
  }
  return false;
}

void Explainer::note(const RunEvent& one) {
  const JobEvent& event = *one.event;
  const Subject subject = subject_of(event.kind);
  std::optional<std::size_t> by = explainer_of(one, subject);
  const bool blame = is_blame(one);
  stopping_ = stopping_ || event.kind == kJobStopping;
  const bool doubt = is_in(kOfDoubt, event.kind) && was_struck(event.host, event.time);
  const bool own = doubt && record_.scenario.budgets != Budgets::kReal;
  const bool by_time = run_.planted(MeasureMutant::kBlameByTime) && soon_after_a_blow(event.time);
  if (blame) ++blame_.blamed;
  if (own && !run_.planted(MeasureMutant::kOwnQuarantine)) {
    if (blame) blame_.own.push_back(&event);
  } else if (by || doubt || by_time) {
    if (blame) ++blame_.explained;
  } else if (blame) {
    blame_.unexplained.push_back(&event);
  }
  if (by) take(*by, one, subject);
  if (event.kind == kGangStarting && one.gang) starts_[*one.gang] = {starts_[*one.gang].times + 1, false};
  if (event.kind == kGangFailed && one.gang && !by) starts_[*one.gang].told = true;
}

void Explainer::take(std::size_t i, const RunEvent& one, Subject subject) {
  const Blow& blow = record_.blows[i];
  BlowStory& story = blame_.stories[i];
  const JobEvent& event = *one.event;
  story.events.push_back(&event);
  if (subject == Subject::kHost && (event.kind == kHostSuspect || event.kind == kHostLost)) story.host_hurt = true;
  if (event.kind == kHostHeard || event.kind == kHostReady) story.host_hurt = false;
  const bool another_rank =
      event.kind == kRankStopped && !blow.target.mesh.empty() && event.rank != std::optional(blow.target.rank);
  if (!story.seen && story.fault != nullptr && is_in(story.fault->told_by, event.kind) && !another_rank) {
    story.seen = event.time;
    story.seen_by = event.kind;
  }
  if (subject != Subject::kGang || !one.gang) return;
  for (BlowStory& other : blame_.stories) {
    const auto gang = other.gangs.find(*one.gang);
    if (&other != &story && gang != other.gangs.end() && !gang->second.recovered) gang->second.struck_again = true;
  }
  take_gang(story, one);
}

void Explainer::recovered(GangStory& gang, WallTime at, const JobEvent& event) {
  if (!gang.failed || !gang.running || gang.recovered) return;
  // Its own word is older than the event.
  const auto after = number_of(event, "after_ms");
  const bool exact = event.kind == kGangCaughtUp && after && *after < 1'000'000'000'000;
  const WallTime said = exact ? later(*gang.failed, Duration::milliseconds(static_cast<std::int64_t>(*after))) : at;
  gang.recovered = gang.failures == 1 ? std::clamp(said, *gang.running < at ? *gang.running : at, at) : at;
}

// Its host was lost with the word of how far it was.
void Explainer::ask_samples(GangStory& gang, std::uint32_t place, WallTime running) const {
  const auto furthest = furthest_by(sheet_, place, running);
  gang.by_samples = gang.failed && furthest && *furthest > static_cast<double>(gang.furthest);
  if (!gang.by_samples) return;
  gang.named_steps = true;
  gang.recovered = past_steps(sheet_, place, running);
}

void Explainer::take_gang(BlowStory& story, const RunEvent& one) {
  const JobEvent& event = *one.event;
  GangStory& gang = story.gangs[*one.gang];
  const RunGang& facts = run_.gangs[*one.gang];
  switch (event.kind) {
    case kGangFailed:
      ++gang.failures;
      if (!gang.failed) gang.failed = event.time;
      gang.running.reset();
      if (gang.recovered && *gang.recovered > event.time) gang.recovered.reset();
      story.remedy = std::string(detail_of(event, "remedy").value_or(""));
      return;
    case kGangStarting:
      if (!gang.failed) return;
      if (!gang.started) gang.started = event.time;
      gang.furthest = number_of(event, "furthest").value_or(0);
      gang.named_steps = number_of(event, "furthest").has_value();
      return;
    case kGangRunning:
      gang.running = event.time;
      ask_samples(gang, *one.gang, event.time);
      if (!gang.named_steps && !facts.says_ready) recovered(gang, event.time, event);
      return;
    case kGangReady:
      if (!gang.named_steps) recovered(gang, event.time, event);
      return;
    case kGangCaughtUp:
      if (!gang.by_samples) recovered(gang, event.time, event);
      return;
    case kGangDone: recovered(gang, event.time, event); return;
    default: return;
  }
}

}  // namespace

Blame explain(const Run& run, const TimeSheet& sheet) { return Explainer(run, sheet).all(); }

}  // namespace monarch::drill
