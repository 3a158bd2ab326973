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
#include "supervisor/core/crew/judgement.h"
#include "supervisor/core/state/crew.h"
#include "supervisor/core/state/events.h"
#include "transport/messages/rank.h"
#include "transport/messages/worker.h"

namespace monarch {

// How the crews of one mesh differ from others.
class CrewKind {
 public:
  virtual ~CrewKind() = default;
  // What one of its hosts, counted from the first, has to hold for it; of others it is not asked.
  virtual Reserve reserve_of(const CrewKey& key, std::size_t host) const;
  virtual Start start_of(const CrewKey& key, std::size_t host) const = 0;
  virtual std::int32_t stop_signal(const CrewKey&) const { return 15; }
  // A member is up once it is at its gate.
  virtual bool waits_at_gate() const { return false; }
  // For people.
  virtual std::string name_of(const CrewKey& key) const = 0;
};

class Crews {
 public:
  enum class Turn : std::uint8_t { kNone, kUp, kOver };

  // `crews`: of each mesh behind those of the spec, in order.
  Crews(const CoreBasis& basis, std::vector<std::vector<Crew>>& crews) : basis_(basis), crews_(crews) {}
  Crews(const Crews&) = delete;
  Crews& operator=(const Crews&) = delete;

  // Before anything else is asked; it outlives this.
  void serve(MeshId mesh, const CrewKind& kind);

  const Crew& at(const CrewKey& key) const;
  std::uint32_t count(MeshId mesh) const { return static_cast<std::uint32_t>(crews_[row_of(mesh)].size()); }
  std::string name_of(const CrewKey& key) const { return kinds_[row_of(key.mesh)]->name_of(key); }
  std::optional<HostId> where_is(const CrewPlace& place) const;
  Judgement judge(const CrewPlace& place, HostId where, Generation generation) const;
  bool awaits(HostId where, const Reserved& reserved) const;
  bool any_lives(MeshId mesh) const;
  void add_output_on_its_way(std::vector<RankId>& ranks) const;
  void add_outstanding(HostId host, const std::vector<RankReport>& reported, std::vector<Action>& missing) const;

  // Its next generation, on these hosts.
  void begin(const CrewKey& key, std::vector<HostId> hosts, Instant deadline);
  // An answer that is awaited, without an error: the last one starts it.
  void holds(HostId host, const Reserved& reserved);
  // False: its process was over before.
  bool heard(const CrewPlace& place, const RankReport& report);
  // What has become of it, by what was heard.
  Turn look(const CrewKey& key);
  // Again, where a kill was ordered since. False: there was nothing to stop.
  bool stop(const CrewKey& key);
  void lose_member(const CrewKey& key, std::size_t index);
  // Members on that host; true if there were any, or it was asked to hold something.
  bool lose(const CrewKey& key, HostId host);
  void forget(const CrewKey& key);
  // Its time is up, and is none any longer; its hosts with members that live.
  std::vector<HostId> overdue(const CrewKey& key);
  void no_deadline(const CrewKey& key) { crew(key).deadline = Instant::never(); }

  // Deadlines of all.
  Instant next_deadline() const;
  template <class Change>
  void each_deadline(Change change) {
    for (auto& row : crews_) {
      for (Crew& crew : row) change(crew.deadline);
    }
  }

 private:
  std::size_t row_of(MeshId mesh) const { return mesh.value() - basis_.spec.meshes.size(); }
  CrewKey key_of(std::size_t row, std::size_t index) const;
  Crew& crew(const CrewKey& key) { return crews_[row_of(key.mesh)][key.gang.value()]; }
  void start(const CrewKey& key);
  Stop stop_message(const CrewKey& key, std::size_t host) const;
  void add_outstanding(const CrewKey& key, HostId host, const std::vector<RankReport>& reported,
                       std::vector<Action>& missing) const;

  const CoreBasis& basis_;
  std::vector<std::vector<Crew>>& crews_;
  std::vector<const CrewKind*> kinds_;
};

// Members on each of its hosts.
std::size_t per_host(const Crew& crew);

}  // namespace monarch
