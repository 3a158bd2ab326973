#pragma once

// plan_strike(): whom of a job's processes on a host a strike hits, with which signal, in which order. Keepers come
// first, then daemons: they must not see what happens to the others. And what else a strike decides by.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/messages/strike.h"

namespace monarch {

enum class StrikeRole : std::uint8_t { kKeeper, kDaemon, kRank, kSupervisor, kOther };

// A process of the job on that host.
struct StrikeCandidate {
  std::int32_t pid = 0;
  StrikeRole role = StrikeRole::kOther;
  std::string mesh = {};  // kRank
  std::uint32_t rank = 0;
  std::string generation = {};
  bool leads_session = false;   // as whom a keeper starts
  unsigned long long born = 0;  // ticks since boot
};

// Of all that keepers have as children for one generation of a rank, the one that they started stays it: others are
// what that started, and left to them by ending.
void tell_ranks_apart(std::vector<StrikeCandidate>& there);

struct Blow {
  std::int32_t pid = 0;
  int signal = 0;  // 0: none
};

// kInvalid: it makes no sense. kNotFound: nobody of that kind is there.
Result<std::vector<Blow>> plan_strike(const StrikeOrder& order, const std::vector<StrikeCandidate>& there);

// Why the kernel refuses to have a process traced, where /proc/sys/kernel/yama/ptrace_scope is so.
std::string tracing_refused(std::optional<std::uint64_t> ptrace_scope);

// The bytes of this memory that are to stay available. kInvalid: a host needs more.
Result<std::uint64_t> memory_to_leave(std::uint64_t size, std::uint64_t total);

// The use of a processor by the threads of a rank. It is slow where it got little of it and waited for more.
struct CpuUse {
  Duration ran;
  Duration waited;  // to run
  Duration over;    // of the wall
};
bool is_slow(const CpuUse& use);

// The packets that `nft list table` says its rules counted.
std::uint64_t packets_counted(std::string_view listing);

// The script for `nft -f -` that drops what kCut is to drop, in a table of its own. kInvalid: it makes no sense.
Result<std::string> cut_script(const StrikeOrder& order, const std::string& table);

}  // namespace monarch
