#include <algorithm>
#include <utility>

#include "supervisor/client/stacks/stack_fold.h"
#include "supervisor/loop/supervisor_loop.h"
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
  const std::size_t most = std::max(core_.hosts().size() * limits::kStacksAtOnce, kFewestWaiting);
  auto on_stacks = [this](StacksCame came) { stacks_->on_stacks(std::move(came)); };
  MONARCH_ASSIGN(stacks_came_, WatchedInbox<StacksCame>::create(*loop_, most, std::move(on_stacks)));
  stacks_ = std::make_unique<StackDumps>(
      *loop_, core_, [this](HostId host, const TakeStacks& order) { return links_->send(host, order); });
  return {};
}

}  // namespace monarch
