#pragma once

// What the tests of KeeperCore share: a core on a clock of its own, and short names for ranks and generations.
//
// Thread: values.

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <variant>
#include <vector>

#include "worker/core/keeper_core.h"

namespace monarch::keeper_core_test {

namespace event = keeper_event;
namespace action = keeper_action;

inline Instant at(std::int64_t milliseconds) { return Instant::since_boot(Duration::milliseconds(milliseconds)); }
inline RankId rank_id(std::uint32_t rank) { return {MeshId(0), Rank(rank)}; }
inline Generation generation(std::uint64_t counter) { return {Term(1), counter}; }
inline Incarnation key(std::uint32_t rank, std::uint64_t counter) { return {rank_id(rank), generation(counter)}; }

template <class Action>
std::vector<Action> all_of(const KeeperActions& actions) {
  std::vector<Action> found;
  for (const KeeperAction& one : actions) {
    if (const auto* match = std::get_if<Action>(&one)) found.push_back(*match);
  }
  return found;
}

// A core whose forks succeed at once, on a clock that goes forward in steps of 100 ms with all ticks due in between.
class Keeper {
 public:
  explicit Keeper(KeeperKind kind = KeeperKind::kWorker, const GuardedOptions& guarded = {})
      : core_({.kind = kind, .guarded = guarded}) {
    send(event::Tick{});
    send(event::GuardedSpoke{});
  }

  explicit Keeper(const KeeperOptions& options) : core_(options) {
    send(event::Tick{});
    send(event::GuardedSpoke{});
  }

  KeeperActions send(const KeeperEvent& happened) {
    KeeperActions actions = core_.step(happened, now_);
    KeeperActions all = actions;
    for (const KeeperAction& one : actions) {
      KeeperActions more;
      if (const auto* rank = std::get_if<action::ForkRank>(&one)) more = send(event::Forked{rank->key, 100});
      if (const auto* spawned = std::get_if<action::ForkSpawned>(&one)) more = send(event::Forked{spawned->key, 200});
      if (std::holds_alternative<action::ForkGuarded>(one)) more = send(event::GuardedForked{10});
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }

  // Ticks whenever one is due; the guarded process answers its pings unless it is deaf.
  KeeperActions run_to(std::int64_t milliseconds, bool deaf = false) {
    KeeperActions all;
    while (core_.next_due() <= at(milliseconds)) {
      now_ = std::max(now_, core_.next_due());
      KeeperActions actions = send(event::Tick{});
      for (const action::Ping& ping : all_of<action::Ping>(actions)) {
        if (!deaf) send(event::GuardedPong{ping.number});
      }
      all.insert(all.end(), actions.begin(), actions.end());
    }
    now_ = at(milliseconds);
    return all;
  }
  // Time passes and the keeper does not run.
  void stall_to(std::int64_t milliseconds) { now_ = at(milliseconds); }

  KeeperActions start(std::uint32_t ranks, std::uint64_t counter) {
    Start order;
    order.generation = generation(counter);
    order.program = {"true"};
    order.orphan_ttl = Duration::seconds(60);
    order.stop_grace = Duration::seconds(5);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) order.ranks.push_back({rank_id(rank), {}});
    return send(order);
  }
  KeeperActions lease(std::uint32_t rank, std::uint64_t counter, std::int64_t until) {
    return send(KeeperLease{{{rank_id(rank), generation(counter)}}, at(until)});
  }
  void run_rank(std::uint32_t rank, std::uint64_t counter, std::int64_t until) {
    lease(rank, counter, until);
    send(event::Executed{key(rank, counter)});
  }
  KeeperActions end(std::uint32_t rank, std::uint64_t counter) {
    RankEnd end;
    end.kind = EndKind::kExited;
    KeeperActions all = send(event::Exited{key(rank, counter), end, {}});
    const KeeperActions more = send(event::TreeEmpty{key(rank, counter)});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  KeeperActions crash(int signal = SIGSEGV) {
    RankEnd end;
    end.kind = EndKind::kSignaled;
    end.value = signal;
    KeeperActions all = send(event::GuardedExited{end});
    return all;
  }
  KeeperActions leave(std::int32_t code) {
    RankEnd end;
    end.kind = EndKind::kExited;
    end.value = code;
    return send(event::GuardedExited{end});
  }
  const KeeperCore& core() const { return core_; }
  Instant now() const { return now_; }

 private:
  KeeperCore core_;
  Instant now_ = at(0);
};

}  // namespace monarch::keeper_core_test
