// RankProcesses: from the order to a child at its gate.

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/process/pipe.h"
#include "transport/process/process_limits.h"
#include "worker/keeper/host_topology.h"
#include "worker/keeper/rank_processes.h"

namespace monarch {

namespace {

namespace event = keeper_event;

// What is relative lies in the workspace, whose place on this host the supervisor does not know.
std::string workdir_in(const std::string& tree, const std::string& workdir) {
  if (workdir.empty() || workdir.front() == '/') return workdir;
  return workdir == "." ? tree : text(tree, '/', workdir);
}

Result<Pipe> make_output_pipe() {
  MONARCH_ASSIGN(Pipe pipe, make_pipe(PipeReader::kDoesNotWait));
  // An unprivileged user's pipes are limited together (pipe(7)): a smaller one does as well, only blocks its rank
  // sooner.
  (void)::fcntl(pipe.writer.get(), F_SETPIPE_SZ, limits::kOutputPipeBytes);
  return pipe;
}

}  // namespace

Result<const MeshSetup*> RankProcesses::setup_of(MeshId mesh) {
  auto found = setups_.find(mesh);
  if (found == setups_.end()) {
    MONARCH_ASSIGN(auto made, MeshSetup::create());
    found = setups_.emplace(mesh, std::move(made)).first;
  }
  return static_cast<const MeshSetup*>(found->second.get());
}

Result<RankPreparation> RankProcesses::preparation_of(const keeper_action::ForkRank& order) {
  RankPreparation preparation{.mesh_setup = nullptr,
                              .setup = order.gang.setup,
                              .gang_env = order.gang.env,
                              .own_env = order.own.env,
                              .keys = {options_.job_uuid, options_.host_name, order.key},
                              .cpus = {}};
  if (!order.gang.setup.empty()) {
    MONARCH_ASSIGN(preparation.mesh_setup, setup_of(order.key.rank.mesh));
  }
  if (order.own.binding.kind == BindKind::kNone) return preparation;
  if (!topology_) topology_ = read_host_topology(usable_cpus_);
  MONARCH_ASSIGN(preparation.cpus, bound_cpus(order.own.binding, *topology_));
  return preparation;
}

// Who has ended may still hold some of what this one needs.
void RankProcesses::fork_rank(const keeper_action::ForkRank& order) {
  (void)close_pipes_of_ended(has_ended);
  std::optional<StepFailure> failure = begin(order);
  // Who takes the output has its own descriptors of it: these are for who comes after, should that die just now.
  if (failure && failure->error == EMFILE && close_pipes_of_ended([](int) { return true; })) {
    log_warn("descriptors are scarce: output that ranks left in their pipes is not kept for another daemon");
    failure = begin(order);
  }
  if (failure) not_forked(order.key, std::move(*failure));
}

void RankProcesses::not_forked(const Incarnation& key, StepFailure failure) {
  inputs_.close(key);
  failure = with_limit(std::move(failure));
  tell_(event::ForkFailed{key, failure.error, std::move(failure.detail)});
}

bool RankProcesses::close_pipes_of_ended(const std::function<bool(int)>& closed) {
  bool any = false;
  if (!ended_pipe_.valid()) return any;
  const auto close = [&](UniqueFd& pipe, int& shown) {
    if (!pipe.valid() || !closed(pipe.get())) return;
    pipe.reset();
    shown = ended_pipe_.get();
    any = true;
  };
  for (auto& [key, process] : processes_) {
    if (process.child) continue;
    close(process.output, process.pipes.output);
    close(process.error, process.pipes.error);
  }
  return any;
}

std::optional<StepFailure> RankProcesses::begin(const keeper_action::ForkRank& order) {
  auto preparation = preparation_of(order);
  if (!preparation) {
    const Error& why = preparation.error();
    return why.errno_value != 0 ? step_failure(why) : StepFailure{EINVAL, why.message};
  }
  Process process;
  process.reservation = {order.key.rank.mesh, order.gang.gang, order.key.generation};
  process.ports = order.own.ports;
  process.name = rank_key(order.key);
  process.contained = true;
  process.pipes.mesh_name = order.gang.mesh_name;
  process.pipes.log_max_bytes = order.gang.log_max_bytes;
  process.pipes.ready_port = order.own.ready_port;
  auto output = make_output_pipe();
  auto error = make_output_pipe();
  if (!output || !error) return StepFailure{(!output ? output : error).error().errno_value, "make its output pipes"};
  process.output = std::move(output->reader);
  process.error = std::move(error->reader);
  process.pipes.output = process.output.get();
  process.pipes.error = process.error.get();
  const auto group = containment_.prepare(process.name);
  if (!group) {
    containment_.remove(process.name);  // the folder may be there, and nobody able to open it
    return step_failure(group.error());
  }
  auto doors = doors_.open(order);
  if (!doors) {
    containment_.remove(process.name);
    return step_failure(doors.error());
  }
  SpawnOptions options;
  options.program = order.own.program;
  Status put = options_.files.put_program(options.program, options_.tree);
  if (put.ok() && order.gang.env.contains(std::string(kTensorsVariable))) put = options_.files.put_library(*doors);
  if (put.ok() && order.gang.env.contains(std::string(kTrustVariable))) put = options_.files.put_modules(*doors);
  if (!put.ok()) {
    containment_.remove(process.name);
    doors_.close(order.key);
    return step_failure(put.error());
  }
  const Environment base = rank_base(options_.base, order.gang.defaults);
  const bool has_setup = preparation->mesh_setup != nullptr;
  // A setup has no doors: it is the mesh's, and a door is one rank's.
  const RankEnvironment setup_keys = preparation->keys;
  preparation->keys.doors = std::move(doors).value();
  options.environment =
      environment_lines(has_setup ? setup_environment(base, order.gang.env, setup_keys)
                                  : rank_environment(base, order.gang.env, order.own.env, preparation->keys));
  options.kept = reservations_.sockets(process.reservation, process.ports);
  if (has_setup) options.kept.push_back(preparation->mesh_setup->descriptor());
  options.prepare = [preparation = std::move(preparation).value()](std::vector<std::string>& environment) {
    return prepare_rank(preparation, environment);
  };
  options.workdir = workdir_in(options_.tree, order.own.workdir);
  options.descriptors = {{output->writer.get(), STDOUT_FILENO}, {error->writer.get(), STDERR_FILENO}};
  UniqueFd input;
  if (order.own.input) {
    auto opened = inputs_.open(order.key);
    if (!opened) {
      containment_.remove(process.name);
      doors_.close(order.key);
      return step_failure(opened.error());
    }
    input = std::move(opened).value();
    options.descriptors.push_back({input.get(), STDIN_FILENO});
  }
  options.group = group.value().get();
  options.umask = options_.umask;
  options.descriptor_limit = options_.descriptor_limit;
  options.tracer = order.gang.traced_by == TracedBy::kAnybody ? Tracer::kAnybody : Tracer::kParent;
  return begin(order.key, std::move(process), options);
}

void RankProcesses::fork_spawned(const keeper_action::ForkSpawned& order, const std::vector<UniqueFd>& descriptors) {
  Process process;
  process.name = rank_key(order.key);
  SpawnOptions options;
  options.program = order.spawn.program;
  options.executable = order.spawn.executable;
  options.environment = environment_lines(hold_loader_variables(spawned_environment(options_.base, order.spawn.env)));
  options.workdir = order.spawn.workdir;
  for (std::size_t i = 0; i < descriptors.size() && i < 3; ++i) {
    options.descriptors.push_back({descriptors[i].get(), static_cast<int>(i)});
  }
  options.umask = options_.umask;
  options.descriptor_limit = options_.descriptor_limit;
  options.on_parent_death = OnParentDeath::kLive;
  if (auto failure = begin(order.key, std::move(process), options)) {
    return not_forked(order.key, std::move(*failure));
  }
  open_gate(order.key);
}

std::optional<StepFailure> RankProcesses::begin(const Incarnation& key, Process process, const SpawnOptions& options) {
  auto result = Child::fork(options);
  if (auto* failure = std::get_if<StepFailure>(&result)) {
    containment_.remove(process.name);
    doors_.close(key);
    return std::move(*failure);
  }
  process.child = std::move(std::get<std::unique_ptr<Child>>(result));
  Child& child = *process.child;
  containment_.set_leader(process.name, child.pid());
  tell_(event::Forked{key, child.pid()});
  const auto exec_watch =
      loop_.watch(child.exec_descriptor(), Interest::kRead, [this, key](Readiness) { exec_told(key); });
  const auto watched =
      watch_.watch(child.pid(), child.pidfd(), [this, key](const ExitStatus& status) { exited(key, status); });
  MONARCH_ASSERT(exec_watch.ok() && watched.ok());  // epoll refuses only what the kernel has no memory for
  process.exec_watch = exec_watch.value();
  processes_.insert_or_assign(key, std::move(process));
  look_every_second();
  return std::nullopt;
}

}  // namespace monarch
