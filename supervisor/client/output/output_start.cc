#include "supervisor/client/output/output_start.h"

#include <algorithm>
#include <string>

namespace monarch {

namespace {

constexpr std::uint64_t kBlock = 64U << 10U;

// All of [from, to), unless the disk fails.
std::string read_range(const LogFileReader& file, std::uint64_t from, std::uint64_t to) {
  std::string bytes;
  while (from + bytes.size() < to) {
    const std::string more = file.read(from + bytes.size(), static_cast<std::size_t>(to - from - bytes.size()));
    if (more.empty()) break;
    bytes += more;
  }
  return bytes;
}

}  // namespace

std::uint64_t start_of_line(const LogFileReader& file, std::uint64_t at) {
  const std::uint64_t from = std::max(file.first(), at - std::min(at, kBlock));
  const std::string before = read_range(file, from, at);
  const std::size_t newline = before.rfind('\n');
  if (newline != std::string::npos) return from + newline + 1;
  return from == 0 ? 0 : at;
}

TailStart start_of_tail(const LogFileReader& file, std::uint64_t lines) {
  if (lines == 0 || file.end() == file.first()) return {.offset = file.end(), .lines = 0};
  std::uint64_t found = 1;  // the line that the last byte belongs to
  for (std::uint64_t to = file.end() - 1; to > file.first();) {
    const std::uint64_t from = std::max(file.first(), to - std::min(to, kBlock));
    const std::string block = read_range(file, from, to);
    if (block.size() < to - from) break;  // it was rotated away: what is left is all
    for (std::size_t i = block.size(); i > 0; --i) {
      if (block[i - 1] != '\n') continue;
      if (found == lines) return {.offset = from + i, .lines = found};
      ++found;
    }
    to = from;
  }
  return {.offset = file.first(), .lines = found};
}

std::uint64_t start_since(const LogFileReader& file, const LogTimesReader& times, WallTime since) {
  if (times.empty()) return file.first();  // nobody knows: rather too much than too little
  const auto offset = times.first_after(since);
  if (!offset || *offset >= file.end()) return file.end();
  return *offset <= file.first() ? file.first() : start_of_line(file, *offset);
}

}  // namespace monarch
