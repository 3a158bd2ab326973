// What the supervisor does beside its beats: output is copied, and checkpoints are ruled on.

#include "tests/sim/checker.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"

namespace monarch::sim {

namespace {

constexpr Duration kLongestCopy = Duration::seconds(5);

}  // namespace

// As OutputRelay: what a host of its own has is pulled over the bulk link, which takes its time. Whose host is gone is
// asked for again by the next beat.
void Supervisor::copy(const RankReport& report) {
  const Incarnation process = report.process;
  if (!report.output_complete || !copying_.insert(process).second) return;
  const bool known = world_.checker->heard().is_copied(process);  // by a supervisor before this one
  const Duration takes =
      world_.random.skewed(Duration::milliseconds(1), known ? Duration::milliseconds(20) : kLongestCopy);
  send_after(world_.scheduler, takes, life_, [this, process] {
    copying_.erase(process);
    const auto host = where_ran(core_->facts(), process);
    if (!host || !world_.reachable(*host)) return;
    world_.checker->heard().copied(process);
    book_->on_copied(process);
  });
}

void Supervisor::open_commits() {
  commits_.emplace(*core_,
                   CommitDeskHandlers{.decide = [this](const CoreEvent& event) { return decide(event); },
                                      .is_durable = [this](std::uint64_t ticket) { return durable_ticket_ >= ticket; },
                                      .answer = [this](HostId host, const CommitAnswer& told) { answer(host, told); }});
}

void Supervisor::answer(HostId host, const CommitAnswer& told) {
  world_.checker->answers(told);
  send(host, told);
}

}  // namespace monarch::sim
