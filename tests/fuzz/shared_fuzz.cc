// What the nodes of one step of Slurm say, to its end. However their words are cut the same becomes of each, each has
// one last word, and nothing is told to a node that did not ask for it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/launch/slurm/shared_conversation.h"
#include "tests/supervisor/launch/talk/remote_orders.h"
#include "transport/base/assert.h"

namespace {

using namespace monarch;

constexpr std::size_t kNodes = 3;
constexpr std::size_t kPieces = 64;  // of a cut input; what is larger than that comes in larger ones

struct Heard {
  std::string said;
  std::array<std::size_t, kNodes> last = {};   // of the variants' kinds
  std::array<std::size_t, kNodes> words = {};  // how many last ones
};

void take(SharedConversation& conversation, Heard& heard) {
  for (const SharedNews& news : conversation.take_news()) {
    MONARCH_ASSERT(news.node < kNodes);
    if (std::holds_alternative<SharedPlaced>(news.word)) continue;
    const auto* answer = std::get_if<SharedAnswer>(&news.word);
    heard.last[news.node] = answer != nullptr ? 1 + answer->answer.index() : 100;
    ++heard.words[news.node];
  }
  for (const SharedTurn& turn : conversation.take_turns()) heard.said += turn.bytes + (turn.file ? "FILE" : "");
}

Heard hear(std::string_view words, std::size_t piece) {
  std::vector<RemoteOrder> orders(kNodes, test_order());
  for (std::size_t i = 0; i < kNodes; ++i) {
    orders[i].mark.host_name = "h" + std::to_string(i + 1);
  }
  SharedConversation conversation(std::move(orders));
  Heard heard;
  while (!words.empty()) {
    conversation.on_output(words.substr(0, piece));
    words.remove_prefix(std::min(piece, words.size()));
    take(conversation, heard);
  }
  conversation.on_silence();
  take(conversation, heard);
  conversation.on_end("srun: error");
  take(conversation, heard);
  MONARCH_ASSERT(conversation.over());
  for (const std::size_t each : heard.words) MONARCH_ASSERT(each == 1);
  return heard;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view words(reinterpret_cast<const char*>(data), size);
  const Heard whole = hear(words, std::max<std::size_t>(size, 1));
  const Heard cut = hear(words, size / kPieces + 1);
  MONARCH_ASSERT(whole.last == cut.last);
  MONARCH_ASSERT(whole.said == cut.said);
  return 0;
}
