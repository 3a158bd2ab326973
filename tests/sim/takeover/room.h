#pragma once

// Room: one simulated run of two or three supervisors and their agents: their machines, what lies between them, the
// faults of the seed, and the check that no rank ever has two incarnations with a lease (I1), nor two supervisors the
// right to grant one (I8).
//
// Thread: one simulation's. Lifetime: the run's.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tests/sim/kernel.h"
#include "tests/sim/random.h"
#include "tests/sim/seed_program.h"
#include "tests/sim/takeover/acceptor.h"
#include "tests/sim/takeover/quorum.h"
#include "tests/sim/trace.h"

namespace monarch::sim::takeover {

struct RoomOptions {
  std::uint64_t seed = 0;
  Wrong wrong = Wrong::kNothing;
  Duration faults_for = Duration::seconds(300);
  bool print = false;
};

class Room {
 public:
  explicit Room(const RoomOptions& options);
  SeedResult run();

 private:
  using ToAgent = std::variant<Prepare, Ack, Start, Kill>;
  using ToSupervisor = std::variant<Report, Refusal>;
  struct Violation {
    const char* label;
    std::string message;
  };
  struct Node {
    Clock clock;
    LifePtr life;
    std::optional<Quorum> quorum;
    Epoch seen = 0;  // on its disk, before it is used
    bool led = false;
    Instant prepared_at;
  };
  struct Machine {
    Clock clock;
    LifePtr life;
    std::optional<Acceptor> acceptor;
    std::unique_ptr<Alarm> alarm;
    Epoch promise_on_disk = 0;
    Epoch promise_before = 0;
    std::uint64_t boots = 0;
  };
  struct Way {             // between a supervisor and an agent
    int cuts[2] = {0, 0};  // down, up
    Duration slow_by;      // at most, up
  };

  Instant now(const Clock& clock) const { return clock.local(scheduler_.now()); }
  std::size_t node_of(Epoch epoch) const { return epoch % nodes_.size(); }
  Way& way(std::size_t node, Agent agent) { return ways_[node * machines_.size() + agent]; }
  void note(const char* name, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0) {
    trace_.note(scheduler_.now(), name, a, b, c);
  }

  // Supervisors.
  void take_over(std::size_t node);
  void tick(std::size_t node);
  void hear(std::size_t node, Agent agent, const ToSupervisor& message);
  void crash_node(std::size_t node);
  void boot_node(std::size_t node);
  // Agents.
  void boot_agent(Agent agent);
  void crash_agent(Agent agent, Duration away);
  void hear(Agent agent, std::size_t node, const ToAgent& message);
  void prepared(Agent agent, std::size_t node, const Prepare& prepare);
  void beat(Agent agent);
  void beat_later(Agent agent);
  void turn_ends(Agent agent);
  // The network.
  template <class Deliver>
  void carry(const Way& way, int direction, Deliver deliver);
  void send(std::size_t node, Agent agent, const ToAgent& message);
  void send(Agent agent, std::size_t node, const ToSupervisor& message);
  // Faults.
  void fault();
  void cut(std::size_t node, std::uint64_t permille);
  void cut_way(std::size_t node, Agent agent, std::uint64_t which, Duration length);
  void freeze(const LifePtr& life, Duration length);
  // room_contest.cc
  void contest();
  void reboot(Agent agent);
  void prepare_loss(std::size_t leader, Agent agent);
  void hinder(std::size_t leader, const std::vector<bool>& minority, Duration length);
  void heal();
  void again(Duration mean, std::function<void()> what);
  // Checks.
  bool is_valid(const Machine& machine, const Held& held) const;
  void check_single_lease(Agent agent);
  void check_one_decider();
  void check_alive();

  RoomOptions options_;
  Random random_;
  Trace trace_;
  Scheduler scheduler_;
  std::vector<Node> nodes_;
  std::vector<Machine> machines_;
  std::vector<Way> ways_;
  std::vector<LifePtr> frozen_;
  std::uint32_t ranks_ = 0;
  std::uint64_t drop_ = 0;
  std::uint64_t duplicate_ = 0;
  std::uint64_t slow_ = 0;
  Duration fault_gap_;
  Duration takeover_gap_;
  bool healed_ = false;
  std::uint64_t takeovers_ = 0;
};

}  // namespace monarch::sim::takeover
