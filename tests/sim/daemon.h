#pragma once

// Daemon: one start of a worker's daemon, driven as worker/daemon/*.cc drive it: the main loop, which may hang; the
// beat thread, which goes on beating then; the log thread, which completes the output of ended ranks and keeps the
// promise. The cores are the real ones.
//
// Thread: one simulation's. Lifetime: its worker's; it stays, as a memory, after its death.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "tests/sim/kernel.h"
#include "tests/sim/network.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/keeper.h"
#include "transport/messages/rank.h"
#include "transport/messages/worker.h"
#include "worker/core/daemon_core.h"
#include "worker/core/daemon_core_beats.h"
#include "worker/core/keeper_actions.h"

namespace monarch::sim {

class World;
class Worker;
struct Host;

class Daemon {
 public:
  struct HelloWithStash {
    KeeperHello hello;
    DaemonStash stash;
  };
  struct PipesOf {
    Incarnation key;
  };
  struct Taken {  // this standby is another rank now
    Incarnation standby;
  };
  struct Terminated {};
  struct KeeperGone {};
  using FromKeeper =
      std::variant<HelloWithStash, PipesOf, KeeperPing, KeeperChanged, Reserved, Terminated, KeeperGone, Taken>;

  Daemon(World& world, Host& host, Worker& worker);
  ~Daemon() {
    main_->end();
    beat_->end();
  }

  void hear(FromKeeper message);
  // From the network.
  void connected();
  void disconnected();
  void deliver(Down message);

  void die(int signal);
  void vanish();  // with its machine, or with its keeper's last act
  void hang();
  void unhang();
  void freeze();
  void thaw();

  bool alive() const { return main_->alive(); }
  bool hangs() const { return hangs_; }
  bool young() const;
  const LifePtr& beat_life() const { return beat_; }
  const daemon::DaemonCore* core() const { return core_ ? &*core_ : nullptr; }

 private:
  enum class Phase : std::uint8_t { kServing, kLeaving, kRemoving };

  void on(const HelloWithStash& said);
  void on(const PipesOf& said);
  void on(const KeeperPing& said);
  void on(const KeeperChanged& said);
  void on(const Reserved& said);
  void on(const Terminated& said);
  void on(const Taken& said);
  void on(const KeeperGone& said);

  void grant_whatever_runs(daemon::FrameHeard& frame) const;
  void feed(const daemon::Event& event);
  void perform(const daemon::PersistPromise& action);
  void perform(const daemon::TellKeeper& action);
  void pass_on(const daemon::ForKeeper& order);
  void perform(const daemon::TellServant& action);
  void perform(const daemon::SayHello& action);
  void perform(const daemon::BeatChanged& action);
  void on_report(const RankReport& report);
  void settle_adopted();
  void probe(const RankReport& report);
  void try_port(const Incarnation& key, Duration wait);
  void output_later(const Incarnation& key);
  void flush_beat();
  void leave(Duration patience, int exit_code);
  void check_left();
  void remove_state();
  void exit(int code);
  void end_lives();
  bool has_link() const;
  void turned();

  // The beat thread.
  void new_content(std::vector<RankReport> ranks, bool at_once);
  void owe_hello(bool again);
  void beat_if_due();
  void lie(Beat& beat) const;
  void make_up(Beat& beat) const;
  void flood(const Beat& beat, Term term);

  World& world_;
  Host& host_;
  Worker& worker_;
  LifePtr main_;
  LifePtr beat_;
  std::optional<daemon::DaemonCore> core_;
  DaemonStash stash_;
  Hello hello_;
  std::vector<RankReport> adopted_;
  std::set<Incarnation> piped_;
  std::set<Incarnation> probed_;  // whose port is being tried
  Alarm tick_;
  Phase phase_ = Phase::kServing;
  bool flush_armed_ = false;
  bool at_once_ = false;
  bool last_words_ = false;
  bool hangs_ = false;
  Instant frozen_at_;
  int exit_code_ = 0;
  Instant born_;
  Instant turn_;  // local time of the main loop's last turn

  std::optional<daemon::BeatSchedule> schedule_;
  std::optional<std::vector<RankReport>> content_;
  std::optional<Hello> hello_content_;
  bool hello_owed_ = true;
  Alarm beat_alarm_;
};

}  // namespace monarch::sim
