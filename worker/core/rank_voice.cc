#include "worker/core/rank_voice.h"

#include <algorithm>

namespace monarch {

void RankVoice::hear(const Notice& notice, Instant now) {
  bad_ += notice.bad;
  if (!notice.says_anything()) return;
  if (notice.step) progress_.step = notice.step;
  if (notice.phase) progress_.phase = *notice.phase;
  if (notice.status) progress_.status = *notice.status;
  for (const auto& metric : notice.metrics) keep(metric);
  progress_.at = now;
  const bool is_mark = notice.step && mark(*notice.step, now);
  const bool is_news = is_mark || (notice.ready && !ready_);
  ready_ = ready_ || notice.ready;
  const Instant soonest = told_at_ && !is_news ? std::max(now, *told_at_ + period_) : now;
  due_ = std::min(due_, soonest);
}

bool RankVoice::mark(std::uint64_t step, Instant now) {
  const bool is_first = !progress_.first;
  if (is_first) progress_.first = StepMark{step, now};
  const bool is_past = !progress_.past && furthest_ && step > *furthest_;
  if (is_past) progress_.past = StepMark{step, now};
  return is_first || is_past;
}

void RankVoice::dropped(Instant now) { due_ = std::min(due_, told_at_ ? std::max(now, *told_at_ + period_) : now); }

void RankVoice::keep(const std::pair<std::string, std::string>& metric) {
  const auto same = std::find_if(progress_.metrics.begin(), progress_.metrics.end(),
                                 [&metric](const auto& known) { return known.first == metric.first; });
  if (same != progress_.metrics.end()) {
    same->second = metric.second;
  } else if (progress_.metrics.size() < kMetrics) {
    progress_.metrics.push_back(metric);
  } else {
    ++bad_;
  }
}

void RankVoice::told(Instant now) {
  told_at_ = now;
  due_ = Instant::never();
}

}  // namespace monarch
