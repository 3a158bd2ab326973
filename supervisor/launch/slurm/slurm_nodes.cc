#include "supervisor/launch/slurm/slurm_nodes.h"

#include <algorithm>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

// How long a node on which a worker was lost is not asked for again.
constexpr Duration kAvoided = Duration::seconds(3'600);

}  // namespace

SlurmNodes::SlurmNodes(EventLoop& loop, Guard& guard, SlurmNodesOptions options, LauncherHandlers handlers)
    : loop_(loop),
      options_(std::move(options)),
      handlers_(std::move(handlers)),
      requested_(options_.steps.nodes.size() - options_.known) {
  LauncherHandlers told = handlers_;
  told.on_ended = [this](HostId host, std::string how, bool orderly) { on_step_ended(host, std::move(how), orderly); };
  const SlurmLauncherOptions& steps = options_.steps;
  steps_ = std::make_unique<SlurmLauncher>(loop, guard, steps, std::move(told));
  requests_ = std::make_unique<NodeRequests>(
      loop, steps_->calls(),
      NodeRequestsOptions{.uuid = steps.job.to_text(),
                          .name = steps.job_id,
                          .term = steps.term,
                          .like = steps.slurm_job,
                          .wish = options_.wish,
                          .environment = steps.environment,
                          .limit = options_.queue_limit},
      NodeRequestsHandlers{
          .on_granted = [this](HostId host, const GrantedNode& granted) { on_granted(host, granted); },
          .on_refused = [this](HostId host, LaunchFailure failure) { handlers_.on_failed(host, std::move(failure)); },
          .on_waiting = [this](HostId host, std::string words) { options_.on_waiting(host, std::move(words)); }});
  const std::vector<std::string> known(steps.nodes.begin(),
                                       steps.nodes.begin() + static_cast<std::ptrdiff_t>(options_.known));
  watch_ = std::make_unique<SlurmWatch>(
      loop, steps_->calls(),
      SlurmWatchOptions{.job = steps.slurm_job, .nodes = known, .environment = steps.environment},
      SlurmWatchHandlers{.on_job = [this](const Result<std::string>& state) { steps_->hear(state); },
                         .on_node = [this](const std::string& node, const SeenNode& seen) { on_seen(node, seen); },
                         .more_nodes = [this] { return nodes_on_request(); }});
}

void SlurmNodes::launch(HostId host, const Bootstrap& bootstrap) {
  if (!on_request(host)) return steps_->launch(host, bootstrap);
  Requested& state = at(host);
  state.phase = Phase::kAsked;
  state.bootstrap = bootstrap;
  state.node.clear();
  steps_->place(host, {});  // of an earlier node nothing is awaited any more
  requests_->ask(host, nodes_to_avoid());
}

void SlurmNodes::on_granted(HostId host, const GrantedNode& granted) {
  Requested& state = at(host);
  if (state.phase != Phase::kAsked) return;  // it is given back by then
  state.phase = Phase::kPlaced;
  state.node = granted.node;
  state.bootstrap.host_name = options_.on_named(host, granted);
  steps_->place(host, {.job = granted.job, .node = granted.node, .name = state.bootstrap.host_name});
  steps_->launch(host, state.bootstrap);
}

void SlurmNodes::destroy(HostId host) {
  if (!on_request(host)) return steps_->destroy(host);
  switch (at(host).phase) {
    case Phase::kReturning: return;  // it is at it
    case Phase::kPlaced: return steps_->destroy(host);
    case Phase::kAsked:
    case Phase::kNone: return return_node(host, "was not running", true);
    case Phase::kUnknown: break;
  }
  requests_->find(host, [this, host](const std::optional<GrantedNode>& found) {
    if (at(host).phase != Phase::kUnknown) return;
    if (!found) return return_node(host, "was not running", true);
    at(host).phase = Phase::kPlaced;
    at(host).node = found->node;
    steps_->place(host, {.job = found->job, .node = found->node, .name = options_.name_of(host)});
    steps_->destroy(host);
  });
}

void SlurmNodes::on_step_ended(HostId host, std::string how, bool orderly) {
  if (!on_request(host)) return handlers_.on_ended(host, std::move(how), orderly);
  if (!orderly && !at(host).node.empty()) bad_.emplace_back(at(host).node, loop_.now());
  return_node(host, std::move(how), orderly);
}

void SlurmNodes::return_node(HostId host, std::string how, bool orderly) {
  at(host).phase = Phase::kReturning;
  requests_->give_back(host, [this, host, how = std::move(how), orderly]() mutable {
    if (at(host).phase != Phase::kReturning) return;
    at(host).phase = Phase::kNone;
    at(host).node.clear();
    handlers_.on_ended(host, std::move(how), orderly);
  });
}

std::vector<std::string> SlurmNodes::nodes_on_request() const {
  std::vector<std::string> nodes;
  for (const Requested& requested : requested_) {
    if (!requested.node.empty()) nodes.push_back(requested.node);
  }
  return nodes;
}

// Two hosts of the job on one node would be lost together; one that was lost there is not to be lost there again.
std::vector<std::string> SlurmNodes::nodes_to_avoid() const {
  std::vector<std::string> nodes = nodes_on_request();
  nodes.insert(nodes.end(), options_.steps.nodes.begin(),
               options_.steps.nodes.begin() + static_cast<std::ptrdiff_t>(options_.known));
  for (const auto& [node, since] : bad_) {
    if (loop_.now() - since < kAvoided) nodes.push_back(node);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

void SlurmNodes::on_seen(const std::string& node, const SeenNode& seen) {
  for (std::uint32_t i = 0; i < options_.steps.nodes.size(); ++i) {
    const HostId host(i);
    const std::string& its = on_request(host) ? at(host).node : options_.steps.nodes[i];
    if (its == node) options_.on_seen(host, seen);
  }
}

}  // namespace monarch
