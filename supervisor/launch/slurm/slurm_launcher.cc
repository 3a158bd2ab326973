#include "supervisor/launch/slurm/slurm_launcher.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <utility>

#include "supervisor/launch/ssh/ssh_way_back.h"
#include "transport/base/assert.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"
#include "transport/wire/messages.h"

namespace monarch {

namespace {

// How often, and after how long, a job that is ending is asked how.
constexpr std::uint32_t kLooksAtAnEnd = 8;
constexpr Duration kBetweenLooks = Duration::milliseconds(250);

// How often a step that outlives its srun is asked for: Slurm may only not know yet that it has ended.
constexpr std::uint32_t kLooksAtAStep = 5;

// Between two attempts to end a worker whose node does not answer, and two looks at a step.
constexpr Duration kFirstRetry = Duration::milliseconds(500);
constexpr Duration kLongestRetry = Duration::seconds(10);

Duration pause_before(std::uint32_t tries) {
  return std::min(kFirstRetry * (std::int64_t{1} << std::min<std::uint32_t>(tries, 8)), kLongestRetry);
}

// Said by a node, which may say anything.
bool is_numeric(const std::string& address) {
  in6_addr bytes{};
  return ::inet_pton(AF_INET, address.c_str(), &bytes) == 1 || ::inet_pton(AF_INET6, address.c_str(), &bytes) == 1;
}

// What was answered of a job; one that Slurm does not know is over.
SlurmJobWord job_word(const Result<std::string>& answer, std::uint32_t job) {
  if (answer.ok()) return read_job_state(*answer, job);
  return {.state = says_no_such_job(answer.error().message) ? SlurmJobState::kEnded : SlurmJobState::kUnknown};
}

}  // namespace

SlurmLauncher::SlurmLauncher(EventLoop& loop, Guard& guard, SlurmLauncherOptions options, LauncherHandlers handlers)
    : loop_(loop),
      options_(std::move(options)),
      handlers_(std::move(handlers)),
      programs_(guard, options_.term),
      calls_(loop, programs_),
      gres_(calls_, options_.slurm_job, options_.environment),
      hosts_(options_.nodes.size()) {
  MONARCH_ASSERT(options_.image != nullptr);
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i].place = {.job = options_.slurm_job, .node = options_.nodes[i], .name = options_.nodes[i]};
  }
}

SlurmLauncher::~SlurmLauncher() {
  for (Host& host : hosts_) loop_.cancel(std::exchange(host.retry, 0));
}

RemoteOrder SlurmLauncher::order_of(HostId host, RemotePurpose purpose) const {
  return {.purpose = purpose,
          .mark = {.job_uuid = options_.job.to_text(), .host_name = place_of(host).name, .job_id = options_.job_id},
          .file = options_.image->file,
          .machine = options_.image->machine};
}

StepTalkOptions SlurmLauncher::talk_options(HostId host, const std::string& step, Words gres) const {
  return {.command = step_command({.job = place_of(host).job,
                                   .node = node(host),
                                   .name = step,
                                   .environment = options_.environment,
                                   .program = {"/bin/sh", "-c", std::string(remote_command())},
                                   .gres = std::move(gres)}),
          .image = options_.image,
          .log = text(options_.log_directory, "/srun.", place_of(host).name, ".log"),
          .silence = options_.silence};
}

void SlurmLauncher::ask(HostId host, Words command, std::function<void(Result<std::string>)> then) {
  calls_.call(std::move(command), [this, alive = std::weak_ptr<int>(alive_), host, round = at(host).round,
                                   then = std::move(then)](Result<std::string> answer) {
    if (!alive.expired() && at(host).round == round) then(std::move(answer));
  });
}

void SlurmLauncher::place(HostId host, StepPlace place) {
  Host& state = at(host);
  drop(state);
  state.phase = Phase::kUnknown;
  state.place = std::move(place);
}

// An srun of a supervisor before this one: whose it was is not known any more.
void SlurmLauncher::on_changed(const RankReport& report) {
  if (programs_.on_changed(report) == GuardedPrograms::Owner::kEarlier) check_over();
}

void SlurmLauncher::launch(HostId host, const Bootstrap& bootstrap) {
  Host& state = at(host);
  drop(state);
  state.phase = Phase::kWaiting;
  state.began = loop_.now();
  state.bootstrap = bootstrap;
  waiting_.push_back(host);
  // A failure told may launch another: not within the core's own turn.
  loop_.defer([this, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired()) fill();
  });
}

void SlurmLauncher::fill() {
  if (waiting_.empty() || !gres_.known([this] { fill(); })) return;
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
      StepTalk::start(
          loop_, programs_, order_of(host, RemotePurpose::kStart),
          talk_options(host, worker_step_name(options_.job_id, place_of(host).name), gres_.options(node(host))),
          {.on_place = [this, host](const std::string& address) { return point_back(host, address); },
           .on_answer = [this, host](const RemoteAnswer& answer) { on_launch_answer(host, answer); },
           .on_end = [this, host] { on_srun_end(host); }}));
  return {};
}

