#pragma once

// Announcer: what happens to a job, in words for people: on a pipe one line with a time stamp per change of state; on a
// terminal the changes that matter as lines, and the rest as a line of progress that names who is waited for.
//
// Thread: a value; it writes nothing itself.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/show/event_folder.h"
#include "cli/term/terminal.h"
#include "supervisor/core/spec/job_spec.h"
#include "transport/base/time.h"
#include "transport/messages/viewer.h"

namespace monarch {

class Announcer {
 public:
  Announcer(const JobSpec& spec, const Terminal& terminal);

  // The lines to show for an event; empty: it only changes the progress, or is a checkpoint of a gang that commits
  // often.
  std::string on_event(const JobEvent& event, Instant now);
  // Those that waited for events alike, once due().
  std::string take_due(Instant now);
  Instant due() const { return folder_.due(); }
  // For one who joins late.
  void on_status(const JobStatus& status);

  // "starting  hosts 3/4  waiting for v4 (2s)"; empty once the job runs. `waited` is since the phase began.
  std::string progress(Duration waited) const;
  // "still waiting for v4 (30s)"; empty when nothing is waited for.
  std::string still_waiting(Duration waited) const;

 private:
  enum class Phase : std::uint8_t { kStarting, kRunning, kStopping, kEnded };
  std::vector<std::string> missing_hosts() const;
  // Meshes whose gangs do not all run yet.
  std::vector<std::string> missing_meshes() const;
  std::string waited_for(Duration waited) const;
  bool is_one_of_many(const JobEvent& event);
  std::string lines_of(const std::vector<JobEvent>& events) const;

  Terminal terminal_;
  EventFolder folder_;
  Phase phase_ = Phase::kStarting;
  std::uint32_t wanted_;  // so many hosts the job begins with
  std::vector<std::string> hosts_;
  std::set<std::string> ready_;
  std::vector<std::pair<std::string, std::uint32_t>> gangs_;  // of each mesh, how many
  std::map<std::string, std::uint32_t> gangs_running_;
  std::map<std::pair<std::string, std::string>, WallTime> told_of_checkpoint_;  // by mesh and gang
};

// "2026-11-20T12:04:41.120Z error host.lost v2: …"
std::string plain_event_line(const JobEvent& event);
// "12:04:41 ✗ v2: …"
std::string terminal_event_line(const JobEvent& event, bool colour);

}  // namespace monarch
