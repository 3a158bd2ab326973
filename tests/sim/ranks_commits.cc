// Checkpoints that ranks write: each goes on from what its environment says, writes a step after the other, and asks
// whether it counts.

#include <charconv>

#include "tests/sim/checker.h"
#include "tests/sim/ranks.h"
#include "tests/sim/world.h"
#include "transport/base/text.h"

namespace monarch::sim {

void Ranks::resume(RankProcess& process, const keeper_action::ForkRank& order) {
  for (const auto* env : {&order.own.env, &order.gang.env}) {
    const auto found = env->find("MONARCH_COMMITTED_STEP");
    if (found == env->end()) continue;
    (void)std::from_chars(found->second.data(), found->second.data() + found->second.size(), process.step);
  }
}

void Ranks::plan_commit(const Incarnation& key) {
  const Duration gap = world_.scenario.commits;
  if (gap == Duration::forever()) return;
  const Duration wait = world_.random.between(gap / 4, gap * 2);
  // Of a kernel that stood still: who wakes writes before anybody has told it that its time is over.
  world_.scheduler.after(wait, [this, kernel = host_.kernel, key] {
    kernel->timer([this, key] {
      RankProcess* process = find(key);
      if (process == nullptr || !process->alive() || process->killed) return;
      if (process->acts()) commit(*process);
      plan_commit(key);
    });
  });
}

void Ranks::commit(RankProcess& process) {
  if (process.asked) return;  // it waits for the answer
  const bool again = process.question > 0 && world_.random.one_in(8);
  CommitRequest request{.number = ++process.question, .step = process.step + (again ? 0 : 1)};
  request.what = text("step-", request.step, "-of-", process.key.generation.counter);
  request.whole = world_.random.permille(world_.scenario.whole_commits);
  process.asked = request.step;
  world_.note("commit", process.key.rank.mesh.value(), process.key.rank.rank.value(), request.step,
              process.key.generation.counter);
  world_.checker->wrote(process.key, request);
  tell_(keeper_event::Committing{process.key, request});
}

// One that does not count is tried again: others of its gang may have to come first.
void Ranks::commit_answered(const keeper_action::AnswerCommit& ordered) {
  RankProcess* process = find(ordered.key);
  if (process == nullptr || !process->asked || ordered.answer.number != process->question) return;
  if (ordered.answer.committed) process->step = *process->asked;
  process->asked.reset();
}

}  // namespace monarch::sim
