#pragma once

// Injector: has faults injected on the hosts of a job, or on the machine where its supervisor lives, each in a talk of
// its own, which stays as long as the fault lasts: when it ends, however it does, the host takes the fault back.
//
// What took no effect is told as an error, never as a fault that was survived.
//
// Thread: the loop's. Lifetime: shorter than the loop's and the reach's. Its end takes everything back.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/launch/reach/check_reach.h"
#include "transport/base/time.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/strike.h"

namespace monarch::drill {

struct Injected {
  std::string error;                 // why it took no effect; empty: it is in effect, or done
  std::vector<std::int32_t> struck;  // processes of that host
  // By this machine's clock, wrong by `clock_error` at most: before the first blow, and once it was seen to be in
  // effect.
  WallTime struck_at;
  WallTime seen_at;
  Duration clock_error;
};

struct Undone {
  std::string error;         // why it may be in effect still; empty: it is not
  std::optional<bool> felt;  // whether somebody whom it struck has ended meanwhile; nothing: that is not looked at
};

class Injector {
 public:
  using Ticket = std::uint64_t;
  // By the loop, once; then, where there was no error, once what came of taking it back. None may end the injector.
  using OnInjected = std::function<void(const Injected&)>;
  using OnUndone = std::function<void(const Undone&)>;
  using OnSeen = std::function<void(const CheckOutcome& outcome)>;

  // `patience`: until a fault is in effect, and until it is taken back.
  Injector(EventLoop& loop, CheckReach& reach, Duration patience) : loop_(loop), reach_(reach), patience_(patience) {}
  Injector(const Injector&) = delete;
  Injector& operator=(const Injector&) = delete;
  ~Injector();

  // For so long; the marks of the order are of the job that is struck. Nothing: on this machine.
  Ticket strike(Reached where, StrikeOrder order, Duration lasts, OnInjected on_injected, OnUndone on_undone);
  // Before its time.
  void undo(Ticket ticket);
  // One question, without a strike, in a talk of its own; of many some wait for others.
  void look(Reached where, CheckRequest request, OnSeen on_seen);

  std::size_t running() const { return running_.size(); }

 private:
  enum class Phase : std::uint8_t {
    kStriking,  // its host is being reached, and then struck
    kUnwanted,  // the same, and it is not to strike any more, or to be taken back at once
    kLasting,
    kEnding,  // it is being taken back
  };
  struct Running {
    Phase phase = Phase::kStriking;
    Reached where;
    StrikeOrder order;
    Duration lasts;
    OnInjected on_injected;
    OnUndone on_undone;
    TimerId timer = 0;
    std::unique_ptr<HostTalk> talk;
  };

  struct Look {
    Reached where;
    CheckRequest request;
    OnSeen on_seen;
  };

  void start_looks();
  void injected(Ticket ticket, const Injected& what);
  void end(Ticket ticket);
  void let_go_on(Ticket ticket, const LaunchFailure& why);
  void undone(Ticket ticket, const Undone& what);

  EventLoop& loop_;
  CheckReach& reach_;
  Duration patience_;
  Ticket next_ = 1;
  std::map<Ticket, Running> running_;
  std::map<Ticket, std::unique_ptr<HostTalk>> looks_;  // under way
  std::deque<Look> waiting_;
};

}  // namespace monarch::drill
