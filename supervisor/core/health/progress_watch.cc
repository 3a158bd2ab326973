#include "supervisor/core/health/progress_watch.h"

#include <algorithm>
#include <tuple>

#include "supervisor/core/spec/given_times.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kInit = "init";
constexpr std::string_view kStep = "step";

// `auto`: never less than this, since a step may hold an evaluation that no earlier one had.
constexpr Duration kLeastAuto = Duration::seconds(120);
constexpr std::int64_t kTimesLongest = 10;

constexpr Duration kFrozenGrace = Duration::seconds(5);

// One lost or late beat is a pause; a longer one says that the host did not run, or was not heard.
constexpr std::int64_t kBeatsCounted = 3;

// Ranks choose the names of their phases, and may never say one twice: beyond so many of a gang the rest counts as one
// (I22).
constexpr std::size_t kMostPhases = 64;
constexpr std::string_view kOtherPhases;

std::string phase_key(const std::map<std::string, Duration>& longest, const std::string& phase) {
  return longest.contains(phase) || longest.size() < kMostPhases ? phase : std::string(kOtherPhases);
}

std::optional<Duration> grace_of(Standstill standstill) {
  switch (standstill) {
    case Standstill::kNone:
    case Standstill::kTraced: return std::nullopt;
    case Standstill::kStopped: return kStoppedGrace;
    case Standstill::kFrozen: return kFrozenGrace;
    case Standstill::kWaiting: return Duration::zero();  // it is called so after a long wait only
  }
  return std::nullopt;
}

}  // namespace

std::string name_of(Standstill standstill) {
  switch (standstill) {
    case Standstill::kNone: return {};
    case Standstill::kStopped: return "stopped";
    case Standstill::kTraced: return "traced";
    case Standstill::kFrozen: return "frozen";
    case Standstill::kWaiting: return "waiting";
  }
  return {};
}

std::string describe(Standstill standstill) {
  switch (standstill) {
    case Standstill::kNone: return {};
    case Standstill::kStopped: return "stopped by a signal";
    case Standstill::kTraced: return "held by a debugger";
    case Standstill::kFrozen: return "frozen with its cgroup";
    case Standstill::kWaiting: return "in a wait that cannot be interrupted (state D: a disk or a network file system)";
  }
  return {};
}

ProgressWatch::ProgressWatch(const JobSpec& spec, Runs runs) : spec_(spec), runs_(std::move(runs)) {}

const HangPolicy& ProgressWatch::policy_of(MeshId mesh) const { return spec_.meshes[mesh.value()].supervision.hang; }

std::vector<RankId> ProgressWatch::ranks_of(const GangKey& key) const {
  std::vector<RankId> found;
  for (const auto& [id, rank] : ranks_) {
    if (id.mesh == key.first && spec_.meshes[id.mesh.value()].gang_of(id.rank) == key.second) found.push_back(id);
  }
  return found;
}

ProgressWatch::Limit ProgressWatch::limit_of(MeshId mesh, GangId gang, const std::string& phase) const {
  const HangPolicy& policy = policy_of(mesh);
  const auto named = policy.phases.find(phase);
  if (named != policy.phases.end() && named->second.longest) return {*named->second.longest, named->second.written};
  const auto known = gangs_.find({mesh, gang});
  if (known != gangs_.end()) {
    const auto seen = known->second.longest.find(phase_key(known->second.longest, phase));
    if (seen != known->second.longest.end()) return {std::max(kLeastAuto, seen->second * kTimesLongest), false};
  }
  // Of a phase that was never seen to end nothing is known: it may be the one that compiles.
  const auto init = policy.phases.find(std::string(kInit));
  const bool has_init = init != policy.phases.end() && init->second.longest;
  return {std::max(kLeastAuto, has_init ? *init->second.longest : kLeastAuto), false};
}

bool ProgressWatch::never_spoke(MeshId mesh) const {
  return std::none_of(ranks_.begin(), ranks_.end(),
                      [mesh](const auto& entry) { return entry.first.mesh == mesh && !entry.second.phase.empty(); });
}

