#pragma once

// What the streams of a viewer lead to in the end, where that is another machine: `monarch over-ssh` starts the viewer
// with pipes, and tells it in MONARCH_TERMINAL what they are at the other end, so that colours, widths and progress are
// as they would be there.
//
//   MONARCH_TERMINAL="terminal:120 other 3"   stdout, stderr, and a descriptor that holds the widths as they are now
//
// Thread: values; terminal_widths() reads a descriptor.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace monarch {

inline constexpr char kTerminalVariable[] = "MONARCH_TERMINAL";

enum class StreamKind : std::uint8_t { kOther, kFile, kTerminal };

struct StreamFacts {
  StreamKind kind = StreamKind::kOther;
  std::uint32_t columns = 0;  // of a terminal; 0: it does not say
  bool operator==(const StreamFacts&) const = default;
};

struct TerminalFacts {
  StreamFacts out;
  StreamFacts err;
  int widths = -1;  // the descriptor; -1: none
  bool operator==(const TerminalFacts&) const = default;

  // Of descriptors 1 and 2.
  static TerminalFacts of_this_process();
};

std::string to_text(const TerminalFacts& facts);
// Nothing: it is none.
std::optional<TerminalFacts> parse_terminal_facts(std::string_view text);

struct TerminalWidths {
  std::uint32_t out = 0;
  std::uint32_t err = 0;
  bool operator==(const TerminalWidths&) const = default;
};
// Nothing: the descriptor holds none.
std::optional<TerminalWidths> read_terminal_widths(int fd);
// Into the same descriptor, for whoever reads it.
void write_terminal_widths(int fd, const TerminalWidths& widths);

}  // namespace monarch
