#pragma once

// First cause: which of the ends in a failed gang began it. Exec errors and OOM kills come first; then the end that
// began earliest on the supervisor's clock; where clocks cannot tell (those of two hosts, or several of one host were
// ending when it looked), a crash or kill before a hang before what may be an answer to a lost peer (an exit code, an
// abort); then the lowest rank, so that the answer does not depend on the order of arrival. An end after a signal of
// ours is never the first to exit. Evidence goes before the order of exits: a rank that wrote its error before the
// first to exit had written one, or exited, is the cause, also where it was killed before it could exit, since tearing
// down may take it longer than its peers need to miss it.
//
// (A rank that exits 7 makes its peer abort on the lost connection a moment later: 7 is the cause.)
//
// Thread: values.

#include <optional>
#include <string>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/rank.h"

namespace monarch {

struct EndedRank {
  Incarnation process;
  HostId host;
  std::int32_t pid = 0;
  RankEnd end;
  Instant ended_at;                        // when it began to end: our clock, corrected by the heartbeat's round trip
  Duration uncertainty;                    // of that correction, to either side
  Instant evidence_at = Instant::never();  // likewise: when it wrote why it fails
};

// Exit code 0 is no failure; everything else is.
bool is_failure(const RankEnd& end);

// Not executed for what its host has run out of (memory, disk, the descriptors of all), or because its disk fails: none
// of the program's doing, and another host may have it. A limit of the user's own (EMFILE, EAGAIN) is met again.
bool is_lack_of_host(const RankEnd& end);

// Index of the first cause among `ends`; nothing if none of them can be one.
std::optional<std::size_t> first_cause(const std::vector<EndedRank>& ends);
// The same by the order of exits alone.
std::optional<std::size_t> first_to_exit(const std::vector<EndedRank>& ends);
// Those that may have begun to end before the first to exit, as far as clocks tell, by rank; none where it is not that.
std::vector<std::size_t> as_early_as(std::size_t first, const std::vector<EndedRank>& ends);

// The exit code that a shell would give: the code, 128 + signal, 127 for a missing program, 126 for one that cannot be
// executed.
int exit_code_of(const RankEnd& end);

}  // namespace monarch
