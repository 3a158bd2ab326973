#pragma once

// The messages by which the stacks of ranks are asked for and told: viewer → supervisor → daemon → keeper, which lets a
// debugger of its host look, and the same way back (from the host over the bulk port, so that no beat waits behind it).
// Best effort: an answer that gets lost is one that did not come in time. What the debugger wrote travels as it wrote
// it; it is read by supervisor/client/stacks/stack_frames.h.
//
// Thread: values.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/message.h"

namespace monarch {

namespace limits {
inline constexpr std::size_t kStacksBytes =
    256U << 10U;  // of what a debugger says of one rank; the rest is read and dropped
inline constexpr std::size_t kStacksPayloadBytes =
    kStacksBytes + (64U << 10U);                               // of an answer; a larger one is malformed
inline constexpr std::uint32_t kStackProcesses = 8;            // of one rank; more are counted
inline constexpr std::uint32_t kStacksAtOnce = 4;              // debuggers on one host; further ranks wait
inline constexpr Duration kStackLimit = Duration::seconds(2);  // for those of one rank, where nobody says otherwise
inline constexpr Duration kLongestStackLimit = Duration::seconds(60);  // a longer one is refused
}  // namespace limits

enum class StackTool : std::uint8_t { kNone, kPySpy, kEuStack, kGdb };
constexpr StackTool monarch_enum_max(StackTool) { return StackTool::kGdb; }

// How an attempt ended. All but kTaken have words in `detail` where more is known than this.
enum class StacksEnd : std::uint8_t {
  kTaken,
  kNoTool,       // no debugger is in the PATH of the host's worker
  kRefused,      // the kernel does not let it look
  kEnded,        // the process is not there, or no longer
  kNotExecuted,  // it waits at its gate, or for the mesh's setup
  kTimedOut,     // it did not come to its end within the limit, and was killed
  kBusy,         // so many others are asked for that its turn did not come
  kFailed,       // the debugger ended without having shown a stack
  kUnreachable,  // nobody on its host answered
};
constexpr StacksEnd monarch_enum_max(StacksEnd) { return StacksEnd::kUnreachable; }

// Supervisor → daemon → keeper. A worker takes it only for what it runs at exactly this generation.
struct TakeStacks {
  Incarnation process;
  std::uint64_t number = 0;  // of the question; the answer repeats it
  Duration limit;            // for the debugger, over all processes of the rank
  Duration patience;         // who asks waits no longer than this, counted from when the keeper hears of it
  bool all_threads = false;  // else the main thread of each process
  bool native = false;       // of a Python program the frames of its libraries, too
};
MONARCH_MESSAGE(TakeStacks, 26, process, number, limit, patience, all_threads, native)

struct ProcessStacks {
  std::int32_t pid = 0;
  std::string name;   // of its program's file
  std::string state;  // one letter, as in proc_pid_stat(5), when it was looked at; with what it waits in, if D
  StackTool tool = StackTool::kNone;
  StacksEnd end = StacksEnd::kFailed;
  std::string detail;
  std::string output;  // the tool's, cut at limits::kStacksBytes over all processes of a rank
  bool cut = false;
};
MONARCH_FIELDS(ProcessStacks, pid, name, state, tool, end, detail, output, cut)

struct Stacks {
  std::uint64_t number = 0;
  StacksEnd end = StacksEnd::kTaken;  // kTaken: see the processes
  std::string detail;
  std::vector<ProcessStacks> processes;  // the rank's own first
  std::uint32_t untold_processes = 0;    // beyond limits::kStackProcesses, or behind one that took all the time
};
MONARCH_MESSAGE(Stacks, 36, number, end, detail, processes, untold_processes)

// Viewer → supervisor. Each rank is answered once, in whatever order; all of them within the supervisor's own deadline.
struct StacksRequest {
  std::vector<RankId> ranks;  // at least one
  Duration limit;
  bool all_threads = false;
  bool native = false;
};
MONARCH_MESSAGE(StacksRequest, 90, ranks, limit, all_threads, native)

// Supervisor → viewer.
struct RankStacks {
  RankId rank;
  std::uint64_t generation = 0;  // the counter that users see
  std::string host;
  Stacks stacks;
};
MONARCH_MESSAGE(RankStacks, 106, rank, generation, host, stacks)

}  // namespace monarch
