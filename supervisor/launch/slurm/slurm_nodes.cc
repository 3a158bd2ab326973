#include "supervisor/launch/slurm/slurm_nodes.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "supervisor/launch/open_launcher.h"
#include "supervisor/launch/slurm/slurm_commands.h"
#include "supervisor/launch/slurm/slurm_continuation.h"
#include "supervisor/launch/slurm/slurm_spec.h"
#include "supervisor/launch/talk/worker_image.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

extern char** environ;

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
  options_.steps.on_over = [this](const std::string& state) { on_over(state); };
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
          .on_waiting =
              [this](HostId host, const std::string& words) {
                handlers_.say(EventKind::kHostQueued, Severity::kInfo,
                              text(options_.hosts[host.value()].name, ": ", words));
              }});
  const std::vector<std::string> known(steps.nodes.begin(),
                                       steps.nodes.begin() + static_cast<std::ptrdiff_t>(options_.known));
  watch_ = std::make_unique<SlurmWatch>(
      loop, steps_->calls(),
      SlurmWatchOptions{.job = steps.slurm_job, .nodes = known, .environment = steps.environment},
      SlurmWatchHandlers{.on_job = [this](const Result<std::string>& state) { steps_->hear(state); },
                         .on_node = [this](const std::string& node, const SeenNode& seen) { on_seen(node, seen); },
                         .more_nodes = [this] { return nodes_on_request(); }});
  end_watch_ = std::make_unique<EndWatch>(
      loop, steps_->calls(),
      EndWatchOptions{.job = steps.slurm_job, .environment = steps.environment, .warn = options_.warn},
      EndWatchHandlers{
          .on_foreseen = handlers_.on_foreseen,
          .on_ending = [this] { steps_->check_over(); },
          .on_short =
              [this](std::string words) { handlers_.say(EventKind::kJobLimit, Severity::kInfo, std::move(words)); }});
}

// Whoever cancelled it wants no other; whatever else took it may give another one.
void SlurmNodes::on_over(const std::string& state) const {
  handlers_.on_over({.how = StopHow::kOrderly,
                     .exit_code = was_taken(state) ? kExitLost : 0,
                     .who = text("Slurm, whose job ", options_.steps.slurm_job,
                                 state.empty() ? " is not known to it any more" : " is over: ", state)});
}

// That of a node on request is about it alone, which has no other.
void SlurmNodes::on_warned(HostId host) {
  if (!on_request(host)) return end_watch_->on_warned(options_.hosts[host.value()].name);
  handlers_.on_node_seen(host, {NodeSight::kDown, "its job is told to end"});
}

std::unique_ptr<Continuation> SlurmNodes::continuation(ContinuationOrder order, OnContinued then) {
  std::vector<std::string> variables;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string_view variable(*line);
    variables.emplace_back(variable.substr(0, variable.find('=')));
  }
  return std::make_unique<SlurmContinuation>(loop_, steps_->calls(),
                                             SlurmContinuationOptions{.how = options_.on_preempt,
                                                                      .slurm_job = options_.steps.slurm_job,
                                                                      .order = std::move(order),
                                                                      .environment = options_.steps.environment,
                                                                      .variables = std::move(variables)},
                                             std::move(then));
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
  state.bootstrap.host_name = handlers_.on_named(
      host, granted.node, text("Slurm gave it as job ", granted.job, " after ", to_text(granted.waited)));
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
    steps_->place(host, {.job = found->job, .node = found->node, .name = options_.hosts[host.value()].name});
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
    if (its == node) handlers_.on_node_seen(host, seen);
  }
}

Result<std::unique_ptr<Launcher>> open_slurm(const LaunchSurroundings& around, LauncherHandlers handlers) {
  const LaunchSlurm& slurm = *around.spec.launch.as<LaunchSlurm>();
  if (!slurm.allocation) return Error{ErrorCode::kInvalid, "launch.slurm: this job has no allocation"};
  SlurmNodesOptions options{
      .steps = {.job = around.job,
                .job_id = around.job_id,
                .term = around.term,
                .slurm_job = slurm.allocation->job,
                .nodes = slurm.allocation->nodes,
                .environment = slurm_environment([](const char* name) { return std::getenv(name); }),
                .address = around.spec.control.address,
                .log_directory = around.log_directory,
                .own_steps = slurm.own_steps},
      .hosts = around.hosts,
      .known = slurm.allocation->nodes.size(),
      .wish = slurm.request,
      .queue_limit = slurm.queue_limit,
      .warn = slurm.warn,
      .on_preempt = slurm.on_preempt};
  for (std::size_t i = options.known; i < around.hosts.size(); ++i) {
    options.steps.nodes.push_back(around.hosts[i].name);
  }
  MONARCH_ASSIGN(options.steps.image, read_worker_image(around.worker_path));
  return std::unique_ptr<Launcher>(
      std::make_unique<SlurmNodes>(around.loop, around.guard, std::move(options), std::move(handlers)));
}

}  // namespace monarch
