#pragma once

// CoreHosts: each of them from the launch of its worker to the proven end of that, and what is held against it: a host
// may be drained by an operator, quarantined on evidence about it alone, or stay out for a while after it was lost.
// Nobody else writes a host's state. What it means for those who run there is handed on as news.
//
// Quarantine: two different ranks died there, as the first causes of their gangs, of what is not their program's doing.
// It is left for good where another host can take its place; else its gangs go on there, and it is said. One whose word
// cannot be trusted is left whatever follows. And a lemon: a host that is lost again and again. It stays out while the
// job has enough others, and is used again rather than nothing.
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/accounts/drills.h"
#include "supervisor/core/accounts/ending.h"
#include "supervisor/core/accounts/host_names.h"
#include "supervisor/core/accounts/last_words.h"
#include "supervisor/core/accounts/requests.h"
#include "supervisor/core/crew/core_basis.h"
#include "supervisor/core/crew/times.h"
#include "supervisor/core/facts/hosts.h"
#include "supervisor/core/state/events.h"

namespace monarch {

struct HostNews {
  enum class What : std::uint8_t {
    kLost,     // what runs there has to end
    kDecides,  // why gangs fail that fail because of it is decided within a time
    kGone,     // its worker has ended, or is given up: nothing more will be heard of its ranks
  };
  What what = What::kLost;
  HostId host;
  std::optional<Duration> silence = {};
  Duration within = {};
};

class CoreHosts {
 public:
  CoreHosts(const CoreBasis& basis, std::vector<HostState>& mine, HostNames& names, Drills& drills,
            LastWords& last_words, Ending& end, Requests& requests)
      : basis_(basis),
        mine_(mine),
        names_(names),
        drills_(drills),
        last_words_(last_words),
        end_(end),
        requests_(requests) {
    mine_.resize(basis.hosts.size());
  }

  void on(const WorkerLaunched& event);
  void on(const WorkerLaunchFailed& event);
  void on(const WorkerJoined& event);
  void on(const WorkerEnded& event);
  void on(const WorkerFailing& event);
  void on(const DaemonStarted& event);
  void on(const HostNamed& event);
  void on(const HostSilent& event);
  void on(const HostDoubted& event);
  void on(const HostDistrusted& event);

  void launch(HostId id);
  void launch_again(HostId id, const std::string& rule);
  void destroy(HostId id);
  // Its worker runs, and ends before anything of the job starts there.
  void lacks(HostId id, const std::string& what);
  // It lacks that, and its ranks stay.
  void note_lack(HostId id, const std::string& what) { host(id).failure = lack_of(basis_, id, what); }
  // It beats, and does not end what it was told to end. What else lives there ends with it.
  void give_up(HostId id);
  void wedged(const RankChanged& event, const std::string& who);
  // The gang's failure may tell of a host.
  void suspect(MeshId mesh, GangId g);
  // As soon as there are fewer others than slots. `lost` is about to go.
  void recall_lemons(std::optional<HostId> lost);
  void drain(HostId id, const std::string& who);
  void undrain(HostId id, const std::string& who);
  // What was held against all of them; "; may be used again: v1", or nothing.
  std::string forgive();
  void shut_down();

  // One after the other; then those that are late to start.
  void look_at_time(HostId id);
  void look_at_late();
  void returned();

  std::vector<HostNews> take_news() { return std::exchange(news_, {}); }

  template <class Visit>
  void each_time(Visit& visit) const {
    for (HostState& host : mine_) {
      visit(host.fence, TimeKind::kFence);
      visit(host.deadline, TimeKind::kPatience);
      visit(host.cold_at, TimeKind::kAlarm);
      visit(host.launched_at, TimeKind::kPast);
      visit(host.answered_at, TimeKind::kPast);
      for (Suspicion& suspicion : host.suspicions) visit(suspicion.at, TimeKind::kPast);
      visit_all(host.lost_at, TimeKind::kPast, visit);
    }
  }

 private:
  HostState& host(HostId id);
  void lose(HostId id, const std::string& why, std::optional<Duration> silence = {});
  void failed(HostId id, LaunchFailure failure);
  void not_called_back(HostId id);
  void not_launched_again(HostId id);
  void quarantine(HostId id, const std::string& because);
  void leave_lemon(HostId id);
  void take_back(HostId id);
  void let_return(HostId id, bool at_once);
  void become_cold(HostId id);

  const CoreBasis& basis_;
  std::vector<HostState>& mine_;
  HostNames& names_;
  Drills& drills_;
  LastWords& last_words_;
  Ending& end_;
  Requests& requests_;
  std::vector<HostNews> news_;
  std::vector<HostId> late_;
};

}  // namespace monarch
