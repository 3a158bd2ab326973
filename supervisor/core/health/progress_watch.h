#pragma once

// ProgressWatch: which ranks make no progress, from what beats say of them. A rank is watched from the first word that
// it says of itself; one that never says any is not. Time is the host's own, from beat to beat: what is not heard of a
// host ages nobody, and neither does the time in which a rank was held, traced, or stopped because somebody asked for
// it.
//
// Of a gang whose ranks wait for each other all fall silent: one verdict is given for it, about the rank that is
// behind. A gang is judged once each of its ranks that runs was heard in its generation: what the first host says after
// the supervisor's return tells nothing of the others, where a debugger may hold one.
//
// Thread: a value of the supervisor's loop. It is not journalled: after a restart every rank counts as having just
// spoken.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/core/state/events.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/rank.h"

namespace monarch {

class ProgressWatch {
 public:
  // Whether a rank runs at its gang's generation, as far as the journal says.
  using Runs = std::function<bool(RankId)>;

  ProgressWatch(const JobSpec& spec, Runs runs);

  // What a beat that was sent at `sent_at` says of a rank that runs where it should. At most one verdict a gang until
  // one of its ranks moves on, and one about a rank until it does itself.
  std::optional<RankHung> heard(HostId host, const RankReport& report, Instant sent_at);
  // Is this still true of its rank? It is not when the rank has said something since, or goes on where it stood
  // still.
  bool holds(const RankHung& verdict) const;
  // Nothing of it runs any more, or it is being stopped: nobody waits for it, nor for who traces it.
  void forget(RankId rank);
  // The verdict about this rank was told to nobody: it is given again as soon as it is due.
  void retract(RankId rank);

  // Somebody stops these ranks on purpose (`monarch signal STOP`, `monarch hold`): their gangs are not watched until
  // each of them is let go.
  void hold(RankId rank) { held_.insert(rank); }
  void release(RankId rank) { held_.erase(rank); }
  // Is its gang left alone now, because of any of its ranks?
  bool suspended(RankId rank) const;

  // How long this phase may last, and whether the spec says so in figures.
  struct Limit {
    Duration longest;
    bool written = false;
  };
  Limit limit_of(MeshId mesh, GangId gang, const std::string& phase) const;
  // No rank of this mesh has ever said anything.
  bool never_spoke(MeshId mesh) const;

 private:
  struct Judged {  // what its last verdict was given for
    std::uint64_t words = 0;
    bool standing = false;
  };
  struct Watched {
    Generation generation;
    HostId host;
    Instant heard_at;  // of the last beat
    RankProgress said;
    std::string phase;  // empty: it has said nothing
    Duration waited;    // since its last word
    Duration stood;     // still
    Standstill standstill = Standstill::kNone;
    std::uint64_t words = 0;  // that it has said
    std::optional<Judged> judged;
  };
  struct Gang {
    Generation generation;
    bool told = false;                        // since one of its ranks moved on
    std::set<RankId> heard;                   // in this generation, of those from unheard_from on
    std::uint32_t unheard_from = 0;           // of its ranks, in order: those before were heard, or did not run
    std::set<RankId> traced;                  // their debuggers decide when they go on
    std::map<std::string, Duration> longest;  // pause between two words, by phase
  };
  using GangKey = std::pair<MeshId, GangId>;

  void listen(const GangKey& key, Gang& gang, Watched& rank, const RankReport& report, Instant sent_at);
  GangKey key_of(RankId rank) const { return {rank.mesh, spec_.meshes[rank.mesh.value()].gang_of(rank.rank)}; }
  bool suspended(const GangKey& key, const Gang& gang) const;
  bool is_heard(const GangKey& key, Gang& gang, RankId rank);
  std::optional<RankHung> stands_still(const GangKey& key, const Gang& gang, RankId id) const;
  std::optional<RankHung> falls_silent(const GangKey& key, const Gang& gang, RankId id) const;
  std::vector<RankId> ranks_of(const GangKey& key) const;
  const HangPolicy& policy_of(MeshId mesh) const;

  const JobSpec& spec_;
  Runs runs_;
  std::map<RankId, Watched> ranks_;
  std::map<GangKey, Gang> gangs_;
  std::set<RankId> held_;
};

// "stopped traced frozen waiting", for programs; empty for kNone.
std::string name_of(Standstill standstill);
// "stopped by a signal", for people; likewise.
std::string describe(Standstill standstill);

}  // namespace monarch
