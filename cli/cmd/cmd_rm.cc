#include <algorithm>
#include <map>
#include <set>

#include "cli/args/say.h"
#include "cli/args/values.h"
#include "cli/away/away.h"
#include "cli/commands.h"
#include "cli/job/job_argument.h"
#include "cli/job/spec_input.h"
#include "supervisor/client/continuation.h"
#include "supervisor/client/remove_job.h"
#include "supervisor/core/spec/placement.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::string rounded_size_text(std::uint64_t bytes) {
  if (bytes < 1U << 20U) return text((bytes + 1023) >> 10U, " KiB");
  return text(bytes >> 20U, " MiB");
}

std::string line_of(const std::string& id, const JobRemains& remains, bool dry) {
  std::vector<std::string> parts;
  if (remains.processes > 0) parts.push_back(counted(remains.processes, "process", "processes"));
  if (!remains.sockets.empty()) parts.push_back(counted(remains.sockets.size(), "socket"));
  if (remains.groups > 0) parts.push_back(counted(remains.groups, "cgroup"));
  parts.push_back(text(counted(remains.files.entries, "file"), " of ", rounded_size_text(remains.files.bytes)));
  return text(dry ? "would remove " : "removed ", id, ": ", join(parts, ", "), "\n");
}

// Which jobs are meant: those that were named, or those that are over (and for how long). Nothing: stderr says what is
// wrong.
std::optional<std::vector<std::string>> meant_jobs(const Arguments& arguments, const StateDir& state,
                                                   std::optional<Duration> older_than, const Context& context) {
  const auto jobs = list_jobs(state);
  std::vector<std::string> ids;
  if (!jobs.ok()) {
    say_error(context.terminal, state_complaint(jobs.error().message));
    return std::nullopt;
  }
  for (const std::string& written : arguments.positionals()) {
    const auto id = resolve_job(*jobs, written);
    if (!id.ok()) {
      say_error(context.terminal,
                {.id = "E0906", .message = id.error().message, .help = "monarch ps --all lists the jobs"});
      return std::nullopt;
    }
    if (std::find(ids.begin(), ids.end(), *id) == ids.end()) ids.push_back(*id);
  }
  if (!ids.empty()) return ids;
  const std::int64_t now = wall_now().nanoseconds_since_epoch;
  std::size_t live = 0;
  for (const KnownJob& job : *jobs) {
    const auto folder = state.open_job(job.id);
    if (job.life == JobLife::kLive || (folder.ok() && needed_by(state, *folder))) {
      ++live;
    } else if (!older_than || now - ended_at(state, job.id).nanoseconds_since_epoch > older_than->count_nanoseconds()) {
      ids.push_back(job.id);
    }
  }
  if (live > 0)
    say_note(context.terminal, text(counted(live, "job"), live == 1 ? " lives and is left" : " live and are left"));
  return ids;
}

int refuse_job(const Context& context, const std::string& id, const Error& error) {
  switch (error.code) {
    case ErrorCode::kBusy:
      return refuse(context, {.id = "E0925", .message = error.message, .help = text("monarch stop ", id)}, kExitUsage);
    case ErrorCode::kUnsupported:
      return refuse(context, {.id = "E0925", .message = error.message, .help = ""}, kExitUsage);
    case ErrorCode::kInvalid:
    case ErrorCode::kNotFound:
    case ErrorCode::kGone:
    case ErrorCode::kTimeout:
    case ErrorCode::kDevice:
    case ErrorCode::kInternal: break;
  }
  return refuse(context, {.id = "E0926", .message = text(id, " was not removed: ", error.message), .help = ""},
                kExitInternal);
}

// Hosts that had a worker of the job and are other machines: nothing is looked for there.
std::vector<std::string> hosts_with_logs(const StateDir& state, const std::string& id) {
  const auto view = JobView::open(state, id);
  if (!view.ok()) return {};
  const auto spec_text = view->spec_text();
  const auto directory = view->spec_directory();
  if (!spec_text.ok() || !directory.ok()) return {};
  const auto spec = parse_stored_spec(*spec_text, *directory);
  if (!spec.ok() || spec->launch.facts().one_machine || !spec->launch.facts().batch_system.empty()) return {};
  const auto events = view->events();
  if (!events.ok()) return {};
  std::set<std::string> ready;
  for (const JobEvent& event : events->events) {
    if (event.kind == EventKind::kHostReady) ready.insert(event.host);
  }
  std::vector<std::string> hosts;  // in the order of the pool, not of their being ready
  for (const PoolHost& host : pool_of(*spec)) {
    if (ready.count(host.name) > 0) hosts.push_back(host.name);
  }
  return hosts;
}

void say_what_stays(const Context& context, const std::string& id, const std::vector<std::string>& hosts) {
  if (hosts.empty()) return;
  constexpr std::size_t kMostNamed = 8;
  const auto most = static_cast<std::ptrdiff_t>(std::min(hosts.size(), kMostNamed));
  const std::vector<std::string> named(hosts.begin(), hosts.begin() + most);
  const std::string more = hosts.size() > kMostNamed ? text(" and ", hosts.size() - kMostNamed, " more") : "";
  say_note(context.terminal, text("logs of ", id, " stay on ", join(named, ", "), more,
                                  ", in ~/.local/state/monarch/hosts/", id, " (or below $XDG_STATE_HOME) of each"));
}

