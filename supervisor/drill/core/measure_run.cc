#include "supervisor/drill/core/measure_run.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <system_error>

#include "transport/base/text.h"

namespace monarch::drill {

namespace {

bool is_of_gang(EventKind kind) {
  return name_of(kind).starts_with("gang.") || kind == EventKind::kCheckpointCommitted;
}

std::optional<std::uint32_t> gang_of(const DrillRecord& record, const JobEvent& event) {
  if (event.mesh.empty()) return std::nullopt;
  if (is_of_gang(event.kind)) {
    const auto number = number_of(event, "gang");
    return number ? gang_place(record, event.mesh, *number) : std::nullopt;
  }
  if (!event.rank) return std::nullopt;
  for (const DrillMesh& mesh : record.meshes) {
    if (mesh.name == event.mesh) return gang_place(record, event.mesh, *event.rank / std::max(mesh.ranks_per_gang, 1U));
  }
  return std::nullopt;
}

// Its last event says so, unless it was started after that.
void note_end(RunGang& gang, const JobEvent& event) {
  switch (event.kind) {
    case EventKind::kGangStarting: gang.end.reset(); return;
    case EventKind::kGangReady: gang.says_ready = true; return;
    case EventKind::kGangDone:
    case EventKind::kGangStopped:
    case EventKind::kGangEnded: gang.end = event.time; return;
    case EventKind::kGangFailed:
      if (detail_of(event, "remedy").value_or("fail") == "fail") gang.end = event.time;
      return;
    default: return;
  }
}

}  // namespace

std::uint32_t gangs_of(const DrillMesh& mesh) { return mesh.ranks / std::max(mesh.ranks_per_gang, 1U); }

std::optional<std::uint32_t> gang_place(const DrillRecord& record, std::string_view mesh, std::uint64_t gang) {
  std::uint64_t before = 0;
  for (const DrillMesh& one : record.meshes) {
    const std::uint32_t many = gangs_of(one);
    if (one.name == mesh) {
      const bool there = gang < many && before + gang < kMostGangs;
      return there ? std::optional(static_cast<std::uint32_t>(before + gang)) : std::nullopt;
    }
    before += many;
  }
  return std::nullopt;
}

std::optional<std::string_view> detail_of(const JobEvent& event, std::string_view name) {
  for (const auto& detail : event.details) {
    if (detail.first == name) return detail.second;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> number_of(const JobEvent& event, std::string_view name) {
  const auto words = detail_of(event, name);
  if (!words) return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = words->data() + words->size();
  const auto read = std::from_chars(words->data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

Run run_of(const DrillRecord& record, MeasureMutant mutant) {
  Run run{.record = &record, .mutant = mutant, .gangs = {}, .by_time = {}, .by_number = {}};
  for (std::uint32_t m = 0; m < record.meshes.size(); ++m) {
    const DrillMesh& mesh = record.meshes[m];
    for (std::uint32_t g = 0; g < gangs_of(mesh) && run.gangs.size() < kMostGangs; ++g) {
      run.gangs.push_back({.mesh = m,
                           .number = g,
                           .ranks = mesh.ranks_per_gang,
                           .sidecar = mesh.sidecar,
                           .says_ready = false,
                           .end = std::nullopt,
                           .name = text(mesh.name, "/", g)});
    }
  }
  run.by_number.reserve(record.events.size());
  for (const JobEvent& event : record.events) run.by_number.push_back({&event, gang_of(record, event)});
  run.by_time = run.by_number;
  std::stable_sort(run.by_number.begin(), run.by_number.end(),
                   [](const RunEvent& a, const RunEvent& b) { return a.event->number < b.event->number; });
  std::stable_sort(run.by_time.begin(), run.by_time.end(),
                   [](const RunEvent& a, const RunEvent& b) { return a.event->time < b.event->time; });
  for (const RunEvent& one : run.by_number) {
    if (one.gang) note_end(run.gangs[*one.gang], *one.event);
  }
  return run;
}

bool strikes(const Run& run, const Blow& blow, std::uint32_t gang) {
  const BlowGang asked{.mesh = run.gangs[gang].mesh, .gang = run.gangs[gang].number};
  return std::find(blow.target.gangs.begin(), blow.target.gangs.end(), asked) != blow.target.gangs.end();
}

WallTime struck_at(const Run& run, const Blow& blow) {
  if (run.planted(MeasureMutant::kFromTheLook) && blow.seen_at != WallTime{}) return blow.seen_at;
  if (blow.struck_at != WallTime{}) return blow.struck_at;
  return blow.seen_at != WallTime{} ? blow.seen_at : blow.due;
}

WallTime over_at(const Run& run, const Blow& blow) {
  const WallTime struck = struck_at(run, blow);
  return blow.undone_at ? std::max(*blow.undone_at, struck) : later(struck, std::max(blow.lasts, Duration::zero()));
}

std::size_t sample_stride(const DrillRecord& record) {
  return std::max<std::size_t>((record.samples.size() + kSamplesKept - 1) / kSamplesKept, 1);
}

WallTime time_of(const DrillSample& sample) {
  return WallTime{sample.at.nanoseconds_since_epoch / 1'000'000 * 1'000'000};
}

std::string place_in_time(const DrillRecord& record, WallTime at) {
  char seconds[64];
  std::snprintf(seconds, sizeof seconds, "%.1f s",
                between(record.control_to == WallTime{} ? record.started : record.control_to, at).count_seconds());
  return seconds;
}

std::string line_of(const DrillRecord& record, const JobEvent& event) {
  return text(place_in_time(record, event.time), " ", name_of(event.kind), " ", event.message);
}

std::string words_of(const Blow& blow) {
  const BlowTarget& target = blow.target;
  const std::string whom = !target.mesh.empty()   ? text(" of ", target.mesh, "/", target.rank)
                           : !target.host.empty() ? text(" of ", target.host)
                                                  : "";
  return text("fault ", blow.number, " (", blow.fault, whom, ")");
}

}  // namespace monarch::drill
