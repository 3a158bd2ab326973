#include "supervisor/drill/core/drill_core.h"

#include <algorithm>
#include <utility>

#include "supervisor/drill/core/draw.h"
#include "supervisor/drill/core/measure_run.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

constexpr Duration kPaceWindow = Duration::seconds(10);
constexpr Duration kLast = Duration::seconds(1);  // after the last recovery: words that are under way come
// So long all must be well before a blow counts as recovered from: a failure and its events are not told in one word.
constexpr Duration kQuiet = Duration::milliseconds(500);
constexpr Duration kLongestRecovery = Duration::seconds(60);  // beyond what the spec's own times allow

}  // namespace

DrillCore::DrillCore(DrillPlan plan)
    : plan_(std::move(plan)), watch_(plan_.meshes), entries_(plan_.scenario.faults.size()) {}

void DrillCore::to(Phase phase, DrillNow now) {
  phase_ = phase;
  since_ = now.at;
  switch (phase) {
    case Phase::kSettling: break;
    case Phase::kControl:
      control_from_ = now.wall;
      steps_at_control_ = watch_.steps();
      actions_.emplace_back(SayPhase{text("settled; nothing is done to it for ", to_text(plan_.scenario.control))});
      break;
    case Phase::kFaults:
      control_to_ = now.wall;
      faults_from_ = now.at;
      steps_at_faults_ = watch_.steps();
      for (std::uint32_t i = 0; i < entries_.size(); ++i) {
        const FaultEntry& entry = plan_.scenario.faults[i];
        if (entry.trigger == TriggerKind::kAt) entries_[i].next = now.at + entry.at;
        if (entry.trigger == TriggerKind::kEvery) {
          entries_[i].next = now.at + draw_gap({plan_.seed, i, 0}, entry.every);
        }
      }
      break;
    case Phase::kLast: faults_to_ = now.wall; break;
    case Phase::kOver:
      if (faults_to_ == WallTime()) faults_to_ = now.wall;
      for (Tracked& tracked : blows_) {
        const bool unstruck = tracked.life == Life::kDue || tracked.life == Life::kTold;
        if (unstruck) skip(tracked, cut_short_.empty() ? "the time of the faults was over" : cut_short_);
        if (tracked.life == Life::kOpen && !tracked.back) actions_.emplace_back(TakeBack{tracked.blow.number});
      }
      break;
  }
}

void DrillCore::cut_short(const std::string& why, DrillNow now) {
  if (phase_ == Phase::kOver) return;
  cut_short_ = why;
  to(Phase::kOver, now);
}

void DrillCore::on_status(const JobStatus& status, DrillNow now) {
  watch_.on_status(status);
  watch_goodput(now);
  on_tick(now);
}

void DrillCore::on_event(const JobEvent& event, DrillNow now) {
  watch_.on_event(event);
  for (Tracked& tracked : blows_) {
    const bool struck = tracked.life == Life::kStriking || tracked.life == Life::kOpen;
    if (struck && concerns(tracked, event)) tracked.seen = true;
  }
  if (phase_ != Phase::kFaults) return;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    const FaultEntry& entry = plan_.scenario.faults[i];
    const bool fires = entry.trigger == TriggerKind::kOnEvent && entry.event == event.kind;
    if (!fires || entries_[i].fired >= entry.times) continue;
    ++entries_[i].fired;
    add_due(i, now.at + entry.after, now);
  }
  on_tick(now);
}

void DrillCore::on_tick(DrillNow now) {
  if (said_at_ == Instant::never()) since_ = said_at_ = now.at;  // it begins
  switch (phase_) {
    case Phase::kSettling: settle(now); break;
    case Phase::kControl:
      if (now.at >= since_ + plan_.scenario.control) to(Phase::kFaults, now);
      break;
    case Phase::kFaults:
      make_due(now);
      close_open(now);
      strike_due(now);
      end_faults(now);
      break;
    case Phase::kLast:
      if (now.at >= since_ + kLast) to(Phase::kOver, now);
      break;
    case Phase::kOver: break;
  }
  say_waits(now);
}

