#pragma once

// What a drill, or a test, has done to a host of a job, and what came of it. It is asked for in the talk of check.h,
// whose `monarch-worker check` does it there, looks whether it took effect, and takes it back: when it is told to, when
// its talk or its time is over, and also when it is killed.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/time.h"
#include "transport/messages/message.h"

namespace monarch {

enum class StrikeWhat : std::uint8_t {
  kKill,            // SIGKILL; nothing is taken back
  kSegv,            // SIGSEGV, of a rank
  kAbort,           // SIGABRT, of a rank
  kStop,            // SIGSTOP, and SIGCONT later
  kBusy,            // processes that want all of a processor
  kCut,             // packets are dropped; needs nft and the right to use it
  kTerm,            // SIGTERM, of a rank, as a stranger's; nothing is taken back
  kNoFiles,         // it may have no descriptor above the number of its open ones
  kNoMemory,        // it may have hardly more memory than it has
  kSlow,            // all threads of a rank on one of its processors, beside one of ours that spins there
  kFlood,           // lines into a rank's standard output
  kReset,           // every TCP connection of a rank is reset; needs the right to trace it; nothing is taken back
  kMemoryPressure,  // a process takes memory until little is available
};
constexpr StrikeWhat monarch_enum_max(StrikeWhat) { return StrikeWhat::kMemoryPressure; }

enum class StrikeWhom : std::uint8_t {
  kRank,
  kDaemon,
  kKeeper,
  kWorker,  // keeper and daemon
  kHost,    // all of the job there
  kSupervisor,
};
constexpr StrikeWhom monarch_enum_max(StrikeWhom) { return StrikeWhom::kSupervisor; }

enum class StrikeWay : std::uint8_t { kBoth, kIn, kOut };  // as the host sees it
constexpr StrikeWay monarch_enum_max(StrikeWay) { return StrikeWay::kOut; }

struct StrikeOrder {
  StrikeWhat what = StrikeWhat::kKill;
  StrikeWhom whom = StrikeWhom::kHost;
  std::string job_uuid;
  std::string host;  // as the job calls it
  std::string mesh;  // kRank: its mesh
  std::uint32_t rank = 0;
  std::uint32_t processes = 0;  // kBusy
  // kCut: TCP with the other side's port among these, at that numeric address, or at any; so much of it.
  std::string address;
  std::vector<std::uint16_t> ports;
  StrikeWay way = StrikeWay::kBoth;
  std::uint32_t percent = 100;
  // kFlood: bytes a second; 0: kFloodBytes. kMemoryPressure: bytes that stay available, 5 % of the memory at least.
  std::uint64_t size = 0;
  // kSupervisor: its number, as the job's status says it, which is believed where its command line names the job's
  // directory.
  std::int32_t supervisor_pid = 0;
  std::string job_directory;
};
MONARCH_FIELDS(StrikeOrder, what, whom, job_uuid, host, mesh, rank, processes, address, ports, way, percent, size,
               supervisor_pid, job_directory)

// How the tables of nft begin that a cut makes; the number of the process that made one follows.
inline constexpr std::string_view kStrikeTables = "monarch_drill_";

inline constexpr std::uint64_t kFloodBytes = 1U << 20U;

struct StrikeSeen {
  std::string error;                 // why it took no effect, or could not be taken back; empty: neither
  std::vector<std::int32_t> struck;  // processes it took effect on, or that were started
  // By the host's clock: before the first blow, and once it was seen to be in effect.
  WallTime struck_at = {};
  WallTime seen_at = {};
  // Whether somebody whom it struck had ended before it was taken back; nothing: its kind cannot say that.
  std::optional<bool> felt = {};
};
MONARCH_FIELDS(StrikeSeen, error, struck, struck_at, seen_at, felt)

}  // namespace monarch
