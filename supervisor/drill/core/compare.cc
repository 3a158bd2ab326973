#include "supervisor/drill/core/compare.h"

#include <algorithm>
#include <cstdint>

#include "supervisor/core/state/ledger.h"

namespace monarch::drill {

namespace {

double seconds_between(WallTime from, WallTime to) {
  return static_cast<double>(to.nanoseconds_since_epoch - from.nanoseconds_since_epoch) / 1e9;
}

// The last that was taken by then; else the first.
const DrillSample& sample_at(const std::vector<DrillSample>& samples, WallTime at) {
  const auto later = std::find_if(samples.begin(), samples.end(), [&](const DrillSample& s) { return s.at > at; });
  return later == samples.begin() ? *later : *(later - 1);
}

// Of meshes that name steps.
double stepping_ranks(const DrillRecord& record, const DrillSample& sample) {
  double ranks = 0;
  for (std::size_t mesh = 0; mesh < record.meshes.size() && mesh < sample.meshes.size(); ++mesh) {
    const auto& steps = sample.meshes[mesh].steps;
    const bool names = std::any_of(steps.begin(), steps.end(), [](const auto& step) { return step.has_value(); });
    if (names) ranks += record.meshes[mesh].ranks;
  }
  return ranks;
}

// Rank-milliseconds in which new steps were done, of meshes that name some, since the job of this sample began.
std::int64_t new_until(const DrillSample& sample) {
  std::int64_t all = 0;
  for (const DrillSample::Mesh& mesh : sample.meshes) {
    const bool names =
        std::any_of(mesh.steps.begin(), mesh.steps.end(), [](const auto& step) { return step.has_value(); });
    for (const auto& [bin, milliseconds] : mesh.rank_milliseconds) {
      if (names && bin == name_of(TimeBin::kNew)) all += milliseconds;
    }
  }
  return all;
}

}  // namespace

std::optional<CompareRun> compare_run(const DrillRecord& record) {
  if (record.samples.empty()) return std::nullopt;
  const DrillSample& begun = sample_at(record.samples, record.control_to);
  const DrillSample& over = sample_at(record.samples, record.faults_to);
  const double wall = seconds_between(begun.at, over.at);
  const double ranks = stepping_ranks(record, begun);
  if (ranks <= 0 || wall <= 0) return std::nullopt;
  std::int64_t done = 0;
  const DrillSample* before = &begun;
  for (const DrillSample& sample : record.samples) {
    if (sample.at <= begun.at || sample.at > over.at) continue;
    done += new_until(sample) - (sample.job == before->job ? new_until(*before) : 0);
    before = &sample;
  }
  const auto all = static_cast<std::int64_t>(ranks * wall * 1'000);
  return CompareRun{.lost_rank_milliseconds = std::max(all - done, std::int64_t{0}), .rank_milliseconds = all};
}

}  // namespace monarch::drill