void DrillCore::settle(DrillNow now) {
  if (!watch_.all_up()) {
    up_since_ = Instant::never();
    if (now.at < since_ + plan_.settles_within) return;
    const std::string missing = watch_.missing();
    return cut_short(text("the job has not settled within ", to_text(plan_.settles_within), ": ",
                          missing.empty() ? "it does not say how it is" : missing),
                     now);
  }
  if (up_since_ == Instant::never()) up_since_ = now.at;
  if (now.at >= up_since_ + plan_.scenario.settle) to(Phase::kControl, now);
}

// New steps of the last seconds beside those of control.
void DrillCore::watch_goodput(DrillNow now) {
  const double least = plan_.scenario.guard.stop_below_goodput;
  if (least <= 0 || phase_ != Phase::kFaults) return;
  pace_.push_back({now.at, watch_.steps()});
  while (pace_.size() > 2 && pace_[1].at <= now.at - kPaceWindow) pace_.pop_front();
  if (pace_.front().at > now.at - kPaceWindow) return;
  const double control = plan_.scenario.control.count_seconds();
  const double usual = static_cast<double>(steps_at_faults_ - steps_at_control_) / std::max(control, 0.001);
  const double seconds = (pace_.back().at - pace_.front().at).count_seconds();
  const double pace = static_cast<double>(pace_.back().steps - pace_.front().steps) / seconds;
  if (usual <= 0 || pace >= usual * least) return;
  cut_short(text("guard.stop_below_goodput: ", pace, " new steps a second for ", to_text(kPaceWindow), ", of ", usual,
                 " in control"),
            now);
}

void DrillCore::make_due(DrillNow now) {
  const std::optional<Duration>& duration = plan_.scenario.duration;
  if (duration && now.at >= faults_from_ + *duration) return;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    const FaultEntry& entry = plan_.scenario.faults[i];
    Entry& state = entries_[i];
    while (now.at >= state.next) {
      const Instant due = state.next;
      add_due(i, due, now);
      state.next = entry.trigger == TriggerKind::kEvery ? due + draw_gap({plan_.seed, i, state.draws}, entry.every)
                                                        : Instant::never();
    }
    if (entry.trigger != TriggerKind::kOnStep || state.fired > 0) continue;
    const bool passed = std::any_of(watch_.gangs().begin(), watch_.gangs().end(), [&](const WatchedGang& gang) {
      const bool of_mesh = entry.target.mesh.empty() || entry.target.mesh == kRandom ||
                           entry.target.mesh == plan_.meshes[gang.mesh].name;
      return of_mesh && gang.furthest && *gang.furthest >= entry.step;
    });
    if (!passed) continue;
    ++state.fired;
    add_due(i, now.at, now);
  }
}

void DrillCore::add_due(std::uint32_t entry, Instant due, DrillNow now) {
  const FaultEntry& written = plan_.scenario.faults[entry];
  Tracked tracked;
  tracked.fault = find_fault(written.fault);
  tracked.due = due;
  tracked.blow.number = static_cast<std::uint32_t>(blows_.size()) + 1;
  tracked.blow.entry = entry;
  tracked.blow.draw = entries_[entry].draws++;
  tracked.blow.fault = written.fault;
  tracked.blow.due = {now.wall.nanoseconds_since_epoch + (due - now.at).count_nanoseconds()};
  tracked.blow.lasts = written.lasts;
  blows_.push_back(std::move(tracked));
}

DrillCore::Tracked* DrillCore::find(std::uint32_t number) {
  return number == 0 || number > blows_.size() ? nullptr : &blows_[number - 1];
}

std::size_t DrillCore::open_blows() const {
  return static_cast<std::size_t>(std::count_if(blows_.begin(), blows_.end(), [](const Tracked& tracked) {
    return tracked.life == Life::kTold || tracked.life == Life::kStriking || tracked.life == Life::kOpen;
  }));
}

