#pragma once

// Posts: the posts of the simulated hosts, and at their doors processes that claim idle slots, let them go, leave and
// come back. What a post reports and whom it answers is the real WishTable's; beats carry the one, the network the
// other. It knows what really happened, for ClaimAccount.
//
// Thread: one simulation's. Lifetime: the world's.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "supervisor/core/state/claim_state.h"
#include "transport/base/time.h"
#include "transport/messages/claim.h"
#include "transport/messages/post.h"
#include "transport/messages/roster.h"
#include "worker/core/post/wish_table.h"

namespace monarch::sim {

class World;
class Worker;

// A process that claims. It outlives its host's post, and the worker.
struct Claimant {
  ClaimHolder self;
  std::optional<DoorId> door;
  bool gone = false;    // for ever
  bool strays = false;  // it left the door by its own will
  Instant back_at;      // real time: it came back from that
  Instant hiccup_at;    // real time: its connection broke, for an instant
  std::uint64_t last_wish = 0;
  std::map<std::uint64_t, PostWish> said;
  std::set<std::uint64_t> unanswered;
  std::set<std::uint64_t> has;  // wishes whose slots it was granted, and has not let go
};

class Posts {
 public:
  explicit Posts(World& world);

  void begin();
  void heal();
  void crash();  // of any
  // What a beat of this worker says of its post.
  std::optional<PostReport> report(HostId host, const Worker& worker);
  // From the supervisor.
  void answered(HostId host, const ClaimAnswer& answer);
  void hears_roster(HostId host, const Roster& roster);

  const Claimant* find(const ClaimHolder& holder) const;
  // Its slots were taken from it, since it was away or its host was lost: had it known of them? And that never was.
  bool lost(const ClaimHolder& holder, std::uint64_t number);
  void has_again(const ClaimHolder& holder, std::uint64_t number);
  // When its host said what is decided about.
  void said_at(HostId host, Instant when) { posts_[host.value()].said_at = when; }
  // It is there, and for a while before that neither it nor its machine was away.
  bool is_settled(const Claimant& who) const;

 private:
  struct Post {
    const Worker* worker = nullptr;
    std::uint64_t start = 0;  // 0: there is none
    Instant said_at;          // real time: what the supervisor has heard last
    Term roster_term;
    std::uint64_t roster = 0;
    WishTable table;
  };
  void settle_in(HostId host);
  Claimant& move_in(HostId host);
  void later(Claimant& who, Duration wait);
  void start(HostId host);
  void stop(HostId host);
  void look_at(HostId host);
  bool is_up(HostId host);
  void act(Claimant& who);
  void come(Claimant& who);
  void leave(Claimant& who, Duration away);
  void act_here(Claimant& who);
  void wish(Claimant& who);
  void let_go(Claimant& who, std::uint64_t number);
  void say(Claimant& who, PostWish wish);
  void hand_out(HostId host);
  SlotWish draw_wish(const Claimant& who);
  std::vector<std::string> some_hosts();

  World& world_;
  std::vector<Post> posts_;  // by HostId
  std::vector<std::unique_ptr<Claimant>> all_;
  std::uint64_t last_start_ = 0;
  std::uint64_t last_door_ = 0;
  std::uint64_t last_owner_ = 0;
};

}  // namespace monarch::sim
