#include "cli/drill/drill_run.h"

#include <functional>
#include <random>
#include <utility>

#include "cli/args/say.h"
#include "cli/drill/captured_output.h"
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

constexpr Duration kSettlesBeyond = Duration::seconds(60);  // the job's own time to start
constexpr Duration kLeaves = Duration::seconds(30);         // until nobody holds a job that has ended

std::string new_drill_id() {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device chance;
  std::string id;
  for (int i = 0; i < 8; ++i) id += kDigits[chance() % kDigits.size()];
  return id;
}

// How the drill of a job was over.
enum class HowOver : std::uint8_t { kWhole, kCutShort, kInterrupted };

struct Drilled {
  const JobView& view;
  const JobSpec& spec;
  SignalFd& signals;
  // Ends the job, and says how; empty: it goes on.
  std::function<std::optional<Verdict>(const JobView& view, HowOver over)> end;
  std::function<std::unique_ptr<JobView>(const JobView& ended)> next = {};
  int* exit_code = nullptr;  // of a drill that is refused; null: nobody asks
};

std::optional<drill::DrillRecord> refuse_drill(const Drilled& job, const Error& why, const Context& context) {
  say_error(context.terminal,
            {.id = "E0909", .message = text("the drill of ", job.view.id(), ": ", why.message), .help = ""});
  if (job.end) (void)job.end(job.view, HowOver::kCutShort);
  if (job.exit_code != nullptr) *job.exit_code = why.code == ErrorCode::kInvalid ? kExitUsage : kExitInternal;
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
                                       .settles_within = job.spec.start_timeout + wish.scenario.settle + kSettlesBeyond,
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
  if (const std::string& refused = (*session)->refused(); !refused.empty()) {
    return refuse_drill(job, Error{ErrorCode::kInvalid, printable(refused)}, context);
  }
  if (job.end) {
    const HowOver over = (*session)->interrupted()    ? HowOver::kInterrupted
                         : (*session)->is_cut_short() ? HowOver::kCutShort
                                                      : HowOver::kWhole;
    const auto verdict = job.end((*session)->job(), over);
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

SessionOptions session_options() {
  SessionOptions options;
  options.kind = ViewerKind::kOwner;
  options.viewer = "drill";
  return options;
}

std::optional<Verdict> end_job(const JobView& view, const JobSpec& spec, SignalFd& signals, HowOver over,
                               const Context& context) {
  SessionOptions options = session_options();
  options.stop =
      StopRequest{.how = StopHow::kOrderly, .interrupted = over == HowOver::kInterrupted, .who = "monarch drill"};
  return follow_job(view, spec, context, signals, std::move(options)).verdict;
}

// The job runs once more, and nothing is done to it: what it wrote then is what the drilled one was to write.
void compare_output(const JobView& drilled, const SpecInput& input, const Arguments& arguments, const Context& context,
                    drill::DrillRecord& record) {
  const auto pattern = LinePattern::parse(record.scenario.same_output);
  if (!pattern.ok()) return;  // the scenario was refused for that
  const CapturedOutput of_drilled = captured_output(drilled, input.spec, *pattern);
  if (of_drilled.empty()) return;
  say_note(context.terminal, "same_output: the job runs once more, undisturbed");
  const LaunchedJob job = launch_job(input, arguments, context);
  if (job.view == nullptr) return;
  (void)follow_job(*job.view, input.spec, context, *job.signals, session_options());
  const CapturedOutput undisturbed = captured_output(*job.view, input.spec, *pattern);
  record.same_output_seen = !undisturbed.empty();
  record.same_output = difference_of(of_drilled, undisturbed);
}

// The same drill of the job as those run it who start everything again at each failure. Nothing: stderr says why.
std::optional<drill::DrillRecord> drill_peer(const SpecInput& input, const DrillWish& wish, const Arguments& arguments,
                                             const Context& context) {
  say_note(context.terminal,
           "compare: the same faults strike it once more, and each failure stops and starts all of it");
  LaunchedJob job = launch_job(input, arguments, context);
  if (job.view == nullptr) return std::nullopt;
  Drilled drilled{.view = *job.view, .spec = input.spec, .signals = *job.signals, .end = nullptr};
  drilled.end = [&](const JobView& view, HowOver over) {
    return end_job(view, input.spec, *job.signals, over, context);
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
  return drill_job(drilled, wish, new_drill_id(), context);
}

}  // namespace

int run_own_drill(const SpecInput& input, const SpecInput* peer, const DrillWish& wish, const Arguments& arguments,
                  const Context& context) {
  const std::string id = new_drill_id();
  const LaunchedJob job = launch_job(input, arguments, context);
  if (job.view == nullptr) return job.exit_code;
  Drilled drilled{.view = *job.view, .spec = input.spec, .signals = *job.signals, .end = nullptr};
  const bool to_its_end = !wish.scenario.same_output.empty();
  drilled.end = [&](const JobView& view, HowOver over) {
    if (!to_its_end || over != HowOver::kWhole) return end_job(view, input.spec, *job.signals, over, context);
    return follow_job(view, input.spec, context, *job.signals, session_options()).verdict;
  };
  if (wish.keep) drilled.end = nullptr;
  auto record = drill_job(drilled, wish, id, context);
  if (!record) return kExitInternal;
  const bool whole = !record->interrupted && record->cut_short.empty();
  if (to_its_end && whole) compare_output(*job.view, input, arguments, context, *record);
  if (peer != nullptr && whole) {
    record->here = drill::compare_run(*record);
    const auto other = drill_peer(*peer, wish, arguments, context);
    if (other) record->peer = drill::compare_run(*other);
    if (!record->here || !record->peer) record->cut_short = "there is no run to compare with";
    if (other && other->interrupted) record->interrupted = true;
  }
  return leave_drill(*record, wish.places, text(job.view->path(), "/drill-", id), wish.json, context);
}

int run_live_drill(const OpenedJob& job, const DrillWish& wish, const Context& context) {
  const auto signals = SignalFd::create(SignalPolicy::signals(ViewerKind::kOwner));
  if (!signals.ok()) {
    return refuse(context, {.id = "E0908", .message = signals.error().message, .help = ""}, kExitInternal);
  }
  const std::string id = new_drill_id();
  int refused_with = kExitInternal;
  const Drilled drilled{
      .view = job.view, .spec = job.spec, .signals = **signals, .end = nullptr, .next = {}, .exit_code = &refused_with};
  const auto record = drill_job(drilled, wish, id, context);
  if (!record) return refused_with;
  return leave_drill(*record, wish.places, text(job.view.path(), "/drill-", id), wish.json, context);
}

}  // namespace monarch