void DrillCore::strike_due(DrillNow now) {
  for (Tracked& tracked : blows_) {
    if (tracked.life != Life::kDue || now.at < tracked.due) continue;
    const std::string because = obstacle(tracked);
    auto target = because.empty() ? drawn_target(plan_, watch_, tracked.blow.entry, tracked.blow.draw) : std::nullopt;
    if (target) {
      tracked.blow.target = std::move(*target);
      tracked.life = Life::kTold;
      actions_.emplace_back(TellOfBlow{tracked.blow});
    } else if (now.at >= tracked.due + plan_.scenario.guard.wait) {
      skip(tracked, text(because.empty() ? "nobody whom it may strike was well" : because, " for ",
                         to_text(plan_.scenario.guard.wait)));
    }
  }
}

// Empty: there is none.
std::string DrillCore::obstacle(const Tracked& tracked) const {
  const DrillGuard& guard = plan_.scenario.guard;
  const std::uint32_t down = watch_.down();
  if (looking_ > 0) return "hosts were looked at";
  if (open_blows() >= std::max(guard.max_gangs_down, 1U)) return "faults before it were not recovered from";
  if (down >= std::max(guard.max_gangs_down, 1U)) {
    return text(counted(down, "gang"), " of ", watch_.gangs().size(), " not up (guard.max_gangs_down)");
  }
  const bool takes_host = tracked.fault->cost == FaultCost::kItsGangs;
  if (takes_host && watch_.spares() < guard.min_spares) {
    return text(counted(watch_.spares(), "spare"), " of ", guard.min_spares, " connected (guard.min_spares)");
  }
  return "";
}

void DrillCore::skip(Tracked& tracked, const std::string& why) {
  tracked.life = Life::kClosed;
  tracked.blow.end = BlowEnd::kSkipped;
  tracked.blow.why = why;
  actions_.emplace_back(SayPhase{text(words_of(tracked.blow), " is skipped: ", why)});
}

void DrillCore::on_told(std::uint32_t number, const std::string& refused, DrillNow now) {
  Tracked* const tracked = find(number);
  if (tracked == nullptr || tracked->life != Life::kTold) return;
  if (!refused.empty()) {
    skip(*tracked, refused);
    return cut_short(refused, now);
  }
  tracked->life = Life::kStriking;
  tracked->struck = now.at;
  actions_.emplace_back(StrikeNow{tracked->blow});
}

void DrillCore::on_struck(std::uint32_t number, const StruckSeen& seen, DrillNow now) {
  Tracked* const tracked = find(number);
  if (tracked == nullptr || tracked->life != Life::kStriking) return;
  Blow& blow = tracked->blow;
  blow.struck = seen.struck;
  if (!seen.error.empty()) {
    blow.end = BlowEnd::kInert;
    blow.why = seen.error;
    tracked->back = true;
    return close(*tracked);
  }
  blow.end = BlowEnd::kEffective;
  blow.struck_at = seen.struck_at;
  blow.seen_at = seen.seen_at;
  blow.clock_error = seen.clock_error;
  tracked->life = Life::kOpen;
  tracked->struck = now.at;
  tracked->back = !tracked->fault->can_last();
  if (phase_ == Phase::kOver && !tracked->back) actions_.emplace_back(TakeBack{number});
}

void DrillCore::on_taken_back(std::uint32_t number, const std::string& error, std::optional<bool> felt, DrillNow now) {
  Tracked* const tracked = find(number);
  if (tracked == nullptr || tracked->life != Life::kOpen || tracked->back) return;
  tracked->back = true;
  Blow& blow = tracked->blow;
  blow.undone_at = now.wall;
  blow.taken_back = error.empty();
  if (!error.empty()) blow.why = error;
  if (felt && !*felt && blow.end == BlowEnd::kEffective) {
    blow.end = BlowEnd::kInert;
    blow.why = "never felt: the program did not run into it";
  }
  on_tick(now);
}

