#include "cli/drill/drill_run.h"

#include <functional>
#include <random>
#include <utility>

#include "cli/args/say.h"
#include "cli/drill/drill_session.h"
#include "cli/drill/drill_targets.h"
#include "cli/follow/session_flags.h"
#include "cli/start/launch.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/drill/core/compare.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr Duration kLeaves = Duration::seconds(30);  // until nobody holds a job that has ended

std::string new_drill_id() {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device chance;
  std::string id;
  for (int i = 0; i < 8; ++i) id += kDigits[chance() % kDigits.size()];
  return id;
}

struct Drilled {
  const JobView& view;
  const JobSpec& spec;
  SignalFd& signals;
  // Ends the job, and says how; empty: it goes on.
  std::function<std::optional<Verdict>(const JobView& view, bool interrupted)> end;
  std::function<std::unique_ptr<JobView>(const JobView& ended)> next = {};
};

std::optional<drill::DrillRecord> refuse_drill(const Drilled& job, const Error& why, const Context& context) {
  say_error(context.terminal,
            {.id = "E0909", .message = text("the drill of ", job.view.id(), ": ", why.message), .help = ""});
  if (job.end) (void)job.end(job.view, false);
  return std::nullopt;
}

// Nothing: stderr says why.
std::optional<drill::DrillRecord> drill_job(const Drilled& job, const DrillWish& wish, const std::string& id,
                                            const Context& context) {
  const auto binaries = find_binaries(context.executable, context.env.get("MONARCH_WORKER"));
  if (!binaries.ok()) return refuse_drill(job, binaries.error(), context);
  const DrillTargets targets(job.spec);
  DrillSessionOptions options{.plan = {.scenario = wish.scenario,
                                       .seed = wish.seed,
                                       .meshes = drill_meshes(job.spec),
                                       .times = drill_times(job.spec),
                                       .meant = nullptr},
                              .drill = id,
                              .worker = binaries->worker,
                              .next_job = job.next};
  options.plan.meant = [&targets](const drill::FaultTarget& target, RankId rank, const std::string& host) {
    return targets.has(target, rank, host);
  };
  auto session = DrillSession::create(job.view, job.spec, context, job.signals, std::move(options));
  if (!session.ok()) return refuse_drill(job, session.error(), context);
  (*session)->run();
  if (job.end) {
    const auto verdict = job.end((*session)->job(), (*session)->interrupted());
    if (verdict) (*session)->ended(*verdict);
  }
  (*session)->look_for_leftovers();
  drill::DrillRecord record = (*session)->take_record();
  record.left_out = wish.left_out;
  record.launcher = text(job.spec.launch.facts().name, ":", job.spec.pool_size());
  record.monarch = MONARCH_VERSION;
  record.command = wish.command;
  return record;
}

std::optional<Verdict> end_job(const JobView& view, const JobSpec& spec, SignalFd& signals, bool interrupted,
                               const Context& context) {
  SessionOptions options;
  options.kind = ViewerKind::kOwner;
  options.viewer = "drill";
  options.stop = StopRequest{.how = StopHow::kOrderly, .interrupted = interrupted, .who = "monarch drill"};
  return follow_job(view, spec, context, signals, std::move(options)).verdict;
}

// The same drill of the job as those run it who start everything again at each failure. Nothing: stderr says why.
std::optional<drill::DrillRecord> drill_peer(const SpecInput& input, const DrillWish& wish, const Arguments& arguments,
                                             const Context& context) {
  say_note(context.terminal,
           "compare: the same faults strike it once more, and each failure stops and starts all of it");
  LaunchedJob job = launch_job(input, arguments, context);
  if (job.view == nullptr) return std::nullopt;
  Drilled drilled{.view = *job.view, .spec = input.spec, .signals = *job.signals, .end = nullptr};
  drilled.end = [&](const JobView& view, bool interrupted) {
    return end_job(view, input.spec, *job.signals, interrupted, context);
  };
  std::unique_ptr<SignalFd> unused;  // of later jobs: the first one's are read
  drilled.next = [&](const JobView& ended) -> std::unique_ptr<JobView> {
    if (!ended.is_left_within(kLeaves)) return nullptr;
    Arguments with = arguments;
    with.set("continue", {ended.id()});
    LaunchedJob next = launch_job(input, with, context);
    unused = std::move(next.signals);
    return std::move(next.view);
  };
  DrillWish peer = wish;
  peer.scenario.guard.max_gangs_down = std::max(peer.scenario.guard.max_gangs_down, 1U);
  return drill_job(drilled, peer, new_drill_id(), context);
}

}  // namespace

int run_own_drill(const SpecInput& input, const SpecInput* peer, const DrillWish& wish, const Arguments& arguments,
                  const Context& context) {
  const std::string id = new_drill_id();
  std::string folder;
  std::optional<drill::DrillRecord> record;
  {
    const LaunchedJob job = launch_job(input, arguments, context);
    if (job.view == nullptr) return job.exit_code;
    folder = text(job.view->path(), "/drill-", id);
    Drilled drilled{.view = *job.view, .spec = input.spec, .signals = *job.signals, .end = nullptr};
    if (!wish.keep) {
      drilled.end = [&](const JobView& view, bool interrupted) {
        return end_job(view, input.spec, *job.signals, interrupted, context);
      };
    }
    record = drill_job(drilled, wish, id, context);
  }
  if (!record) return kExitInternal;
  if (peer != nullptr && !record->interrupted && record->cut_short.empty()) {
    record->here = drill::compare_run(*record);
    const auto other = drill_peer(*peer, wish, arguments, context);
    if (other) record->peer = drill::compare_run(*other);
    if (other && other->interrupted) record->interrupted = true;
  }
  return leave_drill(*record, wish.places, folder, wish.json, context);
}

int run_live_drill(const OpenedJob& job, const DrillWish& wish, const Context& context) {
  const auto signals = SignalFd::create(SignalPolicy::signals(ViewerKind::kOwner));
  if (!signals.ok()) {
    return refuse(context, {.id = "E0908", .message = signals.error().message, .help = ""}, kExitInternal);
  }
  const std::string id = new_drill_id();
  const auto record =
      drill_job({.view = job.view, .spec = job.spec, .signals = **signals, .end = nullptr}, wish, id, context);
  if (!record) return kExitInternal;
  return leave_drill(*record, wish.places, text(job.view.path(), "/drill-", id), wish.json, context);
}

}  // namespace monarch
