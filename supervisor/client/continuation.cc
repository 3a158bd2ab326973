#include "supervisor/client/continuation.h"

#include "supervisor/client/job_resolver.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/client/submission.h"
#include "supervisor/journal/job_lock.h"
#include "transport/base/clock.h"
#include "transport/base/json.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kLinkBytes = 4U << 10U;  // a larger file is not ours

std::optional<std::string> linked(const SecureDirectory& job, const char* file) {
  const auto json = job.read_file(file, kLinkBytes);
  const auto parsed = json.ok() ? parse_json(*json) : Result<Json>(json.error());
  const auto id = parsed.ok() ? parsed->get_string("job") : std::nullopt;
  return id && is_job_id(*id) ? id : std::nullopt;
}

Status write_link(const JobDirectory& job, const char* file, const std::string& id) {
  return job.directory.write_file(file, to_json(Json::object({{"v", 1}, {"job", id}})) + "\n");
}

// Empty where there is none.
Result<std::string> file_of(const JobDirectory& job, const char* name) {
  auto bytes = job.directory.read_file(name, limits::kSpecBytes);
  if (bytes.ok() || bytes.error().code != ErrorCode::kNotFound) return bytes;
  return std::string();
}

}  // namespace

std::optional<std::string> continues_from(const SecureDirectory& job) { return linked(job, kContinuesFile); }

std::optional<std::string> continued_as(const SecureDirectory& job) { return linked(job, kContinuedFile); }

Status link_continuation(const JobDirectory& job, const JobDirectory& next) {
  MONARCH_TRY(write_link(next, kContinuesFile, job.id));
  return write_link(job, kContinuedFile, next.id);
}

Result<JobDirectory> make_continuation(const StateDir& state, const JobDirectory& job, std::uint32_t slurm_job) {
  MONARCH_ASSIGN(std::string spec, file_of(job, kSpecFile));
  MONARCH_ASSIGN(std::string folder, file_of(job, kSpecDirectoryFile));
  MONARCH_ASSIGN(std::string origin, file_of(job, kSpecOriginFile));
  MONARCH_ASSIGN(const std::string script, file_of(job, kSubmissionScriptFile));
  MONARCH_ASSIGN(JobDirectory next, state.create_job(job_name(job.id), random_suffix));
  MONARCH_TRY(write_job_files(
      next, {.spec = std::move(spec), .spec_directory = std::move(folder), .origin = std::move(origin)}));
  if (!script.empty()) MONARCH_TRY(next.directory.write_file(kSubmissionScriptFile, script));
  const SubmittedJob submitted{.job = slurm_job, .submitted = "", .host = this_process_as_holder(wall_now()).host};
  MONARCH_TRY(next.directory.write_file(kSubmittedFile, write_submitted(submitted)));
  MONARCH_TRY(link_continuation(job, next));
  return next;
}

}  // namespace monarch
