// What a doctor reads of a host, and a check of a doctor: pieces of a stream, however they come, and the messages in
// them. What decodes must be the same after another round.
//
// Thread: main, alone.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/assert.h"
#include "transport/messages/check.h"
#include "transport/wire/check_stream.h"
#include "transport/wire/codec.h"

namespace monarch {
namespace {

template <class Message>
void check_payload(std::string_view payload) {
  const auto first = decode_payload<Message>(payload, kCheckBytes);
  if (!first.ok()) return;
  const std::string bytes = encode_payload(*first);
  const auto second = decode_payload<Message>(bytes, kCheckBytes);
  MONARCH_ASSERT(!second.ok() || encode_payload(*second) == bytes);
}

// All pieces up to the first that is none.
std::vector<std::string> pieces_of(std::string_view input, std::size_t at_a_time) {
  std::vector<std::string> pieces;
  std::string come;
  while (!input.empty()) {
    come += input.substr(0, at_a_time);
    input.remove_prefix(std::min(at_a_time, input.size()));
    for (;;) {
      auto piece = take_piece(come);
      if (!piece.ok()) return pieces;
      if (!*piece) break;
      pieces.push_back(std::move(**piece));
    }
  }
  return pieces;
}

}  // namespace
}  // namespace monarch

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto pieces = monarch::pieces_of(input, size);
  MONARCH_ASSERT(monarch::pieces_of(input, 1) == pieces);
  for (const std::string& piece : pieces) {
    monarch::check_payload<monarch::CheckRequest>(piece);
    monarch::check_payload<monarch::CheckAnswer>(piece);
  }
  return 0;
}
