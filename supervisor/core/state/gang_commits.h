#pragma once

// GangCommits: which checkpoints the ranks of a gang have written, and the newest that all of them have: what its next
// generation goes on from (I20). What only some ranks committed counts until the generation ends: the next one may
// write the same step with other bytes, and a checkpoint of two generations is none. A step below what each of the
// ranks has committed last is passed: steps of a rank only rise, so the gang will never have it.
//
// Thread: values.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/ids.h"
#include "transport/messages/rank.h"

namespace monarch {

struct RankCommit {
  std::uint64_t step = 0;
  std::string what;
};

// A checkpoint that all ranks of a gang have, of one generation.
struct GangCheckpoint {
  std::uint64_t step = 0;
  Generation generation;          // that wrote it
  std::vector<std::string> what;  // of each rank of the gang
};

struct GangCommits {
  // How many steps a rank may be ahead of the slowest of its gang; one more waits for that one.
  static constexpr std::size_t kAhead = 8;

  std::optional<GangCheckpoint> newest;  // its step never decreases
  std::optional<GangCheckpoint>
      resumed;                  // what the present generation was told, which stays when a START is said again
  Generation ahead_generation;  // whose commits `ahead` are
  std::vector<std::vector<RankCommit>> ahead;  // of each rank: beyond the newest, not passed, rising
};

// Of what all ranks of a job say of their checkpoints: each has its share. A snapshot of the journal holds all of it.
inline constexpr std::size_t kCommitNamesBytes = 6U << 20U;

// Whose commit it is.
struct Committer {
  Generation generation;                  // the gang's
  std::uint32_t rank = 0;                 // index within the gang
  std::uint32_t ranks = 1;                // of the gang
  std::size_t names = kCommitNamesBytes;  // its share
};

enum class CommitRuling : std::uint8_t {
  kTake,
  kTaken,  // it was said before: nothing changes
  kWait,   // it may be taken once others of the gang have gone on
  kRefuse,
};

struct CommitDecision {
  CommitRuling ruling = CommitRuling::kTake;
  std::string why;  // kRefuse, kWait
};

CommitDecision refused_commit(std::string why);
CommitDecision rule_commit(const GangCommits& known, const Committer& who, const CommitRequest& asked);
// None where a rank of this generation has committed nothing beyond the newest. Steps below it are passed.
std::optional<std::uint64_t> passed_step(const GangCommits& known, const Generation& generation);
// After kTake alone. True where the gang's step has moved.
bool take_commit(GangCommits& known, const Committer& who, const CommitRequest& asked);

}  // namespace monarch