std::optional<LaunchFailure> SlurmLauncher::point_back(HostId host, const std::string& from) {
  Host& state = at(host);
  const std::string& address = options_.address.empty() ? from : options_.address;
  if (!is_numeric(address)) {
    return LaunchFailure{.kind = LaunchFailureKind::kCallBack,
                         .phase = "start",
                         .message = text("Slurm does not tell the node the address of this host (`", printable(address),
                                         "`): say it in control.address")};
  }
  state.bootstrap.control_endpoint = endpoint_at(state.bootstrap.control_endpoint, address);
  state.bootstrap.bulk_endpoint = endpoint_at(state.bootstrap.bulk_endpoint, address);
  FrameHeader header;
  header.job = options_.job;
  header.term = options_.term;
  state.talk->give_bootstrap(encode_frame({header, encode_payload(state.bootstrap)}));
  return std::nullopt;
}

void SlurmLauncher::on_launch_answer(HostId host, const RemoteAnswer& answer) {
  Host& state = at(host);
  if (const auto* told = std::get_if<LaunchFailure>(&answer)) {
    LaunchFailure failure = *told;
    const bool may_run = state.talk->handed_over() && failure.kind != LaunchFailureKind::kNotExecutable;
    failure.again = text("srun --jobid=", place_of(host).job, " --overlap -N1 -n1 -w ", node(host), " true");
    const bool silent = !state.talk->placed() && failure.kind == LaunchFailureKind::kTimeout;
    state.talk.reset();
    if (silent) return fail_by_munge(host, failure);
    return fail(host, std::move(failure), may_run ? Phase::kUnknown : Phase::kUntouched);
  }
  const auto* reply = std::get_if<BootstrapReply>(&answer);
  MONARCH_ASSERT(reply != nullptr);
  --launching_;
  state.phase = Phase::kLaunched;
  state.tries = 0;
  LaunchedWorker launched{
      .reply = *reply,
      .control_endpoint = state.bootstrap.control_endpoint,
      .bulk_endpoint = state.bootstrap.bulk_endpoint,
      .again = {},
      .times = {.copy = state.talk->copy(), .start = loop_.now() - state.began - state.talk->copy()}};
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
  --launching_;
  state.phase = next;
  failure.elapsed = loop_.now() - state.began;
  handlers_.on_failed(host, std::move(failure));
  check_over();
  fill();
}

// It may have been killed by itself: a step needs no srun. Where the step has ended as well, the worker is looked for.
void SlurmLauncher::on_srun_end(HostId host) {
  Host& state = at(host);
  state.talk.reset();
  check_over();
  if (state.phase != Phase::kLaunched) return;
  state.tries = 0;
  look(host);
}

void SlurmLauncher::look(HostId host) {
  ask(host, steps_query(place_of(host).job, options_.environment), [this, host](const Result<std::string>& answer) {
    if (at(host).phase != Phase::kLaunched) return;
    const auto steps = answer.ok() ? read_steps(*answer) : Result<std::vector<SlurmStep>>(answer.error());
    if (!steps.ok() && !says_no_such_job(steps.error().message)) {
      if (at(host).tries == 0)
        log_warn(node(host), ": its srun has ended; asking for its step: ", steps.error().message);
      return look_again(host);
    }
    const std::string name = worker_step_name(options_.job_id, place_of(host).name);
    const bool runs = steps.ok() && std::any_of(steps->begin(), steps->end(),
                                                [&](const SlurmStep& step) { return step.name == name; });
    if (runs) {
      if (at(host).tries == 0) log_warn(node(host), ": its srun has ended, and its step goes on without it");
      if (at(host).tries < kLooksAtAStep) look_again(host);
      return;
    }
    log_warn(node(host), ": its step has ended");
    destroy(host);
  });
}

// Until then its heartbeats say whether it lives.
void SlurmLauncher::look_again(HostId host) {
  Host& state = at(host);
  state.retry = loop_.at(loop_.now() + pause_before(state.tries++), [this, host] {
    at(host).retry = 0;
    look(host);
  });
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
      loop_.defer([this, alive = std::weak_ptr<int>(alive_), host] {
        if (!alive.expired()) tell_ended(host, "was not running", true);
      });
      return;
    case Phase::kLaunching:
      --launching_;
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
  loop_.defer([this, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired()) fill();
  });
}

// First by Slurm, which ends a step whatever its processes do, then by a look on the node itself.
void SlurmLauncher::begin_end(HostId host) {
  ++at(host).tries;
  ask(host, steps_query(place_of(host).job, options_.environment), [this, host](const Result<std::string>& answer) {
    const auto steps = answer.ok() ? read_steps(*answer) : Result<std::vector<SlurmStep>>(answer.error());
    if (!steps.ok()) return ask_whether_over(host, steps.error().message);
    const std::string name = worker_step_name(options_.job_id, place_of(host).name);
    std::string ids;
    for (const SlurmStep& step : *steps) {
      if (step.name == name) ids += text(ids.empty() ? "" : ",", step.id);
    }
    if (ids.empty()) return submit_end(host);
    ask(host, cancel_step_command(ids, options_.environment), [this, host](const Result<std::string>& cancelled) {
      if (!cancelled.ok()) log_warn(node(host), ": ending its step: ", printable(cancelled.error().message));
      submit_end(host);
    });
  });
}

