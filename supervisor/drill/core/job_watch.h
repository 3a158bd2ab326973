#pragma once

// JobWatch: what a drill knows of the job that it strikes: which of its ranks and hosts are well, and how far its gangs
// are. It is told what the job's status and its events say.
//
// Thread: a value.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/drill/core/record.h"
#include "transport/messages/viewer.h"

namespace monarch::drill {

struct WatchedRank {
  std::string host;
  bool well = false;  // it runs, and is not stopped
  bool ready = false;
};

struct WatchedGang {
  std::uint32_t mesh = 0;  // of the record's meshes
  std::uint32_t gang = 0;
  std::vector<WatchedRank> ranks;
  std::string phase;
  bool ready = false;                          // all its ranks are
  bool failed = false;                         // it has failed or was stopped, and is not past where it was
  bool behind = false;                         // it does steps again since it was started
  std::uint64_t started = 0;                   // failed: by which generation it goes on; 0: by none yet
  std::optional<std::uint64_t> furthest = {};  // step of all its generations
  bool runs() const { return phase == "running" || phase == "ready"; }
  bool up() const { return runs() && ready && !failed; }
  bool over() const { return phase == "done" || phase == "failed" || phase == "parked"; }
};

struct WatchedHost {
  std::string name;
  bool ready = false;
  bool spare = false;
};

class JobWatch {
 public:
  explicit JobWatch(std::vector<DrillMesh> meshes);

  void on_status(const JobStatus& status);
  void on_event(const JobEvent& event);
  // Another job goes on from this one: nothing is known of it but what was done before.
  void on_new_job();

  const std::vector<WatchedGang>& gangs() const { return gangs_; }
  const std::vector<WatchedHost>& hosts() const { return hosts_; }
  // By the mesh's and the gang's number; nothing: there is none.
  const WatchedGang* find(std::uint32_t mesh, std::uint32_t gang) const;
  std::optional<std::uint32_t> mesh_of(const std::string& name) const;
  // Of an event; nothing: it is of no gang.
  const WatchedGang* gang_of(const JobEvent& event) const;
  bool seen() const { return seen_; }  // there was a status
  bool all_up() const;
  // Gangs that are not up, and why: "gang 0 of trainer is starting, gang 1 of trainer waits for ranks 4-5 on v3 to be
  // ready"; empty: all are.
  std::string missing() const;
  std::uint32_t down() const;    // gangs that are not up, and are to be
  std::uint32_t spares() const;  // that are connected
  // Steps of all gangs that none of their generations had done before.
  std::uint64_t steps() const;
  std::uint64_t furthest() const;  // step of any gang

 private:
  WatchedGang* gang_of(const JobEvent& event);

  std::vector<DrillMesh> meshes_;
  std::vector<WatchedGang> gangs_;
  std::vector<WatchedHost> hosts_;
  bool seen_ = false;
};

// What a record keeps of a status.
DrillSample sample_of(const JobStatus& status, const JobWatch& watch, std::size_t meshes, WallTime at);

// Every second one goes where they have more than `most` bytes, and what is left says how a job ended: nobody reads of
// hours what was so in each quarter of a second.
void thin(std::vector<DrillSample>& samples, std::size_t most);

}  // namespace monarch::drill
