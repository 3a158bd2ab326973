// As supervisor.cc and viewers.cc: what is done about ranks that do not get on, and what an operator does to them.

#include <algorithm>
#include <csignal>
#include <utility>

#include "supervisor/core/job/drill_notice.h"
#include "tests/sim/checker.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/text.h"

namespace monarch::sim {

void Supervisor::open_hangs() {
  HangWatchHandlers handlers{.decide = [this](const CoreEvent& event) { (void)decide(event); }};
  if (!world_.mutant(Mutant::kNoStacks)) {
    handlers.dump = [this](RankId rank, const std::function<void(std::string)>& then) { take_stacks(rank, then); };
  }
  hangs_.emplace(*core_, std::move(handlers));
}

// Answered by its host, or by the deadline.
void Supervisor::take_stacks(RankId rank, const std::function<void(std::string)>& then) {
  const Generation generation = core_->facts().crew_with(rank).generation;
  world_.note("stacks", rank.mesh.value(), rank.rank.value());
  const Duration wait = world_.random.skewed(Duration::milliseconds(20), Duration::milliseconds(2'500));
  send_after(world_.scheduler, wait, life_, [this, rank, generation, then] {
    world_.checker->hangs().dumped(rank, generation);
    then("all_reduce, or why there are no stacks");
  });
}

void Supervisor::when_durable(std::function<void()> then) {
  waiting_.push_back({.ticket = last_ticket_, .actions = {}, .then = std::move(then)});
  release();
}

void Supervisor::hold(const HoldRequest& request) {
  if (!open()) return;
  world_.note(request.release ? "released" : "held", request.ranks.size());
  HangAccount& account = world_.checker->hangs();
  request.release ? account.released(request.ranks) : account.asked_to_hold(request.ranks);
  if (!world_.mutant(Mutant::kForgetHolds)) (void)hangs_->hold(request);
  if (request.release) return;
  when_durable([&account, ranks = request.ranks] { account.held(ranks); });
}

// As viewers.cc.
void Supervisor::drill(const DrillNotice& notice, const std::function<void()>& then) {
  if (!open()) return;
  const Result<DrillPlan> plan = drill_plan(*core_, notice, now());
  world_.note("drill", static_cast<std::uint64_t>(notice.what), plan.ok() ? 1 : 0, notice.number);
  if (!plan.ok()) return;
  DrillNoted event = plan->event;
  if (world_.mutant(Mutant::kDrillExplainsNothing)) event.forgiven = false;
  (void)decide(event);
  if (world_.mutant(Mutant::kDrillExplainsAll) && event.what == DrillWhat::kFault) {
    event.rank.reset();
    for (std::uint32_t i = 0; i < core_->hosts().size(); ++i) {
      event.number += kPlanted;
      event.host = HostId(i);
      (void)decide(event);
    }
  }
  when_durable(then);
}

void Supervisor::signal(std::vector<RankId> ranks, int number) {
  if (!open()) return;
  std::erase_if(ranks, [&](const RankId& rank) {
    const RankStage stage = state_parts::member(core_->state(), rank).stage;
    return !lives(stage) || stage == RankStage::kStarting;
  });
  if (ranks.empty()) return;
  world_.note("signalled", ranks.size(), static_cast<std::uint64_t>(number));
  if (number == SIGCONT) world_.checker->hangs().continued(ranks);
  if (!world_.mutant(Mutant::kForgetHolds)) hangs_->signalled(ranks, number);
  if (number == SIGSTOP) world_.checker->hangs().stopped(ranks, *core_);
  when_durable([this, ranks, number] {
    if (number == SIGSTOP) world_.checker->hangs().stop_is_durable(ranks);
    for (const RankId& rank : ranks) {
      const Generation generation = core_->facts().crew_with(rank).generation;
      const HostId host = place_of(core_->facts(), rank);
      if (judge(core_->facts(), host, {.process = {rank, generation}}).granted)
        send(host, Signal{.ranks = {rank}, .generation = generation, .number = number});
    }
  });
}

}  // namespace monarch::sim