void SlurmLauncher::submit_end(HostId host) {
  auto talk =
      StepTalk::start(loop_, programs_, order_of(host, RemotePurpose::kEnd),
                      talk_options(host, end_step_name(options_.job_id, place_of(host).name), no_gres_options()),
                      {.on_place = {},
                       .on_answer = [this, host](const RemoteAnswer& answer) { on_end_answer(host, answer); },
                       .on_end = {}});
  if (!talk.ok()) return try_end_again(host, talk.error().message);
  at(host).ending = std::move(*talk);
}

void SlurmLauncher::on_end_answer(HostId host, const RemoteAnswer& answer) {
  if (const auto* failure = std::get_if<LaunchFailure>(&answer)) {
    const std::string why = failure->message;
    at(host).ending.reset();
    return ask_whether_over(host, why);
  }
  const auto* ended = std::get_if<RemoteEnded>(&answer);
  MONARCH_ASSERT(ended != nullptr);
  const std::uint64_t processes = ended->processes;
  at(host).ending.reset();
  if (processes == 0) return tell_ended(host, "nothing of it was running any more", true);
  tell_ended(host, text(processes, processes == 1 ? " process" : " processes", " ended by order"), false);
}

// A job that is over has no steps, on nodes that answer their controller: Slurm itself has ended all that was there.
void SlurmLauncher::ask_whether_over(HostId host, const std::string& why) {
  const auto no = [this, host, why] { try_end_again(host, why); };
  const std::uint32_t job = place_of(host).job;
  ask(host, job_state_query(job, options_.environment), [this, host, no, job](const Result<std::string>& state) {
    const bool over =
        job == options_.slurm_job ? note_state(state) : job_word(state, job).state == SlurmJobState::kEnded;
    if (!over) return no();
    ask(host, node_state_query(node(host), options_.environment), [this, host, no](const Result<std::string>& there) {
      if (!there.ok() || !node_answers(*there)) return no();
      tell_ended(host, "Slurm has ended the job that it ran in", false);
    });
  });
}

void SlurmLauncher::check_over() {
  if (over_ || std::exchange(checking_, true)) return;
  calls_.call(job_state_query(options_.slurm_job, options_.environment),
              [this, alive = std::weak_ptr<int>(alive_)](const Result<std::string>& state) {
                if (alive.expired()) return;
                checking_ = false;
                (void)note_state(state);
              });
}

// Whether the job has ended. That it is about to, or waits for nodes again, is told as well: those that it had are gone. How it ended is
// known a moment after that it ends.
bool SlurmLauncher::note_state(const Result<std::string>& answer) {
  SlurmJobWord now = job_word(answer, options_.slurm_job);
  if (submitted_.empty()) submitted_ = now.submitted;
  // WARNING: a controller that has lost a job gives its number to the next one (Slurm 22.05): that is none of ours.
  if (now.submitted != submitted_ && !now.submitted.empty()) now = {.state = SlurmJobState::kEnded};
  switch (now.state) {
    case SlurmJobState::kRunning:
    case SlurmJobState::kUnknown: return false;
    case SlurmJobState::kEnding:
      if (now.word != "TIMEOUT" && ++endings_ <= kLooksAtAnEnd) {
        (void)loop_.at(loop_.now() + kBetweenLooks, [this, alive = std::weak_ptr<int>(alive_)] {
          if (!alive.expired()) check_over();
        });
        return false;
      }
      break;
    case SlurmJobState::kWaiting:
    case SlurmJobState::kEnded: break;
  }
  if (!std::exchange(over_, true) && options_.on_over) options_.on_over(now.word);
  return now.state == SlurmJobState::kEnded;
}

// Until the node has answered nothing is proven. What follows from the time that takes is the core's to decide.
void SlurmLauncher::try_end_again(HostId host, const std::string& why) {
  Host& state = at(host);
  if (state.phase != Phase::kEnding) return;
  if (state.tries == 1) log_warn(node(host), ": ending its worker: ", printable(why), "; trying again");
  state.retry = loop_.at(loop_.now() + pause_before(state.tries - 1), [this, host] {
    at(host).retry = 0;
    begin_end(host);
  });
}

void SlurmLauncher::on_goodbye(HostId host, bool orderly) {
  const Phase phase = at(host).phase;
  if (phase == Phase::kEnded || phase == Phase::kUntouched || phase == Phase::kWaiting) return;
  if (phase == Phase::kLaunching) {
    --launching_;
    loop_.defer([this, alive = std::weak_ptr<int>(alive_)] {
      if (!alive.expired()) fill();
    });
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
  host.ending.reset();
  ++host.round;
  loop_.cancel(std::exchange(host.retry, 0));
}

}  // namespace monarch
