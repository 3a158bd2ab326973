#pragma once

// Crews: what is done with the processes of one incarnation, whoever they belong to: their hosts are asked to hold what
// they need, START and STOP are said, and said again where a beat shows that they were lost; reports move their members
// on, and a host that is lost takes them with it. Why a crew is begun or stopped, and what follows from it, is its
// kind's to say.
//
// A crew is addressed as Reserve, Start and Reserved address it; its members are ranks of its mesh, one after the other
// (crew_rank).
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/crew/core_basis.h"
#include "supervisor/core/crew/times.h"
#include "supervisor/core/state/crew.h"
#include "supervisor/core/state/events.h"
#include "transport/messages/rank.h"
#include "transport/messages/worker.h"

namespace monarch {

// How the crews of one mesh differ from others.
class CrewKind {
 public:
  virtual ~CrewKind() = default;
  // What one of its hosts, counted from the first, has to hold for it; nothing: it is not asked.
  virtual std::optional<Reserve> reserve_of(const CrewKey&, std::size_t) const { return std::nullopt; }
  virtual Start start_of(const CrewKey& key, std::size_t host) const = 0;
  // A member waits at its gate, and may become another crew's.
  virtual bool stands_by() const { return false; }
  // For people.
  virtual std::string name_of(const CrewKey& key) const = 0;
};

class Crews {
 public:
  enum class Turn : std::uint8_t { kNone, kUp, kOver };

  // `crews`: of each mesh, those behind the spec's included, in order.
  Crews(const CoreBasis& basis, std::vector<std::vector<Crew>>& crews) : basis_(basis), crews_(crews) {}
  Crews(const Crews&) = delete;
  Crews& operator=(const Crews&) = delete;

  // Before anything else is asked: those of a new job; and by whom each mesh is served, who outlives this.
  void create();
  void serve(MeshId mesh, const CrewKind& kind);

  const Crew& at(const CrewKey& key) const { return crews_[key.mesh.value()][key.gang.value()]; }
  std::uint32_t count(MeshId mesh) const { return static_cast<std::uint32_t>(crews_[mesh.value()].size()); }
  std::string name_of(const CrewKey& key) const { return kind_of(key).name_of(key); }
  bool awaits(HostId where, const Reserved& reserved) const;
  bool any_lives(MeshId mesh) const;
  void add_output_on_its_way(std::vector<RankId>& ranks) const;
  void add_outstanding(HostId host, const std::vector<RankReport>& reported, std::vector<Action>& missing) const;

  // Its next generation, on these hosts: they are asked to hold what it needs.
  void begin(const CrewKey& key, std::vector<HostId> hosts, Instant deadline);
  // It goes on from one of another job.
  void inherit(const CrewKey& key, std::uint64_t generation) { crew(key).generation.counter = generation; }
  // An answer that is awaited, without an error.
  void holds(HostId host, const Reserved& reserved);
  bool all_held(const CrewKey& key) const;
  void start(const CrewKey& key);
  // False: its process was over before.
  bool heard(const CrewPlace& place, const RankReport& report);
  // What has become of it, by what was heard.
  Turn look(const CrewKey& key);
  // False: there was nothing to stop.
  bool stop(const CrewKey& key, const CrewStop& order);
  void lose_member(const CrewKey& key, std::size_t index);
  // Its members on that host; true if there were any that lived.
  bool lose(const CrewKey& key, HostId host);
  // Nothing of it is awaited any more, and nothing is held for it.
  void forget(const CrewKey& key);
  void forget_output(const CrewPlace& place);
  // Its time is up, and is none any longer; its hosts with members that live.
  std::vector<HostId> overdue(const CrewKey& key);
  void no_deadline(const CrewKey& key) { crew(key).deadline = Instant::never(); }

  void returned();
  template <class Visit>
  void each_time(Visit& visit) const {
    for (auto& row : crews_) {
      for (Crew& crew : row) visit(crew.deadline, TimeKind::kPatience);
    }
  }

 private:
  static CrewKey key_of(std::size_t mesh, std::size_t index);
  Crew& crew(const CrewKey& key) { return crews_[key.mesh.value()][key.gang.value()]; }
  const CrewKind& kind_of(const CrewKey& key) const { return *kinds_[key.mesh.value()]; }
  Stop stop_message(const CrewKey& key, std::size_t host) const;
  void add_outstanding(const CrewKey& key, HostId host, const std::vector<RankReport>& reported,
                       std::vector<Action>& missing) const;

  const CoreBasis& basis_;
  std::vector<std::vector<Crew>>& crews_;
  std::vector<const CrewKind*> kinds_;
};

}  // namespace monarch
