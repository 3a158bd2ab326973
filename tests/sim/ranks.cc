#include "tests/sim/ranks.h"

#include <cerrno>
#include <csignal>
#include <utility>

#include "tests/sim/checker.h"
#include "tests/sim/world.h"

namespace monarch::sim {

namespace {

namespace event = keeper_event;
using Stage = RankProcess::Stage;

constexpr Duration kLongestStart = Duration::seconds(2);
constexpr Duration kLate = Duration::seconds(5);
constexpr std::uint64_t kSickForks = 150;  // that fail on a sick host, of a thousand
constexpr std::uint64_t kSickRuns = 500;
constexpr std::int32_t kErrorOfEach = 2;
constexpr std::int32_t kLongestGoodbye = 900;  // milliseconds
constexpr Duration kLatest = Duration::seconds(60);

}  // namespace

Ranks::Ranks(World& world, Host& host, std::function<void(KeeperEvent)> tell)
    : world_(world), host_(host), tell_(std::move(tell)) {}

RankProcess* Ranks::find(const Incarnation& key) {
  const auto found = processes_.find(key);
  return found == processes_.end() ? nullptr : &found->second;
}

// What is planned later stands for one life of a process: a kill or a TERM replaces it.
void Ranks::later(const Incarnation& key, Duration wait, std::function<void(RankProcess&)> what) {
  const std::uint64_t life = ++find(key)->life;
  world_.scheduler.after(wait, [this, kernel = host_.kernel, key, life, what = std::move(what)] {
    kernel->timer([this, key, life, what] {
      RankProcess* process = find(key);
      if (process == nullptr || process->life != life || !process->alive()) return;
      what(*process);
    });
  });
}

Duration Ranks::run_time(RankId rank) {
  const bool idle = world_.scenario.spec.meshes[rank.mesh.value()].idle;
  const Duration longest = idle ? world_.scenario.slots_run : world_.scenario.longest_run;
  if (longest == Duration::forever()) return Duration::seconds(100'000);
  return world_.random.skewed(Duration::milliseconds(1), longest);
}

void Ranks::fork_rank(const keeper_action::ForkRank& order) {
  const Faults& faults = world_.faults();
  const bool sick = host_.sick && !world_.healed();
  if (world_.random.permille(sick ? kSickForks : faults.fork_fails))
    return tell_(event::ForkFailed{order.key, ENOMEM, "fork"});
  RankProcess process;
  process.key = order.key;
  process.host = host_.id;
  process.pid = world_.next_pid();
  process.standby = order.gang.standby;
  process.furthest = order.gang.furthest;
  process.deaf = world_.random.permille(faults.deaf);
  if (world_.random.permille(faults.children))
    process.children = 1 + static_cast<std::uint32_t>(world_.random.below(3));
  resume(process, order);
  const auto [entry, is_new] = processes_.emplace(order.key, process);
  MONARCH_ASSERT_BECAUSE(is_new, "I4: one process per rank and generation");
  world_.note("fork", host_.id.value(), order.key.rank.mesh.value(), order.key.rank.rank.value(),
              order.key.generation.counter);
  world_.checker->forked(entry->second);
  tell_(event::Forked{order.key, process.pid});
  if (world_.mutant(Mutant::kStartOpensGate)) open_gate(order.key);
}

void Ranks::open_gate(const Incarnation& key) {
  RankProcess* process = find(key);
  if (process == nullptr || process->stage != Stage::kGated) return;
  const Faults& faults = world_.faults();
  process->stage = Stage::kExecuting;
  world_.checker->executes(*process);
  if (process->at_gate) {  // it was executed long ago, as another
    if (world_.mutant(Mutant::kStandbyIsReady)) tell_(event::Spoke{key, true, {}});
    return later(key, kSoon, [this](RankProcess& p) { executed(p, false); });
  }
  const bool slow = world_.random.permille(faults.slow_exec);
  const Duration wait = world_.random.skewed(kSoon, slow ? Duration::seconds(5) : Duration::milliseconds(20));
  const bool fails = world_.random.permille(faults.exec_fails);
  later(key, wait, [this, fails](RankProcess& p) { executed(p, fails); });
}

void Ranks::executed(RankProcess& process, bool fails) {
  const Incarnation key = process.key;
  if (process.frozen) {
    process.due = true;  // its next plan is made at the thaw
    return;
  }
  if (fails) {
    tell_(event::ExecFailed{key, ENOENT, "exec train"});
    return end(process, EndKind::kExited, 127);
  }
  process.stage = Stage::kRunning;
  if (!world_.checker->is_of_spec(key.rank)) return executed_beside(process);
  const bool bad = world_.random.permille(world_.faults().fails);
  EndKind kind = EndKind::kExited;
  std::int32_t value = 0;
  const bool sick = host_.sick && !world_.healed();
  if (sick && world_.random.permille(kSickRuns)) {
    kind = EndKind::kSignaled;
    value = SIGSEGV;
  } else if (bad) {
    kind = world_.random.one_in(2) ? EndKind::kExited : EndKind::kSignaled;
    value = static_cast<std::int32_t>(kind == EndKind::kExited ? world_.random.between(1, 125) : SIGSEGV);
  }
  plan_readiness(process);
  tell_(event::Executed{key});
  if (find(key) == nullptr) return;
  plan_commit(key);
  plan_words(key);
  plan_stuck(key);
  later(key, run_time(key.rank), [this, kind, value](RankProcess& p) { fail(p, kind, value); });
}

// It may end before, and then never is.
void Ranks::plan_readiness(RankProcess& process) {
  Random& random = world_.random;
  const ReadyKind kind = world_.scenario.spec.meshes[process.key.rank.mesh.value()].ready.kind;
  if (kind == ReadyKind::kExec) return world_.checker->says_ready(process.key);
  const bool never = random.permille(world_.faults().never_ready);
  const bool late = random.permille(world_.faults().late_ready);
  process.tardy = never || late;
  if (never) return;
  // Its word may overtake the kernel's.
  if (!late && random.one_in(8)) return becomes_ready(process);
  const Duration wait = late ? random.between(kLate, kLatest) : random.skewed(kSoon, kLongestStart);
  world_.scheduler.after(wait, [this, kernel = host_.kernel, key = process.key] {
    kernel->timer([this, key] {
      RankProcess* loaded = find(key);
      if (loaded != nullptr && loaded->alive() && !loaded->killed) becomes_ready(*loaded);
    });
  });
}

void Ranks::becomes_ready(RankProcess& process) {
  const bool held = process.frozen || process.standstill != Standstill::kNone;
  process.word_due = held;
  if (held) return;
  const RankId rank = process.key.rank;
  world_.note("ready", process.host.value(), rank.mesh.value(), rank.rank.value());
  world_.checker->says_ready(process.key);
  if (world_.scenario.spec.meshes[rank.mesh.value()].ready.kind == ReadyKind::kTcp) {
    process.accepts = true;  // the daemon finds out
  } else {
    process.said_ready = true;
    speak(process);
  }
}

bool Ranks::accepts(const Incarnation& key) const {
  const auto found = processes_.find(key);
  return found != processes_.end() && found->second.alive() && found->second.accepts;
}

// Some that end with a code have written why, and are long at ending: their peers may miss them first.
void Ranks::fail(RankProcess& process, EndKind kind, std::int32_t value) {
  const bool writes = kind == EndKind::kExited && value != 0 && process.pid % kErrorOfEach == 0 && process.acts();
  if (!writes) return end(process, kind, value);
  process.evidence_at = host_.now();
  later(process.key, Duration::milliseconds(process.pid % kLongestGoodbye),
        [this, kind, value](RankProcess& p) { end(p, kind, value); });
}

void Ranks::end(RankProcess& process, EndKind kind, std::int32_t value) {
  const bool held = process.frozen || process.standstill != Standstill::kNone || process.stuck;
  if (held && !process.killed && !process.term_due) {
    process.due = true;
    return;
  }
  process.stage = Stage::kDead;
  process.end.kind = kind;
  process.end.value = value;
  process.ended_at = world_.scheduler.now();
  world_.note("exit", process.host.value(), process.key.rank.mesh.value(), process.key.rank.rank.value(),
              static_cast<std::uint64_t>(value) + (kind == EndKind::kSignaled ? 1000U : 0U));
  RankEnd told;
  told.kind = kind;
  told.value = value;
  tell_(event::Exited{process.key, told, {}});
}

void Ranks::term(RankProcess& process) {
  switch (process.stage) {
    case Stage::kDead: return;
    case Stage::kGated:
    case Stage::kExecuting:
      return later(process.key, kSoon, [this](RankProcess& p) { end(p, EndKind::kSignaled, SIGTERM); });
    case Stage::kRunning: break;
  }
  // Who is stopped or held acts on it later; who is stuck dies of it, or does not even hear it.
  process.term_due = process.standstill != Standstill::kNone;
  if (process.term_due) return;
  if (process.stuck) {
    if (world_.random.one_in(2)) return;
    process.stuck = false;
    return later(process.key, kSoon, [this](RankProcess& p) { end(p, EndKind::kSignaled, SIGTERM); });
  }
  if (process.deaf) return;
  const bool handles = world_.random.one_in(2);
  const Duration wait = world_.random.skewed(kSoon, Duration::seconds(3));
  later(process.key, wait, [this, handles](RankProcess& p) {
    handles ? end(p, EndKind::kExited, 0) : end(p, EndKind::kSignaled, SIGTERM);
  });
}

void Ranks::signal(const Incarnation& key, int number, SignalTo to) {
  RankProcess* process = find(key);
  if (process == nullptr) return;
  // Every other program here is a shell that waits for a child.
  if (to == SignalTo::kAuto && process->pid % 2 == 0) tell_(event::GroupTold{key});
  if (number == SIGSTOP) return stand(key, Standstill::kStopped);
  if (number == SIGCONT) {
    if (process->standstill == Standstill::kStopped) go_on(key);
    return;
  }
  if (process->alive()) process->signalled = true;
  if (number == SIGKILL) return kill_leader(*process);
  term(*process);
}

void Ranks::freeze(const Incarnation& key) {
  RankProcess* process = find(key);
  if (process == nullptr) return;
  process->frozen = true;
}

void Ranks::thaw(const Incarnation& key) {
  RankProcess* process = find(key);
  if (process == nullptr) return;
  process->frozen = false;
  if (process->alive()) world_.checker->executes(*process);
  if (process->alive() && !process->killed && process->word_due) becomes_ready(*process);
  if (process->alive() && !process->killed && process->gate_due) comes_to_gate(*process);
  if (process->stage == Stage::kRunning && (process->stuck || process->standstill != Standstill::kNone)) return;
  if (!std::exchange(process->due, false)) return;
  if (process->stage == Stage::kExecuting) {
    later(key, kSoon, [this](RankProcess& p) { executed(p, false); });
  } else {
    later(key, kSoon, [this](RankProcess& p) { end(p, EndKind::kExited, 0); });
  }
}

void Ranks::kill_leader(RankProcess& process) {
  if (!process.alive() || process.killed) return;
  process.signalled = true;
  process.killed = true;
  // It dies when its wait ends.
  if (process.standstill == Standstill::kWaiting) {
    ++process.life;
    return;
  }
  const bool wedged = world_.random.permille(world_.faults().wedged);
  const Duration wait =
      wedged ? world_.random.between(Duration::milliseconds(500), Duration::seconds(20)) : Duration::microseconds(100);
  later(process.key, wait, [this](RankProcess& p) { end(p, EndKind::kSignaled, SIGKILL); });
}

// Its children go on until they are killed, too.
void Ranks::kill_rank(const Incarnation& key) {
  if (RankProcess* process = find(key)) kill_leader(*process);
}

void Ranks::kill(const Incarnation& key) {
  RankProcess* process = find(key);
  if (process == nullptr) return;
  process->children = 0;
  kill_leader(*process);
}

void Ranks::check(const Incarnation& key) {
  const RankProcess* process = find(key);
  const bool empty = process == nullptr || (!process->alive() && process->children == 0);
  if (empty || world_.mutant(Mutant::kTreeAlwaysEmpty)) return tell_(event::TreeEmpty{key});
  tell_(event::TreeBusy{key});
}

void Ranks::drop(const Incarnation& key) {
  const RankProcess* process = find(key);
  if (process == nullptr) return;
  world_.checker->forgotten(*process);
}

void Ranks::parent_died() {
  for (auto& [key, process] : processes_) kill_leader(process);
}

void Ranks::kill_everything() {
  for (auto& [key, process] : processes_) {
    process.children = 0;
    kill_leader(process);
  }
}

void Ranks::power_off() {
  for (auto& [key, process] : processes_) {
    process.stage = Stage::kDead;
    process.standstill = Standstill::kNone;
    process.children = 0;
  }
}

bool Ranks::anything_left() const {
  for (const auto& [key, process] : processes_) {
    if (process.alive() || process.children > 0) return true;
  }
  return false;
}

}  // namespace monarch::sim
