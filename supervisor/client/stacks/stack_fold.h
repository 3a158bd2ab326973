#pragma once

// Which ranks share their stacks, and which differ: ranks are alike where their processes stand in the same functions
// of the same files, whatever the lines, the numbers of threads and the addresses are. Also the words for stacks that
// were not taken.
//
// Thread: pure functions.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/client/stacks/stack_frames.h"
#include "transport/messages/stacks.h"

namespace monarch {

struct FoldedFrame {
  std::string function;
  std::string place;             // without its folder
  std::uint32_t first_line = 0;  // of all that are folded here; 0: not known
  std::uint32_t last_line = 0;
};

struct FoldedThread {
  std::string name;  // of the first
  bool main = false;
  std::size_t fewest = 1;  // that stand alike, in a process of these ranks
  std::size_t most = 1;
  std::vector<FoldedFrame> frames;
  bool more = false;
};

struct FoldedProcess {
  std::string name;
  StackTool tool = StackTool::kNone;
  std::string state;  // of the first
  StacksEnd end = StacksEnd::kTaken;
  std::string why_not;  // it is not there, or not whole
  bool cut = false;
  std::vector<FoldedThread> threads;
};

struct StackGroup {
  std::vector<std::size_t> ranks;  // indices of what was folded
  std::vector<FoldedProcess> processes;
  std::uint32_t untold_processes = 0;  // the most of any rank
};

// The largest first. A rank of which no process could be looked at is in none.
std::vector<StackGroup> fold_stacks(const std::vector<RankStacks>& all, bool all_threads);

bool any_taken(const Stacks& stacks);
std::string_view name_of(StackTool tool);
// Of a rank of which no process could be looked at: one sentence without its end.
std::string why_not(const RankStacks& stacks);

// Of one rank, for an event: its main threads, or why not. Printable, at most `bytes` long.
std::string stack_words(const RankStacks& stacks, std::size_t bytes);

}  // namespace monarch
