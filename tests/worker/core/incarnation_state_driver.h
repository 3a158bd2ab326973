#pragma once

// What the tests of IncarnationState share: one incarnation that is driven event by event, and what it orders in short
// words.
//
// Thread: values.

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "worker/core/incarnation_state.h"

namespace monarch::incarnation_state_test {

using keeper_action::CheckTree;
using keeper_action::FreezeTree;
using keeper_action::KillRank;
using keeper_action::KillTree;
using keeper_action::OpenGate;
using keeper_action::Reap;
using keeper_action::Report;
using keeper_action::SignalRank;
using keeper_action::TellRank;
using keeper_action::ThawTree;

inline Instant at(std::int64_t milliseconds) { return Instant::since_boot(Duration::milliseconds(milliseconds)); }

inline const Incarnation kKey{RankId{MeshId(0), Rank(3)}, Generation{Term(1), 1}};

struct Name {
  std::string operator()(const OpenGate&) const { return "open"; }
  std::string operator()(const SignalRank& a) const { return "signal" + std::to_string(a.number); }
  std::string operator()(const FreezeTree&) const { return "freeze"; }
  std::string operator()(const ThawTree&) const { return "thaw"; }
  std::string operator()(const KillRank&) const { return "kill_rank"; }
  std::string operator()(const KillTree&) const { return "kill"; }
  std::string operator()(const CheckTree&) const { return "check"; }
  std::string operator()(const Reap&) const { return "reap"; }
  std::string operator()(const Report& a) const {
    static const std::vector<std::string> names = {"gated", "running", "stopping", "wedged", "ended"};
    return names[static_cast<std::size_t>(a.report.phase)] + (a.report.held ? "+held" : "");
  }
  std::string operator()(const auto&) const { return "?"; }
};

// What was ordered, in short: "freeze report(running,held)".
inline std::string told(const KeeperActions& actions) {
  std::string all;
  for (const KeeperAction& action : actions) {
    if (std::holds_alternative<TellRank>(action)) continue;  // see events()
    all += (all.empty() ? "" : " ") + std::visit(Name{}, action);
  }
  return all;
}

// One incarnation and a clock, driven event by event. Each call answers what the state ordered.
class Driver {
 public:
  struct Options {
    OrphanPolicy orphan = OrphanPolicy::kHold;
    SignalTo signal_to = SignalTo::kGroup;
  };
  Driver() : Driver(Options{}) {}
  explicit Driver(const Options& options)
      : state_({.key = kKey,
                .gated = true,
                .mesh = MeshId(0),
                .gang = GangId(0),
                .orphan = options.orphan,
                .orphan_ttl = Duration::seconds(60),
                .stop_signal = SIGTERM,
                .stop_grace = Duration::seconds(30),
                .signal_to = options.signal_to},
               at(0)) {}

  std::string advance_to(std::int64_t milliseconds) {
    now_ = at(milliseconds);
    KeeperActions actions;
    state_.enforce_lease(now_, actions);
    state_.tick(now_, actions);
    return told(actions);
  }
  std::string forked() {
    return run([&](KeeperActions& out) { state_.forked(42, now_, out); });
  }
  std::string fork_failed() {
    return run([&](KeeperActions& out) { state_.fork_failed({kKey, EAGAIN, "fork"}, now_, out); });
  }
  std::string executed() {
    return run([&](KeeperActions& out) { state_.executed(out); });
  }
  std::string exec_failed() {
    return run([&](KeeperActions&) { state_.exec_failed({kKey, ENOENT, "exec /nonesuch"}); });
  }
  std::string ending() {
    return run([&](KeeperActions& out) { state_.ending(now_, out); });
  }
  std::string exited(EndKind kind = EndKind::kExited, int value = 0) {
    RankEnd end;
    end.kind = kind;
    end.value = value;
    return run([&](KeeperActions& out) { state_.exited(end, now_, out); });
  }
  std::string taken_by_oom_killer() {
    const RankEnd end{.kind = EndKind::kSignaled, .value = SIGKILL, .out_of_memory = true};
    return run([&](KeeperActions& out) { state_.exited(end, now_, out); });
  }
  std::string tree_empty() {
    return run([&](KeeperActions& out) { state_.tree_empty(out); });
  }
  std::string tree_busy(bool own = false) {
    return run([&](KeeperActions& out) { state_.tree_busy(own, now_, out); });
  }
  std::string lease_until(std::int64_t milliseconds) {
    return run([&](KeeperActions& out) { state_.lease(at(milliseconds), now_, out); });
  }
  std::string stop(Duration grace) {
    return run([&](KeeperActions& out) { state_.stop({SIGTERM, grace}, now_, out); });
  }
  std::string signal(int number) {
    return run([&](KeeperActions& out) { state_.signal(number, std::nullopt, out); });
  }
  std::string await_end() {
    return run([&](KeeperActions& out) { state_.await_end(Duration::seconds(2), now_, out); });
  }

  void to_running() {
    forked();
    lease_until(6'000);
    executed();
  }
  IncarnationState& state() { return state_; }

 private:
  std::string run(const std::function<void(KeeperActions&)>& event) {
    KeeperActions actions;
    event(actions);
    return told(actions);
  }
  IncarnationState state_;
  Instant now_ = at(0);
};

inline constexpr Duration kGrace = Duration::seconds(10);

// Brings a new incarnation into the phase.
inline Driver in(IncarnationPhase phase) {
  Driver driver;
  switch (phase) {
    case IncarnationPhase::kForking: break;
    case IncarnationPhase::kGated: driver.forked(); break;
    case IncarnationPhase::kStarting:
      driver.forked();
      driver.lease_until(6'000);
      break;
    case IncarnationPhase::kRunning: driver.to_running(); break;
    case IncarnationPhase::kHeld:
      driver.to_running();
      driver.advance_to(6'000);
      break;
    case IncarnationPhase::kGrace:
      driver.to_running();
      driver.stop(kGrace);
      break;
    case IncarnationPhase::kKilling:
      driver.to_running();
      driver.stop(Duration::zero());
      break;
    case IncarnationPhase::kWedged:
      driver.to_running();
      driver.stop(Duration::zero());
      driver.advance_to(2'000);
      break;
    case IncarnationPhase::kEnded:
      driver.to_running();
      driver.exited();
      driver.tree_empty();
      break;
  }
  EXPECT_EQ(driver.state().phase(), phase);
  return driver;
}

}  // namespace monarch::incarnation_state_test