// Which of the jobs live on other machines, and are to be removed there first.
using Pointers = std::map<std::string, JobView>;

Pointers jobs_elsewhere(const StateDir& state, const std::vector<std::string>& ids) {
  Pointers found;
  for (const std::string& id : ids) {
    auto view = JobView::open(state, id);
    if (view.ok() && away_of(*view)) found.emplace(id, std::move(*view));
  }
  return found;
}

// What points there from here goes last: without it nobody could ask again.
int remove_there(const StateDir& state, const JobView& view, const Arguments& arguments, const Context& context) {
  const std::string& id = view.id();
  const auto where = away_of(view);
  if (!arguments.has("here")) {
    std::vector<std::string> words = {"rm", id};
    if (arguments.has("dry-run")) words.emplace_back("--dry-run");
    if (arguments.has("quiet")) words.emplace_back("--quiet");
    const int exit_code = run_there(view, {.words = words}, context);
    if (exit_code != kExitOk || arguments.has("dry-run")) return exit_code;
  } else if (!arguments.has("dry-run")) {
    say_note(context.terminal, text("what is kept of ", id, " on ", where->host, " stays there",
                                    where->directory.empty() ? "" : text(", in ", where->directory)));
  }
  if (arguments.has("dry-run")) return kExitOk;
  const auto removed = remove_job(state, id);
  if (!removed.ok()) return refuse_job(context, id, removed.error());
  if (arguments.has("here")) write_out(context.terminal, line_of(id, *removed, false));
  return kExitOk;
}

int remove_jobs(const StateDir& state, const std::vector<std::string>& ids, const Arguments& arguments,
                const Context& context) {
  const bool dry = arguments.has("dry-run");
  const Pointers pointers = jobs_elsewhere(state, ids);
  // All are looked at before one is touched.
  std::map<std::string, JobRemains> found;
  for (const std::string& id : ids) {
    if (pointers.contains(id)) continue;
    auto remains = remains_of(state, id);
    if (!remains.ok()) return refuse_job(context, id, remains.error());
    found.emplace(id, std::move(*remains));
  }
  if (ids.empty()) say_note(context.terminal, "there is nothing to remove");
  int exit_code = kExitOk;
  for (const std::string& id : ids) {
    if (const auto pointer = pointers.find(id); pointer != pointers.end()) {
      exit_code = std::max(exit_code, remove_there(state, pointer->second, arguments, context));
      continue;
    }
    const std::vector<std::string> machines = hosts_with_logs(state, id);
    const auto removed = dry ? Result<JobRemains>(found.at(id)) : remove_job(state, id);
    if (removed.ok()) {
      write_out(context.terminal, line_of(id, *removed, dry));
      say_what_stays(context, id, machines);
    } else {
      exit_code = std::max(exit_code, refuse_job(context, id, removed.error()));
    }
  }
  return exit_code;
}

int run_rm(const Arguments& arguments, Context& context) {
  const auto older_than = duration_flag(arguments, "older-than");
  if (!older_than.ok())
    return refuse(context, {.id = "E0904", .message = older_than.error().message, .help = ""}, kExitUsage);
  const bool by_rule = arguments.has("all") || older_than->has_value();
  const bool named = !arguments.positionals().empty();
  if (by_rule == named) {
    return refuse(context,
                  {.id = "E0903",
                   .message = named ? "`monarch rm` takes jobs, or --all or --older-than, but not both"
                                    : "`monarch rm` needs to be told which jobs",
                   .help = "usage: monarch rm JOB…, monarch rm --all, or monarch rm --older-than 7d"},
                  kExitUsage);
  }
  const StateArgument state = take_state(context);
  if (state.exit_code != kExitOk) return state.exit_code;
  if (!state.state) {
    if (by_rule) say_note(context.terminal, "there is nothing to remove");
    return by_rule
               ? kExitOk
               : refuse(context, {.id = "E0906", .message = "there is no job: none was ever started here", .help = ""},
                        kExitUsage);
  }
  const bool dry = arguments.has("dry-run");
  if (!dry) {
    const auto rests = finish_removals(*state.state);
    if (!rests.ok())
      return refuse(context, {.id = "E0926", .message = rests.error().message, .help = ""}, kExitInternal);
    if (*rests > 0)
      say_note(context.terminal, text("removed the rest of ", counted(*rests, "job"), " of an earlier rm"));
  }
  const auto ids = meant_jobs(arguments, *state.state, *older_than, context);
  return ids ? remove_jobs(*state.state, *ids, arguments, context) : kExitUsage;
}

}  // namespace

Command rm_command() {
  return {
      .name = "rm",
      .summary = "remove what is kept of jobs that are over, and what still runs of them",
      .description =
          "Removes logs, journal, sockets, cgroups and keys, after it has ended by KILL every process that carries a\n"
          "mark of the job. If one of the jobs lives, it is named and nothing is removed.",
      .flags = {{.name = "all", .value = "", .help = "all that are over", .letter = 'a'},
                {.name = "older-than", .value = "DURATION", .help = "all that ended longer ago than this (12h, 7d)"},
                {.name = "here",
                 .value = "",
                 .help = "of jobs that live on another machine, only what points there: for a machine that is gone"},
                {.name = "dry-run", .value = "", .help = "only say what would be removed"}},
      .positionals = {{.name = "JOB", .help = "which jobs", .many = true}},
      .run = run_rm};
}

}  // namespace monarch
