#include "supervisor/launch/ssh/ssh_pool.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

void raise(const UniqueFd& eventfd) {
  const std::uint64_t one = 1;
  (void)!::write(eventfd.get(), &one, sizeof one);  // cannot be full: it is written once
}

}  // namespace

Result<std::unique_ptr<SshPool>> SshPool::create(EventLoop& loop, SshPoolOptions options) {
  MONARCH_ASSERT(options.parallel > 0 && options.attempts > 0);
  std::unique_ptr<SshPool> pool(new SshPool(loop, options));
  // One report of each running task at most.
  MONARCH_ASSIGN(pool->reports_, Inbox<Report>::create(options.parallel));
  MONARCH_ASSIGN(pool->watch_,
                 loop.watch(pool->reports_->descriptor(), Interest::kRead, [self = pool.get()](Readiness) {
                   for (Report& report : self->reports_->take_all()) self->on_report(std::move(report));
                   self->fill();
                 }));
  return pool;
}

SshPool::~SshPool() {
  loop_.forget(watch_);
  for (const auto& [ticket, resting] : resting_) loop_.cancel(resting.timer);
  for (const auto& [ticket, running] : running_) raise(running.cancel);
  for (auto& [ticket, running] : running_) running.thread.join();
}

SshPool::Ticket SshPool::submit(SshTask task) {
  const Ticket ticket = next_++;
  queue_.push_back({.ticket = ticket, .task = std::move(task), .number = 1, .began = loop_.now()});
  fill();
  return ticket;
}

void SshPool::cancel(Ticket ticket, std::function<void()> gone) {
  if (const auto running = running_.find(ticket); running != running_.end()) {
    running->second.gone = std::move(gone);
    if (!std::exchange(running->second.cancelled, true)) raise(running->second.cancel);
    return;
  }
  queue_.erase(std::remove_if(queue_.begin(), queue_.end(), [&](const Attempt& a) { return a.ticket == ticket; }),
               queue_.end());
  if (const auto resting = resting_.find(ticket); resting != resting_.end()) {
    loop_.cancel(resting->second.timer);
    resting_.erase(resting);
  }
  if (gone) loop_.defer(std::move(gone));
}

void SshPool::fill() {
  while (running_.size() < options_.parallel && !queue_.empty()) {
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
  UniqueFd cancel(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!cancel.valid()) return errno_error("eventfd", errno);
  const Ticket ticket = attempt.ticket;
  const auto work = [ticket, route = attempt.task.route, talk = attempt.task.talk, cancel_fd = cancel.get(),
                     reports = reports_.get()] {
    Report report{.ticket = ticket};
    {
      auto opened = SshSession::open(route, cancel_fd);
      if (auto* failure = std::get_if<SshFailure>(&opened)) {
        report.outcome = std::move(*failure);
      } else {
        report.outcome = talk(*std::get<std::unique_ptr<SshSession>>(opened), cancel_fd);
      }
    }  // the session has ended before anybody hears of it
    MONARCH_ASSERT(reports->put(std::move(report)));
  };
  Running& running = running_[ticket];
  running.attempt = std::move(attempt);
  running.cancel = std::move(cancel);
  try {
    running.thread = std::thread(work);
  } catch (const std::system_error& error) {  // the user's limit of processes
    running_.erase(ticket);
    return Error{ErrorCode::kBusy, text("starting a thread: ", error.what())};
  }
  return {};
}

void SshPool::on_report(Report report) {
  const auto found = running_.find(report.ticket);
  MONARCH_ASSERT(found != running_.end());
  Running running = std::move(found->second);
  running_.erase(found);
  running.thread.join();  // it reported with its last breath
  if (running.cancelled) {
    if (running.gone) running.gone();
    return;
  }
  if (const auto* deliver = std::get_if<std::function<void()>>(&report.outcome)) return (*deliver)();
  SshFailure& failed = std::get<SshFailure>(report.outcome);
  if (failed.worth_retrying && running.attempt.number < options_.attempts) return rest(std::move(running.attempt));
  failed.failure.elapsed = loop_.now() - running.attempt.began;
  if (running.attempt.number > 1) failed.failure.message += text(" (", running.attempt.number, " attempts)");
  running.attempt.task.on_failed(std::move(failed.failure));
}

void SshPool::rest(Attempt attempt) {
  const Duration wait = options_.first_wait * (std::int64_t{1} << (attempt.number - 1U));
  const auto more = static_cast<std::int64_t>(chance(static_cast<std::uint64_t>(wait.count_nanoseconds())));
  const Ticket ticket = attempt.ticket;
  ++attempt.number;
  const TimerId timer = loop_.at(loop_.now() + wait + Duration::nanoseconds(more), [this, ticket] {
    auto resting = resting_.extract(ticket);
    queue_.push_back(std::move(resting.mapped().attempt));
    fill();
  });
  resting_.emplace(ticket, Resting{std::move(attempt), timer});
}

// xorshift64: waits need to differ, not to be secret.
std::uint64_t SshPool::chance(std::uint64_t below) {
  state_ ^= state_ << 13U;
  state_ ^= state_ >> 7U;
  state_ ^= state_ << 17U;
  return state_ % std::max<std::uint64_t>(below, 1);
}

}  // namespace monarch
