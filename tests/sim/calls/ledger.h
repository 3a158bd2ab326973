#pragma once

// Ledger: every call of a run: who made it, which ranks ran it, and what its caller heard. It holds what is promised of
// calls:
//
//   C1  each rank of a call has one outcome, and the call is over after the last of them
//   C2  a rank runs a call at most once
//   C3  a process of a rank begins what one sender has sent it in the order in which it was sent
//   C4  once all is well again, every call has ended; one with a deadline ends by then
//   C5  an outcome is explained: a value by a run, each other one by a fault, a deadline or a limit of the run
//   C9  what is called of a guest is run by that guest and no other
//
// Thread: one simulation's.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/post.h"

namespace monarch::sim::calls {

// Processes are counted over the whole run: one start of a rank is one.
using ProcessNumber = std::uint64_t;
// What a body says: which call it is of, and for an answer by which rank. 0: there is none.
using Tag = std::uint64_t;
inline constexpr Tag kNobodys = ~Tag{0};  // of one that the ledger does not know
inline constexpr Tag kForged = ~Tag{1};   // of one that is asked in the name of somebody who has not asked it

// How a rank that dies in a run is said to have ended.
inline constexpr const char* kKilled = "it was killed";

inline Tag answer_tag(Tag call, Rank rank) { return (call << 32U) + rank.value() + 1; }

class Ledger {
 public:
  // What has happened so far that explains how calls end.
  struct Faults {
    bool post_died = false;
    bool answers_evicted = false;  // targets keep few
    bool queues_are_short = false;
    bool posts_stand = false;  // still, for a while
    std::set<RankId> ended;    // ranks that have ended once
    std::set<ProcessNumber> guests_left;
    bool stale_callers = false;
  };

  // The tag of a new call. `guests`: whom it means, where it is to guests.
  Tag call(ProcessNumber caller, MeshId mesh, const std::vector<Rank>& ranks, bool quiet,
           std::optional<Duration> deadline, Instant now, std::map<Rank, ProcessNumber> guests = {});
  void run(Tag call, const RankId& rank, ProcessNumber process, std::uint64_t generation);
  void answer(Tag call, Rank rank, const CallOutcome& outcome, Tag body, const Faults& faults, Instant now);
  void over(Tag call, const std::string& refused, const Faults& faults);
  // Its caller is no more, or has lost its post: nothing more is heard of it.
  void abandon(Tag call);
  // Nothing can be waited for any more.
  void judge() const;

  ProcessNumber caller_of(Tag call) const { return calls_.at(call - 1).caller; }
  // Who has run it; 0: nobody.
  ProcessNumber ran_by(Tag call, Rank rank) const;
  std::uint64_t calls() const { return calls_.size(); }
  std::uint64_t outcomes(OutcomeKind kind) const { return outcomes_.at(static_cast<std::size_t>(kind)); }
  std::size_t open() const;

 private:
  struct Call {
    ProcessNumber caller = 0;
    MeshId mesh;
    std::map<Rank, std::uint64_t> waiting;  // the generation that has run it; 0: none has
    std::map<Rank, std::uint64_t> ended;
    std::map<Rank, ProcessNumber> guests = {};
    std::map<Rank, ProcessNumber> ran = {};
    bool quiet = false;
    std::optional<Duration> deadline;
    Instant since;
    bool over = false;
    bool abandoned = false;
  };
  Call& of(Tag call) { return calls_.at(call - 1); }
  static void explain_lost(const Call& call, Tag tag, Rank rank, const CallOutcome& outcome, const Faults& faults);
  void explain(const Call& call, Tag tag, Rank rank, const CallOutcome& outcome, const Faults& faults,
               Instant now) const;

  std::vector<Call> calls_;
  std::map<std::tuple<ProcessNumber, ProcessNumber>, Tag> last_run_;  // by sender and process
  std::array<std::uint64_t, 8> outcomes_{};
};

}  // namespace monarch::sim::calls
