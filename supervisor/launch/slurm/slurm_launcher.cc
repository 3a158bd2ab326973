#include "supervisor/launch/slurm/slurm_launcher.h"

#include <utility>

#include "transport/base/assert.h"
#include "transport/base/text.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/launch.h"
#include "transport/messages/rank.h"

namespace monarch {

SlurmLauncher::SlurmLauncher(EventLoop& loop, Guard& guard, SlurmLauncherOptions options, LauncherHandlers handlers)
    : loop_(loop),
      options_(std::move(options)),
      handlers_(std::move(handlers)),
      programs_(guard, options_.term),
      calls_(loop, programs_),
      gres_(calls_, options_.slurm_job, options_.environment),
      steps_(loop, calls_, options_.environment),
      hosts_(options_.nodes.size()) {
  MONARCH_ASSERT(options_.image != nullptr);
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i].place = {.job = options_.slurm_job, .node = options_.nodes[i], .name = options_.nodes[i]};
    hosts_[i].step = worker_step_name(options_.job_id, options_.nodes[i]);
  }
}

SlurmLauncher::~SlurmLauncher() {
  for (Host& host : hosts_) loop_.cancel(std::exchange(host.retry, 0));
}

RemoteOrder SlurmLauncher::order_of(HostId host, RemotePurpose purpose) const {
  RemoteOrder order = order_with(purpose, options_.image.get());
  order.mark = {.job_uuid = options_.job.to_text(), .host_name = place_of(host).name, .job_id = options_.job_id};
  return order;
}

ProgramTalkOptions SlurmLauncher::talk_options(HostId host, const std::string& step, Words gres) const {
  return {.command = step_command({.job = place_of(host).job,
                                   .nodes = {node(host)},
                                   .name = step,
                                   .environment = options_.environment,
                                   .program = {"/bin/sh", "-c", std::string(remote_command())},
                                   .gres = std::move(gres)}),
          .image = options_.image,
          .log = text(options_.log_directory, "/srun.", place_of(host).name, ".log"),
          .program = "srun",
          .place = "a step on the node",
          .none = "started no step on the node",
          .silence = options_.silence,
          .begins_within = options_.silence,
          .kind_of = [](std::string_view words) {
            return says_not_authenticated(words) ? LaunchFailureKind::kAuthentication : LaunchFailureKind::kOther;
          }};
}

void SlurmLauncher::ask(HostId host, Words command, std::function<void(Result<std::string>)> then) {
  calls_.call(std::move(command),
              scope_.guard([this, host, round = at(host).round, then = std::move(then)](Result<std::string> answer) {
                if (at(host).round == round) then(std::move(answer));
              }));
}

void SlurmLauncher::ask_steps(HostId host, StepsList::Then then) {
  steps_.ask(place_of(host).job,
             [this, host, round = at(host).round, then = std::move(then)](const Result<std::vector<SlurmStep>>& steps) {
               if (at(host).round == round) then(steps);
             });
}

void SlurmLauncher::place(HostId host, StepPlace place) {
  Host& state = at(host);
  drop(state);
  state.phase = Phase::kUnknown;
  state.place = std::move(place);
  state.step = worker_step_name(options_.job_id, state.place.name);
}

// An srun of a supervisor before this one: whose it was is not known any more.
void SlurmLauncher::on_changed(const RankReport& report) {
  if (programs_.on_changed(report) == GuardedPrograms::Owner::kEarlier) check_over();
}

void SlurmLauncher::launch(HostId host, const Bootstrap& bootstrap) {
  Host& state = at(host);
  drop(state);
  state.phase = Phase::kWaiting;
  state.shared = 0;
  state.together = 0;
  state.step = worker_step_name(options_.job_id, state.place.name);
  state.began = loop_.now();
  state.bootstrap = bootstrap;
  waiting_.push_back(host);
  fill_soon();
}

// A failure told may launch another: not within the core's own turn.
void SlurmLauncher::fill_soon() {
  loop_.defer(scope_.guard([this] { fill(); }));
}

void SlurmLauncher::fill() {
  if (waiting_.empty() || !gres_.known([this] { fill(); })) return;
  start_shared();
  while (launching_ < options_.parallel && !waiting_.empty()) {
    const HostId host = waiting_.front();
    waiting_.pop_front();
    if (at(host).phase != Phase::kWaiting) continue;  // it is not wanted any more
    at(host).phase = Phase::kLaunching;
    ++launching_;
    const Status started = start(host);
    if (!started.ok()) {
      fail(host, {.phase = "start", .message = started.error().message}, Phase::kUntouched);
    }
  }
}

