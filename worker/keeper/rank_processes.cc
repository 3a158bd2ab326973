#include "worker/keeper/rank_processes.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "transport/base/text.h"
#include "transport/process/cpu_affinity.h"
#include "transport/process/pipe.h"
#include "transport/process/process_limits.h"
#include "transport/process/process_scan.h"
#include "transport/process/shell.h"

namespace monarch {

namespace {

namespace event = keeper_event;

// Whoever takes output may be gone, or wait for a disk: after this a rank that was a standby has its place all the
// same, and what it writes first may lie in the standby's files.
constexpr Duration kPipesPatience = Duration::seconds(1);

constexpr Duration kBetweenLooksForEnds = Duration::milliseconds(100);
constexpr std::size_t kLookedForEnds = 1024;

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
      usable_cpus_(usable_cpus()),
      inputs_(loop_, options_.on_input_taken) {
  if (auto pipe = make_pipe(PipeReader::kDoesNotWait); pipe.ok()) ended_pipe_ = std::move(pipe->reader);
}

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

void RankProcesses::exec_told(const Incarnation& key) {
  Process* process = find(key);
  if (process == nullptr || !process->child) return;
  const ExecState state = process->child->exec_state();
  if (process->child->at_gate() || state != ExecState::kPending) arrived(*process);
  switch (state) {
    case ExecState::kPending: return;
    case ExecState::kExecuted: tell_(event::Executed{key}); break;
    case ExecState::kFailed: {
      const StepFailure failure = with_limit(process->child->failure());
      tell_(event::ExecFailed{key, failure.error, failure.detail, failure.exit_code});
      break;
    }
  }
  loop_.forget(std::exchange(process->exec_watch, 0));
  process->child->close_exec_descriptor();
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
  taken.reservation = {as.key.rank.mesh, as.gang.gang, as.key.generation};
  taken.ports = as.own.ports;
  taken.at_inner_gate = true;
  taken.pipes.mesh_name = as.gang.mesh_name;
  taken.pipes.log_max_bytes = as.gang.log_max_bytes;
  taken.pipes.ready_port = as.own.ready_port;
  taken.pipes.standby = order.from;
  taken.pipes_timer = loop_.at(loop_.now() + kPipesPatience, [this, key = as.key] { pipes_taken(key); });
  processes_.insert(std::move(process));
  renamed_[order.from] = as.key;
  doors_.take_over(order.from, as);
}

std::vector<Incarnation> RankProcesses::ending_beside(const Incarnation& key) {
  std::vector<Incarnation> ending;
  if (loop_.now() < looked_for_ends_ + kBetweenLooksForEnds || processes_.size() > kLookedForEnds) return ending;
  looked_for_ends_ = loop_.now();
  for (const auto& [other, process] : processes_) {
    if (other != key && process.contained && process.child && is_ending(process.child->pid())) ending.push_back(other);
  }
  return ending;
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
  tell_(event::Exited{key, end, ending_beside(key)});
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
  // Of a spawned process only itself counts: what it leaves behind cleans up after it, and ends with the keeper at
  // last.
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
  inputs_.close(key);
  doors_.close(key);
  open_wanted_gates();
  if (process->contained) containment_.remove(process->name);
}

void RankProcesses::give_input(const Input& order) {
  for (const RankId& rank : order.ranks) {
    const Incarnation key{rank, order.generation};
    const Process* process = find(key);
    if (process != nullptr && process->child) inputs_.give(key, order);
  }
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
