#pragma once

// CommitDesk: takes the checkpoints that beats say ranks have written to the core, and sees that each question is
// answered: that a commit counts, once its record is durable (J1), and that one does not count, at once. A rank that is
// too far ahead of its gang is answered once that has gone on, or has not for long. A beat that says a question again
// has it answered again, so no answer is lost for good.
//
// Thread: the supervisor's loop. Lifetime: within the core's.

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "supervisor/core/job/job_core.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"

namespace monarch {

struct CommitDeskHandlers {
  std::function<std::uint64_t(const CoreEvent&)> decide;  // the ticket of its record
  std::function<bool(std::uint64_t ticket)> is_durable;
  std::function<void(HostId, const CommitAnswer&)> answer;
};

class CommitDesk {
 public:
  // Of one rank, between two that are recorded: the next is taken when a later beat says it again (I22).
  static constexpr Duration kFloor = Duration::milliseconds(50);

  // Shorter than a rank waits for an answer, unless it is told otherwise: it hears why.
  static constexpr Duration kGangPatience = Duration::seconds(45);

  CommitDesk(const JobCore& core, CommitDeskHandlers handlers) : core_(core), handlers_(std::move(handlers)) {}

  // What a beat of this host says of one rank.
  void hear(HostId host, const RankReport& report, Instant now);
  // Questions that were answered with a refusal.
  std::uint64_t refused() const { return refused_; }

 private:
  struct Last {
    std::uint64_t ticket = 0;  // of the record of the last one that was taken; 0: an earlier supervisor's, or none
    Instant taken_at;
  };
  // One question.
  struct Asked {
    HostId host;
    Generation generation;
    std::uint64_t number = 0;
    bool operator==(const Asked&) const = default;
  };
  // More hosts than these do not ask for the same rank in turn, unless they lie (I22).
  static constexpr std::size_t kAskers = 4;
  void count_refusal(RankId rank, const Asked& asked);
  bool waits_on(RankId rank, const Asked& asked, Instant now);
  void refuse(HostId host, CommitAnswer answer, std::string why);
  using GangKey = std::pair<MeshId, GangId>;

  const JobCore& core_;
  CommitDeskHandlers handlers_;
  std::map<RankId, Last> last_;
  std::map<GangKey, std::uint64_t> recorded_;     // the ticket of its newest record: one rank's may be a commit of all
  std::map<RankId, std::vector<Asked>> told_no_;  // the last of each, counted
  std::map<RankId, std::pair<Asked, Instant>> waits_;  // what waits for others of its gang, and since when
  std::uint64_t refused_ = 0;
};

}  // namespace monarch
