#include "supervisor/client/job_resolver.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "supervisor/client/away.h"
#include "supervisor/client/job_glance.h"
#include "supervisor/client/job_view.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/journal/job_lock.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kMostCandidates = 10;

std::string candidates(const std::vector<KnownJob>& jobs) {
  std::string list;
  const std::size_t first = jobs.size() > kMostCandidates ? jobs.size() - kMostCandidates : 0;
  for (std::size_t i = jobs.size(); i > first; --i) {  // the newest first
    const KnownJob& job = jobs[i - 1];
    list += text(list.empty() ? "" : ", ", job.id, " (", life_word(job), ")");
  }
  if (first > 0) list += text(" and ", first, " older");
  return list;
}

template <class Wanted>
std::vector<KnownJob> those(const std::vector<KnownJob>& jobs, Wanted wanted) {
  std::vector<KnownJob> found;
  std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(found), wanted);
  return found;
}

Error ambiguous(std::string_view what, const std::vector<KnownJob>& jobs) {
  return Error{ErrorCode::kInvalid, text(what, ": ", candidates(jobs))};
}

Result<std::string> the_only_live(const std::vector<KnownJob>& jobs) {
  // One that crashed and may be coming back counts too, if nothing is surely alive.
  std::vector<KnownJob> live = those(jobs, [](const KnownJob& job) { return job.life == JobLife::kLive; });
  if (live.empty()) live = those(jobs, [](const KnownJob& job) { return job.life == JobLife::kAbandoned; });
  if (live.size() == 1) return live.front().id;
  if (!live.empty()) return ambiguous("more than one job is live, name one", live);
  if (jobs.empty()) return Error{ErrorCode::kNotFound, "there is no job"};
  return Error{ErrorCode::kNotFound, text("no job is live; name one (`last` is the newest): ", candidates(jobs))};
}

WallTime created_at(const JobDirectory& job) {
  struct stat what {};
  // The spec is written once, when the job is made. Without one, the folder itself has to do.
  if (::fstatat(job.directory.fd(), kSpecFile, &what, AT_SYMLINK_NOFOLLOW) != 0 &&
      ::fstat(job.directory.fd(), &what) != 0) {
    return {};
  }
  return {static_cast<std::int64_t>(what.st_mtim.tv_sec) * 1'000'000'000 + what.st_mtim.tv_nsec};
}

// As it was when somebody last spoke with it: nobody is asked here.
JobLife life_elsewhere(const JobDirectory& job) {
  const auto seen = read_glance(job.directory);
  if (seen && seen->glance.life == "ended") return JobLife::kEnded;
  if (seen && seen->glance.life == "abandoned") return JobLife::kAbandoned;
  return JobLife::kLive;
}

KnownJob look_at(const StateDir& state, const JobDirectory& job) {
  KnownJob known{.id = job.id, .life = JobLife::kEnded, .created = created_at(job)};
  struct stat what {};
  const bool verdict = ::fstatat(job.directory.fd(), kVerdictFile, &what, AT_SYMLINK_NOFOLLOW) == 0;
  if (verdict) return known;
  if (::fstatat(job.directory.fd(), kAwayFile, &what, AT_SYMLINK_NOFOLLOW) == 0) {
    known.life = life_elsewhere(job);
    return known;
  }
  known.life = JobLife::kLive;
  const auto kept = is_kept(job.directory);
  if (kept.ok() && *kept) return known;
  const auto view = JobView::open(state, job.id);
  known.queued = view.ok() && view->queued();
  if (known.queued) return known;
  // A supervisor that crashed after the journal had the verdict never wrote the file.
  const auto in_journal = view.ok() ? view->verdict() : Result<std::optional<Verdict>>(view.error());
  known.life = in_journal.ok() && *in_journal ? JobLife::kEnded : JobLife::kAbandoned;
  return known;
}

}  // namespace

std::string_view life_word(const KnownJob& job) { return job.queued ? "queued" : life_name(job.life); }

std::string_view life_name(JobLife life) {
  switch (life) {
    case JobLife::kLive: return "live";
    case JobLife::kAbandoned: return "abandoned";
    case JobLife::kEnded: return "ended";
  }
  return "";
}

std::string job_name(std::string_view id) { return std::string(id.substr(0, id.rfind('-'))); }

Result<std::vector<KnownJob>> list_jobs(const StateDir& state) {
  MONARCH_ASSIGN(const std::vector<std::string> ids, state.list_jobs());
  std::vector<KnownJob> jobs;
  for (const std::string& id : ids) {
    const auto job = state.open_job(id);
    if (!job.ok()) continue;  // somebody else's, or just removed
    jobs.push_back(look_at(state, *job));
  }
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const KnownJob& a, const KnownJob& b) { return a.created < b.created; });
  return jobs;
}

Result<std::string> resolve_job(const std::vector<KnownJob>& jobs, std::string_view written) {
  if (written.empty()) return the_only_live(jobs);
  if (written == "last") {
    if (jobs.empty()) return Error{ErrorCode::kNotFound, "there is no job"};
    return jobs.back().id;
  }
  const auto exact = those(jobs, [&](const KnownJob& job) { return job.id == written; });
  if (exact.size() == 1) return exact.front().id;

  const auto named = those(jobs, [&](const KnownJob& job) { return job_name(job.id) == written; });
  const auto live = those(named, [](const KnownJob& job) { return job.life == JobLife::kLive; });
  if (live.size() == 1) return live.front().id;
  if (named.size() == 1) return named.front().id;
  if (!named.empty()) {
    if (!live.empty())
      return ambiguous(text("more than one job called `", written, "` is live, name one by its id"), live);
    const bool newest = named.back().id == jobs.back().id;
    return ambiguous(
        text("no job called `", written, "` is live, name one by its id", newest ? " (`last` is the newest)" : ""),
        named);
  }
  const auto beginning = those(jobs, [&](const KnownJob& job) { return job.id.starts_with(written); });
  if (beginning.size() == 1) return beginning.front().id;
  if (!beginning.empty()) return ambiguous(text("more than one job begins with `", written, "`"), beginning);
  return Error{ErrorCode::kNotFound, text("there is no job `", printable(written), "`",
                                          jobs.empty() ? "" : text("; there are: ", candidates(jobs)))};
}

}  // namespace monarch
