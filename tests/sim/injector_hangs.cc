// Who stops ranks: people with debuggers, a freezer, a disk that is away; and the operator, who says so.

#include <csignal>

#include "tests/sim/guard.h"
#include "tests/sim/injector.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"

namespace monarch::sim {

void Injector::stand() {
  Host& host = world_.host(any_host());
  if (host.off || host.frozen() || host.worker() == nullptr || host.worker()->ranks().processes().empty()) return;
  Ranks& ranks = host.worker()->ranks();
  auto chosen = ranks.processes().begin();
  std::advance(chosen, world_.random.below(ranks.processes().size()));
  const Incarnation key = chosen->first;
  ranks.stand(key, static_cast<Standstill>(world_.random.between(1, 4)));
  const Duration shortest = world_.random.one_in(2) ? Duration::milliseconds(300) : Duration::seconds(20);
  world_.scheduler.after(world_.random.skewed(shortest, Duration::seconds(60)),
                         [&ranks, kernel = host.kernel, key] { kernel->timer([&ranks, key] { ranks.go_on(key); }); });
}

// As `monarch hold [--release]` and `monarch signal STOP | CONT`, of one rank or two neighbours.
void Injector::hold() {
  Supervisor* supervisor = world_.guard->supervisor();
  if (supervisor == nullptr || !supervisor->open()) return;
  const auto mesh = static_cast<std::uint32_t>(world_.random.below(world_.scenario.spec.meshes.size()));
  const std::uint32_t size = world_.scenario.spec.meshes[mesh].size();
  const auto first = static_cast<std::uint32_t>(world_.random.below(size));
  std::vector<RankId> ranks{{MeshId(mesh), Rank(first)}};
  if (first + 1 < size && world_.random.one_in(2)) ranks.push_back({MeshId(mesh), Rank(first + 1)});
  const std::uint64_t wish = world_.random.below(4);
  send_after(world_.scheduler, Duration::microseconds(50), supervisor->life(), [supervisor, ranks, wish] {
    if (wish < 2) return supervisor->hold({.ranks = ranks, .release = wish == 1, .who = "monarch hold, pid 4712"});
    supervisor->signal(ranks, wish == 2 ? SIGSTOP : SIGCONT);
  });
}

}  // namespace monarch::sim
