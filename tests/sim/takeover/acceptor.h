#pragma once

// Acceptor: an agent's side of a takeover. It promises the highest epoch it has heard of, obeys no lower one, holds the
// leases of its ranks, and ends what has none any more. Pure: the time of its host comes with each call.
//
// Thread: one simulation's. Lifetime: one boot of its host.

#include <cstdint>
#include <map>
#include <optional>

#include "tests/sim/takeover/rules.h"

namespace monarch::sim::takeover {

class Acceptor {
 public:
  struct Options {
    Wrong wrong = Wrong::kNothing;
    std::uint64_t boot = 0;
    Epoch promised = 0;  // as its disk has it
  };
  explicit Acceptor(Options options) : options_(options), promised_(options.promised) {}

  Epoch promised() const { return promised_; }
  std::uint64_t boot() const { return options_.boot; }
  const std::map<std::uint32_t, Held>& held() const { return held_; }
  // False: its epoch is lower than what was promised, and it has to be told so.
  bool obeys(Epoch epoch) const { return is(options_.wrong, Wrong::kObeyAnyEpoch) || epoch >= promised_; }

  // Leases that are over take their ranks with them. Before anything else is heard.
  void look_at_clock(Instant now);
  bool is_lazy() const { return is(options_.wrong, Wrong::kLazyAgent); }

  // A promise is given when it is on disk.
  bool must_persist(const Prepare& prepare) const { return prepare.epoch > promised_; }
  void promise(const Prepare& prepare, Instant now);
  void repeat_promise(const Prepare& prepare);

  void on(const Ack& ack, Instant now);
  void on(const Start& start, Instant now);
  void on(const Kill& kill);
  void rank_died(std::uint32_t rank) { held_.erase(rank); }

  Report report(Instant now);

 private:
  Options options_;
  Epoch promised_ = 0;
  Instant echo_;
  std::uint64_t last_seq_ = 0;
  std::map<std::uint64_t, Instant> sent_;  // beats that wait for their answer
  std::map<std::uint32_t, Held> held_;
  std::map<std::uint32_t, Gen> highest_;  // ever started in this boot
};

}  // namespace monarch::sim::takeover
