#include <algorithm>
#include <utility>

#include "supervisor/client/stack_fold.h"
#include "supervisor/supervisor_loop.h"
#include "transport/base/text.h"
#include "transport/messages/stacks.h"
#include "transport/wire/codec.h"

namespace monarch {

namespace {

// Answers that wait: of each host as many as it looks at at once, and never fewer than this. One more counts as never said, and who asked has
// its deadline.
constexpr std::size_t kFewestWaiting = 256;

// For an event, which is journalled: the beginning of a stack says where a rank stands.
constexpr std::size_t kStackWordsBytes = 8U << 10U;

}  // namespace

void Supervisor::dump_stacks(RankId rank, const std::function<void(std::string)>& then) {
  stacks_->ask({.rank = rank}, [then](const RankStacks& told) { then(stack_words(told, kStackWordsBytes)); });
}

Status Supervisor::open_stacks() {
  const std::size_t at_once = core_.hosts().size() * limits::kStacksAtOnce;
  MONARCH_ASSIGN(stacks_came_, Inbox<StacksCame>::create(std::max(at_once, kFewestWaiting)));
  const auto watched = loop_->watch(stacks_came_->descriptor(), Interest::kRead, [this](Readiness) {
    for (StacksCame& came : stacks_came_->take_all()) stacks_->on_stacks(std::move(came));
  });
  if (!watched.ok()) return watched.error();
  stacks_ = std::make_unique<StackDumps>(
      *loop_, core_, [this](HostId host, const TakeStacks& order) { return links_->send(host, order); });
  return {};
}

}  // namespace monarch
