#pragma once

// What a blow of a drill is for the host that it strikes, and for the supervisor, which is told before.
//
// Thread: pure functions.

#include <cstdint>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/drill/core/drill_core.h"
#include "transport/messages/strike.h"
#include "transport/messages/viewer.h"

namespace monarch {

// The job that is drilled.
struct DrilledJob {
  std::string uuid;                  // by which its processes are marked
  std::vector<std::uint16_t> ports;  // of its supervisor, at which hosts reach it
  std::string directory;             // by which its supervisor is known
  std::int32_t supervisor_pid = 0;
};

StrikeOrder strike_order(const drill::Blow& blow, const drill::FaultEntry& entry, const DrilledJob& job);

struct DrillWords {
  std::string drill;  // its id
  std::string who;    // "monarch drill, pid 4711"
  bool forgiven = true;
};
DrillNotice notice_of(const drill::Blow& blow, DrillWhat what, const DrillWords& words);
// "kill of trainer/3 on v2", "power-loss of v2", "supervisor-kill"
std::string blow_words(const drill::Blow& blow);

// By the job's spec.
std::vector<drill::DrillMesh> drill_meshes(const JobSpec& spec);
drill::DrillTimes drill_times(const JobSpec& spec);
// Of a job that runs as it was placed first, and ails nothing.
JobStatus status_as_placed(const JobSpec& spec);

}  // namespace monarch
