#pragma once

// Run: a record as its measure reads it: events in order of time and of number, each with its gang, and gangs of all
// meshes in one row.
//
// Thread: values; a run lives no longer than its record.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/drill/core/measure.h"
#include "supervisor/drill/core/record.h"

namespace monarch::drill {

inline constexpr std::size_t kSamplesKept = 1'500;   // of a long drill not all are needed
inline constexpr std::uint32_t kMostGangs = 65'536;  // of all meshes; more are not looked at

struct RunGang {
  std::uint32_t mesh = 0;
  std::uint32_t number = 0;  // in the mesh
  std::uint32_t ranks = 0;
  bool sidecar = false;
  bool says_ready = false;      // else it is ready once it runs
  std::optional<WallTime> end;  // nothing of it was to be started any more
  std::string name;             // "trainer/0"
};

struct RunEvent {
  const JobEvent* event = nullptr;
  std::optional<std::uint32_t> gang;  // among those of the run
};

struct Run {
  const DrillRecord* record = nullptr;
  MeasureMutant mutant = MeasureMutant::kNone;
  std::vector<RunGang> gangs;
  std::vector<RunEvent> by_time;
  std::vector<RunEvent> by_number;

  bool planted(MeasureMutant asked) const { return mutant == asked; }
};

Run run_of(const DrillRecord& record, MeasureMutant mutant);

// Among the gangs of all meshes, in the record's order. Nothing: there is no such.
std::optional<std::uint32_t> gang_place(const DrillRecord& record, std::string_view mesh, std::uint64_t gang);
std::uint32_t gangs_of(const DrillMesh& mesh);

// Nothing: the event has no such detail, or it is no number.
std::optional<std::string_view> detail_of(const JobEvent& event, std::string_view name);
std::optional<std::uint64_t> number_of(const JobEvent& event, std::string_view name);

constexpr Duration between(WallTime from, WallTime to) {
  return Duration::nanoseconds(to.nanoseconds_since_epoch - from.nanoseconds_since_epoch);
}
constexpr Duration kLongest = Duration::seconds(10'000'000);  // a longer one is for ever
constexpr WallTime later(WallTime at, Duration by) {
  return WallTime{at.nanoseconds_since_epoch + std::min(by, kLongest).count_nanoseconds()};
}
// Has it ranks of that gang?
bool strikes(const Run& run, const Blow& blow, std::uint32_t gang);
// When a blow struck, as far as it is known.
WallTime struck_at(const Run& run, const Blow& blow);
// When it ended: it was taken back, its time was over, or it was over at once.
WallTime over_at(const Run& run, const Blow& blow);

// Samples that count and that report.json keeps, each so many; so a replay measures the same.
std::size_t sample_stride(const DrillRecord& record);
// The time that report.json keeps.
WallTime time_of(const DrillSample& sample);

// For people: since control ended; where it never did, since the drill began.
std::string place_in_time(const DrillRecord& record, WallTime at);
std::string line_of(const DrillRecord& record, const JobEvent& event);
std::string words_of(const Blow& blow);

}  // namespace monarch::drill
