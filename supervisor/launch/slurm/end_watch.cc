#include "supervisor/launch/slurm/end_watch.h"

#include <algorithm>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Of the time from TERM to KILL, for Slurm to say what its signal means.
constexpr std::int64_t kShareToAsk = 3;

// An end that is told sooner than that after one more question is the same one.
constexpr Duration kNear = Duration::seconds(1);

}  // namespace

EndWatch::EndWatch(EventLoop& loop, SlurmCalls& calls, EndWatchOptions options, EndWatchHandlers handlers)
    : loop_(loop), calls_(calls), options_(std::move(options)), handlers_(std::move(handlers)), warn_(options_.warn) {}

EndWatch::~EndWatch() {
  loop_.cancel(timer_);
  loop_.cancel(patience_);
}

void EndWatch::begin() {
  calls_.call(kill_wait_query(options_.environment), scope_.guard([this](const Result<std::string>& answer) {
    if (!answer.ok()) return;
    kill_wait_ = read_kill_wait(*answer).value_or(kUsualKillWait);
  }));
  look();
}

void EndWatch::ask(std::function<void(const Result<std::string>&)> then) {
  calls_.call(job_end_query(options_.job, options_.environment),
              scope_.guard([then = std::move(then)](const Result<std::string>& answer) { then(answer); }));
}

void EndWatch::look() {
  if (options_.warn <= Duration::zero()) return;
  ask([this](const Result<std::string>& answer) {
    if (answer.ok()) note(read_job_end(*answer, options_.job));
    if (!answer.ok()) log_warn("when Slurm's job ", options_.job, " ends: ", answer.error().message);
    look_later();
  });
}

// The controller's wall clock is taken for ours: munge serves nobody whose clock is minutes off.
Instant EndWatch::by_of(std::int64_t end) const {
  const std::int64_t now = wall_now().nanoseconds_since_epoch / 1'000'000'000;
  return loop_.now() + Duration::seconds(end - now);
}

void EndWatch::note(const JobEnd& seen) {
  if (seen.state != SlurmJobState::kRunning) return;
  by_.reset();
  if (!seen.end) return;
  by_ = by_of(*seen.end);
  std::optional<Duration> limit;
  if (seen.start && *seen.end > *seen.start) limit = Duration::seconds(*seen.end - *seen.start);
  warn_ = warning_of(options_.warn, limit);
  if (warn_ == options_.warn || seen.preempted || std::exchange(short_told_, true)) return;
  handlers_.on_short(text("launch.slurm.warn is ", to_text(options_.warn), ", and Slurm's job ", options_.job,
                          " may run for ", to_text(*limit), ": ranks are told ", to_text(warn_), " before its end"));
}

// Where its controller does not answer its last word counts.
void EndWatch::look_later() {
  const Instant now = loop_.now();
  Instant next = now + options_.again;
  if (by_) {
    const Instant due = *by_ - warn_;
    if (due <= now + kNear) {
      return foresee(ForeseenKind::kTimeLimit, text("the time of Slurm's job ", options_.job, " is nearly over"), *by_);
    }
    next = std::min(next, due);
  }
  timer_ = loop_.at(next, [this] { look(); });
}

void EndWatch::on_warned(const std::string& node) {
  if (warned_at_) return;
  warned_at_ = loop_.now();
  log_warn("Slurm has signalled what runs on ", node, ": what that means is asked");
  handlers_.on_foreseen({.why = text("Slurm has signalled its job ", options_.job)});
  patience_ = loop_.at(*warned_at_ + kill_wait_ / kShareToAsk, [this] {
    judge(Error{ErrorCode::kTimeout, "Slurm did not say what its signal means"});
  });
  ask([this](const Result<std::string>& answer) { judge(answer); });
}

// Of a job that runs on and has time, it is the word of an operator who knows more than Slurm.
void EndWatch::judge(const Result<std::string>& answer) {
  if (std::exchange(judged_, true)) return;
  loop_.cancel(std::exchange(patience_, 0));
  const Instant kill = *warned_at_ + kill_wait_;
  const std::string signalled = text("Slurm has signalled its job ", options_.job);
  if (!answer.ok()) {
    log_warn(answer.error().message);
    return foresee(ForeseenKind::kPreempted, signalled, kill);
  }
  const JobEnd seen = read_job_end(*answer, options_.job);
  const bool over = seen.state != SlurmJobState::kRunning;
  if (seen.preempted) {
    // WARNING: of a job without a time limit scontrol 22.05 shows an EndTime of Unknown, also while its GraceTime runs
    // out.
    const Instant by = !over && seen.end ? std::max(by_of(*seen.end), kill) : kill;
    return foresee(ForeseenKind::kPreempted, text("Slurm preempts its job ", options_.job), by);
  }
  if (seen.time_is_up) {
    return foresee(ForeseenKind::kTimeLimit, text("the time of Slurm's job ", options_.job, " is over"), kill);
  }
  if (!over) return foresee(ForeseenKind::kPreempted, signalled, kill);
  // Where nobody finds out why, nothing runs there by then all the same.
  patience_ = loop_.at(kill, [this, signalled, kill] { foresee(ForeseenKind::kPreempted, signalled, kill); });
  handlers_.on_ending();
}

void EndWatch::foresee(ForeseenKind kind, const std::string& why, Instant by) {
  loop_.cancel(std::exchange(timer_, 0));
  handlers_.on_foreseen({.kind = kind, .why = why, .by = by});
}

}  // namespace monarch
