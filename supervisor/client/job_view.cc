#include "supervisor/client/job_view.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>

#include "supervisor/client/link/supervisor_client.h"
#include "supervisor/client/link/viewer_json.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/core/job/status.h"
#include "supervisor/journal/core_records.h"
#include "supervisor/journal/journal_layout.h"
#include "supervisor/launch/slurm/submission.h"
#include "transport/base/clock.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"
#include "transport/messages/viewer.h"
#include "transport/wire/codec.h"

namespace monarch {

namespace {

constexpr std::size_t kVerdictBytes = 1U << 20U;  // its longest part is the tail of a rank's stderr, escaped
constexpr int kLookAtLock = 20;                   // milliseconds
constexpr std::size_t kDirectoryBytes = 4096;     // PATH_MAX

}  // namespace

Result<JobView> JobView::open(const StateDir& state, const std::string& id) {
  MONARCH_ASSIGN(JobDirectory job, state.open_job(id));
  return JobView(std::move(job));
}

std::string JobView::log_directory() const { return text(path(), "/", kLogDirectory); }

bool JobView::live() const {
  const auto locked = is_locked(job_.directory);
  return locked.ok() && *locked;
}

bool JobView::is_left_within(Duration patience) const {
  const Instant until = boot_now() + patience;
  while (live()) {
    if (boot_now() >= until) return false;
    (void)::poll(nullptr, 0, kLookAtLock);  // nobody tells that a lock is free but who waits for it to take it
  }
  return true;
}

std::optional<LockHolder> JobView::awaited_from() const {
  const auto guard = guard_holder(job_.directory);
  return guard.ok() && !live() ? *guard : std::nullopt;
}

namespace {

bool is_there(const JobDirectory& job, const char* name) {
  struct stat what {};
  return ::fstatat(job.directory.fd(), name, &what, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace

// The endpoint goes with the end of a job; the journal stays.
bool JobView::never_began() const {
  if (!submitted() || is_there(job_, kEndpointFile)) return false;
  auto directory = job_.directory.duplicate();
  if (!directory.ok()) return true;
  const auto names = posix_journal_files(std::move(*directory))->list();
  return !names.ok() || std::none_of(names->begin(), names->end(),
                                     [](const std::string& name) { return segment_number(name).has_value(); });
}

bool JobView::submitted() const { return is_there(job_, kSubmittedFile); }

bool JobView::queued() const { return never_began() && !is_there(job_, kVerdictFile); }

Result<Endpoint> JobView::endpoint() const {
  MONARCH_ASSIGN(const std::string json, job_.directory.read_file(kEndpointFile, kEndpointBytes));
  return parse_endpoint(json);
}

Result<std::string> JobView::spec_text() const { return job_.directory.read_file(kSpecFile, limits::kSpecBytes); }

Result<std::string> JobView::spec_directory() const {
  return job_.directory.read_file(kSpecDirectoryFile, kDirectoryBytes);
}

Result<JournalContents> JobView::read_journal_contents() const {
  MONARCH_ASSIGN(UniqueFd directory, job_.directory.duplicate());
  const std::unique_ptr<JournalFiles> files = posix_journal_files(std::move(directory));
  MONARCH_ASSIGN(JournalContents contents, read_journal(*files));
  if (contents.usable()) return contents;
  return Error{ErrorCode::kInvalid, text("the journal of ", job_.id, " cannot be read: ", contents.describe_end())};
}

Result<std::optional<Verdict>> JobView::verdict() const {
  const auto json = job_.directory.read_file(kVerdictFile, kVerdictBytes);
  if (json.ok()) {
    MONARCH_ASSIGN(Verdict verdict, parse_verdict(*json));
    return std::optional<Verdict>(std::move(verdict));
  }
  if (json.error().code != ErrorCode::kNotFound) return json.error();
  if (live()) return std::optional<Verdict>();
  MONARCH_ASSIGN(const JournalContents contents, read_journal_contents());
  for (auto record = contents.records.rbegin(); record != contents.records.rend(); ++record) {
    if (record->type != RecordType::kVerdict) continue;
    MONARCH_ASSIGN(Verdict verdict, decode_payload<Verdict>(record->payload));
    return std::optional<Verdict>(std::move(verdict));
  }
  return std::optional<Verdict>();
}

Result<JobStatus> JobView::status(const JobSpec& spec) const {
  if (live()) {
    const auto where = endpoint();
    auto status = where.ok() ? ask(viewer_address(*where), StatusRequest{}) : Result<JobStatus>(where.error());
    // Without anybody at the other end the journal is the best there is; anything else is to be known.
    if (status.ok()) return status;
    const ErrorCode code = status.error().code;
    if (code != ErrorCode::kGone && code != ErrorCode::kNotFound) return status;
  }
  return status_from_journal(spec);
}

Result<std::optional<Inheritance>> JobView::inheritance(const JobSpec& before, const JobSpec& spec) const {
  MONARCH_ASSIGN(const JournalContents contents, read_journal_contents());
  JobCore core(before, pool_of(before), {.job_id = job_.id, .log_directory = log_directory()});
  MONARCH_TRY(replay(contents, core));
  if (core.state().phase == JobPhase::kNew) return std::optional<Inheritance>();
  return std::optional(inherit(spec, before, core.state()));
}

Result<JobStatus> JobView::status_from_journal(const JobSpec& spec) const {
  MONARCH_ASSIGN(const JournalContents contents, read_journal_contents());
  JobCore core(spec, pool_of(spec), {.job_id = job_.id, .log_directory = log_directory()});
  MONARCH_TRY(replay(contents, core));
  const std::vector<Record>& last = contents.records.empty() ? contents.history : contents.records;
  JobStatus status = status_of(core, job_.id, last.empty() ? Instant() : last.back().now);
  const std::vector<Record>& first = contents.history.empty() ? contents.records : contents.history;
  if (!first.empty()) status.started = first.front().wall;
  MONARCH_ASSIGN(const std::optional<Verdict> said, verdict());
  if (said) {
    status.phase = "ended";
    status.verdict = said;
  }
  return status;
}

std::optional<JobEvent> event_of(const Record& record) {
  if (record.type != RecordType::kEvent) return std::nullopt;
  auto event = decode_job_event(record.payload);
  if (!event.ok()) return std::nullopt;
  return std::move(*event);
}

Result<JobView::Events> JobView::events() const {
  MONARCH_ASSIGN(UniqueFd directory, job_.directory.duplicate());
  const std::unique_ptr<JournalFiles> files = posix_journal_files(std::move(directory));
  MONARCH_ASSIGN(const JournalContents contents, read_journal(*files));
  Events events;
  // What is before a damaged place was written and is shown; the place itself is named.
  if (contents.end != JournalEnd::kClean && contents.end != JournalEnd::kTorn) events.cut = contents.describe_end();
  for (const std::vector<Record>* part : {&contents.history, &contents.records}) {
    for (const Record& record : *part) {
      if (auto event = event_of(record)) events.events.push_back(std::move(*event));
    }
  }
  return events;
}

Result<std::string> JobView::missing_end() const {
  const auto told = job_.directory.read_file(kVerdictFile, kVerdictBytes);
  if (live() || !told.ok()) return std::string();
  MONARCH_ASSIGN(UniqueFd directory, job_.directory.duplicate());
  const std::unique_ptr<JournalFiles> files = posix_journal_files(std::move(directory));
  MONARCH_ASSIGN(const JournalContents contents, read_journal(*files));
  if (contents.end_file.empty()) return std::string();  // it never came to have one
  if (contents.end != JournalEnd::kClean) return contents.describe_end();
  const auto tells = [](const Record& record) { return record.type == RecordType::kVerdict; };
  const bool whole = std::any_of(contents.records.begin(), contents.records.end(), tells) ||
                     std::any_of(contents.history.begin(), contents.history.end(), tells);
  if (whole) return std::string();
  return text(contents.end_file, " at byte ", contents.end_offset, ": it ends there, without the verdict");
}

}  // namespace monarch
