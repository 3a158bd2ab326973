#include "worker/core/progress_budget.h"

namespace monarch::daemon {

namespace {

constexpr std::size_t kFieldBytes = 16;  // numbers, lengths and tags

}  // namespace

std::size_t wire_size(const RankProgress& progress) {
  std::size_t size = kFieldBytes * 4 + progress.phase.size() + progress.status.size();
  for (const auto& [name, value] : progress.metrics) size += kFieldBytes + name.size() + value.size();
  return size;
}

void ProgressBudget::fit(std::vector<RankReport>& reports) {
  if (reports.empty()) return;
  if (first_ >= reports.size()) first_ = 0;
  std::size_t used = 0;
  std::size_t next = first_;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    RankProgress& progress = reports[(first_ + i) % reports.size()].progress;
    used += wire_size(progress);
    if (used <= kProgressBytesPerBeat) continue;
    if (next == first_) next = (first_ + i) % reports.size();
    progress = RankProgress{};
  }
  first_ = next;
}

}  // namespace monarch::daemon
