// Nodes of Slurm: what becomes of the job when Slurm ends its own, gives a node, or thinks otherwise of one than we do.

#include <cstdlib>
#include <utility>

#include "supervisor/core/operator_request.h"
#include "supervisor/launch/slurm/slurm_commands.h"
#include "supervisor/launch/ssh/worker_image.h"
#include "supervisor/supervisor_loop.h"
#include "transport/base/exit_code.h"
#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kSlurm = "Slurm";

// Of a host that nothing new starts on: was it Slurm that wanted that, and no person?
bool is_left_by_slurm(const HostState& host) {
  return host.standing == HostStanding::kDrained && host.lost_because.starts_with(text("drained, asked by ", kSlurm));
}

}  // namespace

Status Supervisor::open_slurm_nodes(const LaunchSlurm& slurm) {
  if (!slurm.allocation) return Error{ErrorCode::kInvalid, "launch.slurm: this job has no allocation"};
  const std::uint32_t job = slurm.allocation->job;
  SlurmNodesOptions options{
      .steps = {.job = job_,
                .job_id = files_.job_id,
                .term = files_.journal.term,
                .slurm_job = job,
                .nodes = slurm.allocation->nodes,
                .environment = slurm_environment([](const char* name) { return std::getenv(name); }),
                .address = core_.spec().control.address,
                .log_directory = files_.log_directory(),
                .own_steps = slurm.own_steps,
                .on_over = [this, job](const std::string& state) { on_allocation_over(job, state); }},
      .known = slurm.allocation->nodes.size(),
      .wish = slurm.request,
      .queue_limit = slurm.queue_limit,
      .on_named = [this](HostId host, const GrantedNode& granted) { return on_named(host, granted); },
      .name_of = [this](HostId host) { return core_.hosts()[host.value()].name; },
      .on_waiting =
          [this](HostId host, const std::string& words) {
            announce(EventKind::kHostQueued, Severity::kInfo, text(core_.hosts()[host.value()].name, ": ", words));
          },
      .on_seen = [this](HostId host, const SeenNode& seen) { on_node_seen(host, seen); }};
  for (std::size_t i = options.known; i < core_.hosts().size(); ++i) {
    options.steps.nodes.push_back(core_.hosts()[i].name);
  }
  MONARCH_ASSIGN(options.steps.image, read_worker_image(options_.worker_path));
  const Words environment = options.steps.environment;
  auto launcher = std::make_unique<SlurmNodes>(*loop_, *guard_, std::move(options), launcher_handlers());
  slurm_nodes_ = launcher.get();
  launcher_ = std::move(launcher);
  watch_end(slurm, environment);
  return {};
}

// Whoever cancelled it wants no other; whatever else took it may give another one.
void Supervisor::on_allocation_over(std::uint32_t job, const std::string& state) {
  StopRequest request{
      .how = StopHow::kOrderly,
      .exit_code = was_taken(state) ? kExitLost : 0,
      .who = text(kSlurm, ", whose job ", job, state.empty() ? " is not known to it any more" : " is over: ", state)};
  (void)decide(StopOrdered{.request = std::move(request)});
}

std::string Supervisor::on_named(HostId host, const GrantedNode& granted) {
  (void)decide(HostNamed{.host = host,
                         .name = granted.node,
                         .how = text("Slurm gave it as job ", granted.job, " after ", to_text(granted.waited))});
  return core_.hosts()[host.value()].name;
}

// What Slurm thinks of a node proves nothing about what runs there. Nothing new starts on one that it drains; what runs on one that is
// down for it ends as soon as the node's slurmd is back, and goes elsewhere before, if there is a host for it.
void Supervisor::on_node_seen(HostId host, const SeenNode& seen) {
  const HostState& state = core_.state().hosts[host.value()];
  const std::string& name = core_.hosts()[host.value()].name;
  if (seen.sight == NodeSight::kWell) {
    if (!is_left_by_slurm(state)) return;
    (void)decide(
        OperatorAsked{.wish = OperatorWish::kUndrain, .ranks = {}, .hosts = {host}, .who = std::string(kSlurm)});
    return;
  }
  const std::string who = text(kSlurm, ", which says `", seen.words, "`");
  if (state.standing == HostStanding::kGood) {
    (void)decide(OperatorAsked{.wish = OperatorWish::kDrain, .ranks = {}, .hosts = {host}, .who = who});
  }
  if (seen.sight != NodeSight::kDown || !is_left_by_slurm(state) || !runs_something(host) || !has_free_host()) return;
  const auto plan = operator_plan(
      core_, {.wish = OperatorWish::kDrain, .ranks = {}, .hosts = {name}, .now = true, .who = who}, loop_->now());
  if (!plan.ok()) {
    log_warn(name, ": what runs there stays: ", plan.error().message);
    return;
  }
  (void)decide(plan->event);
}

void Supervisor::watch_end(const LaunchSlurm& slurm, const Words& environment) {
  end_watch_ = std::make_unique<EndWatch>(
      *loop_, slurm_nodes_->calls(),
      EndWatchOptions{.job = slurm.allocation->job, .environment = environment, .warn = slurm.warn},
      EndWatchHandlers{
          .on_foreseen = [this](EndForeseen event) { on_end_foreseen(event); },
          .on_ending = [this] { slurm_nodes_->check_over(); },
          .on_short =
              [this](std::string words) { announce(EventKind::kJobLimit, Severity::kInfo, std::move(words)); }});
}

// Whoever sees it first: what was told before counts.
void Supervisor::on_end_foreseen(const EndForeseen& event) {
  const auto& known = core_.state().foreseen;
  if (known && event.by >= known->by) return;  // a record less
  (void)decide(event);
}

void Supervisor::on_warned(HostId host) {
  if (!end_watch_) return;
  const std::string& name = core_.hosts()[host.value()].name;
  if (!core_.spec().is_on_request(host)) return end_watch_->on_warned(name);
  on_node_seen(host, {NodeSight::kDown, "its job is told to end"});  // that one, which has no other node
}

bool Supervisor::runs_something(HostId host) const {
  if (core_.state().hosts[host.value()].phase != HostPhase::kJoined) return false;
  for (std::uint32_t m = 0; m < core_.state().meshes.size(); ++m) {
    const GangRange here = core_.placement().gangs_on(MeshId(m), host);
    for (std::uint32_t g = here.first; g < here.first + here.count; ++g) {
      const GangPhase phase = core_.state().meshes[m].gangs[g].phase;
      if (phase == GangPhase::kStarting || phase == GangPhase::kRunning) return true;
    }
  }
  return false;
}

// One that is connected, and has nothing to do.
bool Supervisor::has_free_host() const {
  for (std::uint32_t i = 0; i < core_.state().hosts.size(); ++i) {
    const HostState& host = core_.state().hosts[i];
    const bool serves = host.phase == HostPhase::kJoined && host.standing == HostStanding::kGood && !host.wedged &&
                        !host.doubted && !host.failing;
    if (serves && !core_.placement().holds_ranks(HostId(i))) return true;
  }
  return false;
}

}  // namespace monarch
