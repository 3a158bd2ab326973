// Steps that serve many hosts.

#include <algorithm>
#include <utility>

#include "supervisor/launch/slurm/slurm_launcher.h"
#include "transport/base/assert.h"
#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::uint32_t kTimesTogether = 2;  // a host is launched with others

}  // namespace

// Takes those that wait and can be launched together out of the queue, if they are many.
void SlurmLauncher::start_shared() {
  std::vector<HostId> hosts;
  Words nodes;
  for (const HostId host : waiting_) {
    const Host& state = at(host);
    const bool can = state.phase == Phase::kWaiting && state.place.job == options_.slurm_job &&
                     state.place.name == state.place.node && state.together < kTimesTogether;
    if (!can || std::find(hosts.begin(), hosts.end(), host) != hosts.end()) continue;
    hosts.push_back(host);
    nodes.push_back(state.place.node);
  }
  if (hosts.size() < 2 || hosts.size() <= options_.own_steps) return;
  std::optional<Words> gres = gres_.shared_options(nodes);
  if (!gres) return;
  const std::uint32_t number = ++shares_;
  for (const HostId host : hosts) {
    Host& state = at(host);
    state.phase = Phase::kLaunching;
    state.shared = number;
    state.step = shared_step_name(options_.job_id, options_.term, number);
    ++state.together;
  }
  shared_[number].hosts = hosts;
  const Status begun = begin_shared(number, hosts, std::move(*gres));
  if (begun.ok()) return;
  log_warn("one step of Slurm for ", hosts.size(), " hosts cannot begin, each gets its own: ", begun.error().message);
  shared_.erase(number);
  for (const HostId host : hosts) on_shared_left(host, false);
}

Status SlurmLauncher::begin_shared(std::uint32_t number, const std::vector<HostId>& hosts, Words gres) {
  std::vector<RemoteOrder> orders;
  Words nodes;
  for (const HostId host : hosts) {
    orders.push_back(order_of(host, RemotePurpose::kStart));
    nodes.push_back(node(host));
  }
  ProgramTalkOptions options{.command = step_command({.job = options_.slurm_job,
                                                      .nodes = std::move(nodes),
                                                      .name = at(hosts.front()).step,
                                                      .environment = options_.environment,
                                                      .program = {"/bin/sh", "-c", std::string(remote_command())},
                                                      .gres = std::move(gres)}),
                             .image = options_.image,
                             .log = text(options_.log_directory, "/srun.+.log"),
                             .silence = options_.silence};
  MONARCH_ASSIGN(shared_[number].step,
                 SharedStep::start(loop_, programs_, std::move(orders), std::move(options),
                                   {.on_news = [this, number](const SharedNews& news) { on_shared_news(number, news); },
                                    .on_end = [this, number] { on_shared_end(number); }}));
  log_info("one step of Slurm for ", hosts.size(), " hosts");
  return {};
}

void SlurmLauncher::on_shared_news(std::uint32_t number, const SharedNews& news) {
  const Shared& shared = shared_.at(number);
  const HostId host = shared.hosts.at(news.node);
  if (at(host).shared != number || at(host).phase != Phase::kLaunching) return;  // it is not wanted any more
  if (const auto* placed = std::get_if<SharedPlaced>(&news.word)) {
    Bootstrap& there = at(host).bootstrap;
    auto refused = call_back_at(there, call_back_address(placed->address), kUntold);
    if (!refused) {
      return shared.step->give_bootstrap(news.node, bootstrap_frame(options_.job, options_.term, there));
    }
    shared.step->withdraw(news.node);
    return fail(host, std::move(*refused), Phase::kUntouched);
  }
  if (const auto* left = std::get_if<SharedLeft>(&news.word)) return on_shared_left(host, left->again);
  const auto& word = std::get<SharedAnswer>(news.word);
  if (const auto* reply = std::get_if<BootstrapReply>(&word.answer)) {
    return on_launched(host, *reply, shared.step->copy());
  }
  const auto* told = std::get_if<LaunchFailure>(&word.answer);
  MONARCH_ASSERT(told != nullptr);
  LaunchFailure failure = *told;
  failure.again = again(host);
  fail(host, std::move(failure), word.may_run ? Phase::kUnknown : Phase::kUntouched);
}

void SlurmLauncher::on_shared_left(HostId host, bool again) {
  Host& state = at(host);
  state.phase = Phase::kWaiting;
  state.shared = 0;
  state.step = worker_step_name(options_.job_id, state.place.name);
  if (!again) state.together = kTimesTogether;
  waiting_.push_back(host);
  fill_soon();
}

// A look at one is a look at all: whoever asks in the same turn gets the same answer.
void SlurmLauncher::on_shared_end(std::uint32_t number) {
  const std::vector<HostId> hosts = shared_.at(number).hosts;
  shared_.erase(number);
  check_over();
  for (const HostId host : hosts) {
    Host& state = at(host);
    if (state.shared != number || state.phase != Phase::kLaunched) continue;
    state.tries = 0;
    look(host);
  }
}

// Nothing is started there any more by the step that it would have shared.
void SlurmLauncher::leave_shared(HostId host) {
  Host& state = at(host);
  const auto found = shared_.find(std::exchange(state.shared, 0));
  if (found == shared_.end()) return;
  const auto& hosts = found->second.hosts;
  const auto position = std::find(hosts.begin(), hosts.end(), host) - hosts.begin();
  found->second.step->withdraw(static_cast<std::size_t>(position));
}

// It is launching no longer. Those of a shared step take nobody's turn.
void SlurmLauncher::landed(const Host& host) {
  if (host.shared == 0) --launching_;
}

}  // namespace monarch
