// What ranks say of themselves while they get on, and how they cease to: stopped by a signal, held by a debugger,
// frozen with their cgroup, in an uninterruptible wait, or stuck in a call that never returns.

#include <csignal>
#include <utility>

#include "tests/sim/checker.h"
#include "tests/sim/ranks.h"
#include "tests/sim/world.h"

namespace monarch::sim {

namespace {

using Stage = RankProcess::Stage;

constexpr Duration kKeeperLook = Duration::seconds(1);  // of the keeper, at what the kernel does not announce
constexpr Duration kLongWait = Duration::seconds(10);   // before which an uninterruptible one is not called so
constexpr Duration kAtOnce = Duration::milliseconds(1);
constexpr Duration kLongestStuckAfter = Duration::seconds(40);

}  // namespace

void Ranks::speak(const RankProcess& process) {
  tell_(keeper_event::Spoke{process.key, process.said_ready, process.progress});
}

// As RankVoice does: the first step of this start, and the first beyond what its gang had reached.
void Ranks::mark(RankProcess& process) {
  RankProgress& progress = process.progress;
  const StepMark here{*progress.step, progress.at};
  if (!progress.first) progress.first = here;
  if (!progress.past && process.furthest && here.step > *process.furthest) progress.past = here;
}

bool Ranks::is_poisoned(const RankProcess& process) const {
  const std::optional<Poison>& poison = world_.scenario.poison;
  return poison && !world_.healed() && process.key.rank == poison->rank && process.progress.step == poison->step;
}

void Ranks::plan_words(const Incarnation& key) {
  const Duration gap = world_.scenario.words;
  if (gap == Duration::forever()) return;
  world_.scheduler.after(world_.random.between(gap / 2, gap + gap / 2), [this, kernel = host_.kernel, key] {
    kernel->timer([this, key] {
      RankProcess* process = find(key);
      if (process == nullptr || !process->alive() || process->killed) return;
      if (process->acts()) {
        process->progress.step = process->progress.step.value_or(0) + 1;
        process->progress.at = host_.now();
        mark(*process);
        process->silent_before = world_.scheduler.now() - process->last_word_at;
        process->last_word_at = world_.scheduler.now();
        speak(*process);
        if (is_poisoned(*process))
          return later(key, kSoon, [this](RankProcess& p) { end(p, EndKind::kSignaled, SIGSEGV); });
      }
      plan_words(key);
    });
  });
}

void Ranks::plan_stuck(const Incarnation& key) {
  if (!world_.random.permille(world_.faults().stuck)) return;
  world_.scheduler.after(world_.random.skewed(kAtOnce, kLongestStuckAfter), [this, kernel = host_.kernel, key] {
    kernel->timer([this, key] {
      RankProcess* process = find(key);
      if (process == nullptr || process->stage != Stage::kRunning || world_.healed()) return;
      world_.note("stuck", process->host.value(), key.rank.mesh.value(), key.rank.rank.value());
      process->stuck = true;
    });
  });
}

void Ranks::stand(const Incarnation& key, Standstill how) {
  RankProcess* process = find(key);
  if (process == nullptr || process->stage != Stage::kRunning || process->killed) return;
  if (process->standstill != Standstill::kNone || world_.healed()) return;
  world_.note("stands", process->host.value(), key.rank.mesh.value(), key.rank.rank.value(),
              static_cast<std::uint64_t>(how));
  process->standstill = how;
  process->stands_since = world_.scheduler.now();
  tell_standing(key, how == Standstill::kStopped ? kAtOnce : how == Standstill::kWaiting ? kLongWait : kKeeperLook);
}

// Again and again: a keeper that thaws a rank does not know who else holds it.
void Ranks::tell_standing(const Incarnation& key, Duration wait) {
  const Instant since = find(key)->stands_since;
  world_.scheduler.after(wait, [this, kernel = host_.kernel, key, since] {
    kernel->timer([this, key, since] {
      const RankProcess* process = find(key);
      const bool still = process != nullptr && process->alive() && process->standstill != Standstill::kNone;
      if (!still || process->stands_since != since) return;
      tell_(keeper_event::Stood{key, process->standstill});
      tell_standing(key, kKeeperLook);
    });
  });
}

bool Ranks::strike(const Incarnation& key, int number) {
  RankProcess* process = find(key);
  if (process == nullptr || !process->acts() || process->signalled) return false;
  later(key, kSoon, [this, number](RankProcess& p) { end(p, EndKind::kSignaled, number); });
  return true;
}

void Ranks::go_on(const Incarnation& key) {
  RankProcess* process = find(key);
  if (process == nullptr || process->standstill == Standstill::kNone) return;
  const Standstill before = std::exchange(process->standstill, Standstill::kNone);
  process->stood_until = world_.scheduler.now();
  if (!process->alive()) return;
  if (process->killed) {
    return later(key, kSoon, [this](RankProcess& p) { end(p, EndKind::kSignaled, SIGKILL); });
  }
  world_.scheduler.after(before == Standstill::kStopped ? kAtOnce : kKeeperLook, [this, kernel = host_.kernel, key] {
    kernel->timer([this, key] {
      const RankProcess* now = find(key);
      if (now == nullptr || !now->alive() || now->standstill != Standstill::kNone) return;
      tell_(keeper_event::Stood{key, Standstill::kNone});
    });
  });
  if (std::exchange(process->term_due, false)) return term(*process);
  if (process->gate_due) comes_to_gate(*process);
  end_if_due(*process);
}

void Ranks::end_if_due(RankProcess& process) {
  if (process.frozen || process.stage != Stage::kRunning || !std::exchange(process.due, false)) return;
  later(process.key, kSoon, [this](RankProcess& p) { end(p, EndKind::kExited, 0); });
}

// All is well again: whoever was in the way has gone.
void Ranks::set_going() {
  std::vector<Incarnation> keys;
  for (const auto& [key, process] : processes_) keys.push_back(key);
  for (const Incarnation& key : keys) {
    go_on(key);
    RankProcess* process = find(key);
    if (process != nullptr && std::exchange(process->stuck, false)) end_if_due(*process);
  }
}

}  // namespace monarch::sim
