#include "supervisor/drill/core/compare.h"

#include <algorithm>

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

// Of each rank of a gang what the gang did.
double rank_steps(const DrillRecord& record, const DrillSample& from, const DrillSample& to) {
  double steps = 0;
  for (std::size_t mesh = 0; mesh < record.meshes.size(); ++mesh) {
    if (mesh >= from.meshes.size() || mesh >= to.meshes.size()) break;
    const auto& before = from.meshes[mesh].steps;
    const auto& after = to.meshes[mesh].steps;
    for (std::size_t gang = 0; gang < before.size() && gang < after.size(); ++gang) {
      if (!before[gang] || !after[gang] || *after[gang] < *before[gang]) continue;
      steps += static_cast<double>(*after[gang] - *before[gang]) * record.meshes[mesh].ranks_per_gang;
    }
  }
  return steps;
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

}  // namespace

std::optional<CompareRun> compare_run(const DrillRecord& record) {
  if (record.samples.empty()) return std::nullopt;
  const DrillSample& settled = sample_at(record.samples, record.control_from);
  const DrillSample& begun = sample_at(record.samples, record.control_to);
  const DrillSample& over = sample_at(record.samples, record.faults_to);
  const double ranks = stepping_ranks(record, begun);
  const double control = seconds_between(settled.at, begun.at);
  const double wall = seconds_between(begun.at, over.at);
  const double usual = rank_steps(record, settled, begun);
  if (ranks <= 0 || control <= 0 || usual <= 0) return std::nullopt;
  const double seconds_of_step = ranks * control / usual;  // of one rank
  const double lost = ranks * wall - rank_steps(record, begun, over) * seconds_of_step;
  return CompareRun{.lost_rank_milliseconds = static_cast<std::int64_t>(std::max(lost, 0.0) * 1'000),
                    .rank_milliseconds = static_cast<std::int64_t>(ranks * wall * 1'000)};
}

}  // namespace monarch::drill
