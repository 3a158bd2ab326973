#include "worker/keeper/rank_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/process/cpu_affinity.h"
#include "transport/process/shell.h"
#include "worker/keeper/host_topology.h"

namespace monarch {

namespace {

// What is relative lies in the workspace, whose place on this host the supervisor does not know.
std::string workdir_in(const std::string& tree, const std::string& workdir) {
  if (workdir.empty() || workdir.front() == '/') return workdir;
  return workdir == "." ? tree : text(tree, '/', workdir);
}

namespace event = keeper_event;

// Whoever takes output may be gone, or wait for a disk: after this a rank that was a standby has its place all the same, and what it
// writes first may lie in the standby's files.
constexpr Duration kPipesPatience = Duration::seconds(1);

struct PipeEnds {
  UniqueFd read;
  UniqueFd write;
};

// False with errno set. The read end does not block, whoever holds a copy of it.
bool make_output_pipe(PipeEnds& ends) {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) return false;
  ends.read = UniqueFd(fds[0]);
  ends.write = UniqueFd(fds[1]);
  // An unprivileged user's pipes are limited together (pipe(7)): a smaller one does as well, only blocks its rank sooner.
  (void)::fcntl(ends.write.get(), F_SETPIPE_SZ, limits::kOutputPipeBytes);
  return ::fcntl(ends.read.get(), F_SETFL, O_NONBLOCK) == 0;
}

}  // namespace

RankProcesses::RankProcesses(EventLoop& loop, ChildWatch& watch, Containment& containment, Reservations& reservations,
                             RankDoors& doors, RankProcessesOptions options, std::function<void(KeeperEvent)> tell)
    : loop_(loop),
      watch_(watch),
      containment_(containment),
      reservations_(reservations),
      doors_(doors),
      options_(std::move(options)),
      tell_(std::move(tell)),
      usable_cpus_(usable_cpus()) {}

RankProcesses::~RankProcesses() {
  loop_.cancel(look_timer_);
  for (auto& [key, process] : processes_) {
    loop_.forget(process.exec_watch);
    loop_.cancel(process.pipes_timer);
    if (process.child) watch_.reap(process.child->pid());
  }
}

RankProcesses::Process* RankProcesses::find(const Incarnation& key) {
  const auto found = processes_.find(key);
  return found == processes_.end() ? nullptr : &found->second;
}

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
                              .setup = order.setup,
                              .gang_env = order.gang_env,
                              .own_env = order.own_env,
                              .keys = {options_.job_uuid, options_.host_name, order.key.rank, order.key.generation},
                              .cpus = {}};
  if (!order.setup.empty()) {
    MONARCH_ASSIGN(preparation.mesh_setup, setup_of(order.key.rank.mesh));
  }
  if (order.binding.kind == BindKind::kNone) return preparation;
  if (!topology_) topology_ = read_host_topology(usable_cpus_);
  MONARCH_ASSIGN(preparation.cpus, bound_cpus(order.binding, *topology_));
  return preparation;
}

void RankProcesses::fork_rank(const keeper_action::ForkRank& order) {
  auto preparation = preparation_of(order);
  if (!preparation) return tell_(event::ForkFailed{order.key, EINVAL, preparation.error().message});
  Process process;
  process.reservation = {order.key.rank.mesh, order.gang, order.key.generation};
  process.ports = order.ports;
  process.name = rank_key(order.key.rank, order.key.generation);
  process.contained = true;
  process.pipes.mesh_name = order.mesh_name;
  process.pipes.log_max_bytes = order.log_max_bytes;
  process.pipes.ready_port = order.ready_port;
  PipeEnds output;
  PipeEnds error;
  if (!make_output_pipe(output) || !make_output_pipe(error)) {
    return tell_(event::ForkFailed{order.key, errno, "make its output pipes"});
  }
  process.output = std::move(output.read);
  process.error = std::move(error.read);
  process.pipes.output = process.output.get();
  process.pipes.error = process.error.get();
  auto procs = containment_.prepare(process.name);
  if (!procs) return tell_(event::ForkFailed{order.key, EIO, procs.error().message});
  auto doors = doors_.open(order);
  if (!doors) {
    containment_.remove(process.name);
    return tell_(event::ForkFailed{order.key, EIO, doors.error().message});
  }
  SpawnOptions options;
  options.program = order.program;
  const Environment base = rank_base(options_.base, order.defaults);
  const bool has_setup = preparation->mesh_setup != nullptr;
  // A setup has no doors: it is the mesh's, and a door is one rank's.
  const RankEnvironment setup_keys = preparation->keys;
  preparation->keys.doors = std::move(doors).value();
  options.environment =
      environment_lines(has_setup ? setup_environment(base, order.gang_env, setup_keys)
                                  : rank_environment(base, order.gang_env, order.own_env, preparation->keys));
  options.kept = reservations_.sockets(process.reservation, process.ports);
  if (has_setup) options.kept.push_back(preparation->mesh_setup->descriptor());
  options.prepare = [preparation = std::move(preparation).value()](std::vector<std::string>& environment) {
    return prepare_rank(preparation, environment);
  };
  options.workdir = workdir_in(options_.tree, order.workdir);
  options.descriptors = {{output.write.get(), STDOUT_FILENO}, {error.write.get(), STDERR_FILENO}};
  options.cgroup_procs = procs.value().get();
  options.umask = options_.umask;
  options.descriptor_limit = options_.descriptor_limit;
  options.traceable = true;
  forked(order.key, std::move(process), options);
}

