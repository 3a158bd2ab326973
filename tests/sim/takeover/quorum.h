#pragma once

// Quorum: a supervisor's side of a takeover, from its PREPARE to its end. It leads once a majority has promised its
// epoch (that is T_p), grants and decides only while a majority's word is fresh, and puts nothing in the place of a
// rank before no other supervisor's lease for it can stand. Pure: the time of its machine comes with each call.
//
// Thread: one simulation's. Lifetime: one epoch.

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "tests/sim/takeover/rules.h"

namespace monarch::sim::takeover {

class Quorum {
 public:
  struct Options {
    Wrong wrong = Wrong::kNothing;
    Epoch epoch = 0;
    std::uint32_t agents = 0;  // of the last membership, dead ones among them
    std::uint32_t ranks = 0;
  };
  using Order = std::pair<Agent, std::variant<Start, Kill>>;

  explicit Quorum(Options options);

  Epoch epoch() const { return options_.epoch; }
  bool leads() const { return promised_at_.has_value(); }
  // A majority's word is fresh: each has echoed what was sent within M.
  bool is_fresh(Instant now) const;
  bool may_grant(Instant now) const;

  Prepare prepare(Instant now) const { return {.epoch = options_.epoch, .stamp = now}; }
  std::vector<Agent> not_promised() const;
  // What it says to a report; a stale one is answered with nothing.
  std::optional<Ack> heard(Agent agent, const Report& report, Instant now);
  // What is to be started and killed now.
  std::vector<Order> decide(Instant now);

 private:
  struct Peer {
    bool promised = false;
    std::uint64_t boot = 0;
    std::uint64_t seq = 0;
    Instant echo;   // the latest stamp of ours that it has echoed
    Instant heard;  // when
    std::vector<Held> held;
    std::vector<Grant> started;
  };
  struct Slot {
    bool known = false;
    bool ours = false;       // started by us, or seen with a lease of ours: it is the only one
    bool seen = false;       // reported, at this generation
    bool inherited = false;  // another supervisor has granted it leases
    Gen gen;
    Agent agent = 0;
    std::uint64_t boot = 0;
    std::optional<Instant> granted_at;
  };

  bool wrong(Wrong asked) const { return is(options_.wrong, asked); }
  bool silent(Agent agent, Instant now) const;
  void learn(Agent agent, const Peer& peer);
  static bool has_started(const Peer& peer, std::uint32_t rank, Gen gen);
  void gone(Slot& slot);
  Instant inherited_until() const;
  Instant fence(const Slot& slot) const;
  std::optional<Agent> choose(Instant now) const;
  void start(std::uint32_t rank, Agent agent);

  Options options_;
  std::vector<Peer> peers_;
  std::vector<Slot> slots_;
  std::vector<bool> proven_dead_;
  std::optional<Instant> promised_at_;  // T_p
  std::uint64_t last_counter_ = 0;
  std::vector<Order> orders_;
};

}  // namespace monarch::sim::takeover
