#include "supervisor/core/crew/words.h"

#include <algorithm>
#include <utility>

namespace monarch {

namespace {

// Of a failed gang's ranks; their number is told besides.
constexpr std::uint32_t kMostRanksTold = 256;

// supervision.on_peer_lost.
void signal_peer(const CoreBasis& job, MeshId mesh, GangId g) {
  const int number = job.mesh(mesh).supervision.on_peer_lost;
  if (number == 0) return;
  for (const HostId id : job.placement.hosts_of(mesh, g)) {
    Signal message{.ranks = {}, .generation = job.crew(mesh, g).generation, .number = number};
    for (const RankId& r : job.placement.ranks_of(mesh, g, id)) {
      if (job.member(r).stage == RankStage::kRunning) message.ranks.push_back(r);
    }
    if (!message.ranks.empty()) job.actions.emplace_back(SendSignal{id, std::move(message)});
  }
}

}  // namespace

void tell(const CoreBasis& job, MeshId mesh, GangId g, const Json& event) {
  for (const HostId id : job.placement.hosts_of(mesh, g)) {
    Tell message{.ranks = {}, .generation = job.crew(mesh, g).generation, .json = to_json(event)};
    for (const RankId& r : job.placement.ranks_of(mesh, g, id)) {
      if (job.member(r).stage == RankStage::kRunning) message.ranks.push_back(r);
    }
    if (!message.ranks.empty()) job.actions.emplace_back(SendTell{id, std::move(message)});
  }
}

void tell_stopping(const CoreBasis& job, MeshId mesh, GangId g, std::int32_t signal, Duration grace) {
  tell(job, mesh, g,
       Json::object(
           {{"v", 1}, {"event", "stopping"}, {"signal", signal}, {"grace_milliseconds", grace.count_milliseconds()}}));
}

void tell_peers_of(const CoreBasis& job, MeshId mesh, GangId g, const char* what) {
  const RankRange lost = job.placement.range_of(mesh, g);
  Json ranks = Json::array();
  for (std::uint32_t i = 0; i < std::min(lost.count, kMostRanksTold); ++i) ranks.append(lost.first + i);
  const Json event = Json::object({{"v", 1},
                                   {"event", what},
                                   {"mesh", job.mesh(mesh).name},
                                   {"gang", g.value()},
                                   {"generation", job.crew(mesh, g).generation.counter},
                                   {"rank_count", lost.count},
                                   {"ranks", std::move(ranks)}});
  job.each_gang([&](MeshId other, GangId other_gang) {
    const bool itself = other == mesh && other_gang == g;
    if (itself || !is_running(job.gang(other, other_gang).phase)) return;
    tell(job, other, other_gang, event);
    if (what == std::string_view("peer_lost")) signal_peer(job, other, other_gang);
  });
}

}  // namespace monarch