std::optional<RankHung> ProgressWatch::heard(HostId host, const RankReport& report, Instant sent_at) {
  const GangKey key = key_of(report.process.rank);
  Gang& gang = gangs_[key];
  if (gang.generation != report.process.generation) {
    gang.generation = report.process.generation;
    gang.told = false;
    gang.heard.clear();
    gang.unheard_from = 0;
    gang.traced.clear();
  }
  const bool is_whole = is_heard(key, gang, report.process.rank);
  if (report.phase != RankPhase::kRunning) {
    ranks_.erase(report.process.rank);
    gang.traced.erase(report.process.rank);
    return std::nullopt;
  }
  Watched& rank = ranks_[report.process.rank];
  if (rank.generation != report.process.generation)
    rank = Watched{.generation = report.process.generation, .heard_at = sent_at};
  rank.host = host;
  if (report.standstill == Standstill::kTraced) {
    gang.traced.insert(report.process.rank);
  } else {
    gang.traced.erase(report.process.rank);
  }
  listen(key, gang, rank, report, sent_at);
  if (!is_whole || gang.told || suspended(key, gang)) return std::nullopt;
  auto verdict = stands_still(key, gang, report.process.rank);
  const bool stands = verdict.has_value();
  if (!verdict) verdict = falls_silent(key, gang, report.process.rank);
  if (!verdict) return std::nullopt;
  gang.told = true;
  Watched& rank_judged = ranks_.at(verdict->process.rank);
  const std::optional<Judged> before = rank_judged.judged;
  // Others of its gang moved on, and it did not: it was told of.
  if (before && before->words == rank_judged.words && (before->standing || !stands)) return std::nullopt;
  rank_judged.judged = Judged{.words = rank_judged.words, .standing = stands};
  return verdict;
}

bool ProgressWatch::holds(const RankHung& verdict) const {
  const auto rank = ranks_.find(verdict.process.rank);
  if (rank == ranks_.end() || rank->second.generation != verdict.process.generation || !rank->second.judged)
    return false;
  const Judged& judged = *rank->second.judged;
  if (judged.words != rank->second.words) return false;
  return !judged.standing || rank->second.standstill != Standstill::kNone;
}

void ProgressWatch::forget(RankId rank) {
  ranks_.erase(rank);
  const auto gang = gangs_.find(key_of(rank));
  if (gang != gangs_.end()) gang->second.traced.erase(rank);
}

void ProgressWatch::retract(RankId rank) {
  if (const auto known = ranks_.find(rank); known != ranks_.end()) known->second.judged.reset();
  const auto gang = gangs_.find(key_of(rank));
  if (gang != gangs_.end()) gang->second.told = false;
}

void ProgressWatch::listen(const GangKey& key, Gang& gang, Watched& rank, const RankReport& report, Instant sent_at) {
  const Duration most = spec_.supervision.heartbeat * kBeatsCounted;
  const Duration passed = std::clamp(sent_at - rank.heard_at, Duration::zero(), most);
  const Instant before = rank.heard_at;
  rank.heard_at = std::max(rank.heard_at, sent_at);
  const bool counts = !report.held && !suspended(key, gang);
  rank.stood = report.standstill == rank.standstill && counts ? rank.stood + passed : Duration::zero();
  rank.standstill = report.standstill;
  // A beat with too much to say leaves a rank's progress out.
  const bool spoke = report.progress != RankProgress{} && report.progress != rank.said;
  if (!spoke) {
    if (counts) rank.waited = rank.waited + passed;
    return;
  }
  ++rank.words;
  if (!rank.phase.empty()) {
    Duration& longest = gang.longest[phase_key(gang.longest, rank.phase)];
    longest = std::max(longest, rank.waited + std::clamp(report.progress.at - before, Duration::zero(), passed));
  }
  // A step that is named after a phase is its end, unless the phase is said again.
  if (report.progress.phase != rank.said.phase) {
    rank.phase = report.progress.phase;
  } else if (report.progress.step != rank.said.step) {
    rank.phase = kStep;
  }
  if (rank.phase.empty()) rank.phase = report.progress.step ? kStep : kInit;
  rank.said = report.progress;
  rank.waited = std::clamp(sent_at - report.progress.at, Duration::zero(), passed);
  gang.told = false;
}