Status SlurmLauncher::start(HostId host) {
  MONARCH_ASSIGN(
      at(host).talk,
      ProgramTalk::start(loop_, programs_, order_of(host, RemotePurpose::kStart),
                         talk_options(host, at(host).step, gres_.options(node(host))),
                         {.on_place = [this, host](const std::string& address) -> std::optional<LaunchFailure> {
                            Bootstrap& there = at(host).bootstrap;
                            if (auto refused = call_back_at(there, call_back_address(address), kUntold)) return refused;
                            at(host).talk->give_bootstrap(bootstrap_frame(options_.job, options_.term, there));
                            return std::nullopt;
                          },
                          .on_answer = [this, host](const RemoteAnswer& answer) { on_launch_answer(host, answer); },
                          .on_end = [this, host] { on_srun_end(host); }}));
  return {};
}

// A command that tries it by hand.
std::string SlurmLauncher::again(HostId host) const {
  return text("srun --jobid=", place_of(host).job, " --overlap -N1 -n1 -w ", node(host), " true");
}

void SlurmLauncher::on_launch_answer(HostId host, const RemoteAnswer& answer) {
  Host& state = at(host);
  if (const auto* told = std::get_if<LaunchFailure>(&answer)) {
    LaunchFailure failure = *told;
    const bool may_run = state.talk->handed_over() && failure.kind != LaunchFailureKind::kNotExecutable;
    failure.again = again(host);
    const bool silent = !state.talk->placed() && failure.kind == LaunchFailureKind::kTimeout;
    state.talk.reset();
    if (silent) return fail_by_munge(host, failure);
    return fail(host, std::move(failure), may_run ? Phase::kUnknown : Phase::kUntouched);
  }
  const auto* reply = std::get_if<BootstrapReply>(&answer);
  MONARCH_ASSERT(reply != nullptr);
  on_launched(host, *reply, state.talk->copy());
}

void SlurmLauncher::on_launched(HostId host, const BootstrapReply& reply, Duration copy) {
  Host& state = at(host);
  landed(state);
  state.phase = Phase::kLaunched;
  state.tries = 0;
  LaunchedWorker launched{.reply = reply,
                          .control_endpoint = state.bootstrap.control_endpoint,
                          .bulk_endpoint = state.bootstrap.bulk_endpoint,
                          .again = {},
                          .times = {.copy = copy, .start = loop_.now() - state.began - copy}};
  handlers_.on_launched(host, std::move(launched));
  fill();
}

// WARNING: an srun whose munged has gone is silent for minutes (Slurm 22.05); munge(1) itself says so at once.
void SlurmLauncher::fail_by_munge(HostId host, const LaunchFailure& failure) {
  ask(host, munge_query(options_.environment), [this, host, failure](const Result<std::string>& credential) {
    LaunchFailure whole = failure;
    if (!credential.ok() && says_not_authenticated(credential.error().message)) {
      whole.message += text("; ", printable(credential.error().message));
      whole.kind = LaunchFailureKind::kAuthentication;
    }
    fail(host, std::move(whole), Phase::kUntouched);
  });
}

void SlurmLauncher::fail(HostId host, LaunchFailure failure, Phase next) {
  Host& state = at(host);
  if (state.phase != Phase::kLaunching) return;
  landed(state);
  state.phase = next;
  failure.elapsed = loop_.now() - state.began;
  handlers_.on_failed(host, std::move(failure));
  check_over();
  fill();
}

void SlurmLauncher::destroy(HostId host) {
  Host& state = at(host);
  switch (state.phase) {
    case Phase::kEnding: return;  // it is at it
    case Phase::kWaiting:
    case Phase::kUntouched:
    case Phase::kEnded:
      state.phase = Phase::kUntouched;
      // Not within the core's own turn.
      loop_.defer(scope_.guard([this, host] { tell_ended(host, "was not running", true); }));
      return;
    case Phase::kLaunching:
      landed(state);
      leave_shared(host);
      state.talk.reset();  // and its srun; what the step still hears comes to its end before a later step begins
      break;
    case Phase::kUnknown:
    case Phase::kLaunched: break;
  }
  loop_.cancel(std::exchange(state.retry, 0));
  ++state.round;
  state.phase = Phase::kEnding;
  state.tries = 0;
  begin_end(host);
  fill_soon();
}

void SlurmLauncher::on_goodbye(HostId host, bool orderly) {
  const Phase phase = at(host).phase;
  if (phase == Phase::kEnded || phase == Phase::kUntouched || phase == Phase::kWaiting) return;
  if (phase == Phase::kLaunching) {
    landed(at(host));
    leave_shared(host);
    fill_soon();
  }
  drop(at(host));
  tell_ended(host, orderly ? "it left" : "its keeper was killed, and its ranks with it", orderly);
}

void SlurmLauncher::tell_ended(HostId host, std::string how, bool orderly) {
  at(host).phase = Phase::kEnded;
  handlers_.on_ended(host, std::move(how), orderly);
}

void SlurmLauncher::drop(Host& host) {
  host.talk.reset();
  ++host.round;
  if (std::exchange(host.ending, nullptr)) fill_ends();
  loop_.cancel(std::exchange(host.retry, 0));
}

}  // namespace monarch
