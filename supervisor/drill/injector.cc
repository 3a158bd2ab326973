#include "supervisor/drill/injector.h"

#include <utility>
#include <variant>

#include "supervisor/core/state/launch_failure.h"
#include "supervisor/doctor/host_seen.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

constexpr std::size_t kLooksAtATime = 16;  // each is a session, or a process

std::string failure_text(const LaunchFailure& failure) {
  return printable(text(name_of(failure.kind), ": ", failure.message));
}

Injected injected_of(const CheckOutcome& outcome) {
  Injected what;
  if (const auto* failure = std::get_if<LaunchFailure>(&outcome)) {
    what.error = failure_text(*failure);
    return what;
  }
  const auto& timed = std::get<TimedAnswer>(outcome);
  const auto& struck = timed.answer.struck;
  if (!struck) {
    what.error = "the worker there knows no faults: it is older than this monarch";
    return what;
  }
  const doctor::ClockSample clock =
      doctor::clock_sample(timed.left, timed.answer.received, timed.answer.answered, timed.came);
  const auto ours = [&clock](WallTime theirs) {
    return WallTime{theirs.nanoseconds_since_epoch - clock.offset.count_nanoseconds()};
  };
  what.error = printable(struck->error);
  what.struck = struck->struck;
  what.struck_at = ours(struck->struck_at);
  what.seen_at = ours(struck->seen_at);
  what.clock_error = clock.bound;
  return what;
}

Injected unwanted() {
  Injected what;
  what.error = "it was taken back before it struck";
  return what;
}

}  // namespace

Injector::~Injector() {
  for (auto& [ticket, running] : running_) loop_.cancel(running.timer);
}

Injector::Ticket Injector::strike(Reached where, StrikeOrder order, Duration lasts, OnInjected on_injected,
                                  OnUndone on_undone) {
  const Ticket ticket = next_++;
  Running& running = running_[ticket];
  running.where = where;
  running.order = order;
  running.lasts = lasts;
  running.on_injected = std::move(on_injected);
  running.on_undone = std::move(on_undone);
  running.talk = reach_.open(where, [this, ticket](const LaunchFailure& why) { let_go_on(ticket, why); });
  // The host has more time than we wait: a talk whose end is lost is over there by itself.
  CheckRequest blow{.life = lasts + patience_ * 2, .patience = patience_, .strike = std::move(order)};
  // First a word of it: what it takes to begin would be taken for a difference of the clocks.
  running.talk->ask(
      {.life = blow.life, .patience = patience_}, [this, ticket, blow = std::move(blow)](const CheckOutcome& outcome) {
        if (std::holds_alternative<LaunchFailure>(outcome)) return injected(ticket, injected_of(outcome));
        const Running& reached = running_.at(ticket);
        if (reached.phase == Phase::kUnwanted) return injected(ticket, unwanted());
        reached.talk->ask(blow, [this, ticket](const CheckOutcome& struck) { injected(ticket, injected_of(struck)); });
      });
  return ticket;
}

void Injector::injected(Ticket ticket, const Injected& what) {
  const auto found = running_.find(ticket);
  if (found == running_.end()) return;
  Running& running = found->second;
  const OnInjected tell = std::move(running.on_injected);
  if (!what.error.empty()) {
    running_.erase(found);
  } else if (running.phase == Phase::kUnwanted) {
    end(ticket);
  } else {
    running.phase = Phase::kLasting;
    running.timer = loop_.at(loop_.now() + running.lasts, [this, ticket] { end(ticket); });
  }
  tell(what);
}

void Injector::undo(Ticket ticket) {
  const auto found = running_.find(ticket);
  if (found == running_.end()) return;
  if (found->second.phase == Phase::kStriking) found->second.phase = Phase::kUnwanted;
  if (found->second.phase == Phase::kLasting) end(ticket);
}

void Injector::end(Ticket ticket) {
  Running& running = running_.at(ticket);
  running.phase = Phase::kEnding;
  loop_.cancel(std::exchange(running.timer, 0));
  running.talk->ask(
      {.life = patience_, .patience = patience_, .undo = true}, [this, ticket](const CheckOutcome& outcome) {
        if (const auto* lost = std::get_if<LaunchFailure>(&outcome)) return let_go_on(ticket, *lost);
        const auto* timed = std::get_if<TimedAnswer>(&outcome);
        const auto felt = timed != nullptr && timed->answer.struck ? timed->answer.struck->felt : std::nullopt;
        undone(ticket, {.error = injected_of(outcome).error, .felt = felt});
      });
}

// The host has taken it back with the talk, unless whatever ended that has killed all who would have: Slurm ends a
// step, and logind a session, by killing everybody in it. A talk of its own sees to those who would stand still for
// ever.
void Injector::let_go_on(Ticket ticket, const LaunchFailure& why) {
  const auto found = running_.find(ticket);
  if (found == running_.end()) return;
  Running& running = found->second;
  running.phase = Phase::kEnding;
  loop_.cancel(std::exchange(running.timer, 0));
  const std::string lost = text("the talk with the host ended before its time (", failure_text(why), ")");
  if (running.order.what != StrikeWhat::kStop) return undone(ticket, {.error = lost, .felt = {}});
  running.talk.reset();
  running.talk = reach_.open(running.where, {});
  running.talk->ask({.life = patience_, .patience = patience_, .strike = running.order, .undo = true},
                    [this, ticket, lost](const CheckOutcome& outcome) {
                      const std::string error = injected_of(outcome).error;
                      undone(ticket,
                             {.error = error.empty() ? "" : text(lost, ", and another one: ", error), .felt = {}});
                    });
}

void Injector::undone(Ticket ticket, const Undone& what) {
  const auto found = running_.find(ticket);
  if (found == running_.end()) return;
  loop_.cancel(found->second.timer);
  const OnUndone tell = std::move(found->second.on_undone);
  running_.erase(found);
  tell(what);
}

void Injector::look(Reached where, CheckRequest request, OnSeen on_seen) {
  waiting_.push_back({.where = where, .request = std::move(request), .on_seen = std::move(on_seen)});
  start_looks();
}

void Injector::start_looks() {
  while (looks_.size() < kLooksAtATime && !waiting_.empty()) {
    const Ticket ticket = next_++;
    Look look = std::move(waiting_.front());
    waiting_.pop_front();
    auto& talk = looks_[ticket];
    talk = reach_.open(look.where, {});
    talk->ask(look.request, [this, ticket, on_seen = std::move(look.on_seen)](const CheckOutcome& outcome) {
      looks_.erase(ticket);
      start_looks();
      on_seen(outcome);
    });
  }
}

}  // namespace monarch::drill
