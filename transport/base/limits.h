#pragma once

// Every limit that crosses a module, by name, with the answer when it is reached. A limit of one file stays in that
// file.

#include <cstddef>
#include <cstdint>

#include "transport/base/time.h"

namespace monarch::limits {

// Spec.
inline constexpr std::size_t kSpecBytes = 1U << 20U;    // a larger spec is refused before it is parsed
inline constexpr std::size_t kSpecDepth = 32;           // deeper nesting is refused
inline constexpr std::uint32_t kRanksPerJob = 65'536;   // more are refused by the validator
inline constexpr std::uint32_t kHostsPerJob = 4'096;    // one ROUTER link each
inline constexpr std::size_t kHostlistNames = 100'000;  // a hostlist that expands to more is refused

// Control plane.
inline constexpr std::size_t kControlPayloadBytes = 1U << 20U;     // a larger control message is a protocol error
inline constexpr std::size_t kBulkPayloadBytes = 1U << 20U;        // one piece of output
inline constexpr std::size_t kSeqpacketInlineBytes = 64U << 10U;   // a larger payload travels as a memfd
inline constexpr std::size_t kSeqpacketPayloadBytes = 16U << 20U;  // a larger one is refused by either side
inline constexpr std::size_t kDescriptorsPerMessage = 16;
// What waits between a keeper and whom it guards: some three frames a rank or host. Who has more unread is killed as
// one that does not read, and its successor is told all of it anew: none of it may be lost.
inline constexpr std::size_t kGuardedFrames = 65'536;
inline constexpr std::size_t kGuardedBytes = 64U << 20U;
inline constexpr std::size_t kCardBytes = 512;       // of all cards of a rank; one more is refused
inline constexpr int kControlHighWaterMark = 1'000;  // messages; a full queue is an error of that send, never a wait
inline constexpr int kBulkHighWaterMark = 64;        // messages; output that does not fit is read again from its file

// What a keeper gives to whom it guards has numbers below this one; what a job is tied to, this one or one above.
inline constexpr int kFirstTiedDescriptor = 32;

// Output.
inline constexpr int kOutputPipeBytes = 1 << 20;               // a rank's pipe; full blocks that rank alone
inline constexpr std::size_t kOutputChunkBytes = 256U << 10U;  // one read of a pipe, one piece on the wire
inline constexpr std::size_t kUnkeptBytes = 64U << 10U;        // of what no file took, the end that is kept in memory
inline constexpr std::size_t kTailBytes = 32U << 10U;          // of stderr, kept in a failure's verdict: one record

// Journal.
inline constexpr std::size_t kJournalPayloadBytes = 64U << 10U;  // a larger record is refused to whoever appends it
inline constexpr std::size_t kSnapshotBytes = 16U << 20U;        // a larger snapshot is refused; the journal goes on
inline constexpr std::uint64_t kSnapshotEvery = 1'000;           // records; then the journal asks for a snapshot
inline constexpr std::size_t kJournalPendingBytes = 8U << 20U;   // appended and not on disk; more is answered kBusy

// Waits.
inline constexpr Duration kReadyDeadline = Duration::seconds(30);     // of a started supervisor
inline constexpr Duration kPingPeriod = Duration::milliseconds(500);  // keeper to daemon
inline constexpr Duration kPingDeadline = Duration::seconds(2);       // then it is killed and started again
inline constexpr Duration kSupervisorPingDeadline =
    Duration::seconds(10);                                       // the same of a supervisor: ranks wait for its return
inline constexpr Duration kKillDeadline = Duration::seconds(2);  // from SIGKILL to an empty tree; then wedged
inline constexpr Duration kNamesMissingEvery = Duration::seconds(30);  // a wait without a deadline says who is missing
inline constexpr Duration kForetold = Duration::seconds(300);  // the foretold end of a host; later, nothing came of it

}  // namespace monarch::limits