// Of this rank now, and of all others of its gang that run? Who was passed over once is not asked for again.
bool ProgressWatch::is_heard(const GangKey& key, Gang& gang, RankId rank) {
  const std::uint32_t size = spec_.meshes[key.first.value()].gang_size();
  if (gang.unheard_from == size) return true;
  gang.heard.insert(rank);
  const std::uint32_t first = key.second.value() * size;
  for (; gang.unheard_from < size; ++gang.unheard_from) {
    const RankId next{key.first, Rank(first + gang.unheard_from)};
    if (gang.heard.erase(next) == 0 && runs_(next)) return false;
  }
  gang.heard.clear();
  return true;
}

bool ProgressWatch::suspended(const GangKey& key, const Gang& gang) const {
  if (!gang.traced.empty()) return true;
  const MeshSpec& mesh = spec_.meshes[key.first.value()];
  return std::any_of(held_.begin(), held_.end(),
                     [&](RankId id) { return id.mesh == key.first && mesh.gang_of(id.rank) == key.second; });
}

bool ProgressWatch::suspended(RankId rank) const {
  const GangKey key = key_of(rank);
  const auto gang = gangs_.find(key);
  return gang != gangs_.end() && suspended(key, gang->second);
}

// What is only reported was told when it began.
std::optional<RankHung> ProgressWatch::stands_still(const GangKey& key, const Gang& gang, RankId id) const {
  const Watched& rank = ranks_.at(id);
  const std::optional<Duration> grace = grace_of(rank.standstill);
  if (policy_of(key.first).action != HangAction::kRestart || !grace || rank.stood < *grace) return std::nullopt;
  return RankHung{.host = rank.host,
                  .process = {id, gang.generation},
                  .why = text("it has been ", describe(rank.standstill), " for ", to_text(rank.stood)),
                  .phase = rank.phase,
                  .waited = rank.stood,
                  .limit = *grace,
                  .action = HangAction::kRestart};
}

std::optional<RankHung> ProgressWatch::falls_silent(const GangKey& key, const Gang& gang, RankId id) const {
  const auto over = [&](const Watched& rank, std::int64_t part) {
    return !rank.phase.empty() && rank.waited > limit_of(key.first, key.second, rank.phase).longest / part;
  };
  if (!over(ranks_.at(id), 1)) return std::nullopt;
  // The one that is behind is what the others wait for: who stands still, then who has come the least far, then who was
  // silent first.
  RankId behind = id;
  const auto place = [this](RankId of) {
    const Watched& rank = ranks_.at(of);
    return std::tuple(rank.standstill == Standstill::kNone, rank.said.step.value_or(0), Duration::zero() - rank.waited);
  };
  std::size_t others = 0;
  std::uint64_t furthest = 0;
  for (const RankId other : ranks_of(key)) {
    const Watched& rank = ranks_.at(other);
    if (rank.standstill == Standstill::kNone && !over(rank, 2)) continue;
    furthest = std::max(furthest, rank.said.step.value_or(0));
    if (other != id) ++others;
    if (place(other) < place(behind)) behind = other;
  }
  const Watched& rank = ranks_.at(behind);
  const std::string phase = rank.phase.empty() ? std::string(kStep) : rank.phase;
  const Limit limit = limit_of(key.first, key.second, ranks_.at(id).phase);
  std::string why = text("no word of it for ", to_text(rank.waited), " in phase ", printable(phase));
  if (rank.said.step) why += text(", step ", *rank.said.step);
  if (rank.standstill != Standstill::kNone) why += text("; it is ", describe(rank.standstill));
  why += text(" (the limit is ", to_text(limit.longest), limit.written ? ", as written" : ", not written: auto", ")");
  if (others > 0) {
    why += text("; ", others, others == 1 ? " other" : " others", " of its gang wait, too");
    if (rank.said.step && furthest > *rank.said.step) why += text(", up to step ", furthest);
  }
  const bool restart = policy_of(key.first).action == HangAction::kRestart && limit.written;
  return RankHung{.host = rank.host,
                  .process = {behind, gang.generation},
                  .why = std::move(why),
                  .phase = phase,
                  .waited = rank.waited,
                  .limit = limit.longest,
                  .action = restart ? HangAction::kRestart : HangAction::kReport};
}

}  // namespace monarch
