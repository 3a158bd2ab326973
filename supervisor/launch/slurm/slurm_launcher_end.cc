// What becomes of a worker whose srun has ended, or that is to end, and of a job whose steps do.

#include <algorithm>
#include <utility>

#include "supervisor/launch/slurm/slurm_launcher.h"
#include "supervisor/launch/talk/way_back.h"
#include "transport/base/assert.h"
#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// How often, and after how long, a job that is ending is asked how.
constexpr std::uint32_t kLooksAtAnEnd = 8;
constexpr Duration kBetweenLooks = Duration::milliseconds(250);

// How often a step that outlives its srun is asked for: Slurm may only not know yet that it has ended.
constexpr std::uint32_t kLooksAtAStep = 5;

// What was answered of a job; one that Slurm does not know is over.
SlurmJobWord job_word(const Result<std::string>& answer, std::uint32_t job) {
  if (answer.ok()) return read_job_state(*answer, job);
  return {.state = says_no_such_job(answer.error().message) ? SlurmJobState::kEnded : SlurmJobState::kUnknown};
}

}  // namespace

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
  ask_steps(host, [this, host](const Result<std::vector<SlurmStep>>& steps) {
    if (at(host).phase != Phase::kLaunched) return;
    if (!steps.ok() && !says_no_such_job(steps.error().message)) {
      if (at(host).tries == 0)
        log_warn(node(host), ": its srun has ended; asking for its step: ", steps.error().message);
      return look_again(host);
    }
    const std::string& name = at(host).step;
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
  state.retry = loop_.at(loop_.now() + pause_before_retry(state.tries++), [this, host] {
    at(host).retry = 0;
    look(host);
  });
}

// First by Slurm, which ends a step whatever its processes do, then by a look on the node itself. A step that serves
// others as well is left alone.
void SlurmLauncher::begin_end(HostId host) {
  ++at(host).tries;
  ask_steps(host, [this, host](const Result<std::vector<SlurmStep>>& steps) {
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
  const std::pair<HostId, std::uint64_t> one(host, at(host).round);
  // A node that has not answered takes its time: others go first.
  at(host).tries > 1 ? to_end_.push_back(one) : to_end_.push_front(one);
  fill_ends();
}

// A step that many share may end, and leave as many workers to be looked for.
void SlurmLauncher::fill_ends() {
  auto under_way = static_cast<std::uint32_t>(
      std::count_if(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.ending != nullptr; }));
  while (under_way < options_.ends && !to_end_.empty()) {
    const auto [host, round] = to_end_.front();
    to_end_.pop_front();
    if (at(host).round != round) continue;  // its story has gone on
    if (const Status started = start_end(host); !started.ok()) {
      try_end_again(host, started.error().message);
      continue;
    }
    ++under_way;
  }
}

Status SlurmLauncher::start_end(HostId host) {
  MONARCH_ASSIGN(
      at(host).ending,
      ProgramTalk::start(loop_, programs_, order_of(host, RemotePurpose::kEnd),
                         talk_options(host, end_step_name(options_.job_id, place_of(host).name), no_gres_options()),
                         {.on_place = {},
                          .on_answer = [this, host](const RemoteAnswer& answer) { on_end_answer(host, answer); },
                          .on_end = {}}));
  return {};
}

void SlurmLauncher::on_end_answer(HostId host, const RemoteAnswer& answer) {
  if (const auto* failure = std::get_if<LaunchFailure>(&answer)) {
    const std::string why = failure->message;
    at(host).ending.reset();
    fill_ends();
    return ask_whether_over(host, why);
  }
  const auto* ended = std::get_if<RemoteEnded>(&answer);
  MONARCH_ASSERT(ended != nullptr);
  const RemoteEnded how = *ended;
  at(host).ending.reset();
  fill_ends();
  tell_ended(host, how.how(), how.orderly());
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
              scope_.guard([this](const Result<std::string>& state) {
                checking_ = false;
                (void)note_state(state);
              }));
}

// Whether the job has ended. That it is about to, or waits for nodes again, is told as well: those that it had are
// gone. How it ended is known a moment after that it ends.
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
        (void)loop_.at(loop_.now() + kBetweenLooks, scope_.guard([this] { check_over(); }));
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
  state.retry = loop_.at(loop_.now() + pause_before_retry(state.tries - 1), [this, host] {
    at(host).retry = 0;
    begin_end(host);
  });
}

}  // namespace monarch
