#include "cli/job/submitted_job.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "supervisor/client/continuation.h"
#include "supervisor/client/job_secrets.h"
#include "supervisor/client/link/viewer_json.h"
#include "supervisor/client/new_job.h"
#include "supervisor/client/start_supervisor.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"
#include "transport/process/run_program.h"

namespace monarch {

namespace {

// The first that is written counts: a file that is there is not replaced. Making one first lets a folder on a network
// be looked at anew.
std::optional<Verdict> link_verdict(const JobView& view, const Verdict& verdict, bool of_a_supervisor) {
  const SecureDirectory& job = view.directory().directory;
  const std::string made = text(kVerdictFile, ".", name_of_this_machine(), ".", ::getpid());
  const Status written = job.write_file(made, to_json(verdict_json(verdict)) + "\n");
  const bool begun = !of_a_supervisor && view.endpoint().ok();
  const bool left = written.ok() && !begun && ::linkat(job.fd(), made.c_str(), job.fd(), kVerdictFile, 0) == 0;
  (void)::unlinkat(job.fd(), made.c_str(), 0);
  if (begun) return std::nullopt;
  const auto known = view.verdict();
  if (known.ok() && *known) return **known;
  return left || !written.ok() ? std::optional(verdict) : std::nullopt;
}

}  // namespace

Verdict verdict_without_supervisor(Outcome outcome, int exit_code, CauseKind kind, std::string reason) {
  Verdict verdict;
  verdict.outcome = outcome;
  verdict.exit_code = exit_code;
  verdict.cause.kind = kind;
  verdict.cause.summary = reason;
  verdict.reason = std::move(reason);
  verdict.started = verdict.ended = wall_now();
  return verdict;
}

std::optional<Verdict> leave_verdict(const JobView& view, const Verdict& verdict) {
  return link_verdict(view, verdict, false);
}

std::optional<Verdict> leave_verdict_for_supervisor(const JobView& view, const Verdict& verdict) {
  auto left = link_verdict(view, verdict, true);
  const auto kept = view.verdict();
  if (left && kept.ok() && *kept) remove_secrets(view.directory().directory);
  return left;
}

std::optional<SubmittedJob> submitted_of(const JobView& view) {
  const auto json = view.directory().directory.read_file(kSubmittedFile, kSubmittedBytes);
  if (!json.ok()) return std::nullopt;
  auto parsed = parse_submitted(*json);
  return parsed.ok() ? std::optional(std::move(*parsed)) : std::nullopt;
}

namespace {

// A job that goes on from another one has the same job of Slurm's, under the comment that this has until it is changed,
// or may not be; its number was known while it ran.
bool is_its(const QueuedJob& found, const JobView& view) {
  if (is_submission(found, view.id())) return true;
  const auto from = continues_from(view.directory().directory);
  if (!from || found.job == 0) return false;
  if (!is_any_submission(found)) return true;
  const auto state = open_state();
  if (!state.ok()) return false;
  const std::vector<std::string> before = all_before(*state, view.directory());
  return std::any_of(before.begin(), before.end(), [&](const std::string& id) { return is_submission(found, id); });
}

}  // namespace

// Slurm's word for what it does not know is an error of squeue's.
Result<QueuedJob> ask_queue(const JobView& view, std::uint32_t job, int interrupt) {
  const RunProgramOptions options{.interrupt = interrupt, .without = not_for_asking()};
  if (job == 0) {
    const auto answer = run_program(lost_submission_query(), options);
    if (!answer.ok()) return answer.error();
    return find_submission(*answer, view.id()).value_or(QueuedJob{});
  }
  const auto answer = run_program(queue_query(job), options);
  if (!answer.ok() && says_unknown_job(answer.error().message)) return QueuedJob{};
  if (!answer.ok()) return answer.error();
  QueuedJob found = read_queue(*answer, job);
  return is_its(found, view) ? found : QueuedJob{};
}

std::string called_of(const SubmittedJob& submitted) {
  return submitted.job == 0 ? "its job of Slurm" : text("job ", submitted.job, " of Slurm");
}

bool pause(Duration time, int interrupt) {
  pollfd wait{.fd = interrupt, .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, EventLoop::wait_milliseconds(boot_now(), boot_now() + time)) > 0;
}

}  // namespace monarch
