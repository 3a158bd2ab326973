#pragma once

// A whole journal as one string, for fuzzing: a byte that says whether a snapshot comes first, then each file's length
// in four bytes, little endian, and its bytes.

#include <algorithm>
#include <string>
#include <string_view>

#include "supervisor/journal/journal_contents.h"
#include "transport/base/little_endian.h"

namespace monarch {

inline JournalImage image_from(std::string_view input) {
  JournalImage image;
  if (input.empty()) return image;
  bool snapshot = input.front() != 0;
  input.remove_prefix(1);
  while (input.size() >= 4) {
    const std::size_t length = little_endian::get<std::uint32_t>(input, 0);
    input.remove_prefix(4);
    const std::string bytes(input.substr(0, length));  // the last one may be short
    input.remove_prefix(bytes.size());
    if (snapshot) {
      image.snapshot = bytes;
      snapshot = false;
    } else {
      image.segments.push_back({segment_name(image.segments.size() + 1), bytes});
    }
  }
  return image;
}

inline std::string to_input(const JournalImage& image) {
  std::string out(1, image.snapshot ? '\1' : '\0');
  const auto add = [&](const std::string& bytes) {
    little_endian::put(out, static_cast<std::uint32_t>(bytes.size()));
    out.append(bytes);
  };
  if (image.snapshot) add(*image.snapshot);
  for (const auto& segment : image.segments) add(segment.bytes);
  return out;
}

}  // namespace monarch
