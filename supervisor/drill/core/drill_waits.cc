// What a drill waits for, in words, said now and then.

#include <algorithm>
#include <utility>

#include "supervisor/drill/core/drill_core.h"
#include "supervisor/drill/core/measure_run.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

constexpr Duration kSayEvery = Duration::seconds(30);
constexpr std::size_t kGangsNamed = 4;

std::string why_not_up(const WatchedGang& gang, const std::string& mesh) {
  const std::string whose = text("gang ", gang.gang, " of ", mesh);
  if (gang.phase.empty()) return text(whose, " is not known yet");
  if (!gang.runs()) return text(whose, " is ", printable(gang.phase));
  const auto unready =
      std::find_if(gang.ranks.begin(), gang.ranks.end(), [](const WatchedRank& rank) { return !rank.ready; });
  if (unready == gang.ranks.end()) {
    return text(whose, gang.started == 0 ? " has failed" : " is not past where it was when it failed");
  }
  const auto others = std::count_if(unready + 1, gang.ranks.end(), [](const WatchedRank& rank) { return !rank.ready; });
  const auto first = gang.gang * gang.ranks.size() + static_cast<std::size_t>(unready - gang.ranks.begin());
  return text(mesh, "/", first, " on ", printable(unready->host),
              others > 0 ? text(" and ", counted(static_cast<std::size_t>(others), "other rank"), " of gang ",
                                gang.gang, " are")
                         : std::string(" is"),
              " not ready");
}

}  // namespace

std::string JobWatch::missing() const {
  std::vector<std::string> named;
  std::size_t more = 0;
  for (const WatchedGang& gang : gangs_) {
    if (gang.up() || gang.over()) continue;
    if (named.size() < kGangsNamed) {
      named.push_back(why_not_up(gang, meshes_[gang.mesh].name));
    } else {
      ++more;
    }
  }
  return text(join(named, ", "), more > 0 ? text(", and ", counted(more, "gang"), " more") : "");
}

// Empty: nothing that has no time of its own.
std::string DrillCore::awaited(DrillNow now) const {
  if (phase_ == Phase::kSettling) {
    const std::string missing = watch_.missing();
    return text("the job has not settled yet: ",
                missing.empty() ? text("it has to be up for ", to_text(plan_.scenario.settle)) : missing);
  }
  if (phase_ != Phase::kFaults) return "";
  for (const Tracked& tracked : blows_) {
    if (tracked.life == Life::kTold) return text("the supervisor has not agreed yet to ", words_of(tracked.blow));
    if (tracked.life == Life::kStriking) return text(words_of(tracked.blow), " is not in effect yet");
    if (tracked.life != Life::kOpen) continue;
    if (!tracked.back) return text(words_of(tracked.blow), " lasts for ", to_text(tracked.blow.lasts));
    const std::string missing = watch_.missing();
    return text(words_of(tracked.blow),
                missing.empty() ? " was not told of yet" : " is not recovered from yet: ", missing);
  }
  for (const Tracked& tracked : blows_) {
    if (tracked.life != Life::kDue || now.at < tracked.due) continue;
    const std::string because = obstacle(tracked);
    return text(words_of(tracked.blow), " waits: ", because.empty() ? "nobody whom it may strike is well" : because);
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const FaultEntry& entry = plan_.scenario.faults[i];
    if (entry.trigger == TriggerKind::kOnStep && entries_[i].fired == 0) {
      return text(entry.fault, " waits for step ", entry.step, "; the furthest gang is at ", watch_.furthest());
    }
    if (entry.trigger == TriggerKind::kOnEvent && entries_[i].fired < entry.times) {
      return text(entry.fault, " waits for ", name_of(entry.event));
    }
  }
  return "";
}

void DrillCore::say_waits(DrillNow now) {
  if (!actions_.empty()) said_at_ = now.at;  // something goes on
  if (now.at < said_at_ + kSayEvery) return;
  said_at_ = now.at;
  if (auto words = awaited(now); !words.empty()) actions_.emplace_back(SayPhase{std::move(words)});
}

// Faults whose event or step has not come are none that the job has borne.
void DrillCore::skip_unfired(DrillNow now) {
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    const FaultEntry& entry = plan_.scenario.faults[i];
    std::string why;
    if (entry.trigger == TriggerKind::kOnStep && entries_[i].fired == 0) {
      why = text("no gang that is meant came to step ", entry.step);
    }
    if (entry.trigger == TriggerKind::kOnEvent && entries_[i].fired < entry.times) {
      why = text(name_of(entry.event), " came ", counted(entries_[i].fired, "time"), " of ", entry.times);
    }
    if (why.empty()) continue;
    entries_[i].fired = std::max(entry.times, 1U);
    add_due(i, now.at, now);
    skip(blows_.back(), why);
  }
}

}  // namespace monarch::drill
