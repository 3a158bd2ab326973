// The frames between a viewer and its other half on another machine: any bytes, in pieces, are refused or become frames
// that are written back as the same bytes; and the payloads of those that have an inside are refused or read back as
// what they were read as.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/away/viewer_frames.h"
#include "transport/base/assert.h"

namespace {

using namespace monarch;

void look_inside(const ViewerFrame& frame) {
  if (const auto order = decode_order(frame.payload); order.ok())
    MONARCH_ASSERT(*decode_order(encode_order(*order)) == *order);
  if (const auto welcome = decode_welcome(frame.payload); welcome.ok()) {
    MONARCH_ASSERT(*decode_welcome(encode_welcome(*welcome)) == *welcome);
  }
  if (const auto file = decode_file(frame.payload); file.ok()) {
    MONARCH_ASSERT(file->name.find("..") != 0 && file->name.find("/.") == std::string::npos);
    MONARCH_ASSERT(*decode_file(encode_file(*file)) == *file);
  }
  if (const auto end = decode_end(frame.payload); end.ok()) MONARCH_ASSERT(*decode_end(encode_end(*end)) == *end);
  for (const std::size_t count : {1U, 2U}) {
    const auto numbers = decode_numbers(frame.payload, count);
    if (numbers.ok()) MONARCH_ASSERT(numbers->size() == count);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ViewerFrameReader reader;
  std::string written;
  // The first byte says in which steps they come.
  const std::size_t step = size == 0 ? 1 : 1U + data[0] % 64U;
  for (std::size_t at = 0; at < size; at += step) {
    reader.feed(bytes.substr(at, step));
    for (;;) {
      const auto frame = reader.next();
      if (!frame.ok()) return 0;
      if (!*frame) break;
      look_inside(**frame);
      written += encode_frame((*frame)->kind, (*frame)->payload);
    }
  }
  MONARCH_ASSERT(bytes.substr(0, written.size()) == written);
  return 0;
}
