#include "supervisor/client/continuation.h"

#include <algorithm>

#include "supervisor/client/job_resolver.h"
#include "supervisor/client/job_view.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/journal/job_lock.h"
#include "supervisor/launch/slurm/submission.h"
#include "transport/base/clock.h"
#include "transport/base/json.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kLinkBytes = 4U << 10U;  // a larger file is not ours
constexpr std::size_t kMostInARow = 64;        // that go on from each other

std::optional<std::string> linked(const SecureDirectory& job, const char* file) {
  const auto json = job.read_file(file, kLinkBytes);
  const auto parsed = json.ok() ? parse_json(*json) : Result<Json>(json.error());
  const auto id = parsed.ok() ? parsed->get_string("job") : std::nullopt;
  return id && is_job_id(*id) ? id : std::nullopt;
}

Status write_link(const SecureDirectory& job, const char* file, const std::string& id) {
  return job.write_file(file, to_json(Json::object({{"v", 1}, {"job", id}})) + "\n");
}

// Empty where there is none.
Result<std::string> file_of(const JobDirectory& job, const char* name) {
  auto bytes = job.directory.read_file(name, limits::kSpecBytes);
  if (bytes.ok() || bytes.error().code != ErrorCode::kNotFound) return bytes;
  return std::string();
}

}  // namespace

std::optional<std::string> continues_from(const SecureDirectory& job) { return linked(job, kContinuesFile); }

Status write_continues(const SecureDirectory& job, const std::string& from) {
  return write_link(job, kContinuesFile, from);
}

std::optional<std::string> continued_as(const StateDir& state, const JobDirectory& job) {
  auto next = linked(job.directory, kContinuedFile);
  const auto opened = next ? state.open_job(*next) : Result<JobDirectory>(Error{});
  if (!opened.ok() || continues_from(opened->directory) != job.id) return std::nullopt;
  // Whoever follows a row must come to its end, also where somebody's hand has bent the files into a ring.
  const std::vector<std::string> before = all_before(state, job);
  const bool ring = *next == job.id || std::find(before.begin(), before.end(), *next) != before.end();
  return ring ? std::nullopt : next;
}

std::vector<std::string> all_before(const StateDir& state, const JobDirectory& job) {
  std::vector<std::string> ids;
  for (auto from = continues_from(job.directory); from && ids.size() < kMostInARow;) {
    ids.push_back(*from);
    const auto before = state.open_job(*from);
    from = before.ok() ? continues_from(before->directory) : std::nullopt;
  }
  return ids;
}

std::optional<std::string> needed_by(const StateDir& state, const JobDirectory& job) {
  auto next = continued_as(state, job);
  for (std::size_t row = 0; next && row < kMostInARow; ++row) {
    const auto view = JobView::open(state, *next);
    if (!view.ok()) return std::nullopt;
    const auto verdict = view->verdict();
    if (!verdict.ok() || !*verdict) return next;
    next = continued_as(state, view->directory());
  }
  return std::nullopt;
}

// The last word makes it one that waits: what a crash or a full disk leaves of it before is nobody's.
Result<JobDirectory> make_continuation(const StateDir& state, const JobDirectory& job) {
  MONARCH_ASSIGN(std::string spec, file_of(job, kSpecFile));
  MONARCH_ASSIGN(std::string folder, file_of(job, kSpecDirectoryFile));
  MONARCH_ASSIGN(std::string origin, file_of(job, kSpecOriginFile));
  MONARCH_ASSIGN(const std::string script, file_of(job, kSubmissionScriptFile));
  MONARCH_ASSIGN(JobDirectory next, state.create_job(job_name(job.id), random_suffix));
  MONARCH_TRY(write_job_files(
      next, {.spec = std::move(spec), .spec_directory = std::move(folder), .origin = std::move(origin)}));
  if (!script.empty()) MONARCH_TRY(next.directory.write_file(kSubmissionScriptFile, script));
  MONARCH_TRY(write_continues(next.directory, job.id));
  MONARCH_TRY(write_link(job.directory, kContinuedFile, next.id));
  return next;
}

Status submit_continuation(const JobDirectory& next, std::uint32_t slurm_job) {
  const SubmittedJob submitted{.job = slurm_job, .submitted = "", .host = this_process_as_holder(wall_now()).host};
  return next.directory.write_file(kSubmittedFile, write_submitted(submitted));
}

}  // namespace monarch