void DrillCore::close_open(DrillNow now) {
  for (Tracked& tracked : blows_) {
    if (tracked.life != Life::kOpen) continue;
    if (!recovered(tracked)) {
      tracked.quiet_since = Instant::never();
      if (now.at < tracked.struck + longest_recovery(tracked)) continue;
      if (tracked.blow.why.empty()) {
        const std::string missing = watch_.missing();
        tracked.blow.why = text("not recovered from within ", to_text(longest_recovery(tracked)),
                                missing.empty() ? "" : ": ", missing);
      }
      close(tracked);
      continue;
    }
    if (tracked.quiet_since == Instant::never()) tracked.quiet_since = now.at;
    if (now.at >= tracked.quiet_since + kQuiet) close(tracked);
  }
}

Duration DrillCore::longest_recovery(const Tracked& tracked) const {
  return tracked.blow.lasts + plan_.times.lost_after + plan_.times.lease + plan_.times.hang.value_or(Duration::zero()) +
         kLongestRecovery;
}

void DrillCore::close(Tracked& tracked) {
  tracked.life = Life::kClosed;
  actions_.emplace_back(TellTakenBack{tracked.blow});
  if (tracked.blow.end == BlowEnd::kInert && tracked.blow.struck.empty()) return;
  if (plan_.scenario.budgets == Budgets::kForgiven) {
    if (auto ranks = ranks_of(tracked.blow); !ranks.empty()) actions_.emplace_back(Forgive{std::move(ranks)});
  }
  ++looking_;
  actions_.emplace_back(LookForRanks{hosts_of(tracked.blow)});
}

// Whoever was to say what came of a blow, or what there is on a host, has gone with the job.
void DrillCore::on_new_job(DrillNow now) {
  watch_.on_new_job();
  looking_ = 0;
  const std::string ended = "its job had ended before it was known to be in effect";
  for (Tracked& tracked : blows_) {
    if (tracked.life == Life::kTold) skip(tracked, ended);
    if (tracked.life == Life::kStriking) on_struck(tracked.blow.number, {.error = ended, .struck = {}}, now);
    if (tracked.life == Life::kOpen) on_taken_back(tracked.blow.number, "", std::nullopt, now);
  }
}

void DrillCore::on_looked(DrillNow now) {
  if (looking_ > 0) --looking_;
  on_tick(now);
}

std::vector<RankId> DrillCore::ranks_of(const Blow& blow) const {
  std::vector<RankId> ranks;
  for (const BlowGang& gang : blow.target.gangs) {
    ranks.push_back({MeshId(gang.mesh), Rank(gang.gang * std::max(plan_.meshes[gang.mesh].ranks_per_gang, 1U))});
  }
  return ranks;
}

void DrillCore::end_faults(DrillNow now) {
  const Duration longest = plan_.scenario.duration.value_or(kLongestFaults);
  const bool time_over = now.at >= faults_from_ + longest;
  if (time_over) {
    for (Tracked& tracked : blows_) {
      if (tracked.life == Life::kDue) skip(tracked, "the time of the faults was over");
    }
    skip_unfired(now);
  }
  const bool waits =
      std::any_of(blows_.begin(), blows_.end(), [](const Tracked& t) { return t.life != Life::kClosed; });
  if (waits) return;
  const auto comes = [&](std::size_t i) {
    const FaultEntry& entry = plan_.scenario.faults[i];
    switch (entry.trigger) {
      case TriggerKind::kAt:
      case TriggerKind::kEvery: return entries_[i].next != Instant::never();
      case TriggerKind::kOnStep: return entries_[i].fired == 0;
      case TriggerKind::kOnEvent: return entries_[i].fired < entry.times;
    }
    return false;
  };
  bool more = false;
  for (std::size_t i = 0; i < entries_.size(); ++i) more = more || comes(i);
  if (!more || time_over) to(Phase::kLast, now);
}

void DrillCore::write(DrillRecord& record) const {
  record.control_from = control_from_;
  record.control_to = control_to_;
  record.faults_to = faults_to_;
  record.blows.clear();
  for (const Tracked& tracked : blows_) record.blows.push_back(tracked.blow);
  if (!cut_short_.empty()) record.cut_short = cut_short_;
}

}  // namespace monarch::drill
