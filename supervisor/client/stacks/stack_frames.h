#pragma once

// What gdb, eu-stack and py-spy write of the stacks of a process, read into values: names and places stay, addresses,
// arguments and versions of symbols go, so that stacks of different processes can be compared. Bytes of any kind are
// read: lines that are none of theirs are passed over.
//
// Thread: pure functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/messages/stacks.h"

namespace monarch {

struct StackFrame {
  std::string function;    // "??" where nobody knows
  std::string place;       // a source file, else a library; may be empty
  std::uint32_t line = 0;  // in a source file; 0: not known
  bool operator==(const StackFrame&) const = default;
};

struct ThreadStack {
  std::int64_t id = 0;
  std::string name;                // may be empty
  bool main = false;               // of its process
  std::vector<StackFrame> frames;  // the innermost first
  bool more = false;               // outer ones were left out
};

// In the order of the output, but the main thread first. `pid` is the process's.
std::vector<ThreadStack> read_stacks(StackTool tool, std::string_view output, std::int32_t pid);

}  // namespace monarch
