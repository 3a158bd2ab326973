#include "supervisor/launch/ssh/ssh_pool.h"

#include <algorithm>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

Result<std::unique_ptr<SshPool>> SshPool::create(EventLoop& loop, SshPoolOptions options) {
  MONARCH_ASSERT(options.parallel > 0 && options.attempts > 0);
  std::unique_ptr<SshPool> pool(new SshPool(loop, options));
  // Two of each running task at most, and those are of different hosts.
  const std::size_t most = 2U * (options.parallel + limits::kHostsPerJob);
  auto on_report = [self = pool.get()](Report report) { self->on_report(std::move(report)); };
  MONARCH_ASSIGN(pool->reports_,
                 WatchedInbox<Report>::create(loop, most, std::move(on_report), [self = pool.get()] { self->fill(); }));
  return pool;
}

SshPool::~SshPool() {
  for (const auto& [ticket, resting] : resting_) loop_.cancel(resting.timer);
  for (const auto& [ticket, running] : running_) running.thread->begin_stop();  // all together, before one is joined
}

SshPool::Ticket SshPool::submit(SshTask task) {
  const Ticket ticket = next_++;
  queue_.push_back({.ticket = ticket, .task = std::move(task), .number = 1, .began = loop_.now()});
  fill();
  return ticket;
}

void SshPool::cancel(Ticket ticket, Gone gone) {
  if (const auto running = running_.find(ticket); running != running_.end()) {
    running->second.gone = std::move(gone);
    running->second.cancelled = true;
    running->second.thread->begin_stop();
    return;
  }
  queue_.erase(std::remove_if(queue_.begin(), queue_.end(), [&](const Attempt& a) { return a.ticket == ticket; }),
               queue_.end());
  if (const auto resting = resting_.find(ticket); resting != resting_.end()) {
    loop_.cancel(resting->second.timer);
    resting_.erase(resting);
  }
  // An attempt that rests failed before there was a session.
  if (gone) loop_.defer([gone = std::move(gone)] { gone(Talk::kNever); });
}

void SshPool::fill() {
  while (running() < options_.parallel && !queue_.empty()) {
    Attempt attempt = std::move(queue_.front());
    queue_.pop_front();
    const auto told = attempt.task.on_failed;
    const Status started = start(std::move(attempt));
    if (started.ok()) continue;
    // Not within submit(): its caller does not know the ticket yet.
    loop_.defer([told, message = started.error().message] {
      told(LaunchFailure{.kind = LaunchFailureKind::kOther, .phase = "connect", .message = message});
    });
  }
}

Status SshPool::start(Attempt attempt) {
  const Ticket ticket = attempt.ticket;
  const auto work = [ticket, task = attempt.task, reports = &reports_->inbox()](int cancel) {
    const auto stays = [&](std::function<void()> told) {
      MONARCH_ASSERT(reports->put({.ticket = ticket, .outcome = std::move(told), .stays = true}));
    };
    // The session has ended before anybody hears of it.
    Outcome outcome = visit(task, cancel, stays);
    MONARCH_ASSERT(reports->put({.ticket = ticket, .outcome = std::move(outcome)}));
  };
  MONARCH_ASSIGN(auto thread, JoiningThread::start(work));
  running_.emplace(ticket, Running{.attempt = std::move(attempt), .thread = std::move(thread)});
  return {};
}

// In the session's thread.
SshPool::Outcome SshPool::visit(const SshTask& task, int cancel,
                                const std::function<void(std::function<void()>)>& stays) {
  auto opened = SshSession::open(task.route, cancel);
  if (auto* failure = std::get_if<SshFailure>(&opened)) return std::move(*failure);
  SshVisit visit = task.talk(*std::get<std::unique_ptr<SshSession>>(opened), cancel);
  if (!visit.stay) return std::move(visit.told);
  stays(std::move(visit.told));
  return visit.stay(cancel);
}

void SshPool::on_report(Report report) {
  const auto found = running_.find(report.ticket);
  MONARCH_ASSERT(found != running_.end());
  if (report.stays) {
    found->second.stays = true;
    ++staying_;
    const auto& told = std::get<std::function<void()>>(report.outcome);
    if (told && !found->second.cancelled) told();
    return;
  }
  Running running = std::move(found->second);
  running_.erase(found);
  if (running.stays) --staying_;
  running.thread.reset();  // joined: it reported with its last breath
  if (running.cancelled) {
    const bool no_session = std::holds_alternative<SshFailure>(report.outcome);
    if (running.gone) running.gone(no_session ? Talk::kNever : Talk::kBegun);
    return;
  }
  if (const auto* deliver = std::get_if<std::function<void()>>(&report.outcome)) {
    if (*deliver) (*deliver)();
    return;
  }
  SshFailure& failed = std::get<SshFailure>(report.outcome);
  if (failed.worth_retrying && running.attempt.number < options_.attempts) return rest(std::move(running.attempt));
  failed.failure.elapsed = loop_.now() - running.attempt.began;
  if (running.attempt.number > 1) failed.failure.message += text(" (", running.attempt.number, " attempts)");
  running.attempt.task.on_failed(std::move(failed.failure));
}

void SshPool::rest(Attempt attempt) {
  const Duration wait = options_.first_wait * (std::int64_t{1} << (attempt.number - 1U));
  const Ticket ticket = attempt.ticket;
  ++attempt.number;
  const TimerId timer = loop_.at(loop_.now() + wait + up_to(wait), [this, ticket] {
    auto resting = resting_.extract(ticket);
    queue_.push_back(std::move(resting.mapped().attempt));
    fill();
  });
  resting_.emplace(ticket, Resting{std::move(attempt), timer});
}

// xorshift64: waits need to differ, not to be secret.
Duration SshPool::up_to(Duration most) {
  state_ ^= state_ << 13U;
  state_ ^= state_ >> 7U;
  state_ ^= state_ << 17U;
  const auto below = static_cast<std::uint64_t>(std::max<std::int64_t>(most.count_nanoseconds(), 1));
  return Duration::nanoseconds(static_cast<std::int64_t>(state_ % below));
}

}  // namespace monarch
