#include "supervisor/workers/hang_watch.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <iterator>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

// A rank that is stopped and let go all the time is told of so often, and then no more in this window (I22).
constexpr std::uint32_t kChangesTold = 20;
constexpr Duration kChangesWindow = Duration::seconds(600);

// A rank takes at most 11 bytes, and a record of the journal has room for 64 KiB.
constexpr std::ptrdiff_t kRanksARecord = 4'096;

// Programs that tell their steps have told one by then, or told of a phase that takes longer.
constexpr Duration kUnwatchedAfter = Duration::seconds(60);

}  // namespace

HangWatch::HangWatch(const JobCore& core, HangWatchHandlers handlers)
    : core_(core), handlers_(std::move(handlers)), watch_(core.spec(), [&core](RankId id) {
        const RankState& rank = core.facts().rank(id);
        return lives(core.facts().member(id).stage) && !rank.reaped;
      }) {
  for (std::uint32_t m = 0; m < core.spec().meshes.size(); ++m) {
    for (std::uint32_t r = 0; r < core.spec().meshes[m].size(); ++r) update({MeshId(m), Rank(r)});
  }
}

void HangWatch::on_report(HostId host, const RankReport& report, Instant sent_at, Instant now) {
  if (!judge(core_.facts(), host, report).granted) return watch_.forget(report.process.rank);
  update(report.process.rank);  // of a new generation: what was stopped is not there any more
  tell_standstill(host, report, now);
  tell_unwatched(report, now);
  if (auto hung = watch_.heard(host, report, sent_at)) on_verdict(std::move(*hung));
}

void HangWatch::tell_standstill(HostId host, const RankReport& report, Instant now) {
  Told& told = told_[report.process.rank];
  if (told.generation != report.process.generation) told = Told{.generation = report.process.generation};
  const Standstill before = told.standstill;
  if (before == report.standstill) return;
  if (is_stopping(report.process.rank)) return;  // it goes on because it is to end
  const Instant began = std::exchange(told.since, now);
  told.standstill = report.standstill;
  if (now - told.window > kChangesWindow) {
    told.window = now;
    told.changes = 0;
  }
  if (++told.changes > kChangesTold) return;
  const MeshSpec& mesh = core_.spec().meshes[report.process.rank.mesh.value()];
  const std::string& name = core_.hosts()[host.value()].name;
  const bool stands = report.standstill != Standstill::kNone;
  JobEvent event;
  event.kind = stands ? EventKind::kRankStopped : EventKind::kRankContinued;
  event.severity = stands && !is_left_alone(core_.facts(), report.process.rank) ? Severity::kWarning : Severity::kInfo;
  event.host = name;
  event.mesh = mesh.name;
  event.rank = report.process.rank.rank.value();
  event.generation = report.process.generation.counter;
  event.pid = report.pid;
  event.message = text(mesh.name, "/", report.process.rank.rank.value(), " on ", name, ": ");
  event.message += stands
                       ? text("is ", describe(report.standstill), what_follows(report.process.rank, report.standstill))
                       : text("goes on, after ", to_text(now - began));
  if (told.changes == kChangesTold) event.message += "; it changes often, and is not told of again for a while";
  tell(std::move(event));
}

bool HangWatch::is_stopping(RankId rank) const {
  const MeshId mesh = rank.mesh;
  const GangId g = core_.spec().meshes[mesh.value()].gang_of(rank.rank);
  const auto phase = core_.facts().gang(mesh, g).phase;
  return has_ranks(phase) && !runs(phase);
}

std::string HangWatch::what_follows(RankId rank, Standstill standstill) const {
  if (is_left_alone(core_.facts(), rank)) return ", as somebody asked; its gang is left alone until it goes on";
  if (standstill == Standstill::kTraced) return "; its gang is left alone until it goes on";
  const HangPolicy& policy = core_.spec().meshes[rank.mesh.value()].supervision.hang;
  if (policy.action == HangAction::kReport) return "; nothing is done about it (supervision.hang.action: report)";
  return "; if it does not go on at once its gang is restarted (supervision.hang.action: restart)";
}

void HangWatch::tell_unwatched(const RankReport& report, Instant now) {
  const MeshId mesh = report.process.rank.mesh;
  if (report.phase != RankPhase::kRunning || unwatched_.contains(mesh)) return;
  const Instant since = runs_since_.try_emplace(mesh, now).first->second;
  if (now - since < kUnwatchedAfter || !watch_.never_spoke(mesh)) return;
  unwatched_.insert(mesh);
  JobEvent event;
  event.kind = EventKind::kMeshUnwatched;
  event.mesh = core_.spec().meshes[mesh.value()].name;
  event.message =
      text(event.mesh,
           ": no rank of it says a step or a phase (X_MONARCH_STEP; step() of monarch_rank.py), so a hang of "
           "it will not be seen");
  tell(std::move(event));
}

// The dump comes first: what is restarted has no stacks any more. It takes its time, and whoever moved on meanwhile, or
// is somebody's business now, is no hang.
void HangWatch::on_verdict(RankHung hung) {
  if (!handlers_.dump) return handlers_.decide(hung);
  const RankId rank = hung.process.rank;
  const auto then = scope_.guard([this, hung = std::move(hung)](std::string stacks) mutable {
    if (watch_.suspended(hung.process.rank) || !watch_.holds(hung)) return watch_.retract(hung.process.rank);
    hung.stacks = std::move(stacks);
    handlers_.decide(hung);
  });
  handlers_.dump(rank, then);
}

void HangWatch::signalled(const std::vector<RankId>& ranks, int number) {
  if (!concerns(number)) return;
  ask(number == SIGCONT ? HoldWish::kContinue : HoldWish::kStop, ranks, "monarch signal");
}

bool HangWatch::concerns(int number) { return number == SIGSTOP || number == SIGTSTP || number == SIGCONT; }

std::string HangWatch::hold(const HoldRequest& request) {
  const std::string count = text(request.ranks.size(), request.ranks.size() == 1 ? " rank" : " ranks");
  std::vector<RankId> changed;
  std::copy_if(request.ranks.begin(), request.ranks.end(), std::back_inserter(changed),
               [&](RankId rank) { return is_held(core_.facts(), rank) == request.release; });
  if (changed.empty()) return text(count, request.release ? ": none was held" : ": held already");
  ask(request.release ? HoldWish::kRelease : HoldWish::kHold, changed, request.who);
  return text(count,
              request.release ? " watched for hangs again" : " not watched for hangs until monarch hold --release");
}

void HangWatch::ask(HoldWish wish, const std::vector<RankId>& ranks, const std::string& who) {
  for (auto next = ranks.begin(); next != ranks.end();) {
    const auto end = next + std::min<std::ptrdiff_t>(ranks.end() - next, kRanksARecord);
    handlers_.decide(HoldAsked{.wish = wish, .ranks = {next, end}, .who = who});
    next = end;
  }
  for (const RankId& rank : ranks) update(rank);
}

void HangWatch::update(RankId rank) { is_left_alone(core_.facts(), rank) ? watch_.hold(rank) : watch_.release(rank); }

}  // namespace monarch
