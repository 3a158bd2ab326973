#pragma once

// DrillRecord: all that was seen while a drill ran. Whatever a drill says is measured from it and from nothing else, so
// that a record that was kept can be measured again.
//
// All times are of the supervisor's wall clock.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/drill/core/scenario.h"
#include "transport/base/time.h"
#include "transport/messages/viewer.h"

namespace monarch::drill {

struct BlowGang {
  std::uint32_t mesh = 0;  // of the record's meshes
  std::uint32_t gang = 0;
  bool operator==(const BlowGang&) const = default;
};

// Who is struck. Of a host's fault `mesh` is empty, of a supervisor's `host`, too.
struct BlowTarget {
  std::string host;
  std::string mesh;
  std::uint32_t rank = 0;       // of the mesh
  std::vector<BlowGang> gangs;  // that have ranks there
};

enum class BlowEnd : std::uint8_t {
  kEffective,  // it was seen to be in effect
  kInert,      // it was not, or nobody ran into it
  kSkipped,    // it never struck
};

// One fault as it was, or was to be, injected.
struct Blow {
  std::uint32_t number = 0;  // from 1, in the order in which they were due
  std::uint32_t entry = 0;   // of the scenario's faults
  std::uint32_t draw = 0;    // how often that entry was drawn before
  std::string fault;         // by name
  BlowTarget target;
  WallTime due;
  WallTime struck_at;    // on its host, before the first blow
  WallTime seen_at;      // once it was seen to be in effect
  Duration clock_error;  // by which these may be wrong
  Duration lasts;        // zero: it does not
  std::optional<WallTime> undone_at;
  BlowEnd end = BlowEnd::kSkipped;
  std::string why;         // inert or skipped, or not taken back: why
  bool taken_back = true;  // or there was nothing to take back
  std::vector<std::int32_t> struck;
};

struct DrillMesh {
  std::string name;
  std::uint32_t ranks = 0;
  std::uint32_t ranks_per_gang = 1;
  bool sidecar = false;
  // Of a rank that a signal has stopped: after so long its gang is started again; for ever: it is not. Nothing: the
  // times of the record say it.
  std::optional<Duration> hang = {};
};

// What the job's status said.
struct DrillSample {
  struct Mesh {
    std::vector<std::optional<std::uint64_t>> steps;  // by gang: the furthest that all its generations came
    std::vector<std::string> phases;                  // by gang
    std::vector<std::pair<std::string, std::int64_t>> rank_milliseconds;  // by bin
  };
  WallTime at;
  std::uint32_t job = 0;                                   // the first, or one that goes on from it
  std::vector<Mesh> meshes;                                // as in the record
  std::vector<std::pair<std::string, std::string>> hosts;  // name, phase
  std::uint32_t spares = 0;                                // that are connected
};

// Ranks of whom more than one process that is not stopped was seen at once, or that it was looked for.
struct IncarnationCheck {
  WallTime at;
  std::string host;
  std::uint32_t ranks = 0;
  std::vector<std::string> doubled;  // "trainer/3"
};

struct DrillLeftover {
  std::string host;  // empty: where the drill runs
  std::string what;  // "2 processes of the job", "the table monarch_drill_412 of nft"
};

// The times of the spec that bounds are held against.
struct DrillTimes {
  Duration heartbeat;
  Duration suspect_after;
  Duration lost_after;
  Duration lease;
  std::optional<Duration> hang;  // where meshes do not say it; nothing: nobody is started again for a hang
};

struct CompareRun {
  std::int64_t lost_rank_milliseconds = 0;
  std::int64_t rank_milliseconds = 0;
};

struct DrillRecord {
  std::uint32_t version = 1;
  Scenario scenario;
  std::uint64_t seed = 0;
  std::string job_id;
  std::string launcher;              // "local:4"
  std::string monarch;               // its version
  std::vector<std::string> command;  // to run it again
  DrillTimes times;
  std::vector<DrillMesh> meshes;
  WallTime started;       // of the drill
  WallTime control_from;  // the job had settled
  WallTime control_to;    // faults may strike from then on
  WallTime faults_to;     // the last was recovered from, or its time was over
  WallTime ended;
  std::vector<Blow> blows;
  std::vector<JobEvent> events;
  std::vector<DrillSample> samples;
  std::vector<IncarnationCheck> incarnations;
  std::vector<DrillLeftover> leftovers;
  std::uint32_t hosts_searched = 0;  // for leftovers; 0: nobody has looked, and that there are none is not believed
  std::optional<Verdict> verdict;    // of the job
  std::optional<CompareRun> here;    // with `compare`: of this run, and of the one that stops and starts everything
  std::optional<CompareRun> peer;
  std::string same_output;  // with the scenario's: empty: it is the same; else what differs
  bool same_output_seen = false;
  std::string cut_short;  // why it ended before its time: a guard, a signal, the job's own end
  bool interrupted = false;
  std::vector<std::string> left_out;  // what was not asked for because the spec cannot have it, with the reason
};

}  // namespace monarch::drill
