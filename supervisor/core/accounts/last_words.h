#pragma once

// LastWords: what ranks wrote last. It may still be on its way from their hosts when they have ended, and a host that
// is told to end would cut it off.
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include <vector>

#include "supervisor/core/crew/crews.h"
#include "supervisor/core/crew/times.h"

namespace monarch {

class LastWords {
 public:
  // `mine`: of each host.
  LastWords(const CoreBasis& basis, std::vector<HostWords>& mine, Crews& crews)
      : basis_(basis), mine_(mine), crews_(crews) {
    mine_.resize(basis.hosts.size());
  }

  // Its generation is over, and it is about to be forgotten; or its host is to be ended.
  void note(RankId id);
  // It has come, if this report says so.
  void heard(HostId where, const RankReport& report);
  // Its next one is started: of the one before nothing more is told where both ran on one host.
  void forget(RankId id);
  // The end of this host is wanted. What is still to come of all that ran there, also of gangs that have ended for good
  // or whose slots have left, has its time from now on; false: there is none, or its time is over.
  bool awaited(HostId id, Duration patience);
  // The host is to serve again: those wait for nobody.
  void no_haste(HostId id);
  // It was waited for long enough, or nobody is left who would send it. Nothing of it is awaited any more.
  void give_up(HostId id);
  void look_at_times();
  // Once all ranks of the job have ended: may more of it come? If not, what is missing is told.
  bool any_comes() const;
  void give_up_all();
  void returned();

  template <class Visit>
  void each_time(Visit& visit) const {
    for (HostWords& words : mine_) visit(words.until, words.owed.empty() ? TimeKind::kPast : TimeKind::kPatience);
  }

 private:
  struct Words {
    RankId rank;
    HostId host;
  };
  std::vector<Incarnation>& owed(HostId id) { return mine_[id.value()].owed; }
  std::vector<Words> on_their_way() const;
  void tell(const std::vector<Words>& words) const;

  const CoreBasis& basis_;
  std::vector<HostWords>& mine_;
  Crews& crews_;
};

}  // namespace monarch
