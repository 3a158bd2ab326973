// What a host says to a launch over SSH, to its end: the first byte picks what it is asked (0 to 4) and whether a
// worker's whole answer follows (bit 7). However its words are cut, the answer is the same, nothing is sent that it may
// not ask for, and its words stay short.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "supervisor/launch/talk/remote_conversation.h"
#include "tests/supervisor/launch/talk/remote_orders.h"
#include "transport/base/assert.h"

namespace {

using namespace monarch;

constexpr std::uint8_t kPurposes = 5;
constexpr std::uint8_t kAnswered = 0x80;
constexpr std::size_t kPieces = 64;  // of a cut input; what is larger than that comes in larger ones

struct Heard {
  std::size_t files = 0;
  std::size_t blobs = 0;
  std::size_t answer = 0;  // of the variant's kinds
  LaunchFailureKind failure = LaunchFailureKind::kOther;
};

void take(RemoteConversation& conversation, Heard& heard, std::size_t blobs) {
  const RemoteTurn turn = conversation.take_turn();
  heard.files += turn.file ? 1 : 0;
  heard.blobs += turn.blobs.size();
  for (const std::size_t blob : turn.blobs) MONARCH_ASSERT(blob < blobs);
}

Heard hear(std::uint8_t what, std::string_view words, std::size_t piece) {
  RemoteOrder order = test_order(static_cast<RemotePurpose>((what & ~kAnswered) % kPurposes));
  if (order.purpose == RemotePurpose::kWorkspace) order = test_workspace_order();
  if (order.purpose == RemotePurpose::kProgram) order.word = "remote";
  const std::size_t blobs = order.blobs;
  RemoteConversation conversation(std::move(order));
  Heard heard;
  for (; !words.empty() && !conversation.answer() && !conversation.talking();
       words.remove_prefix(std::min(piece, words.size()))) {
    conversation.on_output(words.substr(0, piece));
    take(conversation, heard, blobs);
  }
  (void)conversation.timed_out();
  conversation.on_words("said beside it");
  conversation.on_end(1);
  take(conversation, heard, blobs);
  MONARCH_ASSERT(conversation.answer().has_value());
  MONARCH_ASSERT(conversation.words().size() <= RemoteConversation::kWordsBytes);
  MONARCH_ASSERT(heard.files <= 1 && heard.blobs <= 2 * blobs);
  heard.answer = conversation.answer()->index();
  if (const LaunchFailure* failure = failure_of(conversation)) heard.failure = failure->kind;
  return heard;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string words(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & kAnswered) != 0) words += test_reply();
  const Heard whole = hear(data[0], words, words.size() + 1);
  const Heard cut = hear(data[0], words, std::max<std::size_t>(1, words.size() / kPieces));
  MONARCH_ASSERT(whole.answer == cut.answer && whole.failure == cut.failure);
  return 0;
}
