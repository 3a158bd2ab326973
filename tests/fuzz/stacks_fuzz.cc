// What a debugger of a host writes: whatever it is, reading and folding it ends, and what is made of it for an event is
// printable and no longer than asked for. The first byte says which debugger, the rest is its output.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "supervisor/client/stacks/stack_fold.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace {

constexpr std::size_t kBytes = 200;

// What goes into an event: lines of text that a terminal shows as they are.
void check_words(const monarch::RankStacks& rank) {
  const std::string words = monarch::stack_words(rank, kBytes);
  MONARCH_ASSERT(words.size() <= kBytes);
  for (std::string_view left = words; !left.empty();) {
    const std::string_view line = left.substr(0, left.find('\n'));
    MONARCH_ASSERT(monarch::printable(line) == line);
    left.remove_prefix(std::min(line.size() + 1, left.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace monarch;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) return 0;
  const auto tool = static_cast<StackTool>(data[0] % (static_cast<unsigned>(monarch_enum_max(StackTool{})) + 1U));
  const std::string_view output = input.substr(1);
  for (const ThreadStack& thread : read_stacks(tool, output, 1)) MONARCH_ASSERT(!thread.frames.empty());
  RankStacks rank;
  rank.stacks.processes.push_back(
      {.pid = 1, .name = "p", .tool = tool, .end = StacksEnd::kTaken, .output = std::string(output)});
  const auto groups = fold_stacks({rank, rank}, true);
  MONARCH_ASSERT(groups.size() == 1 && groups.front().ranks.size() == 2);
  check_words(rank);
  // The same bytes as the reason why there is nothing, of one process and of all.
  rank.stacks.processes.push_back(
      {.pid = 2, .name = std::string(output), .end = StacksEnd::kFailed, .detail = std::string(output)});
  check_words(rank);
  rank.stacks.processes.erase(rank.stacks.processes.begin());
  check_words(rank);
  rank.stacks = {.end = StacksEnd::kFailed, .detail = std::string(output)};
  check_words(rank);
  return 0;
}