void RankProcesses::fork_spawned(const keeper_action::ForkSpawned& order, const std::vector<UniqueFd>& descriptors) {
  Process process;
  process.name = rank_key(order.key.rank, order.key.generation);
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
  forked(order.key, std::move(process), options);
  open_gate(order.key);
}

void RankProcesses::forked(const Incarnation& key, Process process, const SpawnOptions& options) {
  auto result = Child::fork(options);
  if (const auto* failure = std::get_if<StepFailure>(&result)) {
    containment_.remove(process.name);
    doors_.close(key);
    return tell_(event::ForkFailed{key, failure->error, failure->detail});
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
}

void RankProcesses::exec_told(const Incarnation& key) {
  Process* process = find(key);
  if (process == nullptr || !process->child) return;
  const ExecState state = process->child->exec_state();
  if (process->child->at_gate() || state != ExecState::kPending) arrived(*process);
  switch (state) {
    case ExecState::kPending: return;
    case ExecState::kExecuted: tell_(event::Executed{key}); break;
    case ExecState::kFailed: {
      const StepFailure& failure = process->child->failure();
      tell_(event::ExecFailed{key, failure.error, failure.detail, failure.exit_code});
      break;
    }
  }
  loop_.forget(std::exchange(process->exec_watch, 0));
}

void RankProcesses::ask_whether_executed(const Incarnation& key) {
  const Process* process = find(key);
  if (process != nullptr && process->exec_watch != 0) exec_told(key);
}

// Its containment keeps its name, which nothing outside knows.
void RankProcesses::take_over(const keeper_action::TakeOver& order) {
  auto process = processes_.extract(order.from);
  MONARCH_ASSERT(!process.empty());
  const keeper_action::ForkRank& as = order.as;
  process.key() = as.key;
  Process& taken = process.mapped();
  taken.reservation = {as.key.rank.mesh, as.gang, as.key.generation};
  taken.ports = as.ports;
  taken.at_inner_gate = true;
  taken.pipes.mesh_name = as.mesh_name;
  taken.pipes.log_max_bytes = as.log_max_bytes;
  taken.pipes.ready_port = as.ready_port;
  taken.pipes.standby = order.from;
  taken.pipes_timer = loop_.at(loop_.now() + kPipesPatience, [this, key = as.key] { pipes_taken(key); });
  processes_.insert(std::move(process));
  renamed_[order.from] = as.key;
  doors_.take_over(order.from, as);
}

void RankProcesses::exited(const Incarnation& forked_as, const ExitStatus& status) {
  const auto renamed = renamed_.find(forked_as);
  const Incarnation key = renamed == renamed_.end() ? forked_as : renamed->second;
  // What the child said before it exited is told first, in whatever order the descriptors became ready.
  exec_told(key);
  doors_.hear_last_words(key);
  const Process* process = find(key);
  RankEnd end;
  end.kind = status.signaled ? EndKind::kSignaled : EndKind::kExited;
  end.value = status.value;
  end.core_dumped = status.core_dumped;
  end.out_of_memory = status.signaled && status.value == SIGKILL && process != nullptr && process->contained &&
                      containment_.out_of_memory(process->name);
  tell_(event::Exited{key, end});
}

// Whoever waits for a port of its own waits until no process but its own has a copy of the socket that holds it.
void RankProcesses::open_gate(const Incarnation& key) {
  Process* process = find(key);
  if (process == nullptr || !process->child) return;
  if (process->ports.empty()) return let_pass(key, *process);
  reservations_.hand_over(process->reservation, process->ports);
  process->gate_wanted = true;
  open_wanted_gates();
}

void RankProcesses::let_pass(const Incarnation& key, Process& process) {
  process.place_wanted = process.at_inner_gate && process.pipes_timer != 0;
  if (process.place_wanted) return;
  if (!std::exchange(process.at_inner_gate, false)) return process.child->open_gate();
  doors_.open_gate(key);
  tell_(event::Executed{key});
}

void RankProcesses::pipes_taken(const Incarnation& key) {
  Process* process = find(key);
  if (process == nullptr) return;
  loop_.cancel(std::exchange(process->pipes_timer, 0));
  if (process->place_wanted && process->child) let_pass(key, *process);
}

void RankProcesses::arrived(Process& process) {
  if (!std::exchange(process.on_the_way, false)) return;
  open_wanted_gates();
}

void RankProcesses::open_wanted_gates() {
  const auto on_the_way = [](const auto& entry) { return entry.second.child && entry.second.on_the_way; };
  if (std::any_of(processes_.begin(), processes_.end(), on_the_way)) return;
  for (auto& [key, process] : processes_) {
    if (std::exchange(process.gate_wanted, false) && process.child) let_pass(key, process);
  }
}

void RankProcesses::signal(const Incarnation& key, int number, SignalTo to) {
  const Process* process = find(key);
  if (process == nullptr || !process->child) return;
  const Child& child = *process->child;
  const bool found_group = to == SignalTo::kAuto && !awaited_by_shell(child.pid()).empty();
  // False where nothing is there any more to be told.
  if (found_group || to == SignalTo::kGroup) {
    (void)send_group_signal(child.pidfd(), child.pid(), number);
  } else {
    (void)send_signal(child.pidfd(), number);
  }
  if (found_group) tell_(event::GroupTold{key});
}

bool RankProcesses::freeze(const Incarnation& key) {
  const Process* process = find(key);
  return process != nullptr && containment_.freeze(process->name);
}

bool RankProcesses::thaw(const Incarnation& key) {
  const Process* process = find(key);
  return process != nullptr && containment_.thaw(process->name);
}

void RankProcesses::kill_rank(const Incarnation& key) {
  Process* process = find(key);
  if (process == nullptr || !process->child) return;
  const std::vector<ProcessEntry> awaited =
      awaited_by_shell(process->child->pid());  // once it is dead they are nobody's
  (void)send_signal(process->child->pidfd(), SIGKILL);
  for (const ProcessEntry& entry : awaited) {
    // False where it has ended meanwhile, which was wanted.
    UniqueFd pidfd = open_process(entry);
    if (pidfd.valid() && send_signal(pidfd.get(), SIGKILL)) process->awaited.push_back(std::move(pidfd));
  }
}

void RankProcesses::kill(const Incarnation& key) {
  const Process* process = find(key);
  if (process == nullptr || !process->child) return;
  (void)send_signal(process->child->pidfd(), SIGKILL);  // also when it has not joined its cgroup yet
  if (process->contained) containment_.kill(process->name);
}

void RankProcesses::check(const Incarnation& key) {
  const Process* process = find(key);
  // Of a spawned process only itself counts: what it leaves behind cleans up after it, and ends with the keeper at last.
  const bool empty = process == nullptr || !process->contained || containment_.empty(process->name);
  if (empty) {
    tell_(event::TreeEmpty{key});
  } else {
    // A pidfd is readable once its process has ended.
    const auto lives = [](const UniqueFd& pidfd) {
      pollfd polled{pidfd.get(), POLLIN, 0};
      return ::poll(&polled, 1, 0) == 0;
    };
    const std::vector<UniqueFd>& awaited = process->awaited;
    tell_(event::TreeBusy{key, std::any_of(awaited.begin(), awaited.end(), lives)});
  }
}

void RankProcesses::reap(const Incarnation& key) {
  Process* process = find(key);
  if (process == nullptr || !process->child) return;
  loop_.forget(std::exchange(process->exec_watch, 0));
  watch_.reap(process->child->pid());
  process->child.reset();
  process->awaited.clear();
  doors_.close(key);
  open_wanted_gates();
  if (process->contained) containment_.remove(process->name);
}

void RankProcesses::drop(const Incarnation& key) {
  reap(key);
  if (const Process* process = find(key)) loop_.cancel(process->pipes_timer);
  processes_.erase(key);
  std::erase_if(renamed_, [&key](const auto& renamed) { return renamed.second == key; });
}

std::variant<pid_t, StacksEnd> RankProcesses::leader(const Incarnation& key) const {
  const auto found = processes_.find(key);
  if (found == processes_.end() || !found->second.child || !found->second.contained) return StacksEnd::kEnded;
  if (found->second.exec_watch != 0) return StacksEnd::kNotExecuted;
  return found->second.child->pid();
}

const RankPipes* RankProcesses::pipes(const Incarnation& key) const {
  const auto found = processes_.find(key);
  return found == processes_.end() || found->second.pipes.output < 0 ? nullptr : &found->second.pipes;
}

}  // namespace monarch
