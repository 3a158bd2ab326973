// RankProcesses: which of them stand still.

#include <utility>

#include "worker/keeper/rank_processes.h"

namespace monarch {

namespace {

constexpr Duration kLookEvery = Duration::seconds(1);

}  // namespace

void RankProcesses::look_at_stopped() {
  look([](const Process& process) { return was_stopped_or_continued(process.child->pidfd()); });
}

// While there is anything to look at.
void RankProcesses::look_every_second() {
  if (look_timer_ != 0) return;
  look_timer_ = loop_.at(loop_.now() + kLookEvery, [this] {
    look_timer_ = 0;
    bool any = false;
    look([&any](const Process&) { return any = true; });
    if (any) look_every_second();
  });
}

void RankProcesses::look(const std::function<bool(const Process&)>& at) {
  std::vector<keeper_event::Stood> news;
  for (auto& [key, process] : processes_) {
    if (!process.contained || !process.child || !at(process)) continue;
    const auto standing = read_standing(process.child->pid());
    if (!standing) continue;
    const bool ours = standing->tracer != 0 && options_.is_dump(standing->tracer);
    if (ours) continue;  // it shows as held by our debugger, whatever it did before: what it was is what it is
    const Standstill stands = process.standstill.judge(*standing, containment_.frozen(process.name), ours, loop_.now());
    // What goes on is told each time: a keeper that thaws a rank does not know who else holds it.
    const bool told = std::exchange(process.stands, stands) == stands && stands == Standstill::kNone;
    if (!told) news.push_back({key, stands});
  }
  for (const keeper_event::Stood& one : news) tell_(one);
}

}  // namespace monarch
