// What a debugger of a host writes: whatever it is, reading and folding it ends, and what is made of it for an event is printable and no
// longer than asked for. The first byte says which debugger, the rest is its output.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "supervisor/client/stack_fold.h"
#include "transport/base/assert.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace monarch;
  constexpr std::size_t kBytes = 200;
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
  const std::string words = stack_words(rank, kBytes);
  MONARCH_ASSERT(words.size() <= kBytes);
  for (const char c : words) MONARCH_ASSERT(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  return 0;
}
